//! Numbers that repeat: every rank draws the same ones, so all make the same calls without telling each other.

/// A generator from a seed, with the multiplier and increment of Knuth's MMIX.
#[derive(Clone)]
pub struct Random(pub u64);

#[allow(dead_code, reason = "each program uses some of it")]
impl Random {
    /// Draws a number below `n`.
    pub fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % n
    }

    /// Returns true once in `n` times.
    pub fn once_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }

    /// Draws one of these.
    pub fn of<T: Copy>(&mut self, these: &[T]) -> T {
        these[self.below(these.len())]
    }
}
