//! From a profile to a model. What a profile cannot tell is listed in the model by name and reason, and what
//! stands in for it is marked as inferred or assumed.

mod crowd;
mod level;
mod streamed;

use super::cells::{fitted, sigma, Cells};
use super::least_squares::{weighted, LeastSquares, Observation};
use super::{
    Contention, Fitted, FoldCosts, Model, NamedSurface, Overhead, Residual, Trick, Values, Wake, SCHEMA,
};
use crate::profile::{Cell, Profile, Unidentified};
use crate::topology::Level;
use level::fit_level;

/// c / R_R of Xeon Phi (Ramos & Hoefler Tables 1.5 and 3.2: 56.2 / 235.8), the only published ratio: stands
/// in where contention cannot be measured.
const CONTENTION_PER_READ: f64 = 0.24;

/// Why a profile has no model.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FitError {
    /// A cell that is not what its probe promises.
    #[error("a cell of probe `{probe}` has {what}: expected {expected}; measure again")]
    BadCell {
        /// The probe.
        probe: String,
        /// Content that was found.
        what: String,
        /// Content that was expected.
        expected: String,
    },
    /// Nothing in the profile says what moving a line costs.
    #[error("the profile has no cell of probe line, signal, exchange or pingpong: nothing says what a line transfer costs; measure again")]
    NoTransfers,
}

/// Collects what could not be identified and how well fits fit.
#[derive(Default)]
struct Notes {
    unidentified: Vec<Unidentified>,
    residuals: Vec<Residual>,
}

impl Notes {
    fn missing(&mut self, what: impl Into<String>, because: impl Into<String>) {
        let (what, because) = (what.into(), because.into());
        if !self.unidentified.iter().any(|u| u.what == what) {
            self.unidentified.push(Unidentified { what, because });
        }
    }

    /// The fit of the medians of cells, each with its regressor, whose residuals are noted; `None` where the cells do not determine it.
    fn fit(
        &mut self,
        of: String,
        found: &[(f64, &Cell)],
        basis: impl Fn(f64) -> Vec<f64>,
    ) -> Option<LeastSquares> {
        let observe = |&(x, cell): &(f64, &Cell)| Observation {
            basis: basis(x),
            value: cell.stats.median,
            sigma: sigma(cell),
        };
        let fit = weighted(&found.iter().map(observe).collect::<Vec<_>>())?;
        let points: Vec<(f64, f64)> = found.iter().map(|(x, cell)| (*x, cell.stats.median)).collect();
        self.segments(of, &points, &fit);
        Some(fit)
    }

    /// Residuals of a fit in the lower, middle and upper third of its range.
    fn segments(&mut self, of: String, points: &[(f64, f64)], fit: &LeastSquares) {
        let mut rows: Vec<(f64, f64)> =
            points.iter().zip(&fit.residuals).map(|(&(x, y), &r)| (x, r / y.max(1e-9))).collect();
        rows.sort_by(|a, b| a.0.total_cmp(&b.0));
        for part in rows.chunks(rows.len().div_ceil(3).max(1)) {
            self.residuals.push(Residual {
                of: of.clone(),
                from: part[0].0,
                to: part[part.len() - 1].0,
                bias: part.iter().map(|r| r.1).sum::<f64>() / part.len() as f64,
                worst: part.iter().map(|r| r.1.abs()).fold(0.0, f64::max),
            });
        }
    }
}

/// Fits every parameter that the profile's cells identify.
///
/// # Errors
/// [`FitError`] when a cell is malformed or when no cell says what a line transfer costs.
pub fn fit(profile: &Profile) -> Result<Model, FitError> {
    let cells = Cells::of(profile)?;
    let mut notes = Notes::default();
    for u in &profile.unidentified {
        notes.missing(u.what.clone(), u.because.clone());
    }
    let stand_in = Values::default().model();

    let local = cells.one("line", &[("access", "read"), ("level", "local")]).unwrap_or_else(|| {
        notes.missing("R_L", "no cell reads a line in the own cache");
        stand_in.local
    });
    let invalid = cells.one("line", &[("access", "read"), ("state", "invalid")]).unwrap_or_else(|| {
        notes.missing("R_I", "no cell reads a line that is in nobody's cache");
        stand_in.invalid
    });
    let copy = cells.copies(&cells.with("copy", &[("pattern", "local")]))?.unwrap_or_else(|| {
        notes.missing("copy local", "no cell copies within private memory");
        stand_in.copy.clone()
    });
    let (nt_from, streamed) = (streamed::from(&cells)?, streamed::surface(&cells, &copy, &mut notes)?);

    let names = cells.levels(&["line", "signal", "exchange", "pingpong"])?;
    let names = if names.is_empty() { vec![Level::Machine] } else { names };
    let mut levels = Vec::new();
    for level in names {
        levels.extend(fit_level(&cells, level, local, &mut notes)?);
    }
    if levels.is_empty() && profile.machine.cpus == 1 {
        notes.missing("R_R", "one CPU can be used: its ranks share all caches, and no line moves");
        levels.clone_from(&stand_in.levels);
    }
    let near = levels.first().ok_or(FitError::NoTransfers)?;
    let contention = fit_contention(&cells, near.read, local, &mut notes)?;
    crowd::partners(&cells, near, &mut notes)?;
    let stores = crowd::stores(&cells, near.level, &mut notes)?;
    let issue = match (crowd::row(&cells, near.level, &mut notes)?, &near.lines) {
        (Some(row), _) if row.value > 0.0 && row.value < near.own.value => row,
        (_, Some(t)) if t.o.value > 0.0 && t.o.value < near.own.value => t.o.inferred(1.0),
        (_, Some(_) | None) => {
            notes.missing("issue", "neither a star nor a T_N fit gives the cost of one more line");
            Fitted::assumed(near.own.value * 0.25)
        }
    };
    let overhead = fit_overhead(&cells, &stand_in.overhead, &mut notes);
    // Two ranks that add and wait take the line in turn: an add is half of their barrier.
    let add = match cells.one("counter", &[("ranks", "2")]) {
        Some(c) => {
            // The engine's own part comes off the interval as well, or the value would leave it.
            let own_cost = overhead.run.plus(overhead.set).inferred(0.5);
            c.inferred(0.5).less(own_cost).at_least(local.value)
        }
        None => {
            notes.missing("add", "no cell of the fetch-and-add barrier of 2 ranks");
            near.own.inferred(1.0)
        }
    };
    let wake = Wake {
        yielding: cells.one("wake", &[("kind", "yield"), ("where", "same")]).unwrap_or_else(|| {
            notes.missing("wake[yield]", "no cell hands over on one CPU");
            stand_in.wake.yielding
        }),
        futex: cells.one("wake", &[("kind", "futex")]).unwrap_or_else(|| {
            notes.missing("wake[futex]", "no cell wakes a sleeper");
            stand_in.wake.futex
        }),
    };
    let folds = fit_folds(&cells, &stand_in.folds, &mut notes)?;
    let patterns = fit_patterns(&cells)?;
    let (alone, shared): (Vec<_>, Vec<_>) =
        cells.with("attach", &[]).into_iter().partition(|c| !c.factors.contains_key("readers"));
    let attach = cells.surface(&alone)?;
    let pinning = match &attach {
        Some(alone) => crowd::pinning(&cells, &shared, alone, &mut notes)?,
        None => None,
    };
    let tricks = profile
        .probe("trick")
        .filter_map(|c| {
            Some(Trick { name: c.factors.get("name")?.clone(), cost: fitted(c), least: c.stats.min })
        })
        .collect();
    Ok(Model {
        schema: SCHEMA,
        machine: profile.machine.clone(),
        line_bytes: profile.machine.line_bytes.max(1),
        local,
        invalid,
        contention,
        issue,
        stores,
        add,
        levels,
        copy,
        streamed,
        folds,
        overhead,
        wake,
        patterns,
        tricks,
        nt_from,
        attach,
        pinning,
        unidentified: notes.unidentified,
        residuals: notes.residuals,
    })
}

/// T_C(n) = c n + b, Ramos & Hoefler Eq. 3.2; from `contention`, or else from signals with several pollers.
fn fit_contention(
    cells: &Cells,
    read: Fitted,
    local: Fitted,
    notes: &mut Notes,
) -> Result<Contention, FitError> {
    let mut several = Vec::new();
    let direct = cells.with("contention", &[]);
    let (found, factor) = if direct.is_empty() {
        (cells.with("signal", &[("layout", "alone")]), "pollers")
    } else {
        (direct, "readers")
    };
    for cell in found.iter().filter(|c| c.factors.contains_key(factor)) {
        several.push((f64::from(cells.factor::<u32>(cell, factor)?), *cell));
    }
    let Some(fit) = notes.fit("T_C".to_owned(), &several, |n| vec![n, 1.0]) else {
        notes.missing(
            "T_C",
            "contention needs at least 2 numbers of readers of one line, so at least 3 CPUs; c = 0.24 R_R \
             (Xeon Phi's ratio) stands in",
        );
        let c = Fitted::assumed(read.value * CONTENTION_PER_READ);
        return Ok(Contention { c, b: Fitted::assumed(read.value + local.value - c.value) });
    };
    let (c, b) = (fit.coefficients[0], fit.coefficients[1]);
    Ok(Contention { c: c.at_least(0.0), b })
}

fn fit_overhead(cells: &Cells, stand_in: &Overhead, notes: &mut Notes) -> Overhead {
    let mut one = |op: &str, other: Fitted| {
        cells.one("overhead", &[("op", op)]).unwrap_or_else(|| {
            notes.missing(format!("overhead[{op}]"), "no cell");
            other
        })
    };
    Overhead {
        set: one("set", stand_in.set),
        wait: one("wait", stand_in.wait),
        mov: one("move", stand_in.mov),
        fold: one("fold", stand_in.fold),
        run: one("run", stand_in.run),
    }
}

fn fit_folds(cells: &Cells, stand_in: &[FoldCosts], notes: &mut Notes) -> Result<Vec<FoldCosts>, FitError> {
    let mut kinds: Vec<(String, String)> = Vec::new();
    for cell in cells.with("fold", &[]) {
        let kind = (cells.factor(cell, "type")?, cells.factor(cell, "op")?);
        if !kinds.contains(&kind) {
            kinds.push(kind);
        }
    }
    kinds.sort();
    let mut folds = Vec::new();
    for (element, op) in kinds {
        let slot = crowd::folds(cells, (&element, &op), notes)?;
        let private = cells.with("fold", &[("type", &element), ("op", &op), ("source", "private")]);
        match cells.surface(&private)? {
            Some(private) => folds.push(FoldCosts { element, op, private, slot }),
            None => notes.missing(format!("fold[{element} {op}]"), "no cell with both operands private"),
        }
    }
    if folds.is_empty() {
        notes.missing("fold", "no cell folds");
        folds.extend_from_slice(stand_in);
    }
    Ok(folds)
}

fn fit_patterns(cells: &Cells) -> Result<Vec<NamedSurface>, FitError> {
    let mut list = Vec::new();
    for level in cells.levels(&["copy"])? {
        for pattern in ["ring", "ping", "bcast"] {
            if let Some(surface) = cells.copies(&cells.at("copy", level, &[("pattern", pattern)]))? {
                list.push(NamedSurface { pattern: pattern.to_owned(), level, surface });
            }
        }
    }
    Ok(list)
}
