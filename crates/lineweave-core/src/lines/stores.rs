//! A core's stores on their way to lines that others have.

use crate::trace::Picos;
use std::collections::VecDeque;

/// Stores that leave in order, at most so many under way at once, and some time apart.
#[derive(Clone, Debug)]
pub struct Stores<T> {
    waiting: VecDeque<T>,
    under_way: usize,
    /// Time at which the next store may leave.
    next: Picos,
    /// Time at which the last store that left takes effect: none overtakes another.
    lands: Picos,
}

/// Outcome for the first store that waits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Leave<T> {
    /// It leaves now.
    Now(T),
    /// It leaves at this time.
    At(Picos),
    /// There is none, or another has to land before.
    Stays,
}

impl<T> Default for Stores<T> {
    fn default() -> Stores<T> {
        Stores { waiting: VecDeque::new(), under_way: 0, next: Picos(0), lands: Picos(0) }
    }
}

impl<T> Stores<T> {
    /// One more.
    pub fn push(&mut self, store: T) {
        self.waiting.push_back(store);
    }

    /// Returns whether nothing waits and nothing is under way.
    pub fn idle(&self) -> bool {
        self.waiting.is_empty() && self.nothing_under_way()
    }

    /// Returns whether the first that waits has none before it.
    pub fn nothing_under_way(&self) -> bool {
        self.under_way == 0
    }

    /// Returns the time at which all have taken effect: those that wait leave `gap` apart, and the last of them takes `transfer`.
    ///
    /// Stores of bytes wait for that where a core's stores are not reordered with each other: on x86 (Intel SDM, volume 3A, "Memory Ordering"). On ARM and
    /// POWER they may be earlier: a flag there waits for what is before it (`stlr`; `lwsync` and a store), and what follows may overtake it.
    pub fn have_landed(&self, now: Picos, gap: u64, transfer: u64) -> Picos {
        match (self.waiting.len() as u64, self.under_way) {
            (0, 0) => now,
            (0, _) => self.lands.max(now),
            (count, _) => Picos(self.next.max(now).0 + (count - 1) * gap + transfer),
        }
    }

    /// Takes the first out, whose line is the core's own: it takes effect now, or as one under way.
    pub fn take(&mut self, now: bool) -> Option<T> {
        self.under_way += usize::from(!now && !self.waiting.is_empty());
        self.waiting.pop_front()
    }

    /// Those that wait.
    pub fn waiting(&self) -> impl Iterator<Item = &T> {
        self.waiting.iter()
    }

    /// Lets the first go, where fewer than `at_once` are under way and `gap` has passed since the one before left.
    pub fn leave(&mut self, now: Picos, at_once: usize, gap: u64) -> Leave<T> {
        if self.under_way >= at_once || self.waiting.is_empty() {
            return Leave::Stays;
        }
        if self.next > now {
            return Leave::At(self.next);
        }
        let Some(store) = self.waiting.pop_front() else { return Leave::Stays };
        self.under_way += 1;
        self.next = Picos(now.0 + gap);
        Leave::Now(store)
    }

    /// The line of one under way is there at `at`: when that store takes effect.
    pub fn lands(&mut self, at: Picos) -> Picos {
        self.lands = self.lands.max(at);
        self.lands
    }

    /// One under way has taken effect.
    pub fn landed(&mut self) {
        self.under_way -= 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stores_have_landed_when_the_last_of_them_has() {
        let mut stores = Stores::default();
        assert_eq!(stores.have_landed(Picos(5), 10, 100), Picos(5));
        stores.push('a');
        stores.push('b');
        stores.push('c');
        // They leave at 5, 15 and 25, and the last takes 100 from then on.
        assert_eq!(stores.have_landed(Picos(5), 10, 100), Picos(125));
        assert_eq!(stores.leave(Picos(5), 2, 10), Leave::Now('a'));
        assert_eq!(stores.have_landed(Picos(6), 10, 100), Picos(125));
        assert_eq!(stores.leave(Picos(15), 2, 10), Leave::Now('b'));
        assert_eq!(stores.leave(Picos(25), 2, 10), Leave::Stays);
        stores.landed();
        assert_eq!(stores.leave(Picos(25), 2, 10), Leave::Now('c'));
        let last = stores.lands(Picos(130));
        assert_eq!((stores.have_landed(Picos(30), 10, 100), last), (Picos(130), last));
        stores.landed();
        stores.landed();
        assert_eq!(stores.have_landed(Picos(30), 10, 100), Picos(30));
    }
}
