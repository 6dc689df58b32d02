//! Time of a message between two nodes: T = alpha + beta m (Hockney 1994), fitted to a ping-pong of the library that goes between
//! them.
//!
//! A profile keeps the ping-pong as cells of probe [`PROBE`] with factor `bytes`, in ns a message, half a round trip. Libraries send
//! short and long messages by different protocols, so a line fits only so well; what it leaves unexplained widens the intervals.

use lineweave_core::model::cells::{fitted, sigma, Cells};
use lineweave_core::model::{weighted, AlphaBeta, FitError, Observation};
use lineweave_core::profile::{Cell, Profile, Stats};
use std::collections::BTreeMap;

/// The probe's name.
pub const PROBE: &str = "link";

/// The cell of a message of `bytes` bytes, each sample half a round trip in ns; `None` without a sample.
pub fn cell(bytes: u64, samples_ns: &[f64]) -> Option<Cell> {
    Some(Cell {
        probe: PROBE.to_owned(),
        factors: BTreeMap::from([("bytes".to_owned(), bytes.to_string())]),
        unit: "ns".to_owned(),
        stats: Stats::of(samples_ns, 0)?,
        flagged: Vec::new(),
    })
}

/// alpha in ns and beta in ns a byte, with 95 % intervals; `None` where messages of fewer than two lengths were timed.
///
/// # Errors
/// [`FitError::BadCell`] for a cell without a length, or with numbers that no measurement gives.
pub fn fit(profile: &Profile) -> Result<Option<AlphaBeta>, FitError> {
    let cells = Cells::of(profile)?;
    let observe = |cell: &Cell| -> Result<Observation, FitError> {
        let bytes: u64 = cells.factor(cell, "bytes")?;
        Ok(Observation { basis: vec![1.0, bytes as f64], value: fitted(cell).value, sigma: sigma(cell) })
    };
    let observations = profile.probe(PROBE).map(observe).collect::<Result<Vec<_>, _>>()?;
    let Some(line) = weighted(&observations) else { return Ok(None) };
    let at = |i: usize| line.coefficients[i].at_least(0.0);
    Ok(Some(AlphaBeta { alpha: at(0), beta: at(1) }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use lineweave_core::profile::{Fingerprint, SCHEMA};

    fn profile(cells: Vec<Cell>) -> Profile {
        let machine = Fingerprint { cpu: "c".into(), cpus: 2, line_bytes: 64, topology: "core:2".into() };
        let (version, measured_at) = (String::new(), String::new());
        Profile { schema: SCHEMA, version, measured_at, machine, unidentified: Vec::new(), cells }
    }

    /// 1500 ns and 12.5 bytes a ns, each message timed a little short and a little long.
    fn pinged(off: f64) -> Vec<Cell> {
        let time = |bytes: u64| 1500.0 + bytes as f64 / 12.5;
        let samples =
            |t: f64| (0..20).map(|i| t * (1.0 + off * (f64::from(i) / 19.0 - 0.5))).collect::<Vec<_>>();
        [0, 64, 1024, 65_536, 1 << 20].map(|bytes| cell(bytes, &samples(time(bytes))).unwrap()).into()
    }

    #[test]
    fn a_line_gives_its_parameters_back_with_intervals() {
        let link = fit(&profile(pinged(0.1))).unwrap().unwrap();
        assert!((link.alpha.value - 1500.0).abs() < 15.0 && link.alpha.covers(1500.0), "{}", link.alpha);
        assert!((link.beta.value * 12.5 - 1.0).abs() < 0.01 && link.beta.covers(0.08), "{}", link.beta);
        assert!(link.alpha.ci_low < link.alpha.ci_high && link.beta.ci_low < link.beta.ci_high);
    }

    #[test]
    fn protocols_that_differ_widen_the_intervals() {
        let width = |cells| {
            let link = fit(&profile(cells)).unwrap().unwrap();
            link.alpha.ci_high - link.alpha.ci_low
        };
        let mut bent = pinged(0.1);
        bent[2] = cell(1024, &[9000.0, 9100.0, 9200.0]).unwrap();
        assert!(width(bent) > 2.0 * width(pinged(0.1)));
    }

    #[test]
    fn what_was_not_timed_is_not_known() {
        assert_eq!(fit(&profile(Vec::new())), Ok(None));
        assert_eq!(fit(&profile(vec![cell(8, &[10.0]).unwrap()])), Ok(None));
        assert_eq!(cell(8, &[]), None);
        let mut lost = cell(8, &[10.0]).unwrap();
        lost.factors.clear();
        assert!(matches!(fit(&profile(vec![lost])), Err(FitError::BadCell { .. })));
    }
}
