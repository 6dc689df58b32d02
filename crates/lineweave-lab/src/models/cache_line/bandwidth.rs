//! Copies between buffers in memory by several pairs of threads at once (Appendix A).

use super::{read, CacheLineError};
use lineweave_core::machine::{Location, Machine, State};

/// Rate by T_N = (2 N R_I / P + R_R,M) F (Eq. A.1).
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct CopyRate {
    /// R_I, ns; of the farther memory where the pair is apart.
    pub invalid: f64,
    /// R_R,M, ns: the last line, which its receiver polls.
    pub modified: f64,
    /// P: lines on their way at once.
    pub outstanding: f64,
    /// F: fitted.
    pub factor: f64,
    /// Bytes of a line.
    pub line_bytes: f64,
}

impl CopyRate {
    /// Bytes a ns of a message of so many bytes. Both buffers are read, hence the 2.
    pub fn of(&self, bytes: f64) -> f64 {
        let lines = bytes / self.line_bytes;
        bytes / ((2.0 * lines * self.invalid / self.outstanding + self.modified) * self.factor)
    }

    /// Bytes a ns that ever longer messages come near to: R_R,M no longer counts.
    pub fn asymptote(&self) -> f64 {
        self.line_bytes * self.outstanding / (2.0 * self.invalid * self.factor)
    }
}

/// The rate of each pair when `threads` threads copy to partners at `location`. The paper finds it off for messages
/// below 256 KiB, where start-up counts that it does not model, and blind to the fall above 1 to 2 MiB across
/// packages with 8 threads or more.
///
/// # Errors
/// [`CacheLineError`], also for a number of threads that was not measured.
pub fn bandwidth(machine: &Machine, location: Location, threads: usize) -> Result<CopyRate, CacheLineError> {
    let unknown = |why: String| {
        let what = format!("P and F at {} for {threads} threads", location.name());
        CacheLineError::unknown(what, machine, why)
    };
    let fits = || machine.bandwidth.iter().filter(|b| b.location == location);
    let fit = fits().find(|b| (b.least_threads..=b.most_threads).contains(&threads)).ok_or_else(|| {
        let measured: Vec<String> =
            fits().map(|b| format!("{} to {}", b.least_threads, b.most_threads)).collect();
        unknown(match measured.is_empty() {
            true => "bandwidth was not measured".to_owned(),
            false => format!("measured for {} threads", measured.join(", ")),
        })
    })?;
    let line_bytes = machine.line_bytes.value.ok_or_else(|| unknown(machine.line_bytes.source.clone()))?;
    let value = |v: &lineweave_core::machine::Value| v.value.ok_or_else(|| unknown(v.source.clone()));
    // Within a package the memory is the own one, whoever reserved it (A.1).
    let memory = if location == Location::Machine { location } else { Location::Core };
    Ok(CopyRate {
        invalid: read(machine, memory, State::I)?.value,
        modified: read(machine, location, State::M)?.value,
        outstanding: value(&fit.outstanding)?,
        factor: value(&fit.factor)?,
        line_bytes,
    })
}
