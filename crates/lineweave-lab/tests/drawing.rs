//! Drawings: well-formed XML that shows every op, whatever the plan.

use lineweave_core::algorithm::{self, Problem};
use lineweave_core::plan::{Op, Params, Plan};
use lineweave_core::trace::{Clock, Picos, Trace};
use lineweave_core::units::Rank;
use lineweave_lab::draw;
use proptest::prelude::*;

/// Checks tags, attributes and entities; returns the number of elements.
fn well_formed(xml: &str) -> Result<usize, String> {
    let mut open: Vec<&str> = Vec::new();
    let mut elements = 0;
    let mut rest = xml;
    while let Some(at) = rest.find('<') {
        content(&rest[..at])?;
        let close = rest[at..].find('>').ok_or("a tag without end")? + at;
        let tag = &rest[at + 1..close];
        rest = &rest[close + 1..];
        if let Some(name) = tag.strip_prefix('/') {
            if open.pop() != Some(name) {
                return Err(format!("</{name}> closes nothing"));
            }
            continue;
        }
        elements += 1;
        let (tag, empty) = tag.strip_suffix('/').map_or((tag, false), |t| (t, true));
        let name = tag.split(' ').next().unwrap_or_default();
        let quotes: Vec<&str> = tag.split('"').collect();
        if quotes.len() % 2 == 0 {
            return Err(format!("an open quote in <{tag}>"));
        }
        for value in quotes.iter().skip(1).step_by(2) {
            content(value)?;
        }
        if !empty {
            open.push(name);
        }
    }
    content(rest)?;
    if open.is_empty() {
        Ok(elements)
    } else {
        Err(format!("open: {open:?}"))
    }
}

fn content(text: &str) -> Result<(), String> {
    for part in text.split('&').skip(1) {
        if !["amp;", "lt;", "gt;", "quot;"].iter().any(|e| part.starts_with(e)) {
            return Err(format!("a bare & in {text:?}"));
        }
    }
    match text.chars().find(|&c| (c.is_control() && c != '\n') || c == '\u{fffe}' || c == '\u{ffff}') {
        Some(c) => Err(format!("{c:?} in {text:?}")),
        None => Ok(()),
    }
}

fn check(plan: &Plan) {
    let svg = draw::plan(plan);
    well_formed(&svg).unwrap_or_else(|e| panic!("{}: {e}", plan.name()));
    assert!(!svg.contains("href") && !svg.contains("url("), "nothing outside the file");
    assert!(!svg.contains("NaN") && !svg.contains("inf\""));
    if plan.ranks > 16 {
        return every_rank_is_in_one_lane(plan, &svg);
    }
    let tooltips = svg.matches("<g><title>rank ").count();
    let ops = plan.ops().count();
    assert!(tooltips >= ops, "{}: {tooltips} tooltips for {ops} ops", plan.name());
    for rank in 0..plan.ranks {
        assert!(svg.contains(&format!(">rank {rank}")), "lane {rank}");
    }
}

/// A lane's tooltip has all its ranks.
fn every_rank_is_in_one_lane(plan: &Plan, svg: &str) {
    let mut ranks: Vec<usize> = Vec::new();
    for lane in svg.split("<g><title>ranks ").skip(1) {
        let list = lane.split_once("</title>").unwrap().0;
        match list.split_once(" to ") {
            Some((from, to)) => ranks.extend(from.parse::<usize>().unwrap()..=to.parse().unwrap()),
            None => ranks.extend(list.split(", ").map(|rank| rank.parse::<usize>().unwrap())),
        }
    }
    ranks.sort_unstable();
    assert_eq!(ranks, (0..plan.ranks).collect::<Vec<_>>(), "{}", plan.name());
}

#[test]
fn every_algorithm_can_be_drawn() {
    for algorithm in algorithm::all() {
        for ranks in [1, 2, 7, 32] {
            for bytes in [0, 56, 12_008] {
                let mut problem = Problem::flat(algorithm.collective, ranks, bytes);
                problem.grain = if algorithm.collective.folds() { 8 } else { 1 };
                problem.direct = true;
                if let Ok(plan) = algorithm.plan(&problem, &Params::new()) {
                    check(&plan);
                }
            }
        }
    }
}

const PLAN: &str = "plan allreduce/x a=\"<&\\u{1}>\" p=2 root=0 bytes=8 grain=8 acc=8 reuse=same direct=yes slots=8
flags f alone 1
counters c packed 1
rank 0: put in[0..8] -> box@1[0] ; set f@1[0]=1 carrying &in ; add c@1[0]; wait f@0[0]>=1
rank 1: wait f@1[0]>=1 taking &in@0; fold in@0[0..8] + box@1[0] -> acc[0..8]; wait c@1[0]>=1; get in@0[0..8] -> acc[0..8]
end";

#[test]
fn texts_are_escaped_and_a_stuck_rank_is_marked() {
    let plan: Plan = PLAN.parse().unwrap();
    check(&plan);
    let svg = draw::plan(&plan);
    assert!(svg.contains("&lt;&amp;\u{fffd}&gt;"));
    assert!(svg.contains("never: wait f@0[0]&gt;=1"));
    assert!(svg.contains(">8 B</text>"));
}

fn traced(plan: &Plan, times: &[u64]) -> Trace {
    let mut trace = Trace::of(plan, Clock::Measured);
    let mut times = times.iter().copied().cycle();
    for (rank, ops) in plan.programs.iter().enumerate() {
        let mut now = 0;
        for (i, op) in ops.iter().enumerate() {
            let wait = matches!(op, Op::Wait { .. });
            let end = now + times.next().unwrap_or(0) * if wait { 10 } else { 1 };
            trace.record(plan, Rank::from(rank), i as u32, Picos(now), Picos(end));
            now = end;
        }
    }
    trace
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn traces_of_any_length_can_be_drawn(times in prop::collection::vec(0..1u64 << 40, 1..9)) {
        let plan: Plan = PLAN.parse().unwrap();
        let svg = draw::timeline(&plan, &[traced(&plan, &times)]);
        prop_assert!(well_formed(&svg).is_ok(), "{:?}", well_formed(&svg));
        prop_assert_eq!(svg.matches("<g><title>rank ").count(), plan.ops().count());
        prop_assert!(!svg.contains("NaN"));
    }

    #[test]
    fn strange_texts_stay_inside_their_elements(text in any::<String>()) {
        let mut plan: Plan = PLAN.parse().unwrap();
        // A text as long, so that as much has room.
        let mut plain = plan.clone();
        plain.algorithm = "x".repeat(text.chars().count());
        plain.flags[0].name = plain.algorithm.clone();
        plan.algorithm = text.clone();
        plan.flags[0].name = text;
        prop_assert_eq!(well_formed(&draw::plan(&plan)), well_formed(&draw::plan(&plain)));
    }
}
