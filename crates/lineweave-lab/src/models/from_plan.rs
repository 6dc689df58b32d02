//! Messages of a plan, stage by stage: closed forms for algorithms of which nobody has printed one.
//!
//! A schedule is not restated here but read off the plan, by these rules:
//!
//! 1. A *message* goes from the rank that raises a flag to a rank that waits for it. Its bytes are those that the flag
//!    carries, and those that the waiting rank then reads from boxes that it has not written itself. In a barrier every
//!    flag is a message; elsewhere a flag without bytes orders ops, and takes no stage.
//! 2. A rank receives one message a stage. It sends one a stage too, but what it has written once goes to all whom it
//!    tells at the same stage: they read it at once.
//! 3. A message is sent at the first stage after those that its sender has received before. Adds to one counter go one
//!    after the other.
//!
//! Where a form is printed and the plan has a message for each of its messages, both have the same stages among powers of two, and
//! as many of them otherwise (tested).

use super::stages::Stage;
use lineweave_core::collective::Collective;
use lineweave_core::plan::{Carry, FlagRef, Op, Plan, Region, Space, Take};
use std::collections::{BTreeMap, HashMap, HashSet};

/// The messages of a plan, stage by stage.
#[derive(Clone, PartialEq, Debug)]
pub struct Schedule {
    /// The collective of the plan.
    pub collective: Collective,
    /// The stages of the plan; equal consecutive ones are counted.
    pub stages: Vec<Stage>,
    /// Children of each rank, root first, where all messages go down, or up, one tree (of a barrier: up and down).
    pub children: Option<Vec<Vec<usize>>>,
}

/// A message of a stage.
#[derive(Clone, Copy, Debug)]
struct Message {
    from: usize,
    to: usize,
    stage: u64,
    bytes: u64,
    folded: u64,
}

/// The bytes that a wait makes available, and the rank that they come from.
#[derive(Clone, Copy, Debug, Default)]
struct Awaited {
    from: usize,
    bytes: u64,
    folded: u64,
    /// The op that takes the bytes: the wait itself, or the first read.
    taken_at: usize,
}

impl Schedule {
    /// Returns the stages of a plan's messages.
    pub fn of(plan: &Plan) -> Schedule {
        let flags = Flags::of(plan);
        let awaited: Vec<BTreeMap<usize, Awaited>> =
            (0..plan.ranks).map(|rank| awaited(plan, rank, &flags)).collect();
        let messages = play(plan, &flags, &awaited);
        Schedule {
            collective: plan.collective,
            stages: stages(plan.ranks, &messages),
            children: tree(plan, &messages),
        }
    }

    /// Returns the schedule of a message that goes in this many windows, one after the other.
    #[must_use]
    pub fn repeated(mut self, windows: u64) -> Schedule {
        match self.stages.as_mut_slice() {
            [one] => one.times *= windows,
            _ => self.stages = (0..windows).flat_map(|_| self.stages.iter().copied()).collect(),
        }
        self
    }
}

/// The ranks that raise each flag.
struct Flags {
    /// Sets of each flag: value and rank, values ascending.
    sets: HashMap<FlagRef, Vec<(i32, usize)>>,
    /// Ranks that add to each counter.
    adds: HashMap<FlagRef, Vec<usize>>,
    /// Ranks that write each slot of each box.
    writers: HashMap<Space, HashSet<usize>>,
}

impl Flags {
    fn of(plan: &Plan) -> Flags {
        let mut flags = Flags { sets: HashMap::new(), adds: HashMap::new(), writers: HashMap::new() };
        for (rank, op) in plan.ops() {
            let rank = rank.index();
            match op {
                Op::Set { flag, value, .. } => flags.sets.entry(*flag).or_default().push((*value, rank)),
                Op::Add { flag } => flags.adds.entry(*flag).or_default().push(rank),
                Op::Move { dst, .. } | Op::Fold { dst, .. } => {
                    flags.writers.entry(dst.space).or_default().insert(rank);
                }
                Op::Wait { .. } => {}
            }
        }
        flags.sets.values_mut().for_each(|sets| sets.sort_unstable());
        flags
    }

    /// The set that ends a wait: the first that is high enough.
    fn ends(&self, flag: FlagRef, value: i32) -> Option<(i32, usize)> {
        let sets = self.sets.get(&flag)?;
        sets.get(sets.partition_point(|&(v, _)| v < value)).copied()
    }

    /// Returns whether a rank reads here what another has written.
    fn foreign(&self, rank: usize, region: &Region) -> bool {
        match region.space {
            Space::In | Space::Out | Space::Acc => false,
            Space::PeerIn(_) | Space::PeerOut(_) => true,
            Space::Slot { .. } => self.writers.get(&region.space).is_none_or(|w| !w.contains(&rank)),
        }
    }
}

/// Returns the bytes that a rank's waits make available, by the op that waits.
fn awaited(plan: &Plan, rank: usize, flags: &Flags) -> BTreeMap<usize, Awaited> {
    let mut found: BTreeMap<usize, Awaited> = BTreeMap::new();
    let mut recent: Vec<usize> = Vec::new();
    let mut waits = false;
    for (at, op) in plan.programs[rank].iter().enumerate() {
        let (reads, folded): (Vec<&Region>, u64) = match op {
            Op::Wait { flag, value, take } if *value > 0 || flags.adds.contains_key(flag) => {
                let adder = || flags.adds.get(flag).and_then(|a| a.last()).copied();
                let Some(from) = flags.ends(*flag, *value).map(|(_, r)| r).or_else(adder) else { continue };
                if !waits {
                    recent.clear();
                }
                waits = true;
                recent.push(at);
                let bytes = match take {
                    Some(Take::Bytes(region)) => region.len as u64,
                    Some(Take::Address(_)) | None => 0,
                };
                found.insert(at, Awaited { from, bytes, folded: 0, taken_at: at });
                continue;
            }
            Op::Move { src, .. } => (vec![src], 0),
            Op::Fold { a, b, dst } => (vec![a, b], dst.len as u64),
            Op::Wait { .. } | Op::Set { .. } | Op::Add { .. } => continue,
        };
        waits = false;
        let foreign: Vec<&Region> = reads.into_iter().filter(|r| flags.foreign(rank, r)).collect();
        let wrote = |from: usize| {
            foreign.iter().any(|r| match r.space {
                Space::PeerIn(peer) | Space::PeerOut(peer) => peer.index() == from,
                _ => flags.writers.get(&r.space).is_some_and(|w| w.contains(&from)),
            })
        };
        let of_writer = recent.iter().find(|wait| found.get(wait).is_some_and(|a| wrote(a.from)));
        let Some(message) = of_writer.or(recent.last()).and_then(|wait| found.get_mut(wait)) else {
            continue;
        };
        let bytes: u64 = foreign.iter().map(|r| r.len as u64).sum();
        if bytes > 0 && message.bytes == 0 {
            message.taken_at = at;
        }
        message.bytes += bytes;
        message.folded += folded;
    }
    found
}

/// One rank on its way.
#[derive(Clone, Default)]
struct Progress {
    at: usize,
    /// The first stage after all that it has received.
    knows: u64,
    /// The first stages at which it can send and receive again.
    sends: u64,
    receives: u64,
    /// True if its next flag tells of something that it has written since the last.
    wrote: bool,
    /// The stage of its last message.
    sent: Option<u64>,
    /// Messages that it has heard of and not read yet: by the op that reads, and when they were sent.
    unread: BTreeMap<usize, Vec<(Awaited, u64)>>,
}

/// Every message, with its stage: rules 2 and 3.
fn play(plan: &Plan, flags: &Flags, awaited: &[BTreeMap<usize, Awaited>]) -> Vec<Message> {
    let bare = !plan.collective.moves_data();
    let mut bears: HashSet<(FlagRef, i32)> = HashSet::new();
    for (rank, waits) in awaited.iter().enumerate() {
        for (&at, message) in waits {
            let Op::Wait { flag, value, .. } = plan.programs[rank][at] else { continue };
            let set = flags.ends(flag, value);
            bears.extend(set.filter(|_| bare || message.bytes > 0).map(|(value, _)| (flag, value)));
        }
    }
    let mut raised: HashMap<(FlagRef, i32), u64> = HashMap::new();
    let mut added: HashMap<FlagRef, (usize, u64)> = HashMap::new();
    let mut ranks: Vec<Progress> = vec![Progress::default(); plan.ranks];
    let mut messages = Vec::new();
    let mut moved = true;
    while std::mem::take(&mut moved) {
        for (rank, me) in ranks.iter_mut().enumerate() {
            while let Some(op) = plan.programs[rank].get(me.at) {
                match op {
                    Op::Set { flag, value, carry } => {
                        let stage = match bears.contains(&(*flag, *value)) {
                            false => me.knows,
                            true => me.send(bare || matches!(carry, Some(Carry::Bytes(_)))),
                        };
                        raised.insert((*flag, *value), stage);
                    }
                    Op::Add { flag } => {
                        let stage = me.send(true);
                        let (adds, last) = added.entry(*flag).or_default();
                        *last = if *adds == 0 { stage } else { stage.max(*last + 1) };
                        *adds += 1;
                    }
                    Op::Wait { flag, value, .. } => {
                        if let Some(message) = awaited[rank].get(&me.at) {
                            let full = flags.adds.get(flag).map_or(0, Vec::len);
                            let sent = match flags.ends(*flag, *value) {
                                Some((value, _)) => raised.get(&(*flag, value)).copied(),
                                None => added.get(flag).filter(|a| a.0 == full).map(|a| a.1),
                            };
                            let Some(sent) = sent else { break };
                            me.knows = me.knows.max(sent);
                            if bare || message.bytes > 0 {
                                me.unread.entry(message.taken_at).or_default().push((*message, sent));
                            }
                        }
                    }
                    Op::Move { dst, .. } | Op::Fold { dst, .. } => me.wrote |= !dst.space.is_private(),
                }
                for (message, sent) in me.unread.remove(&me.at).unwrap_or_default() {
                    let stage = sent.max(me.receives);
                    me.receives = stage + 1;
                    me.knows = me.knows.max(stage + 1);
                    let Awaited { from, bytes, folded, .. } = message;
                    messages.push(Message { from, to: rank, stage, bytes, folded });
                }
                me.at += 1;
                moved = true;
            }
        }
    }
    messages
}

impl Progress {
    /// The stage of a message that leaves now. What was told already, and not written anew, leaves at the same stage.
    fn send(&mut self, anew: bool) -> u64 {
        let again = self.sent.filter(|_| !anew && !self.wrote);
        let stage = again.unwrap_or_else(|| self.knows.max(self.sends));
        (self.sends, self.sent, self.wrote) = (stage + 1, Some(stage), false);
        stage
    }
}

fn stages(ranks: usize, messages: &[Message]) -> Vec<Stage> {
    let mut by_stage: BTreeMap<u64, Vec<&Message>> = BTreeMap::new();
    for message in messages {
        by_stage.entry(message.stage).or_default().push(message);
    }
    let mut list: Vec<Stage> = Vec::new();
    for messages in by_stage.values() {
        let senders: HashSet<usize> = messages.iter().map(|m| m.from).collect();
        let most = |of: fn(&Message) -> u64| messages.iter().map(|m| of(m)).max().unwrap_or(0);
        let stage = Stage {
            messages: messages.len() as u64,
            bytes: most(|m| m.bytes),
            exchange: messages.iter().any(|m| senders.contains(&m.to)),
            folded: most(|m| m.folded),
            readers: senders
                .iter()
                .map(|from| messages.iter().filter(|m| m.from == *from).count())
                .max()
                .unwrap_or(1) as u64,
            hop: messages.iter().map(|m| (m.to + ranks - m.from) % ranks).max().unwrap_or(0),
            times: 1,
            kept: false,
        };
        match list.last_mut() {
            Some(last) if Stage { times: 1, ..*last } == stage => last.times += 1,
            _ => list.push(stage),
        }
    }
    list
}

/// The tree of a plan, if each rank but the root has one partner towards it.
fn tree(plan: &Plan, messages: &[Message]) -> Option<Vec<Vec<usize>>> {
    let up = match plan.collective {
        Collective::Bcast | Collective::Barrier => false,
        Collective::Reduce => true,
        _ => return None,
    };
    let root = plan.root.index();
    let mut parents: Vec<Option<usize>> = vec![None; plan.ranks];
    let mut down: HashSet<(usize, usize)> = HashSet::new();
    for message in messages {
        let (child, parent) = if up { (message.from, message.to) } else { (message.to, message.from) };
        // In a barrier a rank hears of its children before it hears from its parent: the last counts.
        let again = parents[child].is_some_and(|known| known != parent);
        if again && plan.collective != Collective::Barrier {
            return None;
        }
        if child != root {
            parents[child] = Some(parent);
        }
        down.insert((child, parent));
    }
    let mut children = vec![Vec::new(); plan.ranks];
    for (child, parent) in parents.iter().enumerate().filter(|(child, _)| *child != root) {
        children[(*parent)?].push(child);
        let both = down.contains(&((*parent)?, child));
        if plan.collective == Collective::Barrier && !both {
            return None;
        }
    }
    let (mut seen, mut next) = (0, vec![root]);
    while let Some(rank) = next.pop() {
        seen += 1;
        next.extend(&children[rank]);
    }
    (seen == plan.ranks).then_some(children)
}

#[cfg(test)]
mod tests;
