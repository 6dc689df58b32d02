//! The correctness check of a collective before it is timed.

use super::request::Trial;
use super::window::{Bench, Page, Refused};
use lineweave::communicator::{Buffers, PlanId};
use lineweave::kernel::Operator;
use lineweave::CallSpec;
use lineweave::Communicator;
use lineweave_core::collective::Collective;
use lineweave_core::plan::{Blocks, Grid};
use std::ops::Range;
use std::sync::Arc;

impl Bench {
    /// One call on numbers whose combination is exact in any order, compared at every rank.
    pub(super) fn check(
        &mut self,
        comm: &mut Communicator,
        trial: &Trial,
        call: &CallSpec,
        plan: Option<PlanId>,
    ) -> Result<(), Refused> {
        let (rank, ranks, root) = (comm.rank(), comm.ranks(), trial.root);
        let mine = |rank: usize, i: usize| (rank * 31 + i % 1021) as f64;
        let sum = |i: usize| (0..ranks).map(|r| mine(r, i)).sum::<f64>();
        let given = call.input_bytes(rank, ranks).max(call.bytes()) / size_of::<f64>();
        let taken = call.output_bytes(rank, ranks).max(call.bytes()) / size_of::<f64>();
        let count = call.count;
        // SAFETY: `reserve` made pages for the longest buffer of the call in both, which nobody else uses between calls.
        let [input, output] = unsafe {
            let [input, output] = self.pools();
            [words(input, given), words(output, taken)]
        };
        input.iter_mut().enumerate().for_each(|(i, from)| *from = mine(rank, i));
        for (i, to) in output.iter_mut().enumerate() {
            *to = if trial.collective == Collective::Bcast && rank == root { mine(root, i) } else { -1.0 };
        }
        let input_output =
            Buffers { input: input.as_ptr().cast(), output: output.as_mut_ptr().cast(), ..Buffers::NONE };
        match trial.collective {
            // SAFETY: both are longer than any blocks of the plan, and all ranks run it.
            _ if plan.is_some() => plan.map_or(Ok(()), |plan| unsafe { comm.run(plan, input_output) })?,
            Collective::Barrier => comm.barrier()?,
            Collective::Bcast => comm.bcast(output, root)?,
            Collective::Reduce => comm.reduce(input, output, Operator::Sum, root)?,
            Collective::Allreduce => comm.allreduce(input, output, Operator::Sum)?,
            Collective::Gather => comm.gather(input, output, root)?,
            Collective::Scatter => comm.scatter(input, output, root)?,
            Collective::Allgather => comm.allgather(input, output)?,
            Collective::ReduceScatter => comm.reduce_scatter_block(input, output, Operator::Sum)?,
            Collective::Scan => comm.scan(input, output, Operator::Sum)?,
            Collective::Exscan => comm.exscan(input, output, Operator::Sum)?,
            Collective::Alltoall => comm.alltoall(input, output)?,
        }
        let first = |n: usize, i: usize| (0..n).map(|r| mine(r, i)).sum::<f64>();
        let expected = |i: usize| match trial.collective {
            Collective::Barrier | Collective::Bcast => mine(root, i),
            Collective::Reduce | Collective::Allreduce => sum(i),
            Collective::Gather | Collective::Allgather => mine(i / count, i % count),
            Collective::Scatter => mine(root, rank * count + i),
            Collective::ReduceScatter => sum(rank * count + i),
            Collective::Scan => first(rank + 1, i),
            Collective::Exscan => first(rank, i),
            Collective::Alltoall => mine(i / count, rank * count + i % count),
        };
        let wrong = match plan {
            // A broadcast's root passes its buffer as both.
            None => {
                let result = call.output_bytes(rank, ranks) / size_of::<f64>();
                (0..result).map(|i| (i, expected(i))).find(|&(i, expected)| output[i] != expected)
            }
            Some(_) => {
                let (collective, bytes) = (trial.collective, trial.bytes);
                let blocks = &Blocks::Uneven(Arc::new(trial.blocks(ranks)));
                let grid = Grid { collective, ranks, root, bytes, blocks };
                let words =
                    |bytes: Range<usize>| bytes.start / size_of::<f64>()..bytes.end / size_of::<f64>();
                let all = (0..ranks).flat_map(|giver| {
                    let given = words(grid.given(giver, rank)).map(move |i| mine(giver, i));
                    words(grid.taken(rank, giver)).zip(given)
                });
                all.into_iter().find(|&(i, expected)| output[i] != expected)
            }
        };
        // Through the allreduce under trial perhaps, whose wrong answers may be wrong here too: so every rank
        // says where it is wrong by itself as well.
        let mut verdict = [wrong.map_or(0.0, |_| rank as f64 + 1.0)];
        comm.allreduce_in_place(&mut verdict, Operator::Max)?;
        match (wrong, verdict[0]) {
            (Some((i, expected)), _) => Err(Refused::Trial(format!(
                "{} of {} bytes: rank {rank} has {} at element {i}, expected {}",
                trial.collective, trial.bytes, output[i], expected
            ))),
            (None, 0.0) => Ok(()),
            (None, r) => Err(Refused::Trial(format!("rank {} has a wrong answer", r - 1.0))),
        }
    }
}

/// The first words of a pool.
///
/// # Safety
/// The pages from `pool` on must hold so many words and be nobody else's for as long as the slice lives.
unsafe fn words<'a>(pool: *mut Page, count: usize) -> &'a mut [f64] {
    // SAFETY: the caller's; pages are plain initialised words, of which any bits are an f64.
    unsafe { std::slice::from_raw_parts_mut(pool.cast::<f64>(), count) }
}
