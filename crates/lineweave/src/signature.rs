//! Signature of a rank's call, in two words. By it, ranks that call different things find out, and say what they called.
//!
//! 1. A rank that begins a call writes its words to the place for the call's number on its control page ([`SLOTS`] in turn). Nobody
//!    else touches the line, so that costs two stores.
//! 2. Values of a plan's flags carry a [`CallKey`] of the plan and of all that the rank has called, so no wait ends by the flag of another
//!    call, or after one that differed; and no payload, slot or address of one is taken
//!    ([`Goal::of_call`](crate::flag::Goal::of_call)). Counters are added the whole key to, and a wait ends by the sum that adds with
//!    its own key come to ([`Goal::exactly`](crate::flag::Goal::exactly)).
//! 3. So who calls something else than its peers waits. A rank whose wait lasts some milliseconds compares its last calls with those
//!    of every other rank, and names the first that differs.
//!
//! Compared is what decides which bytes go where: collective, bytes, root; for reductions the type and the operator too.
//! `LINEWEAVE_CHECK=1` compares the element types of all calls as well, and before data moves (`engine/compare.rs`).

use crate::kernel::{ElementType, Operator};
use lineweave_core::collective::Collective;

/// Calls that a rank keeps the words of.
pub const SLOTS: u64 = 64;

/// One call.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct CallSignature {
    /// Collective, root, element and operator; the highest bits are the call's number's in a slot.
    what: u64,
    /// Bytes of the message or of a block; a hash of the lengths where blocks differ.
    bytes: u64,
}

/// Bits of `what`.
const ROOT: u32 = 8;
const ELEMENT: u32 = 24;
const OPERATOR: u32 = 32;
const REPRODUCIBLE: u64 = 1 << 40;
const UNEVEN: u64 = 1 << 41;
const PLAN: u64 = 1 << 42;
const NUMBER: u32 = 48;

/// Codes of what has none of its own.
const BLOCKS: usize = 0xff;
const USERS: usize = 0xf0;

impl CallSignature {
    /// A call of `bytes` bytes.
    pub fn new(
        collective: Collective,
        bytes: usize,
        root: usize,
        folds: Option<(Operator, ElementType)>,
        reproducible: bool,
    ) -> CallSignature {
        let mut what = collective as u64 | (root as u64) << ROOT;
        if let Some((operator, element)) = folds {
            let element = ElementType::ALL.iter().position(|&e| e == element).unwrap_or(BLOCKS);
            let operator = match operator {
                // Numbers of user-defined operators differ between ranks.
                Operator::User(user) => USERS + usize::from(user.commutes()),
                known => 1 + Operator::ALL.iter().position(|&o| o == known).unwrap_or(0),
            };
            what |= (element as u64) << ELEMENT | (operator as u64) << OPERATOR;
            what |= if reproducible { REPRODUCIBLE } else { 0 };
        }
        CallSignature { what, bytes: bytes as u64 }
    }

    /// Returns this signature with blocks of these lengths in bytes, if there are any.
    pub fn of_blocks(self, lengths: &[usize]) -> CallSignature {
        if lengths.is_empty() {
            return self;
        }
        let mixed = lengths.iter().fold(lengths.len() as u64, |sum, &n| mix(sum ^ n as u64));
        CallSignature { what: self.what | UNEVEN, bytes: mixed }
    }

    /// A plan that a program runs by itself.
    pub fn plan(digest: u64) -> CallSignature {
        CallSignature { what: PLAN, bytes: digest }
    }

    /// Returns the hash of all that a rank has called up to this call, its `number`th; `earlier` is the hash before it. A call that is
    /// repeated adds nothing, as flags count runs; the next one that differs has the number of them in its own.
    #[inline(always)]
    pub fn after(&self, earlier: u64, number: u64) -> u64 {
        mix(self.what ^ mix(self.bytes ^ mix(earlier ^ number)))
    }

    /// The words for a slot, the second of which is to be written first.
    #[inline(always)]
    pub fn words(&self, number: u64) -> [u64; 2] {
        [self.what | lap(number), self.bytes]
    }

    /// The call of this number, if these are its words.
    pub fn of_words([what, bytes]: [u64; 2], number: u64) -> Option<CallSignature> {
        let signature = CallSignature { what: what & !(u64::MAX << NUMBER), bytes };
        (what & (u64::MAX << NUMBER) == lap(number)).then_some(signature)
    }
}

/// The highest bits of a call's first word. From 1 on: a slot that nobody has written yet is no call's, though its rank may have said already
/// that it came to the call.
#[inline(always)]
fn lap(number: u64) -> u64 {
    (number / SLOTS + 1) << NUMBER
}

impl std::fmt::Display for CallSignature {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let field = |shift: u32, bits: u32| (self.what >> shift & ((1 << bits) - 1)) as usize;
        if self.what & PLAN != 0 {
            return write!(f, "a plan of its own ({:016x})", self.bytes);
        }
        let Some(collective) = Collective::ALL.iter().find(|&&c| c as usize == field(0, ROOT)) else {
            return f.write_str("something else");
        };
        write!(f, "{collective}(")?;
        let mut comma = "";
        let element = ElementType::ALL.get(field(ELEMENT, 8)).filter(|_| collective.folds());
        if collective.moves_data() {
            match element {
                _ if self.what & UNEVEN != 0 => write!(f, "blocks of lengths {:016x}", self.bytes)?,
                Some(element) => write!(f, "{} x {}", self.bytes / element.size() as u64, element.name())?,
                None => write!(f, "{} bytes", self.bytes)?,
            }
            comma = ", ";
        }
        if collective.folds() {
            match field(OPERATOR, 8) {
                0 => {}
                USERS.. => write!(f, ", a user-defined operator")?,
                known => write!(f, ", {}", Operator::ALL.get(known - 1).map_or("?", |o| o.name()))?,
            }
            if self.what & REPRODUCIBLE != 0 {
                f.write_str(", reproducible")?;
            }
        }
        if collective.rooted() {
            write!(f, "{comma}root {}", field(ROOT, 16))?;
        }
        f.write_str(")")
    }
}

/// Spreads every bit over the highest ones.
#[inline(always)]
pub fn mix(word: u64) -> u64 {
    let mixed = (word ^ word >> 32).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    mixed ^ mixed >> 29
}

/// The mark of a run's flags and addresses.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct CallKey(u64);

/// Bits of a flag that count runs; the key's lie above. At ten million runs a second they last for half a year.
pub const COUNT_BITS: u32 = 48;
/// Bits of an address that processes use, and the number of those above that can hold a mark: the highest says something else.
const ADDRESS_BITS: u32 = 48;
const MARK_BITS: u32 = 15;

impl CallKey {
    /// Makes the key of a plan run by a rank with this history of calls ([`CallSignature::after`]).
    #[inline(always)]
    pub fn new(history: u64, plan: u64) -> CallKey {
        CallKey(mix(history ^ plan))
    }

    /// Added to a flag's value.
    #[inline(always)]
    pub fn of_flags(self) -> u64 {
        self.0 << COUNT_BITS
    }

    /// Added to a counter by each rank that adds: odd, so that fewer adds than are awaited never come to the same.
    #[inline(always)]
    pub fn of_counters(self) -> u64 {
        self.0 | 1
    }

    /// Exclusive-ored to an address, by who carries it and by who takes it. It consists of other bits than the flags' key.
    #[inline(always)]
    pub fn of_addresses(self) -> u64 {
        (self.0 >> 16 & ((1 << MARK_BITS) - 1)) << ADDRESS_BITS
    }
}

/// Returns whether an address has no mark left.
#[inline(always)]
pub fn is_plain(address: u64) -> bool {
    address >> ADDRESS_BITS & ((1 << MARK_BITS) - 1) == 0
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn calls_say_what_they_are() {
        let sum = Some((Operator::Sum, ElementType::F64));
        let reduce = CallSignature::new(Collective::Reduce, 80, 3, sum, true);
        assert_eq!(reduce.to_string(), "reduce(10 x f64, sum, reproducible, root 3)");
        assert_eq!(CallSignature::new(Collective::Barrier, 0, 0, None, false).to_string(), "barrier()");
        let gather = CallSignature::new(Collective::Gather, 0, 2, None, false).of_blocks(&[8, 9]);
        assert!(gather.to_string().starts_with("gather(blocks of lengths "), "{gather}");
        assert_ne!(gather, CallSignature::new(Collective::Gather, 0, 2, None, false).of_blocks(&[9, 8]));
        for number in [0, 5, 63, 64, 1 << 30] {
            assert_eq!(CallSignature::of_words(reduce.words(number), number), Some(reduce));
            assert_eq!(CallSignature::of_words(reduce.words(number), number + SLOTS), None);
            assert_eq!(CallSignature::of_words([0, 0], number), None);
        }
    }

    #[test]
    fn a_call_is_not_the_same_after_fewer_repetitions() {
        let [reduce, barrier] =
            [Collective::Reduce, Collective::Barrier].map(|c| CallSignature::new(c, 8, 0, None, false));
        assert_ne!(barrier.after(reduce.after(0, 1), 2), barrier.after(reduce.after(0, 1), 3));
    }

    #[test]
    fn calls_that_differ_a_little_have_other_marks() {
        let mut keys = std::collections::BTreeSet::new();
        let mut calls = 0;
        for collective in Collective::ALL {
            for bytes in [1, 8, 16, 64, 4096, 1 << 20, 4 << 20, 1_000_000, 4_000_000] {
                for root in 0..8 {
                    let signature = CallSignature::new(collective, bytes, root, None, false);
                    keys.insert(CallKey::new(signature.after(7, 1), 1).of_flags());
                    calls += 1;
                }
            }
        }
        // By chance some 8 pairs of 65536 are the same.
        assert!(calls - keys.len() < 25, "{} marks of {calls} calls", keys.len());
    }
}
