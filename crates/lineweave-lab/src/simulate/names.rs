//! Other names of ranks, cores, lines and flags, under which a plan on a machine is the same.

/// A bijection, forth and back.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Renamed {
    to: Vec<u32>,
    from: Vec<u32>,
}

impl Renamed {
    /// Returns the bijection that maps `n` to `to[n]`; `None` if it is none.
    pub(super) fn of(to: Vec<u32>) -> Option<Renamed> {
        let mut from = vec![u32::MAX; to.len()];
        for (old, &new) in to.iter().enumerate() {
            let place = from.get_mut(new as usize).filter(|place| **place == u32::MAX)?;
            *place = old as u32;
        }
        Some(Renamed { to, from })
    }

    /// All keep their names.
    pub(super) fn none(count: usize) -> Renamed {
        let all: Vec<u32> = (0..count as u32).collect();
        Renamed { to: all.clone(), from: all }
    }

    /// The new name.
    pub(super) fn to(&self, old: u32) -> u32 {
        self.to[old as usize]
    }

    /// The old names, in the order of the new ones.
    pub(super) fn in_order(&self) -> impl Iterator<Item = usize> + '_ {
        self.from.iter().map(|&old| old as usize)
    }
}

/// A symmetry of a plan on a machine.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Names {
    /// Names of ranks.
    pub(super) ranks: Renamed,
    /// Names of cores.
    pub(super) cores: Renamed,
    /// Names of the lines that the plan touches.
    pub(super) lines: Renamed,
    /// Names of flags.
    pub(super) flags: Renamed,
}
