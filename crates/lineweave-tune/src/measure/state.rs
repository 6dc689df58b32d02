//! Selection of the measurements that are of one state of the machine.
//!
//! 1. A crew takes a reading before the first of its cells, after the last, and between cells at least every [`SECTION`].
//! 2. The profile describes the machine as it was in the last pass, which races will find, if at least half as many readings of all
//!    passes are like it as are like any other; else as in the pass that most are like. This is decided once, for all crews together,
//!    since what moves one's CPUs may move another's.
//! 3. A visit counts when the readings before and after it are like those of that pass.
//! 4. Cells of which too few visits count are visited again, while the machine is in that state.
//! 5. A cell of which none counts keeps what was measured, and it and the profile say so.

use super::cell::{ProbeTeam, Role, SampleKey, Task};
use super::machine_state::{Change, Figure, StateSample};
use super::timing::Samples;
use lineweave_core::profile::{Cell, Stats, Unidentified};
use std::collections::BTreeMap;
use std::time::Duration;

/// Time for which cells are visited between two readings; one that takes longer has readings to itself.
pub const SECTION: Duration = Duration::from_millis(20);
/// Visits that are enough for a cell, as many as a quick measurement makes.
pub const ENOUGH: usize = 3;

/// Prefix by which a profile names a probe with cells of another state among what it could not identify.
const OTHER: &str = "state[";

/// Returns whether that is what an entry says.
pub fn of_another_state(unidentified: &Unidentified) -> bool {
    unidentified.what.starts_with(OTHER)
}

/// A crew's reading in a pass.
#[derive(Clone, Copy, Debug)]
pub struct Taken {
    pub crew: usize,
    pub pass: usize,
    pub reading: StateSample,
}

/// A cell while its samples come in.
pub struct Open {
    pub crew: usize,
    pub task: Task,
    pub visits: Vec<Visit>,
}

/// A visit of a cell.
#[derive(Debug)]
pub struct Visit {
    pub samples: Samples,
    /// Number of the reading before it; the one after it is the next.
    pub before: usize,
}

/// The readings, in the order in which they were taken.
#[derive(Debug, Default)]
pub struct Log {
    pub taken: Vec<Taken>,
    /// Of each crew, what the profile describes; nothing before that is decided.
    pub described: Vec<StateSample>,
}

/// The one of some readings that most of them are like; of equals the last.
pub fn usual(readings: &[StateSample]) -> Option<StateSample> {
    let like = |one: &StateSample| readings.iter().filter(|other| other.change(one).is_none()).count();
    readings.iter().copied().max_by_key(like)
}

impl Log {
    /// Step 2.
    pub fn decide(&mut self, crews: usize) {
        let of = |crew: usize, pass: Option<usize>| -> Vec<StateSample> {
            let all = self.taken.iter().filter(|t| t.crew == crew && pass.is_none_or(|pass| t.pass == pass));
            all.map(|t| t.reading).collect()
        };
        let all: Vec<Vec<StateSample>> = (0..crews).map(|crew| of(crew, None)).collect();
        let here = |pass: usize| (0..crews).map(move |crew| StateSample::median(&of(crew, Some(pass))));
        let like = |pass: usize| {
            let shares = here(pass).zip(&all).map(|(here, all)| {
                let like = all.iter().filter(|reading| reading.change(&here).is_none()).count();
                like as f64 / all.len().max(1) as f64
            });
            shares.sum::<f64>()
        };
        let last = self.taken.iter().map(|t| t.pass).max().unwrap_or(0);
        let most = (1..=last).max_by(|&a, &b| like(a).total_cmp(&like(b))).unwrap_or(last);
        let pass = if 2.0 * like(last) >= like(most) { last } else { most };
        self.described = here(pass).collect();
    }

    /// Returns the difference of a reading from what the profile describes.
    fn change(&self, taken: &Taken) -> Option<Change> {
        taken.reading.change(self.described.get(taken.crew)?)
    }

    /// Step 3: how the machine was another one at a visit.
    pub fn changed(&self, visit: &Visit) -> Option<Change> {
        let beside = self.taken.get(visit.before..)?.iter().take(2);
        beside.filter_map(|taken| self.change(taken)).next()
    }

    /// Visits of a cell that count.
    pub fn sound<'a>(&'a self, open: &'a Open) -> impl Iterator<Item = &'a Visit> + 'a {
        open.visits.iter().filter(|visit| self.changed(visit).is_none())
    }

    /// The cells of a set-up, one under each of its names, of the visits that count; step 5.
    pub fn closed(&self, open: &Open) -> Vec<Cell> {
        let sound: Vec<&Samples> = self.sound(open).map(|v| &v.samples).collect();
        let all = || open.visits.iter().map(|v| &v.samples).collect();
        let (aside, visits): (usize, Vec<&Samples>) = match sound.is_empty() {
            true => (0, all()),
            false => (open.visits.len() - sound.len(), sound),
        };
        let kept = Samples::of_passes(visits.iter().copied());
        // What was set aside counts as disturbed, a visit like one of those that are kept.
        let disturbed = kept.disturbed + aside * kept.values.len() / visits.len().max(1);
        let Some(stats) = Stats::of(&kept.values, disturbed) else { return Vec::new() };
        let cell = |key: &SampleKey| {
            let elsewhere = self.elsewhere(open).map(|change| format!("measured only while {change}"));
            Cell { flagged: elsewhere.into_iter().collect(), ..key.clone().cell(stats) }
        };
        open.task.keys.iter().map(cell).collect()
    }

    /// Returns how the machine was another one whenever a cell was visited: the median of the changes, if there was one at every visit.
    fn elsewhere(&self, open: &Open) -> Option<Change> {
        let mut changes: Vec<Change> = open.visits.iter().map(|v| self.changed(v)).collect::<Option<_>>()?;
        changes.sort_by(|a, b| a.figure.cmp(&b.figure).then(a.times.total_cmp(&b.times)));
        changes.get(changes.len() / 2).copied()
    }

    /// Step 5, for the whole profile: probes with cells of another state.
    pub fn mixed(&self, cells: &[Open]) -> Vec<Unidentified> {
        let mut probes: BTreeMap<&str, (usize, Change)> = BTreeMap::new();
        for open in cells {
            if let Some(change) = self.elsewhere(open) {
                let (count, _) = probes.entry(open.task.keys[0].probe).or_insert((0, change));
                *count += open.task.keys.len();
            }
        }
        let because = |count, change| {
            let cells = if count == 1 { "1 cell".to_owned() } else { format!("{count} cells") };
            format!("{cells} could be measured only while {change}; measure again")
        };
        let one = |(probe, (count, change))| Unidentified {
            what: format!("{OTHER}{probe}]"),
            because: because(count, change),
        };
        probes.into_iter().map(one).collect()
    }

    /// Probe `gauge`: the readings that are like what the profile describes, and of the others how they differ.
    pub fn cells(&self, crews: &[ProbeTeam]) -> Vec<Cell> {
        let mut cells = Vec::new();
        for (i, crew) in crews.iter().enumerate() {
            if !matches!(crew.role, Role::Solo | Role::Pair | Role::Crowd) {
                continue;
            }
            let of_crew: Vec<&Taken> = self.taken.iter().filter(|t| t.crew == i).collect();
            let (others, like): (Vec<&Taken>, Vec<&Taken>) =
                of_crew.iter().partition(|t| self.change(t).is_some());
            for figure in Figure::ALL {
                let values: Vec<f64> = like.iter().filter_map(|t| t.reading.get(figure)).collect();
                let Some(stats) = Stats::of(&values, others.len()) else { continue };
                let level = if crew.role == Role::Solo { "local" } else { crew.level.name() };
                let key = SampleKey::new("gauge").with("of", figure.name());
                let mut cell = key.with("ranks", crew.cpus.len()).with("level", level).cell(stats);
                let times: Vec<f64> = others
                    .iter()
                    .filter_map(|t| self.change(t))
                    .filter(|change| change.figure == figure)
                    .map(|change| change.times)
                    .collect();
                if let Some(range) = Stats::of(&times, 0) {
                    let most = times.iter().copied().fold(0.0, f64::max);
                    let [least, most] = [range.min, most].map(|times| format!("{times:.2}"));
                    let span = if least == most { most } else { format!("{least} to {most}") };
                    cell.flagged.push(format!(
                        "in {} of {} readings {} took {span} times as long: what was measured beside them is not in \
                         the profile",
                        times.len(),
                        of_crew.len(),
                        figure.noun(),
                    ));
                }
                cells.push(cell);
            }
        }
        cells
    }
}
