//! One case: which mistake is made in which call, and what ranks have to be told of it.

use lineweave::{CallSpec, Collective, ElementType, Operator};
use std::fmt;
use std::str::FromStr;
use std::sync::OnceLock;

/// A mistake. Those before `Leaves` are calls that differ between ranks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    Length,
    Root,
    Collective,
    Element,
    Operator,
    Order,
    /// A rank drops the communicator before the call.
    Leaves,
    /// An operator panics at whoever combines; where nothing is combined a rank panics before the call.
    Panics,
    /// A rank's program calls its wait off; the others come after that.
    Cancels,
    /// A rank's time limit is over before the others come.
    TimesOut,
    /// A rank comes after the time limit of all others.
    Late,
    /// A rank's process is stopped until the others have been told.
    Stops,
    /// A rank's process is killed.
    Dies,
}

impl Kind {
    /// What every row is put through.
    pub const EACH: [Kind; 9] = [
        Kind::Length,
        Kind::Root,
        Kind::Collective,
        Kind::Element,
        Kind::Operator,
        Kind::Order,
        Kind::Leaves,
        Kind::Panics,
        Kind::Cancels,
    ];
    /// What takes time, or a process: for one row of an algorithm.
    pub const SLOW: [Kind; 4] = [Kind::TimesOut, Kind::Late, Kind::Stops, Kind::Dies];

    /// Returns whether this mistake can be made in a call of this collective.
    pub fn applies(self, collective: Collective) -> bool {
        match self {
            Kind::Length => collective.moves_data(),
            Kind::Root => collective.rooted(),
            // Element types of calls that combine nothing are not compared.
            Kind::Element | Kind::Operator => collective.folds(),
            _ => true,
        }
    }

    fn differs(self) -> bool {
        (self as usize) < Kind::Leaves as usize
    }
}

/// A mistake of one rank of a team.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Case {
    pub kind: Kind,
    /// What all were to call, and how many bytes.
    pub collective: Collective,
    pub bytes: usize,
    /// What the rank calls instead, or out of turn.
    pub other: Collective,
    pub other_bytes: usize,
    /// The rank that makes the mistake.
    pub wrong: usize,
    pub root: usize,
    /// The mistake follows a right call at once; otherwise all ranks are done with that.
    pub back_to_back: bool,
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Case { kind, collective, bytes, other, other_bytes, wrong, root, back_to_back } = self;
        write!(f, "{kind:?} {collective} {bytes} {other} {other_bytes} {wrong} {root} {back_to_back}")
    }
}

impl FromStr for Case {
    type Err = String;

    fn from_str(text: &str) -> Result<Case, String> {
        let words: Vec<&str> = text.split(' ').collect();
        let kinds = Kind::EACH.into_iter().chain(Kind::SLOW);
        let collective = |i: usize| words[i].parse::<Collective>().map_err(|e| format!("{text}: {e}"));
        let number = |i: usize| words[i].parse::<usize>().map_err(|e| format!("{text}: {e}"));
        Ok(Case {
            kind: kinds.into_iter().find(|kind| format!("{kind:?}") == words[0]).ok_or(text)?,
            collective: collective(1)?,
            bytes: number(2)?,
            other: collective(3)?,
            other_bytes: number(4)?,
            wrong: number(5)?,
            root: number(6)?,
            back_to_back: words[7] == "true",
        })
    }
}

fn panics() -> Operator {
    static PANICS: OnceLock<Operator> = OnceLock::new();
    // As a panic does, without a word on the terminal.
    let panic = |_: &[u32], _: &mut [u32]| std::panic::resume_unwind(Box::new("on purpose"));
    *PANICS.get_or_init(|| Operator::new(true, panic))
}

impl Case {
    fn call(&self, collective: Collective, bytes: usize) -> CallSpec {
        CallSpec {
            collective,
            element: ElementType::U32,
            count: bytes / super::rows::ELEMENT,
            operator: collective.folds().then_some(Operator::Sum),
            root: if collective.rooted() { self.root } else { 0 },
        }
    }

    /// Returns whether some rank combines elements; among two ranks none does for an exscan.
    pub fn combines(&self, ranks: usize) -> bool {
        self.collective.folds() && (self.collective != Collective::Exscan || ranks > 2)
    }

    /// What all were to call.
    pub fn right(&self) -> CallSpec {
        self.call(self.collective, self.bytes)
    }

    /// What a rank calls, up to the barrier that ends it.
    pub fn calls(&self, rank: usize, ranks: usize) -> Vec<CallSpec> {
        let (right, other) = (self.right(), self.call(self.other, self.other_bytes));
        let is_wrong = rank == self.wrong;
        match self.kind {
            Kind::Order if is_wrong => return vec![other, right],
            Kind::Order => return vec![right, other],
            Kind::Panics if self.combines(ranks) => {
                return vec![CallSpec { operator: Some(panics()), ..right }]
            }
            _ if !is_wrong => return vec![right],
            _ => {}
        }
        vec![match self.kind {
            Kind::Length => CallSpec { count: self.other_bytes / super::rows::ELEMENT, ..right },
            Kind::Root => CallSpec { root: (right.root + 1) % ranks, ..right },
            Kind::Collective => other,
            Kind::Element => CallSpec { element: ElementType::I32, ..right },
            Kind::Operator => CallSpec { operator: Some(Operator::Max), ..right },
            _ => right,
        }]
    }

    /// Returns what is wrong with what the ranks say of it, if anything.
    pub fn unnoticed(&self, said: &[String]) -> Option<String> {
        let wrong = self.wrong;
        let others: Vec<&String> = (0..said.len()).filter(|&rank| rank != wrong).map(|r| &said[r]).collect();
        let all = |words: &[&str]| others.iter().all(|text| words.iter().any(|word| text.contains(word)));
        let named = format!("rank {wrong} ");
        let told = match self.kind {
            kind if kind.differs() => said.iter().any(|text| text.contains("differs between ranks")),
            Kind::Panics if self.combines(said.len()) => {
                said.iter().any(|text| text.contains("panicked: on purpose"))
            }
            Kind::Leaves => all(&[" left while"]) && all(&[&named]),
            Kind::Panics => all(&[" failed while"]) && all(&[&named]),
            Kind::Cancels => {
                all(&[" failed while"]) && all(&[&named]) && said[wrong].contains("off on purpose")
            }
            Kind::TimesOut => {
                all(&[" failed while"]) && all(&[&named]) && said[wrong].contains(" waited 0.0 s")
            }
            Kind::Late => all(&[" waited 0.0 s", " failed while"]) && said[wrong].contains(" failed while"),
            Kind::Stops => all(&[" is stopped while"]) && all(&[&named]),
            Kind::Dies => all(&[" died while"]) && all(&[&named]),
            kind => unreachable!("{kind:?} is a call that differs"),
        };
        let problem = match () {
            () if said.iter().any(|text| text.starts_with(super::part::ODD)) => "goes wrong",
            () if said.iter().any(|text| text == super::part::FINE) => "is not noticed by all",
            () if !told => "is told in other words",
            () => return None,
        };
        Some(format!("{problem}: {said:#?}"))
    }
}
