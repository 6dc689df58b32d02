//! Common part of the published message models: a message's time, and from it a collective's.
//!
//! A model here is closed forms over some fitted parameters; the plan of an algorithm is not looked at. That is
//! what sets them apart from [`cost`](crate), which plays the plan. Each model is one file beside this one.

use super::from_plan::Schedule;
use super::stages::{Form, Stage};
use lineweave_core::model::{Reading, Surface};
use lineweave_core::topology::{Level, Shape};
use lineweave_core::units::Rank;

/// A value that a model needs and that nobody has measured or published for this machine.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{model} needs {value}, and {machine} does not know it: {because}")]
pub struct NotKnown {
    /// The model.
    pub model: &'static str,
    /// The value.
    pub value: String,
    /// Machine or profile, as its reader calls it.
    pub machine: String,
    /// Reason why the value is not known, and what to do.
    pub because: String,
}

impl NotKnown {
    pub(super) fn new(
        model: &'static str,
        value: &str,
        machine: &str,
        because: impl Into<String>,
    ) -> NotKnown {
        let (value, machine) = (value.to_owned(), machine.to_owned());
        NotKnown { model, value, machine, because: because.into() }
    }
}

/// Reason why a model has no number for a call.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NoForm {
    /// The algorithm is not defined for so many ranks.
    #[error("{form} is defined for {expected}, found {ranks} ranks")]
    Ranks {
        /// The closed form.
        form: Form,
        /// Numbers of ranks it is for.
        expected: &'static str,
        /// Ranks.
        ranks: usize,
    },
    /// The model has no means of expressing it.
    #[error("{model} cannot express {form}: {because}")]
    NotExpressible {
        /// The model.
        model: &'static str,
        /// The closed form.
        form: Form,
        /// Reason why the model cannot express the form.
        because: &'static str,
    },
    /// The form is of a plan, and none could be made.
    #[error("{form} needs a plan, and there is none")]
    Unplanned {
        /// The closed form.
        form: Form,
    },
    /// A value is missing.
    #[error(transparent)]
    NotKnown(#[from] NotKnown),
}

/// A collective call to be costed.
#[derive(Clone, Copy, Debug)]
pub struct Call<'a> {
    /// The algorithm's closed form.
    pub form: Form,
    /// Ranks, P.
    pub ranks: usize,
    /// The messages of its plan, where the form is of one.
    pub schedule: Option<&'a Schedule>,
    /// Whole message in bytes.
    pub bytes: u64,
    /// gamma: the time of folding m bytes while tau folds run, where something folds.
    pub gamma: Option<&'a Surface>,
    /// The shape that ranks sit on, for models with a channel a distance. `None`: the model's own.
    pub channel: Option<&'a Shape>,
}

impl Call<'_> {
    /// A call without folding, on one channel.
    pub fn new(form: Form, ranks: usize, bytes: u64) -> Call<'static> {
        Call { form, ranks, bytes, schedule: None, gamma: None, channel: None }
    }

    /// Returns the stages of the call.
    ///
    /// # Errors
    /// [`NoForm::Ranks`] when the algorithm is not for so many ranks, [`NoForm::Unplanned`].
    pub fn stages(&self) -> Result<Vec<Stage>, NoForm> {
        if let Some(schedule) = self.schedule.filter(|_| self.form.is_of_plan()) {
            return Ok(schedule.stages.clone());
        }
        self.form.stages(self.ranks, self.bytes)
    }

    /// The time of folding in a stage, with every message of the stage folded at once.
    ///
    /// # Errors
    /// [`NotKnown`] when something is folded and gamma is not there.
    pub fn folding(&self, model: &'static str, bytes: u64, tau: u64) -> Result<Reading, NotKnown> {
        if bytes == 0 {
            return Ok(Reading { nanos: 0.0, extrapolated: false });
        }
        let lacks =
            || NotKnown::new(model, "gamma(m, tau)", "the machine", "nothing says what folding costs");
        let gamma = self.gamma.ok_or_else(lacks)?;
        Ok(gamma.at(bytes as usize, tau as usize))
    }
}

/// A message model.
pub trait Published: std::fmt::Debug {
    /// Name of the model, as in the papers: `LogGP`.
    fn name(&self) -> &'static str;

    /// T(m), the time of one message of `bytes` bytes, in ns.
    fn message(&self, bytes: u64) -> Reading;

    /// The time of a message whose partners are at this distance; most models know one channel only.
    fn message_over(&self, bytes: u64, _level: Option<Level>) -> Reading {
        self.message(bytes)
    }

    /// The time of the call: for models of messages the sum over stages of a message's time, however many
    /// messages a stage has (Rico-Gallego & Diaz-Martin Eq. 3 and 6), each followed by its folding.
    ///
    /// # Errors
    /// [`NoForm`] when the model or the algorithm has no such form, or a value is missing.
    fn collective(&self, call: &Call<'_>) -> Result<Reading, NoForm> {
        in_a_row(self, call)
    }
}

/// The stages of a call one after the other, each as long as one of its messages and its folding.
pub(super) fn in_a_row<M: Published + ?Sized>(model: &M, call: &Call<'_>) -> Result<Reading, NoForm> {
    let mut sum = Sum::default();
    for stage in call.stages()? {
        let level = call.channel.map(|shape| apart(shape, stage.hop));
        sum.add(model.message_over(stage.bytes, level), stage.times);
        sum.add(call.folding(model.name(), stage.folded, 1)?, stage.times);
    }
    Ok(sum.reading())
}

/// The level of the farthest two ranks of a shape that are `hop` ranks apart.
fn apart(shape: &Shape, hop: usize) -> Level {
    let p = shape.ranks();
    let pair = |r: usize| shape.distance(Rank::from(r), Rank::from((r + hop) % p));
    (0..p).map(pair).max().unwrap_or(Level::Machine)
}

/// A sum of readings.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Sum {
    nanos: f64,
    extrapolated: bool,
}

impl Sum {
    /// Adds a reading so many times.
    pub(super) fn add(&mut self, reading: Reading, times: u64) {
        if times > 0 {
            self.nanos += reading.nanos * times as f64;
            self.extrapolated |= reading.extrapolated;
        }
    }

    /// Returns the sum.
    pub(super) fn reading(self) -> Reading {
        Reading { nanos: self.nanos, extrapolated: self.extrapolated }
    }
}

/// Segments of a message of `bytes` bytes, k, and the length of each, S: full segments where `segment` divides the
/// message, else k equal parts (Rico-Gallego & Diaz-Martin Eq. 9, L(m / k)). One segment when `segment` is 0.
pub fn segments(bytes: u64, segment: u64) -> (u64, f64) {
    let k = if segment == 0 { 1 } else { bytes.div_ceil(segment).max(1) };
    (k, bytes as f64 / k as f64)
}
