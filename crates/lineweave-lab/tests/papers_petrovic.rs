//! What must come out of Petrovic et al. 2012: see papers/petrovic-2012/README.md.

use lineweave_lab::paper::petrovic::PAPER;
use lineweave_lab::paper::{Finding, Verdict};

#[test]
fn tables_and_claims_are_as_found() {
    let findings = (PAPER.findings)();
    for finding in &findings {
        println!("{finding:?}");
    }
    let mut items = Vec::new();
    let mut differ = Vec::new();
    let mut hold = 0;
    for finding in &findings {
        match finding {
            Finding::Item(item) => items.push((item.item.as_str(), item.agree, item.of)),
            Finding::Claim(claim) if claim.verdict == Verdict::Holds => hold += 1,
            Finding::Claim(claim) => differ.push(claim.item.as_str()),
        }
    }
    assert_eq!(
        items,
        [
            ("equations 1-12", 640, 640),
            ("equations 13, 14", 431, 440),
            ("table 2, formulas", 3, 4),
            ("table 2, plans", 4, 4),
        ]
    );
    assert_eq!(hold, 15);
    assert_eq!(
        differ,
        [
            "fig 7, Eq. 13 and 14",
            "fig 8a, binomial, line flags",
            "fig 8a, binomial, byte flags",
            "fig 8a, binomial, rcce flags",
            "section 6.2.1, 27 %",
            "section 6.2.2, 3x",
            "fig 4, 24 cores"
        ]
    );
}
