//! Tests of C programs against the shared library. Without a C compiler they are skipped, with a message.

// The tests of lost ranks are the same as for ranks in Rust.
#[path = "../../lineweave/tests/faults/losing.rs"]
mod losing;

use std::path::{Path, PathBuf};
use std::process::Command;

/// Returns the directory in which cargo puts the library, beside this test.
fn built() -> PathBuf {
    let test = std::env::current_exe().expect("this test has a path");
    let deps = test.parent().expect("a folder").to_owned();
    assert!(deps.join("liblineweave_c.so").exists(), "no liblineweave_c.so in {}", deps.display());
    deps
}

fn here(file: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(file)
}

/// Returns the C compiler, if there is one.
fn compiler() -> Option<String> {
    let name = std::env::var("CC").unwrap_or_else(|_| "cc".into());
    let found = Command::new(&name).arg("--version").output().is_ok_and(|out| out.status.success());
    if !found {
        println!("SKIPPED: no C compiler `{name}`; install gcc or set CC");
    }
    found.then_some(name)
}

/// Compiles a source file; returns the error if that fails. Tests at the same time may compile the same file: each writes a
/// file of its own and then gives it the program's name.
fn compile(source: &Path, more: &[&str]) -> Option<Result<PathBuf, String>> {
    let cc = compiler()?;
    let libraries = built();
    let name = source.file_stem().expect("a name").to_string_lossy().into_owned();
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}{}", more.len()));
    let written = program.with_extension(format!("{:?}", std::thread::current().id()));
    let out = Command::new(cc)
        .args(["-std=gnu11", "-Wall", "-Wextra", "-Werror", "-g", "-pthread"])
        .arg("-I")
        .arg(here("include"))
        .arg(source)
        .arg("-o")
        .arg(&written)
        .arg(libraries.join("liblineweave_c.so"))
        .arg(format!("-Wl,-rpath,{}", libraries.display()))
        .args(more)
        .output()
        .expect("the compiler starts");
    Some(match out.status.success() {
        true => {
            std::fs::rename(&written, &program).expect("the program was written");
            // The loader looks for the library's soname, but cargo gives the file another name.
            let link = libraries.join(concat!(
                "liblineweave.so.",
                env!("CARGO_PKG_VERSION_MAJOR"),
                ".",
                env!("CARGO_PKG_VERSION_MINOR")
            ));
            let _ = std::os::unix::fs::symlink("liblineweave_c.so", &link);
            Ok(program)
        }
        false => Err(String::from_utf8_lossy(&out.stderr).into_owned()),
    })
}

/// Returns whether programs run under valgrind (`scripts/valgrind`), which runs one thread at a time.
fn under_valgrind() -> bool {
    std::env::var_os("LINEWEAVE_TEST_VALGRIND").is_some()
}

/// Returns the command for a program, run directly or under valgrind.
fn command(program: &Path) -> Command {
    if !under_valgrind() {
        return Command::new(program);
    }
    let mut command = Command::new("valgrind");
    command
        .args(["--quiet", "--trace-children=yes", "--fair-sched=yes", "--leak-check=full"])
        .args(["--errors-for-leak-kinds=definite", "--error-exitcode=97"])
        .arg(program)
        .env("LINEWEAVE_WAIT", "yield");
    command
}

fn run(program: &Path, arguments: &[&str]) -> String {
    run_with(program, arguments, &[])
}

/// Runs a program as a library without debug assertions would: ranks do not compare calls, so repeated calls take the fast path.
fn run_unchecked(program: &Path, arguments: &[&str]) -> String {
    run_with(program, arguments, &[("LINEWEAVE_CHECK", "0")])
}

fn run_with(program: &Path, arguments: &[&str], settings: &[(&str, &str)]) -> String {
    let mut command = command(program);
    let out = command.args(arguments).envs(settings.iter().copied()).output().expect("the program starts");
    let text = String::from_utf8_lossy(&out.stderr).into_owned();
    assert!(out.status.success(), "{} {arguments:?}: {}\n{text}", program.display(), out.status);
    String::from_utf8_lossy(&out.stdout).into_owned()
}

fn compiled(source: &str) -> Option<PathBuf> {
    Some(compile(&here(source), &[])?.unwrap_or_else(|text| panic!("{source} does not compile:\n{text}")))
}

/// Compiles a file of this text beside the header, with warnings about mixed enumerations; returns the compiler's messages.
fn checked(compiler: &str, name: &str, text: &str) -> Option<Result<(), String>> {
    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::write(&file, text).expect("a file");
    let mut command = Command::new(compiler);
    command.args(["-Wall", "-Wextra", "-Werror", "-fsyntax-only", "-I"]).arg(here("include")).arg(file);
    let Ok(out) = command.output() else {
        println!("SKIPPED: no compiler `{compiler}`");
        return None;
    };
    Some(if out.status.success() { Ok(()) } else { Err(String::from_utf8_lossy(&out.stderr).into_owned()) })
}

#[test]
fn examples_of_the_header_compile() {
    let Some(cc) = compiler() else { return };
    let header = std::fs::read_to_string(here("include/lineweave.h")).expect("the header");
    let mut text = String::from(
        "#include <lineweave.h>\n#include <stdio.h>\n#pragma GCC diagnostic ignored \"-Wunused-variable\"\n\
         void combine(const void *in, void *inout, size_t len, size_t size, void *arg);\n\
         void poll(void *arg);\nlw_status work(lw_comm *comm, void *arg);\n\
         static double x[4], y[4], all[16], whole[16];\nstatic size_t n = 4, counts[4] = {1, 1, 1, 1};\n\
         static lw_comm *comm, *made;\nstatic lw_team *team;\nstatic lw_site *site;\nstatic lw_planner *planner;\nstatic lw_op op;\n\
         static lw_request *request, *requests[2];\nstatic lw_barrier_t barrier;\nstatic uint64_t place;\n\
         static void *buffer;\nstatic int rank, size;\n",
    );
    // The example at the top is a whole program.
    let functions = header.split_once("#ifndef LINEWEAVE_H").expect("a guard").1;
    let mut examples = 0;
    for comment in functions.split("*/") {
        let lines: Vec<&str> = comment.lines().filter_map(|line| line.strip_prefix(" *     ")).collect();
        if !lines.is_empty() {
            text += &format!("void example_{examples}(void)\n{{\n{}\n}}\n", lines.join("\n"));
            examples += 1;
        }
    }
    assert!(examples > 90, "{examples} examples");
    if let Some(Err(said)) = checked(&cc, "examples.c", &text) {
        panic!("{said}");
    }
}

#[test]
fn types_and_operators_are_told_apart() {
    let Some(cc) = compiler() else { return };
    let call = |arguments: &str| {
        format!(
            "#include <lineweave.h>\n_Static_assert(sizeof(lw_type) == 4 && sizeof(lw_op) == 4 && (lw_op)-1 < 0, \"\");\n\
             lw_status f(lw_comm *comm, double *x) {{ return lw_allreduce(comm, x, x + 1, 1, {arguments}); }}\n"
        )
    };
    for right in ["LW_F64, LW_SUM", "LW_BYTES(8), LW_SUM", "LW_F64, LW_SUM | LW_REPRODUCIBLE"] {
        let Some(said) = checked(&cc, "right.c", &call(right)) else { return };
        said.unwrap_or_else(|said| panic!("{right}: {said}"));
        let cpp = call(right).replace("_Static_assert", "static_assert");
        if let Some(Err(said)) = checked("c++", "right.cpp", &cpp) {
            panic!("{right}: {said}");
        }
    }
    assert!(
        matches!(checked(&cc, "wrong.c", &call("LW_SUM, LW_F64")), Some(Err(said)) if said.contains("lw_type"))
    );
    assert!(!matches!(
        checked("c++", "wrong.cpp", &call("0, 0").replace("_Static_assert", "static_assert")),
        Some(Ok(()))
    ));
}

#[test]
fn every_collective_is_right() {
    let Some(program) = compiled("tests/collectives.c") else { return };
    for ranks in ["1", "2", "3", "5"] {
        run(&program, &["threads", ranks]);
        run_unchecked(&program, &["threads", ranks]);
    }
    run(&program, &["own", "3"]);
    let socket = format!("@lineweave-c-{}", std::process::id());
    run(&program, &["connect", &socket, "3"]);
    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("c-{}.socket", std::process::id()));
    run(&program, &["connect", &file.to_string_lossy(), "2"]);
    assert!(!file.exists(), "the socket is left behind");
    spawn(&program, 3, &["env"], true);
}

/// Starts one process for each rank.
fn spawn(program: &Path, ranks: usize, arguments: &[&str], check: bool) {
    let (mut settings, _) = lineweave::settings::Settings::from_environment().expect("settings");
    settings.check = check;
    let config = lineweave::team::TeamConfig::new(ranks, &settings).expect("a configuration");
    let team = lineweave::team::Team::with(config).expect("a team");
    let started = team.spawn(|_| {
        let mut command = Command::new(program);
        command.args(arguments);
        command
    });
    for mut child in started.expect("processes start") {
        assert!(child.wait().expect("a child").success(), "{}", program.display());
    }
}

#[test]
fn a_forked_child_is_refused() {
    let Some(program) = compiled("tests/fork.c") else { return };
    for (ranks, check) in [(2, false), (2, true), (3, false)] {
        spawn(&program, ranks, &[], check);
    }
}

#[test]
fn survivors_name_the_rank_that_is_lost() {
    let Some(program) = compiled("tests/faults.c") else { return };
    losing::teams(24, &|| Command::new(&program));
}

#[test]
fn communicators_are_made_from_others() {
    let Some(program) = compiled("tests/communicators.c") else { return };
    // Under valgrind six ranks take some two minutes more.
    let teams: &[&str] = if under_valgrind() { &["1", "2", "3"] } else { &["1", "2", "3", "6"] };
    for &ranks in teams {
        run(&program, &["threads", ranks]);
        let socket = format!("@lineweave-c-comm-{}-{ranks}", std::process::id());
        run(&program, &["connect", &socket, ranks]);
    }
}

#[test]
fn shared_buffers_are_used() {
    let Some(program) = compiled("tests/shared.c") else { return };
    for ranks in ["1", "2", "3", "6"] {
        run(&program, &["threads", ranks]);
        let socket = format!("@lineweave-c-shared-{}-{ranks}", std::process::id());
        run(&program, &["connect", &socket, ranks]);
    }
}

#[test]
fn types_and_operators_are_right() {
    let Some(program) = compiled("tests/operators.c") else { return };
    for ranks in ["1", "2", "3", "5"] {
        run(&program, &["threads", ranks]);
    }
    let config = lineweave::team::TeamConfig::from_environment(3).expect("a configuration");
    let team = lineweave::team::Team::with(config).expect("a team");
    let started = team.spawn(|_| {
        let mut command = Command::new(&program);
        command.arg("env");
        command
    });
    for mut child in started.expect("processes start") {
        assert!(child.wait().expect("a child").success());
    }
}

#[test]
fn threads_of_several_processes_join_a_team() {
    let Some(program) = compiled("tests/team.c") else { return };
    run(&program, &["alone"]);
    for (ranks, threads) in [(4, 2), (3, 2), (2, 1)] {
        let config = lineweave::team::TeamConfig::from_environment(ranks).expect("a configuration");
        let team = lineweave::team::Team::with(config).expect("a team");
        let started = team.spawn_mixed(threads, |_| {
            let mut command = Command::new(&program);
            command.arg("mixed").stdout(std::process::Stdio::piped());
            command
        });
        let mut joined = 0;
        for child in started.expect("processes start") {
            let out = child.wait_with_output().expect("a child");
            assert!(out.status.success(), "{ranks} ranks, {threads} a process: {}", out.status);
            joined += String::from_utf8_lossy(&out.stdout).trim().parse::<usize>().expect("a number");
        }
        assert_eq!(joined, ranks);
    }
}

#[test]
fn calls_are_started_and_waited_for() {
    let Some(program) = compiled("tests/requests.c") else { return };
    run(&program, &[]);
}

#[test]
fn calls_come_again() {
    let Some(program) = compiled("tests/again.c") else { return };
    run(&program, &[]);
    run_unchecked(&program, &[]);
    for wait in ["spin", "yield", "sleep"] {
        run_with(&program, &[], &[("LINEWEAVE_CHECK", "0"), ("LINEWEAVE_WAIT", wait)]);
    }
}

#[test]
fn errors_are_numbers_and_words() {
    let Some(program) = compiled("tests/errors.c") else { return };
    run(&program, &[]);
}

#[test]
fn settings_without_effect_are_said_once() {
    let Some(program) = compiled("tests/collectives.c") else { return };
    let socket = format!("@lineweave-c-settings-{}", std::process::id());
    for arguments in [&["threads", "2"][..], &["own", "2"], &["connect", &socket, "2"]] {
        for (quiet, lines) in [("0", 1), ("1", 0)] {
            let mut command = command(&program);
            command.args(arguments).env("LINEWEAVE_WIAT", "spin").env("LINEWEAVE_QUIET", quiet);
            let said = command.output().expect("the program starts").stderr;
            let said = String::from_utf8_lossy(&said).into_owned();
            assert_eq!(said.matches("LINEWEAVE_WIAT has no effect").count(), lines, "{arguments:?}: {said}");
        }
    }
}

#[test]
fn a_barrier_of_pthread_shape_holds_threads() {
    let Some(program) = compiled("tests/barrier.c") else { return };
    for threads in ["1", "2", "3"] {
        run(&program, &[threads]);
        run_unchecked(&program, &[threads]);
    }
}

#[test]
fn openmp_threads_meet_at_a_barrier() {
    let source = here("examples/openmp.c");
    match compile(&source, &["-fopenmp"]) {
        None => {}
        Some(Err(text)) if text.contains("fopenmp") || text.contains("omp.h") || text.contains("gomp") => {
            println!("SKIPPED: this compiler has no OpenMP");
        }
        Some(Err(text)) => panic!("{text}"),
        Some(Ok(program)) => assert_eq!(run(&program, &[]), "5050\n"),
    }
}

#[test]
fn the_example_of_the_readme_works() {
    let readme = std::fs::read_to_string(here("../../README.md")).expect("the README");
    let example = readme.split("```c\n").nth(1).and_then(|rest| rest.split("```").next());
    let source = Path::new(env!("CARGO_TARGET_TMPDIR")).join("readme.c");
    std::fs::write(&source, example.expect("an example in C")).expect("a writable folder");
    match compile(&source, &[]) {
        None => {}
        Some(Err(text)) => panic!("{text}"),
        Some(Ok(program)) => assert_eq!(run(&program, &[]), "the sum is 10\n"),
    }
}

#[test]
fn nothing_but_our_names_is_exported() {
    let library = built().join("liblineweave_c.so");
    let Ok(out) = Command::new("nm").args(["-D", "--defined-only"]).arg(&library).output() else {
        println!("SKIPPED: no nm; install binutils");
        return;
    };
    let text = String::from_utf8(out.stdout).expect("names");
    let names: Vec<&str> = text.lines().filter_map(|line| line.split_whitespace().last()).collect();
    let header = std::fs::read_to_string(here("include/lineweave.h")).expect("the header");
    assert!(names.len() > 30, "{names:?}");
    for name in &names {
        assert!(name.starts_with("lw_"), "{name} is exported");
        assert!(header.contains(&format!("{name}(")), "{name} is not in the header");
    }
}
