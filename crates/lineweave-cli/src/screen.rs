//! The terminal that progress is drawn on, without its last columns: an interrupt that is typed stands there as `^C`, and does not wrap to
//! a line below the bar, which could not be cleared then.

use console::Term;
use indicatif::{ProgressDrawTarget, TermLike};
use std::io;

/// Columns of `^C`, and one for the cursor.
const ECHO: u16 = 3;
/// Most times a second that something is drawn.
const HZ: u8 = 8;

#[derive(Debug)]
struct Screen(Term);

/// Returns a target for progress on standard error.
pub fn target() -> ProgressDrawTarget {
    ProgressDrawTarget::term_like_with_hz(Box::new(Screen(Term::buffered_stderr())), HZ)
}

impl TermLike for Screen {
    fn width(&self) -> u16 {
        self.0.size().1.saturating_sub(ECHO)
    }

    fn height(&self) -> u16 {
        self.0.size().0
    }

    fn move_cursor_up(&self, n: usize) -> io::Result<()> {
        self.0.move_cursor_up(n)
    }

    fn move_cursor_down(&self, n: usize) -> io::Result<()> {
        self.0.move_cursor_down(n)
    }

    fn move_cursor_right(&self, n: usize) -> io::Result<()> {
        self.0.move_cursor_right(n)
    }

    fn move_cursor_left(&self, n: usize) -> io::Result<()> {
        self.0.move_cursor_left(n)
    }

    fn write_line(&self, s: &str) -> io::Result<()> {
        self.0.write_line(s)
    }

    fn write_str(&self, s: &str) -> io::Result<()> {
        self.0.write_str(s)
    }

    fn clear_line(&self) -> io::Result<()> {
        self.0.clear_line()
    }

    fn flush(&self) -> io::Result<()> {
        self.0.flush()
    }
}
