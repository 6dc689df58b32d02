//! What no plan on a mesh can beat.

use super::fit::FlagCost;
use super::values::Values;
use super::Settings;
use crate::collective::Collective;
use crate::plan::Plan;
use crate::trace::Picos;

/// A lower bound of the time of one run of any plan for `plan`'s collective, ranks and bytes, `m` lines, every
/// distance being 1 (Petrovic et al. 2012, Eq. 1-12):
///
/// - barrier: the last flag that is raised has to be seen by another core;
/// - bcast: another core than the root gets every line to its memory, after the root has put a first one;
/// - reduce: another core than the root puts every line of its own, and then the root gets a last one to memory;
/// - allreduce: each core puts every line of its own, and gets every line to its memory.
///
/// The last three hold because private memory is reached by its own core alone. Caches cannot help: every line
/// is read or written at least a first time. Several accesses in flight divide the lines' time.
pub(super) fn bound(v: &Values, settings: Settings, in_flight: u64, plan: &Plan) -> Picos {
    let d = u64::from(settings.distance.unwrap_or(1));
    let way = 2 * d * v.hop;
    let (c_mpb, r_mem, w_mem) = (v.on_box + way, v.memory_read + way, v.memory_write + way);
    let seen_mpb = v.on_box + d * v.hop;
    let m = (plan.bytes as u64).div_ceil(v.line as u64);
    let turns = m.div_ceil(in_flight);
    if plan.ranks < 2 || (m == 0 && plan.collective.moves_data()) {
        return Picos(0);
    }
    Picos(match plan.collective {
        Collective::Barrier => {
            let read_first = match settings.flags {
                FlagCost::Line | FlagCost::Bit => c_mpb,
                FlagCost::Byte => 0,
            };
            v.put_box + read_first + seen_mpb + d * v.hop
        }
        Collective::Bcast => v.put_memory + r_mem + seen_mpb + v.get_memory + turns * (c_mpb + w_mem),
        Collective::Reduce => {
            v.put_memory + turns * (r_mem + c_mpb) - d * v.hop + v.get_memory + c_mpb + w_mem
        }
        Collective::Allreduce => {
            v.put_memory + v.get_memory + turns * (r_mem + c_mpb) + turns * (c_mpb + w_mem)
        }
    })
}
