//! Folds that combine all contributions in one place, as one step.
//!
//! A plan combines two operands at a time, and 16-bit floats would be rounded after each addition. Where the sum of all contributions is made by
//! folds that follow each other (slices, fold-back, all-read-all, direct), they are one step, which may keep the sum in f32 and round it once.
//! That is done in plans all of whose sums are made so ([`Part::sums_whole`](lineweave_core::plan::Part::sums_whole)): in others one rank could
//! round once, and another one that makes the same sum in two places twice.

use super::step::{Addr, Chain, Step};
use super::Compiler;
use lineweave_core::plan::{follows, Op, Region};

impl Compiler<'_> {
    /// A rank's steps; `whole` where sums of all contributions are to be one step.
    pub(super) fn steps(&mut self, ops: &[Op], whole: bool) -> Vec<Step> {
        let folds = self.plan.ranks - 1;
        let (mut steps, mut at) = (Vec::with_capacity(ops.len()), 0);
        while at < ops.len() {
            let chain =
                ops.get(at..at + folds).filter(|_| whole && folds > 1).and_then(|ops| self.chain(ops));
            at += if chain.is_some() { folds } else { 1 };
            match chain {
                Some(chain) => {
                    steps.push(Step::FoldAll { number: self.chains.len() as u32 });
                    self.chains.push(chain);
                }
                None => steps.push(self.step(&ops[at - 1])),
            }
        }
        steps
    }

    /// The chain that these folds are, if they are one and all of its operands are in reach.
    fn chain(&mut self, ops: &[Op]) -> Option<Chain> {
        let mut previous: Option<Region> = None;
        let mut operands: Vec<Addr> = Vec::with_capacity(ops.len() + 1);
        let mut through = None;
        for op in ops {
            let Op::Fold { a, b, dst } = *op else { return None };
            if self.reaches([a, b, dst]) {
                return None;
            }
            match previous {
                None => operands.extend([self.addr(a), self.addr(b)]),
                Some(sum) => operands.push(self.addr(follows(op, sum)?)),
            }
            through = through.or(Some(dst));
            previous = Some(dst);
        }
        let dst = previous?;
        Some(Chain {
            operands: operands.into(),
            through: self.addr(through?),
            dst: self.addr(dst),
            elements: dst.len / self.plan.grain,
        })
    }
}
