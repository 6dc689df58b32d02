//! The min-max models beside the message models: forms of Table 4.1 for the algorithms that it is of, and for others what they are made of.
//!
//! Broadcasts and reductions of a line or less down and up any tree, the plan's where nobody has printed one; flat and
//! sliced broadcasts of more; dissemination barriers; and barriers up and down a tree, composed of the two notifications
//! that broadcasts are made of. In a tree parents have different numbers of children; the time is that of the slowest way
//! down, level by level (Eq. 4.7, 4.13).
//!
//! Everything else is composed of the same pieces, stage by stage of its [`Form`] or its plan: a level of T_fw tells the readers of a
//! message, who copy it by T_C, or by T_N of its lines if these are several, each further reader of the same bytes adding `c`, and
//! fold it at T_N's slope a line, as Eq. 4.13 does. Acknowledgements take no stage, so they are left out.

use super::{
    barrier, flat_broadcast, multi_line, notify_back, notify_forward, notify_level, pipelined_broadcast,
    reduction_level, small_broadcast_level, CacheLineError, Folding, MinMax, Reads, SameLine,
};
use crate::models::published::{Call, NoForm, NotKnown, Published};
use crate::models::{Form, Stage};
use lineweave_core::algorithm::trees::Tree;
use lineweave_core::collective::Collective;
use lineweave_core::machine::{Machine, State};
use lineweave_core::model::{Contention, Fitted, Model, MultiLine, Provenance, Reading};
use lineweave_core::topology::Level;
use lineweave_core::units::ceil_log2;

/// Name of the model's best case.
pub const BEST: &str = "min-max, best";
/// Name of the model's worst case.
pub const WORST: &str = "min-max, worst";

/// R, T_C and T_N of one machine, read as best or as worst case.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct MinMaxModel {
    /// Bytes of a line.
    pub line_bytes: u64,
    /// R_L, R_R and R_I.
    pub reads: Reads,
    /// T_C.
    pub t_c: SameLine,
    /// T_N, where it is known.
    pub t_n: Option<MultiLine>,
    /// True if pollers are in the way.
    pub worst: bool,
}

impl MinMaxModel {
    /// Returns the model of a described machine, for buffers that are exclusive in their owner's cache. Where T_C was not measured a line
    /// serves one reader after the other, as in simulations of coherent caches.
    ///
    /// # Errors
    /// [`NotKnown`], with what the description says instead.
    pub fn of_machine(machine: &Machine, level: Level) -> Result<MinMaxModel, NotKnown> {
        let named = format!("machine `{}`", machine.name);
        let lacks = |e: CacheLineError| NotKnown::new(BEST, &e.what, &named, e.why);
        let line = machine.line_bytes.value.filter(|n| *n >= 1.0);
        let line =
            line.ok_or_else(|| NotKnown::new(BEST, "line_bytes", &named, &*machine.line_bytes.source))?;
        let reads = Reads::of(machine, level).map_err(lacks)?;
        let inferred = |ns| Fitted::new(ns, Provenance::Inferred);
        let linear = Contention { c: inferred(reads.remote), b: inferred(reads.local) };
        let in_turn = SameLine { linear, a: inferred(0.0) };
        Ok(MinMaxModel {
            line_bytes: line as u64,
            reads,
            t_c: SameLine::of(machine, State::E, State::E).unwrap_or(in_turn),
            t_n: multi_line(machine, State::E, State::E).ok(),
            worst: false,
        })
    }

    /// Returns the model with the costs of a fitted one, between ranks at `level`.
    pub fn of_model(model: &Model, level: Level) -> MinMaxModel {
        let costs = model.level(level).0;
        let zero = Fitted::new(0.0, Provenance::Inferred);
        MinMaxModel {
            line_bytes: model.line_bytes as u64,
            reads: Reads { local: model.local.value, remote: costs.read.value, invalid: model.invalid.value },
            t_c: SameLine { linear: model.contention, a: zero },
            t_n: costs.lines,
            worst: false,
        }
    }

    /// Returns this model, read as the worst case.
    pub fn at_worst(self) -> MinMaxModel {
        MinMaxModel { worst: true, ..self }
    }

    fn lines(&self, form: Form) -> Result<MultiLine, NoForm> {
        let because = "T_N is not known, by which messages of more than a line are transferred";
        self.t_n.ok_or(NoForm::NotExpressible { model: self.name(), form, because })
    }

    /// A stage of messages.
    fn stage(&self, stage: &Stage, form: Form) -> Result<MinMax, NoForm> {
        let (r, t_c, readers) = (&self.reads, &self.t_c, stage.readers as usize);
        let lines = |bytes: u64| bytes.div_ceil(self.line_bytes) as f64;
        let mut copy = t_c.from_reads(r, readers as f64);
        if stage.bytes > self.line_bytes {
            copy = self.lines(form)?.at(lines(stage.bytes)) + t_c.linear.c.value * (readers as f64 - 1.0);
        }
        if stage.folded > 0 {
            copy += self.lines(form)?.o.value * lines(stage.folded);
        }
        Ok((notify_level(r, t_c, readers) + MinMax { min: copy, max: copy }) * stage.times as f64)
    }
}

/// The slowest way down a tree from `v`, a level of so many children being so long.
pub(crate) fn deepest(v: usize, tree: &[Vec<usize>], level: &dyn Fn(usize) -> MinMax) -> MinMax {
    let below = tree[v].iter().map(|&child| deepest(child, tree, level));
    let (count, far) = below.fold((0, MinMax::default()), |(n, far), next| {
        (n + 1, MinMax { min: far.min.max(next.min), max: far.max.max(next.max) })
    });
    match count {
        0 => MinMax::default(),
        n => level(n) + far,
    }
}

/// The rank that is nobody's child.
fn root(tree: &[Vec<usize>]) -> usize {
    let mut child = vec![false; tree.len()];
    tree.iter().flatten().for_each(|&c| child[c] = true);
    child.iter().position(|&is| !is).unwrap_or(0)
}

impl Published for MinMaxModel {
    fn name(&self) -> &'static str {
        if self.worst {
            WORST
        } else {
            BEST
        }
    }

    /// T_N of its lines; a line or less is read: R_R + R_L.
    fn message(&self, bytes: u64) -> Reading {
        let lines = bytes.div_ceil(self.line_bytes).max(1);
        let nanos = match (lines, self.t_n) {
            (1, _) => self.reads.remote + self.reads.local,
            (n, Some(t_n)) => t_n.at(n as f64),
            (n, None) => n as f64 * (self.reads.remote + self.reads.local),
        };
        Reading { nanos, extrapolated: lines > 1 && self.t_n.is_none() }
    }

    fn collective(&self, call: &Call<'_>) -> Result<Reading, NoForm> {
        let (r, t_c, p, form) = (&self.reads, &self.t_c, call.ranks, call.form);
        if p <= 1 {
            return Ok(Reading { nanos: 0.0, extrapolated: false });
        }
        let once = |ns: f64| MinMax { min: ns, max: ns };
        let line = call.bytes <= self.line_bytes;
        let plan = call.schedule.filter(|_| form.is_of_plan());
        let of = |kind| (Some(kind), Some(Tree::binomial(p).children));
        let (kind, tree) = match form {
            Form::BinomialBcast => of(Collective::Bcast),
            Form::BinomialReduce => of(Collective::Reduce),
            Form::BinomialBarrier => of(Collective::Barrier),
            _ => (plan.map(|s| s.collective), plan.and_then(|s| s.children.clone())),
        };
        let found = match form {
            Form::FlatBcast if line => once(r.invalid) + small_broadcast_level(r, t_c, p - 1),
            Form::FlatBcast => {
                let lines = call.bytes.div_ceil(self.line_bytes) as usize;
                flat_broadcast(r, t_c, &self.lines(form)?, p, lines)
            }
            Form::Cyclic if !line => {
                let lines = call.bytes.div_ceil(self.line_bytes) as usize;
                pipelined_broadcast(r, t_c, &self.lines(form)?, p, lines)
            }
            Form::DisseminationBarrier => barrier(r, 1, ceil_log2(p) as usize),
            _ => match (kind, tree) {
                (Some(Collective::Bcast), Some(tree)) if line => {
                    once(r.invalid) + deepest(root(&tree), &tree, &|k| small_broadcast_level(r, t_c, k))
                }
                (Some(Collective::Reduce), Some(tree)) if line => {
                    let (t_n, root) = (self.lines(form)?, root(&tree));
                    let level = |k| reduction_level(r, t_c, &t_n, Folding::Slope, k);
                    once(r.remote) + deepest(root, &tree, &level)
                }
                // Children report as they acknowledge, and hear as they are notified: T_nb and T_fw of each level.
                (Some(Collective::Barrier), Some(tree)) => {
                    deepest(root(&tree), &tree, &|k| notify_back(r, k + 1) + notify_forward(r, t_c, &[k]))
                }
                _ => {
                    let stages = call.stages()?;
                    let times: Result<Vec<MinMax>, NoForm> =
                        stages.iter().map(|stage| self.stage(stage, form)).collect();
                    times?.into_iter().fold(once(r.invalid), |sum, time| sum + time)
                }
            },
        };
        Ok(Reading { nanos: if self.worst { found.max } else { found.min }, extrapolated: false })
    }
}

#[cfg(test)]
mod tests {
    use super::super::{small_broadcast, small_broadcast_level};
    use super::*;
    use lineweave_core::machine::shipped;

    fn phi() -> MinMaxModel {
        let machine = shipped().iter().find(|m| m.name == "xeon-phi-5110p").unwrap();
        MinMaxModel::of_machine(machine, Level::Package).unwrap()
    }

    /// A flat tree is Eq. 4.7 with one level; a binomial one of 8 has levels of 3, 2 and 1 children on its longest way.
    #[test]
    fn trees_are_levels_in_a_row() {
        let m = phi();
        let at = |m: MinMaxModel, form, p, bytes| m.collective(&Call::new(form, p, bytes)).unwrap().nanos;
        let flat = small_broadcast(&m.reads, &m.t_c, &[7]);
        assert_eq!(at(m, Form::FlatBcast, 8, 8), flat.min);
        assert_eq!(at(m.at_worst(), Form::FlatBcast, 8, 8), flat.max);
        let level = |k| small_broadcast_level(&m.reads, &m.t_c, k).min;
        let by_hand = m.reads.invalid + level(3) + level(2) + level(1);
        assert!((at(m, Form::BinomialBcast, 8, 64) - by_hand).abs() < 1e-9);
        // Among 5 ranks the way over rank 2 has two levels: 3 children, then 1.
        assert!((at(m, Form::BinomialBcast, 5, 64) - (m.reads.invalid + level(3) + level(1))).abs() < 1e-9);
        assert!(at(m, Form::DisseminationBarrier, 8, 0) < at(m.at_worst(), Form::DisseminationBarrier, 8, 0));
    }

    #[test]
    fn what_table_4_1_lacks_is_composed() {
        let m = phi();
        // Three stages of one reader that copies two lines; and a stage that folds one of eight lines.
        let (t_n, once) = (m.t_n.unwrap(), notify_level(&m.reads, &m.t_c, 1));
        let at = |form, p, bytes| m.collective(&Call::new(form, p, bytes)).unwrap().nanos;
        let by_hand = m.reads.invalid + 3.0 * (once.min + t_n.at(2.0));
        assert!((at(Form::BinomialBcast, 8, 65) - by_hand).abs() < 1e-9);
        let by_hand = m.reads.invalid + once.min + t_n.at(8.0) + 8.0 * t_n.o.value;
        assert!((at(Form::DoublingAllreduce, 2, 512) - by_hand).abs() < 1e-9);
        let error = MinMaxModel { t_n: None, ..m }.collective(&Call::new(Form::BinomialBcast, 8, 65));
        assert!(error.unwrap_err().to_string().contains("T_N"));
        let none = shipped().iter().find(|m| m.mesh.is_some()).unwrap();
        assert!(MinMaxModel::of_machine(none, Level::Package).is_err());
    }
}
