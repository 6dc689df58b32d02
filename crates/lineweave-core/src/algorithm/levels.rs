//! Hierarchical plans: which groups play at which level, and which algorithm each level plays.
//!
//! The parameter `levels` reads `core:centralized,l3:dissemination(m=2;layout=packed),machine:tree`, nearest
//! level first; `auto` stands for every level at which the shape has groups. At each level the members that are
//! left form groups, each group's leader (the root where it is one of them, otherwise the first) goes on to the
//! next level, and the last level, `machine`, holds all that are left.

use super::spec::parts;
pub use super::spec::Spec;
use super::{Participants, Place};
use crate::plan::Params;
use crate::topology::{Level, Shape};
use crate::units::Rank;
use std::fmt;
use std::str::FromStr;

/// The value of the parameter `levels`: what each level plays, nearest first.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Levels {
    /// Every level at which the shape has groups, each with its default.
    Auto,
    /// These levels; `machine` is added with its default when it is not among them.
    Given(Vec<(Level, Spec)>),
}

impl fmt::Display for Levels {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Levels::Auto => f.write_str("auto"),
            Levels::Given(list) => {
                let parts: Vec<String> = list.iter().map(|(level, spec)| format!("{level}:{spec}")).collect();
                f.write_str(&parts.join(","))
            }
        }
    }
}

impl FromStr for Levels {
    type Err = String;

    fn from_str(text: &str) -> Result<Levels, String> {
        if text == "auto" {
            return Ok(Levels::Auto);
        }
        let mut list: Vec<(Level, Spec)> = Vec::new();
        for (_, part) in parts(text, &[',']) {
            let (level, spec) = part.split_once(':').ok_or_else(|| {
                format!("`auto` or `level:algorithm,...` nearest level first, not `{part}`")
            })?;
            let (level, spec) = (level.parse::<Level>()?, spec.parse::<Spec>()?);
            if list.last().is_some_and(|(last, _)| *last >= level) {
                return Err(format!("levels from near to far, each once: {level} is out of order"));
            }
            list.push((level, spec));
        }
        if list.is_empty() {
            return Err("`auto` or `level:algorithm,...` nearest level first, not nothing".to_owned());
        }
        Ok(Levels::Given(list))
    }
}

/// Some of the participants, who play one level together.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Group {
    /// Indices into the participants.
    pub members: Vec<usize>,
    /// Index in `members` of the member that goes on to the next level.
    pub leader: usize,
}

impl Group {
    /// The index, among the participants, of the leader.
    pub fn leader_index(&self) -> usize {
        self.members[self.leader]
    }

    /// This group alone, rooted at its leader.
    pub fn participants(&self, whole: &Participants, from: &[Place], to: Place) -> Participants {
        Participants {
            members: self.members.iter().map(|&i| whole.members[i]).collect(),
            root: self.leader,
            from: self.members.iter().map(|&i| from[i]).collect(),
            to,
            ..*whole
        }
    }
}

/// One level of a hierarchical plan.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Stage {
    /// The level; `machine` for the last.
    pub level: Level,
    /// Algorithm that the stage plays, with its parameters.
    pub spec: Spec,
    /// Its groups of two members or more.
    pub groups: Vec<Group>,
}

/// The stages of a hierarchical plan over `participants`, nearest level first. The last holds all leaders left, in one
/// group (or none, when only one is left). `default` names what a level plays when the user does not say.
pub fn stages(
    shape: &Shape,
    participants: &Participants,
    levels: &Levels,
    default: fn(Level) -> Spec,
) -> Vec<Stage> {
    let mut list = match levels {
        Levels::Auto => shape.useful_levels().into_iter().map(|l| (l, default(l))).collect(),
        Levels::Given(list) => list.clone(),
    };
    if list.last().is_none_or(|(level, _)| *level != Level::Machine) {
        list.push((Level::Machine, default(Level::Machine)));
    }
    let mut left: Vec<usize> = (0..participants.len()).collect();
    let mut stages = Vec::with_capacity(list.len());
    for (level, spec) in list {
        let groups = group(shape, participants, level, &left);
        left = groups.iter().map(Group::leader_index).collect();
        let groups = groups.into_iter().filter(|g| g.members.len() > 1).collect();
        stages.push(Stage { level, spec, groups });
    }
    stages
}

/// Returns the parameters by which each of `levels` plays `inner` and the machine `outer`.
pub(super) fn given(levels: &[Level], inner: &str, outer: &str) -> Params {
    let mut text: Vec<String> = levels.iter().map(|level| format!("{level}:{inner}")).collect();
    text.push(format!("machine:{outer}"));
    Params::new().with("levels", text.join(","))
}

/// Returns the defaults and each way to play `levels` and the machine; nothing where there are no levels.
pub(super) fn combined(levels: &[Level], inner: &[&str], outer: &[&str]) -> Vec<Params> {
    if levels.is_empty() {
        return Vec::new();
    }
    let each = inner.iter().flat_map(|inner| outer.iter().map(|outer| given(levels, inner, outer)));
    std::iter::once(Params::new()).chain(each).collect()
}

fn group(shape: &Shape, participants: &Participants, level: Level, left: &[usize]) -> Vec<Group> {
    let mut groups: Vec<Group> = Vec::new();
    for &i in left {
        let rank = |i: usize| Rank::from(participants.members[i]);
        let home = groups.iter_mut().find(|g| shape.distance(rank(g.members[0]), rank(i)) <= level);
        let group = match home {
            Some(group) => group,
            None => {
                groups.push(Group { members: Vec::new(), leader: 0 });
                groups.last_mut().expect("just pushed")
            }
        };
        if i == participants.root {
            group.leader = group.members.len();
        }
        group.members.push(i);
    }
    groups
}

#[cfg(test)]
mod tests {
    use super::super::Problem;
    use super::*;
    use crate::collective::Collective;
    use crate::topology::{Cpu, Topology};

    fn shape() -> Shape {
        let cpus =
            (0..8).map(|c| Cpu { os: c, core: c / 2, l3: c / 4, numa: 0, package: 0, kind: 0 }).collect();
        Shape::place(8, &Topology { cpus })
    }

    fn participants(root: usize) -> Participants {
        let problem = Problem::flat(Collective::Bcast, 8, 8);
        Participants { root, ..Participants::all(&problem) }
    }

    #[test]
    fn specs_and_levels_round_trip() {
        for text in ["auto", "core:centralized,l3:dissemination(layout=packed;m=2),machine:tree"] {
            assert_eq!(text.parse::<Levels>().expect(text).to_string(), text);
        }
        for text in ["", "core", "core:", "core:tree(k", "core:tree(k)", "l3:tree,core:tree", "attic:tree"] {
            assert!(text.parse::<Levels>().is_err(), "{text}");
        }
    }

    #[test]
    fn leaders_go_on_and_the_root_always_leads() {
        let stages = stages(&shape(), &participants(5), &Levels::Auto, |_| Spec::named("tree"));
        let at = |level| stages.iter().find(|s| s.level == level).expect("a stage");
        assert_eq!(at(Level::Core).groups.len(), 4);
        assert_eq!(at(Level::Core).groups[2], Group { members: vec![4, 5], leader: 1 });
        assert_eq!(at(Level::L3).groups[1], Group { members: vec![5, 6], leader: 0 });
        assert_eq!(at(Level::Machine).groups, vec![Group { members: vec![0, 5], leader: 1 }]);
    }
}
