//! Chapter 4: only one core communicates on a tile, and only one over any given link, at any point of time; at a buffer two.

use super::Study;
use crate::paper::given::played;
use crate::paper::{claim, item, Basis, Finding};
use crate::simulate::mesh::{all_pairs, overlaps, FlagCost, Overlaps, Settings, Shared};
use crate::simulate::Options;
use lineweave_core::collective::Collective;
use lineweave_core::plan::Plan;

/// Bytes of the messages: a line, and more than a chunk of 251 lines.
const BYTES: [usize; 2] = [32, 10_240];
/// Bytes of an alltoall's blocks, of which a message buffer holds 47.
const BLOCKS: [usize; 2] = [32, 160];

/// Returns what messages used at once while a plan was played line by line.
fn at_once(study: &Study, plan: &Plan) -> Overlaps {
    let mesh = Settings { flags: FlagCost::Byte, ..Settings::default() };
    let options = Options { trace: true, mesh, ..Options::default() };
    let trace = played(study.machine, plan, &options).trace;
    let found = trace.and_then(|t| overlaps(study.machine, plan, &t));
    found.unwrap_or_else(|| panic!("{} on the mesh has a trace", plan.name()))
}

/// Requirements of chapter 4: of what, its name, and what it forbids.
type Requirement = (fn(&Overlaps) -> Shared, &'static str, &'static str);
const REQUIREMENTS: [Requirement; 3] = [
    (|o| o.links, "chapter 4, links", "no link carries two messages at once"),
    (|o| o.tiles, "chapter 4, tiles", "no two cores of a tile exchange messages with other tiles at once"),
    (|o| o.buffers, "chapter 4, buffers", "no buffer is used by more than two other cores at once"),
];

/// All collectives of NoC_Msg, from every root, held to each requirement.
pub(super) fn findings(study: &Study) -> Vec<Finding> {
    let cores = study.printed.setup.cores;
    let shapes: [(Collective, &[usize]); 5] = [
        (Collective::Bcast, &BYTES),
        (Collective::Reduce, &BYTES),
        (Collective::Allreduce, &BYTES),
        (Collective::Barrier, &[0]),
        (Collective::Alltoall, &BLOCKS),
    ];
    let played = shapes.map(|(collective, lengths)| {
        let roots = if collective == Collective::Alltoall { 1 } else { cores };
        let plans = lengths.iter().flat_map(|&bytes| (0..roots).map(move |root| (bytes, root)));
        let of = |(bytes, root)| at_once(study, &study.plan(collective, "noc-msg", cores, root, bytes));
        (collective, plans.map(of).collect::<Vec<Overlaps>>())
    });
    let judged = REQUIREMENTS.map(|(of, name, forbidden)| {
        let (mut agree, mut all, mut each) = (0, 0, Vec::new());
        for (collective, found) in &played {
            let free = found.iter().filter(|o| of(o).places == 0).count();
            let worst = found.iter().map(of).max().unwrap_or_default();
            (agree, all) = (agree + free, all + found.len());
            let worst = match worst.places {
                0 => String::new(),
                places => format!(", at worst {places} places with up to {} at once", worst.most),
            };
            each.push(format!("{collective} {free} of {}{worst}", found.len()));
        }
        let how = format!(
            "plans in which {forbidden}, every root, {} and {} bytes (alltoall: blocks of {} and {}), on {cores} cores line by \
             line: {}",
            BYTES[0],
            BYTES[1],
            BLOCKS[0],
            BLOCKS[1],
            each.join("; ")
        );
        item(name, agree, all, how)
    });
    judged.into_iter().chain(all_pairs_of_cores(study)).collect()
}

/// Figure 1.1: ways over links when every core communicates with every other one.
fn all_pairs_of_cores(study: &Study) -> [Finding; 2] {
    let ways = all_pairs(study.machine).unwrap_or_default();
    let most = |sides: &[usize], keep: &dyn Fn(usize) -> bool| {
        let of = |(_, ways): (usize, &[usize; 4])| sides.iter().map(|&s| ways[s]).max().unwrap_or(0);
        ways.iter().enumerate().filter(|(tile, _)| keep(*tile)).map(of).max().unwrap_or(0)
    };
    // Sides are east, west, south, north.
    let columns = study.printed.setup.columns;
    let across: Vec<usize> = (0..columns - 1).map(|x| most(&[0], &|tile| tile % columns == x)).collect();
    let down: Vec<usize> = (0..columns).map(|x| most(&[2, 3], &|tile| tile % columns == x)).collect();
    let middle = across[(columns - 2) / 2];
    let right = down[columns - 1];
    [
        claim(
            "fig 1.1, across",
            "if every core communicates with every other, of the links along rows those in the middle are used most",
            format!("ways of pairs of tiles over the link behind each column, eastwards: {across:?}"),
            across.iter().filter(|&&ways| ways >= middle).count() == 1,
        ),
        claim(
            "fig 1.1, down",
            "of the links along columns those of the right-most columns are used most",
            format!("most ways of pairs of tiles over a link of each column: {down:?}"),
            down.iter().all(|&ways| ways <= right) && down[0] < right,
        ),
    ]
    .map(|finding| finding.on(Basis::ByConstruction))
}
