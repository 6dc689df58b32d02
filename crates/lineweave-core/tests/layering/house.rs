//! How large types may become, and where what is compiled into a crate lies.

use super::{crates_directory, sources, CRATES};
use std::fs;
use syn::Item;

/// More fields than a reader keeps in mind are several types.
const MOST_FIELDS: usize = 15;

/// The crates whose types are held to that.
const HELD: [&str; 5] = ["lineweave", "lineweave-tune", "lineweave-c", "lineweave-py", "lineweave-cli"];

fn structs(items: &[Item]) -> Vec<(String, usize)> {
    let mut found = Vec::new();
    for item in items {
        match item {
            Item::Struct(item) => found.push((item.ident.to_string(), item.fields.len())),
            Item::Mod(item) => found.extend(item.content.iter().flat_map(|(_, items)| structs(items))),
            _ => {}
        }
    }
    found
}

#[test]
fn no_type_has_more_fields_than_a_reader_keeps_in_mind() {
    let mut seen = 0;
    for name in HELD {
        for path in sources(&crates_directory().join(name).join("src")) {
            let text = fs::read_to_string(&path).expect("a readable source");
            for (name, fields) in structs(&syn::parse_file(&text).expect("Rust").items) {
                assert!(fields <= MOST_FIELDS, "{}: {name} has {fields} fields", path.display());
                seen += 1;
            }
        }
    }
    assert!(seen > 300, "only {seen} types were found");
    let large = "mod m { struct S { a: u8, b: u8 } }";
    assert_eq!(structs(&syn::parse_file(large).expect("Rust").items), [("S".to_owned(), 2)]);
}

/// Files outside of a crate are not in its package, which then does not compile.
#[test]
fn what_is_compiled_in_lies_in_the_crate() {
    let mut seen = 0;
    for (name, _) in CRATES {
        let src = crates_directory().join(name).join("src");
        for path in sources(&src) {
            let text = fs::read_to_string(&path).expect("a readable source");
            let depth = path.strip_prefix(&src).expect("below src").components().count();
            for part in text.split("include_").skip(1) {
                let Some(file) = part.split('"').nth(1).filter(|file| file.contains("../")) else { continue };
                // Examples of the README and the guide, which only tests see.
                if !file.ends_with(".md") {
                    let up = file.matches("../").count();
                    assert!(up <= depth, "{}: {file} lies outside of the crate", path.display());
                    seen += 1;
                }
            }
        }
    }
    assert!(seen > 30, "only {seen} files are compiled in");
}

/// The first words of fragments that leave out what returns, holds or does something.
const FRAGMENTS: [&str; 11] = [
    "Whether",
    "Under which",
    "What ",
    "Who ",
    "The same",
    "How ",
    "Where ",
    "Which ",
    "When ",
    "Whom ",
    "Whose ",
];
/// Start of the attribute of an argument, whose doc comment is a help text and may be a fragment.
const ARGUMENT: &str = "#[arg(";

#[test]
fn doc_comments_say_what_returns_or_holds() {
    let mut seen = 0;
    for (name, _) in CRATES {
        for path in sources(&crates_directory().join(name).join("src")) {
            let text = fs::read_to_string(&path).expect("a readable source");
            let lines: Vec<&str> = text.lines().map(str::trim).collect();
            let documents = |line: &str| line.starts_with("///") || line.starts_with("//!");
            let mut above = "";
            for (i, &line) in lines.iter().enumerate() {
                let item = lines[i..].iter().find(|line| !documents(line));
                let is_help = item.is_some_and(|line| line.starts_with(ARGUMENT));
                if documents(line) && !documents(above) && !is_help {
                    let words = line[3..].trim();
                    let fragment = FRAGMENTS.iter().find(|word| words.starts_with(*word));
                    assert_eq!(fragment, None, "{}:{}: {words}", path.display(), i + 1);
                    seen += 1;
                }
                above = line;
            }
        }
    }
    assert!(seen > 3000, "only {seen} doc comments were found");
}
