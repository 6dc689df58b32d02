//! The settings of each runtime that change the times of its constructs.
//!
//! Sources: the manual of libgomp, "Environment Variables"; the reference of LLVM's OpenMP runtime, "Environment Variables".

use super::Runtime;
use crate::script::{variables, Variables};

/// Returns the settings for the way that threads wait, those that spin least first; without the default.
///
/// libgomp spins for 300,000 turns by default, for 100 where threads outnumber CPUs; `active` makes that 1,000, and `passive` none.
pub fn waits(runtime: Runtime) -> Vec<Variables> {
    let lists: &[&[(&str, &str)]] = match runtime {
        Runtime::Libgomp => &[
            &[("OMP_WAIT_POLICY", "passive")],
            &[("GOMP_SPINCOUNT", "1000")],
            &[("GOMP_SPINCOUNT", "10000")],
            &[("OMP_WAIT_POLICY", "active"), ("GOMP_SPINCOUNT", "1000")],
            &[("OMP_WAIT_POLICY", "active"), ("GOMP_SPINCOUNT", "100000")],
            &[("OMP_WAIT_POLICY", "active")],
        ],
        Runtime::Libomp => &[
            &[("OMP_WAIT_POLICY", "passive")],
            &[("KMP_BLOCKTIME", "1")],
            &[("KMP_USE_YIELD", "2")],
            &[("KMP_USE_YIELD", "2"), ("OMP_WAIT_POLICY", "active")],
            &[("OMP_WAIT_POLICY", "active")],
            &[("KMP_LIBRARY", "turnaround"), ("KMP_BLOCKTIME", "infinite")],
        ],
    };
    lists.iter().map(|list| variables(list)).collect()
}

/// Returns the settings for the binding of threads to CPUs, first none.
pub fn bindings(cpus: usize) -> Vec<Variables> {
    let close: &[(&str, &str)] = &[("OMP_PROC_BIND", "close"), ("OMP_PLACES", "threads")];
    let spread: &[(&str, &str)] = &[("OMP_PROC_BIND", "spread"), ("OMP_PLACES", "cores")];
    // Two CPUs leave no choice of where to spread to.
    let lists: &[&[(&str, &str)]] = if cpus > 2 { &[&[], close, spread] } else { &[&[], close] };
    lists.iter().map(|list| variables(list)).collect()
}

/// A kind of barrier of LLVM's runtime, which has a shape of its own.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Barrier {
    /// Explicit barriers and those of loops.
    Plain,
    /// Begin and end of regions.
    Forkjoin,
    /// Reductions.
    Reduction,
}

impl Barrier {
    /// All kinds.
    pub const ALL: [Barrier; 3] = [Barrier::Plain, Barrier::Forkjoin, Barrier::Reduction];

    /// Returns the constructs whose times this kind decides.
    pub fn constructs(self) -> &'static [&'static str] {
        match self {
            Barrier::Plain => &["barrier", "for", "taskwait"],
            Barrier::Forkjoin => &["region", "region-after-work"],
            Barrier::Reduction => &["reduction"],
        }
    }

    fn name(self) -> &'static str {
        match self {
            Barrier::Plain => "PLAIN",
            Barrier::Forkjoin => "FORKJOIN",
            Barrier::Reduction => "REDUCTION",
        }
    }
}

/// The shape of a barrier of LLVM's runtime: the name of a pattern, and the logarithm of the fan-in and fan-out where it has one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Shape {
    pattern: &'static str,
    bits: Option<u32>,
}

impl Shape {
    /// Returns the settings that give this kind of barrier this shape.
    pub fn of(self, kind: Barrier) -> Variables {
        let name = format!("KMP_{}_BARRIER", kind.name());
        let both = |text: &str| format!("{text},{text}");
        let pattern = (format!("{name}_PATTERN"), both(self.pattern));
        let bits = self.bits.map(|bits| (name, both(&bits.to_string())));
        std::iter::once(pattern).chain(bits).collect()
    }

    /// Returns the settings that give all kinds this shape.
    pub fn of_all(self) -> Variables {
        Barrier::ALL.into_iter().flat_map(|kind| self.of(kind)).collect()
    }
}

/// Returns the shapes of barriers that a runtime has; none for libgomp, which has one. By default LLVM's barriers are hypercubes with four
/// children, those of reductions with two.
pub fn shapes(runtime: Runtime, threads: usize) -> Vec<Shape> {
    if runtime == Runtime::Libgomp {
        return Vec::new();
    }
    let widest = threads.next_power_of_two().trailing_zeros().clamp(1, 4);
    let branching = |pattern| (1..=widest).map(move |bits| Shape { pattern, bits: Some(bits) });
    let flat = ["linear", "hierarchical"].map(|pattern| Shape { pattern, bits: None });
    flat.into_iter().chain(branching("tree")).chain(branching("hyper")).collect()
}

/// Returns the settings of LLVM's distributed barrier, which is for all kinds or none; nothing where threads outnumber CPUs, since it does not yield.
pub fn distributed(runtime: Runtime, threads: usize, cpus: usize) -> Option<Variables> {
    let shape = Shape { pattern: "dist", bits: None };
    (runtime == Runtime::Libomp && threads <= cpus).then(|| shape.of_all())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_for_their_runtime_and_each_stands_once() {
        for runtime in [Runtime::Libgomp, Runtime::Libomp] {
            let (other, all) = (if runtime == Runtime::Libgomp { "KMP_" } else { "GOMP_" }, waits(runtime));
            assert!(all.iter().flatten().all(|(name, _)| !name.starts_with(other)));
            assert!(all.iter().enumerate().all(|(i, a)| !all[..i].contains(a) && !a.is_empty()));
        }
        assert_eq!((bindings(2).len(), bindings(8).len()), (2, 3));
    }

    #[test]
    fn shapes_branch_no_wider_than_the_team() {
        assert!(shapes(Runtime::Libgomp, 8).is_empty());
        let of = |threads| shapes(Runtime::Libomp, threads).len();
        assert_eq!((of(2), of(4), of(8), of(64)), (4, 6, 8, 10));
        let shape = Shape { pattern: "tree", bits: Some(2) };
        let expected = [("KMP_PLAIN_BARRIER_PATTERN", "tree,tree"), ("KMP_PLAIN_BARRIER", "2,2")];
        assert_eq!(shape.of(Barrier::Plain), variables(&expected));
        assert_eq!(shape.of_all().len(), 6);
        let distributed = |threads| distributed(Runtime::Libomp, threads, 4).map(|all| all.len());
        assert_eq!((distributed(4), distributed(5)), (Some(3), None));
    }
}
