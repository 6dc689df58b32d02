//! A place in one line of a text, and the small steps by which a parser moves on.

use super::text::PlanTextError;

/// The unread rest of a line. A `#` outside quotes ends it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cursor<'a> {
    line: usize,
    rest: &'a str,
}

impl<'a> Cursor<'a> {
    /// The whole of line number `line`.
    pub(super) fn new(line: usize, text: &'a str) -> Cursor<'a> {
        Cursor { line, rest: text }
    }

    /// Another text that was part of the same line.
    pub(super) fn at<'b>(&self, text: &'b str) -> Cursor<'b> {
        Cursor { line: self.line, rest: text }
    }

    /// Returns whether nothing but blanks and a comment is left.
    pub(super) fn at_end(&mut self) -> bool {
        self.rest = self.rest.trim_start();
        self.rest.is_empty() || self.rest.starts_with('#')
    }

    /// The error that `expected` does not stand here.
    pub(super) fn error(&mut self, expected: impl Into<String>) -> PlanTextError {
        let found = if self.at_end() {
            "the end of the line".to_owned()
        } else {
            let next = self.rest.split_whitespace().next().unwrap_or_default();
            let shown: String = next.chars().take(32).collect();
            let dots = if shown.len() < next.len() { "..." } else { "" };
            format!("`{}{dots}`", shown.escape_debug())
        };
        self.mismatch(expected, found)
    }

    /// The error that something read before was not what was expected.
    pub(super) fn mismatch(&self, expected: impl Into<String>, found: impl Into<String>) -> PlanTextError {
        PlanTextError { line: self.line, expected: expected.into(), found: found.into() }
    }

    /// Steps over `literal`, if it stands here.
    pub(super) fn eat(&mut self, literal: &str) -> bool {
        self.rest = self.rest.trim_start();
        match self.rest.strip_prefix(literal) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    /// Steps over `literal`, which must stand here.
    pub(super) fn expect(&mut self, literal: &str) -> Result<(), PlanTextError> {
        if self.eat(literal) {
            Ok(())
        } else {
            Err(self.error(format!("`{literal}`")))
        }
    }

    /// Steps over a run of letters, which is empty when none stands here.
    pub(super) fn keyword(&mut self) -> &'a str {
        self.rest = self.rest.trim_start();
        self.run(|c| c.is_ascii_alphabetic())
    }

    /// A run of letters and hyphens, which is empty when none stands here.
    pub(super) fn name(&mut self) -> &'a str {
        self.rest = self.rest.trim_start();
        self.run(|c| c.is_ascii_alphabetic() || c == '-')
    }

    /// Checks that the line ends here.
    pub(super) fn finish(mut self) -> Result<(), PlanTextError> {
        if self.at_end() {
            Ok(())
        } else {
            Err(self.error("the end of the line"))
        }
    }

    /// A whole number of at most `most`.
    pub(super) fn number(&mut self, what: &str, most: usize) -> Result<usize, PlanTextError> {
        self.rest = self.rest.trim_start();
        let before = *self;
        let digits = self.run(|c| c.is_ascii_digit());
        match digits.parse::<usize>() {
            Ok(n) if n <= most => Ok(n),
            _ => Err({ before }.error(format!("{what}, a whole number of at most {most}"))),
        }
    }

    /// A 32-bit number with an optional sign.
    pub(super) fn signed(&mut self, what: &str) -> Result<i32, PlanTextError> {
        self.rest = self.rest.trim_start();
        let mut before = *self;
        let sign = if self.eat("-") { "-" } else { "" };
        let digits = self.run(|c| c.is_ascii_digit());
        format!("{sign}{digits}").parse().map_err(|_| before.error(format!("{what}, a 32-bit whole number")))
    }

    /// A word of plain characters, or a quoted one with Rust's escapes.
    pub(super) fn word(&mut self, what: &str, plain: fn(char) -> bool) -> Result<String, PlanTextError> {
        self.rest = self.rest.trim_start();
        let mut before = *self;
        if !self.eat("\"") {
            let text = self.run(plain);
            if text.is_empty() {
                return Err(before.error(what));
            }
            return Ok(text.to_owned());
        }
        self.quoted().ok_or_else(|| before.error(format!("{what}, quoted as in Rust with a closing quote")))
    }

    /// The rest of a quoted word after its opening quote.
    fn quoted(&mut self) -> Option<String> {
        let mut text = String::new();
        loop {
            match self.next_char()? {
                '"' => return Some(text),
                '\\' => text.push(match self.next_char()? {
                    'n' => '\n',
                    'r' => '\r',
                    't' => '\t',
                    '0' => '\0',
                    'u' => {
                        self.rest = self.rest.strip_prefix('{')?;
                        let digits = self.run(|c| c.is_ascii_hexdigit());
                        self.rest = self.rest.strip_prefix('}')?;
                        char::from_u32(u32::from_str_radix(digits, 16).ok()?)?
                    }
                    c @ ('\\' | '"' | '\'') => c,
                    _ => return None,
                }),
                c => text.push(c),
            }
        }
    }

    fn next_char(&mut self) -> Option<char> {
        let mut chars = self.rest.chars();
        let c = chars.next()?;
        self.rest = chars.as_str();
        Some(c)
    }

    fn run(&mut self, member: impl Fn(char) -> bool) -> &'a str {
        let end = self.rest.find(|c| !member(c)).unwrap_or(self.rest.len());
        let (run, rest) = self.rest.split_at(end);
        self.rest = rest;
        run
    }
}
