//! Newtypes for the quantities that plans, models and profiles speak of.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::ops::{Add, Mul, Sub};

/// The size of a cache line on every machine the real engine runs on; simulated machines carry their own.
pub const LINE: usize = 64;

/// A rank of a communicator: 0 .. P.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Rank(pub u32);

impl Rank {
    /// The rank as an index into per-rank tables.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

impl From<usize> for Rank {
    fn from(index: usize) -> Self {
        Rank(u32::try_from(index).expect("a rank fits 32 bits"))
    }
}

impl fmt::Display for Rank {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// A duration in nanoseconds, as models compute it.
#[derive(Clone, Copy, PartialEq, PartialOrd, Debug, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Nanos(pub f64);

impl Add for Nanos {
    type Output = Nanos;
    fn add(self, other: Nanos) -> Nanos {
        Nanos(self.0 + other.0)
    }
}

impl Sub for Nanos {
    type Output = Nanos;
    fn sub(self, other: Nanos) -> Nanos {
        Nanos(self.0 - other.0)
    }
}

impl Mul<f64> for Nanos {
    type Output = Nanos;
    fn mul(self, factor: f64) -> Nanos {
        Nanos(self.0 * factor)
    }
}

impl fmt::Display for Nanos {
    /// Three significant digits in the unit a person would choose.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (value, unit) = match self.0.abs() {
            v if v < 1e3 => (self.0, "ns"),
            v if v < 1e6 => (self.0 / 1e3, "us"),
            v if v < 1e9 => (self.0 / 1e6, "ms"),
            _ => (self.0 / 1e9, "s"),
        };
        let digits = if value.abs() < 10.0 {
            2
        } else if value.abs() < 100.0 {
            1
        } else {
            0
        };
        f.pad(&format!("{value:.digits$} {unit}"))
    }
}

/// A number of bytes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Bytes(pub u64);

impl fmt::Display for Bytes {
    /// Binary units where they divide evenly, bytes otherwise.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = match self.0 {
            b if b >= 1 << 30 && b % (1 << 30) == 0 => format!("{} GiB", b >> 30),
            b if b >= 1 << 20 && b % (1 << 20) == 0 => format!("{} MiB", b >> 20),
            b if b >= 1 << 10 && b % (1 << 10) == 0 => format!("{} KiB", b >> 10),
            b => format!("{b} B"),
        };
        f.pad(&text)
    }
}

/// Units of sizes and their bytes, in lower case. A letter alone is binary, as in the micro-benchmarks of MPI.
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

impl std::str::FromStr for Bytes {
    type Err = String;

    /// A size as people write it, in settings, commands and choices alike: `100`, `64k`, `64KiB`, `1.5 MiB`, `64kB`. The error is what
    /// was found instead.
    fn from_str(text: &str) -> Result<Bytes, String> {
        let text = text.trim();
        let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
        let (number, unit) = text.split_at(end);
        let unit = unit.trim();
        let Some(&(_, scale)) = UNITS.iter().find(|(name, _)| *name == unit.to_lowercase()) else {
            return Err(format!("the unit `{unit}`"));
        };
        if let Ok(whole) = number.parse::<u64>() {
            return whole.checked_mul(scale).map(Bytes).ok_or_else(|| "too large a size".to_owned());
        }
        let value: f64 = number.parse().map_err(|_| format!("no number in `{text}`"))?;
        let bytes = value * scale as f64;
        match bytes {
            _ if bytes >= u64::MAX as f64 => Err("too large a size".to_owned()),
            _ if bytes.fract() != 0.0 => Err(format!("{bytes} bytes, which is no whole number")),
            _ => Ok(Bytes(bytes as u64)),
        }
    }
}

/// A number that differs for different bytes, the same wherever it is computed: FNV-1a.
pub fn fnv1a(bytes: impl IntoIterator<Item = u8>) -> u64 {
    let mix = |number: u64, byte: u8| (number ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    bytes.into_iter().fold(0xcbf2_9ce4_8422_2325, mix)
}

/// ceil(log2 p): the height of a binomial tree of `p` ranks.
pub fn ceil_log2(p: usize) -> u32 {
    p.max(1).next_power_of_two().trailing_zeros()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_printed_in_the_unit_a_person_chooses() {
        assert_eq!(Nanos(53.2).to_string(), "53.2 ns");
        assert_eq!(Nanos(5_320.0).to_string(), "5.32 us");
        assert_eq!(Nanos(1.5e9).to_string(), "1.50 s");
    }

    #[test]
    fn sizes_keep_odd_bytes() {
        assert_eq!(Bytes(65536).to_string(), "64 KiB");
        assert_eq!(Bytes(65537).to_string(), "65537 B");
        assert!([0, 1, 65536, 65537, 3 << 30].iter().all(|&b| Bytes(b).to_string().parse() == Ok(Bytes(b))));
    }

    #[test]
    fn sizes_take_the_units_people_use() {
        let cases = [
            ("0", 0),
            ("100", 100),
            ("64KiB", 65_536),
            ("64k", 65_536),
            ("64 kB", 64_000),
            (" 1.5MiB", 3 << 19),
            ("2g", 2 << 30),
            ("8B", 8),
            ("1TiB", 1 << 40),
        ];
        for (text, bytes) in cases {
            assert_eq!(text.parse(), Ok(Bytes(bytes)), "{text}");
        }
        for text in ["", "KiB", "-1", "1.3", "12q", "1e3", "99999999999999999999", "1.2.3k", "17179869184g"] {
            assert!(text.parse::<Bytes>().is_err(), "{text}");
        }
    }
}
