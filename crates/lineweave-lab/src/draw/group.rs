//! A plan of many ranks: a lane for those that do the same, a box for ops that repeat.

use super::alike::{alike, Alike, Block};
use super::legend::Legend;
use super::plan::{detail, title};
use super::svg::{room_of, Anchor, Point, Stroke, Svg};
use super::{FOLD, INK, RULE, SOFT, SYNC, TRANSFER};
use crate::steps::Steps;
use lineweave_core::plan::Plan;
use lineweave_core::units::Bytes;
use std::collections::BTreeMap;

const TOP: f64 = 64.0;
/// Distance from one lane to the next.
const LANE: f64 = 74.0;
const BOX: f64 = 50.0;
const FONT: f64 = 11.0;
/// Room between two columns, for arrows.
const GAP: f64 = 40.0;
/// Ops that a box names.
const NAMED: usize = 4;
/// Ops that its tooltip lists.
const LISTED: usize = 3;

/// A box: its lane and its place in it.
type Node = (usize, usize);

/// Number of waits that one box ends in another, by (ending box, waiting box).
type Arrows = BTreeMap<(Node, Node), usize>;

/// Draws `plan`, whose ops run in `steps`.
pub(super) fn grouped(plan: &Plan, steps: &Steps) -> String {
    let groups = alike(plan);
    let arrows = arrows(plan, steps, &groups);
    let columns = columns(steps, &groups, &arrows);
    let among = |at: Node| arrows.iter().any(|((from, to), _)| *to == at && from.0 == at.0);
    let texts: BTreeMap<Node, Vec<String>> =
        nodes(&groups).map(|at| (at, words(&groups[at.0].blocks[at.1], among(at)))).collect();

    let title = title(plan);
    let detail = format!("{}  \u{b7}  ranks that do the same are one lane", detail(plan, steps.count));
    let names: Vec<[String; 2]> = groups.iter().map(|g| name(plan, g)).collect();
    let left =
        names.iter().map(|n| (room_of(&n[0], 12.0) * 1.08).max(room_of(&n[1], 10.0))).fold(60.0, f64::max)
            + 34.0;
    let count = columns.values().max().map_or(1, |most| most + 1);
    let mut widths = vec![0.0f64; count];
    for (at, column) in &columns {
        let widest = texts[at].iter().map(|t| room_of(t, FONT)).fold(0.0, f64::max) + 22.0;
        widths[*column] = widths[*column].max(widest);
    }
    // Few boxes are as wide as the title.
    let spare = Svg::heading_width(&title, &detail) - left - widths.iter().sum::<f64>() - GAP * count as f64;
    widths.iter_mut().for_each(|w| *w += (spare / count as f64).max(0.0));
    let x = |column: usize| left + widths[..column].iter().sum::<f64>() + GAP * column as f64;
    let width = x(count);
    let corner = |at: &Node| (x(columns[at]), TOP + at.0 as f64 * LANE + (LANE - BOX) / 2.0);

    let mut svg = Svg::default();
    svg.heading(&title, &detail);
    for (i, [first, second]) in names.iter().enumerate() {
        let y = TOP + (i as f64 + 0.5) * LANE;
        svg.line((left, y), (width - 12.0, y), Stroke { colour: RULE, width: 1.0, dashed: false });
        svg.open(&format!("ranks {}", list(&groups[i].ranks, usize::MAX)));
        svg.text((left - 14.0, y - 2.0), 12.0, INK, Anchor::End, true, first);
        svg.text((left - 14.0, y + 13.0), 10.0, SOFT, Anchor::End, false, second);
        svg.close();
    }
    for ((from, to), times) in arrows.iter().filter(|((from, to), _)| from.0 != to.0) {
        let said =
            |at: &Node| format!("{}, {}", names[at.0][0], names[at.0][1]).trim_end_matches(", ").to_owned();
        svg.open(&format!("{} waits of {} ended by {}", times, said(to), said(from)));
        let (a, b) = ends((corner(from), widths[columns[from]]), (corner(to), widths[columns[to]]));
        let thick = 1.0 + (*times as f64).log2() * 0.4;
        svg.arrow(a, b, Stroke { colour: SYNC, width: thick.min(4.0), dashed: false });
        svg.close();
    }
    let mut drawn = [false; 3];
    for at in nodes(&groups) {
        let block = &groups[at.0].blocks[at.1];
        let kind = kind(block);
        drawn[kind] = true;
        svg.open(&tip(plan, &groups[at.0], block));
        paint(&mut svg, corner(&at), widths[columns[&at]], COLOURS[kind], &texts[&at]);
        svg.close();
    }
    let bottom = TOP + groups.len() as f64 * LANE + 18.0;
    let mut legend = Legend::default();
    for (kind, text) in ["moves data", "folds", "flags alone"].into_iter().enumerate() {
        legend.entry(drawn[kind], text, move |svg, (x, y)| {
            svg.rect((x + 6.0, y - 7.0), (6.0, 14.0), COLOURS[kind], 0.0)
        });
    }
    legend.entry(
        arrows.keys().any(|(from, to)| from.0 != to.0),
        "ends waits: the thicker, the more",
        |svg, (x, y)| {
            svg.arrow((x, y), (x + 24.0, y), Stroke { colour: SYNC, width: 1.6, dashed: false });
        },
    );
    let height = bottom + legend.draw(&mut svg, (16.0, bottom), width - 32.0);
    svg.finish(width, height, &title)
}

const COLOURS: [&str; 3] = [TRANSFER, FOLD, SYNC];

/// The place in [`COLOURS`] of what a block does.
fn kind(block: &Block) -> usize {
    let any = |verbs: &[&str]| block.verbs.iter().any(|v| verbs.contains(v));
    match (any(&["fold"]), any(&["put", "get", "copy", "send"])) {
        (true, _) => 1,
        (false, true) => 0,
        (false, false) => 2,
    }
}

fn nodes(groups: &[Alike]) -> impl Iterator<Item = Node> + '_ {
    groups.iter().enumerate().flat_map(|(g, group)| (0..group.blocks.len()).map(move |b| (g, b)))
}

/// Returns for each two boxes the number of waits of the second that the first ends.
fn arrows(plan: &Plan, steps: &Steps, groups: &[Alike]) -> Arrows {
    let mut of = vec![0; plan.ranks];
    for (g, group) in groups.iter().enumerate() {
        group.ranks.iter().for_each(|&rank| of[rank] = g);
    }
    let node = |rank: usize, op: usize| Some((of[rank], groups[of[rank]].block(rank, op)?));
    let mut arrows = Arrows::new();
    for (rank, list) in steps.ranks.iter().enumerate() {
        // Of programs that only use the same ops, one stands for all.
        if groups[of[rank]].begins.is_empty() && rank != groups[of[rank]].stands {
            continue;
        }
        for (op, step) in list.iter().enumerate() {
            let Some((by, set)) = step.cause else { continue };
            if let (Some(from), Some(to)) = (node(by, set), node(rank, op)) {
                *arrows.entry((from, to)).or_default() += 1;
            }
        }
    }
    arrows
}

/// The column of each box: as many as come before it, in its lane and by arrows that follow time.
fn columns(steps: &Steps, groups: &[Alike], arrows: &Arrows) -> BTreeMap<Node, usize> {
    let begun = |(g, b): Node| {
        let group = &groups[g];
        let at = |rank: usize, first: usize| steps.ranks[rank].get(first).map(|s| s.at);
        match group.begins.is_empty() {
            true => at(group.stands, group.blocks[b].first),
            false => {
                group.ranks.iter().zip(&group.begins).filter_map(|(&rank, firsts)| at(rank, firsts[b])).min()
            }
        }
        .unwrap_or(usize::MAX)
    };
    let mut order: Vec<(usize, usize, Node)> = nodes(groups).map(|at| (begun(at), at.1, at)).collect();
    order.sort_unstable();
    let when: BTreeMap<Node, usize> = order.iter().map(|(when, _, at)| (*at, *when)).collect();
    let mut columns: BTreeMap<Node, usize> = BTreeMap::new();
    for (_, _, at) in order {
        let own = at.1.checked_sub(1).and_then(|before| columns.get(&(at.0, before)));
        let others = arrows.keys().filter(|(from, to)| *to == at && from.0 != at.0 && when[from] < when[&at]);
        let before = own.into_iter().chain(others.filter_map(|(from, _)| columns.get(from))).max();
        columns.insert(at, before.map_or(0, |c| c + 1));
    }
    columns
}

/// Returns the beginning and the end of an arrow between two boxes.
fn ends((a, wide): (Point, f64), (b, broad): (Point, f64)) -> (Point, Point) {
    let middle = |at: Point| at.1 + BOX / 2.0;
    if a.0 + wide <= b.0 {
        return ((a.0 + wide, middle(a)), (b.0, middle(b)));
    }
    // In one column, or backwards: from border to border, each way on a side of its own.
    let (side, from, to) = if a.1 < b.1 { (0.4, a.1 + BOX, b.1) } else { (0.6, a.1, b.1 + BOX) };
    ((a.0 + wide * side, from), (b.0 + broad * side, to))
}

fn paint(svg: &mut Svg, at: Point, width: f64, colour: &str, texts: &[String]) {
    svg.framed(at, (width, BOX), "#eef2f7", "#c9d3df", 4.0);
    svg.rect((at.0, at.1), (6.0, BOX), colour, 2.0);
    let first = at.1 + BOX / 2.0 + 4.0 - (texts.len() as f64 - 1.0) * 7.0;
    for (i, text) in texts.iter().enumerate() {
        let ink = if i == 0 { INK } else { SOFT };
        svg.text((at.0 + 14.0, first + i as f64 * 14.0), FONT, ink, Anchor::Start, false, text);
    }
}

fn between((least, most): (usize, usize), of: impl Fn(usize) -> String) -> String {
    match least == most {
        true => of(least),
        false => format!("{} to {}", of(least), of(most)),
    }
}

/// Returns the lines of text in a box: ops, bytes, and a note if its waits are ended by ranks of its own lane.
fn words(block: &Block, among: bool) -> Vec<String> {
    let mut what = match block.verbs.len() {
        0 => format!("\u{2026} {} more ops", block.ops),
        1..=NAMED => block.verbs.join(", "),
        n => format!("{}, \u{2026} ({n} ops)", block.verbs[..NAMED - 1].join(", ")),
    };
    if block.times != (1, 1) {
        what = format!("{} \u{d7} {what}", between(block.times, |n| n.to_string()));
    }
    let bytes = block.bytes.map(|b| between(b, |n| Bytes(n as u64).to_string()));
    let among = among.then(|| "among these ranks".to_owned());
    [Some(what), bytes, among].into_iter().flatten().collect()
}

fn tip(plan: &Plan, group: &Alike, block: &Block) -> String {
    let mut said = format!("rank {}:", group.stands);
    let ops = &plan.programs[group.stands][block.first..block.first + block.ops];
    ops.iter().take(LISTED).for_each(|op| said += &format!("\n{}", plan.op_text(op)));
    if ops.len() > LISTED {
        said += &format!("\n{} more", ops.len() - LISTED);
    }
    said
}

/// A lane's two lines.
fn name(plan: &Plan, group: &Alike) -> [String; 2] {
    let root = plan.collective.rooted() && group.ranks.contains(&plan.root.index());
    match group.ranks[..] {
        [rank] if root => [format!("rank {rank}"), "root".to_owned()],
        [rank] => [format!("rank {rank}"), String::new()],
        _ => [format!("{} ranks", group.ranks.len()), list(&group.ranks, 3)],
    }
}

/// Ranks in few words: a stretch, a progression, or the first `most` of them and the last.
pub(super) fn list(ranks: &[usize], most: usize) -> String {
    let (Some(first), Some(last)) = (ranks.first(), ranks.last()) else { return String::new() };
    let step = ranks.get(1).map_or(1, |second| second - first);
    let regular = ranks.windows(2).all(|w| w[1] - w[0] == step);
    let some = |n: usize| ranks.iter().take(n).map(usize::to_string).collect::<Vec<_>>().join(", ");
    match ranks.len() {
        n if n <= most.min(3) => some(n),
        _ if regular && step == 1 => format!("{first} to {last}"),
        n if n <= most => some(n),
        _ if regular => format!("{}, \u{2026} {last}", some(2)),
        _ => format!("{}, \u{2026} {last}", some(most.max(1))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_are_listed_in_few_words() {
        assert_eq!(list(&(0..64).collect::<Vec<_>>(), 3), "0 to 63");
        assert_eq!(list(&[1, 3, 5, 7, 9], 3), "1, 3, \u{2026} 9");
        assert_eq!(list(&[1, 2, 4, 8, 16], 3), "1, 2, 4, \u{2026} 16");
        assert_eq!(list(&[4, 7], 3), "4, 7");
        assert_eq!(list(&[1, 2, 4, 8, 16], usize::MAX), "1, 2, 4, 8, 16");
    }
}
