//! Fitting of tables to the width of a terminal: cells are folded between words, and columns left out where even that is too wide.

use comfy_table::{presets, ColumnConstraint, Row, Table, Width};
use textwrap::core::display_width;

/// Columns between two columns.
const GAP: usize = 2;
/// Space at which no line is folded: between a number and its unit.
const HARD: char = '\u{a0}';
const UNITS: [&str; 11] = ["ns", "us", "µs", "ms", "s", "B", "KiB", "MiB", "GiB", "%", "GB/s"];

/// Returns the lines of a table, at most `width` wide as far as words allow, and the headings of the columns that were left out: `lesser` first,
/// then from the right, until words fit. The first two columns are kept; empty ones go before and are not named.
pub fn fitted(table: &Table, width: usize, lesser: &[&str]) -> (Vec<String>, Vec<String>) {
    let cells = |row: &Row| row.cell_iter().map(|c| joined(&c.content(), width / 2)).collect::<Vec<String>>();
    let head: Vec<String> = table.header().map(cells).unwrap_or_default();
    let rows: Vec<Vec<String>> = table.row_iter().map(cells).collect();
    let widest = |of: fn(&str) -> usize, column: usize| {
        [&head].into_iter().chain(&rows).filter_map(|row| row.get(column)).map(|c| of(c)).max().unwrap_or(0)
    };
    let bounds: Vec<(usize, usize)> =
        (0..head.len()).map(|i| (widest(longest_word, i), widest(display_width, i))).collect();
    let (mut kept, mut out): (Vec<usize>, Vec<String>) = ((0..head.len()).collect(), Vec::new());
    let at_level = |kept: &[usize], level: usize| {
        let cells: usize = kept.iter().map(|&i| level.clamp(bounds[i].0, bounds[i].1)).sum();
        cells + GAP * kept.len().saturating_sub(1)
    };
    while at_level(&kept, 0) > width && kept.len() > 2 {
        let named = |heading: &&str| kept.iter().position(|&i| plain(&head[i]).eq_ignore_ascii_case(heading));
        let says_nothing =
            |&i: &usize| !rows.is_empty() && rows.iter().all(|row| row.get(i).is_none_or(String::is_empty));
        if let Some(empty) = kept.iter().position(says_nothing) {
            kept.remove(empty);
            continue;
        }
        let next = lesser.iter().find_map(named).unwrap_or(kept.len() - 1);
        out.push(plain(&head[kept.remove(next)]));
    }
    // All columns get as much as the others, or what they need.
    let level = (1..=width).rev().find(|&level| at_level(&kept, level) <= width).unwrap_or(0);
    let mut fitted = Table::new();
    fitted.load_preset(presets::NOTHING).set_header(head);
    fitted.add_rows(rows);
    for (i, column) in fitted.column_iter_mut().enumerate() {
        if let Some(old) = table.column(i) {
            *column = old.clone();
        }
        column.set_constraint(match kept.contains(&i) {
            true => {
                let cell = level.clamp(bounds[i].0, bounds[i].1) + usize::from(column.padding_width());
                ColumnConstraint::Absolute(Width::Fixed(u16::try_from(cell).unwrap_or(u16::MAX)))
            }
            false => ColumnConstraint::Hidden,
        });
    }
    out.retain(|heading| !heading.is_empty());
    (fitted.lines().map(|line| plain(line.trim_end())).collect(), out)
}

fn plain(text: &str) -> String {
    text.replace(HARD, " ")
}

/// Returns a cell whose numbers stay with their units, and whose lists longer than `most` can be folded behind commas.
fn joined(cell: &str, most: usize) -> String {
    let mut joined = String::new();
    let mut before = "";
    for (i, word) in cell.split(' ').enumerate() {
        if i > 0 {
            let unit =
                UNITS.contains(&word.trim_end_matches(',')) && before.ends_with(|c: char| c.is_ascii_digit());
            joined.push(if unit { HARD } else { ' ' });
        }
        match display_width(word) > most {
            true => joined.push_str(&word.replace(',', ", ")),
            false => joined.push_str(word),
        }
        before = word;
    }
    joined
}

/// Returns the width of the longest word, the first one with what it is indented by.
fn longest_word(cell: &str) -> usize {
    let lead = cell.len() - cell.trim_start_matches(' ').len();
    let words = cell.trim_start_matches(' ').split(' ').map(display_width);
    words.enumerate().map(|(i, word)| if i == 0 { lead + word } else { word }).max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks a table of races at many widths: no word is broken, no line too long, and nothing is left out in silence.
    #[test]
    fn no_word_is_broken_and_no_line_is_too_long() {
        let heading =
            ["collective", "bytes", "chosen by the model", "measured", "95 % interval", "fastest measured"];
        let rows = [
            [
                "reduce-scatter",
                "512 KiB",
                "tree degrees=2,2,1 by 4 KiB",
                "31.6 us",
                "30 us .. 33 us",
                "flat layout=paired",
            ],
            ["allreduce", "8 B", "recursive-doubling", "197461 ns", "1 ns .. 2 us", "the choice"],
        ];
        for width in 44..140 {
            let mut table = crate::output::table(&heading, &[1, 3, 4]);
            table.add_rows(rows);
            let (lines, out) = fitted(&table, width, &["95 % interval"]);
            let words = format!("{} {}", heading.join(" ").to_uppercase(), rows.concat().join(" "));
            let known: Vec<&str> = words.split(' ').collect();
            for line in &lines {
                assert!(display_width(line) <= width, "{width}: {line}");
                assert!(line.split_whitespace().all(|word| known.contains(&word)), "{width}: {line}");
            }
            let text = lines.join("\n");
            assert!(
                text.contains("512 KiB") && text.contains("31.6 us") != out.contains(&"MEASURED".to_owned())
            );
            for heading in heading {
                let first = heading.to_uppercase().split(' ').next().map(str::to_owned).unwrap_or_default();
                assert!(out.contains(&heading.to_uppercase()) || text.contains(&first), "{width}: {text}");
            }
            assert_eq!(out.is_empty(), width >= 79, "{width}: {out:?}\n{text}");
            assert!(out.first().is_none_or(|first| first == "95 % INTERVAL"), "{out:?}");
        }
    }

    #[test]
    fn long_lists_are_folded_behind_commas() {
        let mut table = crate::output::table(&["class", "groups"], &[]);
        table.add_row(["a", "10,12,14,16,18,20,22"]);
        assert_eq!(fitted(&table, 20, &[]).0[1..], ["a      10, 12, 14,", "       16, 18, 20,", "       22"]);
    }
}
