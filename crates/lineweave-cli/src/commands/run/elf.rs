//! Reader of ELF files: the kind of file, the loader that starts it, and the libraries that it names.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

/// The segment that names the loader.
const PT_INTERP: u32 = 3;
/// Longest path of a loader that is accepted.
const LONGEST_PATH: u64 = 4096;

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
    let mut file = File::open(path)?;
    let mut head = [0u8; 64];
    let length = fill(&mut file, &mut head)?;
    if head[..length].starts_with(b"#!") {
        let mut line = Vec::new();
        file.seek(SeekFrom::Start(2))?;
        file.take(1024).read_to_end(&mut line)?;
        let end = line.iter().position(|&b| b == b'\n').unwrap_or(line.len());
        return Ok(Executable::Script(String::from_utf8_lossy(&line[..end]).trim().to_owned()));
    }
    if length < 64 || !head.starts_with(b"\x7fELF") {
        return Ok(Executable::Other);
    }
    // The file has words of 64 bits, and this machine's byte order.
    let order = if cfg!(target_endian = "little") { 1 } else { 2 };
    if head[4] != 2 || head[5] != order {
        return Ok(Executable::Foreign);
    }
    let half = |at: usize| u16::from_ne_bytes([head[at], head[at + 1]]);
    let (start, size, count) = (word(&head, 32), half(54), half(56));
    for i in 0..u64::from(count) {
        let mut entry = [0u8; 56];
        file.seek(SeekFrom::Start(start + i * u64::from(size)))?;
        if fill(&mut file, &mut entry)? < entry.len() {
            break;
        }
        let (offset, length) = (word(&entry, 8), word(&entry, 32));
        if u32::from_ne_bytes([entry[0], entry[1], entry[2], entry[3]]) == PT_INTERP && length <= LONGEST_PATH
        {
            let mut text = vec![0; length as usize];
            file.seek(SeekFrom::Start(offset))?;
            file.read_exact(&mut text)?;
            let end = text.iter().position(|&b| b == 0).unwrap_or(text.len());
            return Ok(Executable::Dynamic(PathBuf::from(
                String::from_utf8_lossy(&text[..end]).into_owned(),
            )));
        }
    }
    Ok(Executable::Static)
}

/// Returns the libraries that a program or library names itself, without those that they name; `None` where the file's sections do not tell.
pub fn needed(path: &Path) -> io::Result<Option<Vec<String>>> {
    /// Type of the section with the loader's data, and the tag of its entries that name libraries.
    const SHT_DYNAMIC: u32 = 6;
    const DT_NEEDED: u64 = 1;
    /// Most bytes of a table or a name that are accepted.
    const MOST: u64 = 1 << 20;
    const LONGEST_NAME: u64 = 256;
    let mut file = File::open(path)?;
    let mut piece = |at: u64, length: u64| -> io::Result<Vec<u8>> {
        file.seek(SeekFrom::Start(at))?;
        let mut bytes = Vec::new();
        file.by_ref().take(length.min(MOST)).read_to_end(&mut bytes)?;
        Ok(bytes)
    };
    let head = piece(0, 64)?;
    let order = if cfg!(target_endian = "little") { 1 } else { 2 };
    if head.len() < 64 || !head.starts_with(b"\x7fELF") || head[4..6] != [2, order] {
        return Ok(None);
    }
    let half = |at: usize| u16::from_ne_bytes([head[at], head[at + 1]]);
    let (size, count) = (usize::from(half(58)), u64::from(half(60)));
    let table = if size < 64 { Vec::new() } else { piece(word(&head, 40), size as u64 * count)? };
    let u32_at = |entry: &[u8], at: usize| u32::from_ne_bytes(std::array::from_fn(|i| entry[at + i]));
    let mut sections = table.chunks_exact(size.max(64));
    let Some(dynamic) = sections.clone().find(|entry| u32_at(entry, 4) == SHT_DYNAMIC) else {
        return Ok(None);
    };
    let Some(strings) = sections.nth(u32_at(dynamic, 40) as usize) else { return Ok(None) };
    let (entries, strings) = (piece(word(dynamic, 24), word(dynamic, 32))?, word(strings, 24));
    let names = entries.chunks_exact(16).filter(|entry| word(entry, 0) == DT_NEEDED).map(|entry| {
        let text = piece(strings.saturating_add(word(entry, 8)), LONGEST_NAME)?;
        let end = text.iter().position(|&b| b == 0).unwrap_or(text.len());
        Ok(String::from_utf8_lossy(&text[..end]).into_owned())
    });
    names.collect::<io::Result<Vec<_>>>().map(Some)
}

/// Returns whether a library exports a name that `wanted` accepts; false for a file that is no ELF file of this machine.
pub fn defines(path: &Path, wanted: impl Fn(&[u8]) -> bool) -> io::Result<bool> {
    /// Type of the section of exported names.
    const SHT_DYNSYM: u32 = 11;
    let bytes = std::fs::read(path)?;
    Ok(names(&bytes, SHT_DYNSYM).is_some_and(|mut names| names.any(wanted)))
}

/// Returns the defined names of a section of that type; `None` where the file is truncated or of another kind.
fn names(bytes: &[u8], kind: u32) -> Option<impl Iterator<Item = &[u8]>> {
    let u16_at = |at: usize| Some(u16::from_ne_bytes(bytes.get(at..at.checked_add(2)?)?.try_into().ok()?));
    let u32_at = |at: usize| Some(u32::from_ne_bytes(bytes.get(at..at.checked_add(4)?)?.try_into().ok()?));
    let u64_at = |at: usize| Some(u64::from_ne_bytes(bytes.get(at..at.checked_add(8)?)?.try_into().ok()?));
    let order = if cfg!(target_endian = "little") { 1 } else { 2 };
    if !bytes.starts_with(b"\x7fELF") || bytes.get(4..6)? != [2, order] {
        return None;
    }
    let (table, size, count) = (u64_at(40)? as usize, usize::from(u16_at(58)?), usize::from(u16_at(60)?));
    let header = |i: usize| i.checked_mul(size)?.checked_add(table);
    let section = |at: usize| {
        let (offset, length) = (u64_at(at.checked_add(24)?)? as usize, u64_at(at.checked_add(32)?)? as usize);
        bytes.get(offset..offset.checked_add(length)?)
    };
    let found = (0..count).filter_map(header).find(|&at| u32_at(at.saturating_add(4)) == Some(kind))?;
    let (symbols, strings) = (section(found)?, section(header(u32_at(found.checked_add(40)?)? as usize)?)?);
    // An entry has 24 bytes: the place of its name, four bytes on the kind, the section that defines it (0: none), and more.
    Some(symbols.chunks_exact(24).filter_map(move |entry| {
        let name = u32::from_ne_bytes([entry[0], entry[1], entry[2], entry[3]]) as usize;
        let text = strings.get(name..)?;
        let end = text.iter().position(|&b| b == 0)?;
        ([entry[6], entry[7]] != [0, 0]).then_some(&text[..end])
    }))
}

fn word(bytes: &[u8], at: usize) -> u64 {
    u64::from_ne_bytes(std::array::from_fn(|i| bytes[at + i]))
}

/// Reads until the buffer is full or the file ends.
fn fill(file: &mut File, buffer: &mut [u8]) -> io::Result<usize> {
    let mut length = 0;
    while length < buffer.len() {
        match file.read(&mut buffer[length..])? {
            0 => break,
            n => length += n,
        }
    }
    Ok(length)
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
            assert!(names(&whole[..length], 11).is_none_or(|names| names.count() == 0), "cut at {length}");
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
