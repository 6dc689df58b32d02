//! A model: the parameters with which a plan's cost is computed, each with an interval and a provenance.
//!
//! A model is a value. Processes that must choose alike share its text ([`Model::to_json`]) and compute the
//! same choice from it. Sources of the parameters: Ramos & Hoefler 2013 (R_L, R_R, R_I, T_N, T_C),
//! Rico-Gallego & Diaz-Martin 2015 (L(m, tau)), Hockney (alpha, beta), and measured set-and-wait times per
//! flag layout, which none of the papers has.

pub mod cells;
mod described;
mod fit;
mod fitted;
mod least_squares;
mod surface;
mod text;
mod values;

pub use described::{known, one_line, several_lines};
pub use fit::{fit, FitError};
pub use fitted::{Fitted, Provenance};
pub use least_squares::{weighted, LeastSquares, Observation};
pub use surface::{isotonic, isotonic_grid, Point, Reading, Surface};
pub use text::ModelError;
pub use values::Values;

use crate::plan::Layout;
use crate::profile::{Fingerprint, Unidentified};
use crate::topology::Level;
use serde::{Deserialize, Serialize};

/// Version of the model's text form.
pub const SCHEMA: u32 = 1;

/// A cost per flag layout.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct LayoutCost {
    /// The layout of the flags.
    pub layout: Layout,
    /// Nanoseconds.
    pub cost: Fitted,
}

/// T_N(N) = o N + q - p / N, the N-line transfer (Ramos & Hoefler Eq. 3.1).
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct MultiLine {
    /// ns a line.
    pub o: Fitted,
    /// ns.
    pub q: Fitted,
    /// ns; what prefetching does not yet save on the first lines.
    pub p: Fitted,
}

impl MultiLine {
    /// The half round trip of `lines` lines, in ns. Valid for one line or more.
    pub fn at(&self, lines: f64) -> f64 {
        self.o.value * lines + self.q.value - self.p.value / lines
    }
}

/// T_C(n) = c n + b, n ranks reading one line at once (Ramos & Hoefler Eq. 3.2).
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct Contention {
    /// ns a reader.
    pub c: Fitted,
    /// ns.
    pub b: Fitted,
}

impl Contention {
    /// ns until `n` ranks have read the line. Valid for one or more.
    pub fn at(&self, n: f64) -> f64 {
        self.c.value * n + self.b.value
    }
}

/// T = alpha + beta m (Hockney).
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct AlphaBeta {
    /// ns.
    pub alpha: Fitted,
    /// ns a byte.
    pub beta: Fitted,
}

/// Costs of dealing with a rank at one distance.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct LevelCosts {
    /// The nearest level that the two ranks share.
    pub level: Level,
    /// R_R: reading a line that the other modified.
    pub read: Fitted,
    /// R_R where the line's memory is in another package than both ranks; `None` where nobody saw that this matters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub away: Option<Fitted>,
    /// Reading a line the other holds unmodified, where it was measured.
    pub read_clean: Option<Fitted>,
    /// Taking ownership of a line the other has.
    pub own: Fitted,
    /// Taking ownership of a line that the other has modified, where it was measured.
    #[serde(default)]
    pub own_modified: Option<Fitted>,
    /// Set to seen by a polling peer, one way, per layout.
    pub signal: Vec<LayoutCost>,
    /// Two ranks setting and waiting at once, per layout.
    pub exchange: Vec<LayoutCost>,
    /// N-line transfers, where they could be fitted.
    pub lines: Option<MultiLine>,
    /// Straight line through the costs of reading m bytes from the other.
    pub hockney: Option<AlphaBeta>,
    /// Reading m bytes that the other has just written, into private memory.
    pub get: Surface,
    /// Writing m bytes that the other read last.
    pub put: Surface,
    /// m bytes through a ring of slots of m bytes, one rank writing while the other reads, where it was measured.
    #[serde(default)]
    pub stream: Option<Surface>,
}

impl LevelCosts {
    /// As many times longer a line takes whose memory is in another package than both ranks.
    pub fn farther_away(&self) -> f64 {
        self.away.map_or(1.0, |away| away.value / self.read.value.max(1e-9))
    }

    /// Returns the cost of a store to a line that was just read from the one cache that had modified it: the time that a flag and its answer
    /// on one line take beyond the read, or else two ranks that set for each other on one line. `None` where that is half of an ownership
    /// transfer or more, so that such a read takes nothing over.
    pub fn upgrade(&self) -> Option<Fitted> {
        let one_line = |costs: &[LayoutCost]| {
            let shared = costs.iter().filter(|s| matches!(s.layout, Layout::Packed | Layout::Paired));
            shared.map(|s| s.cost).min_by(|a, b| a.value.total_cmp(&b.value))
        };
        let (signal, exchange) = (one_line(&self.signal), one_line(&self.exchange));
        let least = [signal, exchange].into_iter().flatten().min_by(|a, b| a.value.total_cmp(&b.value))?;
        let upgrade = least.less(self.read).at_least(0.0);
        (upgrade.value < 0.5 * self.own.value).then_some(upgrade)
    }

    /// The cost for a layout: as measured, or the one measured for the most similar layout, a thousandth
    /// dearer, so that a layout nobody measured never wins by a tie.
    pub fn by_layout(list: &[LayoutCost], layout: Layout) -> Option<Fitted> {
        const UNSEEN: f64 = 1.001;
        let exact = |want: Layout| list.iter().find(|l| l.layout == want).map(|l| l.cost);
        let like = |want: Layout| exact(want).map(|c| c.inferred(UNSEEN));
        let spread = || {
            let any = list.iter().find(|l| matches!(l.layout, Layout::Spread(_)));
            any.map(|l| l.cost.inferred(UNSEEN))
        };
        let close = match layout {
            Layout::Packed => exact(Layout::Packed).or_else(|| like(Layout::Paired)),
            Layout::Paired => exact(Layout::Paired).or_else(|| like(Layout::Packed)),
            Layout::Alone => exact(Layout::Alone).or_else(spread),
            Layout::Spread(n) => exact(Layout::Spread(n)).or_else(spread).or_else(|| like(Layout::Alone)),
        };
        close.or_else(|| list.first().map(|l| l.cost.inferred(UNSEEN)))
    }
}

/// Costs of the engine itself when everything it touches is near, in ns.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct Overhead {
    /// A set, until the store is issued.
    pub set: Fitted,
    /// A wait that is already satisfied.
    pub wait: Fitted,
    /// A move, without its bytes.
    pub mov: Fitted,
    /// A fold, without its bytes.
    pub fold: Fitted,
    /// A run of a plan, without its ops.
    pub run: Fitted,
}

/// Handing over and waking up, in ns.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct Wake {
    /// From one rank to the next on the same CPU by yielding.
    pub yielding: Fitted,
    /// Waking a rank that sleeps on another CPU.
    pub futex: Fitted,
}

/// Combining elements of one type by one operator.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct FoldCosts {
    /// Element type: `f32`.
    pub element: String,
    /// Operator: `sum`.
    pub op: String,
    /// Both operands in private memory.
    pub private: Surface,
    /// One operand in a slot that a peer has just written, where it was measured.
    pub slot: Option<Surface>,
}

/// A copy pattern of the tau-Lop set-ups beside get and put: `ring`, `ping`, `bcast`.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct NamedSurface {
    /// The pattern.
    pub pattern: String,
    /// At this distance.
    pub level: Level,
    /// L(m, tau).
    pub surface: Surface,
}

/// The exchange between two ranks when the engine uses one trick (`prefetchw`, `load-fence`, `no-pause` ...).
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Trick {
    /// Its name.
    pub name: String,
    /// Cost of an exchange with it.
    pub cost: Fitted,
    /// The least that was seen, in ns.
    pub least: f64,
}

/// Residual of a fit in one segment of its range: R-squared alone is no evidence. Printed as `residual` by `lineweave fit`.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Residual {
    /// The fitted function: `T_N@l3`.
    pub of: String,
    /// The segment of the regressor.
    pub from: f64,
    /// Its end.
    pub to: f64,
    /// Mean of (observed - fitted) / observed in the segment: a bias.
    pub bias: f64,
    /// Largest of |observed - fitted| / observed.
    pub worst: f64,
}

/// The parameters of one machine.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Model {
    /// Version, [`SCHEMA`].
    pub schema: u32,
    /// Machine whose costs these are; empty for a generic machine.
    #[serde(default)]
    pub machine: Fingerprint,
    /// Bytes of a cache line.
    pub line_bytes: usize,
    /// R_L: a line in the own cache.
    pub local: Fitted,
    /// R_I: a line that is in nobody's cache.
    pub invalid: Fitted,
    /// T_C.
    pub contention: Contention,
    /// Between loads of lines in a row: what one more line costs.
    pub issue: Fitted,
    /// Between stores to lines that others poll, where it was measured.
    #[serde(default)]
    pub stores: Option<Fitted>,
    /// A fetch-and-add on a line that others have.
    pub add: Fitted,
    /// By distance, nearest first; never empty.
    pub levels: Vec<LevelCosts>,
    /// Copying m bytes within private memory, through the caches.
    pub copy: Surface,
    /// Copying m bytes within private memory with stores that go past the caches, where it was measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub streamed: Option<Surface>,
    /// Folding.
    pub folds: Vec<FoldCosts>,
    /// The engine.
    pub overhead: Overhead,
    /// The scheduler.
    pub wake: Wake,
    /// Further copy set-ups, for comparing models.
    #[serde(default)]
    pub patterns: Vec<NamedSurface>,
    /// Tricks that were tried.
    #[serde(default)]
    pub tricks: Vec<Trick>,
    /// Bytes from which on copies use non-temporal stores: midway between the largest measured size at which they did not win, both
    /// within private memory and out of a peer's box with intervals apart, and the next one. `None` when they did not win at
    /// the largest, or were not measured.
    #[serde(default)]
    pub nt_from: Option<u64>,
    /// Copying m bytes out of another process's memory by a system call, where it was measured.
    #[serde(default)]
    pub attach: Option<Surface>,
    /// Extra time of each page of such a copy, by the number of ranks that copy the same at once, where it was measured: a surface of
    /// one size.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pinning: Option<Surface>,
    /// Parameters that the profile could not tell, and their stand-ins.
    #[serde(default)]
    pub unidentified: Vec<Unidentified>,
    /// Residuals of the fits.
    #[serde(default)]
    pub residuals: Vec<Residual>,
}

/// The shortest piece that goes past the caches where a whole message does: each ends with a fence.
pub const LEAST_STREAMED: usize = 4096;

/// Bytes of a page, of which the kernel keeps count while it copies.
pub const PAGE: usize = 4 << 10;

/// Stores to lines that others poll leave a core as if two were under way at a time: half of an ownership transfer apart, where no
/// probe said otherwise.
const BETWEEN_STORES: f64 = 0.5;

impl Model {
    /// Returns the time from one store to a line of a rank at this distance until the next leaves a core.
    pub fn between_stores(&self, level: Level) -> Fitted {
        let own = self.level(level).0.own;
        match self.stores {
            Some(nearest) => nearest.inferred(own.value / self.levels[0].own.value.max(1e-9)),
            None => own.inferred(BETWEEN_STORES),
        }
    }

    /// The costs at a distance. A level that was not measured takes those of the next farther one, which is
    /// on the safe side, or else of the nearest; the flag says whether it is the very level.
    pub fn level(&self, level: Level) -> (&LevelCosts, bool) {
        let exact = self.levels.iter().find(|l| l.level == level);
        if let Some(found) = exact {
            return (found, true);
        }
        let farther = self.levels.iter().filter(|l| l.level > level).min_by_key(|l| l.level);
        let last = &self.levels[self.levels.len() - 1];
        (farther.unwrap_or(last), false)
    }

    /// The fold costs for elements of `grain` bytes: the first that fits, else the first of all.
    pub fn fold(&self, grain: usize) -> Option<&FoldCosts> {
        let size =
            |f: &FoldCosts| f.element.trim_start_matches(|c: char| c.is_alphabetic()).parse().unwrap_or(0);
        self.folds.iter().find(|f| size(f) == grain * 8).or_else(|| self.folds.first())
    }

    /// Returns whether a trick was measured and beats the plain exchange: with intervals apart, and at its best as well, since a
    /// machine that changes while it is measured sets medians apart by itself.
    pub fn trick_wins(&self, name: &str) -> bool {
        self.trick_beats(name, "plain")
    }

    /// As [`Model::trick_wins`], against the trick `other` instead of the plain exchange.
    pub fn trick_beats(&self, name: &str, other: &str) -> bool {
        let trick = |name: &str| self.tricks.iter().find(|t| t.name == name);
        match (trick(name), trick(other)) {
            (Some(t), Some(plain)) => t.cost.ci_high < plain.cost.ci_low && t.least < plain.least,
            (None, _) | (_, None) => false,
        }
    }
}

#[cfg(test)]
mod fit_tests;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unmeasured_level_takes_the_next_farther_one() {
        let mut model = Values::default().model();
        model.levels[0].level = Level::L3;
        assert_eq!(model.level(Level::Core).0.level, Level::L3);
        assert!(!model.level(Level::Core).1);
        assert!(model.level(Level::L3).1);
    }
}
