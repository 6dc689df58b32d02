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

/// Participants, which lie on a mesh of `columns` tiles a row with `cores` members each, in an order that goes
/// round: from tile to neighbouring tile, where all rows are full and their number or that of columns is even, otherwise
/// to the one after the next on a way that winds through the rows, and back. With no columns the order is that of
/// members.
pub fn around(members: usize, columns: usize, cores: usize) -> Vec<usize> {
    let (cores, tiles) = (cores.max(1), members.div_ceil(cores.max(1)));
    if columns == 0 {
        return (0..members).collect();
    }
    let rows = tiles.div_ceil(columns);
    // Back and forth over the lines of `across` tiles from `from` on; `at` is the tile of a place and a line.
    let wind = |lines: usize, from: usize, across: usize, at: &dyn Fn(usize, usize) -> usize| {
        let line = |l: usize| -> Vec<usize> {
            let tiles = (from..across).map(|x| at(x, l));
            if l.is_multiple_of(2) {
                tiles.collect()
            } else {
                tiles.rev().collect()
            }
        };
        (0..lines).flat_map(line).collect::<Vec<usize>>()
    };
    let (by_row, by_column) = (|x: usize, y: usize| y * columns + x, |y: usize, x: usize| y * columns + x);
    let full = tiles == rows * columns && rows > 1 && columns > 1;
    let way: Vec<usize> = if full && rows.is_multiple_of(2) {
        // The first column is the way back.
        wind(rows, 1, columns, &by_row).into_iter().chain((0..rows).rev().map(|y| by_row(0, y))).collect()
    } else if full && columns.is_multiple_of(2) {
        wind(columns, 1, rows, &by_column)
            .into_iter()
            .chain((0..columns).rev().map(|x| by_row(x, 0)))
            .collect()
    } else {
        let through: Vec<usize> =
            wind(rows, 0, columns, &by_row).into_iter().filter(|&tile| tile < tiles).collect();
        let every_other = |from: usize| through.iter().copied().skip(from).step_by(2);
        every_other(0).chain(every_other(1).collect::<Vec<_>>().into_iter().rev()).collect()
    };
    way.into_iter().flat_map(|tile| tile * cores..((tile + 1) * cores).min(members)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ways_round_go_from_tile_to_tile() {
        for (members, columns, cores) in
            [(48, 6, 2), (24, 3, 1), (30, 5, 1), (12, 6, 1), (35, 5, 1), (23, 6, 2), (5, 1, 1)]
        {
            let order = around(members, columns, cores);
            let mut all = order.clone();
            all.sort_unstable();
            assert_eq!(all, (0..members).collect::<Vec<_>>());
            let tile = |i: usize| order[i % members] / cores;
            let rows = members.div_ceil(cores).div_ceil(columns);
            let full = members == rows * columns * cores && rows > 1 && columns > 1;
            let most = if full && (rows % 2 == 0 || columns % 2 == 0) { 1 } else { 2 };
            for i in 0..members {
                let (a, b) = (tile(i), tile(i + 1));
                let hops = (a % columns).abs_diff(b % columns) + (a / columns).abs_diff(b / columns);
                assert!(hops <= most, "{members} {columns} {cores}: {a} to {b}");
            }
        }
        assert_eq!(around(4, 0, 2), [0, 1, 2, 3]);
    }
}
