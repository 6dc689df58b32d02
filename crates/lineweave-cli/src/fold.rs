//! Folding of lines that are longer than the terminal is wide.

use textwrap::{core::display_width, wrap, Options, WordSplitter};

/// Largest indentation of a continued line.
const DEEPEST: usize = 32;

/// Breaks a line between words. The continuation is indented to the value in the line: two spaces separate a name from its value.
pub fn fold(line: &str, width: usize) -> String {
    if display_width(line) <= width {
        return line.to_owned();
    }
    let lead = line.len() - line.trim_start().len();
    let column = line[lead..].find("  ").map(|gap| {
        let gap = lead + gap;
        gap + line[gap..].len() - line[gap..].trim_start().len()
    });
    let below = column.filter(|&column| display_width(&line[..column]) <= DEEPEST.min(width / 2));
    let head = below.unwrap_or(lead);
    let indent = " ".repeat(display_width(&line[..head]));
    let options = Options::new(width)
        .initial_indent(&line[..head])
        .subsequent_indent(&indent)
        .break_words(false)
        .word_splitter(WordSplitter::NoHyphenation);
    wrap(&line[head..], options).join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_go_on_below_their_text() {
        assert_eq!(fold("short", 10), "short");
        assert_eq!(fold("ok       clock: good enough", 20), "ok       clock: good\n         enough");
        assert_eq!(fold("   -> do this and that", 14), "   -> do this\n   and that");
        assert_eq!(fold("a-path-without-a-space", 10), "a-path-without-a-space");
    }
}
