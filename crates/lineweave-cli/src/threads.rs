//! Work on several CPUs at once.

use std::sync::{Mutex, PoisonError};
use std::thread::ScopedJoinHandle;

/// Runs two functions at the same time, and returns both results.
pub fn both<A: Send, B>(one: impl FnOnce() -> A + Send, two: impl FnOnce() -> B) -> (A, B) {
    std::thread::scope(|scope| {
        let one = scope.spawn(one);
        let two = two();
        (ended(one), two)
    })
}

/// Calls a function for each item on all CPUs, and returns the results in order.
pub fn on_all_cpus<T: Sync, R: Send>(items: &[T], of: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let threads = std::thread::available_parallelism().map_or(1, usize::from).min(items.len().max(1));
    // The last items take longest, so they are begun first, and each free thread takes the next.
    let left = Mutex::new((0..items.len()).rev());
    let take = || left.lock().unwrap_or_else(PoisonError::into_inner).next();
    let mut made: Vec<(usize, R)> = std::thread::scope(|scope| {
        let (take, of) = (&take, &of);
        let part =
            |_| scope.spawn(move || std::iter::from_fn(take).map(|i| (i, of(&items[i]))).collect::<Vec<_>>());
        let started: Vec<_> = (0..threads).map(part).collect();
        started.into_iter().flat_map(ended).collect()
    });
    made.sort_by_key(|(i, _)| *i);
    made.into_iter().map(|(_, result)| result).collect()
}

/// Returns a thread's result; a panic in the thread continues here.
fn ended<R>(thread: ScopedJoinHandle<'_, R>) -> R {
    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// Returns a lock for tests that keep all CPUs busy, so that tests with more ranks than CPUs, which spin, get theirs.
#[cfg(test)]
pub fn all_cpus() -> std::sync::MutexGuard<'static, ()> {
    static CPUS: Mutex<()> = Mutex::new(());
    CPUS.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_in_the_order_of_what_they_are_of() {
        let items: Vec<usize> = (0..100).collect();
        assert_eq!(on_all_cpus(&items, |i| i * i), items.iter().map(|i| i * i).collect::<Vec<_>>());
        assert!(on_all_cpus(&[] as &[usize], |i| *i).is_empty());
        let mut calls = 0;
        let two = || calls += 1;
        assert_eq!((both(|| items.len(), two), calls), ((100, ()), 1));
    }
}
