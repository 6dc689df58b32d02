//! Estimates of the published models from a machine's description: what is printed of it, and nothing assumed.

use super::super::cache_line::MinMaxModel;
use super::super::published::NotKnown;
use super::super::put_get::{self, PutGet};
use super::super::tau_lop::{TauLop, Way};
use super::super::{LogNp, MLogNp};
use super::Estimates;
use lineweave_core::machine::{Machine, State, Value};
use lineweave_core::model::{known, AlphaBeta, Fitted, Point, Provenance, Surface};
use lineweave_core::topology::Level;

impl Estimates {
    /// Returns the published models between ranks at `level` that a machine's description gives: Hockney from T_N's asymptote,
    /// or else a line's transfer and the copy rate; tau-Lop, and log_nP as its case tau = 1 (Eq. 5 and 11), from
    /// published L(m, tau) of the ring set-up, or else of another. The LogP family needs overheads, which no description
    /// has. Put/get needs a mesh with message buffers, min-max R, T_C and T_N. Nothing is assumed.
    pub fn from_machine(machine: &Machine, level: Level, segment: u64) -> Estimates {
        let named = format!("machine `{}`", machine.name);
        let lacks = |model, value: &str, because: String| NotKnown::new(model, value, &named, because);
        let family = |model| {
            let because =
                "descriptions have no overhead of a message; give a profile of the machine".to_owned();
            lacks(model, "o", because)
        };
        let surface = published(machine);
        let no_surface = |model| {
            let listed = machine.concurrent.iter().find(|c| c.l_ns.value.is_none());
            let because = listed
                .map_or_else(|| "its file has no table `concurrent`".to_owned(), |c| c.l_ns.source.clone());
            lacks(model, "L(m, tau)", because)
        };
        let log_np =
            surface.clone().map(|s| LogNp { overhead: alone(&s) }).ok_or_else(|| no_surface("log_nP"));
        let min_max = MinMaxModel::of_machine(machine, level);
        let tau_lop = surface.map(|copy| TauLop {
            copy,
            sync: Vec::new(), // A published L(m, tau) holds its synchronisation.
            start: Fitted::new(0.0, Provenance::Inferred),
            way: Way { segment, ..Way::MPICH },
        });
        Estimates {
            machine: named.clone(),
            level,
            hockney: hockney_of(machine, level).map_err(|(value, because)| lacks("Hockney", &value, because)),
            logp: Err(family("LogP")),
            loggp: Err(family("LogGP")),
            plogp: Err(family("PLogP")),
            mlog_np: match &log_np {
                Ok(channel) => Ok(MLogNp { channels: vec![(level, channel.clone())] }),
                Err(_) => Err(no_surface("mlog_nP")),
            },
            log_np,
            tau_lop: tau_lop.ok_or_else(|| no_surface("tau-Lop")),
            put_get: PutGet::of(machine).ok_or_else(|| {
                lacks(put_get::NAME, "o^mpb", "its file has no table `mesh` with all of Table 1".to_owned())
            }),
            min_max_worst: min_max.clone().map(MinMaxModel::at_worst),
            min_max,
            gamma: known(&machine.rates.fold_bytes_per_ns)
                .map(|rate| Surface::line(Fitted::new(0.0, rate.provenance), per_byte(rate))),
            unidentified: Vec::new(),
        }
    }
}

/// The published L(m, tau): of the ring set-up, which the paper prefers, else ping, else bcast.
fn published(machine: &Machine) -> Option<Surface> {
    ["ring", "ping", "bcast"].iter().find_map(|pattern| {
        let points: Vec<Point> = machine
            .concurrent
            .iter()
            .filter(|c| c.pattern == *pattern)
            .filter_map(|c| Some(Point { bytes: c.bytes, tau: c.tau, cost: known(&c.l_ns)?, weight: 1.0 }))
            .collect();
        Surface::from_points(&points)
    })
}

/// The first tau of a surface.
fn alone(surface: &Surface) -> Surface {
    let cost = surface.cost.iter().map(|row| vec![row[0]]).collect();
    Surface { bytes: surface.bytes.clone(), taus: vec![surface.taus[0]], cost }
}

fn per_byte(rate: Fitted) -> Fitted {
    let of = |r: f64| 1.0 / r.max(1e-9);
    Fitted { value: of(rate.value), ci_low: of(rate.ci_high), ci_high: of(rate.ci_low), ..rate }
}

/// alpha and beta, or which value is missing and why.
fn hockney_of(machine: &Machine, level: Level) -> Result<AlphaBeta, (String, String)> {
    let exclusive = machine.multi_line.iter().find(|m| m.send == State::E && m.recv == State::E);
    if let (Some(line), Some(fit)) = (machine.line_bytes.value, exclusive) {
        if let (Some(o), Some(q)) = (known(&fit.o_ns), known(&fit.q_ns)) {
            return Ok(AlphaBeta { alpha: q.inferred(1.0), beta: o.inferred(1.0 / line) });
        }
    }
    let need = |name: String, value: &Value| known(value).ok_or_else(|| (name, value.source.clone()));
    let alpha = need(format!("transfer.{level}_ns"), machine.transfer(level))?;
    let rate = need("rates.copy_bytes_per_ns".to_owned(), &machine.rates.copy_bytes_per_ns)?;
    Ok(AlphaBeta { alpha: alpha.inferred(1.0), beta: per_byte(rate).inferred(1.0) })
}
