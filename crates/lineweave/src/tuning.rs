//! By what plans are chosen: a model, the choices that were measured, and those that the user forces.
//!
//! The profile that `lineweave tune` saved for this machine is used when it is there; until then the shipped
//! machine description nearest to this CPU, and whoever asks is told so.

mod files;
mod record_file;
mod kept;
mod origin;
mod provisional;

pub use files::{cache_directory, check_named, is_of, parse_costs, CHOICES_FILE, COSTS_FILE, PROFILE_FILE};
use files::{read, By, Read};
pub use kept::remove_kept;
pub use origin::Origin;

use crate::cache;
use crate::error::Error;
use crate::kernel::CopyPolicy;
use crate::settings::{Attach, Forced, Settings, Wait};
use crate::throttle;
use crate::topology::Hardware;
use crate::wait::{Between, Budget};
use lineweave_core::algorithm::spec::Spec;
use lineweave_core::algorithm::{self, Algorithm};
use lineweave_core::collective::Collective;
use lineweave_core::machine;
use lineweave_core::model::{LevelCosts, Model};
use lineweave_core::plan::{Layout, Params, Plan, PlanError};
use lineweave_core::profile::Fingerprint;
use lineweave_core::select::{self, Choice, Choices, Question, SelectError};
use lineweave_core::topology::Shape;
use lineweave_core::units::{ceil_log2, fnv1a, Bytes, Nanos, Rank, LINE};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// Shorter messages go through boxes, and plans with cross-memory attach are not even costed: a system call that copies nothing took
/// 0.45 us on a Xeon and 1.45 us on an EPYC (both in a VM), in which 16 KiB and more pass through a box.
pub const ATTACH_FROM: usize = 16 << 10;

/// Model, measured choices and forced choices by which plans are chosen; equal on all ranks of a team.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Tuning {
    /// Costs of this machine.
    #[serde(deserialize_with = "Model::from_part")]
    pub model: Model,
    /// Origin of the model.
    pub origin: Origin,
    /// Choices that measuring confirmed or corrected.
    pub choices: Option<Choices>,
    forced: Vec<Forced>,
    /// File that keeps choices made by this tuning, with their proofs, for programs that run later.
    #[serde(default)]
    pub kept: Option<PathBuf>,
    /// A file of the cache that does not count, why, and what to do, in one line for whoever decides for all ranks.
    #[serde(skip)]
    pub aside: Option<String>,
}

/// Why an algorithm was chosen.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Because {
    /// `LINEWEAVE_ALGORITHM` says so.
    Forced,
    /// The fastest when measured at this size or the nearest one.
    Measured,
    /// The fastest when simulated with the costs between each two CPUs of a machine like this one.
    Simulated,
    /// The model predicts it to be the fastest.
    Predicted,
}

/// An algorithm with parameters and window for one question.
#[derive(Clone, Debug)]
pub struct Chosen {
    /// The algorithm.
    pub algorithm: &'static Algorithm,
    /// The parameters of the algorithm.
    pub params: Params,
    /// Bytes of a window.
    pub window: usize,
    /// Why.
    pub because: Because,
}

impl Chosen {
    /// Returns the model's choice for a question that the model alone decides ([`Tuning::predicts`]).
    ///
    /// # Errors
    /// [`SelectError`] for an algorithm that is in no table.
    pub fn predicted(collective: Collective, choice: &Choice) -> Result<Chosen, SelectError> {
        Ok(Chosen {
            algorithm: algorithm::find(collective, choice.algorithm)?,
            params: choice.params.clone(),
            window: choice.window,
            because: Because::Predicted,
        })
    }

    /// The plan for `bytes` bytes: a window, or the rest after the last whole one.
    ///
    /// # Errors
    /// A [`PlanError`] when the algorithm does not apply.
    pub fn plan(&self, question: &Question, bytes: usize) -> Result<Plan, PlanError> {
        self.algorithm.plan(&question.window(bytes), &self.params)
    }
}

impl Tuning {
    /// For this machine: its profile, if there is one, else costs that stand in for it, else the nearest description. A file in the cache
    /// that cannot be used is set aside, and [`Tuning::aside`] says so.
    ///
    /// # Errors
    /// [`Error::Profile`] when what `LINEWEAVE_PROFILE` names cannot be used, and `LINEWEAVE_PROFILE_OPTIONAL` does not set it aside.
    pub fn load(
        settings: &Settings,
        hardware: &Hardware,
        fingerprint: &Fingerprint,
    ) -> Result<Tuning, Error> {
        let forced = settings.algorithms.clone();
        // What is forced is not searched for.
        let keeps = settings.keep_plans && forced.is_empty();
        let directory = cache_directory(fingerprint).filter(|_| keeps);
        let kept = |digest| directory.as_ref().map(|at| at.join(kept::file_name(digest)));
        let places: Vec<(PathBuf, By)> = match (&settings.profile, cache_directory(fingerprint)) {
            (Some(file), _) => vec![(file.clone(), By::Setting)],
            (None, Some(at)) => [PROFILE_FILE, COSTS_FILE].map(|name| (at.join(name), By::Cache)).into(),
            (None, None) => Vec::new(),
        };
        let mut first = places.into_iter().filter_map(|(file, by)| {
            let read = read(&file, by, fingerprint, kept);
            read.map(|read| Some((file, read?))).transpose()
        });
        let (found, aside) = match (first.next().transpose(), &settings.profile) {
            (Ok(found), _) => (found, None),
            (Err(Error::Profile { file, why }), None) => (None, Some(cache::aside(&file, &why))),
            (Err(e), Some(_)) if settings.run.profile_optional => (None, Some(format!("set aside: {e}"))),
            (Err(e), _) => return Err(e),
        };
        let Some((file, read)) = found else {
            let (model, origin) = nearest(hardware);
            let kept = kept(fnv1a(model.to_json().bytes()));
            return Ok(Tuning { model, origin, choices: None, forced, kept, aside }.told_of_kept());
        };
        let Read { model, described, choices, digest, aside } = read;
        let kept = kept(digest);
        let origin = match described {
            Some(name) => Origin::Costs { file, name },
            None => Origin::Profile { file },
        };
        Ok(Tuning { model, origin, choices, forced, kept, aside }.told_of_kept())
    }

    /// Says what is wrong with the file of kept choices and proofs, unless there is more to say.
    fn told_of_kept(mut self) -> Tuning {
        let refused =
            || self.kept.as_deref().and_then(|file| Some(cache::aside(file, &kept::refused(file)?)));
        if self.aside.is_none() {
            self.aside = refused();
        }
        self
    }

    /// Makes a tuning by a model alone: for machines that are not at hand, and for tests.
    pub fn of_model(model: Model, origin: Origin) -> Tuning {
        Tuning { model, origin, choices: None, forced: Vec::new(), kept: None, aside: None }
    }

    /// From which length on it can pay to ask whether all buffers are shared: where what is saved, a copy of the message at the
    /// least, takes longer than the question, an exchange between the ranks that are farthest apart.
    pub fn ask_from(&self, shape: &Shape) -> usize {
        let far = (1..shape.ranks()).map(|r| shape.distance(Rank(0), Rank::from(r))).max();
        let Some(costs) = far.map(|level| self.model.level(level).0) else { return usize::MAX };
        let exchange = LevelCosts::by_layout(&costs.exchange, Layout::Alone).unwrap_or(costs.read);
        let rounds = f64::from(ceil_log2(shape.ranks())) * 2.0;
        let pays = |&bytes: &usize| self.model.copy.at(bytes, 1).nanos > rounds * exchange.value;
        (10..30).map(|k| 1usize << k).find(pays).unwrap_or(usize::MAX)
    }

    /// Returns the wait budget of a policy, with a load fence between the looks of an exchange where it was measured to win.
    pub fn wait_budget(&self, policy: Wait, ranks: usize, usable: usize) -> Budget {
        let exchange = if self.model.trick_wins("load-fence") { Between::LoadFence } else { Between::Pause };
        Budget { exchange, ..Budget::of(policy, ranks, usable) }
    }

    /// Returns the copy policy: non-temporal stores from the length where they were measured to win.
    pub fn copy_policy(&self) -> CopyPolicy {
        let from = self.model.nt_from.and_then(|bytes| usize::try_from(bytes).ok());
        from.map_or(CopyPolicy::PLAIN, |nt_from| CopyPolicy { nt_from })
    }

    /// Returns whether plans with cross-memory attach are costed for messages of this length among processes that may use it, with this setting.
    pub fn attaches(&self, setting: Attach, bytes: usize) -> bool {
        let known = match setting {
            Attach::Auto => self.model.attach.is_some(),
            Attach::On => true,
            Attach::Off => false,
        };
        known && bytes >= ATTACH_FROM
    }

    /// Describes the use of cross-memory attach with this setting, in words.
    pub fn about_attach(&self, setting: Attach) -> String {
        const MESSAGE: usize = 1 << 20;
        let from = Bytes(ATTACH_FROM as u64);
        let raced = self.choices.iter().flat_map(|c| &c.choices).filter_map(|tuned| tuned.attach);
        let (raced, won) = raced.fold((0, 0), |(all, won), one| (all + 1, won + usize::from(one)));
        let raced = match raced {
            0 => "the model chooses".to_owned(),
            _ => format!("fastest in {won} of {raced} measured choices, for the rest the model chooses"),
        };
        match (setting, &self.model.attach) {
            (Attach::Off, _) => "not used: LINEWEAVE_CMA is off".to_owned(),
            (Attach::Auto, None) => {
                "not used: what it costs here is unknown; run `lineweave tune`".to_owned()
            }
            (Attach::On, None) => format!("from {from} on, as if it took as long as any copy; {raced}"),
            (Attach::Auto | Attach::On, Some(attach)) => format!(
                "{} take {} by it, {} by a copy within a process; from {from} on {raced}",
                Bytes(MESSAGE as u64),
                Nanos(attach.at(MESSAGE, 1).nanos),
                Nanos(self.model.copy.at(MESSAGE, 1).nanos)
            ),
        }
    }

    /// Uses an algorithm for a collective whatever the model says.
    pub fn force(&mut self, collective: Collective, choice: Spec) {
        // What was kept was searched for, and what is forced would be taken for that later.
        self.kept = None;
        self.forced.retain(|f| f.collective != collective);
        let Spec { name, params, window } = choice;
        self.forced.push(Forced { collective, algorithm: name, params, window });
    }

    /// The algorithm for a question: forced, else measured, else predicted to be the fastest; of those that combine
    /// contributions as the question asks. `team` is the kind of team that choices were measured on: `threads`, `processes` or
    /// `shared`.
    ///
    /// # Errors
    /// [`SelectError`] when nothing fits.
    pub fn choose(&self, question: &Question, team: &str) -> Result<Chosen, SelectError> {
        let forced = self.forced.iter().find(|f| f.collective == question.collective);
        if let Some((f, algorithm)) = forced.map(|f| (f, algorithm::find(f.collective, &f.algorithm))) {
            let algorithm = algorithm?;
            // Right results come first: what does not keep the order that is asked for is not forced.
            if !question.associates(algorithm, &f.params) {
                return self.choose_unforced(question, team);
            }
            let window = match f.window {
                Some(window) => asked_window(question, algorithm, &f.params, window)?,
                None => largest_window(question, algorithm, &f.params)?,
            };
            return Ok(Chosen { algorithm, params: f.params.clone(), window, because: Because::Forced });
        }
        self.choose_unforced(question, team)
    }

    /// Returns whether the model alone decides a question.
    pub fn predicts(&self, question: &Question, team: &str) -> bool {
        let forced = self.forced.iter().any(|f| f.collective == question.collective);
        !forced && !question.attach && question.uneven.is_none() && self.measured(question, team).is_none()
    }

    /// Chooses as [`Tuning::choose`] does where nothing is forced.
    ///
    /// # Errors
    /// [`SelectError`] where no algorithm has a plan.
    pub fn choose_unforced(&self, question: &Question, team: &str) -> Result<Chosen, SelectError> {
        let measured = self.measured(question, team);
        if let Some((chosen, _)) = measured.as_ref().filter(|(_, found)| !question.attach || found.attach) {
            return Ok(chosen.clone());
        }
        // The probe measures copies by attach alone, and combining by it came out far slower than predicted (docs/explanation/findings.md).
        let boxes = Question { direct: false, attach: false, ..question.clone() };
        let folds = question.attach && question.collective.folds();
        let question = if folds { &boxes } else { question };
        if let Some((chosen, _)) = measured.as_ref().filter(|_| folds) {
            return Ok(chosen.clone());
        }
        let choice = select::select_pausing(&self.model, question, &throttle::pause)?;
        if let Some((chosen, found)) = measured {
            // Measured without cross-memory attach, which takes over where it is predicted to be faster than that.
            if !choice.plan().direct || choice.predicted.0 >= found.nanos {
                return Ok(chosen);
            }
        }
        Chosen::predicted(question.collective, &choice)
    }

    /// Returns the measured choice at this size or the nearest, if it applies here.
    fn measured(&self, question: &Question, team: &str) -> Option<(Chosen, Measured)> {
        if question.uneven.is_some() {
            return None; // Measured were blocks of one length.
        }
        let choices = self.choices.as_ref()?;
        let lookup =
            |team: &str| choices.lookup(question.collective, question.shape.ranks(), question.bytes, team);
        // Heaps are read and written as threads do each other's buffers, so where only those were measured that is known of them, too.
        let found = lookup(team).or_else(|| lookup("threads").filter(|_| team == "shared"))?;
        if found.beyond {
            return None;
        }
        let algorithm = algorithm::find(question.collective, &found.tuned.algorithm).ok()?;
        let window = match found.exact {
            true => found.tuned.window.min(question.bytes),
            false => largest_window(question, algorithm, &found.tuned.params).ok()?,
        };
        let because = if found.tuned.simulated { Because::Simulated } else { Because::Measured };
        let chosen = Chosen { algorithm, params: found.tuned.params.clone(), window, because };
        if !question.associates(chosen.algorithm, &chosen.params) {
            return None;
        }
        // Made for another root or an odd size it may not apply; then the model decides.
        let plan = chosen.plan(question, window).ok()?;
        let applies = question.fits(&plan, self.model.line_bytes) && (!plan.direct || question.direct);
        let nanos = found.tuned.measured_ns * question.bytes as f64 / found.tuned.bytes.max(1) as f64;
        applies.then_some((chosen, Measured { nanos, attach: found.tuned.attach.is_some() }))
    }
}

/// Measurement of a choice.
struct Measured {
    /// Time of a call of the size that is asked for, in ns, by proportion.
    nanos: f64,
    /// Beside plans with cross-memory attach.
    attach: bool,
}

/// The shipped description nearest to this CPU, as a model.
fn nearest(hardware: &Hardware) -> (Model, Origin) {
    let cpu = hardware.cpu_model.as_deref().unwrap_or("");
    let (machine, why) = machine::nearest(cpu, std::env::consts::ARCH);
    (Model::from_machine(machine), Origin::Machine { name: machine.name.clone(), why })
}

/// The window that is asked for, in whole elements; the largest that fits where it does not.
fn asked_window(
    question: &Question,
    algorithm: &'static Algorithm,
    params: &Params,
    window: usize,
) -> Result<usize, SelectError> {
    let whole = window.min(question.bytes) / question.grain * question.grain;
    let plan = algorithm.plan(&question.window(whole), params)?;
    match (whole > 0 || question.bytes == 0) && question.fits(&plan, LINE) {
        true => Ok(whole),
        false => largest_window(question, algorithm, params),
    }
}

/// The largest window of an algorithm that fits: the whole message, or the largest power of two that does.
fn largest_window(
    question: &Question,
    algorithm: &'static Algorithm,
    params: &Params,
) -> Result<usize, SelectError> {
    let mut window = question.bytes;
    loop {
        let plan = algorithm.plan(&question.window(window), params)?;
        if question.fits(&plan, LINE) {
            return Ok(window);
        }
        let half = (window - 1).next_power_of_two() / 2;
        if half < question.grain.max(LINE) {
            return Err(SelectError::NothingFits {
                collective: question.collective,
                ranks: question.shape.ranks(),
                bytes: question.bytes,
                box_bytes: question.box_bytes,
                why: format!("{} with {params} was tried down to windows of {window} bytes", plan.name()),
            });
        }
        window = half / question.grain * question.grain;
    }
}
