//! Refused input: each error says what was expected, what was found and what to do, and nothing panics.

use crate::common::{profile, Scratch};
use std::io::{BufRead, BufReader};
use std::process::Stdio;

#[test]
fn command_lines_that_mean_nothing_are_errors_of_usage() {
    let scratch = Scratch::new();
    scratch.run(&[]).refused(2, &["expected a command", "Usage"]);
    scratch.line("no-such-command").refused(2, &["no-such-command"]);
    scratch.line("papers --help").refused(2, &["did you mean `lab papers`"]);
    scratch.line("plan").refused(2, &["COLLECTIVE"]);
    scratch.line("plan nope").refused(2, &["unknown collective `nope`", "barrier"]);
    scratch.line("plan barrier --ranks -3").refused(2, &["-3"]);
    scratch.line("plan bcast --bytes 12q").refused(2, &["expected bytes", "found the unit `q`"]);
    scratch.line("plan reduce --bytes 8 --elements f23").refused(2, &["f23"]);
    scratch.line("plan barrier --param m=2").refused(2, &["ALGORITHM"]);
    scratch.line("draw --plan x --ranks 3").refused(2, &["--plan", "--ranks"]);
    scratch.line("draw barrier -o x.png").refused(2, &["ends in .svg"]);
    scratch.line("explain barrier --machine a --profile b").refused(2, &["--profile"]);
    scratch.line("completions tcsh").refused(2, &["tcsh", "bash"]);
}

#[test]
fn problems_without_a_plan_are_refused_with_the_reason() {
    let scratch = Scratch::new();
    scratch.line("plan barrier --ranks 0").refused(1, &["at least 1 rank"]);
    scratch.line("plan barrier --ranks 4097").refused(1, &["4097 ranks", "at most 4096"]);
    scratch.line("plan barrier -n 99999999999999").refused(1, &["99999999999999 ranks"]);
    let root = ["plan", "bcast", "--ranks", "4", "--root", "9", "--bytes", "8"];
    scratch.run(&root).refused(1, &["root 9", "0 to 3"]);
    scratch.line("plan bcast --ranks 4").refused(1, &["--bytes"]);
    scratch.line("explain bcast").refused(1, &["lineweave explain bcast 64KiB"]);
    scratch.line("plan reduce --ranks 4 --bytes 10 --elements f32").refused(1, &["10 bytes", "4-byte"]);
    scratch.line("plan bcast nope --bytes 8").refused(1, &["no algorithm `nope`", "binomial"]);
    scratch.line("verify nope").refused(1, &["`nope`", "COLLECTIVE/ALGORITHM"]);
    scratch.line("verify bcast/nope").refused(1, &["no algorithm `nope`"]);
}

#[test]
fn files_that_are_not_what_they_should_be_are_refused_with_a_line() {
    let scratch = Scratch::new();
    let bad = scratch.file("bad.toml", "not a profile");
    scratch.run(&["fit", &bad]).refused(1, &["bad.toml", "expected a profile", "line 1"]);
    scratch.run(&["explain", "barrier", "--profile", &bad]).refused(1, &["bad.toml", "line 1"]);
    scratch.run(&["explain", "barrier", "--machine", &bad]).refused(1, &["machine description", "line 1"]);
    scratch.run(&["verify", &bad]).refused(1, &["expected a plan", "line 1"]);
    scratch.run(&["draw", "--plan", &bad]).refused(1, &["expected a plan", "line 1"]);
    let missing = scratch.path().join("missing.toml");
    let missing = missing.to_str().unwrap();
    scratch.run(&["fit", missing]).refused(1, &["missing.toml", "readable profile"]);
    scratch.run(&["explain", "barrier", "--machine", missing]).refused(1, &["readable machine description"]);
    scratch.line("explain barrier --machine nope").refused(1, &["`nope`", "graviton3"]);
    scratch.line("info --topology pack:nope").refused(1, &["pack:nope"]);
    scratch.line("info --topology ./missing.xml").refused(1, &["missing.xml"]);
    scratch.line("fit").refused(1, &["no profile of this machine", "lineweave measure"]);
    scratch.line("man /dev/null/man").refused(1, &["/dev/null/man"]);
}

#[test]
fn files_that_never_end_are_not_read_on() {
    let scratch = Scratch::new();
    let zero = scratch.path().join("zero.toml");
    std::os::unix::fs::symlink("/dev/zero", &zero).unwrap();
    let zero = zero.to_str().unwrap();
    for arguments in [
        &["fit", zero][..],
        &["fit", "--profile", zero],
        &["explain", "barrier", "--profile", zero],
        &["explain", "barrier", "--machine", zero],
        &["report", "--profile", zero],
        &["report", "--record", zero],
        &["lab", "models", "--collective", "bcast", "--bytes", "8", "--profile", zero],
        &["profile", "diff", zero, zero],
        &["profile", "link", zero],
        &["verify", zero],
        &["draw", "--plan", zero],
        &["bench", zero],
    ] {
        scratch.run(arguments).refused(1, &["zero", "more than 256 MiB"]);
    }
    scratch.line("info --topology /dev/zero").refused(1, &["zero", "no regular file"]);
    let mut endless = scratch.command(&["verify", "-"]);
    let output = endless.stdin(std::fs::File::open(zero).unwrap()).output().unwrap();
    assert!(String::from_utf8_lossy(&output.stderr).contains("more than 256 MiB"));
    let mut by_variable = scratch.command(&["explain", "barrier"]);
    let output = by_variable.env("LINEWEAVE_PROFILE", zero).output().unwrap();
    assert!(String::from_utf8_lossy(&output.stderr).contains("no regular file"));
}

#[test]
fn directories_that_were_mistyped_are_not_made() {
    let scratch = Scratch::new();
    let missing = scratch.path().join("mistyped");
    let file = missing.join("file.svg");
    let (directory, file) = (missing.to_str().unwrap(), file.to_str().unwrap());
    let simulate = ["lab", "simulate", "--collective", "barrier", "--algorithm", "tree"];
    for arguments in [
        &["report", "--machine", "generic-x86", "-o", file][..],
        &["measure", "--quick", "-o", file],
        &["lab", "models", "--collective", "bcast", "-o", file],
        &["lab", "what-if", "-o", file],
        &["draw", "barrier", "-o", file],
        &[&simulate[..], &["-o", file]].concat(),
        &[&simulate[..], &["--plot", file]].concat(),
        &[&simulate[..], &["--heat", file]].concat(),
        &["profile", "link", file, "--to", file],
        &["lab", "papers", "--figures", directory],
        &["bench", "--record", directory],
    ] {
        scratch.run(arguments).refused(2, &["there is no directory", directory]);
        assert!(!missing.exists(), "{arguments:?}");
    }
}

#[test]
fn a_plan_that_takes_long_says_so_and_what_to_do() {
    let scratch = Scratch::new();
    let mut command = scratch.command(&["plan", "alltoall", "--ranks", "4096", "--bytes", "1GiB"]);
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let said = BufReader::new(child.stderr.take().unwrap()).lines().next();
    child.kill().unwrap();
    child.wait().unwrap();
    let said = said.expect("a warning").unwrap();
    for words in ["warning", "more than 3 s", "alltoall among 4096 ranks", "Ctrl-C", "Fewer ranks"] {
        assert!(said.contains(words), "`{said}` lacks `{words}`");
    }
}

#[test]
fn a_limit_on_files_is_named_as_a_number() {
    let lineweave = env!("CARGO_BIN_EXE_lineweave");
    let limited = format!("ulimit -f 4; exec {lineweave} run -n 2 -- true");
    let output = std::process::Command::new("sh").args(["-c", &limited]).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("files are limited to ") && said.contains("`ulimit -f`"), "{said}");
    assert!(!said.contains("Some("), "{said}");
}

#[test]
fn truncated_profiles_plans_and_machines_never_panic() {
    let scratch = Scratch::new();
    let plan = scratch.line("plan allreduce -n 3 -b 64").accepted();
    let machine = include_str!("../../../../machines/generic-x86.toml");
    for part in 1..6 {
        let cut = |text: &str| text[..text.len() * part / 6].to_owned();
        let file = scratch.file("cut", &cut(&profile()));
        // A profile may be cut between cells, which leaves a shorter valid one.
        let fit = scratch.run(&["fit", &file]);
        assert!(fit.status == Some(0) || fit.err.starts_with("lineweave: "), "{fit:?}");
        scratch.run_with_input(&["verify", "-"], &cut(&plan)).refused(1, &["expected", "line "]);
        let file = scratch.file("cut.toml", &cut(machine));
        scratch.run(&["explain", "barrier", "--machine", &file]).refused(1, &["line "]);
    }
}

#[test]
fn bad_settings_are_refused_with_what_they_take() {
    let scratch = Scratch::new();
    let output = scratch.command(&["info"]).env("LINEWEAVE_WAIT", "sometimes").output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let message = String::from_utf8(output.stderr).unwrap();
    assert!(message.starts_with("lineweave: LINEWEAVE_WAIT=`sometimes`: expected spin"), "{message}");
}

#[test]
fn settings_without_effect_are_warned_about() {
    let scratch = Scratch::new();
    let barrier = ["plan", "barrier", "-n", "2", "--root", "1", "--elements", "f32", "--direct", "-b", "8"];
    let idle =
        ["--root has no effect", "--elements has no effect", "--direct has no effect", "--bytes has no"];
    scratch.run(&barrier).warned(&idle);
    scratch.run(&[&barrier[..], &["--quiet"]].concat()).accepted();
    scratch.line("list --topology core:2").warned(&["--topology has no effect"]);
    scratch.line("list barrier --machine graviton3").warned(&["--machine has no effect"]);
    scratch.line("verify barrier/tree --max-ranks 2 --root 1").warned(&["--root has no"]);
    let output = scratch.command(&["explain", "barrier"]).env("LINEWEAVE_TIMEUOT", "1").output().unwrap();
    let message = String::from_utf8(output.stderr).unwrap();
    assert!(message.contains("LINEWEAVE_TIMEUOT has no effect"), "{message}");
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    let scratch = Scratch::new();
    let arguments = ["plan", "barrier", "all-to-all", "-n", "200"];
    let mut command = scratch.command(&arguments);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), output.stderr.as_slice()), (Some(0), &b""[..]));
    // The output is longer than a pipe holds, so writing must have failed.
    assert!(scratch.run(&arguments).accepted().len() > 1 << 17);
}

#[test]
fn output_that_cannot_be_written_is_an_error() {
    let scratch = Scratch::new();
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let mut command = scratch.command(&["list"]);
    let output = command.stdout(full).stderr(Stdio::piped()).spawn().unwrap().wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let message = String::from_utf8(output.stderr).unwrap();
    assert!(message.starts_with("lineweave: standard output: "), "{message}");
}
