//! Requests that wait for one port, in the buffers of the routers on their ways.
//!
//! A router has an input for its own cores and one a side; the buffer of a side holds a few flits. The port
//! takes from its router's inputs in turn; room that becomes free is filled from the router before, whose
//! inputs take turns as well, and so on. All ways to one tile form a tree, so every router has one way on.
//!
//! That is why a port under more load than it can serve is unfair: a request that comes alone through one
//! input is served as often as all those together that come through another.

use crate::route::{Grid, Side};
use crate::simulate::agenda::Agent;
use std::collections::{BTreeMap, VecDeque};

/// A request that waits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Waiting {
    pub agent: Agent,
    /// The stage in which it goes on.
    pub stage: u8,
    /// Tile that it comes from.
    pub tile: u32,
    /// Room that it takes.
    pub flits: u32,
}

/// Inputs of a router: its cores, and four sides.
const INPUTS: usize = 5;
const LOCAL: usize = 0;

#[derive(Clone, Debug, Default)]
struct Router {
    inputs: [VecDeque<Waiting>; INPUTS],
    flits: [u32; INPUTS],
    /// The input that was served last.
    last: usize,
}

/// All that wait for the port of one tile.
#[derive(Clone, Debug, Default)]
pub(super) struct Queue {
    routers: BTreeMap<u32, Router>,
    len: usize,
}

impl Queue {
    pub fn len(&self) -> usize {
        self.len
    }

    /// A request from its tile's cores, on its way to `here`; a side's buffer holds `room` flits, or one
    /// request if that is longer.
    pub fn push(&mut self, waiting: Waiting, grid: Grid, here: u32, room: u32) {
        self.len += 1;
        let input = &mut self.routers.entry(waiting.tile).or_default().inputs[LOCAL];
        input.push_back(waiting);
        if input.len() > 1 {
            return;
        }
        // As far as there is room.
        let (mut at, mut input) = (waiting.tile, LOCAL);
        while let Some((next, side)) = onwards(grid, at, here) {
            let to = self.routers.entry(next).or_default();
            if to.flits[side] > 0 && to.flits[side] + waiting.flits > room {
                return;
            }
            let first = to.inputs[side].is_empty();
            to.inputs[side].push_back(waiting);
            to.flits[side] += waiting.flits;
            if let Some(from) = self.routers.get_mut(&at) {
                from.inputs[input].pop_back();
                if input != LOCAL {
                    from.flits[input] -= waiting.flits;
                }
                from.last = input;
            }
            if !first {
                return;
            }
            (at, input) = (next, side);
        }
    }

    /// Takes the request whose turn it is at the port.
    pub fn pop(&mut self, grid: Grid, here: u32, room: u32) -> Option<Waiting> {
        let (served, mut input) = self.take(here)?;
        self.len -= 1;
        // Room has become free: pull, from router to router.
        let mut at = here;
        while input != LOCAL {
            let before = grid.neighbour(at, SIDES[input - 1]);
            let Some(next) = self.routers.get(&before).and_then(Router::turn) else { break };
            let moving = self.routers[&before].inputs[next][0];
            let to = &self.routers[&at];
            if to.flits[input] > 0 && to.flits[input] + moving.flits > room {
                break;
            }
            let _ = self.take(before);
            if let Some(to) = self.routers.get_mut(&at) {
                to.inputs[input].push_back(moving);
                to.flits[input] += moving.flits;
            }
            (at, input) = (before, next);
        }
        if self.len == 0 {
            self.routers.clear();
        }
        Some(served)
    }

    fn take(&mut self, at: u32) -> Option<(Waiting, usize)> {
        let router = self.routers.get_mut(&at)?;
        let input = router.turn()?;
        router.last = input;
        let waiting = router.inputs[input].pop_front()?;
        if input != LOCAL {
            router.flits[input] -= waiting.flits;
        }
        Some((waiting, input))
    }
}

impl Router {
    /// The next input in turn that has a request.
    fn turn(&self) -> Option<usize> {
        (1..=INPUTS).map(|i| (self.last + i) % INPUTS).find(|&i| !self.inputs[i].is_empty())
    }
}

const SIDES: [Side; 4] = [Side::East, Side::West, Side::South, Side::North];

/// The next tile on the way from `at` to `here`, and its input there.
fn onwards(grid: Grid, at: u32, here: u32) -> Option<(u32, usize)> {
    let side = grid.next(at, here)?;
    let back = match side {
        Side::East => Side::West,
        Side::West => Side::East,
        Side::South => Side::North,
        Side::North => Side::South,
    };
    Some((grid.neighbour(at, side), 1 + back as usize))
}

#[cfg(test)]
mod tests {
    use super::*;
    use lineweave_core::machine::Routing;

    fn order(room: u32, requests: &[(Agent, u32)]) -> Vec<Agent> {
        let grid = Grid { columns: 3, rows: 1, routing: Routing::Xy };
        let mut queue = Queue::default();
        for &(agent, tile) in requests {
            queue.push(Waiting { agent, stage: 0, tile, flits: 1 }, grid, 0, room);
        }
        assert_eq!(queue.len(), requests.len());
        std::iter::from_fn(|| queue.pop(grid, 0, room)).map(|w| w.agent).collect()
    }

    /// Two requests from the tile itself, and five that come through one input, three of them from afar.
    #[test]
    fn inputs_take_turns() {
        let requests = [(1, 1), (2, 1), (3, 2), (4, 2), (5, 2), (8, 0), (9, 0)];
        // Room for all: in the order in which they came, but for the own cores.
        assert_eq!(order(9, &requests), [1, 8, 2, 9, 3, 4, 5]);
        // Room for one: at each router in turn.
        let tight = order(1, &requests);
        assert_eq!(tight[..4], [1, 8, 3, 9]);
        let mut all = tight.clone();
        all.sort_unstable();
        assert_eq!(all, [1, 2, 3, 4, 5, 8, 9]);
    }
}
