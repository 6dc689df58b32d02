//! Sizes on the command line, in the format of [`Bytes`]: `64KiB`, `1.5 MiB`, `100`.

use lineweave_core::units::Bytes;
use std::fmt;
use std::str::FromStr;
use thiserror::Error;

/// Largest size that is accepted: 1 TiB, as in plans.
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

impl FromStr for Size {
    type Err = SizeError;

    fn from_str(text: &str) -> Result<Size, SizeError> {
        let Bytes(bytes) = text.parse().map_err(|found| SizeError { found })?;
        let found = if bytes <= MOST { "beyond this machine's addresses" } else { "which is more" };
        usize::try_from(bytes)
            .ok()
            .filter(|_| bytes <= MOST)
            .map(Size)
            .ok_or_else(|| SizeError { found: format!("`{text}`, {found}") })
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
    fn sizes_are_those_of_settings_up_to_a_limit() {
        for (text, bytes) in [("64k", 65_536), ("1.5MiB", 3 << 19), ("1TiB", 1 << 40)] {
            assert_eq!(text.parse(), Ok(Size(bytes)), "{text}");
        }
        for text in ["", "12q", "1.3", "2TiB"] {
            let error = text.parse::<Size>().expect_err(text).to_string();
            assert!(error.contains("expected bytes") && error.contains("found"), "{text}: {error}");
        }
    }
}
