//! The plans of one algorithm, one after the other, that a question may be answered by.

use super::Question;
use crate::algorithm::Algorithm;
use crate::plan::{Params, Plan, PlanError};

/// Windows tried of one algorithm: the largest that fit.
const WINDOWS: usize = 3;
/// Smaller windows than this cost more in flags than they save.
const SMALLEST: usize = 4096;
/// Ops of a plan for each rank, at most: a longer one takes more time to make and to prove than it can save, and
/// the same algorithm has it in smaller windows.
const OPS_A_RANK: usize = 1024;
/// Ops that each rank may have for every other one: no plan of that is too long.
const FEW: usize = 4;
/// So many ops are counted in the time in which one is made.
const COUNTED: usize = 16;

/// The plans of one algorithm that fit, one by one.
pub(super) struct Variants {
    pub algorithm: &'static Algorithm,
    /// Its place in the table.
    pub place: usize,
    /// Windows still to try, the largest last.
    windows: Vec<usize>,
    window: usize,
    /// Parameter sets still to try for this window.
    params: std::vec::IntoIter<Params>,
    /// True if a plan for this window fitted.
    fits: bool,
    fitting: usize,
    /// Parameter sets that were asked about their brackets, and the answer.
    asked: Vec<(Params, bool)>,
    /// Ops made so far.
    pub spent: usize,
}

impl Variants {
    fn associates(&mut self, question: &Question, params: &Params) -> bool {
        if let Some((_, answer)) = self.asked.iter().find(|(asked, _)| asked == params) {
            return *answer;
        }
        let answer = question.associates(self.algorithm, params);
        self.asked.push((params.clone(), answer));
        answer
    }

    pub fn new(algorithm: &'static Algorithm, place: usize, question: &Question) -> Variants {
        let mut windows = windows(question);
        windows.reverse();
        let params = Vec::new().into_iter();
        Variants {
            algorithm,
            place,
            windows,
            window: 0,
            params,
            fits: false,
            fitting: 0,
            asked: Vec::new(),
            spent: 0,
        }
    }

    /// Makes the next plan: there is none, or it does not apply or fit, or here it is.
    pub fn next(&mut self, question: &Question, line_bytes: usize) -> Option<Option<(Params, Plan)>> {
        let ranks = question.shape.ranks();
        let most = OPS_A_RANK.max(FEW * ranks) * ranks;
        let params = loop {
            if let Some(params) = self.params.next() {
                break params;
            }
            self.fitting += usize::from(std::mem::take(&mut self.fits));
            if self.fitting == WINDOWS {
                return None;
            }
            self.window = self.windows.pop()?;
            self.params = question.candidates(self.algorithm, self.window).into_iter();
        };
        let plan = self.algorithm.plan_within(&question.window(self.window), &params, most);
        self.spent += match &plan {
            Ok(plan) => ops(plan),
            Err(PlanError::TooLarge { ops, .. }) => most + (ops - most) / COUNTED,
            Err(_) => 0,
        };
        let plan =
            plan.ok().filter(|plan| question.fits(plan, line_bytes) && self.associates(question, &params));
        self.fits |= plan.is_some();
        Some(plan.map(|plan| (params, plan)))
    }
}

/// Of all ranks.
pub(super) fn ops(plan: &Plan) -> usize {
    plan.programs.iter().map(Vec::len).sum()
}

/// Whole elements, whole lines where possible, from the whole message down by factors of four.
fn windows(question: &Question) -> Vec<usize> {
    let mut list = vec![question.bytes];
    let mut at = question.box_bytes.max(1).ilog2();
    let unit = if question.grain % 64 == 0 { question.grain } else { question.grain * 64 };
    loop {
        let size = 1usize << at;
        let window = if size >= unit { size / unit * unit } else { size / question.grain * question.grain };
        if window > 0 && window < question.bytes && list.last() != Some(&window) {
            list.push(window);
        }
        // Many slots a box need much smaller windows than one: keep going down until something fits.
        if size <= SMALLEST.min(question.box_bytes) / 64 || at < 2 {
            return list;
        }
        at -= 2;
    }
}
