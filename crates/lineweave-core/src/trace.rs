//! A trace: when each op of a plan began and ended, in virtual or in real time.
//!
//! The engine and the simulator record the same type, so prediction and reality lie side by side op by op.
//! Serialised as JSON Lines: one object of kind `trace` that names the plan, then one of kind `event` an op.

use crate::plan::{Op, Plan};
use crate::units::Rank;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Version of the serialised form.
pub const SCHEMA: u32 = 1;

/// A point in time or a duration, in whole picoseconds; a run begins at 0.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Picos(pub u64);

impl Picos {
    /// The longest time that the serialised form carries exactly: 18 minutes. A run is one collective.
    pub const MOST: Picos = Picos(1 << 50);

    /// This time in nanoseconds.
    pub fn nanos(self) -> f64 {
        self.0 as f64 / 1e3
    }
}

/// Source of times.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Clock {
    /// The engine on real memory.
    Measured,
    /// The simulator.
    Simulated,
    /// The model.
    Predicted,
}

impl Clock {
    /// The name in traces and drawings.
    pub fn name(self) -> &'static str {
        match self {
            Clock::Measured => "measured",
            Clock::Simulated => "simulated",
            Clock::Predicted => "predicted",
        }
    }
}

/// Kind of an op, without its operands.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// [`Op::Move`].
    Move,
    /// [`Op::Fold`].
    Fold,
    /// [`Op::Set`].
    Set,
    /// [`Op::Wait`].
    Wait,
    /// [`Op::Add`].
    Add,
}

impl Kind {
    /// Every kind.
    pub const ALL: [Kind; 5] = [Kind::Move, Kind::Fold, Kind::Set, Kind::Wait, Kind::Add];

    /// The kind of an op.
    pub fn of(op: &Op) -> Kind {
        match op {
            Op::Move { .. } => Kind::Move,
            Op::Fold { .. } => Kind::Fold,
            Op::Set { .. } => Kind::Set,
            Op::Wait { .. } => Kind::Wait,
            Op::Add { .. } => Kind::Add,
        }
    }

    /// The name in traces and drawings.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Move => "move",
            Kind::Fold => "fold",
            Kind::Set => "set",
            Kind::Wait => "wait",
            Kind::Add => "add",
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// One op as it ran.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Event {
    /// Rank that ran the op.
    pub rank: Rank,
    /// Its index in the rank's program.
    pub op: u32,
    /// Kind of the op.
    pub kind: Kind,
    /// Time at which the op began.
    pub start: Picos,
    /// Time at which the op ended, not before it began.
    pub end: Picos,
    /// The op as the plan's text form shows it; may be empty.
    pub text: String,
}

/// One run of one plan.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Trace {
    /// `collective/algorithm`.
    pub plan: String,
    /// The plan's parameters as text.
    pub params: String,
    /// Number of ranks.
    pub ranks: usize,
    /// Length of the message.
    pub bytes: usize,
    /// Source of the times.
    pub clock: Clock,
    /// The ops that ran, each rank's in program order.
    pub events: Vec<Event>,
}

impl Trace {
    /// An empty trace of a run of `plan`.
    pub fn of(plan: &Plan, clock: Clock) -> Trace {
        Trace {
            plan: plan.name(),
            params: plan.params.to_string(),
            ranks: plan.ranks,
            bytes: plan.bytes,
            clock,
            events: Vec::new(),
        }
    }

    /// Adds that `rank` ran op `op` of its program in `plan` from `start` to `end`. An op that the plan does
    /// not have is left out.
    pub fn record(&mut self, plan: &Plan, rank: Rank, op: u32, start: Picos, end: Picos) {
        let found = plan.programs.get(rank.index()).and_then(|ops| ops.get(op as usize));
        if let Some(it) = found {
            let end = end.max(start);
            self.events.push(Event { rank, op, kind: Kind::of(it), start, end, text: plan.op_text(it) });
        }
    }

    /// Returns the time at which the last op ended.
    pub fn end(&self) -> Picos {
        self.events.iter().map(|e| e.end).max().unwrap_or_default()
    }

    /// The trace as JSON Lines.
    pub fn to_json_lines(&self) -> String {
        let head = Line::Trace {
            schema: SCHEMA,
            plan: self.plan.clone(),
            params: self.params.clone(),
            ranks: self.ranks,
            bytes: self.bytes,
            clock: self.clock,
        };
        let events = self.events.iter().map(|e| Line::Event {
            schema: SCHEMA,
            rank: e.rank,
            op: e.op,
            what: e.kind,
            start_ns: e.start.nanos(),
            end_ns: e.end.nanos(),
            text: e.text.clone(),
        });
        let mut out = String::new();
        for line in std::iter::once(head).chain(events) {
            // Strings, integers and finite floats always serialise; an empty line would be read as none.
            out.push_str(&serde_json::to_string(&line).unwrap_or_default());
            out.push('\n');
        }
        out
    }

    /// Reads what [`Trace::to_json_lines`] writes.
    ///
    /// # Errors
    /// A [`TraceError`] with the first line that is not as it should be.
    pub fn from_json_lines(text: &str) -> Result<Trace, TraceError> {
        let mut trace: Option<Trace> = None;
        for (n, json) in text.lines().enumerate().filter(|(_, l)| !l.trim().is_empty()) {
            let error = |message: String| TraceError { line: n + 1, message };
            let line: Line = serde_json::from_str(json).map_err(|e| error(e.to_string()))?;
            let (Line::Trace { schema, .. } | Line::Event { schema, .. }) = &line;
            if *schema != SCHEMA {
                return Err(error(format!("expected schema {SCHEMA}, found {schema}")));
            }
            match (line, &mut trace) {
                (Line::Trace { plan, params, ranks, bytes, clock, .. }, None) => {
                    trace = Some(Trace { plan, params, ranks, bytes, clock, events: Vec::new() });
                }
                (Line::Trace { .. }, Some(_)) => {
                    return Err(error("expected kind `event`, found a second `trace`".to_owned()))
                }
                (Line::Event { .. }, None) => {
                    return Err(error("expected kind `trace` first, found `event`".to_owned()))
                }
                (Line::Event { rank, op, what, start_ns, end_ns, text, .. }, Some(trace)) => {
                    if rank.index() >= trace.ranks {
                        return Err(error(format!("expected a rank below {}, found {rank}", trace.ranks)));
                    }
                    let (start, end) = (picos(start_ns).map_err(error)?, picos(end_ns).map_err(error)?);
                    if end < start {
                        return Err(error(format!(
                            "expected an end of at least {start_ns} ns, found {end_ns}"
                        )));
                    }
                    trace.events.push(Event { rank, op, kind: what, start, end, text });
                }
            }
        }
        trace.ok_or_else(|| TraceError {
            line: text.lines().count().max(1),
            message: "expected a line of kind `trace`, found the end of the text".to_owned(),
        })
    }
}

fn picos(nanos: f64) -> Result<Picos, String> {
    let most = Picos::MOST.nanos();
    if (0.0..=most).contains(&nanos) {
        Ok(Picos((nanos * 1e3).round() as u64))
    } else {
        Err(format!("expected a time from 0 to {most} ns, found {nanos}"))
    }
}

/// A line of the serialised form. Keys are documented and versioned by [`SCHEMA`].
#[derive(Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase", deny_unknown_fields)]
enum Line {
    Trace {
        schema: u32,
        plan: String,
        params: String,
        ranks: usize,
        bytes: usize,
        clock: Clock,
    },
    Event {
        schema: u32,
        rank: Rank,
        op: u32,
        what: Kind,
        start_ns: f64,
        end_ns: f64,
        #[serde(default, skip_serializing_if = "String::is_empty")]
        text: String,
    },
}

/// Why a text is not a trace.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {message}")]
pub struct TraceError {
    /// Line of the text, from 1.
    pub line: usize,
    /// Message with the expected and the found text.
    pub message: String,
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const PLAN: &str = "plan bcast/x k=2 p=2 root=0 bytes=8 grain=1 acc=0 reuse=ring direct=no slots=none\n\
        flags ready alone 1\nrank 0: set ready@1[0]=1 carrying in[0..8]\n\
        rank 1: wait ready@1[0]>=1 taking out[0..8]\nend\n";

    fn sample(times: [u64; 3]) -> Trace {
        let plan: Plan = PLAN.parse().unwrap();
        let [a, b, c] = times.map(|t| Picos(t % (Picos::MOST.0 + 1)));
        let mut trace = Trace::of(&plan, Clock::Simulated);
        trace.record(&plan, Rank(0), 0, a.min(b), a.max(b));
        trace.record(&plan, Rank(1), 0, b.min(c), b.max(c));
        trace.record(&plan, Rank(1), 1, b, c);
        trace
    }

    #[test]
    fn the_serialised_form_is_as_documented() {
        let text = sample([0, 52_500, 60_001]).to_json_lines();
        let expected = r#"{"kind":"trace","schema":1,"plan":"bcast/x","params":"k=2","ranks":2,"bytes":8,"clock":"simulated"}
{"kind":"event","schema":1,"rank":0,"op":0,"what":"set","start_ns":0.0,"end_ns":52.5,"text":"set ready@1[0]=1 carrying in[0..8]"}
{"kind":"event","schema":1,"rank":1,"op":0,"what":"wait","start_ns":52.5,"end_ns":60.001,"text":"wait ready@1[0]>=1 taking out[0..8]"}
"#;
        assert_eq!(text, expected);
    }

    #[test]
    fn errors_have_lines() {
        let text = sample([0, 1, 2]).to_json_lines();
        let cases = [
            ("", "", 1, "the end of the text"),
            ("\"schema\":1", "\"schema\":2", 1, "expected schema 1, found 2"),
            ("\"rank\":1", "\"rank\":2", 3, "a rank below 2"),
            ("\"what\":\"set\"", "\"what\":\"sat\"", 2, "sat"),
            ("\"start_ns\":0.0", "\"start_ns\":-1", 2, "a time from 0"),
            ("\"start_ns\":0.0", "\"start_ns\":9", 2, "an end of at least 9"),
            ("\"clock\"", "\"watch\"", 1, "watch"),
        ];
        for (from, to, line, message) in cases {
            let text = if from.is_empty() { String::new() } else { text.replacen(from, to, 1) };
            let error = Trace::from_json_lines(&text).unwrap_err();
            assert_eq!(error.line, line, "{error}");
            assert!(error.message.contains(message), "{error}");
        }
        let error = Trace::from_json_lines(&text.repeat(2)).unwrap_err();
        assert_eq!(error.to_string(), "line 4: expected kind `event`, found a second `trace`");
    }

    proptest! {
        #[test]
        fn picoseconds_round_trip(times in any::<[u64; 3]>()) {
            let trace = sample(times);
            prop_assert_eq!(Trace::from_json_lines(&trace.to_json_lines()), Ok(trace));
        }

        #[test]
        fn garbage_is_refused_with_a_line(text in any::<String>(), cut in 0..400usize) {
            prop_assert!(Trace::from_json_lines(&text).is_err());
            let valid = sample([1, 2, 3]).to_json_lines();
            let cut = cut.min(valid.len());
            match Trace::from_json_lines(&format!("{}{text}", &valid[..cut])) {
                Ok(trace) => prop_assert!(trace.events.len() <= 2),
                Err(e) => prop_assert!(e.line >= 1),
            }
        }
    }
}
