//! Real programs end to end, with lineweave and without: those of `bench/apps`, and what PyPI and Debian have.
//!
//! A program is launched in turns with lineweave and without; the order of the two changes from round to round. Ratios are
//! taken between launches of one round, so that a temporary slowdown of the machine affects both.

mod parts;
mod torch;

use super::mpi::{median, ratio};
use crate::capture::{capture, Captured};
use serde::Serialize;
use std::process::Command;
use std::thread;
use std::time::Duration;

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
    pub part: Part,
    /// The program's name, with the MPI that it runs under.
    pub program: String,
    /// Number of ranks or threads.
    pub workers: usize,
    /// The work that the program does, in words.
    pub runs: &'static str,
    /// True if calls can be counted by [`Way::Counted`].
    pub counts: bool,
    pub launch: Box<dyn Fn(Way) -> Result<Vec<Figure>, String>>,
}

/// A figure with lineweave and without. Printed as `app` by `lineweave bench apps`, one object a program, number of ranks or threads, and figure.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Row {
    pub part: Part,
    pub program: String,
    /// Number of ranks or threads.
    pub workers: usize,
    /// The work that the program does, in words.
    pub runs: &'static str,
    /// The unit of work that was timed: `run`, from the launcher's start to its end, `step`, `token` or `prompt token`.
    pub of: String,
    /// Each launch's time without lineweave, in the order of rounds.
    pub without_ns: Vec<f64>,
    /// Each launch's time with lineweave, in the order of rounds.
    pub with_ns: Vec<f64>,
    pub without_median_ns: f64,
    pub with_median_ns: f64,
    /// The time with lineweave over that without: the median of the rounds' ratios.
    pub ratio: f64,
    /// The 95 % interval of the ratio, or the extremes where there are fewer than 6 rounds.
    pub ratio_interval: [f64; 2],
    /// Share of the time that is communication, without lineweave: the median, where it is known; of MPI's programs the collectives of one launch.
    pub communication_without: Option<f64>,
    /// Share of the time that is communication, with lineweave: the median, where it is known.
    pub communication_with: Option<f64>,
}

/// Launches a program in turns, with lineweave and without. `step` is called before each launch. A wrong answer is a
/// failure.
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
fn together(commands: Vec<Command>) -> Result<(String, f64), String> {
    // `timeout` ends a launch that takes too long, and installing takes as long as it does.
    let run = |mut command: Command| {
        let Captured { out, ended, took, .. } = capture(&mut command, Duration::MAX);
        ended.map_err(|why| format!("{}: {why}", command.get_program().display()))?;
        Ok::<_, String>((out, took))
    };
    let ended: Vec<Result<_, _>> = thread::scope(|scope| {
        let runs: Vec<_> = commands.into_iter().map(|command| scope.spawn(move || run(command))).collect();
        runs.into_iter().map(|run| run.join()).collect()
    });
    let (mut said, mut took) = (None, Duration::ZERO);
    for captured in ended {
        let (out, its) = captured.map_err(|_| "a reader ended")??;
        took = took.max(its);
        said.get_or_insert(out);
    }
    Ok((said.unwrap_or_default(), took.as_secs_f64()))
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
        let why = together(vec![shell("echo a"), shell("echo first >&2; echo the last line >&2; exit 3")])
            .unwrap_err();
        assert!(why.ends_with("3: the last line"), "{why}");
        assert!(together(vec![Command::new("/no/such/program")]).is_err());
    }
}
