//! The tree that is generated from a machine's matrix, beside the choice.

use crate::error::CliError;
use lineweave_core::machine::Machine;
use lineweave_core::select::{Choice, Question};
use lineweave_core::units::Nanos;
use lineweave_lab::generate::{generate, Case, Generated, BYTES, COLLECTIVES};

/// Returns the best generated tree for a call, or `None` where no pairs were timed, and for calls that no trees are
/// generated for.
pub fn made(machine: &Machine, question: &Question) -> Result<Option<Generated>, CliError> {
    let Question { collective, ref shape, bytes, .. } = *question;
    let known = machine.measured.is_some() && machine.coherent.is_some();
    let asked = COLLECTIVES.contains(&collective) && (!collective.moves_data() || bytes == BYTES);
    if !known || !asked || shape.ranks() < 2 || shape.oversubscription() > 1 {
        return Ok(None);
    }
    Ok(Some(generate(&case(machine, question))?))
}

fn case<'a>(machine: &'a Machine, question: &'a Question) -> Case<'a> {
    Case { machine, shape: &question.shape, collective: question.collective, root: question.root }
}

/// Returns a sentence with the times of the choice and of the best generated tree, simulated with each pair of CPUs at
/// its own latency.
pub fn beside(
    machine: &Machine,
    question: &Question,
    choice: &Choice,
    made: &Generated,
) -> Result<Option<String>, CliError> {
    if choice.plan().direct {
        return Ok(None);
    }
    let collective = question.collective;
    let chosen = case(machine, question).simulated(choice.plan())?;
    let name = &made.best.spec.name;
    let share = 100.0 * (chosen / made.best.ns - 1.0).abs();
    let than = if made.best.ns < chosen { "faster" } else { "slower" };
    Ok(Some(format!(
        "of its matrix, simulated: one call alone takes {}; the best tree made from it, {collective}/{name}, {}, {share:.0} % {than}, and \
         none is below {} (lineweave lab optimise {collective} --compare)",
        Nanos(chosen),
        Nanos(made.best.ns),
        Nanos(made.bound_ns),
    )))
}
