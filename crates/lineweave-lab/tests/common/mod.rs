//! Findings of a paper, as tests compare them.

use lineweave_lab::paper::{Claim, Finding, Item, TABLE};

/// Returns the items and the claims of a paper, and prints them for whoever looks at a failure.
pub fn findings(key: &str) -> (Vec<Item>, Vec<Claim>) {
    let paper = TABLE.iter().find(|p| p.key == key).expect("the paper is in the table");
    let (mut items, mut claims) = (Vec::new(), Vec::new());
    for finding in (paper.findings)() {
        println!("{finding:?}");
        match finding {
            Finding::Item(item) => items.push(item),
            Finding::Claim(claim) => claims.push(claim),
        }
    }
    (items, claims)
}

/// Returns each item's name, and how many of its entries agree.
pub fn counts(items: &[Item]) -> Vec<(&str, usize, usize)> {
    items.iter().map(|i| (i.item.as_str(), i.agree, i.of)).collect()
}
