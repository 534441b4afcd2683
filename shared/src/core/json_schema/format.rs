//! The meaning of `format`, in tool arguments and final answers.

use std::net::{Ipv4Addr, Ipv6Addr};

use serde_json::Number;

/// Formats of text: those of VAPI, and addresses.
const OF_TEXT: [&str; 10] =
    ["date-time", "date", "time", "duration", "email", "hostname", "ipv4", "ipv6", "uuid", "uri"];

/// Formats of numbers in `OpenAPI` and Rust's generators: any number, or whole numbers in a range.
const OF_NUMBERS: [(&str, Option<(i128, i128)>); 12] = [
    ("float", None),
    ("double", None),
    ("int8", Some((i8::MIN as i128, i8::MAX as i128))),
    ("int16", Some((i16::MIN as i128, i16::MAX as i128))),
    ("int32", Some((i32::MIN as i128, i32::MAX as i128))),
    ("int64", Some((i64::MIN as i128, i64::MAX as i128))),
    ("int", Some((i64::MIN as i128, i64::MAX as i128))),
    ("uint8", Some((0, u8::MAX as i128))),
    ("uint16", Some((0, u16::MAX as i128))),
    ("uint32", Some((0, u32::MAX as i128))),
    ("uint64", Some((0, u64::MAX as i128))),
    ("uint", Some((0, u64::MAX as i128))),
];

const DATE: &str = "0000-00-00";
const OFFSETS: [char; 4] = ['Z', 'z', '+', '-'];
/// In its form with hyphens.
const UUID_LENGTH: usize = 36;

pub(super) fn all() -> impl Iterator<Item = &'static str> {
    OF_TEXT.into_iter().chain(OF_NUMBERS.into_iter().map(|(name, _)| name))
}

/// Whether a text has the format; true for formats of numbers and unknown ones.
pub fn has(format: &str, text: &str) -> bool {
    match format {
        "date-time" => is_date_time(text),
        "date" => is_date(text),
        "time" => is_time(text),
        "duration" => text.starts_with(['P', 'p']) && text.parse::<jiff::Span>().is_ok(),
        "email" => text.split_once('@').is_some_and(|(user, host)| {
            !user.is_empty() && host.contains('.') && !host.contains('@') && !text.contains(char::is_whitespace)
        }),
        "hostname" => url::Host::parse(text).is_ok_and(|host| matches!(host, url::Host::Domain(_))),
        "ipv4" => text.parse::<Ipv4Addr>().is_ok(),
        "ipv6" => text.parse::<Ipv6Addr>().is_ok(),
        "uuid" => text.len() == UUID_LENGTH && uuid::Uuid::parse_str(text).is_ok(),
        "uri" => !text.contains(char::is_whitespace) && url::Url::parse(text).is_ok(),
        _ => true,
    }
}

/// RFC 3339, also without seconds or the colon in the offset; `jiff` reads more spellings.
fn is_date_time(text: &str) -> bool {
    let Some((date, time)) = text.split_once(['T', 't']) else { return false };
    let (time, offset) = time.split_at(time.find(OFFSETS).unwrap_or(time.len()));
    let seconds = if has_shape(time, "00:00") { ":00" } else { "" };
    let offset = match offset.split_at_checked("+00".len()) {
        Some((hours, minutes)) if has_shape(minutes, "00") => format!("{hours}:{minutes}"),
        _ => offset.to_owned(),
    };
    let is_written = !offset.is_empty() && is_time(&format!("{time}{seconds}{offset}"));
    is_date(date) && is_written && text.parse::<jiff::Timestamp>().is_ok()
}

fn is_date(text: &str) -> bool {
    has_shape(text, DATE) && text.parse::<jiff::civil::Date>().is_ok()
}

/// A time of day, with or without its offset.
fn is_time(text: &str) -> bool {
    let is_valid = |time: &str| time.parse::<jiff::civil::Time>().is_ok();
    let (time, offset) = text.split_at(text.find(OFFSETS).unwrap_or(text.len()));
    let (whole, fraction) = time.split_once('.').unwrap_or((time, "0"));
    let is_offset = match offset.strip_prefix(['+', '-']) {
        Some(distance) => has_shape(distance, "00:00") && is_valid(distance),
        None => offset.is_empty() || offset.eq_ignore_ascii_case("z"),
    };
    is_offset
        && has_shape(whole, "00:00:00")
        && !fraction.is_empty()
        && fraction.bytes().all(|byte| byte.is_ascii_digit())
        && is_valid(time)
}

/// A `0` of the shape stands for any digit.
fn has_shape(text: &str, shape: &str) -> bool {
    let fits = |(byte, of): (u8, u8)| if of == b'0' { byte.is_ascii_digit() } else { byte == of };
    text.len() == shape.len() && text.bytes().zip(shape.bytes()).all(fits)
}

/// Whether a number has the format; true for formats of text and unknown ones.
pub(super) fn has_number(format: &str, number: &Number) -> bool {
    match OF_NUMBERS.into_iter().find(|(name, _)| *name == format) {
        Some((_, Some((from, to)))) => whole(number).is_some_and(|whole| (from..=to).contains(&whole)),
        _ => true,
    }
}

/// A whole number in any notation: 3.0 is 3.
pub(super) fn whole(number: &Number) -> Option<i128> {
    let float = || number.as_f64().filter(|float| float.fract() == 0.0);
    let integer = number.as_i64().map(i128::from).or_else(|| number.as_u64().map(i128::from));
    integer.or_else(|| format!("{:.0}", float()?).parse().ok())
}

/// An example, to follow "must be a valid date-time".
pub fn example(format: &str) -> &'static str {
    match format {
        "date-time" => ", such as 2026-03-01T15:00:00Z",
        "date" => ", such as 2026-03-01",
        "time" => ", such as 15:00:00",
        "duration" => ", such as PT30M",
        "uri" => ", such as https://example.com/page",
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_has_a_format_only_in_the_spelling_that_the_format_names() {
        for (format, fitting, others) in [
            (
                "date",
                vec!["2026-03-01", "2024-02-29"],
                vec![
                    "",
                    "2026-3-1",
                    "20260301",
                    "2026-03",
                    "2026-02-29",
                    "2026-13-01",
                    "2026-03-01T15:00:00",
                    "2026-03-01T15:00Z",
                    "+002026-03-01",
                    "2026-03-01Z",
                    "2026-03-01 ",
                    "2026\u{2011}03-01",
                    "2026-03-0１",
                ],
            ),
            (
                "time",
                vec!["15:00:00", "15:00:00Z", "15:00:00z", "15:00:00.25+01:00", "00:00:00-05:30", "23:59:59.123456789"],
                vec![
                    "",
                    "15:00",
                    "1500",
                    "15",
                    "3:00:00",
                    "T15:00:00",
                    "24:00:00",
                    "15:60:00",
                    "15:00:00.",
                    "15:00:00,5",
                    "15:00:00.5.5",
                    "15:00:00+1",
                    "15:00:00+0100",
                    "15:00:00+24:00",
                    "15:00:00+-1:00",
                    "15:00:00ZZ",
                    "15:00:00[Europe/Berlin]",
                    "2026-03-01T15:00:00",
                    "15:00:00 Z",
                    "15:00:00é",
                ],
            ),
            (
                "date-time",
                vec![
                    "2026-03-01T15:00:00Z",
                    "2026-03-01t15:00:00.5z",
                    "2026-03-01T15:00:00-05:00",
                    "2026-03-01T15:00Z",
                    "2026-03-01T15:00+01:00",
                    "2026-03-01T15:00-0530",
                    "2026-03-01T15:00:00.25+0100",
                ],
                vec![
                    "",
                    "2026-03-01",
                    "2026-03-01T15:00:00",
                    "2026-03-01T15:00",
                    "2026-03-01T15Z",
                    "2026-03-01T1500Z",
                    "2026-03-01T15:0Z",
                    "2026-03-01T15:60Z",
                    "2026-03-01T15:00.5Z",
                    "2026-03-01T15:00+01",
                    "2026-03-01T15:00+2400",
                    "2026-03-01T15:00+0160",
                    "2026-03-01T15:00+-100",
                    "2026-03-01T15:00Z0100",
                    "2026-03-01T15:00+010é",
                    "2026-03-01 15:00:00Z",
                    "20260301T150000Z",
                    "20260301T15:00:00Z",
                    "2026-02-29T15:00:00Z",
                    "2026-03-01T15:00:00+01:00[Europe/Berlin]",
                    "2026-03-01T15:00:00Z[UTC]",
                    "2026-03-0é15:00:00Z",
                ],
            ),
            (
                "uuid",
                vec!["01930f5e-6a1b-7c2d-8e3f-4a5b6c7d8e9f", "01930F5E-6A1B-7C2D-8E3F-4A5B6C7D8E9F"],
                vec![
                    "",
                    "01930f5e6a1b7c2d8e3f4a5b6c7d8e9f",
                    "{01930f5e-6a1b-7c2d-8e3f-4a5b6c7d8e9f}",
                    "urn:uuid:01930f5e-6a1b-7c2d-8e3f-4a5b6c7d8e9f",
                    "01930f5e-6a1b-7c2d-8e3f-4a5b6c7d8e9g",
                ],
            ),
        ] {
            assert!(fitting.iter().all(|text| has(format, text)), "{format}");
            for text in others {
                assert!(!has(format, text), "{format}: {text}");
            }
        }
    }
}
