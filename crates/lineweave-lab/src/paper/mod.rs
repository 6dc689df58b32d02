//! The published systems: their tables reproduced and their claims put to the test.
//!
//! Each paper is one file here and one folder under `papers/`: its tables as data, and a page of findings. A
//! paper's file computes what the paper prints with lineweave's own models, plans and optimisers, and says
//! item by item what agrees. Nothing here is typed in but what a paper prints.

pub mod chunduri;
mod figure;
mod given;
pub mod limit;
mod luczynski;
pub mod patil;
pub mod petrovic;
mod ramos_hoefler;
mod rico_gallego;

pub use figure::Figure;

use limit::Judged;
use lineweave_core::names::named;
use serde::Serialize;

/// The basis of an outcome: calibrated, by construction, or predicted.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Basis {
    /// A number that it hangs on was taken from what it is compared with: that it agrees says nothing of the model.
    Calibrated,
    /// It follows from equations, plans or printed tables alone; no machine could make it come out otherwise.
    ByConstruction,
    /// A model or a simulation was given other numbers, and this comes out.
    Predicted,
}

named!(Basis, Calibrated = "calibrated", ByConstruction = "by construction", Predicted = "predicted");

/// A published table, formula or figure, and how many of its entries come out as printed. Printed as `paper` by `lineweave lab papers`.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Item {
    /// Key of the paper, as its folder under `papers/` is called.
    pub paper: &'static str,
    /// Name within the paper: `table B.1`.
    pub item: String,
    /// Entries that agree within what printing rounded away, or within the tolerance that the remark states.
    pub agree: usize,
    /// Entries that can be read.
    pub of: usize,
    /// Method of comparison; what differs and why.
    pub remark: String,
    /// The basis of the outcome.
    pub basis: Basis,
}

/// Verdict on a claim.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub enum Verdict {
    /// The outcome is as claimed.
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
}

named!(Verdict, Holds = "holds", Differs = "differs", NotReproduced = "not reproduced");

/// A claim in words, and what comes out here. Printed as `claim` by `lineweave lab papers`.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Claim {
    /// Key of the paper.
    pub paper: &'static str,
    /// Place of the claim in the paper: `fig 8a`, `section 5.3`.
    pub item: String,
    /// Claim of the paper, in few words of ours, with its numbers.
    pub claimed: String,
    /// Outcome here, with its numbers.
    pub ours: String,
    /// Verdict on the claim.
    pub verdict: Verdict,
    /// The basis of the outcome.
    pub basis: Basis,
    /// Limit that the verdict hangs on, and the distance from it, where there is a limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub judged: Option<Judged>,
}

/// One line of a report.
#[derive(Clone, PartialEq, Debug)]
pub enum Finding {
    /// A table, formula or figure.
    Item(Item),
    /// A claim in words.
    Claim(Claim),
}

impl Finding {
    /// Returns the finding with its basis; without this it is a prediction.
    #[must_use]
    pub fn on(mut self, basis: Basis) -> Finding {
        match &mut self {
            Finding::Item(item) => item.basis = basis,
            Finding::Claim(claim) => claim.basis = basis,
        }
        self
    }
}

/// A prediction of a table, formula or figure; [`of`] says of which paper.
fn item(item: impl Into<String>, agree: usize, of: usize, remark: impl Into<String>) -> Finding {
    let (paper, basis) = ("", Basis::Predicted);
    Finding::Item(Item { paper, item: item.into(), agree, of, remark: remark.into(), basis })
}

/// A prediction beside a claim; [`of`] says of which paper.
fn claim(item: &str, claimed: &str, ours: impl Into<String>, outcome: impl Into<limit::Outcome>) -> Finding {
    let limit::Outcome { verdict, judged } = outcome.into();
    let (item, claimed, ours) = (item.to_owned(), claimed.to_owned(), ours.into());
    Finding::Claim(Claim { paper: "", item, claimed, ours, verdict, basis: Basis::Predicted, judged })
}

/// Returns the findings of a paper.
fn of(key: &'static str, findings: impl IntoIterator<Item = Finding>) -> Vec<Finding> {
    let mut findings: Vec<Finding> = findings.into_iter().collect();
    for finding in &mut findings {
        match finding {
            Finding::Item(item) => item.paper = key,
            Finding::Claim(claim) => claim.paper = key,
        }
    }
    findings
}

/// Returns all findings with the same basis.
fn all_on(basis: Basis, findings: impl IntoIterator<Item = Finding>) -> impl Iterator<Item = Finding> {
    findings.into_iter().map(move |finding| finding.on(basis))
}

/// A paper: one file, one line of the table.
pub struct Paper {
    /// Key, as its folder under `papers/` is called: `ramos-hoefler-2013`.
    pub key: &'static str,
    /// Citation of the paper: `Ramos & Hoefler 2013`.
    pub cite: &'static str,
    /// Subject of the paper, in one line.
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
