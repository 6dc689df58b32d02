//! A model from a machine's description, for machines that nobody has measured with lineweave's probes.
//!
//! Descriptions mostly know one number: half the round trip of a modified line by compare-and-swap, which is one
//! transfer of ownership. Everything else follows from it by the relations below, marked as inferred, or is
//! assumed and listed.

use super::values::{at_level, by_lines, sums};
use super::{Contention, Fitted, LevelCosts, Model, MultiLine, Provenance, Surface, Values};
use crate::machine::{Machine, State, Status, Value};
use crate::profile::{Fingerprint, Unidentified};
use crate::topology::Level;

/// An exchange over one line takes as long as one ownership transfer: it carries both flags (measured: 53-57
/// beside 52 ns on Emerald Rapids).
const EXCHANGE_PAIRED: f64 = 1.0;
/// A flag on a line of its own costs an ownership transfer and a read (128 beside 52 ns there, 52 beside 40 on
/// Milan): two transfers.
const TRANSFERS_ALONE: f64 = 2.0;

/// Collects what a description does not know.
#[derive(Default)]
struct Missing(Vec<Unidentified>);

impl Missing {
    fn note(&mut self, what: impl Into<String>, because: impl Into<String>) {
        self.0.push(Unidentified { what: what.into(), because: because.into() });
    }

    /// A described value, or a stand-in that is noted.
    fn value(&mut self, what: &str, value: &Value, stand_in: f64) -> Fitted {
        known(value).unwrap_or_else(|| {
            self.note(what, format!("{} ({stand_in} assumed)", value.source));
            Fitted::assumed(stand_in)
        })
    }
}

/// A described value with its interval; `None` where the machine does not know it.
pub fn known(value: &Value) -> Option<Fitted> {
    let v = value.value?;
    let provenance = match value.status {
        Status::Measured => Provenance::Measured,
        Status::Cited => Provenance::Cited,
        Status::Inferred => Provenance::Inferred,
        Status::Unknown => return None,
    };
    Some(Fitted {
        value: v,
        ci_low: value.low.unwrap_or(v).min(v),
        ci_high: value.high.unwrap_or(v).max(v),
        provenance,
    })
}

/// T_N for buffers in these states at sender and receiver, as the machine's table has it.
pub fn several_lines(machine: &Machine, send: State, recv: State) -> Option<MultiLine> {
    let fit = machine.multi_line.iter().find(|f| f.send == send && f.recv == recv)?;
    Some(MultiLine { o: known(&fit.o_ns)?, q: known(&fit.q_ns)?, p: known(&fit.p_ns)? })
}

/// T_C(n) = c n + b - a / n for buffers in these states at the owner and at the readers, as the machine's table has it: c and b,
/// and beside them a, which is zero where the line is in a cache.
pub fn one_line(machine: &Machine, send: State, recv: State) -> Option<(Contention, Fitted)> {
    let fit = machine.contention.iter().find(|f| f.send == send && f.recv == recv)?;
    Some((Contention { c: known(&fit.c_ns)?, b: known(&fit.b_ns)? }, known(&fit.a_ns)?))
}

/// The time of a byte, from a rate in bytes a ns.
fn per_byte(rate: Fitted) -> Fitted {
    let of = |r: f64| 1.0 / r.max(1e-6);
    Fitted {
        value: of(rate.value),
        ci_low: of(rate.ci_high),
        ci_high: of(rate.ci_low),
        provenance: rate.provenance,
    }
}

impl Model {
    /// The model of a described machine. Every level that the description knows is there; a machine of which
    /// no transfer is known gets the assumed costs of [`Values::default`], and says so.
    pub fn from_machine(machine: &Machine) -> Model {
        let mut missing = Missing::default();
        let stand_in = Values::default().model();
        let line_bytes = machine.line_bytes.value.map_or(64, |b| b as usize).max(8);
        let line = line_bytes as f64;
        let transfers: Vec<(Level, Fitted)> =
            Level::ALL.iter().filter_map(|&l| known(machine.transfer(l)).map(|f| (l, f))).collect();
        for &level in &Level::ALL {
            let value = machine.transfer(level);
            if value.value.is_none() {
                missing.note(format!("R_R@{level}"), value.source.clone());
            }
        }
        let nearest = transfers.first().map_or(stand_in.levels[0].read, |t| t.1);
        // Threads of one core share its caches: what was measured between cores belongs to the next level.
        let between_cores = transfers.iter().find(|t| t.0 > Level::Core).or(transfers.first()).copied();
        let across = between_cores.map_or(nearest, |t| t.1);
        let local = missing.value("R_L", &machine.access.local_ns, stand_in.local.value);
        let invalid = missing.value("R_I", &machine.access.memory_ns, stand_in.invalid.value);
        let copy_rate = missing.value("copy rate", &machine.rates.copy_bytes_per_ns, 10.0);
        let fold_rate = missing.value("fold rate", &machine.rates.fold_bytes_per_ns, 8.0);
        let lines = several_lines(machine, State::E, State::E);
        let contention =
            one_line(machine, State::E, State::E).map(|(linear, _)| linear).unwrap_or_else(|| {
                missing.note("T_C", "not described; c = 0.24 R_R (Xeon Phi's ratio) assumed");
                let c = Fitted::assumed(across.value * 0.24);
                Contention { c, b: Fitted::assumed(across.value + local.value - c.value) }
            });
        let issue = lines.map_or(Fitted::assumed(across.value * 0.25), |t| t.o.inferred(1.0));
        if lines.is_none() {
            missing.note("T_N", "not described; one more line costs a quarter of R_R, assumed");
        }
        missing.note("signal, exchange", "not described; transfers of a line stand in");
        missing.note("overhead, wake", "not described; another machine's stand in, assumed");
        let copy_byte = per_byte(copy_rate);
        let mut levels: Vec<LevelCosts> = transfers
            .iter()
            .map(|&(level, t)| {
                let two = t.inferred(TRANSFERS_ALONE);
                let farther = t.value / across.value.max(1e-9);
                let slope = match &lines {
                    Some(t_n) => t_n.o.inferred(farther / line),
                    None => Fitted::assumed(t.value * 0.25 / line),
                };
                let beta = if slope.value < copy_byte.value { copy_byte.inferred(1.0) } else { slope };
                LevelCosts {
                    away: machine.away(level).and_then(known),
                    signal: by_lines(two, two),
                    exchange: by_lines(t.inferred(EXCHANGE_PAIRED), two),
                    lines: if between_cores.is_some_and(|b| b.0 == level) { lines } else { None },
                    ..at_level(level, t, t.inferred(1.0), beta)
                }
            })
            .collect();
        if levels.is_empty() {
            missing.note("R_R", "no transfer is described; assumed as on another machine");
            levels = stand_in.levels.clone();
        }
        let zero = Fitted::assumed(0.0);
        let topology = machine.topology.value.clone().unwrap_or_default();
        let cpus = machine.topology().map_or(0, |t| t.cpus.len());
        Model {
            machine: Fingerprint { cpu: machine.name.clone(), cpus, line_bytes, topology },
            line_bytes,
            local,
            invalid,
            contention,
            issue,
            add: nearest.inferred(1.0),
            levels,
            copy: Surface::line(zero, copy_byte),
            folds: sums(Surface::line(zero, per_byte(fold_rate))),
            unidentified: missing.0,
            ..stand_in
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::shipped;

    #[test]
    fn every_shipped_machine_has_a_model_that_admits_what_it_assumes() {
        for machine in shipped() {
            let model = Model::from_machine(machine);
            assert!(!model.levels.is_empty(), "{}", machine.name);
            assert!(model.levels.windows(2).all(|w| w[0].read.value <= w[1].read.value), "{}", machine.name);
            assert!(!model.unidentified.is_empty(), "{}", machine.name);
            assert_eq!(Model::from_json(&model.to_json()).as_ref(), Ok(&model));
        }
    }

    #[test]
    fn described_values_keep_their_status() {
        let machines = shipped();
        let milan = machines.iter().find(|m| m.name.contains("milan")).unwrap();
        let model = Model::from_machine(milan);
        let l3 = model.level(Level::L3).0;
        assert_eq!((l3.read.value, l3.read.provenance), (25.0, Provenance::Cited));
        assert_eq!(model.copy.cost[0][0].provenance, Provenance::Assumed);
        let phi = Model::from_machine(machines.iter().find(|m| m.name.contains("phi")).unwrap());
        assert_eq!(phi.contention.c.provenance, Provenance::Cited);
        // T_N was measured between cores, not between the threads of one.
        assert_eq!(phi.level(Level::Core).0.lines, None);
        assert_eq!(phi.level(Level::Numa).0.lines.map(|l| l.o.value), Some(76.0));
        let beta = phi.level(Level::Numa).0.hockney.map(|h| h.beta.value);
        assert_eq!(beta, Some(76.0 / 64.0));
    }
}
