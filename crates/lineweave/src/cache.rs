//! The user's cache, and the one rule for every file that is kept in it.
//!
//! Every program of the user reads what is kept there, and nobody typed its name. So a kept file counts only if it is a regular file, and
//! no symbolic link, that belongs to this user or to root and that nobody else may write. It is opened without waiting, so that a pipe or a
//! device in its place stops nobody. Whoever finds a file that does not count goes on without it, and says so ([`aside`]).

use crate::sysfile;
use rustix::fs::{Mode, OFlags};
use rustix::process::geteuid;
use std::fs::{File, Metadata};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// Returns where all that can be found out again is kept: `$XDG_CACHE_HOME/lineweave`, else `~/.cache/lineweave`. A relative path
/// counts as not set, as the standard says. Nothing when neither variable is set.
pub fn directory() -> Option<PathBuf> {
    let set = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let cache = set("XDG_CACHE_HOME").or_else(|| Some(set("HOME")?.join(".cache")))?;
    Some(cache.join("lineweave"))
}

/// Opens a kept file; nothing if there is none.
///
/// # Errors
/// Why it does not count, in words.
pub fn open(file: &Path, flags: OFlags) -> io::Result<Option<File>> {
    match std::fs::symlink_metadata(file) {
        // A device may do something when it is opened.
        Ok(meta) => judge(&meta)?,
        Err(e) if !is_absent(&e) => return Err(e),
        Err(_) if !flags.contains(OFlags::CREATE) => return Ok(None),
        Err(_) => {}
    }
    let flags = flags | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
    let file = File::from(rustix::fs::open(file, flags, Mode::RUSR | Mode::WUSR)?);
    judge(&file.metadata()?)?;
    Ok(Some(file))
}

/// Returns whether there is a kept file that counts.
pub fn counts(file: &Path) -> bool {
    matches!(open(file, OFlags::RDONLY), Ok(Some(_)))
}

/// Reads a kept file; nothing if there is none.
///
/// # Errors
/// The errors of [`open`], and those of [`sysfile::text`].
pub fn text(file: &Path) -> io::Result<Option<String>> {
    open(file, OFlags::RDONLY)?.map(sysfile::text_of).transpose()
}

/// Reads a file that a setting names: anybody's, also by a link, but a regular one, which stops nobody.
///
/// # Errors
/// The errors of the system, and those of [`sysfile::text`].
pub fn named(file: &Path) -> io::Result<String> {
    let file = File::from(rustix::fs::open(
        file,
        OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK,
        Mode::empty(),
    )?);
    match file.metadata()?.is_file() {
        true => sysfile::text_of(file),
        false => Err(io::Error::new(ErrorKind::InvalidInput, "it is no regular file")),
    }
}

/// Reads a file for a command: a kept one by this module's rule, any other as the user named it.
///
/// # Errors
/// The errors of [`text`] and [`sysfile::text`].
pub fn text_of_either(file: &Path) -> io::Result<String> {
    match directory().is_some_and(|cache| file.starts_with(cache)) {
        true => text(file)?.ok_or_else(|| ErrorKind::NotFound.into()),
        false => sysfile::text(file),
    }
}

/// Returns a fault without advice to measure again, which whoever names the file adds.
pub(crate) fn fault(why: &str) -> &str {
    let is_advice =
        |text: &str| text.starts_with("measure again") || text.starts_with("run `lineweave tune`");
    match why.rsplit_once("; ").filter(|(_, advice)| is_advice(advice)) {
        Some((why, _)) => fault(why),
        None => why,
    }
}

/// Returns the line that says that a kept file does not count, why, and what to do.
pub fn aside(file: &Path, why: &str) -> String {
    let why = fault(why);
    let line =
        format!("{} is set aside: {why}; remove it, or measure again with `lineweave tune`", file.display());
    line.replace(['\n', '\r'], " ")
}

/// Writes such a line to standard error, once a process: a program may make many teams.
pub(crate) fn say(line: &str) {
    static SAID: Mutex<Vec<String>> = Mutex::new(Vec::new());
    let mut said = SAID.lock().unwrap_or_else(PoisonError::into_inner);
    if !said.iter().any(|before| before == line) {
        said.push(line.to_owned());
        // Without a standard error there is nobody to tell.
        let _ = writeln!(io::stderr(), "lineweave: {line}");
    }
}

/// Returns whether there is no such file, as far as this user can see.
fn is_absent(e: &io::Error) -> bool {
    matches!(e.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory | ErrorKind::PermissionDenied)
}

fn judge(meta: &Metadata) -> io::Result<()> {
    let others = [geteuid().as_raw(), 0].iter().all(|&uid| uid != meta.uid()) || meta.mode() & 0o022 != 0;
    let why = match meta.is_file() {
        false if meta.is_symlink() => "it is a symbolic link".to_owned(),
        false => "it is no regular file".to_owned(),
        true if others => {
            format!("others may have written it (owner {}, mode {:o})", meta.uid(), meta.mode() & 0o777)
        }
        true => return Ok(()),
    };
    Err(io::Error::new(ErrorKind::PermissionDenied, why))
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use std::os::unix::fs::{symlink, PermissionsExt};

    #[test]
    fn tests_have_an_empty_cache_in_which_nothing_can_be_kept() {
        let cache = directory().expect("a cache");
        assert!(
            cache.is_file(),
            "run tests by cargo within the repository: .cargo/config.toml is what names the cache"
        );
        assert!(text(&cache.join("0/profile.toml")).expect("nothing is there").is_none());
        assert!(std::fs::create_dir_all(cache.join("0")).is_err());
    }

    #[test]
    fn advice_is_said_once() {
        for why in [
            "line 1: missing field `schema`; measure again; measure again with `lineweave tune`",
            "line 1: missing field `schema`; run `lineweave tune` again",
            "line 1: missing field `schema`",
        ] {
            let line = aside(Path::new("profile.toml"), why);
            let expected =
                "line 1: missing field `schema`; remove it, or measure again with `lineweave tune`";
            assert_eq!(line, format!("profile.toml is set aside: {expected}"));
        }
    }

    #[test]
    fn only_regular_files_that_nobody_else_may_write_count() {
        let directory = std::env::temp_dir().join(format!("lineweave-cache-{}", std::process::id()));
        std::fs::create_dir_all(&directory).expect("a directory");
        let at = |name: &str| directory.join(name);
        std::fs::write(at("own"), "text").expect("a file");
        let mode = |mode| std::fs::set_permissions(at("own"), std::fs::Permissions::from_mode(mode));
        for (allowed, expected) in [(0o600, true), (0o644, true), (0o664, false), (0o646, false)] {
            mode(allowed).expect("own file");
            assert_eq!(text(&at("own")).is_ok(), expected, "{allowed:o}");
            assert_eq!(named(&at("own")).expect("named"), "text");
        }
        mode(0o644).expect("own file");
        symlink(at("own"), at("link")).expect("a link");
        symlink("loop", at("loop")).expect("a link");
        let made = std::process::Command::new("mkfifo").arg(at("pipe")).status().expect("mkfifo");
        assert!(made.success());
        for (name, why) in
            [("link", "symbolic link"), ("loop", "symbolic link"), ("pipe", "regular"), ("", "regular")]
        {
            let error = text(&at(name)).expect_err("does not count").to_string();
            assert!(error.contains(why), "{name}: {error}");
        }
        assert!(text(&at("loop").join("below")).is_err(), "a circle of links is no absence");
        for absent in [at("none"), at("own").join("below"), PathBuf::from("/dev/null/lineweave")] {
            assert_eq!(text(&absent).expect("nothing there"), None, "{}", absent.display());
        }
        assert!(open(Path::new("/dev/zero"), OFlags::RDONLY).is_err());
        assert_eq!(named(&at("link")).expect("named"), "text");
        for refused in [at("pipe"), at(""), PathBuf::from("/dev/zero"), at("none")] {
            assert!(named(&refused).is_err(), "{}", refused.display());
        }
        if geteuid().is_root() {
            std::os::unix::fs::chown(at("own"), Some(1234), None).expect("root may");
            assert!(text(&at("own")).expect_err("another user's").to_string().contains("owner 1234"));
        }
        std::fs::remove_dir_all(&directory).expect("removed");
    }
}
