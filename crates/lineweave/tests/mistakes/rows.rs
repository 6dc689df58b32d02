//! The algorithms of the table, each with every value of its parameters that changes flags, counters, homes or layout: the rows of the
//! matrix. Parameters whose plans differ in lengths alone give one row.

use crate::plan::Reach;
use lineweave::settings::Forced;
use lineweave::Collective;
use lineweave_core::algorithm::{self, Algorithm, Problem};
use lineweave_core::plan::{Blocks, Carry, Op, Params, Plan, Space, Take};
use lineweave_core::topology::Shape;
use std::collections::hash_map::DefaultHasher;
use std::collections::HashMap;
use std::hash::{Hash, Hasher};

/// Bytes of an element.
pub const ELEMENT: usize = 4;
/// Messages that fit a flag's line, and that do not.
const SIZES: [usize; 2] = [16, 1024];
/// A message that may go by cross-memory attach.
const ATTACHED: usize = 32 << 10;
/// Of a message of the longer kind: makes a pipeline of it.
const CHUNK: &str = "256";

/// Values of each parameter, beside those that are worth choosing; none where all that change more than lengths are among these. A parameter of
/// the table that is missing here fails the test, so that a new one is thought of.
const VALUES: [(&str, &[&str]); 39] = [
    ("ack", &["flags", "counter", "2"]),
    ("ahead", &["1", "2"]),
    ("bcast", &["binomial", "flat"]),
    ("buffers", &["parent", "child"]),
    ("carry", &["0", "1", "2"]),
    ("chunk", &["0", CHUNK]),
    ("columns", &["0", "1", "2"]),
    ("cores", &["1", "2"]),
    ("costs", &[]),
    ("degrees", &["1,1,1,1", "2,2", "3,1"]),
    ("down", &["auto"]),
    ("edges", &[]),
    ("flags", &["one", "each"]),
    ("fold", &["each", "last"]),
    ("g", &["2", "3"]),
    ("gather", &["pull", "ring"]),
    ("home", &["own", "root", "poller", "setter", "node1"]),
    ("k", &["2", "3"]),
    ("layout", &["packed", "paired", "alone", "spread2"]),
    ("leaf", &["box", "direct"]),
    ("level", &["core", "numa", "package"]),
    ("levels", &["auto"]),
    ("m", &["1", "2"]),
    ("method", &["short", "long", "doubling", "ring"]),
    ("move", &["push", "pull"]),
    ("notify", &["each", "shared", "binary"]),
    ("order", &["chain", "tree"]),
    ("ratio", &["0.5", "0.9"]),
    ("reduce", &["binomial", "flat"]),
    ("release", &["tree", "shared", "kary", "counter", "flag", "each"]),
    ("root", &["0", "1"]),
    ("share", &["auto", "60"]),
    ("siblings", &["3"]),
    ("slots", &["1", "2", "3"]),
    ("source", &["parent", "root"]),
    ("tree", &["star", "chain", "binary", "two-phase"]),
    ("unit", &[]),
    ("unset", &["yes", "no"]),
    ("via", &["pull", "push"]),
];

/// An algorithm with parameters, and lengths for which it has plans.
#[derive(Clone, Debug)]
pub struct Row {
    pub algorithm: &'static Algorithm,
    pub params: Params,
    /// Bytes of a message, or of a block.
    pub bytes: usize,
    /// Another length.
    pub other_bytes: usize,
    /// The first of its algorithm.
    pub first: bool,
    /// One that follows from algorithm and parameters, and the numbers of all that come to the same plan among so many ranks.
    pub number: usize,
    alike: Vec<usize>,
}

impl Row {
    /// Returns whether the mistake of this number is made among so many ranks. Each row makes each among one number of ranks: together with
    /// those that are alike there.
    pub fn turns(&self, mistake: usize, ranks: usize) -> bool {
        self.alike.iter().any(|number| (number + mistake) % 4 + 2 == ranks)
    }

    pub fn forced(&self) -> Forced {
        let Row { algorithm, params, .. } = self;
        let (collective, algorithm) = (algorithm.collective, algorithm.name.to_owned());
        Forced { collective, algorithm, params: params.clone(), window: None }
    }
}

/// The rows of a collective for ranks that sit so, and reach each other so.
pub fn rows(collective: Collective, shape: &Shape, reach: Reach) -> Vec<Row> {
    let direct = reach != Reach::Processes;
    let (mut rows, mut seen): (Vec<Row>, HashMap<u64, usize>) = Default::default();
    for algorithm in algorithm::table(collective) {
        let sizes = match reach {
            _ if !collective.moves_data() => &[0],
            Reach::Attach => &[ATTACHED][..],
            Reach::Threads | Reach::Processes => &SIZES,
        };
        for &bytes in sizes {
            let problem = |bytes| Problem {
                shape: shape.clone(),
                blocks: Blocks::Dense,
                grain: if collective.folds() { ELEMENT } else { 1 },
                direct,
                ..Problem::flat(collective, shape.ranks(), bytes)
            };
            let plan = |bytes: usize, params: &Params| {
                algorithm.plan(&problem(bytes), params).ok().filter(|plan| match reach {
                    Reach::Threads => true,
                    Reach::Processes => !plan.direct,
                    Reach::Attach => plan.direct,
                })
            };
            for params in variants(algorithm, &problem(bytes)) {
                let Some(made) = plan(bytes, &params) else { continue };
                // Plans of several algorithms are the same among few ranks.
                let first = rows.last().is_none_or(|row| row.algorithm.name != algorithm.name);
                let number = number_of(algorithm, &params, bytes);
                let known = *seen.entry(mechanism(&made)).or_insert(rows.len());
                if known < rows.len() {
                    rows[known].alike.push(number);
                    if !first {
                        continue;
                    }
                }
                let turn = rows.len();
                let others = [bytes * 2, bytes / 2, bytes + ELEMENT, bytes * 64, bytes - bytes.min(ELEMENT)];
                let mut others = (0..others.len()).map(|i| others[(turn + i) % others.len()]);
                let other_bytes = others.find(|&n| n > 0 && n != bytes && plan(n, &params).is_some());
                let other_bytes = match other_bytes {
                    None if collective.moves_data() => panic!("{algorithm:?} {params} has one length"),
                    other => other.unwrap_or(0),
                };
                rows.push(Row { algorithm, params, bytes, other_bytes, first, number, alike: vec![number] });
            }
        }
    }
    rows
}

/// What is worth choosing, with each parameter also at every other value.
fn variants(algorithm: &'static Algorithm, problem: &Problem) -> Vec<Params> {
    let mut bases = vec![Params::new()];
    if algorithm.params.iter().any(|p| p.name == "chunk") {
        bases.push(Params::new().with("chunk", CHUNK));
    }
    let values = |name: &str| {
        let known = VALUES.iter().find(|(known, _)| *known == name);
        known
            .unwrap_or_else(|| panic!("{algorithm:?} has a parameter `{name}`: say which values in rows.rs"))
            .1
    };
    let mut all = bases.clone();
    all.extend(algorithm.trials(problem));
    // Every algorithm has a home.
    let names = algorithm.params.iter().map(|p| p.name).chain(["home"]);
    for name in names {
        for base in &bases {
            all.extend(values(name).iter().map(|value| base.clone().with(name, value)));
        }
    }
    all
}

/// A number that is the same in every team.
fn number_of(algorithm: &Algorithm, params: &Params, bytes: usize) -> usize {
    let mut hasher = DefaultHasher::new();
    (algorithm.name, params, bytes).hash(&mut hasher);
    (hasher.finish() >> 16) as usize % (1 << 20)
}

/// A number that differs for plans that differ in more than lengths.
fn mechanism(plan: &Plan) -> u64 {
    let mut hasher = DefaultHasher::new();
    (plan.slots.len(), plan.reuse, plan.direct, plan.span()).hash(&mut hasher);
    for array in &plan.flags {
        (array.kind, array.layout, array.count).hash(&mut hasher);
    }
    for ops in &plan.programs {
        ops.len().hash(&mut hasher);
        for op in ops {
            match *op {
                Op::Move { src, dst } => (0, src.space, dst.space).hash(&mut hasher),
                Op::Fold { a, b, dst } => (1, a.space, b.space, dst.space).hash(&mut hasher),
                Op::Set { flag, value, carry } => {
                    let carried = carry.map(|carry| match carry {
                        Carry::Bytes(region) => (false, region.space),
                        Carry::Address(space) => (true, space),
                    });
                    (2, flag, value, carried).hash(&mut hasher);
                }
                Op::Wait { flag, value, take } => {
                    let taken: Option<(bool, Space)> = take.map(|take| match take {
                        Take::Bytes(region) => (false, region.space),
                        Take::Address(space) => (true, space),
                    });
                    (3, flag, value, taken).hash(&mut hasher);
                }
                Op::Add { flag } => (4, flag).hash(&mut hasher),
            }
        }
    }
    hasher.finish()
}
