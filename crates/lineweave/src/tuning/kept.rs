//! Records that outlive the program, for programs that run later: choices and proofs (`choose/record.rs`), and what the profile's files
//! say, which takes a tenth of the time to read.
//!
//! A file belongs to one profile with its choices, or to the description that stands in for it, and to one version of the sources that choose and prove ([`Tuning::load`] names it),
//! so nothing in it is ever out of date. It is a row of frames: a mark, a length, the record's name, the record, and a checksum. A
//! program reads it once, when it first has to choose, and adds a frame for what it chose. Any number of programs may do so at once, as
//! a frame is added by one `write` at the end. What is no frame, of a file that was cut short or written over, is passed over up to the next mark.
//! Who takes a record makes its plans and compares their digests with those that were proved, as ranks of a team do.

use super::Tuning;
use crate::cache;
use crate::memory::approximate;
use lineweave_core::units::fnv1a;
use lineweave_core::SOURCES;
use rustix::fs::OFlags;
use std::collections::HashMap;
use std::fs::File;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// Beginning and end of a file's name.
const FIRST: &str = "plans-";
const LAST: &str = ".bin";
/// First word of a frame.
const MARK: u64 = u64::from_le_bytes(*b"lineweav");
/// Words before a record and behind it.
const HEAD: usize = 4;
const TAIL: usize = 1;
/// The longest record in words, and the longest file.
const LONGEST: usize = 1 << 16;
const FULL: u64 = 8 << 20;

/// Name of a record.
pub type Name = [u64; 2];

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
        let _ = append(file, &frame(name, record));
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
        let _ = append(file, &frame(name, &record));
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

/// Opens the file by the rule of the cache, with its length; nothing if there is none.
fn open(file: &Path, flags: OFlags) -> Result<Option<(File, u64)>, String> {
    let Some(file) = cache::open(file, flags).map_err(|e| e.to_string())? else { return Ok(None) };
    let bytes = file.metadata().map_err(|e| e.to_string())?.len();
    Ok(Some((file, bytes)))
}

/// Returns why a file is not used, if there is one.
pub(super) fn refused(file: &Path) -> Option<String> {
    open(file, OFlags::RDONLY).err()
}

fn append(file: &Path, frame: &[u8]) -> Result<(), String> {
    if let Some(directory) = file.parent() {
        std::fs::create_dir_all(directory).map_err(|e| e.to_string())?;
    }
    match open(file, OFlags::WRONLY | OFlags::APPEND | OFlags::CREATE)? {
        Some((mut file, bytes)) if bytes + frame.len() as u64 <= FULL => {
            file.write_all(frame).map_err(|e| e.to_string())
        }
        Some(_) | None => Ok(()),
    }
}

fn checksum(words: &[u64]) -> u64 {
    fnv1a(words.iter().flat_map(|word| word.to_le_bytes()))
}

fn frame(name: Name, record: &[u64]) -> Vec<u8> {
    let mut words = vec![MARK, record.len() as u64, name[0], name[1]];
    words.extend(record);
    words.push(checksum(&words[1..]));
    words.into_iter().flat_map(u64::to_le_bytes).collect()
}

/// Every whole frame of a file.
fn read(file: File) -> HashMap<Name, Arc<[u64]>> {
    let mut bytes = Vec::new();
    let mut known = HashMap::new();
    if file.take(FULL).read_to_end(&mut bytes).is_err() {
        return known;
    }
    let mut at = 0;
    while at + 8 * (HEAD + TAIL) <= bytes.len() {
        match frame_at(&bytes[at..]) {
            Some((name, record, length)) => {
                known.insert(name, record);
                at += length;
            }
            None => at += 1,
        }
    }
    known
}

fn frame_at(bytes: &[u8]) -> Option<(Name, Arc<[u64]>, usize)> {
    let word = |i: usize| Some(u64::from_le_bytes(bytes.get(8 * i..8 * i + 8)?.try_into().ok()?));
    let length =
        usize::try_from(word(1)?).ok().filter(|&length| word(0) == Some(MARK) && length <= LONGEST)?;
    let words: Vec<u64> = (1..HEAD + length).map(word).collect::<Option<_>>()?;
    let whole = word(HEAD + length)? == checksum(&words);
    whole.then(|| ([words[1], words[2]], words[HEAD - 1..].into(), 8 * (HEAD + length + TAIL)))
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::super::Origin;
    use super::*;
    use lineweave_core::algorithm::spec::Spec;
    use lineweave_core::collective::Collective;
    use lineweave_core::model::Values;
    use std::os::unix::fs::PermissionsExt;

    fn scratch(name: &str) -> PathBuf {
        let directory = std::env::temp_dir().join(format!("lineweave-kept-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&directory);
        directory
    }

    fn records(file: &Path) -> HashMap<Name, Arc<[u64]>> {
        read(open(file, OFlags::RDONLY).unwrap().expect("the file is there").0)
    }

    #[test]
    fn what_is_cut_short_or_written_over_is_passed_over() {
        let directory = scratch("cut");
        let file = directory.join("plans.bin");
        assert_eq!(look(&file), Ok((0, 0)));
        let all: Vec<(Name, Vec<u64>)> = (0..5).map(|n| ([n, 7 * n], (0..3 * n).collect())).collect();
        for (name, record) in &all {
            append(&file, &frame(*name, record)).unwrap();
        }
        let is_one = |(name, record): (&Name, &Arc<[u64]>)| all.contains(&(*name, record.to_vec()));
        assert_eq!(records(&file).len(), 5);
        assert!(records(&file).iter().all(is_one));
        let whole = std::fs::read(&file).unwrap();
        for cut in 0..whole.len() {
            std::fs::write(&file, &whole[..cut]).unwrap();
            let found = records(&file);
            assert!(found.len() < 5 && found.iter().all(is_one), "cut at {cut}");
            // What is added behind a torn frame is found.
            append(&file, &frame([9, 9], &[1])).unwrap();
            assert_eq!(records(&file).get(&[9, 9]).map(|r| r.to_vec()), Some(vec![1]), "cut at {cut}");
        }
        for at in 0..whole.len() {
            let mut other = whole.clone();
            other[at] ^= 0x40;
            std::fs::write(&file, &other).unwrap();
            let found = records(&file);
            assert!(found.len() == 4 && found.iter().all(is_one), "another byte at {at}: {found:?}");
        }
        std::fs::remove_dir_all(&directory).unwrap();
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
        append(&file, &frame([1, 2], &[3])).unwrap();
        assert_eq!(look(&file).unwrap().0, 1);
        std::fs::write(directory.join("profile.toml"), "").unwrap();
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o622)).unwrap();
        assert!(look(&file).unwrap_err().contains("mode 622"));
        assert!(append(&file, &frame([1, 3], &[3])).is_err());
        std::fs::remove_file(&file).unwrap();
        std::os::unix::fs::symlink("/dev/zero", &file).unwrap();
        assert!(look(&file).is_err() && append(&file, &[0]).is_err());
        std::fs::remove_file(&file).unwrap();
        std::fs::create_dir(&file).unwrap();
        assert!(look(&file).unwrap_err().contains("no regular file"));
        std::fs::write(directory.join(file_name(7)), "").unwrap();
        remove_kept(&directory);
        let left: Vec<_> = std::fs::read_dir(&directory).unwrap().flatten().map(|e| e.file_name()).collect();
        assert_eq!(left.len(), 2, "{left:?}");
        std::fs::remove_dir_all(&directory).unwrap();
    }

    #[test]
    fn many_writers_lose_nothing_and_a_full_file_stays_as_it_is() {
        let directory = scratch("writers");
        let file = directory.join("plans.bin");
        std::thread::scope(|scope| {
            for writer in 0..8 {
                let file = &file;
                scope.spawn(move || {
                    for n in 0..50 {
                        append(file, &frame([writer, n], &vec![n; n as usize])).unwrap();
                    }
                });
            }
        });
        assert_eq!(records(&file).len(), 400);
        let long = vec![0; LONGEST];
        for n in 0..2 * FULL / (8 * LONGEST as u64) {
            append(&file, &frame([99, n], &long)).unwrap();
        }
        assert!(std::fs::metadata(&file).unwrap().len() <= FULL);
        assert_eq!(records(&file).get(&[7, 49]).map(|r| r.len()), Some(49));
        std::fs::remove_dir_all(&directory).unwrap();
    }
}
