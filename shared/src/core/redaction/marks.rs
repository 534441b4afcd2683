//! `redact` of a tool's configuration: fields of arguments and results to hide in the history.
//!
//! ```json
//! {"redact": ["text", "body_guest.name", "result.customer.email"]}
//! ```
//!
//! A path follows objects by name, and enters every item of a list. `result` covers the whole result and an error that may quote
//! it; `*` covers everything.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{
    fields::{Fields, kind},
    models::Tool,
};

const MOST: usize = 50;
const LONGEST: usize = 200;
const EVERYTHING: &str = "*";
const RESULT: &str = "result";

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(from = "Value")]
pub struct Marks(Vec<String>);

impl Marks {
    /// Reads the field `redact`. `not_an_argument` returns the mistake in a path that would hide nothing.
    pub fn read(fields: &mut Fields<'_>, not_an_argument: impl Fn(&str) -> Option<String>) -> Self {
        let Some(paths) = fields.list("redact", "paths") else { return Self::default() };
        if paths.len() > MOST {
            fields.problem("redact", format!("must have at most {MOST} paths"));
            return Self::default();
        }
        let mut marks = BTreeSet::new();
        for (index, path) in paths.iter().enumerate() {
            match read_path(path, &not_an_argument) {
                Ok(path) => drop(marks.insert(path.to_owned())),
                Err(problem) => fields.problem(&format!("redact[{index}]"), problem),
            }
        }
        Self(marks.into_iter().collect())
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn stored(tool: &Tool) -> Self {
        tool.config_metadata.get("redact").cloned().map(Self::from).unwrap_or_default()
    }

    pub(super) fn paths(&self) -> &[String] {
        &self.0
    }
}

/// Unreadable marks hide everything.
impl From<Value> for Marks {
    fn from(stored: Value) -> Self {
        match stored {
            Value::Null => Self::default(),
            stored => Self(serde_json::from_value(stored).unwrap_or_else(|_| vec![EVERYTHING.to_owned()])),
        }
    }
}

impl From<Marks> for Vec<String> {
    fn from(marks: Marks) -> Self {
        marks.0
    }
}

fn read_path(path: &Value, not_an_argument: impl Fn(&str) -> Option<String>) -> Result<&str, String> {
    let path = path.as_str().map(str::trim).ok_or_else(|| format!("must be text, not {}", kind(path)))?;
    if path.len() > LONGEST {
        return Err(format!("must have at most {LONGEST} characters"));
    }
    if path.split('.').any(str::is_empty) {
        return Err("must be names with single dots between them, such as result.customer.name".into());
    }
    let known = path == EVERYTHING || below(path, RESULT).is_some();
    let problem = if known { None } else { not_an_argument(path) };
    problem.map_or(Ok(path), Err)
}

/// The rest of a path after `name`; empty if it ends there. Names may contain dots.
pub fn below<'a>(path: &'a str, name: &str) -> Option<&'a str> {
    let rest = path.strip_prefix(name)?;
    if rest.is_empty() { Some(rest) } else { rest.strip_prefix('.') }
}

/// The remaining paths during a walk through a value. An empty path marks the value itself.
#[derive(Debug, Clone, Default)]
pub(super) struct Paths<'a>(Vec<&'a str>);

impl<'a> Paths<'a> {
    pub(super) fn of(marks: &'a [String]) -> Self {
        Self(marks.iter().map(|mark| if mark == EVERYTHING { "" } else { mark }).collect())
    }

    /// Positional arguments that fit no parameters have no names; any mark then hides all of them.
    pub(super) fn of_arguments(self, arguments: &Value) -> Self {
        if arguments.is_object() { self } else { self.of_whole() }
    }

    /// JSON that was cut is text, so any mark on the result hides all of it.
    pub(super) fn of_result(&self, result: &Value) -> Self {
        let paths = self.within(RESULT);
        if result.is_string() { paths.of_whole() } else { paths }
    }

    fn of_whole(self) -> Self {
        if self.is_empty() { self } else { Self(vec![""]) }
    }

    /// The paths into a member. All members of a marked value are marked.
    pub(super) fn within(&self, name: &str) -> Self {
        if self.marked() {
            return self.clone();
        }
        Self(self.0.iter().filter_map(|path| below(path, name)).collect())
    }

    pub(super) fn marked(&self) -> bool {
        self.0.contains(&"")
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}
