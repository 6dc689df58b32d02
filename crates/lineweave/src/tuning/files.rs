//! The files that measuring leaves: where they are, and what they say.

use crate::error::Error;
use crate::sysfile;
use lineweave_core::model::{fit, Model};
use lineweave_core::profile::{Fingerprint, Profile};
use lineweave_core::select::Choices;
use lineweave_core::units::fnv1a;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// The profile's file within a machine's directory.
pub const PROFILE_FILE: &str = "profile.toml";
/// The choices' file beside it.
pub const CHOICES_FILE: &str = "choices.toml";

/// Where this machine's profile and choices are kept: `$XDG_CACHE_HOME/lineweave/<fingerprint>`. Nothing when
/// neither that variable nor `HOME` is set.
pub fn cache_directory(fingerprint: &Fingerprint) -> Option<PathBuf> {
    let set = |name: &str| std::env::var_os(name).filter(|v| !v.is_empty()).map(PathBuf::from);
    let cache = set("XDG_CACHE_HOME").or_else(|| Some(set("HOME")?.join(".cache")))?;
    Some(cache.join("lineweave").join(fingerprint.id()))
}

fn profile_error(file: &Path, why: String) -> Error {
    Error::Profile { file: file.to_owned(), why }
}

/// Reads a profile's file.
///
/// # Errors
/// [`Error::Profile`] with line and reason.
pub fn read_profile(file: &Path) -> Result<Profile, Error> {
    parse_profile(file, &text_of(file)?)
}

fn text_of(file: &Path) -> Result<String, Error> {
    sysfile::text(file).map_err(|e| profile_error(file, e.to_string()))
}

fn parse_profile(file: &Path, text: &str) -> Result<Profile, Error> {
    Profile::from_toml(text).map_err(|e| profile_error(file, e.to_string()))
}

/// What was read last, and what came of it: a program that makes a team for each of many communicators reads the same files each time,
/// and to make a model of them takes 9 ms.
struct Last {
    texts: (String, Option<String>),
    fingerprint: Fingerprint,
    result: Read,
}

/// What files say.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Read {
    pub model: Model,
    pub choices: Option<Choices>,
    /// A number that differs for different files.
    pub digest: u64,
}

static LAST: Mutex<Option<Last>> = Mutex::new(None);

/// The model of a profile's file, and the choices beside it.
pub(super) fn read(file: &Path, fingerprint: &Fingerprint) -> Result<Read, Error> {
    let beside = file.with_file_name(CHOICES_FILE);
    let texts = (text_of(file)?, sysfile::text(&beside).ok());
    let mut last = LAST.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = last.as_ref().filter(|l| l.texts == texts && l.fingerprint == *fingerprint) {
        return Ok(known.result.clone());
    }
    let profile = parse_profile(file, &texts.0)?;
    profile.matches(fingerprint).map_err(|e| profile_error(file, e.to_string()))?;
    let model = fit(&profile).map_err(|e| profile_error(file, e.to_string()))?;
    let choices = texts.1.as_deref().map(Choices::from_toml).transpose();
    let choices = choices.map_err(|e| profile_error(&beside, e.to_string()))?;
    let beside = texts.1.as_deref().unwrap_or_default();
    let digest = fnv1a(texts.0.bytes().chain([0]).chain(beside.bytes()));
    let result = Read { model, choices, digest };
    *last = Some(Last { texts, fingerprint: fingerprint.clone(), result: result.clone() });
    Ok(result)
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use lineweave_core::profile::{Cell, Stats};

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
        let first = read(&file, &machine).expect("a model");
        assert_eq!(first.choices, None);
        assert_eq!(read(&file, &machine).expect("the same"), first);
        let other = Fingerprint { cpus: 3, ..machine.clone() };
        assert!(read(&file, &other).expect_err("another machine").to_string().contains("another machine"));
        let choices = Choices {
            schema: lineweave_core::select::CHOICES_SCHEMA,
            machine: machine.id(),
            choices: Vec::new(),
        };
        std::fs::write(&beside, choices.to_toml()).expect("choices");
        let other = read(&file, &machine).expect("a model");
        assert_eq!((&other.model, &other.choices), (&first.model, &Some(choices)));
        assert_ne!(other.digest, first.digest);
        std::fs::write(&beside, "schema = \"no\"").expect("other choices");
        assert!(read(&file, &machine).expect_err("malformed").to_string().contains(CHOICES_FILE));
        std::fs::remove_file(&beside).expect("no choices any more");
        assert_eq!(read(&file, &machine).expect("a model"), first);
        std::fs::remove_dir_all(&directory).expect("removed");
    }
}
