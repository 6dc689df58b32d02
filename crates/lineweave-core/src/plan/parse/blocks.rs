//! The fields of a plan's header that say how its blocks lie.

use super::super::cursor::Cursor;
use super::super::{Blocks, Uneven};
use super::{complete, Parsed, MOST_BYTES};
use crate::collective::Collective;
use std::sync::Arc;

/// The fields on blocks, taken off the end of the header: `pitch`, or `counts` and perhaps `lens`.
pub(super) fn fields(pairs: &mut Vec<(String, String)>) -> [Option<String>; 3] {
    let mut take = |name: &str| match pairs.last() {
        Some((key, _)) if key == name => pairs.pop().map(|(_, value)| value),
        _ => None,
    };
    let pitch = take("pitch");
    let lens = take("lens");
    [pitch, take("counts"), lens]
}

/// Reads the layout of the blocks.
pub(super) fn read(
    line: &Cursor<'_>,
    collective: Collective,
    ranks: usize,
    fields: [Option<String>; 3],
) -> Parsed<Blocks> {
    let expected = if collective == Collective::Alltoall { ranks * ranks } else { ranks };
    let lengths = |text: &str| {
        let list = complete(line.at(text), numbers)?;
        if list.len() == expected {
            return Ok(list);
        }
        Err(line.mismatch(format!("{expected} lengths of blocks"), list.len().to_string()))
    };
    match fields {
        [None, None, None] => Ok(Blocks::Dense),
        [Some(pitch), None, None] => {
            complete(line.at(&pitch), |at| at.number("bytes between blocks", MOST_BYTES)).map(Blocks::Apart)
        }
        [None, Some(counts), lens] => {
            let counts = lengths(&counts)?;
            let mut uneven = match collective {
                Collective::Alltoall => Uneven::by_pair(ranks, counts),
                _ => Uneven::by_rank(counts),
            };
            if let Some(lens) = lens {
                uneven = uneven.covering(lengths(&lens)?);
            }
            Ok(Blocks::Uneven(Arc::new(uneven)))
        }
        [_, _, _] => Err(line.mismatch("`pitch=`, or `counts=` and then `lens=`", "another combination")),
    }
}

/// Lengths, separated by commas.
fn numbers(at: &mut Cursor<'_>) -> Parsed<Vec<usize>> {
    let mut list = Vec::new();
    loop {
        list.push(at.number("the length of a block", MOST_BYTES)?);
        if !at.eat(",") {
            return Ok(list);
        }
    }
}
