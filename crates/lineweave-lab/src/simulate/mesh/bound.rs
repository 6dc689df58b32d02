//! Lower bound of the time of any plan on a mesh.

use super::fit::FlagCost;
use super::values::Values;
use super::Settings;
use lineweave_core::collective::Collective;
use lineweave_core::plan::{Blocks, Plan};
use lineweave_core::trace::Picos;

/// A lower bound of the time of one run of any plan for `plan`'s collective, ranks and bytes, `m` lines, every
/// distance being 1 (Petrovic et al. 2012, Eq. 1-12):
///
/// - barrier: the last flag that is raised has to be seen by another core;
/// - bcast: the root puts a first line, in a box or in a flag's line, and another core reads every line from there
///   and writes it to its memory; looking for the first may have begun before;
/// - reduce: another core than the root reads every line of its own and puts it, and the root sees the last;
/// - allreduce: each core reads and puts every line of its own, and reads every line of the others' from a
///   box and writes it to its memory; alltoall and allgather likewise, of the blocks that leave it and that reach it;
///   reduce-scatter, of all blocks but its own, and of its own result;
/// - gather: as bcast, the root taking in the blocks of all others; scatter: as reduce, the root giving them out;
/// - scan and exscan: as bcast, the last rank taking in a combination of what came before.
///
/// Blocks of different lengths have no bound here: 0. All but the first two hold because private memory is reached by its own core alone. Caches cannot help: every line
/// is read or written at least a first time. Several accesses in flight divide the lines' time.
pub(super) fn bound(v: &Values, settings: Settings, plan: &Plan) -> Picos {
    let d = u64::from(settings.distance.unwrap_or(1));
    let way = 2 * d * v.hop;
    let (c_mpb, r_mem, w_mem) = (v.on_box + way, v.memory_read + way, v.memory_write + way);
    // A line that leaves a core's registers is in those of another.
    let across = v.on_box + way;
    let call = v.put_box.min(v.put_memory);
    let m = (plan.bytes as u64).div_ceil(v.line as u64);
    let turns = m.div_ceil(u64::from(v.in_flight));
    // The blocks that one rank has for, or gets from, all others.
    let others = (plan.ranks as u64 - 1).saturating_mul(m).div_ceil(u64::from(v.in_flight));
    let uneven = matches!(plan.blocks, Blocks::Uneven(_));
    if plan.ranks < 2 || uneven || (m == 0 && plan.collective.moves_data()) {
        return Picos(0);
    }
    Picos(match plan.collective {
        Collective::Barrier => {
            let read_first = match settings.flags {
                FlagCost::Line | FlagCost::Bit => c_mpb,
                FlagCost::Byte | FlagCost::Rcce => 0,
            };
            v.put_box + read_first + across
        }
        Collective::Bcast | Collective::Scan | Collective::Exscan => {
            call + r_mem + across + turns * w_mem + (turns - 1) * c_mpb
        }
        Collective::Gather => call + r_mem + across + others * w_mem + (others - 1) * c_mpb,
        Collective::Reduce => call + turns * r_mem + (turns - 1) * c_mpb + across,
        Collective::Scatter => call + others * r_mem + (others - 1) * c_mpb + across + w_mem,
        Collective::Allreduce => call + turns * (r_mem + c_mpb + w_mem) + (turns - 1) * c_mpb,
        Collective::Allgather => call + turns * (r_mem + c_mpb) + others * w_mem + (others - 1) * c_mpb,
        Collective::ReduceScatter => call + others * (r_mem + c_mpb) + turns * w_mem + (turns - 1) * c_mpb,
        Collective::Alltoall => call + others * (r_mem + c_mpb + w_mem) + (others - 1) * c_mpb,
    })
}
