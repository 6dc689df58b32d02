//! A choice in plain words.

use super::candidates::LARGE;
use super::variants::ops;
use super::{Choice, Question};
use crate::cost::{cost_with, Options, Term};
use crate::model::{Model, Provenance};
use crate::plan::Op;
use crate::units::{Bytes, Nanos};
use std::collections::BTreeMap;
use std::fmt::Write;

/// Parameters named before the rest is summed up.
const NAMED: usize = 6;

/// Returns a text of the choice, its predicted cost, the next best, the parameters that decided it, and the assumptions made
/// on the way.
pub fn explain(model: &Model, question: &Question, choice: &Choice) -> String {
    let mut out = String::new();
    // Writing to a String cannot fail.
    let _ = write_all(&mut out, model, question, choice);
    out
}

fn write_all(out: &mut String, model: &Model, question: &Question, choice: &Choice) -> std::fmt::Result {
    let ranks = question.shape.ranks();
    let bytes = Bytes(question.bytes as u64);
    let size = match (question.collective.moves_data(), question.collective.has_blocks()) {
        (false, _) => String::new(),
        (true, false) => format!(" of {bytes}"),
        (true, true) if question.uneven.is_some() => format!(" of blocks of up to {bytes}"),
        (true, true) => format!(" of blocks of {bytes}"),
    };
    writeln!(out, "{}{size} among {ranks} ranks: {}", question.collective, choice.named(question.bytes))?;
    if choice.window < question.bytes {
        let n = question.bytes.div_ceil(choice.window.max(1));
        writeln!(out, "in {n} windows of {}", Bytes(choice.window as u64))?;
    }
    writeln!(out, "predicted: {} a call", choice.predicted)?;
    match &choice.runner_up {
        Some(next) => {
            let slower = (next.predicted.0 / choice.predicted.0.max(1e-9) - 1.0) * 100.0;
            let what = next.named(question.bytes);
            writeln!(out, "next: {what}, predicted {}, {slower:.1} % slower", next.predicted)?;
        }
        None => writeln!(out, "next: nothing else applies")?,
    }

    super::homes::explain(out, model, question, choice)?;

    let attach = question.attach;
    let walk = super::walk(choice.plan(), model, &question.shape, question.box_bytes);
    // In a long plan the second run has come into its pace.
    let runs = if ops(choice.plan()) > LARGE { 2 } else { Options::default().runs };
    let options = Options { runs, message: question.bytes, walk, trace: true, attach, ..Options::default() };
    let cost = cost_with(model, &question.shape, choice.plan(), &options);
    let mut shares: BTreeMap<Term, (f64, usize)> = BTreeMap::new();
    for step in &cost.critical {
        let share = shares.entry(step.why).or_default();
        share.0 += step.nanos.0 / cost.critical_runs as f64;
        share.1 += 1;
    }
    let typical = typical_bytes(choice);
    let total: f64 = shares.values().map(|s| s.0).sum();
    let mut shares: Vec<(Term, (f64, usize))> = shares.into_iter().collect();
    shares.sort_by(|a, b| b.1 .0.total_cmp(&a.1 .0).then(a.0.cmp(&b.0)));
    if total > 0.0 {
        writeln!(out, "on the critical path of a run:")?;
        for (term, (nanos, times)) in shares.iter().take(NAMED) {
            let value = term.parameter(model, typical);
            let percent = nanos / total * 100.0;
            writeln!(
                out,
                "  {percent:3.0} %  {:>8}  {} x {term}, which is {value} ns{}",
                Nanos(*nanos).to_string(),
                Times(*times as f64 / cost.critical_runs as f64),
                if matches!(term, Term::Copy | Term::Transfer(_) | Term::Attach | Term::Fold) {
                    format!(" near {}", Bytes(typical as u64))
                } else {
                    String::new()
                }
            )?;
        }
        if shares.len() > NAMED {
            let rest: f64 = shares[NAMED..].iter().map(|s| s.1 .0).sum();
            writeln!(
                out,
                "  {:3.0} %  {:>8}  everything else",
                rest / total * 100.0,
                Nanos(rest).to_string()
            )?;
        }
    }
    let weak: Vec<String> = shares
        .iter()
        .map(|(term, _)| (term, term.parameter(model, typical).provenance))
        .filter(|(_, p)| *p > Provenance::Cited)
        .map(|(term, p)| format!("{term} ({p})"))
        .collect();
    if !weak.is_empty() {
        writeln!(out, "not measured: {}", weak.join(", "))?;
    }
    if !model.unidentified.is_empty() {
        writeln!(out, "what this profile cannot tell:")?;
        for u in &model.unidentified {
            writeln!(out, "  {}: {}", u.what, u.because)?;
        }
    }
    for reason in &choice.reasons {
        writeln!(out, "{reason}")?;
    }
    let given_up = choice.considered.iter().filter(|c| c.given_up).count();
    writeln!(out, "{} plans were costed, {given_up} of them only in part", choice.considered.len())
}

/// Number of times that something happens in a run: whole numbers without a fraction.
struct Times(f64);

impl std::fmt::Display for Times {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let digits = usize::from(self.0.fract() != 0.0);
        write!(f, "{:.digits$}", self.0)
    }
}

/// The size that most of the plan's bytes move in.
fn typical_bytes(choice: &Choice) -> usize {
    let mut by_size: BTreeMap<usize, usize> = BTreeMap::new();
    // Mostly of the size of the one before.
    let mut alike = (0, 0);
    for (_, op) in choice.plan().ops() {
        let size = match op {
            Op::Move { src, .. } => src.len,
            Op::Fold { dst, .. } => dst.len,
            Op::Set { .. } | Op::Wait { .. } | Op::Add { .. } => continue,
        };
        if size != alike.0 {
            *by_size.entry(alike.0).or_default() += alike.1;
            alike = (size, 0);
        }
        alike.1 += size;
    }
    *by_size.entry(alike.0).or_default() += alike.1;
    by_size.retain(|&size, _| size > 0);
    by_size.into_iter().max_by_key(|&(size, bytes)| (bytes, size)).map_or(choice.window, |b| b.0)
}
