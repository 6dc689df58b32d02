//! The file of records that outlive the program: a row of frames. A frame is a mark, a length, the record's name, the record, and a checksum. Of two
//! frames with one name the later counts.
//!
//! Any number of programs may add frames at once, each by one `write` at the end. What is no frame, of a file that was cut short or written over, is
//! passed over up to the next mark.
//!
//! A full file is replaced by one with the newest frame of each name, the oldest of which are left out if they take more than half of the room. Who
//! replaces it has its lock alone (`flock`), and who adds a frame shares the lock. Both look, with the lock, whether the file still has its name; if
//! not, they begin again with the new one. So no frame goes into a file that was replaced, and a program that is killed leaves no lock. Nobody waits
//! long: a frame that finds the lock taken for some milliseconds is not added, and whoever needs the record finds it out again. Where a file system has
//! no locks, a full file stays as it is.

use crate::cache;
use crate::sync::sleep;
use lineweave_core::units::fnv1a;
use rustix::fs::{flock, FlockOperation, Mode, OFlags};
use rustix::io::Errno;
use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io::{Read, Write};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// First word of a frame.
const MARK: u64 = u64::from_le_bytes(*b"lineweav");
/// Words before a record and behind it.
const HEAD: usize = 4;
const TAIL: usize = 1;
/// The longest record in words.
pub(super) const LONGEST: usize = 1 << 16;
/// Bytes at which the file is full, and of one after it was full. Programs that add frames at once may each pass the limit by a frame; so a reader reads
/// up to twice as much.
pub(super) const FULL: u64 = 8 << 20;
const HALF: usize = 4 << 20;
/// The end of the name of a file that replaces another: it is one of the kept files, too.
const NEW: &str = "new.bin";
/// The number of times that the lock is tried, and the pause between.
const TRIES: usize = 20;
const PAUSE: Duration = Duration::from_millis(1);

/// Name of a record.
pub(super) type Name = [u64; 2];

/// A lock, which is given back also if a forked child has the file open.
struct Locked<'a>(&'a File);

impl Drop for Locked<'_> {
    fn drop(&mut self) {
        let _ = flock(self.0, FlockOperation::Unlock);
    }
}

/// Opens the file by the rule of the cache, with its length; nothing if there is none.
pub(super) fn open(file: &Path, flags: OFlags) -> Result<Option<(File, u64)>, String> {
    let Some(file) = cache::open(file, flags).map_err(|e| e.to_string())? else { return Ok(None) };
    let bytes = file.metadata().map_err(|e| e.to_string())?.len();
    Ok(Some((file, bytes)))
}

/// Adds a record; returns whether it was added.
pub(super) fn append(file: &Path, name: Name, record: &[u64]) -> Result<bool, String> {
    if let Some(directory) = file.parent() {
        std::fs::create_dir_all(directory).map_err(|e| e.to_string())?;
    }
    let frame = frame(name, record);
    for _ in 0..TRIES {
        let Some((opened, bytes)) = open(file, OFlags::WRONLY | OFlags::APPEND | OFlags::CREATE)? else {
            return Ok(false);
        };
        let full = bytes + frame.len() as u64 > FULL;
        let how = match full {
            true => FlockOperation::NonBlockingLockExclusive,
            false => FlockOperation::NonBlockingLockShared,
        };
        let locked = flock(&opened, how);
        match locked {
            Err(Errno::WOULDBLOCK | Errno::INTR) => {
                sleep(PAUSE);
                continue;
            }
            Err(_) if full => return Ok(false),
            Ok(()) | Err(_) => {}
        }
        let _lock = locked.is_ok().then(|| Locked(&opened));
        if !has_name(&opened, file) {
            continue;
        }
        match full {
            true => replace(file, &frame)?,
            false => (&opened).write_all(&frame).map_err(|e| e.to_string())?,
        }
        return Ok(true);
    }
    Ok(false)
}

fn has_name(opened: &File, file: &Path) -> bool {
    let place = |meta: std::fs::Metadata| (meta.dev(), meta.ino());
    let named = std::fs::symlink_metadata(file).ok().map(place);
    named.is_some() && opened.metadata().ok().map(place) == named
}

/// Replaces a file by its newest frames and another one. The caller has the lock.
fn replace(file: &Path, last: &[u8]) -> Result<(), String> {
    let old = open(file, OFlags::RDONLY)?.map(|(old, _)| frames(old)).unwrap_or_default();
    let (mut seen, mut kept, mut bytes) = (HashSet::from([name_of(last)]), Vec::new(), last.len());
    for (name, record) in old.iter().rev() {
        if seen.insert(Some(*name)) {
            let frame = frame(*name, record);
            bytes += frame.len();
            if bytes > HALF {
                break;
            }
            kept.push(frame);
        }
    }
    let all: Vec<u8> = kept.into_iter().rev().chain([last.to_vec()]).flatten().collect();
    let new = file.with_extension(NEW);
    // Of a program that was killed here.
    let _ = std::fs::remove_file(&new);
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let made = rustix::fs::open(&new, flags, Mode::RUSR | Mode::WUSR).map_err(|e| e.to_string())?;
    let done = File::from(made).write_all(&all).and_then(|()| std::fs::rename(&new, file));
    if done.is_err() {
        let _ = std::fs::remove_file(&new);
    }
    done.map_err(|e| e.to_string())
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

fn name_of(frame: &[u8]) -> Option<Name> {
    frame_at(frame).map(|(name, ..)| name)
}

/// Every record of a file.
pub(super) fn read(file: File) -> HashMap<Name, Arc<[u64]>> {
    frames(file).into_iter().collect()
}

/// Every whole frame of a file, in order.
fn frames(file: File) -> Vec<(Name, Arc<[u64]>)> {
    let (mut bytes, mut found, mut at) = (Vec::new(), Vec::new(), 0);
    if file.take(2 * FULL).read_to_end(&mut bytes).is_err() {
        return found;
    }
    while at + 8 * (HEAD + TAIL) <= bytes.len() {
        match frame_at(&bytes[at..]) {
            Some((name, record, length)) => {
                found.push((name, record));
                at += length;
            }
            None => at += 1,
        }
    }
    found
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
    use super::super::kept::tests::{records, scratch};
    use super::*;
    use crate::sync::{AtomicUsize, Ordering};

    #[test]
    fn what_is_cut_short_or_written_over_is_passed_over() {
        let directory = scratch("cut");
        let file = directory.join("plans.bin");
        let all: Vec<(Name, Vec<u64>)> = (0..5).map(|n| ([n, 7 * n], (0..3 * n).collect())).collect();
        for (name, record) in &all {
            append(&file, *name, record).unwrap();
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
            append(&file, [9, 9], &[1]).unwrap();
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
    fn a_full_file_keeps_the_newest_of_each_name_and_takes_corrections() {
        let directory = scratch("full");
        let file = directory.join("plans.bin");
        let long = |n: u64| vec![n; LONGEST / 8];
        let turns = 3 * FULL / (8 * LONGEST as u64 / 8);
        for n in 0..turns {
            // A verdict that changes, one that was found once, and what fills the file.
            assert_eq!(append(&file, [1, 1], &[n]), Ok(true));
            if n + 5 == turns {
                assert_eq!(append(&file, [2, 2], &[7]), Ok(true));
            }
            assert_eq!(append(&file, [99, n], &long(n)), Ok(true));
            assert_eq!(records(&file)[&[1, 1]][..], [n]);
        }
        let found = records(&file);
        assert_eq!((&found[&[2, 2]][..], &found[&[99, turns - 1]][..]), (&[7][..], &long(turns - 1)[..]));
        assert!(std::fs::metadata(&file).unwrap().len() <= FULL);
        assert!(!found.contains_key(&[99, 0]), "the oldest made room");
        // Writers at once, all of which found room for one more frame.
        let room = FULL - std::fs::metadata(&file).unwrap().len();
        let past: u64 = 2 + room / frame([97, 0], &long(0)).len() as u64;
        let mut several = File::options().append(true).open(&file).unwrap();
        for n in 0..past {
            several.write_all(&frame([97, n], &long(n))).unwrap();
        }
        let has_last = || records(&file).get(&[97, past - 1]).is_some_and(|record| record[0] == past - 1);
        assert!(std::fs::metadata(&file).unwrap().len() > FULL && has_last());
        assert_eq!(append(&file, [97, past], &long(past)), Ok(true));
        assert!(std::fs::metadata(&file).unwrap().len() < FULL && has_last());
        // One that was killed while it replaced the file, and one that holds the lock for long.
        std::fs::write(file.with_extension(NEW), "half").unwrap();
        for n in 0..turns {
            assert_eq!(append(&file, [98, n], &long(n)), Ok(true));
        }
        assert!(!file.with_extension(NEW).exists());
        let other = File::open(&file).unwrap();
        flock(&other, FlockOperation::LockExclusive).unwrap();
        assert_eq!(append(&file, [3, 3], &[3]), Ok(false));
        drop(other);
        assert_eq!(append(&file, [3, 3], &[3]), Ok(true));
        std::fs::remove_dir_all(&directory).unwrap();
    }

    #[test]
    fn many_writers_lose_nothing_also_while_the_file_is_replaced() {
        const WRITERS: u64 = 8;
        let directory = scratch("writers");
        let file = directory.join("plans.bin");
        let lost = AtomicUsize::new(0);
        // Fills the file some five times, by names that come again.
        let turns = 5 * FULL / WRITERS / (8 * 1000);
        std::thread::scope(|scope| {
            for writer in 0..WRITERS {
                let (file, lost) = (&file, &lost);
                scope.spawn(move || {
                    for n in 0..turns {
                        // Who is refused tries again, so that each name's last record is the last turn's.
                        while append(file, [writer, n % 10], &vec![n; 1000]) != Ok(true) {
                            lost.fetch_add(1, Ordering::Relaxed);
                        }
                    }
                });
            }
        });
        let found = records(&file);
        assert_eq!(found.len() as u64, 10 * WRITERS);
        for ([writer, name], record) in &found {
            let last = (0..turns).rev().find(|n| n % 10 == *name);
            assert_eq!((record.len(), Some(record[0])), (1000, last), "{writer} {name}");
        }
        assert!(std::fs::metadata(&file).unwrap().len() < 2 * FULL, "{} refused", lost.into_inner());
        std::fs::remove_dir_all(&directory).unwrap();
    }
}
