//! A model's numbers in tables, net of what the player adds by itself.

use crate::model::{LevelCosts, Model, Surface};
use crate::plan::Layout;
use crate::topology::{Level, Shape};

/// Costs at one distance, in ns.
#[derive(Clone, Debug)]
pub struct Near<'m> {
    /// R_R.
    pub read: f64,
    /// Ownership.
    pub own: f64,
    /// Reading a peer's bytes.
    pub get: &'m Surface,
    /// Writing where a peer read.
    pub put: &'m Surface,
    /// Flowing through a ring.
    stream: Option<&'m Surface>,
    signal: [f64; 4],
    exchange: [f64; 4],
}

/// Everything the player looks up.
#[derive(Clone, Debug)]
pub struct Rates<'m> {
    levels: Vec<Near<'m>>,
    /// The model.
    pub model: &'m Model,
    /// Overheads: set, wait, move, fold, run.
    pub set: f64,
    /// A satisfied wait.
    pub wait: f64,
    /// A move without its bytes.
    pub mov: f64,
    /// A fold without its bytes.
    pub fold: f64,
    /// A run.
    pub run: f64,
    /// Same-line contention.
    pub contention: f64,
    /// Between stores to different lines.
    pub issue: f64,
    /// Ranks of one CPU.
    pub local: f64,
    /// Fetch-and-add at the nearest distance.
    pub add: f64,
}

/// A wait that ends after an exchange cannot end sooner than this share of the exchange: what is left when
/// overheads measured apart exceed the exchange measured as a whole.
const FLOOR: f64 = 0.25;

fn column(layout: Layout) -> usize {
    match layout {
        Layout::Packed => 0,
        Layout::Paired => 1,
        Layout::Alone => 2,
        Layout::Spread(_) => 3,
    }
}

impl<'m> Rates<'m> {
    /// The tables of a model. Exchanges were measured by running a plan, so the run's and the set's own
    /// cost, which the player adds, are taken off; from signals the set's.
    pub fn of(model: &'m Model) -> Rates<'m> {
        let o = &model.overhead;
        let net = |list: &[crate::model::LayoutCost], layout, own_cost: f64, other: f64| {
            let whole = LevelCosts::by_layout(list, layout).map_or(other, |f| f.value);
            (whole - own_cost).max(whole * FLOOR)
        };
        let layouts = [Layout::Packed, Layout::Paired, Layout::Alone, Layout::Spread(2)];
        let levels = Level::ALL
            .iter()
            .map(|&level| {
                let costs = model.level(level).0;
                let both = costs.read.value + costs.own.value;
                Near {
                    read: costs.read.value,
                    own: costs.own.value,
                    get: &costs.get,
                    put: &costs.put,
                    stream: costs.stream.as_ref(),
                    signal: layouts.map(|l| net(&costs.signal, l, o.set.value, both)),
                    exchange: layouts.map(|l| net(&costs.exchange, l, o.set.value + o.run.value, both)),
                }
            })
            .collect();
        Rates {
            levels,
            model,
            set: o.set.value,
            wait: o.wait.value,
            mov: o.mov.value,
            fold: o.fold.value,
            run: o.run.value,
            contention: model.contention.c.value,
            issue: model.issue.value,
            local: model.local.value,
            add: model.add.value,
        }
    }

    /// The ownership transfer at the nearest measured distance, never zero.
    pub fn nearest_own(&self) -> f64 {
        self.model.levels.first().map_or(1.0, |l| l.own.value).max(1e-3)
    }

    /// Costs at a distance.
    pub fn at(&self, level: Level) -> &Near<'m> {
        &self.levels[level as usize]
    }
}

impl Near<'_> {
    /// Set to seen by a poller, after the set's own cost.
    pub fn signal(&self, layout: Layout) -> f64 {
        self.signal[column(layout)]
    }

    /// ns a byte of a stream whose writer comes back to a place after `reuse` bytes, where it was measured.
    pub fn stream(&self, reuse: u64) -> Option<f64> {
        self.stream?.per_byte(reuse)
    }

    /// Two sets at once, to both seen.
    pub fn exchange(&self, layout: Layout) -> f64 {
        self.exchange[column(layout)]
    }
}

/// The distance of two ranks, or `None` when they share a CPU and so its caches.
pub fn distance(shape: &Shape, a: u32, b: u32) -> Option<Level> {
    let (a, b) = (crate::units::Rank(a), crate::units::Rank(b));
    (a != b && shape.cpu(a).os != shape.cpu(b).os).then(|| shape.distance(a, b))
}
