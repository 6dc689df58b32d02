//! A resource that serves at a constant rate, asked in nearly the order of time.

use lineweave_core::trace::Picos;

/// Work that a resource has still to do, as of the last time that it was asked.
#[derive(Clone, Copy, Default, Debug)]
pub(in crate::simulate) struct Bucket {
    at: u64,
    backlog: u64,
    /// Work done in all.
    pub busy: u64,
}

impl Bucket {
    /// Adds work that arrives at `at`; how long it waits for what was there before.
    ///
    /// Requests are made when an access begins, so they can be some hops out of the order in which packets
    /// arrive; one that comes from before the last finds the work as it is now.
    pub fn add(&mut self, at: Picos, work: u64) -> u64 {
        if at.0 > self.at {
            self.backlog = self.backlog.saturating_sub(at.0 - self.at);
            self.at = at.0;
        }
        let wait = self.backlog;
        self.backlog += work;
        self.busy += work;
        wait
    }

    /// Adds work; when all that is there will be done.
    pub fn drain(&mut self, at: Picos, work: u64) -> Picos {
        let wait = self.add(at, work);
        Picos(at.0.max(self.at) + wait + work)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_waits_for_work_before_it() {
        let mut bucket = Bucket::default();
        assert_eq!(bucket.add(Picos(100), 10), 0);
        assert_eq!(bucket.add(Picos(104), 10), 6);
        assert_eq!(bucket.drain(Picos(110), 10), Picos(130));
        assert_eq!(bucket.add(Picos(200), 10), 0);
        assert_eq!(bucket.busy, 40);
    }
}
