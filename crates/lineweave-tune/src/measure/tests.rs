use super::*;
use lineweave_core::model::fit;

pub(super) fn brief(cpus: usize) -> ProbeSet {
    let mut set = ProbeSet::of_this_machine(&Settings::default()).expect("a topology");
    set.topology.cpus.truncate(cpus);
    set.machine.cpus = set.topology.cpus.len();
    ProbeSet { budget: Duration::from_millis(400), passes: 2, largest: 256 << 10, ..set }
}

fn measured(set: &ProbeSet) -> (Profile, Vec<Progress>) {
    let mut seen = Vec::new();
    let profile = measure(set, &mut |p| seen.push(p)).expect("a profile");
    (profile, seen)
}

#[test]
fn a_profile_is_complete_readable_and_can_be_fitted() {
    let set = brief(2);
    let (profile, seen) = measured(&set);
    assert_eq!(Profile::from_toml(&profile.to_toml()).as_ref(), Ok(&profile));
    assert!(profile.matches(&set.machine).is_ok());
    assert!(profile.cells.iter().all(|c| c.stats.samples > 0 && c.stats.ci_low <= c.stats.ci_high));
    assert!(seen.windows(2).all(|w| w[0].fraction <= w[1].fraction));
    assert!(seen.last().is_some_and(|p| p.fraction <= 1.0 && p.median_ns.is_finite()));
    assert!(profile.cell("line", &[("access", "read"), ("level", "local")]).is_some());
    assert!(profile.cell("copy", &[("pattern", "local"), ("bytes", "4096"), ("tau", "1")]).is_some());
    if set.topology.cpus.len() < 2 {
        return;
    }
    let model = fit(&profile).expect("a model");
    let level = set.topology.cpus[0].common(&set.topology.cpus[1]);
    assert_eq!(model.levels.iter().map(|l| l.level).collect::<Vec<_>>(), [level]);
    let near = &model.levels[0];
    assert!(near.lines.is_some() && near.hockney.is_some());
    assert_eq!(near.get.taus, [1, 2]);
    assert_eq!((near.signal.len(), near.exchange.len()), (5, 5));
    let tricks: Vec<&str> = model.tricks.iter().map(|t| t.name.as_str()).collect();
    assert!(tricks.contains(&"no-pause"), "{tricks:?}");
    assert_eq!(tricks.contains(&"lines-ahead"), tricks.contains(&"lines"), "one is compared with the other");
    assert_eq!(tricks.contains(&"lines-ahead"), tricks.contains(&"prefetchw"), "the same instruction");
    let because = |what: &str| model.unidentified.iter().find(|u| u.what == what).map(|u| u.because.clone());
    assert!(because("T_C").is_some_and(|b| b.contains("need 3 CPUs")), "{:?}", model.unidentified);
}

#[test]
fn one_cpu_is_measured_as_far_as_it_goes() {
    let (profile, _) = measured(&brief(1));
    assert!(profile.cell("overhead", &[("op", "run")]).is_some());
    assert!(profile.cell("wake", &[("kind", "yield"), ("where", "same")]).is_some());
    assert!(profile.probe("exchange").next().is_none());
    let what: Vec<&str> = profile.unidentified.iter().map(|u| u.what.as_str()).collect();
    for missing in ["T_C", "distance[l3]", "L(m, tau > 1)"] {
        assert!(what.contains(&missing), "{what:?}");
    }
}

#[test]
fn no_cpu_is_an_error() {
    let outcome = measure(&brief(0), &mut |_| {});
    assert!(matches!(outcome, Err(Error::Topology(_))), "{outcome:?}");
}
