//! One number of a model, with what is known about it.

use crate::names::named;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Provenance of a number.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Provenance {
    /// Measured on this machine, or fitted to measurements of it.
    Measured,
    /// Taken from a publication.
    Cited,
    /// Computed from other numbers of this model by a stated relation.
    Inferred,
    /// Nobody knows: a stand-in, so that a plan can be costed at all. Always reported.
    Assumed,
}

named!(Provenance, Measured = "measured", Cited = "cited", Inferred = "inferred", Assumed = "assumed");

/// A parameter: value, 95 % confidence interval and provenance. Nanoseconds unless its place says otherwise.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct Fitted {
    /// Best estimate.
    pub value: f64,
    /// Lower end of the 95 % confidence interval; the value itself where no interval is known.
    pub ci_low: f64,
    /// Upper end of it.
    pub ci_high: f64,
    /// Provenance of the number.
    pub provenance: Provenance,
}

/// Half the width of a 95 % interval, in standard errors.
const HALF_WIDTHS: f64 = 1.96;

impl Fitted {
    /// A value without an interval.
    pub fn new(value: f64, provenance: Provenance) -> Fitted {
        Fitted { value, ci_low: value, ci_high: value, provenance }
    }

    /// A published value.
    pub fn cited(value: f64) -> Fitted {
        Fitted::new(value, Provenance::Cited)
    }

    /// A stand-in.
    pub fn assumed(value: f64) -> Fitted {
        Fitted::new(value, Provenance::Assumed)
    }

    /// This number scaled, as an inference from it; what was assumed stays assumed.
    #[must_use]
    pub fn inferred(self, factor: f64) -> Fitted {
        let provenance = self.provenance.max(Provenance::Inferred);
        Fitted {
            value: self.value * factor,
            ci_low: self.ci_low * factor,
            ci_high: self.ci_high * factor,
            provenance,
        }
    }

    /// The sum of two numbers: half-widths add in quadrature, the weaker provenance wins.
    #[must_use]
    pub fn plus(self, other: Fitted) -> Fitted {
        let value = self.value + other.value;
        let half = |a: f64, b: f64| (a * a + b * b).sqrt();
        Fitted {
            value,
            ci_low: value - half(self.value - self.ci_low, other.value - other.ci_low),
            ci_high: value + half(self.ci_high - self.value, other.ci_high - other.value),
            provenance: self.provenance.max(other.provenance),
        }
    }

    /// This number less another, as an inference: value and interval move together, half-widths add in quadrature.
    #[must_use]
    pub fn less(self, other: Fitted) -> Fitted {
        self.plus(other.inferred(-1.0).ordered()).inferred(1.0)
    }

    /// This number where it cannot be below `floor`: value and both ends of the interval are raised alike, so that
    /// the value stays in its interval.
    #[must_use]
    pub fn at_least(self, floor: f64) -> Fitted {
        Fitted {
            value: self.value.max(floor),
            ci_low: self.ci_low.max(floor),
            ci_high: self.ci_high.max(floor),
            ..self
        }
    }

    /// Returns the number with the ends of its interval in order, after scaling by a negative factor.
    fn ordered(self) -> Fitted {
        Fitted { ci_low: self.ci_low.min(self.ci_high), ci_high: self.ci_low.max(self.ci_high), ..self }
    }

    /// Its standard error, from the interval.
    pub fn sigma(&self) -> f64 {
        (self.ci_high - self.ci_low) / (2.0 * HALF_WIDTHS)
    }

    /// Returns whether `truth` lies in the interval.
    pub fn covers(&self, truth: f64) -> bool {
        self.ci_low <= truth && truth <= self.ci_high
    }
}

impl fmt::Display for Fitted {
    /// `53.2 [52.8, 53.9] measured`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digits = if self.value.abs() < 100.0 { 1 } else { 0 };
        write!(f, "{:.digits$}", self.value)?;
        if self.ci_low < self.ci_high {
            write!(f, " [{:.digits$}, {:.digits$}]", self.ci_low, self.ci_high)?;
        }
        write!(f, " {}", self.provenance)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_keep_the_weaker_provenance_and_add_widths_in_quadrature() {
        let a = Fitted { value: 10.0, ci_low: 7.0, ci_high: 13.0, provenance: Provenance::Measured };
        let b = Fitted { value: 20.0, ci_low: 16.0, ci_high: 24.0, provenance: Provenance::Inferred };
        let sum = a.plus(b);
        assert_eq!((sum.value, sum.ci_low, sum.ci_high), (30.0, 25.0, 35.0));
        assert_eq!(sum.provenance, Provenance::Inferred);
        assert_eq!(Fitted::assumed(1.0).inferred(2.0).provenance, Provenance::Assumed);
    }

    #[test]
    fn differences_and_floors_move_the_interval_with_the_value() {
        let a = Fitted { value: 10.0, ci_low: 7.0, ci_high: 14.0, provenance: Provenance::Measured };
        let b = Fitted { value: 4.0, ci_low: 1.0, ci_high: 8.0, provenance: Provenance::Measured };
        let less = a.less(b);
        assert_eq!((less.value, less.ci_low, less.ci_high), (6.0, 1.0, 11.0));
        assert_eq!(less.provenance, Provenance::Inferred);
        let raised = less.at_least(8.0);
        assert_eq!((raised.value, raised.ci_low, raised.ci_high), (8.0, 8.0, 11.0));
        let above = less.at_least(20.0);
        assert_eq!((above.value, above.ci_low, above.ci_high), (20.0, 20.0, 20.0));
    }
}
