//! What is chosen: the tree of a short broadcast, and a map over ranks and sizes.

use super::subject::{question, Subject};
use super::Section;
use crate::error::CliError;
use crate::session::Session;
use crate::threads::on_all_cpus;
use lineweave_core::collective::Collective;
use lineweave_core::select::{select, SelectError};
use lineweave_core::topology::Shape;
use lineweave_core::units::{Bytes, Nanos};
use lineweave_lab::draw;

/// Collectives that are mapped.
const MAPPED: [Collective; 2] = [Collective::Bcast, Collective::Allreduce];
/// Sizes from 8 B to 4 MiB.
const SIZES: [usize; 8] = [8, 64, 512, 2 << 10, 8 << 10, 64 << 10, 512 << 10, 4 << 20];
/// Ranks of the map.
const RANKS: std::ops::RangeInclusive<usize> = 8..=64;
/// Ranks of the tree.
const MOST: usize = 256;

/// The broadcast of 8 bytes that is chosen for the whole machine.
pub struct Tree {
    /// Algorithm and parameters.
    pub name: String,
    pub predicted: Nanos,
    pub ranks: usize,
    /// Indices of CPUs in the topology, giver first.
    pub pairs: Vec<(usize, usize)>,
}

/// The tree of 8 bytes among a rank for each CPU.
pub fn tree(subject: &Subject) -> Result<Tree, CliError> {
    let ranks = subject.topology.cpus.len().clamp(1, MOST);
    let shape = Shape::place(ranks, &subject.topology);
    let at: Vec<usize> = (0..ranks)
        .map(|r| {
            let os = shape.cpu(r.into()).os;
            subject.topology.cpus.iter().position(|c| c.os == os).unwrap_or(0)
        })
        .collect();
    let choice = select(&subject.model, &question(Collective::Bcast, shape, 8, false))?;
    let pairs = draw::tree(choice.plan()).into_iter().map(|(a, b)| (at[a], at[b])).collect();
    Ok(Tree { name: choice.named(8).to_string(), predicted: choice.predicted, ranks, pairs })
}

/// A map a collective.
pub fn section(subject: &Subject, session: &mut Session) -> Result<Section, CliError> {
    let mut section = Section::new("map", "What is chosen, by ranks and size");
    let cpus = subject.topology.cpus.len();
    let most = cpus.clamp(*RANKS.start(), *RANKS.end());
    let ranks: Vec<usize> = (1..).map(|i| 1 << i).take_while(|p| *p <= most).collect();
    let topology = subject.topology.repeated(most);
    if cpus < most {
        section.text.push(format!(
            "This machine has {cpus} CPUs: further ranks are placed on more packages of the same kind."
        ));
    }
    section.text.push(
        "Each cell is the algorithm with the least predicted cost, among processes; pointing at it shows its \
         parameters, the prediction and the runner-up."
            .to_owned(),
    );
    let columns: Vec<String> = SIZES.iter().map(|b| Bytes(*b as u64).to_string()).collect();
    let bar = session.out.progress((MAPPED.len() * ranks.len() * SIZES.len()) as u64);
    let of = |collective| ranks.iter().flat_map(move |&p| SIZES.map(|bytes| (collective, p, bytes)));
    let calls: Vec<(Collective, usize, usize)> = MAPPED.into_iter().flat_map(of).collect();
    let cells = on_all_cpus(&calls, |&(collective, p, bytes)| {
        let made = cell(subject, collective, Shape::place(p, &topology), bytes);
        bar.inc(1);
        made
    });
    let mut cells = cells.into_iter();
    for collective in MAPPED {
        let mut rows = Vec::new();
        for &p in &ranks {
            rows.push((format!("P = {p}"), cells.by_ref().take(SIZES.len()).collect::<Result<Vec<_>, _>>()?));
        }
        let title = format!("{collective}: algorithm by ranks and size");
        section.figures.push(draw::map(&title, &subject.origin, &columns, &rows));
        let table = rows.iter().map(|(row, cells)| {
            let names = cells.iter().map(|c| c.name.clone().unwrap_or_else(|| "-".to_owned()));
            [format!("{collective}, {row}")].into_iter().chain(names).collect()
        });
        section.tables.push((HEADINGS.to_vec(), table.collect()));
    }
    bar.finish_and_clear();
    Ok(section)
}

/// [`SIZES`] above the table of them.
const HEADINGS: [&str; 9] = ["", "8 B", "64 B", "512 B", "2 KiB", "8 KiB", "64 KiB", "512 KiB", "4 MiB"];

fn cell(
    subject: &Subject,
    collective: Collective,
    shape: Shape,
    bytes: usize,
) -> Result<draw::Cell, CliError> {
    let place = format!("{collective}, P = {}, {}", shape.ranks(), Bytes(bytes as u64));
    match select(&subject.model, &question(collective, shape, bytes, false)) {
        Ok(choice) => {
            let next = choice.runner_up.as_ref();
            let next = next.map_or_else(String::new, |c| format!("; next: {} {}", c.name, c.predicted));
            let about = format!("{place}: {}, predicted {}{next}", choice.named(bytes), choice.predicted);
            Ok(draw::Cell { name: Some(choice.algorithm.to_owned()), about })
        }
        Err(why @ SelectError::NothingFits { .. }) => {
            Ok(draw::Cell { name: None, about: format!("{place}: {why}") })
        }
        Err(other) => Err(other.into()),
    }
}
