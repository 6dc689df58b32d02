//! The least and the greatest time of a plan over all orders in which its ranks may meet at lines.
//!
//! Ramos & Hoefler 2013 (chapter 4, Fig. 4.1) begin with a line that two ranks write and one polls: what it costs "depends on the order
//! in which these three threads reach the operation", R_I + 2 R_R to R_I + 4 R_R. Their min-max models then add up the cheapest and a
//! likely dear order of each part, which bounds nothing. Here every order of the line automaton ([`lineweave_core::lines`], played by
//! [`coherent`]) is looked at. [`simulate`](super::simulate()) serves requests as they come and breaks ties by rank. What is free instead:
//!
//! 1. Of events at the same time any comes first.
//! 2. Of the requests that wait for a line any is served next, once the line serves one of them. If that is a store, which
//!    waits until all before it has arrived, what comes meanwhile waits, too. A line that could serve does not stand idle.
//! 3. A rank comes to a wait at once and polls, or *late*: its first look is when the flag is visible. The paper's minimum is of
//!    ranks that never look before a line is ready.
//!
//! All enter at time 0, boxes are in memory, and private buffers exclusive in their owners' caches, as in the paper's models. Links and
//! ports keep nobody waiting. All else takes what [`coherent`] says. So the simulated time is one of these, and the paper's example comes out (tested).
//!
//! # Search
//!
//! Each play follows a list of choices; the next one differs in the last choice that has an option left. Before a choice the state is looked
//! up: times count from now, all that is over is left out, and ranks that a [symmetry](super::names::Names) exchanges are one. A state that was
//! met both no later and no earlier than now leads to nothing new. When more states are met than the limit, plays of chance orders follow, some with all ranks
//! late and some with none, and the result is what was found: the least is then at most that, and at least the time of
//! the plan if nobody were in anybody's way; the greatest is at least that.

use super::choices::{Beyond, Choices};
use super::coherent::{self, Caches};
use super::names::Names;
use super::play::{play, Player};
use super::{Fidelity, Options, Playable, SimulateError};
use lineweave_core::machine::Machine;
use lineweave_core::plan::Plan;
use lineweave_core::topology::Shape;
use lineweave_core::trace::Picos;
use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};

/// States after which a search is bounded, if nothing else is said.
pub const STATES: usize = 20_000;

/// Events a state after which it is bounded, too: large plans have long ways to a new state.
const EFFORT: u64 = 100;

/// Plays of chance orders after a bounded search.
const CHANCE: u64 = 500;

/// The least and the greatest time of one call alone.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Bounds {
    /// The simulated time.
    pub simulated: Picos,
    /// The least time that was found.
    pub least: Picos,
    /// A time that the least is not below: itself, if the search was complete.
    pub floor: Picos,
    /// The greatest time that was found.
    pub greatest: Picos,
    /// True if all orders were looked at: least and greatest are then exact.
    pub complete: bool,
    /// States that were met.
    pub states: usize,
}

/// Returns the bounds of one call of a plan on a machine with coherent caches, ranks sitting as `shape` says, from at most about `limit` states.
///
/// # Errors
/// As of [`coherent::simulate`].
pub fn bounds(
    machine: &Machine,
    shape: &Shape,
    plan: &Plan,
    settings: &coherent::Settings,
    limit: usize,
) -> Result<Bounds, SimulateError> {
    let coherent = coherent::Settings { ideal: true, ..*settings };
    let options = Options { banks: 1, coherent, ..Options::default() };
    let (program, mut caches) = coherent::prepare(machine, shape, plan, &options)?;
    let names = caches.symmetries(&program);
    let floor = caches.floor(&program)?;
    let simulated = play(&mut caches.clone(), &program, 1, Fidelity::Line, false)?.ended[0];
    let mut search = Search::new(&program, &caches, &names);
    let complete = search.all(limit)?;
    if !complete {
        let late = [Some(true), Some(false), None];
        let chance = (0..CHANCE).map(|n| Beyond::Random(n, late[n as usize % late.len()]));
        for beyond in [Beyond::First, Beyond::Last].into_iter().chain(chance) {
            search.one(Choices::beyond(beyond), false)?;
        }
    }
    let (least, greatest) = search.found.unwrap_or((simulated, simulated));
    let (least, greatest) = (least.min(simulated), greatest.max(simulated));
    let floor = if complete { least } else { floor.min(least) };
    Ok(Bounds { simulated, least, floor, greatest, complete, states: search.met.len() })
}

/// A search over the orders of one program.
struct Search<'a> {
    program: &'a Playable,
    caches: &'a Caches,
    names: &'a [Names],
    /// The earliest and the latest time at which each state was met.
    met: HashMap<u128, (Picos, Picos)>,
    /// The least and the greatest time that was found.
    found: Option<(Picos, Picos)>,
    /// Events that were handled.
    events: u64,
}

impl<'a> Search<'a> {
    fn new(program: &'a Playable, caches: &'a Caches, names: &'a [Names]) -> Search<'a> {
        Search { program, caches, names, met: HashMap::new(), found: None, events: 0 }
    }

    /// Plays all orders, but for those from states that were met. Returns whether that took no more states than the limit.
    fn all(&mut self, limit: usize) -> Result<bool, SimulateError> {
        let mut choices = Choices::default();
        while self.met.len() <= limit && self.events <= EFFORT * limit as u64 {
            choices = self.one(choices, true)?;
            if !choices.advance() {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Plays one order, to the end or, with `looks_up`, to a state that was met. Returns the choices that were made.
    fn one(&mut self, choices: Choices, looks_up: bool) -> Result<Choices, SimulateError> {
        let known = choices.known();
        let (names, met) = (self.names, &mut self.met);
        let mut caches = self.caches.clone();
        let mut player = Player::new(&mut caches, self.program, 1, Fidelity::Line, Some(choices));
        let mut looked = None;
        let through = player.go(|player, now| {
            let made = player.made();
            // The states of the way that is known were met when it was taken first.
            if !looks_up || made < known || (looked == Some(made) && !player.chooses_next()) {
                return true;
            }
            looked = Some(made);
            let key = names.iter().map(|names| player.key(now, names)).min().unwrap_or_default();
            let times = met.entry(digest(&key)).or_insert((Picos(u64::MAX), Picos(0)));
            let new = now < times.0 || now > times.1;
            *times = (times.0.min(now), times.1.max(now));
            new
        });
        let choices = player.choices();
        self.events += player.events();
        if through {
            let end = player.outcome()?.ended[0];
            let (least, greatest) = self.found.unwrap_or((end, end));
            self.found = Some((least.min(end), greatest.max(end)));
        }
        Ok(choices)
    }
}

fn digest(key: &[u64]) -> u128 {
    let [high, low] = [0, 1].map(|salt| {
        let mut hasher = DefaultHasher::new();
        (salt, key).hash(&mut hasher);
        u128::from(hasher.finish())
    });
    high << 64 | low
}

#[cfg(test)]
mod tests;
