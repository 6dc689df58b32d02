//! Runs the command as a process, with an environment and a cache of its own.

use serde_json::Value;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// A directory that is removed when the test ends.
pub struct Scratch(PathBuf);

impl Scratch {
    pub fn new() -> Scratch {
        // Each test runs in a thread of its own.
        let name = format!("lineweave-cli-{}-{:?}", std::process::id(), std::thread::current().id());
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&path).unwrap();
        Scratch(path)
    }

    pub fn path(&self) -> &Path {
        &self.0
    }

    pub fn file(&self, name: &str, text: &str) -> String {
        let path = self.at(name);
        std::fs::write(&path, text).unwrap();
        path
    }

    /// Returns the path of a file in this directory, which need not exist.
    pub fn at(&self, name: &str) -> String {
        self.0.join(name).to_str().unwrap().to_owned()
    }

    /// Returns the command without the caller's settings, and with this directory as its cache.
    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_lineweave"));
        for (name, _) in std::env::vars_os().filter(|(n, _)| n.to_string_lossy().starts_with("LINEWEAVE_")) {
            command.env_remove(name);
        }
        command.env("XDG_CACHE_HOME", self.path().join("cache")).args(arguments);
        command
    }

    pub fn run(&self, arguments: &[&str]) -> Outcome {
        Outcome::of(arguments, self.command(arguments).stdin(Stdio::null()).output().unwrap())
    }

    /// Runs the command with the words of a line, which spaces divide.
    pub fn line(&self, line: &str) -> Outcome {
        self.run(&line.split(' ').collect::<Vec<_>>())
    }

    pub fn run_with_input(&self, arguments: &[&str], input: &str) -> Outcome {
        let mut child = self
            .command(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
        Outcome::of(arguments, child.wait_with_output().unwrap())
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// The result of a run.
#[derive(Debug)]
pub struct Outcome {
    pub arguments: String,
    pub status: Option<i32>,
    pub out: String,
    pub err: String,
}

impl Outcome {
    pub fn of(arguments: &[&str], output: Output) -> Outcome {
        // The machine decides how long a command takes, and so whether it shows that it works.
        let said = String::from_utf8(output.stderr).unwrap();
        let remarks = said.split_inclusive('\n').filter(|line| !line.starts_with("lineweave: at work: "));
        Outcome {
            arguments: arguments.join(" "),
            status: output.status.code(),
            out: String::from_utf8(output.stdout).unwrap(),
            err: remarks.collect(),
        }
    }

    /// Checks that the command succeeded without output on standard error, and returns its output.
    #[track_caller]
    pub fn accepted(self) -> String {
        assert_eq!((self.status, self.err.as_str()), (Some(0), ""), "lineweave {}", self.arguments);
        assert!(!self.out.is_empty(), "lineweave {} printed nothing", self.arguments);
        self.out
    }

    /// Checks that the command succeeded with these remarks.
    #[track_caller]
    pub fn warned(self, remarks: &[&str]) -> String {
        assert_eq!(self.status, Some(0), "lineweave {}: {}", self.arguments, self.err);
        for remark in remarks {
            assert!(
                self.err.contains(remark),
                "lineweave {}: `{}` lacks `{remark}`",
                self.arguments,
                self.err
            );
        }
        self.out
    }

    /// Checks that the command failed with this status, and a message with the usual beginning and each of these words.
    #[track_caller]
    pub fn refused(&self, status: i32, words: &[&str]) {
        assert_eq!(self.status, Some(status), "lineweave {}: {}", self.arguments, self.err);
        assert!(self.err.starts_with("lineweave: "), "lineweave {}: {}", self.arguments, self.err);
        assert!(!self.err.contains("panicked"), "lineweave {}: {}", self.arguments, self.err);
        for word in words {
            assert!(self.err.contains(word), "lineweave {}: `{}` lacks `{word}`", self.arguments, self.err);
        }
    }

    /// Returns the printed objects, one for each line; checks that schema and kind come first, and that kinds and keys
    /// are documented.
    #[track_caller]
    pub fn objects(self) -> Vec<Value> {
        let documented =
            std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/json.md"))
                .unwrap();
        let arguments = self.arguments.clone();
        let objects: Vec<Value> = self
            .accepted()
            .lines()
            .map(|line| {
                assert!(line.starts_with(r#"{"schema":1,"kind":""#), "lineweave {arguments}: {line}");
                serde_json::from_str(line).unwrap_or_else(|e| panic!("lineweave {arguments}: {e}: {line}"))
            })
            .collect();
        for object in &objects {
            let kind = object["kind"].as_str().unwrap();
            let section = documented
                .split("\n## ")
                .find(|s| s.lines().next().is_some_and(|title| title.contains(&format!("`{kind}`"))))
                .unwrap_or_else(|| panic!("kind {kind} is not in docs/reference/json.md"));
            for key in object.as_object().unwrap().keys().filter(|k| *k != "schema" && *k != "kind") {
                assert!(
                    section.contains(&format!("`{key}`")),
                    "key {key} of {kind} is not in docs/reference/json.md"
                );
            }
        }
        objects
    }
}

/// Returns the first object of a kind.
#[track_caller]
pub fn first<'a>(objects: &'a [Value], kind: &str) -> &'a Value {
    objects.iter().find(|o| o["kind"] == kind).unwrap_or_else(|| panic!("no object of kind {kind}"))
}

/// Returns the objects of a kind.
pub fn of_kind<'a>(objects: &'a [Value], kind: &str) -> Vec<&'a Value> {
    objects.iter().filter(|o| o["kind"] == kind).collect()
}

/// Returns the text of a profile's cell with these factors, whose samples are this far from the median.
pub fn cell(probe: &str, factors: &[(&str, &str)], median: f64, within: f64) -> String {
    let factors: String = factors.iter().map(|(name, value)| format!("{name} = \"{value}\"\n")).collect();
    let (low, high) = (median - within, median + within);
    format!(
        "[[cells]]\nprobe = \"{probe}\"\nunit = \"ns\"\n[cells.factors]\n{factors}[cells.stats]\n\
         median = {median}\nci_low = {low}\nci_high = {high}\np5 = {low}\np95 = {high}\nmin = {low}\n\
         samples = 400\ndisturbed = 0\n"
    )
}

/// Returns a small profile: the cells of one probe on a machine with two CPUs.
pub fn profile() -> String {
    let of = |probe, layout, median| cell(probe, &[("layout", layout), ("level", "l3")], median, 1.0);
    format!(
        "schema = 1\nversion = \"0.1.0\"\nmeasured_at = \"2026-01-01T00:00:00Z\"\n[machine]\ncpu = \"A CPU\"\n\
         cpus = 2\nline_bytes = 64\ntopology = \"pack:1 numa:1 l3:1(size=33554432) core:2 pu:1\"\n[[unidentified]]\nwhat = \"T_C\"\n\
         because = \"contention needs 3 CPUs and 2 are usable\"\n{}{}{}{}",
        of("signal", "alone", 60.0),
        of("signal", "paired", 55.0),
        of("exchange", "alone", 110.0),
        of("exchange", "paired", 52.0)
    )
}
