//! Stages of the forms: those of Rico-Gallego & Diaz-Martin 2015, and what libraries of MPI have beside them, as Thakur, Rabenseifner &
//! Gropp 2005 and Open MPI's and MPICH's sources give it. Whole messages: how a message is cut is the channel's.

use super::super::published::NoForm;
use super::{levels, Form, Stage};
use lineweave_core::units::ceil_log2;

impl Form {
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
        let must = |holds: bool, expected| match holds {
            true => Ok(()),
            false => Err(NoForm::Ranks { form: self, expected, ranks }),
        };
        let power = || must(ranks.is_power_of_two(), "a power of two");
        let one = |bytes: u64| vec![Stage { times: p - 1, kept: true, ..Stage::new(1, bytes, p - 1) }];
        let all = |bytes: u64, hop: u64| Stage { exchange: true, ..Stage::new(p, bytes, hop) };
        let around = |bytes: u64| vec![Stage { times: p - 1, ..all(bytes, 1) }];
        let doubling = || (0..height).map(|i| all(block << i, 1 << i)).collect::<Vec<_>>();
        let halving = || {
            let part = |i: u32| block << (height - 1 - i);
            (0..height).map(|i| Stage { folded: part(i), ..all(part(i), p >> (i + 1)) }).collect::<Vec<_>>()
        };
        let binomial = |bytes: u64| knomial(p, 2, bytes);
        // Only leaves send what the caller gave.
        let upwards = |mut down: Vec<Stage>| {
            down.reverse();
            down.iter_mut().enumerate().for_each(|(i, stage)| stage.kept = i == 0);
            down
        };
        // The root has received or folded what it then sends.
        let written = |mut stages: Vec<Stage>| {
            stages.iter_mut().for_each(|stage| stage.kept = false);
            stages
        };
        Ok(match self {
            Form::Cyclic | Form::OcBcast { .. } | Form::Plan => return Err(NoForm::Unplanned { form: self }),
            Form::FlatBcast => one(bytes),
            Form::BinomialBcast => binomial(bytes),
            Form::Scatter => {
                let mut stages = scatter(p, height, block);
                stages.iter_mut().take(1).for_each(|stage| stage.kept = true);
                stages
            }
            Form::DoublingAllgather => {
                power()?;
                doubling()
            }
            Form::RingAllgather => around(block),
            Form::PairwiseAlltoall => around(block).into_iter().map(|s| Stage { kept: true, ..s }).collect(),
            Form::ScatterDoublingBcast => {
                power()?;
                [scatter(p, height, block), doubling()].concat()
            }
            Form::ScatterRingBcast => [scatter(p, height, block), around(block)].concat(),
            Form::TwoSegmentTree { degree } => {
                vec![Stage { times: levels(ranks, degree), ..Stage::new(1, bytes, 1) }]
            }
            Form::BinomialReduce => folding(upwards(binomial(bytes))),
            Form::DoublingAllreduce => {
                power()?;
                folding((0..height).map(|i| all(bytes, 1 << i)).collect())
            }
            Form::Rabenseifner => {
                power()?;
                [halving(), doubling()].concat()
            }
            Form::RingAllreduce => [folding(around(block)), around(block)].concat(),
            Form::DisseminationBarrier => (0..height).map(|i| all(0, 1 << i)).collect(),
            Form::BinomialBarrier => [upwards(binomial(0)), binomial(0)].concat(),
            Form::KnomialBcast { radix } => knomial(p, radix, bytes),
            Form::TreeBcast { degree } => tree(p, degree, bytes),
            Form::FlatReduce => folding(one(bytes)),
            Form::KnomialReduce { radix } => folding(upwards(knomial(p, radix, bytes))),
            Form::TreeReduce { degree } => folding(upwards(tree(p, degree, bytes))),
            Form::RabenseifnerReduce => {
                power()?;
                [halving(), written(upwards(scatter(p, height, block)))].concat()
            }
            Form::ReduceBcast => [folding(upwards(binomial(bytes))), written(binomial(bytes))].concat(),
            Form::BruckAllgather => {
                (0..height).map(|i| all(block * (1 << i).min(p - (1 << i)), 1 << i)).collect()
            }
            Form::NeighbourAllgather => {
                must(p % 2 == 0, "an even number")?;
                let pairs = Stage { times: p / 2 - 1, ..all(2 * block, 1) };
                [all(block, 1), pairs].into_iter().filter(|s| s.times > 0).collect()
            }
            Form::GatherBcast => [one(block), written(binomial(bytes))].concat(),
            // In stage i go the blocks whose distance has bit i.
            Form::BruckAlltoall => {
                let far = |i: u32| (0..p).filter(|d| d >> i & 1 == 1).count() as u64;
                (0..height).map(|i| all(far(i) * block, 1 << i)).collect()
            }
            Form::FlatBarrier => vec![Stage { times: 2 * (p - 1), ..Stage::new(1, 0, p - 1) }],
            Form::DoubleRingBarrier => vec![Stage { times: 2 * p, ..Stage::new(1, 0, 1) }],
        })
    }

    /// Returns whether ranks reduce up a tree: libraries may fold what they receive and what the caller gave into a third buffer, and copy nothing.
    pub fn reduces_up(self) -> bool {
        matches!(
            self,
            Form::FlatReduce | Form::BinomialReduce | Form::KnomialReduce { .. } | Form::TreeReduce { .. }
        )
    }

    /// Returns the bytes that the rank which copies most copies within its own memory: its own block or vector from what it gives to what it
    /// takes, and blocks that Bruck's algorithms turn. `bytes` as for [`Form::stages`].
    pub fn own_bytes(self, ranks: usize, bytes: u64) -> u64 {
        let block = bytes.div_ceil(ranks.max(1) as u64);
        match self {
            Form::Scatter
            | Form::DoublingAllgather
            | Form::RingAllgather
            | Form::NeighbourAllgather
            | Form::GatherBcast
            | Form::PairwiseAlltoall => block,
            Form::BinomialReduce
            | Form::DoublingAllreduce
            | Form::Rabenseifner
            | Form::RingAllreduce
            | Form::FlatReduce
            | Form::KnomialReduce { .. }
            | Form::TreeReduce { .. }
            | Form::RabenseifnerReduce
            | Form::ReduceBcast => bytes,
            // From a rank's order to that of ranks.
            Form::BruckAllgather => block + bytes,
            // Turned before and after, and what a stage sends laid together.
            Form::BruckAlltoall => 3 * bytes,
            // Broadcasts and barriers; and a plan's moves within a rank's memory are not counted.
            _ => 0,
        }
    }
}

/// Folds all that arrives.
fn folding(mut stages: Vec<Stage>) -> Vec<Stage> {
    stages.iter_mut().for_each(|s| s.folded = s.bytes);
    stages
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

/// In round i each of the k^i ranks that have the message sends it to k - 1 others, one after the other.
fn knomial(p: u64, radix: usize, bytes: u64) -> Vec<Stage> {
    let k = radix.max(2) as u64;
    let mut list = Vec::new();
    let mut have = 1;
    while have < p {
        list.extend(
            (1..k)
                .map(|j| j * have)
                .take_while(|&d| d < p)
                .map(|d| Stage { kept: have == 1, ..Stage::new(have.min(p - d), bytes, d) }),
        );
        have = have.saturating_mul(k);
    }
    list
}

/// Level by level, each rank of a level sends to its children, one after the other.
fn tree(p: u64, degree: usize, bytes: u64) -> Vec<Stage> {
    let g = degree.max(1) as u64;
    let (mut list, mut first, mut width) = (Vec::new(), 0, 1);
    // The children of v are g v + 1 to g v + g.
    while g * first + 1 < p {
        let parents = first..(first + width).min(p);
        for j in 1..=g {
            let messages = parents.clone().filter(|v| g * v + j < p).count() as u64;
            if messages > 0 {
                list.push(Stage { kept: first == 0, ..Stage::new(messages, bytes, first * (g - 1) + j) });
            }
        }
        first += width;
        width *= g;
    }
    list
}

#[cfg(test)]
mod tests {
    use super::super::tests::counts;
    use super::*;

    #[test]
    fn stages_are_those_of_the_algorithms() {
        assert_eq!(
            counts(Form::KnomialBcast { radix: 4 }, 8, 9),
            [(1, 9, 1), (1, 9, 1), (1, 9, 1), (4, 9, 1)]
        );
        assert_eq!(counts(Form::TreeBcast { degree: 2 }, 5, 9), [(1, 9, 1), (1, 9, 1), (1, 9, 1), (1, 9, 1)]);
        assert_eq!(counts(Form::BruckAllgather, 5, 50), [(5, 10, 1), (5, 20, 1), (5, 10, 1)]);
        assert_eq!(counts(Form::NeighbourAllgather, 6, 60), [(6, 10, 1), (6, 20, 2)]);
        assert_eq!(counts(Form::NeighbourAllgather, 2, 20), [(2, 10, 1)]);
        assert_eq!(counts(Form::BruckAlltoall, 6, 60), [(6, 30, 1), (6, 20, 1), (6, 20, 1)]);
        assert_eq!(counts(Form::RabenseifnerReduce, 4, 64), [(4, 32, 1), (4, 16, 1), (2, 16, 1), (1, 32, 1)]);
        assert!(Form::NeighbourAllgather.stages(5, 5).is_err());
    }

    #[test]
    fn only_what_the_caller_gave_is_kept() {
        let kept = |form: Form| form.stages(8, 64).unwrap().iter().map(|s| s.kept).collect::<Vec<_>>();
        assert_eq!(kept(Form::BinomialBcast), [true, false, false]);
        assert_eq!(kept(Form::TreeBcast { degree: 2 }), [true, true, false, false, false]);
        assert_eq!(kept(Form::BinomialReduce), [true, false, false]);
        assert_eq!(kept(Form::ReduceBcast), [true, false, false, false, false, false]);
        assert_eq!(kept(Form::Scatter), [true, false, false]);
        // Ranks get their own blocks again, so that even the root has written what it sends.
        assert_eq!(kept(Form::ScatterRingBcast), [false; 4]);
        assert_eq!((kept(Form::PairwiseAlltoall), kept(Form::RingAllgather)), (vec![true], vec![false]));
        assert_eq!(kept(Form::GatherBcast), [true, false, false, false]);
    }

    /// Every rank but the root is informed once, whatever the tree; what is reduced is folded as often.
    #[test]
    fn trees_reach_every_rank_once() {
        for p in 2..100usize {
            for k in 1..6 {
                for form in [Form::KnomialBcast { radix: k }, Form::TreeBcast { degree: k }] {
                    assert_eq!(
                        counts(form, p, 1).iter().map(|s| s.0).sum::<u64>(),
                        p as u64 - 1,
                        "{form} {p}"
                    );
                }
                let folded = Form::TreeReduce { degree: k }.stages(p, 8).unwrap();
                assert_eq!(folded.iter().map(|s| s.folded * s.messages).sum::<u64>(), 8 * (p as u64 - 1));
            }
        }
    }

    /// Bruck's algorithms move the same blocks as the rings, in fewer stages.
    #[test]
    fn brucks_stages_move_all_blocks() {
        for p in 2..70usize {
            let moved = |form| counts(form, p, p as u64).iter().map(|s| s.1 * s.2).sum::<u64>();
            assert_eq!(moved(Form::BruckAllgather), p as u64 - 1);
            assert!(moved(Form::BruckAlltoall) >= p as u64 - 1);
        }
    }
}
