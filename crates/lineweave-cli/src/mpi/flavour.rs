//! The kinds of MPI libraries, and the way to force the algorithms of each.

use super::{intel, mpich, openmpi, Algorithm};
use crate::bench::installed::Mpi;
use crate::script::Variables;
use clap::ValueEnum;
use lineweave_core::collective::Collective;
use std::fmt;

/// A family of libraries that have the same settings.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum Flavour {
    /// Open MPI 4 and 5
    Openmpi,
    /// MPICH from 4.0 on
    Mpich,
    /// Intel MPI
    Intel,
    /// A library whose settings are not known
    #[value(skip)]
    Unknown,
}

impl Flavour {
    /// Returns the flavour for a library's version string.
    pub fn of(version: &str) -> Flavour {
        let number = |prefix: &str| -> Option<u32> {
            let rest = version.strip_prefix(prefix)?.trim_start();
            rest.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
        };
        match (number("Open MPI v"), number("MPICH Version:"), version.starts_with("Intel(R) MPI")) {
            // Version 6 and later read rules in another form.
            (Some(4 | 5), ..) => Flavour::Openmpi,
            (_, Some(4..), _) => Flavour::Mpich,
            (.., true) => Flavour::Intel,
            _ => Flavour::Unknown,
        }
    }

    /// Returns the name of the library.
    pub fn name(self) -> &'static str {
        match self {
            Flavour::Openmpi => "Open MPI",
            Flavour::Mpich => "MPICH",
            Flavour::Intel => "Intel MPI",
            Flavour::Unknown => "an MPI whose settings are not known",
        }
    }

    /// Returns the algorithms of these collectives for so many ranks; of a library whose settings are not known the closed forms that
    /// others' algorithms have, which cannot be forced.
    pub fn algorithms(self, mpi: &Mpi, ranks: usize, collectives: &[Collective]) -> Vec<Algorithm> {
        let of = |&collective: &Collective| match self {
            Flavour::Openmpi => openmpi::algorithms(mpi, collective, ranks),
            Flavour::Mpich => mpich::algorithms(collective, ranks),
            Flavour::Intel => intel::algorithms(collective, ranks),
            Flavour::Unknown => generic(collective, ranks),
        };
        collectives.iter().flat_map(of).collect()
    }

    /// Returns whether a collective with rules for some lengths has another choice than by default for the others. Intel MPI does: with
    /// a rule for messages of 1 KiB alone, its allreduce of 1 MiB among 2 ranks took 2.9 times as long.
    pub fn needs_all_lengths(self) -> bool {
        self == Flavour::Intel
    }

    /// Returns whether one file can have rules for several numbers of ranks.
    pub fn takes_several(self) -> bool {
        self != Flavour::Intel
    }

    /// Returns the settings that force an algorithm.
    pub fn force(self, algorithm: &Algorithm) -> Variables {
        match self {
            Flavour::Openmpi => openmpi::force(algorithm),
            Flavour::Mpich => mpich::force(algorithm),
            Flavour::Intel => intel::force(algorithm),
            Flavour::Unknown => Variables::new(),
        }
    }
}

fn generic(collective: Collective, ranks: usize) -> Vec<Algorithm> {
    let mut list: Vec<Algorithm> = Vec::new();
    for known in mpich::algorithms(collective, ranks).into_iter().chain(intel::algorithms(collective, ranks))
    {
        let Some(form) = known.form.filter(|form| !list.iter().any(|a| a.form == Some(*form))) else {
            continue;
        };
        list.push(Algorithm { name: form.to_string(), value: String::new(), ..known });
    }
    list
}

impl fmt::Display for Flavour {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libraries_are_known_by_what_they_call_themselves() {
        let of = Flavour::of;
        assert_eq!(of("Open MPI v5.0.11, package: x"), Flavour::Openmpi);
        assert_eq!(of("MPICH Version:      5.0.2 MPICH Release date: x"), Flavour::Mpich);
        assert_eq!(of("Intel(R) MPI Library 2021.18.1 for Linux* OS"), Flavour::Intel);
        assert_eq!(of("Open MPI v6.0.0"), Flavour::Unknown);
        assert_eq!(of("MPICH Version: 3.4.2"), Flavour::Unknown);
        // Its collectives are compared with forms, each once.
        let forms = generic(Collective::Bcast, 4);
        assert!(forms.iter().any(|a| a.name == lineweave_lab::models::Form::BinomialBcast.to_string()));
        assert!((1..forms.len()).all(|i| forms[..i].iter().all(|a| a.name != forms[i].name)), "{forms:?}");
    }
}
