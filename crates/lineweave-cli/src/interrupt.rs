//! Handling of an interrupt: programs are ended, temporary directories removed, and a line says what is kept.

use console::Term;
use lineweave::sync::sleep;
use rustix::process::{kill_process_group, test_kill_process_group, Pid, Signal};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Child;
use std::sync::{Mutex, Once, PoisonError};
use std::time::Duration;

/// Exit status of a program that an interrupt has ended, by the convention of shells.
const INTERRUPTED: i32 = 130;

/// The time that started programs have to end by themselves.
const GRACE: Duration = Duration::from_secs(3);
const LOOK: Duration = Duration::from_millis(20);

static KEPT: Mutex<String> = Mutex::new(String::new());
/// Directories that an interrupt removes.
static REMOVED: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());
/// Groups of processes that an interrupt ends. A thread that waits for one locks this first, so that it does not take an end by an
/// interrupt for a failure.
static RUNNING: Mutex<Vec<u32>> = Mutex::new(Vec::new());

/// Makes an interrupt remove this directory from now on.
pub fn removes(directory: &Path) {
    REMOVED.lock().unwrap_or_else(PoisonError::into_inner).push(directory.to_owned());
}

/// A program in a process group of its own, which an interrupt ends until this value is dropped.
#[derive(Debug)]
pub struct Running(u32);

/// Makes an interrupt end the group of this program from now on.
pub fn running(child: &Child) -> Running {
    RUNNING.lock().unwrap_or_else(PoisonError::into_inner).push(child.id());
    Running(child.id())
}

impl Drop for Running {
    fn drop(&mut self) {
        RUNNING.lock().unwrap_or_else(PoisonError::into_inner).retain(|id| *id != self.0);
    }
}

/// Ends a group of processes: asks all of them to end, and kills those that are left some seconds later.
pub fn end_group(leader: u32) {
    let Some(group) = i32::try_from(leader).ok().and_then(Pid::from_raw) else { return };
    let _ = kill_process_group(group, Signal::TERM);
    let mut waited = Duration::ZERO;
    // The group exists until all its processes have ended and been waited for.
    while waited < GRACE && test_kill_process_group(group).is_ok() {
        sleep(LOOK);
        waited += LOOK;
    }
    let _ = kill_process_group(group, Signal::KILL);
}

/// Makes an interrupt end the command, from now on, with a line that says what is kept of its work.
pub fn keeps(what: impl Into<String>) {
    *KEPT.lock().unwrap_or_else(PoisonError::into_inner) = what.into();
    static ONCE: Once = Once::new();
    // Where interrupts are ignored, as behind `nohup` or `&` in a script, they stay so. Where no handler can be installed, an interrupt ends
    // the command without a word, as it would without this.
    ONCE.call_once(|| drop(ctrlc::try_set_handler(end)));
}

fn end() {
    // The lock is held until the command ends, so that no thread takes a launch that ends now for one that failed.
    let running = RUNNING.lock().unwrap_or_else(PoisonError::into_inner);
    running.iter().for_each(|leader| end_group(*leader));
    for directory in REMOVED.lock().unwrap_or_else(PoisonError::into_inner).iter() {
        let _ = std::fs::remove_dir_all(directory);
    }
    let kept = KEPT.lock().unwrap_or_else(PoisonError::into_inner);
    // The line of the progress bar is cleared, in the same call, so that nothing is drawn between the two.
    let clear = if Term::stderr().is_term() { "\r\x1b[2K" } else { "" };
    let _ = std::io::stderr().write_all(format!("{clear}lineweave: interrupted; {kept}\n").as_bytes());
    std::process::exit(INTERRUPTED);
}
