//! Sizes and offsets of a team's memory.

use super::map::PAGE;
use lineweave_core::plan::Layout;
use lineweave_core::select::{LARGE_BANKS, SMALL_BANKS, SMALL_SLOTS};
use lineweave_core::units::LINE;
use std::ops::Range;

/// An odd number of lines between banks, so that equal offsets in them fall into different cache sets.
const STAGGER: usize = LINE * 3;
/// Counters (fetch-and-add flags) live outside the banks, because their start must be known.
pub const COUNTER_BYTES: usize = PAGE;

/// Up to so many ranks reserve large banks whole.
const WHOLE: usize = 64;

/// Point at which a rank of a team reserves its large banks. With boxes of 1 MiB they are three quarters of its area.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LargeBanks {
    /// As it joins.
    AtJoin,
    /// As a plan first needs one. Where plans are chosen beside calls, the thread that chooses one has reserved them by then.
    WhenPlanned,
    /// As a plan first needs one, and so far as it does: they are 1.1 GiB among 512 ranks.
    ByExtent,
}

/// Class of the ring of banks that a plan uses.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BankClass {
    /// Flags of a flat plan over some 64 ranks, and a few short messages.
    Small,
    /// Up to the team's box size, and flags.
    Large,
}

impl BankClass {
    /// Index into per-class tables.
    pub fn index(self) -> usize {
        self as usize
    }
}

/// Sizes of the zones of a plan's memory in a bank, at each rank. Flags, the payloads beside them, and slots have zones
/// of their own: a word that is a flag of one plan is never payload or slot of another, so a flag's word
/// only ever holds earlier flag values, which are below every threshold to come.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Zones {
    /// Bytes for packed flags.
    pub packed: usize,
    /// Bytes for paired flags and their payloads.
    pub paired: usize,
    /// Bytes for paired flags in two generations (see `compile`), with payloads of up to 8 bytes.
    pub twin: usize,
    /// Bytes for flags alone on a line or spread, and their payloads.
    pub alone: usize,
    /// Bytes for slots.
    pub slots: usize,
}

impl Zones {
    /// Start and size of the zone for flags of a layout.
    pub fn flags(&self, layout: Layout) -> (usize, usize) {
        match layout {
            Layout::Packed => (0, self.packed),
            Layout::Paired => (self.packed, self.paired),
            Layout::Alone | Layout::Spread(_) => (self.packed + self.paired + self.twin, self.alone),
        }
    }

    /// Start and size of the zone for paired flags in two generations.
    pub fn twin_flags(&self) -> (usize, usize) {
        (self.packed + self.paired, self.twin)
    }

    /// Start of the slots.
    pub fn slots_start(&self) -> usize {
        self.packed + self.paired + self.twin + self.alone
    }

    /// Bytes of a bank.
    pub fn total(&self) -> usize {
        self.slots_start() + self.slots
    }
}

/// Sizes and offsets of a segment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Geometry {
    pub(super) ranks: usize,
    pub(super) box_bytes: usize,
    pub(super) blob_bytes: usize,
    pub(super) large_banks: LargeBanks,
}

fn pages(bytes: usize) -> usize {
    bytes.div_ceil(PAGE) * PAGE
}

impl Geometry {
    /// For `ranks` ranks, boxes of `box_bytes` and a blob of `blob_bytes`.
    pub fn new(ranks: usize, box_bytes: usize, blob_bytes: usize) -> Geometry {
        let large_banks = if ranks > WHOLE { LargeBanks::ByExtent } else { LargeBanks::AtJoin };
        Geometry { ranks, box_bytes: pages(box_bytes), blob_bytes, large_banks }
    }

    /// Returns it for ranks that reserve no large bank when they join, if `late`.
    pub fn with_late_banks(self, late: bool) -> Geometry {
        match self.large_banks {
            LargeBanks::AtJoin if late => Geometry { large_banks: LargeBanks::WhenPlanned, ..self },
            _ => self,
        }
    }

    /// Returns when large banks are reserved.
    pub fn large_banks(&self) -> LargeBanks {
        self.large_banks
    }

    /// Returns the zones that a plan may use in a bank of this class, at each rank.
    pub fn zones(&self, class: BankClass) -> Zones {
        match class {
            BankClass::Small => {
                Zones { packed: 512, paired: 1024, twin: 1024, alone: 4096, slots: SMALL_SLOTS }
            }
            // Flags of flat plans grow with the ranks: two lines for each.
            BankClass::Large => Zones {
                packed: PAGE.max(self.ranks * 8).next_multiple_of(LINE),
                paired: (2 * PAGE).max(self.ranks * LINE),
                twin: PAGE,
                alone: (8 * PAGE).max(self.ranks * 2 * LINE),
                slots: self.box_bytes,
            },
        }
    }

    /// Banks of a class.
    pub fn banks(class: BankClass) -> usize {
        match class {
            BankClass::Small => SMALL_BANKS,
            BankClass::Large => LARGE_BANKS,
        }
    }

    /// Offset of a bank within an area.
    pub fn bank(&self, class: BankClass, bank: usize) -> usize {
        let stride = |class| self.zones(class).total() + STAGGER;
        let start = match class {
            BankClass::Small => 2 * PAGE,
            BankClass::Large => 2 * PAGE + pages(SMALL_BANKS * stride(BankClass::Small)),
        };
        start + bank * stride(class)
    }

    /// Bytes of an area.
    pub fn area(&self) -> usize {
        pages(self.bank(BankClass::Large, LARGE_BANKS))
    }

    /// Returns the part of its area that a rank of a team reserves when it joins.
    pub fn at_join(&self) -> Range<usize> {
        let whole = self.large_banks == LargeBanks::AtJoin;
        0..if whole { self.area() } else { self.bank(BankClass::Large, 0) }
    }

    /// Returns the bytes that slots walk through in a large bank. Where banks are reserved as far as plans need them, walking takes half.
    pub fn walk(&self) -> usize {
        let slots = self.zones(BankClass::Large).slots;
        match self.large_banks {
            LargeBanks::ByExtent => slots / 2,
            LargeBanks::AtJoin | LargeBanks::WhenPlanned => slots,
        }
    }

    /// Bytes before the first area.
    pub fn areas_start(&self) -> usize {
        PAGE + pages(self.blob_bytes)
    }

    /// The number of ranks.
    pub fn ranks(&self) -> usize {
        self.ranks
    }

    /// Bytes of a page.
    pub fn page(&self) -> usize {
        PAGE
    }

    /// The counters within an area.
    pub fn counters(&self) -> Range<usize> {
        PAGE..PAGE + COUNTER_BYTES
    }

    /// The words within an area by which a rank tells how it is.
    pub fn control(&self) -> Range<usize> {
        0..PAGE
    }

    /// Bytes up to the end of the last area: the most that a team's ranks reserve.
    pub fn reserved(&self) -> usize {
        self.areas_start() + self.ranks * self.area()
    }

    /// Cells of the ring between two ranks.
    pub const MAIL_CELLS: usize = 8;

    /// Bytes of a cell, its head included: fewer in large teams, whose rings are many.
    pub fn mail_cell(&self) -> usize {
        if self.ranks <= 128 {
            4096 + LINE
        } else {
            1024
        }
    }

    /// Bytes of a ring: two lines of counts, and the cells.
    pub(super) fn mail_bytes(&self) -> usize {
        pages(2 * LINE + Geometry::MAIL_CELLS * self.mail_cell())
    }

    /// Returns the offset of the ring for messages from one rank to another. There is room for all in the address space, and memory
    /// only for those that are used.
    pub(super) fn mail(&self, from: usize, to: usize) -> usize {
        self.reserved() + (to * self.ranks + from) * self.mail_bytes()
    }

    /// The most bytes of a rank's window.
    pub const WINDOW_BYTES: usize = 16 << 20;

    /// Flags of a rank's window, each on a line of its own.
    pub const WINDOW_FLAGS: usize = PAGE / LINE;

    /// Bytes of a window with its flags, of `bytes` bytes that can be put into.
    pub(super) fn window_pages(bytes: usize) -> usize {
        PAGE + pages(bytes)
    }

    /// Returns the offset of a rank's window: its flags, and the bytes behind them. Like rings, it takes memory when it is used.
    pub(super) fn window(&self, rank: usize) -> usize {
        self.mail(0, self.ranks) + rank * Geometry::window_pages(Geometry::WINDOW_BYTES)
    }

    /// Bytes of the whole segment in the address space.
    pub fn total(&self) -> usize {
        self.window(self.ranks)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_large_team_and_one_that_reserves_late_join_without_their_large_banks() {
        let (some, many) = (Geometry::new(WHOLE, 1 << 20, 0), Geometry::new(WHOLE + 1, 1 << 20, 0));
        assert_eq!((some.at_join(), some.walk()), (0..some.area(), some.zones(BankClass::Large).slots));
        let late = some.with_late_banks(true);
        assert_eq!((late.at_join(), late.walk()), (0..late.bank(BankClass::Large, 0), some.walk()));
        assert_eq!((many.with_late_banks(true), some.with_late_banks(false)), (many, some));
        assert_eq!(many.at_join(), 0..many.bank(BankClass::Large, 0));
        assert!(4 * many.at_join().len() < many.area() && 2 * many.walk() == some.walk());
    }

    #[test]
    fn banks_and_areas_do_not_overlap() {
        let geometry = Geometry::new(4, 65536, 10);
        let mut end = 0;
        for class in [BankClass::Small, BankClass::Large] {
            for bank in 0..Geometry::banks(class) {
                assert!(geometry.bank(class, bank) >= end);
                assert_eq!(geometry.bank(class, bank) % 64, 0);
                end = geometry.bank(class, bank) + geometry.zones(class).total();
            }
        }
        assert!(end <= geometry.area());
        let (area, ring) = (geometry.areas_start() + 4 * geometry.area(), geometry.mail_bytes());
        assert_eq!((geometry.mail(0, 0), geometry.mail(1, 0)), (area, area + ring));
        assert_eq!(geometry.mail(3, 3) + ring, geometry.window(0));
    }
}
