//! Reading a machine file: every key known, every value with its status, every error with its line.

use super::nearest::Head;
use super::synthetic::topology;
use super::{Arbiter, Concurrent, Controllers, Machine, MachineError, Protocol, Routing, Status, Value};
use crate::document;
use crate::names::line_of;
use crate::topology::Level;
use serde::de::{Deserialize, DeserializeOwned, Deserializer, Error};
use std::ops::Range;
use std::str::FromStr;
use toml::de::DeValue;
use toml::Spanned;

/// Version of the format.
const SCHEMA: &str = "1";

/// Keys that a description may leave to its matrix, or to a machine like it.
const LEFT: [&str; 6] = ["cpu", "topology", "line_bytes", "transfer", "access", "rates"];

/// Words after an error about a key that is not there.
const UNKNOWN: &str = "where nobody knows it, say status = \"unknown\"";

fn fault((line, message): (usize, String)) -> MachineError {
    match message.contains("missing field") {
        true => MachineError { line, message: format!("{message}; {UNKNOWN}") },
        false => MachineError { line, message },
    }
}

/// The line of a key of a table, to which the value belongs that has this span.
fn here(text: &str, span: Range<usize>, message: String) -> MachineError {
    MachineError { line: line_of(text, span.start), message }
}

/// The entry of a table's key.
fn entry<'a>(table: &'a DeValue<'_>, key: &str) -> Option<&'a Spanned<DeValue<'a>>> {
    table.as_table()?.get(key)
}

impl FromStr for Machine {
    type Err = MachineError;

    fn from_str(text: &str) -> Result<Machine, MachineError> {
        let mut root = document::parse(text).map_err(fault)?;
        let missing =
            |key: &str| MachineError { line: 1, message: format!("missing field `{key}`; {UNKNOWN}") };
        // Another version's text need not have this one's keys, so that its version is what is wrong with it.
        let schema = root.remove("schema").ok_or_else(|| missing("schema"))?;
        if schema.get_ref().as_integer().is_none_or(|n| n.as_str() != SCHEMA) {
            let message = format!("expected schema {SCHEMA}, found another; use the lineweave that wrote it");
            return Err(here(text, schema.span(), message));
        }
        match (root.get("matrix"), root.get("transfer")) {
            (Some(_), Some(transfer)) => {
                let message = "expected no transfers beside a matrix, which has them".to_owned();
                return Err(here(text, transfer.span(), message));
            }
            (None, _) => LEFT.iter().try_for_each(|key| match root.contains_key(*key) {
                true => Ok(()),
                false => Err(missing(key)),
            })?,
            (Some(_), None) => {}
        }
        let machine: Machine = document::read(text, &root).map_err(fault)?;
        if let Some(transfer) = root.get("transfer") {
            monotone(&machine, text, transfer)?;
        }
        if let Some(list) = root.get("concurrent") {
            rising(&machine.concurrent, text, list)?;
        }
        Ok(machine)
    }
}

/// Returns the machines that a file is for, as its beginning names them.
pub(super) fn head(text: &str) -> Result<Head, MachineError> {
    document::parse(text).and_then(|table| document::read(text, &table)).map_err(fault)
}

/// Type of which a description has values.
pub trait Given {
    /// Returns what is expected where a value of this type cannot be a machine's.
    fn fault(&self) -> Option<String> {
        None
    }
}

impl Given for f64 {
    fn fault(&self) -> Option<String> {
        let fits = self.is_finite() && *self > 0.0;
        (!fits).then(|| format!("expected a number above 0, found {self}"))
    }
}

impl Given for String {
    fn fault(&self) -> Option<String> {
        topology(self).err()
    }
}

impl Given for Protocol {}
impl Given for Routing {}
impl Given for Arbiter {}
impl Given for Controllers {}

impl<'de, T: DeserializeOwned + PartialOrd + Given> Deserialize<'de> for Value<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Value<T>, D::Error> {
        stated(deserializer, T::fault)
    }
}

/// A value with its status, as a file has it.
#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table of value, status and source")]
struct Stated<T> {
    value: Option<T>,
    low: Option<T>,
    high: Option<T>,
    status: Status,
    source: String,
}

/// A value with its status, of which `fault` returns what is wrong.
#[inline(never)]
fn stated<'de, T: DeserializeOwned + PartialOrd, D: Deserializer<'de>>(
    deserializer: D,
    fault: fn(&T) -> Option<String>,
) -> Result<Value<T>, D::Error> {
    checked(Stated::deserialize(deserializer)?, fault).map_err(D::Error::custom)
}

fn checked<T: PartialOrd>(stated: Stated<T>, fault: fn(&T) -> Option<String>) -> Result<Value<T>, String> {
    let Stated { value, low, high, status, source } = stated;
    if let Some(fault) = [&value, &low, &high].into_iter().flatten().find_map(fault) {
        return Err(fault);
    }
    if status == Status::Unknown && value.is_some() {
        return Err("expected measured, cited or inferred, because a value is given".to_owned());
    }
    if status != Status::Unknown && value.is_none() {
        return Err("missing field `value`".to_owned());
    }
    let ordered = |a: &Option<T>, b: &Option<T>| a.is_none() || b.is_none() || a <= b;
    if !(ordered(&low, &value) && ordered(&value, &high) && ordered(&low, &high)) {
        return Err("expected low <= value <= high".to_owned());
    }
    Ok(Value { value, low, high, status, source: not_blank(source)? })
}

/// A parameter of a fit, which may be 0.
pub(super) fn from_0<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Value, D::Error> {
    stated(deserializer, |n: &f64| {
        (!(n.is_finite() && *n >= 0.0)).then(|| format!("expected a number of at least 0, found {n}"))
    })
}

/// A value that is a whole number from `LEAST` to `MOST`.
pub(super) fn whole<'de, const LEAST: u32, const MOST: u32, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Value, D::Error> {
    stated(deserializer, |n: &f64| {
        let fits = n.fract() == 0.0 && (f64::from(LEAST)..=f64::from(MOST)).contains(n);
        (!fits).then(|| format!("expected a whole number from {LEAST} to {MOST}, found {n}"))
    })
}

/// A whole number from 1.
pub(super) fn from_1<'de, T: TryFrom<i64>, D: Deserializer<'de>>(deserializer: D) -> Result<T, D::Error> {
    let n = f64::deserialize(deserializer)?;
    let fits = Some(n).filter(|n| n.fract() == 0.0 && *n > 0.0).and_then(|n| T::try_from(n as i64).ok());
    fits.ok_or_else(|| D::Error::custom(format!("expected a whole number above 0, found {n}")))
}

fn not_blank(text: String) -> Result<String, String> {
    match text.trim().is_empty() {
        true => Err("expected a string that is not blank".to_owned()),
        false => Ok(text),
    }
}

/// A text that is not blank.
pub(super) fn words<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    not_blank(String::deserialize(deserializer)?).map_err(D::Error::custom)
}

/// Patterns, which are compared without regard to case.
pub(super) fn lower_case<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    Vec::<String>::deserialize(deserializer)?
        .into_iter()
        .map(|pattern| not_blank(pattern.to_lowercase()).map_err(D::Error::custom))
        .collect()
}

/// The set-up of a [`Concurrent`] transfer.
pub(super) fn pattern<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    match String::deserialize(deserializer)? {
        name if ["ring", "ping", "bcast"].contains(&name.as_str()) => Ok(name),
        other => Err(D::Error::custom(format!("expected ring, ping or bcast, found {other:?}"))),
    }
}

/// Two different nodes.
pub(super) fn nodes<'de, D: Deserializer<'de>>(deserializer: D) -> Result<(usize, usize), D::Error> {
    match <(usize, usize)>::deserialize(deserializer)? {
        (a, b) if a != b => Ok((a, b)),
        _ => Err(D::Error::custom("expected the numbers of two different nodes, as [0, 2]")),
    }
}

/// A distance within a package.
pub(super) fn within_a_package<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Level, D::Error> {
    match Level::deserialize(deserializer)? {
        level @ (Level::Numa | Level::Package) => Ok(level),
        other => Err(D::Error::custom(format!("expected numa or package, found {other}"))),
    }
}

/// Known transfers never get cheaper with distance (docs/explanation/measuring.md, rule 10).
fn monotone(machine: &Machine, text: &str, transfer: &Spanned<DeValue<'_>>) -> Result<(), MachineError> {
    let mut last: Option<(Level, f64)> = None;
    for far in Level::ALL {
        let Some(far_ns) = machine.transfer(far).value else { continue };
        if let Some((near, near_ns)) = last.filter(|&(_, near_ns)| far_ns < near_ns) {
            let value = entry(transfer.get_ref(), &format!("{far}_ns")).unwrap_or(transfer);
            let order = "expected SMT sibling <= shared cache <= NUMA node <= package <= machine";
            let message = format!("{far} = {far_ns} ns is less than {near} = {near_ns} ns: {order}");
            return Err(here(text, value.span(), message));
        }
        last = Some((far, far_ns));
    }
    Ok(())
}

/// Known transfers of a set-up do not get cheaper with bytes or tau (Rico-Gallego & Diaz-Martin Eq. 8).
fn rising(list: &[Concurrent], text: &str, tables: &Spanned<DeValue<'_>>) -> Result<(), MachineError> {
    for (i, a) in list.iter().enumerate() {
        for b in list.iter().filter(|b| b.pattern == a.pattern && b.bytes <= a.bytes && b.tau <= a.tau) {
            let (Some(l_ns), Some(less_ns)) = (a.l_ns.value, b.l_ns.value) else { continue };
            if l_ns < less_ns {
                let table = tables.get_ref().get(i);
                let value = table.and_then(|table| entry(table.get_ref(), "l_ns")).unwrap_or(tables);
                let message = format!(
                    "L({}, {}) = {l_ns} ns of `{}` is less than L({}, {}) = {less_ns} ns: expected more bytes, and more \
                     transfers at once, not to take less time",
                    a.bytes, a.tau, a.pattern, b.bytes, b.tau
                );
                return Err(here(text, value.span(), message));
            }
        }
    }
    Ok(())
}
