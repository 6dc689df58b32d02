//! A plan: ranks as lanes, ops in logical time, transfers and flags as arrows between lanes.

use super::group::grouped;
use super::marks::{legend, plus};
use super::svg::{room_of, Anchor, Point, Stroke, Svg};
use super::{FOLD, IDLE, INK, PAPER, RULE, SOFT, SYNC, TRANSFER, WRONG};
use crate::steps::{steps, Steps};
use lineweave_core::plan::{move_verb, Carry, Op, Plan, Region, Reuse, Space};
use lineweave_core::units::Bytes;
use std::collections::BTreeSet;

/// Ranks beyond which those that do the same are one lane.
const LANES: usize = 16;
/// Room above the first lane, for the title.
const TOP: f64 = 64.0;
/// Room below the last lane, for the axis.
const AXIS: f64 = 48.0;
/// The widest mark of an op.
const WIDEST: f64 = 96.0;

/// Sizes, which shrink as ranks and steps grow.
struct Geometry {
    left: f64,
    lane: f64,
    column: f64,
    font: f64,
    width: f64,
}

impl Geometry {
    fn of(plan: &Plan, count: usize, heading: f64) -> Geometry {
        let lane = if plan.ranks <= 8 { 64.0 } else { 44.0 };
        let natural = match count {
            0..=16 => 72.0,
            17..=40 => 56.0,
            41..=100 => 36.0,
            _ => 20.0,
        };
        let font = 11.0;
        let left = 28.0 + room_of(&format!("rank {} (root)", plan.ranks), font + 1.0);
        // Few steps spread over the width that the title takes anyway.
        let steps = count.max(1) as f64;
        let column = ((heading - left - 12.0) / steps).max(natural);
        Geometry { left, lane, column, font, width: left + steps * column + 12.0 }
    }

    fn y(&self, rank: usize) -> f64 {
        TOP + (rank as f64 + 0.5) * self.lane
    }

    /// The middle of a step.
    fn x(&self, step: usize) -> f64 {
        self.left + (step as f64 + 0.5) * self.column
    }

    fn at(&self, rank: usize, step: usize) -> Point {
        (self.x(step), self.y(rank))
    }

    /// Returns the distance, in px, that a transfer leans to both sides of its step.
    fn reach(&self) -> f64 {
        0.3 * self.column.min(WIDEST)
    }
}

/// Draws `plan`. Steps are the longest paths over program order and from each set to the waits it ends; a rank
/// that can never go on is marked. Of more than 16 ranks, those that do the same are one lane.
pub fn plan(plan: &Plan) -> String {
    let steps = steps(plan);
    if plan.ranks > LANES {
        return grouped(plan, &steps);
    }
    let detail = detail(plan, steps.count);
    let heading = Svg::heading_width(&title(plan), &detail);
    let size = Geometry::of(plan, steps.count, heading);
    let picture =
        Picture { plan, steps: &steps, size, svg: Svg::default(), notes: Vec::new(), drawn: BTreeSet::new() };
    picture.draw(&detail)
}

/// Returns what stands above a plan.
pub(super) fn title(plan: &Plan) -> String {
    format!("{} {}", plan.name(), plan.params).trim_end().to_owned()
}

/// Returns the line below the title.
pub(super) fn detail(plan: &Plan, steps: usize) -> String {
    let mut parts = vec![format!("P = {}", plan.ranks)];
    if plan.collective.moves_data() {
        parts.push(Bytes(plan.bytes as u64).to_string());
    }
    if plan.collective.rooted() {
        parts.push(format!("root {}", plan.root));
    }
    if plan.collective.folds() {
        parts.push(format!("elements of {} B", plan.grain));
    }
    parts.push(format!("{steps} steps"));
    parts.push(match plan.reuse {
        Reuse::Same => "runs share a bank".to_owned(),
        Reuse::Ring => "each run takes the next bank".to_owned(),
    });
    if plan.direct {
        parts.push("direct".to_owned());
    }
    parts.join("  \u{b7}  ")
}

struct Picture<'a> {
    plan: &'a Plan,
    steps: &'a Steps,
    size: Geometry,
    svg: Svg,
    /// Rectangles of the notes on arrows: from one corner to the other.
    notes: Vec<(Point, Point)>,
    /// Entries of the legend, by the names that [`legend`] has.
    drawn: BTreeSet<&'static str>,
}

impl Picture<'_> {
    fn draw(mut self, detail: &str) -> String {
        let plan = self.plan;
        let title = title(plan);
        self.svg.heading(&title, detail);
        self.lanes();
        // Flags lie under transfers, and both under the marks of ops.
        for rank in 0..plan.programs.len() {
            self.causes(rank);
        }
        for arrows in [true, false] {
            for (rank, ops) in plan.programs.iter().enumerate() {
                for (op, step) in ops.iter().zip(&self.steps.ranks[rank]) {
                    if crosses_lanes(op, rank) == arrows {
                        self.op(rank, step.at, op);
                    }
                }
            }
        }
        for (rank, ops) in plan.programs.iter().enumerate() {
            let index = self.steps.ranks[rank].len();
            if index < ops.len() {
                self.stuck(rank, index);
            }
        }
        let bottom = TOP + plan.ranks as f64 * self.size.lane + AXIS;
        let legend = legend(&self.drawn).draw(&mut self.svg, (16.0, bottom), self.size.width - 32.0);
        self.svg.finish(self.size.width, bottom + legend, &title)
    }

    fn lanes(&mut self) {
        for rank in 0..self.plan.ranks {
            let y = self.size.y(rank);
            let root = self.plan.collective.rooted() && rank == self.plan.root.index();
            let name = if root { format!("rank {rank} (root)") } else { format!("rank {rank}") };
            let rule = Stroke { colour: RULE, width: 1.0, dashed: false };
            self.svg.line((self.size.left, y), (self.size.width - 12.0, y), rule);
            let font = self.size.font + 1.0;
            self.svg.text((self.size.left - 10.0, y + font * 0.35), font, INK, Anchor::End, root, &name);
        }
        let y = TOP + self.plan.ranks as f64 * self.size.lane + 14.0;
        // Numbers under the steps, as many as have room.
        let every = (28.0 / self.size.column).ceil().max(1.0) as usize;
        for step in (0..self.steps.count).step_by(every) {
            self.svg.text((self.size.x(step), y), 9.0, SOFT, Anchor::Middle, false, &step.to_string());
        }
        self.svg.text((self.size.left, y + 16.0), 10.0, SOFT, Anchor::Start, false, "step (logical time)");
    }

    /// Arrows from sets and adds to the waits of `rank` that they end.
    fn causes(&mut self, rank: usize) {
        for (index, step) in self.steps.ranks[rank].iter().enumerate() {
            let Some((by, op)) = step.cause else { continue };
            let (Some(from), Some(set)) = (self.steps.ranks[by].get(op), self.plan.programs[by].get(op))
            else {
                continue;
            };
            let payload = match set {
                Op::Set { carry: Some(Carry::Bytes(region)), .. } => {
                    Some(Bytes(region.len as u64).to_string())
                }
                Op::Set { carry: Some(Carry::Address(_)), .. } => Some("address".to_owned()),
                Op::Set { carry: None, .. } | Op::Add { .. } => None,
                Op::Move { .. } | Op::Fold { .. } | Op::Wait { .. } => continue,
            };
            let (start, end) = (self.size.at(by, from.at), self.size.at(rank, step.at));
            self.svg.open(&format!(
                "rank {by}: {}\nends rank {rank}: {}",
                self.plan.op_text(set),
                self.plan.op_text(&self.plan.programs[rank][index])
            ));
            let (width, name) = match payload {
                Some(_) => (1.8, "ends a wait and carries data"),
                None => (1.1, "ends a wait"),
            };
            self.drawn.insert(name);
            self.svg.arrow(start, end, Stroke { colour: SYNC, width, dashed: payload.is_none() });
            if let Some(text) = payload {
                self.note(start, end, &text);
            }
            self.svg.close();
        }
    }

    /// A label on an arrow, in the gap before the lane that it ends in or after the one that it begins in: lanes hold marks, gaps do
    /// not. Where other labels stand there is none: pointing at the arrow says as much.
    fn note(&mut self, from: Point, to: Point, text: &str) {
        let (size, lanes) = (self.size.font, ((to.1 - from.1) / self.size.lane).abs());
        if lanes < 0.5 {
            return;
        }
        let half = room_of(text, size) / 2.0 + 2.0;
        for part in [1.0 - 0.5 / lanes, 0.5 / lanes] {
            let at = (from.0 + (to.0 - from.0) * part, from.1 + (to.1 - from.1) * part + size * 0.35);
            let (low, high) = ((at.0 - half, at.1 - size), (at.0 + half, at.1 + size * 0.3));
            let inside = low.0 >= self.size.left && high.0 <= self.size.width;
            let free = |n: &(Point, Point)| {
                n.1 .0 <= low.0 || high.0 <= n.0 .0 || n.1 .1 <= low.1 || high.1 <= n.0 .1
            };
            if inside && self.notes.iter().all(free) {
                self.notes.push((low, high));
                return self.svg.label(at, size, INK, text);
            }
        }
    }

    fn op(&mut self, rank: usize, step: usize, op: &Op) {
        let at = self.size.at(rank, step);
        self.svg.open(&format!("rank {rank}, step {step}: {}", self.plan.op_text(op)));
        match op {
            Op::Move { src, dst } => self.transfer(rank, step, src, dst),
            Op::Fold { a, b, dst } => {
                self.drawn.insert("fold");
                for source in [a, b] {
                    self.arrow_between(owner(source, rank), rank, step, source.len, self.chip_height() / 2.0);
                }
                self.arrow_between(rank, owner(dst, rank), step, dst.len, 0.0);
                self.chip(at, FOLD, &Bytes(dst.len as u64).to_string(), "fold");
            }
            Op::Set { .. } => {
                self.drawn.insert("set a flag");
                let r = 5.0;
                let (x, y) = at;
                self.svg.polygon(&[(x - r, y - r), (x + r, y), (x - r, y + r)], SYNC);
            }
            Op::Add { .. } => {
                self.drawn.insert("add to a counter");
                plus(&mut self.svg, at);
            }
            Op::Wait { .. } => {
                // The time since the rank could have gone on.
                let ready = self.steps.ranks[rank].iter().rev().find(|s| s.at < step).map_or(0, |s| s.at + 1);
                let bar = Stroke { colour: IDLE, width: 3.0, dashed: false };
                self.drawn.insert("wait");
                if ready < step {
                    self.drawn.insert("nothing to do meanwhile");
                    self.svg.line((self.size.x(ready), at.1), at, bar);
                }
                self.svg.circle(at, 4.5, PAPER, Stroke { colour: SYNC, width: 1.8, dashed: false });
            }
        }
        self.svg.close();
    }

    fn transfer(&mut self, rank: usize, step: usize, src: &Region, dst: &Region) {
        let (from, to) = (owner(src, rank), owner(dst, rank));
        let at = self.size.at(rank, step);
        if from == to {
            let verb = move_verb(src.space, dst.space);
            self.drawn.insert("copy within a rank");
            self.chip(at, TRANSFER, &Bytes(src.len as u64).to_string(), verb);
        } else {
            self.arrow_between(from, to, step, src.len, 0.0);
        }
        // Who moves it: the reader of a get, the writer of a put.
        if from != to || from != rank {
            let shift = if rank == from { -0.3 } else { 0.3 };
            self.drawn.insert("who moves it");
            let mark = (at.0 + shift / 0.3 * self.size.reach(), at.1);
            self.svg.circle(mark, 3.5, TRANSFER, Stroke { colour: PAPER, width: 1.0, dashed: false });
        }
    }

    /// A transfer of `bytes` bytes between two lanes within one step, up to `short` of the second; nothing
    /// within one lane.
    fn arrow_between(&mut self, from: usize, to: usize, step: usize, bytes: usize, short: f64) {
        if from == to {
            return;
        }
        self.drawn.insert("transfer");
        let reach = self.size.reach();
        let x = self.size.x(step);
        let (start, end) = ((x - reach, self.size.y(from)), (x + reach, self.size.y(to)));
        let part = 1.0 - short / (end.1 - start.1).abs();
        let tip = (start.0 + (end.0 - start.0) * part, start.1 + (end.1 - start.1) * part);
        self.svg.arrow(start, tip, Stroke { colour: TRANSFER, width: 2.0, dashed: false });
        self.note(start, end, &Bytes(bytes as u64).to_string());
    }

    fn chip_height(&self) -> f64 {
        (self.size.lane * 0.5).min(30.0)
    }

    /// A box in a lane: work that stays within one rank's memory.
    fn chip(&mut self, at: Point, colour: &str, text: &str, word: &str) {
        let size = (self.size.column.min(WIDEST) * 0.84, self.chip_height());
        self.svg.rect((at.0 - size.0 / 2.0, at.1 - size.1 / 2.0), size, colour, 3.0);
        let font = self.size.font - 1.0;
        let fits = |t: &str| room_of(t, font) < size.0;
        let middle = at.1 + font * 0.35;
        if fits(text) && fits(word) && size.1 > 2.2 * font {
            self.svg.text((at.0, at.1 - 1.5), font, PAPER, Anchor::Middle, false, word);
            self.svg.text((at.0, at.1 + font), font, PAPER, Anchor::Middle, false, text);
        } else if fits(text) {
            self.svg.text((at.0, middle), font, PAPER, Anchor::Middle, false, text);
        }
    }

    /// Marks the op that a rank can never run.
    fn stuck(&mut self, rank: usize, index: usize) {
        let step = self.steps.ranks[rank].last().map_or(0, |s| s.at + 1);
        let at = self.size.at(rank, step);
        let text = format!("never: {}", self.plan.op_text(&self.plan.programs[rank][index]));
        self.drawn.insert("never goes on");
        self.size.width = self.size.width.max(at.0 + 26.0 + 1.1 * room_of(&text, self.size.font));
        self.svg.open(&text);
        self.svg.circle(at, 6.0, WRONG, Stroke { colour: PAPER, width: 1.0, dashed: false });
        let label = (at.0 + 10.0, at.1 + self.size.font * 0.35);
        self.svg.text(label, self.size.font, WRONG, Anchor::Start, true, &text);
        self.svg.close();
    }
}

/// The rank in whose memory a region lies, seen from the rank that runs the op.
fn owner(region: &Region, running: usize) -> usize {
    match region.space {
        Space::In | Space::Out | Space::Acc => running,
        Space::Slot { rank, .. } | Space::PeerIn(rank) | Space::PeerOut(rank) => rank.index(),
    }
}

/// Returns whether an op is drawn as an arrow between lanes rather than as a mark in its own.
fn crosses_lanes(op: &Op, running: usize) -> bool {
    match op {
        Op::Move { src, dst } => owner(src, running) != owner(dst, running),
        Op::Fold { .. } | Op::Set { .. } | Op::Wait { .. } | Op::Add { .. } => false,
    }
}

/// Returns the bytes that an op moves; nothing for one that moves none.
pub(super) fn moved(op: &Op) -> Option<usize> {
    let sends = !matches!(op, Op::Wait { .. });
    op.regions().last().filter(|_| sends).map(|region| region.len)
}
