//! What must show of Chunduri & Srinivasan 2015: which tables and claims come out, and which do not. The page
//! `papers/chunduri-2015/README.md` says why.

mod common;

use common::{counts, findings};
use lineweave_core::algorithm::{find, Problem};
use lineweave_core::collective::Collective;
use lineweave_core::plan::Params;
use lineweave_core::verify::verify;
use lineweave_lab::paper::Verdict;

const KEY: &str = "chunduri-2015";

/// The paper's barriers, flags side by side in one place, are barriers.
#[test]
fn its_barriers_are_proved() {
    for (name, params) in [
        ("tree", vec![("k", "2")]),
        ("tree", vec![("k", "5"), ("release", "shared")]),
        ("binomial", vec![]),
        ("centralized", vec![("release", "each")]),
        ("tournament", vec![("release", "kary"), ("k", "3")]),
        ("tournament", vec![("release", "shared")]),
        ("hierarchical", vec![("levels", "l3:tree(home=root;k=5),machine:tournament(home=root)")]),
    ] {
        let algorithm = find(Collective::Barrier, name).expect("it is in the table");
        for ranks in 1..=24 {
            for layout in ["packed", "paired", "spread5"] {
                let mut params = params.iter().fold(Params::new(), |p, (key, value)| p.with(key, value));
                if name != "hierarchical" {
                    params = params.with("home", "root").with("layout", layout);
                }
                let plan = algorithm.plan(&Problem::flat(Collective::Barrier, ranks, 0), &params);
                let plan = plan.unwrap_or_else(|e| panic!("{name} {params}: {e}"));
                let proof = verify(&plan).unwrap_or_else(|e| panic!("{name} {params} {ranks}: {e}"));
                assert!(proof.synchronizing || ranks == 1);
            }
        }
    }
}

#[test]
fn tables_agree_as_far_as_the_page_says() {
    assert_eq!(
        counts(&findings(KEY).0),
        [
            ("section V: steps of dissemination", 63, 63),
            ("section V: steps of the k-ary tree", 41, 44),
            ("section V: steps of the tournament", 41, 44),
            ("table IV: barrier of seven", 0, 3),
            ("table V: k-ary tree of threads", 2, 8),
        ]
    );
}

#[test]
fn claims_hold_or_differ_as_the_page_says() {
    use Verdict::{Differs, Holds, NotReproduced};
    let expected = [
        ("section VI.G: centralized is the k-ary tree", Holds),
        ("fig 2: degrees 5, 7 and 8 are best, possibly", Differs),
        ("section VI.C: with low degrees", Holds),
        ("table III: a barrier of six", Differs),
        ("table IV: the farther", Holds),
        ("sections VI.B, VI.D: 24 processes", Differs),
        ("fig 2: prefetching", Holds),
        ("fig 4: without prefetching", Holds),
        ("fig 3: 5 and 7 lines", Holds),
        ("fig 4: with one line", Holds),
        ("fig 5: latency jumps", Holds),
        ("section VI.E: 24 processes", Differs),
        ("fig 6: the k-ary tree", Holds),
        ("fig 7: the k-ary tree", Holds),
        ("fig 7: centralized", Differs),
        ("section VI.G: 192", Differs),
        ("table I: ", NotReproduced),
        ("table V: the POSIX", NotReproduced),
    ];
    let (_, claims) = findings(KEY);
    assert_eq!(claims.len(), expected.len());
    for (claim, (start, expected)) in claims.iter().zip(expected) {
        assert!(
            format!("{}: {}", claim.item, claim.claimed).starts_with(start),
            "{claim:?}: expected {start}"
        );
        assert_eq!(claim.verdict, expected, "{claim:?}");
    }
}
