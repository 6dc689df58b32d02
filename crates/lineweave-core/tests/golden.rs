//! Every algorithm's default plan for 7 ranks, held as text: a change of a plan shows as a diff to review.
//!
//! `LINEWEAVE_BLESS=1 cargo test -p lineweave-core --test golden` rewrites the files.

use lineweave_core::algorithm::{self, Algorithm, Problem};
use lineweave_core::machine::topology;
use lineweave_core::plan::{Params, Plan, PlanError};
use lineweave_core::topology::Shape;
use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;

/// An odd number, so that no power of two hides a mistake.
const RANKS: usize = 7;
/// Not rank 0, so that virtual and real ranks differ.
const ROOT: usize = 2;
/// Uneven groups, so that plans shaped by topology show their levels.
const TOPOLOGY: &str = "pack:2 numa:1 l3:1 core:4 pu:1";
const GRAIN: usize = 8;
/// One element a rank (it fits the line of a flag), and enough for several pages and uneven blocks.
const SIZES: [(usize, &str); 2] = [(56, ""), (12_008, "-12008")];

fn directory() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden")
}

/// The same for a block of a collective that exchanges them: one that travels with a flag, and a few lines, so that the
/// files stay short.
const BLOCK_SIZES: [(usize, &str); 2] = [(8, ""), (200, "-200")];

/// The plans to hold: one a size, without those that the algorithm is not for.
fn plans(algorithm: &Algorithm) -> Vec<(String, Plan)> {
    let collective = algorithm.collective;
    let sizes: &[(usize, &str)] = match (collective.moves_data(), collective.has_blocks()) {
        (false, _) => &[(0, "")],
        (true, false) => &SIZES,
        (true, true) => &BLOCK_SIZES,
    };
    let mut plans = Vec::new();
    for (bytes, suffix) in sizes {
        let mut problem = Problem::flat(collective, RANKS, *bytes);
        problem.shape = Shape::place(RANKS, &topology(TOPOLOGY).unwrap());
        problem.grain = if collective.folds() { GRAIN } else { 1 };
        problem.root = if collective.rooted() { ROOT } else { 0 };
        problem.direct = true;
        match algorithm.plan(&problem, &Params::new()) {
            Ok(plan) => plans.push((format!("{collective}-{}{suffix}.txt", algorithm.name), plan)),
            Err(PlanError::NotApplicable { .. }) => {}
            Err(e) => panic!("{algorithm:?} makes no plan of {bytes} bytes for {RANKS} ranks: {e}"),
        }
    }
    assert!(!plans.is_empty(), "{algorithm:?} applies to no size: hold a plan of it at a size of its own");
    plans
}

/// The first lines that differ, with two lines of context before them.
fn difference(file: &str, held: &str, made: &str) -> String {
    let (held, made): (Vec<&str>, Vec<&str>) = (held.lines().collect(), made.lines().collect());
    let at = held.iter().zip(&made).take_while(|(a, b)| a == b).count();
    let mut out =
        format!("{file}: {} lines held, {} made, they differ from line {}\n", held.len(), made.len(), at + 1);
    let line = |mark: &str, text: &str| format!("  {mark} {text}\n");
    out.extend(held[at.saturating_sub(2)..at].iter().map(|l| line(" ", l)));
    out.extend(held.iter().skip(at).take(8).map(|l| line("-", l)));
    out.extend(made.iter().skip(at).take(8).map(|l| line("+", l)));
    out
}

#[test]
fn plans_are_as_held() {
    let bless = std::env::var_os("LINEWEAVE_BLESS").is_some_and(|v| v == "1");
    let directory = directory();
    if bless {
        fs::create_dir_all(&directory).unwrap();
    }
    let mut problems = String::new();
    let mut expected = BTreeSet::new();
    for (file, plan) in algorithm::all().flat_map(plans) {
        let made = plan.to_string();
        assert_eq!(made.parse::<Plan>().as_ref(), Ok(&plan), "{file} does not read back");
        let path = directory.join(&file);
        if bless {
            fs::write(&path, &made).unwrap();
        } else {
            match fs::read_to_string(&path) {
                Ok(held) if held == made => {}
                Ok(held) => problems += &difference(&file, &held, &made),
                Err(e) => problems += &format!("{file}: {e}\n"),
            }
        }
        expected.insert(file);
    }
    for entry in fs::read_dir(&directory).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        if !expected.contains(&name) {
            if bless {
                fs::remove_file(directory.join(&name)).unwrap();
            } else {
                problems += &format!("{name}: no algorithm makes this plan\n");
            }
        }
    }
    assert!(problems.is_empty(), "\n{problems}Review, then run again with LINEWEAVE_BLESS=1.");
}
