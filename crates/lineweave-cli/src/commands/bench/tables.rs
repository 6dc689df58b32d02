//! Tables and remarks about the results of a run.

use crate::bench::field::Beside;
use crate::bench::guidelines::Violated;
use crate::bench::{Definition, Row, Skipped, Subject};
use crate::error::CliError;
use crate::output::{table, Output};
use lineweave_core::units::{Bytes, Nanos};

/// Shows the rows of a definition as a table.
pub(super) fn show(definition: &Definition, rows: &[Row], out: &mut Output) -> Result<(), CliError> {
    out.line(&format!("\n{}: {}", definition.name, definition.about))?;
    let moves = definition.collective.moves_data();
    let mut shown = table(
        &[
            "ranks",
            "team",
            "bytes",
            "buffers",
            "subject",
            "median",
            "95 % interval",
            "bytes/ns",
            "x floor",
            "how",
        ],
        &[0, 2, 5, 7, 8],
    );
    let mut last = None;
    for row in rows {
        let case = (row.ranks, row.bytes, row.buffers);
        if last.is_some_and(|l| l != case) && !moves {
            shown.add_row([""]);
        }
        last = Some(case);
        let how = match (&row.algorithm, &row.setting) {
            (Some(algorithm), _) => match row.window_bytes {
                Some(window) if window > 0 && (window as u64) < row.bytes => {
                    format!("{algorithm}, windows of {}", Bytes(window as u64))
                }
                _ => algorithm.clone(),
            },
            (None, Some(setting)) => setting.clone(),
            (None, None) => String::new(),
        };
        shown.add_row([
            row.ranks.to_string(),
            row.team.to_string(),
            if moves { Bytes(row.bytes).to_string() } else { "-".to_owned() },
            if moves { row.buffers.name().to_owned() } else { "-".to_owned() },
            row.subject.to_string(),
            Nanos(row.times.median_ns).to_string(),
            format!("{} .. {}", Nanos(row.times.ci_low_ns), Nanos(row.times.ci_high_ns)),
            rate(row, moves).map_or_else(|| "-".to_owned(), |rate| format!("{rate:.2}")),
            row.ratio_to_floor.map_or_else(|| "-".to_owned(), |r| format!("{r:.2}")),
            how,
        ]);
    }
    out.table_without(&shown, &["buffers", "bytes/ns", "95 % interval", "how", "x floor"])
}

/// Returns the bytes of the message, or of one block, that are moved in a nanosecond; memcpy's rate beside it shows the limit of the caches. The
/// floor of two ranks moves a flag whatever the length.
fn rate(row: &Row, moves: bool) -> Option<f64> {
    (moves && row.subject != Subject::Floor).then(|| row.bytes as f64 / row.times.median_ns)
}

/// Shows lineweave's processes beside the best of the others.
pub(super) fn others(beside: &[Beside], out: &mut Output) -> Result<(), CliError> {
    let Some(first) = beside.first() else { return Ok(()) };
    out.line(&format!(
        "\nprocesses beside the best of Open MPI, MPICH and Intel MPI, as measured on a {}",
        first.machine
    ))?;
    let mut shown = table(
        &["collective", "ranks", "bytes", "lineweave", "best", "ratio", "at most", ""],
        &[1, 2, 3, 4, 5, 6],
    );
    for line in beside {
        let missed = line.target.is_some_and(|most| line.ratio > most);
        shown.add_row([
            line.collective.to_string(),
            line.ranks.to_string(),
            if line.collective.moves_data() { Bytes(line.bytes).to_string() } else { "-".to_owned() },
            Nanos(line.median_ns).to_string(),
            Nanos(line.best_ns).to_string(),
            format!("{:.2}", line.ratio),
            line.target.map_or_else(|| "-".to_owned(), |most| format!("{most:.1}")),
            if missed { "missed".to_owned() } else { String::new() },
        ]);
    }
    out.table(&shown)
}

/// Shows remarks that are not in the tables.
pub(super) fn remarks(
    skipped: &[Skipped],
    violations: &[Violated],
    out: &mut Output,
) -> Result<(), CliError> {
    if !skipped.is_empty() {
        out.line("\nnot measured:")?;
        let mut grouped: Vec<(String, Vec<Subject>)> = Vec::new();
        for s in skipped {
            let why = format!("among {}: {}", s.team, s.because);
            match grouped.iter_mut().find(|(w, _)| *w == why) {
                Some((_, subjects)) if subjects.contains(&s.subject) => {}
                Some((_, subjects)) => subjects.push(s.subject),
                None => grouped.push((why, vec![s.subject])),
            }
        }
        for (why, subjects) in grouped {
            let names: Vec<&str> = subjects.into_iter().map(Subject::name).collect();
            out.line(&format!("  {} {why}", names.join(", ")))?;
        }
    }
    match violations {
        [] => out.line("\nguidelines: lineweave's times are consistent with each other"),
        _ => {
            out.line("\nguidelines violated (a better plan was at hand):")?;
            for v in violations {
                out.line(&format!("  {}: {} ({:.2}x)", v.guideline, v.found, v.factor))?;
            }
            Ok(())
        }
    }
}
