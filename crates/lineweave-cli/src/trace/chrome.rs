//! The timeline as Chrome's trace events, which Perfetto (ui.perfetto.dev) and `chrome://tracing` open.
//!
//! A node is a process there and a rank a thread. Times are in microseconds from the first call on, with three places.

use super::record::{Call, Part};
use super::waits::Waits;
use lineweave_core::collective::Collective;
use serde::{Serialize, Serializer};
use std::collections::{BTreeSet, HashMap};

/// Waits that are shorter are no event of their own.
const SHORTEST_NS: i64 = 1000;

/// A collective, its ranks and its bytes: what a prediction is for.
pub type Shape = (Collective, usize, u64);

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Timeline<'a> {
    display_time_unit: &'static str,
    other_data: Job<'a>,
    trace_events: Vec<Event<'a>>,
}

#[derive(Serialize)]
struct Job<'a> {
    tool: &'static str,
    version: &'static str,
    mpi: &'a str,
    ranks: usize,
    began_unix_ns: i64,
    predicted_by: &'a str,
}

#[derive(Serialize)]
struct Event<'a> {
    name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    cat: Option<&'static str>,
    ph: &'static str,
    pid: usize,
    tid: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    ts: Option<Micros>,
    #[serde(skip_serializing_if = "Option::is_none")]
    dur: Option<Micros>,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    args: Option<Args<'a>>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Args<'a> {
    Name { name: String },
    Call(Box<CallArgs<'a>>),
}

#[derive(Serialize)]
struct CallArgs<'a> {
    bytes: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    ranks: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    rank: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    root: Option<usize>,
    communicator: String,
    call: u64,
    carried_out_by: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    because: Option<&'a str>,
    waited_us: Micros,
    #[serde(skip_serializing_if = "Option::is_none")]
    waited_for_rank: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    predicted_us: Option<Micros>,
}

/// A time in ns, written in us.
#[derive(Clone, Copy)]
struct Micros(i64);

impl Serialize for Micros {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_f64(self.0 as f64 / 1000.0)
    }
}

/// Returns the file's text. `predicted`: what lineweave's plans of these shapes are predicted to take, in ns.
pub fn timeline(
    parts: &[Part],
    waits: &Waits,
    predicted: &HashMap<Shape, f64>,
    predicted_by: &str,
) -> Vec<u8> {
    let began = parts.iter().flat_map(|part| &part.calls).map(|call| call.from_ns).min().unwrap_or(0);
    let nodes: BTreeSet<&str> = parts.iter().map(|part| part.node.as_str()).collect();
    let nodes: HashMap<&str, usize> = nodes.into_iter().zip(0..).collect();
    let mut events = Vec::new();
    let mut named: Vec<(&str, usize)> = nodes.iter().map(|(name, number)| (*name, *number)).collect();
    named.sort_by_key(|(_, number)| *number);
    for (name, number) in named {
        events.push(meta("process_name", number, 0, format!("node {name}")));
    }
    for (p, part) in parts.iter().enumerate() {
        let lane = Lane { pid: nodes[part.node.as_str()], tid: p, began };
        let state = if part.complete { "" } else { ", did not come to MPI_Finalize" };
        events.push(meta(
            "thread_name",
            lane.pid,
            p,
            format!("rank {} (pid {}{state})", part.rank, part.pid),
        ));
        for (c, call) in part.calls.iter().enumerate() {
            let wait = waits[p][c];
            let args = CallArgs {
                bytes: call.bytes,
                ranks: call.place.map(|(_, size)| size),
                rank: call.place.map(|(rank, _)| rank),
                root: call.root,
                communicator: format!("{:#018x}", call.comm),
                call: call.number,
                carried_out_by: if call.because.is_some() { &part.mpi } else { "lineweave" },
                because: call.because.as_deref(),
                waited_us: Micros(wait.map_or(0, |wait| wait.ns)),
                waited_for_rank: wait.map(|wait| parts[wait.part].rank),
                predicted_us: shape(call).and_then(|s| predicted.get(&s)).map(|ns| Micros(ns.round() as i64)),
            };
            lane.call(call, args, events.len(), &mut events);
            if let Some(wait) = wait.filter(|wait| wait.ns >= SHORTEST_NS) {
                let name = format!("waits for rank {}", parts[wait.part].rank);
                events.push(lane.span(name, "wait", call.from_ns, wait.ns, None));
            }
        }
    }
    let job = Job {
        tool: "lineweave",
        version: env!("CARGO_PKG_VERSION"),
        mpi: parts.first().map_or("", |part| &part.mpi),
        ranks: parts.len(),
        began_unix_ns: began,
        predicted_by,
    };
    let timeline = Timeline { display_time_unit: "ns", other_data: job, trace_events: events };
    // Text and numbers of our own always have a form.
    serde_json::to_vec(&timeline).unwrap_or_default()
}

/// Returns the shape by which a call is predicted, if lineweave has such a collective.
pub fn shape(call: &Call) -> Option<Shape> {
    let (_, ranks) = call.place.filter(|(_, size)| *size > 1)?;
    let collective = call.collective().filter(|_| !call.started)?;
    Some((collective, ranks, call.bytes))
}

fn meta<'a>(what: &str, pid: usize, tid: usize, name: String) -> Event<'a> {
    Event {
        name: what.to_owned(),
        cat: None,
        ph: "M",
        pid,
        tid,
        ts: None,
        dur: None,
        id: None,
        args: Some(Args::Name { name }),
    }
}

/// The row of a rank, to which its events go.
#[derive(Clone, Copy)]
struct Lane {
    pid: usize,
    tid: usize,
    began: i64,
}

impl Lane {
    fn span<'a>(
        self,
        name: String,
        cat: &'static str,
        from_ns: i64,
        ns: i64,
        args: Option<Args<'a>>,
    ) -> Event<'a> {
        let (ts, dur) = (Some(Micros(from_ns - self.began)), Some(Micros(ns)));
        Event { name, cat: Some(cat), ph: "X", pid: self.pid, tid: self.tid, ts, dur, id: None, args }
    }

    /// A blocking call is a span. A started one overlaps others, so it is a pair of events with a number.
    fn call<'a>(self, call: &Call, args: CallArgs<'a>, id: usize, to: &mut Vec<Event<'a>>) {
        let cat = if call.because.is_some() { "host" } else { "lineweave" };
        let args = Some(Args::Call(Box::new(args)));
        let begin = self.span(call.kind.clone(), cat, call.from_ns, call.took_ns(), args);
        if !call.started {
            return to.push(begin);
        }
        let ends = Event {
            args: None,
            ts: Some(Micros(call.to_ns - self.began)),
            dur: None,
            ph: "e",
            id: Some(id),
            ..self.span(call.kind.clone(), cat, 0, 0, None)
        };
        to.push(Event { ph: "b", dur: None, id: Some(id), ..begin });
        to.push(ends);
    }
}

#[cfg(test)]
mod tests {
    use super::super::record::tests::file;
    use super::super::{record::Part, waits};
    use super::*;
    use serde_json::Value;

    #[test]
    fn events_say_who_waited_for_whom_and_what_was_predicted() {
        let records = |from: u64, rank: i32| [([from, 5000, 5, 0, 8], [-1, rank, 2], [0, 2, 0])];
        let parts: Vec<Part> = [(0, 100), (1, 4100)]
            .map(|(rank, from)| Part::read(&file(rank, 4, 1, &records(from, rank)), rank == 0).unwrap())
            .into();
        let predicted = HashMap::from([((Collective::Barrier, 2, 8), 120.4)]);
        let text = timeline(&parts, &waits::find(&parts), &predicted, "this machine");
        let read: Value = serde_json::from_slice(&text).unwrap();
        let events = read["traceEvents"].as_array().unwrap();
        let calls: Vec<&Value> = events.iter().filter(|event| event["cat"] == "lineweave").collect();
        assert_eq!(calls.len(), 2);
        assert_eq!((&calls[0]["ts"], &calls[0]["dur"]), (&Value::from(0.0), &Value::from(4.9)));
        assert_eq!(calls[0]["args"]["waited_us"], 4.0);
        assert_eq!(calls[0]["args"]["waited_for_rank"], 1);
        assert_eq!(calls[0]["args"]["predicted_us"], 0.12);
        assert!(calls[1]["args"].get("waited_for_rank").is_none());
        let wait: Vec<&Value> = events.iter().filter(|event| event["cat"] == "wait").collect();
        assert_eq!(
            (wait.len(), &wait[0]["name"], &wait[0]["dur"]),
            (1, &Value::from("waits for rank 1"), &Value::from(4.0))
        );
        let names: Vec<&Value> = events
            .iter()
            .filter(|event| event["name"] == "thread_name")
            .map(|e| &e["args"]["name"])
            .collect();
        assert_eq!(names, ["rank 0 (pid 1000)", "rank 1 (pid 1001, did not come to MPI_Finalize)"]);
    }

    #[test]
    fn a_started_call_is_a_pair_of_events() {
        let part = Part::read(&file(0, 4, 1, &[([100, 300, 5, 0, 8], [-1, 0, 2], [0, 2, 1])]), true).unwrap();
        let parts = [part];
        let text = timeline(&parts, &waits::find(&parts), &HashMap::new(), "");
        let read: Value = serde_json::from_slice(&text).unwrap();
        let phases: Vec<&str> =
            read["traceEvents"].as_array().unwrap().iter().filter_map(|e| e["ph"].as_str()).collect();
        assert_eq!(phases, ["M", "M", "b", "e"]);
    }
}
