//! The MPI that a Python would load for mpi4py.
//!
//! Asking Python takes some 70 ms, which is more than the start of many a job, and every rank of a job asks. So the answer is kept, with a
//! stamp of each file or directory that it depends on.

use super::detect::{list, of_list, Abi, Aside};
use super::elf::{self, Executable};
use crate::files::{make_room, replace};
use crate::output::name_of;
use clap::ValueEnum;
use lineweave_core::units::fnv1a;
use serde::{Deserialize, Serialize};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Program by which Python prints the MPI that mpi4py would load, and the places where it looked. mpi4py before 4.1 has one extension, whose
/// libraries are listed.
const ASK: &str = "\
import importlib.util, os, sys
sys.path = [place for place in sys.path if place]
for place in sys.path: print('seen', place)
spec = importlib.util.find_spec('mpi4py')
if spec is None: sys.exit('none')
for where in spec.submodule_search_locations:
    print('seen', where)
    print('seen', os.path.join(where, 'mpi.cfg'))
try:
    from mpi4py import _mpiabi
    print('abi', _mpiabi._get_mpiabi())
    for line in open('/proc/self/maps'):
        words = line.split(None, 5)
        if len(words) > 5 and os.path.basename(words[5]).startswith('libmpi'): print('seen', words[5].strip())
except ImportError:
    import glob
    for where in spec.submodule_search_locations:
        for file in glob.glob(os.path.join(where, 'MPI.*.so')): print('file', file)
";

/// Seconds, nanoseconds and bytes of a file or directory; `None` for one that does not exist.
type Stamp = Option<(i64, i64, u64)>;

fn stamp(path: &Path) -> Stamp {
    let meta = std::fs::metadata(path).ok()?;
    Some((meta.mtime(), meta.mtime_nsec(), meta.size()))
}

/// A kept answer, and the conditions under which it holds.
#[derive(Serialize, Deserialize)]
struct Answer {
    /// The Python, and the variables of the environment that decide which libraries it loads.
    asked: Vec<(String, String)>,
    /// The interface's name; `None` where there is no mpi4py.
    abi: Option<String>,
    seen: Vec<(PathBuf, Stamp)>,
}

impl Answer {
    fn holds(&self, asked: &[(String, String)]) -> bool {
        self.asked == asked && self.seen.iter().all(|(path, then)| stamp(path) == *then)
    }
}

type Said = (Result<Abi, Aside>, Vec<PathBuf>);

/// Returns the interface of the MPI that mpi4py would load.
pub fn of(python: &Path) -> Result<Abi, Aside> {
    let asked = question(python);
    let file = lineweave::cache::directory().map(|cache| {
        let words = asked.iter().flat_map(|(name, value)| [name.as_str(), "=", value, "\n"]);
        cache.join("pythons").join(format!("{:016x}.json", fnv1a(words.flat_map(str::bytes))))
    });
    let kept = file.as_ref().and_then(|file| serde_json::from_str(&lineweave::cache::text(file).ok()??).ok());
    if let Some(Answer { abi, .. }) = kept.filter(|answer: &Answer| answer.holds(&asked)) {
        match abi.map(|name| Abi::from_str(&name, false)) {
            None => return Err(Aside::NoMpi(python.to_owned())),
            Some(Ok(abi)) => return Ok(abi),
            // The file was written by another version.
            Some(Err(_)) => {}
        }
    }
    let (found, mut seen) = ask(python)?;
    seen.extend([python.to_owned(), "/etc/ld.so.cache".into()]);
    seen.extend(std::env::split_paths(&std::env::var_os("LD_LIBRARY_PATH").unwrap_or_default()));
    let abi = match &found {
        Ok(abi) => Some(name_of(abi)),
        Err(Aside::NoMpi(_)) => None,
        Err(_) => return found,
    };
    let seen = seen.into_iter().map(|path| (path.clone(), stamp(&path))).collect();
    let text = serde_json::to_string(&Answer { asked, abi, seen }).unwrap_or_default();
    if let Some(file) = file {
        // An unreadable answer is replaced. If no answer can be kept, Python is asked each time.
        let _ = make_room(&file).and_then(|()| replace(&file, &text, "XDG_CACHE_HOME"));
    }
    found
}

fn question(python: &Path) -> Vec<(String, String)> {
    let python = std::path::absolute(python).unwrap_or_else(|_| python.to_owned());
    let decides = |name: &str| {
        ["MPI4PY_", "PYTHON"].iter().any(|start| name.starts_with(start))
            || ["LD_LIBRARY_PATH", "HOME"].contains(&name)
    };
    let all = std::env::vars_os().filter_map(|(name, value)| Some((name.into_string().ok()?, value)));
    let mut asked: Vec<_> = all
        .filter(|(name, _)| decides(name))
        .map(|(name, value)| (name, value.to_string_lossy().into_owned()))
        .collect();
    asked.sort();
    asked.push(("python".to_owned(), python.to_string_lossy().into_owned()));
    asked
}

/// Returns the MPI that Python tells, and the places where it looked.
fn ask(python: &Path) -> Result<Said, Aside> {
    let mut command = Command::new(python);
    command.args(["-c", ASK]).env_remove("LD_PRELOAD").stdin(Stdio::null());
    let unreadable = |why: String| Aside::Unreadable(python.to_owned(), why);
    let said = command.output().map_err(|e| unreadable(e.to_string()))?;
    let (mut found, mut seen) = (None, Vec::new());
    for (what, of) in String::from_utf8_lossy(&said.stdout).lines().filter_map(|line| line.split_once(' ')) {
        match (what, of) {
            ("seen", place) => seen.push(PathBuf::from(place)),
            ("abi", "openmpi") => found = Some(Ok(Abi::Openmpi)),
            ("abi", "mpich" | "impi") => found = Some(Ok(Abi::Mpich)),
            ("abi", "mpiabi") => found = Some(Ok(Abi::Standard)),
            ("abi", other) => found = Some(Err(Aside::Unknown(other.to_owned()))),
            ("file", file) => {
                let file = Path::new(file);
                seen.push(file.to_owned());
                let libraries = match elf::read(python) {
                    Ok(Executable::Dynamic(loader)) => of_list(&list(file, &loader, "")?),
                    _ => None,
                };
                found = found.or(Some(libraries.unwrap_or_else(|| Err(Aside::NoMpi(file.to_owned())))));
            }
            _ => {}
        }
    }
    let why = String::from_utf8_lossy(&said.stderr);
    let found = match (found, why.lines().last()) {
        (Some(found), _) => found,
        (None, None | Some("none")) => Err(Aside::NoMpi(python.to_owned())),
        (None, Some(last)) => Err(unreadable(format!("its mpi4py says: {last}"))),
    };
    Ok((found, seen))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_holds_until_a_place_that_it_came_from_changes() {
        let directory = std::env::temp_dir().join(format!("lineweave-python-{}", std::process::id()));
        std::fs::create_dir_all(&directory).expect("a directory");
        let (package, absent) = (directory.join("mpi4py"), directory.join("later"));
        std::fs::write(&package, "one").expect("a file");
        let asked = vec![("python".to_owned(), "/usr/bin/python3".to_owned())];
        let seen = [&package, &absent].map(|path| (path.clone(), stamp(path))).to_vec();
        let answer = Answer { asked: asked.clone(), abi: Some("mpich".to_owned()), seen };
        let text = serde_json::to_string(&answer).expect("JSON");
        let kept: Answer = serde_json::from_str(&text).expect("the same");
        assert!(kept.holds(&asked));
        assert!(!kept.holds(&[asked[0].clone(), ("LD_LIBRARY_PATH".to_owned(), "/opt/mpi".to_owned())]));
        std::fs::create_dir(&absent).expect("a directory");
        assert!(!kept.holds(&asked), "what was not there is");
        std::fs::remove_dir(&absent).expect("removed");
        assert!(kept.holds(&asked));
        std::fs::write(&package, "another").expect("a file");
        assert!(!kept.holds(&asked), "what was there is another");
        std::fs::remove_dir_all(&directory).expect("removed");
    }
}
