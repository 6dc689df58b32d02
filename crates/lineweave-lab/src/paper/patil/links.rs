//! Chapter 4: "only one core should communicate over any given link at any point of time".

use super::{Study, KEY};
use crate::paper::{Basis, Finding, Item};
use crate::simulate::mesh::{overlaps, FlagCost, Overlaps, Settings};
use crate::simulate::{simulate, Options};
use lineweave_core::collective::Collective;
use lineweave_core::plan::Plan;

/// Bytes of the messages: a line, and more than a chunk of 251 lines.
const BYTES: [usize; 2] = [32, 10_240];
/// Bytes of an alltoall's blocks, of which a message buffer holds 47.
const BLOCKS: [usize; 2] = [32, 160];

/// Returns the overlaps of messages on links while a plan is played line by line.
fn on_links(study: &Study, plan: &Plan) -> Overlaps {
    let mesh = Settings { flags: FlagCost::Byte, ..Settings::default() };
    let options = Options { trace: true, mesh, ..Options::default() };
    let trace = simulate(study.machine, plan, &options).ok().and_then(|o| o.trace);
    let found = trace.and_then(|t| overlaps(study.machine, plan, &t));
    found.unwrap_or_else(|| panic!("{} on the mesh has a trace", plan.name()))
}

/// All collectives of NoC_Msg, from every root: no link carries two messages at once.
pub(super) fn finding(study: &Study) -> Finding {
    let cores = study.printed.setup.cores;
    let (mut agree, mut of, mut each) = (0, 0, Vec::new());
    let shapes: [(Collective, &[usize]); 5] = [
        (Collective::Bcast, &BYTES),
        (Collective::Reduce, &BYTES),
        (Collective::Allreduce, &BYTES),
        (Collective::Barrier, &[0]),
        (Collective::Alltoall, &BLOCKS),
    ];
    for (collective, lengths) in shapes {
        let roots = if collective == Collective::Alltoall { 1 } else { cores };
        let plans = lengths.iter().flat_map(|&bytes| (0..roots).map(move |root| (bytes, root)));
        let found: Vec<Overlaps> = plans
            .map(|(bytes, root)| on_links(study, &study.plan(collective, "noc-msg", cores, root, bytes)))
            .collect();
        let free = found.iter().filter(|o| o.pairs == 0).count();
        let worst = found.iter().max_by_key(|o| (o.pairs, o.most)).copied().unwrap_or_default();
        (agree, of) = (agree + free, of + found.len());
        each.push(match worst.pairs {
            0 => format!("{collective} {free} of {}", found.len()),
            pairs => format!(
                "{collective} {free} of {}, at worst {pairs} pairs of {} messages, {} on one link",
                found.len(),
                worst.messages,
                worst.most
            ),
        });
    }
    let item = Item::new(
        KEY,
        "chapter 4, links",
        agree,
        of,
        format!(
            "plans in which no link carries two messages at once, every root, {} and {} bytes (alltoall: blocks of {} and {}), \
             on {cores} cores line by line: {}",
            BYTES[0],
            BYTES[1],
            BLOCKS[0],
            BLOCKS[1],
            each.join("; ")
        ),
    );
    Finding::Item(item).on(Basis::ByConstruction)
}
