//! NoC_Msg's alltoall: blocks go straight to their takers, first within tiles, then within columns, then between columns.
//!
//! Patil 2014, sections 4.3 and 5.6, Algorithm 6. Tile by tile a core exchanges blocks with
//!
//! 1. the other cores of its tile;
//! 2. its column: the tiles one above and one below, then two, and so on;
//! 3. the other columns, in turns: in turn `i` column `i` exchanges with the columns on its right, each tile with the tile
//!    of its own row first, then with those below that row, then with those above.
//!
//! The printed loop counts turns from 1 (line 15), so that the leftmost column would have none; by the text it is the
//! first, and is so here. Of cores on two tiles, those of one place exchange first.
//!
//! A core puts a block into its box, says how many it has put, and gets the one that is for it: givers never wait, takers
//! wait for the giver's count. Any P. A baseline for meshes: not among the candidates for selection.

use super::super::noc_msg::{Tiles, COLUMNS, CORES};
use super::super::pieces::{input, keep_own, output, trivial, value, Packed, LAYOUT};
use super::super::trees::boxed;
use super::super::{Algorithm, Participants, Problem};
use crate::collective::Collective;
use crate::plan::{Builder, Layout, Params, PlanError};

pub(super) static ALGORITHM: Algorithm = Algorithm {
    collective: Collective::Alltoall,
    name: "noc-msg",
    about: "NoC_Msg: blocks straight to their takers, within tiles, columns, then between columns",
    source: "Patil 2014, section 5.6, Algorithm 6",
    params: &[COLUMNS, CORES, LAYOUT],
    candidates: |_| Vec::new(),
    emit,
};

/// With whom a core exchanges, in order.
fn partners(tiles: Tiles, rank: usize) -> Vec<usize> {
    let ((x, y), core) = (tiles.place(rank), tiles.core(rank));
    let (columns, rows) = tiles.size();
    let mut order = Vec::new();
    // Of a tile, the core of the same place first.
    let mut tile = |column: usize, row: usize| {
        let members = tiles.at(column, row);
        let n = members.len();
        order.extend((0..n).map(|i| members.start + (core + i) % n).filter(|&m| m != rank));
    };
    tile(x, y);
    for i in 1..rows {
        if i <= y {
            tile(x, y - i);
        }
        if y + i < rows {
            tile(x, y + i);
        }
    }
    // A turn is of the left column of two: those on its left have theirs before it.
    for other in (0..columns).filter(|&c| c != x) {
        // Seen from the left tile the right one is in its own row, then below, then above.
        let below = (1..rows).map(|d| d as isize);
        let above = (1..rows).map(|d| -(d as isize));
        for offset in std::iter::once(0).chain(below).chain(above) {
            let towards = if x < other { offset } else { -offset };
            if let Some(row) = y.checked_add_signed(towards).filter(|&row| row < rows) {
                tile(other, row);
            }
        }
    }
    order
}

fn emit(b: &mut Builder, problem: &Problem, _: &Participants, params: &Params) -> Result<(), PlanError> {
    let layout = params.read(LAYOUT.name, Layout::Alone)?;
    let (p, grid) = (b.ranks(), problem.grid());
    let tiles = Tiles::read(params, p)?;
    if trivial(b, &grid) {
        return Ok(());
    }
    b.ring();
    let order: Vec<Vec<usize>> = (0..p).map(|rank| partners(tiles, rank)).collect();
    // Blocks in the order in which they are put, and the place of each taker in it.
    let packed: Vec<Packed> = order
        .iter()
        .enumerate()
        .map(|(g, takers)| Packed::new(takers.iter().map(|&t| grid.len(g, t))))
        .collect();
    let mut place = vec![vec![0; p]; p];
    for (g, takers) in order.iter().enumerate() {
        takers.iter().enumerate().for_each(|(i, &t)| place[g][t] = i);
    }
    let slot = b.slot(packed.iter().map(Packed::total).max().unwrap_or(0));
    let given = b.flags("given", layout, 1);
    for (rank, partners) in order.iter().enumerate() {
        keep_own(b, &grid, rank);
        for (i, &other) in partners.iter().enumerate() {
            b.mov(rank, input(grid.given(rank, other)), boxed(rank, slot, packed[rank].at(i)));
            b.set(rank, given.at(rank, 0), value(i));
            if grid.len(other, rank) > 0 {
                let at = place[other][rank];
                b.wait(rank, given.at(other, 0), value(at));
                b.mov(rank, boxed(other, slot, packed[other].at(at)), output(grid.taken(rank, other)));
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tiles(members: usize, columns: usize, cores: usize) -> Tiles {
        Tiles::read(&Params::new().with("columns", columns).with("cores", cores), members).unwrap()
    }

    /// Algorithm 6 by hand for the core at (1,1) of 3 x 3 tiles with a core each.
    #[test]
    fn the_order_is_that_of_algorithm_6() {
        // Column: above, below. Left column's turn: as its right, from rows 1, then 0 (below it), then 2. Right column.
        assert_eq!(partners(tiles(9, 3, 1), 4), [1, 7, 3, 0, 6, 5, 8, 2]);
        // Two cores a tile: the other core, then of each tile the core of the same place first.
        assert_eq!(partners(tiles(8, 2, 2), 1), [0, 5, 4, 3, 2, 7, 6]);
    }
}
