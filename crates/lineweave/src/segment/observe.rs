//! A team's memory as somebody outside of the team reads it: by system calls, so that nothing is mapped, no page comes
//! into being, and no team notices.

use super::note::{self, WaitNote};
use super::words::{self, control, header};
use super::{version_word, Geometry, RankState, MAGIC, MAX_RANKS, PAGE};
use crate::error::{Error, Loss};
use std::fs::File;
use std::os::unix::fs::{FileExt, MetadataExt};

/// A team as it is at the moment.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Observed {
    /// Bytes of memory that it has in use.
    pub memory_bytes: u64,
    /// The rank whose loss ended it.
    pub failed: Option<(usize, Loss)>,
    /// Every rank.
    pub ranks: Vec<ObservedRank>,
}

/// A rank as it is at the moment.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ObservedRank {
    /// Its state.
    pub state: RankState,
    /// Its process, 0 before it joined.
    pub pid: u32,
    /// The thread that joined.
    pub thread: u32,
    /// Calls that it has begun.
    pub sequence: u64,
    /// What it has been waiting in for some milliseconds.
    pub waiting: Option<WaitNote>,
}

impl Observed {
    /// Reads a team's memory.
    ///
    /// # Errors
    /// [`Error::Foreign`] when the file is not a segment of this version, [`Error::System`] when it cannot be read.
    pub fn read(file: &File) -> Result<Observed, Error> {
        let unreadable = |e: std::io::Error| Error::system("reading a team's memory", e, "");
        let meta = file.metadata().map_err(unreadable)?;
        let words = |offset: usize, count: usize| -> Result<Vec<u64>, Error> {
            let mut bytes = vec![0; 8 * count];
            file.read_exact_at(&mut bytes, offset as u64).map_err(unreadable)?;
            Ok(bytes.chunks_exact(8).map(|w| u64::from_ne_bytes(w.try_into().expect("8 bytes"))).collect())
        };
        let foreign = |found: &str| Error::Foreign {
            expected: format!("a lineweave {} segment", env!("CARGO_PKG_VERSION")),
            found: found.to_owned(),
        };
        if meta.size() < PAGE as u64 {
            return Err(foreign("a file shorter than a header"));
        }
        let head = words(0, header::FAILED + 1)?;
        if head[header::MAGIC] != MAGIC {
            return Err(foreign("a file without lineweave's mark"));
        }
        if head[header::VERSION] != version_word() {
            return Err(foreign("a segment of another version"));
        }
        let size = |word: usize| usize::try_from(head[word]).ok().filter(|&n| (n as u64) < meta.size());
        let sizes = (size(header::RANKS), size(header::BOX_BYTES), size(header::BLOB_BYTES));
        let (Some(ranks @ 1..=MAX_RANKS), Some(box_bytes), Some(blob)) = sizes else {
            return Err(foreign("a segment whose header does not fit it"));
        };
        let geometry = Geometry::new(ranks, box_bytes, blob);
        let ranks = (0..ranks)
            .map(|rank| {
                let page =
                    words(geometry.areas_start() + rank * geometry.area(), control::NOTE + note::WORDS)?;
                let note = page[control::NOTE..].try_into().expect("a note");
                Ok(ObservedRank {
                    state: RankState::of(page[control::STATE]),
                    pid: page[control::PID] as u32,
                    thread: page[control::THREAD] as u32,
                    sequence: page[control::SEQUENCE],
                    waiting: WaitNote::of(note),
                })
            })
            .collect::<Result<_, Error>>()?;
        Ok(Observed { memory_bytes: meta.blocks() * 512, failed: words::loss(head[header::FAILED]), ranks })
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::super::Segment;
    use super::*;

    #[test]
    fn a_team_is_read_from_outside() {
        let segment = Segment::create(3, 4096, b"charter").unwrap();
        segment.claim(1).unwrap();
        segment.join(1, 1, true);
        segment.note_wait(1, 77, 12, "reduce-scatter");
        segment.set_failed(2, Loss::Stopped);
        let file = File::from(rustix::io::dup(segment.fd()).unwrap());
        let seen = Observed::read(&file).unwrap();
        assert_eq!(seen.failed, Some((2, Loss::Stopped)));
        assert!(seen.memory_bytes > 0);
        let absent = ObservedRank { state: RankState::Absent, pid: 0, thread: 0, sequence: 0, waiting: None };
        assert_eq!((&seen.ranks[0], &seen.ranks[2]), (&absent, &absent));
        assert_eq!((seen.ranks[1].state, seen.ranks[1].pid), (RankState::Active, std::process::id()));
        let note = WaitNote { since_ns: 77, sequence: 12, operation: "reduce-scatter".into() };
        assert_eq!(seen.ranks[1].waiting, Some(note));
        segment.clear_wait(1);
        assert_eq!(Observed::read(&file).unwrap().ranks[1].waiting, None);
    }

    #[test]
    fn other_files_are_refused() {
        let file = File::open("/proc/self/exe").unwrap();
        assert!(matches!(Observed::read(&file), Err(Error::Foreign { .. })));
    }
}
