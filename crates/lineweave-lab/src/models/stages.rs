//! Stages of published collective algorithms: how many messages, how long, how far. Closed forms
//! of every message model are sums over these.
//!
//! Algorithms as Rico-Gallego & Diaz-Martin 2015, section 4, and Thakur, Rabenseifner & Gropp 2005, sections 4.1 to
//! 4.5, give them. Where the first print a full tree (Eq. 13: 2^i messages in stage i), the messages that
//! really occur among P ranks are counted: in the last stage there are P - 2^i.

mod messages;

use lineweave_core::algorithm::trees::Tree;
use lineweave_core::collective::Collective;
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
    /// True if no sender writes these bytes in the course of a call: it sends what the caller gave, and neither what it received, nor folded, nor
    /// copied. Lines that a receiver fetched before are still good then.
    pub kept: bool,
}

impl Stage {
    fn new(messages: u64, bytes: u64, hop: u64) -> Stage {
        Stage {
            messages,
            bytes,
            exchange: false,
            folded: 0,
            readers: 1,
            hop: hop as usize,
            times: 1,
            kept: false,
        }
    }
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
    fn forms_say_for_whom_they_are() {
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
