//! Running a benchmark: windows of all subjects of a case alternate, round by round, in one run.
//!
//! 1. Every peer is given its best setting for the case, by short windows of each.
//! 2. A round is one window of every subject. Subjects that are not being measured sleep.
//! 3. The ratio to the floor is taken within rounds, because the machine drifts between them.

use super::definition::{Definition, Team};
use super::peers::{stats, Measurement, PeerError, Peers, Request};
use super::row::{algorithm_name, Row, Skipped, Windows};
use super::subject::Subject;
use crate::error::CliError;
use lineweave_core::collective::Collective;
use lineweave_tune::trial::{Buffers, Outcome, Trial, TrialTeam, TrialTeamError};
use std::collections::BTreeMap;
use std::time::Duration;

/// Messages up to one line travel with a flag, so that their floor is the exchange of two flags.
const LINE_BYTES: u64 = 64;

/// Bytes that the hand-written loops of three and more ranks move.
const WORD_BYTES: u64 = 8;

/// Length from which time goes into moving bytes and not into synchronising, which the loop of the byte floor does
/// twice.
const BYTE_FLOOR_FROM: u64 = 64 << 10;

/// A case of a benchmark: the call that all subjects are asked to make.
#[derive(Clone, PartialEq, Debug)]
pub struct Case {
    pub collective: Collective,
    pub ranks: usize,
    pub bytes: u64,
    pub buffers: Buffers,
}

/// The results of a case.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Results {
    pub rows: Vec<Row>,
    pub skipped: Vec<Skipped>,
}

/// Everything that stays alive between windows.
#[derive(Debug)]
pub struct Runner {
    pub peers: Peers,
    /// Teams of the size that is measured now.
    pub crews: BTreeMap<Team, TrialTeam>,
    /// CPUs to pin to.
    pub cpus: Vec<usize>,
    settings: BTreeMap<SettingKey, Result<String, String>>,
}

/// The parameters that a peer's best setting depends on; message and buffers count where the peer is a way of moving
/// them.
type SettingKey = (Subject, Team, usize, Option<(Collective, u64, Buffers)>);

/// A subject of a case with its windows so far.
struct Entrant {
    subject: Subject,
    team: Team,
    setting: String,
    windows: Windows,
    ours: Option<Outcome>,
    theirs: Option<Measurement>,
}

impl Case {
    /// Returns the cases of a definition, with the kinds of buffers and the messages that matter: a barrier has no
    /// buffers.
    pub fn of(definition: &Definition) -> Vec<Case> {
        let mut cases = Vec::new();
        for &ranks in &definition.ranks {
            for &bytes in &definition.sizes_bytes {
                for &buffers in &definition.buffers {
                    cases.push(Case { collective: definition.collective, ranks, bytes, buffers });
                }
            }
        }
        cases
    }

    /// Returns the subject that is the floor of this case.
    pub fn floor(&self) -> Option<Subject> {
        match (self.collective.moves_data() && self.bytes > LINE_BYTES, self.ranks) {
            (true, 2) if self.has_byte_floor() => Some(Subject::ByteFloor),
            (true, _) => Some(Subject::Memcpy),
            (false, 2) => Some(Subject::Floor),
            (false, _) if self.has_hand_floor() => Some(Subject::HandFloor),
            (false, _) => None,
        }
    }

    /// Returns whether the hand-written loops of three and more ranks cover this case.
    fn has_hand_floor(&self) -> bool {
        let written = match self.collective {
            Collective::Barrier => true,
            Collective::Bcast | Collective::Allreduce => {
                self.bytes == WORD_BYTES && self.buffers == Buffers::Reuse
            }
            _ => false,
        };
        written && self.ranks > 2
    }

    /// Returns whether the loop that moves the fewest bytes covers this case.
    fn has_byte_floor(&self) -> bool {
        self.collective == Collective::Allreduce
            && self.ranks == 2
            && self.bytes >= BYTE_FLOOR_FROM
            && self.bytes % LINE_BYTES == 0
    }

    /// Returns whether a subject can be measured for this case, in a team of this kind.
    fn takes(&self, subject: Subject, team: Team) -> bool {
        match subject {
            Subject::Lineweave | Subject::Spin | Subject::Yield | Subject::Sleep => true,
            Subject::Boxes | Subject::Attach | Subject::Shared => {
                team == Team::Processes && self.collective.moves_data() && self.bytes > LINE_BYTES
            }
            Subject::ByteFloor => self.has_byte_floor(),
            Subject::OwnBarrier => self.collective.moves_data() && self.bytes <= LINE_BYTES,
            // For messages longer than a line the exchange is no floor, but it tells whether the CPUs are still in the
            // same places.
            Subject::Floor => self.ranks == 2,
            Subject::HandFloor => self.has_hand_floor(),
            Subject::Memcpy => self.collective.moves_data() && self.bytes > LINE_BYTES,
            Subject::Pthread | Subject::Libgomp | Subject::Libomp | Subject::StdBarrier => {
                self.collective == Collective::Barrier
            }
        }
    }
}

impl Runner {
    /// Returns a runner with these programs, on these CPUs.
    pub fn new(peers: Peers, cpus: Vec<usize>) -> Runner {
        Runner { peers, crews: BTreeMap::new(), cpus, settings: BTreeMap::new() }
    }

    /// Measures a case. `step` is called before every window.
    pub fn run(
        &mut self,
        case: &Case,
        definition: &Definition,
        step: &mut dyn FnMut(Subject, Team),
    ) -> Result<Results, CliError> {
        let mut results = Results::default();
        let mut entrants = self.entrants(case, definition, &mut results.skipped)?;
        for round in 0..definition.repeat.launches {
            for entrant in &mut entrants {
                step(entrant.subject, entrant.team);
                self.window(case, definition, entrant, round == 0, &mut results.skipped)?;
            }
        }
        let floor = case.floor();
        let floors: BTreeMap<Team, Windows> = entrants
            .iter()
            .filter(|e| Some(e.subject) == floor)
            .map(|e| (e.team, e.windows.clone()))
            .collect();
        for entrant in entrants.into_iter().filter(|e| !e.windows.batches_ns.is_empty()) {
            // A copy involves one rank only, whatever the team.
            let floor_of = floors
                .get(&entrant.team)
                .or_else(|| floors.values().next().filter(|_| floor == Some(Subject::Memcpy)));
            let is_gauge = entrant.subject == Subject::Floor && floor != Some(Subject::Floor);
            let ratio = floor_of.filter(|_| !is_gauge).and_then(|f| entrant.windows.ratio_to(f));
            results.rows.push(entrant.row(case, floor.filter(|_| ratio.is_some()), ratio));
        }
        Ok(results)
    }

    fn entrants(
        &mut self,
        case: &Case,
        definition: &Definition,
        skipped: &mut Vec<Skipped>,
    ) -> Result<Vec<Entrant>, CliError> {
        let mut entrants = Vec::new();
        for &team in &definition.teams {
            for &subject in definition.subjects.iter().filter(|s| case.takes(**s, team)) {
                let once = subject == Subject::Memcpy && team != definition.teams[0];
                if once {
                    continue;
                }
                match self.setting(case, definition, subject, team)? {
                    Ok(setting) => entrants.push(Entrant {
                        subject,
                        team,
                        setting,
                        windows: Windows::default(),
                        ours: None,
                        theirs: None,
                    }),
                    Err(because) => skipped.push(Skipped { subject, ranks: case.ranks, team, because }),
                }
            }
        }
        Ok(entrants)
    }

    /// Returns the setting to measure a subject with, which is found once for each size of team, or the reason why it
    /// is skipped.
    fn setting(
        &mut self,
        case: &Case,
        definition: &Definition,
        subject: Subject,
        team: Team,
    ) -> Result<Result<String, String>, CliError> {
        if subject.ours().is_some() {
            return Ok(Ok(String::new()));
        }
        if subject == Subject::Memcpy {
            return Ok(Ok(case.buffers.name().to_owned()));
        }
        let moved = match subject {
            Subject::ByteFloor => Some((case.collective, case.bytes, case.buffers)),
            Subject::HandFloor => Some((case.collective, WORD_BYTES, case.buffers)),
            _ => None,
        };
        let key = (subject, team, case.ranks, moved);
        if let Some(known) = self.settings.get(&key) {
            return Ok(known.clone());
        }
        let mut request = self.request(case, definition, subject, team);
        request.window = (request.window / 4).max(Duration::from_millis(5));
        let best = match self.peers.best(&request) {
            Ok(setting) => Ok(setting),
            Err(e) => Err(left_out(e)?),
        };
        self.settings.insert(key, best.clone());
        Ok(best)
    }

    fn request(&self, case: &Case, definition: &Definition, subject: Subject, team: Team) -> Request {
        let repeat = &definition.repeat;
        Request {
            subject,
            team,
            ranks: case.ranks,
            bytes: case.bytes,
            cpus: self.cpus.clone(),
            window: Duration::from_nanos(repeat.window_ns),
            min_batches: repeat.min_batches,
            max_batches: repeat.max_batches,
            precision: repeat.precision,
            variants: match subject {
                Subject::ByteFloor => case.buffers.name(),
                Subject::HandFloor => case.collective.name(),
                _ => "all",
            },
        }
    }

    fn window(
        &mut self,
        case: &Case,
        definition: &Definition,
        entrant: &mut Entrant,
        first: bool,
        skipped: &mut Vec<Skipped>,
    ) -> Result<(), CliError> {
        let Entrant { subject, team, .. } = *entrant;
        let mut skip = |because: String| {
            if first {
                skipped.push(Skipped { subject, ranks: case.ranks, team, because });
            }
        };
        if subject == Subject::Spin && case.ranks > self.cpus.len() {
            // Each hand-over takes until the kernel takes the CPU away, so a window would last for many seconds.
            entrant.windows.miss();
            skip(format!(
                "{} ranks that only spin on {} CPUs wait for the kernel's clock",
                case.ranks,
                self.cpus.len()
            ));
            return Ok(());
        }
        if let Some(wait) = subject.ours() {
            let repeat = &definition.repeat;
            let (collective, bytes) = match subject {
                Subject::OwnBarrier => (Collective::Barrier, 0),
                _ => (case.collective, case.bytes as usize),
            };
            let trial = Trial {
                buffers: case.buffers,
                path: subject.path(),
                wait,
                check: first,
                window_ns: repeat.window_ns,
                least: repeat.min_batches,
                most: repeat.max_batches,
                precision: repeat.precision / 2.0,
                ..Trial::new(collective, bytes)
            };
            let Some(crew) = self.crews.get_mut(&team) else {
                skip("no team of this kind was started".to_owned());
                return Ok(());
            };
            match crew.run(&trial) {
                Ok(outcome) => {
                    entrant.windows.add(&outcome.batches_ns, outcome.disturbed);
                    entrant.ours = Some(outcome);
                }
                Err(TrialTeamError::Refused { rank, why }) => {
                    entrant.windows.miss();
                    skip(format!("rank {rank}: {why}"));
                }
                Err(e) => return Err(e.into()),
            }
            return Ok(());
        }
        let request = self.request(case, definition, subject, team);
        match self.peers.run(&request, &entrant.setting) {
            Ok(measurement) => {
                entrant.windows.add(&measurement.batches_ns, measurement.disturbed);
                entrant.theirs = Some(measurement);
            }
            Err(e) => {
                entrant.windows.miss();
                skip(left_out(e)?);
            }
        }
        Ok(())
    }
}

/// Returns the reason for which a peer is left out; other errors end the benchmark.
fn left_out(error: PeerError) -> Result<String, CliError> {
    match error {
        PeerError::Skipped { because, .. } => Ok(because),
        e @ (PeerError::Failed { .. } | PeerError::TimedOut { .. }) => Ok(e.to_string()),
        e => Err(e.into()),
    }
}

impl Entrant {
    fn row(self, case: &Case, floor: Option<Subject>, ratio_to_floor: Option<f64>) -> Row {
        Row {
            collective: case.collective,
            ranks: case.ranks,
            bytes: case.bytes,
            team: self.team,
            subject: self.subject,
            buffers: case.buffers,
            times: stats(&self.windows.batches_ns, self.windows.disturbed).into(),
            rounds: self.windows.medians.len(),
            ratio_to_floor,
            floor,
            algorithm: self.ours.as_ref().map(|o| algorithm_name(o, case.bytes)),
            window_bytes: self.ours.as_ref().map(|o| o.way.window),
            because: self.ours.map(|o| o.because),
            setting: (!self.setting.is_empty()).then_some(self.setting),
            runtime: self.theirs.map(|m| m.runtime),
        }
    }
}
