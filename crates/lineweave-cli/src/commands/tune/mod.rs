//! `lineweave tune`: measures the cost of cache lines on this machine, fits a model, chooses and proves plans, runs them beside their
//! rivals, and keeps the results for programs.
//!
//! For each team, the choices and their rivals are computed on all CPUs at once, then raced one after the other. Sizes between two whose
//! choices differ follow.

mod choice;
mod figures;
mod programme;
mod profile;
mod report;
mod rules;

use super::rank_job::crew;
use crate::bench::Team;
use crate::error::CliError;
use crate::files::{make_room, replace};
use crate::interrupt;
use crate::node::NodeInfo;
use crate::question::collective;
use crate::room::expect_room;
use crate::session::Session;
use crate::size::Size;
use choice::ChoiceObject;
use figures::{Cause, Figures};
use lineweave::settings::Settings;
use lineweave::team::TeamConfig;
use lineweave::tuning::{Origin, Tuning, CHOICES_FILE};
use lineweave_core::collective::Collective;
use lineweave_core::model::fit;
use lineweave_core::profile::Profile;
use lineweave_core::select::{select, Candidate, Choices, Question, SelectError, Tuned};
use lineweave_core::units::Bytes;
use lineweave_tune::measure::Change;
use lineweave_tune::trial::{question, race, BaselineState, Field, Race, TrialTeam, TrialTeamError};
use profile::{known, measured, save_profile};
use programme::{rules, weight, Case, Programme, Time, BETWEEN};
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Races of a case at most, the later ones at the end, until one runs while the machine is in its usual state.
const TRIES: usize = 3;

/// Arguments of `lineweave tune`.
#[derive(clap::Args, Debug)]
pub struct Arguments {
    /// Half a minute: fewer sizes and team sizes, wider intervals
    #[arg(long)]
    quick: bool,
    /// For everything together; less time means fewer rivals and wider intervals [default: 55 on 2 CPUs, 10 more for each doubling]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(5..=3600))]
    seconds: Option<u16>,
    /// Team sizes, such as 2 or 2,4,8
    #[arg(long, value_name = "N,..", value_delimiter = ',', value_parser = clap::value_parser!(u16).range(1..=256))]
    ranks: Vec<u16>,
    /// Message sizes, such as 8,64KiB; a multiple of 8
    #[arg(long, value_name = "SIZE,..", value_delimiter = ',', value_parser = words)]
    bytes: Vec<Size>,
    /// Collectives, such as gather,scan [default: barrier,bcast,reduce,allreduce,allgather,alltoall; the others are chosen by the
    /// model]
    #[arg(long = "collective", value_name = "NAME,..", value_delimiter = ',', value_parser = collective(), hide_possible_values = true)]
    collectives: Vec<Collective>,
    #[command(flatten)]
    rules: rules::ForOthers,
}

/// Reads a size that is a multiple of 8 bytes (f64 elements).
pub fn words(text: &str) -> Result<Size, String> {
    match text.parse::<Size>() {
        Ok(size) if size.0 > 0 && size.0 % 8 == 0 => Ok(size),
        Ok(_) => Err("expected a multiple of 8 (f64 elements), at least 8".to_owned()),
        Err(e) => Err(e.to_string()),
    }
}

/// Measures, fits, chooses, proves, runs, shows and saves.
pub fn run(arguments: &Arguments, session: &mut Session) -> Result<(), CliError> {
    if arguments.rules.are_asked() {
        return rules::run(arguments, session);
    }
    let start = Instant::now();
    let settings = session.settings_of_this_machine()?;
    let node = NodeInfo::gather(&settings, &[])?;
    let (_, file) = session.cached_profile()?;
    make_room(&file)?;
    expect_room(&file, "XDG_CACHE_HOME")?;
    let programme = Programme::of(arguments, node.usable.effective);
    report::head(&node, &programme, &mut session.out)?;

    let profile = measured(&programme, arguments.quick, &settings, session)?;
    let model = fit(&profile).map_err(|e| CliError::malformed(&file, "profile that can be fitted", e))?;
    report::measured(&profile, &model, start.elapsed(), &mut session.out)?;
    save_profile(&file, &profile, session)?;
    interrupt::keeps(format!("the profile was kept in {}, no measured choices", file.display()));

    let tuning = Tuning::of_model(model, Origin::Profile { file: file.clone() });
    let kept = file.with_file_name(CHOICES_FILE);
    let teams = [Team::Threads, Team::Processes];
    let steps =
        |ranks: &usize| teams.len() * (programme.cases(*ranks).len() + programme.between(*ranks).len());
    let mut tune = Tune {
        settings: &settings,
        node: &node,
        profile: &profile,
        tuning: &tuning,
        time: programme.time(start, teams.len()),
        exhaustive: programme.exhaustive,
        choices: known(&kept, &profile),
        figures: Figures::default(),
        bar: session.out.progress(programme.ranks.iter().map(steps).sum::<usize>() as u64),
    };
    for &ranks in &programme.ranks {
        for team in teams {
            let rows = tune.team(&programme, ranks, team, session)?;
            let bar = tune.bar.clone();
            let cpus = node.usable.effective;
            bar.suspend(|| report::choices(ranks, team, cpus, &rows, &mut session.out))?;
        }
    }
    tune.bar.finish_and_clear();
    replace(&kept, &tune.choices.to_toml(), "XDG_CACHE_HOME")?;
    report::summary(&tune.figures, start.elapsed(), &file, &kept, &mut session.out)
}

/// The parts that all teams share.
struct Tune<'a> {
    settings: &'a Settings,
    node: &'a NodeInfo,
    profile: &'a Profile,
    tuning: &'a Tuning,
    time: Time,
    exhaustive: bool,
    choices: Choices,
    figures: Figures,
    bar: indicatif::ProgressBar,
}

/// A team while it is raced.
struct Raced {
    ranks: usize,
    team: Team,
    config: TeamConfig,
    crew: TrialTeam,
    /// Two ranks with a CPU each, which read the machine's state where the team's ranks share CPUs.
    pair: Option<TrialTeam>,
    usual: Option<BaselineState>,
    /// True if processes can access each other's memory.
    reach: bool,
    won: BTreeMap<Case, Candidate>,
    rows: Vec<ChoiceObject>,
}

impl Tune<'_> {
    /// Races one team.
    fn team(
        &mut self,
        programme: &Programme,
        ranks: usize,
        team: Team,
        session: &mut Session,
    ) -> Result<Vec<ChoiceObject>, CliError> {
        let cases = programme.cases(ranks);
        if self.time.is_over() {
            self.too_late(cases.len() + programme.between(ranks).len());
            return Ok(Vec::new());
        }
        let placement = self.node.placement();
        let of = |ranks| {
            let usable = self.node.usable.effective;
            TeamConfig::with(ranks, self.settings, &placement, usable, self.tuning.clone())
        };
        let config = of(ranks);
        let mut crew = crew(team, config.clone())?;
        let reach = team == Team::Processes && crew.cross_memory()?;
        let pair = match config.shape().oversubscription() > 1 && self.node.usable.effective > 1 {
            true => Some(of(2)),
            false => None,
        };
        let usual = BaselineState::of(pair.as_ref().unwrap_or(&config), self.profile);
        let pair = pair.map(TrialTeam::threads).transpose()?;
        let (won, rows) = (BTreeMap::new(), Vec::new());
        let mut raced = Raced { ranks, team, config, crew, pair, usual, reach, won, rows };

        let share = self.time.share(weight(*cases.first().unwrap_or(&(Collective::Barrier, 0)), ranks));
        let fields = self.fields(&raced, &cases, &|question, choice| {
            Field::of(question, choice, &rules(share, programme.exhaustive))
        })?;
        self.too_late(cases.len() - fields.len());
        self.races(fields, 1.0, &mut raced, session)?;

        // A size between two that the same plan won is taken to be won by that plan, too.
        let mut needed: BTreeMap<Case, Vec<Candidate>> = BTreeMap::new();
        for case in programme.between(ranks) {
            let winner = |size: Option<usize>| Some(raced.won.get(&(case.0, size?))?.clone());
            let winners: Vec<Candidate> =
                programme.neighbours(case.1).into_iter().filter_map(winner).collect();
            let alike = |a: &Candidate, b: &Candidate| a.name == b.name && a.params == b.params;
            match &winners[..] {
                [a, b] if alike(a, b) => self.figures.interpolated += 1,
                _ if self.time.is_over() => self.figures.not_kept(Cause::TimeOver, 1.0),
                _ => {
                    needed.insert(case, winners);
                    continue;
                }
            }
            self.time.close(weight(case, ranks) * BETWEEN);
            self.bar.inc(1);
        }
        let cases: Vec<Case> = needed.keys().copied().collect();
        let fields = self.fields(&raced, &cases, &|question, choice| {
            let winners = needed.get(&(question.collective, question.bytes));
            Field::between(question, choice, &winners.into_iter().flatten().collect::<Vec<_>>())
        })?;
        self.too_late(cases.len() - fields.len());
        self.races(fields, BETWEEN, &mut raced, session)?;
        raced.rows.sort_by_key(ChoiceObject::case);
        Ok(raced.rows)
    }

    /// Counts races that do not begin because the time is over.
    fn too_late(&mut self, races: usize) {
        self.bar.inc(races as u64);
        (0..races).for_each(|_| self.figures.not_kept(Cause::TimeOver, 1.0));
    }

    /// Returns the candidates for the races of these cases, computed on all CPUs while the team sleeps; cases for which no time is left
    /// are missing.
    fn fields(
        &self,
        raced: &Raced,
        cases: &[Case],
        of: &(dyn Fn(&Question, &lineweave_core::select::Choice) -> Field + Sync),
    ) -> Result<Vec<Field>, CliError> {
        let questions = cases.iter().map(|&(collective, bytes)| {
            let moves = collective.moves_data();
            let attach = raced.reach && moves && self.tuning.attaches(self.settings.attach, bytes);
            let direct = attach || raced.team == Team::Threads;
            Question { attach, ..question(&raced.config, collective, bytes, direct) }
        });
        // The longest messages come first: they take longest.
        let mut open: Vec<(usize, Question)> = questions.enumerate().collect();
        open.sort_by_key(|(_, question)| question.bytes);
        let (open, found) = (Mutex::new(open), Mutex::new(BTreeMap::new()));
        let next = || match self.time.is_over() {
            true => None,
            false => open.lock().unwrap_or_else(PoisonError::into_inner).pop(),
        };
        std::thread::scope(|scope| {
            for _ in 0..self.node.usable.effective.max(1) {
                scope.spawn(|| {
                    while let Some((i, question)) = next() {
                        let field =
                            select(&self.tuning.model, &question).map(|choice| of(&question, &choice));
                        found.lock().unwrap_or_else(PoisonError::into_inner).insert(i, field);
                    }
                });
            }
        });
        let found = found.into_inner().unwrap_or_else(PoisonError::into_inner);
        Ok(found.into_values().collect::<Result<Vec<Field>, SelectError>>()?)
    }

    /// Races the fields, and keeps the results.
    fn races(
        &mut self,
        fields: Vec<Field>,
        part: f64,
        raced: &mut Raced,
        session: &mut Session,
    ) -> Result<(), CliError> {
        let mut queue: VecDeque<(Field, usize)> = fields.into_iter().map(|field| (field, TRIES)).collect();
        while let Some((field, tries)) = queue.pop_front() {
            let question = field.question().clone();
            let case = (question.collective, question.bytes);
            self.bar.set_message(format!(
                "{} {}, {} {}",
                case.0,
                Bytes(case.1 as u64),
                raced.ranks,
                raced.team
            ));
            let weight = weight(case, raced.ranks) * part;
            // Earlier races keep to their shares, but on a busy machine even the shortest race may take longer than its share.
            if self.time.is_over() {
                self.figures.not_kept(Cause::TimeOver, 1.0);
                self.time.close(weight);
                self.bar.inc(1);
                continue;
            }
            let outcome = gauged(raced, &field, self.time.share(weight), self.exhaustive);
            let moved = matches!(outcome, Ok((_, Some(_))));
            if moved && tries > 1 && !self.time.is_over() {
                queue.push_back((field, tries - 1));
                continue;
            }
            self.time.close(weight);
            self.bar.inc(1);
            let race = match outcome {
                Ok((_, Some(Change { figure, times }))) => {
                    self.figures.not_kept(Cause::Moved(figure), times);
                    continue;
                }
                Ok((Some(race), None)) => race,
                Ok((None, None)) => {
                    self.figures.not_kept(Cause::NobodyRan, 1.0);
                    continue;
                }
                Err(broken @ TrialTeamError::Broken { .. }) => {
                    // A plan that hangs or crashes is a finding; the others are measured on a new team.
                    self.figures.remark(case, raced.ranks, raced.team, &broken);
                    raced.crew = crew(raced.team, raced.config.clone())?;
                    continue;
                }
                Err(e) => return Err(e.into()),
            };
            self.choices.insert(tuned(&question, raced.team, &race));
            raced.won.insert(case, race.best().candidate.clone());
            self.figures.take(&race, &question, raced.ranks > self.node.usable.effective);
            let row = ChoiceObject::of(case, raced.ranks, raced.team, &question, &race);
            session.out.object("choice", &row)?;
            raced.rows.push(row);
        }
        Ok(())
    }
}

/// Runs a race, and returns it with the change of the machine's state before or after it, if there was one: another plan would win in
/// the usual state.
fn gauged(
    raced: &mut Raced,
    field: &Field,
    limit: Duration,
    exhaustive: bool,
) -> Result<(Option<Race>, Option<Change>), TrialTeamError> {
    let start = Instant::now();
    let Raced { crew, pair, usual, .. } = raced;
    let mut changed = |crew: &mut TrialTeam| match usual {
        Some(usual) => usual.read(pair.as_mut().unwrap_or(crew)),
        None => Ok(None),
    };
    let before = changed(crew)?;
    let race = race(crew, field, &rules(limit.saturating_sub(start.elapsed()), exhaustive))?;
    Ok((race, before.or(changed(crew)?)))
}

/// Returns the fastest of a race, in the form that programs look up.
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
        simulated: false,
    }
}
