//! Programme of `lineweave tune`: the cases that are raced on each team, and the division of the time among them.

use super::Arguments;
use lineweave_core::collective::Collective;
use lineweave_tune::trial::Rules;
use std::time::{Duration, Instant};

/// Message sizes, each eight times the one before, from a word to a size that no cache of a core holds; and 1 MiB, the largest that goes
/// through a box in one piece, for which another algorithm than for twice or a quarter of it is often fastest. Every second size is raced;
/// those between only where different plans won at their neighbours.
const SIZES: [usize; 9] = [8, 64, 512, 4 << 10, 32 << 10, 256 << 10, 1 << 20, 2 << 20, 16 << 20];
/// The sizes of a quick run: one that travels with a flag, one within a cache, one beyond.
const QUICK_SIZES: [usize; 3] = [8, 4 << 10, 1 << 20];
/// Fewest ranks of the largest team: a team with more ranks than CPUs tests waiting.
const LEAST_MOST_RANKS: usize = 8;
/// Most ranks of the largest team, unless a larger one is asked for.
const MOST_RANKS: usize = 64;
const QUICK_RANKS: usize = 4;
/// Most bytes in all blocks that a rank gives or gets, unless sizes are asked for: an alltoall of 16 MiB among 8 ranks on 2 CPUs takes a
/// seventh of a second.
const MOST: usize = 32 << 20;
/// Seconds for everything on 2 CPUs, and seconds that each doubling of the CPUs adds: larger teams are raced as well, and take longer.
const SECONDS: f64 = 55.0;
const SECONDS_A_DOUBLING: f64 = 10.0;
/// Share of that time that a quick run takes.
const QUICK: f64 = 0.4;
/// Times as long that a run takes in which every plan races.
const EXHAUSTIVE: f64 = 8.0;
/// Share of the time that probes take.
const PROBES: f64 = 0.4;
/// Bytes of all ranks together at which a race takes twice as long as a race of one word.
const HEAVY: f64 = (32 << 20) as f64;

/// A case that is raced: a collective and a size.
pub type Case = (Collective, usize);

/// The cases that are raced, and the time for them.
pub struct Programme {
    pub ranks: Vec<usize>,
    sizes: Vec<usize>,
    /// Sizes that are raced only where their neighbours differ.
    between: Vec<usize>,
    collectives: Vec<Collective>,
    /// Most bytes in all blocks that a rank gives or gets.
    most: usize,
    /// Seconds for everything.
    pub seconds: f64,
    /// Seconds of these for probes.
    probing: f64,
    /// True if every plan races.
    pub exhaustive: bool,
}

impl Programme {
    /// Returns the programme that the arguments ask for, on so many CPUs.
    pub fn of(arguments: &Arguments, cpus: usize) -> Programme {
        let quick = arguments.quick;
        let all = arguments.bytes.iter().map(|s| s.0);
        let (sizes, between) = match (arguments.bytes.is_empty(), quick) {
            (false, _) => (all.collect(), Vec::new()),
            (true, true) => (QUICK_SIZES.to_vec(), Vec::new()),
            (true, false) => {
                (SIZES.into_iter().step_by(2).collect(), SIZES.into_iter().skip(1).step_by(2).collect())
            }
        };
        let doublings = (cpus.max(2) as f64 / 2.0).log2();
        let exhaustive = arguments.rules.exhaustive;
        let usual = (SECONDS + SECONDS_A_DOUBLING * doublings) * if quick { QUICK } else { 1.0 };
        let seconds =
            arguments.seconds.map_or(if exhaustive { usual * EXHAUSTIVE } else { usual }, f64::from);
        Programme {
            ranks: match (arguments.ranks.is_empty(), quick) {
                (false, _) => arguments.ranks.iter().map(|&r| usize::from(r)).collect(),
                (true, true) => team_sizes(QUICK_RANKS),
                (true, false) => team_sizes(cpus.clamp(LEAST_MOST_RANKS, MOST_RANKS)),
            },
            sizes,
            between,
            collectives: match arguments.collectives.is_empty() {
                true => Collective::TUNED.to_vec(),
                false => arguments.collectives.clone(),
            },
            most: if arguments.bytes.is_empty() { MOST } else { usize::MAX },
            seconds,
            // More time is for races where every plan runs.
            probing: if exhaustive { seconds.min(usual) } else { seconds } * PROBES,
            exhaustive,
        }
    }

    /// Returns the time for probes.
    pub fn probing(&self) -> Duration {
        Duration::from_secs_f64(self.probing)
    }

    /// Returns the cases that are raced among so many ranks.
    pub fn cases(&self, ranks: usize) -> Vec<Case> {
        self.of_sizes(&self.sizes, ranks)
    }

    /// Returns the cases that are raced only where the winners at the sizes on both sides differ.
    pub fn between(&self, ranks: usize) -> Vec<Case> {
        let moving = |(c, _): &Case| c.moves_data();
        self.of_sizes(&self.between, ranks).into_iter().filter(moving).collect()
    }

    fn of_sizes(&self, sizes: &[usize], ranks: usize) -> Vec<Case> {
        let sizes = |c: Collective| if c.moves_data() { sizes.to_vec() } else { vec![0] };
        let fits = |c: Collective, bytes| !c.has_blocks() || bytes * ranks <= self.most;
        let cases = self.collectives.iter().flat_map(|&c| sizes(c).into_iter().map(move |b| (c, b)));
        cases.filter(|&(c, bytes)| fits(c, bytes)).collect()
    }

    /// Returns the neighbouring sizes that are raced in any case: below and above.
    pub fn neighbours(&self, bytes: usize) -> [Option<usize>; 2] {
        let below = self.sizes.iter().copied().filter(|&s| s < bytes).max();
        let above = self.sizes.iter().copied().filter(|&s| s > bytes).min();
        [below, above]
    }

    /// Returns the time for races of so many teams of each size.
    pub fn time(&self, start: Instant, teams: usize) -> Time {
        let weights = |ranks: &usize| {
            let of = |cases: Vec<Case>, part: f64| {
                cases.iter().map(|&case| weight(case, *ranks) * part).sum::<f64>()
            };
            of(self.cases(*ranks), 1.0) + of(self.between(*ranks), BETWEEN)
        };
        Time {
            deadline: start + Duration::from_secs_f64(self.seconds),
            open: self.ranks.iter().map(weights).sum::<f64>() * teams as f64,
        }
    }
}

/// Returns the powers of two up to the largest team size, and that size itself.
fn team_sizes(most: usize) -> Vec<usize> {
    let mut sizes: Vec<usize> = (1..).map(|i| 1 << i).take_while(|&n| n <= most).collect();
    if sizes.last() != Some(&most) {
        sizes.push(most);
    }
    sizes
}

/// Weight of a race between sizes, relative to others: it has three runners, and is not always needed.
pub const BETWEEN: f64 = 0.5;

/// Returns the weight of a race: its share of the time.
pub fn weight((_, bytes): Case, ranks: usize) -> f64 {
    1.0 + (bytes * ranks) as f64 / HEAVY
}

/// The time that is left for races, and the weight of the races that share it.
#[derive(Debug)]
pub struct Time {
    deadline: Instant,
    /// Weights of the races to come.
    open: f64,
}

impl Time {
    /// Returns the longest time that a race of this weight may take.
    pub fn share(&self, weight: f64) -> Duration {
        self.left().mul_f64((weight / self.open.max(weight)).clamp(0.0, 1.0))
    }

    /// Removes a race that is over or not needed: the other races share the time that it leaves.
    pub fn close(&mut self, weight: f64) {
        self.open = (self.open - weight).max(0.0);
    }

    fn left(&self) -> Duration {
        self.deadline.saturating_duration_since(Instant::now())
    }

    /// Returns whether no time is left.
    pub fn is_over(&self) -> bool {
        self.left().is_zero()
    }
}

/// Returns the rules of a race with this time limit.
pub fn rules(limit: Duration, exhaustive: bool) -> Rules {
    if exhaustive {
        return Rules { top: usize::MAX, families: usize::MAX / 2, factor: f64::INFINITY, drop: 1.5, limit };
    }
    let pressed = limit < Duration::from_millis(60);
    Rules {
        top: if pressed { 2 } else { 4 },
        families: if pressed { 2 } else { 6 },
        factor: 4.0,
        drop: 1.5,
        limit,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn programme(cpus: usize, quick: bool) -> Programme {
        Programme::of(&arguments(quick), cpus)
    }

    fn arguments(quick: bool) -> Arguments {
        Arguments {
            quick,
            seconds: None,
            ranks: Vec::new(),
            bytes: Vec::new(),
            collectives: Vec::new(),
            rules: crate::commands::tune::rules::ForOthers::default(),
        }
    }

    #[test]
    fn an_exhaustive_programme_probes_as_long_and_races_every_plan() {
        let mut arguments = arguments(false);
        arguments.rules.exhaustive = true;
        let (all, usual) = (Programme::of(&arguments, 2), programme(2, false));
        assert!(all.seconds > usual.seconds && all.probing() == usual.probing());
        arguments.seconds = Some(20);
        assert_eq!(Programme::of(&arguments, 2).probing(), Duration::from_secs(8), "no more than there is");
        let pressed = rules(Duration::ZERO, true);
        assert!(pressed.top == usize::MAX && pressed.factor == f64::INFINITY);
    }

    #[test]
    fn the_default_programme_fits_a_minute_on_2_cpus_and_one_and_a_half_on_16() {
        assert!(programme(2, false).seconds <= 60.0 && programme(16, false).seconds <= 90.0);
        assert!(programme(2, true).seconds < programme(2, false).seconds);
        assert_eq!(programme(2, false).ranks, [2, 4, 8]);
        assert_eq!(programme(16, false).ranks, [2, 4, 8, 16]);
        assert_eq!(programme(12, false).ranks, [2, 4, 8, 12]);
        assert_eq!(programme(256, false).ranks, [2, 4, 8, 16, 32, 64]);
    }

    #[test]
    fn sizes_between_have_neighbours_that_are_raced() {
        let all = programme(2, false);
        let raced: Vec<usize> =
            all.cases(2).iter().filter(|c| c.0 == Collective::Bcast).map(|c| c.1).collect();
        let between: Vec<Case> = all.between(2);
        assert!(!between.is_empty() && between.iter().all(|(c, _)| c.moves_data()));
        for (_, bytes) in between {
            let [below, above] = all.neighbours(bytes);
            assert!(!raced.contains(&bytes) && below < Some(bytes) && above > Some(bytes));
        }
    }

    #[test]
    fn races_share_what_is_left_and_none_gets_more() {
        let all = programme(2, false);
        let start = Instant::now();
        let mut time = all.time(start, 2);
        let cases: Vec<(Case, usize)> =
            all.ranks.iter().flat_map(|&r| all.cases(r).into_iter().map(move |c| (c, r))).collect();
        let mut given = Duration::ZERO;
        for _ in 0..2 {
            for &(case, ranks) in &cases {
                given += time.share(weight(case, ranks));
            }
        }
        // No race was closed meanwhile: together, the shares are the part of the time for all races without those between sizes.
        assert!(given <= Duration::from_secs_f64(all.seconds), "{given:?}");
        time.close(f64::INFINITY);
        assert!(time.share(1.0) <= Duration::from_secs_f64(all.seconds) && !time.is_over());
        assert!(all.time(start - Duration::from_secs(3600), 2).is_over());
    }
}
