//! A runtime of OpenMP that a program loads late, as Python packages do: it has to be there from the start to be served.

use super::detect::{is_openmp, list};
use super::elf::{self, Executable};
use crate::error::CliError;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// A runtime of OpenMP, by its maker or its file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Runtime {
    /// GNU's libgomp.
    Gnu,
    /// LLVM's libomp, or Intel's libiomp5.
    Llvm,
    /// A file, such as the libgomp that a Python package has within it.
    File(PathBuf),
}

impl FromStr for Runtime {
    type Err = String;

    fn from_str(text: &str) -> Result<Runtime, String> {
        match text {
            "gnu" => Ok(Runtime::Gnu),
            "llvm" => Ok(Runtime::Llvm),
            file if file.contains('/') => Ok(Runtime::File(file.into())),
            _ => Err("expected gnu, llvm or the path of a runtime's file".to_owned()),
        }
    }
}

impl Runtime {
    /// Returns how the option writes it.
    pub fn text(&self) -> &OsStr {
        match self {
            Runtime::Gnu => OsStr::new("gnu"),
            Runtime::Llvm => OsStr::new("llvm"),
            Runtime::File(file) => file.as_os_str(),
        }
    }

    /// Returns the runtime's file, as the system's loader finds it.
    pub fn file(&self) -> Result<PathBuf, CliError> {
        let names: &[&str] = match self {
            Runtime::Gnu => &["libgomp.so.1"],
            Runtime::Llvm => &["libomp.so.5", "libomp.so", "libiomp5.so"],
            Runtime::File(file) if file.is_file() => {
                return std::path::absolute(file).map_err(|e| CliError::NoLibrary(e.to_string()))
            }
            Runtime::File(file) => {
                return Err(CliError::NoLibrary(format!(
                    "--openmp {}: expected a library, found no file",
                    file.display()
                )))
            }
        };
        names.iter().find_map(|name| loaded(name)).ok_or_else(|| {
            CliError::NoLibrary(format!(
                "--openmp: the system's loader finds no {}; install it, extend LD_LIBRARY_PATH, or name its file",
                names.join(", ")
            ))
        })
    }
}

/// Returns the file that the loader takes for a library's name.
fn loaded(name: &str) -> Option<PathBuf> {
    let own = std::env::current_exe().ok()?;
    let Ok(Executable::Dynamic(loader)) = elf::read(&own) else { return None };
    let list = list(&own, &loader, name).ok()?;
    let line = list
        .lines()
        .find(|line| line.split_whitespace().next().is_some_and(|first| first == name || is_openmp(first)))?;
    let path = line.split_whitespace().find(|word| word.starts_with('/'))?;
    Path::new(path).is_file().then(|| path.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_runtime_is_named_by_its_maker_or_its_file() {
        assert_eq!("gnu".parse(), Ok(Runtime::Gnu));
        assert_eq!("./libgomp-a34b.so.1".parse(), Ok(Runtime::File("./libgomp-a34b.so.1".into())));
        assert!("gcc".parse::<Runtime>().unwrap_err().contains("expected gnu, llvm or"));
    }

    #[test]
    fn a_file_that_is_not_there_is_refused() {
        let refused = Runtime::File("/no/such/libgomp.so".into()).file().unwrap_err();
        assert!(refused.to_string().contains("found no file"), "{refused}");
    }
}
