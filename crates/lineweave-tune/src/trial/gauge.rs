//! Whether the machine is as it was.
//!
//! A virtual machine's CPUs move between cores and back within minutes (docs/findings.md), and an exchange of two flags then takes several
//! times as long or as short. What wins a race at such a time loses at others, so one barrier, always of the same plan, is timed beside
//! all races of a team. It is compared with what it took itself: two ranks' barrier with what the profile measured of that plan, others'
//! with the median of all their readings. Never with a prediction: a model that errs would make every machine another one.

use super::crew::{Crew, CrewError};
use super::window::{Trial, Way};
use lineweave::team::Charter;
use lineweave_core::plan::{Layout, Params};
use lineweave_core::profile::Profile;
use lineweave_core::units::Rank;

/// A machine that is so many times faster or slower than otherwise is another one.
const MOVED: f64 = 3.0;
/// How long a look takes, in ns.
const WINDOW_NS: u64 = 500_000;
/// Readings that a team without a measured barrier begins with, so that a first odd one is no yardstick.
const FIRST: usize = 3;

/// The barrier of a team, as a gauge of the machine under it.
#[derive(Debug)]
pub struct Gauge {
    way: Way,
    /// What the profile says of this very plan.
    measured: Option<f64>,
    readings: Vec<f64>,
}

impl Gauge {
    /// For teams of several ranks with a CPU each: where they share CPUs, the scheduler decides what a barrier takes.
    pub fn of(charter: &Charter, profile: &Profile) -> Option<Gauge> {
        let shape = charter.shape();
        if shape.ranks() < 2 || shape.oversubscription() > 1 {
            return None;
        }
        let (algorithm, layout) = match shape.ranks() {
            2 => ("exchange", Layout::Paired),
            _ => ("dissemination", Layout::Alone),
        };
        let level = shape.distance(Rank(0), Rank(1)).to_string();
        let layout = layout.to_string();
        let cell = profile.cell(algorithm, &[("layout", &layout), ("level", &level)]);
        let params = Params::new().with("layout", &layout);
        let way = Way { algorithm: algorithm.to_owned(), params, window: 0 };
        Some(Gauge { way, measured: cell.map(|cell| cell.stats.median), readings: Vec::new() })
    }

    /// How many times as long as otherwise a barrier takes now.
    ///
    /// # Errors
    /// Those of [`Crew::run`].
    pub fn read(&mut self, crew: &mut Crew) -> Result<f64, CrewError> {
        let first = if self.measured.is_none() && self.readings.is_empty() { FIRST } else { 1 };
        for _ in 0..first {
            let trial = Trial {
                way: Some(self.way.clone()),
                window_ns: WINDOW_NS,
                least: 5,
                most: 16,
                precision: 0.05,
                ..Trial::barriers()
            };
            // The fastest batch: an interruption does not make another machine.
            let batches = crew.run(&trial)?.batches_ns;
            self.readings.extend(batches.into_iter().reduce(f64::min));
        }
        Ok(self.last())
    }

    /// The last reading, beside what it is compared with.
    fn last(&self) -> f64 {
        let mut sorted = self.readings.clone();
        sorted.sort_by(f64::total_cmp);
        let otherwise = self.measured.or_else(|| sorted.get(sorted.len() / 2).copied());
        match (self.readings.last(), otherwise) {
            (Some(last), Some(otherwise)) if otherwise > 0.0 => last / otherwise,
            _ => 1.0,
        }
    }

    /// Whether a reading tells of another machine than otherwise.
    pub fn moved(reading: f64) -> bool {
        !(1.0 / MOVED..=MOVED).contains(&reading)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lineweave::settings::Settings;
    use lineweave_core::profile::{Cell, Fingerprint, Stats, SCHEMA};

    /// A profile in which an exchange of two flags took so long at every distance.
    fn profile(nanos: f64) -> Profile {
        let cell = |level: &str| Cell {
            probe: "exchange".into(),
            factors: [("layout", "paired"), ("level", level)].map(|(k, v)| (k.into(), v.into())).into(),
            unit: "ns".into(),
            stats: Stats::of(&[nanos], 0).expect("a sample"),
            flagged: Vec::new(),
        };
        Profile {
            schema: SCHEMA,
            version: "0.1.0".into(),
            measured_at: "2026-01-01T00:00:00Z".into(),
            machine: Fingerprint { cpu: "c".into(), cpus: 2, line_bytes: 64, topology: "core:2 pu:1".into() },
            unidentified: Vec::new(),
            cells: ["core", "l3", "numa", "package", "machine"].map(cell).into(),
        }
    }

    #[test]
    fn a_barrier_is_gauged_where_each_rank_has_a_cpu() {
        let charter = Charter::new(1, &Settings::default()).expect("a charter");
        assert!(Gauge::of(&charter, &profile(100.0)).is_none(), "one rank waits for nobody");
        let charter = Charter::new(2, &Settings::default()).expect("a charter");
        let mut crew = Crew::threads(charter.clone()).expect("a crew");
        if charter.shape().oversubscription() == 1 {
            let read = |gauge: &mut Gauge, crew: &mut Crew| gauge.read(crew).expect("a reading");
            let mut slow = Gauge::of(&charter, &profile(1e-3)).expect("a gauge");
            assert!(Gauge::moved(read(&mut slow, &mut crew)), "the profile's machine was far faster");
            let mut own = Gauge { measured: None, ..slow };
            own.readings.clear();
            let reading = read(&mut own, &mut crew);
            assert!(reading > 0.0 && reading.is_finite() && own.readings.len() == FIRST, "{own:?}");
        }
        let crowd = Charter::new(64, &Settings::default()).expect("a charter");
        assert!(crowd.shape().oversubscription() == 1 || Gauge::of(&crowd, &profile(100.0)).is_none());
    }

    #[test]
    fn a_team_is_compared_with_itself_over_time_whatever_a_model_says() {
        let way = Way { algorithm: "dissemination".into(), params: Params::new(), window: 0 };
        let mut gauge = Gauge { way, measured: None, readings: Vec::new() };
        let mut moved = |now: f64| {
            gauge.readings.push(now);
            Gauge::moved(gauge.last())
        };
        // A model that predicts 300 ns makes none of these another machine; a time that is four times as slow is one.
        assert!(![1_200.0, 1_100.0, 1_230.0, 900.0, 2_000.0].into_iter().any(&mut moved));
        assert!(moved(4_900.0) && !moved(1_150.0) && moved(300.0));
    }

    #[test]
    fn three_times_as_fast_or_slow_is_another_machine() {
        assert!([0.3, 3.1, 5.0].into_iter().all(Gauge::moved));
        assert!(![0.4, 0.9, 1.0, 2.9].into_iter().any(Gauge::moved));
    }
}
