//! Ranks as threads of one program: each computes its part, and an allreduce gives all of them the sum.
//!
//!     cargo run --release --example threads

use lineweave::{Error, Operator};

fn main() -> Result<(), Error> {
    let ranks = 4;
    let sums = lineweave::team::threads(ranks, |mut comm| {
        // Rank r adds every fourth number, beginning at r.
        let mine: u64 = (comm.rank() as u64..1000).step_by(comm.ranks()).sum();
        let mut sum = [mine];
        comm.allreduce_in_place(&mut sum, Operator::Sum)?;
        Ok(sum[0])
    })?;
    assert_eq!(sums, [499_500; 4]);
    println!("{ranks} threads found {} together", sums[0]);
    Ok(())
}
