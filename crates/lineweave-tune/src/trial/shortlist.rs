//! Candidates of a race: what the model predicts to be fastest, the same with flags laid out otherwise, and the best of every other
//! algorithm, or of another way to move its bytes, that it does not predict to be far slower, since a model that errs does so by families.
//! Of those whose boxes take more than a core's own caches have room for beside a long message, which the model does not add up, the best
//! whose boxes take less runs as well. Where ranks share CPUs the model errs most, in how often they hand them over: then slower ones run
//! too, and of each the best whose ranks may run a whole call ahead of each other.

use super::race::Rules;
use lineweave_core::algorithm;
use lineweave_core::plan::{Layout, Params, Plan, Reuse};
use lineweave_core::select::{Candidate, Choice, Question};

/// Bytes of boxes that stay in a core's own caches beside a long message. Rings of so many were the fastest for a bcast and a reduce of
/// 1 MiB among 2 processes of a Xeon with 2 MiB of L2 a core; those of 1 MiB took 1.5 times as long.
const CLOSE: usize = 256 << 10;

/// The shortlist, the model's choice first.
pub fn shortlist(question: &Question, choice: &Choice, rules: &Rules) -> Vec<Candidate> {
    let sound = |c: &&Candidate| c.predicted.0.is_finite() && c.predicted.0 > 0.0;
    let mut costed: Vec<&Candidate> = choice.considered.iter().filter(sound).collect();
    // Of those that were given up only a bound is known.
    costed.sort_by_key(|c| c.given_up);
    let mut list: Vec<Candidate> = Vec::new();
    for candidate in costed.iter().filter(|c| !c.given_up || rules.top == usize::MAX) {
        if list.len() < rules.top.max(1) && !list.iter().any(|c| same(question, c, candidate)) {
            list.push((*candidate).clone());
        }
    }
    let Some(best) = list.first().map(|c| c.predicted.0) else { return list };
    let crowded = question.shape.oversubscription() > 1;
    let (most, families) = match crowded {
        true => (best * rules.factor * 2.0, rules.families * 2),
        false => (best * rules.factor, rules.families),
    };
    let otherwise = |c: &Candidate| family(c) == family(&list[0]) && apart(c) != apart(&list[0]);
    if !list.iter().any(otherwise) {
        let found = costed.iter().find(|c| otherwise(c)).map(|c| (*c).clone());
        list.extend(found);
    }
    let mut more = 0;
    for candidate in costed.iter().filter(|c| c.predicted.0 <= most) {
        let known = |c: &Candidate| family(c) == family(candidate) || same(question, c, candidate);
        if more < families && !list.iter().any(known) {
            list.push((*candidate).clone());
            more += 1;
        }
    }
    for i in 0..list.len() {
        let mut also = |wanted: fn(&Question, &Candidate) -> bool| {
            let fits = |c: &Candidate| family(c) == family(&list[i]) && wanted(question, c);
            if !list.iter().any(fits) {
                let new = |c: &&&Candidate| fits(c) && !list.iter().any(|other| same(question, other, c));
                let found = costed.iter().find(new).map(|c| (*c).clone());
                list.extend(found.filter(|c| c.predicted.0 <= most));
            }
        };
        also(close);
        if crowded {
            also(runs_ahead);
        }
    }
    list
}

/// Returns the family of a candidate, in which predictions err alike: the algorithm, and who moves the bytes.
fn family(candidate: &Candidate) -> (&str, Option<&str>) {
    (candidate.name, candidate.params.get("move"))
}

/// Returns whether a rank's boxes, of all runs that follow each other, stay in its CPU's own caches.
fn close(question: &Question, candidate: &Candidate) -> bool {
    if question.bytes <= CLOSE {
        return true;
    }
    // Runs that take turns in banks walk through all of them.
    plan_of(question, candidate).is_some_and(|p| match p.slots.iter().sum() {
        0 => true,
        bytes => p.reuse == Reuse::Same && bytes <= CLOSE,
    })
}

/// Returns whether runs take turns in banks, so that a rank may be a run or more ahead of another.
fn runs_ahead(question: &Question, candidate: &Candidate) -> bool {
    plan_of(question, candidate).is_some_and(|p| p.reuse == Reuse::Ring)
}

/// Returns whether two names are one plan: a tree whose root has all other ranks below it is flat.
fn same(question: &Question, a: &Candidate, b: &Candidate) -> bool {
    let plan = |c: &Candidate| {
        let plan = plan_of(question, c)?;
        Some(Plan { algorithm: String::new(), params: Params::new(), ..plan })
    };
    a.window == b.window && a.ops == b.ops && plan(a) == plan(b)
}

fn plan_of(question: &Question, candidate: &Candidate) -> Option<Plan> {
    let algorithm = algorithm::find(question.collective, candidate.name).ok()?;
    algorithm.plan(&question.window(candidate.window), &candidate.params).ok()
}

/// Returns whether each flag has a line to itself.
fn apart(candidate: &Candidate) -> bool {
    let layout = candidate.params.get("layout").and_then(|name| name.parse().ok());
    matches!(layout, Some(Layout::Alone | Layout::Spread(_)))
}

#[cfg(test)]
mod tests {
    use super::super::race::tests::rules;
    use super::*;
    use lineweave_core::collective::Collective;
    use lineweave_core::model::Values;
    use lineweave_core::select::select;
    use lineweave_core::topology::Shape;
    use lineweave_core::units::Rank;

    #[test]
    fn the_shortlist_begins_with_the_choice_and_reaches_other_families() {
        let question = Question::flat(Collective::Bcast, 4, 1 << 16, 1);
        let choice = select(&Values::default().model(), &question).expect("a choice");
        let list = shortlist(&question, &choice, &rules());
        assert_eq!((list[0].name, &list[0].params), (choice.algorithm, &choice.params));
        assert_eq!(list.len(), 4);
        let later: Vec<&str> = list[2..].iter().map(|c| c.name).collect();
        assert!(later[0] != later[1] && !list[..2].iter().any(|c| later.contains(&c.name)), "{later:?}");
        let narrow = shortlist(&question, &choice, &Rules { factor: 0.0, ..rules() });
        assert_eq!(narrow, list[..2], "only by prediction when nothing slower is allowed for");
        let all = shortlist(&question, &choice, &Rules { top: usize::MAX, ..rules() });
        let sound = |c: &&Candidate| c.predicted.0.is_finite() && c.predicted.0 > 0.0;
        for candidate in choice.considered.iter().filter(sound) {
            assert!(
                all.iter().any(|c| same(&question, c, candidate)),
                "without a limit all run: {candidate:?}"
            );
        }
        let question = Question::flat(Collective::Allreduce, 2, 64, 8);
        let choice = select(&Values::default().model(), &question).expect("a choice");
        let both = shortlist(&question, &choice, &Rules { top: 1, families: 0, ..rules() });
        assert_eq!((both.len(), family(&both[0])), (2, family(&both[1])));
        assert_ne!(apart(&both[0]), apart(&both[1]), "flags laid out otherwise");
        let question = Question::flat(Collective::Reduce, 2, 1 << 20, 8);
        let choice = select(&Values::default().model(), &question).expect("a choice");
        let list = shortlist(&question, &choice, &Rules { families: 6, ..rules() });
        let pipelined: Vec<bool> =
            list.iter().filter(|c| c.name == "pipelined").map(|c| close(&question, c)).collect();
        assert!(pipelined.contains(&true), "rings within a core's own caches: {list:?}");
        let question = Question {
            shape: Shape::on((0..8).map(|r| Shape::flat(2).cpu(Rank(r / 4)).clone()).collect()),
            ..Question::flat(Collective::Bcast, 8, 1 << 16, 1)
        };
        let choice = select(&Values::default().model(), &question).expect("a choice");
        let list = shortlist(&question, &choice, &Rules { families: 6, ..rules() });
        for runner in &list {
            let kin = |c: &&Candidate| family(c) == family(runner) && runs_ahead(&question, c);
            let exists = choice.considered.iter().filter(kin).any(|c| c.predicted.0.is_finite());
            assert!(
                !exists || list.iter().any(|c| kin(&c)),
                "of {} one that runs ahead: {list:?}",
                runner.name
            );
        }
        assert!(list.iter().any(|c| runs_ahead(&question, c)), "{list:?}");
        for runner in &list {
            let twins = list.iter().filter(|c| same(&question, c, runner)).count();
            assert_eq!(twins, 1, "{} {} runs once", runner.name, runner.params);
        }
    }
}
