//! Places and values as a person or a model reads them: on one line, and never long.

use std::fmt::{self, Write};

use serde_json::Value;

const LONGEST_VALUE: usize = 60;
const LONGEST_NAME: usize = 60;
const LONGEST_LIST: usize = 300;
/// In steps: the middle of a longer path is left out.
const LONGEST_PATH: usize = 20;

/// Where in a value, on the stack; only a problem writes it out.
#[derive(Clone, Copy)]
pub(super) struct Path<'p> {
    parent: Option<&'p Self>,
    step: Step<'p>,
}

#[derive(Clone, Copy)]
enum Step<'p> {
    Whole,
    Name(&'p str),
    Index(usize),
}

impl Path<'_> {
    pub(super) const WHOLE: Path<'static> = Path { parent: None, step: Step::Whole };

    pub(super) const fn name<'p>(&'p self, name: &'p str) -> Path<'p> {
        Path { parent: Some(self), step: Step::Name(name) }
    }

    pub(super) const fn index(&self, index: usize) -> Path<'_> {
        Path { parent: Some(self), step: Step::Index(index) }
    }
}

impl fmt::Display for Path<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut steps: Vec<Step> =
            std::iter::successors(Some(self), |path| path.parent).map(|path| path.step).collect();
        steps.pop(); // the whole
        steps.reverse();
        let left_out = LONGEST_PATH / 2..steps.len().saturating_sub(LONGEST_PATH / 2);
        for (index, step) in steps.iter().enumerate() {
            if left_out.contains(&index) {
                if index == left_out.start {
                    f.write_char('…')?;
                }
                continue;
            }
            match step {
                Step::Whole => {}
                Step::Index(index) => write!(f, "[{index}]")?,
                Step::Name(name) => {
                    let plain = |letter: char| letter.is_alphanumeric() || "_-$".contains(letter);
                    if name.is_empty() || name.chars().count() > LONGEST_NAME || !name.chars().all(plain) {
                        write!(f, "[{}]", quoted(name))?;
                    } else {
                        write!(f, "{}{name}", if index == 0 { "" } else { "." })?;
                    }
                }
            }
        }
        Ok(())
    }
}

/// A value as JSON, cut short.
pub(super) struct Shown<'v>(pub(super) &'v Value);

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&shortened(LONGEST_VALUE, format_args!("{}", self.0)))
    }
}

/// A text in quotes, cut short.
pub(super) fn quoted(text: &str) -> String {
    // No more than is shown is copied.
    let start: String = text.chars().take(LONGEST_NAME + 1).collect();
    Shown(&Value::String(start)).to_string()
}

/// A text of the author's without quotes, cut short.
pub(super) fn bare(text: &str) -> String {
    let text = shortened(LONGEST_LIST, format_args!("{text}"));
    text.replace(char::is_control, " ")
}

/// `a, b, c`: as many as there is room for, and how many there are in all.
pub(super) fn listed<T: fmt::Display>(all: impl ExactSizeIterator<Item = T>) -> String {
    let count = all.len();
    let mut text = String::new();
    for one in all {
        if text.len() > LONGEST_LIST {
            let _ = write!(text, ", … ({count} in all)");
            break;
        }
        let separator = if text.is_empty() { "" } else { ", " };
        let _ = write!(text, "{separator}{one}");
    }
    text
}

/// At most so many characters of what is written, and not much more work than that.
pub(super) fn shortened(longest: usize, text: fmt::Arguments<'_>) -> String {
    let mut short = Short { text: String::new(), left: longest };
    if short.write_fmt(text).is_err() {
        short.text.push('…');
    }
    short.text
}

struct Short {
    text: String,
    left: usize,
}

impl Write for Short {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for letter in text.chars() {
            self.left = self.left.checked_sub(1).ok_or(fmt::Error)?;
            self.text.push(letter);
        }
        Ok(())
    }
}
