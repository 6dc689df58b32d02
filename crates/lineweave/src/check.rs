//! Finding mismatched calls before data moves (`LINEWEAVE_CHECK=1`, and builds with debug assertions).
//!
//! 1. Each rank stores what it calls in the check line of its control page for this call's parity, and then
//!    the call's number in the line's first word.
//! 2. Each rank waits for every other rank's number, and compares.
//!
//! A line is stored again two calls later. By then its owner has passed step 2 of the next call, so every
//! other rank has stored that call's line, and so has finished comparing this one.

use crate::called::Called;
use crate::communicator::{Engine, Mode, Stop};
use crate::error::Error;
use crate::kernel::{ElementType, Operator};
use crate::sync::Ordering;
use lineweave_core::collective::{Collective, Extent};
use lineweave_core::units::fnv1a;

/// What a rank calls; every field must be equal on all ranks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CallSpec {
    /// The collective.
    pub collective: Collective,
    /// Element type.
    pub element: ElementType,
    /// Number of elements of the message; of one block, where ranks exchange blocks.
    pub count: usize,
    /// Reduction operator, where elements are folded.
    pub operator: Option<Operator>,
    /// The root of a rooted collective, 0 otherwise.
    pub root: usize,
}

impl CallSpec {
    /// A barrier.
    pub(crate) const BARRIER: CallSpec = CallSpec {
        collective: Collective::Barrier,
        element: ElementType::U8,
        count: 0,
        operator: None,
        root: 0,
    };

    /// Bytes of the message, or of one block.
    pub fn bytes(&self) -> usize {
        self.count * self.element.size()
    }

    /// Bytes of the input of `rank`, one of `ranks`.
    pub fn input_bytes(&self, rank: usize, ranks: usize) -> usize {
        self.collective.input(rank, self.root).bytes(ranks, self.bytes())
    }

    /// Bytes of the output of `rank`, one of `ranks`.
    pub fn output_bytes(&self, rank: usize, ranks: usize) -> usize {
        self.collective.output(rank, self.root).bytes(ranks, self.bytes())
    }

    /// By which ranks know it when they wait for each other.
    pub(crate) fn called(&self, reproducible: bool) -> Called {
        let folds = self.operator.map(|operator| (operator, self.element));
        Called::new(self.collective, self.bytes(), self.root, folds, reproducible)
    }

    /// Where the input of `rank` lies when the call is in place: in the output, or for a scatter's root around it.
    pub(crate) fn input_in_place(&self, rank: usize, ranks: usize, output: *mut u8) -> *const u8 {
        let own = rank * self.bytes();
        let [input, out] = [self.collective.input(rank, self.root), self.collective.output(rank, self.root)];
        debug_assert!(rank < ranks);
        match (input, out) {
            (Extent::Message, Extent::Blocks) => output.wrapping_add(own),
            (Extent::Blocks, Extent::Message) if !self.collective.folds() => output.wrapping_sub(own),
            (Extent::Nothing, _) => std::ptr::null(),
            (Extent::Message | Extent::Blocks, _) => output,
        }
    }

    /// What is compared; `lengths` stands for those of uneven blocks, and is 0 where there are none.
    fn words(&self, lengths: u64) -> [u64; WORDS] {
        let element = match self.element {
            ElementType::Block(bytes) => BLOCKS + u64::from(bytes.get()),
            known => ElementType::ALL.iter().position(|&x| x == known).unwrap_or(0) as u64,
        };
        let operator = match self.operator {
            None => 0,
            // Numbers of user-defined operators differ between processes.
            Some(Operator::User(user)) => USERS + u64::from(user.commutes()),
            Some(known) => Operator::ALL.iter().position(|&x| x == known).unwrap_or(0) as u64 + 1,
        };
        let collective = Collective::ALL.iter().position(|&x| x == self.collective);
        [collective.unwrap_or(0) as u64, element, self.count as u64, operator, self.root as u64, lengths]
    }

    fn describe(words: [u64; WORDS]) -> String {
        let name = |i: u64, names: &[&'static str]| names.get(i as usize).copied().unwrap_or("?");
        let collectives: Vec<_> = Collective::ALL.iter().map(|c| c.name()).collect();
        let elements: Vec<_> = ElementType::ALL.iter().map(|c| c.name()).collect();
        let operators: Vec<_> = Operator::ALL.iter().map(|c| c.name()).collect();
        let [collective, element, count, operator, root, lengths] = words;
        let element = match element.checked_sub(BLOCKS) {
            Some(bytes) => format!("blocks of {bytes} bytes"),
            None => name(element, &elements).to_owned(),
        };
        let mut text = format!("{}(", name(collective, &collectives));
        if lengths != 0 {
            // The lengths themselves do not fit a line: a fingerprint tells whether they are the same.
            text += &format!("blocks of {} elements together, lengths {lengths:016x}, of {}", count, element);
        } else if collective != 0 {
            text += &format!("{count} x {element}");
        }
        let (operator, reproducible) = (operator & !REPRODUCIBLE, operator & REPRODUCIBLE != 0);
        if operator >= USERS {
            text += ", a user-defined operator";
            text += if operator == USERS { " in rank order" } else { "" };
        } else if operator > 0 {
            text += &format!(", {}", name(operator - 1, &operators));
        }
        if reproducible {
            text += ", reproducible";
        }
        if Collective::ALL.get(collective as usize).is_some_and(|c| c.rooted()) {
            text += &format!(", root {root}");
        }
        text + ")"
    }
}

/// Where the words of blocks begin, to which their size is added.
const BLOCKS: u64 = 1 << 32;
/// Where the words of user-defined operators begin.
const USERS: u64 = 1 << 32;

/// Added to the operator's word where results have to be reproducible.
const REPRODUCIBLE: u64 = 1 << 40;

/// Words of a call on the check line, behind the call's number.
const WORDS: usize = 6;
/// Which of them is the operator's.
const OPERATOR: usize = 3;

/// A word that differs for different lengths, and is 0 for none.
fn fingerprint(lengths: &[usize]) -> u64 {
    if lengths.is_empty() {
        return 0;
    }
    fnv1a(lengths.iter().flat_map(|n| n.to_le_bytes())).max(1)
}

/// Compares this rank's call with every other rank's.
///
/// # Errors
/// [`Error::Mismatch`] naming both ranks and calls; also what a wait can end with.
pub(crate) fn compare(engine: &mut Engine, call: &CallSpec) -> Result<(), Error> {
    compare_blocks(engine, call, &[])
}

/// The same for a call with blocks of these lengths, which must be the same on all ranks as well.
///
/// # Errors
/// Those of [`compare`].
pub(crate) fn compare_blocks(engine: &mut Engine, call: &CallSpec, lengths: &[usize]) -> Result<(), Error> {
    let mut comparison = Comparison::announce(engine, call, lengths);
    comparison.go_on(engine, Mode::Block).map_err(Stop::into_error)
}

/// A comparison under way.
#[derive(Debug)]
pub(crate) struct Comparison {
    mine: [u64; WORDS],
    /// The rank to be compared with next.
    next: usize,
}

impl Comparison {
    /// Announces this rank's call (step 1).
    pub fn announce(engine: &Engine, call: &CallSpec, lengths: &[usize]) -> Comparison {
        let (rank, sequence) = (engine.rank(), engine.sequence());
        let mut mine = call.words(fingerprint(lengths));
        if engine.reproducible() && call.operator.is_some() {
            mine[OPERATOR] |= REPRODUCIBLE;
        }
        for (word, value) in engine.segment().check(rank, sequence)[1..].iter().zip(mine) {
            // Relaxed: published by the raise of the first word.
            word.store(value, Ordering::Relaxed);
        }
        engine.raise_word(|s| s.check(rank, sequence)[0], rank, sequence);
        Comparison { mine, next: 0 }
    }

    /// Compares with the other ranks (step 2): with all, or with those that have announced theirs.
    pub fn go_on(&mut self, engine: &mut Engine, mode: Mode) -> Result<(), Stop> {
        let (rank, sequence) = (engine.rank(), engine.sequence());
        while self.next < engine.ranks() {
            let other = self.next;
            if other != rank {
                let announced = |engine: &mut Engine, mode| {
                    engine.await_word(|s| s.check(other, sequence)[0], other, sequence, mode)
                };
                let waited = announced(engine, mode);
                // Since this rank looked last, the other one may have announced its call, compared it with this one's, and failed.
                if waited.is_ok() || announced(engine, Mode::Poll).is_ok() {
                    self.compare_with(engine, other)?;
                }
                waited?;
            }
            self.next += 1;
        }
        Ok(())
    }

    fn compare_with(&self, engine: &mut Engine, other: usize) -> Result<(), Error> {
        let (rank, sequence) = (engine.rank(), engine.sequence());
        let words = engine.segment().check(other, sequence);
        // Relaxed: ordered by the wait before.
        let theirs: [u64; WORDS] = std::array::from_fn(|i| words[i + 1].load(Ordering::Relaxed));
        if theirs == self.mine {
            return Ok(());
        }
        let (call, other_call) = (CallSpec::describe(self.mine), CallSpec::describe(theirs));
        let error = Error::Mismatch { sequence, rank, call, other, other_call };
        engine.poison(&error);
        Err(error)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn calls_are_described_as_they_were_made() {
        let call = CallSpec {
            collective: Collective::Reduce,
            element: ElementType::F32,
            count: 17,
            operator: Some(Operator::Max),
            root: 3,
        };
        assert_eq!(CallSpec::describe(call.words(0)), "reduce(17 x f32, max, root 3)");
        let gather = CallSpec { collective: Collective::Gather, operator: None, ..call };
        let text = CallSpec::describe(gather.words(fingerprint(&[8, 9])));
        assert!(text.starts_with("gather(blocks of 17 elements together, lengths "), "{text}");
        assert_ne!(fingerprint(&[8, 9]), fingerprint(&[9, 8]));
    }
}
