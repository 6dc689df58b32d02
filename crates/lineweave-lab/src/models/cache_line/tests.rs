use super::*;
use lineweave_core::machine::shipped;

fn machine(name: &str) -> &'static Machine {
    shipped().iter().find(|m| m.name == name).expect("a shipped machine")
}

#[test]
fn what_was_not_measured_is_unknown_and_says_so() {
    let rome = machine("epyc-rome-7742-2s");
    assert_eq!(read(rome, Location::Machine, State::M).map(|f| f.value), Ok(267.0));
    let error = read(rome, Location::Machine, State::E).unwrap_err();
    let text = error.to_string();
    assert!(
        text.starts_with("R_N,E is unknown for epyc-rome-7742-2s: measured only for modified lines"),
        "{text}"
    );
    assert!(Reads::of(rome, Level::Machine).unwrap_err().to_string().starts_with("R_L is unknown"));
    let bridge = machine("sandy-bridge-e5-2670-2s");
    assert!(SameLine::of(bridge, State::E, State::E)
        .unwrap_err()
        .to_string()
        .starts_with("T_C for states E-E"));
    assert!(multi_line(bridge, State::E, State::E).is_err());
    assert!(bandwidth(bridge, Location::Machine, 6).unwrap_err().to_string().contains("2 to 4, 8 to 8"));
    assert!(cells(rome).is_err());
}

#[test]
fn clusters_do_not_depend_on_the_order_of_the_table() {
    for name in ["xeon-phi-5110p", "sandy-bridge-e5-2670-2s"] {
        let mut table = cells(machine(name)).unwrap();
        let names = |clusters: &[Cluster]| -> Vec<Vec<String>> {
            let cell = |c: &Cell| format!("{} {}", c.location.name(), c.state.name());
            clusters
                .iter()
                .map(|c| {
                    let mut names: Vec<String> = c.cells.iter().map(cell).collect();
                    names.sort();
                    names
                })
                .collect()
        };
        let there = names(&clusters(&table, NOISE));
        table.reverse();
        assert_eq!(names(&clusters(&table, NOISE)), there);
        // Everything is one cluster where all noise is allowed, and each cell its own where none is.
        assert_eq!(clusters(&table, f64::INFINITY).len(), 1);
        assert_eq!(clusters(&table, 0.0).len(), table.len());
    }
}

#[test]
fn a_test_of_equal_samples_rejects_nothing() {
    let sample = Sample { mean: 100.0, stdev: 10.0, n: 5000 };
    let same = Comparison::welch(&sample, &sample);
    assert!((same.p - 1.0).abs() < 1e-9 && (same.freedom - 2.0 * 4999.0).abs() < 1e-6, "{same:?}");
    // A difference of 1.96 deviations of itself has p = 0.05.
    let other = Sample { mean: 100.0 + 1.96 * (200.0f64 / 5000.0).sqrt(), ..sample };
    let apart = Comparison::welch(&sample, &other);
    assert!((apart.p - 0.05).abs() < 5e-4, "{apart:?}");
}

#[test]
fn the_worst_case_is_never_better_than_the_best() {
    let phi = machine("xeon-phi-5110p");
    let r = Reads::of(phi, Level::Numa).unwrap();
    let (t_c, t_n) =
        (SameLine::of(phi, State::E, State::E).unwrap(), multi_line(phi, State::E, State::E).unwrap());
    for n in 2..=240 {
        let models = [
            small_broadcast(&r, &t_c, &[n - 1]),
            barrier(&r, n - 1, 1),
            pipelined_broadcast(&r, &t_c, &t_n, n, 128),
            flat_broadcast(&r, &t_c, &t_n, n, 128),
            reduction(&r, &t_c, &t_n, Folding::Slope, &[n - 1]),
            notify_forward(&r, &t_c, &[n - 1]),
        ];
        for model in models {
            assert!(0.0 < model.min && model.min <= model.max, "{n} {model:?}");
        }
    }
}

#[test]
fn the_broadcast_is_the_sum_of_its_parts() {
    let phi = machine("xeon-phi-5110p");
    let r = Reads::of(phi, Level::Numa).unwrap();
    let t_c = SameLine::of(phi, State::E, State::E).unwrap();
    let degrees = [4, 4, 3];
    // Eq. 4.7 term by term: T_fw + sum T_C(k) + sum T_nb(k + 1).
    let copies: f64 = degrees.iter().map(|&k| t_c.from_reads(&r, k as f64)).sum();
    let back = degrees.iter().fold(MinMax::default(), |sum, &k| sum + notify_back(&r, k + 1));
    let whole = notify_forward(&r, &t_c, &degrees) + back + MinMax { min: copies, max: copies };
    let sum = small_broadcast(&r, &t_c, &degrees);
    assert!((whole.min - sum.min).abs() < 1e-9 && (whole.max - sum.max).abs() < 1e-9);
}
