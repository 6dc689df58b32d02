//! The correctness check of a collective before it is timed.

use super::request::Trial;
use super::window::{Bench, Page, Refused};
use lineweave::kernel::Operator;
use lineweave::CallSpec;
use lineweave::Communicator;
use lineweave_core::collective::Collective;

impl Bench {
    /// One call on numbers whose combination is exact in any order, compared at every rank.
    pub(super) fn check(
        &mut self,
        comm: &mut Communicator,
        trial: &Trial,
        call: &CallSpec,
    ) -> Result<(), Refused> {
        let (rank, ranks) = (comm.rank(), comm.ranks());
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
            *to = if trial.collective == Collective::Bcast && rank == 0 { mine(0, i) } else { -1.0 };
        }
        match trial.collective {
            Collective::Barrier => comm.barrier()?,
            Collective::Bcast => comm.bcast(output, 0)?,
            Collective::Reduce => comm.reduce(input, output, Operator::Sum, 0)?,
            Collective::Allreduce => comm.allreduce(input, output, Operator::Sum)?,
            Collective::Gather => comm.gather(input, output, 0)?,
            Collective::Scatter => comm.scatter(input, output, 0)?,
            Collective::Allgather => comm.allgather(input, output)?,
            Collective::ReduceScatter => comm.reduce_scatter_block(input, output, Operator::Sum)?,
            Collective::Scan => comm.scan(input, output, Operator::Sum)?,
            Collective::Exscan => comm.exscan(input, output, Operator::Sum)?,
            Collective::Alltoall => comm.alltoall(input, output)?,
        }
        let first = |n: usize, i: usize| (0..n).map(|r| mine(r, i)).sum::<f64>();
        let expected = |i: usize| match trial.collective {
            Collective::Barrier | Collective::Bcast => mine(0, i),
            Collective::Reduce | Collective::Allreduce => sum(i),
            Collective::Gather | Collective::Allgather => mine(i / count, i % count),
            Collective::Scatter => mine(0, rank * count + i),
            Collective::ReduceScatter => sum(rank * count + i),
            Collective::Scan => first(rank + 1, i),
            Collective::Exscan => first(rank, i),
            Collective::Alltoall => mine(i / count, rank * count + i % count),
        };
        // A broadcast's root passes its buffer as both.
        let result = call.output_bytes(rank, ranks) / size_of::<f64>();
        let wrong = (0..result).find(|&i| output[i] != expected(i));
        // Through the allreduce under trial perhaps, whose wrong answers may be wrong here too: so every rank
        // says where it is wrong by itself as well.
        let mut verdict = [wrong.map_or(0.0, |_| rank as f64 + 1.0)];
        comm.allreduce_in_place(&mut verdict, Operator::Max)?;
        match (wrong, verdict[0]) {
            (Some(i), _) => Err(Refused::Trial(format!(
                "{} of {} bytes: rank {rank} has {} at element {i}, expected {}",
                trial.collective,
                trial.bytes,
                output[i],
                expected(i)
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
