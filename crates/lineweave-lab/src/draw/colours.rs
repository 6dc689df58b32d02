//! The colours of drawings: a meaning each, told apart by colour-blind readers, and what stands for them on a dark page.
//!
//! A drawing has plain colours, so that every viewer shows it. A page that embeds drawings adds [`dark_style`], by which they follow a
//! reader who prefers dark pages.

use std::fmt::Write as _;

/// Data that moves between ranks.
pub(super) const TRANSFER: &str = "#0072b2";
/// Colour of flags.
pub(super) const SYNC: &str = "#d55e00";
/// Colour of reductions.
pub(super) const FOLD: &str = "#009e73";
/// Counters that are added to.
pub(super) const ADD: &str = "#cc79a7";
/// Waiting, as a line.
pub(super) const IDLE: &str = "#9ca3af";
/// Waiting, as a bar: the eye should find work.
pub(super) const PALE: &str = "#d1d5db";
/// Errors, such as a rank that can never go on.
pub(super) const WRONG: &str = "#b91c1c";
/// Colour of text.
pub(super) const INK: &str = "#1f2937";
/// Text on pale cells, which are as pale on a dark page.
pub(super) const INK_ON_PALE: &str = "#1f2938";
/// Text that matters less.
pub(super) const SOFT: &str = "#6b7280";
/// Lanes and grids.
pub(super) const RULE: &str = "#e5e7eb";
/// Colour of the page.
pub(super) const PAPER: &str = "#ffffff";
/// Series of charts, after Okabe & Ito.
pub(super) const SERIES: [&str; 7] = [TRANSFER, SYNC, FOLD, ADD, "#e69f00", "#56b4e9", "#000000"];
/// Cells of tables; names beyond them differ by their numbers.
pub(super) const FILLS: [&str; 9] =
    ["#e7e2f8", "#d89264", "#a5e9b3", "#bc85e0", "#8ba2b1", "#d8d864", "#e9a5e9", "#b1aa8b", "#bce085"];
/// Shades from pale to dark; that of a share of 0 is the background's.
pub(super) const SHADES: [&str; 8] =
    [PAPER, "#fff3d6", "#fee0a6", "#fdc26d", "#f99a3d", "#ec6b1e", "#c8420c", "#8a2506"];

/// Returns the shade of a value between `low` and `high`, by logarithm; the background's for none, and a middle one where there is
/// nothing to compare. The darkest shade is left out.
pub(super) fn shade(value: Option<f64>, low: f64, high: f64) -> &'static str {
    match value {
        None => SHADES[0],
        Some(_) if high <= low => SHADES[3],
        Some(value) => {
            let share = (value / low).ln() / (high / low).ln();
            SHADES[1 + (share * (SHADES.len() - 3) as f64).round() as usize]
        }
    }
}

/// Marks: on paper, and on a dark page.
const MARKS: [(&str, &str); 17] = [
    (INK, "#e5e7eb"),
    (SOFT, "#a3acb9"),
    (RULE, "#3a4250"),
    (PAPER, "#1c2027"),
    (IDLE, "#7b8494"),
    (PALE, "#4b5563"),
    (WRONG, "#f87171"),
    ("#000000", "#f3f4f6"),
    ("#dbe9f6", "#27405a"),
    ("#eef2f7", "#222932"),
    ("#c9d3df", "#3d4856"),
    ("#e1eaf5", "#26323f"),
    ("#b9cbe2", "#42566d"),
    ("#d6eadf", "#22362c"),
    ("#abd0bd", "#3f6350"),
    ("#f7ead0", "#3a3222"),
    ("#e0c898", "#6b5a35"),
];
/// Words: those in the colour of a mark need more contrast, and white ones stand on dark marks.
const WORDS: [(&str, &str); 5] =
    [(TRANSFER, "#6bb8ec"), (SYNC, "#f5a06a"), (FOLD, "#5fd3b0"), (ADD, "#e6a9cb"), (PAPER, PAPER)];

/// Returns style rules by which drawings within what `of` selects follow a reader who prefers dark pages.
pub fn dark_style(of: &str) -> String {
    let mut out = String::new();
    for (light, dark) in MARKS {
        let _ =
            write!(out, "{of} [fill=\"{light}\"]{{fill:{dark}}}{of} [stroke=\"{light}\"]{{stroke:{dark}}}");
    }
    for (light, dark) in WORDS {
        let _ = write!(out, "{of} text[fill=\"{light}\"]{{fill:{dark}}}");
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Vision of a reader: all colours, or without one of three kinds of cones, after Machado et al. (2009).
    const EYES: [(&str, [[f64; 3]; 3]); 4] = [
        ("all colours", [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]),
        (
            "protanopia",
            [
                [0.152286, 1.052583, -0.204868],
                [0.114503, 0.786281, 0.099216],
                [-0.003882, -0.048116, 1.051998],
            ],
        ),
        (
            "deuteranopia",
            [
                [0.367322, 0.860646, -0.227968],
                [0.280085, 0.672501, 0.047413],
                [-0.011820, 0.042940, 0.968881],
            ],
        ),
        (
            "tritanopia",
            [
                [1.255528, -0.076749, -0.178779],
                [-0.078411, 0.930809, 0.147602],
                [0.004733, 0.691367, 0.303900],
            ],
        ),
    ];

    fn linear(hex: &str) -> [f64; 3] {
        let channel = |at: usize| f64::from(u8::from_str_radix(&hex[at..at + 2], 16).unwrap()) / 255.0;
        [1, 3, 5].map(channel).map(|c| if c <= 0.04045 { c / 12.92 } else { ((c + 0.055) / 1.055).powf(2.4) })
    }

    fn times(matrix: &[[f64; 3]; 3], v: [f64; 3]) -> [f64; 3] {
        std::array::from_fn(|i| (0..3).map(|j| matrix[i][j] * v[j]).sum())
    }

    /// A colour in CIE L*a*b*, in which distances are what eyes tell apart.
    fn lab(hex: &str, eye: &[[f64; 3]; 3]) -> [f64; 3] {
        const TO_XYZ: [[f64; 3]; 3] = [
            [0.4124564, 0.3575761, 0.1804375],
            [0.2126729, 0.7151522, 0.0721750],
            [0.0193339, 0.1191920, 0.9503041],
        ];
        let seen = times(eye, linear(hex)).map(|c| c.clamp(0.0, 1.0));
        let [x, y, z] = times(&TO_XYZ, seen);
        let f = |t: f64| if t > 0.008856 { t.cbrt() } else { 7.787 * t + 16.0 / 116.0 };
        let (x, y, z) = (f(x / 0.95047), f(y), f(z / 1.08883));
        [116.0 * y - 16.0, 500.0 * (x - y), 200.0 * (y - z)]
    }

    fn apart(a: &str, b: &str, eye: &[[f64; 3]; 3]) -> f64 {
        let (a, b) = (lab(a, eye), lab(b, eye));
        (0..3).map(|i| (a[i] - b[i]).powi(2)).sum::<f64>().sqrt()
    }

    #[test]
    fn colours_that_are_drawn_together_are_told_apart_by_colour_blind_readers() {
        let kinds = [TRANSFER, SYNC, FOLD, ADD, PALE];
        let dark = |colour: &&'static str| MARKS.iter().find(|m| m.0 == *colour).map_or(*colour, |m| m.1);
        let sets: [(&str, Vec<&str>); 5] = [
            ("ops", kinds.to_vec()),
            ("ops on a dark page", kinds.iter().map(dark).chain(["#1c2027"]).collect()),
            ("series", SERIES.to_vec()),
            ("series on a dark page", SERIES.iter().map(dark).chain(["#1c2027"]).collect()),
            ("cells", FILLS.to_vec()),
        ];
        for (name, set) in sets {
            for (eye, matrix) in &EYES {
                for (i, a) in set.iter().enumerate() {
                    for b in &set[i + 1..] {
                        let apart = apart(a, b, matrix);
                        assert!(apart > 10.0, "{name}, {eye}: {a} and {b} are {apart:.1} apart");
                    }
                }
            }
        }
    }

    #[test]
    fn shades_grow_darker_for_every_reader() {
        for (eye, matrix) in &EYES {
            let light: Vec<f64> = SHADES.iter().map(|s| lab(s, matrix)[0]).collect();
            assert!(light.windows(2).all(|w| w[0] - w[1] > 2.0), "{eye}: {light:?}");
        }
    }

    #[test]
    fn text_can_be_read_on_both_pages() {
        let bright = |hex: &str| {
            let [r, g, b] = linear(hex);
            0.2126 * r + 0.7152 * g + 0.0722 * b + 0.05
        };
        let contrast = |a: &str, b: &str| (bright(a) / bright(b)).max(bright(b) / bright(a));
        for text in [INK, SOFT, TRANSFER, WRONG] {
            assert!(contrast(text, PAPER) >= 4.5, "{text}");
        }
        let dark = |of: &str| WORDS.iter().chain(&MARKS).find(|m| m.0 == of).unwrap().1;
        for text in [INK, SOFT, TRANSFER, SYNC, FOLD, ADD, WRONG] {
            assert!(contrast(dark(text), "#1c2027") >= 4.5, "{text}");
        }
        for fill in FILLS {
            assert!(contrast(INK_ON_PALE, fill) >= 4.5, "{fill}");
        }
    }
}
