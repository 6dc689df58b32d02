//! A cache that evicts the least recently used entries, limited by number and by weight.
//!
//! All ranks of a communicator make the same calls, so they look up and forget the same at the same calls, as long as they give
//! entries the same weight. Who repeats its last call never comes here (`Engine::ready`), and so pays nothing.

use lineweave_core::plan::Digest;
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hash};

/// Limits of a cache: both hold.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    /// The greatest number of entries.
    pub entries: usize,
    /// The greatest weight of all entries together, unless a single one is heavier.
    pub weight: usize,
}

/// An op takes some 64 bytes: a MiB of them is little for any rank, and room for what a program repeats.
const LEAST: usize = 1 << 14;

impl Limits {
    /// Returns the limits of one of `many` equal caches: together they may weigh as much as one alone, unless that leaves less than `LEAST`
    /// for each. 512 ranks that each kept what two may keep had 59 MB each when memory of 24 GiB ran out.
    pub fn shared_by(self, many: usize) -> Limits {
        Limits { weight: (self.weight / many.max(1)).max(LEAST.min(self.weight)), ..self }
    }
}

#[derive(Debug)]
struct Entry<V> {
    value: V,
    weight: usize,
    /// Time of the last use, by the clock of the cache.
    used: u64,
}

/// A map that evicts its least recently used entries.
#[derive(Debug)]
pub(super) struct LruCache<K, V> {
    /// Hashed quickly: calls that alternate between two lengths are looked up each time.
    entries: HashMap<K, Entry<V>, BuildHasherDefault<Digest>>,
    limits: Limits,
    /// Goes up with each look and each entry, so that no two were used at one time.
    clock: u64,
    weight: usize,
}

impl<K: Clone + Eq + Hash, V> LruCache<K, V> {
    pub fn new(limits: Limits) -> LruCache<K, V> {
        LruCache { entries: HashMap::default(), limits, clock: 0, weight: 0 }
    }

    /// Returns the value of `key`, which becomes the most recently used.
    pub fn get(&mut self, key: &K) -> Option<&V> {
        self.get_mut(key).map(|value| &*value)
    }

    /// As [`LruCache::get`], to be changed.
    pub fn get_mut(&mut self, key: &K) -> Option<&mut V> {
        let entry = self.entries.get_mut(key)?;
        self.clock += 1;
        entry.used = self.clock;
        Some(&mut entry.value)
    }

    /// Returns the value of `key`, which becomes no more recently used.
    pub fn peek(&self, key: &K) -> Option<&V> {
        self.entries.get(key).map(|entry| &entry.value)
    }

    /// Adds an entry, and returns the evicted values: the least recently used ones, and the earlier value of this key.
    pub fn insert(&mut self, key: K, value: V, weight: usize) -> Vec<V> {
        let mut gone: Vec<V> = self.remove(&key).into_iter().collect();
        while !self.entries.is_empty()
            && (self.entries.len() >= self.limits.entries || self.weight + weight > self.limits.weight)
        {
            gone.extend(self.forget());
        }
        self.clock += 1;
        self.weight += weight;
        self.entries.insert(key, Entry { value, weight, used: self.clock });
        gone
    }

    /// Returns all values, in no order.
    pub fn values(&self) -> impl Iterator<Item = &V> {
        self.entries.values().map(|entry| &entry.value)
    }

    /// Evicts the least recently used entry.
    pub fn forget(&mut self) -> Option<V> {
        let oldest = self.entries.iter().min_by_key(|(_, entry)| entry.used).map(|(key, _)| key.clone());
        oldest.and_then(|key| self.remove(&key))
    }

    pub fn remove(&mut self, key: &K) -> Option<V> {
        let entry = self.entries.remove(key)?;
        self.weight -= entry.weight;
        Some(entry.value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_used_longest_ago_goes_first() {
        let mut lru = LruCache::new(Limits { entries: 3, weight: 100 });
        for key in 0..3 {
            assert!(lru.insert(key, 10 * key, 1).is_empty());
        }
        assert_eq!(lru.get(&0), Some(&0));
        assert_eq!(lru.insert(3, 30, 1), [10]);
        assert_eq!(lru.get(&1), None);
        assert_eq!(lru.get(&0), Some(&0));
        assert_eq!(lru.insert(0, 7, 1), [0], "one key, one entry");
        assert_eq!(lru.remove(&2), Some(20));
        assert!(lru.insert(4, 40, 1).is_empty());
    }

    #[test]
    fn many_keep_no_more_together_than_one_unless_that_is_too_little() {
        let limits = Limits { entries: 9, weight: 1 << 20 };
        for many in [0, 1, 2, 16, 64] {
            assert!(limits.shared_by(many).weight * many.max(1) <= 1 << 20, "{many}");
        }
        assert_eq!(limits.shared_by(512).weight, LEAST);
        assert_eq!(Limits { entries: 1, weight: 5 }.shared_by(512).weight, 5);
    }

    #[test]
    fn the_weight_of_all_is_limited_and_a_heavy_one_is_alone() {
        let mut lru = LruCache::new(Limits { entries: 100, weight: 10 });
        for key in 0..3 {
            assert!(lru.insert(key, key, 3).is_empty());
        }
        assert_eq!(lru.insert(3, 3, 4), [0]);
        assert_eq!(lru.insert(4, 4, 99), [1, 2, 3]);
        assert_eq!(lru.insert(5, 5, 1), [4]);
        for key in 10..10_000 {
            lru.insert(key, key, 1);
        }
        assert_eq!((lru.entries.len(), lru.weight), (10, 10));
    }
}
