//! What an interrupted command says: what it leaves behind.

use console::Term;
use rustix::process::{kill_process_group, test_kill_process_group, Pid, Signal};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Child;
use std::sync::{Mutex, Once, PoisonError};
use std::time::Duration;

/// Status of a program that an interrupt has ended, as shells have it.
const INTERRUPTED: i32 = 130;

/// The time that started programs have to end by themselves.
const GRACE: Duration = Duration::from_secs(3);
const LOOK: Duration = Duration::from_millis(20);

static KEPT: Mutex<String> = Mutex::new(String::new());
/// Directories that an interrupt removes.
static REMOVED: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());
/// Groups of processes that an interrupt ends. Whoever waits for one takes this first, so that it sees no end that an interrupt made.
static RUNNING: Mutex<Vec<u32>> = Mutex::new(Vec::new());

/// From now on an interrupt removes this directory.
pub fn removes(directory: &Path) {
    REMOVED.lock().unwrap_or_else(PoisonError::into_inner).push(directory.to_owned());
}

/// A program in a group of its own, which an interrupt ends as long as this is there.
#[derive(Debug)]
pub struct Running(u32);

/// From now on an interrupt ends the group of this program.
pub fn running(child: &Child) -> Running {
    RUNNING.lock().unwrap_or_else(PoisonError::into_inner).push(child.id());
    Running(child.id())
}

impl Drop for Running {
    fn drop(&mut self) {
        RUNNING.lock().unwrap_or_else(PoisonError::into_inner).retain(|id| *id != self.0);
    }
}

/// Ends a group of processes: asks all of it to end, and kills what is there some seconds later.
pub fn end_group(leader: u32) {
    let Some(group) = i32::try_from(leader).ok().and_then(Pid::from_raw) else { return };
    let _ = kill_process_group(group, Signal::TERM);
    let mut waited = Duration::ZERO;
    // It is there until all of it has ended and been waited for.
    while waited < GRACE && test_kill_process_group(group).is_ok() {
        std::thread::sleep(LOOK);
        waited += LOOK;
    }
    let _ = kill_process_group(group, Signal::KILL);
}

/// From now on an interrupt ends the command with a line that says what is kept of its work.
pub fn keeps(what: impl Into<String>) {
    *KEPT.lock().unwrap_or_else(PoisonError::into_inner) = what.into();
    static ONCE: Once = Once::new();
    // Where there can be no handler it ends without a word, as it would without this.
    ONCE.call_once(|| drop(ctrlc::set_handler(end)));
}

fn end() {
    let terminal = Term::stderr();
    if terminal.is_term() {
        // The bar.
        let _ = terminal.clear_line();
    }
    // Held until the end of the command: nobody takes a launch that ends now for one that failed.
    let running = RUNNING.lock().unwrap_or_else(PoisonError::into_inner);
    running.iter().for_each(|leader| end_group(*leader));
    for directory in REMOVED.lock().unwrap_or_else(PoisonError::into_inner).iter() {
        let _ = std::fs::remove_dir_all(directory);
    }
    let kept = KEPT.lock().unwrap_or_else(PoisonError::into_inner);
    let _ = writeln!(std::io::stderr(), "lineweave: interrupted; {kept}");
    std::process::exit(INTERRUPTED);
}
