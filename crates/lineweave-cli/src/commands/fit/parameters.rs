//! A model as a list of parameters.

use lineweave_core::model::{AlphaBeta, Fitted, LayoutCost, LevelCosts, Model, Provenance, Surface};
use lineweave_core::topology::Level;
use lineweave_core::units::Bytes;
use serde::Serialize;

/// One parameter of a model. Printed as `parameter` by `lineweave fit`, one object each.
#[derive(Serialize, Clone, Debug)]
pub(in crate::commands) struct Parameter {
    /// Symbol, as the papers write it.
    pub parameter: String,
    /// Nearest level of the topology that the ranks share, where distance plays a part.
    pub level: Option<Level>,
    /// Layout of the flags.
    pub layout: Option<String>,
    /// Size of a transfer.
    pub bytes: Option<u64>,
    /// Concurrent transfers.
    pub tau: Option<u32>,
    /// Value in nanoseconds, for each `per`.
    pub value_ns: f64,
    /// Lower end of the 95 % interval.
    pub ci_low_ns: f64,
    pub ci_high_ns: f64,
    /// `byte`, `line` or `reader`, where the value is a rate.
    pub per: Option<&'static str>,
    pub provenance: Provenance,
    pub about: &'static str,
}

impl Parameter {
    fn new(symbol: &str, cost: Fitted, about: &'static str) -> Parameter {
        Parameter {
            parameter: symbol.to_owned(),
            level: None,
            layout: None,
            bytes: None,
            tau: None,
            value_ns: cost.value,
            ci_low_ns: cost.ci_low,
            ci_high_ns: cost.ci_high,
            per: None,
            provenance: cost.provenance,
            about,
        }
    }

    fn per(self, per: &'static str) -> Parameter {
        Parameter { per: Some(per), ..self }
    }

    fn at(self, level: Level) -> Parameter {
        Parameter { level: Some(level), ..self }
    }

    /// Returns whether the parameter belongs in a list for people: of a surface, only some sizes do.
    pub fn is_typical(&self) -> bool {
        self.bytes.is_none_or(|b| b.is_power_of_two() && b.trailing_zeros() % 4 == 0)
    }

    /// Returns level, layout, size and concurrency, as far as the parameter has them.
    pub fn place(&self) -> String {
        let parts = [
            self.level.map(|l| l.to_string()),
            self.layout.clone(),
            self.bytes.map(|b| Bytes(b).to_string()),
            self.tau.map(|t| format!("tau {t}")),
        ];
        parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
    }

    /// Returns the value, as text for people.
    pub fn value(&self) -> String {
        number(self.value_ns)
    }

    /// Returns the interval, as text for people; empty where none is known.
    pub fn interval(&self) -> String {
        match self.ci_low_ns < self.ci_high_ns {
            true => format!("{} .. {}", number(self.ci_low_ns), number(self.ci_high_ns)),
            false => String::new(),
        }
    }

    /// Returns the unit of the value.
    pub fn unit(&self) -> String {
        self.per.map_or_else(|| "ns".to_owned(), |per| format!("ns/{per}"))
    }
}

/// Returns a number with three significant digits.
fn number(x: f64) -> String {
    match x.abs() {
        a if a >= 100.0 || a == 0.0 => format!("{x:.0}"),
        a if a >= 10.0 => format!("{x:.1}"),
        a if a >= 1.0 => format!("{x:.2}"),
        _ => format!("{x:.4}"),
    }
}

/// Returns every parameter of the model, in the order of its definition.
pub(in crate::commands) fn parameters(model: &Model) -> Vec<Parameter> {
    let mut list = vec![
        Parameter::new("R_L", model.local, "a line in the own cache"),
        Parameter::new("R_I", model.invalid, "a line in nobody's cache"),
        Parameter::new("T_C c", model.contention.c, "one more reader of the same line").per("reader"),
        Parameter::new("T_C b", model.contention.b, "readers of the same line, fixed part"),
        Parameter::new("issue", model.issue, "between loads of lines in a row").per("line"),
        Parameter::new(
            "stores",
            model.between_stores(model.levels[0].level),
            "between stores to lines that others poll",
        )
        .per("line"),
        Parameter::new("add", model.add, "a fetch-and-add on a line that others have"),
    ];
    for level in &model.levels {
        of_level(level, &mut list);
    }
    surface("copy", None, &model.copy, "copying within private memory", &mut list);
    if let Some(streamed) = &model.streamed {
        surface("copy nt", None, streamed, "the same past the caches", &mut list);
    }
    if let Some(attach) = &model.attach {
        surface("attach", None, attach, "copying out of another process's memory (CMA)", &mut list);
    }
    if let Some(pinning) = &model.pinning {
        let about = "what each page of it takes longer by tau ranks that copy the same at once";
        surface("attach page", None, pinning, about, &mut list);
    }
    for fold in &model.folds {
        let name = format!("fold {} {}", fold.element, fold.op);
        surface(&name, None, &fold.private, "combining, both operands private", &mut list);
        if let Some(slot) = &fold.slot {
            surface(
                &format!("{name} slot"),
                None,
                slot,
                "combining, one operand just written by a peer",
                &mut list,
            );
        }
    }
    let engine = model.overhead;
    list.extend([
        Parameter::new("set", engine.set, "the engine: a set, until its store is issued"),
        Parameter::new("wait", engine.wait, "the engine: a wait that is already satisfied"),
        Parameter::new("move", engine.mov, "the engine: a move without its bytes"),
        Parameter::new("fold", engine.fold, "the engine: a fold without its bytes"),
        Parameter::new("run", engine.run, "the engine: a run without its ops"),
        Parameter::new("yield", model.wake.yielding, "handing over to a rank on the same CPU"),
        Parameter::new("futex", model.wake.futex, "waking a rank that sleeps on another CPU"),
    ]);
    for pattern in &model.patterns {
        let name = format!("L {}", pattern.pattern);
        surface(&name, Some(pattern.level), &pattern.surface, "a set-up of tau-Lop", &mut list);
    }
    for trick in &model.tricks {
        let name = format!("trick {}", trick.name);
        list.push(Parameter::new(&name, trick.cost, "an exchange of two ranks with this trick, or without"));
    }
    list
}

fn of_level(costs: &LevelCosts, list: &mut Vec<Parameter>) {
    let level = costs.level;
    list.push(Parameter::new("R_R", costs.read, "reading a line that another modified").at(level));
    if let Some(away) = costs.away {
        let about = "reading a line whose memory is in another package than both";
        list.push(Parameter::new("R_R away", away, about).at(level));
    }
    if let Some(clean) = costs.read_clean {
        list.push(
            Parameter::new("R_R clean", clean, "reading a line that another holds unmodified").at(level),
        );
    }
    list.push(Parameter::new("own", costs.own, "taking ownership of a line that another has").at(level));
    let layouts = |name: &str, costs: &[LayoutCost], about: &'static str, list: &mut Vec<Parameter>| {
        list.extend(costs.iter().map(|c| Parameter {
            layout: Some(c.layout.to_string()),
            ..Parameter::new(name, c.cost, about).at(level)
        }));
    };
    layouts("signal", &costs.signal, "from a set until a polling peer has seen it", list);
    layouts("exchange", &costs.exchange, "two ranks that set and wait at once", list);
    if let Some(lines) = costs.lines {
        list.extend([
            Parameter::new("T_N o", lines.o, "handing over N lines: o N + q - p / N").at(level).per("line"),
            Parameter::new("T_N q", lines.q, "fixed part of it").at(level),
            Parameter::new("T_N p", lines.p, "what prefetching does not yet save on the first lines")
                .at(level),
        ]);
    }
    if let Some(AlphaBeta { alpha, beta }) = costs.hockney {
        list.extend([
            Parameter::new("alpha", alpha, "Hockney: start of reading from a peer").at(level),
            Parameter::new("beta", beta, "Hockney: each byte of it").at(level).per("byte"),
        ]);
    }
    surface("L get", Some(level), &costs.get, "reading what a peer has just written", list);
    surface("L put", Some(level), &costs.put, "writing what a peer read last", list);
    if let Some(stream) = &costs.stream {
        surface("stream", Some(level), stream, "as many bytes through a ring of as many", list);
    }
}

fn surface(name: &str, level: Option<Level>, of: &Surface, about: &'static str, list: &mut Vec<Parameter>) {
    for (&bytes, row) in of.bytes.iter().zip(&of.cost) {
        list.extend(of.taus.iter().zip(row).map(|(&tau, &cost)| Parameter {
            level,
            bytes: Some(bytes),
            tau: Some(tau),
            ..Parameter::new(name, cost, about)
        }));
    }
}
