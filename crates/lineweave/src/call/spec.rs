//! Description of the call that a rank makes, its words for comparison with other ranks, and its text for error messages.

use crate::kernel::{ElementType, Operator};
use crate::signature::CallSignature;
use lineweave_core::collective::Collective;
use lineweave_core::units::fnv1a;

/// Description of one collective call. Every field must be equal on all ranks.
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
    ///
    /// ```
    /// use lineweave::{CallSpec, Collective, ElementType};
    /// let call =
    ///     CallSpec { collective: Collective::Gather, element: ElementType::F32, count: 10, operator: None, root: 1 };
    /// assert_eq!([0, 1].map(|rank| call.input_bytes(rank, 2)), [40, 40]);
    /// assert_eq!([0, 1].map(|rank| call.output_bytes(rank, 2)), [0, 80]);
    /// ```
    pub fn input_bytes(&self, rank: usize, ranks: usize) -> usize {
        self.collective.input(rank, self.root).bytes(ranks, self.bytes())
    }

    /// Bytes of the output of `rank`, one of `ranks`.
    pub fn output_bytes(&self, rank: usize, ranks: usize) -> usize {
        self.collective.output(rank, self.root).bytes(ranks, self.bytes())
    }

    /// Returns the root that decides which bytes go where: 0 for a collective without one, whatever the caller gave.
    pub(crate) fn effective_root(&self) -> usize {
        if self.collective.rooted() {
            self.root
        } else {
            0
        }
    }

    /// Returns the signature by which ranks compare calls when they wait for each other.
    pub(crate) fn signature(&self, reproducible: bool) -> CallSignature {
        let folds = self.operator.map(|operator| (operator, self.element));
        CallSignature::new(self.collective, self.bytes(), self.effective_root(), folds, reproducible)
    }

    /// Returns the words by which ranks compare calls. `lengths` stands for the lengths of uneven blocks, and is 0 where there are none.
    pub(crate) fn words(&self, lengths: u64) -> [u64; WORDS] {
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
        let (collective, root) = (collective.unwrap_or(0) as u64, self.effective_root() as u64);
        [collective, element, self.count as u64, operator, root, lengths]
    }

    pub(crate) fn describe(words: [u64; WORDS]) -> String {
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

/// Start of the element words of block types, to which the size of a block in bytes is added.
const BLOCKS: u64 = 1 << 32;
/// Start of the operator words of user-defined operators.
const USERS: u64 = 1 << 32;

/// Added to the operator's word where results have to be reproducible.
pub(crate) const REPRODUCIBLE: u64 = 1 << 40;

/// Words of a call on the check line, behind the call's number.
pub(crate) const WORDS: usize = 6;
/// Index of the operator's word among the words of a call.
pub(crate) const OPERATOR: usize = 3;

/// A word that differs for different lengths, and is 0 for none.
pub(crate) fn fingerprint(lengths: &[usize]) -> u64 {
    if lengths.is_empty() {
        return 0;
    }
    fnv1a(lengths.iter().flat_map(|n| n.to_le_bytes())).max(1)
}
