//! Ramos & Hoefler 2013: how much of each table comes out, and what became of each claim.

mod common;

use common::{counts, findings};
use lineweave_lab::paper::Verdict;

const KEY: &str = "ramos-hoefler-2013";

#[test]
fn tables_come_out_as_far_as_they_are_consistent() {
    // What is short of all is a contradiction within the paper; papers/ramos-hoefler-2013/README.md names each.
    let expected = [
        ("table 1.5a", 7, 7),
        ("table 1.5b (clusters of table 1.6)", 6, 6),
        ("table 1.8 (clusters of table 1.7)", 16, 17),
        ("table 2.1, estimates", 6, 12),
        ("table 2.1, differences", 6, 12),
        ("table 2.2, estimates", 40, 40),
        ("table 2.2, differences", 40, 40),
        ("table 2.3, estimates", 40, 40),
        ("table 2.3, differences", 40, 40),
        ("table 2.4, estimates", 12, 12),
        ("table 2.4, differences", 11, 12),
        ("table 2.5, estimates", 23, 24),
        ("table 2.5, differences", 24, 24),
        ("table 2.6, estimates", 24, 24),
        ("table 2.6, differences", 23, 24),
        ("table 2.7, estimates", 24, 24),
        ("table 2.7, differences", 24, 24),
        ("Eq. 2.6-2.20, overheads", 19, 22),
        ("table 3.1, T_N(1) = o + q - p", 1, 2),
        ("Eq. 3.2, T_C(1) = R_L + R_R", 0, 1),
        ("table B.1 (small broadcast)", 54, 54),
        ("table B.2 (barrier)", 59, 59),
        ("table B.2, improved radix", 58, 59),
        ("table B.3 (small reduction)", 59, 59),
        ("section 4.4, parameters named", 6, 6),
    ];
    assert_eq!(counts(&findings(KEY).0), expected);
}

#[test]
fn claims_are_judged() {
    let (_, claims) = findings(KEY);
    let expected = [
        ("section 2.2", Verdict::Holds),
        ("section 2.2", Verdict::Differs),
        ("section 2.4", Verdict::Holds),
        ("section 2.4", Verdict::Holds),
        ("Eq. 4.7", Verdict::Differs),
        ("fig 4.4", Verdict::Holds),
        ("section 4.1.3", Verdict::Holds),
        ("section A.3", Verdict::Differs),
        ("section A.2", Verdict::Differs),
        ("section A.2", Verdict::Holds),
        ("fig A.5", Verdict::Differs),
        ("fig A.8", Verdict::NotReproduced),
        ("fig A.12", Verdict::NotReproduced),
        ("fig 3.6a, simulated", Verdict::Differs),
        ("fig 3.6b, simulated", Verdict::Differs),
        ("fig 4.4, simulated, 60", Verdict::Holds),
        ("fig 4.4, simulated", Verdict::Differs),
        ("fig 4.5, simulated", Verdict::Differs),
        ("fig 4.6, simulated", Verdict::Holds),
        ("fig 4.7, simulated", Verdict::Differs),
        ("fig 4.8, simulated", Verdict::Differs),
        ("fig 4.1, simulated", Verdict::Holds),
        ("section 4.1.1", Verdict::Differs),
        ("section 4.4, worst case", Verdict::Differs),
        ("section 5.2", Verdict::NotReproduced),
    ];
    assert_eq!(claims.iter().map(|c| (c.item.as_str(), c.verdict)).collect::<Vec<_>>(), expected);
}
