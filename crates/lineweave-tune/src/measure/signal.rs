//! Probes `signal` and `exchange`: what flags cost by layout, and `counter`, the baseline.
//!
//! A signal is half of a call and its answer: set to seen, one way. An exchange is a barrier of two ranks that
//! set and wait at once. Which flags share a line decides (docs/explanation/measuring.md, "Which flags share a line").

use super::cell::{scaled, ProbeTasks, ProbeTeam, Role, SampleKey, Task};
use super::plans;
use lineweave_core::plan::Params;
use lineweave_core::probe::EXCHANGED;

pub fn offer(crew: &ProbeTeam, offer: &mut ProbeTasks) {
    if crew.role != Role::Pair {
        return;
    }
    for layout in EXCHANGED {
        let key = |probe| SampleKey::new(probe).with("layout", layout).with("level", crew.level);
        offer.tasks.push(Task::new(key("signal").with("pollers", 1), 3.0, move |hand, rules| {
            Ok(scaled(plans::time(hand, rules, &plans::call_and_answer(layout))?, 0.5))
        }));
        offer.tasks.push(Task::new(key("exchange"), 4.0, move |hand, rules| {
            let plan = plans::barrier("exchange", 2, &Params::new().with("layout", layout))?;
            plans::time(hand, rules, &plan)
        }));
    }
    let key = SampleKey::new("counter").with("ranks", 2).with("level", crew.level);
    offer.tasks.push(Task::new(key, 3.0, |hand, rules| {
        plans::time(hand, rules, &plans::barrier("counter", 2, &Params::new())?)
    }));
}
