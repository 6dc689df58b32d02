//! Text form of an algorithm with its parameters and its window: writing and reading.
//!
//! ```text
//! choice = name [parameters] ["by" size]      tree degrees=2,2,1 layout=alone by 4 KiB
//! parameters = name=value, with blanks, commas or semicolons between them; in parentheses or not
//! ```
//!
//! Whatever prints a choice prints a [`Named`]; whatever takes one reads a [`Spec`]. A value may have commas and semicolons, and anything
//! within parentheses: what follows a comma without a `=` of its own belongs to the value before it, as in `tree(degrees=2,2,1)` and
//! `hierarchical(levels=core:tree(k=4),machine:exchange)`.

use super::Algorithm;
use crate::collective::Collective;
use crate::plan::{Params, PlanError};
use crate::units::Bytes;
use std::fmt;
use std::str::FromStr;

/// An algorithm by name, with parameters and perhaps a window. As part of another one's parameters it is written `name(a=1;b=2)`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Spec {
    /// The algorithm's name within its collective.
    pub name: String,
    /// Its parameters.
    pub params: Params,
    /// Bytes of a window, where it says so.
    pub window: Option<usize>,
}

impl Spec {
    /// An algorithm with every parameter at its default.
    pub fn named(name: &str) -> Spec {
        Spec { name: name.to_owned(), params: Params::new(), window: None }
    }

    /// The algorithm that this names, after a check of the parameters' names.
    ///
    /// # Errors
    /// [`PlanError::UnknownAlgorithm`], [`PlanError::UnknownParameter`].
    pub fn algorithm(&self, collective: Collective) -> Result<&'static Algorithm, PlanError> {
        let algorithm = super::find(collective, &self.name)?;
        algorithm.check_params(&self.params)?;
        Ok(algorithm)
    }

    /// [`Spec::algorithm`], as a part of another.
    ///
    /// # Errors
    /// The same; [`PlanError::NotApplicable`] for a hierarchical one, which cannot be part of another, and for a part with a window.
    pub fn find(&self, collective: Collective) -> Result<&'static Algorithm, PlanError> {
        let algorithm = self.algorithm(collective)?;
        let home = algorithm.home(&self.params)?.is_some();
        if algorithm.name == "hierarchical" || self.window.is_some() || home {
            let what = match (self.window, home) {
                (Some(_), _) => "with a window it",
                (None, true) => "with a home for all its lines it",
                (None, false) => "it",
            };
            return Err(algorithm.not_applicable(format!("{what} cannot be a part of another algorithm")));
        }
        Ok(algorithm)
    }
}

impl fmt::Display for Spec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)?;
        if !self.params.0.is_empty() {
            let params: Vec<String> = self.params.0.iter().map(|(k, v)| format!("{k}={v}")).collect();
            write!(f, "({})", params.join(";"))?;
        }
        by(self.window, f)
    }
}

/// The window, behind an algorithm.
fn by(window: Option<usize>, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    window.map_or(Ok(()), |window| write!(f, " by {}", Bytes(window as u64)))
}

impl FromStr for Spec {
    type Err = String;

    fn from_str(text: &str) -> Result<Spec, String> {
        let text = text.trim();
        let end = text.find(|c: char| c == '(' || c.is_whitespace()).unwrap_or(text.len());
        let (name, rest) = text.split_at(end);
        let plain = |c: char| c.is_ascii_alphanumeric() || "-_/".contains(c);
        if name.is_empty() || !name.chars().all(plain) {
            return Err(format!(
                "`{text}`, which does not begin with an algorithm's name: expected name(parameter=value,...)"
            ));
        }
        let mut spec = Spec::named(name);
        let rest = match rest.trim_start().strip_prefix('(') {
            None => rest,
            Some(inside) => {
                let close =
                    matching(inside).ok_or_else(|| format!("`{text}`, which has a `(` without its `)`"))?;
                spec.read_params(&inside[..close])?;
                &inside[close + 1..]
            }
        };
        let (params, window) = match rest.trim_start().strip_prefix("by ") {
            Some(size) => ("", Some(size)),
            None => rest.split_once(" by ").map_or((rest, None), |(params, size)| (params, Some(size))),
        };
        spec.read_params(params)?;
        spec.window = window.map(read_window).transpose()?;
        Ok(spec)
    }
}

impl Spec {
    /// Takes in what stands between the parentheses, or behind the name.
    fn read_params(&mut self, text: &str) -> Result<(), String> {
        let mut last: Option<String> = None;
        for (separator, part) in parts(text, &[',', ';', ' ']) {
            let (key, value) = (at_outside(part, '='), last.as_ref());
            match (key, value) {
                (Some(at), _) => {
                    let (key, value) = (part[..at].trim(), part[at + 1..].trim());
                    if self.params.get(key).is_some() {
                        return Err(format!("two values of {}'s `{key}`", self.name));
                    }
                    self.params = std::mem::take(&mut self.params).with(key, value);
                    last = Some(key.to_owned());
                }
                (None, Some(key)) if separator != ' ' => {
                    let value = format!("{}{separator}{part}", self.params.get(key).unwrap_or_default());
                    self.params = std::mem::take(&mut self.params).with(key, value);
                }
                (None, _) => return Err(format!("`{part}`, which has no `=`")),
            }
        }
        Ok(())
    }
}

/// Bytes of a window: `4 KiB`, `4096`.
fn read_window(text: &str) -> Result<usize, String> {
    let Bytes(bytes) = text.parse::<Bytes>()?;
    match usize::try_from(bytes) {
        Ok(window) if window > 0 => Ok(window),
        _ => Err(format!("a window of `{}`", text.trim())),
    }
}

/// Returns the index of the parenthesis that closes the one opened before this text.
fn matching(text: &str) -> Option<usize> {
    let mut depth = 0usize;
    text.char_indices().find_map(|(i, c)| match c {
        ')' if depth == 0 => Some(i),
        '(' => {
            depth += 1;
            None
        }
        ')' => {
            depth -= 1;
            None
        }
        _ => None,
    })
}

/// The first of a character outside parentheses.
fn at_outside(text: &str, wanted: char) -> Option<usize> {
    parts(text, &[wanted]).next().map(|(_, first)| first.len()).filter(|&at| at < text.len())
}

/// The parts of a list, without empty ones, each with the separator before it; what stands in parentheses is not split.
pub fn parts<'a>(text: &'a str, separators: &'a [char]) -> impl Iterator<Item = (char, &'a str)> + 'a {
    let (mut rest, mut before) = (Some(text), ' ');
    std::iter::from_fn(move || {
        let text = rest?;
        let mut depth = 0usize;
        let end = text.char_indices().find(|&(_, c)| {
            match c {
                '(' => depth += 1,
                ')' => depth = depth.saturating_sub(1),
                _ => {}
            }
            depth == 0 && separators.contains(&c)
        });
        let separator = before;
        let part = match end {
            Some((i, c)) => {
                before = c;
                rest = Some(&text[i + c.len_utf8()..]);
                &text[..i]
            }
            None => {
                rest = None;
                text
            }
        };
        Some((separator, part))
    })
    .filter(|(_, part)| !part.trim().is_empty())
}

/// A choice as it is printed everywhere: what a [`Spec`] reads.
#[derive(Clone, Copy, Debug)]
pub struct Named<'a> {
    name: &'a str,
    params: &'a Params,
    window: Option<usize>,
}

impl<'a> Named<'a> {
    /// An algorithm with its parameters.
    pub fn new(name: &'a str, params: &'a Params) -> Named<'a> {
        Named { name, params, window: None }
    }

    /// With its window, where the message takes several.
    #[must_use]
    pub fn by(self, window: usize, message: usize) -> Named<'a> {
        Named { window: (window < message).then_some(window), ..self }
    }
}

impl fmt::Display for Named<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)?;
        if !self.params.0.is_empty() {
            write!(f, " {}", self.params)?;
        }
        by(self.window, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Spec {
        text.parse().unwrap_or_else(|e| panic!("{text}: {e}"))
    }

    #[test]
    fn one_choice_may_be_written_in_several_ways() {
        let params = Params::new().with("degrees", "2,2,1").with("layout", "alone");
        let wanted = Spec { name: "tree".into(), params, window: Some(4096) };
        for text in [
            "tree degrees=2,2,1 layout=alone by 4 KiB",
            "tree(degrees=2,2,1,layout=alone) by 4KiB",
            "tree(layout=alone;degrees=2,2,1) by 4096",
            " tree ( degrees=2,2,1 layout=alone ) by 4096 B",
        ] {
            assert_eq!(read(text), wanted, "{text}");
        }
        assert_eq!(read("binomial"), Spec::named("binomial"));
        assert_eq!(read("binomial()"), Spec::named("binomial"));
        assert_eq!(read("binomial by 64").window, Some(64));
        let parts = read("reduce-bcast(bcast=tree(degrees=2,2,1;layout=alone),reduce=flat)");
        assert_eq!(parts.params.get("bcast"), Some("tree(degrees=2,2,1;layout=alone)"));
        assert_eq!(parts.params.get("reduce"), Some("flat"));
    }

    #[test]
    fn what_is_malformed_is_named() {
        for (text, found) in [
            ("", "name"),
            ("(k=2)", "name"),
            ("a=b", "name"),
            ("tree(k=2", "without its `)`"),
            ("tree(k)", "no `=`"),
            ("tree k", "no `=`"),
            ("tree k=2 4", "no `=`"),
            ("tree(k=2)) by 4", "no `=`"),
            ("tree(k=2,k=3)", "two values"),
            ("tree k=2 by much", "much"),
            ("tree k=2 by 0", "a window of `0`"),
            ("tree by 4 QiB", "QiB"),
        ] {
            let error = text.parse::<Spec>().expect_err(text);
            assert!(error.contains(found), "{text}: {error}");
        }
    }
}
