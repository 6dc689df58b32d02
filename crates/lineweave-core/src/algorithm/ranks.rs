//! Rank and block arithmetic, in one place.

use std::ops::Range;

/// The smallest `r` with `base^r >= n`; 0 for `n <= 1`.
pub fn ceil_log(n: usize, base: usize) -> usize {
    debug_assert!(base >= 2);
    let (mut reach, mut r) = (1usize, 0);
    while reach < n {
        reach = reach.saturating_mul(base);
        r += 1;
    }
    r
}

/// Block `i` of `parts` nearly equal blocks of `bytes` bytes; boundaries are multiples of `grain`. Blocks are
/// empty where there are more parts than elements.
pub fn block(bytes: usize, grain: usize, parts: usize, i: usize) -> Range<usize> {
    let elements = bytes / grain;
    let start = |i: usize| (elements * i / parts) * grain;
    start(i)..start(i + 1)
}

/// The byte ranges of chunks of at most `chunk` bytes (rounded down to a multiple of `grain`, at least one
/// element) that cover `range`.
pub fn chunks(range: Range<usize>, chunk: usize, grain: usize) -> Vec<Range<usize>> {
    let step = (chunk / grain).max(1) * grain;
    let mut out = Vec::new();
    let mut at = range.start;
    while at < range.end {
        let end = range.end.min(at + step);
        out.push(at..end);
        at = end;
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn logarithms_round_up() {
        assert_eq!(ceil_log(1, 2), 0);
        assert_eq!(ceil_log(8, 2), 3);
        assert_eq!(ceil_log(9, 2), 4);
        assert_eq!(ceil_log(60, 4), 3);
    }

    #[test]
    fn blocks_cover_the_message_without_overlap() {
        for (bytes, grain, parts) in [(40, 8, 3), (8, 8, 5), (0, 4, 2), (97, 1, 7)] {
            let mut at = 0;
            for i in 0..parts {
                let b = block(bytes, grain, parts, i);
                assert_eq!(b.start, at);
                assert_eq!(b.start % grain, 0);
                at = b.end;
            }
            assert_eq!(at, bytes);
        }
    }

    #[test]
    fn chunks_end_where_the_range_ends() {
        assert_eq!(chunks(0..10, 4, 4), vec![0..4, 4..8, 8..10]);
        assert_eq!(chunks(0..8, 3, 4), vec![0..4, 4..8]);
        assert!(chunks(4..4, 8, 1).is_empty());
    }
}
