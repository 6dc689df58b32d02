//! A plan: ranks as lanes, ops in logical time, transfers and flags as arrows between lanes.

use super::steps::{steps, Steps};
use super::svg::{width_of, Anchor, Point, Stroke, Svg};
use super::{FOLD, IDLE, INK, RULE, SOFT, SYNC, TRANSFER};
use lineweave_core::plan::{move_verb, Carry, Op, Plan, Region, Reuse, Space};
use lineweave_core::units::Bytes;

/// Room above the first lane, for title and legend.
const TOP: f64 = 96.0;

/// Sizes, which shrink as ranks and steps grow.
struct Geometry {
    left: f64,
    lane: f64,
    column: f64,
    font: f64,
}

impl Geometry {
    fn of(plan: &Plan, count: usize) -> Geometry {
        let lane = match plan.ranks {
            0..=8 => 64.0,
            9..=16 => 44.0,
            17..=32 => 34.0,
            _ => 24.0,
        };
        let column = match count {
            0..=16 => 72.0,
            17..=40 => 56.0,
            41..=100 => 36.0,
            _ => 20.0,
        };
        let font = if lane >= 44.0 { 11.0 } else { 9.0 };
        let label = format!("rank {} (root)", plan.ranks);
        Geometry { left: 28.0 + width_of(&label, font + 1.0), lane, column, font }
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
}

/// Draws `plan`. Steps are the longest paths over program order and from each set to the waits it ends; a rank
/// that can never go on is marked.
pub fn plan(plan: &Plan) -> String {
    let steps = steps(plan);
    let picture = Picture { plan, steps: &steps, size: Geometry::of(plan, steps.count), svg: Svg::default() };
    picture.draw()
}

struct Picture<'a> {
    plan: &'a Plan,
    steps: &'a Steps,
    size: Geometry,
    svg: Svg,
}

impl Picture<'_> {
    fn draw(mut self) -> String {
        let plan = self.plan;
        let width = (self.size.left + (self.steps.count as f64 + 0.5) * self.size.column).max(820.0);
        let height = TOP + plan.ranks as f64 * self.size.lane + 44.0;
        let title = format!("{} {}", plan.name(), plan.params);
        let title = title.trim_end();
        self.svg.heading(title, &self.detail());
        legend(&mut self.svg);
        self.lanes(width);
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
        self.svg.finish(width, height, title)
    }

    fn detail(&self) -> String {
        let plan = self.plan;
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
        parts.push(format!("{} steps", self.steps.count));
        parts.push(match plan.reuse {
            Reuse::Same => "runs share a bank".to_owned(),
            Reuse::Ring => "each run takes the next bank".to_owned(),
        });
        if plan.direct {
            parts.push("direct".to_owned());
        }
        parts.join("  \u{b7}  ")
    }

    fn lanes(&mut self, width: f64) {
        for rank in 0..self.plan.ranks {
            let y = self.size.y(rank);
            let root = self.plan.collective.rooted() && rank == self.plan.root.index();
            let name = if root { format!("rank {rank} (root)") } else { format!("rank {rank}") };
            let rule = Stroke { colour: RULE, width: 1.0, dashed: false };
            self.svg.line((self.size.left, y), (width - 12.0, y), rule);
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
            let width = if payload.is_some() { 1.8 } else { 1.1 };
            self.svg.arrow(start, end, Stroke { colour: SYNC, width, dashed: payload.is_none() });
            if let Some(text) = payload.filter(|t| width_of(t, self.size.font) < self.size.column) {
                self.note(start, end, SYNC, &text);
            }
            self.svg.close();
        }
    }

    /// A label on an arrow, in the gap before the lane that it ends in: lanes hold marks, gaps do not.
    fn note(&mut self, from: Point, to: Point, colour: &str, text: &str) {
        let lanes = ((to.1 - from.1) / self.size.lane).abs().max(1.0);
        let part = 1.0 - 0.5 / lanes;
        let along = |a: f64, b: f64| a + (b - a) * part;
        let at = (along(from.0, to.0), along(from.1, to.1) + self.size.font * 0.35);
        self.svg.label(at, self.size.font, colour, text);
    }

    fn op(&mut self, rank: usize, step: usize, op: &Op) {
        let at = self.size.at(rank, step);
        self.svg.open(&format!("rank {rank}, step {step}: {}", self.plan.op_text(op)));
        match op {
            Op::Move { src, dst } => self.transfer(rank, step, src, dst),
            Op::Fold { a, b, dst } => {
                for source in [a, b] {
                    self.arrow_between(owner(source, rank), rank, step, source.len, self.chip_height() / 2.0);
                }
                self.arrow_between(rank, owner(dst, rank), step, dst.len, 0.0);
                self.chip(at, FOLD, &Bytes(dst.len as u64).to_string(), "fold");
            }
            Op::Set { .. } => {
                let r = 5.0;
                let (x, y) = at;
                self.svg.polygon(&[(x - r, y - r), (x + r, y), (x - r, y + r)], SYNC);
            }
            Op::Add { .. } => {
                let thick = Stroke { colour: SYNC, width: 2.5, dashed: false };
                self.svg.line((at.0 - 5.0, at.1), (at.0 + 5.0, at.1), thick);
                self.svg.line((at.0, at.1 - 5.0), (at.0, at.1 + 5.0), thick);
            }
            Op::Wait { .. } => {
                // The time since the rank could have gone on.
                let ready = self.steps.ranks[rank].iter().rev().find(|s| s.at < step).map_or(0, |s| s.at + 1);
                let bar = Stroke { colour: IDLE, width: 3.0, dashed: false };
                if ready < step {
                    self.svg.line((self.size.x(ready), at.1), at, bar);
                }
                self.svg.circle(at, 4.5, "#ffffff", Stroke { colour: SYNC, width: 1.8, dashed: false });
            }
        }
        self.svg.close();
    }

    fn transfer(&mut self, rank: usize, step: usize, src: &Region, dst: &Region) {
        let (from, to) = (owner(src, rank), owner(dst, rank));
        let at = self.size.at(rank, step);
        if from == to {
            let verb = move_verb(src.space, dst.space);
            self.chip(at, TRANSFER, &Bytes(src.len as u64).to_string(), verb);
        } else {
            self.arrow_between(from, to, step, src.len, 0.0);
        }
        // Who moves it: the reader of a get, the writer of a put.
        if from != to || from != rank {
            let shift = if rank == from { -0.3 } else { 0.3 };
            let mark = (at.0 + shift * self.size.column, at.1);
            self.svg.circle(mark, 3.5, TRANSFER, Stroke { colour: "#ffffff", width: 1.0, dashed: false });
        }
    }

    /// A transfer of `bytes` bytes between two lanes within one step, up to `short` of the second; nothing
    /// within one lane.
    fn arrow_between(&mut self, from: usize, to: usize, step: usize, bytes: usize, short: f64) {
        if from == to {
            return;
        }
        let reach = 0.3 * self.size.column;
        let x = self.size.x(step);
        let (start, end) = ((x - reach, self.size.y(from)), (x + reach, self.size.y(to)));
        let part = 1.0 - short / (end.1 - start.1).abs();
        let tip = (start.0 + (end.0 - start.0) * part, start.1 + (end.1 - start.1) * part);
        self.svg.arrow(start, tip, Stroke { colour: TRANSFER, width: 2.0, dashed: false });
        let text = Bytes(bytes as u64).to_string();
        if width_of(&text, self.size.font) < self.size.column * 1.2 {
            self.note(start, end, TRANSFER, &text);
        }
    }

    fn chip_height(&self) -> f64 {
        (self.size.lane * 0.5).min(30.0)
    }

    /// A box in a lane: work that stays within one rank's memory.
    fn chip(&mut self, at: Point, colour: &str, text: &str, word: &str) {
        let size = (self.size.column * 0.84, self.chip_height());
        self.svg.rect((at.0 - size.0 / 2.0, at.1 - size.1 / 2.0), size, colour, 3.0);
        let font = self.size.font - 1.0;
        let fits = |t: &str| width_of(t, font) < size.0;
        let middle = at.1 + font * 0.35;
        if fits(text) && fits(word) && size.1 > 2.2 * font {
            self.svg.text((at.0, at.1 - 1.5), font, "#ffffff", Anchor::Middle, false, word);
            self.svg.text((at.0, at.1 + font), font, "#ffffff", Anchor::Middle, false, text);
        } else if fits(text) {
            self.svg.text((at.0, middle), font, "#ffffff", Anchor::Middle, false, text);
        }
    }

    /// Marks the op that a rank can never run.
    fn stuck(&mut self, rank: usize, index: usize) {
        let step = self.steps.ranks[rank].last().map_or(0, |s| s.at + 1);
        let at = self.size.at(rank, step);
        let text = format!("never: {}", self.plan.op_text(&self.plan.programs[rank][index]));
        self.svg.open(&text);
        self.svg.circle(at, 6.0, "#b91c1c", Stroke { colour: "#ffffff", width: 1.0, dashed: false });
        let label = (at.0 + 10.0, at.1 + self.size.font * 0.35);
        self.svg.text(label, self.size.font, "#b91c1c", Anchor::Start, true, &text);
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

/// Whether an op is drawn as an arrow between lanes rather than as a mark in its own.
fn crosses_lanes(op: &Op, running: usize) -> bool {
    match op {
        Op::Move { src, dst } => owner(src, running) != owner(dst, running),
        Op::Fold { .. } | Op::Set { .. } | Op::Wait { .. } | Op::Add { .. } => false,
    }
}

fn legend(svg: &mut Svg) {
    let y = 70.0;
    let plain = |colour, width| Stroke { colour, width, dashed: false };
    let mut x = 16.0;
    let mut item = |svg: &mut Svg, text: &str, mark: &dyn Fn(&mut Svg, f64)| {
        mark(svg, x);
        svg.text((x + 30.0, y + 4.0), 11.0, INK, Anchor::Start, false, text);
        x += 46.0 + width_of(text, 11.0);
    };
    item(svg, "transfer, dot: who moves it", &|svg, x| {
        svg.arrow((x, y), (x + 24.0, y), plain(TRANSFER, 2.0));
        svg.circle((x + 2.0, y), 3.5, TRANSFER, plain("#ffffff", 1.0));
    });
    item(svg, "within a rank", &|svg, x| svg.rect((x, y - 6.0), (24.0, 12.0), TRANSFER, 3.0));
    item(svg, "fold", &|svg, x| svg.rect((x, y - 6.0), (24.0, 12.0), FOLD, 3.0));
    item(svg, "set", &|svg, x| {
        svg.polygon(&[(x + 8.0, y - 5.0), (x + 18.0, y), (x + 8.0, y + 5.0)], SYNC);
    });
    item(svg, "wait", &|svg, x| svg.circle((x + 12.0, y), 4.5, "#ffffff", plain(SYNC, 1.8)));
    item(svg, "ends a wait", &|svg, x| {
        svg.arrow((x, y), (x + 24.0, y), Stroke { colour: SYNC, width: 1.1, dashed: true });
    });
    item(svg, "with payload", &|svg, x| svg.arrow((x, y), (x + 24.0, y), plain(SYNC, 1.8)));
}
