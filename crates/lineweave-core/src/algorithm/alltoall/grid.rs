//! Grid: ranks form rows and columns; blocks go along the row to the right column, then along the column.
//!
//! The order is that of NoC_Msg on a mesh (Patil 2014, sections 4.3 and 5.6: `noc_msg.rs`), where blocks go straight to
//! their takers. Here they are passed on, so that there are fewer and longer messages: the first exchange is within a row of consecutive ranks, which are near each other, and the second
//! between rows: P - 1 far blocks a rank become one run of blocks a row.
//!
//! 1. Each rank puts its blocks into its box, those for one column together, and says so.
//! 2. It takes out of the boxes of its row what is for it, and what is for others of its column, which it packs into a
//!    second box by row, and says so.
//! 3. From each rank in its column it fetches the packed blocks destined for it, and that rank's own block for it.
//!
//! Any P: where the last row is shorter, ranks of the columns it lacks take from its ranks directly.

use super::super::pieces::{copy, input, keep_own, output, trivial, Packed, LAYOUT};
use super::super::trees::boxed;
use super::super::{Algorithm, ParamSpec, Participants, Problem};
use crate::collective::Collective;
use crate::plan::{Builder, Layout, Params, PlanError, Region};

pub(super) static ALGORITHM: Algorithm = Algorithm {
    collective: Collective::Alltoall,
    name: "grid",
    about: "blocks go along rows to the right column, then along columns",
    source: "after Patil 2014, sections 4.3 and 5.6",
    params: &[
        ParamSpec {
            name: "columns",
            default: "0",
            about: "ranks of a row; 0: as near to the square root as it gets",
        },
        LAYOUT,
    ],
    candidates,
    emit,
};

/// The ranks of a row when nobody says: the least number of columns that is at least the square root.
fn square(p: usize) -> usize {
    (1..=p).find(|c| c * c >= p).unwrap_or(1)
}

fn candidates(problem: &Problem) -> Vec<Params> {
    let p = problem.ranks();
    if p < 4 || problem.bytes == 0 {
        return Vec::new();
    }
    let mut columns = vec![square(p)];
    for level in problem.shape.useful_levels() {
        // Rows that are groups: of equally many consecutive ranks.
        let groups = problem.shape.groups(level);
        let width = groups[0].len();
        let consecutive = groups.concat().windows(2).all(|w| w[0] < w[1]);
        if consecutive && groups.iter().rev().skip(1).all(|g| g.len() == width) && !columns.contains(&width) {
            columns.push(width);
        }
    }
    columns.retain(|&c| c > 1 && c < p);
    columns.into_iter().map(|c| Params::new().with("columns", c)).collect()
}

/// The rows and columns by which ranks pass blocks on.
#[derive(Clone, Copy)]
struct Rows {
    ranks: usize,
    columns: usize,
}

impl Rows {
    /// The rank through which what `giver` has for `taker` goes: `giver` or `taker` itself where it goes straight.
    fn via(self, giver: usize, taker: usize) -> usize {
        let relay = giver / self.columns * self.columns + taker % self.columns;
        if relay < self.ranks {
            relay
        } else {
            giver
        }
    }

    /// The ranks of the row of `rank`.
    fn row(self, rank: usize) -> std::ops::Range<usize> {
        let start = rank / self.columns * self.columns;
        start..self.ranks.min(start + self.columns)
    }

    /// Returns the blocks that rank `x` passes on: those that the others of its row have for the others of its column, taker by taker.
    fn passed(self, x: usize) -> impl Iterator<Item = (usize, usize)> {
        let takers = (x % self.columns..self.ranks).step_by(self.columns).filter(move |&t| t != x);
        takers.flat_map(move |t| self.row(x).filter(move |&g| g != x).map(move |g| (g, t)))
    }
}

fn emit(b: &mut Builder, problem: &Problem, _: &Participants, params: &Params) -> Result<(), PlanError> {
    let layout = params.read(LAYOUT.name, Layout::Alone)?;
    let (p, grid) = (b.ranks(), problem.grid());
    let columns = match params.int("columns", 0, 0..p + 1)? {
        0 => square(p),
        columns => columns,
    };
    if trivial(b, &grid) {
        return Ok(());
    }
    b.ring();
    let rows = Rows { ranks: p, columns };
    // The first box: by taker's column, then by its row. The second: by taker, then by giver.
    let mut takers: Vec<usize> = (0..p).collect();
    takers.sort_by_key(|t| (t % columns, t / columns));
    let mut place = vec![0; p];
    takers.iter().enumerate().for_each(|(i, &t)| place[t] = i);
    let first: Vec<Packed> = (0..p)
        .map(|g| Packed::new(takers.iter().map(|&t| if t == g { 0 } else { grid.len(g, t) })))
        .collect();
    let relayed: Vec<Vec<(usize, usize)>> = (0..p).map(|x| rows.passed(x).collect()).collect();
    let second: Vec<Packed> =
        relayed.iter().map(|pairs| Packed::new(pairs.iter().map(|&(g, t)| grid.len(g, t)))).collect();
    let largest = |packed: &[Packed]| packed.iter().map(Packed::total).max().unwrap_or(0);
    let slots = [b.slot(largest(&first)), b.slot(largest(&second))];
    let written = b.flags("written", layout, 1);
    let turned = b.flags("turned", layout, 1);
    let in_first = |g: usize, t: usize| boxed(g, slots[0], first[g].at(place[t]));
    let in_second = |x: usize, i: usize| boxed(x, slots[1], second[x].at(i));
    for rank in 0..p {
        let out = |giver: usize| output(grid.taken(rank, giver));
        // 1. By column.
        let others = takers.iter().filter(|&&t| t != rank);
        copy(b, rank, others.map(|&t| [input(grid.given(rank, t)), in_first(rank, t)]));
        b.set(rank, written.at(rank, 0), 1);
        keep_own(b, &grid, rank);
        // 2. Along the row.
        let row = rows.row(rank);
        for g in (1..row.len()).map(|d| row.start + (rank - row.start + d) % row.len()) {
            let of_g = g - row.start - usize::from(g > rank);
            let on = relayed[rank].iter().enumerate().skip(of_g).step_by(row.len() - 1);
            let mut pieces: Vec<[Region; 2]> =
                on.map(|(i, &(_, t))| [in_first(g, t), in_second(rank, i)]).collect();
            pieces.push([in_first(g, rank), out(g)]);
            if pieces.iter().any(|[src, _]| src.len > 0) {
                b.wait(rank, written.at(g, 0), 1);
                copy(b, rank, pieces);
            }
        }
        if second[rank].total() > 0 {
            b.set(rank, turned.at(rank, 0), 1);
        }
        // 3. Along the column.
        let height = p.div_ceil(columns);
        for r in (1..height).map(|d| (rank / columns + d) % height) {
            let (mut straight, mut relay) = (Vec::new(), None);
            let mut pieces = Vec::new();
            for g in rows.row(r * columns).filter(|&g| grid.len(g, rank) > 0) {
                let x = rows.via(g, rank);
                if x == g {
                    straight.push(g);
                    pieces.push([in_first(g, rank), out(g)]);
                } else {
                    relay = Some(x);
                    let at = relayed[x].binary_search_by_key(&(rank, g), |&(g, t)| (t, g));
                    pieces.extend(at.map(|i| [in_second(x, i), out(g)]));
                }
            }
            for g in straight {
                b.wait(rank, written.at(g, 0), 1);
            }
            if let Some(x) = relay {
                b.wait(rank, turned.at(x, 0), 1);
            }
            copy(b, rank, pieces);
        }
    }
    Ok(())
}
