//! A compiled plan, cut for shorter messages or blocks: see [`Plan::cut`](lineweave_core::plan::Plan::cut).
//!
//! The steps that touch callers' buffers are kept as they were compiled. When the next window has another length, they are made of these anew, which
//! takes a fraction of the time that they take to run. Each block may have a length of its own.

use super::compiled::{Compiled, Peer, Steps};
use super::step::{Addr, Chain, Double, Step, IN, OUT, PEERS};
use lineweave_core::collective::Collective;
use lineweave_core::plan::{Blocks, Grid, Plan, Space, Uneven};
use std::ops::Range;
use std::sync::Arc;

/// Bytes of a window of each block, or of the message, and bytes from one block to the next.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MessageSpan {
    /// The length of the window in bytes.
    pub bytes: usize,
    /// The length of the whole block or message that the window is part of.
    pub of: usize,
}

impl MessageSpan {
    /// Span of plans that are not cut.
    pub const NONE: MessageSpan = MessageSpan { bytes: 0, of: 0 };
    /// Span of plans that were cut to blocks of different lengths before ([`Compiled::cut_to`]).
    pub const UNEVEN: MessageSpan = MessageSpan { bytes: 0, of: usize::MAX };
}

/// A step that depends on the length.
#[derive(Clone, Debug)]
pub(super) struct TruncatedStep {
    number: usize,
    step: Step,
    listed: Listed,
}

/// Entry of a step in the list of its kind.
#[derive(Clone, Debug)]
enum Listed {
    Nothing,
    /// A fold with two destinations.
    Double(Double),
    /// A chain that combines all contributions.
    Chain(Chain),
}

/// Steps that depend on the length, of a plan that can be cut.
#[derive(Clone, Debug)]
pub(super) struct Truncation {
    steps: Box<[TruncatedStep]>,
    /// Bytes from one block to the next in the plan; more than any buffer has where there are no blocks.
    pitch: usize,
    /// Span for which the steps are made now; `None` before the first cut.
    now: Option<MessageSpan>,
    /// Blocks of different lengths that they were made for last, and which bytes of each.
    uneven: Option<(Blocks, Range<usize>)>,
    /// Collective that the plan carries out, to whose buffers the blocks belong.
    collective: Collective,
    ranks: usize,
    root: usize,
    rank: usize,
}

/// Step without effect, which stands in for a step without bytes.
const NOTHING: Step = Step::PrefetchForWrite { at: 0, lines: 0 };

fn of_users(addr: Addr) -> bool {
    addr.base == IN || addr.base == OUT || addr.base >= PEERS
}

impl Truncation {
    /// Returns the truncation of a rank's part of a plan that has `pitch` bytes from one block to the next.
    fn of(steps: &Steps, pitch: usize, plan: &Plan, rank: usize) -> Truncation {
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
                (Step::Move { src, dst, .. } | Step::CopyRemote { src, dst, .. }, _) => {
                    of_users(src) || of_users(dst)
                }
                (Step::Fold { a, b, dst, .. } | Step::ReduceRemote { a, b, dst, .. }, _) => {
                    [a, b, dst].into_iter().any(of_users)
                }
                (Step::SetBytes { src: addr, .. } | Step::WaitBytes { dst: addr, .. }, _) => of_users(addr),
                (step, _) => matches!(step, Step::WaitPlace { .. }),
            };
            depends.then_some(TruncatedStep { number, step, listed })
        };
        Truncation {
            steps: steps.all.iter().enumerate().filter_map(cut).collect(),
            pitch,
            now: None,
            uneven: None,
            collective: plan.collective,
            ranks: plan.ranks,
            root: plan.root.index(),
            rank,
        }
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
    /// Makes the compiled plan be cut before each run, if it can be: the caller has a proof that
    /// [says so](lineweave_core::verify::Proof::shortens).
    #[must_use]
    pub fn with_cuts(self, plan: &Plan, rank: usize) -> Compiled {
        let cuts = plan.pitch().map(|pitch| Truncation::of(&self.steps, pitch, plan, rank));
        Compiled { steps: Steps { cuts, ..self.steps }, ..self }
    }

    /// Cuts the next run to a window of this span; plans that are not to be cut run for their own length alone.
    #[inline(always)]
    pub fn cut(&mut self, span: MessageSpan) {
        if self.steps.cuts.as_ref().is_some_and(|cuts| cuts.now != Some(span)) {
            self.cut_anew(span, None);
        }
    }

    /// Cuts the next run, of [`MessageSpan::UNEVEN`], to the bytes `window` of blocks of different lengths, none of which has more of these
    /// bytes than the plan's blocks.
    pub fn cut_to(&mut self, blocks: &Blocks, window: Range<usize>) {
        let (Some(cuts), Blocks::Uneven(uneven)) = (&self.steps.cuts, blocks) else { return };
        // Windows that lie in every block are cut alike.
        let inner = window.start == 0 || uneven.counts().iter().all(|&count| count >= window.end);
        let window = if inner { 0..window.len() } else { window };
        let same = |(known, of): &(Blocks, Range<usize>)| *of == window && known == blocks;
        if cuts.now != Some(MessageSpan::UNEVEN) || !cuts.uneven.as_ref().is_some_and(same) {
            self.cut_anew(MessageSpan::UNEVEN, Some((blocks.clone(), window)));
        }
    }

    /// Blocks of these lengths, made anew unless they are those of the last run.
    pub fn blocks_of(&self, lengths: &[usize]) -> Option<Blocks> {
        let cuts = self.steps.cuts.as_ref()?;
        match &cuts.uneven {
            Some((known @ Blocks::Uneven(uneven), _)) if uneven.counts() == lengths => Some(known.clone()),
            _ => Some(Blocks::Uneven(Arc::new(match cuts.collective {
                Collective::Alltoall => Uneven::by_pair(cuts.ranks, lengths.to_vec()),
                _ => Uneven::by_rank(lengths.to_vec()),
            }))),
        }
    }

    #[cold]
    fn cut_anew(&mut self, span: MessageSpan, uneven: Option<(Blocks, Range<usize>)>) {
        let Steps { all, doubles, chains, cuts: Some(cuts) } = &mut self.steps else { return };
        cuts.now = Some(span);
        let Truncation { collective, ranks, root, rank, .. } = *cuts;
        let to = match &uneven {
            None => To::Even(span),
            Some((blocks, window)) => {
                To::Uneven(Grid { collective, ranks, root, bytes: 0, blocks }, window.clone())
            }
        };
        let maker = Maker { pitch: cuts.pitch, to, rank, peers: &self.peers, grain: self.grain };
        for TruncatedStep { number, step, listed } in &cuts.steps {
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
        if uneven.is_some() {
            cuts.uneven = uneven;
        }
    }
}

/// Lengths that steps are made for.
enum To<'a> {
    Even(MessageSpan),
    /// These bytes of each block.
    Uneven(Grid<'a>, Range<usize>),
}

/// Maker of a plan's steps for another length.
struct Maker<'a> {
    pitch: usize,
    to: To<'a>,
    rank: usize,
    peers: &'a [Peer],
    grain: usize,
}

impl Maker<'_> {
    fn step(&self, step: Step) -> Step {
        match step {
            Step::Move { src, dst, len } => match self.left(&[src, dst], len) {
                0 => NOTHING,
                len => Step::Move { src: self.at(src), dst: self.at(dst), len },
            },
            Step::CopyRemote { src, dst, len } => match self.left(&[src, dst], len) {
                0 => NOTHING,
                len => Step::CopyRemote { src: self.at(src), dst: self.at(dst), len },
            },
            Step::Fold { a, b, dst, elements } => match self.elements(&[a, b, dst], elements) {
                0 => NOTHING,
                elements => Step::Fold { a: self.at(a), b: self.at(b), dst: self.at(dst), elements },
            },
            Step::ReduceRemote { a, b, dst, elements } => match self.elements(&[a, b, dst], elements) {
                0 => NOTHING,
                elements => Step::ReduceRemote { a: self.at(a), b: self.at(b), dst: self.at(dst), elements },
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
                let bytes = if bytes == 0 { 0 } else { self.reached(base, bytes - 1) };
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

    /// Bytes of a peer's buffer up to the last one that is reached, which is `last` in the whole plan.
    fn reached(&self, base: u32, last: usize) -> usize {
        match &self.to {
            To::Even(span) if last < self.pitch => (last % self.pitch + 1).min(span.bytes),
            To::Even(span) => last / self.pitch * span.of + span.bytes,
            To::Uneven(..) => {
                let ends = (0..=last / self.pitch).map(|block| {
                    let start = Addr { base, offset: block * self.pitch };
                    let (at, left) = self.place(start);
                    if left == 0 {
                        0
                    } else {
                        at + left
                    }
                });
                ends.max().unwrap_or(0)
            }
        }
    }

    /// Returns the new offset of an address in a caller's buffer, and the number of bytes that are left of its block there.
    fn place(&self, addr: Addr) -> (usize, usize) {
        let (block, within) = (addr.offset / self.pitch, addr.offset % self.pitch);
        match &self.to {
            To::Even(span) => (block * span.of + within, span.bytes.saturating_sub(within)),
            To::Uneven(grid, window) => {
                let space = match addr.base {
                    IN => Space::In,
                    OUT => Space::Out,
                    peer => self.peers[(peer - PEERS) as usize].space,
                };
                let place = grid.place(self.rank, space, block);
                let left = place.len().min(window.end).saturating_sub(window.start);
                (place.start + within, left.saturating_sub(within))
            }
        }
    }

    fn at(&self, addr: Addr) -> Addr {
        match of_users(addr) {
            true => Addr { offset: self.place(addr).0, ..addr },
            false => addr,
        }
    }

    /// Bytes of `len` that are left of what lies at these places.
    fn left(&self, places: &[Addr], len: usize) -> usize {
        let users = places.iter().filter(|&&addr| of_users(addr));
        users.map(|&addr| self.place(addr).1).fold(len, usize::min)
    }

    fn elements(&self, places: &[Addr], elements: usize) -> usize {
        self.left(places, elements * self.grain) / self.grain
    }
}
