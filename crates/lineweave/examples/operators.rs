//! Operators of one's own: here the number that is furthest from zero, and words that are joined in the order of ranks.
//!
//!     cargo run --release --example operators

use lineweave::{Error, Operator};

/// Eight letters, filled with spaces.
type Word = [u8; 8];

/// `left` and then `right`, as far as there is room. It is associative, and does not commute.
fn join(left: &[Word], right: &mut [Word]) {
    for (left, right) in left.iter().zip(right) {
        let letters = left.iter().chain(right.iter()).copied().filter(|&letter| letter != b' ');
        let mut both = *b"        ";
        both.iter_mut().zip(letters).for_each(|(to, letter)| *to = letter);
        *right = both;
    }
}

/// Of two numbers the one that is further from zero. It commutes.
fn further(left: &[f64], right: &mut [f64]) {
    for (&left, right) in left.iter().zip(right) {
        if left.abs() > right.abs() {
            *right = left;
        }
    }
}

fn main() -> Result<(), Error> {
    // Defined once, for all ranks that are threads; each process defines its own, which does the same.
    let (joined, furthest) = (Operator::new(false, join), Operator::new(true, further));
    let found = lineweave::team::threads(3, |mut comm| {
        let mut word = [*[b"col     ", b"lect    ", b"ive     "][comm.rank()]];
        comm.allreduce_in_place(&mut word, joined)?;
        let mut number = [[3.0, -9.0, 4.0][comm.rank()]];
        comm.allreduce_in_place(&mut number, furthest)?;
        Ok((String::from_utf8_lossy(&word[0]).into_owned(), number[0]))
    })?;
    assert!(found.iter().all(|(word, number)| word == "collecti" && *number == -9.0));
    println!("joined: {}; furthest from zero is {}", found[0].0, found[0].1);
    Ok(())
}
