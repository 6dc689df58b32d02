//! Writing of files that programs rely on: a file is replaced as a whole or not at all.

use crate::error::CliError;
use lineweave::cache;
use lineweave_core::profile::Profile;
use std::fs::{self, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// Replaces a file so that readers see the old text or the new one, also when this process is killed. `option` names the option to change
/// when the file cannot be written; the old file is then unchanged.
pub fn replace(path: &Path, text: &str, option: &'static str) -> Result<(), CliError> {
    replace_bytes(path, text.as_bytes(), option)
}

/// Replaces a file as [`replace`] does, with any bytes.
pub fn replace_bytes(path: &Path, content: &[u8], option: &'static str) -> Result<(), CliError> {
    let kept = cache::directory().is_some_and(|cache| path.starts_with(cache));
    let written = match fs::metadata(path) {
        // Pipes and devices that the user names are written directly. In the cache they are in the way.
        Ok(there) if !there.is_file() && !kept => fs::write(path, content),
        _ => rename_over(path, content, if kept { 0o644 } else { 0o666 }),
    };
    written.map_err(|reason| CliError::Write { path: path.to_owned(), option, reason })
}

/// Writes a file beside the target, with a name that nobody can guess or has taken, and renames it. The umask removes bits of `mode`.
fn rename_over(path: &Path, content: &[u8], mode: u32) -> io::Result<()> {
    let above = path.parent().filter(|above| !above.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut beside = tempfile::Builder::new().permissions(Permissions::from_mode(mode)).tempfile_in(above)?;
    beside.write_all(content)?;
    beside.as_file().sync_all()?;
    beside.persist(path)?;
    Ok(())
}

/// Makes the directories above a file in the cache, whose path was not typed by a user.
pub fn make_room(file: &Path) -> Result<(), CliError> {
    let directory = file.parent().unwrap_or(Path::new("/"));
    let unusable = |reason| CliError::Write { path: directory.to_owned(), option: "XDG_CACHE_HOME", reason };
    fs::create_dir_all(directory).map_err(unusable)
}

/// Reads an argument that names a file to write. A directory that does not exist was mistyped, and is refused before anything is
/// computed.
pub fn to_write(name: &str) -> Result<PathBuf, String> {
    let path = PathBuf::from(name);
    match path.parent().filter(|d| !d.as_os_str().is_empty()) {
        Some(above) => directory(&above.to_string_lossy()).map(|_| path),
        None => Ok(path),
    }
}

/// Reads an argument that names a directory to write in.
pub fn directory(name: &str) -> Result<PathBuf, String> {
    let path = PathBuf::from(name);
    match path.is_dir() {
        true => Ok(path),
        false => Err(format!("there is no directory {name}: make it first, or correct the name")),
    }
}

/// Returns whether the file holds a profile of the same machine with clearly more data than this one: more cells, or half as many samples
/// again.
pub fn fuller(path: &Path, profile: &Profile) -> bool {
    let Ok(text) = cache::text_of_either(path) else { return false };
    let Ok(there) = Profile::from_toml(&text) else { return false };
    let samples = |p: &Profile| p.cells.iter().map(|c| c.stats.samples).sum::<usize>();
    there.matches(&profile.machine).is_ok()
        && there.version == profile.version
        && (there.cells.len() > profile.cells.len() || samples(&there) > samples(profile) * 3 / 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_replaced_whole_and_nothing_stays_beside_them() {
        let directory = std::env::temp_dir().join(format!("lineweave-files-{}", std::process::id()));
        let path = directory.join("deep").join("profile.toml");
        // The cache's directories are made; others may be mistyped.
        let error = to_write(path.to_str().unwrap()).unwrap_err();
        assert!(error.contains("there is no directory") && error.contains("deep"), "{error}");
        assert!(replace(&path, "old", "-o").is_err() && !directory.exists());
        make_room(&path).unwrap();
        assert_eq!(to_write(path.to_str().unwrap()), Ok(path.clone()));
        replace(&path, "old", "-o").unwrap();
        replace(&path, "new", "-o").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "new");
        assert_eq!(fs::read_dir(path.parent().unwrap()).unwrap().count(), 1);
        // A link that is planted beside the file stays as it is, and so does its target.
        let other = path.with_file_name("other");
        fs::write(&other, "other").unwrap();
        let planted = path.with_file_name(format!(".profile.toml.{}.tmp", std::process::id()));
        for link in [&planted, &path] {
            let _ = fs::remove_file(link);
            std::os::unix::fs::symlink(&other, link).unwrap();
        }
        replace(&path, "newer", "-o").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "newer");
        assert_eq!(fs::read_to_string(&other).unwrap(), "other");
        assert!(fs::symlink_metadata(&planted).unwrap().is_symlink());
        // A directory of that name is in the way.
        let error = replace(path.parent().unwrap(), "new", "-o").unwrap_err().to_string();
        assert!(error.contains("name another with -o"), "{error}");
        fs::remove_dir_all(directory).unwrap();
    }

    #[test]
    fn a_profile_gives_way_only_to_one_that_knows_as_much() {
        let path = std::env::temp_dir().join(format!("lineweave-fuller-{}.toml", std::process::id()));
        let mut profile = Profile {
            schema: lineweave_core::profile::SCHEMA,
            version: "0".to_owned(),
            measured_at: "2026-01-01T00:00:00Z".to_owned(),
            machine: lineweave_core::profile::Fingerprint::default(),
            unidentified: Vec::new(),
            cells: Vec::new(),
        };
        assert!(!fuller(&path, &profile));
        let text = "probe = \"p\"\nunit = \"ns\"\n[cells.stats]\nmedian = 1.0\nci_low = 1.0\nci_high = 1.0\np5 = 1.0\n\
                    p95 = 1.0\nmin = 1.0\nsamples = 9\ndisturbed = 0\n";
        fs::write(&path, format!("{}\n[[cells]]\n{text}", profile.to_toml().replace("cells = []", "")))
            .unwrap();
        assert!(fuller(&path, &profile));
        profile.machine.cpus += 1;
        assert!(!fuller(&path, &profile));
        fs::remove_file(path).unwrap();
    }
}
