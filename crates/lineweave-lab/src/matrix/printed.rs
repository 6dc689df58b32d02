//! Tables as programs print them for people, and output of other programs that is no matrix.

use super::MatrixError;

/// A table that was found between lines in words.
pub struct Printed<'a> {
    /// Rows of the table, one for each CPU: the line, from 1, and the cells without the CPU's number.
    pub rows: Vec<(usize, Vec<&'a str>)>,
    /// Assumptions that had to be made.
    pub remarks: Vec<String>,
}

/// Finds the first table under a row that counts 0, 1, 2 and so on, whose rows begin with these numbers: core-to-core-latency's own print, with its
/// preamble or without. Returns nothing where there is none. A row has the lower triangle's cells, with the diagonal or without, or all.
pub fn printed(text: &str) -> Option<Printed<'_>> {
    let mut lines =
        text.lines().enumerate().map(|(at, line)| (at + 1, line)).filter(|(_, line)| !line.trim().is_empty());
    let mut title = None;
    let mut found = None;
    while let Some((number, line)) = lines.next() {
        let n = counts(line.split_whitespace());
        if n < 2 {
            title = Some((number, line.trim()));
            continue;
        }
        let rows: Vec<(usize, Vec<&str>)> = lines
            .by_ref()
            .take(n)
            .map(|(number, line)| (number, line.split_whitespace().map(without_spread).collect()))
            .collect();
        let labelled = rows.len() == n && rows.iter().enumerate().all(|(i, row)| is(row.1.first(), i));
        let widths = |wide: &dyn Fn(usize) -> usize| {
            rows.iter().enumerate().all(|(i, row)| row.1.len() == 1 + wide(i))
        };
        if labelled && (widths(&|i| i) || widths(&|i| i + 1) || widths(&|_| n)) {
            found = Some(rows);
            break;
        }
    }
    let mut rows = found?;
    for row in &mut rows {
        row.1.remove(0);
    }
    let mut remarks = Vec::new();
    if let Some((number, title)) = title {
        remarks.push(format!("line {number} is taken for the table's title: `{title}`"));
    }
    if let Some((number, _)) = lines.find(|(_, line)| counts(line.split_whitespace()) >= 2) {
        remarks.push(format!("another table begins in line {number}: only the first is read"));
    }
    Some(Printed { rows, remarks })
}

/// Returns how many words there are if they count 0, 1, 2 and so on, else 0.
pub fn counts<'a>(words: impl Iterator<Item = &'a str>) -> usize {
    let mut many = 0;
    for (i, word) in words.enumerate() {
        if !is(Some(&word), i) {
            return 0;
        }
        many = i + 1;
    }
    many
}

fn is(word: Option<&&str>, number: usize) -> bool {
    word.is_some_and(|word| word.parse() == Ok(number))
}

/// Takes off what stands behind a mean: `224\u{b1}0`.
fn without_spread(cell: &str) -> &str {
    cell.split('\u{b1}').next().unwrap_or(cell)
}

/// Refuses the output of known programs that is no matrix of latencies between CPUs.
///
/// # Errors
/// [`MatrixError::Foreign`] with what it is and what to do.
pub fn refuse_others(text: &str) -> Result<(), MatrixError> {
    const OF_MEMORY: &str =
        "its times are of memory, not of caches from CPU to CPU; core-to-core-latency measures these";
    const OTHERS: [(&str, &str, &str); 7] = [
        ("Memory Latency Checker", "Intel MLC", OF_MEMORY),
        ("Measuring idle latencies", "Intel MLC", OF_MEMORY),
        ("\"stride=", "lmbench's `lat_mem_rd`", OF_MEMORY),
        (
            "node distances:",
            "`numactl -H`",
            "its distances are no times; core-to-core-latency measures these",
        ),
        ("<topology", "hwloc as XML", "it has no latencies; name it by --topology beside a matrix"),
        (
            "Machine (",
            "`lstopo` as text",
            "it has no latencies; `lstopo topology.xml` writes what --topology takes beside a matrix",
        ),
        ("[[cells]]", "`lineweave measure`", "it is a profile; name it by --profile or LINEWEAVE_PROFILE"),
    ];
    let head: String = text.lines().take(200).collect::<Vec<_>>().join("\n");
    match OTHERS.into_iter().find(|(mark, ..)| head.contains(mark)) {
        Some((_, program, instead)) => Err(MatrixError::Foreign { program, instead }),
        None => Ok(()),
    }
}
