//! The file that one rank recorded: `struct header` and `struct lwm_traced` of `mpi/src/trace.c`, in the machine's byte order.

use lineweave_core::collective::Collective;
use std::fs::File;
use std::io::Read;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

const MAGIC: &[u8; 8] = b"lwtrace1";
const HEADER: usize = 4096;
const RECORD: usize = 64;

/// One collective call of one rank.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    /// Its beginning, in ns by the clock that all processes of a node share.
    pub from_ns: i64,
    pub to_ns: i64,
    /// The communicator, 0 where it has no name.
    pub comm: u64,
    /// Its number among the communicator's blocking calls.
    pub number: u64,
    /// The length that the call is about: of the message, or of a block.
    pub bytes: u64,
    pub root: Option<usize>,
    /// The rank in the communicator, and its ranks, where these are known.
    pub place: Option<(usize, usize)>,
    /// The call's name.
    pub kind: String,
    /// Why the host carried it out; nothing where lineweave did.
    pub because: Option<String>,
    /// True for a call that was started and completed later.
    pub started: bool,
}

/// The record of one rank.
#[derive(Clone, Debug)]
pub struct Part {
    /// Its rank in `MPI_COMM_WORLD`.
    pub rank: usize,
    pub pid: u32,
    pub node: String,
    /// Name that the MPI has for itself.
    pub mpi: String,
    /// True if the rank came to `MPI_Finalize`.
    pub complete: bool,
    /// The time since 1970 less that of the node's clock, in ns. Interrupted between the two clocks, a rank has too little.
    pub since_1970: i64,
    /// Calls before those that are there.
    pub dropped: u64,
    /// The calls, in the order of their ends.
    pub calls: Vec<Call>,
}

struct Bytes<'a>(&'a [u8]);

impl Bytes<'_> {
    fn take<const N: usize>(&mut self) -> [u8; N] {
        let (head, rest) = self.0.split_at(N);
        self.0 = rest;
        head.try_into().unwrap_or([0; N])
    }

    fn u32(&mut self) -> u32 {
        u32::from_ne_bytes(self.take())
    }

    fn u64(&mut self) -> u64 {
        u64::from_ne_bytes(self.take())
    }

    /// A rank or number of ranks, where it is none below zero.
    fn rank(&mut self) -> Option<usize> {
        usize::try_from(i32::from_ne_bytes(self.take())).ok()
    }

    fn text<const N: usize>(&mut self) -> String {
        let field: [u8; N] = self.take();
        let end = field.iter().position(|&byte| byte == 0).unwrap_or(N);
        String::from_utf8_lossy(&field[..end]).into_owned()
    }

    fn names<const N: usize>(&mut self) -> Vec<String> {
        self.text::<N>().lines().map(str::to_owned).collect()
    }
}

impl Part {
    /// Returns whether the rank's process is on this node and has not ended.
    pub fn runs(&self) -> bool {
        let here = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
        !self.complete
            && self.node == here.trim()
            && lineweave::process::state(self.pid).is_some_and(|state| !matches!(state, 'Z' | 'X'))
    }

    /// Reads a file.
    pub fn load(path: &Path, complete: bool) -> Result<Part, String> {
        let mut content = Vec::new();
        // Not what would never end.
        let opened =
            File::options().read(true).custom_flags(rustix::fs::OFlags::NONBLOCK.bits() as i32).open(path);
        let mut file = opened.map_err(|e| e.to_string())?;
        if !file.metadata().is_ok_and(|about| about.is_file()) {
            return Err("expected a file".to_owned());
        }
        file.read_to_end(&mut content).map_err(|e| e.to_string())?;
        Part::read(&content, complete)
    }

    /// Reads a file's content.
    pub fn read(content: &[u8], complete: bool) -> Result<Part, String> {
        if content.len() < HEADER {
            return Err(format!("expected a record of at least {HEADER} bytes, found {}", content.len()));
        }
        let (head, records) = content.split_at(HEADER);
        let mut head = Bytes(head);
        if head.take::<8>() != *MAGIC {
            return Err("expected a record of `lineweave run --trace` of this version".to_owned());
        }
        let (capacity, record_bytes, recorded) = (head.u32(), head.u32(), head.u64());
        if record_bytes as usize != RECORD || capacity == 0 {
            return Err(format!("expected records of {RECORD} bytes, found {record_bytes}"));
        }
        let rank = head.rank().unwrap_or(0);
        // The ranks there.
        head.rank();
        let pid = head.u32();
        // Padding, and the job's name, which the writers compare.
        head.take::<12>();
        let since_1970 = head.u64() as i64;
        let (node, mpi) = (head.text::<64>(), head.text::<64>());
        let (kinds, reasons) = (head.names::<1024>(), head.names::<2048>());
        let there =
            (records.len() / RECORD).min(capacity as usize).min(recorded.try_into().unwrap_or(usize::MAX));
        let read = |bytes| call(Bytes(bytes), &kinds, &reasons);
        let mut calls: Vec<Call> = records.chunks_exact(RECORD).take(there).filter_map(read).collect();
        calls.sort_by_key(|call| (call.to_ns, call.from_ns));
        let dropped = recorded.saturating_sub(capacity.into());
        Ok(Part { rank, pid, node, mpi, complete, since_1970, dropped, calls })
    }
}

/// One record; nothing where its rank was interrupted in writing it.
fn call(mut from: Bytes, kinds: &[String], reasons: &[String]) -> Option<Call> {
    let (start, end) = (from.u64(), from.u64());
    let (comm, number, bytes) = (from.u64(), from.u64(), from.u64());
    let (root, rank, size) = (from.rank(), from.rank(), from.rank());
    let [kind, why, started, _] = from.take::<4>();
    (end >= start && start > 0).then_some(())?;
    Some(Call {
        from_ns: start as i64,
        to_ns: end as i64,
        comm,
        number,
        bytes,
        root,
        place: rank.zip(size).filter(|(rank, size)| rank < size),
        kind: kinds.get(usize::from(kind))?.clone(),
        because: reasons.get(usize::from(why)).cloned(),
        started: started != 0,
    })
}

/// Returns the collective of lineweave's that does what MPI's function of that name does, where lengths are equal at all ranks.
pub fn collective(name: &str) -> Option<Collective> {
    match name {
        "reduce_scatter_block" => Some(Collective::ReduceScatter),
        "reduce_scatter" => None,
        name => name.parse().ok(),
    }
}

impl Call {
    /// Returns the duration.
    pub fn took_ns(&self) -> i64 {
        self.to_ns - self.from_ns
    }

    /// The collective of lineweave's that does the same, where lengths are equal at all ranks.
    pub fn collective(&self) -> Option<Collective> {
        collective(&self.kind)
    }
}

#[cfg(test)]
pub(in crate::trace) mod tests {
    use super::*;

    /// A file with these records: start, end, communicator, number, bytes, root, rank, size, kind, reason.
    pub fn file(
        rank: i32,
        capacity: u32,
        recorded: u64,
        records: &[([u64; 5], [i32; 3], [u8; 3])],
    ) -> Vec<u8> {
        let mut bytes = Vec::new();
        bytes.extend(MAGIC);
        bytes.extend([capacity, 64].iter().flat_map(|n| n.to_ne_bytes()));
        bytes.extend(recorded.to_ne_bytes());
        bytes.extend([rank, 2, 1000 + rank, 0].iter().flat_map(|n| n.to_ne_bytes()));
        bytes.extend(7u64.to_ne_bytes());
        bytes.extend(1_000_000i64.to_ne_bytes());
        for (text, length) in
            [("node", 64), ("MPICH", 64), ("barrier\nbcast\nreduce\n", 1024), ("-\nno team\n", 2048)]
        {
            let mut field = text.as_bytes().to_vec();
            field.resize(length, 0);
            bytes.extend(field);
        }
        bytes.resize(HEADER, 0);
        for (longs, ints, small) in records {
            bytes.extend(longs.iter().flat_map(|n| n.to_ne_bytes()));
            bytes.extend(ints.iter().flat_map(|n| n.to_ne_bytes()));
            bytes.extend(small);
            bytes.extend([0; 9]);
        }
        bytes
    }

    #[test]
    fn a_record_is_read_as_it_was_written() {
        let content = file(
            1,
            4,
            2,
            &[([10, 30, 5, 0, 8], [0, 1, 2], [1, 2, 0]), ([40, 41, 5, 1, 0], [-1, 1, 2], [0, 1, 0])],
        );
        let part = Part::read(&content, true).unwrap();
        assert_eq!((part.rank, part.pid, part.dropped), (1, 1001, 0));
        assert_eq!(part.since_1970, 1_000_000);
        assert_eq!((part.node.as_str(), part.mpi.as_str()), ("node", "MPICH"));
        let [bcast, barrier] = &part.calls[..] else { panic!("expected two calls, found {:?}", part.calls) };
        assert_eq!(
            (bcast.kind.as_str(), bcast.root, bcast.place, bcast.bytes),
            ("bcast", Some(0), Some((1, 2)), 8)
        );
        assert_eq!((bcast.from_ns, bcast.took_ns(), &bcast.because), (10, 20, &None));
        assert_eq!(
            (barrier.kind.as_str(), barrier.root, barrier.because.as_deref()),
            ("barrier", None, Some("no team"))
        );
    }

    #[test]
    fn of_more_calls_than_the_ring_holds_the_last_ones_are_there() {
        let content = file(
            0,
            2,
            5,
            &[([90, 95, 5, 4, 0], [-1, 0, 2], [0, 2, 0]), ([70, 75, 5, 3, 0], [-1, 0, 2], [0, 2, 0])],
        );
        let part = Part::read(&content, false).unwrap();
        assert_eq!(part.dropped, 3);
        assert_eq!(part.calls.iter().map(|call| call.number).collect::<Vec<_>>(), [3, 4]);
    }

    #[test]
    fn a_record_that_was_not_finished_is_left_out() {
        let content = file(
            0,
            4,
            2,
            &[([10, 0, 5, 0, 8], [0, 0, 2], [1, 2, 0]), ([40, 41, 5, 1, 0], [-1, 0, 2], [0, 2, 0])],
        );
        assert_eq!(Part::read(&content, false).unwrap().calls.len(), 1);
        assert!(Part::read(&content[..content.len() - 70], false).unwrap().calls.is_empty());
    }

    #[test]
    fn what_is_no_record_is_refused() {
        for (content, expected) in [(&b"short"[..], "at least 4096"), (&[0; 5000][..], "of this version")] {
            assert!(Part::read(content, true).unwrap_err().contains(expected));
        }
    }
}
