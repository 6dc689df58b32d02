//! Pages of banks that are mapped before a run writes to them.
//!
//! The kernel maps shared memory into a process when it is touched first: by a write one page at a time, by a read those around it as
//! well, for a sixth of that a page. So the pages that a run is about to write to are mapped as if they had been read, and some more
//! of those that later runs will write to: of small banks those of the next ones, of a large bank as much as it has already.

use super::{BankClass, Geometry, Segment};
use lineweave_core::select::{LARGE_BANKS, SMALL_BANKS};
use rustix::mm::Advice;
use std::ops::Range;

/// Bytes that are mapped at a time, at least of a large bank and at most of small ones: as many as the kernel maps around a page that is
/// read.
const AROUND: usize = 64 << 10;

/// Up to where banks of a rank are mapped in this process.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Mapped {
    /// A bit for each small bank.
    small: u64,
    /// Bytes of each large one.
    large: [usize; LARGE_BANKS],
}

const _: () = assert!(SMALL_BANKS <= u64::BITS as usize, "a bit for each small bank");

impl Mapped {
    /// Nothing is mapped.
    pub const NONE: Mapped = Mapped { small: 0, large: [0; LARGE_BANKS] };
    /// Everything is.
    pub const ALL: Mapped = Mapped { small: u64::MAX, large: [usize::MAX; LARGE_BANKS] };

    /// Returns whether a run that uses a bank up to `end` finds it mapped.
    #[inline(always)]
    pub fn covers(&self, class: BankClass, bank: u64, end: usize) -> bool {
        match class {
            BankClass::Small => self.small >> bank & 1 != 0,
            BankClass::Large => self.large[bank as usize] >= end,
        }
    }

    /// Returns the parts that are mapped in both.
    pub fn and(&self, other: &Mapped) -> Mapped {
        let large = std::array::from_fn(|bank| self.large[bank].min(other.large[bank]));
        Mapped { small: self.small & other.small, large }
    }

    /// Returns the part of an area to map before a run uses a bank up to `end`, and notes it as mapped. `backed` says how much of a bank
    /// there is to map, at least up to `end` in this one: more would take memory. What is added to a small bank later is mapped when it is
    /// touched.
    pub fn grow(
        &mut self,
        geometry: &Geometry,
        class: BankClass,
        bank: u64,
        end: usize,
        backed: impl Fn(u64) -> usize,
    ) -> Range<usize> {
        let start = |bank: u64| geometry.bank(class, bank as usize);
        let total = geometry.zones(class).total();
        match class {
            BankClass::Large => {
                let had = self.large[bank as usize];
                let to = end.max(2 * had).max(AROUND).min(backed(bank)).min(total);
                self.large[bank as usize] = to;
                start(bank) + had..start(bank) + to
            }
            BankClass::Small => {
                let whole = |&next: &u64| backed(next) >= total;
                let near = |&next: &u64| start(next) + total - start(bank) <= AROUND;
                // Between a bank that has less and the next one there is no memory.
                let last = (bank..Geometry::banks(class) as u64).take_while(near).take_while(whole).last();
                let last = last.unwrap_or(bank);
                self.small |= (bank..=last).fold(0, |bits, bank| bits | 1 << bank);
                start(bank)..start(last) + total.min(backed(last))
            }
        }
    }
}

impl Segment {
    /// Maps a part of the area of `rank`, for which there is memory. Returns whether the kernel can: before Linux 5.14 it maps what is touched,
    /// and nothing else.
    pub(crate) fn map_part(&self, rank: usize, part: Range<usize>) -> bool {
        // A plan of counters alone uses nothing of its bank, and the page where that begins need not be reserved.
        if part.is_empty() {
            return true;
        }
        let area = self.geometry.areas_start() + rank * self.geometry.area();
        let page = rustix::param::page_size();
        let start = (area + part.start) / page * page;
        let len = (area + part.end).next_multiple_of(page).min(self.geometry.total()) - start;
        // SAFETY: within the mapping, which this value owns; pages are read by the kernel alone and nothing that they hold changes.
        let mapped = unsafe {
            let start = self.base().add(start);
            rustix::mm::madvise(start.cast(), len, Advice::LinuxPopulateRead)
        };
        mapped.is_ok()
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    const GEOMETRY: fn() -> Geometry = || Geometry::new(4, 1 << 20, 0);

    #[test]
    fn a_large_bank_is_mapped_in_ever_longer_parts_that_meet() {
        let (geometry, mut mapped) = (GEOMETRY(), Mapped::NONE);
        let total = geometry.zones(BankClass::Large).total();
        let (mut parts, mut next) = (0, geometry.bank(BankClass::Large, 1));
        for end in (4096..=total).step_by(4096).chain([total]) {
            if !mapped.covers(BankClass::Large, 1, end) {
                let part = mapped.grow(&geometry, BankClass::Large, 1, end, |_| usize::MAX);
                assert_eq!(part.start, next, "nothing twice and nothing left out");
                (parts, next) = (parts + 1, part.end);
            }
            assert!(mapped.covers(BankClass::Large, 1, end));
        }
        assert_eq!(next, geometry.bank(BankClass::Large, 1) + total);
        assert!(parts <= 6, "{parts} parts");
        assert!(!mapped.covers(BankClass::Large, 0, 64), "the other bank is not");
    }

    #[test]
    fn small_banks_are_mapped_some_at_a_time_and_never_out_of_their_ring() {
        let (geometry, mut mapped) = (GEOMETRY(), Mapped::NONE);
        let total = geometry.zones(BankClass::Small).total();
        let mut parts = 0;
        for bank in 0..SMALL_BANKS as u64 {
            if !mapped.covers(BankClass::Small, bank, 64) {
                let part = mapped.grow(&geometry, BankClass::Small, bank, 64, |_| usize::MAX);
                assert_eq!(part.start, geometry.bank(BankClass::Small, bank as usize));
                assert!(part.len() <= AROUND && part.end <= geometry.bank(BankClass::Large, 0), "{part:?}");
                parts += 1;
            }
        }
        assert!(parts <= SMALL_BANKS / (AROUND / (total + 256)) + 1, "{parts} parts");
    }

    #[test]
    fn what_has_no_memory_is_left_alone() {
        let (geometry, mut mapped) = (GEOMETRY(), Mapped::NONE);
        for (class, end) in [(BankClass::Small, 640), (BankClass::Large, 50 << 10)] {
            let part = mapped.grow(&geometry, class, 1, end, |bank| if bank == 1 { end } else { 0 });
            let start = geometry.bank(class, 1);
            assert_eq!(part, start..start + end, "{class:?}");
        }
        assert!(!mapped.covers(BankClass::Small, 2, 64), "the next bank has none");
        let total = geometry.zones(BankClass::Small).total();
        let part =
            mapped.grow(&geometry, BankClass::Small, 4, 640, |bank| if bank == 4 { 640 } else { total });
        let start = geometry.bank(BankClass::Small, 4);
        assert_eq!(part, start..start + 640, "behind it there is a gap, although the next bank is whole");
        assert!(!mapped.covers(BankClass::Large, 1, (50 << 10) + 64), "nor has the rest of this one");
    }

    /// Pages that this thread has touched that were not mapped.
    fn faults() -> u64 {
        let stat = std::fs::read_to_string("/proc/thread-self/stat").expect("a thread has one");
        let after_name = stat.rsplit(')').next().expect("a name in brackets");
        after_name.split_whitespace().nth(7).and_then(|n| n.parse().ok()).expect("the tenth field")
    }

    #[test]
    fn writing_to_what_is_mapped_costs_no_faults() {
        let segment = Segment::create(2, 1 << 20, &[]).expect("memory");
        segment.claim(1).expect("memory");
        let geometry = *segment.geometry();
        let part = |bank| {
            let start = geometry.bank(BankClass::Large, bank);
            start..start + geometry.zones(BankClass::Large).total()
        };
        let able = segment.map_part(1, part(1));
        let before = faults();
        let start = segment.bank(BankClass::Large, 1).wrapping_add(segment.area_stride());
        let pages = part(1).len() / 4096;
        for page in 0..pages {
            // SAFETY: in the bank of rank 1, whose memory was claimed and which nobody else uses.
            unsafe { start.add(page * 4096).write(1) };
        }
        let faults = faults() - before;
        assert!(!able || faults < 8, "{faults} faults in {pages} pages that are mapped");
    }

    #[test]
    fn a_plan_finds_mapped_what_is_in_all_of_its_areas() {
        let (geometry, mut one) = (GEOMETRY(), Mapped::NONE);
        one.grow(&geometry, BankClass::Large, 0, 100 << 10, |_| usize::MAX);
        let both = Mapped::ALL.and(&one);
        assert!(both.covers(BankClass::Large, 0, 100 << 10) && !both.covers(BankClass::Small, 0, 64));
        assert_eq!(Mapped::ALL.and(&Mapped::ALL), Mapped::ALL);
    }
}
