//! The shell examples of docs/guide.md, run as they are printed.

use crate::common::Scratch;
use std::process::Command;

const GUIDE: &str = include_str!("../../../../docs/guide.md");

/// The lines of its shell blocks that are run: in the guide's order, since later ones use what earlier ones wrote.
fn lines() -> Vec<&'static str> {
    let mut lines = Vec::new();
    let (mut inside, mut skip) = (false, false);
    for line in GUIDE.lines() {
        match line {
            "```sh" if !skip => inside = true,
            "```" => (inside, skip) = (false, false),
            _ if line.starts_with("<!-- not run: ") => skip = true,
            _ if inside => lines.push(line),
            _ => {}
        }
    }
    lines
}

#[test]
fn shell_lines_of_the_guide_do_what_they_say() {
    let scratch = Scratch::new();
    let own = std::path::Path::new(env!("CARGO_BIN_EXE_lineweave")).parent().unwrap();
    let path = format!("{}:{}", own.display(), std::env::var("PATH").unwrap());
    let lines = lines();
    assert!(lines.len() > 15, "{lines:?}");
    for line in lines {
        let done = Command::new("sh")
            .args(["-ec", line])
            .current_dir(scratch.path())
            .env("PATH", &path)
            .env("XDG_CACHE_HOME", scratch.path())
            .output()
            .unwrap();
        let (out, err) = (String::from_utf8_lossy(&done.stdout), String::from_utf8_lossy(&done.stderr));
        assert!(done.status.success() && !out.is_empty(), "{line}\n{out}\n{err}");
        if line.contains("run -n 3") {
            let mut ranks: Vec<&str> = out.lines().collect();
            ranks.sort_unstable();
            assert_eq!(ranks, ["rank 0", "rank 1", "rank 2"]);
        }
    }
}
