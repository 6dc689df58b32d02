//! Luczynski et al. 2024: reductions on a wafer-scale mesh by contention, energy, distance and depth.
//!
//! The paper itself was not at hand: its model and its claims are those that the design notes of this project cite.

use super::{all_on, claim, item, of, Basis, Finding, Paper, Verdict};
use crate::models::mesh::{self, Rows, Streaming, Work};
use lineweave_core::algorithm::row_trees::{bound, fixed, generate, RowCosts};
use lineweave_core::algorithm::{self, Problem};
use lineweave_core::collective::Collective;
use lineweave_core::plan::Params;

/// Key of the paper.
const KEY: &str = "luczynski-2024";

/// The line of the table.
pub static PAPER: Paper = Paper {
    key: KEY,
    cite: "Luczynski et al. 2024",
    about: "reductions on a wafer-scale mesh: contention, energy, distance and depth, and generated trees",
    findings,
    figures: Vec::new,
};

/// T_R in cycles. Not known here; claims are looked at from 1 to 4.
const RAMPS: [u64; 4] = [1, 2, 3, 4];
/// Bytes of a wavelet.
const WAVELET: usize = 4;

fn findings() -> Vec<Finding> {
    of(KEY, all_on(Basis::ByConstruction, [closed_forms(), gain(), corner(), ratio(), vendor()]))
}

/// The work of a plan of `reduce/generated` along one row.
fn planned(tree: &str, p: usize, b: usize, columns: usize) -> Option<Work> {
    let problem = Problem { grain: WAVELET, ..Problem::flat(Collective::Reduce, p, b * WAVELET) };
    let params = Params::new().with("tree", tree).with("columns", columns).with("chunk", b * WAVELET);
    let plan = algorithm::find(Collective::Reduce, "generated").ok()?.plan(&problem, &params).ok()?;
    Work::of_plan(&plan, Rows { columns, wavelet: WAVELET })
}

fn closed_forms() -> Finding {
    let (mut agree, mut of) = (0, 0);
    for p in [2usize, 4, 16, 64] {
        for b in [1usize, 8, 300] {
            let (wide, group) = ((p as u64, b as u64), (1..=p).find(|g| g * g >= p).unwrap_or(1) as u64);
            let forms = [
                ("star", Some(mesh::star(wide.0, wide.1))),
                ("chain", Some(mesh::chain(wide.0, wide.1))),
                ("binary", Some(mesh::binary(wide.0, wide.1))),
                ("two-phase", (wide.0 % group == 0).then(|| mesh::two_phase(wide.0, group, wide.1))),
            ];
            for (tree, form) in forms {
                let Some(form) = form else { continue };
                of += 1;
                agree += usize::from(planned(tree, p, b, p) == Some(form));
            }
        }
    }
    let what = "contention, energy, links, distance and depth of star, chain, binary and two-phase reductions, each equal to \
                those of its plan";
    item("closed forms", agree, of, what)
}

/// Lengths in wavelets.
fn lengths() -> impl Iterator<Item = u64> {
    (0..15).map(|i| 1 << i)
}

/// Counts the values of all rows and lengths that agree, and all; and the greatest with its row and length.
fn over(
    rows: &[usize],
    value: impl Fn(usize, u64) -> f64,
    agrees: impl Fn(f64) -> bool,
) -> (usize, usize, (f64, usize, u64)) {
    let (mut agree, mut of, mut most) = (0, 0, (0.0, 0, 0));
    for &p in rows {
        for b in lengths() {
            let value = value(p, b);
            (agree, of) = (agree + usize::from(agrees(value)), of + 1);
            most = if value > most.0 { (value, p, b) } else { most };
        }
    }
    (agree, of, most)
}

/// The worst ratio over rows and all lengths.
fn worst(ramp: u64, rows: &[usize]) -> (f64, usize, u64) {
    let costs = RowCosts::streaming(ramp);
    let ratio = |p: usize, b: u64| costs.time(&generate(p, b, costs), b) / bound(p, b, costs);
    over(rows, ratio, |_| true).2
}

fn ratio() -> Finding {
    let found = RAMPS.map(|ramp| (ramp, worst(ramp, &[4, 16, 64, 128])));
    let long = worst(2, &[512]);
    let shown: Vec<String> = found
        .iter()
        .map(|(ramp, (ratio, p, b))| format!("{ratio:.2} (T_R = {ramp}, {p} processors, {b} wavelets)"))
        .collect();
    claim(
        "lower bound, one dimension",
        "generated trees are within 1.4 times a lower bound",
        format!("at most {}; 512 processors {:.2}", shown.join(", "), long.0),
        found.iter().map(|f| f.1 .0).fold(long.0, f64::max) <= 1.4,
    )
}

/// Returns whether generating gains over the best fixed tree, and how much.
fn gain() -> Finding {
    let costs = RowCosts::streaming(2);
    let best = |p: usize, b: u64| {
        let known = fixed(p).map(|(_, t)| costs.time(&t, b));
        known.into_iter().fold(f64::MAX, f64::min)
    };
    let gain = |p: usize, b: u64| best(p, b) / costs.time(&generate(p, b, costs), b);
    let (agree, of, (gain, p, b)) = over(&[4, 16, 64, 128], gain, |gain| gain >= 1.0);
    item(
        "generated trees",
        agree,
        of,
        format!(
            "rows and lengths at which the generated tree is no slower than star, chain, binary and two-phase ones; up to \
             {gain:.2} times as fast as the best of them ({p} processors, {b} wavelets)"
        ),
    )
}

/// Rows first, then a column.
fn corner() -> Finding {
    let streaming = Streaming { ramp: 2 };
    let costs = RowCosts::streaming(2);
    let ratio = |n: usize, b: u64| {
        2.0 * costs.time(&generate(n, b, costs), b) / streaming.corner_bound(n as u64, n as u64, b)
    };
    let (agree, of, (ratio, n, b)) = over(&[8, 32, 64], ratio, |ratio| ratio <= 1.4);
    item(
        "rows, then a column",
        agree,
        of,
        format!(
            "meshes and lengths within 1.4 times a lower bound for two dimensions, which knows no depth and uses all links; \
             at most {ratio:.2} times ({n} x {n} processors, {b} wavelets)"
        ),
    )
}

fn vendor() -> Finding {
    let claimed = "up to 3.27 times as fast as the vendor's, predicted within 4 %";
    claim("measured", claimed, "needs the machine", Verdict::NotReproduced)
}
