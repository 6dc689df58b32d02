//! The answer to the question which settings to use.

use super::{time, times, Answer, Asked, MOST};
use crate::commands::report::subject::Subject;
use crate::doctor::{examine, Verdict};
use crate::error::CliError;
use crate::node::NodeInfo;
use lineweave_core::collective::Collective;
use lineweave_core::topology::Topology;
use lineweave_lab::draw::{Row, Sign};

/// Findings of `lineweave doctor` that are shown.
const FOUND: usize = 3;

/// Returns the answer: the fastest placement of ranks, and findings of the doctor.
pub fn answer(subject: &Subject) -> Result<Answer, CliError> {
    let cpus = subject.topology.cpus.len();
    let mut cores = subject.topology.clone();
    let mut seen = std::collections::BTreeSet::new();
    cores.cpus.retain(|cpu| seen.insert(cpu.core));
    let smt = cores.cpus.len() < cpus;
    // The number of cores is limited so that all their hardware threads can be considered.
    let each = cpus.div_ceil(cores.cpus.len().max(1)).max(1);
    let most = cores.cpus.len().clamp(1, (MOST / each).max(1));
    // Returns the first `n` CPUs.
    let part = |all: &Topology, n: usize| Topology { cpus: all.cpus.iter().take(n).cloned().collect() };
    let (few, threads) =
        (part(&cores, most), part(&subject.topology, (most * cpus / cores.cpus.len().max(1)).min(MOST)));
    let mut places = vec![(format!("one a core, {most} ranks"), &few, most)];
    if smt {
        places.push((format!("one a thread, {} ranks", threads.cpus.len()), &threads, threads.cpus.len()));
    }
    let last = if smt { &threads } else { &few };
    places.push((format!("two a CPU, {} ranks", 2 * last.cpus.len()), last, 2 * last.cpus.len()));
    let mut rows = Vec::new();
    let mut found = Vec::new();
    for (label, topology, ranks) in places {
        if let Some(asked) = Asked::of(subject, topology, Collective::Allreduce, ranks, 8)? {
            let ns = asked.call.predicted.0;
            rows.push(Row { label, signs: vec![Sign::Bar(ns)], note: time(ns) });
            found.push(ns);
        }
    }
    let slower = found.last().zip(found.first()).map_or(1.0, |(last, first)| last / first);
    let each = if smt {
        "a rank for each core, and a second one only where it computes faster"
    } else {
        "a rank for each CPU"
    };
    let sentence = format!(
        "Start {each}; {} are there. Leave binding and waiting as they are: each rank is bound to a CPU, and waits actively for a while before it \
         sleeps. With two ranks a CPU an allreduce of 8 B is predicted to take {} times as long.",
        if smt { format!("{} cores", cores.cpus.len()) } else { format!("{cpus} CPUs") },
        times(slower)
    );
    let mut more = Vec::new();
    if subject.here {
        if subject.profile.is_none() {
            more.push(
                "Run `lineweave tune` first: nothing was measured here yet, and it takes about a minute."
                    .to_owned(),
            );
        }
        if let Ok(node) = NodeInfo::gather(&subject.settings, &[]) {
            let findings = examine(&node, &subject.settings);
            let advice = findings.iter().filter(|f| f.verdict > Verdict::Good && f.what != "profile");
            more.extend(advice.take(FOUND).map(|f| format!("{}: {}; {}.", f.what, f.found, f.advice)));
        }
    }
    let title = "An allreduce of 8 B, by placement";
    Ok(Answer::of("advice", "What should I set?", sentence, title, &rows, more))
}
