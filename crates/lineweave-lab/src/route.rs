//! The way of a packet from tile to tile.

use lineweave_core::machine::Routing;

/// A direction of a link, or of a router's input.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Side {
    East,
    West,
    South,
    North,
}

/// A mesh of tiles with its routing.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Grid {
    pub columns: u32,
    pub rows: u32,
    pub routing: Routing,
}

impl Grid {
    pub fn tiles(self) -> usize {
        self.columns as usize * self.rows as usize
    }

    pub fn at(self, tile: u32) -> (u32, u32) {
        (tile % self.columns, tile / self.columns)
    }

    pub fn tile(self, x: u32, y: u32) -> u32 {
        y * self.columns + x
    }

    /// Links on the way from `from` to `to` along one dimension of length `n`, and whether upwards.
    fn along(self, from: u32, to: u32, n: u32) -> (u32, bool) {
        let ring = self.routing == Routing::TorusXy;
        let up = (to + n - from) % n;
        match (ring, to >= from) {
            (false, true) => (to - from, true),
            (false, false) => (from - to, false),
            (true, _) if up <= n - up => (up, true),
            (true, _) => (n - up, false),
        }
    }

    /// Routers on the way: 1 within a tile.
    pub fn distance(self, from: u32, to: u32) -> u32 {
        let ((fx, fy), (tx, ty)) = (self.at(from), self.at(to));
        self.along(fx, tx, self.columns).0 + self.along(fy, ty, self.rows).0 + 1
    }

    /// The side by which a packet for `to` leaves `at`; none when it has arrived.
    pub fn next(self, at: u32, to: u32) -> Option<Side> {
        let ((ax, ay), (tx, ty)) = (self.at(at), self.at(to));
        let across = || {
            let (steps, up) = self.along(ax, tx, self.columns);
            (steps > 0).then_some(if up { Side::East } else { Side::West })
        };
        let down = || {
            let (steps, up) = self.along(ay, ty, self.rows);
            (steps > 0).then_some(if up { Side::South } else { Side::North })
        };
        match self.routing {
            Routing::Xy | Routing::TorusXy => across().or_else(down),
            Routing::Yx => down().or_else(across),
        }
    }

    /// The tile on that side.
    pub fn neighbour(self, at: u32, side: Side) -> u32 {
        let (x, y) = self.at(at);
        let (c, r) = (self.columns, self.rows);
        match side {
            Side::East => self.tile((x + 1) % c, y),
            Side::West => self.tile((x + c - 1) % c, y),
            Side::South => self.tile(x, (y + 1) % r),
            Side::North => self.tile(x, (y + r - 1) % r),
        }
    }

    /// Calls `link` with the number of every link on the way: four a tile, by the side it leaves.
    pub fn walk(self, from: u32, to: u32, mut link: impl FnMut(usize)) {
        let mut at = from;
        while let Some(side) = self.next(at, to) {
            link(at as usize * 4 + side as usize);
            at = self.neighbour(at, side);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every tile on the way, both ends included.
    fn path(grid: Grid, from: u32, to: u32) -> Vec<u32> {
        let mut path = vec![from];
        while let Some(side) = grid.next(path[path.len() - 1], to) {
            path.push(grid.neighbour(path[path.len() - 1], side));
        }
        path
    }

    fn grid(routing: Routing) -> Grid {
        Grid { columns: 6, rows: 4, routing }
    }

    #[test]
    fn ways_are_as_long_as_distances() {
        for routing in Routing::ALL {
            let g = grid(routing);
            for from in 0..24 {
                for to in 0..24 {
                    let path = path(g, from, to);
                    assert_eq!(path.len() as u32, g.distance(from, to), "{routing} {from} {to}");
                    assert_eq!(*path.last().unwrap(), to);
                    let mut links = 0;
                    g.walk(from, to, |_| links += 1);
                    assert_eq!(links + 1, path.len());
                }
            }
        }
    }

    #[test]
    fn routings_differ_in_their_way() {
        // From (0,0) to (2,1).
        assert_eq!(path(grid(Routing::Xy), 0, 8), [0, 1, 2, 8]);
        assert_eq!(path(grid(Routing::Yx), 0, 8), [0, 6, 7, 8]);
        // The far corner of the SCC is 9 routers away, of a torus 3.
        assert_eq!(grid(Routing::Xy).distance(0, 23), 9);
        assert_eq!(path(grid(Routing::TorusXy), 0, 23), [0, 5, 23]);
    }
}
