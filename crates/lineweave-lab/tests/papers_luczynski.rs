//! Luczynski et al. 2024: what `lineweave lab papers luczynski` prints.

use lineweave_lab::paper::{Finding, Verdict, TABLE};

#[test]
fn closed_forms_agree_and_the_ratio_holds() {
    let paper = TABLE.iter().find(|p| p.key == "luczynski-2024").expect("it is in the table");
    for finding in (paper.findings)() {
        match finding {
            // The bound for two dimensions knows no depth, and long rows are far from it.
            Finding::Item(item) if item.item == "rows, then a column" => {
                assert!(0 < item.agree && item.agree < item.of, "{item:?}");
            }
            Finding::Item(item) => {
                assert!(item.of > 40, "{item:?}");
                assert_eq!(item.agree, item.of, "{item:?}");
            }
            Finding::Claim(claim) if claim.item == "measured" => {
                assert_eq!(claim.verdict, Verdict::NotReproduced);
            }
            Finding::Claim(claim) => assert_eq!(claim.verdict, Verdict::Holds, "{claim:?}"),
        }
    }
}
