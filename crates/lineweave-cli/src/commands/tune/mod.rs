//! `lineweave tune`: the whole path on this machine. Measures what a cache line costs, fits a model, chooses and
//! proves plans, runs them beside their rivals, and keeps what it found for programs to use.

mod report;

use super::rank_job;
use crate::bench::Team;
use crate::error::CliError;
use crate::files::{fuller, replace};
use crate::session::Session;
use crate::size::Size;
use lineweave::measure::{measure, ProbeSet};
use lineweave::node::NodeInfo;
use lineweave::settings::Settings;
use lineweave::team::Charter;
use lineweave::trial::{race, Crew, CrewError, Gauge, Race, Rules};
use lineweave::tuning::{Origin, Tuning, CHOICES_FILE};
use lineweave_core::collective::Collective;
use lineweave_core::model::fit;
use lineweave_core::profile::Profile;
use lineweave_core::select::{select, Choice, Choices, Question, Tuned};
use lineweave_core::units::{Bytes, Nanos};
use report::{ChoiceObject, Figures};
use std::collections::VecDeque;
use std::path::Path;
use std::time::{Duration, Instant};

/// Steps of a progress bar over something continuous.
const STEPS: u64 = 1000;

/// Message sizes, each eight times the one before, from a word to what no cache of a core holds; and 1 MiB, as much as goes through a box in
/// one piece, which is often fastest another way than twice or a quarter of it.
const SIZES: [usize; 9] = [8, 64, 512, 4 << 10, 32 << 10, 256 << 10, 1 << 20, 2 << 20, 16 << 20];
/// The sizes of a quick run: one that travels with a flag, one within a cache, one beyond.
const QUICK_SIZES: [usize; 3] = [8, 4 << 10, 1 << 20];
/// Team sizes: the smallest, and what most programs run on a small machine; more ranks than CPUs is a test of
/// waiting.
const RANKS: [usize; 3] = [2, 4, 8];
const QUICK_RANKS: [usize; 2] = [2, 4];
/// The most bytes of all blocks that a rank gives or gets, unless sizes are asked for: an alltoall of 16 MiB among 8 ranks on 2 CPUs takes
/// a seventh of a second.
const MOST: usize = 32 << 20;
/// Seconds for choices, together. Whatever does not fit is measured more briefly, not left out.
const SECONDS: f64 = 150.0;
const QUICK_SECONDS: f64 = 36.0;
/// Races of a case, the later ones at the end, until one falls into a time when the machine is as its profile says.
const TRIES: usize = 3;

/// How.
#[derive(clap::Args, Debug)]
pub struct Arguments {
    /// Less than a minute: fewer sizes and team sizes, wider intervals
    #[arg(long)]
    quick: bool,
    /// Team sizes, such as 2 or 2,4,8
    #[arg(long, value_name = "N,..", value_delimiter = ',', value_parser = clap::value_parser!(u16).range(1..=256))]
    ranks: Vec<u16>,
    /// Message sizes, such as 8,64KiB; a multiple of 8
    #[arg(long, value_name = "SIZE,..", value_delimiter = ',', value_parser = words)]
    bytes: Vec<Size>,
    /// Collectives, such as gather,scan [default: barrier,bcast,reduce,allreduce,allgather,alltoall; the others are chosen by the
    /// model]
    #[arg(long = "collective", value_name = "NAME,..", value_delimiter = ',')]
    collectives: Vec<Collective>,
}

/// A size that whole f64 elements make.
fn words(text: &str) -> Result<Size, String> {
    match text.parse::<Size>() {
        Ok(size) if size.0 > 0 && size.0 % 8 == 0 => Ok(size),
        Ok(_) => Err("expected a multiple of 8 (f64 elements), at least 8".to_owned()),
        Err(e) => Err(e.to_string()),
    }
}

/// What is asked of each team.
struct Programme {
    ranks: Vec<usize>,
    sizes: Vec<usize>,
    collectives: Vec<Collective>,
    /// Bytes of all blocks that a rank gives or gets.
    most: usize,
}

impl Programme {
    fn of(arguments: &Arguments) -> Programme {
        let quick = arguments.quick;
        let or =
            |given: Vec<usize>, default: &[usize]| if given.is_empty() { default.to_vec() } else { given };
        let ranks = arguments.ranks.iter().map(|&r| usize::from(r)).collect();
        let sizes = arguments.bytes.iter().map(|s| s.0).collect();
        Programme {
            ranks: or(ranks, if quick { &QUICK_RANKS } else { &RANKS }),
            sizes: or(sizes, if quick { &QUICK_SIZES } else { &SIZES }),
            collectives: match arguments.collectives.is_empty() {
                true => Collective::TUNED.to_vec(),
                false => arguments.collectives.clone(),
            },
            most: if arguments.bytes.is_empty() { MOST } else { usize::MAX },
        }
    }

    fn cases(&self, ranks: usize) -> Vec<(Collective, usize)> {
        let sizes = |c: Collective| if c.moves_data() { self.sizes.clone() } else { vec![0] };
        let fits = |c: Collective, bytes| !c.has_blocks() || bytes * ranks <= self.most;
        let cases = self.collectives.iter().flat_map(|&c| sizes(c).into_iter().map(move |b| (c, b)));
        cases.filter(|&(c, bytes)| fits(c, bytes)).collect()
    }

    /// How thoroughly a case is measured when this much time is left for each that remains.
    fn rules(&self, each: Duration) -> Rules {
        let pressed = each < Duration::from_millis(60);
        Rules {
            top: if pressed { 2 } else { 4 },
            families: if pressed { 2 } else { 6 },
            factor: 4.0,
            rounds: 3,
            window: (each / 16).clamp(Duration::from_millis(2), Duration::from_millis(20)),
            drop: 1.5,
            limit: each,
        }
    }
}

/// Measures, fits, chooses, proves, runs, shows and saves.
///
/// # Errors
/// A [`CliError`] when this machine cannot be measured, ranks fail, or nothing can be kept.
pub fn run(arguments: &Arguments, session: &mut Session) -> Result<(), CliError> {
    let start = Instant::now();
    let settings = session.settings_of_this_machine()?;
    let node = NodeInfo::gather(&settings, &[])?;
    let (_, file) = session.cached_profile()?;
    report::head(&node, &mut session.out)?;

    let profile = measured(arguments.quick, &settings, session)?;
    let model = fit(&profile).map_err(|e| CliError::malformed(&file, "profile that can be fitted", e))?;
    report::measured(&profile, &model, start.elapsed(), &mut session.out)?;
    save_profile(&file, &profile, session)?;

    let programme = Programme::of(arguments);
    let tuning = Tuning::of_model(model, Origin::Profile { file: file.clone() });
    let mut choices = known(&file.with_file_name(CHOICES_FILE), &profile);
    let mut figures = Figures::default();
    let teams = [Team::Threads, Team::Processes];
    let all = programme.ranks.iter().map(|&ranks| teams.len() * programme.cases(ranks).len()).sum::<usize>();
    let deadline =
        Instant::now() + Duration::from_secs_f64(if arguments.quick { QUICK_SECONDS } else { SECONDS });
    let bar = session.out.progress(all as u64);
    let mut done = 0;
    for &ranks in &programme.ranks {
        for team in teams {
            let charter =
                Charter::with(ranks, &settings, &node.placement(), node.usable.effective, tuning.clone());
            let mut crew = crew(team, charter.clone())?;
            let reach = team == Team::Processes && crew.cross_memory()?;
            let gauge = Gauge::of(&charter, &tuning.model);
            let mut rows = Vec::new();
            let mut queue: VecDeque<_> =
                programme.cases(ranks).into_iter().map(|case| (case, TRIES)).collect();
            while let Some(((collective, bytes), tries)) = queue.pop_front() {
                bar.set_message(format!("{collective} {}, {ranks} {team}", Bytes(bytes as u64)));
                let left = deadline.saturating_duration_since(Instant::now()) / (all - done) as u32;
                let attach = reach && collective.moves_data() && tuning.attaches(settings.attach, bytes);
                let direct = attach || team == Team::Threads;
                let question = Question { attach, ..charter.question(collective, bytes, direct) };
                let choice = select(&tuning.model, &question)?;
                let outcome = gauged(&mut crew, gauge.as_ref(), &question, &choice, &programme.rules(left));
                if matches!(outcome, Ok((_, Some(_)))) && tries > 1 {
                    queue.push_back(((collective, bytes), tries - 1));
                    continue;
                }
                done += 1;
                bar.inc(1);
                let race = match outcome {
                    Ok((_, Some(reading))) => {
                        figures.moved(collective, ranks, bytes, team, reading);
                        continue;
                    }
                    Ok((Some(race), None)) => race,
                    Ok((None, None)) => {
                        figures.remark(collective, ranks, bytes, team, &"no candidate could be run");
                        continue;
                    }
                    Err(broken @ CrewError::Broken { .. }) => {
                        // One plan that hangs or crashes is a finding; the others are measured on a new team.
                        figures.remark(collective, ranks, bytes, team, &broken);
                        crew = self::crew(team, charter.clone())?;
                        continue;
                    }
                    Err(e) => return Err(e.into()),
                };
                choices.insert(tuned(&question, team, &race));
                figures.take(&race, ranks > node.usable.effective);
                let row = ChoiceObject::of(collective, ranks, bytes, team, &race);
                if session.out.is_json() {
                    session.out.object("choice", &row)?;
                }
                rows.push(row);
            }
            if !session.out.is_json() {
                bar.suspend(|| report::choices(ranks, team, node.usable.effective, &rows, &mut session.out))?;
            }
        }
    }
    bar.finish_and_clear();
    let kept = file.with_file_name(CHOICES_FILE);
    replace(&kept, &choices.to_toml(), "XDG_CACHE_HOME")?;
    report::summary(&figures, start.elapsed(), &file, &kept, &mut session.out)
}

/// Measures this machine, with a bar.
fn measured(quick: bool, settings: &Settings, session: &Session) -> Result<Profile, CliError> {
    let set = ProbeSet::of_this_machine(settings)?;
    let set = if quick { set.quick() } else { set };
    let bar = session.out.progress(STEPS);
    let profile = measure(&set, &mut |progress| {
        bar.set_position((progress.fraction.clamp(0.0, 1.0) * STEPS as f64) as u64);
        bar.set_message(format!("pass {}: {} {}", progress.pass, progress.cell, Nanos(progress.median_ns)));
    });
    bar.finish_and_clear();
    Ok(profile?)
}

/// Keeps the profile, unless the one that is there knows more.
fn save_profile(file: &Path, profile: &Profile, session: &Session) -> Result<(), CliError> {
    if fuller(file, profile) {
        session.out.warn(&format!("{} has more samples and stays", file.display()));
        return Ok(());
    }
    replace(file, &profile.to_toml(), "XDG_CACHE_HOME")
}

/// The choices that are there already, to be replaced case by case.
fn known(file: &Path, profile: &Profile) -> Choices {
    let id = profile.machine.id();
    let text = std::fs::read_to_string(file).ok();
    let there = text.and_then(|text| Choices::from_toml(&text).ok()).filter(|c| c.machine == id);
    there.unwrap_or_else(|| Choices::new(id))
}

fn crew(team: Team, charter: Charter) -> Result<Crew, CliError> {
    Ok(match team {
        Team::Threads => Crew::threads(charter)?,
        Team::Processes => Crew::processes(charter, rank_job::command()?)?,
    })
}

/// A race, and how many times as long as the profile says a barrier took beside it if that makes it another machine: what wins there
/// would lose later.
fn gauged(
    crew: &mut Crew,
    gauge: Option<&Gauge>,
    question: &Question,
    choice: &Choice,
    rules: &Rules,
) -> Result<(Option<Race>, Option<f64>), CrewError> {
    let read = |crew: &mut Crew| gauge.map(|gauge| gauge.read(crew)).transpose();
    let before = read(crew)?;
    let race = race(crew, question, choice, rules)?;
    let after = read(crew)?;
    Ok((race, [before, after].into_iter().flatten().find(|&reading| Gauge::moved(reading))))
}

/// The fastest of a race, as programs look it up.
fn tuned(question: &Question, team: Team, race: &Race) -> Tuned {
    let best = race.best();
    Tuned {
        collective: question.collective,
        ranks: question.shape.ranks(),
        bytes: question.bytes,
        team: team.name().to_owned(),
        algorithm: best.candidate.name.to_owned(),
        params: best.candidate.params.clone(),
        window: best.candidate.window,
        predicted_ns: best.candidate.predicted.0,
        measured_ns: best.stats.median,
        attach: question.attach.then(|| best.candidate.reaches(question)),
    }
}
