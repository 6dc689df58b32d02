//! A cache whose missing values are made by one thread each, without the lock: only who needs the same value waits for it.
//!
//! Proving a plan takes from microseconds to seconds. A thread beside the program proves plans of calls that may come, and a call that needs another
//! one must not wait for that. So a key that is being made has a mark, and the lock is held only to look and to store.

use super::lru::{Limits, LruCache};
use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};

/// A cache of limited size. Threads that need one value at a time make it once.
#[derive(Debug)]
pub(super) struct SingleFlight<K, V> {
    state: Mutex<State<K, V>>,
    /// Notified when a mark is taken off.
    made: Condvar,
}

#[derive(Debug)]
struct State<K, V> {
    known: LruCache<K, V>,
    /// The marks. Who waits takes the value from here: the cache may have evicted it by then.
    making: HashMap<K, Arc<OnceLock<V>>>,
}

/// The mark of a key, which is taken off also if making its value panics.
struct Mark<'a, K: Clone + Eq + Hash, V: Clone> {
    cache: &'a SingleFlight<K, V>,
    key: &'a K,
}

impl<K: Clone + Eq + Hash, V: Clone> Drop for Mark<'_, K, V> {
    fn drop(&mut self) {
        self.cache.lock().making.remove(self.key);
        self.cache.made.notify_all();
    }
}

impl<K: Clone + Eq + Hash, V: Clone> SingleFlight<K, V> {
    pub fn new(limits: Limits) -> SingleFlight<K, V> {
        let state = State { known: LruCache::new(limits), making: HashMap::new() };
        SingleFlight { state: Mutex::new(state), made: Condvar::new() }
    }

    /// Nothing that could panic halfway is done under the lock.
    fn lock(&self) -> MutexGuard<'_, State<K, V>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the value of a key. `make` makes it, with its weight, unless it is known or another thread is making it; that thread is waited for.
    /// If `make` panics, one of those who wait makes the value. It must not ask for the same key.
    pub fn get_or_make(&self, key: &K, make: impl FnOnce() -> (V, usize)) -> V {
        let mut state = self.lock();
        loop {
            if let Some(known) = state.known.get(key) {
                return known.clone();
            }
            let Some(other) = state.making.get(key).map(Arc::clone) else { break };
            let is_made =
                |state: &State<K, V>| !state.making.get(key).is_some_and(|one| Arc::ptr_eq(one, &other));
            while !is_made(&state) {
                state = self.made.wait(state).unwrap_or_else(PoisonError::into_inner);
            }
            if let Some(value) = other.get() {
                return value.clone();
            }
        }
        let own = Arc::new(OnceLock::new());
        state.making.insert(key.clone(), Arc::clone(&own));
        drop(state);
        let mark = Mark { cache: self, key };
        let (value, weight) = make();
        // The value is given away before the mark is off. Evicted values are dropped without the lock.
        let _ = own.set(value.clone());
        let evicted = self.lock().known.insert(key.clone(), value.clone(), weight);
        drop(mark);
        drop(evicted);
        value
    }

    /// Returns the number of values.
    #[cfg(test)]
    pub fn count(&self) -> usize {
        self.lock().known.values().count()
    }

    /// Returns the value of a key, if it is known.
    pub fn known(&self, key: &K) -> Option<V> {
        self.lock().known.get(key).cloned()
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::sync::{AtomicUsize, Ordering};
    use std::sync::mpsc;

    const FEW: Limits = Limits { entries: 2, weight: 2 };

    #[test]
    fn who_needs_another_value_does_not_wait() {
        let cache = SingleFlight::new(FEW);
        let (begun, begins) = mpsc::channel();
        let (go_on, goes_on) = mpsc::channel::<()>();
        let one = &cache;
        std::thread::scope(|scope| {
            let long = scope.spawn(move || {
                one.get_or_make(&1, || {
                    begun.send(()).unwrap();
                    goes_on.recv().unwrap();
                    (10, 1)
                })
            });
            begins.recv().unwrap();
            // The first value is being made until all this is over.
            assert_eq!(cache.get_or_make(&2, || (20, 1)), 20);
            assert_eq!(cache.get_or_make(&2, || unreachable!()), 20);
            assert!(cache.known(&1).is_none());
            go_on.send(()).unwrap();
            assert_eq!(long.join().unwrap(), 10);
        });
        assert_eq!((cache.known(&1), cache.known(&2)), (Some(10), Some(20)));
    }

    #[test]
    fn each_value_is_made_once_even_if_it_is_evicted_at_once() {
        const THREADS: usize = 8;
        for turn in 0..200 {
            // One entry, and keys that evict each other.
            let cache = SingleFlight::new(Limits { entries: 1, weight: 1 });
            let (made, asked) = (AtomicUsize::new(0), AtomicUsize::new(0));
            std::thread::scope(|scope| {
                for _ in 0..THREADS {
                    scope.spawn(|| {
                        asked.fetch_add(1, Ordering::Relaxed);
                        let value = cache.get_or_make(&turn, || {
                            // All others have come, and most of them wait.
                            while asked.load(Ordering::Relaxed) < THREADS {
                                std::thread::yield_now();
                            }
                            std::thread::yield_now();
                            cache.get_or_make(&(turn + 1), || (0, 1));
                            (made.fetch_add(1, Ordering::Relaxed) + 1, 1)
                        });
                        assert_eq!(value, 1);
                    });
                }
            });
            assert_eq!(made.load(Ordering::Relaxed), 1);
        }
    }

    #[test]
    fn a_panic_of_the_maker_leaves_the_value_to_who_waits() {
        let cache = SingleFlight::new(FEW);
        let (begun, begins) = mpsc::channel();
        std::thread::scope(|scope| {
            let one = &cache;
            let fails = scope.spawn(move || {
                one.get_or_make(&1, || -> (i32, usize) {
                    begun.send(()).unwrap();
                    std::thread::sleep(std::time::Duration::from_millis(5));
                    panic!("a test")
                })
            });
            begins.recv().unwrap();
            assert_eq!(cache.get_or_make(&1, || (7, 1)), 7);
            assert!(fails.join().is_err());
        });
        assert_eq!(cache.get_or_make(&1, || unreachable!()), 7);
    }
}
