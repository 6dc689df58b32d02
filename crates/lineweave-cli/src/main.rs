//! The lineweave command.
fn main() {}
