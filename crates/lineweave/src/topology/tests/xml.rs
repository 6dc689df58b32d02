//! Files of hwloc.

use super::*;

const HYBRID: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/hybrid.xml");

#[test]
fn a_file_tells_caches_kinds_and_the_cpus_name() {
    let hardware = load(HYBRID);
    assert_eq!(ids(&hardware).len(), 6);
    assert_eq!(hardware.topology.cpus.iter().map(|c| c.kind).collect::<Vec<_>>(), [1, 1, 1, 1, 0, 0]);
    assert_eq!(hardware.kinds.len(), 2);
    assert!(hardware.kinds[0].about.contains("IntelAtom"), "{:?}", hardware.kinds);
    assert_eq!(hardware.cpu_model.as_deref(), Some("Hybrid Test CPU"));
    assert_eq!(hardware.caches_at(2).next().and_then(|c| c.size_bytes), Some(1_310_720));
    assert_eq!(hardware.line_bytes(), Some(64));
    assert_eq!(hardware.synthetic_form(), "pack:1 numa:1 l3:1(size=12582912) core:3 pu:2");
}

/// A bad file may be refused or, where the damage is harmless, read; it must not end the process.
#[test]
fn damaged_files_end_in_a_value() {
    let whole = std::fs::read_to_string(HYBRID).expect("the fixture");
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut next = |bound: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % bound
    };
    let mut refused = 0;
    for _ in 0..300 {
        let mut bytes = whole.clone().into_bytes();
        for _ in 0..=next(3) {
            let at = next(bytes.len() - 12);
            match next(3) {
                0 => bytes[at] = b'0' + next(10) as u8,
                1 => drop(bytes.drain(at..at + next(8))),
                _ => bytes[at] = b' ' + next(95) as u8,
            }
        }
        let fake = FakeRoot::new(&[]);
        let path = fake.root().path("/t.xml");
        std::fs::write(&path, &bytes).expect("a file");
        match Hardware::load(&Source::Xml(path)) {
            Ok(hardware) => assert!(!hardware.topology.cpus.is_empty()),
            Err(error) => {
                assert!(error.to_string().contains("t.xml"), "{error}");
                refused += 1;
            }
        }
    }
    assert!(refused > 0, "some damage must be noticed");
}

#[test]
fn a_source_of_any_length_is_repeated_in_a_few_words() {
    for text in ["x".repeat(100_000), "./x".repeat(30_000)] {
        let error = Hardware::load(&Source::parse(&text)).expect_err("no topology").to_string();
        assert!(error.contains(" bytes)") && error.len() < 2000, "{error}");
    }
}

#[test]
fn a_pipe_stops_nobody() {
    let fake = FakeRoot::new(&[]);
    let pipe = fake.root().path("/pipe");
    let made = std::process::Command::new("mkfifo").arg(&pipe).status().expect("mkfifo");
    assert!(made.success());
    for file in [pipe, PathBuf::from("/dev/zero")] {
        let error = Hardware::load(&Source::Xml(file)).expect_err("no file").to_string();
        assert!(error.contains("no regular file"), "{error}");
    }
}

#[test]
fn a_missing_file_is_an_error_that_says_what_to_do() {
    let error = Hardware::load(&Source::parse("./no-such.xml")).expect_err("no file");
    assert!(matches!(error, TopologyError::File { .. }), "{error:?}");
    let message = error.to_string();
    assert!(message.contains("no-such.xml") && message.contains("pack:2"), "{message}");
}

#[test]
fn the_older_format_and_large_sets_are_read() {
    let pu = |os: usize, set: &str| format!("<object type='PU' os_index='{os}' cpuset='{set}'/>");
    let text = format!(
        "<?xml version='1.0'?><!DOCTYPE topology SYSTEM 'hwloc.dtd'>\n<topology>\n\
         <object type='Machine' cpuset='0x00000010,,0x00000003'>\n<!-- <object> -->\n\
         <object type='Socket' os_index='0' cpuset='0x3'><info name='CPUModel' value='A&amp;B'/>\n\
         <object type='Cache' depth='2' cache_size='1024' cpuset='0x3'>{}{}</object></object>\n\
         <object type='Socket' os_index='1' cpuset='0x10,,0x0'>{}</object></object></topology>\n",
        pu(0, "0x1"),
        pu(1, "0x2"),
        pu(68, "0x10,0x0,0x0"),
    );
    let fake = FakeRoot::new(&[("/old.xml", &text)]);
    let hardware = Hardware::load(&Source::Xml(fake.root().path("/old.xml"))).expect("a topology");
    assert_eq!(ids(&hardware), [(0, 0, 0, 0, 0), (1, 1, 0, 0, 0), (68, 2, 1, 0, 1)]);
    assert_eq!(hardware.cpu_model.as_deref(), Some("A&B"));
    assert_eq!(hardware.synthetic_form(), "numa:1 pack:2 l2:1(size=1024) core:(2,1) pu:1");
}

#[test]
fn a_truncated_or_foreign_file_is_named() {
    let whole = std::fs::read_to_string(HYBRID).expect("the fixture");
    let unclosed = whole.replacen("</object>", "", 1);
    let stray = whole.replacen("cpuset=\"0x00000003\"", "cpuset=\"0x00000043\"", 1);
    let endless = whole.replacen("cpuset=\"0x00000003\"", "cpuset=\"0xf...f\"", 1);
    let twice = whole.replacen("os_index=\"1\" cpuset=\"0x00000002\"", "os_index=\"0\" cpuset=\"0x1\"", 1);
    for (text, found) in [
        ("", "an empty file"),
        ("<a></a>", "line 1: no <topology> element but <a>"),
        ("synthetic", "no <topology> element"),
        ("<topology></topology>", "no PU object"),
        ("<topology></topology><topology/>", "after </topology>"),
        ("</topology>", "closes nothing"),
        ("<topology a>", "`a` where name="),
        ("<topology a=\"1>", "where name="),
        (&whole[..whole.len() / 2], "truncated"),
        (&unclosed, "</topology> where </object> was expected"),
        (&stray, "CPU 6 in a L2Cache but not in what is around it"),
        (&endless, "the set \"0xf...f\""),
        (&twice, "CPU 0 twice"),
    ] {
        let fake = FakeRoot::new(&[("/t.xml", text)]);
        let path = fake.root().path("/t.xml");
        let error = Hardware::load(&Source::Xml(path.clone())).expect_err(found);
        assert!(matches!(error, TopologyError::Xml { .. }), "{error:?}");
        let message = error.to_string();
        assert!(message.contains(found) && message.contains(&path.display().to_string()), "{message}");
    }
}
