//! Models of an MPI's channel, fitted to the times of its messages.

use super::Curves;
use lineweave_core::collective::Collective;
use lineweave_lab::models::channel::{fit, Channel, Exchange, Timed};
use lineweave_lab::models::{Call, Form, Published};

/// The models, in the order of predictions.
pub const MODELS: [&str; 3] = ["tau-Lop", "tau-Lop, written", "LogGP"];

/// Returns the length of the whole message, which is a closed form's.
pub fn whole(collective: Collective, ranks: usize, bytes: u64) -> u64 {
    match collective {
        Collective::Allgather | Collective::Alltoall => bytes * ranks as u64,
        _ => bytes,
    }
}

/// The models of a channel.
#[derive(Clone, PartialEq, Debug)]
pub struct Models {
    /// The channel of messages that their sender leaves unchanged: the peer may still have their cache lines.
    pub kept: Channel,
    /// The channel of messages that their sender has just written, as where a collective forwards or reduces: the receiver must fetch
    /// their lines.
    pub written: Channel,
}

impl Models {
    /// Returns the models that are fitted to the times of the channel's tasks; `None` where messages have none.
    pub fn fit(curves: &Curves) -> Option<Models> {
        let exchanges = |prefix: &str, alone: Option<&str>| -> Vec<Exchange> {
            let tau = |task: &str| match alone {
                Some(alone) if task == alone => Some(1),
                _ => task.strip_prefix(prefix)?.parse().ok(),
            };
            let of = curves.cells().filter_map(|(cell, nanos)| {
                Some(Exchange { tau: tau(&cell.task)?, bytes: cell.bytes, nanos })
            });
            of.collect()
        };
        let timed = |ring: &str, alone: &str| {
            fit(&Timed {
                exchanges: exchanges(ring, Some(alone)),
                folds: exchanges("fold", None),
                copies: exchanges("copy", None),
                send: curves.at("send", 8)?,
                gap: curves.at("stream", 0)?,
            })
        };
        Some(Models { kept: timed("ring", "pingpong")?, written: timed("turn", "passing")? })
    }

    /// Returns the predictions of a form by each of [`MODELS`]; that of written messages includes the copies within a rank's own memory.
    pub fn predict(&self, collective: Collective, form: Form, ranks: usize, bytes: u64) -> [Option<f64>; 3] {
        let whole = whole(collective, ranks, bytes);
        let call = Call { gamma: self.kept.gamma.as_ref(), ..Call::new(form, ranks, whole) };
        let of = |model: &dyn Published| model.collective(&call).ok().map(|reading| reading.nanos);
        let own = self.written.own_copies(form, ranks, whole);
        let written = of(&self.written.tau_lop).and_then(|ns| Some(ns + own?));
        [of(&self.kept.tau_lop), written, of(&self.kept.loggp)]
    }
}
