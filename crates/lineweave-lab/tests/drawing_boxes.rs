//! Drawings can be read: no label lies on another, no half is empty, the legend has what is drawn and nothing else.

use lineweave_core::algorithm::{self, Problem};
use lineweave_core::cost;
use lineweave_core::machine;
use lineweave_core::model::Model;
use lineweave_core::plan::{Carry, Op, Params, Plan, Region, Space};
use lineweave_core::topology::Shape;
use lineweave_lab::draw;
use std::collections::BTreeSet;

/// How wide a letter is at most in the usual sans-serif fonts, by its height.
const WIDE: f64 = 0.62;
const BOLD: f64 = 1.08;
/// Grids and lanes.
const RULE: &str = "#e5e7eb";
const ENTRIES: [&str; 11] = [
    "transfer",
    "who moves it",
    "copy within a rank",
    "fold",
    "set a flag",
    "add to a counter",
    "wait",
    "nothing to do meanwhile",
    "ends a wait",
    "ends a wait and carries data",
    "never goes on",
];

/// Left, top, right, bottom.
type Box4 = [f64; 4];

struct Picture {
    width: f64,
    height: f64,
    texts: Vec<(Box4, String)>,
    marks: Vec<Box4>,
}

fn attribute<'a>(tag: &'a str, name: &str) -> Option<&'a str> {
    tag.split_once(&format!(" {name}=\""))?.1.split('"').next()
}

fn number(tag: &str, name: &str) -> f64 {
    attribute(tag, name).and_then(|n| n.parse().ok()).unwrap_or_else(|| panic!("no {name} in <{tag}"))
}

fn parse(svg: &str) -> Picture {
    let (mut texts, mut marks) = (Vec::new(), Vec::new());
    let head = svg.split('>').next().unwrap();
    let (width, height) = (number(head, "width"), number(head, "height"));
    for part in svg.split('<').skip(1) {
        let (tag, content) = part.split_once('>').unwrap();
        let around = |x: f64, y: f64, dx: f64, dy: f64| [x - dx, y - dy, x + dx, y + dy];
        match tag.split(' ').next().unwrap() {
            "text" => {
                let text = content
                    .replace("&lt;", "<")
                    .replace("&gt;", ">")
                    .replace("&quot;", "\"")
                    .replace("&amp;", "&");
                let size = number(tag, "font-size");
                let bold = if tag.contains("font-weight") { BOLD } else { 1.0 };
                let wide = text.chars().count() as f64 * size * WIDE * bold;
                let (x, y) = (number(tag, "x"), number(tag, "y"));
                let left = match attribute(tag, "text-anchor").unwrap() {
                    "start" => x,
                    "middle" => x - wide / 2.0,
                    _ => x - wide,
                };
                texts.push(([left, y - size * 0.78, left + wide, y + size * 0.22], text));
            }
            "rect" if attribute(tag, "width") != Some("100%") => {
                let (x, y) = (number(tag, "x"), number(tag, "y"));
                marks.push([x, y, x + number(tag, "width"), y + number(tag, "height")]);
            }
            "circle" => {
                marks.push(around(number(tag, "cx"), number(tag, "cy"), number(tag, "r"), number(tag, "r")))
            }
            "line" if attribute(tag, "stroke") != Some(RULE) => {
                let (x, y) = ([number(tag, "x1"), number(tag, "x2")], [number(tag, "y1"), number(tag, "y2")]);
                marks.push([x[0].min(x[1]), y[0].min(y[1]), x[0].max(x[1]), y[0].max(y[1])]);
            }
            _ => {}
        }
    }
    Picture { width, height, texts, marks }
}

fn overlap(a: &Box4, b: &Box4) -> bool {
    // A tenth of a unit is rounding.
    a[0] + 0.1 < b[2] && b[0] + 0.1 < a[2] && a[1] + 0.1 < b[3] && b[1] + 0.1 < a[3]
}

#[track_caller]
fn can_be_read(name: &str, svg: &str) -> Picture {
    let picture = parse(svg);
    for (i, (a, text)) in picture.texts.iter().enumerate() {
        let inside =
            a[0] >= 0.0 && a[1] >= 0.0 && a[2] <= picture.width + 0.5 && a[3] <= picture.height + 0.5;
        assert!(inside, "{name}: `{text}` at {a:?} is outside of {} by {}", picture.width, picture.height);
        for (b, other) in &picture.texts[i + 1..] {
            assert!(!overlap(a, b), "{name}: `{text}` at {a:?} and `{other}` at {b:?}");
        }
    }
    for mark in &picture.marks {
        let inside = mark[0] >= -1.0 && mark[2] <= picture.width + 1.0 && mark[3] <= picture.height + 1.0;
        assert!(inside, "{name}: a mark at {mark:?} is outside of {} by {}", picture.width, picture.height);
    }
    let (x, y) = (picture.width / 2.0, picture.height / 2.0);
    let any = |of: &dyn Fn(&Box4) -> bool| picture.marks.iter().any(of);
    assert!(any(&|m| m[2] > x) && any(&|m| m[0] < x), "{name}: its left or right half is empty");
    assert!(any(&|m| m[3] > y) && any(&|m| m[1] < y), "{name}: its upper or lower half is empty");
    picture
}

fn owner(region: &Region, running: usize) -> usize {
    match region.space {
        Space::In | Space::Out | Space::Acc => running,
        Space::Slot { rank, .. } | Space::PeerIn(rank) | Space::PeerOut(rank) => rank.index(),
    }
}

/// What is drawn of a plan whose ranks have a lane each.
fn expected(plan: &Plan) -> BTreeSet<&'static str> {
    let mut drawn = BTreeSet::new();
    for (rank, ops) in plan.programs.iter().enumerate() {
        for op in ops {
            match op {
                Op::Move { src, dst } => {
                    let (from, to) = (owner(src, rank), owner(dst, rank));
                    drawn.insert(if from == to { "copy within a rank" } else { "transfer" });
                    if from != to || from != rank {
                        drawn.insert("who moves it");
                    }
                }
                Op::Fold { a, b, dst } => {
                    drawn.insert("fold");
                    if [a, b, dst].iter().any(|region| owner(region, rank) != rank) {
                        drawn.insert("transfer");
                    }
                }
                Op::Set { .. } => {
                    drawn.insert("set a flag");
                }
                Op::Add { .. } => {
                    drawn.insert("add to a counter");
                }
                Op::Wait { .. } => {
                    drawn.insert("wait");
                }
            }
        }
    }
    let steps = draw::steps(plan);
    for list in &steps.ranks {
        for (i, step) in list.iter().enumerate() {
            if let Some((by, op)) = step.cause {
                let carries = matches!(
                    plan.programs[by][op],
                    Op::Set { carry: Some(Carry::Bytes(_) | Carry::Address(_)), .. }
                );
                drawn.insert(if carries { "ends a wait and carries data" } else { "ends a wait" });
            }
            let ready = i.checked_sub(1).map_or(0, |before| list[before].at + 1);
            if ready < step.at {
                drawn.insert("nothing to do meanwhile");
            }
        }
    }
    drawn
}

fn model() -> Model {
    Model::from_machine(machine::shipped().iter().find(|m| m.name == "generic-x86").unwrap())
}

fn plans(ranks: usize, mut with: impl FnMut(&Plan)) {
    for algorithm in algorithm::all() {
        for bytes in [56, 12_008] {
            let mut problem = Problem::flat(algorithm.collective, ranks, bytes);
            problem.grain = if algorithm.collective.folds() { 8 } else { 1 };
            problem.direct = true;
            if let Ok(plan) = algorithm.plan(&problem, &Params::new()) {
                with(&plan);
            }
        }
    }
}

#[test]
fn plans_of_few_ranks_can_be_read_and_their_legends_are_exact() {
    for ranks in [2, 7, 16] {
        plans(ranks, |plan| {
            let name = format!("{} among {ranks}", plan.name());
            let picture = can_be_read(&name, &draw::plan(plan));
            let legend: BTreeSet<&str> =
                picture.texts.iter().filter_map(|(_, t)| ENTRIES.into_iter().find(|e| e == t)).collect();
            assert_eq!(legend, expected(plan), "{name}");
        });
    }
}

#[test]
fn plans_of_many_ranks_can_be_read_and_are_small() {
    for (ranks, most) in [(32, 100_000), (64, 200_000)] {
        plans(ranks, |plan| {
            let name = format!("{} among {ranks}", plan.name());
            let svg = draw::plan(plan);
            assert!(svg.len() < most, "{name}: {} bytes", svg.len());
            let picture = can_be_read(&name, &svg);
            // The stripe of a box says what it does.
            let stripe = |colour: &str| {
                svg.contains(&format!("width=\"6.00\" height=\"50.0\" rx=\"2\" fill=\"{colour}\""))
            };
            let entry = |text: &str| picture.texts.iter().any(|(_, t)| t == text);
            for (text, colour) in
                [("moves data", "#0072b2"), ("folds", "#009e73"), ("flags alone", "#d55e00")]
            {
                assert_eq!(entry(text), stripe(colour), "{name}: {text}");
            }
            assert_eq!(entry("ends waits: the thicker, the more"), svg.contains("waits of "), "{name}");
        });
    }
}

#[test]
fn runs_on_an_axis_of_time_can_be_read_and_their_legends_are_exact() {
    let model = model();
    for ranks in [2, 7, 16, 64] {
        plans(ranks, |plan| {
            let name = format!("{} among {ranks}, by time", plan.name());
            let Some(trace) = cost::timeline(&model, &Shape::flat(ranks), plan, &cost::Options::default())
            else {
                return;
            };
            let svg = draw::timeline(plan, &[trace]);
            let picture = can_be_read(&name, &svg);
            for (word, kind) in [
                ("move", "#0072b2"),
                ("fold", "#009e73"),
                ("set", "#d55e00"),
                ("wait", "#d1d5db"),
                ("add", "#cc79a7"),
            ] {
                let bars = svg.matches(&format!("rx=\"1.5\" fill=\"{kind}\"")).count();
                assert_eq!(picture.texts.iter().any(|(_, t)| t == word), bars > 0, "{name}: {word}");
            }
        });
    }
}

#[test]
fn the_critical_path_takes_all_the_time_there_is() {
    let model = model();
    plans(7, |plan| {
        let Some(trace) = cost::timeline(&model, &Shape::flat(7), plan, &cost::Options::default()) else {
            return;
        };
        let path = draw::critical(&trace, &draw::causes(plan, &trace));
        let mut at = 0;
        for hop in &path {
            assert_eq!(hop.from.0, at, "{}: a gap", plan.name());
            at = trace.events[hop.event].end.0;
        }
        assert_eq!(at, trace.end().0, "{}", plan.name());
    });
}
