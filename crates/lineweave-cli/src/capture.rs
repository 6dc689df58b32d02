//! Capture of the output of a program that has a process group of its own and a limited time.

use crate::interrupt;
use std::io::Read;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

/// The output of a program, and how the program ended.
#[derive(Clone, PartialEq, Debug)]
pub struct Captured {
    pub out: String,
    pub err: String,
    /// The reason why it did not end well, with the last line of its errors.
    pub ended: Result<(), String>,
    /// The time from its start to its end.
    pub took: Duration,
}

/// Runs a program to its end, or until `limit`, and ends the processes of its group that are left then.
pub fn capture(command: &mut Command, limit: Duration) -> Captured {
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
    let start = Instant::now();
    let mut child = match command.spawn() {
        Ok(child) => child,
        Err(e) => {
            let (out, err, took) = (String::new(), String::new(), Duration::ZERO);
            return Captured { out, err, ended: Err(format!("it cannot be started: {e}")), took };
        }
    };
    let (leader, running) = (child.id(), interrupt::running(&child));
    let (out, err) = (reader(child.stdout.take()), reader(child.stderr.take()));
    let status = wait(&mut child, limit);
    let took = start.elapsed();
    // What the program has left behind would hold its output open.
    interrupt::end_group(leader);
    drop(running);
    let text = |reader: std::thread::JoinHandle<String>| reader.join().unwrap_or_default();
    let (out, err) = (text(out), text(err));
    let ended = match status {
        Some(status) if status.success() => Ok(()),
        Some(status) => {
            let last = last_words(&err).map(|line| format!(": {line}"));
            Err(format!("it ended with {status}{}", last.unwrap_or_default()))
        }
        None => Err(format!("it was ended after {} s", limit.as_secs())),
    };
    Captured { out, err, ended, took }
}

/// Waits for the program, and ends its group when it takes too long: `None`.
fn wait(child: &mut Child, limit: Duration) -> Option<ExitStatus> {
    let leader = child.id();
    let (ended, waits) = mpsc::channel::<()>();
    let watch = std::thread::spawn(move || {
        let late = waits.recv_timeout(limit) == Err(RecvTimeoutError::Timeout);
        if late {
            interrupt::end_group(leader);
        }
        late
    });
    let status = child.wait();
    drop(ended);
    match watch.join() {
        Ok(false) => status.ok(),
        _ => None,
    }
}

fn reader(from: Option<impl Read + Send + 'static>) -> std::thread::JoinHandle<String> {
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        if let Some(mut from) = from {
            // Output before an error counts.
            let _ = from.read_to_end(&mut bytes);
        }
        String::from_utf8_lossy(&bytes).into_owned()
    })
}

/// Returns the last meaningful line of a launcher's output; frames and lines of dashes are skipped.
fn last_words(text: &str) -> Option<String> {
    let says = |line: &&str| line.chars().filter(|c| c.is_alphabetic()).count() > 8;
    let last = text.lines().map(str::trim).rfind(says)?;
    Some(last.chars().take(200).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn last_words_are_no_frame() {
        assert_eq!(last_words("it is not there: mpirun\n-----\n\n===\n").unwrap(), "it is not there: mpirun");
        assert_eq!(last_words("---\n"), None);
    }

    #[test]
    fn a_program_that_takes_too_long_is_ended_with_what_it_started() {
        let mut shell = Command::new("sh");
        shell.args(["-c", "echo before; sleep 60 & wait"]);
        let began = Instant::now();
        let Captured { out, ended, .. } = capture(&mut shell, Duration::from_millis(300));
        assert_eq!((out.as_str(), ended.unwrap_err().as_str()), ("before\n", "it was ended after 0 s"));
        assert!(began.elapsed() < Duration::from_secs(30));
    }

    #[test]
    fn what_a_program_leaves_behind_is_ended_with_it() {
        let mut shell = Command::new("sh");
        shell.args(["-c", "sleep 60 & echo done"]);
        let began = Instant::now();
        let Captured { out, ended, .. } = capture(&mut shell, Duration::from_secs(30));
        assert_eq!((out.as_str(), ended), ("done\n", Ok(())));
        assert!(began.elapsed() < Duration::from_secs(30));
    }

    #[test]
    fn a_program_that_fails_is_told_by_its_last_line() {
        let mut shell = Command::new("sh");
        shell.args(["-c", "echo there is no such thing >&2; exit 3"]);
        let failed = capture(&mut shell, Duration::from_secs(30)).ended.unwrap_err();
        assert_eq!(failed, "it ended with exit status: 3: there is no such thing");
    }
}
