//! Parses server-sent events, as far as completions use them.
//!
//! Yields the data of each event, for any split of the bytes:
//! <https://html.spec.whatwg.org/multipage/server-sent-events.html#parsing-an-event-stream>

use std::{collections::VecDeque, mem};

/// Bytes.
const LARGEST_EVENT: usize = 1024 * 1024;

const BYTE_ORDER_MARK: &[u8] = "\u{feff}".as_bytes();

#[derive(Default)]
pub(super) struct Events {
    begun: bool,
    line: Vec<u8>,
    /// The `data` lines of the current event.
    data: Option<Vec<u8>>,
    after_cr: bool,
    ready: VecDeque<Vec<u8>>,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) struct TooLarge;

impl Events {
    /// Adds received bytes. A line ends with LF, CRLF or CR.
    pub(super) fn take(&mut self, bytes: &[u8]) -> Result<(), TooLarge> {
        for &byte in bytes {
            let after_cr = mem::replace(&mut self.after_cr, byte == b'\r');
            match byte {
                b'\n' if after_cr => {}
                b'\n' | b'\r' => self.end_of_line(),
                _ if self.line.len() + self.data.as_ref().map_or(0, Vec::len) >= LARGEST_EVENT => return Err(TooLarge),
                _ => self.line.push(byte),
            }
        }
        Ok(())
    }

    /// Ends the stream; a last event may lack its blank line.
    pub(super) fn end(&mut self) {
        self.end_of_line();
        self.end_of_line();
    }

    pub(super) fn next(&mut self) -> Option<Vec<u8>> {
        self.ready.pop_front()
    }

    fn end_of_line(&mut self) {
        let line = mem::take(&mut self.line);
        let mut line = line.as_slice();
        if !mem::replace(&mut self.begun, true) {
            line = line.strip_prefix(BYTE_ORDER_MARK).unwrap_or(line);
        }
        if line.is_empty() {
            self.ready.extend(self.data.take());
            return;
        }
        // A comment begins with a colon, so its field name is empty.
        let (field, value) = match line.iter().position(|byte| *byte == b':') {
            Some(colon) => line.split_at(colon),
            None => (line, &[][..]),
        };
        if field != b"data" {
            return;
        }
        let value = value.strip_prefix(b":").unwrap_or(value);
        let value = value.strip_prefix(b" ").unwrap_or(value);
        match &mut self.data {
            Some(data) => {
                data.push(b'\n');
                data.extend_from_slice(value);
            }
            None => self.data = Some(value.to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn read(parts: &[&[u8]]) -> Vec<String> {
        let mut events = Events::default();
        let mut data = Vec::new();
        for part in parts {
            events.take(part).unwrap();
            data.extend(std::iter::from_fn(|| events.next()));
        }
        events.end();
        data.extend(std::iter::from_fn(|| events.next()));
        data.into_iter().map(|data| String::from_utf8(data).unwrap()).collect()
    }

    #[test]
    fn only_data_counts() {
        for (text, data) in [
            ("data: a\n\ndata: b\n\n", &["a", "b"][..]),
            (": OPENROUTER PROCESSING\n\ndata: a\n\n: x\n\n", &["a"]),
            ("event: message\nid: 7\ndata: a\nretry: 10\n\n", &["a"]),
            ("data:a\n\ndata:  b\n\n", &["a", " b"]),
            ("data: a\ndata: b\n\n", &["a\nb"]),
            ("data\n\n", &[""]),
            ("data: a: b\n\n", &["a: b"]),
            ("database: a\n\n", &[]),
            ("\u{feff}data: a\n\n", &["a"]),
            ("\n\n\n", &[]),
            ("data: the last has no blank line", &["the last has no blank line"]),
            ("", &[]),
        ] {
            for line_end in ["\n", "\r\n", "\r"] {
                let text = text.replace('\n', line_end);
                assert_eq!(read(&[text.as_bytes()]), data, "{text:?}");
            }
        }
    }

    #[test]
    fn an_event_has_an_end() {
        let mut events = Events::default();
        assert_eq!(events.take(&vec![b'x'; LARGEST_EVENT]), Ok(()));
        assert_eq!(events.take(b"x"), Err(TooLarge));
        let mut events = Events::default();
        let line = format!("data: {}\n", "x".repeat(1000));
        assert!((0..LARGEST_EVENT).any(|_| events.take(line.as_bytes()).is_err()), "in many lines");
    }

    proptest! {
        #[test]
        fn chunks_of_any_size_give_the_same_events(
            texts in prop::collection::vec("[^\r\n]{0,20}", 0..6),
            line_end in prop::sample::select(vec!["\n", "\r\n", "\r"]),
            cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..12),
        ) {
            let framed = texts.iter().map(|text| format!(": c{line_end}data: {text}{line_end}{line_end}"));
            let stream = framed.collect::<Vec<_>>().concat();
            let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(stream.len() + 1)).collect();
            cuts.extend([0, stream.len()]);
            cuts.sort_unstable();
            let parts: Vec<&[u8]> = cuts.windows(2).map(|cut| &stream.as_bytes()[cut[0]..cut[1]]).collect();
            prop_assert_eq!(read(&parts), texts);
        }
    }
}
