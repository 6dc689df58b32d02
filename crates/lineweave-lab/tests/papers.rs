//! Findings of the papers: how much of each table comes out, and what becomes of each claim. The pages `papers/*/README.md` say why.

use lineweave_core::algorithm::{find, Problem};
use lineweave_core::collective::Collective;
use lineweave_core::plan::Params;
use lineweave_core::verify::verify;
use lineweave_lab::paper::{Finding, TABLE};

/// Returns a line for each finding of a paper, as `papers.txt` has it.
fn lines(key: &str, findings: &[Finding]) -> Vec<String> {
    let line = |finding: &Finding| match finding {
        Finding::Item(i) => {
            assert_eq!(i.paper, key);
            format!("{key}: {}: {} of {}, {}", i.item, i.agree, i.of, i.basis.name())
        }
        Finding::Claim(c) => {
            assert_eq!(c.paper, key);
            format!("{key}: {}: {}: {}, {}", c.item, c.claimed, c.verdict.name(), c.basis.name())
        }
    };
    findings.iter().map(line).collect()
}

/// One table for all: what was not found before, or is no longer, is shown with the words that explain it.
#[test]
fn findings_are_those_of_the_table() {
    let expected: Vec<&str> = include_str!("papers.txt").lines().collect();
    let mut found = Vec::new();
    for paper in TABLE {
        let findings = (paper.findings)();
        let lines = lines(paper.key, &findings);
        for (line, finding) in
            lines.iter().zip(&findings).filter(|(line, _)| !expected.contains(&line.as_str()))
        {
            println!("{line}\n  {finding:?}");
        }
        found.extend(lines);
    }
    assert_eq!(found, expected, "tests/papers.txt is not what comes out");
}

/// The page of Rico-Gallego & Diaz-Martin 2015 names every claim, and the legible figure comes out stage by stage.
#[test]
fn a_page_that_names_every_claim_does() {
    let paper = TABLE.iter().find(|p| p.key == "rico-gallego-2015").expect("the paper is in the table");
    let page = include_str!("../../../papers/rico-gallego-2015/README.md");
    for finding in (paper.findings)() {
        match finding {
            Finding::Claim(claim) => assert!(page.contains(&claim.item), "no word of {}", claim.item),
            Finding::Item(i) if i.item == "fig 14" => {
                assert!(i.remark.contains("1, 2, 4, 7, 4, 7, 4, 7, 3, 5"), "{}", i.remark);
            }
            Finding::Item(_) => {}
        }
    }
}

/// The barriers of Chunduri & Srinivasan 2015, flags side by side in one place, are barriers.
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
