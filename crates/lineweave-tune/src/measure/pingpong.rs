//! Probe `pingpong`: N lines there and back, halved: T_N (Ramos & Hoefler 2013, section 3.1.2). One way is
//! writing the lines into the own box, a signal, and reading them out of it.

use super::cell::{scaled, ProbeTasks, ProbeTeam, Role, SampleKey, Task};
use super::plans;

const LINES: [usize; 10] = [1, 2, 3, 4, 6, 8, 12, 16, 32, 64];

pub fn offer(crew: &ProbeTeam, offer: &mut ProbeTasks) {
    if crew.role != Role::Pair {
        return;
    }
    for lines in LINES {
        let key = SampleKey::new("pingpong").with("lines", lines).with("level", crew.level);
        offer.tasks.push(Task::new(key, 1.5, move |hand, rules| {
            Ok(scaled(plans::time(hand, rules, &plans::ping_pong(lines))?, 0.5))
        }));
    }
}
