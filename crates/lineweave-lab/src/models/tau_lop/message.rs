//! Messages and collectives as expressions of L: Rico-Gallego & Diaz-Martin 2015, Eq. 9 to 24.
//!
//! Exact whatever L is. A message goes in k segments over n transfers each (n = 2 through an intermediate buffer, n = 1
//! where the kernel copies). Not valid for sizes where o(m) counts, which [`TauLop`](super::TauLop) adds.

use super::super::published::{segments, NoForm};
use super::super::stages::{Form, Stage};
use super::pipeline;
use super::transfers::Transfers;

/// Method by which an implementation sends a message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Way {
    /// S: bytes of a segment; 0 sends messages whole.
    pub segment: u64,
    /// n: transfers that each segment needs.
    pub transfers: u64,
    /// True if messages follow each other so closely that their first and last transfers overlap (Eq. 22 in place of
    /// Eq. 10).
    pub back_to_back: bool,
}

impl Way {
    /// Through an intermediate buffer in segments of 8 KiB: MPICH as the paper configures it.
    pub const MPICH: Way = Way { segment: 8192, transfers: 2, back_to_back: false };

    fn split(&self, bytes: u64) -> (u64, u64) {
        let (k, s) = segments(bytes, self.segment);
        (k, s.round() as u64)
    }

    /// T(m) without o(m): the sum over its stages of L(S, tau_j) (Eq. 9), where stage j of s = k + n - 1 has as many
    /// transfers under way as there are segments between their first and last. For n = 2 Eq. 10, with k = 1 Eq. 11;
    /// k L(S, n) back to back (Eq. 22).
    pub fn message(&self, bytes: u64) -> Transfers {
        let (k, s) = self.split(bytes);
        let n = self.transfers.max(1);
        if self.back_to_back {
            return Transfers::one(s, n).times(k);
        }
        let mut sum = Transfers::none();
        // Stages that are alike are counted, not listed: the first and the last few, and all between.
        let edge = k.min(n) - 1;
        for tau in 1..=edge {
            sum = sum.then(&Transfers::one(s, tau).times(2));
        }
        sum.then(&Transfers::one(s, k.min(n)).times(k + n - 1 - 2 * edge))
    }

    /// A send and then a receive of every one of `ranks` ranks: 2 k L(S, P) (Eq. 17).
    pub fn send_receive(&self, bytes: u64, ranks: u64) -> Transfers {
        let (k, s) = self.split(bytes);
        Transfers::one(s, 1).times(self.transfers.max(1) * k).beside(ranks)
    }

    /// One stage of messages: A || T(m) (Eq. 12), or all ranks' sends and receives; then its folds, all at once.
    pub fn stage(&self, stage: &Stage) -> Transfers {
        let messages = match stage.exchange {
            true => self.send_receive(stage.bytes, stage.messages),
            false => self.message(stage.bytes).beside(stage.messages),
        };
        messages.then(&Transfers::fold(stage.folded, stage.messages)).times(stage.times)
    }

    /// A collective: Eq. 13 to 18 and 21 as sums over stages; a flat broadcast as the collective transfer of Fig. 18
    /// (the root fills its buffer while the P - 1 others empty it, segment by segment); Open MPI's tree as the pipeline of
    /// Fig. 14.
    ///
    /// # Errors
    /// [`NoForm::Ranks`] for recursive doubling among ranks that are no power of two.
    pub fn collective(&self, form: Form, ranks: usize, bytes: u64) -> Result<Transfers, NoForm> {
        let (k, s) = self.split(bytes);
        match form {
            _ if ranks <= 1 => Ok(Transfers::none()),
            Form::TwoSegmentTree { degree } => Ok(pipeline::tree(ranks, degree, k, s)),
            // Messages that are one transfer have no buffer that the root fills for all.
            Form::FlatBcast if self.transfers > 1 => {
                let readers = ranks as u64 - 1;
                let both = Transfers::one(s, readers + 1).times(k - 1);
                Ok(Transfers::one(s, 1).then(&both).then(&Transfers::one(s, readers)))
            }
            _ => Ok(self.stages(&form.stages(ranks, bytes)?)),
        }
    }

    /// Stages, one after the other.
    pub fn stages(&self, stages: &[Stage]) -> Transfers {
        stages.iter().fold(Transfers::none(), |sum, stage| sum.then(&self.stage(stage)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: u64 = 8192;

    fn l(count: u64, tau: u64) -> Transfers {
        Transfers::one(S, tau).times(count)
    }

    fn sum(list: impl IntoIterator<Item = Transfers>) -> Transfers {
        list.into_iter().fold(Transfers::none(), |a, b| a.then(&b))
    }

    #[test]
    fn messages_of_several_transfers_are_pipelines() {
        let way = Way::MPICH;
        // Three transfers a segment: stages of 1, 2, 3, 3, 2, 1.
        let three = Way { transfers: 3, ..way };
        assert_eq!(three.message(4 * S), sum([l(2, 1), l(2, 2), l(2, 3)]));
        for (k, n) in (1..9).flat_map(|k| (1..6).map(move |n| (k, n))) {
            let moved = Way { transfers: n, ..way }.message(k * S).moved_bytes();
            assert_eq!(moved, k * n * S, "every segment moves n times");
        }
    }

    #[test]
    fn folds_and_flat_trees() {
        let x = Way::MPICH.collective(Form::BinomialReduce, 4, 64).unwrap();
        assert_eq!(x.to_string(), "2 L(64, 1) + 2 L(64, 2) + gamma(64, 1) + gamma(64, 2)");
        let flat = Way::MPICH.collective(Form::FlatBcast, 5, 3 * S).unwrap();
        assert_eq!(flat, sum([l(1, 1), l(2, 5), l(1, 4)]));
    }
}
