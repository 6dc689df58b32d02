//! Section 1.1.1: gets of all cores across the mesh, and puts of all cores to one.

use super::{Study, MHZ};
use crate::paper::limit::{NUMBER, SAME};
use crate::paper::petrovic::contention::{first_done, get_alone, mean, traced, Use};
use crate::paper::petrovic::Study as Chip;
use crate::paper::{claim, Basis, Finding};

/// Numbers of cores of the figures.
pub(super) const CORES: [usize; 7] = [2, 8, 16, 24, 32, 40, 48];
/// Lines of a get: the thesis does not say how long its messages are. Two such messages fit a message buffer.
pub(super) const LINES: [usize; 3] = [1, 16, 120];

/// Cycles of a call, on average over `n` cores, the same number from each end of the chip. A get is from the core opposite, a
/// put to core 0.
pub(super) fn cycles(chip: &Chip, puts: bool, lines: usize, n: usize, all: usize) -> f64 {
    let ends = (0..n / 2).chain(all - n / 2..all);
    let times = if lines > 32 { 4 } else { 20 };
    let uses: Vec<Use> = ends.map(|c| (c, if puts { 0 } else { all - 1 - c }, puts, times)).collect();
    let trace = traced(chip, lines, &uses);
    let until = first_done(&trace, all);
    let each: Vec<f64> = uses.iter().map(|u| mean(&trace, u.0, until)).filter(|m| m.is_finite()).collect();
    each.iter().sum::<f64>() / each.len() as f64 / 1e3 * MHZ
}

/// Cycles of the same gets, each alone on the chip.
pub(super) fn without_others(chip: &Chip, study: &Study, lines: usize, n: usize) -> f64 {
    let (columns, all) = (study.printed.setup.columns, study.printed.setup.cores);
    let tile = |core: usize| (core / 2 % columns, core / 2 / columns);
    let ends: Vec<usize> = (0..n / 2).chain(all - n / 2..all).collect();
    let alone = |&core: &usize| {
        let (a, b) = (tile(core), tile(all - 1 - core));
        get_alone(chip, lines, (a.0.abs_diff(b.0) + a.1.abs_diff(b.1) + 1) as u32)
    };
    ends.iter().map(alone).sum::<f64>() / ends.len() as f64 / 1e3 * MHZ
}

/// The length of a put that takes as many cycles between 2 cores as printed.
pub(super) fn put_lines(chip: &Chip, study: &Study) -> usize {
    let wanted = study.printed.contention.put_2;
    let off = |lines: &usize| (cycles(chip, true, *lines, 2, study.printed.setup.cores) - wanted).abs();
    (1..=16).min_by(|a, b| off(a).total_cmp(&off(b))).unwrap_or(1)
}

pub(super) fn findings(study: &Study) -> Vec<Finding> {
    let (chip, c) = (Chip::new(), &study.printed.contention);
    let all = study.printed.setup.cores;
    let grown: Vec<f64> = LINES
        .iter()
        .map(|&l| cycles(&chip, false, l, all, all) / without_others(&chip, study, l, all) - 1.0)
        .collect();
    let each: Vec<String> =
        LINES.iter().zip(&grown).map(|(l, g)| format!("{l} lines {:+.0} %", g * 100.0)).collect();
    let lines = put_lines(&chip, study);
    let [two, many] = [2, all].map(|n| cycles(&chip, true, lines, n, all));
    vec![
        claim(
            "fig 1.2",
            &format!(
                "from 2 to 48 cores a get across the mesh slows by {} cycles a core, by contention on links",
                c.get_per_core
            ),
            format!(
                "no length is stated; gets of 48 cores, each from the one opposite, beside the same gets alone: {}",
                each.join(", ")
            ),
            grown.iter().all(|g| *g > SAME.share),
        ),
        claim(
            "fig 1.3",
            &format!("from 2 to 48 cores a put to core 0 slows from {} to {} cycles", c.put_2, c.put_48),
            format!(
                "a put of {lines} lines, whose {two:.0} cycles with 2 cores are nearest to that, takes {many:.0} with 48 \
                 ({:+.0} %, printed {:+.0} %)",
                (many / two - 1.0) * 100.0,
                (c.put_48 / c.put_2 - 1.0) * 100.0
            ),
            NUMBER.beside(many, c.put_48),
        )
        .on(Basis::Calibrated),
    ]
}
