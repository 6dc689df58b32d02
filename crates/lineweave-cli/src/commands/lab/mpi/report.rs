//! Tables, JSON objects and the drawing of `lineweave lab mpi`.

use super::errors::Wrong;
use super::predicted::{Checked, Named, Study};
use super::predictors::Row;
use crate::curve::curve;
use crate::error::CliError;
use crate::mpi::{Flavour, Host, Models, Runs, MODELS};
use crate::output::{table, Output};
use crate::session::Session;
use lineweave_core::collective::Collective;
use lineweave_core::units::{Bytes, Nanos};
use lineweave_lab::draw::{compared, Axis, Chart, Scale};
use serde::Serialize;

/// Lengths of the table of L(m, tau).
const SHOWN: [u64; 6] = [0, 64, 1 << 10, 16 << 10, 256 << 10, 4 << 20];

/// The MPI, and the measurement of it. Printed as `lab-mpi` by `lineweave lab mpi`, first.
#[derive(Serialize)]
struct Head<'a> {
    mpi: &'static str,
    version: &'a str,
    command: &'a str,
    ranks: usize,
    cpus: usize,
    /// True if each rank has a CPU of its own, which the models assume.
    apart: bool,
    rounds: usize,
}

/// The time L(m, tau) of a message. Printed as `lab-mpi-transfer` by `lineweave lab mpi`.
#[derive(Serialize)]
struct Transfer {
    bytes: u64,
    /// 1 for a message alone, else the ranks of a ring.
    tau: u32,
    /// True if the sender wrote the message before.
    written: bool,
    /// Half of a round trip, or a send and receive of each rank of the ring.
    measured_ns: f64,
}

/// LogGP's L, o, g, and G in ns a byte. Printed as `lab-mpi-model` by `lineweave lab mpi`.
#[derive(Serialize)]
struct Parameters {
    model: &'static str,
    latency_ns: f64,
    overhead_ns: f64,
    gap_ns: f64,
    byte_gap_ns: f64,
}

/// An algorithm that could not be forced. Printed as `lab-mpi-absent` by `lineweave lab mpi`.
#[derive(Serialize)]
struct Absent<'a> {
    collective: Collective,
    algorithm: &'a str,
    because: &'a str,
}

/// The results for an MPI that are shown.
pub struct Report<'a> {
    pub host: &'a Host,
    pub flavour: Flavour,
    pub runs: &'a Runs,
    pub models: &'a Models,
    pub study: &'a Study,
}

/// Shows the whole report.
pub fn show(report: &Report, session: &mut Session) -> Result<(), CliError> {
    objects(report, &mut session.out)?;
    text(report, &mut session.out)
}

fn objects(report: &Report, out: &mut Output) -> Result<(), CliError> {
    let Report { host, flavour, runs, models, study } = report;
    let facts = &host.facts;
    let head = Head {
        mpi: flavour.name(),
        version: &facts.version,
        command: &host.command,
        ranks: facts.ranks,
        cpus: facts.cpus,
        apart: facts.ranks <= facts.cpus,
        rounds: runs.rounds,
    };
    out.object("lab-mpi", &head)?;
    for (cell, measured_ns) in runs.channel.cells() {
        let tau = |prefix: &str| cell.task.strip_prefix(prefix).and_then(|tau| tau.parse().ok());
        let (tau, written) = match cell.task.as_str() {
            "pingpong" => (Some(1), false),
            "passing" => (Some(1), true),
            _ => (tau("ring").or(tau("turn")), tau("turn").is_some()),
        };
        if let Some(tau) = tau {
            out.object("lab-mpi-transfer", &Transfer { bytes: cell.bytes, tau, written, measured_ns })?;
        }
    }
    let m = &models.kept.loggp;
    let parameters = Parameters {
        model: MODELS[2],
        latency_ns: m.l.value,
        overhead_ns: m.o.value,
        gap_ns: m.g.value,
        byte_gap_ns: m.per_byte.value,
    };
    out.object("lab-mpi-model", &parameters)?;
    study.rows.iter().try_for_each(|row| out.object("lab-mpi-algorithm", row))?;
    study.defaults.iter().try_for_each(|row| out.object("lab-mpi-default", row))?;
    study.errors.iter().try_for_each(|row| out.object("lab-mpi-error", row))?;
    study.named.iter().try_for_each(|row| out.object("lab-mpi-named", row))?;
    study.checked.iter().try_for_each(|row| out.object("lab-mpi-checked", row))?;
    for (collective, algorithm, because) in &study.absent {
        out.object("lab-mpi-absent", &Absent { collective: *collective, algorithm, because })?;
    }
    Ok(())
}

fn text(report: &Report, out: &mut Output) -> Result<(), CliError> {
    let Report { host, flavour, runs, models, study } = report;
    let facts = &host.facts;
    let version: String = facts.version.chars().take(60).collect();
    out.line(&format!(
        "{flavour}: {} ranks on {} CPUs by `{}` ({version})",
        facts.ranks, facts.cpus, host.command
    ))?;
    messages(runs, models, out)?;
    for collective in Collective::TUNED {
        let rows: Vec<&Row> = study.rows.iter().filter(|r| r.collective == collective).collect();
        if !rows.is_empty() {
            out.line(&format!("\n{collective}: measured, then predicted"))?;
            algorithms(collective, &rows, study, out)?;
        }
    }
    if !study.absent.is_empty() {
        out.line("")?;
    }
    for (collective, algorithm, why) in &study.absent {
        out.line(&format!("{collective} {algorithm} has no time: {why}"))?;
    }
    errors(&study.errors, facts.ranks <= facts.cpus, out)?;
    named(&study.named, out)?;
    checked(&study.checked, out)
}

/// Shows L(m, tau) and the parameters of LogGP.
fn messages(runs: &Runs, models: &Models, out: &mut Output) -> Result<(), CliError> {
    let taus = &models.kept.tau_lop.copy.taus;
    out.line("\ntransfers L(m, tau): a message alone, then rings of tau ranks; the sender leaves it as it is, or has written it")?;
    let names: Vec<String> =
        taus.iter().flat_map(|tau| [format!("tau {tau}"), "written".to_owned()]).collect();
    let heading: Vec<&str> = ["bytes"].into_iter().chain(names.iter().map(String::as_str)).collect();
    let mut lines = table(&heading, &(0..heading.len()).collect::<Vec<_>>());
    for bytes in SHOWN {
        let at = |tau: &u32| match tau {
            1 => ["pingpong".to_owned(), "passing".to_owned()],
            tau => [format!("ring{tau}"), format!("turn{tau}")],
        };
        let time = |task: String| runs.channel.at(&task, bytes).map(|ns| Nanos(ns).to_string());
        let times = taus.iter().flat_map(at).map(|task| time(task).unwrap_or_default());
        lines.add_row([Bytes(bytes).to_string()].into_iter().chain(times));
    }
    out.table(&lines)?;
    let m = &models.kept.loggp;
    out.line(&format!(
        "LogGP: L {}, o {}, g {}, G {:.3} ns a byte",
        Nanos(m.l.value),
        Nanos(m.o.value),
        Nanos(m.g.value),
        m.per_byte.value
    ))
}

fn algorithms(
    collective: Collective,
    rows: &[&Row],
    study: &Study,
    out: &mut Output,
) -> Result<(), CliError> {
    let mut bytes: Vec<u64> = rows.iter().map(|r| r.bytes).collect();
    bytes.sort_unstable();
    bytes.dedup();
    let heads: Vec<String> = bytes.iter().map(|b| Bytes(*b).to_string()).collect();
    let heading: Vec<&str> = ["algorithm", ""].into_iter().chain(heads.iter().map(String::as_str)).collect();
    let mut lines = table(&heading, &(2..heading.len()).collect::<Vec<_>>());
    let times = |of: &dyn Fn(u64) -> Option<f64>| -> Vec<String> {
        bytes.iter().map(|&b| of(b).map(|ns| Nanos(ns).to_string()).unwrap_or_default()).collect()
    };
    let mut add = |name: &str, what: &str, cells: Vec<String>| {
        lines.add_row([name.to_owned(), what.to_owned()].into_iter().chain(cells));
    };
    add("default", "measured", times(&|b| study.default_of(collective, b)));
    let mut names: Vec<&str> = rows.iter().map(|r| r.algorithm.as_str()).collect();
    names.dedup();
    for name in names {
        let at = |b: u64| rows.iter().find(|r| r.algorithm == name && r.bytes == b);
        if rows.iter().any(|r| r.algorithm == name && r.measured_ns.is_some()) {
            add(name, "measured", times(&|b| at(b).and_then(|r| r.measured_ns)));
        } else {
            add(name, "not forced", Vec::new());
        }
        for (i, model) in MODELS.into_iter().enumerate() {
            if rows.iter().any(|r| r.algorithm == name && r.predicted_ns[i].is_some()) {
                add("", model, times(&|b| at(b).and_then(|r| r.predicted_ns[i])));
            }
        }
    }
    out.table(&lines)
}

fn errors(errors: &[Wrong], apart: bool, out: &mut Output) -> Result<(), CliError> {
    let marked = if apart { "" } else { ", for ranks that share CPUs, for which no model is" };
    out.line(&format!("\nmean errors of the models{marked}"))?;
    let mut lines = table(&["model", "of", "lengths", "pairs", "mean error", "ratio"], &[3, 4, 5]);
    for e in errors {
        lines.add_row([
            e.model.to_owned(),
            e.collective.map_or_else(|| "all".to_owned(), |c| c.to_string()),
            span(e.from_bytes, e.to_bytes),
            e.pairs.to_string(),
            format!("{:.0} %", 100.0 * e.mean_relative),
            format!("{:.2}", e.mean_proportional),
        ]);
    }
    out.table(&lines)
}

fn span(from: u64, to: u64) -> String {
    match from == to {
        true => Bytes(from).to_string(),
        false => format!("{} to {}", Bytes(from), Bytes(to)),
    }
}

fn named(named: &[Named], out: &mut Output) -> Result<(), CliError> {
    out.line("\nwhich algorithm the default is, by the code that it runs, by the forced ones' times and by tau-Lop's")?;
    let mut lines = table(&["collective", "by", "lengths", "algorithm", "mean error", "no different"], &[4]);
    for n in named {
        lines.add_row([
            n.collective.to_string(),
            n.by.to_owned(),
            span(n.from_bytes, n.to_bytes),
            n.algorithm.clone(),
            format!("{:.0} %", 100.0 * n.error),
            n.alike.join(", "),
        ]);
    }
    out.table(&lines)
}

fn checked(checked: &[Checked], out: &mut Output) -> Result<(), CliError> {
    out.line("\nnames by times that are those by code; algorithms that do the same among so many ranks count as one")?;
    for c in checked {
        out.line(&format!("{}: {} right, {} wrong, {} undecided", c.by, c.right, c.wrong, c.undecided))?;
        for (collective, bytes, name, truth) in &c.mistaken {
            out.line(&format!(
                "  {collective} of {}: {name}, and by code {}",
                Bytes(*bytes),
                truth.join(" or ")
            ))?;
        }
    }
    Ok(())
}

/// Draws one panel for each collective: measured times as points, tau-Lop's as lines.
pub fn drawing(host: &Host, flavour: Flavour, study: &Study) -> String {
    let panel = |collective: Collective| {
        let mut list = Vec::new();
        let rows = || study.rows.iter().filter(|r| r.collective == collective);
        let mut names: Vec<&str> = rows().map(|r| r.algorithm.as_str()).collect();
        names.dedup();
        for name in names {
            let points = |of: &dyn Fn(&Row) -> Option<f64>| -> Vec<(f64, f64)> {
                rows()
                    .filter(|r| r.algorithm == name)
                    .filter_map(|r| Some((r.bytes.max(1) as f64, of(r)?)))
                    .collect()
            };
            let kinds: [(Vec<(f64, f64)>, bool); 2] =
                [(points(&|r| r.measured_ns), true), (points(&|r| r.predicted_ns[0]), false)];
            for (points, measured) in kinds.into_iter().filter(|(points, _)| !points.is_empty()) {
                list.push(curve(name, points, measured));
            }
        }
        (!list.is_empty()).then(|| Chart {
            title: collective.to_string(),
            x: Axis::new("bytes", Scale::Bytes),
            y: Axis::new("time", Scale::Times),
            series: list,
        })
    };
    let panels: Vec<Chart> = Collective::TUNED.into_iter().filter_map(panel).collect();
    let title = format!("{flavour}, {} ranks: points measured, lines by tau-Lop", host.facts.ranks);
    compared(&title, &host.command, &panels)
}
