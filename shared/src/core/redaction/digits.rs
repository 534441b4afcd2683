//! Digits and separators of phone numbers.

/// The zero of each script; its other digits follow it.
const ZEROS: &str = "\
    \u{660}\u{6f0}\u{7c0}\u{966}\u{9e6}\u{a66}\u{ae6}\u{b66}\u{be6}\u{c66}\u{ce6}\u{d66}\u{de6}\u{e50}\u{ed0}\
    \u{f20}\u{1040}\u{1090}\u{17e0}\u{1810}\u{1946}\u{19d0}\u{1a80}\u{1a90}\u{1b50}\u{1bb0}\u{1c40}\u{1c50}\
    \u{a620}\u{a8d0}\u{a900}\u{a9d0}\u{a9f0}\u{aa50}\u{abf0}\u{ff10}\u{104a0}\u{10d30}\u{11066}\u{110f0}\u{11136}\
    \u{111d0}\u{112f0}\u{11450}\u{114d0}\u{11650}\u{116c0}\u{11730}\u{118e0}\u{11950}\u{11c50}\u{11d50}\u{11da0}\
    \u{16a60}\u{16ac0}\u{16b50}\u{1d7ce}\u{1d7d8}\u{1d7e2}\u{1d7ec}\u{1d7f6}\u{1e140}\u{1e2f0}\u{1e950}\u{1fbf0}\
    ";

/// Digits of any script, also such as `①`.
pub(super) fn is_digit(c: char) -> bool {
    c.is_ascii_digit() || (!c.is_ascii() && c.is_numeric())
}

/// The ASCII digit of the same value.
pub(super) fn as_ascii(c: char) -> Option<char> {
    if c.is_ascii() || !c.is_numeric() {
        return c.is_ascii_digit().then_some(c);
    }
    let value = ZEROS.chars().find_map(|zero| u32::from(c).checked_sub(u32::from(zero)).filter(|value| *value < 10));
    value.and_then(|value| char::from_digit(value, 10))
}

/// Separators of a phone number's digits, also in URLs and markup, and invisible ones.
pub(super) fn separates(c: char) -> bool {
    c.is_whitespace()
        || matches!(c, '-' | '.' | '(' | ')' | '/' | '_' | '+' | '%' | '*' | '~' | '|' | '\\' | '·' | '•' | '－' | '．')
        || matches!(c, '\u{2010}'..='\u{2015}' | '\u{2212}' | '（' | '）')
        || is_invisible(c)
}

pub(super) fn is_invisible(c: char) -> bool {
    matches!(c, '\u{ad}' | '\u{61c}' | '\u{20e3}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}')
        || matches!(c, '\u{2060}'..='\u{2069}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}')
}
