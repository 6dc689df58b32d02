//! A payload in the line of a flag, as atomic words.
//!
//! The flag and the payload share a line, and the protocol around them may let a slow reader look at words that
//! are already being written again (it discards what it took). As atomics that is a stale value, not a data race, and
//! the model checker sees every word.

use crate::sync::{AtomicU64, Ordering};

/// The most bytes that travel beside a flag: a line less the flag.
pub const MAX_PAYLOAD: usize = 56;

const WORD: usize = size_of::<u64>();

/// Store a payload of any length up to [`MAX_PAYLOAD`] into the words beside a flag, before the flag is set.
///
/// The unused bytes of a last, partial word become zero; words beyond it stay as they are.
///
/// # Panics
///
/// When the words are fewer than the payload needs: whoever laid out the line has checked that.
#[inline(always)]
pub fn store_words(words: &[AtomicU64], payload: &[u8]) {
    if let (Ok(word), [first, ..]) = (<[u8; WORD]>::try_from(payload), words) {
        // Relaxed, as below. By far the commonest payload, and without the loops.
        return first.store(u64::from_ne_bytes(word), Ordering::Relaxed);
    }
    let words = &words[..payload.len().div_ceil(WORD)];
    let whole = payload.chunks_exact(WORD);
    let rest = whole.remainder();
    for (word, bytes) in words.iter().zip(whole) {
        // Relaxed is enough: the release of the flag that follows publishes the words with it.
        word.store(u64::from_ne_bytes(bytes.try_into().expect("a chunk is a word")), Ordering::Relaxed);
    }
    if !rest.is_empty() {
        let mut last = [0; WORD];
        last[..rest.len()].copy_from_slice(rest);
        // Relaxed, as above.
        words[words.len() - 1].store(u64::from_ne_bytes(last), Ordering::Relaxed);
    }
}

/// Load a payload of any length up to [`MAX_PAYLOAD`] from the words beside a flag, after the flag was seen set.
///
/// # Panics
///
/// When the words are fewer than the payload needs: whoever laid out the line has checked that.
#[inline(always)]
pub fn load_words(words: &[AtomicU64], payload: &mut [u8]) {
    if let (Ok(word), [first, ..]) = (<&mut [u8; WORD]>::try_from(&mut *payload), words) {
        // Relaxed, as below.
        *word = first.load(Ordering::Relaxed).to_ne_bytes();
        return;
    }
    let words = &words[..payload.len().div_ceil(WORD)];
    let mut whole = payload.chunks_exact_mut(WORD);
    for (word, bytes) in words.iter().zip(&mut whole) {
        // Relaxed is enough: the acquire of the flag that precedes orders the words after it.
        bytes.copy_from_slice(&word.load(Ordering::Relaxed).to_ne_bytes());
    }
    let rest = whole.into_remainder();
    if !rest.is_empty() {
        // Relaxed, as above.
        let last = words[words.len() - 1].load(Ordering::Relaxed).to_ne_bytes();
        rest.copy_from_slice(&last[..rest.len()]);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn every_length_arrives_and_nothing_else_is_written() {
        for len in 0..=MAX_PAYLOAD {
            let sent: Vec<u8> = (0..len).map(|i| (i * 7 + len) as u8 | 1).collect();
            let words: Vec<AtomicU64> = (0..7).map(|_| AtomicU64::new(u64::MAX)).collect();
            store_words(&words, &sent);
            let used = len.div_ceil(WORD);
            for word in &words[used..] {
                assert_eq!(word.load(Ordering::Relaxed), u64::MAX, "a word beyond {len} bytes was written");
            }
            // The private buffer is longer than the payload, and its tail must survive.
            let mut taken = vec![0xa5; len + WORD];
            load_words(&words, &mut taken[..len]);
            assert_eq!(taken[..len], sent);
            assert!(taken[len..].iter().all(|&b| b == 0xa5), "a byte beyond {len} was written");
        }
    }

    #[test]
    fn just_enough_words_are_enough() {
        let words = [AtomicU64::new(0), AtomicU64::new(0)];
        store_words(&words, &[9; 9]);
        let mut taken = [0; 9];
        load_words(&words, &mut taken);
        assert_eq!(taken, [9; 9]);
    }
}
