//! Plans made for measuring: no collective of the table, but proved, run and simulated like one.

use crate::collective::Collective;
use crate::plan::{Builder, Layout, Params, Plan, Region, Space};
use crate::units::LINE;

/// Rank 0 calls and rank 1 answers, each by one flag of a pair: two signals that follow each other.
pub fn call_and_answer(layout: Layout) -> Plan {
    let params = Params::new().with("layout", layout);
    let mut b = Builder::new(Collective::Barrier, "call-and-answer", &params, 2, 0, 0, 1);
    let pair = b.flags("pair", layout, 2);
    b.set(0, pair.at(0, 0), 1);
    b.wait(0, pair.at(0, 1), 1);
    b.wait(1, pair.at(0, 0), 1);
    b.set(1, pair.at(0, 1), 1);
    b.finish()
}

/// `lines` lines go from rank 0 to rank 1 through the box of rank 0, and back through that of rank 1.
pub fn ping_pong(lines: usize) -> Plan {
    let bytes = lines * LINE;
    let params = Params::new().with("lines", lines);
    let mut b = Builder::new(Collective::Bcast, "ping-pong", &params, 2, 0, bytes, 1);
    let there = b.flags("there", Layout::Alone, 1);
    let back = b.flags("back", Layout::Alone, 1);
    let slot = b.slot(bytes);
    let acc = b.acc(bytes);
    let region = |space| Region::new(space, 0..bytes);
    let of = |rank: usize| region(Space::Slot { rank: rank.into(), slot });
    b.mov(0, region(Space::In), of(0));
    b.set(0, there.at(1, 0), 1);
    b.wait(1, there.at(1, 0), 1);
    b.mov(1, of(0), region(Space::Out));
    b.mov(1, region(Space::Out), of(1));
    b.set(1, back.at(0, 0), 1);
    b.wait(0, back.at(0, 0), 1);
    b.mov(0, of(1), Region::new(Space::Acc, acc..acc + bytes));
    b.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verify::verify;

    #[test]
    fn plans_for_measuring_are_proven_too() {
        for layout in [Layout::Packed, Layout::Paired, Layout::Alone, Layout::Spread(4)] {
            let proof = verify(&call_and_answer(layout)).expect("a proof");
            assert!(proof.synchronizing);
        }
        for lines in [1, 2, 64] {
            assert_eq!(verify(&ping_pong(lines)).map(|p| p.depth), Ok(2));
        }
    }
}
