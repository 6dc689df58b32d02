//! One call of a timeline beside its plan: for drawings that show what was measured under what was predicted.

use super::record::collective;
use crate::error::CliError;
use lineweave_core::plan::Plan;
use lineweave_core::trace::{Clock, Event, Kind, Picos, Trace};
use lineweave_core::units::{Nanos, Rank};
use serde::Deserialize;
use std::borrow::Cow;
use std::collections::HashMap;
use std::path::Path;

/// Name of the kind of file in errors.
const KIND: &str = "timeline of `lineweave run --trace`";

#[derive(Deserialize)]
struct Timeline<'a> {
    #[serde(rename = "traceEvents", borrow)]
    events: Vec<Span<'a>>,
}

#[derive(Deserialize)]
struct Span<'a> {
    #[serde(borrow)]
    name: Cow<'a, str>,
    #[serde(borrow)]
    cat: Option<Cow<'a, str>>,
    ts: Option<f64>,
    dur: Option<f64>,
    #[serde(borrow)]
    args: Option<About<'a>>,
}

#[derive(Deserialize)]
struct About<'a> {
    bytes: Option<u64>,
    ranks: Option<usize>,
    rank: Option<usize>,
    root: Option<usize>,
    #[serde(borrow)]
    communicator: Option<Cow<'a, str>>,
    call: Option<u64>,
}

/// One rank's part of a call, in microseconds.
#[derive(Clone, Copy)]
struct Part {
    rank: usize,
    from: f64,
    to: f64,
}

/// Returns one of the calls that the plan is for and lineweave carried out: of the tenth whose ranks entered closest together, the median one.
pub fn nearest(file: &Path, plan: &Plan) -> Result<Trace, CliError> {
    let text = std::fs::read_to_string(file).map_err(|reason| CliError::Read {
        path: file.to_owned(),
        what: KIND,
        reason,
    })?;
    let malformed = |e: serde_json::Error| CliError::Malformed {
        path: file.to_owned(),
        what: KIND,
        reason: e.to_string(),
    };
    let timeline: Timeline = serde_json::from_str(&text).map_err(malformed)?;
    let calls = calls(&timeline, plan);
    let spread = |parts: &Vec<Part>| {
        let last = parts.iter().map(|part| part.from).fold(f64::MIN, f64::max);
        last - parts.iter().map(|part| part.from).fold(f64::MAX, f64::min)
    };
    let took = |parts: &Vec<Part>| parts.iter().map(|part| part.to - part.from).fold(0.0, f64::max);
    let mut closest: Vec<&Vec<Part>> = calls.iter().collect();
    closest.sort_by(|a, b| spread(a).total_cmp(&spread(b)));
    closest.truncate(calls.len().div_ceil(10));
    closest.sort_by(|a, b| took(a).total_cmp(&took(b)));
    let none = || CliError::NoCalls {
        path: file.to_owned(),
        plan: plan.name(),
        ranks: plan.ranks,
        bytes: plan.bytes,
    };
    let parts = *closest.get(closest.len() / 2).ok_or_else(none)?;
    let within = Nanos(spread(parts) * 1e3);
    let about = format!(
        "the median of the {} of {} calls whose ranks entered closest together; this one within {within}",
        closest.len(),
        calls.len()
    );
    Ok(trace(plan, parts, about))
}

/// The calls in which all ranks of the plan took part.
fn calls(timeline: &Timeline, plan: &Plan) -> Vec<Vec<Part>> {
    let wanted = plan.collective;
    let mut calls: HashMap<(&str, u64), Vec<Part>> = HashMap::new();
    for span in &timeline.events {
        let (Some(ts), Some(dur), Some(about)) = (span.ts, span.dur, &span.args) else { continue };
        let same = collective(&span.name) == Some(wanted)
            && span.cat.as_deref() == Some("lineweave")
            && about.ranks == Some(plan.ranks);
        let of_length = !wanted.moves_data() || about.bytes == Some(plan.bytes as u64);
        let of_root = !wanted.rooted() || about.root == Some(plan.root.index());
        let (Some(comm), Some(call), Some(rank)) = (&about.communicator, about.call, about.rank) else {
            continue;
        };
        if same && of_length && of_root {
            calls.entry((comm, call)).or_default().push(Part { rank, from: ts, to: ts + dur });
        }
    }
    calls.into_values().filter(|parts| parts.len() == plan.ranks).collect()
}

/// Each rank's wait for the last to come, and the rest of its call.
fn trace(plan: &Plan, parts: &[Part], about: String) -> Trace {
    let began = parts.iter().map(|part| part.from).fold(f64::MAX, f64::min);
    let last = parts.iter().map(|part| part.from).fold(f64::MIN, f64::max);
    let picos = |us: f64| Picos(((us - began).max(0.0) * 1e6).round() as u64);
    let mut trace = Trace::of(plan, Clock::Measured);
    for part in parts {
        let met = last.min(part.to);
        // No op of the plan: what lies within a call is not recorded.
        let mut event = |op: u32, kind, from, to, text: String| {
            let (start, end) = (picos(from), picos(to));
            trace.events.push(Event {
                rank: Rank(part.rank as u32),
                op: u32::MAX - 1 + op,
                kind,
                start,
                end,
                text,
            });
        };
        if met > part.from {
            event(0, Kind::Wait, part.from, met, "waits for the last to come".to_owned());
        }
        event(1, Kind::Move, met, part.to, about.clone());
    }
    trace
}

#[cfg(test)]
mod tests {
    use super::*;

    const BARRIER: &str =
        "plan barrier/dissemination p=2 root=0 bytes=0 grain=1 acc=0 reuse=same direct=no slots=none\n\
                           flags round alone 1\nrank 0:\n  set round@1[0]=1\n  wait round@0[0]>=1\n\
                           rank 1:\n  set round@0[0]=1\n  wait round@1[0]>=1\nend\n";

    /// The events of a barrier: number, each rank's beginning and end in us.
    fn barrier(call: u64, times: [(f64, f64); 2]) -> String {
        let event = |(rank, (from, to)): (usize, (f64, f64))| {
            format!(
                r#"{{"name":"barrier","cat":"lineweave","ph":"X","ts":{from},"dur":{},"args":{{"bytes":0,"ranks":2,"rank":{rank},"communicator":"0x1","call":{call}}}}}"#,
                to - from
            )
        };
        times.into_iter().enumerate().map(event).collect::<Vec<_>>().join(",")
    }

    fn drawn(events: &[String]) -> Result<Trace, CliError> {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), format!(r#"{{"traceEvents":[{}]}}"#, events.join(","))).unwrap();
        nearest(file.path(), &BARRIER.parse().unwrap())
    }

    #[test]
    fn the_call_whose_ranks_entered_closest_together_is_drawn() {
        let far = barrier(0, [(0.0, 50.0), (48.0, 50.0)]);
        let near = barrier(1, [(100.0, 103.0), (101.0, 104.0)]);
        let trace = drawn(&[far, near]).unwrap();
        let seen: Vec<_> = trace.events.iter().map(|e| (e.rank.0, e.kind, e.start.0, e.end.0)).collect();
        let us = 1_000_000;
        assert_eq!(seen, [(0, Kind::Wait, 0, us), (0, Kind::Move, us, 3 * us), (1, Kind::Move, us, 4 * us)]);
        assert!(trace.events[1].text.contains("of 2 calls"), "{}", trace.events[1].text);
    }

    #[test]
    fn a_timeline_without_such_calls_is_refused() {
        let of_one = barrier(0, [(0.0, 5.0), (1.0, 5.0)])
            .replace("\"rank\":1", "\"rank\":0")
            .replace("barrier", "scan");
        assert!(drawn(&[of_one])
            .unwrap_err()
            .to_string()
            .contains("expected calls of barrier/dissemination"));
    }
}
