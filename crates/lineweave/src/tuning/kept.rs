//! Records that outlive the program, for programs that run later: choices and proofs (`choose/record.rs`), and what the profile's files
//! say, which takes a tenth of the time to read.
//!
//! A file belongs to one profile with its choices, or to the description that stands in for it, and to one version of the sources that choose and prove ([`Tuning::load`] names it),
//! so nothing in it is ever out of date. A program reads it once, when it first has to choose, and adds a record for what it chose
//! (`tuning/record_file.rs`). Who takes a record makes its plans and compares their digests with those that were proved, as ranks of a team do.

pub(super) use super::record_file::Name;
use super::record_file::{append, open, read, LONGEST};
use super::Tuning;
use crate::memory::approximate;
use lineweave_core::units::fnv1a;
use lineweave_core::SOURCES;
use rustix::fs::OFlags;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// Beginning and end of a file's name.
const FIRST: &str = "plans-";
const LAST: &str = ".bin";
/// The records of one file, and what was added by this process.
#[derive(Debug)]
struct Records {
    file: PathBuf,
    known: HashMap<Name, Arc<[u64]>>,
}

/// Of the file that was used last: a process has one tuning.
static USED: Mutex<Option<Records>> = Mutex::new(None);

impl Tuning {
    /// The record of this name, if one was kept.
    pub(crate) fn record(&self, name: Name) -> Option<Arc<[u64]>> {
        with(self.kept.as_deref()?, |records| records.known.get(&name).cloned())
    }

    /// Keeps a record. What cannot be kept is found out again by whoever needs it.
    pub(crate) fn keep(&self, name: Name, record: &[u64]) {
        let Some(file) = self.kept.as_deref().filter(|_| record.len() <= LONGEST) else { return };
        with(file, |records| records.known.insert(name, record.into()));
        let _ = append(file, name, record);
    }

    /// Describes the kept choices and proofs, in words.
    ///
    /// # Errors
    /// Why their file is not used, in words.
    pub fn about_kept(&self) -> Result<String, String> {
        let Some(file) = &self.kept else {
            return Ok("none: a setting says so, or there is no folder for it".to_owned());
        };
        match look(file) {
            Ok((records, bytes)) => Ok(format!("{records}, {} in {}", approximate(bytes), file.display())),
            Err(why) => Err(format!("{} is not used: {why}", file.display())),
        }
    }
}

/// The text of this name in a file.
pub(super) fn text(file: &Path, name: Name) -> Option<String> {
    let record = with(file, |records| records.known.get(&name).cloned())?;
    let (length, words) = record.split_first()?;
    let bytes = words.iter().flat_map(|word| word.to_le_bytes());
    String::from_utf8(bytes.take(usize::try_from(*length).ok()?).collect()).ok()
}

/// Keeps a text under a name, if it is not too long.
pub(super) fn keep_text(file: &Path, name: Name, text: &str) {
    let word = |bytes: &[u8]| bytes.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte));
    let record: Vec<u64> =
        std::iter::once(text.len() as u64).chain(text.as_bytes().chunks(8).map(word)).collect();
    if record.len() <= LONGEST {
        with(file, |records| records.known.insert(name, record.as_slice().into()));
        let _ = append(file, name, &record);
    }
}

/// Removes the files of plans in a directory whose profile is replaced.
pub fn remove_kept(directory: &Path) {
    let names = std::fs::read_dir(directory).into_iter().flatten().flatten().map(|entry| entry.path());
    let is_one = |name: &str| name.starts_with(FIRST) && name.ends_with(LAST);
    for file in names.filter(|path| path.file_name().and_then(|n| n.to_str()).is_some_and(is_one)) {
        // One that stays only takes its room.
        let _ = std::fs::remove_file(file);
    }
}

/// The file, in a machine's directory, of what was chosen by files of this digest, by the sources that this is built from.
pub(super) fn file_name(digest: u64) -> String {
    format!("{FIRST}{:016x}{LAST}", fnv1a(SOURCES.bytes().chain(digest.to_le_bytes())))
}

/// Returns the number of records in a file, and its length in bytes; or why it is not used.
fn look(file: &Path) -> Result<(usize, u64), String> {
    match open(file, OFlags::RDONLY)? {
        Some((file, bytes)) => Ok((read(file).len(), bytes)),
        None => Ok((0, 0)),
    }
}

fn with<T>(file: &Path, then: impl FnOnce(&mut Records) -> T) -> T {
    // A thread that panicked here left whole records.
    let mut last = USED.lock().unwrap_or_else(PoisonError::into_inner);
    if last.as_ref().is_none_or(|records| records.file != file) {
        let known = open(file, OFlags::RDONLY).ok().flatten().map(|(file, _)| read(file));
        *last = Some(Records { file: file.to_owned(), known: known.unwrap_or_default() });
    }
    last.as_mut().map(then).unwrap_or_else(|| unreachable!("it was just set"))
}

/// Returns why a file is not used, if there is one.
pub(super) fn refused(file: &Path) -> Option<String> {
    open(file, OFlags::RDONLY).err()
}

#[cfg(all(test, not(loom)))]
pub(super) mod tests {
    use super::super::Origin;
    use super::*;
    use lineweave_core::algorithm::spec::Spec;
    use lineweave_core::collective::Collective;
    use lineweave_core::model::Values;
    use std::os::unix::fs::PermissionsExt;

    pub(in crate::tuning) fn scratch(name: &str) -> PathBuf {
        let directory = std::env::temp_dir().join(format!("lineweave-kept-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&directory);
        directory
    }

    pub(in crate::tuning) fn records(file: &Path) -> HashMap<Name, Arc<[u64]>> {
        read(open(file, OFlags::RDONLY).unwrap().expect("the file is there").0)
    }

    #[test]
    fn what_is_forced_is_neither_taken_from_a_file_nor_kept() {
        let directory = scratch("forced");
        let file = directory.join("plans.bin");
        let origin = Origin::Machine { name: "none".into(), why: "a test".into() };
        let mut tuning = Tuning::of_model(Values::default().model(), origin);
        tuning.kept = Some(file.clone());
        tuning.keep([1, 2], &[3]);
        assert_eq!(tuning.record([1, 2]).as_deref(), Some(&[3][..]));
        tuning.force(Collective::Barrier, Spec::named("all-to-all"));
        assert_eq!(tuning.record([1, 2]), None);
        tuning.keep([1, 3], &[4]);
        assert_eq!(records(&file).len(), 1);
        std::fs::remove_dir_all(&directory).unwrap();
    }

    #[test]
    fn texts_of_any_length_come_back() {
        let directory = scratch("texts");
        let file = directory.join("plans.bin");
        let most = 8 * (LONGEST - 1) - "\u{e9}".len();
        for more in (0..20).chain([most, most + 1]) {
            let (name, kept) = ([3, more as u64], format!("\u{e9}{}", "x".repeat(more)));
            keep_text(&file, name, &kept);
            assert_eq!(text(&file, name), (more <= most).then_some(kept), "{more}");
        }
        assert_eq!(text(&file, [4, 0]), None);
        *USED.lock().unwrap() = None;
        assert_eq!(text(&file, [3, 5]).as_deref(), Some("\u{e9}xxxxx"), "read from the file");
        std::fs::remove_dir_all(&directory).unwrap();
    }

    #[test]
    fn a_file_that_others_can_write_is_not_used() {
        let directory = scratch("others");
        let file = directory.join("plans.bin");
        append(&file, [1, 2], &[3]).unwrap();
        assert_eq!(look(&file).unwrap().0, 1);
        std::fs::write(directory.join("profile.toml"), "").unwrap();
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o622)).unwrap();
        assert!(look(&file).unwrap_err().contains("mode 622"));
        assert!(append(&file, [1, 3], &[3]).is_err());
        std::fs::remove_file(&file).unwrap();
        std::os::unix::fs::symlink("/dev/zero", &file).unwrap();
        assert!(look(&file).is_err() && append(&file, [0, 0], &[]).is_err());
        std::fs::remove_file(&file).unwrap();
        std::fs::create_dir(&file).unwrap();
        assert!(look(&file).unwrap_err().contains("no regular file"));
        std::fs::write(directory.join(file_name(7)), "").unwrap();
        remove_kept(&directory);
        let left: Vec<_> = std::fs::read_dir(&directory).unwrap().flatten().map(|e| e.file_name()).collect();
        assert_eq!(left.len(), 2, "{left:?}");
        std::fs::remove_dir_all(&directory).unwrap();
    }
}
