//! The placement of ranks on hardware threads: core by core, or all threads of a core first.

use super::Topology;
use crate::names::{named, read_back};
use std::collections::BTreeMap;

/// In which order ranks take the hardware threads of cores.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Placement {
    /// Neighbour after neighbour, so that the threads of one core come first: as a team that runs is bound
    /// (`LINEWEAVE_BIND=auto`).
    #[default]
    Thread,
    /// A core each, and further threads of cores only when every core has a rank.
    Core,
}

named!(Placement, Thread = "thread", Core = "core");
read_back!(Placement, String, |name| format!("unknown placement `{name}`: expected core or thread"));

impl Topology {
    /// Returns the number of cores.
    pub fn cores(&self) -> usize {
        self.cpus.iter().map(|cpu| cpu.core).collect::<std::collections::BTreeSet<_>>().len()
    }

    /// Returns the same CPUs in the order in which ranks are placed.
    #[must_use]
    pub fn placed(mut self, placement: Placement) -> Topology {
        if placement == Placement::Core {
            let mut seen: BTreeMap<usize, usize> = BTreeMap::new();
            // Stable: cores stay in their order, thread by thread. Each key is computed once.
            self.cpus.sort_by_cached_key(|cpu| {
                let thread = seen.entry(cpu.core).or_default();
                *thread += 1;
                *thread
            });
        }
        self
    }

    /// Returns in words how so many ranks are placed; nothing where no core has several threads.
    pub fn placement_of(&self, ranks: usize, placement: Placement) -> Option<String> {
        let cores = self.cores();
        if cores == 0 || cores == self.cpus.len() {
            return None;
        }
        let used = Topology { cpus: self.cpus.iter().take(ranks).cloned().collect() }.cores();
        let other = match placement {
            Placement::Thread => "--place core gives each rank a core",
            Placement::Core => "--place thread fills cores, as a team that runs is bound",
        };
        Some(format!("{ranks} ranks on {used} of {cores} cores ({placement} by {placement}; {other})"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::topology;

    #[test]
    fn cores_come_first_where_that_is_asked_for() {
        let two = topology("pack:1 core:2 pu:2").unwrap();
        let cores = |t: Topology| t.cpus.iter().map(|c| c.core).collect::<Vec<_>>();
        assert_eq!(cores(two.clone().placed(Placement::Thread)), cores(two.clone()));
        let apart = cores(two.clone().placed(Placement::Core));
        assert_eq!((apart[0], apart[1]), (apart[2], apart[3]));
        assert_ne!(apart[0], apart[1]);
        let said = two.placement_of(2, Placement::Thread).unwrap();
        assert_eq!(said, "2 ranks on 1 of 2 cores (thread by thread; --place core gives each rank a core)");
        let said = two.clone().placed(Placement::Core).placement_of(2, Placement::Core).unwrap();
        assert!(said.starts_with("2 ranks on 2 of 2 cores (core by core"), "{said}");
        assert_eq!(topology("pack:1 core:4 pu:1").unwrap().placement_of(2, Placement::Thread), None);
        assert!("socket".parse::<Placement>().unwrap_err().contains("core or thread"));
    }
}
