//! Predictions for algorithms, by models of an MPI's channel that are fitted to all rounds and to each.

use crate::bench::mpi::median;
use crate::mpi::{Algorithm, Models, Runs};
use lineweave_core::collective::Collective;
use serde::Serialize;

/// One algorithm at one length. Printed as `lab-mpi-algorithm` by `lineweave lab mpi`; for an MPI whose settings are not known, one closed form.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Row {
    pub collective: Collective,
    /// The library's name of the algorithm.
    pub algorithm: String,
    /// The value that the setting takes for it; empty where it is a form that cannot be forced.
    pub value: String,
    /// The closed form that predicts the time, if there is one.
    pub form: Option<String>,
    /// Length of the message or of a block.
    pub bytes: u64,
    /// Time from the arrival of the last rank to the departure of the last; `None` where it cannot be forced.
    pub measured_ns: Option<f64>,
    /// The predictions by tau-Lop, by tau-Lop as if senders had written all messages, and by LogGP.
    pub predicted_ns: [Option<f64>; 3],
}

/// Models of the channel, and the launches to which they are fitted.
pub struct Predictors {
    /// Models of the medians of all rounds.
    pub all: Models,
    /// Models of each round, if each has one.
    by_round: Vec<Models>,
    /// The times as they were measured.
    pub raw: Runs,
}

impl Predictors {
    /// Fits the models; `None` where messages have no times.
    pub fn fit(raw: Runs) -> Option<Predictors> {
        let rounds = raw.channel.launches("send", 8)?.len();
        let by_round = (0..rounds).map(|round| Models::fit(&raw.channel.launch(round))).collect();
        Some(Predictors {
            all: Models::fit(&raw.channel)?,
            by_round: Option::unwrap_or_default(by_round),
            raw,
        })
    }

    /// Returns the predictions for an algorithm. Messages and collectives can take three times as long a minute later, so where the algorithm was timed in each round, that
    /// round's times are predicted from its messages: the prediction is the measured time multiplied by the rounds' median of predicted over measured.
    pub fn predict(
        &self,
        algorithm: &Algorithm,
        ranks: usize,
        bytes: u64,
        measured_ns: Option<f64>,
    ) -> [Option<f64>; 3] {
        let predict = |models: &Models| models.predict(algorithm, ranks, bytes);
        let setting = self.raw.settings.iter().find(|s| s.algorithm == *algorithm);
        let times = setting.and_then(|s| s.times.as_ref().ok()?.launches(algorithm.collective.name(), bytes));
        let (Some(times), Some(measured_ns)) =
            (times.filter(|t| t.len() == self.by_round.len()), measured_ns)
        else {
            return predict(&self.all);
        };
        let rounds: Vec<_> = self.by_round.iter().map(predict).zip(times).collect();
        [0, 1, 2].map(|model| {
            let ratios: Option<Vec<f64>> =
                rounds.iter().map(|(all, time)| Some(all[model]? / *time)).collect();
            ratios.map(|ratios| measured_ns * median(&ratios))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mpi::{Cell, Curves, Setting};
    use lineweave_lab::models::Form;

    /// Checks three rounds, of which the last takes three times as long altogether.
    #[test]
    fn a_rounds_times_are_predicted_from_its_messages() {
        let slowness = [1.0, 1.0, 3.0];
        let mut channel = Curves::default();
        for slow in slowness {
            for bytes in std::iter::once(0).chain((3..=22).map(|i| 1u64 << i)) {
                for task in ["pingpong", "passing", "ring2", "turn2"] {
                    channel.push(Cell::new(task, bytes), slow * (500.0 + 0.1 * bytes as f64));
                }
            }
            [("copy2", 8, 1.0), ("send", 8, 60.0), ("stream", 0, 100.0)]
                .into_iter()
                .for_each(|(task, bytes, nanos)| channel.push(Cell::new(task, bytes), slow * nanos));
        }
        let models = Models::fit(&channel.launch(0)).unwrap();
        let algorithm = Algorithm {
            collective: Collective::Bcast,
            name: "a".into(),
            value: "1".into(),
            form: Some(Form::BinomialBcast),
            calls: &[],
            copies: None,
            least: 0,
        };
        let right = models.predict(&algorithm, 2, 4096)[0].unwrap();
        let mut times = Curves::default();
        // The collective takes twice what its messages predict, and by chance the slow round is the median of other launches.
        slowness.iter().for_each(|slow| times.push(Cell::new("bcast", 4096), 2.0 * slow * right));
        let settings = vec![Setting { algorithm: algorithm.clone(), times: Ok(times) }];
        let raw = Runs { channel, settings, ..Runs::default() };
        let predictors = Predictors::fit(raw).unwrap();
        let measured = 6.0 * right;
        let found = predictors.predict(&algorithm, 2, 4096, Some(measured))[0].unwrap();
        assert!((found / measured - 0.5).abs() < 1e-9, "{found} of {measured}");
        // What was not timed is predicted from the medians of all rounds.
        let other = Algorithm { value: "2".into(), ..algorithm };
        assert_eq!(predictors.predict(&other, 2, 4096, None)[0], Some(right));
    }
}
