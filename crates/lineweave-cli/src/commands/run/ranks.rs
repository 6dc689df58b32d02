//! `lineweave run -n`: a program once for each rank of a team that is made for them.

use crate::error::CliError;
use lineweave::team::Team;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus};
use std::time::{Duration, Instant};

/// How long other ranks may take to notice that one failed, before they are stopped.
const GRACE: Duration = Duration::from_secs(5);
/// Between two looks at who has ended.
const LOOK: Duration = Duration::from_millis(5);

/// Starts `program` `ranks` times and waits for all. A Python script is given to the interpreter.
///
/// # Errors
/// A team that cannot be made, a program that cannot be started, or [`CliError::RankFailed`]; nothing is left running.
pub fn run(ranks: usize, program: &OsStr, arguments: &[OsString]) -> Result<(), CliError> {
    let team = Team::new(ranks)?;
    let script = Path::new(program).extension().is_some_and(|e| e == "py");
    let mut children = team.spawn(|_rank| {
        let mut command = match script {
            true => Command::new(python()),
            false => Command::new(program),
        };
        command.args(script.then_some(program)).args(arguments);
        command
    })?;
    let outcome = watch(&mut children);
    for child in &mut children {
        // It may have ended by itself.
        let _ = child.kill();
        let _ = child.wait();
    }
    outcome
}

/// The interpreter that this command was installed with, or the one on the PATH.
fn python() -> PathBuf {
    let own = std::env::current_exe().ok();
    let beside = own.as_deref().and_then(Path::parent).map(|dir| dir.join("python3"));
    beside.filter(|path| path.is_file()).unwrap_or_else(|| PathBuf::from("python3"))
}

fn watch(children: &mut [Child]) -> Result<(), CliError> {
    let mut ended: Vec<Option<ExitStatus>> = vec![None; children.len()];
    let mut failed: Option<(usize, ExitStatus, Instant)> = None;
    loop {
        for (rank, child) in
            children.iter_mut().enumerate().filter(|(rank, _)| ended[*rank].is_none()).collect::<Vec<_>>()
        {
            ended[rank] = child.try_wait().ok().flatten();
            if let (Some(status), None) = (ended[rank], &failed) {
                if !status.success() {
                    failed = Some((rank, status, Instant::now()));
                }
            }
        }
        let over = ended.iter().all(Option::is_some);
        match failed {
            Some((rank, status, since)) if over || since.elapsed() > GRACE => {
                return Err(CliError::RankFailed { rank, how: status.to_string() });
            }
            None if over => return Ok(()),
            _ => std::thread::sleep(LOOK),
        }
    }
}
