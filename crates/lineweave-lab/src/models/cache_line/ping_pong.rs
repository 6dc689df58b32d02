//! One line to a peer and back: the estimate from R, and Welch's test of it against a measurement.

use super::{symbol, CacheLineError};
use lineweave_core::machine::{Location, Machine, State};
use statrs::distribution::{ContinuousCDF, StudentsT};

/// A mean and its standard deviation, in ns.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Sample {
    /// Mean.
    pub mean: f64,
    /// Standard deviation of one measurement.
    pub stdev: f64,
    /// Number of measurements.
    pub n: usize,
}

/// The estimate of T_1, half a round trip of one line: R_L,Ss + R_x,Sr + R_x,M (Eq. 2.1 with O = 0), where x is `L`
/// for threads of one core and the partner's place otherwise; its deviation by Eq. 2.2, independence assumed.
///
/// `send` is the state of the sender's buffer, `recv` of the receiver's. The receiver polls its buffer, so an
/// invalid one is outside the model; shared ones need two caches, so they are outside for one core. A sender's
/// line that is nowhere cached comes from its own memory.
///
/// # Errors
/// [`CacheLineError`] for a read that was not measured with its deviation.
pub fn estimate(
    machine: &Machine,
    location: Location,
    send: State,
    recv: State,
    n: usize,
) -> Result<Sample, CacheLineError> {
    let cell = |location: Location, state: State| {
        let found = machine.reads.iter().find(|r| r.location == location && r.state == state);
        found.and_then(|r| Some((r.mean_ns.value?, r.stdev_ns.value?))).ok_or_else(|| {
            let why = "no mean with its deviation was measured";
            CacheLineError::unknown(symbol(location, state), machine, why)
        })
    };
    let terms = [cell(Location::Core, send)?, cell(location, recv)?, cell(location, State::M)?];
    let mean = terms.iter().map(|t| t.0).sum();
    let stdev = terms.iter().map(|t| t.1 * t.1).sum::<f64>().sqrt();
    Ok(Sample { mean, stdev, n })
}

/// Comparison of a measurement with its estimate.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Comparison {
    /// O: measured minus estimated, ns (Eq. 2.5).
    pub difference: f64,
    /// Standard deviation of the difference, ns (Eq. 2.3, 2.5).
    pub stdev: f64,
    /// Welch's t (Eq. 2.3), estimate minus measurement.
    pub t: f64,
    /// Degrees of freedom (Eq. 2.4).
    pub freedom: f64,
    /// The probability of so large a |t| if both means were equal.
    pub p: f64,
}

impl Comparison {
    /// Welch's test (Eq. 2.3 to 2.5). Valid for samples of at least two that vary.
    pub fn welch(estimated: &Sample, measured: &Sample) -> Comparison {
        let part = |s: &Sample| s.stdev * s.stdev / s.n as f64;
        let (a, b) = (part(estimated), part(measured));
        let stdev = (a + b).sqrt();
        let below = |s: &Sample| (s.n as f64 - 1.0).max(1.0);
        let freedom = (a + b).powi(2) / (a * a / below(estimated) + b * b / below(measured));
        let t = (estimated.mean - measured.mean) / stdev;
        let p = StudentsT::new(0.0, 1.0, freedom).map_or(f64::NAN, |d| 2.0 * d.cdf(-t.abs()));
        Comparison { difference: measured.mean - estimated.mean, stdev, t, freedom, p }
    }
}
