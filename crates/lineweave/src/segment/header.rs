//! First words of a segment, which say what it is: written by its maker, and read by whoever maps it or only looks at it.

use super::header_words as header;
use super::{Geometry, LargeBanks, MAGIC, MAX_RANKS};
use crate::error::Error;

/// Words of a version's text.
const TEXT_WORDS: usize = 3;
/// Words that [`read`] wants: the text is the last of them.
pub(super) const WORDS: usize = header::VERSION_TEXT + TEXT_WORDS;

const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Returns the value of a segment's version word: a team may only consist of equal builds of the format.
pub(super) fn version_word() -> u64 {
    VERSION.bytes().fold(1, |h, b| h.wrapping_mul(257) + u64::from(b))
}

/// The first words of a segment, with the mark that makes it one.
pub(super) fn words(geometry: &Geometry) -> [u64; WORDS] {
    let mut words = [0; WORDS];
    words[header::MAGIC] = MAGIC;
    words[header::VERSION] = version_word();
    words[header::RANKS] = geometry.ranks as u64;
    words[header::BOX_BYTES] = geometry.box_bytes as u64;
    words[header::BLOB_BYTES] = geometry.blob_bytes as u64;
    words[header::LATE_BANKS] = u64::from(geometry.large_banks == LargeBanks::WhenPlanned);
    let mut text = [0; 8 * TEXT_WORDS];
    for (to, from) in text.iter_mut().zip(VERSION.bytes()) {
        *to = from;
    }
    for (word, bytes) in words[header::VERSION_TEXT..].iter_mut().zip(text.chunks_exact(8)) {
        *word = u64::from_le_bytes(bytes.try_into().unwrap_or_default());
    }
    words
}

/// That something else was found than a segment of this version.
pub(super) fn foreign(found: impl Into<String>) -> Error {
    Error::Foreign { expected: format!("a lineweave {VERSION} segment"), found: found.into() }
}

/// Sizes and offsets of the segment that begins with these words, of a file with so many bytes from there on.
///
/// # Errors
/// [`Error::Foreign`].
pub(super) fn read(words: &[u64; WORDS], bytes: u64) -> Result<Geometry, Error> {
    if words[header::MAGIC] != MAGIC {
        return Err(foreign("a file without lineweave's mark"));
    }
    if words[header::VERSION] != version_word() {
        let text = words[header::VERSION_TEXT..].iter().flat_map(|w| w.to_le_bytes());
        let text: Vec<u8> = text.take_while(|&b| b != 0).collect();
        return Err(foreign(match text.is_empty() {
            true => format!("a segment of another version (mark {:x})", words[header::VERSION]),
            false => format!("a lineweave {} segment", String::from_utf8_lossy(&text)),
        }));
    }
    let size = |word: usize| usize::try_from(words[word]).ok().filter(|&n| (n as u64) < bytes);
    let sizes = (size(header::RANKS), size(header::BOX_BYTES), size(header::BLOB_BYTES));
    let (Some(ranks @ 1..=MAX_RANKS), Some(box_bytes), Some(blob_bytes)) = sizes else {
        return Err(foreign("a segment whose header makes no sense"));
    };
    let geometry =
        Geometry::new(ranks, box_bytes, blob_bytes).with_late_banks(words[header::LATE_BANKS] != 0);
    // Communicators may have made the file longer since.
    match geometry.total() as u64 <= bytes {
        true => Ok(geometry),
        false => Err(foreign(format!("a segment whose header does not fit its {bytes} bytes"))),
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_and_everything_else_named() {
        let geometry = Geometry::new(3, 8192, 10);
        let bytes = geometry.total() as u64;
        for geometry in [geometry, geometry.with_late_banks(true)] {
            assert_eq!(read(&words(&geometry), bytes).unwrap(), geometry);
        }
        let said = |at: usize, value: u64| {
            let mut words = words(&geometry);
            words[at] = value;
            read(&words, bytes).unwrap_err().to_string()
        };
        assert!(said(header::MAGIC, 0).contains("without lineweave's mark"));
        for (at, value) in [(header::RANKS, 0), (header::RANKS, 1 << 40), (header::BOX_BYTES, u64::MAX)] {
            assert!(said(at, value).contains("makes no sense"), "{}", said(at, value));
        }
        assert!(said(header::RANKS, 400).contains("does not fit"), "{}", said(header::RANKS, 400));
        let mut other = words(&geometry);
        other[header::VERSION] = 7;
        other[header::VERSION_TEXT] = u64::from_le_bytes(*b"9.10.11\0");
        let said = read(&other, bytes).unwrap_err().to_string();
        let ours = format!("expected a lineweave {VERSION} segment, found a lineweave 9.10.11 segment");
        assert!(said.contains(&ours), "{said}");
    }
}
