//! Closed forms beside the played plan: what every model says of every algorithm that has a plan.
//!
//! Published models know messages, or transfers; [`cost`](lineweave_core::cost) plays the very ops that would run. Where they
//! agree and where they part is held by the tests here.

use crate::models::tau_lop::Way;
use crate::models::{Call, Estimates, Form, NoForm, NotKnown, Published, Schedule, TauLop};
use lineweave_core::algorithm::{self, Algorithm};
use lineweave_core::model::{Model, Reading};
use lineweave_core::plan::{Params, Plan};
use lineweave_core::select::{predict, Candidate, Question};
use lineweave_core::topology::{Level, Shape};

/// The name of the cost by playing one call alone, as closed forms have it.
pub const ALONE: &str = "played, alone";
/// The name of the cost by playing calls back to back, as they are measured.
pub const PLAYED: &str = "played";
/// tau-Lop with messages sent whole (Rico-Gallego & Diaz-Martin Eq. 11 in place of Eq. 10).
pub const WHOLE: &str = "tau-Lop, whole messages";

/// Windows smaller than this are not tried.
const SMALLEST: usize = 1024;

/// The farthest two ranks of a shape.
pub fn farthest(shape: &Shape) -> Level {
    let near = Level::ALL.into_iter().find(|&level| shape.groups(level).len() <= 1);
    near.unwrap_or(Level::Machine)
}

/// Reason why a cell has no number.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Absent {
    /// The model lacks a value.
    #[error(transparent)]
    NotKnown(#[from] NotKnown),
    /// The model or algorithm has no such form.
    #[error(transparent)]
    NoForm(#[from] NoForm),
    /// The plan cannot be made or does not fit a box.
    #[error("no plan: {0}")]
    NoPlan(String),
    /// The message goes in windows, of which a call has several one after the other.
    #[error("a message in several windows has no latency of its own: its calls back to back are played")]
    InWindows,
    /// It would need a size or concurrency beyond what was measured.
    #[error("{model} would need more bytes or concurrent transfers than were measured")]
    Beyond {
        /// The model.
        model: &'static str,
    },
}

/// Prediction of one model for one call.
#[derive(Clone, PartialEq, Debug)]
pub struct Prediction {
    /// The model.
    pub model: &'static str,
    /// The time of a call, or why there is none.
    pub time: Result<Reading, Absent>,
}

/// One algorithm by all models.
#[derive(Debug)]
pub struct Row {
    /// The algorithm.
    pub algorithm: &'static Algorithm,
    /// Parameters of the algorithm: those that its closed form is of, which are the defaults.
    pub params: Params,
    /// The closed form.
    pub form: Form,
    /// The plan played, where it can be made; its window is the largest that fits a box.
    pub played: Result<Candidate, Absent>,
    /// Predictions by model, oldest first, then [`WHOLE`], then [`ALONE`] and [`PLAYED`]. All but the last are latencies of one call.
    pub predictions: Vec<Prediction>,
}

/// The algorithms of the question's collective, by all models. Those without a printed form have that of their plan, and are
/// left out where they have none for this question. Times that need more than was measured are there only with
/// `extrapolate`, and marked.
pub fn rows(estimates: &Estimates, model: &Model, question: &Question, extrapolate: bool) -> Vec<Row> {
    let all = algorithm::table(question.collective).iter().map(|&algorithm| {
        let form = Form::of(question.collective, algorithm.name);
        row(estimates, model, question, extrapolate, algorithm, form)
    });
    all.filter(|row| row.played.is_ok() || row.predictions.iter().any(|p| p.time.is_ok())).collect()
}

fn row(
    estimates: &Estimates,
    model: &Model,
    question: &Question,
    extrapolate: bool,
    algorithm: &'static Algorithm,
    form: Form,
) -> Row {
    let ranks = question.shape.ranks();
    let params = Params::new();
    let window = window(model, question, algorithm, &params);
    let schedule = window.as_ref().ok().filter(|_| form.is_of_plan()).map(|(window, plan)| {
        let windows = question.bytes.div_ceil((*window).max(1)).max(1);
        Schedule::of(plan).repeated(windows as u64)
    });
    let call = Call {
        form,
        ranks,
        schedule: schedule.as_ref(),
        bytes: question.bytes as u64 * if question.collective.has_blocks() { ranks as u64 } else { 1 },
        gamma: estimates.gamma.as_ref(),
        channel: Some(&question.shape),
    };
    let within = |model, reading: Reading| match reading.extrapolated && !extrapolate {
        true => Err(Absent::Beyond { model }),
        false => Ok(reading),
    };
    let time = |name, model: &dyn Published| within(name, model.collective(&call)?);
    let mut predictions: Vec<Prediction> = estimates
        .all()
        .into_iter()
        .map(|(name, model)| Prediction {
            model: name,
            time: model.map_err(Absent::from).and_then(|m| time(name, m)),
        })
        .collect();
    let whole = estimates.tau_lop.as_ref().map_err(Clone::clone).map_err(Absent::from);
    let whole = whole.and_then(|m| {
        let way = Way { segment: 0, ..m.way };
        time(WHOLE, &TauLop { way, ..m.clone() })
    });
    predictions.push(Prediction { model: WHOLE, time: whole });
    let played = window.and_then(|(window, _)| played(model, question, algorithm, &params, window));
    for (name, of) in
        [(ALONE, alone as fn(&Candidate, usize) -> Option<f64>), (PLAYED, |c, _| Some(c.predicted.0))]
    {
        let time = played.clone().and_then(|c| {
            let nanos = of(&c, question.bytes).ok_or(Absent::InWindows)?;
            within(name, Reading { nanos, extrapolated: c.extrapolated })
        });
        predictions.push(Prediction { model: name, time });
    }
    Row { algorithm, params, form, played, predictions }
}

/// The time of a call alone, where it is one window.
fn alone(played: &Candidate, bytes: usize) -> Option<f64> {
    (played.window >= bytes).then_some(played.latency.0)
}

/// Returns the largest window that fits a box, and its plan.
///
/// # Errors
/// [`Absent::NoPlan`].
pub fn window(
    model: &Model,
    question: &Question,
    algorithm: &'static Algorithm,
    params: &Params,
) -> Result<(usize, Plan), Absent> {
    let mut window = question.bytes;
    loop {
        let plan = algorithm.plan(&question.window(window), params).map_err(|e| no_plan(&e))?;
        if question.fits(&plan, model.line_bytes) {
            return Ok((window, plan));
        }
        let half = window / 2;
        window = half - half % question.grain.max(64);
        if window < SMALLEST {
            return Err(no_plan(&"its smallest window does not fit a box"));
        }
    }
}

fn no_plan(why: &dyn std::fmt::Display) -> Absent {
    Absent::NoPlan(why.to_string())
}

/// The plan of such windows, played.
fn played(
    model: &Model,
    question: &Question,
    algorithm: &'static Algorithm,
    params: &Params,
    window: usize,
) -> Result<Candidate, Absent> {
    let found = predict(model, question, algorithm.name, params, window).map_err(|e| no_plan(&e))?;
    match found.predicted.0.is_finite() {
        true => Ok(found),
        false => Err(no_plan(&"its plan cannot be played")),
    }
}

#[cfg(test)]
mod tests;
