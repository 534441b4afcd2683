//! Finds a given phone number in a text.

use percent_encoding::percent_decode_str;

use super::digits::{as_ascii, is_invisible, separates};
use crate::models::E164;

/// Minimal digits of a number without its country code; fewer would match other numbers.
const FEWEST_DIGITS: usize = 9;
/// Digits of a phone number, prefixes included.
const MOST_DIGITS: usize = 18;
/// Visible characters allowed between two digits.
const WIDEST_GAP: usize = 3;

/// Whether the text contains the number in any grouping: with its country code (`+49 30 1234567`, `0049301234567`), or in
/// national form if that has nine digits.
pub fn mentions(text: &str, number: &E164) -> bool {
    let digits = number.as_str().trim_start_matches('+');
    let national = digits.get(country_code(digits)..).map(|rest| rest.trim_start_matches('0'));
    let wanted: Vec<&str> =
        std::iter::once(digits).chain(national.filter(|rest| rest.len() >= FEWEST_DIGITS)).collect();
    is_in(text, &wanted) || unescaped(text).is_some_and(|text| is_in(&text, &wanted))
}

fn is_in(text: &str, wanted: &[&str]) -> bool {
    let mut after_digit = false;
    for (at, letter) in text.char_indices() {
        let is_digit = as_ascii(letter).is_some();
        if is_digit && !after_digit && begins_with(text.get(at..).unwrap_or_default(), wanted) {
            return true;
        }
        after_digit = is_digit;
    }
    false
}

/// Without the escapes of URLs and of JSON, in which other digits may stand; `None` for a text that has none.
fn unescaped(text: &str) -> Option<String> {
    if !text.contains(['%', '\\']) {
        return None;
    }
    let mut parts = text.split('\\');
    let mut plain = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let code = part.strip_prefix('u').and_then(|code| u32::from_str_radix(code.get(..4)?, 16).ok());
        let (letter, length) = match (code, part.chars().next()) {
            (Some(code), _) => (char::from_u32(code), "u0000".len()),
            (None, Some('n' | 'r' | 't')) => (Some(' '), 1),
            _ => (None, 0),
        };
        plain.extend(letter);
        plain.push_str(part.get(length..).unwrap_or_default());
    }
    Some(percent_decode_str(&plain).decode_utf8_lossy().into_owned())
}

/// The number of digits of the country code.
fn country_code(digits: &str) -> usize {
    const OF_TWO: [&str; 44] = [
        "20", "27", "30", "31", "32", "33", "34", "36", "39", "40", "41", "43", "44", "45", "46", "47", "48", "49",
        "51", "52", "53", "54", "55", "56", "57", "58", "60", "61", "62", "63", "64", "65", "66", "81", "82", "84",
        "86", "90", "91", "92", "93", "94", "95", "98",
    ];
    match digits.get(..2) {
        Some(code) if code.starts_with(['1', '7']) => 1,
        Some(code) if OF_TWO.contains(&code) => 2,
        _ => 3,
    }
}

/// Whether the text begins with one of these numbers, without a further digit.
fn begins_with(text: &str, wanted: &[&str]) -> bool {
    let (mut digits, mut gap) = (String::with_capacity(MOST_DIGITS), 0);
    let mut letters = text.chars().peekable();
    while let Some(letter) = letters.next() {
        if let Some(digit) = as_ascii(letter) {
            digits.push(digit);
            gap = 0;
            let ends = letters.peek().is_none_or(|next| as_ascii(*next).is_none());
            if ends && wanted.contains(&digits.trim_start_matches('0')) {
                return true;
            }
            if digits.len() == MOST_DIGITS {
                return false;
            }
        } else if is_invisible(letter) || (separates(letter) && gap < WIDEST_GAP) {
            gap += usize::from(!is_invisible(letter));
        } else {
            return false;
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn number(text: &str) -> E164 {
        text.parse().unwrap()
    }

    #[test]
    fn a_number_is_found_however_it_is_written() {
        let american = number("+14155550101");
        for text in [
            "+14155550101",
            "{\"to\":\"+14155550101\"}",
            "Call +1 (415) 555-0101, please",
            "on 2026-11-20 415.555.0101 was called",
            "1-415-555-0101",
            "tel:0014155550101",
            "(415) 555 0101",
            "+1 415\u{2011}555\u{2011}0101",
            "+1\u{202f}415\u{2013}555\u{2013}0101",
            "+1\t415\t555\t0101",
            r#"{"to":"+1\t415\u00a0555\u20110101"}"#,
            r#"{"body":"{\"to\":\"1\\n415\\n5550101\"}"}"#,
            "\\u00e94155550101",
            "?to=%2B1%20415%20555%200101",
            "?to=%20415%E2%80%91555%C2%A00101",
            "%4155550101",
            "+１ ４１５ ５５５ ０１０１",
            "٤١٥ ٥٥٥ ٠١٠١",
            "4\u{fe0f}\u{20e3}1\u{fe0f}\u{20e3}5\u{fe0f}\u{20e3} 555 0101",
            "\u{2066}+1\u{200b}\u{200b}\u{200b}\u{200b}415\u{ad}555\u{2060}0101\u{2069}",
            "+1_415*555|0101",
        ] {
            assert!(mentions(text, &american), "{text}");
        }
        let german = number("+49301234567");
        for text in ["+49 30 1234567", "0049/30/1234567", "030 1234567 ist es", "030/1234567"] {
            assert!(mentions(text, &german), "{text}");
        }
        let short = number("+4930123456");
        assert!(mentions("+49 30 123456", &short));
        assert!(!mentions("030 123456", &short), "eight digits are too few");
        assert!(mentions("089 123456789", &number("+4989123456789")));
        assert!(mentions("tel. 06 12345678", &number("+390612345678")));
    }

    #[test]
    fn another_number_is_not() {
        let wanted = number("+14155550101");
        for text in [
            "",
            "+14155550102",
            "+141555501011",
            "24155550101",
            "5550101",
            "155550101",
            "1415x5550101",
            "1415    5550101",
            "２4155550101",
            "%2014155550102",
        ] {
            assert!(!mentions(text, &wanted), "{text}");
        }
    }

    proptest! {
        #[test]
        fn a_number_in_the_middle_of_anything_is_found(before in "\\PC{0,40}", after in "\\PC{0,40}", digits in "[1-9][0-9]{8,13}") {
            let text = format!("{before}:+{digits}:{after}");
            let number = number(&format!("+{digits}"));
            prop_assert!(mentions(&text, &number));
        }
    }
}
