//! State of the caches as part of a key: see [`bounds`](super::super::bounds).

use super::super::names::Names;
use super::caches::Caches;
use super::memory::Asked;
use super::requests::Want;
use lineweave_core::trace::Picos;

impl Caches {
    /// Adds the state at `now` to a key, everything having other names. Times that are over count as `now`.
    pub(super) fn state(&self, now: Picos, names: &Names, key: &mut Vec<u64>) {
        let rest = |at: Picos| at.0.saturating_sub(now.0);
        for r in names.ranks.in_order() {
            let hand = &self.hands[r];
            key.extend([hand.cursor as u64, hand.loads, hand.writes]);
            key.push(if hand.sampled.0 == 0 { u64::MAX } else { now.0 - hand.sampled.0 });
            let set = hand.set.map(|(line, visible)| [names.lines.to(line).into(), rest(visible)]);
            key.extend(set.unwrap_or([u64::MAX; 2]));
            // How many are under way follows from the requests and the events.
            key.push(rest(hand.stores.clone().lands(Picos(0))));
            key.push(hand.stores.waiting().count() as u64);
            key.extend(hand.stores.waiting().map(|s| u64::from(names.lines.to(s.0))));
        }
        for line in names.lines.in_order() {
            asked(&self.memory.lines[line], now, names, key);
        }
        key.extend(self.costs.nodes_free().iter().map(|&at| rest(at)));
    }
}

/// Adds the state of a line. Whoever had it first among those who share it is the one that answers for it.
fn asked(it: &Asked, now: Picos, names: &Names, key: &mut Vec<u64>) {
    let rest = |at: Picos| at.0.saturating_sub(now.0);
    let have = |core: u32| [names.cores.to(core).into(), it.line.arrives(core).map_or(0, rest)];
    let mut holders: Vec<[u64; 2]> = it.line.others(u32::MAX).map(have).collect();
    if let Some(shared) = holders.get_mut(1..) {
        shared.sort_unstable();
    }
    let first = usize::from(it.settled);
    let mut wants: Vec<[u64; 2]> = it.queue.iter().map(|&want| named(want, names)).collect();
    wants[first..].sort_unstable();
    let mut watchers: Vec<u64> = it.watchers.iter().map(|&rank| names.ranks.to(rank).into()).collect();
    watchers.sort_unstable();
    key.push(u64::from_le_bytes([
        holders.len() as u8,
        wants.len() as u8,
        watchers.len() as u8,
        first as u8,
        it.line.state() as u8,
        u8::from(it.line.owner().is_some()),
        0,
        0,
    ]));
    key.extend([rest(it.line.serves(false)), rest(it.line.serves(true)), it.alarm.map_or(0, rest)]);
    key.extend(holders.into_iter().chain(wants).flatten().chain(watchers));
}

fn named(want: Want, names: &Names) -> [u64; 2] {
    let (kind, who, nth) = match want {
        Want::Read { rank, nth, .. } => (0, names.ranks.to(rank), nth),
        Want::Write { rank, nth, .. } => (1, names.ranks.to(rank), nth),
        Want::Store { rank, flag } => (2, names.ranks.to(rank), names.flags.to(flag.id).into()),
        Want::Poll { core } => (3, names.cores.to(core), 0),
        Want::Prefetch { core } => (4, names.cores.to(core), 0),
    };
    [kind << 32 | u64::from(who), nth]
}
