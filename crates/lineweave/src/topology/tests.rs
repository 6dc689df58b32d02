use super::*;
use crate::sysfile::tests::FakeRoot;
use lineweave_core::topology::{Level, Shape};
use lineweave_core::units::Rank;

fn load(text: &str) -> Hardware {
    Hardware::load(&Source::parse(text)).expect("a topology")
}

fn ids(hardware: &Hardware) -> Vec<(usize, usize, usize, usize, usize)> {
    hardware.topology.cpus.iter().map(|c| (c.os, c.core, c.l3, c.numa, c.package)).collect()
}

#[test]
fn a_synthetic_string_gives_every_level() {
    let hardware = load("pack:2 numa:4 l3:2 core:8 pu:2");
    let cpus = &hardware.topology.cpus;
    assert_eq!(cpus.len(), 256);
    let last = cpus.last().expect("CPUs");
    assert_eq!((last.core, last.l3, last.numa, last.package), (127, 15, 7, 1));
    let shape = Shape::place(256, &hardware.topology);
    let distances = [1, 2, 16, 32, 128].map(|r| shape.distance(Rank(0), Rank(r)));
    assert_eq!(distances, [Level::Core, Level::L3, Level::Numa, Level::Package, Level::Machine]);
    assert_eq!(shape.useful_levels(), vec![Level::Core, Level::L3, Level::Numa, Level::Package]);
    assert!(hardware.cpu_model.is_none());
}

#[test]
fn cpus_may_be_left_out_at_the_end() {
    let hardware = load("pack:2 numa:4 l3:2 core:8");
    assert_eq!(hardware.topology.cpus.len(), 128);
    let without = hardware.synthetic_form();
    assert!(without.ends_with("core:8 pu:1"), "{without}");
}

#[test]
fn memory_in_brackets_is_a_node_for_each_parent() {
    let hardware = load("pack:2 [numa(memory=1GB)] [numa] l3:2(size=32MB) core:2 pu:2");
    let nodes = hardware.memory.iter().map(|n| (n.os, n.size_bytes, n.cpus.len()));
    let expected = [(0, Some(1 << 30), 8), (1, Some(1 << 30), 8), (2, None, 8), (3, None, 8)];
    assert_eq!(nodes.collect::<Vec<_>>(), expected);
    assert_eq!(hardware.topology.cpus.last().map(|c| (c.numa, c.package)), Some((1, 1)));
    assert_eq!(load("numa:2(memory=4MiB) core:1").memory[1].size_bytes, Some(4 << 20));
    // Who says nothing of memory has one.
    assert_eq!(load("core:4").memory.len(), 1);
}

#[cfg(feature = "hwloc")]
#[test]
fn hwloc_reads_strings_alike() {
    for text in [
        "pack:2 numa:4 l3:2 core:8 pu:2",
        "pack:2 [numa(memory=1GB)] l3:2(size=32MB) core:2 pu:2",
        "[numa(memory=1GB)] pack:2 core:2 pu:1",
        "numa:2 pack:2 core:3 pu:1",
        "pack:1 l3:1(size=33554432) l2:2(size=524288) core:1 pu:1",
        "Package:2 L3Cache:1 core:2 pu:1",
        "pack:2 l3:1 numa:2 core:4 pu:1",
        "pack:2 die:2 l2:2 core:2 pu:1",
        "core:4 pu:1",
        "pu:3",
    ] {
        let (own, theirs) = (load(text), hwloc::synthetic(text));
        assert_eq!(ids(&own), ids(&theirs), "{text}");
        let near = |h: &Hardware| h.memory.iter().map(|n| n.cpus.clone()).collect::<Vec<_>>();
        assert_eq!(near(&own), near(&theirs), "{text}");
        let caches = |h: &Hardware| h.caches.iter().map(|c| (c.level, c.cpus.clone())).collect::<Vec<_>>();
        assert_eq!(caches(&own), caches(&theirs), "{text}");
    }
}

#[test]
fn the_synthetic_form_describes_the_same_machine() {
    for text in ["pack:2 numa:4 l3:2 core:8 pu:2", "pack:1 l3:1 core:2 pu:1", "core:4 pu:2"] {
        let hardware = load(text);
        let again = load(&hardware.synthetic_form());
        assert_eq!(ids(&hardware), ids(&again), "{}", hardware.synthetic_form());
        assert_eq!(hardware.synthetic_form(), again.synthetic_form());
    }
    assert_eq!(
        load("pack:1 numa:1 l3:1(size=33554432) core:2 pu:1").synthetic_form(),
        "pack:1 numa:1 l3:1(size=33554432) core:2 pu:1"
    );
}

#[test]
fn a_cache_that_numa_nodes_share_lies_outside_of_them() {
    let hardware = load("pack:2 l3:1 numa:2 core:4 pu:1");
    let form = hardware.synthetic_form();
    let (l3, numa) = (form.find("l3:1"), form.find("numa:2"));
    assert!(l3.is_some() && numa.is_some() && l3 < numa, "{form}");
    assert_eq!(hardware.topology.cpus.len(), 16);
}

#[test]
fn a_part_of_a_machine_lists_uneven_counts() {
    let part = load("pack:2 numa:1 l3:2 core:2 pu:2").restrict(&[0, 1, 2, 3, 4, 5, 8, 99]);
    assert_eq!(part.topology.cpus.len(), 7);
    assert_eq!(part.memory.len(), 2);
    let form = part.synthetic_form();
    assert!(form.starts_with("pack:2 numa:1 l3:(2,1)"), "{form}");
    assert!(form.ends_with("core:(2,1x2) pu:(2x3,1)"), "{form}");
}

#[test]
fn malformed_strings_are_errors_that_quote_them() {
    for (text, found) in [
        ("pack:2 l3:0", "the count `0`"),
        ("foo:2", "the type `foo`"),
        ("pack:2 core", "`core`, which has no"),
        ("pack:x", "the count `x`"),
        ("pack:99999999999999999999", "the count"),
        ("pack:100000 core:100000", "more than 65536 CPUs"),
        ("core:2 core:2", "two levels `core`"),
        ("core:2 pu:1 l1:2", "below pu"),
        ("pack:2 (", "never closed"),
        ("pack:2 ]", "closes nothing"),
        ("l9:2", "the type `l9`"),
        ("l3é:2", "the type `l3é`"),
        ("()", "which has no"),
        ("[numa]", "no level"),
        ("core:2 [l3]", "memory in brackets is [numa]"),
    ] {
        let error = Hardware::load(&Source::Synthetic(text.to_owned())).expect_err(text);
        assert!(matches!(error, TopologyError::Synthetic { .. }), "{error:?}");
        assert!(error.to_string().contains(found), "{error}");
        assert!(error.to_string().contains(text), "{error}");
    }
}

#[test]
fn sources_are_told_apart() {
    assert_eq!(Source::parse(" machine "), Source::Machine);
    assert_eq!(Source::parse("pack:2 pu:2"), Source::Synthetic("pack:2 pu:2".to_owned()));
    assert_eq!(Source::parse("node.xml"), Source::Xml(PathBuf::from("node.xml")));
    assert_eq!(Source::parse("./a:b"), Source::Xml(PathBuf::from("./a:b")));
}

#[test]
fn both_readers_agree_about_this_machine() {
    let loaded = Hardware::load(&Source::Machine).expect("this machine");
    let own = Hardware::from_sysfs(&Root::live()).expect("this machine");
    assert_eq!(ids(&loaded), ids(&own));
    assert_eq!(loaded.synthetic_form(), own.synthetic_form(), "one fingerprint for both");
    assert_eq!(loaded.cpu_model, own.cpu_model);
    assert_eq!(loaded.line_bytes(), own.line_bytes());
    let caches =
        |h: &Hardware| h.caches.iter().map(|c| (c.level, c.size_bytes, c.cpus.clone())).collect::<Vec<_>>();
    assert_eq!(caches(&loaded), caches(&own));
    let memory = |h: &Hardware| h.memory.iter().map(|n| (n.os, n.cpus.clone())).collect::<Vec<_>>();
    assert_eq!(memory(&loaded), memory(&own));
    assert_eq!(loaded.reader, if cfg!(feature = "hwloc") { "hwloc" } else { "sysfs" });
}

/// Two packages with numbers interleaved, SMT siblings far apart, as servers have them.
fn server() -> FakeRoot {
    let mut files = vec![
        ("/sys/devices/system/cpu/online".to_owned(), "0-7\n".to_owned()),
        ("/sys/devices/system/node/node0/cpulist".to_owned(), "0,2,4,6\n".to_owned()),
        ("/sys/devices/system/node/node1/cpulist".to_owned(), "1,3,5,7\n".to_owned()),
        ("/sys/devices/system/node/node2/cpulist".to_owned(), "\n".to_owned()),
        (
            "/sys/devices/system/node/node0/meminfo".to_owned(),
            "Node 0 MemTotal:       1048576 kB\nNode 0 MemFree: 5 kB\n".to_owned(),
        ),
        ("/proc/cpuinfo".to_owned(), "processor\t: 0\nmodel name\t: Test CPU @ 2 GHz\n".to_owned()),
    ];
    for cpu in 0..8usize {
        let directory = format!("/sys/devices/system/cpu/cpu{cpu}");
        let package = if cpu % 2 == 0 { "0,2,4,6" } else { "1,3,5,7" };
        let core = format!("{},{}", cpu % 4, cpu % 4 + 4);
        files.push((format!("{directory}/topology/core_cpus_list"), core.clone()));
        files.push((format!("{directory}/topology/package_cpus_list"), package.to_owned()));
        for (index, level, kind, size, shared) in [
            (0, 1, "Data", "32K", core.as_str()),
            (1, 1, "Instruction", "32K", core.as_str()),
            (2, 3, "Unified", "16384K", package),
        ] {
            let cache = format!("{directory}/cache/index{index}");
            for (name, text) in [
                ("level", level.to_string()),
                ("type", kind.to_owned()),
                ("size", size.to_owned()),
                ("coherency_line_size", "64".to_owned()),
                ("shared_cpu_list", shared.to_owned()),
            ] {
                files.push((format!("{cache}/{name}"), text));
            }
        }
    }
    let files: Vec<(&str, &str)> = files.iter().map(|(p, t)| (p.as_str(), t.as_str())).collect();
    FakeRoot::new(&files)
}

#[test]
fn sysfs_alone_tells_levels_and_sizes() {
    let hardware = Hardware::from_sysfs(&server().root()).expect("a machine");
    assert_eq!(
        ids(&hardware),
        [
            (0, 0, 0, 0, 0),
            (4, 0, 0, 0, 0),
            (2, 1, 0, 0, 0),
            (6, 1, 0, 0, 0),
            (1, 2, 1, 1, 1),
            (5, 2, 1, 1, 1),
            (3, 3, 1, 1, 1),
            (7, 3, 1, 1, 1)
        ]
    );
    assert_eq!(hardware.synthetic_form(), "pack:2 numa:1 l3:1(size=16777216) core:2 pu:2");
    assert_eq!((hardware.caches_at(3).count(), hardware.caches_at(1).count()), (2, 4));
    assert_eq!(hardware.line_bytes(), Some(64));
    assert_eq!(hardware.memory[0].size_bytes, Some(1 << 30));
    assert!(hardware.memory[2].cpus.is_empty(), "memory without CPUs is a node all the same");
    assert_eq!(hardware.cpu_model.as_deref(), Some("Test CPU @ 2 GHz"));
    assert!(hardware.kinds.is_empty());
}

#[test]
fn sysfs_with_nothing_but_the_list_of_cpus() {
    let one = Hardware::from_sysfs(&FakeRoot::new(&[("/sys/devices/system/cpu/online", "0\n")]).root());
    let one = one.expect("a 1-CPU machine");
    assert_eq!(ids(&one), [(0, 0, 0, 0, 0)]);
    assert_eq!(one.synthetic_form(), "pack:1 numa:1 core:1 pu:1");
    let none = Hardware::from_sysfs(&FakeRoot::new(&[]).root()).expect_err("no CPU");
    assert!(none.to_string().contains("LINEWEAVE_TOPOLOGY"), "{none}");
}

#[test]
fn core_kinds_by_capacity_and_by_intels_lists() {
    let arm = FakeRoot::new(&[
        ("/sys/devices/system/cpu/online", "0-2"),
        ("/sys/devices/system/cpu/cpu0/cpu_capacity", "1024"),
        ("/sys/devices/system/cpu/cpu1/cpu_capacity", "446"),
        ("/sys/devices/system/cpu/cpu2/cpu_capacity", "446"),
        ("/proc/cpuinfo", "CPU implementer\t: 0x41\nCPU part\t: 0xd0c\n"),
    ]);
    let arm = Hardware::from_sysfs(&arm.root()).expect("a machine");
    assert_eq!(arm.topology.cpus.iter().map(|c| c.kind).collect::<Vec<_>>(), [1, 0, 0]);
    assert_eq!(arm.cpu_model.as_deref(), Some("Arm Neoverse-N1"));
    let intel = FakeRoot::new(&[
        ("/sys/devices/system/cpu/online", "0-3"),
        ("/sys/devices/cpu_core/cpus", "0-1"),
        ("/sys/devices/cpu_atom/cpus", "2-3"),
        ("/proc/cpuinfo", "CPU implementer\t: 0x99\nCPU part\t: 0x1\n"),
    ]);
    let intel = Hardware::from_sysfs(&intel.root()).expect("a machine");
    assert_eq!(intel.topology.cpus.iter().map(|c| c.kind).collect::<Vec<_>>(), [1, 1, 0, 0]);
    assert_eq!(intel.cpu_model.as_deref(), Some("Arm implementer 0x99 part 0x1"));
}

#[test]
fn core_kinds_by_frequencies_that_differ_by_more_than_a_tenth() {
    let kinds = |frequencies: [&str; 4]| {
        let file = |cpu: usize| format!("/sys/devices/system/cpu/cpu{cpu}/cpufreq/cpuinfo_max_freq");
        let paths = [0, 1, 2, 3].map(file);
        let mut files = vec![("/sys/devices/system/cpu/online", "0-3")];
        files.extend(paths.iter().zip(frequencies).map(|(path, kilohertz)| (path.as_str(), kilohertz)));
        let hardware = Hardware::from_sysfs(&FakeRoot::new(&files).root()).expect("a machine");
        hardware.topology.cpus.iter().map(|c| c.kind).collect::<Vec<_>>()
    };
    assert_eq!(kinds(["5000000", "3300000", "5100000", "3300000"]), [1, 0, 1, 0]);
    assert_eq!(kinds(["5000000", "4900000", "5100000", "4800000"]), [0; 4], "favoured cores are of one kind");
}

mod xml;

#[test]
fn without_sys_the_cpus_of_the_mask_are_known_and_nothing_else() {
    let root = FakeRoot::new(&[("/proc/cpuinfo", "model name : A CPU\n")]);
    assert!(Hardware::from_sysfs(&root.root()).is_err());
    let hardware = sysfs::by_mask(&root.root(), vec![1, 3]);
    assert_eq!(ids(&hardware), [(1, 0, 0, 0, 0), (3, 1, 1, 0, 0)]);
    assert_eq!(
        (hardware.reader, hardware.cpu_model.as_deref(), hardware.line_bytes()),
        ("mask", Some("A CPU"), None)
    );
    assert_eq!(ids(&sysfs::by_mask(&root.root(), Vec::new())), [(0, 0, 0, 0, 0)]);
}
