//! Memory as lines: boxes and private buffers of all ranks, numbered without gaps, and the line that each place lies on.

use super::super::{Address, Buffer, FlagAt, Playable};
use super::costs::Costs;
use super::requests::Want;
use lineweave_core::lines::Line;
use lineweave_core::plan::{Plan, Space};
use lineweave_core::trace::Picos;
use std::collections::VecDeque;
use std::mem::size_of;

/// All lines; those that nobody touched yet take four bytes each.
#[derive(Clone, Debug)]
pub(super) struct Memory {
    line_bytes: usize,
    /// Lines of a rank's box, input, output and scratch, and of all four.
    parts: [usize; 4],
    each: usize,
    slab: Vec<u32>,
    pub(super) lines: Vec<Asked>,
    /// The place of each touched line.
    places: Vec<usize>,
    /// Core and NUMA node of each rank.
    homes: Vec<(u32, u32)>,
}

/// A line that somebody has touched, and who asks for it.
#[derive(Clone, Debug, Default)]
pub(super) struct Asked {
    pub(super) line: Line,
    /// Requests in the order of their arrival.
    pub(super) queue: VecDeque<Want>,
    /// True if the first is the next, whatever else comes.
    pub(super) settled: bool,
    /// Time at which its queue is looked at next.
    pub(super) alarm: Option<Picos>,
    /// Ranks that poll it.
    pub(super) watchers: Vec<u32>,
}

impl Asked {
    /// Returns whether it answers at once.
    pub(super) fn is_idle(&self, now: Picos) -> bool {
        self.queue.is_empty() && self.line.serves(false) <= now
    }

    /// Returns whether ranks of `core` have asked for it on their own.
    pub(super) fn polled_for(&self, core: u32) -> bool {
        self.queue.contains(&Want::Poll { core })
    }
}

const UNTOUCHED: u32 = u32::MAX;

impl Memory {
    /// Lines of a rank's box, input, output and scratch.
    fn parts(plan: &Plan, program: &Playable, line_bytes: usize) -> [usize; 4] {
        let mut longest = [program.box_bytes(), plan.bytes, plan.bytes, plan.acc];
        for region in plan.ops().flat_map(|(_, op)| op.regions()) {
            let part = match region.space {
                Space::In | Space::PeerIn(_) => 1,
                Space::Out | Space::PeerOut(_) => 2,
                Space::Acc => 3,
                Space::Slot { .. } => continue,
            };
            longest[part] = longest[part].max(region.end());
        }
        longest.map(|bytes| bytes.div_ceil(line_bytes))
    }

    /// About how many bytes it takes to hold a plan's memory, when every line is touched.
    pub(super) fn needs(plan: &Plan, program: &Playable, line_bytes: usize) -> u64 {
        let each: usize = Memory::parts(plan, program, line_bytes).iter().sum();
        let a_line = size_of::<u32>() + size_of::<Asked>() + size_of::<usize>() + size_of::<(u32, Picos)>();
        (each * plan.ranks * a_line) as u64
    }

    /// The memory of a plan's ranks; `homes` has the core and NUMA node of each.
    pub(super) fn of(plan: &Plan, program: &Playable, line_bytes: usize, homes: Vec<(u32, u32)>) -> Memory {
        let parts = Memory::parts(plan, program, line_bytes);
        let each = parts.iter().sum::<usize>();
        Memory {
            line_bytes,
            parts,
            each,
            slab: vec![UNTOUCHED; each * homes.len()],
            lines: Vec::new(),
            places: Vec::new(),
            homes,
        }
    }

    /// Core and NUMA node of the rank in whose memory a touched line lies, and whether it is private.
    pub(super) fn home(&self, line: u32) -> ((u32, u32), bool) {
        let number = self.places[line as usize];
        (self.homes[number / self.each], number % self.each >= self.parts[0])
    }

    fn part(&self, part: usize) -> usize {
        self.parts[..part].iter().sum()
    }

    /// The numbers of the first and the last line of `len` bytes.
    pub(super) fn span(&self, place: Address, len: usize) -> (usize, usize) {
        let (owner, part, offset) = match place {
            Address::Slot { owner, offset } => (owner, 0, offset),
            Address::Private { owner, buffer, offset } => {
                let part = match buffer {
                    Buffer::In => 1,
                    Buffer::Out => 2,
                    Buffer::Acc => 3,
                };
                (owner, part, offset)
            }
        };
        let base = owner as usize * self.each + self.part(part);
        let last = offset + len.max(1) - 1;
        (base + offset / self.line_bytes, base + last / self.line_bytes)
    }

    /// Touches a flag's line.
    pub(super) fn of_flag(&mut self, flag: FlagAt, costs: &Costs) -> u32 {
        self.touch(flag.home as usize * self.each + flag.offset / self.line_bytes, costs)
    }

    /// The index of a line among those touched. A box is in memory at first, a private buffer exclusive in
    /// its owner's cache (Ramos & Hoefler 2013, section 4.1).
    pub(super) fn touch(&mut self, number: usize, costs: &Costs) -> u32 {
        if self.slab[number] == UNTOUCHED {
            let (owner, within) = (number / self.each, number % self.each);
            let (core, node) = self.homes[owner];
            let private = within >= self.parts[0];
            self.slab[number] = self.lines.len() as u32;
            self.lines.push(Asked {
                line: Line::new(costs.home(node, number), private.then_some(core)),
                ..Asked::default()
            });
            self.places.push(number);
        }
        self.slab[number]
    }

    /// The lines that follow a touched one in the same box, at most `count`.
    pub(super) fn behind(&self, line: u32, count: usize) -> std::ops::Range<usize> {
        let number = self.places[line as usize];
        let (owner, within) = (number / self.each, number % self.each);
        let end = owner * self.each + self.parts[0];
        match within < self.parts[0] {
            true => number + 1..end.min(number + 1 + count),
            false => number..number,
        }
    }
}
