//! A call that is made again and again with the same buffers: everything about it is found out once.
//!
//!     cargo run --release --example persistent

use lineweave::{Error, Operation, Operator};

fn main() -> Result<(), Error> {
    let totals = lineweave::team::threads(2, |mut comm| {
        // Its buffers are its own until it is dropped; the closure says what to do with them.
        let buffers = ([0u64], [0u64]);
        let mut sum = comm.init(buffers, |(mine, all)| Operation::allreduce(mine, all, Operator::Sum))?;
        let mut total = 0;
        for step in 0..100 {
            sum.buffers()?.0[0] = step;
            sum.start(&mut comm)?;
            // Something else.
            sum.wait()?;
            total += sum.buffers()?.1[0];
        }
        Ok(total)
    })?;
    assert_eq!(totals, [9900; 2]);
    println!("after 100 steps both ranks have {}", totals[0]);
    Ok(())
}
