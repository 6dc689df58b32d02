//! What must show of Chunduri & Srinivasan 2015.

use lineweave_core::paper::{Claim, Finding, Item, TABLE};

#[test]
fn print() {
    let paper = TABLE.iter().find(|p| p.key == "chunduri-2015").unwrap();
    for f in (paper.findings)() {
        match f {
            Finding::Item(Item { item, agree, of, remark, .. }) => println!("{item}: {agree}/{of}: {remark}"),
            Finding::Claim(Claim { item, claimed, ours, verdict, .. }) => println!("{item}: {claimed} | {ours} | {}", verdict.name()),
        }
    }
}
