//! Cuts long texts and values, with a marker that names the size: `… (cut: the first 2000 of 90000 bytes)`, `… (cut:
//! 12 more)`.

use std::{
    fmt::{Display, Write as _},
    io,
};

use serde_json::{Map, Value};

const MARKER: &str = "… (cut: ";
const BYTES: &str = " bytes)";
const REST: &str = "…";
/// The longest marker of a text, in bytes.
const MARKER_ROOM: usize = 56;
/// A cut moves back to the end of a word within this many bytes.
const LONGEST_WORD: usize = 20;
/// A cut text is at most this much shorter than its budget, in bytes, except in rare cases.
pub const SLACK: usize = MARKER_ROOM + LONGEST_WORD + 4;
/// A member that does not fit is dropped if less than this would remain of it.
const LEAST_OF_A_MEMBER: usize = 120;

/// A text of at most `budget` bytes, including the marker; the memory is released too.
pub fn cut(text: String, budget: usize) -> String {
    let whole = text.len();
    if whole <= budget {
        return text;
    }
    let mut text = cut_to(text, budget.saturating_sub(MARKER_ROOM), whole);
    text.shrink_to(budget);
    text
}

/// At most `room` bytes of a text and the marker; `whole` is the original length.
pub fn cut_to(mut text: String, room: usize, whole: usize) -> String {
    let end = text.floor_char_boundary(room);
    let (kept, rest) = text.split_at(end);
    let word = kept.split_at(kept.floor_char_boundary(end.saturating_sub(LONGEST_WORD))).1;
    let in_word = !rest.starts_with(char::is_whitespace);
    let begun = word.rfind(char::is_whitespace).filter(|_| in_word).map_or(0, |space| word.len() - space);
    let kept = kept.get(..end - begun).unwrap_or(kept).trim_end().len();
    text.truncate(kept);
    // Writing to a string cannot fail.
    let _ = write!(text, "{MARKER}the first {kept} of {whole}{BYTES}");
    text
}

pub fn is_cut(text: &str) -> bool {
    let marker = text.rsplit_once(MARKER).map(|(_, marker)| marker);
    marker.is_some_and(|marker| marker.len() < MARKER_ROOM && marker.ends_with(BYTES))
}

/// Whether the value stands for items that were cut from the end of a list.
pub fn is_marker(value: &Value) -> bool {
    value.as_str().is_some_and(|text| text.starts_with(MARKER) && text.ends_with(" more)"))
}

/// Whether items or members were cut from the end of the value.
pub fn lost_its_end(value: &Value) -> bool {
    match value {
        Value::Array(items) => items.last().is_some_and(is_marker),
        Value::Object(members) => members.get(REST).is_some_and(is_marker),
        _ => false,
    }
}

/// The marker for `what`, such as `12 more` items of a list or members of an object.
pub fn instead_of(what: impl Display) -> String {
    format!("{MARKER}{what})")
}

/// The value cut to `budget` bytes of JSON. A text is cut; a list or an object keeps the members that fit, in order,
/// the first that does not fit is cut itself, and the marker counts the dropped members.
pub fn fit(value: Value, budget: usize) -> Value {
    if fits(&value, budget) { value } else { cut_value(&value, budget) }
}

/// Like [`fit`], of a borrowed value: only the kept part is copied.
pub fn fitting(value: &Value, budget: usize) -> Value {
    if fits(value, budget) { value.clone() } else { cut_value(value, budget) }
}

fn cut_value(value: &Value, budget: usize) -> Value {
    match value {
        Value::String(text) => {
            // JSON escapes make a text longer.
            let mut length = MARKER_ROOM + 2;
            let room = text.char_indices().find(|(_, letter)| {
                length += escaped(*letter);
                length > budget
            });
            // With the next character, which tells whether a word ends there.
            let at = room.map_or(0, |(at, _)| at);
            cut_to(text.get(..text.ceil_char_boundary(at + 1)).unwrap_or(text).to_owned(), at, text.len()).into()
        }
        Value::Array(items) => {
            let mut room = Room::new(budget, items.len());
            let mut kept: Vec<Value> = items.iter().filter_map(|item| room.take(item, 1)).collect();
            kept.extend(room.marker());
            Value::Array(kept)
        }
        Value::Object(members) => {
            let mut room = Room::new(budget, members.len());
            let take = |(name, member): (&String, &Value)| {
                let around = length(&Value::from(name.as_str())) + 2;
                Some((name.clone(), room.take(member, around)?))
            };
            let mut kept: Map<String, Value> = members.iter().filter_map(take).collect();
            kept.extend(room.marker().map(|marker| (REST.to_owned(), marker)));
            Value::Object(kept)
        }
        other => other.clone(),
    }
}

struct Room {
    left: usize,
    one_is_cut: bool,
    left_out: usize,
}

impl Room {
    fn new(budget: usize, members: usize) -> Self {
        let mut room = Self { left: 0, one_is_cut: false, left_out: members };
        // The brackets, and the separators around the marker.
        room.left = budget.saturating_sub(12 + room.marker().as_ref().map_or(0, length));
        room.left_out = 0;
        room
    }

    /// A whole member, or one cut to the remaining room. `around` is its overhead in bytes.
    fn take(&mut self, member: &Value, around: usize) -> Option<Value> {
        let room = self.left.saturating_sub(around);
        let kept = if fits(member, room) {
            Some(member.clone())
        } else if self.one_is_cut || room < LEAST_OF_A_MEMBER {
            None
        } else {
            self.one_is_cut = true;
            Some(cut_value(member, room)).filter(|member| fits(member, room))
        };
        match &kept {
            Some(member) => self.left -= length(member) + around,
            None => self.left_out += 1,
        }
        kept
    }

    fn marker(&self) -> Option<Value> {
        (self.left_out > 0).then(|| instead_of(format_args!("{} more", self.left_out)).into())
    }
}

/// Bytes of a character in JSON text.
fn escaped(letter: char) -> usize {
    match letter {
        '"' | '\\' | '\n' | '\r' | '\t' | '\u{8}' | '\u{c}' => 2,
        '\0'..'\u{20}' => 6,
        other => other.len_utf8(),
    }
}

/// The length of the JSON text, in bytes.
fn length(value: &Value) -> usize {
    value.to_string().len()
}

/// Whether the JSON text has at most `budget` bytes. Looks no further than that.
fn fits(value: &Value, budget: usize) -> bool {
    serde_json::to_writer(Left(budget), value).is_ok()
}

/// Bytes left of a budget; writing more fails.
struct Left(usize);

impl io::Write for Left {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 = self.0.checked_sub(bytes.len()).ok_or(io::ErrorKind::WriteZero)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn a_cut_text_ends_with_a_word_and_says_how_much_there_was() {
        let words = "one two, three ".repeat(20);
        assert_eq!(cut(words.clone(), 300), words);
        assert_eq!(cut(words.clone(), 80), "one two, three one two,… (cut: the first 23 of 300 bytes)");
        assert_eq!(cut_to(words.clone(), 14, 900), "one two, three… (cut: the first 14 of 900 bytes)");
        assert_eq!(cut_to(words, 0, 300), "… (cut: the first 0 of 300 bytes)");
        assert_eq!(cut("é".repeat(100), 101), format!("{}… (cut: the first 44 of 200 bytes)", "é".repeat(22)));
    }

    #[test]
    fn a_cut_is_known_by_its_marker() {
        assert!(is_cut(&cut("x".repeat(1_000), 100)));
        for text in [
            "",
            "whole",
            "… (cut: 12 more)",
            "… (cut: the first 1 of 2 bytes), it said",
            "(cut: the first 1 of 2 bytes)",
        ] {
            assert!(!is_cut(text), "{text}");
        }
    }

    #[test]
    fn a_long_text_is_cut_at_a_boundary_with_a_marker() {
        let list: Vec<Value> = (0..500).map(|number| json!({"order": number, "state": "shipped"})).collect();
        let cut = fit(json!(list), 400);
        let kept = cut.as_array().unwrap();
        assert_eq!(kept[0], json!({"order": 0, "state": "shipped"}));
        assert_eq!(kept.last().unwrap(), &json!(format!("… (cut: {} more)", 501 - kept.len())));

        let object = json!({"name": "Ana", "notes": "word ".repeat(1_000), "orders": list, "tier": "gold"});
        let cut = fit(object, 300);
        assert_eq!((&cut["name"], &cut["…"]), (&json!("Ana"), &json!("… (cut: 1 more)")));
        let notes = cut["notes"].as_str().unwrap();
        assert!(notes.contains("word… (cut: the first ") && notes.ends_with(" of 5000 bytes)"), "{cut}");

        let deep = fit(json!({"data": {"orders": list}}), 300);
        assert_eq!(deep["data"]["orders"][0], list[0]);
        assert_eq!(
            (lost_its_end(&deep), lost_its_end(&deep["data"]["orders"]), lost_its_end(&cut)),
            (false, true, true)
        );
        assert_eq!(fit(json!({"short": true}), 20), json!({"short": true}));
    }

    proptest! {
        #[test]
        fn a_cut_fits_and_uses_its_room(text in "[a-z é]{0,20}\\PC{0,300}", budget in 100_usize..400) {
            let cut = cut(text.clone(), budget);
            if text.len() <= budget {
                prop_assert_eq!(cut, text);
            } else {
                prop_assert!(cut.len() <= budget && is_cut(&cut));
                let (kept, marker) = cut.split_once(MARKER).unwrap();
                prop_assert_eq!(marker, format!("the first {} of {} bytes)", kept.len(), text.len()));
                prop_assert!(text.starts_with(kept));
                let spaces = text.len() - kept.len() - text[kept.len()..].trim_start().len();
                prop_assert!(kept.len() + spaces + SLACK >= budget);
            }
        }

        #[test]
        fn a_cut_value_fits_its_budget(text in "[\\PC\n\u{1}]{0,200}", times in 1_usize..80, budget in 100_usize..3_000) {
            let list = json!(vec![text.clone(); times]);
            for value in [json!(text.repeat(times)), list.clone(), json!({"a": text.repeat(times), "b": list, "c": 1})] {
                prop_assert!(length(&fit(value, budget)) <= budget);
            }
        }
    }
}
