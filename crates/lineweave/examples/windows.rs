//! Windows: ranks put into each other's memory, and flags say when it is there.
//!
//!     cargo run --release --example windows

use lineweave::Error;

fn main() -> Result<(), Error> {
    let came = lineweave::team::threads(3, |mut comm| {
        let (rank, ranks) = (comm.rank(), comm.ranks());
        comm.window_create(4096)?;
        let right = (rank + 1) % ranks;
        // SAFETY: only the left neighbour puts into a rank's window, once, and raises the flag that the rank waits for before it reads.
        unsafe { comm.put(right, 0, &[100 + rank as u64])? };
        comm.flag_set(right, 0, 1)?;
        comm.flag_wait(0, 1)?;
        let mut word = [0u64];
        // SAFETY: as above.
        unsafe { comm.get(rank, 0, &mut word)? };
        Ok(word[0])
    })?;
    assert_eq!(came, [102, 100, 101]);
    println!("from their left neighbours the ranks got {came:?}");
    Ok(())
}
