//! The two messages at a door: what a guest says, and what the host answers.

use crate::cpus::UsableCpus;
use std::collections::BTreeSet;

/// "lineweave" at the door, and the version of its two messages.
const MARK: u64 = u64::from_le_bytes(*b"lw-door1");
/// Said by a guest that takes any rank, or comes to a team of any size.
const ANY: u64 = u64::MAX;
/// Words of a set of CPUs in a message.
const MASK: usize = 128;
/// A guest's message: mark, version, ranks, wanted rank, CPUs.
pub(super) const WORDS: usize = 4 + MASK;

/// Answer of a host to a guest.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in super::super) enum JoinReply {
    /// Come in, as this rank.
    Welcome(usize),
    /// The host is of this version.
    Version(u64),
    /// The team has so many ranks.
    Size(usize),
    /// The wanted rank, or any, is not free.
    Taken,
    /// The number of ranks that had come when the time was over.
    Late(usize),
    /// Somebody came from another pid namespace.
    Apart,
    /// The host cannot go on.
    Failed,
}

impl JoinReply {
    pub(super) fn words(self) -> [u64; 2] {
        match self {
            JoinReply::Welcome(rank) => [0, rank as u64],
            // The number of the answer that every version understands.
            JoinReply::Version(version) => [2, version],
            JoinReply::Size(ranks) => [3, ranks as u64],
            JoinReply::Taken => [4, 0],
            JoinReply::Late(present) => [5, present as u64],
            JoinReply::Apart => [6, 0],
            JoinReply::Failed => [7, 0],
        }
    }

    pub(super) fn read([code, detail]: [u64; 2]) -> Option<JoinReply> {
        Some(match code {
            0 => JoinReply::Welcome(detail as usize),
            2 => JoinReply::Version(detail),
            3 => JoinReply::Size(detail as usize),
            4 => JoinReply::Taken,
            5 => JoinReply::Late(detail as usize),
            6 => JoinReply::Apart,
            7 => JoinReply::Failed,
            _ => return None,
        })
    }
}

/// Message of a guest in place of a hello when it does not see the host's process.
pub(super) const APART: &[u8; 8] = b"lw-apart";
/// Message of a guest that cannot go on, in place of a hello or after it.
pub(super) const FAILED: &[u8; 8] = b"lw-fails";

pub(super) fn bytes(words: &[u64]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

pub(super) fn word(bytes: &[u8], i: usize) -> u64 {
    u64::from_le_bytes(std::array::from_fn(|b| bytes[i * 8 + b]))
}

/// Request of a guest to join the team.
#[derive(Debug, Default)]
pub(in super::super) struct JoinRequest {
    /// Ranks of the team that it expects, or any.
    pub ranks: Option<usize>,
    /// The rank that it wants, or any.
    pub rank: Option<usize>,
    /// CPUs that the guest may run on.
    pub cpus: BTreeSet<usize>,
}

impl JoinRequest {
    /// The calling thread's.
    pub fn own(ranks: Option<usize>, rank: Option<usize>) -> JoinRequest {
        let cpus = UsableCpus::of_this_thread().cpus.into_iter().filter(|&cpu| cpu < MASK * 64).collect();
        JoinRequest { ranks, rank, cpus }
    }

    pub(super) fn words(&self) -> [u64; WORDS] {
        let mut words = [0u64; WORDS];
        let number = |n: Option<usize>| n.map_or(ANY, |n| n as u64);
        words[..4].copy_from_slice(&[MARK, version(), number(self.ranks), number(self.rank)]);
        for &cpu in &self.cpus {
            words[4 + cpu / 64] |= 1 << (cpu % 64);
        }
        words
    }

    /// Decodes a request; `None` for another version's message or anything else.
    pub(super) fn read(bytes: &[u8]) -> Option<JoinRequest> {
        if bytes.len() != WORDS * 8 || word(bytes, 0) != MARK || word(bytes, 1) != version() {
            return None;
        }
        let number = |i| Some(word(bytes, i)).filter(|&n| n != ANY).map(|n| n as usize);
        let cpus = (0..MASK * 64).filter(|cpu| word(bytes, 4 + cpu / 64) >> (cpu % 64) & 1 == 1).collect();
        Some(JoinRequest { ranks: number(2), rank: number(3), cpus })
    }
}

/// The version's last eight characters.
pub(super) fn version() -> u64 {
    packed(env!("CARGO_PKG_VERSION"))
}

pub(super) fn packed(version: &str) -> u64 {
    version.bytes().fold(0, |h, b| h << 8 | u64::from(b))
}

/// Names a host with the version that it reports.
pub(super) fn host_of(version: u64) -> String {
    let text: Vec<u8> = version.to_be_bytes().into_iter().skip_while(|&b| b == 0).collect();
    match text.iter().all(u8::is_ascii_graphic) && !text.is_empty() {
        true => format!("a host of lineweave {}", String::from_utf8_lossy(&text)),
        false => format!("a host of another version (mark {version:x})"),
    }
}
