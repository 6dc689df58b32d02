//! Standard output: text for people, or JSON Lines for programs (documented in `docs/json.md`), and progress
//! on standard error where that is a terminal.

use crate::error::CliError;
use comfy_table::{presets, CellAlignment, Table};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use lineweave_core::plan::MAX_OPS;
use lineweave_core::select::Question;
use serde::Serialize;
use std::io::{self, BufWriter, IsTerminal, Stdout, Write};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

/// How long a plan may take before a word is said.
const SLOW: Duration = Duration::from_secs(3);

/// Version of the JSON objects.
pub const SCHEMA: u32 = 1;

/// One object of the output.
#[derive(Serialize)]
struct Object<'a, T> {
    schema: u32,
    kind: &'a str,
    #[serde(flatten)]
    fields: &'a T,
}

/// Where a command's findings go.
#[derive(Debug)]
pub struct Output {
    json: bool,
    quiet: bool,
    to: BufWriter<Stdout>,
}

impl Output {
    /// To standard output, as JSON Lines or as text; `quiet` leaves out progress and warnings.
    pub fn new(json: bool, quiet: bool) -> Output {
        Output { json, quiet, to: BufWriter::new(io::stdout()) }
    }

    /// Whether programs read it.
    pub fn is_json(&self) -> bool {
        self.json
    }

    /// Text, as it is; a line of it should end itself.
    ///
    /// # Errors
    /// [`CliError::Output`].
    pub fn text(&mut self, text: &str) -> Result<(), CliError> {
        self.to.write_all(text.as_bytes()).map_err(CliError::Output)
    }

    /// A line of text.
    ///
    /// # Errors
    /// [`CliError::Output`].
    pub fn line(&mut self, line: &str) -> Result<(), CliError> {
        self.text(line)?;
        self.text("\n")
    }

    /// One JSON object on a line of its own: the schema's number, the kind, then these fields. Whoever reads
    /// sees it at once.
    ///
    /// # Errors
    /// [`CliError::Output`].
    pub fn object(&mut self, kind: &str, fields: &impl Serialize) -> Result<(), CliError> {
        let object = Object { schema: SCHEMA, kind, fields };
        serde_json::to_writer(&mut self.to, &object).map_err(|e| CliError::Output(e.into()))?;
        self.text("\n")?;
        self.flush()
    }

    /// A table, without its borders.
    ///
    /// # Errors
    /// [`CliError::Output`].
    pub fn table(&mut self, table: &Table) -> Result<(), CliError> {
        for line in table.lines() {
            self.line(line.trim_end())?;
        }
        Ok(())
    }

    /// Hands on what is buffered.
    ///
    /// # Errors
    /// [`CliError::Output`].
    pub fn flush(&mut self) -> Result<(), CliError> {
        self.to.flush().map_err(CliError::Output)
    }

    /// A remark on standard error.
    pub fn warn(&self, message: &str) {
        if !self.quiet {
            let _ = writeln!(io::stderr(), "lineweave: warning: {message}");
        }
    }

    /// Chooses or makes plans for a question. If that takes long, says why, and what to do.
    pub fn while_slow<T>(&self, about: &Question, f: impl FnOnce() -> T) -> T {
        let (done, over) = mpsc::channel::<()>();
        std::thread::scope(|scope| {
            // A thread that cannot be started says nothing.
            let _ = std::thread::Builder::new().spawn_scoped(scope, move || {
                if over.recv_timeout(SLOW) == Err(RecvTimeoutError::Timeout) {
                    let (collective, ranks) = (about.collective, about.shape.ranks());
                    self.warn(&format!(
                        "this takes more than {} s: plans of {collective} among {ranks} ranks, of up to {} million ops each, are made \
                         and compared op by op; Ctrl-C ends it. Fewer ranks show the same pattern, and with an algorithm named only its \
                         plan is made",
                        SLOW.as_secs(),
                        MAX_OPS / 1_000_000
                    ));
                }
            });
            let result = f();
            drop(done);
            result
        })
    }

    /// A bar of `steps` steps on standard error; it shows nothing where that is no terminal.
    pub fn progress(&self, steps: u64) -> ProgressBar {
        let target = match !self.quiet && io::stderr().is_terminal() {
            true => ProgressDrawTarget::stderr_with_hz(8),
            false => ProgressDrawTarget::hidden(),
        };
        let bar = ProgressBar::with_draw_target(Some(steps), target);
        match ProgressStyle::with_template("{bar:30} {percent:>3} %  {elapsed}  {msg}") {
            Ok(style) => bar.with_style(style),
            Err(_) => bar,
        }
    }
}

/// A table with this heading; the columns named in `numbers` are aligned to the right.
pub fn table(heading: &[&str], numbers: &[usize]) -> Table {
    let mut table = Table::new();
    table.load_preset(presets::NOTHING);
    table.set_header(heading.iter().map(|h| h.to_uppercase()));
    for (i, column) in table.column_iter_mut().enumerate() {
        column.set_padding((0, 2));
        if numbers.contains(&i) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    table
}
