//! Every collective as a started call, against the one that blocks.

use crate::common::{say, Outcome};
use lineweave::{Communicator, Error, Operation, Operator, Request};
use lineweave_core::collective::Collective;

pub type Buffers = (Vec<u32>, Vec<u32>);

/// A call: what it is called, and how it is made with a rank's buffers, started or not.
#[derive(Clone)]
pub struct Case {
    pub name: String,
    which: usize,
    n: usize,
    root: usize,
    rank: usize,
    counts: Vec<usize>,
    given: Vec<usize>,
    taken: Vec<usize>,
}

/// How many kinds there are.
const KINDS: usize = 22;

impl Case {
    fn new(which: usize, n: usize, rank: usize, ranks: usize) -> Case {
        let pair = |from: usize, to: usize| (n + from * 3 + to) % (n + 2);
        Case {
            name: format!("call {which} of {n}"),
            which,
            n,
            root: (n + which) % ranks,
            rank,
            counts: (0..ranks).map(|r| (n + 3 * r) % (2 * n + 1)).collect(),
            given: (0..ranks).map(|r| pair(rank, r)).collect(),
            taken: (0..ranks).map(|r| pair(r, rank)).collect(),
        }
    }

    /// Buffers as long as the call wants them.
    pub fn buffers(&self) -> Buffers {
        let (n, ranks, root) = (self.n, self.counts.len(), self.rank == self.root);
        let (all, own): (usize, usize) = (self.counts.iter().sum(), self.counts[self.rank]);
        let (input, output) = match self.which {
            0 => (0, 0),
            1 => (0, n),
            2 | 3 | 8 | 9 | 10 => (n, n),
            4 => (n, if root { n * ranks } else { 0 }),
            5 => (own, if root { all } else { 0 }),
            6 => (if root { n * ranks } else { 0 }, n),
            7 => (if root { all } else { 0 }, own),
            11 => (n, n * ranks),
            12 => (own, all),
            13 => (n * ranks, n),
            14 => (all, own),
            15 => (n * ranks, n * ranks),
            16 => (self.given.iter().sum(), self.taken.iter().sum()),
            17 => (0, n),
            18 | 19 => (0, n * ranks),
            20 => (0, all),
            _ => (0, n * ranks),
        };
        let value = |i: usize| ((self.rank * 7 + i * 3 + self.which) % 5) as u32;
        ((0..input).map(value).collect(), (0..output).map(|i| value(i + 1)).collect())
    }

    pub fn describe<'b>(&self, (input, output): &'b mut Buffers) -> Operation<'b> {
        let (root, counts) = (self.root, &self.counts);
        match self.which {
            0 => Operation::barrier(),
            1 => Operation::bcast(output, root),
            2 => Operation::reduce(input, output, Operator::Sum, root),
            3 => Operation::allreduce(input, output, Operator::Sum),
            4 => Operation::gather(input, output, root),
            5 => Operation::gatherv(input, output, counts, root),
            6 => Operation::scatter(input, output, root),
            7 => Operation::scatterv(input, output, counts, root),
            8 => Operation::scan(input, output, Operator::Max),
            9 => Operation::exscan(input, output, Operator::Sum),
            10 => Operation::allreduce(input, output, Operator::Avg),
            11 => Operation::allgather(input, output),
            12 => Operation::allgatherv(input, output, counts),
            13 => Operation::reduce_scatter_block(input, output, Operator::Sum),
            14 => Operation::reduce_scatter(input, output, counts, Operator::Sum),
            15 => Operation::alltoall(input, output),
            16 => Operation::alltoallv(input, &self.given, output, &self.taken),
            17 => Operation::in_place(Collective::Allreduce, Some(Operator::Sum), output, 0),
            18 => Operation::in_place(Collective::Allgather, None, output, 0),
            19 => Operation::in_place(Collective::Alltoall, None, output, 0),
            20 => Operation::in_place_uneven(Collective::Allgather, None, output, counts, 0),
            _ => Operation::in_place(Collective::ReduceScatter, Some(Operator::Sum), output, 0),
        }
    }

    pub fn block(&self, comm: &mut Communicator, (input, output): &mut Buffers) -> Result<(), Error> {
        let (root, counts) = (self.root, &self.counts);
        match self.which {
            0 => comm.barrier(),
            1 => comm.bcast(output, root),
            2 => comm.reduce(input, output, Operator::Sum, root),
            3 => comm.allreduce(input, output, Operator::Sum),
            4 => comm.gather(input, output, root),
            5 => comm.gatherv(input, output, counts, root),
            6 => comm.scatter(input, output, root),
            7 => comm.scatterv(input, output, counts, root),
            8 => comm.scan(input, output, Operator::Max),
            9 => comm.exscan(input, output, Operator::Sum),
            10 => comm.allreduce(input, output, Operator::Avg),
            11 => comm.allgather(input, output),
            12 => comm.allgatherv(input, output, counts),
            13 => comm.reduce_scatter_block(input, output, Operator::Sum),
            14 => comm.reduce_scatter(input, output, counts, Operator::Sum),
            15 => comm.alltoall(input, output),
            16 => comm.alltoallv(input, &self.given, output, &self.taken),
            17 => comm.allreduce_in_place(output, Operator::Sum),
            18 => comm.allgather_in_place(output),
            19 => comm.alltoall_in_place(output),
            20 => comm.allgatherv_in_place(output, counts),
            _ => comm.reduce_scatter_block_in_place(output, Operator::Sum),
        }
    }

    /// Compares what came of it; behind the first block of a fold in place may be anything.
    pub fn check(&self, found: &Buffers, wanted: &Buffers) -> Outcome {
        let end = if self.which == 21 { self.n } else { wanted.1.len() };
        match found.1[..end] == wanted.1[..end] && found.0 == wanted.0 {
            true => Ok(1),
            false => {
                Err(format!("{}: rank {} has {:?}, expected {:?}", self.name, self.rank, found.1, wanted.1))
            }
        }
    }
}

/// All kinds, of `n` elements.
pub fn cases(comm: &Communicator, n: usize) -> Vec<Case> {
    (0..KINDS).map(|which| Case::new(which, n, comm.rank(), comm.ranks())).collect()
}

pub fn start(case: &Case, comm: &mut Communicator) -> Result<Request<Buffers>, String> {
    comm.start(case.buffers(), |buffers| case.describe(buffers)).map_err(say)
}

/// Every kind, all outstanding at once, and waited for in an order of each rank's own; with calls that block in between.
pub fn every_collective(comm: &mut Communicator, sizes: &[usize]) -> Outcome {
    let mut done = 0;
    for &n in sizes {
        let cases = cases(comm, n);
        let mut wanted = Vec::new();
        for case in &cases {
            let mut buffers = case.buffers();
            case.block(comm, &mut buffers).map_err(say)?;
            wanted.push(buffers);
        }
        let mut requests: Vec<Option<Request<Buffers>>> = Vec::new();
        for case in &cases {
            requests.push(Some(start(case, comm)?));
        }
        for turn in 0..cases.len() {
            // 5 and 7 have no factor in common with their number.
            let at = (turn * if comm.rank() % 2 == 0 { 5 } else { 7 } + comm.rank()) % cases.len();
            let found = requests[at].take().ok_or("each once")?.wait().map_err(say)?;
            done += cases[at].check(&found, &wanted[at])?;
        }
        // One after the other, by tests alone, a call that blocks behind every other one.
        for (at, case) in cases.iter().enumerate() {
            let mut request = start(case, comm)?;
            if at % 2 == 0 {
                comm.barrier().map_err(say)?;
            }
            while !request.test().map_err(say)? {
                std::thread::yield_now();
            }
            done += case.check(&request.wait().map_err(say)?, &wanted[at])?;
        }
    }
    Ok(done)
}
