//! The baseline of the machine under a team: what its state probe reads most of the time.
//!
//! What wins a race while CPUs are elsewhere loses at others, so readings of the gauge are taken beside all races of a team. They are
//! compared with what the team read itself, and two ranks' handshakes and clocks with what the profile describes. Never with a
//! prediction: a model that errs would make every machine another one.

use super::team::{TrialTeam, TrialTeamError};
use crate::measure::{Change, Figure, StateSample};
use lineweave::team::TeamConfig;
use lineweave_core::profile::Profile;
use lineweave_core::units::Rank;

/// Readings that a team begins with, so that a first odd one is no yardstick.
const FIRST: usize = 3;

/// Usual readings of a team's gauge.
#[derive(Debug)]
pub struct BaselineState {
    /// Reading that the profile describes for two such ranks.
    described: StateSample,
    readings: Vec<StateSample>,
}

impl BaselineState {
    /// For teams of several ranks with a CPU each: where they share CPUs, the scheduler decides what a barrier takes.
    pub fn of(config: &TeamConfig, profile: &Profile) -> Option<BaselineState> {
        let shape = config.shape();
        if shape.ranks() < 2 || shape.oversubscription() > 1 {
            return None;
        }
        let level = shape.distance(Rank(0), Rank(1)).to_string();
        let of_profile = |figure: Figure| {
            // The boxes of a team that races lie otherwise than those of one that probes.
            let told = shape.ranks() == 2 && figure != Figure::Copy;
            let factors = [("of", figure.name()), ("ranks", "2"), ("level", &level)];
            let cell = profile.cell("gauge", &factors).filter(|_| told);
            cell.map(|cell| cell.stats.median)
        };
        Some(BaselineState { described: StateSample(Figure::ALL.map(of_profile)), readings: Vec::new() })
    }

    /// Takes a reading: how the machine is another one than usual, if it is.
    pub fn read(&mut self, crew: &mut TrialTeam) -> Result<Option<Change>, TrialTeamError> {
        let first = if self.readings.is_empty() { FIRST } else { 1 };
        for _ in 0..first {
            self.readings.push(crew.gauge()?);
        }
        Ok(self.last())
    }

    /// Returns the difference of the last reading from the usual one.
    fn last(&self) -> Option<Change> {
        // Those of the state that the profile describes: others would make it look like another one.
        let alike = |reading: &&StateSample| reading.change(&self.described).is_none();
        let own = StateSample::median(&self.readings.iter().filter(alike).copied().collect::<Vec<_>>());
        let usual = StateSample(std::array::from_fn(|i| self.described.0[i].or(own.0[i])));
        self.readings.last()?.change(&usual)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lineweave::settings::Settings;
    use lineweave_core::profile::{Cell, Fingerprint, Stats, SCHEMA};

    /// A profile in which a handshake took so long at every distance.
    fn profile(nanos: f64) -> Profile {
        let cell = |level: &str| Cell {
            probe: "gauge".into(),
            factors: [("of", "handshake"), ("ranks", "2"), ("level", level)]
                .map(|(k, v)| (k.into(), v.into()))
                .into(),
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
    fn a_team_is_gauged_where_each_rank_has_a_cpu() {
        let config = TeamConfig::new(1, &Settings::default()).expect("a configuration");
        assert!(BaselineState::of(&config, &profile(100.0)).is_none(), "one rank waits for nobody");
        let config = TeamConfig::new(2, &Settings::default()).expect("a configuration");
        let mut crew = TrialTeam::threads(config.clone()).expect("a crew");
        if config.shape().oversubscription() == 1 {
            let mut usual = BaselineState::of(&config, &profile(1e-3)).expect("a gauge");
            let change =
                usual.read(&mut crew).expect("a reading").expect("the profile's machine was far faster");
            assert!(change.figure == Figure::Handshake && change.times > 1.0, "{change:?}");
            assert!(usual.readings.len() == FIRST, "{usual:?}");
            assert!(
                usual.readings.iter().all(|r| r.0.iter().all(|ns| ns.is_some_and(|ns| ns > 0.0))),
                "{usual:?}"
            );
        }
        let crowd = TeamConfig::new(64, &Settings::default()).expect("a configuration");
        assert!(
            crowd.shape().oversubscription() == 1 || BaselineState::of(&crowd, &profile(100.0)).is_none()
        );
    }

    #[test]
    fn what_a_team_read_in_another_state_is_no_yardstick() {
        let described = StateSample([Some(33.0), None, None]);
        let mut usual =
            BaselineState { described, readings: vec![StateSample([Some(160.0), Some(60_000.0), None]); 5] };
        assert_eq!(usual.last().map(|change| change.figure), Some(Figure::Handshake));
        for (copy, figure) in [(9_000.0, None), (12_000.0, None), (60_000.0, Some(Figure::Copy))] {
            usual.readings.push(StateSample([Some(34.0), Some(copy), None]));
            assert_eq!(usual.last().map(|change| change.figure), figure, "{copy}");
        }
    }

    #[test]
    fn a_team_is_compared_with_itself_over_time_whatever_a_model_says() {
        let mut usual = BaselineState { described: StateSample::default(), readings: Vec::new() };
        let mut moved = |handshake: f64, clock: f64| {
            usual.readings.push(StateSample([Some(handshake), None, Some(clock)]));
            usual.last().map(|change| change.figure)
        };
        // A model that predicts 300 ns makes none of these another machine; a time that is four times as slow is one.
        assert!([1_200.0, 1_100.0, 1_230.0, 900.0, 2_000.0].into_iter().all(|ns| moved(ns, 1.3).is_none()));
        assert_eq!(moved(4_900.0, 1.3), Some(Figure::Handshake));
        assert_eq!(moved(1_150.0, 1.3), None);
        assert_eq!(moved(300.0, 1.3), Some(Figure::Handshake));
        assert_eq!(moved(1_150.0, 1.9), Some(Figure::Clock), "a core that is throttled");
    }
}
