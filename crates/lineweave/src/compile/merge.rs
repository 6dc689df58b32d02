//! Folds whose results go to two places.

use super::step::{Addr, Double, Step, BANK, OUT, PEERS};

/// Makes one step of each fold whose result is copied to a user's buffer, once: it can go to both places from the first cache. When the
/// result is in a box and others are told of it before it is copied, they are told after: the copy costs less than fetching it again.
pub(super) fn doubled(steps: &[Step], grain: usize) -> (Box<[Step]>, Box<[Double]>) {
    let (mut out, mut doubles) = (Vec::with_capacity(steps.len()), Vec::new());
    let mut at = 0;
    while at < steps.len() {
        let set = steps.get(at + 1).filter(|step| matches!(step, Step::Set { .. }));
        let copy = at + 1 + usize::from(set.is_some());
        let copied = source_of(steps.get(copy));
        let again = copied.is_some() && copied == source_of(steps.get(copy + 1));
        match double(steps[at], steps.get(copy), grain) {
            Some(both) if !again && (set.is_none() || both.dst.base == BANK) => {
                out.push(Step::FoldTwice { number: doubles.len() as u32 });
                out.extend(set);
                doubles.push(both);
                at = copy + 1;
            }
            Some(_) | None => {
                out.push(steps[at]);
                at += 1;
            }
        }
    }
    (out.into(), doubles.into())
}

fn source_of(step: Option<&Step>) -> Option<Addr> {
    match step {
        Some(Step::Move { src, .. }) => Some(*src),
        _ => None,
    }
}

/// A fold and the copy of all of its result from a user's buffer or a box to a user's buffer.
fn double(fold: Step, copy: Option<&Step>, grain: usize) -> Option<Double> {
    let (Step::Fold { a, b, dst, elements }, Some(&Step::Move { src, dst: also, len })) = (fold, copy) else {
        return None;
    };
    let of_users = |addr: Addr| addr.base == OUT || addr.base >= PEERS;
    let fits = src == dst && len == elements * grain && (of_users(dst) || dst.base == BANK) && of_users(also);
    // Piece by piece, so what is written must not be an operand of a later piece.
    let same_or_apart =
        |x: Addr| x.base != also.base || x.offset == also.offset || x.offset.abs_diff(also.offset) >= len;
    (fits && same_or_apart(a) && same_or_apart(b)).then_some(Double { a, b, dst, also, elements })
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::super::step::SleeperCounter;
    use super::*;
    use crate::segment::Segment;

    #[test]
    fn a_fold_and_one_copy_of_its_result_are_one_step() {
        let at = |base, offset| Addr { base, offset };
        let fold = Step::Fold { a: at(0, 8), b: at(4, 8), dst: at(OUT, 8), elements: 2 };
        let copy = |base| Step::Move { src: at(OUT, 8), dst: at(base, 8), len: 16 };
        let (steps, doubles) = doubled(&[fold, copy(PEERS + 1), fold], 8);
        assert_eq!(*steps, [Step::FoldTwice { number: 0 }, fold]);
        assert_eq!(doubles[0].also, at(PEERS + 1, 8));
        for apart in [&[fold, copy(PEERS), copy(PEERS + 1)][..], &[fold, copy(BANK)], &[fold]] {
            let (steps, doubles) = doubled(apart, 8);
            assert_eq!((&*steps, doubles.len()), (apart, 0));
        }
        let segment = Segment::create(1, 4096, &[]).expect("a segment");
        let told = Step::Set { at: 0, home: SleeperCounter::of(&segment, 0), value: 1 };
        let into_box = Step::Fold { a: at(0, 8), b: at(4, 8), dst: at(BANK, 64), elements: 2 };
        let out_of_box = Step::Move { src: at(BANK, 64), dst: at(OUT, 8), len: 16 };
        let (steps, doubles) = doubled(&[into_box, told, out_of_box], 8);
        assert_eq!(*steps, [Step::FoldTwice { number: 0 }, told], "others are told after the copy");
        assert_eq!((doubles[0].dst, doubles[0].also), (at(BANK, 64), at(OUT, 8)));
        let pushed = [fold, told, copy(PEERS)];
        assert_eq!(*doubled(&pushed, 8).0, pushed, "nobody is told late of what is not in a box");
        let shifted = Step::Move { src: at(OUT, 8), dst: at(4, 16), len: 16 };
        assert!(doubled(&[fold, shifted], 8).1.is_empty(), "a later piece's operand");
        assert!(doubled(&[fold, copy(PEERS)], 4).1.is_empty(), "a copy of another length");
    }
}
