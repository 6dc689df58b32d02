//! `lineweave verify`: proofs of plans, or counter-examples.

mod sweep;

use crate::error::CliError;
use crate::question::{given, length, param, read_plan, Param, Where};
use crate::session::Session;
use crate::size::Size;
use lineweave_core::algorithm::spec::Spec;
use lineweave_core::algorithm::{self, Algorithm};
use lineweave_core::collective::Collective;
use lineweave_core::plan::Plan;
use lineweave_core::verify::mutate::{judge, mutants, Mutant, Verdict};
use lineweave_core::verify::{verify, Proof};
use serde::Serialize;
use std::path::Path;

/// Most ranks of a sweep, by default.
const RANKS: usize = 64;
/// Most ranks of a sweep when plans are also mutated, by default: judging mutants that pass takes long.
const RANKS_CHANGED: usize = 8;

/// Arguments of `lineweave verify`.
#[derive(clap::Args, Debug)]
pub struct Arguments {
    /// A plan's file (`-` for standard input), a collective, or COLLECTIVE/ALGORITHM [default: every algorithm]
    #[arg(value_name = "PLAN|COLLECTIVE[/ALGORITHM]")]
    target: Option<String>,
    /// Every algorithm
    #[arg(long, conflicts_with = "target")]
    all: bool,
    /// Every number of ranks from 1 to this [default: 64; 8 with --mutate]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024), conflicts_with = "ranks")]
    max_ranks: Option<u16>,
    /// Every root with every size, instead of each at least once
    #[arg(long)]
    full: bool,
    /// Change the plans (of a sweep: those of at most 1 KiB, in places spread over each) in every way that breaks
    /// them, and count how many changes are caught
    #[arg(long)]
    mutate: bool,
    /// Length of the message, for a single plan of COLLECTIVE/ALGORITHM with --ranks
    #[arg(long, short, value_name = "SIZE", requires = "ranks")]
    bytes: Option<Size>,
    /// A parameter of the algorithm; may be repeated
    #[arg(long = "param", short, value_name = "NAME=VALUE", value_parser = param, requires = "ranks")]
    params: Vec<Param>,
    #[command(flatten)]
    place: Where,
}

/// The plan or the algorithms that are verified.
enum Target {
    /// One plan.
    Plan(Plan),
    /// Algorithms, for every number of ranks.
    Sweep(Vec<&'static Algorithm>),
}

/// The totals of the command. Printed as `verify` by `lineweave verify`, last.
#[derive(Serialize, Default, Clone, Debug)]
struct Totals {
    plans: usize,
    violations: usize,
    /// Present only with `--mutate`.
    #[serde(flatten)]
    changed: Option<Changed>,
}

/// A counter-example. Printed as `violation` by `lineweave verify`: at most 20 of a sweep, smallest first.
#[derive(Serialize, Clone, Debug)]
struct Violation {
    plan: String,
    /// The rank and op, what was expected there and what is there.
    violation: String,
}

/// The proof of a single plan. Printed as `proof` by `lineweave verify`.
#[derive(Serialize)]
struct ProofObject {
    plan: String,
    ranks: usize,
    bytes: usize,
    ops: usize,
    /// Rounds: signals on the longest chain.
    depth: u32,
    /// True if no rank returns before every rank has entered.
    synchronizing: bool,
    /// True if it is also correct when `in` and `out` are one buffer.
    in_place: bool,
    /// True if contributions are combined from rank 0 to P - 1.
    rank_order: bool,
    /// Fingerprint of the order and brackets in which they are combined.
    result_hash: String,
}

/// Numbers of mutants by their verdict.
#[derive(Serialize, Clone, Copy, Default, Debug)]
struct Changed {
    mutants: usize,
    /// Mutants that were refuted or told apart.
    caught: usize,
    /// Mutants that are equivalent, which is proved.
    harmless: usize,
    /// The others, each of which is a bug of the checker.
    missed: usize,
}

impl Changed {
    /// Judges one mutant of a proven plan, and passes its name to `missed` if the checker lets it pass.
    fn judge(&mut self, plan: &Plan, proof: &Proof, mutant: &Mutant, missed: &mut dyn FnMut(String)) {
        self.mutants += 1;
        match judge(plan, proof, mutant) {
            Verdict::Caught(_) => self.caught += 1,
            Verdict::Harmless => self.harmless += 1,
            Verdict::Missed => {
                self.missed += 1;
                let Mutant { change, rank, op, text, .. } = mutant;
                missed(format!("{change:?} at rank {rank} op {op} `{text}`"));
            }
        }
    }

    fn add(&mut self, other: Changed) {
        self.mutants += other.mutants;
        self.caught += other.caught;
        self.harmless += other.harmless;
        self.missed += other.missed;
    }
}

impl Totals {
    /// Prints the totals last, and fails if a plan was refuted or a mutant missed.
    fn conclude(&self, session: &mut Session) -> Result<(), CliError> {
        session.out.object("verify", self)?;
        session.out.line(&format!("verified: {} plans, {} violations", self.plans, self.violations))?;
        if let Some(Changed { mutants, caught, harmless, missed }) = self.changed {
            session.out.line(&format!(
                "mutations: {} that break a plan, {caught} caught, {missed} missed; {harmless} more are harmless",
                mutants - harmless
            ))?;
        }
        let Changed { mutants, missed, .. } = self.changed.unwrap_or_default();
        match (self.violations, missed) {
            (0, 0) => Ok(()),
            (0, missed) => Err(CliError::Missed { mutants, missed }),
            (violations, _) => Err(CliError::Refuted { plans: self.plans, violations }),
        }
    }
}

/// Verifies the target.
pub fn run(arguments: &Arguments, session: &mut Session) -> Result<(), CliError> {
    let most = match arguments.mutate {
        true => RANKS_CHANGED,
        false => RANKS,
    };
    match target(arguments, session)? {
        Target::Plan(plan) => {
            let idle = [(arguments.max_ranks.is_some(), "--max-ranks"), (arguments.full, "--full")];
            for (_, option) in idle.into_iter().filter(|(given, _)| *given) {
                session.out.warn(&format!("{option} has no effect on a single plan"));
            }
            single(&plan, arguments.mutate, session)
        }
        Target::Sweep(algorithms) => {
            let ranks = arguments.max_ranks.map_or(most, usize::from);
            let totals = sweep::run(&algorithms, ranks, arguments.full, arguments.mutate, session)?;
            totals.conclude(session)
        }
    }
}

/// An algorithm, and the text that it was given by.
type Written = (&'static Algorithm, Spec);

/// Returns the collective and the algorithm that a name means, or `None` if it means neither.
fn named(name: &str, params: &[Param]) -> Option<Result<(Collective, Option<Written>), CliError>> {
    let (collective, algorithm) = match name.split_once('/') {
        Some((collective, algorithm)) => (collective, Some(algorithm)),
        None => (name, None),
    };
    let collective: Collective = collective.parse().ok()?;
    let written = |name: &str| {
        let spec = given(collective, name, params)?;
        Ok((algorithm::find_to_look_at(collective, &spec.name)?, spec))
    };
    Some(algorithm.map(written).transpose().map(|written| (collective, written)))
}

fn target(arguments: &Arguments, session: &mut Session) -> Result<Target, CliError> {
    let Some(name) = &arguments.target else {
        return many(arguments, algorithm::all().collect(), session);
    };
    let path = Path::new(name);
    match named(name, &arguments.params) {
        Some(found) if !path.exists() => match found? {
            (collective, None) => many(arguments, algorithm::table(collective).to_vec(), session),
            (_, Some((algorithm, spec))) if arguments.place.ranks.is_none() => {
                if spec != Spec::named(&spec.name) {
                    session.out.warn(
                        "parameters and windows have no effect on a sweep over all sizes: give --ranks",
                    );
                }
                many(arguments, vec![algorithm], session)
            }
            (collective, Some(written)) => one(arguments, collective, &written, session).map(Target::Plan),
        },
        _ if name == "-" || path.exists() || name.contains('.') => {
            unused(arguments, "a plan's file", session);
            read_plan(path).map(Target::Plan)
        }
        _ => {
            let reason = match name.split('/').next().unwrap_or(name).parse::<Collective>() {
                Err(e) => e.to_string(),
                Ok(_) => "no such file".to_owned(),
            };
            Err(CliError::NoTarget { found: name.clone(), reason })
        }
    }
}

/// Verifies several algorithms, or every size of one: arguments for a single plan have no effect.
fn many(
    arguments: &Arguments,
    algorithms: Vec<&'static Algorithm>,
    session: &Session,
) -> Result<Target, CliError> {
    unused(arguments, "a sweep over all sizes and roots", session);
    Ok(Target::Sweep(algorithms))
}

fn unused(arguments: &Arguments, on: &str, session: &Session) {
    let place = &arguments.place;
    let given = [
        (place.ranks.is_some(), "--ranks"),
        (place.root.is_some(), "--root"),
        (place.elements.is_some(), "--elements"),
        (place.direct, "--direct"),
        (!place.counts.is_empty(), "--counts"),
        (arguments.bytes.is_some(), "--bytes"),
        (!arguments.params.is_empty(), "--param"),
    ];
    for (_, option) in given.into_iter().filter(|(given, _)| *given) {
        session.out.warn(&format!("{option} has no effect on {on}"));
    }
}

fn one(
    arguments: &Arguments,
    collective: Collective,
    (algorithm, spec): &Written,
    session: &mut Session,
) -> Result<Plan, CliError> {
    let bytes = length(arguments.bytes.or(arguments.place.longest()), collective, CliError::NoBytes)?;
    let topology = session.topology()?;
    let question = arguments.place.question(session, collective, bytes, &topology, usize::MAX)?;
    let window = spec.window.map_or(question.bytes, |window| window.min(question.bytes));
    Ok(algorithm.plan(&question.window(window), &spec.params)?)
}

/// Verifies one plan and prints the facts of its proof.
fn single(plan: &Plan, mutate: bool, session: &mut Session) -> Result<(), CliError> {
    let name = super::plan::headline(plan);
    let totals = Totals { plans: 1, ..Totals::default() };
    let proof = match verify(plan) {
        Ok(proof) => proof,
        Err(violation) => {
            let found = Violation { plan: name, violation: violation.to_string() };
            found.print(session)?;
            return Totals { violations: 1, ..totals }.conclude(session);
        }
    };
    let yes = |b: bool| if b { "yes" } else { "no" };
    session.out.text(&format!(
        "proved: {name}\n  ops {}, rounds {}\n  returns only after all have entered: {}\n  correct in place: {}\n  \
         combines in rank order: {}\n  association {:016x}\n",
        proof.ops,
        proof.depth,
        yes(proof.synchronizing),
        yes(proof.in_place),
        yes(proof.rank_order),
        proof.result_hash
    ))?;
    let object = ProofObject {
        plan: name,
        ranks: plan.ranks,
        bytes: plan.bytes,
        ops: proof.ops,
        depth: proof.depth,
        synchronizing: proof.synchronizing,
        in_place: proof.in_place,
        rank_order: proof.rank_order,
        result_hash: format!("{:016x}", proof.result_hash),
    };
    session.out.object("proof", &object)?;
    let changed = mutate.then(|| all_mutants(plan, &proof, session));
    Totals { changed, ..totals }.conclude(session)
}

/// Judges every mutant of a plan.
fn all_mutants(plan: &Plan, proof: &Proof, session: &Session) -> Changed {
    let bar = session.out.progress_of_work(mutants(plan).count() as u64);
    let mut counts = Changed::default();
    for mutant in mutants(plan) {
        counts.judge(plan, proof, &mutant, &mut |missed| session.out.warn(&format!("missed: {missed}")));
        bar.inc(1);
    }
    bar.finish_and_clear();
    counts
}

impl Violation {
    fn print(&self, session: &mut Session) -> Result<(), CliError> {
        session.out.object("violation", self)?;
        session.out.line(&format!("refuted: {}\n  {}", self.plan, self.violation.replace('\n', "\n  ")))
    }
}
