//! Measurements in a profile: messages at one distance, and overheads of the engine.

use lineweave_core::model::cells::{fitted, Cells};
use lineweave_core::model::{FitError, Fitted, LayoutCost, LevelCosts, Surface};
use lineweave_core::plan::Layout;
use lineweave_core::topology::Level;
use std::collections::BTreeMap;

/// T(m) of one length.
#[derive(Clone, Copy, Debug)]
pub(super) struct Message {
    pub bytes: u64,
    pub time: Fitted,
}

impl Message {
    /// A standard error from the interval, not below a thousandth, as [`cells`](lineweave_core::model::cells) has it.
    pub fn sigma(&self) -> f64 {
        let half = (self.time.ci_high - self.time.ci_low) / (2.0 * 1.96);
        half.max(self.time.value.abs() * 1e-3).max(1e-3)
    }
}

/// Measurements at one distance.
pub(super) struct Here {
    pub signal: Option<Fitted>,
    pub put: Option<Surface>,
    pub get: Option<Surface>,
    /// Copies within private memory, at no distance.
    pub local: Option<Surface>,
    pub messages: Vec<Message>,
    /// Overheads of the engine, in ns: a set, a satisfied wait, a move without its bytes, a run.
    pub set: Option<Fitted>,
    pub wait: Option<Fitted>,
    pub mov: Option<Fitted>,
    pub run: Option<Fitted>,
}

impl Here {
    /// Reads the measurements of ranks at `level` from the cells of a machine with lines of `line` bytes.
    ///
    /// # Errors
    /// [`FitError::BadCell`] for a cell that is not what its probe promises.
    pub fn of(cells: &Cells<'_>, line: u64, level: Level) -> Result<Here, FitError> {
        let mut layouts = Vec::new();
        for cell in cells.at("signal", level, &[]) {
            if cell.factors.get("pollers").is_none_or(|p| p == "1") {
                let layout: Layout = cells.factor(cell, "layout")?;
                layouts.push(LayoutCost { layout, cost: fitted(cell) });
            }
        }
        let signal = LevelCosts::by_layout(&layouts, Layout::Alone);
        let put = cells.surface(&cells.at("copy", level, &[("pattern", "put")]))?;
        let get = cells.surface(&cells.at("copy", level, &[("pattern", "get")]))?;
        let local = cells.copies(&cells.with("copy", &[("pattern", "local")]))?;
        let mut messages: BTreeMap<u64, Fitted> = BTreeMap::new();
        for cell in cells.at("pingpong", level, &[]) {
            messages.insert(cells.factor::<u64>(cell, "lines")?.max(1) * line, fitted(cell));
        }
        let longest = messages.keys().next_back().copied().unwrap_or(0);
        if let (Some(signal), Some(put), Some(get)) = (signal, &put, &get) {
            for (i, &bytes) in put.bytes.iter().enumerate().filter(|(_, &b)| b > longest) {
                if let (Some(j), 1, 1) =
                    (get.bytes.iter().position(|&b| b == bytes), put.taus[0], get.taus[0])
                {
                    let time = put.cost[i][0].plus(signal).plus(get.cost[j][0]).inferred(1.0);
                    messages.insert(bytes, time);
                }
            }
        }
        let messages = messages.into_iter().map(|(bytes, time)| Message { bytes, time }).collect();
        let [set, wait, mov, run] =
            ["set", "wait", "move", "run"].map(|op| cells.one("overhead", &[("op", op)]));
        Ok(Here { signal, put, get, local, messages, set, wait, mov, run })
    }
}
