//! Quotation marks, and marks of struck-out text.

use memchr::memchr3;

use crate::work::look_at;

/// Opening marks, each with its possible closing marks.
const PAIRS: [(char, &str); 12] = [
    ('"', "\""),
    ('＂', "＂"),
    ('~', "~"),
    ('“', "”"),
    ('”', "”"),
    ('„', "“”"),
    ('«', "»"),
    ('»', "«"),
    ('‹', "›"),
    ('›', "‹"),
    ('「', "」"),
    ('『', "』"),
];

/// Whether a mark stands directly before.
pub(crate) fn is_behind_mark(before: &str) -> bool {
    let Some(last) = before.chars().next_back() else { return false };
    let apostrophe = |before: &str| !before.ends_with(char::is_alphanumeric);
    match last {
        '\'' => apostrophe(before.strip_suffix('\'').unwrap_or_default()),
        '‘' | '‚' => true,
        _ => closing(last).is_some(),
    }
}

/// The mark left open by a text; `open`: the mark open before it.
pub(crate) fn open_mark(text: &str, mut open: Option<char>) -> Option<char> {
    for mark in marks(text) {
        open = match open {
            None => closing(mark).map(|_end| mark),
            Some(begun) if closing(begun).is_some_and(|ends| ends.contains(mark)) => None,
            open => open,
        };
    }
    open
}

/// Whether a text closes the quotation. A mark that both opens and closes must occur an odd number of times.
pub(crate) fn closes(text: &str, begun: char) -> bool {
    let ends = closing(begun).unwrap_or_default();
    if ends.contains(begun) {
        open_mark(text, Some(begun)).is_none()
    } else {
        marks(text).any(|mark| ends.contains(mark))
    }
}

fn closing(mark: char) -> Option<&'static str> {
    PAIRS.iter().find(|(begin, _ends)| *begin == mark).map(|(_begin, ends)| *ends)
}

/// The marks of a text; two adjacent tildes are one.
fn marks(text: &str) -> impl Iterator<Item = char> {
    let bytes = text.as_bytes();
    look_at(bytes.len());
    let first = memchr3(b'"', b'~', 0xC2, bytes).into_iter().chain(memchr3(0xE2, 0xE3, 0xEF, bytes)).min();
    let text = text.get(first.unwrap_or(bytes.len())..).unwrap_or_default();
    text.char_indices().filter_map(move |(at, mark)| {
        let is_one = mark != '~' || {
            let (before, rest) = text.split_at_checked(at)?;
            !before.ends_with('~') && rest.starts_with("~~") && !rest.starts_with("~~~")
        };
        let is_mark = matches!(mark, '"' | '~')
            || !mark.is_ascii() && PAIRS.iter().any(|(begin, ends)| *begin == mark || ends.contains(mark));
        (is_one && is_mark).then_some(mark)
    })
}
