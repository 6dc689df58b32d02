//! The control groups of this process, in either version of the interface, from its own up to the root.
//!
//! A limit anywhere on the way up binds, so every ancestor that the mount shows is looked at. In a container
//! the mount often shows the process's own group as its root; then that is all there is to see.

use crate::sysfile::Root;
use std::path::{Path, PathBuf};

/// One mounted hierarchy and the process's directories in it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Hierarchy {
    /// Version of the control groups: 1 or 2.
    pub version: u8,
    /// Directories, the process's own first, the mount point last.
    pub directories: Vec<PathBuf>,
}

/// The hierarchies that can hold a controller's files (`cpu`, `cpuset`, `memory`): version 2's, and version
/// 1's of that controller. Both exist on hybrid systems.
pub fn hierarchies(root: &Root, controller: &str) -> Vec<Hierarchy> {
    let (Some(groups), Some(mounts)) = (root.read("/proc/self/cgroup"), root.read("/proc/self/mountinfo"))
    else {
        return Vec::new();
    };
    mounts
        .lines()
        .filter_map(Mount::parse)
        .filter(|m| m.version == 2 || m.controllers.iter().any(|c| c == controller))
        .filter_map(|mount| {
            let group = groups.lines().find_map(|line| {
                // hierarchy id : controllers, comma-separated : path
                let mut fields = line.splitn(3, ':');
                let (_, controllers, path) = (fields.next()?, fields.next()?, fields.next()?);
                let ours = match mount.version {
                    2 => controllers.is_empty(),
                    _ => controllers.split(',').any(|c| c == controller),
                };
                ours.then(|| path.to_owned())
            })?;
            Some(Hierarchy { version: mount.version, directories: mount.directories(&group) })
        })
        .collect()
}

struct Mount {
    version: u8,
    /// The group that the mount point shows.
    shows: String,
    point: String,
    controllers: Vec<String>,
}

impl Mount {
    /// A line of mountinfo (proc_pid_mountinfo(5)): id parent device root point options optional... - type
    /// source super-options.
    fn parse(line: &str) -> Option<Mount> {
        let (before, after) = line.split_once(" - ")?;
        let before: Vec<&str> = before.split(' ').collect();
        let after: Vec<&str> = after.split(' ').collect();
        let version = match *after.first()? {
            "cgroup2" => 2,
            "cgroup" => 1,
            _ => return None,
        };
        Some(Mount {
            version,
            shows: unescape(before.get(3)?),
            point: unescape(before.get(4)?),
            controllers: after.get(2).unwrap_or(&"").split(',').map(str::to_owned).collect(),
        })
    }

    fn directories(&self, group: &str) -> Vec<PathBuf> {
        let point = Path::new(&self.point);
        // A group outside of what the mount shows (another namespace): the mount point is the best view.
        let below = match Path::new(group).strip_prefix(&self.shows) {
            Ok(below) if !group.contains("/..") => below,
            _ => Path::new(""),
        };
        let mut directories: Vec<PathBuf> =
            below.ancestors().filter(|a| !a.as_os_str().is_empty()).map(|a| point.join(a)).collect();
        directories.push(point.to_owned());
        directories
    }
}

/// Undoes mountinfo's octal escapes of space, tab, newline and backslash.
fn unescape(text: &str) -> String {
    [("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")]
        .iter()
        .fold(text.to_owned(), |t, (escape, plain)| t.replace(escape, plain))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sysfile::tests::FakeRoot;

    const V2: &str = "30 23 0:26 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,nsdelegate\n";

    fn paths(list: &[&str]) -> Vec<PathBuf> {
        list.iter().map(PathBuf::from).collect()
    }

    #[test]
    fn every_ancestor_is_found() {
        let fake =
            FakeRoot::new(&[("/proc/self/cgroup", "0::/user.slice/job\n"), ("/proc/self/mountinfo", V2)]);
        let found = hierarchies(&fake.root(), "cpu");
        let directories =
            paths(&["/sys/fs/cgroup/user.slice/job", "/sys/fs/cgroup/user.slice", "/sys/fs/cgroup"]);
        assert_eq!(found, vec![Hierarchy { version: 2, directories }]);
    }

    #[test]
    fn version_1_and_a_mount_that_shows_only_the_container() {
        let fake = FakeRoot::new(&[
            ("/proc/self/cgroup", "4:memory:/docker/ab/x\n3:cpu,cpuacct:/docker/ab\n0::/\n"),
            (
                "/proc/self/mountinfo",
                "33 32 0:30 /docker/ab /sys/fs/cgroup/cpu\\040s ro - cgroup cgroup rw,cpu,cpuacct\n\
                 34 32 0:31 /docker/ab /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n\
                 22 20 0:5 / /proc rw - proc proc rw\n",
            ),
        ]);
        let cpu = hierarchies(&fake.root(), "cpu");
        assert_eq!(cpu, vec![Hierarchy { version: 1, directories: paths(&["/sys/fs/cgroup/cpu s"]) }]);
        let memory = hierarchies(&fake.root(), "memory");
        assert_eq!(
            memory[0].directories,
            paths(&["/sys/fs/cgroup/memory/x", "/sys/fs/cgroup/memory"]),
            "the path is relative to what the mount shows"
        );
    }

    #[test]
    fn a_group_of_another_namespace_falls_back_on_the_mount_point() {
        let fake = FakeRoot::new(&[("/proc/self/cgroup", "0::/../../other\n"), ("/proc/self/mountinfo", V2)]);
        assert_eq!(hierarchies(&fake.root(), "cpu")[0].directories, paths(&["/sys/fs/cgroup"]));
        assert!(hierarchies(&FakeRoot::new(&[]).root(), "cpu").is_empty());
    }
}
