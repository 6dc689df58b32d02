//! The descriptions that come with lineweave.

use super::Machine;
use std::sync::{LazyLock, OnceLock};

macro_rules! sources {
    ($($name:literal),* $(,)?) => {
        &[$(($name, include_str!(concat!("../../machines/", $name, ".toml")))),*]
    };
}

/// Name and text of every description. The generic ones come first: they are what is taken when nothing fits.
pub static SOURCES: &[(&str, &str)] = sources![
    "generic-x86",
    "generic-arm64",
    "xeon-phi-5110p",
    "knights-landing-7210",
    "sandy-bridge-e5-2670-2s",
    "broadwell-e5-2680v4-2s",
    "cascade-lake-6242-2s",
    "ice-lake-8375c-2s",
    "sapphire-rapids",
    "epyc-rome-7742-2s",
    "epyc-milan-7763-2s",
    "epyc-milan-7453-2s",
    "epyc-genoa-9654-2s",
    "epyc-genoa-9274f-2s",
    "ryzen-9-9950x",
    "graviton2",
    "graviton3",
    "graviton4",
    "altra-q80-30",
    "power9-2s",
    "lusitania",
    "metropolis",
    "power8-8247-42l",
    "intel-scc",
];

fn parse((name, text): &(&str, &str)) -> Machine {
    text.parse().unwrap_or_else(|e| panic!("the shipped machines/{name}.toml does not read: {e}"))
}

/// Every description, read once.
pub fn shipped() -> &'static [Machine] {
    static SHIPPED: LazyLock<Vec<Machine>> = LazyLock::new(|| SOURCES.iter().map(parse).collect());
    &SHIPPED
}

/// One of them, without reading the others.
pub(super) fn one(index: usize) -> &'static Machine {
    static READ: [OnceLock<Box<Machine>>; SOURCES.len()] = [const { OnceLock::new() }; SOURCES.len()];
    READ[index].get_or_init(|| Box::new(parse(&SOURCES[index])))
}

#[cfg(test)]
mod tests {
    use super::super::Status;
    use super::*;
    use crate::topology::Level;

    #[test]
    fn files_are_called_as_their_machines() {
        for ((name, _), machine) in SOURCES.iter().zip(shipped()) {
            assert_eq!(*name, machine.name);
        }
    }

    /// A level that pairs of CPUs really have is known, unless it is SMT, which the records leave out, or no line's
    /// transfer was ever published of the machine.
    #[test]
    fn every_distance_that_occurs_has_a_cost() {
        let published = |m: &&Machine| Level::ALL.iter().any(|&l| m.transfer(l).value.is_some());
        let silent: Vec<&str> = shipped().iter().filter(|m| !published(m)).map(|m| m.name.as_str()).collect();
        assert_eq!(silent, ["lusitania", "metropolis"]);
        for machine in shipped().iter().filter(published) {
            let topology = machine.topology().unwrap();
            let first = &topology.cpus[0];
            for cpu in &topology.cpus[1..] {
                let level = first.common(cpu);
                let known = machine.transfer(level).value.is_some();
                assert!(known || level == Level::Core, "{}: {level} is unknown", machine.name);
            }
        }
    }

    #[test]
    fn generic_machines_know_everything_a_first_choice_needs() {
        for machine in shipped().iter().filter(|m| m.name.starts_with("generic")) {
            let t = &machine.transfer;
            let values = [&t.l3_ns, &t.numa_ns, &t.package_ns, &t.machine_ns];
            let rates = &machine.rates;
            let more = [&rates.copy_bytes_per_ns, &rates.memory_bytes_per_ns, &rates.fold_bytes_per_ns];
            for value in values.into_iter().chain(more) {
                assert_eq!(value.status, Status::Inferred, "{}", machine.name);
            }
        }
    }

    /// Pairs of nodes that differ are pairs of the machine, and their level's value lies between them.
    #[test]
    fn pairs_of_nodes_are_of_the_machine() {
        for machine in shipped() {
            let topology = machine.topology().unwrap();
            for pair in &machine.numa_transfer {
                let cpu = |node| topology.cpus.iter().find(|c| c.numa == node).unwrap();
                let (a, b) = (cpu(pair.nodes.0), cpu(pair.nodes.1));
                assert_eq!(machine.transfer_between(a, b), pair.transfer_ns.value);
                assert_eq!(machine.transfer_between(b, a), pair.transfer_ns.value);
                let level = machine.transfer(a.common(b));
                assert!(level.low <= pair.transfer_ns.value && pair.transfer_ns.value <= level.high);
            }
        }
    }
}
