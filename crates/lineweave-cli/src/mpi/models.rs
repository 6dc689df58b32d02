//! Models of an MPI's channel, fitted to the times of its messages.

use super::{Algorithm, Curves};
use lineweave_core::collective::Collective;
use lineweave_lab::models::channel::{fit, Channel, Exchange, Timed};
use lineweave_lab::models::{Call, Published, Stage};

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

    /// Returns the predictions for an algorithm by each of [`MODELS`]: by tau-Lop of messages that are kept or written, as the stages of its form say, of
    /// written messages alone, both with the copies within a rank's own memory, and by LogGP.
    pub fn predict(&self, algorithm: &Algorithm, ranks: usize, bytes: u64) -> [Option<f64>; 3] {
        let Some(form) = algorithm.form else { return [None; 3] };
        let whole = whole(algorithm.collective, ranks, bytes);
        let call = Call { gamma: self.kept.gamma.as_ref(), ..Call::new(form, ranks, whole) };
        let own = self.written.own_copies(form, ranks, whole);
        let written =
            self.written.tau_lop.collective(&call).ok().and_then(|reading| Some(reading.nanos + own?));
        let loggp = self.kept.loggp.collective(&call).ok().map(|reading| reading.nanos);
        let copied = if form.reduces_up() && algorithm.copies.is_none() { Some(0.0) } else { own };
        let stage = |stage: &Stage| {
            let kept = algorithm.copies.map_or(stage.kept, |copies| !copies);
            let model = if kept { &self.kept.tau_lop } else { &self.written.tau_lop };
            Some(model.cost(&model.way.stage(stage), &call).ok()?.nanos)
        };
        let stages = form.stages(ranks, whole).ok();
        let sent: Option<f64> = stages.and_then(|stages| stages.iter().map(stage).sum());
        [sent.and_then(|ns| Some(ns + copied?)), written, loggp]
    }
}
