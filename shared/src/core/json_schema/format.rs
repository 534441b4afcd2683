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

pub(super) fn all() -> impl Iterator<Item = &'static str> {
    OF_TEXT.into_iter().chain(OF_NUMBERS.into_iter().map(|(name, _)| name))
}

/// Whether a text has the format; true for formats of numbers and unknown ones.
pub fn has(format: &str, text: &str) -> bool {
    match format {
        "date-time" => text.parse::<jiff::Timestamp>().is_ok(),
        "date" => text.parse::<jiff::civil::Date>().is_ok(),
        "time" => text.parse::<jiff::civil::Time>().is_ok(),
        "duration" => text.starts_with(['P', 'p']) && text.parse::<jiff::Span>().is_ok(),
        "email" => text.split_once('@').is_some_and(|(user, host)| {
            !user.is_empty() && host.contains('.') && !host.contains('@') && !text.contains(char::is_whitespace)
        }),
        "hostname" => url::Host::parse(text).is_ok_and(|host| matches!(host, url::Host::Domain(_))),
        "ipv4" => text.parse::<Ipv4Addr>().is_ok(),
        "ipv6" => text.parse::<Ipv6Addr>().is_ok(),
        "uuid" => uuid::Uuid::parse_str(text).is_ok(),
        "uri" => !text.contains(char::is_whitespace) && url::Url::parse(text).is_ok(),
        _ => true,
    }
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
