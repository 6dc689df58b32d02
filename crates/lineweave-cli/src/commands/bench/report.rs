//! The results of a run so far, as they are recorded.

use crate::bench::{Row, Skipped};
use crate::error::CliError;
use crate::output::{Object, Output};
use serde::Serialize;
use serde_json::Value;

/// The results so far, and the lines of their record.
#[derive(Default)]
pub(super) struct Report {
    pub rows: Vec<Row>,
    pub skipped: Vec<Skipped>,
    pub lines: Vec<String>,
}

impl Report {
    /// Adds a line to the record, and shows it where the output is JSON.
    pub fn line(
        &mut self,
        out: &mut Output,
        kind: &'static str,
        fields: &impl Serialize,
    ) -> Result<(), CliError> {
        let mut value =
            serde_json::to_value(Object::new(kind, fields)).map_err(|e| CliError::Output(e.into()))?;
        trim(&mut value);
        self.lines.push(value.to_string());
        out.object(kind, fields)
    }
}

/// Rounds times and removes empty fields. A record is read in a diff: a thousandth of a nanosecond says nothing, nor
/// does a missing value.
fn trim(value: &mut Value) {
    let Value::Object(fields) = value else { return };
    fields.retain(|_, v| !v.is_null());
    for field in fields.values_mut() {
        if let Some(number) = field.as_f64().filter(|_| field.is_f64()) {
            *field = Value::from((number * 1000.0).round() / 1000.0);
        }
    }
}
