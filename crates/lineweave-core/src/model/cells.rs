//! Reading a profile's cells as observations.

use super::fitted::{Fitted, Provenance};
use super::surface::{Point, Surface};
use super::FitError;
use crate::profile::{Cell, Profile};
use crate::topology::Level;
use std::collections::BTreeMap;
use std::str::FromStr;

/// A cell's median with its interval.
pub fn fitted(cell: &Cell) -> Fitted {
    let s = &cell.stats;
    Fitted { value: s.median, ci_low: s.ci_low, ci_high: s.ci_high, provenance: Provenance::Measured }
}

/// A standard error from the interval. Quantised timers give intervals of width zero: a cell is never
/// believed beyond a thousandth of itself, or it would outvote all others.
pub fn sigma(cell: &Cell) -> f64 {
    fitted(cell).sigma().max(cell.stats.median.abs() * 1e-3).max(1e-3)
}

/// The cells of a probe, with typed access to their factors.
pub struct Cells<'a> {
    profile: &'a Profile,
    /// The level of cells that do not name one.
    default_level: Level,
}

impl<'a> Cells<'a> {
    /// The cells of a profile, every number of which must be finite and not negative.
    pub fn of(profile: &'a Profile) -> Result<Cells<'a>, FitError> {
        for cell in &profile.cells {
            let s = &cell.stats;
            let numbers = [s.median, s.ci_low, s.ci_high];
            if numbers.iter().any(|x| !x.is_finite() || *x < 0.0) || s.ci_low > s.ci_high {
                return Err(FitError::BadCell {
                    probe: cell.probe.clone(),
                    what: format!("median {} in [{}, {}]", s.median, s.ci_low, s.ci_high),
                    expected: "finite, not negative, interval in order".to_owned(),
                });
            }
        }
        let mut cells = Cells { profile, default_level: Level::Machine };
        let named = cells.levels(&["line", "signal", "exchange", "pingpong", "copy"])?;
        if let Some(&nearest) = named.first() {
            cells.default_level = nearest;
        }
        Ok(cells)
    }

    /// Every level that cells of these probes name, nearest first.
    pub fn levels(&self, probes: &[&str]) -> Result<Vec<Level>, FitError> {
        let mut levels = Vec::new();
        for cell in self.profile.cells.iter().filter(|c| probes.contains(&c.probe.as_str())) {
            match cell.factors.get("level").map(String::as_str) {
                None | Some("local") => {}
                Some(_) => levels.push(self.factor::<Level>(cell, "level")?),
            }
        }
        levels.sort_unstable();
        levels.dedup();
        Ok(levels)
    }

    /// A factor of a cell as a value.
    pub fn factor<T: FromStr>(&self, cell: &Cell, name: &str) -> Result<T, FitError>
    where
        T::Err: ToString,
    {
        let text = cell.factors.get(name).ok_or_else(|| FitError::BadCell {
            probe: cell.probe.clone(),
            what: format!("no factor `{name}`"),
            expected: format!("a cell of `{}` to name its {name}", cell.probe),
        })?;
        text.parse().map_err(|e: T::Err| FitError::BadCell {
            probe: cell.probe.clone(),
            what: format!("{name} = `{text}`"),
            expected: e.to_string(),
        })
    }

    /// Cells of a probe whose factors have these values.
    pub fn with(&self, probe: &'a str, wanted: &[(&str, &str)]) -> Vec<&'a Cell> {
        let has = |c: &Cell| wanted.iter().all(|(k, v)| c.factors.get(*k).map(String::as_str) == Some(*v));
        self.profile.probe(probe).filter(|c| has(c)).collect()
    }

    /// As [`Cells::with`], for cells at one distance.
    pub fn at(&self, probe: &'a str, level: Level, wanted: &[(&str, &str)]) -> Vec<&'a Cell> {
        let here = |c: &&Cell| match c.factors.get("level") {
            Some(name) => name == level.name(),
            None => level == self.default_level,
        };
        self.with(probe, wanted).into_iter().filter(here).collect()
    }

    /// The value of the one cell of a probe with these factors.
    pub fn one(&self, probe: &'a str, wanted: &[(&str, &str)]) -> Option<Fitted> {
        self.with(probe, wanted).first().map(|c| fitted(c))
    }

    /// The surface of copies through the caches.
    pub fn copies(&self, cells: &[&Cell]) -> Result<Option<Surface>, FitError> {
        let through = |c: &&&Cell| c.factors.get("kind").is_none_or(|kind| kind != "nt");
        self.surface(&cells.iter().filter(through).copied().collect::<Vec<_>>())
    }

    /// The surface over `bytes` and `tau` of some cells; of several at one node the least counts.
    pub fn surface(&self, cells: &[&Cell]) -> Result<Option<Surface>, FitError> {
        Ok(Surface::from_points(&self.points(cells)?))
    }

    /// The points over `bytes` and `tau` of some cells; of several at one node the least.
    pub fn points(&self, cells: &[&Cell]) -> Result<Vec<Point>, FitError> {
        let mut best: BTreeMap<(u64, u32), Point> = BTreeMap::new();
        for cell in cells {
            let bytes = self.factor(cell, "bytes")?;
            let tau = if cell.factors.contains_key("tau") { self.factor(cell, "tau")? } else { 1u32 };
            let weight = sigma(cell).powi(-2);
            let point = Point { bytes, tau: tau.max(1), cost: fitted(cell), weight };
            best.entry((bytes, point.tau))
                .and_modify(|p| {
                    if point.cost.value < p.cost.value {
                        *p = point;
                    }
                })
                .or_insert(point);
        }
        Ok(best.into_values().collect())
    }
}
