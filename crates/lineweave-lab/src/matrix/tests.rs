//! Tests of texts that are read, texts that are refused, and the machines made of them.

use super::*;
use lineweave_core::machine::{topology, Machine, Matrix};
use lineweave_core::topology::{Level, Topology};

/// A matrix of a machine with these costs, its CPUs numbered so.
fn made(shape: &str, number: impl Fn(usize) -> usize, ns: impl Fn(usize, usize, Level) -> f64) -> Matrix {
    let t = topology(shape).unwrap();
    let numbers: Vec<usize> = (0..t.cpus.len()).map(number).collect();
    Matrix::new(&numbers, |i, j| ns(i, j, t.cpus[i].common(&t.cpus[j])))
}

fn by_level(level: Level) -> f64 {
    match level {
        Level::Core => 8.0,
        Level::L3 => 25.0,
        Level::Numa => 110.0,
        Level::Package => 150.0,
        Level::Machine => 200.0,
    }
}

fn error(text: &str) -> MatrixError {
    read(text).expect_err(text)
}

fn remarked(text: &str, remark: &str) -> Matrix {
    let readout = read(text).unwrap_or_else(|e| panic!("{e}: {text}"));
    let found = readout.remarks.iter().any(|r| r.contains(remark));
    assert!(found, "`{remark}` is not among {:?}", readout.remarks);
    readout.matrix
}

/// Groups by level, of CPU numbers.
fn groups(t: &Topology, level: Level) -> Vec<Vec<usize>> {
    let mut out: Vec<(usize, Vec<usize>)> = Vec::new();
    for cpu in &t.cpus {
        match out.iter_mut().find(|(id, _)| *id == cpu.id(level)) {
            Some((_, group)) => group.push(cpu.os),
            None => out.push((cpu.id(level), vec![cpu.os])),
        }
    }
    out.into_iter().map(|(_, group)| group).collect()
}

#[test]
fn triangles_and_full_matrices_with_and_without_headings_are_one() {
    let plain = read(",,\n10,,\n20,30,\n").unwrap();
    assert_eq!(plain.remarks, [""; 0]);
    for same in [
        "0,10,20\n10,0,30\n20,30,0\n",
        ",10,20\n,,30\n,,\n",
        ",10,20\n10,,30\n20,30,\n",
        "-\n10,-\n20,30,-\n",
        "# measured in ns\n-;-;-\n10;-;-\n20;30;-\n",
        "\u{feff}\t\t\r\n10\t\t\r\n20\t30\t\r\n",
        "cpu,0,1,2\n0,,,\n1,10,,\n2,20,30,\n",
        ",CPU0,CPU1,CPU2\nCPU0,0,10,20\nCPU1,10,0,30\nCPU2,20,30,0\n",
        ",0,1,2\n0,0,10,20\n1,10,0,30\n2,20,30,0\n",
        "0,1,2\n0,10,20\n10,0,30\n20,30,0\n",
        "\"\",\"\",\"\"\n\"10\",\"\",\"\"\n\"20\",\"30\",\"\"\n",
        "-;-;-\n10,0;-;-\n20,0;30,0;-\n",
        "- - -\n10 - -\n20 30 -\n",
    ] {
        assert_eq!(read(same).map(|r| r.matrix), Ok(plain.matrix.clone()), "{same}");
    }
}

#[test]
fn other_numberings_are_kept() {
    let matrix = read("ns,4,0,2\n4,,,\n0,10,,\n2,20,30,\n").unwrap().matrix;
    assert_eq!(matrix.cpus(), [0, 2, 4]);
    assert_eq!((matrix.between(4, 0), matrix.between(0, 2)), (Some(10.0), Some(30.0)));
    assert_eq!(read(&csv(&matrix)).unwrap().matrix, matrix);
    let twice = error("ns,4,4,2\n4,,,\n4,10,,\n2,20,30,\n");
    assert_eq!(twice, MatrixError::Heading { line: 1, found: "4".to_owned() });
    let other = error("ns,4,0,2\n4,,,\n1,10,,\n2,20,30,\n");
    assert_eq!(other, MatrixError::Heading { line: 3, found: "1".to_owned() });
}

/// In a full matrix the first row and the first column are the same, as headings are.
#[test]
fn latencies_of_the_first_cpu_are_no_headings() {
    let ns = |i: usize, j: usize| if i / 2 == j / 2 { 25.5 } else { 110.0 };
    let cell = |i: usize, j: usize| if i == j { String::new() } else { ns(i, j).to_string() };
    let row = |i: usize| (0..6).map(|j| cell(i, j)).collect::<Vec<_>>().join(";");
    let full: String = (0..6).map(|i| row(i) + "\n").collect();
    for text in [full.clone(), full.replace(".5", ""), full.replace('.', ",")] {
        let matrix = read(&text).unwrap_or_else(|e| panic!("{e}: {text}")).matrix;
        assert_eq!((matrix.cpus().len(), matrix.between(0, 5)), (6, Some(110.0)), "{text}");
    }
    let even = read(",4,6,8\n4,,,\n6,10,,\n8,20,30,\n").unwrap().matrix;
    assert_eq!(even.cpus(), [4, 6, 8]);
}

#[test]
fn printed_tables_are_read_with_and_without_what_stands_around_them() {
    let plain = read(",,\n10,,\n20,30,\n").unwrap().matrix;
    let table = "      0   1   2\n  0\n  1  10±0\n  2  20±1  30±0\n";
    let around = format!("CPU: a CPU, 3 cores\nNum cores: 3\n\n1) CAS latency on one line\n\n{table}\n    Min  latency: 10.0ns ±0.0 cores: (1,0)\n");
    assert_eq!(
        remarked(&around, "line 4 is taken for the table's title: `1) CAS latency on one line`"),
        plain
    );
    assert_eq!(remarked(&format!("{around}\n2) another\n{table}"), "another table begins in line 14"), plain);
    for same in [
        table,
        "0 1 2\n0\n1 10\n2 20 30\n",
        "0 1 2\n0 0\n1 10 0\n2 20 30 0\n",
        "0\t1\t2\n0\t0\t10\t20\n1\t10\t0\t30\n2\t20\t30\t0\n",
        "0,,\n1,10,\n2,20,30\n",
        "0,1,2\n0,,\n1,10,\n2,20,30\n",
    ] {
        assert_eq!(read(same).map(|r| r.matrix), Ok(plain.clone()), "{same}");
    }
}

#[test]
fn output_of_other_programs_is_refused_by_name() {
    for (text, program) in [
        ("Intel(R) Memory Latency Checker - v3.9\nMeasuring idle latencies (in ns)...\n\t\tNuma node\nNuma node\t     0\t     1\n       0\t  81.2\t 138.5\n       1\t 138.0\t  81.0\n", "Intel MLC"),
        ("available: 2 nodes (0-1)\nnode distances:\nnode   0   1 \n  0:  10  21 \n  1:  21  10 \n", "`numactl -H`"),
        ("<?xml version=\"1.0\"?>\n<topology version=\"2.0\">\n", "hwloc as XML"),
        ("Machine (16GB total)\n  Package L#0\n", "`lstopo` as text"),
        ("\"stride=128\n0.00049 1.2\n0.00098 1.2\n", "lmbench's `lat_mem_rd`"),
    ] {
        assert!(matches!(error(text), MatrixError::Foreign { program: found, .. } if found == program), "{text}");
    }
}

#[test]
fn units_are_converted_or_refused() {
    let us = remarked("latency [us],0,1,2\n0,,,\n1,0.01,,\n2,0.02,0.03,\n", "the unit `us`");
    assert_eq!(us.between(1, 2), Some(30.0));
    remarked("# latency in microseconds\n,\n0.01,\n", "line 1 has the unit `microseconds`");
    remarked("Core to core latencies in ns\n,,\n10,,\n20,30,\n", "line 1 is taken for a title");
    let place = read("# 64 GB, us-east-1, in ns\n,\n10,\n").unwrap();
    assert_eq!((place.matrix.between(0, 1), place.remarks), (Some(10.0), Vec::new()));
    remarked("# unit: s\n,\n1e-8,\n", "one is taken for 1000000000 ns");
    remarked("# units: bananas\n,\n10,\n", "`bananas`, which is none of time: ns are assumed");
    let threads = read("# between core(s), in ns\n,\n10,\n").unwrap();
    assert_eq!(threads.remarks, [""; 0]);
    for (text, ns) in [(",\n1e-8,\n", 1e-8), (",\n0.1,\n", 0.1), (",\n25000,\n", 25_000.0)] {
        assert_eq!(error(text), MatrixError::OtherUnit { line: 1, ns, least: 1.0, most: 10_000.0 });
    }
    let cycles = error("# in cycles\n,\n10,\n");
    assert_eq!(cycles, MatrixError::Unit { line: 1, found: "cycles".to_owned() });
}

#[test]
fn what_is_no_matrix_is_refused_with_its_line() {
    assert_eq!(error(""), MatrixError::Empty { rows: 0 });
    assert_eq!(error("0\n"), MatrixError::Empty { rows: 1 });
    assert_eq!(error(",,\n10,,\n20,30,,40\n"), MatrixError::NotSquare { line: 3, expected: 3, found: 4 });
    assert_eq!(error(",,\n10,,40\n"), MatrixError::NotSquare { line: 2, expected: 2, found: 3 });
    assert_eq!(error(",,\n10,,\n20,,\n"), MatrixError::Hole { line: 3, a: 1, b: 2, cpus: 3 });
    assert_eq!(error(",,\n10,,\n20,nan,\n"), MatrixError::Hole { line: 3, a: 1, b: 2, cpus: 3 });
    let cell = |line, column, found: &str| MatrixError::Cell { line, column, found: found.to_owned() };
    assert_eq!(error(",,\n10,,\n20,thirty,\n"), cell(3, 2, "thirty"));
    assert_eq!(error(",,\n10,,\n20,-3,\n"), cell(3, 2, "-3"));
    assert_eq!(error(",,\n10,,\n20,inf,\n"), cell(3, 2, "inf"));
    assert_eq!(error(",,\n0,,\n0,0,\n"), MatrixError::Zeros { line: 2 });
    assert_eq!(error("10\n20,30\n"), MatrixError::Diagonal { line: 1, cpu: 0, ns: 10.0 });
    assert_eq!(read("1,10\n10,1\n").unwrap().matrix.between(0, 1), Some(10.0), "a full one may have it");
    assert_eq!(error("# a\n\n,,\n10,,\n20,x,\n"), cell(5, 2, "x"), "comments and blank lines count");
}

#[test]
fn a_file_of_ten_thousand_lines_is_refused_early() {
    let text = "1,2,3\n".repeat(10_000);
    assert_eq!(error(&text), MatrixError::TooLarge { line: MOST_CPUS + 2, most: MOST_CPUS });
    let wide = "1,".repeat(10_000);
    assert_eq!(error(&wide), MatrixError::TooLarge { line: 1, most: MOST_CPUS });
}

#[test]
fn zeros_and_directions_that_differ_are_remarked() {
    let zero = remarked(",,\n0,,\n20,30,\n", "1 pairs are 0 ns, first line 2, CPUs 0 and 1");
    assert_eq!(zero.between(0, 1), Some(20.0), "the least other one stands in");
    let both = remarked("0,10,20\n30,0,30\n20,30,0\n", "1 pairs differ by more than 1.3 times");
    assert_eq!(both.between(0, 1), Some(20.0));
}

#[test]
fn levels_and_siblings_are_found_from_the_matrix_alone() {
    for (form, levels) in [
        ("pack:2 numa:1 l3:4 core:4 pu:2", 4),
        ("pack:1 numa:1 l3:8 core:8 pu:1", 2),
        ("pack:2 numa:1 l3:1 core:16 pu:2", 3),
        ("pack:1 numa:1 l3:1 core:12 pu:1", 1),
        ("pack:2 numa:4 l3:2 core:4 pu:1", 4),
    ] {
        let threads = if form.ends_with("pu:2") { 2 } else { 1 };
        let n = topology(form).unwrap().cpus.len();
        // Siblings are i and i + cores, as Linux numbers them.
        let number = |i: usize| i / threads + (i % threads) * (n / threads);
        let matrix = made(form, number, |i, j, level| by_level(level) + ((i * 7 + j) % 5) as f64 * 0.1);
        let found = shape(&matrix).unwrap();
        assert_eq!(costs(&matrix, &found.topology).len(), levels, "{form}");
        assert_eq!(synthetic(&found.topology).as_deref(), Some(form));
        if threads == 2 {
            assert!(groups(&found.topology, Level::Core).iter().all(|g| g[1] == g[0] + n / 2), "{form}");
        }
    }
}

/// One wrong pair of some thousand, as near as threads of a core or nearer, in another cache, node or package.
#[test]
fn a_pair_that_was_timed_too_low_groups_nothing() {
    let form = "pack:2 numa:1 l3:4 core:4 pu:2";
    for (a, b) in [(0, 63), (5, 30), (8, 20), (1, 2)] {
        for wrong in [1.0, 8.0, 12.0] {
            let matrix =
                made(form, |i| i, |i, j, level| if (j, i) == (a, b) { wrong } else { by_level(level) });
            let found = shape(&matrix).unwrap();
            assert_eq!(synthetic(&found.topology).as_deref(), Some(form), "{a} {b} {wrong}");
            let said = found.remarks.iter().any(|r| r.contains(&format!("CPUs {a} and {b}")));
            assert!(said, "{a} {b} {wrong}: {:?}", found.remarks);
        }
    }
}

/// As on dual EPYCs: in the package that is not the lines' home every pair is as far as across.
#[test]
fn a_package_away_from_home_is_found() {
    let form = "pack:2 numa:1 l3:4 core:4 pu:1";
    let away = |i: usize, j: usize, level| match level {
        Level::Numa if i.min(j) >= 16 => 200.0,
        level => by_level(level),
    };
    let matrix = made(form, |i| i, away);
    let found = shape(&matrix).unwrap();
    assert_eq!(synthetic(&found.topology).as_deref(), Some(form));
    assert!(
        found.remarks.iter().any(|r| r.contains("CPU 16") && r.contains("another package")),
        "{:?}",
        found.remarks
    );
    let numa = costs(&matrix, &found.topology).into_iter().find(|c| c.level == Level::Numa).unwrap();
    assert_eq!((numa.median, numa.away), (110.0, Some(200.0)));
}

const DESCRIPTION: &str = "schema = 1\nname = \"m\"\ntitle = \"M\"\narch = \"x86_64\"\n\
    topology = { value = \"pack:2 numa:1 l3:1 core:4 pu:1\", status = \"inferred\", source = \"s\" }\n\
    [matrix]\nfile = \"m.csv\"\nsource = \"somebody\"\n";

fn described(matrix: Matrix) -> Result<Machine, MatrixError> {
    describe(DESCRIPTION.parse().unwrap(), Readout { matrix, remarks: Vec::new() })
}

#[test]
fn a_description_takes_transfers_from_its_matrix_and_says_what_it_assumes() {
    let matrix = made("pack:2 numa:1 l3:1 core:4 pu:1", |i| i, |_, _, level| by_level(level));
    let machine = described(matrix).unwrap();
    assert_eq!(machine.transfer(Level::L3).value, Some(25.0));
    assert_eq!(machine.transfer(Level::Machine).value, Some(200.0));
    assert_eq!(machine.transfer(Level::Numa).value, None);
    assert!(machine.transfer(Level::L3).source.contains("somebody"));
    let measured = machine.measured.as_ref().unwrap();
    assert_eq!(measured.remarks, [""; 0]);
    let assumed = measured.assumed.join("; ");
    assert!(assumed.contains("copy_bytes_per_ns 8.5 as of generic-x86"), "{assumed}");
    assert!(assumed.contains("as of sandy-bridge-e5-2670-2s, in simulations"), "{assumed}");
    let t = machine.topology().unwrap();
    assert_eq!(machine.transfer_between(&t.cpus[0], &t.cpus[7]), Some(200.0));
    assert!(DESCRIPTION.replace("[matrix]", "[transfer]\n[matrix]").parse::<Machine>().is_err());
}

#[test]
fn a_matrix_of_another_machine_is_refused() {
    let more = made("core:9", |i| i, |_, _, _| 50.0);
    let error = described(more).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the topology `pack:2 numa:1 l3:1 core:4 pu:1` has 8 CPUs and the matrix 9: expected a matrix of that machine with all of its CPUs"
    );
    // Four packages of two cores.
    let other = made("pack:4 l3:1 core:2", |i| i, |_, _, level| by_level(level));
    let remarks = described(other).unwrap().measured.unwrap().remarks;
    assert!(remarks.iter().any(|r| r.contains("groups of 2 CPUs, which the topology")), "{remarks:?}");
    // One package of eight.
    let flat = described(made("core:8", |i| i, |_, _, _| 50.0)).unwrap().measured.unwrap().remarks;
    assert!(flat.iter().any(|r| r.contains("of one l3 and of one machine are as far apart")), "{flat:?}");
    let text = DESCRIPTION.replace("[matrix]", "[matrix]\nlike = \"nobody\"");
    let matrix = made("core:8", |i| i, |_, _, _| 50.0);
    let error = describe(text.parse().unwrap(), Readout { matrix, remarks: Vec::new() }).unwrap_err();
    assert!(error.to_string().contains("`nobody`"), "{error}");
}

#[test]
fn hwloc_gets_every_pair_with_lengths_that_fit() {
    let matrix =
        made("pack:2 numa:1 l3:2 core:2 pu:2", |i| i / 2 + (i % 2) * 8, |_, _, level| by_level(level));
    let found = shape(&matrix).unwrap();
    let xml = hwloc(&matrix, &found.topology);
    assert!(xml.contains(
        "<distances2 type=\"PU\" nbobjs=\"16\" kind=\"6\" name=\"CoreToCoreLatency\" indexing=\"os\">"
    ));
    let values: Vec<u64> = xml
        .lines()
        .filter_map(|l| l.trim().strip_prefix("<u64values length=\""))
        .flat_map(|l| {
            let (length, rest) = l.split_once("\">").unwrap();
            let text = rest.strip_suffix("</u64values>").unwrap();
            assert_eq!(length.parse::<usize>().unwrap(), text.len());
            text.split_whitespace().map(|n| n.parse().unwrap()).collect::<Vec<u64>>()
        })
        .collect();
    assert_eq!(values.len(), 256);
    assert_eq!(
        (values[0], values[8], values[15]),
        (0, 8, 200),
        "CPU 0 with itself, its sibling, and the last"
    );
    for object in ["Machine", "Package", "NUMANode", "L3Cache", "Core", "PU"] {
        assert!(xml.contains(&format!("<object type=\"{object}\"")), "{object}");
    }
    assert_eq!(xml.matches("<object").count(), xml.matches("</object>").count());
}
