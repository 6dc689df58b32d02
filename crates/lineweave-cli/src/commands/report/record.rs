//! The record of a bench: measured calls of lineweave and of others, as a file that was named or the latest that was kept.

use crate::bench::record::KEPT_FILE;
use crate::error::CliError;
use crate::session::Session;
use lineweave::segment::MAX_RANKS;
use lineweave_core::collective::Collective;
use serde::Deserialize;
use std::path::{Path, PathBuf};

/// One measured call of a bench record.
#[derive(Deserialize, Debug)]
pub struct Measured {
    pub collective: Collective,
    pub ranks: usize,
    pub bytes: usize,
    pub team: String,
    pub median_ns: f64,
    pub ci_low_ns: Option<f64>,
    pub ci_high_ns: Option<f64>,
    /// Its ratio to the floor of such calls: an exchange by hand, or copies of memory.
    pub ratio_to_floor: Option<f64>,
    pub algorithm: String,
    pub window_bytes: usize,
}

/// The head of a bench record.
#[derive(Deserialize, Debug)]
pub struct Head {
    pub cpu: String,
    pub fingerprint: String,
    pub topology: String,
    pub measured_at: String,
}

/// A bench record.
#[derive(Debug)]
pub struct Record {
    pub file: PathBuf,
    /// The file's name, as a report may show it.
    pub name: String,
    pub head: Head,
    pub rows: Vec<Measured>,
    /// Calls of other programs that were timed beside it.
    pub others: Vec<Other>,
}

/// A call that another program carried out.
#[derive(Debug)]
pub struct Other {
    /// Name of an MPI or an OpenMP, `pthread`, or `floor` or `hand-floor`: a minimal hand-written exchange.
    pub name: String,
    pub team: Option<String>,
    pub collective: Collective,
    pub ranks: usize,
    pub bytes: usize,
    pub ns: f64,
}

/// The fields of a record's line that describe another program's call.
#[derive(Deserialize)]
struct OtherLine {
    subject: Option<String>,
    mpi: Option<String>,
    team: Option<String>,
    #[serde(default)]
    lineweave: bool,
    collective: Collective,
    ranks: usize,
    #[serde(default)]
    bytes: usize,
    median_ns: f64,
}

/// Subjects of a record that are parts of a call, and not a whole call.
const PIECES: [&str; 2] = ["memcpy", "byte-floor"];

impl Other {
    /// Returns whether the call is the same, in the same kind of team where both have one.
    pub fn is_of(&self, team: Option<&str>, collective: Collective, ranks: usize, bytes: usize) -> bool {
        let alike = self.team.is_none() || team.is_none() || self.team.as_deref() == team;
        alike && (self.collective, self.ranks, self.bytes) == (collective, ranks, bytes)
    }

    /// Returns whether it is no library's, but a minimal exchange by hand.
    pub fn is_floor(&self) -> bool {
        self.name.ends_with("floor")
    }

    /// Adds a line of a record that is of another program; the fastest of its settings counts.
    fn read(value: serde_json::Value, all: &mut Vec<Other>) {
        // Lines without a collective, such as copies of memory, are of no call.
        let Ok(line) = serde_json::from_value::<OtherLine>(value) else { return };
        let calls = |name: &String| {
            !line.lineweave && !name.starts_with("lineweave") && !PIECES.contains(&name.as_str())
        };
        let Some(name) = line.mpi.or(line.subject).filter(calls) else { return };
        let OtherLine { team, collective, ranks, bytes, .. } = line;
        let other = Other { name, team, collective, ranks, bytes, ns: line.median_ns };
        let same =
            |o: &&mut Other| o.name == other.name && o.is_of(other.team.as_deref(), collective, ranks, bytes);
        match all.iter_mut().find(same) {
            Some(there) => there.ns = there.ns.min(other.ns),
            None => all.push(other),
        }
    }
}

/// Returns the times that `lineweave bench` kept of this machine. A file that cannot be used is said, and left alone.
pub fn kept(session: &mut Session) -> Option<Record> {
    let (_, profile) = session.cached_profile().ok()?;
    let file = profile.with_file_name(KEPT_FILE);
    let read = match lineweave::cache::text(&file) {
        Ok(text) => text.map(|text| parse(&text, &file)),
        Err(why) => Some(Err(CliError::malformed(&file, WHAT, why))),
    };
    match read? {
        Ok(record) => Some(record),
        Err(why) => {
            session.out.warn(&format!("{why}; it is set aside"));
            None
        }
    }
}

/// The name of records in messages.
const WHAT: &str = "bench record";

/// Reads a record that was named.
pub fn read(file: &Path) -> Result<Record, CliError> {
    parse(&lineweave::sysfile::text(file).map_err(|e| CliError::read(file, WHAT, e))?, file)
}

fn parse(text: &str, file: &Path) -> Result<Record, CliError> {
    let (mut head, mut rows, mut others) = (None, Vec::new(), Vec::new());
    for (i, line) in text.lines().enumerate().filter(|(_, l)| !l.trim().is_empty()) {
        let bad = |e: serde_json::Error| CliError::malformed(file, WHAT, format!("line {}: {e}", i + 1));
        let value: serde_json::Value = serde_json::from_str(line).map_err(bad)?;
        match (value["kind"].as_str(), value["subject"].as_str()) {
            (Some("record"), _) => head = Some(serde_json::from_value(value).map_err(bad)?),
            (Some("bench"), Some("lineweave")) => {
                let row: Measured = serde_json::from_value(value).map_err(bad)?;
                if !(1..=MAX_RANKS).contains(&row.ranks) {
                    let found =
                        format!("line {}: {} ranks, and a team has 1 to {MAX_RANKS}", i + 1, row.ranks);
                    return Err(CliError::malformed(file, WHAT, found));
                }
                rows.push(row);
            }
            (Some("bench" | "mpi-time"), _) => Other::read(value, &mut others),
            _ => {}
        }
    }
    let head = head.ok_or_else(|| CliError::malformed(file, WHAT, "no line of kind `record`"))?;
    let name = public(&file.display().to_string(), std::env::var("HOME").ok());
    Ok(Record { name, file: file.to_owned(), head, rows, others })
}

/// Replaces the home directory by `~`: reports are shown to others and must not tell whose home a file is in.
pub fn public(origin: &str, home: Option<String>) -> String {
    match home.filter(|home| home.len() > 1) {
        Some(home) => origin.replace(&format!("{}/", home.trim_end_matches('/')), "~/"),
        None => origin.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::public;

    #[test]
    fn a_report_does_not_say_whose_home_a_profile_is_in() {
        let origin = "profile /home/ada/.cache/lineweave/p.toml, measured";
        let home = |path: &str| public(origin, Some(path.to_owned()));
        assert_eq!(home("/home/ada"), "profile ~/.cache/lineweave/p.toml, measured");
        assert_eq!(home("/home/ada/"), home("/home/ada"));
        assert_eq!([home("/home/ad"), home("/"), public(origin, None)], [origin; 3]);
    }
}
