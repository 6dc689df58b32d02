//! Peers of a benchmark: small C and C++ programs (`bench/peers/`) that are compiled when first needed and run in turn with
//! lineweave's own measurements.

mod measurement;
mod table;
mod toolchain;

pub use measurement::{stats, Measurement};
pub use table::{Compiler, Peer};
pub use toolchain::{BuildError, Source, Toolchain};

use super::definition::Team;
use super::subject::Subject;
use crate::capture::{capture, Captured};
use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// Reason why a peer gave no measurement.
#[derive(Debug, thiserror::Error)]
pub enum PeerError {
    /// The peer does not exist here, or not for this request: not a failure, but to be shown.
    #[error("{subject} skipped: {because}")]
    Skipped { subject: Subject, because: String },
    #[error("peers.toml: {0}")]
    Table(String),
    #[error("{}: {source}; give a directory that can be written", path.display())]
    Directory { path: PathBuf, source: io::Error },
    #[error("{subject} failed: {reason}")]
    Failed {
        subject: Subject,
        /// The program's own words.
        reason: String,
    },
    #[error("{subject} with setting `{setting}` and {ranks} ranks did not end within {} s and was killed", limit.as_secs())]
    TimedOut { subject: Subject, setting: String, ranks: usize, limit: Duration },
    #[error("{subject} printed a line that is not a measurement: {reason}")]
    Output {
        subject: Subject,
        /// A sentence that says what is wrong with the line.
        reason: String,
    },
    #[error("{subject}: expected its own runtime, found {found}; check LD_PRELOAD and LD_LIBRARY_PATH")]
    WrongRuntime { subject: Subject, found: String },
}

/// One window to measure.
#[derive(Clone, PartialEq, Debug)]
pub struct Request {
    pub subject: Subject,
    pub team: Team,
    pub ranks: usize,
    /// Message size in bytes, for the peers that move data.
    pub bytes: u64,
    /// The CPUs to use: rank r is pinned to CPU r modulo their number. Not empty.
    pub cpus: Vec<usize>,
    /// Longest time that the window lasts.
    pub window: Duration,
    pub min_batches: usize,
    pub max_batches: usize,
    /// The window ends early when the interval of the median is narrower than this share of the median.
    pub precision: f64,
    /// Variants that are tried of a program that has several: `all`, or the name of a kind that the program knows.
    pub variants: &'static str,
}

/// Time after which a window that should have ended counts as hung: calibration and start-up take time too, most of all
/// with more ranks than CPUs. Beside four programs that spin, a barrier of 3 ranks on 2 CPUs takes 10 ms.
const GRACE: Duration = Duration::from_secs(60);

/// The peers that ship, each with its program or with the reason why it has none.
#[derive(Debug)]
pub struct Peers {
    peers: Vec<(Peer, Result<PathBuf, String>)>,
}

impl Peers {
    /// Compiles every peer that can be compiled here into `directory`, or finds it there from before.
    pub fn build(directory: &Path) -> Result<Peers, PeerError> {
        Peers::build_with(directory, &Toolchain::discover())
    }

    /// As [`Peers::build`], with given compilers and libraries.
    pub fn build_with(directory: &Path, toolchain: &Toolchain) -> Result<Peers, PeerError> {
        let unusable = |source| PeerError::Directory { path: directory.to_owned(), source };
        fs::create_dir_all(directory).map_err(unusable)?;
        let mut peers = Vec::new();
        for peer in table::peers().map_err(PeerError::Table)? {
            let Some(text) = peer.text() else {
                let because = format!("{} does not ship", peer.source);
                peers.push((peer, Err(because)));
                continue;
            };
            let (program, file) = (peer.subject.to_string(), &peer.source);
            let source = Source { program: &program, file, text, compiler: peer.compiler };
            let program = match toolchain.make(&source, directory) {
                Ok(program) => Ok(program),
                Err(BuildError::Missing(because)) => Err(because),
                Err(BuildError::Directory(source)) => return Err(unusable(source)),
            };
            peers.push((peer, program));
        }
        Ok(Peers { peers })
    }

    /// Measures one window of every variant or setting that suits the request, so that the caller can choose. Settings that
    /// hang or fail are left out; it is an error only if none is left.
    pub fn survey(&self, request: &Request) -> Result<Vec<Measurement>, PeerError> {
        let (peer, _) = self.find(request)?;
        if peer.variants {
            return self.launch(request, request.variants, &BTreeMap::new());
        }
        let crowded = request.ranks > request.cpus.len();
        let mut measured = Vec::new();
        let mut trouble = None;
        for setting in peer.settings.iter().filter(|s| s.crowded || !crowded) {
            match self.launch(request, &setting.name, &setting.env) {
                Ok(lines) => measured.extend(lines),
                Err(error) => trouble = Some(error),
            }
        }
        match (measured.is_empty(), trouble) {
            (true, Some(error)) => Err(error),
            _ => Ok(measured),
        }
    }

    /// Returns the name of the fastest variant or setting, by one window of `request` each.
    pub fn best(&self, request: &Request) -> Result<String, PeerError> {
        self.survey(request)?
            .into_iter()
            .min_by(|a, b| a.stats().median.total_cmp(&b.stats().median))
            .map(|fastest| fastest.setting)
            .ok_or_else(|| skipped(request.subject, "it has no setting for this request".to_owned()))
    }

    /// Measures one window with a variant or setting by name, as [`Peers::best`] gives it.
    pub fn run(&self, request: &Request, setting: &str) -> Result<Measurement, PeerError> {
        let (peer, _) = self.find(request)?;
        let unknown = || skipped(request.subject, format!("it has no setting `{setting}`"));
        let env = match peer.settings.iter().find(|s| s.name == setting) {
            Some(found) => found.env.clone(),
            None if peer.variants => BTreeMap::new(),
            None => return Err(unknown()),
        };
        self.launch(request, setting, &env)?.pop().ok_or_else(unknown)
    }

    /// Returns the peer and the program for a request, or the reason why there is none.
    fn find(&self, request: &Request) -> Result<(&Peer, &Path), PeerError> {
        let skip = |because| Err(skipped(request.subject, because));
        let Some((peer, program)) = self.peers.iter().find(|(peer, _)| peer.subject == request.subject)
        else {
            return skip("it is not a peer".to_owned());
        };
        let [least, most] = peer.ranks;
        if !peer.teams.contains(&request.team) {
            return skip(format!("it does not exist among {}", request.team));
        }
        if !(least..=most).contains(&request.ranks) {
            return skip(format!("it takes {least} to {most} ranks, and {} were asked for", request.ranks));
        }
        if request.cpus.is_empty() {
            return skip("no CPU was given to run on".to_owned());
        }
        if matches!(peer.subject, Subject::Floor | Subject::ByteFloor) && request.cpus.len() < 2 {
            return skip("it spins without yielding and needs two CPUs".to_owned());
        }
        if peer.subject == Subject::Memcpy && request.bytes == 0 {
            return skip("a copy needs a size".to_owned());
        }
        if peer.subject == Subject::ByteFloor && (request.bytes < 4096 || request.bytes % 64 != 0) {
            return skip("its loop takes at least 4 KiB, and whole lines".to_owned());
        }
        match program {
            Ok(program) => Ok((peer, program)),
            Err(because) => skip(because.clone()),
        }
    }

    /// Runs a program for one window and reads what it prints.
    fn launch(
        &self,
        request: &Request,
        variant: &str,
        env: &BTreeMap<String, String>,
    ) -> Result<Vec<Measurement>, PeerError> {
        let subject = request.subject;
        let (peer, program) = self.find(request)?;
        let places: Vec<String> = request.cpus.iter().map(|cpu| format!("{{{cpu}}}")).collect();
        let cpus: Vec<String> = request.cpus.iter().map(ToString::to_string).collect();
        let mut command = Command::new(program);
        command
            .args(["--raw", "--team", request.team.name(), "--variant", variant, "--cpus", &cpus.join(",")])
            .args(["--ranks", &request.ranks.to_string(), "--bytes", &request.bytes.to_string()])
            .args(["--seconds", &request.window.as_secs_f64().max(0.001).to_string()])
            .args(["--min-batches", &request.min_batches.to_string()])
            .args(["--batches", &request.max_batches.to_string()])
            .args(["--precision", &request.precision.to_string()]);
        // Only the setting's own variables are set: variables of the user's shell would make it another setting.
        for (name, _) in std::env::vars_os() {
            let name = name.to_string_lossy();
            if ["OMP_", "GOMP_", "KMP_", "PEER_"].iter().any(|prefix| name.starts_with(prefix)) {
                command.env_remove(&*name);
            }
        }
        for (name, value) in env {
            command.env(name, value.replace("{places}", &places.join(",")));
        }
        // A program that tries its variants in turn takes a window for each.
        let windows = if variant == request.variants { 32 } else { 1 };
        let limit = GRACE + request.window * 4 * windows;
        let failed = |reason| PeerError::Failed { subject, reason };
        let Captured { out, err, ended, took } = capture(&mut command, limit);
        if ended.is_err() && took >= limit {
            return Err(PeerError::TimedOut {
                subject,
                setting: variant.to_owned(),
                ranks: request.ranks,
                limit,
            });
        }
        ended.map_err(|why| failed(err.lines().next().map_or(why, str::to_owned)))?;
        let measured: Vec<Measurement> = out
            .lines()
            .map(|line| Measurement::parse(line).map_err(|reason| PeerError::Output { subject, reason }))
            .collect::<Result<_, _>>()?;
        let stranger = measured.iter().find(|m| {
            let openmp = matches!(peer.compiler, Compiler::COpenmpGnu | Compiler::COpenmpLlvm);
            m.subject != subject || openmp && !m.runtime.starts_with(subject.name())
        });
        match stranger {
            Some(m) => Err(PeerError::WrongRuntime { subject, found: m.runtime.clone() }),
            None => Ok(measured),
        }
    }
}

fn skipped(subject: Subject, because: String) -> PeerError {
    PeerError::Skipped { subject, because }
}

#[cfg(test)]
mod tests;
