//! Tests of malformed plans, and of the names of their faults.

use super::*;

#[test]
fn a_flag_has_one_writer() {
    let mut b = exchange(None);
    let more = b.flags("more", Layout::Alone, 1);
    b.set(0, more.at(1, 0), 1);
    b.set(1, more.at(1, 0), 2);
    refused(
        b,
        "rank 1 op 2 `set more@1[0]=2` sets a flag that rank 0 op 2 `set more@1[0]=1` sets too: a signal flag \
         has one writer",
    );
}

#[test]
fn malformed_ops_are_named() {
    type Emit = fn(&mut Builder, FlagArrayId, FlagArrayId);
    let cases: [(Emit, &str); 14] = [
        (|b, _, _| b.mov(0, input(8..24), out(0..16)), "in[8..24] ends beyond the 16 bytes there are"),
        (|b, _, _| b.mov(0, input(0..8), slot(2, 0, 0..8)), "rank 2 does not exist: there are 2 ranks"),
        (|b, _, _| b.mov(0, input(0..8), slot(1, 1, 0..8)), "slot 1 was not declared: every box has 1"),
        (|b, f, _| b.set(0, f.at(0, 2), 1), "flag array 0 index 2 was not declared"),
        (|b, f, _| b.add(0, f.at(0, 0)), "array `f` is a signal: it is set, not added to"),
        (
            |b, _, c| b.set(0, c.at(0, 0), 1),
            "array `c` is a counter: it is added to, not set, and carries no payload",
        ),
        (|b, _, _| b.mov(0, input(0..8), out(0..16)), "regions of one op must be equally long, found [8, 16] bytes"),
        (
            |b, _, _| b.mov(0, out(0..8), out(4..12)),
            "source and destination share bytes (out[0..8] and out[4..12]): only a fold may write exactly an \
             operand",
        ),
        (
            |b, _, _| b.fold(0, input(0..4), input(0..4), out(0..4)),
            "in[0..4] does not begin and end at multiples of the element size 8",
        ),
        (
            |b, _, _| b.mov(0, out(0..8), input(0..8)),
            "input buffers are never written: they belong to the caller",
        ),
        (
            |b, _, _| b.mov(0, Region::new(Space::PeerIn(Rank(1)), 0..8), out(0..8)),
            "peers' private buffers are named, but the plan is not marked `direct`",
        ),
        (
            |b, f, _| b.set_carrying(0, f.at(1, 0), 1, slot(0, 0, 0..32)),
            "32 bytes do not fit the line of a flag that is laid out paired: it takes 24",
        ),
        (|b, f, _| b.set(0, f.at(1, 0), 0), "a flag is set to 0: values of a run start at 1"),
        (
            |b, f, _| {
                b.set(0, f.at(1, 0), 2);
                b.set(0, f.at(1, 0), 2);
            },
            "the flag is set to 2 after 2: values must grow",
        ),
    ];
    for (emit, message) in cases {
        let mut b = builder(Collective::Allreduce, 2, 16, 8);
        let (f, c) = (b.flags("f", Layout::Paired, 2), b.counters("c", Layout::Alone, 1));
        b.slot(64);
        emit(&mut b, f, c);
        let violation = verify(&b.finish()).unwrap_err();
        let Violation::Shape { fault, .. } = violation else { panic!("{violation}") };
        assert_eq!(fault, message);
    }
    let mut b = builder(Collective::Reduce, 2, 16, 8);
    b.mov(1, input(0..8), out(0..8));
    refused(b, "rank 1 op 0 `copy in[0..8] -> out[0..8]`: rank 1 has no output buffer in this reduce");
    let plan = crate::plan::Plan { programs: Vec::new(), ..exchange(None).finish() };
    assert_eq!(verify(&plan).unwrap_err().to_string(), "malformed plan: 0 programs for 2 ranks");
}

#[test]
fn lengths_that_overflow_are_out_of_bounds() {
    let mut plan = through_a_slot(true).finish();
    let far = Region { space: Space::In, offset: usize::MAX - 1, len: 100 };
    plan.programs[0][1] = Op::Move { src: far, dst: slot(0, 0, 0..100) };
    let violation = verify(&plan).unwrap_err().to_string();
    assert!(violation.ends_with("ends beyond the 100 bytes there are"), "{violation}");
}
