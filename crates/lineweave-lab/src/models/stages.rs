//! Stages of published collective algorithms: how many messages, how long, how far. Closed forms
//! of every message model are sums over these.
//!
//! Algorithms as Rico-Gallego & Diaz-Martin 2015, section 4, and Thakur, Rabenseifner & Gropp 2005, sections 4.1 to
//! 4.5, give them. Where the first print a full tree (Eq. 13: 2^i messages in stage i), the messages that
//! really occur among P ranks are counted: in the last stage there are P - 2^i.

mod messages;

use super::published::NoForm;
use lineweave_core::algorithm::trees::Tree;
use lineweave_core::collective::Collective;
use lineweave_core::units::ceil_log2;
use std::fmt;

/// An algorithm with a closed form.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Form {
    /// Broadcast, the root sending to one after the other.
    FlatBcast,
    /// Broadcast down a binomial tree (Rico-Gallego & Diaz-Martin Eq. 13).
    BinomialBcast,
    /// Scatter down a binomial tree, halving (Eq. 16); `bytes` is the whole message.
    Scatter,
    /// Recursive-doubling allgather (Eq. 18); `bytes` is what everybody has in the end. Powers of two.
    DoublingAllgather,
    /// Ring allgather (Eq. 21); `bytes` is what everybody has in the end.
    RingAllgather,
    /// MPICH's broadcast of medium messages: scatter, then recursive doubling. Powers of two.
    ScatterDoublingBcast,
    /// MPICH's broadcast of long messages: scatter, then ring.
    ScatterRingBcast,
    /// Open MPI's shared-memory broadcast down a tree of this degree (section 4.2).
    TwoSegmentTree {
        /// Children of a rank.
        degree: usize,
    },
    /// Reduce up a binomial tree (Thakur et al., section 4.4).
    BinomialReduce,
    /// Allreduce by recursive doubling (Thakur et al., section 4.5). Powers of two.
    DoublingAllreduce,
    /// Allreduce as reduce-scatter by halving and allgather by doubling (Thakur et al., section 4.5). Powers of two.
    Rabenseifner,
    /// Allreduce around a ring, reduce-scatter then allgather.
    RingAllreduce,
    /// Dissemination barrier: ceil(log2 P) rounds of empty messages.
    DisseminationBarrier,
    /// Arrival up and release down a binomial tree.
    BinomialBarrier,
    /// Broadcast down a k-nomial tree, whole messages; of radix 2 the binomial one.
    KnomialBcast {
        /// k: a round multiplies the ranks that have it by this.
        radix: usize,
    },
    /// Broadcast down a complete tree of this degree, whole messages, children one after the other; of degree 1 a chain.
    TreeBcast {
        /// Children of a rank.
        degree: usize,
    },
    /// Reduce whose root takes from one rank after the other.
    FlatReduce,
    /// Reduce up a k-nomial tree.
    KnomialReduce {
        /// Radix k of the tree.
        radix: usize,
    },
    /// Reduce up a complete tree of this degree.
    TreeReduce {
        /// Children of a rank.
        degree: usize,
    },
    /// Reduce as reduce-scatter by halving and a binomial gather (Thakur et al., section 4.4). Powers of two.
    RabenseifnerReduce,
    /// Allreduce as a binomial reduce and a binomial broadcast.
    ReduceBcast,
    /// Bruck's allgather: ceil(log2 P) stages (Thakur et al., section 4.1); `bytes` is what everybody has in the end.
    BruckAllgather,
    /// Neighbour-exchange allgather: P / 2 stages. Even numbers of ranks.
    NeighbourAllgather,
    /// Allgather as a flat gather and a binomial broadcast.
    GatherBcast,
    /// Alltoall in P - 1 exchanges of a block, one after the other or all begun at once; `bytes` is what a rank gives in all.
    PairwiseAlltoall,
    /// Bruck's alltoall: ceil(log2 P) stages of about half of all blocks (Thakur et al., section 4.2).
    BruckAlltoall,
    /// Barrier by a message of each rank to one and one back.
    FlatBarrier,
    /// Barrier of two empty messages around a ring.
    DoubleRingBarrier,
    /// Slices that readers fetch from the root and from each other (Ramos & Hoefler Eq. 4.8); stages of its plan.
    Cyclic,
    /// OC-Bcast down a tree of this degree (Petrovic et al. Eq. 13 and 15); stages of its plan.
    OcBcast {
        /// Children of a rank.
        degree: usize,
    },
    /// No printed form: the messages of its plan ([`Schedule`](super::Schedule)).
    Plan,
}

impl Form {
    /// The name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Form::FlatBcast => "flat bcast",
            Form::BinomialBcast => "binomial bcast",
            Form::Scatter => "binomial scatter",
            Form::DoublingAllgather => "recursive-doubling allgather",
            Form::RingAllgather => "ring allgather",
            Form::ScatterDoublingBcast => "scatter + recursive-doubling bcast",
            Form::ScatterRingBcast => "scatter + ring bcast",
            Form::TwoSegmentTree { .. } => "two-segment tree bcast",
            Form::BinomialReduce => "binomial reduce",
            Form::DoublingAllreduce => "recursive-doubling allreduce",
            Form::Rabenseifner => "Rabenseifner allreduce",
            Form::RingAllreduce => "ring allreduce",
            Form::DisseminationBarrier => "dissemination barrier",
            Form::BinomialBarrier => "binomial barrier",
            Form::KnomialBcast { .. } => "k-nomial bcast",
            Form::TreeBcast { .. } => "tree bcast",
            Form::FlatReduce => "flat reduce",
            Form::KnomialReduce { .. } => "k-nomial reduce",
            Form::TreeReduce { .. } => "tree reduce",
            Form::RabenseifnerReduce => "Rabenseifner reduce",
            Form::ReduceBcast => "reduce + bcast allreduce",
            Form::BruckAllgather => "Bruck allgather",
            Form::NeighbourAllgather => "neighbour-exchange allgather",
            Form::GatherBcast => "gather + bcast allgather",
            Form::PairwiseAlltoall => "pairwise alltoall",
            Form::BruckAlltoall => "Bruck alltoall",
            Form::FlatBarrier => "flat barrier",
            Form::DoubleRingBarrier => "double-ring barrier",
            Form::Cyclic => "cyclic bcast",
            Form::OcBcast { .. } => "OC-Bcast",
            Form::Plan => "the messages of its plan",
        }
    }

    /// Returns whether its stages are those of a plan.
    pub fn is_of_plan(self) -> bool {
        matches!(self, Form::Cyclic | Form::OcBcast { .. } | Form::Plan)
    }

    /// The closed form of an algorithm of the table with its default parameters, by its collective and name: the printed one,
    /// else [`Form::Plan`].
    pub fn of(collective: Collective, algorithm: &str) -> Form {
        match (collective, algorithm) {
            (Collective::Bcast, "flat") => Form::FlatBcast,
            (Collective::Bcast, "binomial") => Form::BinomialBcast,
            (Collective::Bcast, "two-segment-tree") => Form::TwoSegmentTree { degree: 2 },
            (Collective::Bcast, "scatter-doubling") => Form::ScatterDoublingBcast,
            (Collective::Bcast, "scatter-ring") => Form::ScatterRingBcast,
            (Collective::Reduce, "binomial") => Form::BinomialReduce,
            (Collective::Allreduce, "recursive-doubling") => Form::DoublingAllreduce,
            (Collective::Allreduce, "rabenseifner") => Form::Rabenseifner,
            (Collective::Allreduce, "ring") => Form::RingAllreduce,
            (Collective::Barrier, "dissemination") => Form::DisseminationBarrier,
            (Collective::Barrier, "binomial") => Form::BinomialBarrier,
            (Collective::Bcast, "cyclic") => Form::Cyclic,
            (Collective::Bcast, "oc-bcast") => Form::OcBcast { degree: 7 },
            (Collective::Scatter, "binomial") => Form::Scatter,
            (Collective::Allgather, "ring") => Form::RingAllgather,
            _ => Form::Plan,
        }
    }

    /// Returns the stages for `ranks` ranks and a message of `bytes` bytes in all. For one rank there are none.
    ///
    /// The two-segment tree has no messages: what is listed is its approximation by h(P) messages in a row, which is all
    /// that message models can say (section 4.2); h(P) counts levels, one more than there are hops.
    ///
    /// # Errors
    /// [`NoForm::Ranks`] for recursive doubling among ranks that are no power of two, [`NoForm::Unplanned`] for a form of a plan.
    pub fn stages(self, ranks: usize, bytes: u64) -> Result<Vec<Stage>, NoForm> {
        if ranks <= 1 {
            return Ok(Vec::new());
        }
        let p = ranks as u64;
        let block = bytes.div_ceil(p);
        let height = ceil_log2(ranks);
        let power = || match ranks.is_power_of_two() {
            true => Ok(()),
            false => Err(NoForm::Ranks { form: self, expected: "a power of two", ranks }),
        };
        let all = |bytes: u64, hop: u64| Stage { exchange: true, ..Stage::new(p, bytes, hop) };
        Ok(match self {
            Form::Cyclic | Form::OcBcast { .. } | Form::Plan => return Err(NoForm::Unplanned { form: self }),
            Form::FlatBcast => vec![Stage { times: p - 1, ..Stage::new(1, bytes, p - 1) }],
            Form::BinomialBcast => binomial(p, height, bytes),
            Form::Scatter => scatter(p, height, block),
            Form::DoublingAllgather => {
                power()?;
                (0..height).map(|i| all(block << i, 1 << i)).collect()
            }
            Form::RingAllgather => vec![Stage { times: p - 1, ..all(block, 1) }],
            Form::ScatterDoublingBcast => {
                power()?;
                let doubling = (0..height).map(|i| all(block << i, 1 << i));
                scatter(p, height, block).into_iter().chain(doubling).collect()
            }
            Form::ScatterRingBcast => {
                let mut list = scatter(p, height, block);
                list.push(Stage { times: p - 1, ..all(block, 1) });
                list
            }
            Form::TwoSegmentTree { degree } => {
                vec![Stage { times: levels(ranks, degree), ..Stage::new(1, bytes, 1) }]
            }
            Form::BinomialReduce => {
                let mut list = binomial(p, height, bytes);
                list.reverse();
                list.iter_mut().for_each(|s| s.folded = bytes);
                list
            }
            Form::DoublingAllreduce => {
                power()?;
                (0..height).map(|i| Stage { folded: bytes, ..all(bytes, 1 << i) }).collect()
            }
            Form::Rabenseifner => {
                power()?;
                let part = |i: u32| block << (height - 1 - i);
                let halving = (0..height).map(|i| Stage { folded: part(i), ..all(part(i), p >> (i + 1)) });
                halving.chain((0..height).map(|i| all(block << i, 1 << i))).collect()
            }
            Form::RingAllreduce => vec![
                Stage { times: p - 1, folded: block, ..all(block, 1) },
                Stage { times: p - 1, ..all(block, 1) },
            ],
            Form::DisseminationBarrier => (0..height).map(|i| all(0, 1 << i)).collect(),
            Form::BinomialBarrier => {
                let down = binomial(p, height, 0);
                down.iter().rev().chain(&down).copied().collect()
            }
            other => messages::stages(other, ranks, bytes)?,
        })
    }
}

impl fmt::Display for Form {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Form::TwoSegmentTree { degree } => f.pad(&format!("two-segment tree bcast of degree {degree}")),
            Form::KnomialBcast { radix } | Form::KnomialReduce { radix } => {
                f.pad(&format!("{} of radix {radix}", self.name()))
            }
            Form::TreeBcast { degree } | Form::TreeReduce { degree } => {
                f.pad(&format!("{} of degree {degree}", self.name()))
            }
            Form::OcBcast { degree } => f.pad(&format!("OC-Bcast of degree {degree}")),
            other => f.pad(other.name()),
        }
    }
}

/// Messages that go at once, and how often that happens in a row.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Stage {
    /// Messages under way at once.
    pub messages: u64,
    /// Bytes of each; of the longest where they differ.
    pub bytes: u64,
    /// True if every rank sends and then receives, as `MPI_Sendrecv` does.
    pub exchange: bool,
    /// Bytes that each receiver then folds.
    pub folded: u64,
    /// The most receivers that read the same bytes at once.
    pub readers: u64,
    /// Ranks between partners.
    pub hop: usize,
    /// Number of such stages that follow each other.
    pub times: u64,
}

impl Stage {
    fn new(messages: u64, bytes: u64, hop: u64) -> Stage {
        Stage { messages, bytes, exchange: false, folded: 0, readers: 1, hop: hop as usize, times: 1 }
    }
}

/// Stage i: 2^i ranks inform one more each, as many as there are.
fn binomial(p: u64, height: u32, bytes: u64) -> Vec<Stage> {
    (0..height).map(|i| Stage::new((1 << i).min(p - (1 << i)), bytes, 1 << i)).collect()
}

/// Stage i: those who have a part hand on the upper half of it. `block` bytes are for each rank.
fn scatter(p: u64, height: u32, block: u64) -> Vec<Stage> {
    (0..height)
        .map(|i| {
            let half = 1u64 << (height - 1 - i);
            let senders = (0..p).step_by(2 * half as usize).filter(|v| v + half < p).count() as u64;
            Stage::new(senders, half.min(p - half) * block, half)
        })
        .collect()
}

/// Levels of a complete tree of this degree: h(P) = ceil(log_g((g - 1) P + 1)), section 4.2. At least one rank.
pub fn levels(ranks: usize, degree: usize) -> u64 {
    Tree::kary(ranks, degree).depth() as u64 + 1
}

#[cfg(test)]
mod tests {
    use super::*;

    pub(super) fn counts(form: Form, p: usize, bytes: u64) -> Vec<(u64, u64, u64)> {
        form.stages(p, bytes).unwrap().iter().map(|s| (s.messages, s.bytes, s.times)).collect()
    }

    #[test]
    fn stages_are_those_of_the_algorithms() {
        assert_eq!(counts(Form::BinomialBcast, 8, 64), vec![(1, 64, 1), (2, 64, 1), (4, 64, 1)]);
        assert_eq!(counts(Form::BinomialBcast, 5, 64), vec![(1, 64, 1), (2, 64, 1), (1, 64, 1)]);
        assert_eq!(counts(Form::Scatter, 8, 64), vec![(1, 32, 1), (2, 16, 1), (4, 8, 1)]);
        assert_eq!(counts(Form::Scatter, 5, 50), vec![(1, 10, 1), (1, 20, 1), (2, 10, 1)]);
        assert_eq!(counts(Form::DoublingAllgather, 8, 64), vec![(8, 8, 1), (8, 16, 1), (8, 32, 1)]);
        assert_eq!(counts(Form::RingAllgather, 5, 50), vec![(5, 10, 4)]);
        assert_eq!(counts(Form::Rabenseifner, 4, 64), vec![(4, 32, 1), (4, 16, 1), (4, 16, 1), (4, 32, 1)]);
        let error = Form::DoublingAllgather.stages(6, 60).unwrap_err();
        assert_eq!(
            error.to_string(),
            "recursive-doubling allgather is defined for a power of two, found 6 ranks"
        );
        assert!(Form::BinomialBcast.stages(1, 64).unwrap().is_empty());
    }

    /// Every rank but the root receives once, and a scatter moves each block as often as its rank has levels.
    #[test]
    fn every_rank_is_informed_once() {
        for p in 2..200 {
            let messages: u64 = counts(Form::BinomialBcast, p, 1).iter().map(|s| s.0).sum();
            assert_eq!(messages, p as u64 - 1);
            let messages: u64 = counts(Form::Scatter, p, p as u64).iter().map(|s| s.0).sum();
            assert_eq!(messages, p as u64 - 1);
        }
    }

    #[test]
    fn levels_are_those_of_section_4_2() {
        for g in 2..6usize {
            for p in 1..300usize {
                let exact = (((g - 1) * p + 1) as f64).log(g as f64);
                assert!(
                    (levels(p, g) as f64 - exact.ceil()).abs() < 1e-9 || (exact - exact.round()).abs() < 1e-9
                );
            }
        }
        assert_eq!((levels(8, 2), levels(7, 2), levels(1, 2), levels(13, 3)), (4, 3, 1, 3));
    }
}
