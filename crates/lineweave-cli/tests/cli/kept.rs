//! Kept files that cannot be used: each is set aside with one line, and never makes a program fail or wait.

use crate::common::{profile, Outcome, Scratch};
use lineweave::cpus::UsableCpus;
use lineweave::topology::{Hardware, Source};
use lineweave_core::profile::{Fingerprint, Profile};
use std::fs;
use std::os::unix::fs::{chown, symlink, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::Command;

/// A cache with a profile of this machine that can be used.
struct Cache {
    scratch: Scratch,
    here: Fingerprint,
    directory: PathBuf,
    profile: String,
}

impl Cache {
    fn new() -> Cache {
        let hardware = Hardware::load(&Source::Machine).unwrap();
        let here = hardware.fingerprint(&hardware.placeable(&UsableCpus::of_this_thread().cpus));
        let scratch = Scratch::new();
        let directory = scratch.path().join("cache/lineweave").join(here.id());
        fs::create_dir_all(&directory).unwrap();
        let profile = Profile { machine: here.clone(), ..Profile::from_toml(&profile()).unwrap() }.to_toml();
        let cache = Cache { scratch, here, directory, profile };
        cache.put("profile.toml", &cache.profile);
        cache
    }

    fn at(&self, name: &str) -> PathBuf {
        self.directory.join(name)
    }

    fn put(&self, name: &str, text: &str) {
        clear(&self.at(name));
        fs::write(self.at(name), text).unwrap();
    }

    /// Returns the explanation of a choice, with all remarks.
    fn explained(&self) -> Outcome {
        self.scratch.line("explain allreduce 8 --ranks 2")
    }

    /// Checks that commands and programs print one line that names the file and what to do, and go on with these choices.
    #[track_caller]
    fn aside(&self, file: &Path, what: &str, choices: &str) {
        let program = self.scratch.run(&["run", "-n", "2", "--", "sh", "-c", "echo begun"]);
        assert_eq!(program.out, "begun\nbegun\n", "{what}: {}", program.err);
        for outcome in [self.explained(), program] {
            assert_eq!(outcome.status, Some(0), "{what}: {}", outcome.err);
            assert_eq!(outcome.err.lines().count(), 1, "{what}: {}", outcome.err);
            let advice = outcome.err.matches("lineweave tune").count();
            assert_eq!(
                (advice, outcome.err.matches("measure again").count()),
                (1, 1),
                "{what}: {}",
                outcome.err
            );
            let said = format!("{} is set aside: ", file.display());
            assert!(
                outcome.err.contains(&said) && outcome.err.contains("; remove it"),
                "{what}: {}",
                outcome.err
            );
        }
        assert_eq!(self.explained().out, choices, "{what}");
    }
}

fn clear(file: &Path) {
    let _ = fs::remove_file(file);
    let _ = fs::remove_dir(file);
}

/// The name of a way to damage a file, and the function that does it.
type Ill = (&'static str, Box<dyn Fn()>);

/// Returns ways to damage a file of this text, whatever it holds.
fn ill(file: &Path, text: &str) -> Vec<Ill> {
    let (file, text) = (file.to_owned(), text.to_owned());
    let other = file.with_file_name("elsewhere");
    fs::write(&other, &text).unwrap();
    let put = {
        let file = file.clone();
        move || fs::write(&file, &text).unwrap()
    };
    let mode = {
        let (file, put) = (file.clone(), put.clone());
        move || {
            put();
            fs::set_permissions(&file, fs::Permissions::from_mode(0o666)).unwrap();
        }
    };
    let [link, device, pipe, folder, foreign] = [(); 5].map(|()| file.clone());
    let mut ways: Vec<Ill> = vec![
        ("world-writable", Box::new(mode)),
        ("a link elsewhere", Box::new(move || symlink(&other, &link).unwrap())),
        ("a link to a device", Box::new(move || symlink("/dev/zero", &device).unwrap())),
        ("a pipe", Box::new(move || assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success()))),
        ("a directory", Box::new(move || fs::create_dir(&folder).unwrap())),
    ];
    let root = rustix::process::geteuid().is_root();
    ways.extend(root.then(|| -> (&'static str, Box<dyn Fn()>) {
        (
            "another user's",
            Box::new(move || {
                put();
                chown(&foreign, Some(1234), None).unwrap();
            }),
        )
    }));
    ways
}

#[test]
fn a_profile_that_cannot_be_used_is_set_aside() {
    let cache = Cache::new();
    let measured = cache.explained().accepted();
    let (file, costs) = (cache.at("profile.toml"), cache.at("costs.json"));
    fs::remove_file(&file).unwrap();
    let described = cache.explained().accepted();
    assert_ne!(measured, described);
    let text = &cache.profile;
    let texts = [
        ("empty", String::new()),
        ("cut short", text[..text.len() - 30].to_owned()),
        ("without a schema", text.replace("schema = 1\n", "")),
        ("of another version", text.replace("schema = 1\n", "schema = 99\n")),
        ("of another machine", text.replace(&cache.here.cpu, "Another CPU")),
        ("of several lines that are none", "=\n=\n".to_owned()),
    ];
    for (what, text) in &texts {
        cache.put("profile.toml", text);
        cache.aside(&file, what, &described);
    }
    for (what, make) in ill(&file, text) {
        clear(&file);
        make();
        cache.aside(&file, what, &described);
    }
    clear(&file);
    cache.put("costs.json", "{");
    cache.aside(&costs, "costs cut short", &described);
    // A path that can hold no file gives no remark.
    for nowhere in ["/dev/null", "/sys", "/proc/1/none"] {
        let mut command = cache.scratch.command(&["explain", "allreduce", "8", "--ranks", "2"]);
        let output = command.env("XDG_CACHE_HOME", nowhere).output().unwrap();
        assert_eq!(Outcome::of(&["explain"], output).accepted(), described, "{nowhere}");
    }
}

#[test]
fn choices_and_kept_plans_that_cannot_be_used_are_set_aside() {
    let cache = Cache::new();
    let measured = cache.explained().accepted();
    let file = cache.at("choices.toml");
    let row = "[[choice]]\ncollective = \"allreduce\"\nranks = 2\nbytes = 8\nteam = \"threads\"\nalgorithm = \"ALGORITHM\"\n\
               window = 8\npredicted_ns = 1.0\nmeasured_ns = 1.0\n[choice.params]\n";
    let table = |machine: &str, algorithm: &str| {
        format!("schema = 1\nmachine = \"{machine}\"\n{}", row.replace("ALGORITHM", algorithm))
    };
    let here = cache.here.id();
    let usable = table(&here, "all-read-all");
    cache.put("choices.toml", &usable);
    assert!(cache.explained().accepted().contains("measured"), "the choices of this test can be used");
    for (what, text) in [
        ("cut short", &usable[..usable.len() / 2]),
        ("of another version", &usable.replace("schema = 1", "schema = 99")),
        ("of another machine", &table("0123456789abcdef", "all-read-all")),
        ("by an algorithm that is no more", &table(&here, "pigeon")),
    ] {
        cache.put("choices.toml", text);
        cache.aside(&file, what, &measured);
    }
    for (what, make) in ill(&file, &usable) {
        clear(&file);
        make();
        cache.aside(&file, what, &measured);
    }
    clear(&file);
    let plans = || {
        let names = fs::read_dir(&cache.directory).unwrap().map(|entry| entry.unwrap().file_name());
        names
            .map(|name| name.into_string().unwrap())
            .filter(|name| name.starts_with("plans-"))
            .collect::<Vec<_>>()
    };
    plans().iter().for_each(|name| clear(&cache.at(name)));
    assert_eq!(cache.explained().accepted(), measured);
    let [name] = &plans()[..] else { panic!("one file of plans: {:?}", plans()) };
    // A truncated file is left by a program that was killed: it is skipped without a remark.
    cache.put(name, "lineweav");
    assert_eq!(cache.explained().accepted(), measured);
    for (what, make) in ill(&cache.at(name), "lineweav") {
        clear(&cache.at(name));
        make();
        cache.aside(&cache.at(name), what, &measured);
    }
}

#[test]
fn a_profile_that_is_named_and_cannot_be_used_refuses_the_job() {
    let scratch = Scratch::new();
    let bad = scratch.file("bad.toml", "schema = 1");
    let absent = scratch.at("absent.toml");
    let pipe = scratch.at("pipe.toml");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let jobs = [["run", "-n", "2"], ["run", "--mpi", "openmpi"]]
        .map(|job| [&job[..], &["--", "sh", "-c", "echo begun"]].concat());
    for file in [&bad, &absent, &pipe, &scratch.file("other.toml", &profile())] {
        for job in &jobs {
            let run = |more: &[(&str, &str)]| {
                let mut command = scratch.command(job);
                command.env("LINEWEAVE_PROFILE", file).envs(more.iter().copied());
                Outcome::of(job, command.output().unwrap())
            };
            let outcome = run(&[]);
            outcome.refused(2, &[file, "LINEWEAVE_PROFILE_OPTIONAL"]);
            assert_eq!(outcome.out, "");
            let optional = run(&[("LINEWEAVE_PROFILE_OPTIONAL", "1")]);
            assert!(optional.status == Some(0) && optional.out.starts_with("begun\n"), "{optional:?}");
            // Rank 0 has not ended the job, so it has another profile.
            let alone = run(&[("PMI_RANK", "1")]);
            alone.refused(2, &[file, "LINEWEAVE_PROFILE_OPTIONAL"]);
            assert_eq!(alone.out, "");
        }
    }
}

#[test]
fn what_bench_kept_is_on_the_first_screen_of_a_report() {
    let cache = Cache::new();
    let page = cache.scratch.path().join("page.html");
    let reported = || {
        let outcome = cache.scratch.run(&["report", "-o", page.to_str().unwrap()]);
        assert_eq!(outcome.status, Some(0), "{}", outcome.err);
        (fs::read_to_string(&page).unwrap(), outcome.err)
    };
    assert!(reported().0.contains("`lineweave bench` adds the floor"));
    let head = serde_json::json!({"kind": "record", "cpu": cache.here.cpu, "fingerprint": cache.here.id(),
        "topology": cache.here.topology, "measured_at": "2026-01-02T03:04:05Z"});
    let row = serde_json::json!({"kind": "bench", "subject": "lineweave", "collective": "barrier", "ranks": 2, "bytes": 0,
        "team": "processes", "median_ns": 43210.0, "ci_low_ns": 43000.0, "ci_high_ns": 44000.0, "ratio_to_floor": 2.0,
        "algorithm": "exchange layout=packed", "window_bytes": 0});
    cache.put("bench.jsonl", &format!("{head}\n{row}\n"));
    let (text, err) = reported();
    assert!(
        text.contains("barrier, 2 ranks: 43.2 us")
            && text.contains(">floor<")
            && text.contains("last at 2026-01-02T03:04:05Z"),
        "{text}"
    );
    assert!(!err.contains("bench.jsonl"), "{err}");
    cache.put("bench.jsonl", "{");
    let (text, err) = reported();
    assert!(!text.contains("43.2 us") && err.contains("bench.jsonl") && err.contains("set aside"), "{err}");
}

#[test]
fn a_relative_cache_counts_as_none() {
    let cache = Cache::new();
    let home = cache.scratch.path().join("home");
    fs::create_dir_all(&home).unwrap();
    fs::rename(cache.scratch.path().join("cache"), home.join(".cache")).unwrap();
    for relative in ["cache", "./cache", ""] {
        let mut command = cache.scratch.command(&["explain", "allreduce", "8", "--ranks", "2"]);
        command.env("HOME", &home).env("XDG_CACHE_HOME", relative).current_dir(cache.scratch.path());
        let said = Outcome::of(&["explain"], command.output().unwrap()).accepted();
        assert!(said.contains("home/.cache/lineweave"), "{relative}: {said}");
    }
    assert!(!cache.scratch.path().join("cache").exists());
}

#[test]
fn an_answer_of_python_that_cannot_be_read_is_asked_again_and_replaced() {
    let scratch = Scratch::new();
    let script = scratch.file("script.py", "print('begun')\n");
    // The interpreter itself, and no script that starts it.
    let said = Command::new("python3").args(["-c", "import sys; print(sys.executable)"]).output();
    let Ok(python) = said.map(|said| String::from_utf8(said.stdout).unwrap().trim().to_owned()) else {
        return println!("SKIPPED: answers of Python: there is no python3");
    };
    let run = || scratch.run(&["run", "--", &python, &script]);
    assert_eq!(run().status, Some(0));
    let files =
        || fs::read_dir(scratch.path().join("cache/lineweave/pythons")).into_iter().flatten().flatten();
    let Some(file) = files().next().map(|entry| entry.path()) else { panic!("nothing is kept") };
    let text = fs::read_to_string(&file).unwrap();
    let told = run().err;
    let mut cut: Vec<Ill> = ill(&file, &text);
    clear(&file.with_file_name("elsewhere"));
    let at = file.clone();
    cut.push(("cut short", Box::new(move || fs::write(&at, &text[..text.len() / 2]).unwrap())));
    for (what, make) in cut.into_iter().filter(|(what, _)| *what != "a directory") {
        clear(&file);
        make();
        let outcome = run();
        assert_eq!((outcome.out.as_str(), &outcome.err), ("begun\n", &told), "{what}");
        assert!(lineweave::cache::counts(&file), "{what}: it is not replaced");
        assert_eq!(files().count(), 1, "{what}");
    }
}
