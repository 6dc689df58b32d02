//! The table of peers and their settings, read from `bench/peers/peers.toml`.

use crate::bench::definition::Team;
use crate::bench::subject::Subject;
use serde::Deserialize;
use std::collections::BTreeMap;

/// The compiler that turns a peer's source into a program.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Compiler {
    /// C11 with threads.
    C,
    /// C++20 with threads.
    #[serde(rename = "c++20")]
    Cxx20,
    /// C with OpenMP on GNU's runtime.
    COpenmpGnu,
    /// C with OpenMP as above, linked to LLVM's runtime, which exports GNU's entry points.
    COpenmpLlvm,
}

/// One way to set a peer up.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Setting {
    /// The setting's name in records.
    pub name: String,
    /// Environment variables; `{places}` stands for the CPUs as OpenMP places.
    #[serde(default)]
    pub env: BTreeMap<String, String>,
    /// True if the setting makes sense with more ranks than CPUs.
    #[serde(default = "yes")]
    pub crowded: bool,
}

fn yes() -> bool {
    true
}

/// One peer.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Peer {
    /// The peer's name in definitions and records.
    pub subject: Subject,
    pub source: String,
    pub compiler: Compiler,
    pub teams: Vec<Team>,
    /// The least and the most ranks.
    pub ranks: [usize; 2],
    /// True if the program itself tries several ways and prints a line for each.
    #[serde(default)]
    pub variants: bool,
    /// The peer's settings; empty where the program tries variants itself.
    #[serde(default, rename = "setting")]
    pub settings: Vec<Setting>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Table {
    schema: u32,
    peer: Vec<Peer>,
}

/// The header that all sources share: its file name and its text.
pub const HEADER: (&str, &str) = ("peer.h", include_str!("../../../bench/peers/peer.h"));

const SOURCES: [(&str, &str); 7] = [
    ("floor.c", include_str!("../../../bench/peers/floor.c")),
    ("byte_floor.c", include_str!("../../../bench/peers/byte_floor.c")),
    ("hand_floor.c", include_str!("../../../bench/peers/hand_floor.c")),
    ("memcpy.c", include_str!("../../../bench/peers/memcpy.c")),
    ("pthread_barrier.c", include_str!("../../../bench/peers/pthread_barrier.c")),
    ("omp_barrier.c", include_str!("../../../bench/peers/omp_barrier.c")),
    ("std_barrier.cpp", include_str!("../../../bench/peers/std_barrier.cpp")),
];

impl Peer {
    /// Returns the text of the peer's source, if it is one that ships.
    pub fn text(&self) -> Option<&'static str> {
        SOURCES.iter().find(|(name, _)| *name == self.source).map(|(_, text)| *text)
    }
}

/// Returns the table that ships; the error says what is wrong with it.
pub fn peers() -> Result<Vec<Peer>, String> {
    let table: Table =
        toml::from_str(include_str!("../../../bench/peers/peers.toml")).map_err(|e| e.to_string())?;
    if table.schema != 1 {
        return Err(format!("schema is {}, expected 1", table.schema));
    }
    Ok(table.peer)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn the_table_covers_every_subject_but_our_own() {
        let peers = peers().expect("the table that ships");
        let listed: BTreeSet<Subject> = peers.iter().map(|p| p.subject).collect();
        let expected = Subject::ALL.map(|(s, _)| s).into_iter().filter(|s| s.ours().is_none()).collect();
        assert_eq!(listed, expected);
        assert_eq!(listed.len(), peers.len(), "no subject twice");
        for peer in &peers {
            assert!(peer.text().is_some(), "{}: {} ships", peer.subject, peer.source);
            assert_eq!(peer.variants, peer.settings.is_empty(), "{}: variants or settings", peer.subject);
            let names: BTreeSet<&str> = peer.settings.iter().map(|s| s.name.as_str()).collect();
            assert_eq!(names.len(), peer.settings.len(), "{}: each setting once", peer.subject);
            assert!(
                peer.variants || peer.settings.iter().any(|s| s.crowded),
                "{}: some setting for more ranks than CPUs",
                peer.subject
            );
        }
    }
}
