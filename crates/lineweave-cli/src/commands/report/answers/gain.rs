//! The answer to the question about the gain by lineweave.

use super::{time, times, Answer, Asked};
use crate::calls::posed;
use crate::commands::report::subject::{question, Subject};
use lineweave_core::collective::Collective;
use lineweave_core::plan::Params;
use lineweave_core::select::predict;
use lineweave_core::topology::Shape;
use lineweave_core::units::Bytes;
use lineweave_lab::draw::{Row, Sign};

/// Rows that are drawn at most.
const ROWS: usize = 12;

/// Returns the algorithm that a textbook has for a call.
fn textbook(collective: Collective, bytes: usize) -> &'static str {
    match collective {
        Collective::Barrier => "dissemination",
        Collective::Allreduce if bytes > 64 << 10 => "ring",
        Collective::Allreduce => "recursive-doubling",
        _ => "binomial",
    }
}

/// Returns the answer: a comparison with other times on the same machine, or else with a textbook's algorithms.
pub fn answer(subject: &Subject, calls: &[Asked]) -> Answer {
    let question = "What does lineweave gain me?";
    measured(subject, question).unwrap_or_else(|| predicted(subject, calls, question))
}

fn measured(subject: &Subject, question: &'static str) -> Option<Answer> {
    let record = subject.record.as_ref()?;
    let mut rows: Vec<Row> = Vec::new();
    let mut ratios = Vec::new();
    for row in &record.rows {
        let same = record
            .others
            .iter()
            .filter(|o| !o.is_floor() && o.is_of(Some(&row.team), row.collective, row.ranks, row.bytes));
        let mut signs: Vec<Sign> = same.clone().map(|o| Sign::Other(o.name.clone(), o.ns)).collect();
        let Some(best) = same.map(|o| o.ns).min_by(f64::total_cmp) else { continue };
        let ns = row.median_ns;
        signs.insert(0, Sign::Dot(ns, row.ci_low_ns.unwrap_or(ns), row.ci_high_ns.unwrap_or(ns)));
        let size =
            if row.collective.moves_data() { format!(" {}", Bytes(row.bytes as u64)) } else { String::new() };
        let label = format!("{}{size}, {} {}", row.collective, row.ranks, row.team);
        // Among rows with buffers that are reused and with others, the first counts.
        if rows.iter().all(|r| r.label != label) {
            ratios.push(best / ns);
            rows.push(Row { label, signs, note: format!("{} \u{d7}", times(best / ns)) });
        }
    }
    if ratios.is_empty() {
        return None;
    }
    let mean = (ratios.iter().map(|r| r.ln()).sum::<f64>() / ratios.len() as f64).exp();
    let won = ratios.iter().filter(|r| **r > 1.0).count();
    let sentence = format!(
        "Measured: of {} kinds of calls {won} are faster than the best of what else was timed, {} times on geometric average.",
        ratios.len(),
        times(mean)
    );
    rows.truncate(ROWS);
    let more = vec![format!("By {}.", record.name)];
    Some(Answer::of("gain", question, sentence, "lineweave (measured) and others", &rows, more))
}

fn predicted(subject: &Subject, calls: &[Asked], asked: &'static str) -> Answer {
    let most = calls.iter().map(|a| a.ranks).max().unwrap_or(0);
    let mut rows = Vec::new();
    let mut ratios: Vec<f64> = Vec::new();
    for call in calls.iter().filter(|a| a.ranks == most) {
        let shape = Shape::place(call.ranks, &subject.topology);
        let question = question(call.collective, shape, call.bytes, false);
        let question = posed(question, &subject.tuning, &subject.settings);
        let name = textbook(call.collective, call.bytes);
        let window = call.bytes.min(question.box_bytes / call.ranks.max(1)).max(usize::from(call.bytes > 0));
        let window = if call.bytes > window { window.next_power_of_two() / 2 } else { window };
        let mut signs = vec![Sign::Bar(call.call.predicted.0)];
        let mut note = time(call.call.predicted.0);
        if let Ok(found) = predict(&subject.tuning.model, &question, name, &Params::new(), window) {
            let ratio = found.predicted.0 / call.call.predicted.0;
            if ratio.is_finite() && ratio > 0.0 {
                signs.push(Sign::Other("the textbook's".to_owned(), found.predicted.0));
                ratios.push(ratio);
                note = format!("{} \u{d7}", times(ratio));
            }
        }
        rows.push(Row { label: call.words(), signs, note });
    }
    let (low, high) =
        (ratios.iter().copied().fold(f64::INFINITY, f64::min), ratios.iter().copied().fold(0.0, f64::max));
    let gain = match ratios.is_empty() {
        true => String::new(),
        false => format!(
            " What is chosen is predicted to take {} to {} times less than the usual algorithms of textbooks, carried out as well.",
            times(low),
            times(high)
        ),
    };
    let how = if subject.here {
        "`lineweave bench` times it beside OpenMP and pthreads, `lineweave bench mpi` beside your MPI, and the next report shows that."
    } else {
        "On the machine itself `lineweave bench` times it beside OpenMP and your MPI, and `lineweave report --record FILE` shows that here."
    };
    let sentence = format!("No MPI or OpenMP was timed beside it.{gain}");
    let title = format!("Chosen, and a textbook's, among {most}");
    Answer::of("gain", asked, sentence, &title, &rows, vec![how.to_owned()])
}
