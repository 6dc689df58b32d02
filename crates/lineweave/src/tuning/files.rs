//! The files that measuring leaves: where they are, and what they say.

use super::kept;
use crate::cache;
use crate::error::Error;
use crate::topology::{synthetic, Hardware};
use lineweave_core::algorithm;
use lineweave_core::model::{fit, Model};
use lineweave_core::profile::{Fingerprint, Profile, ProfileError};
use lineweave_core::select::Choices;
use lineweave_core::topology::{Cpu, Level};
use lineweave_core::units::fnv1a;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// The profile's file within a machine's directory.
pub const PROFILE_FILE: &str = "profile.toml";
/// File that stands in for the profile: costs of a machine that was measured in another way, as `lineweave profile adopt` keeps them.
pub const COSTS_FILE: &str = "costs.json";
/// The choices' file beside either.
pub const CHOICES_FILE: &str = "choices.toml";

/// Returns the directory of this machine's profile and choices: `$XDG_CACHE_HOME/lineweave/<fingerprint>`. Nothing when
/// neither that variable nor `HOME` is set.
pub fn cache_directory(fingerprint: &Fingerprint) -> Option<PathBuf> {
    Some(cache::directory()?.join(fingerprint.id()))
}

fn profile_error(file: &Path, why: String) -> Error {
    let why = cache::fault(&why);
    // One that is not where profiles are kept was named by somebody.
    let unset = match cache::directory().is_some_and(|kept| file.starts_with(kept)) {
        true => "",
        false => ", or unset LINEWEAVE_PROFILE",
    };
    Error::Profile {
        file: file.to_owned(),
        why: format!("{why}; measure again with `lineweave tune`{unset}"),
    }
}

/// Authority that says that a file is to be used.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum By {
    /// A setting. What is wrong with it is an error.
    Setting,
    /// Its place in the cache. What is wrong with the choices there is set aside.
    Cache,
}

impl By {
    /// Reads a file; nothing if there is none.
    fn text(self, file: &Path) -> Result<Option<String>, Error> {
        let text = match self {
            By::Cache => cache::text(file),
            By::Setting => match cache::named(file) {
                Err(e) if e.kind() == ErrorKind::NotFound => Ok(None),
                read => read.map(Some),
            },
        };
        text.map_err(|e| profile_error(file, e.to_string()))
    }
}

fn parse_profile(file: &Path, text: &str) -> Result<Profile, Error> {
    Profile::from_toml(text).map_err(|e| profile_error(file, e.to_string()))
}

/// Files that were read last, and the result: a program that makes a team for each of many communicators reads the same files each time,
/// and to make a model of them takes 9 ms.
struct Last {
    texts: (String, Option<String>),
    of: (PathBuf, By, Fingerprint),
    result: Read,
}

/// Model and choices that files hold.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub(super) struct Read {
    #[serde(deserialize_with = "Model::from_part")]
    pub model: Model,
    /// CPU model of the machine that these costs are of, where they are of no profile.
    pub described: Option<String>,
    pub choices: Option<Choices>,
    /// A number that differs for different files.
    pub digest: u64,
    /// Fault of the choices in the cache, in one line.
    #[serde(skip)]
    pub aside: Option<String>,
}

static LAST: Mutex<Option<Last>> = Mutex::new(None);

/// The costs in a text; nothing if it is a profile, which is no JSON.
///
/// # Errors
/// [`Error::Profile`] with line and reason.
pub fn parse_costs(file: &Path, text: &str) -> Result<Option<Model>, Error> {
    match text.trim_start().starts_with('{') {
        true => Model::from_json(text).map(Some).map_err(|e| profile_error(file, e.to_string())),
        false => Ok(None),
    }
}

/// Returns whether costs are of a machine like this one: with as many CPUs, which share the same. Those that tell of no CPUs are of any.
///
/// # Errors
/// [`ProfileError::OtherMachine`] that names the first difference.
pub fn is_of(costs: &Model, here: &Fingerprint) -> Result<(), ProfileError> {
    let mine = &costs.machine;
    let other = |what, profile: String, here: String| Err(ProfileError::OtherMachine { what, profile, here });
    if mine.cpus != 0 && mine.cpus != here.cpus {
        return other("number of usable CPUs", mine.cpus.to_string(), here.cpus.to_string());
    }
    // Groups of different sizes have no form that a description could give.
    let alike = mine.topology.is_empty()
        || mine.topology == here.topology
        || groups(&mine.topology).is_some_and(|mine| groups(&here.topology) == Some(mine));
    match alike {
        true => Ok(()),
        false => other("topology", mine.topology.clone(), here.topology.clone()),
    }
}

/// Returns for each level the numbers of CPUs in its groups, in ascending order, however a topology's levels are called.
fn groups(form: &str) -> Option<Vec<Vec<usize>>> {
    let cpus = synthetic::hardware(form).ok()?.topology.cpus;
    let sizes = |of: &dyn Fn(&Cpu) -> usize| {
        let mut sizes: BTreeMap<usize, usize> = BTreeMap::new();
        cpus.iter().for_each(|cpu| *sizes.entry(of(cpu)).or_default() += 1);
        let mut sizes: Vec<usize> = sizes.into_values().collect();
        sizes.sort_unstable();
        sizes
    };
    Some(Level::ALL.iter().map(|level| sizes(&|cpu| cpu.id(*level))).collect())
}

/// The model of a profile's file, or of one with costs, and the choices beside it; nothing if it is not there. What they say is kept in the
/// file that `keeps` names for their digest, if it names one.
pub(super) fn read(
    file: &Path,
    by: By,
    fingerprint: &Fingerprint,
    keeps: impl Fn(u64) -> Option<PathBuf>,
) -> Result<Option<Read>, Error> {
    let beside = file.with_file_name(CHOICES_FILE);
    let text = match (by.text(file)?, by) {
        (Some(text), _) => text,
        (None, By::Cache) => return Ok(None),
        (None, By::Setting) => return Err(profile_error(file, "there is no such file".to_owned())),
    };
    let (choices, unread) = match by.text(&beside) {
        Ok(choices) => (choices, None),
        Err(Error::Profile { why, .. }) if by == By::Cache => (None, Some(cache::aside(&beside, &why))),
        Err(e) => return Err(e),
    };
    let texts = (text, choices);
    let of = (file.to_owned(), by, fingerprint.clone());
    let mut last = LAST.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = last.as_ref().filter(|l| l.texts == texts && l.of == of) {
        return Ok(Some(Read { aside: unread.or(known.result.aside.clone()), ..known.result.clone() }));
    }
    let choices = texts.1.as_deref().unwrap_or_default();
    let digest = fnv1a(texts.0.bytes().chain([0]).chain(choices.bytes()));
    let kept = keeps(digest);
    let name = name_of(fingerprint);
    let text = kept.as_deref().and_then(|kept| kept::text(kept, name));
    // By the reader of bytes, as a team's configuration, so that there is one of each type.
    let known = text.and_then(|text| serde_json::from_slice(text.as_bytes()).ok());
    let result = match known {
        Some(result) => result,
        None => {
            let result = parse(file, by, &texts, fingerprint, digest)?;
            if let (Some(kept), Ok(text), None) = (&kept, serde_json::to_string(&result), &result.aside) {
                kept::keep_text(kept, name, &text);
            }
            result
        }
    };
    *last = Some(Last { texts, of, result: result.clone() });
    Ok(Some(Read { aside: unread.or(result.aside.clone()), ..result }))
}

/// Checks the file that `LINEWEAVE_PROFILE` names before a job starts. Launchers give each rank a part of the CPUs, and on which ones the
/// job runs shows when its ranks meet; until then such a rank compares what does not depend on that.
///
/// # Errors
/// [`Error::Profile`] with line and reason.
pub fn check_named(file: &Path, hardware: &Hardware, usable: &[usize]) -> Result<(), Error> {
    let mut here = hardware.fingerprint(usable);
    let part = here.cpus < hardware.topology.cpus.len();
    if let Some(text) = By::Setting.text(file)?.filter(|_| part) {
        let of = match parse_costs(file, &text)? {
            Some(model) => model.machine,
            None => parse_profile(file, &text)?.machine,
        };
        here = Fingerprint { cpus: of.cpus, topology: of.topology, ..here };
    }
    read(file, By::Setting, &here, |_| None).map(drop)
}

/// Returns the name under which the contents of a machine's files are kept.
fn name_of(fingerprint: &Fingerprint) -> kept::Name {
    [fnv1a(*b"files"), fnv1a(format!("{fingerprint:?}").bytes())]
}

fn parse(
    file: &Path,
    by: By,
    (text, choices): &(String, Option<String>),
    fingerprint: &Fingerprint,
    digest: u64,
) -> Result<Read, Error> {
    let unfit = |e: ProfileError| profile_error(file, e.to_string());
    let (model, described) = match parse_costs(file, text)? {
        Some(model) => {
            is_of(&model, fingerprint).map_err(unfit)?;
            let name = model.machine.cpu.clone();
            (model, Some(name))
        }
        None => {
            let profile = parse_profile(file, text)?;
            profile.matches(fingerprint).map_err(unfit)?;
            (fit(&profile).map_err(|e| profile_error(file, e.to_string()))?, None)
        }
    };
    let beside = file.with_file_name(CHOICES_FILE);
    let (choices, aside) =
        match (choices.as_deref().map(|text| choices_of(text, by, fingerprint)).transpose(), by) {
            (Ok(choices), _) => (choices, None),
            (Err(why), By::Cache) => (None, Some(cache::aside(&beside, &why))),
            (Err(why), By::Setting) => return Err(profile_error(&beside, why)),
        };
    Ok(Read { model, described, choices, digest, aside })
}

/// Choices of algorithms that there are, measured on this machine. Those that a setting names may stand for another one, as in a rehearsal.
fn choices_of(text: &str, by: By, fingerprint: &Fingerprint) -> Result<Choices, String> {
    let choices = Choices::from_toml(text).map_err(|e| e.to_string())?;
    if by == By::Cache && choices.machine != fingerprint.id() {
        return Err(format!("it is of machine {}, and this is {}", choices.machine, fingerprint.id()));
    }
    let unknown = choices.choices.iter().find_map(|c| algorithm::find(c.collective, &c.algorithm).err());
    unknown.map_or(Ok(choices), |e| Err(e.to_string()))
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use lineweave_core::profile::{Cell, Stats};

    #[test]
    fn costs_are_of_machines_that_share_the_same_however_levels_are_called() {
        let here =
            |cpus, topology: &str| Fingerprint { cpus, topology: topology.into(), ..Fingerprint::default() };
        let mut costs = lineweave_core::model::Values::default().model();
        assert_eq!(is_of(&costs, &here(2, "core:2 pu:1")), Ok(()), "those of no machine are of any");
        costs.machine = here(8, "pack:2 numa:1 l3:2 core:2 pu:1");
        for same in ["pack:2 numa:1 l3:2(size=1048576) core:2 pu:1", "pack:2 numa:1 l2:2 core:2 pu:1"] {
            assert_eq!(is_of(&costs, &here(8, same)), Ok(()), "{same}");
        }
        let refused = |here: Fingerprint| is_of(&costs, &here).expect_err("another machine").to_string();
        assert!(refused(here(4, "pack:2 numa:1 l3:2 core:1 pu:1")).contains("number of usable CPUs is `8`"));
        for other in
            ["pack:1 numa:2 l3:2 core:2 pu:1", "pack:2 l3:1 core:4 pu:1", "pack:2 l3:2 core:1 pu:2", "x"]
        {
            assert!(refused(here(8, other)).contains("its topology is"), "{other}");
        }
        costs.machine.topology = String::new();
        assert_eq!(is_of(&costs, &here(8, "x")), Ok(()), "groups that differ in size have no form");
    }

    fn none(_: u64) -> Option<PathBuf> {
        None
    }

    #[test]
    fn files_are_read_again_when_they_or_the_machine_changed() {
        let directory = std::env::temp_dir().join(format!("lineweave-tuning-{}", std::process::id()));
        std::fs::create_dir_all(&directory).expect("a directory");
        let (file, beside) = (directory.join(PROFILE_FILE), directory.join(CHOICES_FILE));
        let machine =
            Fingerprint { cpu: "c".into(), cpus: 2, line_bytes: 64, topology: "core:2 pu:1".into() };
        let factor = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let line = Cell {
            probe: "line".into(),
            factors: [factor("access", "read"), factor("state", "modified"), factor("level", "l3")].into(),
            unit: "ns".into(),
            stats: Stats::of(&[39.0, 40.0, 41.0], 0).expect("samples"),
            flagged: Vec::new(),
        };
        let profile = Profile {
            schema: lineweave_core::profile::SCHEMA,
            version: "0.1.0".into(),
            measured_at: "2026-01-01T00:00:00Z".into(),
            machine: machine.clone(),
            unidentified: Vec::new(),
            cells: vec![line],
        };
        std::fs::write(&file, profile.to_toml()).expect("a profile");
        let read = |machine: &Fingerprint, keeps: &dyn Fn(u64) -> Option<PathBuf>| {
            read(&file, By::Setting, machine, keeps).map(|read| read.expect("it is there"))
        };
        let first = read(&machine, &none).expect("a model");
        assert_eq!(first.choices, None);
        assert_eq!(read(&machine, &none).expect("the same"), first);
        let other = Fingerprint { cpus: 3, ..machine.clone() };
        assert!(read(&other, &none).expect_err("another machine").to_string().contains("another machine"));
        let choices = Choices {
            schema: lineweave_core::select::CHOICES_SCHEMA,
            machine: machine.id(),
            choices: Vec::new(),
        };
        std::fs::write(&beside, choices.to_toml()).expect("choices");
        let other = read(&machine, &none).expect("a model");
        assert_eq!((&other.model, &other.choices), (&first.model, &Some(choices)));
        assert_ne!(other.digest, first.digest);
        std::fs::write(&beside, "schema = \"no\"").expect("other choices");
        assert!(read(&machine, &none).expect_err("malformed").to_string().contains(CHOICES_FILE));
        std::fs::remove_file(&beside).expect("no choices any more");
        assert_eq!(read(&machine, &none).expect("a model"), first);
        let keeps = |digest| Some(directory.join(kept::file_name(digest)));
        let forget = || *LAST.lock().unwrap() = None;
        for time in ["parsed and kept", "kept"] {
            forget();
            assert_eq!(read(&machine, &keeps).expect("a model"), first, "{time}");
        }
        let other = Read { described: Some("kept".into()), ..first.clone() };
        let text = serde_json::to_string(&other).expect("JSON");
        kept::keep_text(&keeps(first.digest).expect("a file"), name_of(&machine), &text);
        forget();
        assert_eq!(read(&machine, &keeps).expect("a model"), other, "what was kept, not what the files say");
        std::fs::write(&file, profile.to_toml().replace("0.1.0", "0.1.1")).expect("another profile");
        assert_eq!(read(&machine, &keeps).expect("a model").described, None);
        std::fs::remove_dir_all(&directory).expect("removed");
    }
}
