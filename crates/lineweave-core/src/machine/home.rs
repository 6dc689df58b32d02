//! Homes: what a transfer costs when the line's memory is in another package than both cores.

use super::{read, Machine, Value};
use crate::topology::{Cpu, Level};
use serde::Deserialize;

/// One-way transfers within a package, of lines whose memory is in another one. Where the caches ask a line's home who has it,
/// that is a way across and back.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Away {
    /// Distance of the cores: `numa` or `package`.
    #[serde(deserialize_with = "read::within_a_package")]
    pub level: Level,
    /// As [`Transfer`](super::Transfer).
    pub transfer_ns: Value,
}

/// Returns whether a line whose memory is in this package is away from two cores: they share another one.
pub fn is_away(a: &Cpu, b: &Cpu, home: usize) -> bool {
    a.package == b.package && a.package != home
}

impl Machine {
    /// Returns the cost of moving a line between cores of this level if its home is in another package; `None` where nobody saw that
    /// this matters.
    pub fn away(&self, level: Level) -> Option<&Value> {
        self.away.iter().find(|away| away.level == level).map(|away| &away.transfer_ns)
    }

    /// [`Machine::transfer_between`] of a line whose home is in this package. A matrix has each pair with one home only: the other
    /// figure of a pair is as many times the measured one as the medians of both are apart.
    pub fn transfer_at(&self, a: &Cpu, b: &Cpu, home: usize) -> Option<f64> {
        let ns = self.transfer_between(a, b)?;
        let level = a.common(b);
        let away = self.away(level).and_then(|away| away.value);
        let (Some(near), Some(away)) = (self.transfer(level).value, away) else { return Some(ns) };
        // Without a matrix the level's value is the one at home.
        let measured_at = self.measured.as_ref().map_or(a.package, |m| m.home.unwrap_or(a.package));
        Some(match (is_away(a, b, measured_at), is_away(a, b, home)) {
            (false, true) => ns * (away / near),
            (true, false) => ns * (near / away),
            (false, false) | (true, true) => ns,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::shipped;

    #[test]
    fn a_line_is_away_from_cores_of_one_package_whose_memory_is_in_another() {
        let rome = shipped().iter().find(|m| m.name == "epyc-rome-7742-2s").unwrap();
        let cpus = rome.topology().unwrap().cpus;
        let [first, cache, node, other] = [0, 2, 64, 128].map(|i| &cpus[i]);
        let ns = |a, b, home| rome.transfer_at(a, b, home);
        assert_eq!((ns(first, node, 0), ns(first, node, 1)), (Some(132.0), Some(267.0)));
        // Within a cache it does not leave that, and across the home is with one of the two.
        assert_eq!((ns(first, cache, 0), ns(first, cache, 1)), (Some(25.0), Some(25.0)));
        assert_eq!((ns(first, other, 0), ns(first, other, 1)), (Some(267.0), Some(267.0)));
    }

    #[test]
    fn only_levels_within_a_package_have_it() {
        let text = crate::machine::SOURCES.iter().find(|(name, _)| *name == "epyc-rome-7742-2s").unwrap().1;
        let found = text.replacen("level = \"numa\"", "level = \"machine\"", 1).parse::<Machine>();
        assert!(found.unwrap_err().to_string().contains("expected numa or package"));
    }
}
