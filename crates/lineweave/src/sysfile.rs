//! Reading the kernel's text files (`/proc`, `/sys`) below a root that tests can replace.

use crate::throttle;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// The longest file that is read as a profile, a record, a plan or the like, and more than any of them has.
const LONGEST: u64 = 256 << 20;

/// A file's text. One that is longer than any of ours is an error, such as a device that never ends.
///
/// # Errors
/// The system's, and [`io::ErrorKind::InvalidData`].
pub fn text(file: &Path) -> io::Result<String> {
    text_of(std::fs::File::open(file)?)
}

/// [`text`] of what was opened already.
///
/// # Errors
/// The errors of [`text`].
pub fn text_of(file: impl Read) -> io::Result<String> {
    let mut text = String::new();
    match file.take(LONGEST + 1).read_to_string(&mut text)? as u64 > LONGEST {
        true => Err(io::Error::new(io::ErrorKind::InvalidData, format!("more than {} MiB", LONGEST >> 20))),
        false => Ok(text),
    }
}

/// Root directory of the files that are read: the machine's own `/`, or a directory that imitates it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Root(PathBuf);

impl Root {
    /// Returns the root of this machine.
    pub fn live() -> Root {
        Root(PathBuf::from("/"))
    }

    /// A directory that stands for `/`.
    pub fn at(directory: impl Into<PathBuf>) -> Root {
        Root(directory.into())
    }

    /// Returns whether this is the machine itself, so that system calls and files speak of the same thing.
    pub fn is_live(&self) -> bool {
        self.0 == Path::new("/")
    }

    /// The real path of an absolute path below this root.
    pub fn path(&self, absolute: impl AsRef<Path>) -> PathBuf {
        let absolute = absolute.as_ref();
        self.0.join(absolute.strip_prefix("/").unwrap_or(absolute))
    }

    /// A file's text without surrounding white space, or nothing where it cannot be read: these files come
    /// and go with kernels, containers and privileges, and every reader has something to fall back on.
    pub fn read(&self, absolute: impl AsRef<Path>) -> Option<String> {
        let bytes = std::fs::read(self.path(absolute)).ok()?;
        throttle::pause();
        Some(String::from_utf8_lossy(&bytes).trim().to_owned())
    }

    /// A file's text as a number.
    pub fn number(&self, absolute: impl AsRef<Path>) -> Option<u64> {
        self.read(absolute)?.parse().ok()
    }

    /// The numbers `n` of a directory's entries named `prefix` + n, ascending.
    pub fn numbered(&self, absolute: impl AsRef<Path>, prefix: &str) -> Vec<usize> {
        let Ok(entries) = std::fs::read_dir(self.path(absolute)) else { return Vec::new() };
        let mut numbers: Vec<usize> = entries
            .filter_map(|e| e.ok()?.file_name().to_str()?.strip_prefix(prefix)?.parse().ok())
            .collect();
        numbers.sort_unstable();
        numbers
    }
}

/// The largest CPU number believed; Linux is built for at most 8192 CPUs, and a list such as `0-4294967295`
/// must not become a vector.
const LARGEST_CPU: usize = 65_535;

/// A list of CPUs as the kernel and `taskset` write it, `0-3,8,10-14:2`, ascending and without repetition.
///
/// # Errors
/// The part of the text that is no number, range or range with a stride.
pub fn parse_cpu_list(text: &str) -> Result<Vec<usize>, String> {
    let mut cpus = parse_cpus_in_order(text)?;
    cpus.sort_unstable();
    cpus.dedup();
    Ok(cpus)
}

/// As [`parse_cpu_list`], in the order of the text and with repetitions, for a caller that gives each rank a CPU.
///
/// # Errors
/// The part of the text that is no number, range or range with a stride.
pub fn parse_cpus_in_order(text: &str) -> Result<Vec<usize>, String> {
    let mut cpus = Vec::new();
    for part in text.trim().split(',').map(str::trim).filter(|p| !p.is_empty()) {
        let wrong = || part.to_owned();
        let number = |t: &str| t.parse::<usize>().ok().filter(|&n| n <= LARGEST_CPU).ok_or_else(wrong);
        let (range, stride) = match part.split_once(':') {
            Some((range, stride)) => (range, number(stride)?),
            None => (part, 1),
        };
        let (first, last) = match range.split_once('-') {
            Some((first, last)) => (number(first)?, number(last)?),
            None => (number(range)?, number(range)?),
        };
        if stride == 0 || last < first {
            return Err(wrong());
        }
        cpus.extend((first..=last).step_by(stride));
    }
    Ok(cpus)
}

/// A list of CPUs with ranges: `0-3,8`.
pub fn format_cpu_list(cpus: &[usize]) -> String {
    let mut sorted = cpus.to_vec();
    sorted.sort_unstable();
    sorted.dedup();
    let mut parts: Vec<String> = Vec::new();
    let mut at = 0;
    while at < sorted.len() {
        let mut end = at;
        while end + 1 < sorted.len() && sorted[end + 1] == sorted[end] + 1 {
            end += 1;
        }
        parts.push(match end - at {
            0 => sorted[at].to_string(),
            _ => format!("{}-{}", sorted[at], sorted[end]),
        });
        at = end + 1;
    }
    if parts.is_empty() {
        "none".to_owned()
    } else {
        parts.join(",")
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use std::sync::Mutex;

    /// A directory that imitates `/`, gone when dropped.
    pub(crate) struct FakeRoot(PathBuf);

    impl FakeRoot {
        pub(crate) fn new(files: &[(&str, &str)]) -> FakeRoot {
            static COUNT: Mutex<usize> = Mutex::new(0);
            let count = {
                let mut count = COUNT.lock().expect("no test panics while counting");
                *count += 1;
                *count
            };
            let name = format!("lineweave-{}-{count}", std::process::id());
            let fake = FakeRoot(std::env::temp_dir().join(name));
            std::fs::create_dir_all(&fake.0).expect("a temporary directory");
            for (path, text) in files {
                let path = fake.root().path(path);
                std::fs::create_dir_all(path.parent().expect("a parent")).expect("a directory");
                std::fs::write(path, text).expect("a file");
            }
            fake
        }

        pub(crate) fn root(&self) -> Root {
            Root::at(&self.0)
        }
    }

    impl Drop for FakeRoot {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn cpu_lists_are_read_as_the_kernel_writes_them() {
        assert_eq!(parse_cpu_list("0-3,8\n"), Ok(vec![0, 1, 2, 3, 8]));
        assert_eq!(parse_cpu_list("8,0-6:2,2"), Ok(vec![0, 2, 4, 6, 8]));
        assert_eq!(parse_cpu_list(""), Ok(vec![]));
        for wrong in ["3-1", "a", "1-", "-1", "0-4294967295", "0-4:0", "1;2"] {
            assert!(parse_cpu_list(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn cpu_lists_are_printed_with_ranges() {
        assert_eq!(format_cpu_list(&[8, 0, 1, 2, 4]), "0-2,4,8");
        assert_eq!(format_cpu_list(&[]), "none");
    }

    #[test]
    fn files_are_read_below_the_root() {
        let fake = FakeRoot::new(&[("/sys/cpu/cpu1/size", " 12\n"), ("/sys/cpu/cpu10/size", "x")]);
        let root = fake.root();
        assert_eq!(root.number("/sys/cpu/cpu1/size"), Some(12));
        assert_eq!(root.number("/sys/cpu/cpu10/size"), None);
        assert_eq!(root.numbered("/sys/cpu", "cpu"), vec![1, 10]);
        assert!(!root.is_live());
        assert!(root.read("/sys/none").is_none());
    }
}
