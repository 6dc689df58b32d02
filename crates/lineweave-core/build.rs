//! Gives the sources a number: what was chosen by other ones may be chosen otherwise by these.

use std::fs;
use std::path::{Path, PathBuf};

fn main() {
    let mut files = Vec::new();
    collect(Path::new("src"), &mut files);
    files.sort();
    // FNV-1a.
    let mut number = 0xcbf2_9ce4_8422_2325u64;
    for file in &files {
        let bytes = fs::read(file).unwrap_or_else(|e| panic!("{}: {e}", file.display()));
        for byte in file.to_string_lossy().bytes().chain(bytes) {
            number = (number ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
        }
    }
    println!("cargo:rerun-if-changed=src");
    println!("cargo:rustc-env=LINEWEAVE_SOURCES={number:016x}");
}

fn collect(directory: &Path, files: &mut Vec<PathBuf>) {
    let entries = fs::read_dir(directory).unwrap_or_else(|e| panic!("{}: {e}", directory.display()));
    for path in entries.flatten().map(|entry| entry.path()) {
        match path.is_dir() {
            true => collect(&path, files),
            false => files.push(path),
        }
    }
}
