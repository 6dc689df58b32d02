//! A trace: ranks as lanes, ops as bars on a time axis.

use super::svg::{width_of, Anchor, Stroke, Svg};
use super::{FOLD, INK, RULE, SOFT, SYNC, TRANSFER};
use lineweave_core::trace::{Clock, Kind, Picos, Trace};
use lineweave_core::units::{Bytes, Nanos};

const TOP: f64 = 96.0;
const WIDTH: f64 = 1200.0;
const RIGHT: f64 = 24.0;

/// The colour of a kind of op. Waiting is pale: the eye should find work.
fn colour(kind: Kind) -> &'static str {
    match kind {
        Kind::Move => TRANSFER,
        Kind::Fold => FOLD,
        Kind::Set => SYNC,
        Kind::Wait => "#d1d5db",
        Kind::Add => "#cc79a7",
    }
}

/// Draws `trace` on its own time axis.
pub fn trace(trace: &Trace) -> String {
    let lane = match trace.ranks {
        0..=8 => 40.0,
        9..=16 => 30.0,
        17..=32 => 22.0,
        _ => 14.0,
    };
    let font = if lane >= 22.0 { 11.0 } else { 8.0 };
    let left = 26.0 + width_of(&format!("rank {}", trace.ranks), font);
    let height = TOP + trace.ranks as f64 * lane + 40.0;
    let end = trace.end().max(Picos(1));
    let x = |t: Picos| left + (WIDTH - left - RIGHT) * (t.0 as f64 / end.0 as f64);
    let y = |rank: usize| TOP + rank as f64 * lane;

    let mut svg = Svg::default();
    let title = format!("{} {}", trace.plan, trace.params);
    let title = title.trim_end();
    let clock = match trace.clock {
        Clock::Measured => "measured",
        Clock::Simulated => "simulated",
    };
    let dot = "  \u{b7}  ";
    let size = Bytes(trace.bytes as u64);
    svg.heading(title, &format!("P = {}{dot}{size}{dot}{clock}{dot}{}", trace.ranks, Nanos(end.nanos())));
    let mut at = 16.0;
    for kind in Kind::ALL {
        svg.rect((at, 64.0), (24.0, 12.0), colour(kind), 2.0);
        svg.text((at + 30.0, 74.0), 11.0, INK, Anchor::Start, false, kind.name());
        at += 46.0 + width_of(kind.name(), 11.0);
    }

    // 1. Axis.
    let bottom = y(trace.ranks);
    let step = tick(end);
    for i in 0..=end.0 / step {
        let t = Picos(i * step);
        let rule = Stroke { colour: RULE, width: 1.0, dashed: false };
        svg.line((x(t), TOP), (x(t), bottom + 4.0), rule);
        svg.text((x(t), bottom + 18.0), 10.0, SOFT, Anchor::Middle, false, &tick_text(t, step));
    }
    // 2. Lanes.
    for rank in 0..trace.ranks {
        let baseline = y(rank) + lane / 2.0 + font * 0.35;
        svg.text((left - 8.0, baseline), font, INK, Anchor::End, false, &format!("rank {rank}"));
    }
    // 3. Bars: waits first, so that short ops at their end are not covered.
    let waits = trace.events.iter().filter(|e| e.kind == Kind::Wait);
    let others = trace.events.iter().filter(|e| e.kind != Kind::Wait);
    for event in waits.chain(others) {
        let (from, to) = (x(event.start), x(event.end));
        let width = (to - from).max(1.0);
        let took = Nanos(event.end.nanos() - event.start.nanos());
        let what = if event.text.is_empty() { event.kind.name() } else { &event.text };
        let at = Nanos(event.start.nanos());
        svg.open(&format!("rank {}, op {}: {what}\nat {at}, took {took}", event.rank, event.op));
        let top = y(event.rank.index()) + lane * 0.15;
        svg.rect((from, top), (width, lane * 0.7), colour(event.kind), 1.5);
        let text = took.to_string();
        if event.kind != Kind::Wait && lane >= 22.0 && width_of(&text, 9.0) + 4.0 < width {
            let baseline = top + lane * 0.35 + 3.0;
            svg.text((from + width / 2.0, baseline), 9.0, "#ffffff", Anchor::Middle, false, &text);
        }
        svg.close();
    }
    svg.finish(WIDTH, height, title)
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
