//! Launches of settings in turns with the default, and their scores.

use super::{Host, OpenmpError, CONSTRUCTS};
use crate::bench::mpi::{median, quantile};
use crate::mpi::Curves;
use crate::script::Variables;

/// Ratio beyond which a construct counts as slower.
const SLOWER: f64 = 1.03;
/// Ratio to the default's slowest launch beyond which one launch makes a construct slower.
const FAR: f64 = 2.0;

/// A setting and its times, or the reason why it has none.
#[derive(Clone, PartialEq, Debug)]
pub struct Setting {
    /// The variables; none for the default.
    pub variables: Variables,
    /// The times by construct and number of threads.
    pub times: Result<Curves, String>,
}

/// Settings that are launched in turns, the default first.
#[derive(Clone, PartialEq, Debug)]
pub struct Trial {
    pub threads: usize,
    pub settings: Vec<Setting>,
    pub launches: usize,
}

impl Trial {
    /// Makes a trial of the default alone.
    pub fn new(threads: usize) -> Trial {
        let default = Setting { variables: Variables::new(), times: Ok(Curves::default()) };
        Trial { threads, settings: vec![default], launches: 0 }
    }

    /// Adds a setting, unless it is there.
    pub fn add(&mut self, variables: Variables) {
        if !self.settings.iter().any(|s| s.variables == variables) {
            self.settings.push(Setting { variables, times: Ok(Curves::default()) });
        }
    }

    /// Launches the settings from number `from` on, with the default before and after them; backwards if `reversed`. `step` is called before
    /// each launch. A setting that the runtime refuses is left out from then on.
    pub fn round(
        &mut self,
        host: &Host,
        window_ms: u32,
        from: usize,
        reversed: bool,
        step: &mut dyn FnMut(&str),
    ) -> Result<(), OpenmpError> {
        let mut order: Vec<usize> = (from.max(1)..self.settings.len()).collect();
        if reversed {
            order.reverse();
        }
        for i in std::iter::once(0).chain(order).chain([0]) {
            let setting = &mut self.settings[i];
            let Ok(times) = &mut setting.times else { continue };
            step(&label(&setting.variables));
            self.launches += 1;
            match host.launch(self.threads, window_ms, &setting.variables) {
                Ok(lines) => times.add(&lines),
                Err(how) if i == 0 => {
                    let runtime = host.runtime.name();
                    return Err(OpenmpError::Broken { runtime, threads: self.threads, how });
                }
                Err(why) => setting.times = Err(why),
            }
        }
        Ok(())
    }

    /// Returns the median of a construct's launches in ns.
    pub fn at(&self, setting: usize, construct: &str) -> Option<f64> {
        self.times(setting)?.at(construct, self.threads as u64)
    }

    fn times(&self, setting: usize) -> Option<&Curves> {
        self.settings.get(setting)?.times.as_ref().ok()
    }

    /// Returns the geometric mean, over these constructs, of a setting's time divided by the default's; `None` where it has no times.
    pub fn score(&self, setting: usize, constructs: &[&str]) -> Option<f64> {
        let mut sum = 0.0;
        for construct in constructs {
            sum += (self.at(setting, construct)? / self.at(0, construct)?).ln();
        }
        Some((sum / constructs.len() as f64).exp())
    }

    /// Returns the settings with times, and their scores over all constructs, the best first.
    pub fn ranking(&self) -> Vec<(usize, f64)> {
        let all = (1..self.settings.len()).filter_map(|i| Some((i, self.score(i, &CONSTRUCTS)?)));
        let mut all: Vec<(usize, f64)> = all.collect();
        all.sort_by(|a, b| a.1.total_cmp(&b.1));
        all
    }

    /// Returns whether a setting makes some construct slower than the default does: by the medians and most of the launches, or by a launch
    /// that takes far longer than any of the default's. Tasks under LLVM's runtime take ten times as long in some launches where waiting
    /// threads do not sleep and there are more of them than CPUs.
    pub fn is_slower(&self, setting: usize) -> bool {
        CONSTRUCTS.iter().any(|construct| {
            let launches = |i| self.times(i)?.launches(construct, self.threads as u64);
            let (Some(ours), Some(defaults)) = (launches(setting), launches(0)) else { return true };
            let most = |launches: &[f64]| launches.iter().copied().fold(0.0, f64::max);
            let mostly =
                median(ours) > SLOWER * median(defaults) && quantile(ours, 0.25) > quantile(defaults, 0.75);
            mostly || most(ours) > FAR * most(defaults)
        })
    }
}

/// Returns the variables on one line; `default` for none.
pub fn label(variables: &Variables) -> String {
    if variables.is_empty() {
        return "default".to_owned();
    }
    variables.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use crate::mpi::Cell;

    /// Returns a trial of 4 threads in which each setting has these times of each launch for all constructs.
    pub fn trial(settings: &[&[f64]]) -> Trial {
        let mut trial = Trial::new(4);
        for (i, launches) in settings.iter().enumerate() {
            if i > 0 {
                trial.add(vec![("A".into(), i.to_string())]);
            }
            let Ok(times) = &mut trial.settings[i].times else { unreachable!() };
            for construct in CONSTRUCTS {
                launches.iter().for_each(|t| times.push(Cell::new(construct, 4), *t));
            }
        }
        trial
    }

    #[test]
    fn settings_are_ranked_by_all_constructs() {
        let mut trial = trial(&[&[100.0], &[80.0], &[50.0], &[]]);
        assert_eq!(trial.ranking().iter().map(|r| r.0).collect::<Vec<_>>(), [2, 1]);
        assert!((trial.score(1, &["barrier"]).unwrap() - 0.8).abs() < 1e-9);
        trial.add(trial.settings[1].variables.clone());
        assert_eq!(trial.settings.len(), 4);
    }

    #[test]
    fn slower_is_what_most_launches_are_by() {
        let mut trial = trial(&[&[100.0, 110.0], &[50.0, 50.0], &[50.0, 50.0]]);
        let Ok(times) = &mut trial.settings[1].times else { unreachable!() };
        (0..2).for_each(|_| times.push(Cell::new("for", 4), 200.0));
        assert!(!trial.is_slower(1), "two of four launches were faster than before");
        let Ok(times) = &mut trial.settings[1].times else { unreachable!() };
        times.push(Cell::new("for", 4), 300.0);
        assert!(trial.is_slower(1), "one took far longer than any before");
        let Ok(times) = &mut trial.settings[2].times else { unreachable!() };
        *times = Curves::default();
        CONSTRUCTS.iter().for_each(|c| times.push(Cell::new(c, 4), if *c == "for" { 120.0 } else { 50.0 }));
        assert!(trial.is_slower(2));
    }
}
