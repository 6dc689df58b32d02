//! A quick hash that, unlike the standard library's, is the same in every process.

use std::hash::Hasher;

/// Its state.
#[derive(Clone, Copy, Debug, Default)]
pub struct Digest(u64);

impl Digest {
    /// Of nothing yet; different seeds give different hashes.
    pub fn new(seed: u64) -> Digest {
        Digest(seed ^ 0x9e37_79b9_7f4a_7c15)
    }
}

impl Hasher for Digest {
    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let word = std::array::from_fn(|i| chunk.get(i).copied().unwrap_or(0));
            self.write_u64(u64::from_le_bytes(word));
        }
    }

    fn write_u64(&mut self, word: u64) {
        // The multiplier of splitmix64, and a shift that brings high bits down.
        let mixed = (self.0 ^ word).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        self.0 = mixed ^ mixed >> 32;
    }

    fn write_u8(&mut self, word: u8) {
        self.write_u64(u64::from(word));
    }

    fn write_u16(&mut self, word: u16) {
        self.write_u64(u64::from(word));
    }

    fn write_u32(&mut self, word: u32) {
        self.write_u64(u64::from(word));
    }

    fn write_usize(&mut self, word: usize) {
        self.write_u64(word as u64);
    }

    fn finish(&self) -> u64 {
        let mixed = (self.0 ^ self.0 >> 29).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 32
    }
}
