//! Findings about this machine that slow lineweave down or stop it, with advice for each.

use crate::node::{CrossMemory, Kernel, Near, NodeInfo};
use lineweave::cpus::UsableCpus;
use lineweave::memory::approximate;
use lineweave::segment::Geometry;
use lineweave::settings::{Bind, Settings, Warning};
use lineweave::sysfile::format_cpu_list;
use lineweave::tuning::{Origin, Tuning};
use lineweave::who::{self, Missing};
use rustix::process::{getrlimit, Resource, Rlimit};
use serde::Serialize;

/// Severity of a finding.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// No action is needed.
    Good,
    /// It works, and could be better.
    Advice,
    /// Something does not work.
    Problem,
}

/// The result of one check. Printed as `finding` by `lineweave doctor`; the exit status is 1 where one is a problem.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Finding {
    /// The subject of the check.
    pub what: &'static str,
    pub verdict: Verdict,
    /// The observed state.
    pub found: String,
    /// The advice; empty where nothing is to be done.
    pub advice: String,
}

impl Finding {
    fn good(found: impl Into<String>) -> Finding {
        Finding { what: "", verdict: Verdict::Good, found: found.into(), advice: String::new() }
    }

    fn advice(found: impl Into<String>, advice: impl Into<String>) -> Finding {
        Finding { what: "", verdict: Verdict::Advice, found: found.into(), advice: advice.into() }
    }

    /// Returns the finding for an environment variable that has no effect.
    pub fn of_setting(warning: &Warning) -> Finding {
        Finding {
            what: "settings",
            ..Finding::advice(warning.to_string(), "correct its name or value, or unset it")
        }
    }

    fn problem(found: impl Into<String>, advice: impl Into<String>) -> Finding {
        Finding { what: "", verdict: Verdict::Problem, found: found.into(), advice: advice.into() }
    }
}

/// Runs all checks.
pub fn examine(node: &NodeInfo, settings: &Settings) -> Vec<Finding> {
    let limit = |resource| getrlimit(resource);
    let all = [
        ("topology", levels(node)),
        ("shared memory", shared_memory(&node.kernel)),
        ("notice of dead processes", ranks_death(&node.kernel)),
        ("waking sleepers", wakes(&node.kernel)),
        ("memory", memory(node, settings)),
        ("address space (ulimit -v)", address_space(node, settings, limit(Resource::As))),
        ("open files (ulimit -n)", descriptors(limit(Resource::Nofile))),
        ("cross-memory attach", copies(&node.kernel)),
        ("memory of ranks", near(&node.kernel)),
        ("CPU time", quota(&node.usable)),
        ("binding", binding(&node.usable, settings)),
        ("huge pages for shared memory", huge_pages(&node.kernel)),
        ("clock for measuring", clock(&node.kernel)),
        ("teams left behind", stale()),
        ("profile", profile(node, settings)),
        ("kept plans", kept_plans(node, settings)),
    ];
    all.map(|(what, finding)| Finding { what, ..finding }).into()
}

fn levels(node: &NodeInfo) -> Finding {
    match node.hardware.reader {
        "mask" => Finding::advice(
            "/sys lists no CPU: CPUs are those of the affinity mask, and which of them share a cache is not known",
            "mount /sys in the container, or describe the machine, such as LINEWEAVE_TOPOLOGY=\"pack:1 l3:1 core:8 pu:2\"",
        ),
        reader => Finding::good(format!("read by {reader}")),
    }
}

fn shared_memory(kernel: &Kernel) -> Finding {
    match kernel.memfd {
        true => Finding::good("memfd_create works; /dev/shm is not used, whatever its size"),
        false => Finding::problem(
            "memfd_create is refused",
            "teams cannot be made: Linux 3.17 is needed, and a container's seccomp filter must allow memfd_create",
        ),
    }
}

fn ranks_death(kernel: &Kernel) -> Finding {
    match kernel.pidfd {
        true => Finding::good("pidfd_open works: a rank's death is an error on all others within a second"),
        false => Finding::advice(
            "pidfd_open is refused",
            "set LINEWEAVE_TIMEOUT so that ranks do not wait for a dead one for ever, or allow pidfd_open (Linux 5.3)",
        ),
    }
}

fn wakes(kernel: &Kernel) -> Finding {
    match kernel.membarrier_global {
        true => Finding::good("membarrier works: only who sleeps pays for being woken"),
        false => Finding::advice(
            "membarrier is refused: every flag that is set pays a fence",
            "allow membarrier in the container's seccomp filter (Linux 4.16)",
        ),
    }
}

/// Returns the ranks and the bytes of a team with a rank on each CPU: the largest team to expect.
fn team_bytes(node: &NodeInfo, settings: &Settings) -> (usize, u64) {
    let ranks = node.usable.cpus.len().max(2);
    (ranks, Geometry::new(ranks, settings.box_bytes, 0).reserved() as u64)
}

fn memory(node: &NodeInfo, settings: &Settings) -> Finding {
    let (ranks, need) = team_bytes(node, settings);
    let found = format!("{}; a team of {ranks} takes {}", node.memory, approximate(need));
    match node.memory.available_bytes {
        Some(available) if available < need => Finding::problem(
            found,
            "raise the container's memory limit, free memory, or set LINEWEAVE_BOX_BYTES lower",
        ),
        Some(available) if available < 4 * need => {
            Finding::advice(found, "few teams of that size fit; LINEWEAVE_BOX_BYTES makes them smaller")
        }
        _ => Finding::good(found),
    }
}

fn address_space(node: &NodeInfo, settings: &Settings, limit: Rlimit) -> Finding {
    let (ranks, need) = team_bytes(node, settings);
    match limit.current {
        None => Finding::good("unlimited"),
        Some(bytes) if bytes < need => Finding::problem(
            format!("{}; a team of {ranks} maps {}", approximate(bytes), approximate(need)),
            "ulimit -v unlimited",
        ),
        Some(bytes) => Finding::good(approximate(bytes)),
    }
}

fn descriptors(limit: Rlimit) -> Finding {
    match limit.current {
        Some(n) if n < 256 => Finding::advice(
            n.to_string(),
            "each team takes a descriptor, and watching over other processes one a peer: ulimit -n 1024",
        ),
        Some(n) => Finding::good(n.to_string()),
        None => Finding::good("unlimited"),
    }
}

fn copies(kernel: &Kernel) -> Finding {
    let found = format!("allowed for {}", kernel.cross_memory.about());
    let advice = "large messages between processes are copied twice, through the team's memory; \
                  `sysctl kernel.yama.ptrace_scope=0`, or --cap-add SYS_PTRACE for a container, would allow one copy";
    match (kernel.cross_memory, kernel.seccomp_filter) {
        (CrossMemory::SameUser, false) => Finding::good(found),
        (CrossMemory::SameUser, true) => {
            Finding::good(format!("{found}, unless the seccomp filter in force refuses it"))
        }
        _ => Finding::advice(found, advice),
    }
}

fn near(kernel: &Kernel) -> Finding {
    let found = kernel.near.to_string();
    match kernel.near {
        Near::OneNode | Near::Asked => Finding::good(found),
        Near::Refused { .. } => Finding::advice(
            found,
            "start programs without a policy for memory, or allow mbind in the container (--cap-add SYS_NICE)",
        ),
    }
}

fn quota(usable: &UsableCpus) -> Finding {
    match usable.quota {
        None => Finding::good(format!("no quota on {} CPUs", usable.cpus.len())),
        Some(quota) if quota < usable.cpus.len() as f64 => Finding::advice(
            format!("a quota of {quota:.2} CPUs on {}", usable.cpus.len()),
            format!(
                "ranks that wait actively use it up, and all stand still until the next period: run at most {} \
                 ranks, or raise the container's CPU limit",
                usable.effective
            ),
        ),
        Some(quota) => Finding::good(format!("a quota of {quota:.2} CPUs, enough for all")),
    }
}

fn binding(usable: &UsableCpus, settings: &Settings) -> Finding {
    let cpus = format_cpu_list(&usable.cpus);
    match &settings.bind {
        Bind::None => Finding::advice(
            "none (LINEWEAVE_BIND=none)",
            "ranks that the scheduler moves wait for each other's caches: unset LINEWEAVE_BIND",
        ),
        Bind::Cpus(wanted) => {
            let vain: Vec<usize> = wanted.iter().copied().filter(|c| !usable.cpus.contains(c)).collect();
            match vain.as_slice() {
                [] => Finding::good(format!("LINEWEAVE_BIND={}", format_cpu_list(wanted))),
                _ => Finding::problem(
                    format!("LINEWEAVE_BIND names CPUs that cannot be used: {}", format_cpu_list(&vain)),
                    format!("name some of {cpus}"),
                ),
            }
        }
        _ => Finding::good(format!("a CPU each, of {cpus}")),
    }
}

fn huge_pages(kernel: &Kernel) -> Finding {
    match kernel.pages.transparent_shared.as_deref() {
        Some(mode @ ("always" | "advise" | "within_size" | "force")) => Finding::good(mode),
        Some(mode) => Finding::advice(
            format!("transparent huge pages for shared memory: {mode}"),
            "large messages touch more pages than they need to; \
             `echo advise > /sys/kernel/mm/transparent_hugepage/shmem_enabled` as root",
        ),
        None => Finding::good("this kernel does not say"),
    }
}

fn clock(kernel: &Kernel) -> Finding {
    match (kernel.invariant_tsc, kernel.hypervisor) {
        (true, false) => Finding::good("the time stamp counter, at one rate"),
        (true, true) => Finding::advice(
            "the time stamp counter, on a virtual machine",
            "the host can take CPUs away and move them: measure twice, and believe intervals more than medians",
        ),
        (false, _) => Finding::advice(
            "the time stamp counter does not keep one rate",
            "the kernel's clock is used instead, so short times are measured in longer batches",
        ),
    }
}

/// Checks for teams that have failed and whose memory is still held by a process.
fn stale() -> Finding {
    let mut teams = who::teams(None).unwrap_or_default();
    // A team and its communicators share one memory, so each is counted once.
    teams.retain(|t| t.failed.is_some() || t.at == 0);
    teams.dedup_by_key(|t| t.id);
    let hung: Vec<String> = teams
        .iter()
        .filter(|t| {
            t.failed.is_some()
                || t.missing().iter().any(|m| matches!(m, Missing::Gone(_) | Missing::Stopped(_)))
        })
        .map(|t| {
            let pids: Vec<String> = t.pids.iter().map(u32::to_string).collect();
            format!("{} held by process {}", approximate(t.memory_bytes), pids.join(", "))
        })
        .collect();
    match hung.as_slice() {
        [] => Finding::good(format!("none; {} running, and memory ends with the last process", teams.len())),
        _ => Finding::problem(
            hung.join("; "),
            "a rank of it is lost: `lineweave who` says which; end the processes that are named",
        ),
    }
}

fn profile(node: &NodeInfo, settings: &Settings) -> Finding {
    match Tuning::load(settings, &node.hardware, &node.fingerprint) {
        Ok(Tuning { aside: Some(line), .. }) => {
            Finding::problem(line, "do as it says; until then plans are chosen without that file")
        }
        Ok(Tuning { origin: origin @ Origin::Profile { .. }, choices: Some(_), .. }) => {
            Finding::good(origin.to_string())
        }
        Ok(Tuning { origin: origin @ Origin::Profile { .. }, .. }) => Finding::advice(
            format!("{origin}, without measured choices"),
            "`lineweave tune` measures what the model cannot know",
        ),
        Ok(Tuning { origin: origin @ Origin::Costs { .. }, .. }) => Finding::advice(
            origin.to_string(),
            "on this machine itself `lineweave tune` measures its own, in about a minute",
        ),
        Ok(Tuning { origin: Origin::Machine { name, why }, .. }) => Finding::advice(
            format!("none; plans are chosen for {name} ({why})"),
            "run `lineweave tune`, which takes about a minute",
        ),
        Err(e) => {
            let text = e.to_string();
            let (found, advice) = text.rsplit_once("; ").unwrap_or((&text, "measure with `lineweave tune`"));
            Finding::problem(found, advice)
        }
    }
}

fn kept_plans(node: &NodeInfo, settings: &Settings) -> Finding {
    let about = Tuning::load(settings, &node.hardware, &node.fingerprint).map(|tuning| tuning.about_kept());
    match about {
        Ok(Ok(about)) => Finding::good(about),
        Ok(Err(why)) => Finding::advice(why, "remove it; programs choose anew until it is there again"),
        Err(_) => Finding::good("none: the profile cannot be used".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_that_lacks_things_is_told_what_to_do() {
        let refused = Near::Refused { reason: "refused".to_owned() };
        let kernel = Kernel { cross_memory: CrossMemory::Ancestors, near: refused, ..Kernel::default() };
        let findings = [
            shared_memory(&kernel),
            ranks_death(&kernel),
            wakes(&kernel),
            copies(&kernel),
            near(&kernel),
            clock(&kernel),
        ];
        assert_eq!(findings[0].verdict, Verdict::Problem);
        for finding in &findings {
            assert!(finding.verdict > Verdict::Good && !finding.advice.is_empty(), "{finding:?}");
        }
    }

    #[test]
    fn limits_are_compared_with_what_a_team_takes() {
        let settings = Settings::default();
        let node = NodeInfo::gather(&settings, &[]).unwrap();
        let tight = Rlimit { current: Some(1 << 20), maximum: None };
        assert_eq!(address_space(&node, &settings, tight).verdict, Verdict::Problem);
        let none = Rlimit { current: None, maximum: None };
        assert_eq!(address_space(&node, &settings, none).verdict, Verdict::Good);
        assert_eq!(descriptors(Rlimit { current: Some(64), maximum: None }).verdict, Verdict::Advice);
    }

    #[test]
    fn this_machine_can_be_examined() {
        let settings = Settings::default();
        let node = NodeInfo::gather(&settings, &[]).unwrap();
        let findings = examine(&node, &settings);
        for finding in &findings {
            assert_eq!(finding.advice.is_empty(), finding.verdict == Verdict::Good, "{finding:?}");
            assert!(!finding.found.is_empty(), "{finding:?}");
        }
        assert!(findings.iter().any(|f| f.what == "shared memory" && f.verdict == Verdict::Good));
    }
}
