//! A check for room on the disk before a long measurement, rather than an error after it.

use crate::error::CliError;
use std::io::Write;
use std::path::Path;

/// Bytes that exceed a profile, its choices and the kept plans together.
const ROOM: usize = 2 << 20;

/// Checks that the results will fit: writes as many bytes into an unnamed file in the directory of `file`. `option` names the option to
/// change when that fails.
pub fn expect_room(file: &Path, option: &'static str) -> Result<(), CliError> {
    let directory = file.parent().filter(|d| !d.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let written = tempfile::tempfile_in(directory).and_then(|mut file| {
        file.write_all(&vec![1; ROOM])?;
        file.sync_all()
    });
    written.map_err(|reason| CliError::Write { path: directory.to_owned(), option, reason })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_disk_is_found_before_anything_is_measured() {
        let here = std::env::temp_dir().join("profile.toml");
        assert!(expect_room(&here, "-o").is_ok());
        let error = expect_room(Path::new("/proc/profile.toml"), "-o").unwrap_err().to_string();
        assert!(error.contains("/proc: cannot be written") && error.contains("-o"), "{error}");
    }
}
