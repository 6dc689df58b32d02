//! Choice of the description that fits a CPU best, before anything was measured on it.

use super::shipped::{one, SOURCES};
use super::{read, Machine, Patterns};
use std::sync::LazyLock;

/// The shipped description nearest to a CPU, and why: the same instruction set, then a vendor that fits, then the very
/// model, then its family; otherwise the first that is not made for any family (the generic ones).
///
/// `cpu_model` is the CPU's name as the kernel gives it, `arch` the instruction set (`x86_64`, `aarch64`).
/// Of the others only the head is read: reading all took longer than the rest of what a first team takes.
pub fn nearest(cpu_model: &str, arch: &str) -> (&'static Machine, String) {
    static HEADS: LazyLock<Vec<Head>> = LazyLock::new(|| {
        let head = |&(name, text): &(&str, &str)| {
            read::head(first_table(text))
                .unwrap_or_else(|e| panic!("the head of the shipped machines/{name}.toml does not read: {e}"))
        };
        SOURCES.iter().map(head).collect()
    });
    let (index, why) = among(&HEADS, cpu_model, arch);
    (one(index), why)
}

/// Machines that a description is for.
#[derive(serde::Deserialize)]
pub(super) struct Head {
    pub arch: String,
    pub cpu: Patterns,
}

/// A file up to its second table. The first one is `[cpu]`.
fn first_table(text: &str) -> &str {
    text.match_indices("\n[").nth(1).map_or(text, |(at, _)| &text[..=at])
}

fn among(heads: &[Head], cpu_model: &str, arch: &str) -> (usize, String) {
    let name = cpu_model.to_lowercase();
    let found = |patterns: &[String]| patterns.iter().find(|p| occurs(&name, p)).cloned();
    let generic = |m: &Head| m.cpu.family.is_empty() && m.cpu.model.is_empty();
    let alike = || heads.iter().enumerate().filter(|(_, m)| m.arch == arch);
    let eligible = || alike().filter(|(_, m)| m.cpu.vendor.is_empty() || found(&m.cpu.vendor).is_some());

    let by_model = eligible()
        .find_map(|(i, m)| found(&m.cpu.model).map(|p| (i, format!("`{cpu_model}` is its model (`{p}`)"))));
    let by_family = || {
        eligible().find_map(|(i, m)| {
            found(&m.cpu.family).map(|p| (i, format!("`{cpu_model}` is of its family (`{p}`)")))
        })
    };
    let by_arch = || {
        alike()
            .find(|(_, m)| generic(m))
            .or_else(|| alike().next())
            .map(|(i, _)| (i, format!("no description names `{cpu_model}`: taken for any {arch}")))
    };
    let any = || {
        let first = heads.iter().position(generic).unwrap_or(0);
        (first, format!("no description is for {arch}: taken as the nearest there is"))
    };
    by_model.or_else(by_family).or_else(by_arch).unwrap_or_else(any)
}

/// Returns whether `pattern`, in which `?` is any one character, occurs in `name`.
fn occurs(name: &str, pattern: &str) -> bool {
    let (name, pattern): (Vec<char>, Vec<char>) = (name.chars().collect(), pattern.chars().collect());
    !pattern.is_empty()
        && name.windows(pattern.len()).any(|w| w.iter().zip(&pattern).all(|(n, p)| *p == '?' || n == p))
}

#[cfg(test)]
mod tests {
    use super::super::shipped;
    use super::*;

    #[test]
    fn cpus_find_their_kin() {
        let cases = [
            ("AMD EPYC 7742 64-Core Processor", "x86_64", "epyc-rome-7742-2s"),
            ("AMD EPYC 7702P 64-Core Processor", "x86_64", "epyc-rome-7742-2s"),
            ("AMD EPYC-Milan Processor", "x86_64", "epyc-milan-7763-2s"),
            ("AMD EPYC 7453 28-Core Processor", "x86_64", "epyc-milan-7453-2s"),
            ("AMD EPYC 9554 64-Core Processor", "x86_64", "epyc-genoa-9654-2s"),
            ("AMD EPYC 9274F 24-Core Processor", "x86_64", "epyc-genoa-9274f-2s"),
            ("AMD Ryzen 9 9950X 16-Core Processor", "x86_64", "ryzen-9-9950x"),
            ("AMD Ryzen 9 9950X3D 16-Core Processor", "x86_64", "generic-x86"),
            ("Intel(R) Xeon(R) CPU E5-2680 v4 @ 2.40GHz", "x86_64", "broadwell-e5-2680v4-2s"),
            ("Intel(R) Xeon(R) CPU E5-2670 0 @ 2.60GHz", "x86_64", "sandy-bridge-e5-2670-2s"),
            ("Intel(R) Xeon(R) CPU E5-2690 0 @ 2.90GHz", "x86_64", "sandy-bridge-e5-2670-2s"),
            ("Intel(R) Xeon(R) Gold 6242 CPU @ 2.80GHz", "x86_64", "cascade-lake-6242-2s"),
            ("Intel Xeon Processor (Icelake)", "x86_64", "ice-lake-8375c-2s"),
            ("INTEL(R) XEON(R) PLATINUM 8581C CPU @ 2.10GHz", "x86_64", "sapphire-rapids"),
            ("Intel(R) Xeon Phi(TM) CPU 7210 @ 1.30GHz", "x86_64", "knights-landing-7210"),
            ("Intel(R) Xeon(R) Processor @ 2.10GHz", "x86_64", "generic-x86"),
            ("Some New CPU", "x86_64", "generic-x86"),
            ("Neoverse-N1", "aarch64", "graviton2"),
            ("Ampere Altra Q80-30 (Neoverse-N1)", "aarch64", "altra-q80-30"),
            ("Neoverse-V2", "aarch64", "graviton4"),
            ("", "aarch64", "generic-arm64"),
            ("POWER9, altivec supported", "ppc64le", "power9-2s"),
            ("Spacemit X60", "riscv64", "generic-x86"),
        ];
        for (cpu, arch, expected) in cases {
            let (machine, why) = nearest(cpu, arch);
            assert_eq!(machine.name, expected, "{cpu}: {why}");
        }
    }

    #[test]
    fn heads_say_what_whole_descriptions_say() {
        for ((name, text), machine) in SOURCES.iter().zip(shipped()) {
            let head = read::head(first_table(text)).unwrap();
            assert_eq!((&head.arch, &head.cpu), (&machine.arch, &machine.cpu), "{name}");
        }
    }
}
