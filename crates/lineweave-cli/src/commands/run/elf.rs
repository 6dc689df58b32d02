//! Reader of ELF files: the kind of file, the loader that starts it, and the libraries that it names.

use object::elf::{FileHeader64, DT_NEEDED, PT_INTERP, SHT_DYNSYM};
use object::read::elf::{Dyn, FileHeader, ProgramHeader, Sym};
use object::{NativeEndian, ReadCache, ReadRef};
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// An ELF file of this machine's word length and byte order.
type Header = FileHeader64<NativeEndian>;

/// Kind of an executable file, by its first bytes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Executable {
    /// A program that a loader starts, with that loader's path.
    Dynamic(PathBuf),
    /// A program without a loader, which loads no libraries.
    Static,
    /// A program of another word length or byte order than this one.
    Foreign,
    /// A text that an interpreter runs, with the text after `#!`.
    Script(String),
    /// Any other file.
    Other,
}

/// Reads the kind of a file.
pub fn read(path: &Path) -> io::Result<Executable> {
    let mut head = Vec::new();
    File::open(path)?.take(1024).read_to_end(&mut head)?;
    if let Some(line) = head.strip_prefix(b"#!") {
        let line = line.split(|&b| b == b'\n').next().unwrap_or_default();
        return Ok(Executable::Script(String::from_utf8_lossy(line).trim().to_owned()));
    }
    if head.len() < size_of::<Header>() || !head.starts_with(b"\x7fELF") {
        return Ok(Executable::Other);
    }
    let file = ReadCache::new(File::open(path)?);
    let Some((header, endian)) = header(&file) else { return Ok(Executable::Foreign) };
    let loader = header.program_headers(endian, &file).ok().and_then(|segments| {
        let segment = segments.iter().find(|segment| segment.p_type(endian) == PT_INTERP)?;
        segment.interpreter(endian, &file).ok()?
    });
    Ok(loader.map_or(Executable::Static, |loader| Executable::Dynamic(OsStr::from_bytes(loader).into())))
}

/// Returns a file's header; `None` for a file that is no ELF file of this machine.
fn header<'a>(file: impl ReadRef<'a>) -> Option<(&'a Header, NativeEndian)> {
    let header = Header::parse(file).ok()?;
    Some((header, header.endian().ok()?))
}

/// Returns the libraries that a program or library names itself, without those that they name; `None` where the file's sections do not tell.
pub fn needed(path: &Path) -> io::Result<Option<Vec<String>>> {
    let file = ReadCache::new(File::open(path)?);
    let named = header(&file).and_then(|(header, endian)| {
        let sections = header.sections(endian, &file).ok()?;
        let (entries, strings) = sections.dynamic(endian, &file).ok()??;
        let strings = sections.strings(endian, &file, strings).ok()?;
        let names = entries.iter().filter(|entry| entry.tag(endian) == DT_NEEDED);
        names
            .map(|name| Some(String::from_utf8_lossy(name.string(endian, strings).ok()?).into_owned()))
            .collect()
    });
    Ok(named)
}

/// Returns whether a library exports a name that `wanted` accepts; false for a file that is no ELF file of this machine.
pub fn defines(path: &Path, wanted: impl Fn(&[u8]) -> bool) -> io::Result<bool> {
    Ok(defined(&*std::fs::read(path)?, wanted).unwrap_or(false))
}

/// As [`defines`], of a file's bytes; `None` where it is truncated or of another kind.
fn defined<'a>(file: impl ReadRef<'a>, wanted: impl Fn(&[u8]) -> bool) -> Option<bool> {
    let (header, endian) = header(file)?;
    let symbols = header.sections(endian, file).ok()?.symbols(endian, file, SHT_DYNSYM).ok()?;
    let mut defined = symbols.iter().filter(|symbol| !symbol.is_undefined(endian));
    Some(defined.any(|symbol| symbol.name(endian, symbols.strings()).is_ok_and(&wanted)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_test_has_a_loader_and_a_text_has_none() {
        let own = std::env::current_exe().expect("a path");
        assert!(matches!(read(&own), Ok(Executable::Dynamic(loader)) if loader.is_absolute()));
        let text = Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml");
        assert_eq!(read(&text).expect("readable"), Executable::Other);
        assert!(read(Path::new("/no/such/file")).is_err());
    }

    #[test]
    fn libraries_define_some_names_and_only_call_others() {
        let maps = std::fs::read_to_string("/proc/self/maps").expect("readable");
        let libc = maps.split_whitespace().find(|word| word.contains("/libc.so")).expect("the C library");
        let has = |name: &'static [u8]| defines(Path::new(libc), move |n| n == name).expect("readable");
        assert!(has(b"malloc") && !has(b"MPI_Init"));
        // The C library imports this name from the loader.
        assert!(!has(b"__tls_get_addr"));
        let text = Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml");
        assert!(!defines(&text, |_| true).expect("readable"));
        let whole = std::fs::read(libc).expect("readable");
        // A truncated file lacks the parts that follow the names.
        for length in [0, 6, 40, 64, whole.len() / 2] {
            assert_ne!(defined(&whole[..length], |_| true), Some(true), "cut at {length}");
        }
    }

    #[test]
    fn a_program_names_the_c_library_and_a_cut_one_names_nothing() {
        let own = std::env::current_exe().expect("a path");
        let named = needed(&own).expect("readable").expect("its sections");
        assert!(named.iter().any(|name| name.starts_with("libc.so")), "{named:?}");
        let text = Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml");
        assert_eq!(needed(&text).expect("readable"), None);
        let head = std::fs::read(&own).expect("readable");
        let path = std::env::temp_dir().join(format!("lineweave-needed-{}", std::process::id()));
        for length in [0, 63, 64, 4096] {
            std::fs::write(&path, &head[..length]).expect("writable");
            assert_eq!(needed(&path).expect("readable"), None, "{length} bytes");
        }
        std::fs::remove_file(&path).expect("removable");
        assert!(needed(Path::new("/no/such/file")).is_err());
    }

    #[test]
    fn a_script_names_its_interpreter() {
        let path = std::env::temp_dir().join(format!("lineweave-elf-{}", std::process::id()));
        std::fs::write(&path, "#! /usr/bin/env python3 -u\nprint()\n").expect("writable");
        let read = read(&path);
        std::fs::remove_file(&path).expect("removable");
        assert_eq!(read.expect("readable"), Executable::Script("/usr/bin/env python3 -u".into()));
    }

    #[test]
    fn a_cut_header_is_no_program_with_a_loader() {
        let own = std::fs::read(std::env::current_exe().expect("a path")).expect("readable");
        let path = std::env::temp_dir().join(format!("lineweave-cut-{}", std::process::id()));
        let mut found = Vec::new();
        for length in [0, 3, 63, 64, 100] {
            std::fs::write(&path, &own[..length]).expect("writable");
            found.push(read(&path).expect("readable"));
        }
        std::fs::remove_file(&path).expect("removable");
        assert_eq!(
            found,
            [Executable::Other, Executable::Other, Executable::Other, Executable::Static, Executable::Static]
        );
    }
}
