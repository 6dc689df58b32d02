//! Choosing: every algorithm that applies, with every parameter set worth trying and every window that fits a
//! box, costed by the very plan that would run.
//!
//! A pure function of the model and the question, so that processes which share a model's text choose alike
//! without talking to each other. Ties are broken by latency, then by the number of ops, then by the order of the
//! table.

mod banks;
mod candidates;
mod choices;
mod explain;
mod homes;
mod variants;
mod whole;

pub use banks::{ring_banks, small_slots, walk, LARGE_BANKS, SMALL_BANKS, SMALL_SLOTS};
pub use choices::{Choices, ChoicesError, Found, Tuned, CHOICES_SCHEMA};
pub use explain::explain;
pub use homes::on_one_node;

use crate::algorithm::spec::Named;
use crate::algorithm::{self, Algorithm, Problem};
use crate::collective::{Association, Collective};
use crate::model::Model;
use crate::plan::{Blocks, FlagKind, Params, Plan, PlanError, Uneven};
use crate::probe;
use crate::topology::Shape;
use crate::units::{Bytes, Nanos};
use crate::verify;
use std::ops::Range;
use std::sync::Arc;

/// Request for a choice.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Question {
    /// Collective to choose for.
    pub collective: Collective,
    /// The ranks and where they sit.
    pub shape: Shape,
    /// The root of a rooted collective.
    pub root: usize,
    /// Length of the whole message in bytes; of the longest block, where ranks exchange blocks.
    pub bytes: usize,
    /// The blocks, where ranks exchange some that are not all `bytes` long.
    pub uneven: Option<Arc<Uneven>>,
    /// Element size in bytes; 1 when nothing is folded.
    pub grain: usize,
    /// In which order and with which brackets contributions are to be combined.
    pub association: Association,
    /// True if ranks can reach each other's private buffers.
    pub direct: bool,
    /// True if they reach them by a system call that copies (cross-memory attach).
    pub attach: bool,
    /// Bytes of slots that one bank of a rank holds, and of flags as many.
    pub box_bytes: usize,
    /// Bytes of counters that the plans of a call may have. They are never given back.
    pub counter_bytes: usize,
    /// Bytes of scratch that a rank has; `None` when it can have any amount.
    pub acc_bytes: Option<usize>,
}

impl Question {
    /// `ranks` ranks under one cache, root 0, boxes of 1 MiB, no direct access.
    pub fn flat(collective: Collective, ranks: usize, bytes: usize, grain: usize) -> Question {
        Question {
            collective,
            shape: Shape::flat(ranks),
            root: 0,
            bytes,
            uneven: None,
            grain,
            association: Association::Free,
            direct: false,
            attach: false,
            box_bytes: 1 << 20,
            counter_bytes: usize::MAX,
            acc_bytes: None,
        }
    }

    /// The problem that one window of the message poses: its first `bytes` bytes, or of every block as many.
    pub fn window(&self, bytes: usize) -> Problem {
        self.stretch(0..bytes)
    }

    /// The problem that the bytes `range` of the message pose, or those of every block. Only where blocks have
    /// different lengths does it matter which bytes they are, and not just how many.
    pub fn stretch(&self, range: Range<usize>) -> Problem {
        let (bytes, blocks) = match &self.uneven {
            Some(uneven) => {
                let window = uneven.window(range);
                (window.longest(), Blocks::Uneven(Arc::new(window)))
            }
            None if self.collective.has_blocks() && range.len() != self.bytes => {
                (range.len(), Blocks::Apart(self.bytes))
            }
            None => (range.len(), Blocks::Dense),
        };
        Problem {
            collective: self.collective,
            shape: self.shape.clone(),
            root: if self.collective.rooted() { self.root } else { 0 },
            bytes,
            blocks,
            grain: self.grain,
            direct: self.direct,
        }
    }

    /// The problem of a window whose plan can be [cut](Plan::cut) for shorter ones: no two blocks touch.
    pub fn cuttable(&self, bytes: usize) -> Problem {
        let problem = self.window(bytes);
        match problem.blocks {
            Blocks::Dense if self.collective.has_blocks() => {
                Problem { blocks: Blocks::Apart(bytes + self.grain), ..problem }
            }
            Blocks::Dense | Blocks::Apart(_) | Blocks::Uneven(_) => problem,
        }
    }

    /// Returns the requirement on associations, in words that follow others.
    fn asked(&self) -> &'static str {
        match self.association {
            Association::Free => "",
            Association::RankOrder => " that combine contributions in the order of ranks",
            Association::Fixed => " whose brackets are those of reproducible results",
        }
    }

    /// Returns whether plans of an algorithm combine contributions as asked. Asked of a short message, which has the brackets of a
    /// long one: the plan that is chosen is proved before it runs.
    pub fn associates(&self, algorithm: &Algorithm, params: &Params) -> bool {
        if self.association == Association::Free || !self.collective.folds() {
            return true;
        }
        let bytes = self.bytes.min(4 * self.shape.ranks() * self.grain);
        let short = Question { bytes, uneven: None, ..self.clone() };
        let plan = algorithm.plan(&short.window(bytes), params);
        plan.is_ok_and(|plan| verify::verify(&plan).is_ok_and(|proof| proof.meets(self.association)))
    }

    /// The parameter sets of an algorithm that are worth costing for a window.
    pub fn candidates(&self, algorithm: &Algorithm, window: usize) -> Vec<Params> {
        let problem = self.window(window);
        match self.association {
            Association::Free | Association::RankOrder => (algorithm.candidates)(&problem),
            Association::Fixed => algorithm.reproducible_candidates(&problem),
        }
    }

    /// Returns whether a plan's slots fit the box, and its scratch that memory. A call may have a second plan for the rest of the message, with as
    /// many counters; and plans for one set of lengths, of which a program can have any number, may have none.
    pub fn fits(&self, plan: &Plan, line_bytes: usize) -> bool {
        let line = line_bytes.max(8);
        let counters = plan.flags.iter().filter(|a| a.kind == FlagKind::Counter);
        let counters: usize = counters.map(|a| a.bytes(line)).sum();
        let room = if self.uneven.is_some() { 0 } else { self.counter_bytes / 2 };
        let footprint = crate::plan::Footprint::of(plan, line);
        let slots = footprint.total() - footprint.flag_bytes();
        slots.max(footprint.flag_bytes()) <= self.box_bytes
            && counters <= room
            && self.acc_bytes.is_none_or(|acc| plan.acc <= acc)
    }
}

/// One way to do it, and what it would cost.
#[derive(Clone, PartialEq, Debug)]
pub struct Candidate {
    /// Name of the algorithm.
    pub name: &'static str,
    /// Its parameters.
    pub params: Params,
    /// Bytes of a window; the whole message where that fits.
    pub window: usize,
    /// From call to call of the whole message, when calls follow each other. A lower bound when `given_up`.
    pub predicted: Nanos,
    /// One window alone, everybody starting at once.
    pub latency: Nanos,
    /// Ops of a window's plan.
    pub ops: usize,
    /// True if a size or concurrency beyond what was measured entered.
    pub extrapolated: bool,
    /// True if its costing was given up, because it could no longer be the best.
    pub given_up: bool,
}

impl Candidate {
    /// As it is written where a message of so many bytes is sent.
    pub fn named(&self, message: usize) -> Named<'_> {
        Named::new(self.name, &self.params).by(self.window, message)
    }

    /// Returns whether its plan is one that a probe times as a whole: then prediction and measurement agree whatever the model is worth.
    pub fn calibrated(&self, question: &Question) -> bool {
        let plan = || {
            algorithm::find(question.collective, self.name)?.plan(&question.window(self.window), &self.params)
        };
        question.shape.ranks() == 2 && plan().is_ok_and(|plan| probe::repeated_by(&plan))
    }

    /// Returns whether its plan reaches other ranks' buffers.
    pub fn reaches(&self, question: &Question) -> bool {
        let algorithm = algorithm::find(question.collective, self.name);
        algorithm.is_ok_and(|a| a.plan(&question.window(self.window), &self.params).is_ok_and(|p| p.direct))
    }
}

/// The choice.
#[derive(Clone, PartialEq, Debug)]
pub struct Choice {
    /// Name of the algorithm.
    pub algorithm: &'static str,
    /// Its parameters.
    pub params: Params,
    /// Bytes of a window; the whole message where that fits.
    pub window: usize,
    /// Cost of a call of the whole message, when calls follow each other.
    pub predicted: Nanos,
    /// The best candidate of another algorithm, or else with other parameters.
    pub runner_up: Option<Candidate>,
    /// Everything that was costed, best first.
    pub considered: Vec<Candidate>,
    /// In words: what was left out, assumed or extrapolated.
    pub reasons: Vec<String>,
    plan: Plan,
}

impl Choice {
    /// As it is written where a message of so many bytes is sent.
    pub fn named(&self, message: usize) -> Named<'_> {
        Named::new(self.algorithm, &self.params).by(self.window, message)
    }

    /// The plan of one window.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// The plan for what is left of the message after the last whole window; `None` when nothing is.
    ///
    /// # Errors
    /// A [`PlanError`] when `question` is not the one this was chosen for.
    pub fn tail(&self, question: &Question) -> Result<Option<Plan>, PlanError> {
        let left = if self.window == 0 { 0 } else { question.bytes % self.window };
        if left == 0 {
            return Ok(None);
        }
        let algorithm = algorithm::find(question.collective, self.algorithm)?;
        algorithm.plan(&question.window(left), &self.params).map(Some)
    }
}

/// Why there is no choice.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SelectError {
    /// The question itself is malformed.
    #[error(transparent)]
    Problem(#[from] PlanError),
    /// No algorithm's smallest window fits.
    #[error("no algorithm for {collective} of {} among {ranks} ranks fits: {} in boxes of {}; give larger boxes", Bytes(*bytes as u64), why, Bytes(*box_bytes as u64))]
    NothingFits {
        /// The collective.
        collective: Collective,
        /// Ranks.
        ranks: usize,
        /// Message.
        bytes: usize,
        /// Box.
        box_bytes: usize,
        /// Number of plans that were tried, in words.
        why: String,
    },
}

/// The best way to do what the question asks, on this model.
///
/// # Errors
/// [`SelectError`] when the question is malformed or nothing fits the boxes.
///
/// ```
/// use lineweave_core::collective::Collective;
/// use lineweave_core::model::Values;
/// use lineweave_core::select::{select, Question};
///
/// let model = Values::default().model();
/// let choice = select(&model, &Question::flat(Collective::Bcast, 4, 1 << 16, 1)).unwrap();
/// assert!(choice.predicted.0 > 0.0);
/// assert_eq!(choice.plan().ranks, 4);
/// ```
pub fn select(model: &Model, question: &Question) -> Result<Choice, SelectError> {
    search(model, question, false, &|| ())
}

/// As [`select`]; it calls `pause` before each candidate, mostly after less than a millisecond of work, so that a thread beside others can leave them the CPU.
///
/// # Errors
/// As [`select`].
pub fn select_pausing(model: &Model, question: &Question, pause: &dyn Fn()) -> Result<Choice, SelectError> {
    search(model, question, false, pause)
}

/// As [`select`], with all candidates played until they take several times as long as the best, for listings and for comparing them with
/// measurements. That takes more time.
///
/// # Errors
/// As [`select`].
pub fn list(model: &Model, question: &Question) -> Result<Choice, SelectError> {
    search(model, question, true, &|| ())
}

fn search(model: &Model, question: &Question, all: bool, pause: &dyn Fn()) -> Result<Choice, SelectError> {
    algorithm::check(&question.window(question.bytes))?;
    let mut search = candidates::Search::pausing(model, question, pause);
    search.run(all);
    let cut_short = search.cut_short();
    let (mut considered, unfit) = search.finish();
    let found = considered.iter().find(|c| !c.given_up && c.predicted.0.is_finite()).cloned();
    let moved = found.as_ref().and_then(|best| homes::better(model, question, best));
    considered.splice(..0, moved.clone());
    let Some(best) = moved.or(found) else {
        return Err(SelectError::NothingFits {
            collective: question.collective,
            ranks: question.shape.ranks(),
            bytes: question.bytes,
            box_bytes: question.box_bytes,
            why: format!("{unfit} plans were tried{}", question.asked()),
        });
    };
    let algorithm = algorithm::find(question.collective, best.name)?;
    let plan = algorithm.plan(&question.window(best.window), &best.params)?;
    let other = |c: &&Candidate| !c.given_up && c.predicted.0.is_finite();
    let mut rest = considered.iter().filter(other).skip(1);
    let runner_up =
        considered.iter().filter(other).find(|c| c.name != best.name).or_else(|| rest.next()).cloned();
    let mut reasons = Vec::new();
    if best.window < question.bytes {
        reasons.push(format!(
            "the message goes in windows of {}, because a box holds {}",
            Bytes(best.window as u64),
            Bytes(question.box_bytes as u64)
        ));
    }
    if best.extrapolated {
        reasons.push(
            "sizes or numbers of concurrent copies beyond the measured ones were extrapolated".to_owned(),
        );
    }
    if unfit > 0 {
        reasons.push(format!("{unfit} plans did not apply or did not fit a box"));
    }
    if question.association != Association::Free && question.collective.folds() {
        reasons.push(format!("only plans were considered{}", question.asked()));
    }
    if cut_short {
        reasons.push("the search's budget was spent before every parameter set was costed".to_owned());
    }
    let given_up = considered.iter().filter(|c| c.given_up).count();
    if given_up > 0 {
        reasons.push(format!("{given_up} plans were given up once they could no longer be the best"));
    }
    Ok(Choice {
        algorithm: best.name,
        params: best.params,
        window: best.window,
        predicted: best.predicted,
        runner_up,
        considered,
        reasons,
        plan,
    })
}

/// The cost of one algorithm with given parameters and window, for listings and for comparing with measurements.
///
/// # Errors
/// A [`PlanError`] when the plan cannot be made.
pub fn predict(
    model: &Model,
    question: &Question,
    name: &str,
    params: &Params,
    window: usize,
) -> Result<Candidate, PlanError> {
    algorithm::check(&question.window(question.bytes))?;
    let algorithm = algorithm::find(question.collective, name)?;
    let plan = algorithm.plan(&question.window(window.min(question.bytes)), params)?;
    let search = candidates::Search::new(model, question);
    Ok(search.evaluate(algorithm, params, &plan, 4, f64::INFINITY))
}

#[cfg(test)]
mod tests;
