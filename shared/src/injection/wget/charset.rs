//! Detects the encoding of an answer, and decodes it piece by piece.

use encoding_rs::{CoderResult, Encoding, UTF_8, UTF_16BE, UTF_16LE};

/// Bytes of HTML or XML searched for a declaration, as in the HTML standard.
const DECLARED_WITHIN: usize = 1024;

/// A streaming decoder; characters may span two pieces.
pub(in crate::injection) struct Decoder {
    decoder: encoding_rs::Decoder,
    /// Some bytes were invalid.
    pub(super) replaced: bool,
}

impl Decoder {
    /// By byte order mark, else `Content-Type`, else the declaration in HTML or XML, else UTF-8.
    pub(in crate::injection) fn of(content_type: &str, head: &[u8]) -> Self {
        let encoding = Encoding::for_bom(head)
            .map(|(encoding, _length)| encoding)
            .or_else(|| Encoding::for_label(label(content_type.as_bytes(), b"charset")?))
            .filter(|encoding| !is_utf_16(encoding) || !is_utf_8_without_nul(head))
            .or_else(|| declared(head))
            .unwrap_or(UTF_8);
        Self { decoder: encoding.new_decoder_with_bom_removal(), replaced: false }
    }

    pub(super) fn encoding(&self) -> &'static Encoding {
        self.decoder.encoding()
    }

    /// Whether 0 bytes can occur in text.
    pub(super) fn is_utf_16(&self) -> bool {
        is_utf_16(self.encoding())
    }

    /// The text of the next piece; an empty last piece flushes the decoder.
    pub(in crate::injection) fn decode(&mut self, mut bytes: &[u8], last: bool) -> String {
        let longest = self.decoder.max_utf8_buffer_length(bytes.len());
        let mut text = String::with_capacity(longest.unwrap_or(bytes.len()));
        loop {
            let (result, read, replaced) = self.decoder.decode_to_string(bytes, &mut text, last);
            self.replaced |= replaced;
            if result == CoderResult::InputEmpty {
                return text;
            }
            bytes = bytes.get(read..).unwrap_or_default();
            text.reserve(bytes.len().max(16));
        }
    }
}

fn is_utf_16(encoding: &Encoding) -> bool {
    [UTF_16BE, UTF_16LE].contains(&encoding)
}

/// Hardly any UTF-16 is, and some servers only name it. The last character may be incomplete.
fn is_utf_8_without_nul(head: &[u8]) -> bool {
    !head.contains(&0) && std::str::from_utf8(head).err().is_none_or(|error| error.error_len().is_none())
}

/// The encoding in `<meta charset="…">`, `<meta … content="…; charset=…">` or `<?xml … encoding="…"?>`. A declaration readable as
/// ASCII cannot be in UTF-16, so UTF-16 there means UTF-8.
fn declared(head: &[u8]) -> Option<&'static Encoding> {
    let head = head.get(..DECLARED_WITHIN).unwrap_or(head).to_ascii_lowercase();
    let tags = head.split(|byte| *byte == b'<').filter_map(|tag| tag.split(|byte| *byte == b'>').next());
    let encoding = tags
        .filter_map(|tag| match tag {
            _ if tag.starts_with(b"meta") => label(tag, b"charset"),
            _ if tag.starts_with(b"?xml") => label(tag, b"encoding"),
            _ => None,
        })
        .find_map(Encoding::for_label)?;
    Some(if is_utf_16(encoding) { UTF_8 } else { encoding })
}

/// The first value in `name = "value"`.
fn label<'a>(text: &'a [u8], name: &[u8]) -> Option<&'a [u8]> {
    let at = text.windows(name.len()).position(|window| window.eq_ignore_ascii_case(name))?;
    let rest = text.get(at + name.len()..)?.trim_ascii_start().strip_prefix(b"=")?.trim_ascii_start();
    let rest = rest.strip_prefix(b"\"").or_else(|| rest.strip_prefix(b"'")).unwrap_or(rest);
    rest.split(|byte| matches!(byte, b'"' | b'\'' | b';' | b'?') || byte.is_ascii_whitespace()).next()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(content_type: &str, bytes: &[u8]) -> (String, bool) {
        let mut decoder = Decoder::of(content_type, bytes);
        // Byte by byte, because network chunks may split characters.
        let mut text: String = bytes.chunks(1).map(|byte| decoder.decode(byte, false)).collect();
        text += &decoder.decode(&[], true);
        (text, decoder.replaced)
    }

    #[test]
    fn the_encoding_is_found_where_it_is_said() {
        let utf_16: Vec<u8> = "\u{feff}Öl €1".encode_utf16().flat_map(u16::to_le_bytes).collect();
        let utf_16_be: Vec<u8> = "Öl €1".encode_utf16().flat_map(u16::to_be_bytes).collect();
        let cases: [(&str, &[u8], &str); 12] = [
            ("", "Öl €1".as_bytes(), "Öl €1"),
            ("text/plain; charset=utf-8", "\u{feff}Öl".as_bytes(), "Öl"),
            ("text/plain; charset=ISO-8859-1", b"\xd6l", "Öl"),
            ("text/plain; Charset=\"windows-1252\"", b"\x80 1", "€ 1"),
            ("text/html", b"<html><meta charset=windows-1251>\xcc\xe8\xf0", "<html><meta charset=windows-1251>Мир"),
            (
                "text/html",
                b"<META http-equiv=x content='text/html; charset=iso-8859-2'>\xb3",
                "<META http-equiv=x content='text/html; charset=iso-8859-2'>ł",
            ),
            (
                "application/xml",
                b"<?xml version='1.0' encoding='latin1'?>\xe9",
                "<?xml version='1.0' encoding='latin1'?>é",
            ),
            ("text/html", "<meta charset=utf-16>Öl".as_bytes(), "<meta charset=utf-16>Öl"),
            ("text/plain", &utf_16, "Öl €1"),
            ("text/plain; charset=utf-16be", &utf_16_be, "Öl €1"),
            ("text/plain; charset=utf-16", "Öl €1".as_bytes(), "Öl €1"),
            ("text/plain; charset=klingon", "Öl".as_bytes(), "Öl"),
        ];
        for (content_type, bytes, expected) in cases {
            assert_eq!(read(content_type, bytes), (expected.to_owned(), false), "{content_type}");
        }
    }

    #[test]
    fn invalid_bytes_are_replaced_and_reported() {
        assert_eq!(read("", b"a\xffb\xe2\x82"), ("a\u{fffd}b\u{fffd}".to_owned(), true));
    }
}
