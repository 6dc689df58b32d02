//! Probe `attach`: copying m bytes that a peer has just written by the kernel, as processes do that may read each other's memory.
//!
//! The ranks that measure are threads of one process. The kernel takes the way that it takes between two: it looks the process up, checks
//! the right to read, and copies page by page.
//!
//! With `readers=k` so many ranks copy the same bytes of one at once, and the slowest counts. Threads have one address space, whose lock and
//! whose pages' counters they all change; that is what k processes do that read one, as these do. Readers of several would need
//! processes.

use super::cell::{ProbeContext, ProbeTasks, ProbeTeam, Role, SampleKey, Task};
use super::clock::Clock;
use super::star::numbers;
use super::timing::{collect_timed, Rules, Samples};
use lineweave::internal::read_process;
use lineweave::kernel::copy;
use lineweave::Error;

/// From what a system call costs alone to beyond most caches.
const SIZES: [usize; 7] = [4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20, 4 << 20, 16 << 20];

/// By several readers: what a call costs shows in the one, what a page does in the other.
const SHARED: [usize; 2] = [64 << 10, 1 << 20];

pub fn offer(crew: &ProbeTeam, largest: usize, offer: &mut ProbeTasks) {
    if !matches!(crew.role, Role::Pair | Role::Crowd) {
        return;
    }
    match refused() {
        Some(why) => offer.missing("attach", format!("process_vm_readv: {why}")),
        None => offer.tasks.extend(tasks(crew, largest)),
    }
}

/// Why a word of this process cannot be read in this way.
fn refused() -> Option<String> {
    let (word, mut found) = (1u64, 0u64);
    let (from, to) = (std::ptr::from_ref(&word) as usize, std::ptr::from_mut(&mut found).cast());
    // SAFETY: both words are this function's own.
    let read = unsafe { read_process(std::process::id(), from, to, size_of::<u64>()) };
    read.err().map(|e| e.to_string())
}

/// A pair's cells are those of one reader; a crowd has those of several.
fn tasks(crew: &ProbeTeam, largest: usize) -> Vec<Task> {
    let alone = crew.role == Role::Pair;
    let sizes: &[usize] = if alone { &SIZES } else { &SHARED };
    let mut list = Vec::new();
    for &bytes in sizes.iter().filter(|&&b| b <= largest) {
        for readers in numbers(crew.cpus.len() - 1).filter(|&k| alone || k > 1) {
            let mut key = SampleKey::new("attach").with("bytes", bytes).with("level", crew.level);
            if !alone {
                key = key.with("readers", readers);
            }
            list.push(Task::new(key, 0.7, move |hand, rules| samples(hand, rules, bytes, readers)));
        }
    }
    list
}

/// Lists what machines of fewer CPUs cannot tell.
pub fn beyond(cpus: usize, offer: &mut ProbeTasks) {
    if cpus < 3 {
        let because = format!(
            "pages that several ranks copy at once need 3 CPUs, and {cpus} can be used; two ownership transfers a page stand in"
        );
        offer.missing("attach[readers > 1]", because);
    }
}

/// Ranks 1 to `readers` copy from rank 0.
fn samples(
    hand: &mut ProbeContext<'_>,
    rules: &Rules,
    bytes: usize,
    readers: usize,
) -> Result<Samples, Error> {
    let (rank, input, output, source) = (hand.comm.rank(), hand.input, hand.output, hand.shared[0]);
    let clock = Clock::get();
    collect_timed(hand.comm, rules, &mut |comm| {
        if rank == 0 {
            // SAFETY: both buffers hold so many bytes at least; nobody reads them before the barrier.
            unsafe { copy(input, source, bytes) };
        }
        comm.barrier()?;
        let mut nanos = 0.0;
        if (1..=readers).contains(&rank) {
            let start = clock.now();
            // SAFETY: as above; nobody writes before the next barrier.
            let done = unsafe { read_process(std::process::id(), source as usize, output, bytes) };
            nanos = clock.since(start);
            done.map_err(|e| Error::System {
                what: "process_vm_readv".to_owned(),
                reason: e.to_string(),
                advice: "",
            })?;
        }
        comm.barrier()?;
        Ok(nanos)
    })
}

#[cfg(test)]
mod tests {
    use super::super::random::Random;
    use super::*;
    use lineweave::settings::Settings;
    use lineweave::team::{Team, TeamConfig};
    use lineweave_core::topology::{Cpu, Level};

    #[test]
    fn a_crowd_copies_the_same_by_as_many_as_there_are() {
        let cpu = |os| Cpu { os, core: os, l3: 0, numa: 0, package: 0, kind: 0 };
        let offered = |role, cpus: usize, largest| {
            let crew = ProbeTeam { role, cpus: (0..cpus).map(cpu).collect(), level: Level::L3 };
            tasks(&crew, largest).iter().map(|t| t.keys[0].to_string()).collect::<Vec<_>>()
        };
        let pair = offered(Role::Pair, 2, 16 << 20);
        assert_eq!(pair, SIZES.map(|bytes| format!("attach bytes={bytes} level=l3")));
        let crowd = offered(Role::Crowd, 5, 16 << 20);
        let all =
            [65536, 1 << 20].map(|b| [2, 3, 4].map(|k| format!("attach bytes={b} level=l3 readers={k}")));
        assert_eq!(crowd, all.concat());
        assert_eq!(offered(Role::Crowd, 16, 64 << 10).len(), 5, "2, 3, 4, 7 and 15, of 64 KiB");
        let missing = |cpus| {
            let mut all = ProbeTasks::default();
            beyond(cpus, &mut all);
            all.unidentified.len()
        };
        assert_eq!([2, 3].map(missing), [1, 0]);
    }

    /// Of four ranks two copy; the last one only keeps to the barriers.
    #[test]
    fn as_many_as_are_to_copy_do() {
        const BYTES: usize = 64 << 10;
        if refused().is_some() {
            return;
        }
        // For each rank its input, its output and what peers read.
        let mut memory: Vec<[Vec<u8>; 3]> =
            (0..4).map(|rank| [vec![7 + rank; BYTES], vec![0; BYTES], vec![0; BYTES]]).collect();
        let places: Vec<[usize; 3]> =
            memory.iter_mut().map(|of| of.each_mut().map(|m| m.as_mut_ptr() as usize)).collect();
        let settings = Settings { check: false, ..Settings::default() };
        let config = TeamConfig::new(4, &settings).expect("a configuration");
        let rules = Rules { least: 2, most: 2, ..Rules::default() };
        let taken = Team::with(config).expect("a team").threads(|mut comm| {
            let [input, output, _] = places[comm.rank()].map(|place| place as *mut u8);
            let shared: Vec<*mut u8> = places.iter().map(|of| of[2] as *mut u8).collect();
            let (comm, random) = (&mut comm, Random::new(1));
            let mut hand = ProbeContext { comm, input, output, bytes: BYTES, shared: &shared, random };
            samples(&mut hand, &rules, BYTES, 2)
        });
        assert!(taken.expect("every rank came through")[0].values.iter().all(|&ns| ns > 0.0));
        let copied: Vec<bool> = memory.iter().map(|of| of[1].iter().all(|&byte| byte == 7)).collect();
        assert_eq!(copied, [false, true, true, false]);
    }
}
