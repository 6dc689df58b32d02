//! The closed loop: probes played on simulated machines give profiles, from which the fit recovers the parameters of the
//! descriptions that were simulated.

use lineweave_core::machine::{shipped, Machine};
use lineweave_core::model::fit;
use lineweave_core::plan::Layout;
use lineweave_core::profile::Profile;
use lineweave_lab::simulate::measuring::{measure, recovered, Recovered};

fn machine(name: &str) -> &'static Machine {
    shipped().iter().find(|m| m.name == name).expect("it is shipped")
}

fn loop_of(machine: &Machine) -> (Profile, Vec<Recovered>) {
    let profile = measure(machine).unwrap_or_else(|e| panic!("{e}"));
    let model = fit(&profile).unwrap_or_else(|e| panic!("{e}"));
    let found = recovered(machine, &model);
    (profile, found)
}

#[test]
fn the_fit_recovers_the_xeon_phi_with_60_cores() {
    let phi = machine("xeon-phi-5110p");
    let (profile, found) = loop_of(phi);
    assert_eq!(profile.machine.cpus, 60);
    let names: Vec<&str> = found.iter().map(|r| r.name.as_str()).collect();
    assert_eq!(names, ["R_L", "R_R@numa", "c of T_C", "b of T_C", "o of T_N", "q of T_N", "p of T_N"]);
    for parameter in &found {
        let within = if parameter.name.starts_with("R_") { 0.001 } else { 0.02 };
        assert!(parameter.off().abs() < within, "{parameter:?}");
    }
    // A signal is a transfer to the setter and one back to the poller.
    let signal = profile.cell("signal", &[("layout", "alone"), ("level", "numa")]).unwrap().stats.median;
    let r_r = phi.transfer.numa_ns.value.unwrap();
    assert!((signal / (2.0 * r_r) - 1.0).abs() < 0.02, "{signal}");
    let readers = profile.probe("contention").map(|c| c.factors["readers"].parse::<usize>().unwrap()).max();
    assert_eq!(readers, Some(59));
}

/// Where transfers differ by distance, each is found.
#[test]
fn the_fit_recovers_every_distance_of_a_power8() {
    let (profile, found) = loop_of(machine("power8-8247-42l"));
    let reads: Vec<&Recovered> = found.iter().filter(|r| r.name.starts_with("R_R")).collect();
    assert!(reads.len() >= 2, "{found:?}");
    for parameter in reads {
        assert!(parameter.off().abs() < 0.01, "{parameter:?}");
    }
    let layouts = profile.probe("signal").filter(|c| c.factors["layout"] == Layout::Paired.to_string());
    assert!(layouts.count() >= 2);
}

#[test]
fn a_simulated_profile_is_the_same_every_time_and_reads_back() {
    let phi = machine("sandy-bridge-e5-2670-2s");
    let profile = measure(phi).unwrap();
    assert_eq!(profile, measure(phi).unwrap());
    assert_eq!(Profile::from_toml(&profile.to_toml()).as_ref(), Ok(&profile));
}

#[test]
fn what_cannot_be_measured_is_refused() {
    for name in ["intel-scc", "graviton3"] {
        assert!(measure(machine(name)).unwrap_err().to_string().contains(name));
    }
}
