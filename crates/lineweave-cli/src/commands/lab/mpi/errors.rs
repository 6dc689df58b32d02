//! The models' mean errors: of all lengths, of messages alone, and by collective.

use super::predictors::Row;
use crate::mpi::MODELS;
use lineweave_core::collective::Collective;
use lineweave_lab::models::error::{mean_proportional, mean_relative};
use serde::Serialize;

/// The lengths for which tau-Lop's mean error was published: messages, not barriers.
const LONG: std::ops::RangeInclusive<u64> = 4 << 10..=1 << 20;

/// The errors of a model. Printed as `lab-mpi-error` by `lineweave lab mpi`.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Wrong {
    pub model: &'static str,
    /// The collective; `None` for all together.
    pub collective: Option<Collective>,
    pub from_bytes: u64,
    pub to_bytes: u64,
    /// Number of pairs of a measured and a predicted time.
    pub pairs: usize,
    /// Mean of |measured - predicted| / measured.
    pub mean_relative: f64,
    /// Mean of the greater over the less.
    pub mean_proportional: f64,
}

/// Returns the errors of each model, for all collectives and then by collective.
pub fn errors(rows: &[Row], collectives: &[Collective]) -> Vec<Wrong> {
    let (least, most) = (rows.iter().map(|r| r.bytes).min(), rows.iter().map(|r| r.bytes).max());
    let all = least.unwrap_or(0)..=most.unwrap_or(0);
    let mut list = Vec::new();
    for (i, model) in MODELS.into_iter().enumerate() {
        let kinds = [(None, all.clone()), (None, LONG)];
        let by = collectives.iter().map(|&c| (Some(c), all.clone()));
        for (collective, lengths) in kinds.into_iter().chain(by) {
            let of =
                |row: &&Row| collective.is_none_or(|c| row.collective == c) && lengths.contains(&row.bytes);
            let pairs: Vec<(f64, f64)> =
                rows.iter().filter(of).filter_map(|r| Some((r.measured_ns?, r.predicted_ns[i]?))).collect();
            if let (Some(relative), Some(proportional)) = (mean_relative(&pairs), mean_proportional(&pairs)) {
                list.push(Wrong {
                    model,
                    collective,
                    from_bytes: *lengths.start(),
                    to_bytes: *lengths.end(),
                    pairs: pairs.len(),
                    mean_relative: relative,
                    mean_proportional: proportional,
                });
            }
        }
    }
    list
}
