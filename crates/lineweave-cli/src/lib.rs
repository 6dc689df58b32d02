//! The parts of the `lineweave` command: arguments, files and standard output, and nothing else.

pub mod bench;
