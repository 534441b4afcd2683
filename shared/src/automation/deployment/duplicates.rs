//! Finds duplicate members in JSON text; `serde_json` silently keeps only the last one.

use std::{cell::RefCell, collections::HashSet, fmt};

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

use crate::automation::definition::diagnostics::child;

/// Duplicates reported per text.
const MOST_TOLD: usize = 20;
/// Bytes of a reported pointer.
const LONGEST_POINTER: usize = 1_000;

/// Pointers of the first duplicates; empty for invalid JSON.
pub(super) fn duplicate_members(text: &[u8]) -> Vec<String> {
    let found = RefCell::new(Vec::new());
    let mut reader = serde_json::Deserializer::from_slice(text);
    let place = Place { above: None, step: Step::Item(0), found: &found };
    // Syntax errors are reported by the real parser.
    let _ = place.deserialize(&mut reader);
    found.into_inner()
}

/// The parser's position; a pointer string is built only for a reported duplicate.
struct Place<'p> {
    above: Option<&'p Place<'p>>,
    step: Step<'p>,
    found: &'p RefCell<Vec<String>>,
}

enum Step<'p> {
    Member(&'p str),
    Item(usize),
}

impl Place<'_> {
    fn pointer(&self) -> String {
        let Some(above) = self.above else { return String::new() };
        let pointer = above.pointer();
        if pointer.len() > LONGEST_POINTER {
            return pointer;
        }
        match self.step {
            Step::Member(name) => child(&pointer, crate::cut::cut(name.to_owned(), LONGEST_POINTER)),
            Step::Item(index) => child(&pointer, index.to_string()),
        }
    }
}

impl<'de> DeserializeSeed<'de> for Place<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Place<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let mut names = HashSet::new();
        while let Some(name) = map.next_key::<String>()? {
            let member = Place { above: Some(&self), step: Step::Member(&name), found: self.found };
            if names.contains(&name) {
                let mut found = self.found.borrow_mut();
                if found.len() < MOST_TOLD {
                    found.push(member.pointer());
                }
                drop(found);
                map.next_value::<IgnoredAny>()?;
                continue;
            }
            map.next_value_seed(member)?;
            names.insert(name);
        }
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        let mut index = 0;
        let at = |index| Place { above: Some(&self), step: Step::Item(index), found: self.found };
        while items.next_element_seed(at(index))?.is_some() {
            index += 1;
        }
        Ok(())
    }

    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E>(self, _: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E>(self, _: u64) -> Result<(), E> {
        Ok(())
    }

    fn visit_f64<E>(self, _: f64) -> Result<(), E> {
        Ok(())
    }

    fn visit_str<E>(self, _: &str) -> Result<(), E> {
        Ok(())
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_member_that_stands_twice_is_told_by_its_place() {
        let text = br#"{"a": 1, "b": [{"x/y": {}, "c": 1.5, "x/y": [null]}, {"x/y": true}], "a": "2", "d": {"a": -1}}"#;
        assert_eq!(duplicate_members(text), ["/b/0/x~1y", "/a"]);
        assert!(duplicate_members(br#"{"a": {"a": 1}}"#).is_empty());
        assert!(duplicate_members(b"{").is_empty());
        assert!(duplicate_members("[".repeat(10_000).as_bytes()).is_empty());
        let long = format!(r#"{{"{0}": {{"{0}": {{{1}"x": 1}}}}}}"#, "n".repeat(50_000), r#""y":1,"#.repeat(10_000));
        let told = duplicate_members(long.as_bytes());
        assert_eq!(told.len(), MOST_TOLD);
        assert!(told.iter().all(|pointer| pointer.len() < 5_000));
    }
}
