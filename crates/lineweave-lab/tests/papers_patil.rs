//! What must come out of Patil 2014: see papers/patil-2014/README.md.

use lineweave_lab::paper::patil::PAPER;
use lineweave_lab::paper::{Finding, Verdict};

#[test]
fn steps_and_claims_are_as_found() {
    let findings = (PAPER.findings)();
    let of = |verdict: Verdict| -> Vec<&str> {
        let claims = findings.iter().filter_map(|f| match f {
            Finding::Claim(claim) if claim.verdict == verdict => Some(claim.item.as_str()),
            Finding::Claim(_) | Finding::Item(_) => None,
        });
        claims.collect()
    };
    for finding in &findings {
        println!("{finding:?}");
        if let Finding::Item(item) = finding {
            let expected = match item.item.as_str() {
                "section 5.5, steps" => (48, 48),
                // All but alltoall's two lengths.
                "chapter 4, links" => (336, 338),
                other => panic!("no such item is expected: {other}"),
            };
            assert_eq!((item.agree, item.of), expected, "{item:?}");
        }
    }
    assert_eq!(of(Verdict::Holds), ["fig 6.1", "fig 6.2a", "fig 6.2c", "fig 6.5a"]);
    assert_eq!(
        of(Verdict::Differs),
        [
            "fig 1.2",
            "fig 1.3",
            "fig 6.2a, RCKMPI",
            "fig 6.2b",
            "fig 6.3, few cores",
            "fig 6.3, many cores",
            "fig 6.4b",
            "fig 6.4c",
            "fig 6.4, RCKMPI",
            "fig 6.5b",
            "section 5.5",
            "fig 6.8",
            "fig 6.8, RCKMPI",
            "fig 6.8, spread",
            "fig 6.9",
            "fig 6.6a",
            "fig 6.7a",
            "fig 6.6b and 6.7b"
        ]
    );
    assert_eq!(of(Verdict::NotReproduced), [""; 0]);
}
