//! The text of an answer, by its byte order mark or charset.
//!
//! APIs write UTF-8, UTF-16 or the charset of Western Europe. `encoding_rs`, which decodes pages, would add 179 KB to `execute`.

use std::borrow::Cow;

/// The characters of the bytes 0x80 to 0x9f in windows-1252, as in the Encoding Standard.
const WINDOWS_1252: [char; 32] = [
    '€', '\u{81}', '‚', 'ƒ', '„', '…', '†', '‡', 'ˆ', '‰', 'Š', '‹', 'Œ', '\u{8d}', 'Ž', '\u{8f}', '\u{90}', '‘', '’',
    '“', '”', '•', '–', '—', '˜', '™', 'š', '›', 'œ', '\u{9d}', 'ž', 'Ÿ',
];

#[derive(Debug, PartialEq, Eq)]
pub struct DecodedBody<'a> {
    pub text: Cow<'a, str>,
    /// No bytes were replaced.
    pub is_whole: bool,
}

impl<'a> DecodedBody<'a> {
    pub(super) fn of(content_type: &str, body: &'a [u8]) -> Self {
        let charset = charset(content_type);
        // Text of another charset is hardly ever valid UTF-8, and many servers name a charset without using it.
        let utf_8 = || std::str::from_utf8(body).ok().map(Cow::Borrowed);
        let utf_16_without_mark = |unit: fn([u8; 2]) -> u16| {
            // Digits, blanks and line breaks have a NUL in UTF-16.
            utf_8().filter(|_| !body.contains(&0)).or_else(|| utf_16(body, unit))
        };
        let decoded = match body {
            [0xef, 0xbb, 0xbf, rest @ ..] => std::str::from_utf8(rest).ok().map(Cow::Borrowed),
            [0xff, 0xfe, rest @ ..] => utf_16(rest, u16::from_le_bytes),
            [0xfe, 0xff, rest @ ..] => utf_16(rest, u16::from_be_bytes),
            _ => match charset.as_str() {
                "utf-16" | "utf-16le" => utf_16_without_mark(u16::from_le_bytes),
                "utf-16be" => utf_16_without_mark(u16::from_be_bytes),
                _ => utf_8(),
            },
        };
        let decoded = decoded.or_else(|| is_western(&charset).then(|| windows_1252(body)));
        let is_whole = decoded.is_some();
        Self { text: decoded.unwrap_or_else(|| String::from_utf8_lossy(body)), is_whole }
    }
}

fn charset(content_type: &str) -> String {
    let mut parameters = content_type.split(';').skip(1).filter_map(|parameter| parameter.split_once('='));
    let charset = parameters.find(|(name, _)| name.trim().eq_ignore_ascii_case("charset"));
    charset.map(|(_, charset)| charset.trim().trim_matches(['"', '\'']).to_ascii_lowercase()).unwrap_or_default()
}

fn is_western(charset: &str) -> bool {
    matches!(charset, "iso-8859-1" | "iso8859-1" | "latin1" | "windows-1252" | "cp1252" | "us-ascii")
}

fn windows_1252(body: &[u8]) -> Cow<'static, str> {
    let character = |byte: &u8| {
        let special = byte.checked_sub(0x80).and_then(|at| WINDOWS_1252.get(usize::from(at)));
        special.copied().unwrap_or_else(|| char::from(*byte))
    };
    Cow::Owned(body.iter().map(character).collect())
}

/// `None` for bytes that are no UTF-16: a binary file may begin like a byte order mark.
fn utf_16(body: &[u8], unit: fn([u8; 2]) -> u16) -> Option<Cow<'static, str>> {
    let units: Vec<u16> = body.chunks(2).map(|pair| pair.try_into().ok().map(unit)).collect::<Option<_>>()?;
    String::from_utf16(&units).ok().map(Cow::Owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_encoding_is_found_where_it_is_said() {
        let utf_16: Vec<u8> = "\u{feff}Öl €1".encode_utf16().flat_map(u16::to_le_bytes).collect();
        let utf_16_be: Vec<u8> = "\u{feff}Öl €1".encode_utf16().flat_map(u16::to_be_bytes).collect();
        let cases: [(&str, &[u8], &str); 11] = [
            ("", "Öl €1".as_bytes(), "Öl €1"),
            ("application/json", "\u{feff}{}".as_bytes(), "{}"),
            ("application/json", &utf_16, "Öl €1"),
            ("text/plain; charset=utf-8", &utf_16_be, "Öl €1"),
            ("text/plain; charset=utf-16be", utf_16_be.get(2..).unwrap(), "Öl €1"),
            ("text/plain; charset=utf-16", utf_16.get(2..).unwrap(), "Öl €1"),
            ("application/json; charset=utf-16", r#"{"name":"Öl"}"#.as_bytes(), r#"{"name":"Öl"}"#),
            ("application/json; charset=utf-16be", br#"{"a":10}"#, r#"{"a":10}"#),
            ("text/plain; charset=ISO-8859-1", b"\xd6l", "Öl"),
            ("text/csv;header=present; Charset=\"windows-1252\"", b"\x80 1\x81\xff", "€ 1\u{81}ÿ"),
            ("text/plain; charset=iso-8859-1", "Öl".as_bytes(), "Öl"),
        ];
        for (content_type, body, text) in cases {
            assert_eq!(
                DecodedBody::of(content_type, body),
                DecodedBody { text: text.into(), is_whole: true },
                "{content_type}"
            );
        }
    }

    #[test]
    fn bytes_that_are_no_text_are_replaced_and_reported() {
        let cases: [(&str, &[u8]); 5] = [
            ("text/plain", b"a\xff"),
            ("text/plain; charset=utf-8", b"a\xff"),
            ("text/plain; charset=shift_jis", b"\x93\xfa"),
            ("audio/mpeg", b"\xff\xfe\0"),
            ("audio/mpeg", b"\xff\xfe\0\xd8\0\0"),
        ];
        for (content_type, body) in cases {
            assert!(!DecodedBody::of(content_type, body).is_whole, "{content_type}");
        }
    }
}
