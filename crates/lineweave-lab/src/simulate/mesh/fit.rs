//! The check that a plan fits a mesh: its ranks, boxes, flags and needs.

use super::values::Values;
use crate::simulate::{Options, SimulateError};
use lineweave_core::machine::Machine;
use lineweave_core::names::{named, read_back};
use lineweave_core::plan::{Footprint, Op, Plan};

/// Kind of a flag, and the cost of raising it. Reading one is o_get^mpb + C_r^mpb(d), but for RCCE's own.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum FlagCost {
    /// A line of its own, put as a whole from the own buffer: C_put^mpb(1, d) = o_put^mpb + C_r^mpb(1) +
    /// C_w^mpb(d) (Petrovic et al. 2012, section 5.1; Table 2 follows from this).
    #[default]
    Line,
    /// A byte of a line, written from a register: o_put^mpb + C_w^mpb(d). 48 flags on two lines.
    Byte,
    /// A bit of a line, changed under the lock of its tile: o_put^mpb, the lock taken and given back at
    /// C_r^mpb(d) each, C_r^mpb(d) and C_w^mpb(d).
    Bit,
    /// A byte as RCCE has it (release of 22 December 2010, without `SINGLEBITFLAGS`): after the byte, `RCCE_put_char`
    /// writes to a line of the own buffer that is there for nothing else, so that the write-combining buffer lets
    /// the byte go: o_put^mpb + C_w^mpb(d) + C_w^mpb(1). `RCCE_wait_until` is a loop of loads, C_r^mpb(d) each.
    Rcce,
}

impl FlagCost {
    /// Flags on a line of `line` bytes.
    pub fn per_line(self, line: usize) -> usize {
        match self {
            FlagCost::Line => 1,
            FlagCost::Byte | FlagCost::Rcce => line,
            FlagCost::Bit => 8 * line,
        }
    }
}

named!(FlagCost, Line = "line", Byte = "byte", Bit = "bit", Rcce = "rcce");
read_back!(FlagCost, String, |name| {
    format!("unknown kind of flag `{name}`: expected line, byte, bit or rcce")
});

/// Bytes of a flag's value in its line.
const VALUE: usize = 8;

/// Checks that `plan` fits the machine, and returns the places of flags and slots in a box.
pub(super) fn check(
    machine: &Machine,
    values: &Values,
    plan: &Plan,
    options: &Options,
) -> Result<Footprint, SimulateError> {
    let name = || machine.name.clone();
    let cores = values.grid.tiles() * values.cores_per_tile as usize;
    if cores < 2 {
        return Err(SimulateError::OneCore { machine: name() });
    }
    if plan.ranks > cores {
        return Err(SimulateError::TooManyRanks { machine: name(), ranks: plan.ranks, cores });
    }
    if plan.direct {
        return Err(SimulateError::NoSharedMemory { machine: name(), plan: plan.name() });
    }
    if plan.collective.folds() && plan.bytes > 0 && values.fold_fs.is_none() {
        return Err(SimulateError::Unknown {
            machine: name(),
            key: "fold_bytes_per_ns".to_owned(),
            why: machine.rates.fold_bytes_per_ns.source.clone(),
        });
    }
    let kind = options.mesh.flags;
    let most = if kind == FlagCost::Line { values.line.saturating_sub(VALUE) } else { 0 };
    let carries = plan.ops().filter(|(_, op)| matches!(op, Op::Set { .. } | Op::Wait { .. }));
    let payload = carries.flat_map(|(_, op)| op.regions()).map(|region| region.len).max().unwrap_or(0);
    if payload > most {
        return Err(SimulateError::Payload { machine: name(), payload, most, flags: kind.name() });
    }
    let footprint = Footprint::per_line(plan, values.line, kind.per_line(values.line));
    let banks = match plan.reuse {
        lineweave_core::plan::Reuse::Same => 1,
        lineweave_core::plan::Reuse::Ring => options.banks.min(options.runs).max(1),
    };
    let lines = footprint.total() / values.line * banks;
    if lines > values.box_lines {
        let flag_lines = footprint.flag_bytes() / values.line;
        let slot_lines = footprint.total() / values.line - flag_lines;
        let flags: usize = plan.flags.iter().map(|a| a.count).sum();
        return Err(SimulateError::BoxFull {
            machine: name(),
            lines,
            most: values.box_lines,
            flag_lines,
            slot_lines,
            banks,
            flags,
            flag_budget: (values.box_lines / banks).saturating_sub(slot_lines) * kind.per_line(values.line),
        });
    }
    Ok(footprint)
}
