//! The questions that people ask first, each answered by a sentence and a figure.

mod advice;
mod costs;
mod gain;
mod health;

use super::choices::runs;
use super::record::Measured;
use super::subject::Subject;
use super::Figure;
use crate::calls::Call;
use crate::error::CliError;
use lineweave_core::collective::Collective;
use lineweave_core::topology::{Shape, Topology};
use lineweave_core::units::{Bytes, Nanos};
use lineweave_lab::draw::{self, Row};

/// A question and its answer.
#[derive(Debug)]
pub struct Answer {
    /// Anchor of the answer in the page.
    pub id: &'static str,
    pub question: &'static str,
    /// The answer in one sentence.
    pub sentence: String,
    pub figure: Figure,
    /// Further facts about it.
    pub more: Vec<String>,
}

impl Answer {
    /// Returns an answer whose figure has these rows, and says them in words.
    fn of(
        id: &'static str,
        question: &'static str,
        sentence: String,
        title: &str,
        rows: &[Row],
        more: Vec<String>,
    ) -> Answer {
        let says = rows.iter().map(|r| format!("{}: {}", r.label, r.note)).collect::<Vec<_>>().join("; ");
        let figure = Figure::new(draw::rows(title, rows, time), format!("{says}."));
        Answer { id, question, sentence, figure, more }
    }
}

/// The kind of team that the answers are about.
const TEAM: &str = "processes";
/// Most ranks that are considered here: choosing among more takes seconds.
const MOST: usize = 64;

/// Returns all answers.
pub fn answers(subject: &Subject) -> Result<Vec<Answer>, CliError> {
    let costs = costs::calls(subject)?;
    Ok(vec![
        health::answer(subject),
        costs::answer(subject, &costs),
        gain::answer(subject, &costs),
        advice::answer(subject)?,
    ])
}

/// A call among processes, in words, and the algorithm that it runs.
#[derive(Debug)]
struct Asked {
    collective: Collective,
    ranks: usize,
    bytes: usize,
    call: Call,
}

impl Asked {
    fn of(
        subject: &Subject,
        topology: &Topology,
        collective: Collective,
        ranks: usize,
        bytes: usize,
    ) -> Result<Option<Asked>, CliError> {
        let found = runs(subject, collective, Shape::place(ranks, topology), bytes, false)?;
        Ok(found.ok().map(|(call, _)| Asked { collective, ranks, bytes, call }))
    }

    fn words(&self) -> String {
        match self.collective.moves_data() {
            true => format!("{} {}", self.collective, Bytes(self.bytes as u64)),
            false => self.collective.to_string(),
        }
    }

    fn label(&self) -> String {
        format!("{}, {} ranks", self.words(), self.ranks)
    }

    /// Returns what the latest bench measured of the call.
    fn benched<'a>(&self, subject: &'a Subject) -> Option<&'a Measured> {
        let rows = subject.record.iter().flat_map(|record| &record.rows);
        let same =
            rows.filter(|r| (r.collective, r.ranks, r.bytes) == (self.collective, self.ranks, self.bytes));
        same.filter(|r| r.team == TEAM).min_by(|a, b| a.median_ns.total_cmp(&b.median_ns))
    }

    /// Returns the measured time of the call with the ends of its interval: by the latest bench, else by the tuning.
    fn measured(&self, subject: &Subject) -> Option<(f64, f64, f64)> {
        let ends = |r: &Measured| (r.ci_low_ns.unwrap_or(r.median_ns), r.ci_high_ns.unwrap_or(r.median_ns));
        let benched = self.benched(subject).map(|r| (r.median_ns, ends(r).0, ends(r).1));
        benched.or(self.call.measured_ns.map(|ns| (ns, ns, ns)))
    }

    /// Returns the measured time where it is known, else the predicted one.
    fn nanos(&self, subject: &Subject) -> f64 {
        self.measured(subject).map_or(self.call.predicted.0, |(ns, ..)| ns)
    }
}

/// Returns a time as text for axes and rows.
fn time(ns: f64) -> String {
    Nanos(ns).to_string()
}

/// Returns a factor as text, with as many digits as it deserves.
fn times(x: f64) -> String {
    if x < 9.95 {
        format!("{x:.1}")
    } else {
        format!("{x:.0}")
    }
}
