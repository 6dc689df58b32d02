//! Tables of chapters 1 to 3: R by state, its clusters, one line there and back, and the fits.

use super::data::{self, Cell, Group, Overhead, PingPongTable, Row};
use super::{bridge, phi, Numbers};
use crate::models::cache_line::{
    cells, clusters, estimate, multi_line, Cluster, Comparison, SameLine, Sample, NOISE,
};
use crate::paper::given::machine;
use crate::paper::{item, Finding};
use lineweave_core::machine::{Machine, State};

pub(super) fn items() -> Vec<Finding> {
    let printed = data::states();
    let mut items = vec![
        full(&printed.full),
        clustered("table 1.5b (clusters of table 1.6)", phi(), &printed.phi),
        clustered("table 1.8 (clusters of table 1.7)", bridge(), &printed.bridge),
    ];
    let ping_pong = data::ping_pong();
    for table in &ping_pong.table {
        items.extend(estimates(table, ping_pong.samples));
    }
    items.push(overheads(&printed.overhead, &ping_pong.table, ping_pong.samples));
    items.extend([one_line_of_the_fit(&ping_pong.table), contention_of_one()]);
    items
}

/// Rounding of a mean in the machine's own table, and of a deviation: Table 1.6 has three digits, Table 1.7 one and
/// two.
fn rounding(machine: &Machine) -> (f64, f64) {
    match machine.name == phi().name {
        true => (0.0005, 0.0005),
        false => (0.05, 0.005),
    }
}

fn cell_name(location: &str, state: &str) -> String {
    format!("{location} {state}")
}

/// Table 1.5a: cells of Table 1.6, of the columns that the paper names.
fn full(printed: &[Cell]) -> Finding {
    let table = cells(phi()).expect("Table 1.6 is in the machine file");
    let agrees = |cell: &&Cell| {
        let (location, state) = (data::location(&cell.location), data::state(&cell.state));
        table.iter().any(|c| c.location == location && c.state == state && cell.ns.is(c.mean, 0.0))
    };
    let agree = printed.iter().filter(agrees).count();
    item(
        "table 1.5a",
        agree,
        printed.len(),
        "cells of table 1.6: middle distance, and same core for local and invalid lines",
    )
}

fn members(cluster: &Cluster) -> Vec<String> {
    let mut names: Vec<String> =
        cluster.cells.iter().map(|c| cell_name(c.location.name(), c.state.name())).collect();
    names.sort();
    names
}

/// The paper's groups found by clustering, and the values it prints for them.
fn clustered(name: &str, machine: &Machine, groups: &[Group]) -> Finding {
    let table = cells(machine).expect("the table of states is in the machine file");
    let found = clusters(&table, NOISE);
    let wanted = |group: &Group| {
        let mut names = group.cells.clone();
        names.sort();
        names
    };
    let (mut agree, mut of, mut wrong) = (0, 0, Vec::new());
    for group in groups {
        let names = wanted(group);
        let cluster = found.iter().find(|c| members(c) == names);
        let mut check = |good: bool, what: String| {
            of += 1;
            match good {
                true => agree += 1,
                false => wrong.push(what),
            }
        };
        check(cluster.is_some(), format!("{} is no cluster here", group.symbol));
        for (i, cell) in group.printed.iter().enumerate() {
            let (location, state) = (data::location(&cell.location), data::state(&cell.state));
            let same = |c: &&crate::models::cache_line::Cell| c.location == location && c.state == state;
            let value = table.iter().find(same).map_or(f64::NAN, |c| c.mean);
            let stands = cluster.is_some_and(|c| i > 0 || same(&c.representative()));
            let what = format!("{} is printed as {}, measured as {value}", group.symbol, cell.ns.value);
            check(cell.ns.is(value, 0.0) && stands, what);
        }
    }
    let differs = match wrong.is_empty() {
        true => String::new(),
        false => format!("; differs: {}", wrong.join(", ")),
    };
    let (low, high) = window(&table, found.len());
    let remark = format!(
        "groups ({} of {} here) and their printed values; average linkage up to one standard deviation \
         (anything from {low:.2} to {high:.2} gives the same groups){differs}",
        found.iter().filter(|c| groups.iter().any(|g| wanted(g) == members(c))).count(),
        found.len(),
    );
    item(name, agree, of, remark)
}

/// The range of thresholds, to a hundredth, that leaves as many clusters.
fn window(table: &[crate::models::cache_line::Cell], count: usize) -> (f64, f64) {
    let same = |hundredths: &u32| clusters(table, f64::from(*hundredths) / 100.0).len() == count;
    let fit: Vec<u32> = (1..500).filter(same).collect();
    let at = |i: Option<&u32>| i.map_or(f64::NAN, |&h| f64::from(h) / 100.0);
    (at(fit.first()), at(fit.last()))
}

/// Computes the estimate of Eq. 2.1 and 2.2 for a row.
pub(super) fn computed(table: &PingPongTable, row: &Row, samples: usize) -> Sample {
    let machine = machine(&table.machine);
    estimate(machine, table.location(), row.send, row.recv, samples).expect("the states were measured")
}

/// The row's measurement.
pub(super) fn measured(row: &Row, samples: usize) -> Sample {
    Sample { mean: row.measured[0].value, stdev: row.measured[1].value, n: samples }
}

/// Estimates with their deviations, and differences with theirs, of one table.
fn estimates(table: &PingPongTable, samples: usize) -> [Finding; 2] {
    let rows = table.rows();
    let (mean_off, stdev_off) = rounding(machine(&table.machine));
    let (mut means, mut stdevs, mut differences, mut deviations) = (0, 0, 0, 0);
    // The rows whose difference or its deviation is not that of the row's own numbers.
    let mut misprints = String::new();
    for row in &rows {
        let ours = computed(table, row, samples);
        let comparison = Comparison::welch(&ours, &measured(row, samples));
        // Three means are added; the sum of squares moves no more than the three deviations together.
        means += usize::from(row.estimate[0].is(ours.mean, 3.0 * mean_off));
        stdevs += usize::from(row.estimate[1].is(ours.stdev, 3.0 * stdev_off));
        let states = format!("{}-{}", row.send.name(), row.recv.name());
        let (printed, found) = (row.difference[0], comparison.difference);
        match printed.is(found, 3.0 * mean_off + row.measured[0].rounding) {
            true => differences += 1,
            false => misprints += &format!("; {states} prints {} where {found:.2} comes out", printed.value),
        }
        let (printed, found) = (row.difference[1], comparison.stdev);
        let inputs = (3.0 * stdev_off + row.measured[1].rounding) / (samples as f64).sqrt();
        match printed.is(found, inputs) {
            true => deviations += 1,
            false => {
                let value = printed.value;
                misprints += &format!("; {states} prints a deviation of {value} where {found:.3} comes out");
            }
        }
    }
    let n = rows.len();
    let mut remark = format!("Eq. 2.1: {means} of {n} means; Eq. 2.2: {stdevs} of {n} deviations");
    if stdevs == 0 {
        let first = computed(table, &rows[0], samples);
        remark += &format!(
            "; printed deviations do not follow from table 1.7 ({} where {:.2} comes out)",
            rows[0].estimate[1].value, first.stdev
        );
    }
    let name = &table.name;
    [
        item(format!("{name}, estimates"), means + stdevs, 2 * n, remark),
        item(
            format!("{name}, differences"),
            differences + deviations,
            2 * n,
            format!(
                "{differences} of {n} differences; Eq. 2.5: {deviations} of {n} deviations (n = {samples}){misprints}"
            ),
        ),
    ]
}

/// O of Eq. 2.6 to 2.20: within the differences of the rows that it sums up.
fn overheads(printed: &[Overhead], tables: &[PingPongTable], samples: usize) -> Finding {
    let (mut agree, mut wrong) = (0, Vec::new());
    for overhead in printed {
        let table = tables.iter().find(|t| t.name == overhead.table).expect("a table of the data");
        let machine = machine(&table.machine);
        let differences: Vec<f64> = table
            .rows()
            .iter()
            .filter(|r| overhead.send.contains(r.send.name()) && overhead.recv.contains(r.recv.name()))
            .map(|row| {
                let recv = overhead.estimated_as.as_deref().map_or(row.recv, data::state);
                let ours = estimate(machine, table.location(), row.send, recv, samples);
                row.measured[0].value - ours.map_or(f64::NAN, |e| e.mean)
            })
            .collect();
        let low = differences.iter().copied().fold(f64::INFINITY, f64::min);
        let high = differences.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let slack = overhead.ns.rounding + 3.0 * rounding(machine).0 + 0.05;
        if low - slack <= overhead.ns.value && overhead.ns.value <= high + slack {
            agree += 1;
        } else {
            let printed = overhead.ns.value;
            wrong
                .push(format!("Eq. {} prints {printed}, rows have {low:.1} to {high:.1}", overhead.equation));
        }
    }
    let differs = match wrong.is_empty() {
        true => String::new(),
        false => format!("; differs: {}", wrong.join("; ")),
    };
    let remark = format!("O within the differences of its rows, rounding included{differs}");
    item("Eq. 2.6-2.20, overheads", agree, printed.len(), remark)
}

/// Section 3.1: the fit of T_N at one line is the ping-pong of one line.
fn one_line_of_the_fit(tables: &[PingPongTable]) -> Finding {
    let (mut agree, mut of, mut words) = (0, 0, Vec::new());
    // Receivers cannot poll an invalid line, so two of the four fits have measurements beside them.
    for (send, recv) in [(State::E, State::E), (State::I, State::E)] {
        let one = multi_line(phi(), send, recv).expect("Table 3.1 is in the machine file").at(1.0);
        let beside =
            tables.iter().filter(|t| ["table 2.5", "table 2.6", "table 2.7"].contains(&t.name.as_str()));
        let seen: Vec<f64> = beside
            .flat_map(|t| t.rows())
            .filter(|r| r.send == send && r.recv == recv)
            .map(|r| r.measured[0].value)
            .collect();
        let low = seen.iter().copied().fold(f64::INFINITY, f64::min);
        let high = seen.iter().copied().fold(0.0, f64::max);
        of += 1;
        agree += usize::from(low <= one && one <= high);
        words.push(format!("{}-{}: {one:.1} beside {low:.1} to {high:.1}", send.name(), recv.name()));
    }
    item(
        "table 3.1, T_N(1) = o + q - p",
        agree,
        of,
        format!("beside tables 2.5 to 2.7: {}", words.join("; ")),
    )
}

/// Section 3.2: T_C(1) = c + b = R_L + R_R, says the text before Eq. 3.2.
fn contention_of_one() -> Finding {
    let n = Numbers::of_phi();
    let fit = SameLine::of(phi(), State::E, State::E).expect("Table 3.2 is in the machine file");
    let (fitted, reads) = (fit.fitted(1.0), n.reads.local + n.reads.remote);
    let agree = usize::from((fitted - reads).abs() <= 1.0);
    let remark = format!(
        "fitted c + b = {fitted:.1} ns, R_L + R_R = {reads:.1} ns: the fit is {:.1} ns above one copy; tables B.1 and \
         B.3 follow from the second",
        fitted - reads
    );
    item("Eq. 3.2, T_C(1) = R_L + R_R", agree, 1, remark)
}
