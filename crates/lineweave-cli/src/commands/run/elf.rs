//! What the head of an ELF file says: whether it is one, and which loader starts it.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

/// The segment that names the loader.
const PT_INTERP: u32 = 3;
/// The longest path of a loader that is believed.
const LONGEST_PATH: u64 = 4096;

/// A file's beginning.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Program {
    /// A program that a loader starts, with that loader's path.
    Dynamic(PathBuf),
    /// A program without a loader, which loads no libraries.
    Static,
    /// A program of another word length or byte order than this one.
    Foreign,
    /// A text that an interpreter runs, with what follows `#!`.
    Script(String),
    /// None of these.
    Other,
}

/// Reads it.
///
/// # Errors
/// What the system says.
pub fn read(path: &Path) -> io::Result<Program> {
    let mut file = File::open(path)?;
    let mut head = [0u8; 64];
    let length = fill(&mut file, &mut head)?;
    if head[..length].starts_with(b"#!") {
        let mut line = Vec::new();
        file.seek(SeekFrom::Start(2))?;
        file.take(1024).read_to_end(&mut line)?;
        let end = line.iter().position(|&b| b == b'\n').unwrap_or(line.len());
        return Ok(Program::Script(String::from_utf8_lossy(&line[..end]).trim().to_owned()));
    }
    if length < 64 || !head.starts_with(b"\x7fELF") {
        return Ok(Program::Other);
    }
    // 64 bits, and this machine's byte order.
    let order = if cfg!(target_endian = "little") { 1 } else { 2 };
    if head[4] != 2 || head[5] != order {
        return Ok(Program::Foreign);
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
            return Ok(Program::Dynamic(PathBuf::from(String::from_utf8_lossy(&text[..end]).into_owned())));
        }
    }
    Ok(Program::Static)
}

fn word(bytes: &[u8], at: usize) -> u64 {
    u64::from_ne_bytes(std::array::from_fn(|i| bytes[at + i]))
}

/// As much as there is, to the buffer's end.
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
        assert!(matches!(read(&own), Ok(Program::Dynamic(loader)) if loader.is_absolute()));
        let text = Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml");
        assert_eq!(read(&text).expect("readable"), Program::Other);
        assert!(read(Path::new("/no/such/file")).is_err());
    }

    #[test]
    fn a_script_names_its_interpreter() {
        let path = std::env::temp_dir().join(format!("lineweave-elf-{}", std::process::id()));
        std::fs::write(&path, "#! /usr/bin/env python3 -u\nprint()\n").expect("writable");
        let read = read(&path);
        std::fs::remove_file(&path).expect("removable");
        assert_eq!(read.expect("readable"), Program::Script("/usr/bin/env python3 -u".into()));
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
        assert_eq!(found, [Program::Other, Program::Other, Program::Other, Program::Static, Program::Static]);
    }
}
