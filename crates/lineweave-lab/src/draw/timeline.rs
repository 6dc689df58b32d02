//! A run of a plan on an axis of time: who waits how long for whom, and the critical path.

use super::alike::alike;
use super::group::list;
use super::legend::Legend;
use super::path::{causes, critical, waits, Hop};
use super::plan::title;
use super::svg::{room_of, Anchor, Point, Stroke, Svg};
use super::{ADD, FOLD, INK, PALE, PAPER, RULE, SOFT, SYNC, TRANSFER};
use lineweave_core::plan::Plan;
use lineweave_core::trace::{Clock, Kind, Picos, Trace};
use lineweave_core::units::{Bytes, Nanos};
use std::collections::BTreeSet;

const TOP: f64 = 64.0;
const WIDTH: f64 = 1000.0;
const RIGHT: f64 = 24.0;
const LANE: f64 = 34.0;
/// Above the lanes of a run, for what it is.
const HEAD: f64 = 40.0;
/// Below them, for the axis.
const AXIS: f64 = 30.0;
/// Lanes at most; of more ranks those on the critical path, and some that do what others do.
const LANES: usize = 16;
/// Arrows at most, besides those of the critical path.
const ARROWS: usize = 120;
/// Waits that are named.
const NAMED: usize = 3;

/// The colour of a kind of op.
fn colour(kind: Kind) -> &'static str {
    match kind {
        Kind::Move => TRANSFER,
        Kind::Fold => FOLD,
        Kind::Set => SYNC,
        Kind::Wait => PALE,
        Kind::Add => ADD,
    }
}

/// A run, and what was found out about it.
struct Run<'a> {
    trace: &'a Trace,
    causes: Vec<Option<usize>>,
    path: Vec<Hop>,
}

/// Layout of the picture: left edge and end of the time axis, and the lanes.
struct Frame {
    left: f64,
    end: Picos,
    /// The ranks that have lanes.
    lanes: Vec<usize>,
}

impl Frame {
    fn x(&self, t: Picos) -> f64 {
        self.left + (WIDTH - self.left - RIGHT) * (t.0 as f64 / self.end.0 as f64)
    }

    fn lane(&self, top: f64, rank: usize) -> Option<f64> {
        let at = self.lanes.binary_search(&rank).ok()?;
        Some(top + at as f64 * LANE)
    }
}

/// Draws runs of `plan` one below the other, on one axis: predicted, simulated or measured ones. Events of other plans are left out.
pub fn timeline(plan: &Plan, traces: &[Trace]) -> String {
    let run = |trace| {
        let causes = causes(plan, trace);
        // Of a program's call it is not known what its ranks did within it.
        let whole = trace.clock == Clock::Measured && causes.iter().all(Option::is_none);
        Run { path: if whole { Vec::new() } else { critical(trace, &causes) }, trace, causes }
    };
    let runs: Vec<Run> = traces.iter().map(run).collect();
    let lanes = lanes(plan, &runs);
    let names = lanes.iter().map(|rank| room_of(&format!("rank {rank}"), 11.0)).fold(40.0, f64::max);
    let end = traces.iter().map(Trace::end).max().unwrap_or_default().max(Picos(1));
    let frame = Frame { left: 26.0 + names, end, lanes };

    let mut svg = Svg::default();
    let title = title(plan);
    let mut parts = vec![format!("P = {}", plan.ranks)];
    if plan.collective.moves_data() {
        parts.push(Bytes(plan.bytes as u64).to_string());
    }
    parts.push("one call alone, everybody entering at once".to_owned());
    if frame.lanes.len() < plan.ranks {
        parts.push(format!("{} of the ranks", frame.lanes.len()));
    }
    let detail = parts.join("  \u{b7}  ");
    svg.heading(&title, &detail);
    let mut top = TOP;
    let mut drawn = BTreeSet::new();
    let mut arrows = false;
    for run in &runs {
        arrows |= panel(&mut svg, &frame, run, top, &mut drawn);
        top += HEAD + frame.lanes.len() as f64 * LANE + AXIS;
    }
    let legend = legend(&drawn, arrows, runs.iter().any(|run| !run.path.is_empty()));
    let height = top + 10.0 + legend.draw(&mut svg, (16.0, top + 10.0), WIDTH - 32.0);
    svg.finish(WIDTH.max(Svg::heading_width(&title, &detail)), height, &title)
}

/// The ranks that have lanes, ascending.
fn lanes(plan: &Plan, runs: &[Run]) -> Vec<usize> {
    if plan.ranks <= LANES {
        return (0..plan.ranks).collect();
    }
    let on_path =
        runs.iter().flat_map(|run| run.path.iter().map(|hop| run.trace.events[hop.event].rank.index()));
    // From the end of the path, which says most.
    let mut some: Vec<usize> = on_path.collect();
    some.reverse();
    some.extend(alike(plan).iter().map(|group| group.stands));
    let mut lanes = BTreeSet::new();
    for rank in some {
        if lanes.len() < LANES {
            lanes.insert(rank);
        }
    }
    lanes.into_iter().collect()
}

/// Draws a run; returns whether there are arrows besides the critical path.
fn panel(svg: &mut Svg, frame: &Frame, run: &Run, top: f64, drawn: &mut BTreeSet<&'static str>) -> bool {
    let trace = run.trace;
    let said = format!("{}: {}", trace.clock.name(), Nanos(trace.end().nanos()));
    svg.text((16.0, top + 14.0), 13.0, INK, Anchor::Start, true, &said);
    let after = 16.0 + room_of(&said, 13.0) * 1.08 + 14.0;
    svg.text((after, top + 14.0), 11.0, SOFT, Anchor::Start, false, &told(run, WIDTH - after - 16.0));
    let first = top + HEAD;
    axis(svg, frame, first);
    for &rank in &frame.lanes {
        let Some(y) = frame.lane(first, rank) else { continue };
        svg.text(
            (frame.left - 8.0, y + LANE / 2.0 + 4.0),
            11.0,
            INK,
            Anchor::End,
            false,
            &format!("rank {rank}"),
        );
    }
    // Waits first, so that short ops at their end are not covered; and words last, above arrows.
    let mut words: Vec<(Point, &str, String)> = Vec::new();
    for waits in [true, false] {
        for (i, event) in trace.events.iter().enumerate().filter(|(_, e)| (e.kind == Kind::Wait) == waits) {
            let Some(y) = frame.lane(first, event.rank.index()) else { continue };
            drawn.insert(event.kind.name());
            let by = run.causes[i].map(|by| trace.events[by].rank.index());
            let took = Nanos(event.end.nanos() - event.start.nanos());
            let (from, to) = (frame.x(event.start), frame.x(event.end));
            let what = if event.text.is_empty() { event.kind.name() } else { &event.text };
            let on = by.map_or_else(String::new, |by| format!("\nuntil rank {by} sets it"));
            svg.open(&format!(
                "rank {}, op {}: {what}\nat {}, took {took}{on}",
                event.rank,
                event.op,
                Nanos(event.start.nanos())
            ));
            let width = (to - from).max(1.0);
            svg.rect((from, y + LANE * 0.15), (width, LANE * 0.7), colour(event.kind), 1.5);
            let ink = if waits { INK } else { PAPER };
            let texts = [by.map(|by| format!("{took} for {by}")), Some(took.to_string())];
            if let Some(text) = texts.into_iter().flatten().find(|t| room_of(t, 9.0) + 6.0 < width) {
                words.push(((from + width / 2.0, y + LANE / 2.0 + 3.0), ink, text));
            }
            svg.close();
        }
    }
    let place = |event: usize| {
        let e = &trace.events[event];
        Some((frame.x(e.end), frame.lane(first, e.rank.index())? + LANE / 2.0))
    };
    let on_path: BTreeSet<usize> = run.path.iter().map(|hop| hop.event).collect();
    let mut others = 0;
    for (event, cause) in run.causes.iter().enumerate().filter(|(event, _)| !on_path.contains(event)) {
        if let (Some(from), Some(to)) = (cause.and_then(place), place(event)) {
            others += 1;
            if others <= ARROWS {
                arrow(svg, from, to, Stroke { colour: SYNC, width: 0.9, dashed: true });
            }
        }
    }
    for hop in &run.path {
        let e = &trace.events[hop.event];
        let Some(y) = frame.lane(first, e.rank.index()) else { continue };
        let stroke = Stroke { colour: INK, width: 2.0, dashed: false };
        let (from, to) = (frame.x(hop.from), frame.x(e.end));
        svg.line((from, y + LANE * 0.92), (to.max(from + 1.0), y + LANE * 0.92), stroke);
        if let (Some(from), Some(to)) = (hop.cause.and_then(place), place(hop.event)) {
            arrow(svg, from, to, stroke);
        }
    }
    for (at, ink, text) in words {
        svg.text(at, 9.0, ink, Anchor::Middle, false, &text);
    }
    others > 0
}

/// Draws an arrow from one lane to the border of another, so that what stands in its middle can be read.
fn arrow(svg: &mut Svg, from: Point, to: Point, stroke: Stroke) {
    let side = if from.1 < to.1 { -1.0 } else { 1.0 };
    svg.arrow((from.0, from.1 - side * LANE * 0.35), (to.0, to.1 + side * LANE * 0.35), stroke);
}

/// The critical path and the longest waits in words, as far as there is room.
fn told(run: &Run, room: f64) -> String {
    if run.path.is_empty() {
        return run.trace.events.last().map(|event| event.text.clone()).unwrap_or_default();
    }
    let mut ranks: Vec<usize> = run.path.iter().map(|hop| run.trace.events[hop.event].rank.index()).collect();
    ranks.dedup();
    let path = match ranks.len() {
        0 => String::new(),
        1..=8 => ranks.iter().map(usize::to_string).collect::<Vec<_>>().join(" \u{2192} "),
        n => format!("{} ranks, from {} to {}", n, ranks[0], list(&ranks[n - 1..], 1)),
    };
    let longest = waits(run.trace, &run.causes);
    let longest =
        longest.iter().map(|(rank, by, time)| format!("{rank} waits {} for {by}", Nanos(time.nanos())));
    let mut said = format!("critical path: {path}");
    for (i, wait) in longest.take(NAMED).enumerate() {
        let more = format!("{said}{}{wait}", if i == 0 { "; longest waits: " } else { ", " });
        if room_of(&more, 11.0) > room {
            break;
        }
        said = more;
    }
    said
}

fn axis(svg: &mut Svg, frame: &Frame, top: f64) {
    let bottom = top + frame.lanes.len() as f64 * LANE;
    let step = tick(frame.end);
    for i in 0..=frame.end.0 / step {
        let t = Picos(i * step);
        let rule = Stroke { colour: RULE, width: 1.0, dashed: false };
        svg.line((frame.x(t), top), (frame.x(t), bottom + 4.0), rule);
        svg.text((frame.x(t), bottom + 18.0), 10.0, SOFT, Anchor::Middle, false, &tick_text(t, step));
    }
}

fn legend(drawn: &BTreeSet<&'static str>, arrows: bool, path: bool) -> Legend<'static> {
    let mut legend = Legend::default();
    for kind in Kind::ALL {
        let name = kind.name();
        legend.entry(drawn.contains(name), name, move |svg, (x, y)| {
            svg.rect((x, y - 6.0), (24.0, 12.0), colour(kind), 2.0)
        });
    }
    legend.entry(path, "critical path", |svg, (x, y)| {
        svg.line((x, y), (x + 24.0, y), Stroke { colour: INK, width: 2.0, dashed: false });
    });
    legend.entry(arrows, "ends a wait", |svg, (x, y)| {
        svg.arrow((x, y), (x + 24.0, y), Stroke { colour: SYNC, width: 0.9, dashed: true });
    });
    legend
}

/// The distance of ticks: 1, 2 or 5 times a power of ten, so that there are at most ten.
fn tick(end: Picos) -> u64 {
    let mut power = 1u64;
    loop {
        for factor in [1, 2, 5] {
            let step = power.saturating_mul(factor);
            if end.0 / step < 10 {
                return step;
            }
        }
        power = power.saturating_mul(10);
    }
}

/// A tick's time, with no more digits than its distance needs.
fn tick_text(t: Picos, step: u64) -> String {
    let (unit, scale) = match step {
        0..1_000 => ("ps", 1),
        1_000..1_000_000 => ("ns", 1_000),
        1_000_000..1_000_000_000 => ("us", 1_000_000),
        _ => ("ms", 1_000_000_000),
    };
    format!("{} {unit}", t.0 / scale)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_and_few() {
        assert_eq!(tick(Picos(1)), 1);
        assert_eq!(tick(Picos(53_200)), 10_000);
        assert_eq!(tick(Picos(99_999)), 10_000);
        assert_eq!(tick(Picos(100_000)), 20_000);
        assert!(u64::MAX / tick(Picos(u64::MAX)) < 10);
        assert_eq!(tick_text(Picos(40_000), 20_000), "40 ns");
    }
}
