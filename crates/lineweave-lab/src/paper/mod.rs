//! The published systems: their tables reproduced and their claims put to the test.
//!
//! Each paper is one file here and one folder under `papers/`: its tables as data, and a page of findings. A
//! paper's file computes what the paper prints with lineweave's own models, plans and optimisers, and says
//! item by item what agrees. Nothing here is typed in but what a paper prints.

pub mod chunduri;
mod figure;
pub mod limit;
mod luczynski;
pub mod patil;
pub mod petrovic;
mod ramos_hoefler;
mod rico_gallego;

pub use figure::Figure;

use limit::Judged;
use serde::Serialize;

/// A published table, formula or figure, and how many of its entries come out as printed.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Item {
    /// Key of the paper, as its folder under `papers/` is called.
    pub paper: &'static str,
    /// Which: `table B.1`.
    pub item: String,
    /// Entries that agree within what printing rounded away, or within the tolerance that the remark states.
    pub agree: usize,
    /// Entries that can be read.
    pub of: usize,
    /// How they were compared; what differs and why.
    pub remark: String,
}

/// What became of a claim.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub enum Verdict {
    /// As claimed.
    #[serde(rename = "holds")]
    Holds,
    /// Something else comes out.
    #[serde(rename = "differs")]
    Differs,
    /// It needs what is not there: a machine, or data that the paper does not print.
    #[serde(rename = "not reproduced")]
    NotReproduced,
}

impl Verdict {
    /// [`Verdict::Holds`] or [`Verdict::Differs`].
    pub fn of(holds: bool) -> Verdict {
        match holds {
            true => Verdict::Holds,
            false => Verdict::Differs,
        }
    }

    /// The name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Verdict::Holds => "holds",
            Verdict::Differs => "differs",
            Verdict::NotReproduced => "not reproduced",
        }
    }
}

/// A claim in words, and what comes out here.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Claim {
    /// Key of the paper.
    pub paper: &'static str,
    /// Where it is claimed: `fig 8a`, `section 5.3`.
    pub item: String,
    /// What the paper says, in few words of ours, with its numbers.
    pub claimed: String,
    /// What comes out here, with its numbers.
    pub ours: String,
    /// What became of it.
    pub verdict: Verdict,
    /// What the verdict hangs on, where that is a limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub judged: Option<Judged>,
}

impl Claim {
    fn new(
        paper: &'static str,
        item: &str,
        claimed: &str,
        ours: String,
        outcome: impl Into<limit::Outcome>,
    ) -> Claim {
        let limit::Outcome { verdict, judged } = outcome.into();
        Claim { paper, item: item.to_owned(), claimed: claimed.to_owned(), ours, verdict, judged }
    }
}

/// One line of a report.
#[derive(Clone, PartialEq, Debug)]
pub enum Finding {
    /// A table, formula or figure.
    Item(Item),
    /// A claim in words.
    Claim(Claim),
}

/// A paper: one file, one line of the table.
pub struct Paper {
    /// Key, as its folder under `papers/` is called: `ramos-hoefler-2013`.
    pub key: &'static str,
    /// How it is cited: `Ramos & Hoefler 2013`.
    pub cite: &'static str,
    /// What it is about, in one line.
    pub about: &'static str,
    /// Computes its findings anew. Pure; at most some seconds.
    pub findings: fn() -> Vec<Finding>,
    /// Draws its figures and tables anew, those that can be simulated. Pure; at most some seconds.
    pub figures: fn() -> Vec<Figure>,
}

/// The papers, in the order of the report.
pub const TABLE: &[&Paper] = &[
    &ramos_hoefler::PAPER,
    &petrovic::PAPER,
    &chunduri::PAPER,
    &rico_gallego::PAPER,
    &patil::PAPER,
    &luczynski::PAPER,
];
