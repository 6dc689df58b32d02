//! Sizes as people write them: `64KiB`, `1.5 MiB`, `100`.

use std::fmt;
use std::str::FromStr;
use thiserror::Error;

/// The largest size taken: 1 TiB, as in plans.
const MOST: u64 = 1 << 40;

/// A number of bytes given on the command line.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Size(pub usize);

/// A text that is not a size.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[error("expected bytes, or a number with KiB, MiB or GiB (1024 each) or kB, MB or GB (1000 each), up to 1TiB; found {found}")]
pub struct SizeError {
    found: String,
}

/// Units and their bytes, in lower case. A letter alone is binary, as in the micro-benchmarks of MPI.
const UNITS: [(&str, u64); 14] = [
    ("", 1),
    ("b", 1),
    ("k", 1 << 10),
    ("kib", 1 << 10),
    ("kb", 1000),
    ("m", 1 << 20),
    ("mib", 1 << 20),
    ("mb", 1_000_000),
    ("g", 1 << 30),
    ("gib", 1 << 30),
    ("gb", 1_000_000_000),
    ("t", 1 << 40),
    ("tib", 1 << 40),
    ("tb", 1_000_000_000_000),
];

impl FromStr for Size {
    type Err = SizeError;

    fn from_str(text: &str) -> Result<Size, SizeError> {
        let error = |found: String| SizeError { found };
        let at = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
        let (number, unit) = text.split_at(at);
        let unit = unit.trim().to_lowercase();
        let Some(&(_, scale)) = UNITS.iter().find(|(name, _)| *name == unit) else {
            return Err(error(format!("the unit `{unit}`")));
        };
        let bytes = match number.parse::<u64>() {
            Ok(whole) => whole.checked_mul(scale).filter(|&b| b <= MOST),
            Err(_) => {
                let value: f64 = number.parse().map_err(|_| error(format!("`{text}`")))?;
                let bytes = value * scale as f64;
                if bytes.fract() != 0.0 {
                    return Err(error(format!("{bytes} bytes, which is no whole number")));
                }
                (bytes <= MOST as f64).then_some(bytes as u64)
            }
        };
        let bytes = bytes.ok_or_else(|| error(format!("`{text}`, which is more")))?;
        usize::try_from(bytes)
            .map(Size)
            .map_err(|_| error(format!("`{text}`, beyond this machine's addresses")))
    }
}

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_take_the_units_people_use() {
        let cases = [
            ("0", 0),
            ("100", 100),
            ("64KiB", 65_536),
            ("64k", 65_536),
            ("64 kB", 64_000),
            ("1.5MiB", 3 << 19),
            ("2g", 2 << 30),
            ("8B", 8),
        ];
        for (text, bytes) in cases {
            assert_eq!(text.parse(), Ok(Size(bytes)), "{text}");
        }
    }

    #[test]
    fn what_is_no_size_says_what_was_expected() {
        for text in ["", "KiB", "-1", "1.3", "12q", "1e3", "99999999999999999999", "2TiB", "1.2.3k"] {
            let error = text.parse::<Size>().expect_err(text).to_string();
            assert!(error.contains("expected bytes") && error.contains("found"), "{text}: {error}");
        }
    }
}
