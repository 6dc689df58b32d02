//! State of a play as a key: two states with one key have the same future, moved by the difference of their times.

use super::super::fabric::{Access, Fabric};
use super::super::names::Names;
use super::super::program::Instruction;
use super::Player;
use lineweave_core::trace::Picos;

impl<F: Fabric> Player<'_, F> {
    /// Returns the key of the state at `now`, before the events of that time, everything having other names. Times that are over count as `now`.
    pub(in super::super) fn key(&self, now: Picos, names: &Names) -> Vec<u64> {
        let mut key = Vec::new();
        for r in names.ranks.in_order() {
            let (runner, lane) = (&self.runners[r], &self.lane[r]);
            key.extend([runner.run, runner.pc, lane.piece].map(|n| n as u64));
            key.push(u64::from_le_bytes([runner.part, lane.part, u8::from(lane.under_way), 0, 0, 0, 0, 0]));
            // A look that is under way may have been taken before the flag was set.
            if let (true, Access::Poll { flag }) = (lane.under_way, lane.access) {
                if let Some(&Instruction::Wait { flag: f, value, .. }) = self.program.ops[r].get(runner.pc) {
                    let set = self.reached(flag.id, self.value(r, f, value));
                    key.push(set.map_or(u64::MAX, |at| now.0.wrapping_sub(at.0)));
                }
            }
        }
        let who = |waits: &[(u32, i64)]| {
            let mut list: Vec<u64> =
                waits.iter().flat_map(|w| [u64::from(names.ranks.to(w.0)) << 40 | w.1 as u64]).collect();
            list.sort_unstable();
            list
        };
        for id in names.flags.in_order() {
            let flag = &self.flags[id];
            let seen = flag.sets.partition_point(|set| set.1 <= now);
            key.push(seen.checked_sub(1).map_or(0, |last| flag.sets[last].0 as u64));
            key.extend(flag.sets[seen..].iter().flat_map(|set| [set.0 as u64, set.1 .0 - now.0]));
            for list in [who(&flag.waiters), who(&flag.late), flag.posted.iter().map(|&v| v as u64).collect()]
            {
                key.push(list.len() as u64 | 1 << 63);
                key.extend(list);
            }
        }
        let ranks = self.agenda.resources();
        let agent = |agent: u32| match agent.checked_sub(ranks) {
            None => names.ranks.to(agent),
            Some(resource) => ranks + renamed_resource(resource, ranks, names),
        };
        let mut events: Vec<[u64; 2]> = self
            .agenda
            .to_come()
            .map(|(at, who, stage)| [at.0 - now.0, u64::from(agent(who)) << 8 | u64::from(stage)])
            .collect();
        events.sort_unstable();
        key.extend(events.into_iter().flatten());
        self.fabric.key(now, names, &mut key);
        key
    }
}

/// A resource is a rank's stores or a line.
fn renamed_resource(resource: u32, ranks: u32, names: &Names) -> u32 {
    match resource.checked_sub(ranks) {
        None => names.ranks.to(resource),
        Some(line) => ranks + names.lines.to(line),
    }
}
