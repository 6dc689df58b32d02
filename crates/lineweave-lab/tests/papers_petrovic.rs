//! What must come out of Petrovic et al. 2012: see papers/petrovic-2012/README.md.

mod common;

use common::{counts, findings};
use lineweave_lab::paper::{Claim, Verdict};

#[test]
fn tables_and_claims_are_as_found() {
    let (items, claims) = findings("petrovic-2012");
    assert_eq!(
        counts(&items),
        [
            ("equations 1-12", 640, 640),
            ("equations 13, 14", 431, 440),
            ("table 2, formulas", 3, 4),
            ("table 2, plans", 4, 4),
        ]
    );
    let (hold, differ): (Vec<Claim>, Vec<Claim>) =
        claims.into_iter().partition(|c| c.verdict == Verdict::Holds);
    assert_eq!(hold.len(), 17);
    assert_eq!(
        differ.iter().map(|c| c.item.as_str()).collect::<Vec<_>>(),
        [
            "fig 7, Eq. 13 and 14",
            "fig 8a, binomial, line flags",
            "fig 8a, binomial, byte flags",
            "fig 8a, binomial, rcce flags",
            "section 6.2.1, 27 %",
            "section 6.2.2, 3x",
            "fig 4, 24 cores",
            "section 4.2",
            "section 4.1, binary"
        ]
    );
}
