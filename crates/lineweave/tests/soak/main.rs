//! A soak: team after team of random size, among threads and processes by turns, makes random calls of every kind beside a
//! competing load, compares each with a plain reference, and watches what it holds. `make soak` runs it for ten minutes.
//!
//! `LINEWEAVE_TEST_SOAK` says for how many seconds, `LINEWEAVE_TEST_SEED` repeats a run: calls and their order are those of
//! the seed, how many there are depends on the time. It starts itself once a rank, so it has no harness but prints what one
//! would.

#[path = "../common/call.rs"]
mod call;
#[path = "../common/harness.rs"]
mod harness;
mod memory;
#[path = "../common/random.rs"]
mod random;
mod rank;
#[path = "../common/sample.rs"]
mod sample;

use lineweave::settings::{Settings, Wait};
use lineweave::team::{self, Team, TeamConfig};
use memory::Held;
use random::Random;
use rank::{soak, Tally};
use std::time::{Duration, Instant};

#[global_allocator]
static ALLOCATOR: memory::Counting = memory::Counting;

const JOB: &str = "SOAK_TEST_JOB";
/// What a run lasts when nobody says: long enough for teams of both kinds.
const SECONDS: u64 = 12;
/// What a team lasts at most.
const TEAM: Duration = Duration::from_secs(30);
/// A rank that hears nothing for so long is an error, and no hang.
const PATIENCE: Duration = Duration::from_secs(60);

fn main() {
    if let Ok(job) = std::env::var(JOB) {
        std::process::exit(rank(&job));
    }
    harness::main(&[("random_calls_stay_right_and_nothing_grows", random_calls)]);
}

fn random_calls() {
    let number =
        |name: &str, default: u64| std::env::var(name).map_or(default, |v| v.parse().expect("a number"));
    let seed = number("LINEWEAVE_TEST_SEED", u64::from(std::process::id()));
    let lasts = Duration::from_secs(number("LINEWEAVE_TEST_SOAK", SECONDS));
    println!("seed {seed}, {} s", lasts.as_secs());
    let (calls, teams) = harness::beside_a_load(|| teams(seed, lasts));
    println!("seed {seed}: {calls} calls in {teams} teams, every result as its reference, nothing grew");
    println!("tally: calls soaked {calls}");
}

/// Team after team; what this process holds after each must not grow either.
fn teams(seed: u64, lasts: Duration) -> (u64, u64) {
    let start = Instant::now();
    let mut random = Random(seed);
    let (mut calls, mut teams) = (0, 0);
    let each = TEAM.min(lasts / 4);
    let mut held = Vec::with_capacity(1 << 12);
    while start.elapsed() + each / 2 < lasts {
        let one = Soaking::random(&mut random, teams % 2 == 1);
        let tally = one.run(each).unwrap_or_else(|why| panic!("seed {seed}, team {teams} ({one}): {why}"));
        calls += tally.calls;
        teams += 1;
        memory::trim();
        held.push(Held::now(0));
        println!(
            "team {teams} ({one}): {} calls in {} laps, {} KiB allocated, {} KiB shared",
            tally.calls,
            tally.laps,
            tally.held.heap >> 10,
            tally.held.shared >> 10
        );
    }
    memory::growth(&held).unwrap_or_else(|what| panic!("seed {seed}: after its teams {what}"));
    (calls, teams)
}

/// A team of the soak.
#[derive(Clone, Copy)]
struct Soaking {
    ranks: usize,
    processes: bool,
    wait: Wait,
    check: bool,
    reproducible: bool,
    helped: bool,
    late_banks: bool,
    seed: u64,
}

impl std::fmt::Display for Soaking {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let kind = if self.processes { "processes" } else { "threads" };
        write!(f, "{} {kind}, waiting by {:?}", self.ranks, self.wait)?;
        for (is, name) in [
            (self.check, "checked"),
            (self.reproducible, "reproducible"),
            (self.helped, "with a helper"),
            (self.late_banks, "large banks late"),
        ] {
            if is {
                write!(f, ", {name}")?;
            }
        }
        Ok(())
    }
}

impl Soaking {
    fn random(random: &mut Random, processes: bool) -> Soaking {
        Soaking {
            ranks: random.of(&[1, 2, 2, 3, 4, 5, 6, 7, 8, 9, 12, 17]),
            processes,
            wait: random.of(&[Wait::Auto, Wait::Auto, Wait::Sleep, Wait::Yield]),
            // Without checks other paths are taken, so some go without.
            check: !random.once_in(4),
            reproducible: random.once_in(4),
            helped: random.once_in(4),
            late_banks: random.once_in(2),
            seed: random.below(1 << 30) as u64,
        }
    }

    fn run(&self, lasts: Duration) -> Result<Tally, String> {
        let (mut settings, _) = Settings::from_environment().map_err(|e| e.to_string())?;
        settings.wait = self.wait;
        settings.check = self.check;
        settings.reproducible = self.reproducible;
        settings.threads.progress = self.helped;
        settings.timeout = Some(PATIENCE);
        let mut config = TeamConfig::new(self.ranks, &settings).map_err(|e| e.to_string())?;
        config.late_banks = self.late_banks;
        let team = Team::with(config).map_err(|e| e.to_string())?;
        let tallies: Vec<Tally> = match self.processes {
            false => {
                let each = team.threads(|comm| Ok(soak(comm, self.seed, lasts)));
                each.map_err(|e| e.to_string())?.into_iter().collect::<Result<_, _>>()?
            }
            true => self.spawn(&team, lasts)?,
        };
        // Ranks of small parts make as many calls as those of large ones.
        match tallies.iter().all(|t| t.laps == tallies[0].laps) {
            true => Ok(tallies[0]),
            false => Err(format!("ranks soaked differently: {tallies:?}")),
        }
    }

    fn spawn(&self, team: &Team, lasts: Duration) -> Result<Vec<Tally>, String> {
        let children = harness::start(team, 1, |command| {
            command.env(JOB, format!("{} {}", self.seed, lasts.as_millis()));
        });
        let said = harness::finish(children, &self.to_string());
        let tallies = said.iter().map(|text| {
            let numbers: Option<Vec<u64>> = text.split(' ').map(|w| w.parse().ok()).collect();
            match numbers.as_deref() {
                Some(&[calls, laps, heap, shared]) => {
                    Ok(Tally { calls, laps, held: Held { heap, shared, ..Held::default() } })
                }
                _ => Err(format!("a rank ended with {text}; all: {said:?}")),
            }
        });
        tallies.collect()
    }
}

/// The part of one rank that is a process.
fn rank(job: &str) -> i32 {
    let mut words = job.split(' ');
    let mut number = || words.next().and_then(|w| w.parse().ok()).expect("a number");
    let (seed, lasts) = (number(), Duration::from_millis(number()));
    let done = team::from_environment().map_err(|e| e.to_string()).and_then(|comm| soak(comm, seed, lasts));
    match done {
        Ok(Tally { calls, laps, held }) => {
            println!("{calls} {laps} {} {}", held.heap, held.shared);
            0
        }
        Err(why) => {
            println!("{why}");
            1
        }
    }
}
