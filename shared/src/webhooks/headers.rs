//! Headers that decide something: each must be there once.

use reqwest::header::HeaderMap;

/// The header's one value. None if it is missing, empty, no text or there twice; API Gateway joins two by a comma.
pub(super) fn single<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    single_list(headers, name).filter(|value| !value.contains(','))
}

/// As [`single`], of a header that has commas of its own.
pub(super) fn single_list<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    let mut values = headers.get_all(name).iter();
    let value = values.next()?.to_str().ok()?;
    (values.next().is_none() && !value.is_empty()).then_some(value)
}

/// A time in whole seconds or milliseconds, of digits alone.
pub(super) fn whole_number(text: &str) -> Option<i64> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok()).flatten()
}

/// The bytes that a text of hexadecimal digits stands for.
pub(super) fn from_hex(text: &str) -> Option<Vec<u8>> {
    let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    let pairs = text.as_bytes().chunks(2);
    pairs.map(|pair| if let [high, low] = pair { Some(digit(*high)? << 4 | digit(*low)?) } else { None }).collect()
}
