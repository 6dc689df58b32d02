//! Ranks as processes: the program starts itself once a rank. `lineweave run -n 4 PROGRAM` starts any program so.
//!
//!     cargo run --release --example processes

use lineweave::team::{self, Team, TeamConfig};
use lineweave::{Error, Operator};
use std::process::Command;

fn main() -> Result<(), Error> {
    match std::env::var_os(team::RANK_VARIABLE) {
        Some(_) => rank(),
        None => start(3),
    }
}

/// The program that was called: it starts the ranks and waits for them.
fn start(ranks: usize) -> Result<(), Error> {
    let program = std::env::current_exe().map_err(|error| Error::Failed(error.to_string()))?;
    let team = Team::with(TeamConfig::from_environment(ranks)?)?;
    let failed = team.launch(|_rank| Command::new(&program), |remark| eprintln!("{remark}"))?;
    match failed {
        None => Ok(()),
        Some(failed) => Err(Error::Failed(failed.to_string())),
    }
}

/// One that it started.
fn rank() -> Result<(), Error> {
    let mut comm = team::from_environment()?;
    let mut greatest = [std::process::id()];
    comm.allreduce_in_place(&mut greatest, Operator::Max)?;
    assert!(greatest[0] >= std::process::id());
    if comm.rank() == 0 {
        println!("the greatest of {} process numbers is {}", comm.ranks(), greatest[0]);
    }
    Ok(())
}
