//! A ping-pong between two nodes: JSON Lines that the preloaded library writes for `lineweave run --link FILE`.

use crate::error::CliError;
use lineweave_core::profile::{Fingerprint, Profile, SCHEMA};
use lineweave_lab::models::link::cell;
use serde::Deserialize;
use std::path::Path;

/// A line of the file.
#[derive(Deserialize)]
#[serde(tag = "kind")]
enum Line {
    /// The hosts and the MPI of the ping-pong.
    #[serde(rename = "mpi-link")]
    Head { schema: u32, mpi: String },
    /// Times of messages of one length; half a round trip each.
    #[serde(rename = "mpi-link-message")]
    Message { schema: u32, bytes: u64, samples_ns: Vec<f64> },
}

/// Reads the file's cells, as a profile without other cells.
pub fn read(file: &Path) -> Result<Profile, CliError> {
    const WHAT: &str = "ping-pong between nodes, as `lineweave run --link` writes it";
    let text = lineweave::sysfile::text(file).map_err(|e| CliError::read(file, WHAT, e))?;
    parse(&text).map_err(|why| CliError::malformed(file, WHAT, why))
}

fn parse(text: &str) -> Result<Profile, String> {
    let (mut version, mut cells) = (String::new(), Vec::new());
    for (number, line) in text.lines().enumerate() {
        let wrong = |why: String| format!("line {}: {why}", number + 1);
        let line = serde_json::from_str(line).map_err(|e| wrong(e.to_string()))?;
        let (Line::Head { schema, .. } | Line::Message { schema, .. }) = &line;
        if *schema != SCHEMA {
            return Err(wrong(format!("expected schema {SCHEMA}, found {schema}")));
        }
        match line {
            Line::Head { mpi, .. } => version = mpi,
            Line::Message { bytes, samples_ns, .. } => {
                let usable = samples_ns.iter().all(|ns| ns.is_finite() && *ns >= 0.0);
                let cell = cell(bytes, &samples_ns).filter(|_| usable);
                cells.push(cell.ok_or_else(|| wrong("expected times in ns, at least one".to_owned()))?);
            }
        }
    }
    let (machine, measured_at) = (Fingerprint::default(), String::new());
    Ok(Profile { schema: SCHEMA, version, measured_at, machine, unidentified: Vec::new(), cells })
}

#[cfg(test)]
mod tests {
    use super::*;
    use lineweave_lab::models::link::fit;

    const HEAD: &str = r#"{"schema":1,"kind":"mpi-link","mpi":"Open MPI v5.0.11","from":"a","to":"b"}"#;

    #[test]
    fn a_ping_pong_becomes_a_line() {
        let line = |bytes: u64, ns: f64| {
            format!(
                r#"{{"schema":1,"kind":"mpi-link-message","bytes":{bytes},"samples_ns":[{ns},{ns},{ns}]}}"#
            )
        };
        let text = [HEAD.to_owned(), line(0, 1000.0), line(1000, 1100.0), line(10_000, 2000.0)].join("\n");
        let link = fit(&parse(&text).expect("a ping-pong")).expect("sound cells").expect("two lengths");
        assert!((link.alpha.value - 1000.0).abs() < 1.0 && (link.beta.value - 0.1).abs() < 1e-3);
    }

    #[test]
    fn what_is_no_ping_pong_is_named_with_its_line() {
        for wrong in [
            r#"{"schema":1,"kind":"mpi-link-message","bytes":8,"samples_ns":[]}"#,
            r#"{"schema":1,"kind":"mpi-link-message","bytes":8,"samples_ns":[-1]}"#,
            r#"{"schema":7,"kind":"mpi-link-message","bytes":8,"samples_ns":[1]}"#,
            r#"{"schema":1,"kind":"mpi-job"}"#,
            "{",
        ] {
            let error = parse(&format!("{HEAD}\n{wrong}\n")).expect_err(wrong);
            assert!(error.contains("line 2"), "{error}");
        }
    }
}
