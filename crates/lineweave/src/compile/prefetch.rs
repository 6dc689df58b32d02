//! Lines that a rank will write in its next run, taken for writing while it waits in this one.
//!
//! Runs of a short plan take banks in turn. What a rank writes to in the next one, it wrote many runs ago and a peer has read since: both
//! have these lines, and a store has to take them from the peer first. While a rank waits for its peers it has the time to take
//! them, and nobody looks at them. Whether that pays is measured (probe `trick`, `lines-ahead`).

use super::step::Step;
use lineweave_core::units::LINE;
use std::ops::RangeInclusive;

/// Numbers of lines that are worth prefetching: on 2 CPUs of a Xeon 512 B to 4 KiB gained 4 to 27 %, and 256 B lost 14 %
/// (docs/explanation/findings.md, "Lines of the next run").
const LINES: RangeInclusive<usize> = 8..=64;

/// Puts the steps that take the lines of `written` (offsets in a bank, and lengths) before the first wait, unless they are too few or too many.
pub(super) fn insert(steps: Box<[Step]>, written: &[(usize, usize)]) -> Box<[Step]> {
    let lines = |&(at, len): &(usize, usize)| at / LINE..(at + len).div_ceil(LINE);
    let count: usize = written.iter().map(|w| lines(w).len()).sum();
    let Some(first) = steps.iter().position(waits).filter(|_| LINES.contains(&count)) else {
        return steps;
    };
    let ahead = written
        .iter()
        .map(lines)
        .map(|l| Step::PrefetchForWrite { at: l.start * LINE, lines: l.len() as u32 });
    let (before, after) = steps.split_at(first);
    before.iter().copied().chain(ahead).chain(after.iter().copied()).collect()
}

fn waits(step: &Step) -> bool {
    match step {
        Step::Wait { .. }
        | Step::WaitEarlier { .. }
        | Step::WaitBytes { .. }
        | Step::WaitAddress { .. }
        | Step::WaitPlace { .. }
        | Step::WaitCount { .. } => true,
        Step::Move { .. }
        | Step::CopyRemote { .. }
        | Step::ReduceRemote { .. }
        | Step::Fold { .. }
        | Step::FoldAll { .. }
        | Step::FoldTwice { .. }
        | Step::Set { .. }
        | Step::SetBytes { .. }
        | Step::SetAddress { .. }
        | Step::SetPlace { .. }
        | Step::PrefetchForWrite { .. }
        | Step::Add { .. } => false,
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::compile::{compile, Addr, RankPlacement, SleeperCounter, BANK, IN};
    use crate::segment::Segment;
    use lineweave_core::algorithm::{find, Problem};
    use lineweave_core::collective::Collective;
    use lineweave_core::model::Values;
    use lineweave_core::plan::{Params, Part};
    use lineweave_core::topology::Shape;
    use lineweave_core::verify::verify;

    fn moved(len: usize) -> Step {
        Step::Move { src: Addr { base: IN, offset: 0 }, dst: Addr { base: BANK, offset: 128 }, len }
    }

    #[test]
    fn plans_that_synchronise_and_take_turns_take_lines_ahead_if_asked_to() {
        let segment = Segment::create(2, 1 << 20, &[]).expect("a segment");
        let (model, shape) = (Values::default().model(), Shape::flat(2));
        let takes = |collective: Collective, name: &str, bytes: usize, ahead: bool| {
            let problem = Problem { grain: 8, ..Problem::flat(collective, 2, bytes) };
            let plan = find(collective, name).and_then(|a| a.plan(&problem, &Params::new())).expect("a plan");
            let proof = verify(&plan).expect("proven");
            let (segment, model, shape) = (&segment, &model, &shape);
            let seat = RankPlacement {
                rank: 0,
                segment,
                model,
                shape,
                held: true,
                places: false,
                ahead,
                rounds_once: false,
            };
            let compiled = compile(&Part::whole(plan, false), bytes, &proof, seat, &mut 0).expect("it fits");
            compiled.steps.all.iter().any(|step| matches!(step, Step::PrefetchForWrite { .. }))
        };
        assert!(takes(Collective::Allgather, "all-read-all", 1024, true));
        assert!(takes(Collective::Allreduce, "recursive-doubling", 512, true));
        assert!(!takes(Collective::Allgather, "all-read-all", 1024, false), "not asked to");
        assert!(!takes(Collective::Allgather, "all-read-all", 8, true), "it travels with a flag");
        assert!(!takes(Collective::Reduce, "flat", 1024, true), "readers lag behind");
        assert!(!takes(Collective::Allreduce, "fold-back", 1024, true), "always the same slots");
    }

    #[test]
    fn lines_are_taken_where_a_rank_begins_to_wait_if_they_are_neither_few_nor_many() {
        let segment = Segment::create(1, 4096, &[]).expect("a segment");
        let waits = |at| Step::Wait { at, home: SleeperCounter::of(&segment, 0), value: 1, apart: false };
        let steps = |len| vec![moved(len), waits(0), waits(64)].into_boxed_slice();
        let with = insert(steps(1000), &[(128, 1000)]);
        assert_eq!(
            with[..],
            [moved(1000), Step::PrefetchForWrite { at: 128, lines: 16 }, waits(0), waits(64)]
        );
        // Two slots, the second of which begins within a line.
        let with = insert(steps(1000), &[(128, 256), (1056, 256)]);
        assert_eq!(
            with[1..3],
            [Step::PrefetchForWrite { at: 128, lines: 4 }, Step::PrefetchForWrite { at: 1024, lines: 5 }]
        );
        for (len, why) in [(256, "few"), (8192, "many")] {
            assert_eq!(insert(steps(len), &[(128, len)]), steps(len), "{why}");
        }
        let never: Box<[Step]> = Box::new([moved(1000)]);
        assert_eq!(insert(never.clone(), &[(128, 1000)]), never, "a rank that never waits");
    }
}
