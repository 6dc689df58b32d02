//! Claims of sections 5 and 6 about the broadcasts.

use super::{Study, CHIP, IDEAL};
use crate::paper::limit::{ALMOST, LATENCY, NUMBER, SAME};
use crate::paper::{claim, Finding, Verdict};
use crate::simulate::mesh::{FlagCost, Settings};
use crate::simulate::Fidelity;
use lineweave_core::plan::Plan;

pub(super) fn findings(study: &Study) -> Vec<Finding> {
    let mut out = modelled(study);
    out.extend(one_line(study));
    out.extend(throughput(study));
    out.extend(short(study));
    out
}

/// Figures 3 and 6.
fn modelled(study: &Study) -> Vec<Finding> {
    let far = study.model.c_get_mpb(128, 9).0 / study.model.c_get_mpb(128, 1).0 - 1.0;
    let latency = |k: usize, lines: usize| {
        let plan = match k {
            0 => study.binomial(FlagCost::Line, lines),
            k => study.oc_bcast(k, lines),
        };
        study.play(&plan, Fidelity::Chunk, 1, IDEAL).first.nanos() / 1e3
    };
    let at = |lines| [47, 7, 2, 0].map(|k| latency(k, lines));
    let (half, one, two) = (latency(7, 48), latency(7, 96), latency(7, 192));
    let (before, after) = ((one - half) / 48.0, (two - one) / 96.0);
    let (small, full) = (at(1), at(192));
    let others = small[1..].iter().fold(0.0, |a: f64, &b| a.max(b));
    vec![
        claim(
            "fig 3",
            "1 and 9 hops differ by only 30 %",
            format!("{:.0} % for a get of 128 lines (Eq. 11)", far * 100.0),
            SAME.beside(far, 0.30),
        ),
        claim(
            "fig 6a, order",
            "at 192 lines k = 47 is fastest, then 7, then 2, then the binomial tree",
            format!("{:.0}, {:.0}, {:.0} and {:.0} us", full[0], full[1], full[2], full[3]),
            full.windows(2).all(|w| w[0] < w[1]),
        ),
        claim(
            "fig 6a, slope",
            "the slope changes past 96 lines, where double buffering begins to pay",
            format!("k = 7: {before:.2} us a line up to 96, {after:.2} from there"),
            after < before * (1.0 - SAME.share),
        ),
        claim(
            "fig 6b",
            "for one line k = 47 is the slowest: the root polls 47 flags",
            format!("k = 47 {:.1} us, the slowest of the others {others:.1} us", small[0]),
            small[0] > others,
        ),
    ]
}

/// Figure 8a's first point.
fn one_line(study: &Study) -> Vec<Finding> {
    let measured = &study.printed.measured;
    let oc = study.latency(&study.oc_bcast(7, 1), CHIP);
    let tree = FlagCost::ALL
        .map(|flags| (flags, study.latency(&study.binomial(flags, 1), Settings { flags, ..CHIP })));
    let off = |ours: f64, theirs: f64| (ours / theirs - 1.0) * 100.0;
    let binomial = |flags: FlagCost| {
        let (_, us) = tree.iter().find(|(f, _)| *f == flags).copied().unwrap_or((flags, 0.0));
        let what = match flags {
            FlagCost::Line | FlagCost::Byte | FlagCost::Bit => format!("flags of a {flags}"),
            FlagCost::Rcce => format!(
                "flags of a byte as RCCE's code sets, awaits and unsets them: {:.1} us are missing for each of the 6 messages on the way",
                (measured.binomial - us) / 6.0
            ),
        };
        let ours = format!("{us:.1} us, {:+.0} %, with {what}", off(us, measured.binomial));
        claim(
            &format!("fig 8a, binomial, {flags} flags"),
            &format!("one line in {} us", measured.binomial),
            ours,
            LATENCY.beside(us, measured.binomial),
        )
    };
    let locked = tree[2].1;
    vec![
        payload(study),
        claim(
            "fig 8a, k = 7",
            &format!("one line in {} us", measured.oc_bcast_k7),
            format!("{oc:.1} us, {:+.0} %, broadcasts following each other", off(oc, measured.oc_bcast_k7)),
            LATENCY.beside(oc, measured.oc_bcast_k7),
        ),
        binomial(FlagCost::Line),
        binomial(FlagCost::Byte),
        binomial(FlagCost::Bit),
        binomial(FlagCost::Rcce),
        claim(
            "section 6.2.1, 27 %",
            "k = 7 improves on the binomial tree's latency of one line by at least 27 %",
            format!(
                "16.6 us is {:.0} % less than 21.6, which is {:.0} % more; here {oc:.1} is {:.0} % less than {locked:.1} \
                 (bit flags under a lock) and {:+.0} % beside {:.1} (line flags)",
                -off(measured.oc_bcast_k7, measured.binomial),
                off(measured.binomial, measured.oc_bcast_k7),
                -off(oc, locked),
                off(oc, tree[0].1),
                tree[0].1
            ),
            -off(oc, locked) >= 27.0,
        ),
    ]
}

/// Tests the size of RCCE's payload buffer, which tells the size of a flag: the rest of a message buffer holds `sent` and `ready` for
/// each core, two flags of RCCE's barrier, and the line to which `RCCE_put_char` writes after each byte.
fn payload(study: &Study) -> Finding {
    let setup = &study.printed.setup;
    let box_lines =
        study.machine.mesh.as_ref().and_then(|m| m.box_lines.value).map_or(0, |lines| lines as usize);
    let flags = 2 * setup.cores + 2;
    let left = |kind: FlagCost| box_lines.saturating_sub(1 + flags.div_ceil(kind.per_line(setup.line_bytes)));
    let (line, byte, bit) = (left(FlagCost::Line), left(FlagCost::Byte), left(FlagCost::Bit));
    claim(
        "section 5.1, RCCE's buffer",
        &format!("RCCE has a payload buffer of {} lines", setup.rcce_lines),
        format!("{flags} flags of a line each leave {line}, of a byte {byte}, of a bit {bit}: RCCE's flags are bytes"),
        byte == setup.rcce_lines && line != byte && bit != byte,
    )
}

/// Figure 8b and section 6.2.2.
fn throughput(study: &Study) -> Vec<Finding> {
    let setup = &study.printed.setup;
    let lines = setup.cores * setup.chunk_lines;
    let on = |k: usize, fidelity| study.throughput(&study.oc_bcast(k, lines), fidelity, CHIP);
    let ideal = |k: usize| study.throughput(&study.oc_bcast(k, lines), Fidelity::Chunk, IDEAL);
    let (k2, k7, k47) = (on(2, Fidelity::Line), on(7, Fidelity::Line), on(47, Fidelity::Line));
    let two_sided = study.throughput(&study.scatter_allgather(lines), Fidelity::Chunk, CHIP);
    let short = |k: usize, ours: f64| 1.0 - ours / ideal(k);
    let (s2, s7, s47) = (short(2, k2), short(7, k7), short(47, k47));
    let dip = |lines: usize| study.throughput(&study.oc_bcast(7, lines), Fidelity::Line, CHIP);
    let (full, over) = (dip(96), dip(97));
    let printed =
        |k: usize| study.printed.table_2.iter().find(|t| t.k == k).map_or(f64::NAN, |t| t.throughput);
    let claimed = |k: usize| printed(k) / printed(0);
    let long = |plan: &Plan| study.throughput(plan, Fidelity::Chunk, CHIP);
    let (k7_long, two_sided_long) =
        (long(&study.oc_bcast(7, setup.longest_lines)), long(&study.scatter_allgather(setup.longest_lines)));
    let cached = study.machine.mesh.as_ref().and_then(|m| m.cache_bytes.value).unwrap_or(0.0);
    vec![
        claim(
            "section 6.2.2, 3x",
            &format!(
                "almost three times the throughput of scatter-allgather (Table 2: {:.2}, {:.2} and {:.2} for k = 2, 7, 47)",
                claimed(2),
                claimed(7),
                claimed(47)
            ),
            format!("{lines} lines, k = 7 {k7:.1} MB/s, scatter-allgather {two_sided:.1}: {:.2} times", k7 / two_sided),
            ALMOST.of(1.0 - k7 / two_sided / 3.0),
        ),
        claim(
            "fig 8b, 1 MiB",
            "around 3 times better peak throughput (section 7)",
            format!(
                "{} lines, k = 7 {k7_long:.1} MB/s, scatter-allgather {two_sided_long:.1}: {:.2} times; a slice of {} lines \
                 is read from memory again, where Eq. 16 has it in the first cache, of {:.0}",
                setup.longest_lines,
                k7_long / two_sided_long,
                setup.longest_lines.div_ceil(setup.cores),
                cached / setup.line_bytes as f64
            ),
            ALMOST.beside(k7_long / two_sided_long, 3.0),
        ),
        claim(
            "section 6.2.2, k = 47",
            &format!(
                "about {:.0} % below prediction, by contention; k = 2 and 7 close to it",
                study.printed.measured.k47_shortfall * 100.0
            ),
            format!(
                "k = 47 {k47:.1} MB/s, {:.0} % below what it has without contention; k = 2 {:.0} %, k = 7 {:.0} %",
                s47 * 100.0,
                s2 * 100.0,
                s7 * 100.0
            ),
            ALMOST.of(s2.max(s7)).and(NUMBER.beside(s47, study.printed.measured.k47_shortfall).verdict == Verdict::Holds),
        ),
        claim(
            "fig 8b, 97 lines",
            "throughput drops at 97 lines, whose second chunk is one line",
            format!("k = 7: {full:.1} MB/s at 96 lines, {over:.1} at 97"),
            over < full,
        ),
    ]
}

/// Figure 8a up to 192 lines.
fn short(study: &Study) -> Vec<Finding> {
    let latency = |k: usize, lines: usize| {
        study.play(&study.oc_bcast(k, lines), Fidelity::Line, 1, CHIP).first.nanos() / 1e3
    };
    let (k2, k7, k47) = (latency(2, 192), latency(7, 192), latency(47, 192));
    let ideal = study.play(&study.oc_bcast(47, 192), Fidelity::Chunk, 1, IDEAL).first.nanos() / 1e3;
    vec![
        claim(
            "section 6.2.1, k = 7 and 2",
            "between 96 and 192 lines k = 7 is around 25 % better than k = 2",
            format!("{k7:.0} and {k2:.0} us at 192 lines: {:.0} % less", (1.0 - k7 / k2) * 100.0),
            NUMBER.beside(1.0 - k7 / k2, 0.25),
        ),
        claim(
            "fig 8a, k = 7 and 47",
            "their curves almost overlap, where the model has k = 47 ahead: contention",
            format!(
                "at 192 lines {k7:.0} and {k47:.0} us ({:+.0} %); without contention k = 47 takes {ideal:.0}",
                (k47 / k7 - 1.0) * 100.0
            ),
            ALMOST.beside(k47, k7).and(ideal < k7),
        ),
    ]
}
