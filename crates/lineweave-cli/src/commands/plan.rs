//! `lineweave plan`: a plan as text.

use crate::error::CliError;
use crate::output::table;
use crate::question::{algorithm, collective, Wanted};
use crate::session::Session;
use lineweave_core::algorithm::Algorithm;
use lineweave_core::collective::Collective;
use lineweave_core::plan::{move_verb, Carry, Footprint, Op, Plan};
use lineweave_core::units::{Bytes, LINE};
use serde::Serialize;
use std::collections::BTreeMap;

/// Arguments of `lineweave plan`.
#[derive(clap::Args, Debug)]
pub struct Arguments {
    /// barrier, bcast, reduce, allreduce, gather, scatter, allgather, reduce-scatter, scan, exscan or alltoall
    #[arg(value_parser = collective(), hide_possible_values = true)]
    collective: Collective,
    /// The algorithm: a name of `lineweave list`, or as it is printed, with parameters and window [default: the one that would be chosen]
    #[arg(value_parser = algorithm(), hide_possible_values = true)]
    algorithm: Option<String>,
    #[command(flatten)]
    wanted: Wanted,
    /// Show numbers of ops and memory instead of the ops themselves
    #[arg(long)]
    stats: bool,
}

/// A plan. Printed as `plan` by `lineweave plan`.
#[derive(Serialize)]
struct Object<'a> {
    collective: Collective,
    algorithm: &'a str,
    params: &'a BTreeMap<String, String>,
    ranks: usize,
    root: usize,
    /// Length of one window, where the message goes in several.
    bytes: usize,
    /// Size of an element.
    grain_bytes: usize,
    /// True if ranks reach each other's private buffers.
    direct: bool,
    #[serde(flatten)]
    stats: &'a Stats,
    /// The text form; left out with `--stats`.
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<&'a str>,
}

/// The numbers of ops, flags and bytes of a plan.
#[derive(Serialize)]
struct Stats {
    ops: usize,
    ops_of_busiest_rank: usize,
    ops_by_kind: BTreeMap<&'static str, usize>,
    /// Bytes that all ranks copy.
    moved_bytes: usize,
    /// Bytes on the lines of flags.
    carried_bytes: usize,
    folded_bytes: usize,
    flag_bytes_per_rank: usize,
    /// Flags and slots.
    box_bytes_per_rank: usize,
    scratch_bytes_per_rank: usize,
}

impl Stats {
    fn of(plan: &Plan) -> Stats {
        let mut ops_by_kind: BTreeMap<&'static str, usize> = BTreeMap::new();
        let (mut moved_bytes, mut carried_bytes, mut folded_bytes) = (0, 0, 0);
        for (_, op) in plan.ops() {
            let kind = match op {
                Op::Move { src, dst } => {
                    moved_bytes += src.len;
                    move_verb(src.space, dst.space)
                }
                Op::Fold { dst, .. } => {
                    folded_bytes += dst.len;
                    "fold"
                }
                Op::Set { carry, .. } => {
                    carried_bytes += match carry {
                        Some(Carry::Bytes(region)) => region.len,
                        Some(Carry::Address(_)) | None => 0,
                    };
                    "set"
                }
                Op::Wait { .. } => "wait",
                Op::Add { .. } => "add",
            };
            *ops_by_kind.entry(kind).or_default() += 1;
        }
        let footprint = Footprint::of(plan, LINE);
        Stats {
            ops: plan.ops().count(),
            ops_of_busiest_rank: plan.programs.iter().map(Vec::len).max().unwrap_or(0),
            ops_by_kind,
            moved_bytes,
            carried_bytes,
            folded_bytes,
            flag_bytes_per_rank: footprint.flag_bytes(),
            box_bytes_per_rank: footprint.total(),
            scratch_bytes_per_rank: plan.acc,
        }
    }
}

/// Prints the plan.
pub fn run(arguments: &Arguments, session: &mut Session) -> Result<(), CliError> {
    let collective = arguments.collective;
    let plan = arguments.wanted.plan(session, collective, arguments.algorithm.as_deref())?;
    let stats = Stats::of(&plan);
    let text = (!arguments.stats).then(|| plan.to_string());
    let object = Object {
        collective,
        algorithm: &plan.algorithm,
        params: &plan.params.0,
        ranks: plan.ranks,
        root: plan.root.index(),
        bytes: plan.bytes,
        grain_bytes: plan.grain,
        direct: plan.direct,
        stats: &stats,
        text: text.as_deref(),
    };
    session.out.object("plan", &object)?;
    if let Some(text) = text {
        return session.out.text(&text);
    }
    session.out.line(&headline(&plan))?;
    let mut rows = table(&["what", "all ranks", "busiest rank"], &[1, 2]);
    rows.add_row(["ops".to_owned(), stats.ops.to_string(), stats.ops_of_busiest_rank.to_string()]);
    for (kind, count) in &stats.ops_by_kind {
        rows.add_row([format!("  {kind}"), count.to_string(), String::new()]);
    }
    let bytes = |b: usize| Bytes(b as u64).to_string();
    rows.add_row(["moved".to_owned(), bytes(stats.moved_bytes), String::new()]);
    rows.add_row(["carried by flags".to_owned(), bytes(stats.carried_bytes), String::new()]);
    rows.add_row(["folded".to_owned(), bytes(stats.folded_bytes), String::new()]);
    session.out.table(&rows)?;
    session.out.line(&format!(
        "at each rank: {} of flags, {} of flags and slots, {} of scratch",
        bytes(stats.flag_bytes_per_rank),
        bytes(stats.box_bytes_per_rank),
        bytes(stats.scratch_bytes_per_rank)
    ))
}

/// Returns a summary of a plan in one line.
pub fn headline(plan: &Plan) -> String {
    let mut line = format!("{} {}", plan.name(), plan.params).trim_end().to_owned();
    line += &format!(": {} ranks", plan.ranks);
    if plan.collective.rooted() {
        line += &format!(", root {}", plan.root);
    }
    if plan.collective.moves_data() {
        line += &format!(", {}", Bytes(plan.bytes as u64));
    }
    line
}

/// Returns an algorithm's full name.
pub fn full_name(algorithm: &Algorithm) -> String {
    format!("{}/{}", algorithm.collective, algorithm.name)
}
