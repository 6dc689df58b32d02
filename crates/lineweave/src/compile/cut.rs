//! A compiled plan, cut for shorter messages or blocks: see [`Plan::cut`](lineweave_core::plan::Plan::cut).
//!
//! The steps that touch callers' buffers are kept as they were compiled. When the next window has another length, they are made of these anew, which
//! takes a fraction of the time that they take to run.

use super::step::{Addr, Chain, Double, Step, IN, OUT, PEERS};
use super::{Compiled, Steps};
use lineweave_core::plan::Plan;

/// Bytes of a window of each block, or of the message, and bytes from one block to the next.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Span {
    /// Of the window.
    pub bytes: usize,
    /// Of a whole block, or of the message, of which this is a window.
    pub of: usize,
}

impl Span {
    /// For plans that are not cut.
    pub const NONE: Span = Span { bytes: 0, of: 0 };
}

/// A step that depends on the length.
#[derive(Clone, Debug)]
pub(super) struct Cut {
    number: usize,
    step: Step,
    listed: Listed,
}

/// What a step has in a list of its kind.
#[derive(Clone, Debug)]
enum Listed {
    Nothing,
    /// It folds into two places.
    Double(Double),
    /// It combines all contributions.
    Chain(Chain),
}

/// Steps that depend on the length, of a plan that can be cut.
#[derive(Clone, Debug)]
pub(super) struct Cuts {
    steps: Box<[Cut]>,
    /// Bytes from one block to the next in the plan; more than any buffer has where there are no blocks.
    pitch: usize,
    /// For what the steps are made now.
    now: Option<Span>,
}

/// What is left of a step without bytes.
const NOTHING: Step = Step::Ahead { at: 0, lines: 0 };

fn of_users(addr: Addr) -> bool {
    addr.base == IN || addr.base == OUT || addr.base >= PEERS
}

impl Cuts {
    /// Of a plan that has `pitch` bytes from one block to the next.
    fn of(steps: &Steps, pitch: usize) -> Cuts {
        let cut = |(number, &step): (usize, &Step)| {
            let listed = match step {
                Step::FoldTwice { number } => Listed::Double(steps.doubles[number as usize]),
                Step::FoldAll { number } => Listed::Chain(steps.chains[number as usize].clone()),
                _ => Listed::Nothing,
            };
            let depends = match (step, &listed) {
                (_, &Listed::Double(Double { a, b, dst, also, .. })) => {
                    [a, b, dst, also].into_iter().any(of_users)
                }
                (_, Listed::Chain(chain)) => chain.places().any(of_users),
                (Step::Move { src, dst, .. } | Step::MoveReach { src, dst, .. }, _) => {
                    of_users(src) || of_users(dst)
                }
                (Step::Fold { a, b, dst, .. } | Step::FoldReach { a, b, dst, .. }, _) => {
                    [a, b, dst].into_iter().any(of_users)
                }
                (Step::SetBytes { src: addr, .. } | Step::WaitBytes { dst: addr, .. }, _) => of_users(addr),
                (step, _) => matches!(step, Step::WaitPlace { .. }),
            };
            depends.then_some(Cut { number, step, listed })
        };
        Cuts { steps: steps.all.iter().enumerate().filter_map(cut).collect(), pitch, now: None }
    }

    pub fn bytes(&self) -> usize {
        let operands = self.steps.iter().map(|cut| match &cut.listed {
            Listed::Chain(chain) => size_of_val(&*chain.operands),
            Listed::Nothing | Listed::Double(_) => 0,
        });
        size_of_val(&*self.steps) + operands.sum::<usize>()
    }
}

impl Compiled {
    /// Has it be cut before each run, if its plan can be: who asks for it has a proof that [says so](lineweave_core::verify::Proof::shortens).
    #[must_use]
    pub fn with_cuts(self, plan: &Plan) -> Compiled {
        let cuts = plan.pitch().map(|pitch| Cuts::of(&self.steps, pitch));
        Compiled { steps: Steps { cuts, ..self.steps }, ..self }
    }

    /// Has the next run be of a window like this; others than those that are to be cut run for their own length alone.
    #[inline(always)]
    pub fn cut(&mut self, span: Span) {
        if self.steps.cuts.as_ref().is_some_and(|cuts| cuts.now != Some(span)) {
            self.cut_anew(span);
        }
    }

    #[cold]
    fn cut_anew(&mut self, span: Span) {
        let Steps { all, doubles, chains, cuts: Some(cuts) } = &mut self.steps else { return };
        cuts.now = Some(span);
        let maker = Maker { pitch: cuts.pitch, span, grain: self.grain };
        for Cut { number, step, listed } in &cuts.steps {
            let left = match (*step, listed) {
                (Step::FoldTwice { number }, Listed::Double(double)) => {
                    let made = maker.double(double);
                    doubles[number as usize] = made;
                    made.elements
                }
                (Step::FoldAll { number }, Listed::Chain(chain)) => {
                    maker.chain(chain, &mut chains[number as usize])
                }
                _ => usize::MAX,
            };
            all[*number] = if left == 0 { NOTHING } else { maker.step(*step) };
        }
    }
}

/// Makes steps for a span.
struct Maker {
    pitch: usize,
    span: Span,
    grain: usize,
}

impl Maker {
    fn step(&self, step: Step) -> Step {
        match step {
            Step::Move { src, dst, len } => match self.left(&[src, dst], len) {
                0 => NOTHING,
                len => Step::Move { src: self.at(src), dst: self.at(dst), len },
            },
            Step::MoveReach { src, dst, len } => match self.left(&[src, dst], len) {
                0 => NOTHING,
                len => Step::MoveReach { src: self.at(src), dst: self.at(dst), len },
            },
            Step::Fold { a, b, dst, elements } => match self.elements(&[a, b, dst], elements) {
                0 => NOTHING,
                elements => Step::Fold { a: self.at(a), b: self.at(b), dst: self.at(dst), elements },
            },
            Step::FoldReach { a, b, dst, elements } => match self.elements(&[a, b, dst], elements) {
                0 => NOTHING,
                elements => Step::FoldReach { a: self.at(a), b: self.at(b), dst: self.at(dst), elements },
            },
            Step::SetBytes { at, home, value, src, len } => match self.left(&[src], len as usize) {
                0 => Step::Set { at, home, value },
                len => Step::SetBytes { at, home, value, src: self.at(src), len: len as u32 },
            },
            Step::WaitBytes { at, home, value, dst, len, apart } => match self.left(&[dst], len as usize) {
                0 => Step::Wait { at, home, value, apart },
                len => Step::WaitBytes { at, home, value, dst: self.at(dst), len: len as u32, apart },
            },
            Step::WaitPlace { at, home, value, base, near, bytes } => {
                let last = bytes.saturating_sub(1);
                let within = (last % self.pitch + 1).min(self.span.bytes);
                let within = if last < self.pitch { within } else { self.span.bytes };
                let bytes = if bytes == 0 { 0 } else { last / self.pitch * self.span.of + within };
                Step::WaitPlace { at, home, value, base, near, bytes }
            }
            step => step,
        }
    }

    /// Makes one of another; its elements.
    fn chain(&self, of: &Chain, made: &mut Chain) -> usize {
        let left = of.places().map(|addr| self.left(&[addr], of.elements * self.grain)).min();
        made.elements = left.unwrap_or(0) / self.grain;
        if made.elements > 0 {
            made.operands.iter_mut().zip(&of.operands).for_each(|(made, &of)| *made = self.at(of));
            (made.through, made.dst) = (self.at(of.through), self.at(of.dst));
        }
        made.elements
    }

    fn double(&self, double: &Double) -> Double {
        let Double { a, b, dst, also, elements } = *double;
        let elements = self.elements(&[a, b, dst, also], elements);
        let [a, b, dst, also] =
            if elements == 0 { [a, b, dst, also] } else { [a, b, dst, also].map(|x| self.at(x)) };
        Double { a, b, dst, also, elements }
    }

    fn at(&self, addr: Addr) -> Addr {
        match of_users(addr) {
            true => {
                let (block, within) = (addr.offset / self.pitch, addr.offset % self.pitch);
                Addr { offset: block * self.span.of + within, ..addr }
            }
            false => addr,
        }
    }

    /// Bytes of `len` that are left of what lies at these places.
    fn left(&self, places: &[Addr], len: usize) -> usize {
        let users = places.iter().filter(|&&addr| of_users(addr));
        let left = users.map(|addr| self.span.bytes.saturating_sub(addr.offset % self.pitch));
        left.fold(len, usize::min)
    }

    fn elements(&self, places: &[Addr], elements: usize) -> usize {
        self.left(places, elements * self.grain) / self.grain
    }
}
