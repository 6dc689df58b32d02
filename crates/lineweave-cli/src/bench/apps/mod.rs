//! Real programs end to end, with lineweave and without: those of `bench/apps`, and what PyPI and Debian have.
//!
//! A program is launched in turns with lineweave and without; the order of the two changes from round to round. Ratios are
//! taken between launches of one round, so that a temporary slowdown of the machine affects both.

mod parts;
mod torch;

use super::mpi::{median, ratio};
use serde::Serialize;
use std::process::{Command, Output, Stdio};
use std::thread;
use std::time::Instant;

pub use parts::{apps, install, Ask, Part};

/// The way in which a program is launched.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Way {
    /// The program as it is, without lineweave.
    Without,
    /// The program with lineweave.
    With,
    /// The program with lineweave, which leaves every call to the host and counts the calls: for the share of time in
    /// collectives.
    Counted,
}

/// A time that one launch of a program has shown.
#[derive(Clone, PartialEq, Debug)]
pub struct Figure {
    /// The unit of work that was timed: `run`, `step`, `token`, `prompt token`.
    pub of: String,
    /// Seconds that one unit of this work took.
    pub seconds: f64,
    /// Share of the time that is communication, where that is known.
    pub communication: Option<f64>,
}

/// A program with a given number of ranks or threads.
pub struct App {
    /// The part that the program belongs to.
    pub part: Part,
    /// The program's name, with the MPI that it runs under.
    pub program: String,
    /// Number of ranks or threads.
    pub workers: usize,
    /// The work that the program does, in words.
    pub runs: &'static str,
    /// True if calls can be counted by [`Way::Counted`].
    pub counts: bool,
    /// Launches the program once.
    pub launch: Box<dyn Fn(Way) -> Result<Vec<Figure>, String>>,
}

/// A figure with lineweave and without.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Row {
    /// The part that the program belongs to.
    pub part: Part,
    /// The program.
    pub program: String,
    /// Number of ranks or threads.
    pub workers: usize,
    /// The work that the program does, in words.
    pub runs: &'static str,
    /// The unit of work that was timed.
    pub of: String,
    /// Each launch's time without lineweave, in the order of rounds.
    pub without_ns: Vec<f64>,
    /// Each launch's time with lineweave, in the order of rounds.
    pub with_ns: Vec<f64>,
    /// Median of the times without lineweave.
    pub without_median_ns: f64,
    /// Median of the times with lineweave.
    pub with_median_ns: f64,
    /// The time with lineweave over that without: the median of the rounds' ratios.
    pub ratio: f64,
    /// The 95 % interval of the ratio, or the extremes where there are fewer than 6 rounds.
    pub ratio_interval: [f64; 2],
    /// Share of the time that is communication, without lineweave: the median, where it is known.
    pub communication_without: Option<f64>,
    /// Share of the time that is communication, with lineweave: the median, where it is known.
    pub communication_with: Option<f64>,
}

/// Launches a program in turns, with lineweave and without. `step` is called before each launch.
///
/// # Errors
/// The reason why a launch failed; a wrong answer is a failure, too.
pub fn measure(app: &App, rounds: usize, mut step: impl FnMut(Way)) -> Result<Vec<Row>, String> {
    let (mut without, mut with) = (Vec::new(), Vec::new());
    for round in 0..rounds {
        let order = if round % 2 == 0 { [Way::Without, Way::With] } else { [Way::With, Way::Without] };
        for way in order {
            step(way);
            let figures = (app.launch)(way)?;
            if way == Way::With { &mut with } else { &mut without }.push(figures);
        }
    }
    let counted = if app.counts { (app.launch)(Way::Counted)? } else { Vec::new() };
    Ok(rows(app, &without, &with, &counted))
}

fn rows(app: &App, without: &[Vec<Figure>], with: &[Vec<Figure>], counted: &[Figure]) -> Vec<Row> {
    let names = without.first().map(Vec::as_slice).unwrap_or_default();
    let of = |launches: &[Vec<Figure>], name: &str| -> Vec<Figure> {
        launches.iter().flatten().filter(|f| f.of == name).cloned().collect()
    };
    let times = |figures: &[Figure]| figures.iter().map(|f| f.seconds * 1e9).collect::<Vec<_>>();
    let share = |figures: &[Figure]| {
        let known: Vec<f64> = figures.iter().filter_map(|f| f.communication).collect();
        (!known.is_empty()).then(|| median(&known))
    };
    let row = |name: &Figure| {
        let (theirs, ours) = (of(without, &name.of), of(with, &name.of));
        let (without_ns, with_ns) = (times(&theirs), times(&ours));
        // A figure that some launch did not show has no ratios by rounds.
        if with_ns.is_empty() || with_ns.len() != without_ns.len() {
            return None;
        }
        let (middle, interval) = ratio(&with_ns, &without_ns);
        let counted: Vec<Figure> = counted.iter().filter(|f| f.of == name.of).cloned().collect();
        Some(Row {
            part: app.part,
            program: app.program.clone(),
            workers: app.workers,
            runs: app.runs,
            of: name.of.clone(),
            without_median_ns: median(&without_ns),
            with_median_ns: median(&with_ns),
            without_ns,
            with_ns,
            ratio: middle,
            ratio_interval: interval,
            communication_without: share(&theirs).or_else(|| share(&counted)),
            communication_with: share(&ours),
        })
    };
    names.iter().filter_map(row).collect()
}

/// Runs these commands at the same time; returns the output of the first one, and the seconds until all had ended.
///
/// # Errors
/// The reason why a command could not start, or the last line of one that failed.
fn together(commands: Vec<Command>) -> Result<(String, f64), String> {
    let began = Instant::now();
    let mut children = Vec::new();
    for mut command in commands {
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let child = command.spawn();
        children.push(child.map_err(|e| format!("cannot start {}: {e}", command.get_program().display())));
    }
    let wait = |child: Result<std::process::Child, String>| {
        child.and_then(|child| child.wait_with_output().map_err(|e| e.to_string()))
    };
    // All children are waited for at once, so that none blocks on a full pipe.
    let ended: Vec<Result<Output, String>> = thread::scope(|scope| {
        let waits: Vec<_> = children.into_iter().map(|child| scope.spawn(move || wait(child))).collect();
        waits.into_iter().map(|w| w.join().unwrap_or_else(|_| Err("a reader ended".into()))).collect()
    });
    let seconds = began.elapsed().as_secs_f64();
    let mut said = None;
    for output in ended {
        let output = output?;
        if !output.status.success() {
            let errors = String::from_utf8_lossy(&output.stderr);
            let last = errors.lines().rev().find(|l| !l.trim().is_empty()).unwrap_or("it said nothing");
            return Err(format!("ended with {}: {last}", output.status));
        }
        said.get_or_insert_with(|| String::from_utf8_lossy(&output.stdout).into_owned());
    }
    Ok((said.unwrap_or_default(), seconds))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn app(launch: impl Fn(Way) -> Result<Vec<Figure>, String> + 'static) -> App {
        App {
            part: Part::Mpi,
            program: "p".into(),
            workers: 2,
            runs: "r",
            counts: true,
            launch: Box::new(launch),
        }
    }

    #[test]
    fn turns_alternate_and_shares_come_from_the_counted_launch() {
        let app = app(|way| {
            let (seconds, communication) = match way {
                Way::Without => (2.0, None),
                Way::With => (1.0, Some(0.25)),
                Way::Counted => (3.0, Some(0.5)),
            };
            Ok(vec![Figure { of: "run".into(), seconds, communication }])
        });
        let mut order = Vec::new();
        let rows = measure(&app, 2, |way| order.push(way)).unwrap();
        assert_eq!(order, [Way::Without, Way::With, Way::With, Way::Without]);
        assert_eq!(rows.len(), 1);
        assert_eq!((rows[0].ratio, rows[0].ratio_interval), (0.5, [0.5, 0.5]));
        assert_eq!((rows[0].without_median_ns, rows[0].with_median_ns), (2e9, 1e9));
        assert_eq!((rows[0].communication_without, rows[0].communication_with), (Some(0.5), Some(0.25)));
    }

    #[test]
    fn a_launch_that_fails_says_its_last_line() {
        let shell = |text: &str| {
            let mut command = Command::new("sh");
            command.args(["-c", text]);
            command
        };
        assert_eq!(together(vec![shell("echo a"), shell("echo b")]).unwrap().0, "a\n");
        let why =
            together(vec![shell("echo a"), shell("echo first >&2; echo last >&2; exit 3")]).unwrap_err();
        assert!(why.ends_with("3: last"), "{why}");
        assert!(together(vec![Command::new("/no/such/program")]).is_err());
    }
}
