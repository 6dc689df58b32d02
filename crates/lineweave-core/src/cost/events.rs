//! Events in the order of their times; of those at one time, the one that was foreseen first.

use crate::trace::Picos;
use std::cmp::Ordering;
use std::collections::BinaryHeap;

/// Queue of the events that are foreseen.
#[derive(Debug)]
pub struct Events<E> {
    heap: BinaryHeap<Due<E>>,
    count: u64,
}

/// An event with its time.
#[derive(Clone, Copy, Debug)]
struct Due<E> {
    /// When, and behind that its number.
    key: u128,
    event: E,
}

impl<E> Due<E> {
    fn at(&self) -> Picos {
        Picos((self.key >> 64) as u64)
    }
}

impl<E> PartialEq for Due<E> {
    fn eq(&self, other: &Due<E>) -> bool {
        self.key == other.key
    }
}

impl<E> Eq for Due<E> {}

impl<E> PartialOrd for Due<E> {
    fn partial_cmp(&self, other: &Due<E>) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<E> Ord for Due<E> {
    /// The heap gives its greatest first.
    fn cmp(&self, other: &Due<E>) -> Ordering {
        other.key.cmp(&self.key)
    }
}

impl<E> Events<E> {
    /// None yet.
    pub fn new() -> Events<E> {
        Events { heap: BinaryHeap::new(), count: 0 }
    }

    /// One more.
    pub fn push(&mut self, at: Picos, event: E) {
        self.count += 1;
        self.heap.push(Due { key: u128::from(at.0) << 64 | u128::from(self.count), event });
    }

    /// Returns the time at which the next event is due.
    pub fn next(&self) -> Option<Picos> {
        self.heap.peek().map(Due::at)
    }

    /// The next one.
    pub fn pop(&mut self) -> Option<(Picos, E)> {
        self.heap.pop().map(|due| (due.at(), due.event))
    }
}
