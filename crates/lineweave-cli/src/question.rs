//! The question that a plan is wanted for, by arguments: shared by the commands that make or choose a plan.

use crate::error::CliError;
use crate::machines;
use crate::session::{Costs, Session};
use crate::size::Size;
use clap::builder::{PossibleValue, StringValueParser, TypedValueParser};
use clap::Args;
use lineweave::segment::MAX_RANKS;
use lineweave::ElementType;
use lineweave_core::algorithm::{self, spec::Spec};
use lineweave_core::collective::Collective;
use lineweave_core::plan::{Plan, Uneven};
use lineweave_core::select::Question;
use lineweave_core::topology::{Placement, Shape, Topology};
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::path::Path;
use std::sync::Arc;

/// The placement of ranks on hardware threads.
#[derive(Args, Clone, Copy, Debug, Default)]
pub struct Place {
    /// Where cores have several hardware threads: thread fills core after core, as a team that runs is bound; core gives each rank a
    /// core as long as there are any
    #[arg(long, value_name = "core|thread", default_value_t = Placement::Thread)]
    pub place: Placement,
}

/// Ranks, root, elements and reach.
#[derive(Args, Clone, Debug, Default)]
pub struct Where {
    /// Number of ranks [default: the CPUs of the topology]
    #[arg(long, short = 'n', value_name = "N")]
    pub ranks: Option<usize>,
    /// The root of a bcast, reduce, gather or scatter [default: 0]
    #[arg(long, value_name = "RANK")]
    pub root: Option<usize>,
    /// Type of the elements that are combined, such as f32 [default: the longest of f64, f32, f16 and u8 that
    /// divides the message]
    #[arg(long, value_name = "TYPE")]
    pub elements: Option<ElementType>,
    /// Ranks reach each other's private buffers, as threads do
    #[arg(long)]
    pub direct: bool,
    /// Lengths of blocks that differ: one for each rank, for alltoall one for each pair of ranks, giver by giver
    #[arg(long, value_name = "SIZE,..", value_delimiter = ',', conflicts_with = "bytes")]
    pub counts: Vec<Size>,
    /// Placement.
    #[command(flatten)]
    pub on: Place,
}

/// Returns a parser of collectives.
pub fn collective() -> impl TypedValueParser<Value = Collective> {
    let parser = StringValueParser::new().try_map(|name| name.parse::<Collective>());
    Known { parser, names: || Collective::ALL.map(|collective| collective.to_string()).to_vec() }
}

/// Returns a parser of algorithms, which keeps the text.
pub fn algorithm() -> impl TypedValueParser<Value = String> {
    let names = || {
        let names: BTreeSet<&str> = algorithm::all().map(|algorithm| algorithm.name).collect();
        names.into_iter().map(str::to_owned).collect()
    };
    Known { parser: StringValueParser::new(), names }
}

/// Returns a parser of machines, by name or file.
pub fn machine() -> impl TypedValueParser<Value = String> {
    Known { parser: StringValueParser::new(), names: machines::names }
}

/// A parser of values with known names, which shells complete.
#[derive(Clone)]
struct Known<P> {
    parser: P,
    names: fn() -> Vec<String>,
}

impl<P: TypedValueParser> TypedValueParser for Known<P> {
    type Value = P::Value;

    fn parse_ref(
        &self,
        command: &clap::Command,
        argument: Option<&clap::Arg>,
        value: &OsStr,
    ) -> Result<P::Value, clap::Error> {
        self.parser.parse_ref(command, argument, value)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        // The names are leaked: this process only prints them, in a shell's script or an error.
        Some(Box::new((self.names)().into_iter().map(|name| PossibleValue::new(&*name.leak()))))
    }
}

/// One parameter of an algorithm: `k=4`.
#[derive(Clone, Debug)]
pub struct Param {
    name: String,
    value: String,
}

/// Reads `name=value`.
pub fn param(text: &str) -> Result<Param, String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() && !value.is_empty() => {
            Ok(Param { name: name.to_owned(), value: value.to_owned() })
        }
        _ => Err("expected name=value, such as k=4; `lineweave list` shows the names".to_owned()),
    }
}

/// Parameters of an algorithm, and a message. Collective and algorithm are the command's own arguments.
#[derive(Args, Clone, Debug)]
pub struct Wanted {
    /// Length of the message, or of one block where ranks exchange blocks: bytes, or with KiB, MiB, GiB
    #[arg(long, short, value_name = "SIZE")]
    pub bytes: Option<Size>,
    /// A parameter of the algorithm; may be repeated
    #[arg(long = "param", short, value_name = "NAME=VALUE", value_parser = param, requires = "algorithm")]
    pub params: Vec<Param>,
    /// Ranks and the rest.
    #[command(flatten)]
    pub place: Where,
}

impl Where {
    /// Returns the longest of the blocks whose lengths are given.
    pub fn longest(&self) -> Option<Size> {
        self.counts.iter().copied().max()
    }

    /// Returns the question about this many bytes on this topology. Warns about arguments that have no effect on the collective.
    pub fn question(
        &self,
        session: &Session,
        collective: Collective,
        bytes: usize,
        topology: &Topology,
        box_bytes: usize,
    ) -> Result<Question, CliError> {
        let idle = |given: bool, option: &str, why: &str| {
            if given {
                session.out.warn(&format!("{option} has no effect: a {collective} {why}"));
            }
        };
        idle(self.root.is_some() && !collective.rooted(), "--root", "has no root");
        idle(self.elements.is_some() && !collective.folds(), "--elements", "combines nothing");
        idle(self.direct && !collective.moves_data(), "--direct", "moves no data");
        idle(bytes > 0 && !collective.moves_data(), "--bytes", "moves no data");
        idle(!self.counts.is_empty() && !collective.has_blocks(), "--counts", "has no blocks");
        let bytes = if collective.moves_data() { bytes } else { 0 };
        let counts: Vec<usize> = match collective.has_blocks() {
            true => self.counts.iter().map(|size| size.0).collect(),
            false => Vec::new(),
        };
        let ranks = self.ranks.unwrap_or_else(|| topology.cpus.len().max(1));
        if ranks > MAX_RANKS {
            return Err(CliError::TeamTooLarge { ranks, most: MAX_RANKS });
        }
        let grain = match self.elements {
            Some(elements) if collective.folds() => elements.size(),
            _ => grain(collective, &[&counts[..], &[bytes]].concat()),
        };
        Ok(Question {
            shape: Shape::place(ranks, &topology.clone().placed(self.on.place)),
            root: if collective.rooted() { self.root.unwrap_or(0) } else { 0 },
            uneven: match (counts.is_empty(), collective) {
                (true, _) => None,
                (false, Collective::Alltoall) => Some(Arc::new(Uneven::by_pair(ranks, counts.clone()))),
                (false, _) => Some(Arc::new(Uneven::by_rank(counts.clone()))),
            },
            direct: self.direct && collective.moves_data(),
            box_bytes,
            ..Question::flat(collective, ranks, bytes, grain)
        })
    }
}

impl Wanted {
    /// Returns the length of the message.
    pub fn bytes(&self, collective: Collective) -> Result<usize, CliError> {
        length(self.bytes.or(self.place.longest()), collective, CliError::NoBytes)
    }

    /// Returns the plan of the named algorithm, or of the chosen one (its first window, where the message goes in several).
    pub fn plan(
        &self,
        session: &mut Session,
        collective: Collective,
        algorithm: Option<&str>,
    ) -> Result<Plan, CliError> {
        let settings = session.settings_warned()?;
        if let Some(written) = algorithm {
            // An unknown name is reported before a missing length.
            let given = given(collective, written, &self.params)?;
            let algorithm = algorithm::find_to_look_at(collective, &given.name)?;
            let bytes = self.bytes(collective)?;
            let topology = session.topology()?;
            let question = self.place.question(session, collective, bytes, &topology, settings.box_bytes)?;
            let window = given.window.map_or(question.bytes, |window| window.min(question.bytes));
            let make = || algorithm.plan(&question.window(window), &given.params);
            return Ok(session.out.while_slow(&question, make)?);
        }
        let Costs { tuning, topology, .. } = session.costs()?;
        let bytes = self.bytes(collective)?;
        let question = self.place.question(session, collective, bytes, &topology, settings.box_bytes)?;
        let choose = || tuning.choose(&question, team(question.direct));
        let chosen = session.out.while_slow(&question, choose)?;
        if chosen.window < question.bytes {
            session.out.warn(&format!(
                "the message goes in windows of {} bytes; this is the plan of one window",
                chosen.window
            ));
        }
        let make = || chosen.plan(&question, chosen.window.min(question.bytes));
        Ok(session.out.while_slow(&question, make)?)
    }
}

/// Returns the length that is given, 0 for a collective that moves no data, or the error `missing`.
pub fn length(
    given: Option<Size>,
    collective: Collective,
    missing: fn(Collective) -> CliError,
) -> Result<usize, CliError> {
    match given {
        Some(size) => Ok(size.0),
        None if collective.moves_data() => Err(missing(collective)),
        None => Ok(0),
    }
}

/// Reads an algorithm as it is printed, with or without its collective, and adds or changes the parameters in `more`.
pub fn given(collective: Collective, written: &str, more: &[Param]) -> Result<Spec, CliError> {
    let own = written.strip_prefix(&format!("{collective}/")).unwrap_or(written);
    let mut spec: Spec =
        own.parse().map_err(|found| CliError::Written { written: written.to_owned(), found })?;
    spec.params = more.iter().fold(spec.params, |params, p| params.with(&p.name, &p.value));
    Ok(spec)
}

/// Returns the length of the longest elements that these lengths consist of, 1 where nothing is combined.
pub fn grain(collective: Collective, lengths: &[usize]) -> usize {
    let divides = |grain: &usize| collective.folds() && lengths.iter().all(|n| n.is_multiple_of(*grain));
    [8, 4, 2].into_iter().find(divides).unwrap_or(1)
}

/// Returns the kind of team whose ranks have this access to each other, as measured choices name it.
pub fn team(direct: bool) -> &'static str {
    match direct {
        true => "threads",
        false => "processes",
    }
}

/// Reads a plan's text from a file, or from standard input for `-`.
pub fn read_plan(file: &Path) -> Result<Plan, CliError> {
    const WHAT: &str = "plan";
    let text = match file.as_os_str() == "-" {
        true => lineweave::sysfile::text_of(std::io::stdin()),
        false => lineweave::sysfile::text(file),
    };
    let text = text.map_err(|e| CliError::read(file, WHAT, e))?;
    text.parse().map_err(|e| CliError::malformed(file, WHAT, e))
}
