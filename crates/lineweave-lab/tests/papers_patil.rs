//! What must come out of Patil 2014: see papers/patil-2014/README.md.

mod common;

use common::{counts, findings};
use lineweave_lab::paper::Verdict;

#[test]
fn steps_and_claims_are_as_found() {
    let (items, claims) = findings("patil-2014");
    // All links and tiles but those of alltoall's two lengths; of buffers those of broadcasts neither.
    assert_eq!(
        counts(&items),
        [
            ("section 5.5, steps", 48, 48),
            ("chapter 4, links", 336, 338),
            ("chapter 4, tiles", 336, 338),
            ("chapter 4, buffers", 146, 338)
        ]
    );
    let of = |verdict: Verdict| -> Vec<&str> {
        claims.iter().filter(|c| c.verdict == verdict).map(|c| c.item.as_str()).collect()
    };
    assert_eq!(
        of(Verdict::Holds),
        ["fig 6.1", "fig 1.1, across", "fig 6.2a", "fig 6.2b, RCCE_comm", "fig 6.2c", "fig 6.5a"]
    );
    assert_eq!(
        of(Verdict::Differs),
        [
            "fig 1.1, down",
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
            "fig 6.6b and 6.7b",
            "abstract"
        ]
    );
    assert_eq!(of(Verdict::NotReproduced), ["sections 6.2.3, 6.2.5"]);
}
