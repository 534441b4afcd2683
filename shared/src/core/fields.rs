//! Reads JSON objects strictly and reports all problems at once.
//!
//! serde stops at the first error; a person who fills in a form needs all of them.

use std::ops::RangeInclusive;

use serde_json::{Map, Value};

use crate::error::Problems;

/// A strictly read JSON object. Each getter marks its field as known; the remaining fields are reported at the end.
/// Problems go to a `Report`: [`Problems`] for a request ([`Fields`]), diagnostics for the definition of an
/// automation.
pub struct StrictObject<'a, 'r, Report> {
    object: &'a Map<String, Value>,
    path: String,
    /// The separator between a path and a member: `.`, or `/` in JSON pointers.
    joint: char,
    /// In the order of the getters' calls.
    known: Vec<&'static str>,
    /// Known fields that error messages do not list.
    unlisted: Vec<&'static str>,
    pub(crate) report: &'r mut Report,
}

impl<'a, 'r, Report> StrictObject<'a, 'r, Report> {
    pub(crate) const fn below_pointer(object: &'a Map<String, Value>, pointer: String, report: &'r mut Report) -> Self {
        Self { object, path: pointer, joint: '/', known: Vec::new(), unlisted: Vec::new(), report }
    }

    pub(crate) fn place(&self) -> &str {
        &self.path
    }

    pub fn path(&self, name: &str) -> String {
        match self.joint {
            '/' => format!("{}/{}", self.path, pointer_step(name)),
            _ if self.path.is_empty() => name.to_owned(),
            joint => format!("{}{joint}{name}", self.path),
        }
    }

    /// The raw value, including JSON `null`.
    pub(crate) fn given(&self, name: &str) -> Option<&'a Value> {
        self.object.get(name)
    }

    /// The raw value; JSON `null` counts as absent.
    pub fn get(&mut self, name: &'static str) -> Option<&'a Value> {
        self.know(name);
        self.given(name).filter(|value| !value.is_null())
    }

    /// Whether the field is JSON `null`: in a change, the request to clear it.
    pub fn cleared(&mut self, name: &'static str) -> bool {
        self.know(name);
        self.given(name).is_some_and(Value::is_null)
    }

    /// Keeps the field from being reported as unknown.
    pub(crate) fn know(&mut self, name: &'static str) {
        if !self.known.contains(&name) {
            self.known.push(name);
        }
    }

    pub(crate) fn unlist(&mut self, names: impl IntoIterator<Item = &'static str>) {
        self.unlisted.extend(names);
    }

    pub(crate) fn unknown(&self) -> (Vec<(&'a String, &'a Value)>, Vec<&'static str>) {
        let unknown = self.object.iter().filter(|(name, _)| !self.known.contains(&name.as_str()));
        let listed = self.known.iter().filter(|name| !self.unlisted.contains(name));
        (unknown.collect(), listed.copied().collect())
    }
}

/// The body of a request, or an object in it.
pub type Fields<'a> = StrictObject<'a, 'a, Problems>;

impl<'a> Fields<'a> {
    /// Reads `value`, found at `path` (empty for the body itself). `None` with a problem if it is not an object.
    pub fn of(value: &'a Value, path: impl Into<String>, problems: &'a mut Problems) -> Option<Self> {
        let path = path.into();
        if let Value::Object(object) = value {
            return Some(Self { joint: '.', ..Self::below_pointer(object, path, problems) });
        }
        problems
            .add(if path.is_empty() { "body".into() } else { path }, format!("must be an object, not {}", kind(value)));
        None
    }

    /// As [`Fields::of`], for a document with JSON pointers: `value` is at `pointer`, empty for the whole.
    pub fn at_pointer(value: &'a Value, pointer: impl Into<String>, problems: &'a mut Problems) -> Option<Self> {
        let pointer = pointer.into();
        let Value::Object(object) = value else {
            problems.add(pointer, format!("must be an object, not {}", kind(value)));
            return None;
        };
        Some(Self::below_pointer(object, pointer, problems))
    }

    pub fn problem(&mut self, name: &str, problem: impl Into<String>) {
        let path = self.path(name);
        self.report.add(path, problem);
    }

    pub fn problems(&mut self) -> &mut Problems {
        self.report
    }

    /// The object in a field, if it is given.
    pub fn object(&mut self, name: &'static str) -> Option<Fields<'_>> {
        let value = self.get(name)?;
        let path = self.path(name);
        Fields::of(value, path, self.report)
    }

    pub fn required(&mut self, name: &'static str) -> Option<&'a Value> {
        let value = self.get(name);
        if value.is_none() {
            self.problem(name, "is required");
        }
        value
    }

    /// Optional text of at most `longest` characters, trimmed; empty text is absent. Longer text is reported and also
    /// returned, because text stored under another limit must be read whole.
    pub fn text(&mut self, name: &'static str, longest: usize) -> Option<String> {
        let value = self.get(name)?;
        let Some(text) = value.as_str() else {
            self.problem(name, format!("must be text, not {}", kind(value)));
            return None;
        };
        let text = text.trim();
        if text.chars().count() > longest {
            self.problem(name, format!("must have at most {longest} characters"));
        }
        (!text.is_empty()).then(|| text.to_owned())
    }

    /// As [`Fields::text`], for names shown to people and models.
    pub fn name(&mut self, name: &'static str, longest: usize) -> Option<String> {
        let text = self.text(name, longest)?;
        if let Some(mark) = unseen_mark(&text) {
            let number = u32::from(mark);
            self.problem(name, format!("has the invisible character U+{number:04X}; remove it"));
        }
        Some(text)
    }

    pub fn required_name(&mut self, name: &'static str, longest: usize) -> Option<String> {
        self.required_of(name, |fields| fields.name(name, longest))
    }

    pub fn required_text(&mut self, name: &'static str, longest: usize) -> Option<String> {
        self.required_of(name, |fields| fields.text(name, longest))
    }

    fn required_of<T>(&mut self, name: &str, read: impl FnOnce(&mut Self) -> Option<T>) -> Option<T> {
        let before = self.report.iter().count();
        let value = read(self);
        if value.is_none() && self.report.iter().count() == before {
            self.problem(name, "is required");
        }
        value
    }

    pub fn boolean(&mut self, name: &'static str, default: bool) -> bool {
        match self.get(name) {
            None => default,
            Some(Value::Bool(value)) => *value,
            Some(other) => {
                self.problem(name, format!("must be true or false, not {}", kind(other)));
                default
            }
        }
    }

    pub fn whole(&mut self, name: &'static str, bounds: RangeInclusive<u32>) -> Option<u32> {
        let value = self.get(name)?;
        let number = value.as_u64().and_then(|number| u32::try_from(number).ok());
        if !number.is_some_and(|number| bounds.contains(&number)) {
            self.problem(name, format!("must be a whole number from {} to {}", bounds.start(), bounds.end()));
        }
        number
    }

    pub fn parse<T: std::str::FromStr<Err: std::fmt::Display>>(&mut self, name: &'static str) -> Option<T> {
        let text = self.text(name, 2_000)?;
        match text.parse() {
            Ok(value) => Some(value),
            Err(error) => {
                self.problem(name, error.to_string());
                None
            }
        }
    }

    pub fn required_parse<T: std::str::FromStr<Err: std::fmt::Display>>(&mut self, name: &'static str) -> Option<T> {
        self.required_of(name, |fields| fields.parse(name))
    }

    /// An optional list. `of` names its items in the problem: "must be a list of hosts, not text".
    pub fn list(&mut self, name: &'static str, of: &str) -> Option<&'a [Value]> {
        match self.get(name)? {
            Value::Array(items) => Some(items),
            other => {
                self.problem(name, format!("must be a list of {of}, not {}", kind(other)));
                None
            }
        }
    }

    /// An optional list of texts of at most `longest` characters each. Other items are reported and left out.
    pub fn texts(&mut self, name: &'static str, of: &str, longest: usize) -> Option<Vec<String>> {
        let mut texts = Vec::new();
        for (index, item) in self.list(name, of)?.iter().enumerate() {
            let problem = match item.as_str() {
                Some(text) if text.chars().count() > longest => format!("must have at most {longest} characters"),
                Some(text) => {
                    texts.push(text.to_owned());
                    continue;
                }
                None => format!("must be text, not {}", kind(item)),
            };
            let place = match self.joint {
                '/' => format!("{}/{index}", self.path(name)),
                _ => format!("{}[{index}]", self.path(name)),
            };
            self.report.add(place, problem);
        }
        Some(texts)
    }

    pub fn members(&mut self, name: &'static str) -> Vec<(&'a String, &'a Value)> {
        match self.get(name) {
            None => Vec::new(),
            Some(Value::Object(object)) => object.iter().collect(),
            Some(other) => {
                self.problem(name, format!("must be an object, not {}", kind(other)));
                Vec::new()
            }
        }
    }

    /// Whether a field is present that is not allowed beside the others, or any more. The caller reports it; it is not
    /// listed as known.
    pub fn misplaced(&mut self, name: &'static str) -> bool {
        self.unlist([name]);
        self.get(name).is_some()
    }

    pub fn finish(self) {
        let (unknown, mut known) = self.unknown();
        known.sort_unstable();
        for (name, _) in unknown {
            self.report.add(self.path(name), format!("is not a known field; known are {}", known.join(", ")));
        }
    }
}

/// An invisible character that changes how a name is read: a control character, a line end, or a direction mark.
/// Arabic and Hebrew names need none.
pub fn unseen_mark(name: &str) -> Option<char> {
    name.chars().find(|letter| is_invisible(*letter))
}

pub fn is_invisible(letter: char) -> bool {
    let is_mark = matches!(
        letter,
        '\u{61C}' | '\u{200E}' | '\u{200F}' | '\u{2028}'..='\u{202E}' | '\u{2066}'..='\u{206F}' | '\u{FEFF}'
    );
    is_mark || letter.is_control()
}

/// A member's name as a step of a JSON pointer (RFC 6901).
pub fn pointer_step(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}

pub fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_name_with_invisible_characters_is_refused() {
        let (right, wrong) = (
            ["Ana's office", "مكتب", "משרד", "👩‍🔧 می‌خواهم", "Zürich – 2"],
            ["a\0b", "a\nb", "a\u{202E}b", "a\u{2066}b", "a\u{200F}b", "a\u{85}b", "a\u{2028}b", "a\u{FEFF}b"],
        );
        for (name, problem) in right.map(|name| (name, 0)).into_iter().chain(wrong.map(|name| (name, 1))) {
            let mut problems = Problems::default();
            let body = json!({"label": name});
            let read = Fields::of(&body, "", &mut problems).and_then(|mut fields| fields.required_name("label", 100));
            assert_eq!((read.as_deref(), problems.iter().count()), (Some(name), problem), "{name:?}");
        }
    }

    #[test]
    fn everything_wrong_is_named_at_once() {
        let mut problems = Problems::default();
        let value = json!({"label": 7, "extra": true, "flag": "yes"});
        let mut fields = Fields::of(&value, "", &mut problems).unwrap();
        fields.required_text("label", 10);
        fields.required_text("type", 10);
        fields.boolean("flag", false);
        fields.finish();
        let named: Vec<_> = problems.iter().map(|problem| problem.field.as_str()).collect();
        assert_eq!(named, ["label", "type", "flag", "extra"]);
    }

    #[test]
    fn a_place_in_a_document_is_a_json_pointer() {
        let mut problems = Problems::default();
        let value = json!({"a/b~": 1, "keywords": ["x", 7]});
        let mut fields = Fields::at_pointer(&value, "/tools/0", &mut problems).unwrap();
        fields.required("name");
        fields.texts("keywords", "words", 10);
        fields.finish();
        Fields::at_pointer(&json!(1), "", &mut problems);
        let named: Vec<_> = problems.iter().map(|problem| problem.field.as_str()).collect();
        assert_eq!(named, ["/tools/0/name", "/tools/0/keywords/1", "/tools/0/a~1b~0", ""]);
    }

    #[test]
    fn a_nested_path_is_written_as_in_the_request() {
        let mut problems = Problems::default();
        let value = json!({"a": 1});
        Fields::of(&value, "text.schema", &mut problems).unwrap().finish();
        assert_eq!(problems.iter().next().unwrap().field, "text.schema.a");
    }
}
