//! Calls that are started and waited for later: what a rank computes meanwhile costs no time of its own.
//!
//!     cargo run --release --example started

use lineweave::{Error, Operation, Operator};

fn main() -> Result<(), Error> {
    let found = lineweave::team::threads(2, |mut comm| {
        // With buffers that the request owns and gives back.
        let request = comm.start_allreduce(vec![comm.rank() as f64; 1000], Operator::Sum)?;
        let meanwhile: u64 = (1..=100).sum();
        let sum = request.wait()?;

        // With buffers that live longer than the scope in which calls are started.
        let mine = [comm.rank() as u32];
        let (mut all, mut least) = ([0; 2], [0]);
        comm.scope(|scope| {
            let gathered = scope.start(Operation::allgather(&mine, &mut all))?;
            let minimum = scope.start(Operation::allreduce(&mine, &mut least, Operator::Min))?;
            minimum.wait()?;
            gathered.wait()
        })?;
        Ok((sum[999], meanwhile, all, least[0]))
    })?;
    assert_eq!(found, [(1.0, 5050, [0, 1], 0); 2]);
    println!("both ranks have {:?}", found[0]);
    Ok(())
}
