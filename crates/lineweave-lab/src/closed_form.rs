//! Closed forms beside the played plan: what every model says of every algorithm that has a closed form.
//!
//! Published models know messages, or transfers; [`cost`](lineweave_core::cost) plays the very ops that would run. Where they
//! agree and where they part is held by the tests here.

use crate::models::tau_lop::Way;
use crate::models::{Call, Distance, Estimates, Form, NoForm, NotKnown, Published, TauLop};
use lineweave_core::algorithm::{self, Algorithm};
use lineweave_core::model::{Model, Reading};
use lineweave_core::plan::Params;
use lineweave_core::select::{predict, Candidate, Question};
use lineweave_core::topology::{Level, Shape};
use lineweave_core::units::Rank;

/// The name of the cost by playing.
pub const PLAYED: &str = "played";
/// tau-Lop with messages sent whole (Rico-Gallego & Diaz-Martin Eq. 11 in place of Eq. 10).
pub const WHOLE: &str = "tau-Lop, whole messages";

/// Windows smaller than this are not tried.
const SMALLEST: usize = 1024;

/// How far apart ranks that are `hop` ranks apart are: the farthest such pair.
#[derive(Debug)]
struct Hops<'a>(&'a Shape);

impl Distance for Hops<'_> {
    fn of(&self, hop: usize) -> Level {
        let p = self.0.ranks();
        let pair = |r: usize| self.0.distance(Rank::from(r), Rank::from((r + hop) % p));
        (0..p).map(pair).max().unwrap_or(Level::Machine)
    }
}

/// The farthest two ranks of a shape.
pub fn farthest(shape: &Shape) -> Level {
    let near = Level::ALL.into_iter().find(|&level| shape.groups(level).len() <= 1);
    near.unwrap_or(Level::Machine)
}

/// Why a cell has no number.
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
    /// It would need a size or concurrency beyond what was measured.
    #[error("{model} would need more bytes or concurrent transfers than were measured")]
    Beyond {
        /// The model.
        model: &'static str,
    },
}

/// What one model says of one call.
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
    /// Its parameters: those that its closed form is of, which are the defaults.
    pub params: Params,
    /// The closed form.
    pub form: Form,
    /// The plan played, where it can be made; its window is the largest that fits a box.
    pub played: Result<Candidate, Absent>,
    /// By model, oldest first, then [`WHOLE`], then [`PLAYED`].
    pub predictions: Vec<Prediction>,
}

/// The algorithms of the question's collective that have closed forms, by all models. Times that need more than was
/// measured are there only with `extrapolate`, and marked.
pub fn rows(estimates: &Estimates, model: &Model, question: &Question, extrapolate: bool) -> Vec<Row> {
    let forms = algorithm::table(question.collective).iter();
    let forms = forms.filter_map(|a| Some((*a, Form::of(question.collective, a.name)?)));
    forms.map(|(algorithm, form)| row(estimates, model, question, extrapolate, algorithm, form)).collect()
}

fn row(
    estimates: &Estimates,
    model: &Model,
    question: &Question,
    extrapolate: bool,
    algorithm: &'static Algorithm,
    form: Form,
) -> Row {
    let hops = Hops(&question.shape);
    let call = Call {
        form,
        ranks: question.shape.ranks(),
        bytes: question.bytes as u64,
        gamma: estimates.gamma.as_ref(),
        channel: Some(&hops),
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
    let params = Params::new();
    let played = played(model, question, algorithm, &params);
    predictions.push(Prediction {
        model: PLAYED,
        time: played
            .clone()
            .and_then(|c| within(PLAYED, Reading { nanos: c.predicted.0, extrapolated: c.extrapolated })),
    });
    Row { algorithm, params, form, played, predictions }
}

/// The plan with the largest window that fits a box, played.
fn played(
    model: &Model,
    question: &Question,
    algorithm: &'static Algorithm,
    params: &Params,
) -> Result<Candidate, Absent> {
    let no_plan = |e: &dyn std::fmt::Display| Absent::NoPlan(e.to_string());
    let mut window = question.bytes;
    loop {
        let plan = algorithm.plan(&question.window(window), params).map_err(|e| no_plan(&e))?;
        if question.fits(&plan, model.line_bytes) {
            break;
        }
        let half = window / 2;
        window = half - half % question.grain.max(64);
        if window < SMALLEST {
            return Err(no_plan(&"its smallest window does not fit a box"));
        }
    }
    let found = predict(model, question, algorithm.name, params, window).map_err(|e| no_plan(&e))?;
    match found.predicted.0.is_finite() {
        true => Ok(found),
        false => Err(no_plan(&"its plan cannot be played")),
    }
}

#[cfg(test)]
mod tests;
