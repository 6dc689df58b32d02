//! The published models' parameters, from a profile or from a machine's description.
//!
//! A message of the engine is put into a box, signalled, and got out of it. Its time T(m) is `pingpong` where that was measured,
//! and beyond it the sum of a `put`, a `signal` and a `get`, marked as inferred. From T(m), the engine's overheads and the
//! copies:
//!
//! - Hockney: least squares of T on (1, m);
//! - LogP, of one line: o is the mean of what a sender and a receiver are busy with; L + 2 o and g are least squares of T
//!   on (1, lines - 1);
//! - LogGP: least squares of T - 2 o on (1, m - 1); g is LogP's;
//! - PLogP: L + g(m) = T(m), by Kielmann et al.'s g(m) = T(m) - T(0) + g(0); L and g(0) apart need a saturated link, which no
//!   probe makes;
//! - log_nP: o(m) = T(m) / 2 (Rico-Gallego & Diaz-Martin Eq. 5); mlog_nP the same a level;
//! - put/get: a box stands for a message buffer, at no distance in routers, since cells are of one level. Least squares of copies from
//!   memory to a box, from a box to memory and within memory on (1, lines) have slopes o_r^mem + o^mpb, o^mpb + o_w^mem and
//!   o_r^mem + o_w^mem, and the first two the start-ups o_put^mem and o_get^mem. A signal is a flag that is set and read, of which the
//!   engine's set is o_put^mpb;
//! - min-max: R_L, R_R, R_I, T_C and T_N of the fit at that distance;
//! - tau-Lop: c(m, tau) is the mean of `put` and `get`, since in the chosen ring set-up each rank does both in turn (section
//!   5); made monotone; y(1) is half of an empty message, whose two transfers are synchronisation alone.

mod described;
mod measured;

use super::cache_line::{self, MinMaxModel};
use super::published::{NotKnown, Published};
use super::put_get::{self, PutGet};
use super::tau_lop::{TauLop, Way};
use super::{LogGp, LogNp, LogP, MLogNp, PLogP};
use lineweave_core::model::cells::Cells;
use lineweave_core::model::{weighted, AlphaBeta, FitError, Fitted, Observation, Point, Provenance, Surface};
use lineweave_core::profile::{Profile, Unidentified};
use lineweave_core::topology::Level;
use lineweave_core::units::Nanos;
use measured::{Here, Message};

/// A model, or what it lacks.
pub type Known<T> = Result<T, NotKnown>;

/// The published models of one machine at one distance.
#[derive(Clone, PartialEq, Debug)]
pub struct Estimates {
    /// Machine or profile, as its reader calls it.
    pub machine: String,
    /// Distance between the ranks.
    pub level: Level,
    /// Hockney.
    pub hockney: Known<AlphaBeta>,
    /// LogP.
    pub logp: Known<LogP>,
    /// LogGP.
    pub loggp: Known<LogGp>,
    /// PLogP.
    pub plogp: Known<PLogP>,
    /// log_nP.
    pub log_np: Known<LogNp>,
    /// mlog_nP.
    pub mlog_np: Known<MLogNp>,
    /// tau-Lop.
    pub tau_lop: Known<TauLop>,
    /// Put and get through message buffers.
    pub put_get: Known<PutGet>,
    /// The cache-line model's min-max forms, read as best case.
    pub min_max: Known<MinMaxModel>,
    /// The cache-line model's min-max forms, read as worst case.
    pub min_max_worst: Known<MinMaxModel>,
    /// gamma(m, tau), where folding was measured.
    pub gamma: Option<Surface>,
    /// Parameters that cannot be told apart or are not there, and what that means.
    pub unidentified: Vec<Unidentified>,
}

impl Estimates {
    /// Every model, oldest first, or what it lacks.
    pub fn all(&self) -> Vec<(&'static str, Known<&dyn Published>)> {
        fn part<T: Published>(known: &Known<T>) -> Known<&dyn Published> {
            known.as_ref().map(|m| m as &dyn Published).map_err(Clone::clone)
        }
        vec![
            ("Hockney", part(&self.hockney)),
            ("LogP", part(&self.logp)),
            ("LogGP", part(&self.loggp)),
            ("PLogP", part(&self.plogp)),
            ("log_nP", part(&self.log_np)),
            ("mlog_nP", part(&self.mlog_np)),
            (put_get::NAME, part(&self.put_get)),
            (cache_line::BEST, part(&self.min_max)),
            (cache_line::WORST, part(&self.min_max_worst)),
            ("tau-Lop", part(&self.tau_lop)),
        ]
    }
}

struct Reader<'a> {
    cells: Cells<'a>,
    machine: String,
    line: u64,
    segment: u64,
    unidentified: Vec<Unidentified>,
}

/// The published models between ranks at `level`, messages in segments of `segment` bytes where a model has them.
///
/// # Errors
/// [`FitError::BadCell`] for a cell that is not what its probe promises.
pub fn estimate(profile: &Profile, level: Level, segment: u64) -> Result<Estimates, FitError> {
    let mut reader = Reader {
        cells: Cells::of(profile)?,
        machine: format!("the profile of {}", profile.machine.cpu),
        line: profile.machine.line_bytes.max(1) as u64,
        segment,
        unidentified: Vec::new(),
    };
    let here = Here::of(&reader.cells, reader.line, level)?;
    let levels = reader.cells.levels(&["signal", "pingpong", "copy"])?;
    let mut channels = Vec::new();
    for other in levels {
        if let Ok(channel) = reader.log_np(&Here::of(&reader.cells, reader.line, other)?) {
            channels.push((other, channel));
        }
    }
    let logp = reader.logp(&here);
    let loggp = reader.loggp(&here, logp.as_ref().ok());
    let gamma =
        reader.cells.surface(&reader.cells.with("fold", &[("type", "f64"), ("source", "private")]))?;
    if gamma.is_none() {
        reader.missing("gamma(m, tau)", "no cell folds f64 in private memory".to_owned());
    }
    let mlog_np = match channels.is_empty() {
        true => Err(reader.lacks("mlog_nP", "T(m)", "no cell times a message at any distance")),
        false => Ok(MLogNp { channels }),
    };
    let min_max = MinMaxModel::of_model(&lineweave_core::model::fit(profile)?, level);
    Ok(Estimates {
        level,
        put_get: reader.put_get(&here),
        min_max: Ok(min_max),
        min_max_worst: Ok(min_max.at_worst()),
        hockney: reader.hockney(&here),
        plogp: reader.plogp(&here),
        log_np: reader.log_np(&here),
        tau_lop: reader.tau_lop(&here),
        logp,
        loggp,
        mlog_np,
        gamma,
        machine: reader.machine,
        unidentified: reader.unidentified,
    })
}

impl Reader<'_> {
    fn lacks(&self, model: &'static str, value: &str, because: &str) -> NotKnown {
        let because = format!("{because}; `lineweave measure -o FILE` does, and --profile FILE takes it");
        NotKnown::new(model, value, &self.machine, because)
    }

    fn missing(&mut self, what: &str, because: String) {
        self.unidentified.push(Unidentified { what: what.to_owned(), because });
    }

    /// A least-squares line through T less `less`, on (1, x).
    fn line(&self, messages: &[Message], less: f64, x: impl Fn(u64) -> f64) -> Option<(Fitted, Fitted)> {
        let observations: Vec<Observation> = messages
            .iter()
            .map(|m| Observation {
                basis: vec![1.0, x(m.bytes)],
                value: m.time.value - less,
                sigma: m.sigma(),
            })
            .collect();
        let fit = weighted(&observations)?;
        Some((fit.coefficients[0], fit.coefficients[1]))
    }

    fn put_get(&mut self, here: &Here) -> Known<PutGet> {
        let line = self.line;
        let copies = |reader: &Reader, surface: &Option<Surface>, pattern: &str| {
            let known = surface.iter().flat_map(|s| s.bytes.iter().zip(&s.cost));
            let times: Vec<Message> = known.map(|(&bytes, row)| Message { bytes, time: row[0] }).collect();
            let found = reader.line(&times, 0.0, |bytes| bytes.div_ceil(line) as f64);
            let because = format!("copies of 2 lengths were not timed with pattern={pattern}");
            found.ok_or_else(|| reader.lacks(put_get::NAME, "o^mpb, o_r^mem and o_w^mem", &because))
        };
        let (put, get) = (copies(self, &here.put, "put")?, copies(self, &here.get, "get")?);
        let within = copies(self, &here.local, "local")?.1;
        let lacks = |value, because| self.lacks(put_get::NAME, value, because);
        let signal = here.signal.ok_or_else(|| lacks("o_get^mpb", "no signal was timed"))?;
        let set = here.set.ok_or_else(|| lacks("o_put^mpb", "the engine's overhead set was not timed"))?;
        let half = |a: Fitted, b: Fitted, less: Fitted| a.plus(b).less(less).inferred(0.5);
        let on_box = half(put.1, get.1, within);
        let (read, write) = (half(put.1, within, get.1), half(get.1, within, put.1));
        for (what, found) in [("o^mpb", on_box), ("o_r^mem", read), ("o_w^mem", write)] {
            if found.ci_low <= 0.0 {
                let because = format!(
                    "copies with and without a box differ by less than their intervals: {found} ns a line"
                );
                self.missing(&format!("put/get {what}"), because);
            }
        }
        let nanos = |found: Fitted| Nanos(found.value.max(0.0));
        Ok(PutGet {
            line_bytes: line,
            hop: Nanos(0.0),
            on_box: nanos(on_box),
            memory_read: nanos(read),
            memory_write: nanos(write),
            put_memory: nanos(put.0),
            get_memory: nanos(get.0),
            put_box: nanos(set),
            get_box: nanos(signal.less(set).less(on_box.inferred(3.0))),
        })
    }

    fn hockney(&self, here: &Here) -> Known<AlphaBeta> {
        let found = self.line(&here.messages, 0.0, |m| m as f64);
        let (alpha, beta) = found
            .ok_or_else(|| self.lacks("Hockney", "alpha and beta", "messages of 2 lengths were not timed"))?;
        Ok(AlphaBeta { alpha, beta })
    }

    fn logp(&mut self, here: &Here) -> Known<LogP> {
        let o = self.overhead("LogP", here)?;
        let line = self.line;
        let measured: Vec<Message> =
            here.messages.iter().copied().filter(|m| m.time.provenance == Provenance::Measured).collect();
        let found = self.line(&measured, 0.0, |m| (m / line) as f64 - 1.0);
        let (first, g) = found.ok_or_else(|| {
            self.lacks("LogP", "L and g", "ping-pongs of 2 numbers of lines were not timed")
        })?;
        let l = first.less(o.inferred(2.0));
        if l.ci_low <= 0.0 {
            let because = format!("overheads make up all of a message within their intervals: L is {l} ns");
            self.missing("LogP L", because);
        }
        Ok(LogP { l, o, g: g.at_least(0.0), packet: line })
    }

    /// The mean of what both ends are busy with; a move is at both, and one measurement.
    fn overhead(&self, model: &'static str, here: &Here) -> Known<Fitted> {
        match (here.set, here.wait, here.mov) {
            (Some(set), Some(wait), Some(mov)) => Ok(set.plus(wait).inferred(0.5).plus(mov)),
            _ => Err(self.lacks(model, "o", "the engine's overheads set, wait and move were not timed")),
        }
    }

    fn loggp(&mut self, here: &Here, logp: Option<&LogP>) -> Known<LogGp> {
        let o = self.overhead("LogGP", here)?;
        let busy = o.inferred(2.0);
        let found = self.line(&here.messages, busy.value, |m| m as f64 - 1.0);
        let (l, per_byte) =
            found.ok_or_else(|| self.lacks("LogGP", "L and G", "messages of 2 lengths were not timed"))?;
        // What 2 o is off by, L is off by.
        let l = l.plus(Fitted {
            value: 0.0,
            ci_low: busy.ci_low - busy.value,
            ci_high: busy.ci_high - busy.value,
            ..busy
        });
        let g = logp
            .map(|m| m.g.inferred(1.0))
            .ok_or_else(|| self.lacks("LogGP", "g", "ping-pongs of 2 numbers of lines were not timed"))?;
        self.missing(
            "LogGP g",
            "no probe saturates a pair with messages; the gap between lines stands in".to_owned(),
        );
        Ok(LogGp { l, o, g, per_byte, segment: self.segment })
    }

    fn plogp(&mut self, here: &Here) -> Known<PLogP> {
        let lacks = |value, because| self.lacks("PLogP", value, because);
        let empty = here.signal.ok_or_else(|| lacks("T(0)", "no signal was timed"))?;
        let (Some(set), Some(wait), Some(_)) = (here.set, here.wait, here.mov) else {
            return Err(lacks("o_s and o_r", "the engine's overheads were not timed"));
        };
        if here.put.is_none() || here.get.is_none() {
            return Err(lacks("o_s(m) and o_r(m)", "no put and get were timed"));
        }
        if here.messages.is_empty() {
            return Err(lacks("g(m)", "no message was timed"));
        }
        // g(0) >= o_s(0), o_r(0), and a message alone takes T(0) = L + g(0): between these nothing tells.
        let least = if set.value > wait.value { set } else { wait };
        let g0 = Fitted {
            value: least.value.min(empty.value),
            ci_low: least.ci_low.min(empty.value),
            ci_high: empty.ci_high.max(least.value),
            provenance: Provenance::Inferred,
        };
        let l = Fitted {
            value: empty.value - g0.value,
            ci_low: 0.0f64.min(empty.value - g0.value),
            ci_high: (empty.ci_high - g0.ci_low).max(empty.value - g0.value),
            provenance: Provenance::Inferred,
        };
        self.missing(
            "PLogP L and g(0)",
            format!("only L + g(0) = {empty} ns is known; no probe saturates a pair with messages"),
        );
        let gap = |m: &Message| (m.bytes, m.time.less(empty).plus(g0).at_least(g0.value));
        let points: Vec<(u64, Fitted)> =
            std::iter::once((0, g0)).chain(here.messages.iter().map(gap)).collect();
        Ok(PLogP { l, gap: table(&points) })
    }

    fn log_np(&self, here: &Here) -> Known<LogNp> {
        let empty = here.signal.map(|s| (0, s));
        let points: Vec<(u64, Fitted)> = empty
            .into_iter()
            .chain(here.messages.iter().map(|m| (m.bytes, m.time)))
            .map(|(bytes, time)| (bytes, time.inferred(0.5)))
            .collect();
        match here.messages.is_empty() {
            true => Err(self.lacks("log_nP", "T(m)", "no message was timed")),
            false => Ok(LogNp { overhead: table(&points) }),
        }
    }

    fn tau_lop(&mut self, here: &Here) -> Known<TauLop> {
        let lacks = |value, because| self.lacks("tau-Lop", value, because);
        let signal = here.signal.ok_or_else(|| lacks("y(tau)", "no signal was timed"))?;
        let (put, get) = match (&here.put, &here.get) {
            (Some(put), Some(get)) => (put, get),
            (None, _) | (_, None) => return Err(lacks("c(m, tau)", "no put and get were timed")),
        };
        let points = ring(put, get);
        let copy = Surface::from_points(&points)
            .ok_or_else(|| lacks("c(m, tau)", "put and get were not timed at the same sizes"))?;
        let most = copy.taus.last().copied().unwrap_or(1);
        if most == 1 {
            self.missing("L(m, tau > 1)", "no cell has more than one copy at once".to_owned());
        }
        let because = "signals were timed one at a time: y(1) stands in for all tau".to_owned();
        self.missing("y(tau > 1)", because);
        let y = signal.inferred(0.5);
        // The step to the largest tau is there, so that only what lies beyond is marked.
        let sync = if most > 1 { vec![(1, y), (most, y)] } else { vec![(1, y)] };
        let start = here.run.unwrap_or(Fitted::new(0.0, Provenance::Inferred));
        let way = Way { segment: self.segment, ..Way::MPICH };
        Ok(TauLop { copy, sync, start, way })
    }
}

/// c(m, tau): the mean of a put and a get at every node that both have.
fn ring(put: &Surface, get: &Surface) -> Vec<Point> {
    let mut points = Vec::new();
    for (i, &bytes) in put.bytes.iter().enumerate() {
        for (j, &tau) in put.taus.iter().enumerate() {
            let row = get.bytes.iter().position(|&b| b == bytes);
            let column = get.taus.iter().position(|&t| t == tau);
            if let (Some(a), Some(b)) = (row, column) {
                let cost = put.cost[i][j].plus(get.cost[a][b]).inferred(0.5);
                let sigma = ((cost.ci_high - cost.ci_low) / 3.92).max(cost.value * 1e-3).max(1e-3);
                points.push(Point { bytes, tau, cost, weight: sigma.powi(-2) });
            }
        }
    }
    points
}

/// A function of length alone.
fn table(points: &[(u64, Fitted)]) -> Surface {
    let mut points = points.to_vec();
    points.sort_by_key(|p| p.0);
    points.dedup_by_key(|p| p.0);
    let cost = points.iter().map(|p| vec![p.1]).collect();
    Surface { bytes: points.iter().map(|p| p.0).collect(), taus: vec![1], cost }
}
