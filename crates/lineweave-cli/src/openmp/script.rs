//! The file of a runtime's settings: `export` lines for each number of threads, as a shell script that reads OMP_NUM_THREADS.

use crate::script::{export_lines, exports, Variables};
use std::fmt::Write;

/// The settings for a number of threads.
pub type Choice = (usize, Variables);

/// Returns the body of the script. A program that is started without OMP_NUM_THREADS has as many threads as CPUs.
pub fn body(choices: &[Choice], cpus: usize) -> String {
    let mut text = format!("case ${{OMP_NUM_THREADS:-{cpus}}} in\n");
    for (threads, variables) in choices {
        let _ = writeln!(text, "{threads} | {threads},*)");
        for line in export_lines(variables).lines() {
            let _ = writeln!(text, "    {line}");
        }
        let _ = writeln!(text, "    ;;");
    }
    text + "esac\n"
}

/// Reads the body of such a script, comments before it included.
pub fn choices(text: &str) -> Result<Vec<Choice>, String> {
    let mut choices: Vec<Choice> = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty()
            || line.starts_with('#')
            || line.starts_with("case ")
            || line == ";;"
            || line == "esac"
        {
            continue;
        }
        let threads =
            line.split_once(" | ").filter(|_| line.ends_with(",*)")).and_then(|(n, _)| n.parse().ok());
        match (threads, choices.last_mut()) {
            (Some(threads), _) => choices.push((threads, Variables::new())),
            (None, Some((_, variables))) => {
                variables.extend(exports(line).map_err(|_| expected(number, line))?);
            }
            (None, None) => return Err(expected(number, line)),
        }
    }
    Ok(choices)
}

fn expected(number: usize, line: &str) -> String {
    format!("line {}: expected `THREADS | THREADS,*)` or `export NAME=VALUE`, found `{line}`", number + 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    fn two() -> Vec<Choice> {
        vec![
            (2, vec![("OMP_WAIT_POLICY".into(), "active".into())]),
            (4, vec![("KMP_PLAIN_BARRIER".into(), "1,1".into()), ("KMP_BLOCKTIME".into(), "0".into())]),
        ]
    }

    #[test]
    fn scripts_are_read_back() {
        let text = format!("# runtime: libomp\n{}", body(&two(), 2));
        assert_eq!(choices(&text), Ok(two()));
        let refused = choices("export A=1\n").unwrap_err();
        assert!(refused.starts_with("line 1: expected `THREADS"), "{refused}");
        assert!(choices("2 | 2,*)\nrm -r x\n").is_err());
    }

    #[test]
    fn the_shell_takes_the_settings_of_its_number_of_threads() {
        let said = |threads: Option<&str>| {
            let mut shell = Command::new("sh");
            shell.env_remove("OMP_NUM_THREADS").env_remove("KMP_BLOCKTIME").env_remove("OMP_WAIT_POLICY");
            shell.args(["-c", &format!("{}\necho $KMP_BLOCKTIME,$OMP_WAIT_POLICY", body(&two(), 2))]);
            if let Some(threads) = threads {
                shell.env("OMP_NUM_THREADS", threads);
            }
            String::from_utf8(shell.output().expect("a shell").stdout).expect("text")
        };
        assert_eq!(said(Some("4")), "0,\n");
        assert_eq!(said(Some("4,2")), "0,\n");
        assert_eq!(said(None), ",active\n");
        assert_eq!(said(Some("3")), ",\n");
    }
}
