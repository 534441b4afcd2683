//! Finds phone numbers, credentials and e-mail addresses in any text.
//!
//! In doubt it hides: any run of seven digits, in any grouping, is a phone number. Only certain exceptions stay: ISO dates,
//! UUIDs, digests in the places of steps, and Twilio's ids of messages and calls. The work is linear in the text.

use super::{
    EMAIL, NUMBER, SECRET,
    digits::{is_digit, separates},
    is_secret,
};

/// Minimal digits of a phone number; fewer after `tel:` and similar schemes.
const FEWEST_DIGITS: usize = 7;
const FEWEST_AFTER_SCHEME: usize = 3;
const DIALLED: [&str; 4] = ["tel:", "sms:", "smsto:", "callto:"];
/// Letters and digits together; longer than any word of a language.
const LONGEST_WORD: usize = 20;
/// Prefixes of well-known services' keys.
const KEYS: [&str; 18] = [
    "AIza",
    "AKIA",
    "ASIA",
    "SG.",
    "gho_",
    "ghp_",
    "ghs_",
    "github_pat_",
    "glpat-",
    "hf_",
    "npm_",
    "pk_",
    "rk_",
    "shpat_",
    "sk-",
    "sk_",
    "whsec_",
    "xox",
];
const SHORTEST_KEY: usize = 16;

/// Removes phone numbers, credentials and e-mail addresses.
pub(super) fn clean(text: &str) -> String {
    cleaned(text, true)
}

pub(super) fn without_secrets(text: &str) -> String {
    cleaned(text, false)
}

fn cleaned(text: &str, hides_people: bool) -> String {
    let mut clean = String::with_capacity(text.len());
    let push = if hides_people { push_without_numbers } else { |text: &str, clean: &mut String| clean.push_str(text) };
    let (mut written, mut at) = (0, 0);
    while let Some((start, end)) = next_word(text, at) {
        at = end;
        let Some(Found { from, until, shown }) = find(text, start, end) else { continue };
        push(part(text, written, from), &mut clean);
        let shown = shown.filter(|shown| hides_people || *shown != EMAIL);
        clean.push_str(shown.unwrap_or(part(text, from, until)));
        (written, at) = (until, until);
    }
    push(part(text, written, text.len()), &mut clean);
    clean
}

/// A recognized part of the text, with its replacement; `None` keeps it.
struct Found {
    from: usize,
    until: usize,
    shown: Option<&'static str>,
}

fn part(text: &str, from: usize, until: usize) -> &str {
    text.get(from..until).unwrap_or_default()
}

fn in_word(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '-' | '_' | '.' | '~' | '+' | '/' | '%' | '@' | '$' | '*' | '!' | '＠')
}

fn next_word(text: &str, at: usize) -> Option<(usize, usize)> {
    let start = at + part(text, at, text.len()).find(in_word)?;
    let length = part(text, start, text.len()).find(|c| !in_word(c));
    Some((start, length.map_or(text.len(), |length| start + length)))
}

fn find(text: &str, start: usize, end: usize) -> Option<Found> {
    let word = part(text, start, end);
    if let Some((from, until)) = assigned(text, word, end).or_else(|| after_scheme(text, word, end)) {
        return Some(Found { from, until, shown: Some(SECRET) });
    }
    if is_email(word) {
        return Some(Found { from: start, until: end, shown: Some(EMAIL) });
    }
    if is_key(word) {
        // Base64 padding belongs to the key.
        let padding = part(text, end, text.len());
        let padding = padding.len() - padding.trim_start_matches('=').len();
        return Some(Found { from: start, until: end + padding, shown: Some(SECRET) });
    }
    // A URL may end with an id.
    let from = start + word.rfind('/').map_or(0, |slash| slash + 1);
    let id = part(text, from, end).trim_end_matches(['.', '!']);
    let until = from + id.len();
    let in_brackets = part(text, 0, from).ends_with('[') && part(text, until, text.len()).starts_with(']');
    (is_id(id) || in_brackets && is_key_digest(id)).then_some(Found { from, until, shown: None })
}

/// The value in `name=value`, `name: value`, `"name":"value"`, if the name is a secret's.
fn assigned(text: &str, word: &str, end: usize) -> Option<(usize, usize)> {
    let rest = part(text, end, text.len());
    let value =
        rest.trim_start_matches(|c: char| c.is_whitespace() || matches!(c, '"' | '\'' | '\\' | '=' | ':' | '>'));
    let between = part(rest, 0, rest.len() - value.len());
    if !between.contains(['=', ':']) || !is_secret(word) {
        return None;
    }
    let header = ["authorization", "cookie"].iter().any(|name| word.to_ascii_lowercase().contains(name));
    let length = match between.chars().next_back() {
        Some(quote @ ('"' | '\'')) => value.find(quote),
        _ if header => value.find(['\n', '\r', '"']),
        _ => value.find(|c: char| c.is_whitespace() || matches!(c, '&' | ',' | ';' | '}' | ')' | '<' | '"' | '\'')),
    };
    let value = part(value, 0, length.unwrap_or(value.len()));
    let said = !value.is_empty() && !["null", "true", "false", SECRET].contains(&value);
    let from = end + between.len();
    said.then_some((from, from + value.len()))
}

/// The credential after `Bearer` or `Basic`.
fn after_scheme(text: &str, word: &str, end: usize) -> Option<(usize, usize)> {
    let bearer = word.eq_ignore_ascii_case("bearer");
    if !bearer && !word.eq_ignore_ascii_case("basic") {
        return None;
    }
    let (start, until) = next_word(text, end)?;
    let blank = part(text, end, start);
    let next = part(text, start, until);
    // "Basic information" is no credential.
    let opaque = next.contains(|c: char| c.is_ascii_digit()) || part(next, 1, next.len()).contains(char::is_uppercase);
    let credential = if bearer { next.len() >= 6 } else { next.len() >= 8 && opaque };
    (!blank.is_empty() && blank.chars().all(char::is_whitespace) && credential).then_some((start, until))
}

fn is_email(word: &str) -> bool {
    let at = word.split_once(['@', '＠']).or_else(|| word.split_once("%40"));
    at.is_some_and(|(local, domain)| !local.is_empty() && !domain.is_empty())
}

/// Whether a word can only be a key or token, by its prefix, or by its length and random letters.
fn is_key(word: &str) -> bool {
    let bare = word.trim_start_matches(|c: char| !c.is_alphanumeric());
    let known = bare.starts_with("eyJ") || KEYS.iter().any(|start| bare.starts_with(start));
    if is_id(bare.trim_end_matches(['.', '!'])) {
        return false;
    }
    known && bare.len() >= SHORTEST_KEY || bare.split(['-', '_', '.', '~', '%', '$', '*', '!']).any(means_nothing)
}

fn means_nothing(text: &str) -> bool {
    if text.len() < LONGEST_WORD || !text.is_ascii() {
        return false;
    }
    let count = |kind: fn(&u8) -> bool| text.bytes().filter(kind).count();
    let (upper, lower) = (count(u8::is_ascii_uppercase), count(u8::is_ascii_lowercase));
    let digits = count(u8::is_ascii_digit);
    if text.contains('/') {
        // Paths of URLs are long, too.
        return upper > 0 && lower > 0 && digits > 0;
    }
    (digits > 0 && upper + lower > 0) || (upper >= 3 && lower >= 3)
}

/// A UUID, or Twilio's id of a message or a call.
fn is_id(text: &str) -> bool {
    let twilio = ["SM", "MM", "CA"].iter().find_map(|kind| text.strip_prefix(kind));
    (text.len() == 36 && uuid::Uuid::try_parse(text).is_ok())
        || twilio.is_some_and(|hex| hex.len() == 32 && hex.bytes().all(|byte| byte.is_ascii_hexdigit()))
}

/// The digest of a loop item's key, in the place of its steps: `each[739ce1234567e55e].page`, or `[739ce1234567e55e-2]` for an
/// equal item.
fn is_key_digest(text: &str) -> bool {
    let times =
        text.split_once('-').filter(|(_, times)| times.len() <= 4 && times.bytes().all(|byte| byte.is_ascii_digit()));
    let text = times.map_or(text, |(digest, _)| digest);
    let hex = |byte: u8| byte.is_ascii_digit() || matches!(byte, b'a'..=b'f');
    text.len() == 16 && text.bytes().all(hex) && text.bytes().any(|byte| byte.is_ascii_lowercase())
}

// ------------------------------------------------------------------------------------------------------ phone numbers

fn push_without_numbers(text: &str, clean: &mut String) {
    let mut rest = text;
    while let Some(first) = rest.find(is_digit) {
        let (before, from) = rest.split_at(first);
        if let Some(date) = iso_date(before, from) {
            clean.push_str(part(rest, 0, first + date));
            rest = part(from, date, from.len());
            continue;
        }
        let (digits, length) = run(from);
        let dialled = DIALLED.iter().any(|scheme| ends_with(before.trim_end_matches(separates), scheme));
        if digits >= if dialled { FEWEST_AFTER_SCHEME } else { FEWEST_DIGITS } {
            clean.push_str(before.trim_end_matches(['+', '(']));
            clean.push_str(NUMBER);
        } else {
            clean.push_str(part(rest, 0, first + length));
        }
        rest = part(from, length, from.len());
    }
    clean.push_str(rest);
}

fn ends_with(text: &str, ending: &str) -> bool {
    text.len()
        .checked_sub(ending.len())
        .and_then(|at| text.get(at..))
        .is_some_and(|end| end.eq_ignore_ascii_case(ending))
}

/// Counts the leading digits with their separators, and the bytes up to the last digit.
fn run(text: &str) -> (usize, usize) {
    let (mut digits, mut length) = (0, 0);
    for (at, c) in text.char_indices() {
        if is_digit(c) {
            (digits, length) = (digits + 1, at + c.len_utf8());
        } else if !separates(c) {
            break;
        }
    }
    (digits, length)
}

/// The length in bytes of a leading date, or date and time, if nothing else is possible.
fn iso_date(before: &str, text: &str) -> Option<usize> {
    const DATE: usize = "2026-03-01".len();
    let date = text.get(..DATE).filter(|date| date.starts_with("19") || date.starts_with("20"))?;
    let dashes = [4, 7].iter().all(|at| date.as_bytes().get(*at) == Some(&b'-'));
    let alone = !before.ends_with(|c: char| c.is_alphanumeric() || c == '+');
    if !dashes || !alone || date.parse::<jiff::civil::Date>().is_err() {
        return None;
    }
    let rest = part(text, DATE, text.len());
    if let Some(time) = time_of_day(rest) {
        return Some(DATE + time);
    }
    // A run that continues with more digits is no date.
    (!rest.trim_start_matches(separates).starts_with(is_digit)).then_some(DATE)
}

/// The length in bytes of a leading `T15:00`, ` 15:00:30.123`, perhaps with `Z` or `+01:00`.
fn time_of_day(text: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    let is = |at: usize, wanted: &[u8]| bytes.get(at).is_some_and(|byte| wanted.contains(byte));
    let two = |at: usize| bytes.get(at..at + 2).is_some_and(|two| two.iter().all(u8::is_ascii_digit));
    if !(is(0, b"Tt ") && two(1) && is(3, b":") && two(4)) {
        return None;
    }
    let mut length = 6;
    if is(length, b":") && two(length + 1) {
        length += 3;
        let decimals = bytes.iter().skip(length + 1).take(9).take_while(|byte| byte.is_ascii_digit()).count();
        if is(length, b".") && decimals > 0 {
            length += 1 + decimals;
        }
    }
    if is(length, b"Zz") {
        length += 1;
    } else if is(length, b"+-") && two(length + 1) && is(length + 3, b":") && two(length + 4) {
        length += 6;
    }
    (!text.get(length..)?.starts_with(is_digit)).then_some(length)
}

#[cfg(test)]
mod tests;
