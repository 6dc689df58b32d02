//! Distances between CPUs, derived from the measured pairs: classes of pairs, found and not assumed.

use crate::error::CliError;
use crate::output::table;
use crate::session::Session;
use lineweave::sysfile::format_cpu_list;
use lineweave_core::profile::Profile;
use lineweave_core::topology::{Level, Topology};
use lineweave_core::units::Nanos;
use lineweave_lab::models::classes::{classes, Class, Latencies};
use serde::Serialize;

/// A class of pairs at the same distance. Printed as `distance` by `lineweave fit`, nearest first.
#[derive(Serialize)]
struct Distance {
    /// The level of the topology that groups the CPUs in the same way, if there is one.
    level: Option<&'static str>,
    /// Time of a flag raised and seen, one way: the median over pairs.
    value_ns: f64,
    ci_low_ns: f64,
    ci_high_ns: f64,
    pairs: usize,
    /// Groups of CPUs whose pairs are at this distance or a nearer one.
    groups: Vec<Vec<usize>>,
}

/// The distance classes of a profile's pairs. Printed as `distances` by `lineweave fit`, where pairs of CPUs were measured.
#[derive(Serialize)]
pub(super) struct Distances {
    #[serde(skip)]
    classes: Vec<Distance>,
    /// Pairs whose latency differs from that of their class.
    odd: Vec<(usize, usize)>,
    /// True if the classes describe the machine.
    hierarchical: bool,
}

impl Distances {
    /// Finds the classes of a profile's pairs, with the names that `topology` has for them if the profile's CPUs are its.
    /// Returns `None` where pairs were not measured.
    pub(super) fn of(profile: &Profile, topology: Option<&Topology>) -> Option<Distances> {
        let found = classes(&Latencies::of(profile).ok()?);
        let names = match topology {
            Some(topology) => found.named(topology),
            None => vec![None; found.classes.len()],
        };
        let distance = |(class, name): (&Class, Option<Level>)| Distance {
            level: name.map(Level::name),
            value_ns: class.latency.value,
            ci_low_ns: class.latency.ci_low,
            ci_high_ns: class.latency.ci_high,
            pairs: class.pairs,
            groups: class.groups.clone(),
        };
        let classes = found.classes.iter().zip(names).map(distance).collect();
        Some(Distances { classes, odd: found.odd, hierarchical: found.hierarchical })
    }

    /// Writes the classes as JSON objects.
    pub(super) fn objects(&self, session: &mut Session) -> Result<(), CliError> {
        session.out.object("distances", self)?;
        self.classes.iter().try_for_each(|class| session.out.object("distance", class))
    }

    /// Writes the classes as a table.
    pub(super) fn text(&self, session: &mut Session) -> Result<(), CliError> {
        session.out.line("\nhow far CPUs are apart (a flag raised and seen), as their pairs tell")?;
        let mut rows = table(&["class", "one way", "95 % interval", "pairs", "groups of CPUs"], &[1, 3]);
        for (i, class) in self.classes.iter().enumerate() {
            let groups: Vec<String> = class.groups.iter().map(|group| format_cpu_list(group)).collect();
            rows.add_row([
                class.level.map_or_else(|| format!("{}", i + 1), str::to_owned),
                Nanos(class.value_ns).to_string(),
                format!("{} .. {}", Nanos(class.ci_low_ns), Nanos(class.ci_high_ns)),
                class.pairs.to_string(),
                groups.join("  "),
            ]);
        }
        session.out.table(&rows)?;
        if !self.odd.is_empty() {
            let pairs: Vec<String> = self.odd.iter().take(8).map(|(a, b)| format!("{a}-{b}")).collect();
            let more = if self.odd.len() > pairs.len() { " ..." } else { "" };
            session.out.line(&format!("{} odd pairs: {}{more}", self.odd.len(), pairs.join(" ")))?;
        }
        if !self.hierarchical {
            session
                .out
                .line("too many pairs are odd for a hierarchy: the classes do not describe this machine")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lineweave_core::profile::{Cell, Fingerprint, Stats, SCHEMA};
    use lineweave_core::topology::Cpu;

    #[test]
    fn two_caches_are_found_in_the_pairs_and_named_by_the_topology() {
        let cell = |a: usize, b: usize| {
            let ns = if a / 4 == b / 4 { 30.0 } else { 110.0 } + (a + b) as f64 * 0.1;
            Cell {
                probe: "pair".to_owned(),
                factors: [("a", a), ("b", b)].map(|(k, v)| (k.to_owned(), v.to_string())).into(),
                unit: "ns".to_owned(),
                stats: Stats::of(&[ns, ns + 0.2, ns - 0.2], 0).expect("samples"),
                flagged: Vec::new(),
            }
        };
        let cells = (0..8).flat_map(|a| (a + 1..8).map(move |b| (a, b))).map(|(a, b)| cell(a, b)).collect();
        let profile = Profile {
            schema: SCHEMA,
            version: String::new(),
            measured_at: String::new(),
            machine: Fingerprint::default(),
            unidentified: Vec::new(),
            cells,
        };
        let cpu = |c: usize| Cpu { os: c, core: c, l3: c / 4, numa: 0, package: 0, kind: 0 };
        let topology = Topology { cpus: (0..8).map(cpu).collect() };
        let found = Distances::of(&profile, Some(&topology)).expect("pairs");
        let names: Vec<Option<&str>> = found.classes.iter().map(|c| c.level).collect();
        assert_eq!(names, [Some("l3"), Some("numa")]);
        assert_eq!(found.classes[0].groups, [vec![0, 1, 2, 3], vec![4, 5, 6, 7]]);
        assert_eq!([found.classes[0].pairs, found.classes[1].pairs], [12, 16]);
        assert!(found.hierarchical && found.odd.is_empty());
        let none = Profile { cells: Vec::new(), ..profile };
        assert!(Distances::of(&none, None).is_none());
    }
}
