//! Probe `wake`: handing the CPU over by yielding, and waking a sleeper, one way.

use super::cell::{scaled, ProbeContext, ProbeTasks, ProbeTeam, Role, SampleKey, Task};
use super::plans;
use super::timing::{Rules, Samples};
use lineweave::internal::{Between, Budget, SLEEP};
use lineweave::Error;
use lineweave_core::plan::Layout;

const YIELDING: Budget =
    Budget { spins: 0, apart: 0, yields: u32::MAX, crowded: true, exchange: Between::Pause, sleep: SLEEP };
const SLEEPING: Budget =
    Budget { spins: 0, apart: 0, yields: 0, crowded: true, exchange: Between::Pause, sleep: SLEEP };

pub fn offer(crew: &ProbeTeam, offer: &mut ProbeTasks) {
    let place = match crew.role {
        Role::Pair => "other",
        Role::SameCpu => "same",
        Role::Solo | Role::Trio | Role::Crowd => return,
    };
    let key = |kind: &str| SampleKey::new("wake").with("kind", kind).with("where", place);
    if crew.role == Role::SameCpu {
        offer.tasks.push(Task::new(key("yield"), 2.0, |hand, rules| with(hand, rules, YIELDING)));
    }
    offer.tasks.push(Task::new(key("futex"), 2.0, |hand, rules| with(hand, rules, SLEEPING)));
}

/// Half of a call and its answer, with every wait in one way.
fn with(hand: &mut ProbeContext<'_>, rules: &Rules, budget: Budget) -> Result<Samples, Error> {
    let usual = hand.comm.wait_budget();
    hand.comm.set_wait_budget(budget);
    let samples = plans::time(hand, rules, &plans::call_and_answer(Layout::Alone));
    hand.comm.set_wait_budget(usual);
    Ok(scaled(samples?, 0.5))
}
