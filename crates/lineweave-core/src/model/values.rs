//! A model from a handful of numbers: for machines known by a few constants, and for tests.

use super::{
    AlphaBeta, Contention, Fitted, FoldCosts, LayoutCost, LevelCosts, Model, Overhead, Provenance, Surface,
    Wake, SCHEMA,
};
use crate::plan::Layout;
use crate::profile::Fingerprint;
use crate::topology::Level;

/// The constants, in ns. `Default` is a two-core server VM of 2021 (EPYC Milan), assumed, not measured.
#[derive(Clone, PartialEq, Debug)]
pub struct Values {
    /// Provenance of everything given.
    pub provenance: Provenance,
    /// Bytes of a cache line.
    pub line_bytes: usize,
    /// R_L.
    pub local: f64,
    /// R_I.
    pub invalid: f64,
    /// R_R and the ownership transfer for each known distance, nearest first.
    pub levels: Vec<(Level, f64, f64)>,
    /// Two ranks at the nearest distance exchanging over one line.
    pub exchange_paired: f64,
    /// Two ranks at the nearest distance exchanging over a line each.
    pub exchange_alone: f64,
    /// Same-line contention, ns a reader.
    pub contention: f64,
    /// Further lines of a transfer, ns each.
    pub per_line: f64,
    /// Copying a byte within private memory.
    pub per_byte_local: f64,
    /// Folding a byte.
    pub per_byte_fold: f64,
    /// The engine, per op and per run.
    pub overhead: f64,
    /// Handing over to another rank on the same CPU.
    pub yielding: f64,
}

impl Default for Values {
    fn default() -> Values {
        Values {
            provenance: Provenance::Assumed,
            line_bytes: 64,
            local: 1.5,
            invalid: 100.0,
            levels: vec![(Level::L3, 30.0, 30.0)],
            exchange_paired: 40.0,
            exchange_alone: 52.0,
            contention: 7.0,
            per_line: 8.0,
            per_byte_local: 0.05,
            per_byte_fold: 0.08,
            overhead: 2.0,
            yielding: 500.0,
        }
    }
}

impl Values {
    /// The model. Signals are a read and an ownership transfer (a polled line must first be taken back);
    /// farther levels scale the exchange with their transfers.
    pub fn model(&self) -> Model {
        let given = |v: f64| Fitted::new(v, self.provenance);
        let scale = |near: f64, r: f64, o: f64| {
            let (_, r0, o0) = self.levels[0];
            near * (r + o) / (r0 + o0)
        };
        let by = |paired: f64, alone: f64| by_lines(given(paired), given(alone));
        let per_byte = self.per_line / self.line_bytes as f64;
        let levels = self
            .levels
            .iter()
            .map(|&(level, read, own)| {
                let beta = given(per_byte.max(self.per_byte_local) * scale(1.0, read, own));
                let paired = scale(self.exchange_paired, read, own);
                LevelCosts {
                    signal: by(paired, read + own),
                    exchange: by(paired, scale(self.exchange_alone, read, own)),
                    ..at_level(level, given(read), given(own), beta)
                }
            })
            .collect();
        let zero = given(0.0);
        Model {
            schema: SCHEMA,
            machine: Fingerprint::default(),
            line_bytes: self.line_bytes,
            local: given(self.local),
            invalid: given(self.invalid),
            contention: Contention {
                c: given(self.contention),
                b: given(self.levels[0].1 + self.local - self.contention),
            },
            issue: given(self.per_line),
            stores: None,
            add: given(self.levels[0].2),
            levels,
            copy: Surface::line(zero, given(self.per_byte_local)),
            streamed: None,
            folds: sums(Surface::line(zero, given(self.per_byte_fold))),
            overhead: Overhead {
                set: given(self.overhead),
                wait: given(self.overhead),
                mov: given(self.overhead),
                fold: given(self.overhead),
                run: given(self.overhead * 2.0),
            },
            wake: Wake { yielding: given(self.yielding), futex: given(self.yielding * 10.0) },
            patterns: Vec::new(),
            tricks: Vec::new(),
            nt_from: None,
            attach: None,
            pinning: None,
            unidentified: Vec::new(),
            residuals: Vec::new(),
        }
    }
}

/// Costs over one line, and over a line each.
pub(super) fn by_lines(one: Fitted, each: Fitted) -> Vec<LayoutCost> {
    vec![LayoutCost { layout: Layout::Paired, cost: one }, LayoutCost { layout: Layout::Alone, cost: each }]
}

/// The costs at a distance of which no more is known than those of one line and of each byte behind it; without those of flags.
pub(super) fn at_level(level: Level, read: Fitted, own: Fitted, beta: Fitted) -> LevelCosts {
    LevelCosts {
        level,
        read,
        away: None,
        read_clean: None,
        own,
        own_modified: None,
        signal: Vec::new(),
        exchange: Vec::new(),
        lines: None,
        hockney: Some(AlphaBeta { alpha: read, beta }),
        get: Surface::line(read, beta),
        put: Surface::line(own, beta),
        stream: None,
    }
}

/// Sums in private memory, of the elements that are summed most.
pub(super) fn sums(private: Surface) -> Vec<FoldCosts> {
    let of = |element: &str| FoldCosts {
        element: element.to_owned(),
        op: "sum".to_owned(),
        private: private.clone(),
        slot: None,
    };
    vec![of("f64"), of("f32")]
}
