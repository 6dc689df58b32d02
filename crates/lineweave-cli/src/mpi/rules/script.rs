//! The file of `export` lines: first comments on its purpose and its confidence, then the settings.

use super::Variables;
use crate::output::shell_word;
use std::fmt::Write;

/// The comments at the head of a script.
#[derive(Clone, PartialEq, Debug)]
pub struct Head {
    /// The library's name and version.
    pub mpi: String,
    /// The machine.
    pub machine: String,
    /// Date of the measurement, in UTC.
    pub date: String,
    /// The command that made the script.
    pub command: String,
    /// Number of ranks that the rules are for.
    pub ranks: usize,
    /// Confidence in the rules, in words.
    pub confidence: String,
    /// One line for each rule.
    pub rules: Vec<String>,
}

impl Head {
    /// Returns the script.
    pub fn script(&self, variables: &Variables) -> String {
        let mut text = String::from("# Algorithms of collectives: source this file before mpirun.\n");
        let mut line = |name: &str, value: &str| {
            let _ = writeln!(text, "# {name}: {value}");
        };
        line("mpi", &self.mpi);
        line("machine", &self.machine);
        line("date", &self.date);
        line("command", &self.command);
        line("ranks", &self.ranks.to_string());
        line("confidence", &self.confidence);
        self.rules.iter().for_each(|rule| line("rule", rule));
        for (name, value) in variables {
            let _ = writeln!(text, "export {name}={}", shell_word(value));
        }
        text
    }
}

/// Returns the variables that the `export` lines of a script set.
///
/// # Errors
/// The line that is no `export` line.
pub fn exports(text: &str) -> Result<Variables, String> {
    let mut variables = Variables::new();
    for (number, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let pair = line.strip_prefix("export ").and_then(|pair| pair.split_once('='));
        let value = |text| match shlex::split(text).unwrap_or_default().as_slice() {
            [] if text.is_empty() => Some(String::new()),
            [word] => Some(word.clone()),
            _ => None,
        };
        let pair = pair.filter(|(name, _)| name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_'));
        match pair.and_then(|(name, text)| Some((name.to_owned(), value(text)?))) {
            Some(pair) => variables.push(pair),
            None => return Err(format!("line {}: expected `export NAME=VALUE`, found `{line}`", number + 1)),
        }
    }
    Ok(variables)
}

/// Returns the number of ranks that a script is for.
pub fn ranks(text: &str) -> Option<usize> {
    text.lines().find_map(|line| line.strip_prefix("# ranks: ")?.trim().parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head() -> Head {
        Head {
            mpi: "MPICH 5".into(),
            machine: "a CPU, 2 CPUs".into(),
            date: "2026-01-02T03:04:05Z".into(),
            command: "lineweave tune".into(),
            ranks: 4,
            confidence: "3 rounds".into(),
            rules: vec!["bcast to 64 B: binomial".into()],
        }
    }

    #[test]
    fn scripts_say_what_they_are_and_are_read_back() {
        let variables: Variables = vec![
            ("I_MPI_ADJUST_BCAST".into(), "1:0-8;2:9-9".into()),
            ("A".into(), "it's".into()),
            ("B".into(), "^han".into()),
        ];
        let text = head().script(&variables);
        assert!(
            text.contains("\nexport I_MPI_ADJUST_BCAST='1:0-8;2:9-9'\nexport A=\"it's\"\nexport B='^han'\n"),
            "{text}"
        );
        assert_eq!(exports(&text), Ok(variables));
        assert_eq!(ranks(&text), Some(4));
        assert_eq!(ranks("# rank: 4"), None);
        assert_eq!(exports("ls").unwrap_err(), "line 1: expected `export NAME=VALUE`, found `ls`");
    }
}
