//! A matrix from CSV, and as CSV.
//!
//! Taken is what the programs for this purpose write and people make of it: the lower triangle, the upper or both; rows in
//! full or up to the diagonal; commas, semicolons or tabs; a row and a column of CPU numbers; a unit in a heading or comment; a table in columns with
//! words around it. What had to be assumed is remarked.

use super::printed::{counts, printed, refuse_others};
use super::MatrixError;
use lineweave_core::machine::Matrix;
use std::collections::BTreeSet;

/// The most CPUs of a matrix. Larger ones are refused before their square is held.
pub const MOST_CPUS: usize = 2048;
/// Two directions of a pair that differ by more than this are remarked.
const BOTH_WAYS: f64 = 1.3;
/// Least and greatest median of a machine's pairs, in ns. Of the measured ones it is 20 to 720; in another unit it is not.
const MEDIANS: (f64, f64) = (1.0, 10_000.0);

/// A matrix, and what was assumed of it.
#[derive(Clone, PartialEq, Debug)]
pub struct Readout {
    /// The matrix.
    pub matrix: Matrix,
    /// Sentences for whoever gave it.
    pub remarks: Vec<String>,
}

/// A line with numbers: where it stands, and its cells.
struct Row<'a> {
    line: usize,
    cells: Vec<&'a str>,
}

impl Row<'_> {
    /// Takes off the number of the row's CPU.
    fn unlabel(&mut self) {
        self.cells.remove(0);
    }
}

/// The matrix of a text.
///
/// # Errors
/// A [`MatrixError`] with the line.
pub fn read(text: &str) -> Result<Readout, MatrixError> {
    refuse_others(text)?;
    if let Some(table) = printed(text) {
        let rows: Vec<Row<'_>> = table.rows.into_iter().map(|(line, cells)| Row { line, cells }).collect();
        if rows.len() > MOST_CPUS {
            return Err(MatrixError::TooLarge { line: rows[0].line, most: MOST_CPUS });
        }
        return matrix(&rows, (0..rows.len()).collect(), 1.0, table.remarks);
    }
    let mut remarks = Vec::new();
    let mut unit = 1.0;
    let mut rows: Vec<Row<'_>> = Vec::new();
    let mut separator = None;
    for (at, line) in text.trim_start_matches('\u{feff}').lines().enumerate() {
        let (number, line) = (at + 1, line.trim_end_matches('\r'));
        // Tabs alone are the empty first row of a triangle.
        if line.trim_matches(' ').is_empty() {
            continue;
        }
        if line.trim_start().starts_with('#') {
            take_unit(line, number, &mut unit, &mut remarks)?;
            continue;
        }
        separator = separator.or_else(|| ['\t', ';', ','].into_iter().find(|&c| line.contains(c)));
        let cells: Vec<&str> = match separator {
            None => line.split_whitespace().collect(),
            Some(by) => line.split(by).map(|cell| cell.trim().trim_matches('"').trim()).collect(),
        };
        // One row more for headings.
        if rows.len() > MOST_CPUS || cells.len() > MOST_CPUS + 2 {
            return Err(MatrixError::TooLarge { line: number, most: MOST_CPUS });
        }
        rows.push(Row { line: number, cells });
    }
    let cpus = headings(&mut rows, &mut unit, &mut remarks)?;
    if rows.len() < 2 {
        return Err(MatrixError::Empty { rows: rows.len() });
    }
    let cpus = cpus.unwrap_or_else(|| (0..rows.len()).collect());
    matrix(&rows, cpus, unit, remarks)
}

/// The matrix of rows without headings.
fn matrix(
    rows: &[Row<'_>],
    cpus: Vec<usize>,
    unit: f64,
    mut remarks: Vec<String>,
) -> Result<Readout, MatrixError> {
    let ns = numbers(rows, &cpus, unit, &mut remarks)?;
    let n = cpus.len();
    let mut pairs: Vec<f64> = (0..n).flat_map(|i| ns[i * n..i * n + i].to_vec()).collect();
    pairs.sort_by(f64::total_cmp);
    let median = pairs[pairs.len() / 2];
    if !(MEDIANS.0..=MEDIANS.1).contains(&median) {
        return Err(MatrixError::OtherUnit {
            line: rows[0].line,
            ns: median,
            least: MEDIANS.0,
            most: MEDIANS.1,
        });
    }
    Ok(Readout { matrix: Matrix::new(&cpus, |i, j| ns[i * n + j]), remarks })
}

/// The lower triangle as CSV, as core-to-core-latency prints it. CPUs that are not numbered from 0 on get headings.
pub fn csv(matrix: &Matrix) -> String {
    let cpus = matrix.cpus();
    let headed = cpus.iter().enumerate().any(|(i, &cpu)| i != cpu);
    let mut out = String::new();
    if headed {
        let names: Vec<String> = cpus.iter().map(usize::to_string).collect();
        out.push_str(&format!("ns,{}\n", names.join(",")));
    }
    for (i, &a) in cpus.iter().enumerate() {
        let cell =
            |&b: &usize| matrix.between(a, b).filter(|_| b < a).map_or(String::new(), |ns| ns.to_string());
        let cells: Vec<String> = cpus.iter().map(cell).collect();
        if headed {
            out.push_str(&format!("{},", cpus[i]));
        }
        out.push_str(&cells.join(","));
        out.push('\n');
    }
    out
}

/// Takes the row and the column of CPU numbers off, where there are any.
fn headings(
    rows: &mut Vec<Row<'_>>,
    unit: &mut f64,
    remarks: &mut Vec<String>,
) -> Result<Option<Vec<usize>>, MatrixError> {
    let Some(first) = rows.first() else { return Ok(None) };
    let (line, filled) = (first.line, first.cells.iter().filter(|c| !c.is_empty()).count());
    let words = first.cells.iter().any(|c| !c.is_empty() && number(c).is_none() && !absent(c));
    // Numbers alone are headings where they stand for the rows as well. So do the latencies of the first CPU in a full matrix.
    let column = || rows[1..].iter().map(|row| row.cells.first().copied().unwrap_or("")).collect::<Vec<_>>();
    let twice = first.cells.first().is_some_and(|c| c.is_empty())
        && filled > 1
        && first.cells[1..] == column()[..]
        && are_numbers_of_cpus(&first.cells[1..]);
    let over = filled > 1
        && filled == first.cells.len()
        && rows.len() == filled + 1
        && are_numbers_of_cpus(&first.cells);
    // A column that counts 0, 1, 2 numbers the rows, whatever stands above it.
    let counted = |rows: &[Row<'_>]| {
        rows.len() > 2 && counts(rows.iter().map(|row| row.cells.first().copied().unwrap_or(""))) > 0
    };
    if !(words || twice || over) {
        if counted(rows) {
            rows.iter_mut().for_each(Row::unlabel);
        }
        return Ok(None);
    }
    let heading = rows.remove(0);
    for cell in &heading.cells {
        take_unit(cell, line, unit, remarks)?;
    }
    if rows.is_empty() {
        return Err(MatrixError::Empty { rows: 0 });
    }
    let n = rows.len();
    if heading.cells.len() == n && counted(rows) && counts(heading.cells.iter().copied()) > 0 {
        rows.iter_mut().for_each(Row::unlabel);
        return Ok(None);
    }
    let numbered = |cells: &[&str]| cells.iter().map(|c| cpu_number(c)).collect::<Option<Vec<usize>>>();
    let named = match heading.cells.len() {
        // A corner, and a heading for each.
        m if m == n + 1 => Some(&heading.cells[1..]),
        m if m == n => Some(&heading.cells[..]),
        _ => None,
    };
    let bad = |found: &str| MatrixError::Heading { line, found: found.to_owned() };
    // A line in words alone, such as a title.
    if heading.cells.iter().all(|c| cpu_number(c).is_none()) {
        remarks.push(format!("line {line} is taken for a title: `{}`", heading.cells.join(" ").trim()));
        return Ok(None);
    }
    let cpus = match named {
        None => return Err(MatrixError::NotSquare { line, expected: n, found: heading.cells.len() }),
        Some(named) => numbered(named)
            .ok_or_else(|| bad(named.iter().copied().find(|c| cpu_number(c).is_none()).unwrap_or("")))?,
    };
    let mut seen = BTreeSet::new();
    if let Some(twice) = cpus.iter().find(|&&cpu| !seen.insert(cpu)) {
        return Err(bad(&twice.to_string()));
    }
    if heading.cells.len() == n + 1 {
        for (row, &cpu) in rows.iter_mut().zip(&cpus) {
            let label = row.cells.first().copied().unwrap_or("");
            if cpu_number(label) != Some(cpu) {
                return Err(MatrixError::Heading { line: row.line, found: label.to_owned() });
            }
            row.unlabel();
        }
    }
    Ok(Some(cpus))
}

/// Every pair's latency, indexed by the rows.
fn numbers(
    rows: &[Row<'_>],
    cpus: &[usize],
    unit: f64,
    remarks: &mut Vec<String>,
) -> Result<Vec<f64>, MatrixError> {
    let n = rows.len();
    let mut given = vec![f64::NAN; n * n];
    for (i, row) in rows.iter().enumerate() {
        let width = row.cells.len();
        let beyond = row.cells.iter().skip(n).any(|c| !c.is_empty());
        // A comma that ends the line begins no cell.
        if beyond || width > n + 1 || width < i {
            return Err(MatrixError::NotSquare { line: row.line, expected: n, found: width });
        }
        for (j, cell) in row.cells.iter().take(n).enumerate().filter(|(_, c)| !absent(c)) {
            let bad = || MatrixError::Cell {
                line: row.line,
                column: j + 1,
                found: cell.chars().take(40).collect(),
            };
            let ns = number(cell).filter(|ns| *ns >= 0.0 && ns.is_finite()).ok_or_else(bad)?;
            given[i * n + j] = ns * unit;
        }
    }
    // A triangle without its empty first row would be read one CPU aside.
    let itself = |i: usize| given[i * n + i] > 0.0;
    let upper = |i: usize| given[i * n + i + 1..(i + 1) * n].iter().any(|ns| !ns.is_nan());
    if (0..n).all(|i| itself(i) && !upper(i)) {
        return Err(MatrixError::Diagonal { line: rows[0].line, cpu: cpus[0], ns: given[0] });
    }
    let (mut zeros, mut apart) = (Vec::new(), 0);
    let mut ns = vec![0.0; n * n];
    for i in 0..n {
        for j in 0..i {
            let (a, b) = (given[i * n + j], given[j * n + i]);
            let one = match (a.is_nan(), b.is_nan()) {
                (true, true) => {
                    return Err(MatrixError::Hole { line: rows[i].line, a: cpus[j], b: cpus[i], cpus: n })
                }
                (false, true) => a,
                (true, false) => b,
                (false, false) => {
                    apart += usize::from(a.max(b) > BOTH_WAYS * a.min(b));
                    (a + b) / 2.0
                }
            };
            if one == 0.0 {
                zeros.push((i, j));
            }
            ns[i * n + j] = one;
        }
    }
    if apart > 0 {
        remarks.push(format!(
            "{apart} pairs differ by more than {BOTH_WAYS} times both ways: their mean is taken"
        ));
    }
    if let Some(&(i, j)) = zeros.first() {
        let least = ns.iter().copied().filter(|&v| v > 0.0).fold(f64::INFINITY, f64::min);
        if least.is_infinite() {
            return Err(MatrixError::Zeros { line: rows[i].line });
        }
        remarks.push(format!(
            "{} pairs are 0 ns, first line {}, CPUs {} and {}: the clock is too coarse for them, and the least other latency, {least:.1} ns, is assumed",
            zeros.len(),
            rows[i].line,
            cpus[j],
            cpus[i]
        ));
        zeros.iter().for_each(|&(i, j)| ns[i * n + j] = least);
    }
    Ok(ns)
}

/// A cell that says that there is no number.
fn absent(cell: &str) -> bool {
    cell.is_empty() || ["-", "nan", "na", "n/a"].iter().any(|word| cell.eq_ignore_ascii_case(word))
}

/// A number, also with a decimal comma, which occurs where semicolons or tabs separate.
fn number(cell: &str) -> Option<f64> {
    cell.parse().ok().or_else(|| cell.replacen(',', ".", 1).parse().ok())
}

/// `12`, `CPU12` or `core 12`.
fn cpu_number(cell: &str) -> Option<usize> {
    let start = cell.rfind(|c: char| !c.is_ascii_digit()).map_or(0, |at| at + 1);
    let (word, digits) = cell.split_at_checked(start)?;
    match word.trim().to_lowercase().trim_end_matches([' ', '#', '_', '-']) {
        "" | "cpu" | "core" | "c" | "pu" | "thread" => digits.parse().ok(),
        _ => None,
    }
}

/// Returns whether numbers without a word are those of CPUs, and no latencies: different whole ones, with the first CPU among them or in equal steps.
fn are_numbers_of_cpus(cells: &[&str]) -> bool {
    let Some(cpus) = cells.iter().map(|c| c.parse().ok()).collect::<Option<Vec<usize>>>() else {
        return false;
    };
    let different = cpus.iter().collect::<BTreeSet<_>>().len() == cpus.len();
    let even = cpus.len() > 2 && cpus.windows(3).all(|w| w[0] + w[2] == 2 * w[1]);
    different && (cpus.contains(&0) || cpus.contains(&1) || even)
}

/// The unit that a heading or a comment names, in ns: alone, in brackets, or after `in` or `unit`. Other words that look like one,
/// such as the `us` of a place, are none.
fn take_unit(text: &str, line: usize, unit: &mut f64, remarks: &mut Vec<String>) -> Result<(), MatrixError> {
    let text = text.trim_matches(|c: char| c == '#' || c.is_whitespace()).to_lowercase();
    let mut before = "";
    for word in text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()) {
        let unit_named = ["unit", "units"].contains(&before);
        let named = unit_named || before == "in";
        // `core(s)` has no seconds.
        let alone = if word == "s" { " " } else { "" };
        let bracketed = ["(", "["].iter().any(|open| text.contains(&format!("{alone}{open}{word}")));
        before = word;
        if !(named || bracketed || text == word) {
            continue;
        }
        *unit = match word {
            "ps" | "psec" | "picosecond" | "picoseconds" => 1e-3,
            "ns" | "nsec" | "nanosecond" | "nanoseconds" => 1.0,
            "us" | "usec" | "\u{b5}s" | "\u{3bc}s" | "microsecond" | "microseconds" => 1e3,
            "ms" | "msec" | "millisecond" | "milliseconds" => 1e6,
            "s" | "sec" | "second" | "seconds" => 1e9,
            "cycle" | "cycles" | "clock" | "clocks" | "tick" | "ticks" | "mb" | "gb" | "ops" => {
                return Err(MatrixError::Unit { line, found: word.to_owned() });
            }
            _ if unit_named => {
                remarks.push(format!(
                    "line {line} has the unit `{word}`, which is none of time: ns are assumed"
                ));
                continue;
            }
            _ => continue,
        };
        if *unit != 1.0 {
            remarks.push(format!("line {line} has the unit `{word}`: one is taken for {unit} ns"));
        }
    }
    Ok(())
}
