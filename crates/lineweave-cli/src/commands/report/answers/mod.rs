//! The questions that people ask first, each answered by a sentence and a figure.

mod advice;
mod costs;
mod gain;
mod health;

use super::choices::runs;
use super::subject::Subject;
use super::Figure;
use crate::calls::Call;
use crate::error::CliError;
use lineweave_core::collective::Collective;
use lineweave_core::topology::{Shape, Topology};
use lineweave_core::units::{Bytes, Nanos};

/// A question and its answer.
#[derive(Debug)]
pub struct Answer {
    /// Anchor of the answer in the page.
    pub id: &'static str,
    pub question: &'static str,
    /// The answer in one sentence.
    pub sentence: String,
    pub figure: Option<Figure>,
    /// Further facts about it.
    pub more: Vec<String>,
}

/// Most ranks that are considered here: choosing among more takes seconds.
const MOST: usize = 64;

/// Returns all answers.
///
/// # Errors
/// A [`CliError`] where a call cannot be chosen.
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

    /// Returns the measured time where it is known, else the predicted one.
    fn nanos(&self) -> f64 {
        self.call.measured_ns.unwrap_or(self.call.predicted.0)
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
