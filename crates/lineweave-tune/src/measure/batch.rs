//! Length of the batches in which a team times an operation.

use super::clock::Clock;
use super::timing::Rules;
use lineweave::kernel::Operator;
use lineweave::{Communicator, Error};
use std::time::Instant;

/// Most operations of a batch.
const MOST: f64 = 1e6;
/// Batches of one length, the fastest of which counts: one interruption would make all batches of the window short.
const TRIES: u32 = 3;
/// Share of the time of an operation, at least, that one takes in a batch four times as long: then a batch is long enough for ranks that share
/// CPUs.
const CHEAPER: f64 = 0.9;
/// Longest batch of such ranks, in those that the rules want.
const LONGEST: f64 = 8.0;

/// Returns the number of operations for which a batch is as long as the rules want, warming up meanwhile. Past the budget half as long will
/// do, but not less: a batch that ends before ranks which share CPUs have run ahead of each other measures their coming together.
pub fn batch_length(
    comm: &mut Communicator,
    rules: &Rules,
    batch: &mut dyn FnMut(&mut Communicator, usize) -> Result<f64, Error>,
) -> Result<usize, Error> {
    let crowded = comm.shape().oversubscription() > 1;
    let clock = Clock::get();
    let aim = (rules.batch.as_nanos() as f64).max(clock.shortest_ns() + clock.cost_ns());
    let start = Instant::now();
    let (mut count, mut each, mut tries) = (1usize, f64::INFINITY, 0);
    // Time of an operation in a batch of a fourth of the length that was long enough.
    let mut shorter = f64::INFINITY;
    loop {
        let mine = batch(comm, count)?.max(1e-3);
        let mut shared = [mine, start.elapsed().as_secs_f64()];
        comm.allreduce_in_place(&mut shared, Operator::Max)?;
        let [this, passed] = shared;
        each = each.min(this);
        tries += 1;
        let need = (aim / each).ceil().clamp(1.0, MOST) as usize;
        let warm = passed >= rules.warm.as_secs_f64();
        let late = passed >= rules.budget.as_secs_f64() && need <= count.saturating_mul(2);
        // An estimate from a batch much shorter than the aim is not trusted further than 16 times.
        let next = need.min(count.saturating_mul(16));
        let took = each * count as f64;
        let long = warm && (next <= count || late) && (tries >= TRIES || late || took >= 16.0 * aim);
        if long && !crowded {
            return Ok(need.min(count));
        }
        if long {
            // While ranks take turns, a batch's beginning and end may take as long as the rules want, whatever the number of operations.
            if late || each >= CHEAPER * shorter || took >= LONGEST * aim {
                return Ok(count);
            }
            (shorter, count, each, tries) = (each, 4 * count, f64::INFINITY, 0);
        } else if next > count {
            (count, each, tries) = (next, f64::INFINITY, 0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lineweave::team;
    use std::time::Duration;

    /// Length of a batch whose beginning and end take `ends` ns, and each operation `each`.
    fn length(ranks: usize, ends: f64, each: f64) -> (usize, bool) {
        let rules = Rules { batch: Duration::from_micros(50), ..Rules::default() };
        let all = team::threads(ranks, move |mut comm| {
            let crowded = comm.shape().oversubscription() > 1;
            let took = |_: &mut Communicator, count: usize| Ok(each + ends / count as f64);
            Ok((batch_length(&mut comm, &rules, &mut { took })?, crowded))
        });
        all.expect("lengths")[0]
    }

    #[test]
    fn a_batch_of_ranks_that_take_turns_shows_what_an_operation_takes() {
        let ranks = 2 * std::thread::available_parallelism().map_or(2, usize::from) + 1;
        for (ends, each) in [(60e3, 300.0), (45e3, 300.0), (20e3, 900.0)] {
            let (count, crowded) = length(ranks, ends, each);
            assert!(
                crowded && ends / (count as f64) < 0.5 * each,
                "{count} of {each} between ends of {ends}"
            );
        }
    }

    #[test]
    fn a_batch_of_ranks_with_a_cpu_each_is_as_long_as_is_wanted() {
        let (count, crowded) = length(1, 0.0, 250.0);
        assert!(!crowded && count == 200, "{count}");
    }
}
