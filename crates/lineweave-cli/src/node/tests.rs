use super::*;

/// Calls `look` with a directory that imitates `/`.
pub(super) fn imitated<T>(files: &[(&str, &str)], look: impl FnOnce(&Root) -> T) -> T {
    let name = format!("lineweave-node-{}-{:?}", std::process::id(), std::thread::current().id());
    let directory = std::env::temp_dir().join(name);
    let root = Root::at(&directory);
    for (path, text) in files {
        let path = root.path(path);
        std::fs::create_dir_all(path.parent().expect("a parent")).expect("a directory");
        std::fs::write(path, text).expect("a file");
    }
    let seen = look(&root);
    std::fs::remove_dir_all(directory).expect("what was made can be removed");
    seen
}
use lineweave::topology::{synthetic, Source};

fn node(text: &str, mask: &[usize], machine: bool) -> NodeInfo {
    let mut hardware = synthetic::hardware(text).expect("a topology");
    if machine {
        hardware.source = Source::Machine;
    }
    let files = [("/proc/meminfo", "MemTotal: 2097152 kB\nMemAvailable: 1048576 kB\n")];
    imitated(&files, |root| {
        let usable = UsableCpus::read(root, Ok(mask.to_vec()));
        NodeInfo::of(root, hardware, usable, &Settings::default())
    })
}

#[test]
fn a_small_machine_takes_one_line_of_the_tree() {
    let text = node("pack:1 numa:1 l3:1(size=32MB) core:2 pu:1", &[0, 1], true).render();
    assert!(text.contains("2 of 2 CPUs usable"), "{text}");
    assert!(text.contains("\n  package 0 / numa 0 / L3 32 MiB / cores 0-1 / CPUs 0-1\n"), "{text}");
    assert!(text.contains("1 GiB available: MemAvailable in /proc/meminfo; 2 GiB in all"), "{text}");
}

#[test]
fn a_large_machine_is_a_tree_with_ranges() {
    let text = node("pack:2 numa:2 l3:2(size=32MB) core:8 pu:2", &[0, 1, 40, 41], true).render();
    assert!(text.contains("4 of 128 CPUs usable"), "{text}");
    let tree = "  package 0
    numa 0
      L3 32 MiB / cores 0-7 / CPUs 0-15 (usable: 0-1)
      L3 32 MiB / cores 8-15 / CPUs 16-31 (usable: none)
    numa 1
      L3 32 MiB / cores 16-23 / CPUs 32-47 (usable: 40-41)
      L3 32 MiB / cores 24-31 / CPUs 48-63 (usable: none)
  package 1
";
    assert!(text.contains(tree), "{text}");
    assert!(text.contains("up to 2 CPUs a core, 64 cores"), "{text}");
}

#[test]
fn a_one_cpu_machine_is_shown_in_the_singular() {
    let text = node("core:1 pu:1", &[0], true).render();
    assert!(text.contains("/ core 0 / CPU 0\n"), "{text}");
    assert!(text.contains("1 of 1 CPUs usable"), "{text}");
}

#[test]
fn the_fingerprint_is_of_the_usable_part() {
    let all = node("pack:2 core:4 pu:2", &(0..16).collect::<Vec<_>>(), true);
    let siblings = node("pack:2 core:4 pu:2", &[0, 1], true);
    let apart = node("pack:2 core:4 pu:2", &[0, 8], true);
    assert_eq!((all.fingerprint.cpus, siblings.fingerprint.cpus, apart.fingerprint.cpus), (16, 2, 2));
    assert_ne!(siblings.fingerprint_id, apart.fingerprint_id, "SMT siblings are not two packages");
    assert_eq!(siblings.placement().cpus.iter().map(|c| c.os).collect::<Vec<_>>(), [0, 1]);
}

#[test]
fn a_machine_in_place_of_this_one_is_usable_whole() {
    let foreign = node("pack:2 core:4 pu:1", &[0], false);
    assert_eq!(foreign.placement().cpus.len(), 8);
    assert_eq!(foreign.usable.cpus, [0]);
    assert!(foreign.render().contains("what follows is about this machine, not the one above"));
}

#[test]
fn every_setting_and_warning_is_shown() {
    let (settings, warnings) = Settings::read([
        ("LINEWEAVE_WAIT".to_owned(), "spin".to_owned()),
        ("LINEWEAVE_WHAT".to_owned(), "1".to_owned()),
    ])
    .expect("valid settings");
    let gathered = NodeInfo::gather(&settings, &warnings).expect("this machine");
    let node = NodeInfo { profile: Some("none found".to_owned()), ..gathered };
    let text = node.render();
    for variable in lineweave::settings::VARIABLES {
        assert!(text.contains(variable.name), "{} in {text}", variable.name);
    }
    assert!(text.lines().any(|l| l.starts_with("LINEWEAVE_WAIT ") && l.contains("spin")), "{text}");
    assert!(text.contains("LINEWEAVE_WHAT has no effect"), "{text}");
    assert!(text.contains("none found"), "{text}");
    assert!(text.contains(&node.fingerprint_id), "{text}");
}

#[test]
fn programs_get_the_same() {
    let node = node("pack:1 l3:1(size=32MB) core:2", &[0, 1], true);
    let value = serde_json::to_value(&node).expect("a value");
    assert_eq!(value["fingerprint"]["cpus"], 2);
    assert_eq!(value["hardware"]["caches"][0]["size_bytes"], 32 << 20);
    assert_eq!(value["usable"]["sources"][0]["source"], "affinity");
    assert_eq!(value["settings"][0]["origin"], "default");
    assert_eq!(value["memory"]["available_bytes"], 1 << 30);
}
