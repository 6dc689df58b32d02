//! Whether the machine is as it was when its profile was measured.
//!
//! A virtual machine's CPUs move between cores and back within minutes (docs/findings.md), and an exchange of two flags then takes several
//! times as long or as short. What wins a race at such a time loses at others, so the barrier beside it is compared with what the
//! profile makes of it.

use super::crew::{Crew, CrewError};
use super::window::{Trial, Way};
use crate::team::Charter;
use lineweave_core::collective::Collective;
use lineweave_core::model::Model;
use lineweave_core::select::select;

/// A machine that is so many times faster or slower than its profile says is not the one that was measured.
const MOVED: f64 = 3.0;
/// How long a look takes, in ns.
const WINDOW_NS: u64 = 1_000_000;

/// The barrier of a team, as a gauge of the machine under it.
#[derive(Debug)]
pub struct Gauge {
    way: Way,
    predicted: f64,
}

impl Gauge {
    /// For teams of several ranks with a CPU each: where they share CPUs, the scheduler decides what a barrier takes.
    pub fn of(charter: &Charter, model: &Model) -> Option<Gauge> {
        let question = charter.question(Collective::Barrier, 0, false);
        if question.shape.ranks() < 2 || question.shape.oversubscription() > 1 {
            return None;
        }
        let choice = select(model, &question).ok()?;
        let predicted = choice.predicted.0;
        // Whatever LINEWEAVE_ALGORITHM says: what was predicted is what is run.
        let way =
            Way { algorithm: choice.algorithm.to_owned(), params: choice.params, window: choice.window };
        (predicted > 0.0).then_some(Gauge { way, predicted })
    }

    /// How many times as long as predicted a barrier takes now.
    ///
    /// # Errors
    /// Those of [`Crew::run`].
    pub fn read(&self, crew: &mut Crew) -> Result<f64, CrewError> {
        let trial = Trial {
            way: Some(self.way.clone()),
            window_ns: WINDOW_NS,
            least: 5,
            most: 16,
            precision: 0.05,
            ..Trial::barriers()
        };
        let batches = crew.run(&trial)?.batches_ns;
        // The fastest batch: an interruption does not make another machine.
        let fastest = batches.into_iter().fold(f64::INFINITY, f64::min);
        Ok(if fastest.is_finite() { fastest / self.predicted } else { 1.0 })
    }

    /// Whether a reading tells of another machine than the profile's.
    pub fn moved(reading: f64) -> bool {
        !(1.0 / MOVED..=MOVED).contains(&reading)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::Settings;
    use lineweave_core::model::Values;

    #[test]
    fn a_barrier_is_gauged_where_each_rank_has_a_cpu() {
        let charter = Charter::new(1, &Settings::default()).expect("a charter");
        let model = Values::default().model();
        assert!(Gauge::of(&charter, &model).is_none(), "one rank waits for nobody");
        let charter = Charter::new(2, &Settings::default()).expect("a charter");
        let mut crew = Crew::threads(charter.clone()).expect("a crew");
        if charter.shape().oversubscription() == 1 {
            let gauge = Gauge::of(&charter, &model).expect("a gauge");
            let reading = gauge.read(&mut crew).expect("a reading");
            assert!(reading > 0.0 && reading.is_finite(), "{reading}");
            let fast = Gauge { predicted: gauge.predicted * 1e6, ..gauge };
            assert!(Gauge::moved(fast.read(&mut crew).expect("a reading")));
        }
        let crowd = Charter::new(64, &Settings::default()).expect("a charter");
        assert!(crowd.shape().oversubscription() == 1 || Gauge::of(&crowd, &model).is_none());
    }

    #[test]
    fn three_times_as_fast_or_slow_is_another_machine() {
        assert!([0.3, 3.1, 5.0].into_iter().all(Gauge::moved));
        assert!(![0.4, 0.9, 1.0, 2.9].into_iter().any(Gauge::moved));
    }
}
