//! Algorithms that are forced while an MPI runs, by its control variables.
//!
//! [`Ways::of`] finds what number a variable has for an algorithm: where a setting is a word, a launch that has it in its environment says the
//! number.

use super::{Algorithm, Flavour, Host};
use crate::script::Variables;
use std::collections::{BTreeMap, BTreeSet};

/// The setting with which MPICH's own calls fail in a launch, too, where an algorithm is forced that is not for them.
const STRICT: &str = "MPIR_CVAR_COLLECTIVE_FALLBACK";

/// For each algorithm the variables that force it, with their numbers; `None` where they cannot be set, or a number is not known.
#[derive(Debug)]
pub(super) struct Ways(Vec<Option<Vec<(String, i64)>>>);

impl Ways {
    /// Finds the variables of these algorithms.
    pub fn of(host: &Host, flavour: Flavour, algorithms: &[Algorithm]) -> Ways {
        if !flavour.switches() {
            return Ways(vec![None; algorithms.len()]);
        }
        let settings: Vec<Variables> = algorithms.iter().map(|a| flavour.force(a)).collect();
        let mut numbers = BTreeMap::new();
        for words in launches(settings.iter().flatten()) {
            let tasks: Vec<String> =
                words.iter().map(|(name, _)| format!("variable:{}", control(name))).collect();
            for line in host.launch(&tasks, 0, &words).unwrap_or_default() {
                let setting = words.iter().find(|(name, _)| control(name) == line.task);
                numbers.extend(setting.cloned().map(|setting| (setting, line.times[0] as i64)));
            }
        }
        let number = |setting: &(String, String)| {
            let number = setting.1.parse().ok().or_else(|| numbers.get(setting).copied())?;
            Some((control(&setting.0).to_owned(), number))
        };
        Ways(settings.iter().map(|settings| settings.iter().map(number).collect()).collect())
    }

    /// Returns whether all of these algorithms can be forced while the MPI runs.
    pub fn have(&self, all: &[usize]) -> bool {
        all.iter().all(|&i| self.0[i].is_some())
    }

    /// Returns the words by which `channel.c` knows these algorithms, in this order.
    pub fn words(&self, algorithms: &[Algorithm], all: &[usize]) -> Vec<String> {
        let word = |&i: &usize| {
            let variables: Vec<String> =
                self.0[i].iter().flatten().map(|(name, number)| format!("{name}={number}")).collect();
            let Algorithm { collective, least, .. } = algorithms[i];
            format!("way:{}:{least}:{}", collective.name(), variables.join(","))
        };
        all.iter().map(word).collect()
    }
}

/// Spreads the settings that are words over launches: each has a variable once, and the strict one is alone.
fn launches<'a>(settings: impl Iterator<Item = &'a (String, String)>) -> Vec<Variables> {
    let words: BTreeSet<_> = settings.filter(|(_, value)| value.parse::<i64>().is_err()).cloned().collect();
    let mut launches: Vec<Variables> = Vec::new();
    for setting in words {
        let is_strict = |(name, _): &(String, String)| name == STRICT;
        let fits = |launch: &&mut Variables| {
            launch.iter().all(|other| other.0 != setting.0 && !is_strict(other)) && !is_strict(&setting)
        };
        match launches.iter_mut().find(fits) {
            Some(launch) => launch.push(setting),
            None => launches.push(vec![setting]),
        }
    }
    launches
}

/// Returns the name of the control variable that a variable of the environment sets.
fn control(name: &str) -> &str {
    name.strip_prefix("OMPI_MCA_").unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use lineweave_core::collective::Collective;

    #[test]
    fn a_launch_says_one_word_of_each_variable() {
        let words = [("A", "x"), ("A", "y"), ("B", "z"), ("A", "x"), ("C", "0"), (STRICT, "error")];
        let words = words.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let names: Vec<String> = launches(words.iter())
            .iter()
            .map(|launch| launch.iter().map(|(n, v)| format!("{n}={v}")).collect::<Vec<_>>().join(" "))
            .collect();
        assert_eq!(names, ["A=x B=z", "A=y", "MPIR_CVAR_COLLECTIVE_FALLBACK=error"]);
    }

    #[test]
    fn an_algorithm_is_forced_from_its_least_length_on() {
        let algorithm = Algorithm {
            collective: Collective::Reduce,
            name: "rabenseifner".into(),
            value: "7".into(),
            form: None,
            calls: &[],
            copies: None,
            least: 16,
        };
        let settings = Flavour::Openmpi.force(&algorithm);
        let numbers: Vec<(String, i64)> =
            settings.iter().map(|(n, v)| (control(n).to_owned(), v.parse().unwrap())).collect();
        let ways = Ways(vec![Some(numbers), None]);
        assert!(ways.have(&[0]) && ways.have(&[]) && !ways.have(&[0, 1]));
        assert_eq!(
            ways.words(&[algorithm], &[0]),
            ["way:reduce:16:coll_tuned_priority=100,coll_tuned_use_dynamic_rules=1,coll_tuned_reduce_algorithm=7"]
        );
    }
}
