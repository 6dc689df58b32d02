use super::*;
use crate::sysfile::tests::FakeRoot;

const V2: (&str, &str) =
    ("/proc/self/mountinfo", "30 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw,nsdelegate\n");
const GROUP: (&str, &str) = ("/proc/self/cgroup", "0::/a/b\n");

fn usable(files: &[(&str, &str)], mask: &[usize]) -> UsableCpus {
    UsableCpus::read(&FakeRoot::new(files).root(), Ok(mask.to_vec()))
}

#[test]
fn without_control_groups_the_mask_decides() {
    let usable = usable(&[], &[1, 3]);
    assert_eq!((usable.cpus.as_slice(), usable.quota, usable.effective), (&[1, 3][..], None, 2));
    assert_eq!(usable.reasons(), "affinity allows 1,3");
    assert_eq!(usable.advice(), None);
}

#[test]
fn a_quota_of_an_ancestor_binds() {
    let usable = usable(
        &[
            GROUP,
            V2,
            ("/sys/fs/cgroup/a/b/cpu.max", "max 100000\n"),
            ("/sys/fs/cgroup/a/cpu.max", "150000 100000\n"),
        ],
        &[0, 1],
    );
    assert_eq!((usable.quota, usable.effective), (Some(1.5), 1));
    assert_eq!(
        usable.reasons(),
        "affinity allows 0-1; /sys/fs/cgroup/a/cpu.max = 150000/100000 us: 1.50 CPUs"
    );
    assert!(usable.advice().is_some_and(|a| a.contains("more than 1 busy ranks")));
}

#[test]
fn the_smallest_quota_counts_and_a_large_one_adds_no_cpu() {
    let files = [
        GROUP,
        V2,
        ("/sys/fs/cgroup/a/b/cpu.max", "800000 100000"),
        ("/sys/fs/cgroup/a/cpu.max", "300000 100000"),
    ];
    assert_eq!(usable(&files, &[0, 1, 2, 3]).effective, 3);
    assert_eq!(usable(&files, &[0]).effective, 1);
    assert_eq!(usable(&files, &[0]).advice(), None);
}

#[test]
fn below_one_cpu_one_rank_still_runs() {
    let usable = usable(&[GROUP, V2, ("/sys/fs/cgroup/a/b/cpu.max", "50000 100000")], &[0, 1]);
    assert_eq!((usable.quota, usable.effective), (Some(0.5), 1));
    assert!(usable.advice().is_some_and(|a| a.contains("even one busy rank")));
}

#[test]
fn a_cpuset_narrows_the_mask() {
    let usable = usable(&[GROUP, V2, ("/sys/fs/cgroup/a/cpuset.cpus.effective", "2-5,9\n")], &[0, 1, 2, 3]);
    assert_eq!(usable.cpus, vec![2, 3]);
    assert!(usable.reasons().contains("cpuset allows 2-5,9 in /sys/fs/cgroup/a/cpuset.cpus.effective"));
}

#[test]
fn version_1_has_files_of_its_own() {
    let usable = usable(
        &[
            ("/proc/self/cgroup", "3:cpuset:/x\n2:cpu,cpuacct:/x\n0::/\n"),
            (
                "/proc/self/mountinfo",
                "31 23 0:28 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu,cpuacct\n\
                 32 23 0:29 / /sys/fs/cgroup/cpuset rw - cgroup cgroup rw,cpuset\n\
                 33 23 0:30 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n",
            ),
            ("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1\n"),
            ("/sys/fs/cgroup/cpu/x/cpu.cfs_quota_us", "250000\n"),
            ("/sys/fs/cgroup/cpu/x/cpu.cfs_period_us", "100000\n"),
            ("/sys/fs/cgroup/cpuset/x/cpuset.cpus", "0-2\n"),
        ],
        &[0, 1, 2, 3],
    );
    assert_eq!((usable.cpus.as_slice(), usable.quota, usable.effective), (&[0, 1, 2][..], Some(2.5), 2));
}

#[test]
fn nonsense_is_named_and_left_out() {
    let usable = usable(
        &[
            GROUP,
            V2,
            ("/sys/fs/cgroup/a/b/cpu.max", "lots\n"),
            ("/sys/fs/cgroup/a/b/cpuset.cpus.effective", "7-9\n"),
        ],
        &[0, 1],
    );
    assert_eq!((usable.cpus.as_slice(), usable.quota), (&[0, 1][..], None));
    let ignored = usable.sources.iter().filter(|s| matches!(s, CpuSource::Ignored { .. })).count();
    assert_eq!(ignored, 2, "{}", usable.reasons());
    assert!(usable.reasons().contains("says `lots`"));
}

#[test]
fn an_unknown_mask_gives_way_to_the_cpus_online() {
    let fake = FakeRoot::new(&[("/sys/devices/system/cpu/online", "0-3\n")]);
    let usable = UsableCpus::read(&fake.root(), Err("not permitted".to_owned()));
    assert_eq!(usable.cpus, vec![0, 1, 2, 3]);
    assert!(usable.reasons().contains("not permitted"));
    let nothing = UsableCpus::read(&FakeRoot::new(&[]).root(), Ok(vec![]));
    assert_eq!((nothing.cpus.as_slice(), nothing.effective), (&[0][..], 1), "a 1-CPU machine at least");
}

#[test]
fn this_thread_has_a_cpu() {
    let usable = UsableCpus::of_this_thread();
    assert!(!usable.cpus.is_empty());
    assert!((1..=usable.cpus.len()).contains(&usable.effective));
}
