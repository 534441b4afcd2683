//! What of a run the history keeps, and what stands in place of the rest.
//!
//! Hidden always: phone numbers, e-mail addresses and credentials, by their look and by the names they stand under
//! (`patterns`), what the tool's own configuration holds of them, and values of arguments that the tool does not have, which
//! nobody could have marked. Hidden besides: the fields that the tool's configuration marks in `redact`. What was given as a
//! credential or under a marked argument is hidden where it comes back, too: in other fields, in the result, in the error.
//!
//! What remains is cut to a budget and says so. What is looked at closely is bounded by the budget, too.

mod patterns;
mod transcript;

use std::{collections::BTreeSet, fmt};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Number, Value};

pub use self::transcript::{MarkedCall, Transcript};

use self::patterns::{SECRET, clean, is_credential};
use super::Action;
use crate::{
    fields::{Fields, kind},
    models::{Execution, ExecutionId, Tool},
    tool::NO_ARGUMENTS,
};

/// In place of a marked field.
pub const HIDDEN: &str = "[redacted]";
/// In place of an argument that the tool does not have.
const IGNORED: &str = "[ignored]";
/// In place of, or after, what was too much.
const CUT: &str = "[cut]";

/// What is kept of the arguments and of the result, in bytes each, markers apart; and of the error.
const BUDGET: usize = 2_048;
const ERROR_BUDGET: usize = 1_000;
/// Of one text no more than this is looked at, in bytes, and no more than so many times what may be kept of it.
const WINDOW: usize = 16 * 1_024;
const WINDOWS: usize = WINDOW / BUDGET;
const LONGEST_NAME: usize = 100;
const MOST_IGNORED: usize = 50;
/// DynamoDB takes 32 levels in all.
const DEEPEST: usize = 12;

/// Shorter ones are too common a text to be looked for elsewhere, in bytes.
const SHORTEST_SECRET: usize = 6;
const SHORTEST_MARKED: usize = 4;
/// Texts that are looked for everywhere.
const MOST_WANTED: usize = 64;

const MOST_MARKS: usize = 50;
const LONGEST_MARK: usize = 200;
const EVERYTHING: &str = "*";
const RESULT: &str = "result";
/// Of a `query`, arguments are filters: a field with one of these.
const FILTERS: [&str; 4] = ["_equals", "_at_most", "_at_least", "_one_of"];

/// `redact` of a tool's configuration: which fields of its arguments and results the history hides.
///
/// ```json
/// {"redact": ["text", "body_guest.name", "result.customer.email"]}
/// ```
///
/// A path leads through objects by name, and into every item of a list. `result` is all that comes back, with the error
/// that may quote it; `*` is everything.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(from = "Value")]
pub struct Marks(Vec<String>);

impl Marks {
    /// Reads the field `redact`. A path must begin with an argument of `action`: a mark that fits nothing would hide nothing.
    pub(super) fn read(fields: &mut Fields<'_>, action: Option<&Action>) -> Self {
        let paths = match fields.get("redact") {
            None => return Self::default(),
            Some(Value::Array(paths)) if paths.len() <= MOST_MARKS => paths,
            Some(Value::Array(_)) => {
                fields.problem("redact", format!("has more than {MOST_MARKS} paths"));
                return Self::default();
            }
            Some(other) => {
                fields.problem("redact", format!("must be a list of paths, not {}", kind(other)));
                return Self::default();
            }
        };
        let arguments: Option<Vec<String>> =
            action.map(|action| action.parameters().into_iter().map(|(place, _)| place.argument).collect());
        let filters = matches!(action, Some(Action::Query(_)));
        let mut marks = BTreeSet::new();
        for (index, path) in paths.iter().enumerate() {
            let place = format!("redact[{index}]");
            match path.as_str().map(str::trim) {
                None => fields.problem(&place, format!("must be text, not {}", kind(path))),
                Some(path) if path.len() > LONGEST_MARK => {
                    fields.problem(&place, format!("must have at most {LONGEST_MARK} characters"));
                }
                Some(path) if path.split('.').any(str::is_empty) => {
                    fields.problem(&place, "must be names with single dots between them, such as result.customer.name");
                }
                Some(path) => {
                    let known = path == EVERYTHING
                        || below(path, RESULT).is_some()
                        || filters && FILTERS.iter().any(|filter| path.ends_with(filter));
                    if let Some(arguments) = arguments.as_ref().filter(|_| !known)
                        && !arguments.iter().any(|argument| below(path, argument).is_some())
                    {
                        let arguments = arguments.join(", ");
                        let problem = format!(
                            "begins with no argument of the tool; it may begin with {arguments}, result or be *"
                        );
                        fields.problem(&place, problem);
                    }
                    marks.insert(path.to_owned());
                }
            }
        }
        Self(marks.into_iter().collect())
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The marks of a row as it is stored.
    pub fn stored(tool: &Tool) -> Self {
        tool.config_metadata.get("redact").cloned().map(Self::from).unwrap_or_default()
    }
}

/// Marks as they are stored. What cannot be read hides everything.
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

/// A run's place in the history before anything of it was hidden. It gives away its id, and what may be kept.
pub struct Unredacted {
    execution: Execution,
    marks: Marks,
    /// What the configuration hides of credentials.
    secrets: Vec<String>,
    /// The tool's arguments; any name will do for a tool that declares none.
    declared: Option<BTreeSet<String>>,
}

impl fmt::Debug for Unredacted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Unredacted").field(&self.execution.id).finish()
    }
}

impl Unredacted {
    /// `static_config` and `parameters` (a JSON schema) are those of the tool.
    pub fn new(mut execution: Execution, marks: Marks, static_config: &Value, parameters: &Value) -> Self {
        execution.arguments.remove(NO_ARGUMENTS);
        let mut secrets = Vec::new();
        collect_secrets(static_config, false, &mut secrets);
        let properties = parameters.get("properties").and_then(Value::as_object);
        let declared = properties.map(|properties| properties.keys().cloned().collect());
        Self { execution, marks, secrets, declared }
    }

    pub fn id(&self) -> ExecutionId {
        self.execution.id
    }

    /// What may be written down, shown and logged.
    pub fn redacted(&self) -> Execution {
        let Execution { arguments, result, error, ignored_arguments, .. } = &self.execution;
        let marks: Vec<&str> = self.marks.0.iter().map(String::as_str).collect();
        let everything = marks.contains(&EVERYTHING);
        let of_result: Vec<&str> = marks.iter().filter_map(|mark| below(mark, RESULT)).collect();
        let no_result = everything || of_result.contains(&"");
        let wanted = self.wanted(&marks);
        let walk = |budget| Walk { wanted: &wanted, left: budget };
        let instead = |name: &str| match &self.declared {
            Some(declared) if !declared.contains(name) => Some(IGNORED),
            _ => everything.then_some(HIDDEN),
        };
        let hidden = || Value::from(HIDDEN);
        Execution {
            id: self.execution.id,
            organization_id: self.execution.organization_id,
            tool_id: self.execution.tool_id,
            call_id: self.execution.call_id.clone(),
            trigger: self.execution.trigger,
            status: self.execution.status,
            error: error.as_ref().map(|text| if no_result { HIDDEN.into() } else { walk(ERROR_BUDGET).text(text) }),
            arguments: walk(BUDGET).members(arguments, &marks, 0, instead),
            result: result.as_ref().map(|it| if no_result { hidden() } else { walk(BUDGET).value(it, &of_result, 0) }),
            ignored_arguments: walk(BUDGET).names(ignored_arguments),
            queued_at: self.execution.queued_at,
            started_at: self.execution.started_at,
            duration_ms: self.execution.duration_ms,
            expires_at: self.execution.expires_at,
        }
    }

    /// The texts that are hidden wherever they stand, with what stands in their place: the longest first, so that none is
    /// broken by one that is part of it.
    fn wanted(&self, marks: &[&str]) -> Vec<(String, &'static str)> {
        let (mut marked, mut given) = (Vec::new(), Vec::new());
        for (name, value) in &self.execution.arguments {
            collect_marked(value, &within(marks, name), 0, &mut marked);
            collect_secrets(value, is_credential(name), &mut given);
        }
        let secrets = self.secrets.iter().cloned().map(|secret| (secret, SECRET));
        let marked = marked.into_iter().map(|text| (text, HIDDEN));
        let given = given.into_iter().map(|secret| (secret, SECRET));
        let mut wanted: Vec<_> = secrets.chain(marked).chain(given).take(MOST_WANTED).collect();
        // As they stand in JSON that is part of a text.
        let escaped: Vec<_> = wanted
            .iter()
            .map(|(text, shown)| (Value::from(text.as_str()).to_string().trim_matches('"').to_owned(), *shown))
            .filter(|escaped| !wanted.contains(escaped))
            .collect();
        wanted.extend(escaped);
        wanted.sort_by_key(|(text, _)| std::cmp::Reverse(text.len()));
        wanted
    }
}

/// What of a path is left after a name that it begins with: nothing if it ends there. Names may hold dots themselves.
fn below<'a>(path: &'a str, name: &str) -> Option<&'a str> {
    let rest = path.strip_prefix(name)?;
    if rest.is_empty() { Some(rest) } else { rest.strip_prefix('.') }
}

/// The marks that lead into a member.
fn within<'a>(marks: &[&'a str], name: &str) -> Vec<&'a str> {
    marks.iter().filter_map(|mark| below(mark, name)).collect()
}

/// The texts of headers, and of whatever has the name of a credential, in a `static_config`.
fn collect_secrets(value: &Value, secret: bool, secrets: &mut Vec<String>) {
    match value {
        Value::String(text) if secret => {
            // The scheme, `Bearer`, may be left out by whoever repeats it.
            let bare = text.split_once(' ').map(|(_scheme, bare)| bare);
            let texts = [Some(text.as_str()), bare].into_iter().flatten();
            secrets.extend(texts.filter(|text| text.len() >= SHORTEST_SECRET).map(str::to_owned));
        }
        Value::Array(items) => items.iter().for_each(|item| collect_secrets(item, secret, secrets)),
        Value::Object(members) => {
            for (name, value) in members {
                collect_secrets(value, secret || name == "headers" || is_credential(name), secrets);
            }
        }
        _ => {}
    }
}

/// The texts under marked fields.
fn collect_marked(value: &Value, marks: &[&str], depth: usize, marked: &mut Vec<String>) {
    if marks.is_empty() || marked.len() >= MOST_WANTED || depth > DEEPEST {
        return;
    }
    let all = marks.contains(&"");
    let own = match value {
        Value::String(text) if all => Some(text.trim().to_owned()),
        Value::Number(number) if all => Some(number.to_string()),
        Value::Array(items) => {
            for item in items {
                collect_marked(item, marks, depth + 1, marked);
            }
            None
        }
        Value::Object(members) => {
            for (name, value) in members {
                let below = if all { vec![""] } else { within(marks, name) };
                collect_marked(value, &below, depth + 1, marked);
            }
            None
        }
        _ => None,
    };
    marked.extend(own.filter(|text| (SHORTEST_MARKED..=WINDOW).contains(&text.len())));
}

/// A walk through a value that keeps what may be kept, as long as there is room.
struct Walk<'a> {
    wanted: &'a [(String, &'static str)],
    /// Bytes.
    left: usize,
}

impl Walk<'_> {
    fn value(&mut self, value: &Value, marks: &[&str], depth: usize) -> Value {
        match value {
            Value::Null | Value::Bool(_) => {
                self.take(4);
                value.clone()
            }
            Value::Number(number) => self.number(number),
            Value::String(text) => self.text(text).into(),
            Value::Array(_) | Value::Object(_) if depth >= DEEPEST => CUT.into(),
            Value::Array(items) => {
                let mut kept = Vec::new();
                for item in items {
                    if self.left == 0 {
                        kept.push(format!("{CUT} {} more", items.len() - kept.len()).into());
                        break;
                    }
                    self.take(2);
                    kept.push(self.value(item, marks, depth + 1));
                }
                Value::Array(kept)
            }
            Value::Object(members) => Value::Object(self.members(members, marks, depth, |_name| None)),
        }
    }

    /// `instead` says what stands in place of a member's value, whatever it is.
    fn members(
        &mut self,
        members: &Map<String, Value>,
        marks: &[&str],
        depth: usize,
        instead: impl Fn(&str) -> Option<&'static str>,
    ) -> Map<String, Value> {
        let mut kept = Map::new();
        for (index, (name, value)) in members.iter().enumerate() {
            if self.left == 0 {
                kept.insert(CUT.into(), format!("{} more", members.len() - index).into());
                break;
            }
            let marks = within(marks, name);
            let value = match value {
                _ if let Some(instead) = instead(name) => instead.into(),
                Value::Null | Value::Bool(_) if !marks.contains(&"") => value.clone(),
                _ if marks.contains(&"") => HIDDEN.into(),
                _ if is_credential(name) => SECRET.into(),
                _ => self.value(value, &marks, depth + 1),
            };
            let mut shown = self.name(name);
            if kept.contains_key(&shown) {
                // Two names of which the same is left.
                shown = format!("{shown} {index}");
            }
            kept.insert(shown, value);
        }
        kept
    }

    fn names(&mut self, names: &[String]) -> Vec<String> {
        let mut kept: Vec<String> = names.iter().take(MOST_IGNORED).map(|name| self.name(name)).collect();
        if names.len() > MOST_IGNORED {
            kept.push(format!("{CUT} {} more", names.len() - MOST_IGNORED));
        }
        kept
    }

    /// DynamoDB takes no empty names.
    fn name(&mut self, name: &str) -> String {
        self.take(name.len().clamp(4, LONGEST_NAME));
        let mut kept = self.clean(window(name, WINDOW));
        if kept.len() > LONGEST_NAME {
            kept.truncate(kept.floor_char_boundary(LONGEST_NAME));
            kept.push_str(CUT);
        }
        if kept.is_empty() { "[no name]".into() } else { kept }
    }

    /// A number as it is if it can be no phone number and the table takes it.
    fn number(&mut self, number: &Number) -> Value {
        let text = number.to_string();
        self.take(text.len());
        let size = number.as_f64().map_or(f64::INFINITY, f64::abs);
        // Nobody writes a phone number with a decimal point into JSON; places and measures are.
        let measure = number.is_f64() && (1e-6..1e5).contains(&size) && size.fract() != 0.0;
        let clean = if measure { self.without_wanted(&text) } else { self.clean(window(&text, WINDOW)) };
        let storable = size == 0.0 || (1e-130..=9.9e125).contains(&size);
        if clean == text && storable { number.clone().into() } else { clean.into() }
    }

    fn text(&mut self, text: &str) -> String {
        let most = WINDOW.min(self.left.saturating_mul(WINDOWS));
        let mut kept = self.clean(window(text, most));
        let mut cut = text.len() > most;
        if kept.len() > self.left {
            kept.truncate(kept.floor_char_boundary(self.left));
            cut = true;
        }
        self.take(kept.len().max(4));
        if !cut {
            return kept;
        }
        let kept = kept.trim_end();
        if kept.is_empty() { CUT.into() } else { format!("{kept}… {CUT}") }
    }

    fn clean(&self, text: &str) -> String {
        clean(&self.without_wanted(text))
    }

    fn without_wanted(&self, text: &str) -> String {
        self.wanted.iter().fold(text.to_owned(), |text, (wanted, shown)| {
            if text.contains(wanted.as_str()) { text.replace(wanted.as_str(), shown) } else { text }
        })
    }

    fn take(&mut self, bytes: usize) {
        self.left = self.left.saturating_sub(bytes);
    }
}

/// The beginning of a text that is looked at. It ends between words, and not within a number: what is cut in two could not
/// be told.
fn window(text: &str, most: usize) -> &str {
    if text.len() <= most {
        return text;
    }
    let (beginning, _) = text.split_at(text.floor_char_boundary(most));
    let (surely, last) = beginning.split_at(beginning.floor_char_boundary(most - most / 8));
    let whole =
        last.rfind(char::is_whitespace).map_or(surely, |end| beginning.get(..surely.len() + end).unwrap_or(surely));
    whole.trim_end_matches(|c: char| !c.is_alphabetic())
}

#[cfg(test)]
mod tests;
