//! A team's memory as somebody outside of the team reads it: by system calls, so that nothing is mapped, no page comes
//! into being, and no team notices.

use super::header_words;
use super::note::{self, Setup, WaitNote};
use super::words::{self, control};
use super::{header, Geometry, RankState, PAGE};
use crate::error::{Error, Loss};
use rustix::fs::SeekFrom;
use std::fs::File;
use std::os::unix::fs::{FileExt, MetadataExt};

/// A team, or a communicator made from it, as it is at the moment.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Observed {
    /// Offset of the segment in the team's memory: 0 for the team itself.
    pub at: u64,
    /// Bytes of memory that the team and all its communicators have in use.
    pub memory_bytes: u64,
    /// Those of them that freed communicators took, kept for others.
    pub idle_bytes: u64,
    /// The rank whose loss ended it.
    pub failed: Option<(usize, Loss)>,
    /// True if every rank has left.
    pub over: bool,
    /// Every rank.
    pub ranks: Vec<ObservedRank>,
}

/// A rank as it is at the moment.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ObservedRank {
    /// The rank's state.
    pub state: RankState,
    /// The rank's process id, 0 before it joined.
    pub pid: u32,
    /// The thread that joined.
    pub thread: u32,
    /// Calls that it has begun.
    pub sequence: u64,
    /// Wait of the rank that has lasted for some milliseconds, if there is one.
    pub waiting: Option<WaitNote>,
    /// Cost of the rank's plans.
    pub setup: Setup,
}

fn unreadable(e: std::io::Error) -> Error {
    Error::system("reading a team's memory", e, "")
}

fn words_at(file: &File, offset: u64, count: usize) -> Result<Vec<u64>, Error> {
    let mut bytes = vec![0; 8 * count];
    file.read_exact_at(&mut bytes, offset).map_err(unreadable)?;
    Ok(bytes.chunks_exact(8).map(|w| u64::from_ne_bytes(w.try_into().unwrap_or_default())).collect())
}

impl Observed {
    /// Reads a team's memory: the team, and the communicators made from it that exist now, in their order. What is kept of freed ones is none.
    ///
    /// A communicator's header is the first of its pages to come into being and goes with the others, so the next one is where the
    /// next page with data is. (The kernel tells: what is reserved and was never written is no data.)
    ///
    /// # Errors
    /// [`Error::Foreign`] when the file is not a segment of this version, [`Error::System`] when it cannot be read.
    pub fn read(file: &File) -> Result<Vec<Observed>, Error> {
        let meta = file.metadata().map_err(unreadable)?;
        if meta.size() < PAGE as u64 {
            return Err(header::foreign("a file shorter than a header"));
        }
        let (team, mut end) = Observed::at(file, 0, &meta)?;
        let mut found = vec![team];
        while let Ok(data) = rustix::fs::seek(file, SeekFrom::Data(end)) {
            let at = data / PAGE as u64 * PAGE as u64;
            match Observed::at(file, at, &meta) {
                Ok((communicator, behind)) => {
                    found.extend(Some(communicator).filter(|seen| !seen.over));
                    end = behind;
                }
                // It was given up while this looked.
                Err(_) => end = at + PAGE as u64,
            }
        }
        Ok(found)
    }

    /// The one that begins at `at`, and where it ends.
    fn at(file: &File, at: u64, meta: &std::fs::Metadata) -> Result<(Observed, u64), Error> {
        let head = words_at(file, at, header_words::IDLE_BYTES + 1)?;
        let first = head[..header::WORDS].try_into().map_err(|_| header::foreign("a short header"))?;
        let geometry: Geometry = header::read(first, meta.size().saturating_sub(at))?;
        let ranks = (0..geometry.ranks())
            .map(|rank| {
                let area = at + (geometry.areas_start() + rank * geometry.area()) as u64;
                let page = words_at(file, area, control::SETUP + note::SETUP_WORDS)?;
                let note = std::array::from_fn(|i| page[control::NOTE + i]);
                Ok(ObservedRank {
                    state: RankState::of(page[control::STATE]),
                    pid: page[control::PID] as u32,
                    thread: page[control::THREAD] as u32,
                    sequence: page[control::SEQUENCE],
                    waiting: WaitNote::of(&note),
                    setup: note::setup(&page),
                })
            })
            .collect::<Result<_, Error>>()?;
        let seen = Observed {
            at,
            memory_bytes: meta.blocks() * 512,
            idle_bytes: head[header_words::IDLE_BYTES],
            failed: words::loss(head[header_words::FAILED]),
            over: head[header_words::GONE] as usize >= geometry.ranks(),
            ranks,
        };
        Ok((seen, at + geometry.total() as u64))
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::super::{Awaited, Segment};
    use super::*;
    use std::time::Duration;

    #[test]
    fn a_team_is_read_from_outside() {
        let segment = Segment::create(3, 4096, b"configuration").unwrap();
        segment.claim(1).unwrap();
        segment.join(1, 1, true);
        segment.note_wait(1, 77, 12, Awaited::Rank(0), "reduce-scatter");
        segment.set_failed(2, Loss::Stopped);
        let file = File::from(rustix::io::dup(segment.fd()).unwrap());
        let found = Observed::read(&file).unwrap();
        let seen = &found[0];
        assert_eq!((found.len(), seen.at, seen.over), (1, 0, false));
        assert_eq!(seen.failed, Some((2, Loss::Stopped)));
        assert!(seen.memory_bytes > 0);
        let setup = Setup { plans: 3, plan_bytes: 4096, took: Duration::from_micros(7), held_up: 2 };
        segment.note_setup(1, &setup);
        assert_eq!(Observed::read(&file).unwrap()[0].ranks[1].setup, setup);
        let absent = ObservedRank {
            state: RankState::Absent,
            pid: 0,
            thread: 0,
            sequence: 0,
            waiting: None,
            setup: Setup::default(),
        };
        assert_eq!((&seen.ranks[0], &seen.ranks[2]), (&absent, &absent));
        assert_eq!((seen.ranks[1].state, seen.ranks[1].pid), (RankState::Active, std::process::id()));
        let (awaited, operation) = (Awaited::Rank(0), "reduce-scatter".into());
        let note = WaitNote { since_ns: 77, sequence: 12, awaited, operation };
        assert_eq!(seen.ranks[1].waiting, Some(note));
        segment.clear_wait(1);
        assert_eq!(Observed::read(&file).unwrap()[0].ranks[1].waiting, None);
    }

    #[test]
    fn communicators_are_found_while_they_exist() {
        let team = Segment::create(4, 65536, b"").unwrap();
        let file = File::from(rustix::io::dup(team.fd()).unwrap());
        let made: Vec<u64> = [3, 1, 2].map(|ranks| team.found(ranks, 0).unwrap().at()).into();
        let open: Vec<_> = made.iter().zip([3, 1, 2]).map(|(&at, n)| team.open(at, n).unwrap()).collect();
        open[2].claim_part(1, 0..PAGE).unwrap();
        open[2].sign(1, 9);
        let found = |what: fn(&Observed) -> u64| -> Vec<u64> {
            Observed::read(&file).unwrap().iter().map(what).collect()
        };
        assert_eq!(found(|seen| seen.at), [0, made[0], made[1], made[2]]);
        assert_eq!(found(|seen| seen.ranks.len() as u64), [4, 3, 1, 2]);
        let seen = &Observed::read(&file).unwrap()[3];
        assert_eq!((seen.ranks[1].state, seen.ranks[1].pid), (RankState::Active, std::process::id()));
        assert_eq!(seen.ranks[0].state, RankState::Absent);
        open[1].depart(None, 0);
        assert_eq!(found(|seen| seen.at), [0, made[0], made[2]], "one was given back");
        (0..3).for_each(|_| open[0].depart(None, 0));
        (0..4).for_each(|_| team.depart(None, 0));
        assert_eq!(found(|seen| u64::from(seen.over)), [1, 0], "the team is over, one communicator lives on");
    }

    #[test]
    fn other_files_are_refused() {
        let file = File::open("/proc/self/exe").unwrap();
        assert!(matches!(Observed::read(&file), Err(Error::Foreign { .. })));
    }
}
