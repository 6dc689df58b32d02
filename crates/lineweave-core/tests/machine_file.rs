//! Machine files: what is wrong is named with its line, whatever the text.

use lineweave_core::machine::{shipped, Machine, MachineError, Status, SOURCES};
use lineweave_core::topology::Level;
use proptest::prelude::*;

fn text(name: &str) -> &'static str {
    SOURCES.iter().find(|(n, _)| *n == name).unwrap().1
}

fn line_with(text: &str, part: &str) -> usize {
    1 + text.lines().position(|l| l.contains(part)).unwrap()
}

/// The error after replacing `from` once, and the line where `from` stood.
fn broken(from: &str, to: &str) -> (MachineError, usize) {
    let text = text("epyc-rome-7742-2s");
    let line = line_with(text, from);
    (text.replacen(from, to, 1).parse::<Machine>().expect_err(to), line)
}

#[test]
fn each_kind_of_error_names_its_line() {
    for (from, to, expected) in [
        ("l3_ns = { value = 25.0", "l3_ns = { value = -25.0", "expected a number above 0, found -25"),
        ("l3_ns", "l4_ns", "unknown field `l4_ns`, expected one of `core_ns`, `l3_ns`"),
        ("schema = 1", "schema = 2", "expected schema 1"),
        ("value = 132.0", "value = 13.2", "numa = 13.2 ns is less than l3 = 25 ns"),
        ("arch = \"x86_64\"", "arch = 3", "invalid type: integer `3`, expected a string"),
        ("arch = \"x86_64\"", "arch = 1979-05-27", "`arch`: invalid type: a date or time, expected a string"),
        (
            "l3_ns = {",
            "l3_ns = 3 # {",
            "`l3_ns`: invalid type: integer `3`, expected a table of value, status and source",
        ),
        ("value = 132.0", "value = 13.2.0", ""),
        ("l3:16", "l3:0", "a count of at least 1"),
        (
            "status = \"cited\"",
            "status = \"heard\"",
            "unknown variant `heard`, expected one of `measured`, `cited`",
        ),
    ] {
        let (error, line) = broken(from, to);
        assert_eq!(error.line, line, "{error}");
        assert!(error.message.contains(expected), "{error}");
    }
}

/// The keys of a mesh are those of two types.
#[test]
fn faults_of_a_mesh_are_found_in_both_of_its_parts() {
    let text = text("intel-scc");
    let line = 1 + text.lines().position(|line| line == "[mesh]").unwrap();
    for (from, to, expected) in [
        (
            "columns = { value = 6",
            "columns = { value = 6.5",
            "expected a whole number from 1 to 65536, found 6.5",
        ),
        ("hop_ns = { value = 5.0", "hop_ns = { value = -5.0", "expected a number above 0, found -5"),
        ("hop_ns", "hip_ns", "missing field `hop_ns`"),
        ("columns =", "colums =", "missing field `columns`"),
        ("\nhop_ns", "\nhip_ns = 1\nhop_ns", "unknown field `hip_ns`"),
        ("\"xy\"", "\"yz\"", "expected one of `xy`, `yx`, `torus-xy`"),
        ("0,0 5,0", "0,0 5", "expected tiles as column,row"),
    ] {
        let error = text.replacen(from, to, 1).parse::<Machine>().expect_err(to);
        assert!(error.line >= line && error.message.contains(expected), "{error}");
    }
}

#[test]
fn a_value_that_is_left_out_is_an_error_not_a_default() {
    for (name, text) in SOURCES {
        for (n, line) in text.lines().enumerate().filter(|(_, l)| l.contains("source =")) {
            let without: String =
                text.lines().enumerate().filter(|(i, _)| *i != n).map(|(_, l)| format!("{l}\n")).collect();
            let error = without.parse::<Machine>().expect_err(line);
            let key = line.split(" =").next().unwrap();
            assert!(error.message.contains(&format!("missing field `{key}`")), "{name}: {error}");
            assert!(error.message.contains("status = \"unknown\""));
        }
    }
}

#[test]
fn unknown_and_value_exclude_each_other() {
    let (error, _) = broken("status = \"cited\"", "status = \"unknown\"");
    assert!(error.to_string().contains("because a value is given"), "{error}");
    let (error, line) = broken("value = 25.0, ", "");
    assert!(error.message.contains("missing field `value`"), "{error}");
    assert_eq!(error.line, line);
    let (error, _) = broken("value = 25.0, ", "value = 25.0, low = 26.0, ");
    assert!(error.to_string().contains("low <= value <= high"), "{error}");
}

#[test]
fn every_shipped_value_has_a_status_and_a_source() {
    for machine in shipped() {
        for level in Level::ALL {
            let value = machine.transfer(level);
            assert_eq!(value.value.is_none(), value.status == Status::Unknown, "{} {level}", machine.name);
            assert!(value.source.len() > 8, "{} {level}: {}", machine.name, value.source);
        }
    }
}

/// Any outcome but a panic or an error without a line of the text.
fn machine_or_line(text: &str) -> Result<(), TestCaseError> {
    if let Err(e) = text.parse::<Machine>() {
        prop_assert!(e.line >= 1 && e.line <= text.lines().count().max(1), "{} of {:?}", e, text);
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn truncated_files_are_refused(which in 0..SOURCES.len(), cut in 0..10_000usize) {
        let text = SOURCES[which].1;
        let cut = cut % text.len();
        let end = text[cut..].find(|c: char| !c.is_whitespace());
        if let (Some(truncated), Some(_)) = (text.get(..cut), end) {
            machine_or_line(truncated)?;
            // Arrays of fits may end early: the file is complete before each, and before and in comments that precede it.
            let line = truncated.rfind('\n').map_or(0, |end| end + 1);
            let from = if text[line..].starts_with('#') { line } else { cut };
            let next = text[from..].lines().find(|l| !l.trim().is_empty() && !l.starts_with('#'));
            if !truncated.contains("[[") && !next.is_some_and(|l| l.starts_with("[[")) {
                prop_assert!(truncated.parse::<Machine>().is_err());
            }
        }
    }

    #[test]
    fn garbage_never_panics(text in any::<String>(), bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        prop_assert!(text.parse::<Machine>().is_err());
        machine_or_line(&text)?;
        machine_or_line(&String::from_utf8_lossy(&bytes))?;
    }

    #[test]
    fn nearly_valid_files_never_panic(
        which in 0..SOURCES.len(),
        edits in prop::collection::vec((0..10_000usize, "[ -~]|\\PC|\n|\\[a\\.b\\]\n|x\\.y = 1979-05-27\n"), 1..4),
    ) {
        let mut text: Vec<char> = SOURCES[which].1.chars().collect();
        for (at, insert) in edits {
            let at = at % text.len();
            text.splice(at..(at + 1).min(text.len()), insert.chars());
        }
        machine_or_line(&text.into_iter().collect::<String>())?;
    }
}

#[test]
fn deep_nesting_is_refused() {
    let deep = format!("schema = 1\nx = {}", "[".repeat(100_000));
    let error = deep.parse::<Machine>().unwrap_err();
    assert_eq!(error.line, 2, "{error}");
}

/// The times of concurrent transfers are held to the same rules.
#[test]
fn concurrent_transfers_are_refused_with_their_line() {
    let base = text("metropolis");
    let table = |tau: &str, l_ns: &str| {
        format!("\n[[concurrent]]\npattern = \"ring\"\nbytes = 64\ntau = {tau}\nl_ns = {l_ns}\n")
    };
    let known = |v: &str| format!("{{ value = {v}, status = \"cited\", source = \"a test\" }}");
    let read = |more: &str| format!("{base}{more}").parse::<Machine>();
    let lines = base.lines().count();
    let machine = read(&(table("1", &known("10.0")) + &table("2", &known("12.0")))).unwrap();
    assert_eq!(machine.concurrent.len(), 5);

    let error = read(&(table("1", &known("10.0")) + &table("2", &known("9.0")))).unwrap_err();
    assert_eq!(error.line, lines + 12);
    assert!(error.to_string().contains("L(64, 2) = 9 ns of `ring` is less than L(64, 1) = 10 ns"), "{error}");
    for (tau, value, expected) in [
        ("1", known("-1.0"), "above 0"),
        ("0", known("1.0"), "above 0"),
        ("1.5", known("1.0"), "`tau`: expected a whole number above 0, found 1.5"),
        ("1", "{ status = \"cited\", source = \"s\" }".to_owned(), "missing field `value`"),
    ] {
        let error = read(&table(tau, &value)).unwrap_err();
        assert!(error.to_string().contains(expected), "{error}");
        assert!(error.line > lines, "{error}");
    }
    let error = read("\n[[concurrent]]\nbytes = 64\ntau = 1\n").unwrap_err();
    assert!(error.message.contains("missing field `pattern`"), "{error}");
    let error = read(&table("1", &known("1.0")).replace("ring", "rung")).unwrap_err();
    assert!(error.to_string().contains("ring, ping or bcast"), "{error}");
}
