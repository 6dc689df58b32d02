//! What must come out of Rico-Gallego & Diaz-Martin 2015.

mod common;

use common::{counts, findings};
use lineweave_lab::paper::Verdict;

const KEY: &str = "rico-gallego-2015";

#[test]
fn every_equation_and_legible_figure_comes_out() {
    let (items, _) = findings(KEY);
    let expected = [
        ("eq 7", 60),
        ("eq 9 to 11, 22", 130),
        ("eq 13 to 18, 21", 50),
        ("eq 23, 24", 20),
        ("fig 6", 3),
        ("fig 13", 3),
        ("fig 14", 22),
        ("fig 14, general", 564),
        ("fig 18b", 4),
    ];
    assert_eq!(counts(&items), expected.map(|(item, n)| (item, n, n)));
    let fourteen = items.iter().find(|i| i.item == "fig 14").unwrap();
    assert!(fourteen.remark.contains("1, 2, 4, 7, 4, 7, 4, 7, 3, 5"), "{}", fourteen.remark);
}

#[test]
fn claims_have_the_verdicts_that_the_page_explains() {
    let (_, claims) = findings(KEY);
    let of =
        |verdict| claims.iter().filter(|c| c.verdict == verdict).map(|c| c.item.as_str()).collect::<Vec<_>>();
    assert_eq!(
        of(Verdict::Holds),
        [
            "section 2, eq 7",
            "section 2, eq 3, 13",
            "section 4.3",
            "section 4.3, eq 22",
            "section 3.2",
            "fig 7",
            "fig 11",
            "fig 12",
            "fig 15",
            "fig 17",
            "fig 21, -bcast"
        ]
    );
    assert_eq!(
        of(Verdict::Differs),
        [
            "eq 7, 19",
            "section 2",
            "section 4.3",
            "section 4.3, eq 16, 18",
            "eq 17, 18, 21",
            "section 4.2, body",
            "section 4.2, body",
            "fig 10",
            "fig 4",
            "section 5, one cell",
            "fig 21, -ping"
        ]
    );
    assert_eq!(of(Verdict::NotReproduced), ["fig 9"]);
    let page = include_str!("../../../papers/rico-gallego-2015/README.md");
    for claim in &claims {
        assert!(page.contains(&claim.item), "the page of findings does not mention {}", claim.item);
    }
}
