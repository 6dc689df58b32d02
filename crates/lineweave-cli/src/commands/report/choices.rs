//! The choices: the tree of a short broadcast, and a map over ranks and sizes.

use super::subject::{question, Subject};
use super::{Figure, Section};
use crate::calls::{call, posed, Call};
use crate::error::CliError;
use crate::question::team;
use crate::threads::on_all_cpus;
use indicatif::ProgressBar;
use lineweave::tuning::Because;
use lineweave_core::algorithm::spec::Named;
use lineweave_core::collective::Collective;
use lineweave_core::select::SelectError;
use lineweave_core::topology::{Shape, Topology};
use lineweave_core::units::{Bytes, Nanos};
use lineweave_lab::draw;

/// Collectives that are mapped.
const MAPPED: [Collective; 2] = [Collective::Bcast, Collective::Allreduce];
/// Sizes from 8 B to 4 MiB.
const SIZES: [usize; 8] = [8, 64, 512, 2 << 10, 8 << 10, 64 << 10, 512 << 10, 4 << 20];
/// The headings of a table of [`SIZES`].
const HEADINGS: [&str; 9] = ["", "8 B", "64 B", "512 B", "2 KiB", "8 KiB", "64 KiB", "512 KiB", "4 MiB"];
/// Most ranks that are mapped; `lineweave explain` takes more.
const MOST: usize = 64;
/// Number of CPUs below which a table shows the choices of a machine with more such CPUs.
const FEW: usize = 8;
/// Most ranks of the tree.
const TREE: usize = 256;

/// The broadcast of 8 bytes that is chosen for the whole machine.
pub struct Tree {
    /// The algorithm and its parameters.
    pub name: String,
    pub predicted: Nanos,
    pub ranks: usize,
    /// Indices of CPUs in the topology, giver first.
    pub pairs: Vec<(usize, usize)>,
}

/// Returns the algorithm that a call runs on the subject's machine, or `None` where none fits.
pub fn runs(
    subject: &Subject,
    collective: Collective,
    shape: Shape,
    bytes: usize,
    direct: bool,
) -> Result<Result<(Call, String), String>, CliError> {
    let question = posed(question(collective, shape, bytes, direct), &subject.tuning, &subject.settings);
    match call(&subject.tuning, &question, None) {
        Ok(call) => {
            let name = Named::new(call.chosen.algorithm.name, &call.chosen.params);
            let name = name.by(call.chosen.window, bytes).to_string();
            Ok(Ok((call, name)))
        }
        Err(why @ SelectError::NothingFits { .. }) => Ok(Err(why.to_string())),
        Err(other) => Err(other.into()),
    }
}

/// Returns the tree of 8 bytes among a process for each CPU, or the reason why there is none.
pub fn tree(subject: &Subject) -> Result<Result<Tree, String>, CliError> {
    let ranks = subject.topology.cpus.len().clamp(1, TREE);
    let shape = Shape::place(ranks, &subject.topology);
    let (call, name) = match runs(subject, Collective::Bcast, shape.clone(), 8, false)? {
        Ok(found) => found,
        Err(why) => return Ok(Err(why)),
    };
    let at: Vec<usize> = (0..ranks)
        .map(|r| {
            let os = shape.cpu(r.into()).os;
            subject.topology.cpus.iter().position(|c| c.os == os).unwrap_or(0)
        })
        .collect();
    let plan = call.chosen.plan(&question(Collective::Bcast, shape, 8, false), 8)?;
    let pairs = draw::tree(&plan).into_iter().map(|(a, b)| (at[a], at[b])).collect();
    Ok(Ok(Tree { name, predicted: call.predicted, ranks, pairs }))
}

/// Returns the maps: of this machine, and, if it has few CPUs, of one with more such CPUs.
pub fn section(subject: &Subject, bar: &ProgressBar) -> Result<Section, CliError> {
    let mut section = Section::new("map", "What is chosen, by ranks and size");
    let cpus = subject.topology.cpus.len().max(1);
    let most = cpus.min(MOST);
    let mut ranks: Vec<usize> = (1..).map(|i| 1 << i).take_while(|p| *p < most).collect();
    ranks.push(most);
    section.text.push(
        "Each cell is what a call runs on this machine, as `lineweave explain` says it: what was measured to be the fastest where \
         `lineweave tune` tried it, else what is predicted to be. Pointing at a cell shows parameters and times."
            .to_owned(),
    );
    if cpus > MOST {
        section.text.push(format!(
            "Up to {MOST} ranks are shown; `lineweave explain allreduce 8 --ranks {cpus}` takes all CPUs."
        ));
    }
    maps(subject, &subject.topology, &ranks, "", &mut section, bar)?;
    if cpus < FEW {
        let more: Vec<usize> = [2, 4, 8].into_iter().filter(|p| *p > cpus).collect();
        let topology = subject.topology.repeated(FEW);
        section.text.push(format!(
            "This machine has {cpus} CPUs. The second table of each collective is of a machine with more of them, as further packages of \
             the same kind."
        ));
        maps(subject, &topology, &more, " on more CPUs", &mut section, bar)?;
    }
    Ok(section)
}

/// Adds a map and a table for each collective.
fn maps(
    subject: &Subject,
    topology: &Topology,
    ranks: &[usize],
    on: &str,
    section: &mut Section,
    bar: &ProgressBar,
) -> Result<(), CliError> {
    let columns: Vec<String> = SIZES.iter().map(|b| Bytes(*b as u64).to_string()).collect();
    let rows = || [true, false].into_iter().flat_map(|direct| ranks.iter().map(move |&p| (p, direct)));
    let calls: Vec<(Collective, usize, bool, usize)> = MAPPED
        .into_iter()
        .flat_map(|c| rows().flat_map(move |(p, direct)| SIZES.map(|bytes| (c, p, direct, bytes))))
        .collect();
    bar.inc_length(calls.iter().map(|&(_, p, ..)| p as u64).sum());
    let cells = on_all_cpus(&calls, |&(collective, p, direct, bytes)| {
        let cell = cell(subject, collective, Shape::place(p, topology), bytes, direct);
        // A cell takes about as long as it has ranks.
        bar.inc(p as u64);
        cell
    });
    let mut cells = cells.into_iter();
    for collective in MAPPED {
        let mut drawn = Vec::new();
        for (p, direct) in rows() {
            let row = cells.by_ref().take(SIZES.len()).collect::<Result<Vec<_>, _>>()?;
            drawn.push((format!("{p} {}", team(direct)), row));
        }
        let title = format!("{collective}{on}: algorithm by ranks and size");
        let svg = draw::map(&title, &subject.origin, &columns, &drawn);
        let says =
            format!("What {collective} runs{on}, by ranks (rows) and length of the message (columns).");
        section.figures.push(Figure::new(svg, says));
        let table = drawn.iter().map(|(row, cells)| {
            let names = cells.iter().map(|c| c.name.clone().unwrap_or_else(|| "-".to_owned()));
            [format!("{collective}{on}, {row}")].into_iter().chain(names).collect()
        });
        section.tables.push((HEADINGS.to_vec(), table.collect()));
    }
    Ok(())
}

fn cell(
    subject: &Subject,
    collective: Collective,
    shape: Shape,
    bytes: usize,
    direct: bool,
) -> Result<draw::Cell, CliError> {
    let place = format!("{collective}, {} {}, {}", shape.ranks(), team(direct), Bytes(bytes as u64));
    Ok(match runs(subject, collective, shape, bytes, direct)? {
        Ok((call, name)) => {
            let how = match call.chosen.because {
                Because::Forced => "forced, ",
                Because::Measured => "measured to be the fastest, ",
                Because::Simulated => "simulated to be the fastest, ",
                Because::Predicted => "",
            };
            let measured =
                call.measured_ns.map_or_else(String::new, |ns| format!(", measured {}", Nanos(ns)));
            let about = format!("{place}: {name}, {how}predicted {}{measured}", call.predicted);
            draw::Cell { name: Some(call.chosen.algorithm.name.to_owned()), about }
        }
        Err(why) => draw::Cell { name: None, about: format!("{place}: {why}") },
    })
}
