//! Named loads that share the CPUs with what is measured: most nodes have other work.

use crate::error::CliError;
use crate::output::name_of;
use clap::ValueEnum;
use lineweave::sync::sleep;
use serde::{Serialize, Serializer};
use std::fmt;
use std::io;
use std::process::{Child, Command, Stdio};
use std::str::FromStr;
use std::time::Duration;

/// Work of a load's processes, at the priority of this one.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum Kind {
    /// Computes without end.
    Spin,
    /// Wakes every millisecond and computes for a moment, as monitors do.
    Wake,
    /// Copies memory that no cache holds.
    Stream,
}

/// Most processes of a load.
const MOST: u32 = 1024;
/// Time in which a process of a load comes to its work.
const START: Duration = Duration::from_millis(200);

/// Processes of one kind, such as `spin:2`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Load {
    kind: Kind,
    processes: u32,
}

impl FromStr for Load {
    type Err = String;

    fn from_str(text: &str) -> Result<Load, String> {
        let (name, many) = text.split_once(':').unwrap_or((text, "1"));
        let unknown = |_| format!("expected spin, wake or stream, with :N for several, found `{name}`");
        let kind = Kind::from_str(name, false).map_err(unknown)?;
        let processes = many.parse().ok().filter(|n| (1..=MOST).contains(n));
        let processes = processes.ok_or_else(|| format!("expected 1 to {MOST} processes, found `{many}`"))?;
        Ok(Load { kind, processes })
    }
}

impl fmt::Display for Load {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", name_of(&self.kind), self.processes)
    }
}

impl Serialize for Load {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

/// The processes of loads, which end with this.
#[derive(Debug)]
pub struct Running(Vec<Child>);

impl Running {
    /// Starts the processes, each by a command for a process of this program, and waits until they run.
    pub fn start(loads: &[Load], mut command: impl FnMut(usize) -> Command) -> Result<Running, CliError> {
        let mut running = Running(Vec::new());
        let failed = |reason| CliError::Load { reason };
        for load in loads {
            for process in 0..load.processes {
                let mut command = command(process as usize);
                command.args(["--load", &name_of(&load.kind)]).stdin(Stdio::null()).stdout(Stdio::null());
                running.0.push(command.spawn().map_err(failed)?);
            }
        }
        if !running.0.is_empty() {
            sleep(START);
        }
        for child in &mut running.0 {
            if let Some(status) = child.try_wait().map_err(failed)? {
                return Err(failed(io::Error::other(format!("it ended with {status}"))));
            }
        }
        Ok(running)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        for child in &mut self.0 {
            // It may have ended with an error of its own.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Is the load, until the process that started it ends.
pub fn carry_out(kind: Kind) -> Result<(), CliError> {
    lineweave::process::end_with_parent().map_err(|reason| CliError::Load { reason })?;
    let (mut from, mut to) = match kind {
        Kind::Stream => (vec![1u8; 64 << 20], vec![0u8; 64 << 20]),
        Kind::Spin | Kind::Wake => (Vec::new(), Vec::new()),
    };
    let mut state = 1u64;
    loop {
        match kind {
            Kind::Spin => work(&mut state, 1 << 20),
            Kind::Wake => {
                sleep(Duration::from_millis(1));
                work(&mut state, 1 << 17);
            }
            Kind::Stream => {
                to.copy_from_slice(&from);
                std::mem::swap(&mut from, &mut to);
            }
        }
    }
}

/// Computes: so many steps of a random number generator.
fn work(state: &mut u64, steps: usize) {
    for _ in 0..steps {
        *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
    }
    std::hint::black_box(*state);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_load_is_a_kind_and_a_number() {
        for (text, shown) in [("spin", "spin:1"), ("wake:3", "wake:3"), ("stream:1024", "stream:1024")] {
            assert_eq!(text.parse::<Load>().map(|load| load.to_string()), Ok(shown.to_owned()));
        }
        for text in ["spim", "spin:0", "spin:x", "spin:1025", ":2", ""] {
            assert!(text.parse::<Load>().is_err(), "{text}");
        }
    }
}
