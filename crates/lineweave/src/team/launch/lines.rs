//! Output of the ranks, passed on by lines.

use crate::error::Error;
use rustix::event::{PollFd, PollFlags};
use rustix::io::Errno;
use std::os::fd::{AsFd, OwnedFd};
use std::process::Child;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

/// The longest line that is kept together.
const LONGEST: usize = 1 << 20;
/// Bytes read at once: what a pipe holds.
const READ: usize = 64 << 10;

/// Threads that pass on what ranks print: one for standard output and one for standard error, so that neither waits for who reads the other.
pub(super) struct Lines {
    threads: Vec<JoinHandle<()>>,
    /// Closed when nobody prints any more.
    over: OwnedFd,
}

impl Lines {
    /// Takes the pipes of the ranks, by rank, where they have any.
    pub(super) fn start(children: Vec<Child>) -> Result<Lines, Error> {
        let failed =
            |e| Error::system("passing on what ranks print", e, "; raise `ulimit -u` or `ulimit -n`");
        let system = |e: Errno| failed(e.into());
        let (watched, over) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC).map_err(system)?;
        let mut lines = Lines { threads: Vec::new(), over };
        let (mut outs, mut errs) = (Vec::new(), Vec::new());
        for (rank, child) in children.into_iter().enumerate() {
            outs.extend(child.stdout.map(|pipe| Speaker::new(rank, pipe.into())));
            errs.extend(child.stderr.map(|pipe| Speaker::new(rank, pipe.into())));
        }
        let out = std::io::stdout().as_fd().try_clone_to_owned().map_err(failed)?;
        let err = std::io::stderr().as_fd().try_clone_to_owned().map_err(failed)?;
        let same = same_file(&out, &err);
        let place = |to| Arc::new(Mutex::new(Sink { to, unfinished: None }));
        let to_out = place(out);
        let to_err = if same { Arc::clone(&to_out) } else { place(err) };
        for (speakers, place) in [(outs, to_out), (errs, to_err)] {
            let over = watched.try_clone().map_err(failed)?;
            let pass = move || pass_on(speakers, &over, &place);
            lines.threads.push(std::thread::Builder::new().spawn(pass).map_err(failed)?);
        }
        Ok(lines)
    }

    /// Returns when all is passed on.
    pub(super) fn finish(self) {
        drop(self.over);
        for thread in self.threads {
            // One that panicked has said so.
            let _ = thread.join();
        }
    }
}

/// Returns whether two descriptors are of one file, such as a terminal.
fn same_file(a: &OwnedFd, b: &OwnedFd) -> bool {
    let file = |fd: &OwnedFd| rustix::fs::fstat(fd).map(|stat| (stat.st_dev, stat.st_ino));
    matches!((file(a), file(b)), (Ok(a), Ok(b)) if a == b)
}

/// Destination of the ranks' lines.
struct Sink {
    to: OwnedFd,
    /// Rank whose last line was not finished.
    unfinished: Option<usize>,
}

impl Sink {
    fn write(&mut self, rank: usize, text: &[u8]) -> Result<(), Errno> {
        if self.unfinished.is_some_and(|other| other != rank) {
            write_all(&self.to, b"\n")?;
        }
        self.unfinished = (!text.ends_with(b"\n")).then_some(rank);
        write_all(&self.to, text)
    }
}

fn write_all(to: &OwnedFd, mut text: &[u8]) -> Result<(), Errno> {
    while !text.is_empty() {
        match rustix::io::write(to, text) {
            Ok(written) => text = &text[written..],
            Err(Errno::INTR) => {}
            // Whoever shares the file wants it so.
            Err(Errno::AGAIN) => {
                let _ = rustix::event::poll(&mut [PollFd::new(to, PollFlags::OUT)], None);
            }
            Err(e) => return Err(e),
        }
    }
    Ok(())
}

/// A rank's pipe, and what it has said of a line.
struct Speaker {
    rank: usize,
    pipe: OwnedFd,
    line: Vec<u8>,
}

impl Speaker {
    fn new(rank: usize, pipe: OwnedFd) -> Speaker {
        Speaker { rank, pipe, line: Vec::new() }
    }

    /// Reads once and passes on the lines that are whole; false at the end, when the rest is passed on, too.
    fn hear(&mut self, buffer: &mut [u8], place: &Mutex<Sink>) -> Result<bool, Errno> {
        let read = match rustix::io::read(&self.pipe, &mut *buffer) {
            Err(Errno::INTR | Errno::AGAIN) => return Ok(true),
            Err(_) | Ok(0) => {
                self.say(self.line.len(), place)?;
                return Ok(false);
            }
            Ok(read) => read,
        };
        let before = self.line.len();
        self.line.extend_from_slice(&buffer[..read]);
        match buffer[..read].iter().rposition(|&byte| byte == b'\n') {
            Some(end) => self.say(before + end + 1, place)?,
            None if self.line.len() > LONGEST => self.say(self.line.len(), place)?,
            None => {}
        }
        Ok(true)
    }

    fn say(&mut self, length: usize, place: &Mutex<Sink>) -> Result<(), Errno> {
        if length == 0 {
            return Ok(());
        }
        // A thread that panicked wrote whatever it did.
        let mut place = place.lock().unwrap_or_else(PoisonError::into_inner);
        place.write(self.rank, &self.line[..length])?;
        self.line.drain(..length);
        Ok(())
    }
}

/// Until all pipes are closed, or nobody is left to print: then until they are empty.
fn pass_on(mut speakers: Vec<Speaker>, over: &OwnedFd, place: &Mutex<Sink>) {
    let mut buffer = vec![0; READ];
    while !speakers.is_empty() {
        let fds = std::iter::once(over.as_fd()).chain(speakers.iter().map(|s| s.pipe.as_fd()));
        let mut polled: Vec<PollFd<'_>> = fds.map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN)).collect();
        match rustix::event::poll(&mut polled, None) {
            Ok(_) => {}
            Err(Errno::INTR | Errno::AGAIN | Errno::NOMEM) => continue,
            Err(_) => return,
        }
        let ready: Vec<bool> = polled.iter().map(|fd| !fd.revents().is_empty()).collect();
        if ready[0] && !ready[1..].contains(&true) {
            // Somebody has the pipe who could not be ended.
            for speaker in &mut speakers {
                if speaker.say(speaker.line.len(), place).is_err() {
                    return;
                }
            }
            return;
        }
        let mut ready = ready[1..].iter();
        let mut heard = Ok(());
        speakers.retain_mut(|speaker| match (ready.next(), heard) {
            (Some(true), Ok(())) => speaker.hear(&mut buffer, place).unwrap_or_else(|e| {
                heard = Err(e);
                false
            }),
            _ => true,
        });
        if heard.is_err() {
            // Nobody reads any more: ranks are told so when their pipes close, as if they had no launcher.
            return;
        }
    }
}
