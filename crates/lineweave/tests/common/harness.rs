//! What programs of tests share that start themselves, once a rank or once a case, and so have no harness but print what one would.
#![allow(dead_code, reason = "each program uses some of it")]

use lineweave::sync::{spin_loop, AtomicBool, Ordering};
use lineweave::team::Team;
use std::process::{Child, Command, Stdio};

/// Runs the tests whose names contain a word of the command line, or all without one, but those to `--skip`.
pub fn main(tests: &[(&str, fn())]) {
    let (mut wanted, mut skipped) = (Vec::new(), Vec::new());
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        match word.as_str() {
            // No list: they run together.
            "--list" => return,
            "--skip" => skipped.extend(words.next()),
            "--test-threads" | "--color" | "--format" => drop(words.next()),
            option if option.starts_with('-') => {}
            _ => wanted.push(word),
        }
    }
    let in_name = |words: &[String], name: &str| words.iter().any(|word| name.contains(word));
    let asked = |name: &str| (wanted.is_empty() || in_name(&wanted, name)) && !in_name(&skipped, name);
    let run: Vec<_> = tests.iter().filter(|(name, _)| asked(name)).collect();
    println!("\nrunning {} test{}", run.len(), if run.len() == 1 { "" } else { "s" });
    for (name, test) in &run {
        test();
        println!("test {name} ... ok");
    }
    let (passed, left_out) = (run.len(), tests.len() - run.len());
    println!(
        "\ntest result: ok. {passed} passed; 0 failed; 0 ignored; 0 measured; {left_out} filtered out\n"
    );
}

/// Returns a command that starts this program, and whose words can be read.
pub fn again() -> Command {
    let mut command = Command::new(std::env::current_exe().expect("this program has a path"));
    command.stdout(Stdio::piped());
    command
}

/// Starts this program once for each `threads` ranks of a team, with what is added to each command.
pub fn start(team: &Team, threads: usize, mut with: impl FnMut(&mut Command)) -> Vec<Child> {
    let command = |_| {
        let mut command = again();
        with(&mut command);
        command
    };
    team.spawn_mixed(threads, command).expect("ranks start")
}

/// Returns what each process printed; all must have ended well.
pub fn finish(children: Vec<Child>, what: &str) -> Vec<String> {
    let ended = children.into_iter().map(|child| {
        let output = child.wait_with_output().expect("a rank can be awaited");
        (output.status, String::from_utf8_lossy(&output.stdout).trim().to_owned())
    });
    let ended: Vec<_> = ended.collect();
    assert!(ended.iter().all(|(status, _)| status.success()), "{what}: ranks ended with {ended:?}");
    ended.into_iter().map(|(_, said)| said).collect()
}

/// Does something beside a thread that takes what one CPU gives.
pub fn beside_a_load<T>(f: impl FnOnce() -> T + std::panic::UnwindSafe) -> T {
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        // Relaxed: nothing depends on when it is seen.
        scope.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                spin_loop()
            }
        });
        let done = std::panic::catch_unwind(f);
        // Relaxed: as above.
        over.store(true, Ordering::Relaxed);
        done.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

/// Asserts that there is no file of ours in /dev/shm, and no memfd of ours in this process.
pub fn nothing_is_left_behind() {
    let files = std::fs::read_dir("/dev/shm").into_iter().flatten().flatten();
    assert!(files.into_iter().all(|file| !file.file_name().to_string_lossy().contains("lineweave")));
    let descriptors = std::fs::read_dir("/proc/self/fd").expect("a process sees its descriptors");
    let ours = descriptors.flatten().filter_map(|e| std::fs::read_link(e.path()).ok());
    assert_eq!(ours.filter(|l| l.to_string_lossy().contains("memfd:lineweave")).count(), 0);
}
