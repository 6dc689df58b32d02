//! The calls of an engine: their numbers, what peers read of them, and the flags that they have set.

use crate::segment::Segment;
use crate::signature::{CallKey, CallSignature, SLOTS};
use crate::sync::{AtomicU64, Ordering};

/// One rank's calls so far.
pub(super) struct Calls {
    /// The number of the one under way, or of the last one.
    pub sequence: u64,
    /// Word of the segment in which peers read `sequence`.
    sequence_word: *const AtomicU64,
    /// The signature of that call and of all calls up to it.
    pub signature: CallSignature,
    history: u64,
    /// Words of the segment in which peers read the words of the signature.
    signature_words: *const [AtomicU64; 2],
    /// Every flag set by earlier runs is at most this.
    pub base: u64,
}

impl Calls {
    /// Makes the record of a communicator in whose memory flags were set up to `base`.
    pub fn new(segment: &Segment, rank: usize, base: u64) -> Calls {
        Calls {
            sequence: 0,
            sequence_word: segment.sequence(rank),
            signature: CallSignature::default(),
            history: 0,
            signature_words: std::ptr::from_ref(segment.signature_words(rank, 0)[0]).cast(),
            base,
        }
    }

    /// Numbers the next call, and lets peers see the number.
    #[inline(always)]
    pub fn count(&mut self) {
        self.sequence += 1;
        // SAFETY: a word of the segment, which this communicator keeps mapped.
        let word = unsafe { &*self.sequence_word };
        // Relaxed: peers read it only for messages, or after the acquire of this rank's final state.
        word.store(self.sequence, Ordering::Relaxed);
    }

    /// Takes what the call under way is, which has its number; whether it is another than the last one.
    #[inline(always)]
    pub fn take(&mut self, signature: CallSignature) -> bool {
        let other = signature != self.signature;
        if other {
            (self.signature, self.history) = (signature, signature.after(self.history, self.sequence));
        }
        other
    }

    /// Lets peers see what the call under way is.
    #[inline(always)]
    pub fn publish(&self, signature: CallSignature) {
        // SAFETY: words of the segment, which this communicator keeps mapped; there are so many, and they are only ever used as atomics.
        let words = unsafe { &*self.signature_words.add((self.sequence % SLOTS) as usize) };
        let [what, bytes] = signature.words(self.sequence);
        // SYNC: called
        words[1].store(bytes, Ordering::Release);
        // SYNC: called
        words[0].store(what, Ordering::Release);
    }

    /// The mark of the flags of a run of the plan with this digest.
    #[inline(always)]
    pub fn key(&self, digest: u64) -> CallKey {
        CallKey::new(self.history, digest)
    }
}
