//! Which cases run, and in which teams.

use crate::case::{Case, Kind};
use crate::part::PATIENCE;
use crate::rows::{rows, Row};
use lineweave::settings::{Attach, Settings, Wait};
use lineweave::team::TeamConfig;
use lineweave::topology::Source;
use lineweave::Collective;
use lineweave_core::algorithm::spec::Named;
use std::time::Duration;

/// Two packages with memory of their own, so that homes and levels differ on every machine.
const MACHINE: &str = "pack:2 numa:1 core:2 pu:1";
/// How long a rank may be stopped.
const STOPPED: Duration = Duration::from_millis(50);

/// Lengths at the first ranks and at another: in a flag's line, a slot, several windows, and read where they lie.
const LENGTHS: [(usize, usize); 8] = [
    (8, 16),
    (64, 8),
    (8, 1 << 20),
    (1 << 20, 8),
    (40_000, 20_000),
    (20_000, 40_000),
    (1_000_000, 4_000_000),
    (4_000_000, 1_000_000),
];

/// Mistakes of a team at most: what processes say of them fits a pipe.
const OF_A_TEAM: usize = 40;

/// How the ranks of a team reach each other.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reach {
    Threads,
    Processes,
    /// Processes that copy out of each other's buffers (cross-memory attach): of the rows, those that do.
    Attach,
}

impl Reach {
    const ALL: [Reach; 3] = [Reach::Threads, Reach::Processes, Reach::Attach];
}

/// A team and the mistakes that its ranks make.
pub struct Job {
    pub ranks: usize,
    pub reach: Reach,
    pub settings: Settings,
    pub cases: Vec<Case>,
}

impl Job {
    /// What carries a case's call out.
    pub fn forced(&self, case: &Case) -> String {
        let forced = self.settings.algorithms.iter().find(|forced| forced.collective == case.collective);
        forced.map_or("choice".to_owned(), |f| Named::new(&f.algorithm, &f.params).to_string())
    }
}

/// All teams, or those that choose for themselves.
pub fn jobs(chosen: bool) -> Vec<Job> {
    let mut jobs = Vec::new();
    for (reach, ranks) in Reach::ALL.into_iter().flat_map(|reach| (2..=5).map(move |ranks| (reach, ranks))) {
        if reach != Reach::Attach {
            choose(&mut jobs, reach, ranks);
        }
        if !chosen {
            force(&mut jobs, reach, ranks);
        }
    }
    jobs
}

fn settings() -> Settings {
    Settings { check: false, timeout: Some(PATIENCE), stop_timeout: Some(STOPPED), ..Settings::default() }
}

/// Every kind of mistake in calls of a collective.
fn kinds(collective: Collective, reach: Reach) -> impl Iterator<Item = (usize, Kind)> {
    let processes = reach != Reach::Threads;
    let kinds = Kind::EACH.into_iter().chain(Kind::SLOW).enumerate();
    kinds.filter(move |(_, kind)| match kind {
        Kind::Stops | Kind::Dies => processes,
        kind => kind.applies(collective),
    })
}

/// Teams with these settings: whose rank dies is in no other case.
fn teams(jobs: &mut Vec<Job>, ranks: usize, reach: Reach, settings: &Settings, cases: Vec<Case>) {
    let (dies, lives): (Vec<Case>, Vec<Case>) = cases.into_iter().partition(|case| case.kind == Kind::Dies);
    let cases = lives.chunks(OF_A_TEAM).chain(dies.chunks(1));
    jobs.extend(cases.map(|cases| Job { ranks, reach, settings: settings.clone(), cases: cases.to_vec() }));
}

/// Teams that choose.
fn choose(jobs: &mut Vec<Job>, reach: Reach, ranks: usize) {
    let mut cases = Vec::new();
    for (c, collective) in Collective::ALL.into_iter().enumerate() {
        for (k, kind) in kinds(collective, reach) {
            let turn = c + 3 * k + ranks;
            let lengths = match kind {
                Kind::Length => &LENGTHS[..],
                _ => &LENGTHS[turn % LENGTHS.len()..][..1],
            };
            for (i, &(bytes, other_bytes)) in lengths.iter().enumerate() {
                let turn = turn + i;
                let other = Collective::ALL[(c + 1 + turn % 10) % Collective::ALL.len()];
                cases.push(Case {
                    kind,
                    collective,
                    bytes: if collective.moves_data() { bytes } else { 0 },
                    other,
                    other_bytes: match kind {
                        Kind::Length => other_bytes,
                        _ if other.moves_data() => bytes,
                        _ => 0,
                    },
                    wrong: turn % ranks,
                    root: turn / 3 % ranks,
                    back_to_back: turn / 2 % 2 == 0,
                });
            }
        }
    }
    teams(jobs, ranks, reach, &settings(), cases);
}

/// Teams with a row for each collective. Waits sleep at once: most of them end by a limit, and would yield until then.
fn force(jobs: &mut Vec<Job>, reach: Reach, ranks: usize) {
    let attach = if reach == Reach::Attach { Attach::On } else { Attach::Off };
    let topology = Source::Synthetic(MACHINE.to_owned());
    let settings = Settings { topology, attach, wait: Wait::Sleep, ..settings() };
    let shape = TeamConfig::new(ranks, &settings).expect("a configuration").shape();
    let table: Vec<Vec<Row>> = Collective::ALL.iter().map(|&c| rows(c, &shape, reach)).collect();
    for team in 0..table.iter().map(Vec::len).max().unwrap_or(0) {
        let at = |c: usize| table[c].get(team % table[c].len().max(1));
        let algorithms = (0..table.len()).filter_map(|c| at(c).map(Row::forced)).collect();
        let mut cases = Vec::new();
        for (c, row) in table.iter().enumerate().filter_map(|(c, rows)| Some((c, rows.get(team)?))) {
            let collective = Collective::ALL[c];
            for (k, kind) in kinds(collective, reach).filter(|&(k, _)| row.turns(k, ranks)) {
                if Kind::SLOW.contains(&kind) && !row.first {
                    continue;
                }
                let turn = row.number + k;
                let o = (c + 1 + turn / 4 % 10) % table.len();
                let other = Collective::ALL[o];
                cases.push(Case {
                    kind,
                    collective,
                    bytes: row.bytes,
                    other,
                    other_bytes: match kind {
                        Kind::Length => row.other_bytes,
                        _ if other.moves_data() => at(o).map_or(row.bytes, |other| other.bytes),
                        _ => 0,
                    },
                    wrong: turn / 2 % ranks,
                    root: if collective.rooted() { turn / 5 % ranks } else { 0 },
                    back_to_back: turn / 4 % 2 == 0,
                });
            }
        }
        teams(jobs, ranks, reach, &Settings { algorithms, ..settings.clone() }, cases);
    }
}
