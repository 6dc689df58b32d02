//! Reading a machine file: every key known, every value with its status, every error with its line.

use super::nearest::Head;
use super::synthetic::topology;
use super::tree::{document, Entry, Table};
use super::{
    Access, Bandwidth, Concurrent, Contention, LineRead, Location, Machine, MachineError, MatrixFile,
    MultiLine, NumaTransfer, Patterns, Rates, State, Status, Transfer, Value,
};
use crate::topology::Level;
use std::str::FromStr;

/// Version of the format.
const SCHEMA: f64 = 1.0;

pub(super) type Read<T> = Result<T, MachineError>;

impl FromStr for Machine {
    type Err = MachineError;

    fn from_str(text: &str) -> Read<Machine> {
        let node = document(text)?;
        let root = Table::root(&node, text)?;
        let schema = root.get("schema")?;
        if schema.number(true)? != SCHEMA {
            return Err(MachineError::Schema { line: schema.line, found: schema.node.describe() });
        }
        root.only(&[
            "schema",
            "name",
            "title",
            "arch",
            "topology",
            "line_bytes",
            "cpu",
            "transfer",
            "access",
            "rates",
            "multi_line",
            "contention",
            "coherent",
            "numa_transfer",
            "away",
            "read",
            "bandwidth",
            "concurrent",
            "mesh",
            "matrix",
        ])?;
        let matrix = root.find("matrix").map(|e| matrix_file(e.table(e.key)?)).transpose()?;
        // What its matrix, or a machine like it, is asked for.
        let left = |key: &str| matrix.is_some() && root.find(key).is_none();
        if let (Some(_), Some(transfer)) = (&matrix, root.find("transfer")) {
            return Err(transfer.bad("no transfers beside a matrix, which has them"));
        }
        let machine = Machine {
            name: root.get("name")?.text()?.to_owned(),
            title: root.get("title")?.text()?.to_owned(),
            arch: root.get("arch")?.text()?.to_owned(),
            cpu: if left("cpu") { Patterns::default() } else { patterns(root.table("cpu")?)? },
            topology: match left("topology") {
                true => silent(),
                false => value(root.get("topology")?, synthetic)?,
            },
            line_bytes: match left("line_bytes") {
                true => silent(),
                false => value(root.get("line_bytes")?, |e| e.number(false))?,
            },
            coherent: root
                .find("coherent")
                .map(|e| super::coherent::read(e.table("coherent")?))
                .transpose()?,
            transfer: match left("transfer") {
                true => Transfer {
                    core_ns: silent(),
                    l3_ns: silent(),
                    numa_ns: silent(),
                    package_ns: silent(),
                    machine_ns: silent(),
                },
                false => transfer(root.table("transfer")?)?,
            },
            access: match left("access") {
                true => Access { local_ns: silent(), memory_ns: silent() },
                false => access(root.table("access")?)?,
            },
            rates: match left("rates") {
                true => Rates {
                    copy_bytes_per_ns: silent(),
                    memory_bytes_per_ns: silent(),
                    fold_bytes_per_ns: silent(),
                },
                false => rates(root.table("rates")?)?,
            },
            multi_line: list(&root, "multi_line", multi_line)?,
            contention: list(&root, "contention", contention)?,
            numa_transfer: list(&root, "numa_transfer", numa_transfer)?,
            away: list(&root, "away", super::home::read)?,
            reads: list(&root, "read", line_read)?,
            bandwidth: list(&root, "bandwidth", bandwidth)?,
            concurrent: list(&root, "concurrent", concurrent)?,
            mesh: root.find("mesh").map(|e| super::mesh::read(e.table(e.key)?)).transpose()?,
            matrix,
            measured: None,
        };
        if let Some(transfer) = root.find("transfer") {
            monotone(&machine, transfer.table(transfer.key)?)?;
        }
        rising(&machine.concurrent, &root)?;
        Ok(machine)
    }
}

/// A value that the description leaves to its matrix, or to a machine like it.
fn silent<T>() -> Value<T> {
    let source = "the description leaves it to its matrix".to_owned();
    Value { value: None, low: None, high: None, status: Status::Unknown, source }
}

fn matrix_file(table: Table<'_>) -> Read<MatrixFile> {
    table.only(&["file", "source", "like"])?;
    Ok(MatrixFile {
        file: table.get("file")?.text()?.to_owned(),
        source: table.get("source")?.text()?.to_owned(),
        like: table.find("like").map(|e| e.text().map(str::to_owned)).transpose()?,
    })
}

/// A value with its status; `inner` reads the value itself.
pub(super) fn value<T: PartialOrd + Clone>(
    entry: Entry<'_>,
    inner: impl Fn(&Entry<'_>) -> Read<T>,
) -> Read<Value<T>> {
    let table = entry.table(entry.key)?;
    table.only(&["value", "low", "high", "status", "source"])?;
    let read = |key: &str| table.find(key).map(|e| inner(&e)).transpose();
    let (value, low, high) = (read("value")?, read("low")?, read("high")?);
    let stated = table.get("status")?;
    let name = stated.text()?;
    let status = Status::ALL
        .into_iter()
        .find(|s| s.name() == name)
        .ok_or_else(|| stated.bad("measured, cited, inferred or unknown"))?;
    match (status, &value) {
        (Status::Unknown, None) | (Status::Measured | Status::Cited | Status::Inferred, Some(_)) => {}
        (Status::Unknown, Some(_)) => {
            return Err(stated.bad("measured, cited or inferred, because a value is given"))
        }
        (Status::Measured | Status::Cited | Status::Inferred, None) => {
            return Err(MachineError::Missing {
                line: entry.line,
                table: format!("`{}`", entry.key),
                key: "value".to_owned(),
            })
        }
    }
    let ordered = |a: &Option<T>, b: &Option<T>| match (a, b) {
        (Some(a), Some(b)) => a <= b,
        (None, _) | (_, None) => true,
    };
    if !(ordered(&low, &value) && ordered(&value, &high) && ordered(&low, &high)) {
        return Err(entry.bad("low <= value <= high"));
    }
    Ok(Value { value, low, high, status, source: table.get("source")?.text()?.to_owned() })
}

pub(super) fn number(table: &Table<'_>, key: &str) -> Read<Value> {
    value(table.get(key)?, |e| e.number(false))
}

/// A parameter of a fit, which may be 0.
fn parameter(table: &Table<'_>, key: &str) -> Read<Value> {
    value(table.get(key)?, |e| e.number(true))
}

fn synthetic(entry: &Entry<'_>) -> Read<String> {
    let text = entry.text()?;
    match topology(text) {
        Ok(_) => Ok(text.to_owned()),
        Err(e) => Err(entry.bad(e.to_string())),
    }
}

fn patterns(table: Table<'_>) -> Read<Patterns> {
    table.only(&["vendor", "family", "model"])?;
    let words = |key: &str| -> Read<Vec<String>> {
        table.get(key)?.items()?.iter().map(|item| item.text().map(str::to_lowercase)).collect()
    };
    Ok(Patterns { vendor: words("vendor")?, family: words("family")?, model: words("model")? })
}

/// Returns the machines that a file is for, as its beginning names them.
pub(super) fn head(text: &str) -> Read<Head> {
    let node = document(text)?;
    let root = Table::root(&node, text)?;
    Ok(Head { arch: root.get("arch")?.text()?.to_owned(), cpu: patterns(root.table("cpu")?)? })
}

/// The key of each level's transfer.
const TRANSFERS: [(Level, &str); 5] = [
    (Level::Core, "core_ns"),
    (Level::L3, "l3_ns"),
    (Level::Numa, "numa_ns"),
    (Level::Package, "package_ns"),
    (Level::Machine, "machine_ns"),
];

fn transfer(table: Table<'_>) -> Read<Transfer> {
    table.only(&TRANSFERS.map(|(_, key)| key))?;
    Ok(Transfer {
        core_ns: number(&table, "core_ns")?,
        l3_ns: number(&table, "l3_ns")?,
        numa_ns: number(&table, "numa_ns")?,
        package_ns: number(&table, "package_ns")?,
        machine_ns: number(&table, "machine_ns")?,
    })
}

fn access(table: Table<'_>) -> Read<Access> {
    table.only(&["local_ns", "memory_ns"])?;
    Ok(Access { local_ns: number(&table, "local_ns")?, memory_ns: number(&table, "memory_ns")? })
}

fn rates(table: Table<'_>) -> Read<Rates> {
    table.only(&["copy_bytes_per_ns", "memory_bytes_per_ns", "fold_bytes_per_ns"])?;
    Ok(Rates {
        copy_bytes_per_ns: number(&table, "copy_bytes_per_ns")?,
        memory_bytes_per_ns: number(&table, "memory_bytes_per_ns")?,
        fold_bytes_per_ns: number(&table, "fold_bytes_per_ns")?,
    })
}

/// An optional array of tables.
fn list<T>(root: &Table<'_>, key: &str, read: fn(Table<'_>) -> Read<T>) -> Read<Vec<T>> {
    match root.find(key) {
        None => Ok(Vec::new()),
        Some(entry) => entry.items()?.iter().map(|item| read(item.table(item.key)?)).collect(),
    }
}

/// One of a few names.
pub(super) fn named<T: Copy>(
    table: &Table<'_>,
    key: &str,
    all: &[T],
    name: fn(T) -> &'static str,
) -> Read<T> {
    let entry = table.get(key)?;
    let text = entry.text()?;
    let found = all.iter().copied().find(|&one| name(one) == text);
    found.ok_or_else(|| entry.bad(all.iter().map(|&one| name(one)).collect::<Vec<_>>().join(", ")))
}

fn state(table: &Table<'_>, key: &str) -> Read<State> {
    named(table, key, &State::ALL, State::name)
}

fn location(table: &Table<'_>) -> Read<Location> {
    named(table, "location", &Location::ALL, Location::name)
}

/// A whole number from 1.
fn count(table: &Table<'_>, key: &str) -> Read<usize> {
    let entry = table.get(key)?;
    let n = entry.number(false)?;
    if n.fract() != 0.0 || n > 1e9 {
        return Err(entry.bad("a whole number from 1"));
    }
    Ok(n as usize)
}

fn line_read(table: Table<'_>) -> Read<LineRead> {
    table.only(&["location", "state", "mean_ns", "stdev_ns"])?;
    Ok(LineRead {
        location: location(&table)?,
        state: state(&table, "state")?,
        mean_ns: number(&table, "mean_ns")?,
        stdev_ns: parameter(&table, "stdev_ns")?,
    })
}

fn bandwidth(table: Table<'_>) -> Read<Bandwidth> {
    table.only(&["location", "least_threads", "most_threads", "outstanding", "factor"])?;
    Ok(Bandwidth {
        location: location(&table)?,
        least_threads: count(&table, "least_threads")?,
        most_threads: count(&table, "most_threads")?,
        outstanding: number(&table, "outstanding")?,
        factor: number(&table, "factor")?,
    })
}

fn multi_line(table: Table<'_>) -> Read<MultiLine> {
    table.only(&["send", "recv", "o_ns", "q_ns", "p_ns"])?;
    Ok(MultiLine {
        send: state(&table, "send")?,
        recv: state(&table, "recv")?,
        o_ns: parameter(&table, "o_ns")?,
        q_ns: parameter(&table, "q_ns")?,
        p_ns: parameter(&table, "p_ns")?,
    })
}

fn contention(table: Table<'_>) -> Read<Contention> {
    table.only(&["send", "recv", "c_ns", "b_ns", "a_ns"])?;
    Ok(Contention {
        send: state(&table, "send")?,
        recv: state(&table, "recv")?,
        c_ns: parameter(&table, "c_ns")?,
        b_ns: parameter(&table, "b_ns")?,
        a_ns: parameter(&table, "a_ns")?,
    })
}

fn concurrent(table: Table<'_>) -> Read<Concurrent> {
    table.only(&["pattern", "bytes", "tau", "l_ns"])?;
    let whole = |key: &str, most: f64| -> Read<f64> {
        let entry = table.get(key)?;
        let n = entry.number(false)?;
        match n.fract() == 0.0 && n <= most {
            true => Ok(n),
            false => Err(entry.bad("a whole number")),
        }
    };
    let pattern = table.get("pattern")?;
    Ok(Concurrent {
        pattern: match pattern.text()? {
            name @ ("ring" | "ping" | "bcast") => name.to_owned(),
            _ => return Err(pattern.bad("ring, ping or bcast")),
        },
        bytes: whole("bytes", 9e15)? as u64,
        tau: whole("tau", f64::from(u32::MAX))? as u32,
        l_ns: number(&table, "l_ns")?,
    })
}

/// Known transfers of a set-up do not get cheaper with bytes or tau (Rico-Gallego & Diaz-Martin Eq. 8).
fn rising(list: &[Concurrent], root: &Table<'_>) -> Read<()> {
    for (i, a) in list.iter().enumerate() {
        for b in list.iter().filter(|b| b.pattern == a.pattern && b.bytes <= a.bytes && b.tau <= a.tau) {
            let (Some(l_ns), Some(less_ns)) = (a.l_ns.value, b.l_ns.value) else { continue };
            if l_ns < less_ns {
                let item = root.get("concurrent")?.items()?[i];
                let line = item.table(item.key)?.get("l_ns")?.line;
                return Err(MachineError::Falling {
                    line,
                    pattern: a.pattern.clone(),
                    bytes: a.bytes,
                    tau: a.tau,
                    l_ns,
                    less_bytes: b.bytes,
                    less_tau: b.tau,
                    less_ns,
                });
            }
        }
    }
    Ok(())
}

fn numa_transfer(table: Table<'_>) -> Read<NumaTransfer> {
    table.only(&["nodes", "transfer_ns"])?;
    let entry = table.get("nodes")?;
    let node = |e: &Entry<'_>| e.number(true).ok().filter(|n| n.fract() == 0.0).map(|n| n as usize);
    let nodes = match entry.items()?.as_slice() {
        [a, b] => node(a).zip(node(b)).filter(|(a, b)| a != b),
        _ => None,
    };
    Ok(NumaTransfer {
        nodes: nodes.ok_or_else(|| entry.bad("the numbers of two different nodes, as [0, 2]"))?,
        transfer_ns: number(&table, "transfer_ns")?,
    })
}

/// Known transfers never get cheaper with distance (docs/explanation/measuring.md, rule 10).
fn monotone(machine: &Machine, table: Table<'_>) -> Read<()> {
    let mut last: Option<(Level, f64)> = None;
    for (far, key) in TRANSFERS {
        let Some(far_ns) = machine.transfer(far).value else { continue };
        if let Some((near, near_ns)) = last.filter(|&(_, near_ns)| far_ns < near_ns) {
            return Err(MachineError::NotMonotone { line: table.get(key)?.line, near, near_ns, far, far_ns });
        }
        last = Some((far, far_ns));
    }
    Ok(())
}
