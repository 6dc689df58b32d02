//! The text form of plans: exact both ways, and total on anything else.

use lineweave_core::algorithm::{self, Problem, MAX_RANKS};
use lineweave_core::collective::Collective;
use lineweave_core::plan::{
    Blocks, Carry, FlagArray, FlagKind, FlagRef, Layout, Op, Params, Plan, PlanTextError, Region, Reuse,
    Space, Take, Uneven,
};
use lineweave_core::units::Rank;
use proptest::prelude::*;
use std::sync::Arc;

const SAMPLE: &str = "\
plan allreduce/sample k=2 p=2 root=0 bytes=16 grain=8 acc=64 reuse=same direct=yes slots=16x2,8
flags ready paired 2
counters arrivals packed 1
rank 0:
  put in[0..16] -> box@0[0]
  set ready@1[0]=1 carrying &in
  wait ready@0[1]>=-1 taking out[0..8]
  fold in[0..8] + box@1[0][8..16] -> acc[0..8]
  copy acc[0..8] -> out[8..16]
rank 1:
  wait ready@1[0]>=1 taking &in@0
  get in@0[0..16] -> out[0..16]
  put out[0..8] -> out@0[0..8]
  set ready@0[1]=2 carrying in[0..8]
  add arrivals@0[0]
end
";

fn error(text: &str) -> PlanTextError {
    text.parse::<Plan>().expect_err(text)
}

#[test]
fn the_sample_is_canonical() {
    let plan: Plan = SAMPLE.parse().unwrap();
    assert_eq!(plan.to_string(), SAMPLE);
    assert_eq!(plan.params, Params::new().with("k", 2));
    assert_eq!(plan.slots, [16, 16, 8]);
    assert_eq!(plan.programs[1].len(), 5);
    assert_eq!(plan.op_text(&plan.programs[1][4]), "add arrivals@0[0]");
}

#[test]
fn semicolons_and_comments_are_accepted() {
    let one_line = "# a plan\nplan barrier/x p=2 root=0 bytes=0 grain=1 acc=0 reuse=ring direct=no slots=none\n\
        flags f alone 1 # a flag\n\nrank 1: wait f@1[0]>=1 ; # nothing more\nrank 0: set f@1[0]=1;\nend # of it";
    let plan: Plan = one_line.parse().unwrap();
    assert_eq!(plan.programs[0].len() + plan.programs[1].len(), 2);
    assert_eq!(plan.to_string().parse::<Plan>(), Ok(plan));
}

#[test]
fn errors_name_line_expected_and_found() {
    let cases = [
        ("", "line 1: expected `plan collective/algorithm ...`, found the end of the text"),
        (
            "plan gossip/x",
            "line 1: expected one of barrier, bcast, reduce, allreduce, gather, scatter, allgather, reduce-scatter, \
             scan, exscan, alltoall, found `gossip/x`",
        ),
        ("rank 0:", "line 1: expected `plan `, found `rank`"),
    ];
    for (text, message) in cases {
        assert_eq!(error(text).to_string(), message);
    }
    let replaced = [
        ("p=2", "p=16385", 1, "16384"),
        ("p=2", "p=0", 1, "at least 1"),
        ("p=2", "p=2x", 1, "the end of the line"),
        ("root=0", "root=2", 1, "at most 1"),
        ("slots=16x2,8", "slots=16x99999999999999999999", 1, "how many slots"),
        ("slots=16x2,8", "slots=99999999999999", 1, "a slot size"),
        ("bytes=16 ", "", 1, "a header that ends in"),
        ("direct=yes", "direct=maybe", 1, "yes or no"),
        ("paired", "spread1", 2, "spread2"),
        ("counters arrivals", "counters ready", 3, "names that differ"),
        ("rank 1:", "rank 0:", 10, "each rank once"),
        ("rank 1:", "rank 2:", 10, "a rank"),
        ("put in[0..16]", "get in[0..16]", 5, "`put` between these places"),
        ("put in[0..16]", "put in[0..15]", 5, "equal length"),
        ("put in[0..16]", "put in[16..0]", 5, "an end of at least 16"),
        ("box@0[0]", "box@0[3]", 5, "a slot"),
        ("set ready@1[0]=1", "set ready@1[0]=0", 6, "at least 1"),
        ("set ready@1[0]", "set arrivals@1[0]", 6, "`flags`"),
        ("add arrivals", "add ready", 15, "`counters`"),
        ("wait ready@0[1]", "wait reddy@0[1]", 7, "arrivals, ready"),
        ("ready@0[1]>=-1", "ready@0[2]>=-1", 7, "below the 2 flags"),
        (">=-1", ">=-99999999999", 7, "32-bit"),
        ("end\n", "", 15, "`end`"),
        ("end\n", "end\nend\n", 17, "nothing after"),
    ];
    for (from, to, line, expected) in replaced {
        assert!(SAMPLE.contains(from), "{from}");
        let error = error(&SAMPLE.replacen(from, to, 1));
        assert_eq!(error.line, line, "{from} -> {to}: {error}");
        assert!(error.expected.contains(expected), "{from} -> {to}: {error}");
        assert!(!error.found.is_empty());
    }
}

#[test]
fn a_text_may_have_as_many_ranks_as_an_algorithm() {
    let binomial = algorithm::find(Collective::Bcast, "binomial").unwrap();
    let plan = binomial.plan(&Problem::flat(Collective::Bcast, MAX_RANKS, 8), &Params::new()).unwrap();
    let text = plan.to_string();
    assert!(text.parse::<Plan>() == Ok(plan));
    assert_eq!(error(&text.replace("p=16384", "p=16385")).line, 1);
}

fn region(ranks: usize, slots: Vec<usize>, len: usize) -> impl Strategy<Value = Region> {
    let n = slots.len();
    (0..7usize, 0..ranks, 0..n, 0..1000usize).prop_map(move |(which, rank, slot, offset)| {
        let rank = Rank::from(rank);
        let boxed = Space::Slot { rank, slot: slot as u16 };
        let (space, offset) = match which {
            0 => (Space::In, offset),
            1 => (Space::Out, offset),
            2 => (Space::Acc, offset),
            3 => (Space::PeerIn(rank), offset),
            4 => (Space::PeerOut(rank), offset),
            5 => (boxed, offset),
            _ => (boxed, 0),
        };
        Region { space, offset, len }
    })
}

fn op(ranks: usize, slots: Vec<usize>) -> impl Strategy<Value = Op> {
    let lens = [slots.clone(), vec![0, 8, 1 << 30]].concat();
    let flag = move |array: u16| {
        (0..ranks, 0..3u16).prop_map(move |(home, index)| FlagRef { array, home: Rank::from(home), index })
    };
    prop::sample::select(lens).prop_flat_map(move |len| {
        let r = || region(ranks, slots.clone(), len);
        let own = prop_oneof![Just(Space::In), Just(Space::Out)];
        let peer = (0..ranks, any::<bool>()).prop_map(|(q, input)| {
            let q = Rank::from(q);
            if input {
                Space::PeerIn(q)
            } else {
                Space::PeerOut(q)
            }
        });
        let carry = prop_oneof![r().prop_map(Carry::Bytes), own.prop_map(Carry::Address)];
        let take = prop_oneof![r().prop_map(Take::Bytes), peer.prop_map(Take::Address)];
        prop_oneof![
            (r(), r()).prop_map(|(src, dst)| Op::Move { src, dst }),
            (r(), r(), r()).prop_map(|(a, b, dst)| Op::Fold { a, b, dst }),
            (flag(0), 1..=i32::MAX, prop::option::of(carry)).prop_map(|(flag, value, carry)| Op::Set {
                flag,
                value,
                carry
            }),
            (flag(0), any::<i32>(), prop::option::of(take)).prop_map(|(flag, value, take)| Op::Wait {
                flag,
                value,
                take
            }),
            flag(1).prop_map(|flag| Op::Add { flag }),
        ]
    })
}

fn plan() -> impl Strategy<Value = Plan> {
    let layout = prop_oneof![
        Just(Layout::Packed),
        Just(Layout::Paired),
        Just(Layout::Alone),
        (2..=255u8).prop_map(Layout::Spread)
    ];
    let word = prop_oneof!["[a-z,+-]{1,8}", "\\PC{0,4}", any::<String>()];
    let params = prop::collection::btree_map(word.clone(), word.clone(), 0..3);
    (1..6usize, prop::collection::vec(prop::sample::select(vec![0, 8, 8, 64]), 1..5)).prop_flat_map(
        move |(ranks, slots)| {
            let programs =
                prop::collection::vec(prop::collection::vec(op(ranks, slots.clone()), 0..8), ranks);
            let names = (word.clone(), params.clone(), word.clone(), layout.clone());
            let sizes = (0..ranks, 0..1usize << 40, 1..100usize, any::<bool>(), any::<bool>());
            (names, sizes, programs, Just(slots)).prop_map(move |(names, sizes, programs, slots)| {
                let (algorithm, params, name, layout) = names;
                let (root, bytes, grain, ring, direct) = sizes;
                let other = format!("{name}2");
                let collective = Collective::ALL[bytes % Collective::ALL.len()];
                let lens = |n: usize| (0..n).map(|i| (bytes + i) % 100).collect::<Vec<_>>();
                let uneven = match collective {
                    Collective::Alltoall => Uneven::by_pair(ranks, lens(ranks * ranks)),
                    _ => Uneven::by_rank(lens(ranks)),
                };
                let blocks = match root % 4 {
                    0 => Blocks::Dense,
                    1 => Blocks::Apart(bytes),
                    2 => Blocks::Uneven(Arc::new(uneven)),
                    _ => Blocks::Uneven(Arc::new(uneven.window(7..60))),
                };
                Plan {
                    collective,
                    blocks,
                    algorithm,
                    params: Params(params),
                    ranks,
                    root: Rank::from(root),
                    bytes,
                    grain,
                    slots,
                    flags: vec![
                        FlagArray { name, kind: FlagKind::Signal, layout, count: 3 },
                        FlagArray { name: other, kind: FlagKind::Counter, layout, count: 3 },
                    ],
                    acc: grain * 64,
                    reuse: if ring { Reuse::Ring } else { Reuse::Same },
                    direct,
                    programs,
                }
            })
        },
    )
}

/// Edits that turn a valid text into one that is nearly valid.
fn mutated(text: &str, edits: &[(usize, u8, char)]) -> String {
    let mut chars: Vec<char> = text.chars().collect();
    for &(at, kind, c) in edits {
        let at = at % chars.len().max(1);
        match kind % 4 {
            0 if at < chars.len() => chars[at] = c,
            1 => chars.insert(at, c),
            2 if at < chars.len() => drop(chars.remove(at)),
            _ => chars.truncate(at),
        }
    }
    chars.into_iter().collect()
}

/// A text is either a plan that prints and reads back as itself, or an error on one of its lines.
fn plan_or_line(text: &str) -> Result<(), TestCaseError> {
    match text.parse::<Plan>() {
        Ok(plan) => prop_assert_eq!(plan.to_string().parse::<Plan>(), Ok(plan)),
        Err(e) => {
            prop_assert!(e.line >= 1 && e.line <= text.lines().count().max(1), "{}", e);
            prop_assert!(!e.expected.is_empty() && !e.found.is_empty());
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn any_plan_round_trips(plan in plan()) {
        let text = plan.to_string();
        prop_assert_eq!(text.parse::<Plan>(), Ok(plan));
    }

    #[test]
    fn random_text_is_refused_with_a_line(text in any::<String>(), bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        prop_assert!(text.parse::<Plan>().is_err());
        plan_or_line(&text)?;
        plan_or_line(&String::from_utf8_lossy(&bytes))?;
    }

    #[test]
    fn nearly_valid_text_never_panics(edits in prop::collection::vec((0..2000usize, any::<u8>(), "[ -~]|\\PC|\n"), 1..4)) {
        let edits: Vec<_> = edits.iter().map(|(at, kind, c)| (*at, *kind, c.chars().next().unwrap_or('\n'))).collect();
        plan_or_line(&mutated(SAMPLE, &edits))?;
    }
}

#[test]
fn every_truncation_is_refused() {
    for end in 0..SAMPLE.len() - 1 {
        assert!(SAMPLE[..end].parse::<Plan>().is_err(), "{}", &SAMPLE[..end]);
    }
}
