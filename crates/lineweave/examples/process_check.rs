//! Ranks as processes, small enough to run under valgrind: `process_check [RANKS]` starts itself once a rank.

use lineweave::team::{self, Team, TeamConfig};
use lineweave::{Error, Operator};
use std::process::Command;

fn main() -> Result<(), Error> {
    if std::env::var_os(team::RANK_VARIABLE).is_some() {
        return rank();
    }
    let ranks = std::env::args().nth(1).and_then(|n| n.parse().ok()).unwrap_or(3);
    let team = Team::with(TeamConfig::from_environment(ranks)?)?;
    let program = std::env::current_exe().map_err(|e| Error::Failed(e.to_string()))?;
    let children = team.spawn(|_| Command::new(&program))?;
    drop(team);
    for mut child in children {
        let status = child.wait().map_err(|e| Error::Failed(e.to_string()))?;
        assert!(status.success(), "a rank ended with {status}");
    }
    println!("{ranks} ranks agreed");
    Ok(())
}

fn rank() -> Result<(), Error> {
    let mut comm = team::from_environment()?;
    let (rank, ranks) = (comm.rank(), comm.ranks());
    for count in [1usize, 5, 700, 30_000] {
        comm.barrier()?;
        let mut message: Vec<u32> =
            (0..count).map(|i| if rank == 1 % ranks { i as u32 } else { 0 }).collect();
        comm.bcast(&mut message, 1 % ranks)?;
        assert!(message.iter().enumerate().all(|(i, &v)| v == i as u32));
        let input = vec![rank as f64; count];
        let mut sum = vec![0.0; count];
        comm.allreduce(&input, &mut sum, Operator::Sum)?;
        assert!(sum.iter().all(|&v| v == (ranks * (ranks - 1) / 2) as f64));
        let mut most = vec![0.0; if rank == 0 { count } else { 0 }];
        comm.reduce(&input, &mut most, Operator::Max, 0)?;
        assert!(most.iter().all(|&v| v == (ranks - 1) as f64));
    }
    Ok(())
}
