//! Every call each way that there is, as a started one.

use crate::common::call::{Buffers, Call, Part};
use crate::common::{say, Outcome};
use lineweave::kernel::ElementType;
use lineweave::{Communicator, Operator, Request};
use lineweave_core::collective::Collective;

/// All calls of `n` elements, and the average.
pub fn calls(n: usize) -> Vec<Call> {
    let each_way = |(collective, operator)| Call::each_way(collective, ElementType::U32, Some(operator), n);
    let sums = Collective::ALL.into_iter().map(|collective| match collective {
        Collective::Scan => (collective, Operator::Max),
        _ => (collective, Operator::Sum),
    });
    sums.chain([(Collective::Allreduce, Operator::Avg)]).flat_map(each_way).collect()
}

pub fn start(part: &Part, comm: &mut Communicator) -> Result<Request<Buffers<u32>>, String> {
    comm.start(part.buffers(), |buffers| part.describe(buffers.parts())).map_err(say)
}

/// Every call, all outstanding at once, and waited for in an order of each rank's own; then one after the other, with calls that block in between.
pub fn every_collective(comm: &mut Communicator, sizes: &[usize]) -> Outcome {
    let mut done = 0;
    for &n in sizes {
        let calls = calls(n);
        let parts: Vec<Part> = calls.iter().enumerate().map(|(salt, call)| call.part(comm, salt)).collect();
        let mut requests: Vec<Option<Request<Buffers<u32>>>> = Vec::new();
        for part in &parts {
            requests.push(Some(start(part, comm)?));
        }
        // Neither step has a factor in common with their number.
        let step = if comm.rank() % 2 == 0 { 5 } else { 7 };
        assert!(!parts.len().is_multiple_of(step), "{} calls", parts.len());
        for turn in 0..parts.len() {
            let at = (turn * step + comm.rank()) % parts.len();
            parts[at].check(&requests[at].take().ok_or("each once")?.wait().map_err(say)?)?;
        }
        // By tests alone, a call that blocks behind every other one.
        for (at, part) in parts.iter().enumerate() {
            let mut request = start(part, comm)?;
            if at % 2 == 0 {
                comm.barrier().map_err(say)?;
            }
            while !request.test().map_err(say)? {
                std::thread::yield_now();
            }
            part.check(&request.wait().map_err(say)?)?;
        }
        done += 2 * parts.len();
    }
    Ok(done)
}
