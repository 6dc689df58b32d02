//! Names of enums' variants, names that somebody mistyped, and values and places as messages name them.

/// Names the variants of an enum: `ALL` in the order given, `name` and `Display`.
#[macro_export]
macro_rules! named {
    ($type:ident, $($variant:ident = $name:literal),+ $(,)?) => {
        impl $type {
            /// Every one, in the order of listings.
            pub const ALL: [$type; [$($name),+].len()] = [$($type::$variant),+];

            /// Returns the name in files, parameters and listings.
            pub fn name(self) -> &'static str {
                match self {
                    $($type::$variant => $name),+
                }
            }
        }

        impl std::fmt::Display for $type {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(self.name())
            }
        }
    };
}

/// Reads a variant that [`named`] names back from its name; `$unknown` makes the error of another text.
#[macro_export]
macro_rules! read_back {
    ($type:ident, $error:ty, $unknown:expr) => {
        impl std::str::FromStr for $type {
            type Err = $error;

            fn from_str(name: &str) -> Result<$type, $error> {
                let unknown: fn(&str) -> $error = $unknown;
                $type::ALL.into_iter().find(|one| one.name() == name).ok_or_else(|| unknown(name))
            }
        }
    };
}

pub use {named, read_back};

/// Returns the known name with the fewest letters to change, and how many those are.
pub fn nearest<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<(&'a str, usize)> {
    known.into_iter().map(|one| (one, edits(name, one))).min_by_key(|&(_, edits)| edits)
}

/// Returns the question that an error ends its first words with: ` (did you mean NAME?)`. Empty where no known name is near, in `known` or in
/// its parts between commas.
pub fn did_you_mean<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    let known = known.into_iter().flat_map(|list| list.split(',')).map(str::trim);
    match nearest(&name.to_lowercase(), known) {
        // A third of the letters: `bcsat` is bcast, `gather` is no scatter.
        Some((found, edits)) if edits <= name.chars().count().div_ceil(3) => {
            format!(" (did you mean `{found}`?)")
        }
        _ => String::new(),
    }
}

/// Returns a value as messages repeat it: only its beginning, where somebody set a whole file.
pub fn shortened(text: &str) -> String {
    const SHOWN: usize = 200;
    match text.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}... ({} bytes)", &text[..end], text.len()),
        None => text.to_owned(),
    }
}

/// Returns the line, from 1, of a byte of a text; one just past a final newline belongs to the last line.
pub(crate) fn line_of(text: &str, at: usize) -> usize {
    let before = text.bytes().take(at).filter(|&b| b == b'\n').count();
    (1 + before).min(text.lines().count().max(1))
}

/// Levenshtein's distance, with two neighbouring letters exchanged as one change.
fn edits(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let mut rows = vec![(0..=b.len()).collect::<Vec<usize>>()];
    for i in 1..=a.len() {
        let mut row = vec![i];
        for j in 1..=b.len() {
            let change = rows[i - 1][j - 1] + usize::from(a[i - 1] != b[j - 1]);
            let mut least = change.min(rows[i - 1][j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                least = least.min(rows[i - 2][j - 2] + 1);
            }
            row.push(least);
        }
        rows.push(row);
    }
    rows[a.len()][b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_of_the_hand_finds_its_name_and_another_word_none() {
        let known = ["barrier, bcast, reduce", "allreduce", "gather, scatter"];
        let meant = |name: &str| did_you_mean(name, known);
        assert_eq!(meant("allredcue"), " (did you mean `allreduce`?)");
        assert_eq!(meant("BCAST"), " (did you mean `bcast`?)");
        assert_eq!(meant("bcsat"), " (did you mean `bcast`?)");
        assert_eq!(meant("scater"), " (did you mean `scatter`?)");
        assert_eq!((meant("sendrecv"), meant("")), (String::new(), String::new()));
        assert_eq!(did_you_mean("x", []), "");
        assert_eq!((edits("", "abc"), edits("ab", "ba"), edits("kitten", "sitting")), (3, 1, 3));
        assert_eq!(edits("same", "same"), 0);
    }
}
