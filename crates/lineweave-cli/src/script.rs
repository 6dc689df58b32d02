//! Files of `export` lines: first comments on their purpose and their confidence, then the settings.

use crate::output::shell_word;
use std::fmt::Write;

/// The kind of such a file, for errors.
pub const WHAT: &str = "file of export lines";

/// Environment variables, each with its value.
pub type Variables = Vec<(String, String)>;

/// Returns a list of names and values as variables.
pub fn variables(list: &[(&str, &str)]) -> Variables {
    list.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

/// The comments at the head of a script.
#[derive(Clone, PartialEq, Debug)]
pub struct Head {
    /// The first line.
    pub title: &'static str,
    /// The facts that follow, each with its name.
    pub facts: Vec<(&'static str, String)>,
}

impl Head {
    /// Returns the script with this body.
    pub fn script(&self, body: &str) -> String {
        let mut text = format!("# {}\n", self.title);
        for (name, value) in &self.facts {
            let _ = writeln!(text, "# {name}: {value}");
        }
        text + body
    }
}

/// Returns one `export` line for each variable.
pub fn export_lines(variables: &Variables) -> String {
    variables.iter().map(|(name, value)| format!("export {name}={}\n", shell_word(value))).collect()
}

/// Returns the variables that the `export` lines of a script set.
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

/// Returns the value of a fact in the comments at a script's head.
pub fn fact<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    text.lines()
        .find_map(|line| line.strip_prefix("# ")?.strip_prefix(name)?.strip_prefix(": "))
        .map(str::trim)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scripts_say_what_they_are_and_are_read_back() {
        let variables: Variables = vec![
            ("I_MPI_ADJUST_BCAST".into(), "1:0-8;2:9-9".into()),
            ("A".into(), "it's".into()),
            ("B".into(), "^han".into()),
        ];
        let facts = vec![("mpi", "MPICH 5".to_owned()), ("ranks", "4".to_owned())];
        let head = Head { title: "Source this file before mpirun.", facts };
        let text = head.script(&export_lines(&variables));
        assert!(
            text.ends_with("\nexport I_MPI_ADJUST_BCAST='1:0-8;2:9-9'\nexport A=\"it's\"\nexport B='^han'\n"),
            "{text}"
        );
        assert_eq!(exports(&text), Ok(variables));
        assert_eq!(
            (fact(&text, "ranks"), fact(&text, "mpi"), fact(&text, "rank")),
            (Some("4"), Some("MPICH 5"), None)
        );
        assert_eq!(exports("ls").unwrap_err(), "line 1: expected `export NAME=VALUE`, found `ls`");
    }
}
