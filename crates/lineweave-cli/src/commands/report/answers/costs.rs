//! The answer to the question about the cost of communication.

use super::{time, Answer, Asked, MOST, TEAM};
use crate::commands::report::subject::Subject;
use crate::error::CliError;
use crate::threads::on_all_cpus;
use lineweave_core::collective::Collective;
use lineweave_lab::draw::{Row, Sign};

/// Calls that represent all others.
const CALLS: [(Collective, usize); 4] = [
    (Collective::Barrier, 0),
    (Collective::Bcast, 8),
    (Collective::Allreduce, 8),
    (Collective::Allreduce, 1 << 20),
];

/// Returns these calls among two ranks, some ranks and all ranks.
pub fn calls(subject: &Subject) -> Result<Vec<Asked>, CliError> {
    let all = subject.topology.cpus.len().min(MOST);
    let mut ranks = vec![2, (all / 4).next_power_of_two(), all];
    ranks.retain(|p| *p >= 2 && *p <= all.max(2));
    ranks.sort_unstable();
    ranks.dedup();
    let asked: Vec<(Collective, usize, usize)> =
        CALLS.iter().flat_map(|&(c, bytes)| ranks.iter().map(move |&p| (c, p, bytes))).collect();
    let made = on_all_cpus(&asked, |&(c, p, bytes)| Asked::of(subject, &subject.topology, c, p, bytes));
    Ok(made.into_iter().collect::<Result<Vec<_>, _>>()?.into_iter().flatten().collect())
}

/// Returns the answer with a row for each call.
pub fn answer(subject: &Subject, calls: &[Asked]) -> Answer {
    let rows: Vec<Row> = calls.iter().map(|asked| row(subject, asked)).collect();
    let most = calls.iter().map(|a| a.ranks).max().unwrap_or(0);
    let told: Vec<String> = calls
        .iter()
        .filter(|a| a.ranks == most)
        .map(|a| format!("{} {}", a.words(), time(a.nanos(subject))))
        .collect();
    let measured = calls.iter().filter(|a| a.measured(subject).is_some()).count();
    let how = match measured {
        0 => "as predicted",
        n if n == calls.len() => "as measured",
        _ => "as measured, or else predicted",
    };
    let sentence = format!("Among {most} processes, {how}: {}.", told.join(", "));
    let mut more = Vec::new();
    match &subject.record {
        Some(record) => more.push(format!(
            "Measured with the floor and other libraries, last at {}.",
            record.head.measured_at
        )),
        None if subject.here => {
            more.push("`lineweave bench` adds the floor, other libraries and intervals.".to_owned())
        }
        None => {}
    }
    if subject.topology.cpus.len() > most {
        more.push(format!(
            "Of {} CPUs; `lineweave explain` takes as many ranks as you say.",
            subject.topology.cpus.len()
        ));
    }
    if subject.machine.as_ref().is_some_and(|m| m.mesh.is_some() && m.coherent.is_none()) {
        more.push(
            "It has no coherent caches, so lineweave does not run on it, and what its mesh does is not in these predictions; `lineweave lab \
             simulate` plays it."
                .to_owned(),
        );
    }
    let title = "A call of processes, by ranks";
    Answer::of("costs", "What does communication cost?", sentence, title, &rows, more)
}

fn row(subject: &Subject, asked: &Asked) -> Row {
    let mut signs = vec![Sign::Bar(asked.call.predicted.0)];
    signs.extend(asked.measured(subject).map(|(ns, low, high)| Sign::Dot(ns, low, high)));
    let benched = asked.benched(subject);
    signs.extend(benched.and_then(|r| Some(Sign::Floor(r.median_ns / r.ratio_to_floor?))));
    let others = subject.record.iter().flat_map(|record| &record.others);
    let same =
        others.filter(|o| o.is_of(Some(TEAM), asked.collective, asked.ranks, asked.bytes) && !o.is_floor());
    signs.extend(same.map(|o| Sign::Other(o.name.clone(), o.ns)));
    Row { label: asked.label(), signs, note: time(asked.nanos(subject)) }
}
