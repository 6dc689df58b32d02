//! Limits of the distance from a printed value within which an outcome still agrees.
//!
//! A limit belongs to the words of a claim and not to what comes out of it: the same words have the same limit in every
//! paper. Every verdict that has one says how far off the outcome is, and whether half or twice the limit would turn it.

use super::Verdict;
use serde::Serialize;

/// A limit, the words that it is for, and its reason.
#[derive(PartialEq, Debug, Serialize)]
pub struct Limit {
    /// Short name.
    pub name: &'static str,
    /// The largest difference that agrees, as a share of what is printed.
    pub share: f64,
    /// Words of a claim, and why so much.
    pub why: &'static str,
}

/// Limit for claims of no difference.
pub static SAME: Limit = Limit {
    name: "same",
    share: 0.05,
    why: "no slower, no contention: half of a tenth of a printed axis is what a reader tells apart",
};
/// Limit for claims with "almost".
pub static ALMOST: Limit = Limit {
    name: "almost",
    share: 0.10,
    why: "almost, around, slightly, little, similar, and numbers computed from the same paper's constants: twice what a reader tells apart",
};
/// A number of another clock or library than the simulated one.
pub static NUMBER: Limit = Limit {
    name: "number",
    share: 0.20,
    why: "a measured number whose clocks, library or caches are not those that are simulated",
};
/// Latencies of one line on the SCC.
pub static LATENCY: Limit = Limit {
    name: "latency",
    share: 0.15,
    why: "one line on the SCC: asked of the simulator before it was written",
};
/// All limits.
pub const LIMITS: [&Limit; 4] = [&SAME, &ALMOST, &NUMBER, &LATENCY];

/// Distance of an outcome from the printed value, beside its limit.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Judged {
    /// The limit.
    pub limit: &'static Limit,
    /// The difference, as a share of what is printed.
    pub off: f64,
    /// True if half the limit, or twice the limit, would turn the verdict.
    pub turns: bool,
}

impl Limit {
    /// Judges a share.
    pub fn of(&'static self, off: f64) -> Outcome {
        let holds = |share: f64| off <= share;
        let now = holds(self.share);
        let turns = now != holds(self.share / 2.0) || now != holds(self.share * 2.0);
        Outcome { verdict: Verdict::of(now), judged: Some(Judged { limit: self, off, turns }) }
    }

    /// Judges a value beside the printed one.
    pub fn beside(&'static self, ours: f64, printed: f64) -> Outcome {
        self.of((ours / printed - 1.0).abs())
    }

    /// Counts the pairs of (printed, ours) that agree, and those that do with half and with twice the limit.
    pub fn count(&self, pairs: &[(f64, f64)]) -> (usize, String) {
        let at = |share: f64| pairs.iter().filter(|(p, o)| (o / p - 1.0).abs() <= share).count();
        let (half, twice) = (at(self.share / 2.0), at(self.share * 2.0));
        (
            at(self.share),
            format!("within {:.0} % ({half} with half of that, {twice} with twice)", 100.0 * self.share),
        )
    }
}

/// A verdict, and what it hangs on where that is a limit.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Outcome {
    /// Holds or differs.
    pub verdict: Verdict,
    /// The limit.
    pub judged: Option<Judged>,
}

impl Outcome {
    /// Holds only if something else does, too.
    #[must_use]
    pub fn and(self, also: bool) -> Outcome {
        Outcome { verdict: if also { self.verdict } else { Verdict::Differs }, ..self }
    }
}

impl From<bool> for Outcome {
    fn from(holds: bool) -> Outcome {
        Verdict::of(holds).into()
    }
}

impl From<Verdict> for Outcome {
    fn from(verdict: Verdict) -> Outcome {
        Outcome { verdict, judged: None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn verdicts_near_their_limit_say_so() {
        let turns = |off: f64| SAME.of(off).judged.map(|j| j.turns);
        assert_eq!([0.02, 0.045, 0.07, 0.2].map(turns), [Some(false), Some(true), Some(true), Some(false)]);
        assert_eq!([0.045, 0.07].map(|off| SAME.of(off).verdict), [Verdict::Holds, Verdict::Differs]);
        assert_eq!(SAME.of(0.01).and(false).verdict, Verdict::Differs);
        assert_eq!(ALMOST.count(&[(1.0, 1.04), (1.0, 0.92), (1.0, 1.15), (1.0, 2.0)]).0, 2);
    }
}
