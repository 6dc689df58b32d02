//! Flags and the lines they lie on, while a plan is played.

use super::compile::{FlagInfo, NOBODY};
use super::rates::{distance, Near, Rates};
use super::term::Term;
use crate::plan::Layout;
use crate::topology::{Level, Shape};

/// A flag was raised.
#[derive(Clone, Copy, Debug)]
pub struct Event {
    /// To this value, counted over all runs.
    pub value: i64,
    /// When the store was issued (or the atomic add done).
    pub at: f64,
    /// When the line began to move to the writer.
    pub start: f64,
    /// When the value was in the line.
    pub visible: f64,
    /// By this rank.
    pub writer: u32,
    /// In this run.
    pub run: usize,
    /// By an add, which waits for its line.
    pub atomic: bool,
    /// The log entry of the op.
    pub entry: usize,
}

/// One flag.
#[derive(Clone, Debug, Default)]
pub struct FlagState {
    /// Raised so far, values ascending.
    pub events: Vec<Event>,
    /// Ranks that wait, and for what.
    pub waiters: Vec<(u32, i64)>,
}

/// One line.
#[derive(Clone, Debug)]
pub struct LineState {
    /// Who wrote it last.
    writer: u32,
    /// Whether anybody fetched it since.
    fetched_since: bool,
    /// Until when it is on its way to a writer.
    busy: f64,
    /// When the last read was served.
    served: f64,
    /// For each rank that reads it, when it fetched it last.
    fetched: Vec<(u32, f64)>,
}

impl LineState {
    /// A line as runs before left it: whoever waits on it has fetched it.
    pub fn new() -> LineState {
        LineState { writer: NOBODY, fetched_since: true, busy: 0.0, served: f64::MIN, fetched: Vec::new() }
    }

    fn fetched_by(&self, rank: u32) -> f64 {
        self.fetched.iter().find(|f| f.0 == rank).map_or(f64::MIN, |f| f.1)
    }

    fn note_fetch(&mut self, rank: u32, at: f64) {
        self.fetched_since = true;
        match self.fetched.iter_mut().find(|f| f.0 == rank) {
            Some(f) => f.1 = f.1.max(at),
            None => self.fetched.push((rank, at)),
        }
    }
}

/// A set that a rank issued a short while ago.
#[derive(Clone, Copy, Debug)]
pub struct Sent {
    /// To this rank.
    pub reader: u32,
    /// When.
    pub at: f64,
    /// On this line.
    pub line: usize,
    /// In this run.
    pub run: usize,
}

/// When and why a waiting rank sees an event.
#[derive(Clone, Copy, Debug)]
pub struct Arrival {
    /// The value is known to the waiter.
    pub at: f64,
    /// What the time was spent on.
    pub term: Term,
    /// Whether the event, not the waiter's own lateness, decided.
    pub by_event: bool,
}

/// A store by `rank` to a line; returns when the line starts to move and when the value is in it.
pub fn store(
    line: &mut LineState,
    rates: &Rates,
    shape: &Shape,
    rank: u32,
    reader: u32,
    issued: f64,
) -> (f64, f64) {
    let mine = line.writer == rank;
    if mine && !line.fetched_since {
        return (issued, issued);
    }
    let other = if mine || line.writer == NOBODY { reader } else { line.writer };
    let own = if other >= shape.ranks() as u32 {
        rates.at(Level::Core).own
    } else {
        distance(shape, rank, other).map_or(rates.local, |l| rates.at(l).own)
    };
    let start = if mine { issued } else { issued.max(line.busy) };
    line.busy = start + own;
    line.writer = rank;
    line.fetched_since = false;
    (start, start + own)
}

/// An atomic add by `rank`, which waits for the line; returns when it is done.
pub fn add(line: &mut LineState, rates: &Rates, shape: &Shape, rank: u32, reader: u32, at: f64) -> f64 {
    let mine = line.writer == rank && !line.fetched_since;
    let other = if line.writer == rank || line.writer == NOBODY { reader } else { line.writer };
    let level = (other < shape.ranks() as u32).then(|| distance(shape, rank, other)).flatten();
    let transfer = match level {
        _ if mine => rates.local,
        None => rates.local,
        // Measured at the nearest distance; farther lines take as much longer as owning them does.
        Some(level) => rates.add * rates.at(level).own / rates.nearest_own(),
    };
    let done = at.max(line.busy) + transfer;
    line.busy = done;
    line.writer = rank;
    line.fetched_since = false;
    done
}

/// When `rank`, which began to wait at `since`, sees `event` of a flag.
pub fn arrival(
    line: &mut LineState,
    rates: &Rates,
    shape: &Shape,
    flag: &FlagInfo,
    event: &Event,
    (rank, since): (u32, f64),
    sent: &[Sent],
) -> Arrival {
    if event.writer == rank {
        return Arrival { at: since, term: Term::Local, by_event: false };
    }
    let Some(level) = distance(shape, rank, event.writer) else {
        let by_event = event.at > since;
        return Arrival { at: event.at.max(since) + rates.local, term: Term::Local, by_event };
    };
    if line.fetched_by(rank) >= event.visible {
        return Arrival { at: since, term: Term::Local, by_event: false };
    }
    let near = rates.at(level);
    // What an exchange on this flag's line costs; a partner's flag elsewhere makes it one of separate lines.
    let mutual = sent.iter().rev().find(|s| s.reader == event.writer && s.run == event.run);
    let signal = near.signal(flag.layout);
    if let Some(mine) = mutual.filter(|s| !event.atomic && (event.at - s.at).abs() < signal) {
        let layout = if mine.line == flag.line as usize { flag.layout } else { separate(flag.layout) };
        let at = exchange(near, layout, signal, event.at, mine.at).max(since);
        line.note_fetch(rank, at);
        line.served = at;
        return Arrival { at, term: Term::Exchange(layout.into(), level), by_event: event.at >= mine.at };
    }
    // 1. A poller sees it one signal after the line began to move; 2. a latecomer reads the line;
    // 3. readers of one line are served one after the other.
    let polled = if event.atomic { event.at + near.read } else { event.start + signal };
    let late = since + near.read;
    let queued = line.served + rates.contention;
    let at = polled.max(late).max(queued);
    line.note_fetch(rank, at);
    line.served = at;
    let term = match (polled >= late, event.atomic) {
        (true, false) => Term::Signal(flag.layout.into(), level),
        (true, true) | (false, _) => Term::Read(level),
    };
    Arrival { at, term, by_event: polled >= late }
}

/// Two flags that exchange but do not share a line.
fn separate(layout: Layout) -> Layout {
    match layout {
        Layout::Packed | Layout::Paired | Layout::Alone => Layout::Alone,
        Layout::Spread(n) => Layout::Spread(n),
    }
}

/// Sets at `theirs` and `mine`, each for the other. At once they cost an exchange; the farther apart, the more
/// the later set is a signal of its own, and the earlier one a line that only has to be read.
fn exchange(near: &Near, layout: Layout, signal: f64, theirs: f64, mine: f64) -> f64 {
    let together = near.exchange(layout);
    let apart = (theirs - mine).abs() / signal;
    let alone = if theirs >= mine { signal } else { near.read };
    theirs.max(mine) + together + (alone - together) * apart
}
