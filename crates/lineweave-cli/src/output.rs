//! Standard output, as text for people or JSON Lines for programs (documented in `docs/reference/json.md`), and progress on
//! standard error if that is a terminal.

use crate::error::CliError;
use crate::fitting::fitted;
use crate::fold::fold;
use crate::screen;
use clap::ValueEnum;
use comfy_table::{presets, CellAlignment, ContentArrangement, Table};
use console::style;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle, WeakProgressBar};
use lineweave_core::plan::MAX_OPS;
use lineweave_core::select::Question;
use serde::Serialize;
use std::io::{self, BufWriter, IsTerminal, Stdout, Write};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

/// Time that making a plan may take before a remark is printed.
const SLOW: Duration = Duration::from_secs(3);

/// Time after which a command shows that it works, and the interval between lines about it where nothing can be redrawn.
const FIRST: Duration = Duration::from_secs(1);
const BETWEEN_LINES: Duration = Duration::from_secs(10);

/// The template of progress bars.
const BAR: &str = "{bar:30} {percent:>3} %  {elapsed}  {wide_msg}";

/// Number of columns below which lines are not made to fit.
const NARROWEST: usize = 60;

/// Version of the JSON objects.
pub const SCHEMA: u32 = 1;

/// One object of the output: the version and kind, then its own keys.
#[derive(Serialize)]
pub struct Object<'a, T> {
    schema: u32,
    kind: &'a str,
    #[serde(flatten)]
    fields: &'a T,
}

impl<'a, T> Object<'a, T> {
    /// Returns an object of this kind.
    pub fn new(kind: &'a str, fields: &'a T) -> Object<'a, T> {
        Object { schema: SCHEMA, kind, fields }
    }
}

/// The output of a command's findings.
#[derive(Debug)]
pub struct Output {
    json: bool,
    quiet: bool,
    to: BufWriter<Stdout>,
    /// A spinner that shows that the command works, until it has a progress bar.
    works: ProgressBar,
}

impl Output {
    /// Returns an output to standard output, as JSON Lines or as text; `quiet` suppresses progress and warnings.
    pub fn new(json: bool, quiet: bool) -> Output {
        let works = ProgressBar::with_draw_target(None, ProgressDrawTarget::hidden());
        Output { json, quiet, to: BufWriter::new(io::stdout()), works }
    }

    /// Shows, after a second, that the command works.
    pub fn show_work(&mut self) {
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::hidden());
        self.works = self.shown(bar, "{spinner} {elapsed}");
        self.appears(&self.works, FIRST);
    }

    /// Makes a bar appear after some time, and move by itself.
    fn appears(&self, bar: &ProgressBar, after: Duration) {
        if self.redraws() {
            let bar = bar.downgrade();
            in_background(move || {
                std::thread::park_timeout(after);
                if let Some(bar) = bar.upgrade().filter(|bar| !bar.is_finished()) {
                    bar.set_draw_target(screen::target());
                    bar.enable_steady_tick(Duration::from_millis(125));
                }
            });
        }
    }

    /// Returns whether the output is JSON Lines.
    pub fn is_json(&self) -> bool {
        self.json
    }

    /// Prints text as it is; a line in it needs its own newline. Nothing for people is printed where the output is JSON Lines: neither text,
    /// nor lines, nor tables.
    pub fn text(&mut self, text: &str) -> Result<(), CliError> {
        match self.json {
            true => Ok(()),
            false => self.put(text),
        }
    }

    fn put(&mut self, text: &str) -> Result<(), CliError> {
        let Output { to, works, .. } = self;
        works.suspend(|| to.write_all(text.as_bytes())).map_err(CliError::Output)
    }

    /// Prints a line of text, folded where the terminal is narrower.
    pub fn line(&mut self, line: &str) -> Result<(), CliError> {
        match width() {
            Some(width) => self.text(&fold(line, width))?,
            None => self.text(line)?,
        }
        self.text("\n")
    }

    /// Clears a terminal, for output that is to stand in place of the one before; elsewhere an empty line divides them.
    pub fn begin_anew(&mut self) -> Result<(), CliError> {
        match io::stdout().is_terminal() {
            true => self.text("\x1b[H\x1b[2J"),
            false => self.text("\n"),
        }
    }

    /// Prints one JSON object on a line of its own: the schema's number, the kind, then these fields. Where the output is text, nothing is
    /// printed.
    pub fn object(&mut self, kind: &str, fields: &impl Serialize) -> Result<(), CliError> {
        self.value(&Object::new(kind, fields))
    }

    /// Prints, as [`Output::object`] does, an object that has its number and kind already. The line is flushed, so that readers see it at once.
    pub fn value(&mut self, value: &impl Serialize) -> Result<(), CliError> {
        if !self.json {
            return Ok(());
        }
        serde_json::to_writer(&mut self.to, value).map_err(|e| CliError::Output(e.into()))?;
        self.put("\n")?;
        self.flush()
    }

    /// Prints a table, without borders.
    pub fn table(&mut self, table: &Table) -> Result<(), CliError> {
        self.table_marking(table, |_| false)
    }

    /// Prints a table that is left without `lesser` columns, the first one first, where the terminal is too narrow.
    pub fn table_without(&mut self, table: &Table, lesser: &[&str]) -> Result<(), CliError> {
        self.fitted(table, lesser, |_| false)
    }

    /// Prints a table, and where the terminal has colours in bold the lines for which `chosen` is true.
    pub fn table_marking(&mut self, table: &Table, chosen: impl Fn(&str) -> bool) -> Result<(), CliError> {
        self.fitted(table, &[], chosen)
    }

    fn fitted(
        &mut self,
        table: &Table,
        lesser: &[&str],
        chosen: impl Fn(&str) -> bool,
    ) -> Result<(), CliError> {
        let (lines, out) = match table.width() {
            Some(width) => fitted(table, usize::from(width), lesser),
            None => (table.lines().collect(), Vec::new()),
        };
        for line in lines {
            match chosen(&line) {
                true => self.text(&style(line.trim_end()).bold().green().to_string())?,
                false => self.text(line.trim_end())?,
            }
            self.text("\n")?;
        }
        match out.is_empty() {
            true => Ok(()),
            false => self.line(&format!("({} left out: the terminal is too narrow)", out.join(", "))),
        }
    }

    /// Flushes the buffered output.
    pub fn flush(&mut self) -> Result<(), CliError> {
        let Output { to, works, .. } = self;
        works.suspend(|| to.flush()).map_err(CliError::Output)
    }

    /// Prints a warning on standard error.
    pub fn warn(&self, message: &str) {
        self.remark(&style("lineweave: warning:").for_stderr().yellow().to_string(), message);
    }

    /// Prints something that is no fault on standard error.
    pub fn note(&self, message: &str) {
        self.remark("lineweave:", message);
    }

    fn remark(&self, begins: &str, message: &str) {
        if !self.quiet {
            self.works.suspend(|| {
                let _ = writeln!(io::stderr(), "{begins} {message}");
            });
        }
    }

    /// Calls `f`, which chooses or makes plans for a question. If that takes long, prints the reason and advice.
    pub fn while_slow<T>(&self, about: &Question, f: impl FnOnce() -> T) -> T {
        let (done, over) = mpsc::channel::<()>();
        std::thread::scope(|scope| {
            // If no thread can be started, no remark is printed.
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

    /// Returns a progress bar of work that is not timed: it appears a second after the command began, and moves while a step takes long.
    pub fn progress_of_work(&self, steps: u64) -> ProgressBar {
        let after = FIRST.saturating_sub(self.works.elapsed());
        self.works.finish_and_clear();
        let bar = ProgressBar::with_draw_target(Some(steps), ProgressDrawTarget::hidden());
        let bar = self.shown(bar, BAR);
        self.appears(&bar, after);
        bar
    }

    /// Returns a progress bar of `steps` steps on standard error; if that is no terminal, lines are printed from time to time. It is drawn
    /// at each step only, so that what is timed meanwhile is not disturbed.
    pub fn progress(&self, steps: u64) -> ProgressBar {
        self.works.finish_and_clear();
        self.works.set_draw_target(ProgressDrawTarget::hidden());
        let target = match self.redraws() {
            true => screen::target(),
            false => ProgressDrawTarget::hidden(),
        };
        let bar = ProgressBar::with_draw_target(Some(steps), target);
        self.shown(bar, BAR)
    }

    /// Returns whether output can be redrawn in its place.
    fn redraws(&self) -> bool {
        let terminal =
            io::stderr().is_terminal() && std::env::var_os("TERM").is_none_or(|term| term != "dumb");
        terminal && !self.quiet
    }

    /// Returns a bar with a template. Where nothing can be redrawn, lines are printed instead.
    fn shown(&self, bar: ProgressBar, template: &str) -> ProgressBar {
        if !self.redraws() && !self.quiet {
            let shown = bar.downgrade();
            in_background(move || lines(&shown));
        }
        match ProgressStyle::with_template(template) {
            Ok(style) => bar.with_style(style),
            Err(_) => bar,
        }
    }
}

/// Prints the progress of a bar from time to time, until it is finished.
fn lines(bar: &WeakProgressBar) {
    loop {
        std::thread::park_timeout(BETWEEN_LINES);
        let Some(bar) = bar.upgrade().filter(|bar| !bar.is_finished()) else { return };
        let far = bar.length().map(|steps| format!("{} %, ", bar.position() * 100 / steps.max(1)));
        let (seconds, message) = (bar.elapsed().as_secs(), bar.message());
        let _ = writeln!(
            io::stderr(),
            "lineweave: at work: {}{seconds} s{}{message}",
            far.unwrap_or_default(),
            if message.is_empty() { "" } else { "  " }
        );
    }
}

/// Starts a thread that ends with the program. If it cannot be started, nothing is shown.
fn in_background(work: impl FnOnce() + Send + 'static) {
    let _ = std::thread::Builder::new().spawn(work);
}

/// Returns a table with this heading; the columns with indices in `numbers` are aligned to the right.
pub fn table(heading: &[&str], numbers: &[usize]) -> Table {
    let mut table = Table::new();
    table.load_preset(presets::NOTHING);
    if let Some(width) = width() {
        table.set_content_arrangement(ContentArrangement::Dynamic).set_width(width as u16);
    }
    table.set_header(heading.iter().map(|h| h.to_uppercase()));
    for (i, column) in table.column_iter_mut().enumerate() {
        column.set_padding((0, 2));
        if numbers.contains(&i) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    table
}

/// Returns the width of the terminal that shows standard output, or `None` if it is no terminal.
pub fn width() -> Option<usize> {
    let size = rustix::termios::tcgetwinsize(io::stdout()).ok()?;
    // A terminal that does not know its width says 0.
    (size.ws_col > 0).then(|| usize::from(size.ws_col).max(NARROWEST))
}

/// Number of names from which a list is shown in columns.
const MANY: usize = 8;

/// Puts a list of many names, which commas divide in a sentence, in columns on lines of their own.
pub fn names_in_columns(message: &str) -> String {
    let parts: Vec<&str> = message.split(", ").collect();
    let is_name = |part: &str| !part.is_empty() && !part.contains([' ', '\n', '`']);
    let Some(begin) = parts.windows(MANY).position(|parts| parts[1..].iter().all(|part| is_name(part)))
    else {
        return message.to_owned();
    };
    let names = parts[begin + 1..].iter().take_while(|part| is_name(part)).count();
    let (before, first) = parts[begin].rsplit_once([' ', '\n']).unwrap_or(("", parts[begin]));
    let mut listed: Vec<String> = vec![first.to_owned()];
    listed.extend(parts[begin + 1..=begin + names].iter().map(|name| (*name).to_owned()));
    let mut after = parts[begin + names + 1..].join(", ");
    // The last name ends the sentence, or words follow it without a comma.
    let end = after.find(|c: char| !c.is_ascii_alphanumeric() && c != '-').unwrap_or(after.len());
    if after[end..].starts_with("...") {
        listed.push(after.drain(..end + 3).collect());
    } else if end > 0 && !after.starts_with("or ") {
        listed.push(after.drain(..end).collect());
    }
    let before = [&parts[..begin], &[before]].concat().join(", ");
    let after = after.trim_start_matches(['.', ' ']);
    let gap = if after.is_empty() || after.starts_with('\n') { "" } else { "\n" };
    format!("{before}\n{}{gap}{after}", columns(&listed))
}

/// Arranges names in as many columns as the terminal is wide, or 80 characters.
pub fn columns(names: &[String]) -> String {
    let longest = names.iter().map(|name| name.len()).max().unwrap_or_default() + 2;
    let across = ((width().unwrap_or(80) - 2) / longest).max(1);
    let line = |row: &[String]| {
        let row: String = row.iter().map(|name| format!("{name:longest$}")).collect();
        format!("  {}", row.trim_end())
    };
    names.chunks(across).map(line).collect::<Vec<_>>().join("\n")
}

/// Returns the name of a value on the command line.
pub fn name_of(value: &impl ValueEnum) -> String {
    value.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
}

/// Returns a word as a shell would read it.
pub fn shell_word(word: &str) -> String {
    // Neither a variable nor an argument has a zero byte.
    shlex::try_quote(word).map_or_else(|_| word.to_owned(), String::from)
}

#[cfg(test)]
mod tests {
    use super::names_in_columns;

    #[test]
    fn lists_of_names_stand_in_columns() {
        let list = "a-1, b, c, d, e, f, g, h, i-longer-name-that-fills-the-line";
        let columns = super::columns(&list.split(", ").map(str::to_owned).collect::<Vec<_>>());
        for (before, after, gap) in [
            ("no `x`, or y: there are", "", ""),
            ("one of", ", or the path of a .toml file", "\nor the path of a .toml file"),
            ("one of", "\n\nFor more", "\n\nFor more"),
            ("is none of", ". Correct it, or not", "\nCorrect it, or not"),
        ] {
            assert_eq!(
                names_in_columns(&format!("{before} {list}{after}")),
                format!("{before}\n{columns}{gap}"),
                "{after}"
            );
        }
        for as_it_is in
            ["", "a, b, c", "a, b and c, d, e, f, g", "many: a b, c d, e f, g h, i j, k l, m n, o p, q"]
        {
            assert_eq!(names_in_columns(as_it_is), as_it_is);
        }
    }
}
