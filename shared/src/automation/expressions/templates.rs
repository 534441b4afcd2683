//! Templates in texts: `Alert: {{event.text}} from {{event.user}}`.
//!
//! A template holds a path, or an [`Expression`]. If it is the whole text, it keeps the type of its value; within other text it
//! yields text. There are no blocks.

use std::borrow::Cow;

use serde_json::Value;

use super::{
    data::Data,
    expression::{Expression, Failed},
    path::Path,
    work::{MOST_FILLED_IN, OverBound, PARSING, Work, bytes},
};
use crate::{automation::definition::diagnostics::Code, cut::cut, placeholder::Placeholder};

/// Replaces a missing value.
pub const NO_DATA: &str = "[No available data]";

/// Bytes of a quoted template.
const LONGEST_EXCERPT: usize = 80;
/// Reported per text.
const MOST_FAULTS: usize = 5;

#[derive(Debug, Clone, PartialEq)]
pub struct Template {
    parts: Vec<Part>,
}

#[derive(Debug, Clone, PartialEq)]
enum Part {
    Text(String),
    Path(Path),
    Expression(Expression),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TemplateError {
    pub code: Code,
    /// The template as written, cut.
    pub excerpt: String,
    /// To follow the excerpt.
    pub problem: String,
}

impl Template {
    /// Parses a text in one pass; faulty templates are left out of the parts.
    pub fn parse(text: &str) -> (Self, Vec<TemplateError>) {
        let (mut parts, mut faults, mut rest) = (Vec::new(), Vec::new(), text);
        while let Some(Placeholder { before, opened, closed }) = Placeholder::first_in(rest) {
            if faults.len() >= MOST_FAULTS {
                break;
            }
            if !before.is_empty() {
                parts.push(Part::Text(before.to_owned()));
            }
            let Some((inside, after)) = closed else {
                faults.push(fault(Code::UnclosedTemplate, &format!("{{{{{opened}"), "has no }} at its end"));
                return (Self { parts }, faults);
            };
            match read(inside) {
                Ok(part) => parts.push(part),
                Err((code, problem)) => faults.push(fault(code, &format!("{{{{{inside}}}}}"), &problem)),
            }
            rest = after;
        }
        if !rest.is_empty() {
            parts.push(Part::Text(rest.to_owned()));
        }
        (Self { parts }, faults)
    }

    /// The paths of all templates, those within expressions included.
    pub fn paths(&self) -> impl Iterator<Item = &Path> {
        self.parts.iter().flat_map(|part| match part {
            Part::Path(path) => std::slice::from_ref(path),
            Part::Expression(expression) => expression.paths(),
            Part::Text(_) => &[],
        })
    }

    /// Without `default` or another word of the author for a missing value.
    pub fn needed(&self) -> impl Iterator<Item = &Path> {
        self.parts.iter().flat_map(|part| match part {
            Part::Path(path) => std::slice::from_ref(path),
            Part::Expression(expression) => expression.needed(),
            Part::Text(_) => &[],
        })
    }

    /// Whether a single expression is the whole text.
    pub fn is_expression(&self) -> bool {
        matches!(&self.parts[..], [Part::Expression(_)])
    }

    /// The path, if a single template with a path is the whole text.
    pub fn lone(&self) -> Option<&Path> {
        match &self.parts[..] {
            [Part::Path(path)] => Some(path),
            _ => None,
        }
    }

    fn evaluate(&self, data: &Data<'_>, room: &mut Room<'_>) -> Result<Value, Unfilled> {
        if let [part @ (Part::Path(_) | Part::Expression(_))] = &self.parts[..] {
            let value = part.value(data, room)?.unwrap_or_else(|| Cow::Owned(NO_DATA.into()));
            room.take(&value)?;
            return Ok(value.into_owned());
        }
        let mut whole = String::new();
        for part in &self.parts {
            let text = match part {
                Part::Text(text) => Cow::Borrowed(text.as_str()),
                _ => match part.value(data, room)? {
                    Some(Cow::Borrowed(Value::String(text))) => text.as_str().into(),
                    Some(Cow::Owned(Value::String(text))) => text.into(),
                    Some(other) if !other.is_null() => other.to_string().into(),
                    _ => NO_DATA.into(),
                },
            };
            room.take_bytes(text.len())?;
            whole.push_str(&text);
        }
        Ok(whole.into())
    }
}

impl Part {
    fn value<'d>(&self, data: &'d Data<'_>, room: &mut Room<'_>) -> Result<Option<Cow<'d, Value>>, Unfilled> {
        let value = match self {
            Self::Text(_) => return Ok(None),
            Self::Path(path) => {
                let found = data.get(path);
                room.work.take(found.as_deref().map_or(0, bytes))?;
                found
            }
            Self::Expression(expression) => {
                let value = expression.evaluate(data, room.bytes, room.work).map_err(|failed| match failed {
                    Failed::TooLarge => Unfilled::TooLarge,
                    Failed::TooMuchWork => Unfilled::TooMuchWork,
                    Failed::Because(problem) => {
                        let excerpt = cut(format!("{{{{{}}}}}", expression.as_str()), LONGEST_EXCERPT);
                        Unfilled::Expression(format!("The expression {excerpt} {problem}."))
                    }
                })?;
                value.map(Cow::Owned)
            }
        };
        if value.as_deref().is_none_or(Value::is_null) {
            room.found_nothing_for(self);
        }
        Ok(value)
    }

    fn as_written(&self) -> &str {
        match self {
            Self::Text(text) => text,
            Self::Path(path) => path.as_str(),
            Self::Expression(expression) => expression.as_str(),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unfilled {
    TooLarge,
    TooMuchWork,
    /// An expression failed; the sentence that says so.
    Expression(String),
}

impl Unfilled {
    /// The sentence that says so; `too_large` gives the one about the size limit.
    pub fn in_words(self, too_large: impl FnOnce() -> String) -> String {
        match self {
            Self::TooLarge => too_large(),
            Self::TooMuchWork => {
                let most = MOST_FILLED_IN / 1_000_000;
                format!(
                    "Its templates were not filled in: with this data they read more than {most} MB. Use fewer expressions or shorter lists."
                )
            }
            Self::Expression(why) => why,
        }
    }
}

impl From<OverBound> for Unfilled {
    fn from(_over: OverBound) -> Self {
        Self::TooMuchWork
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct Filled {
    pub value: Value,
    /// Templates that resolve to nothing, as written, without duplicates.
    pub empty: Vec<String>,
}

/// Bytes and work left for filled-in values.
struct Room<'w> {
    bytes: usize,
    work: &'w Work,
    empty: Vec<String>,
}

impl Room<'_> {
    fn found_nothing_for(&mut self, part: &Part) {
        let template = format!("{{{{{}}}}}", part.as_written());
        if !self.empty.contains(&template) {
            self.empty.push(template);
        }
    }

    fn take_bytes(&mut self, bytes: usize) -> Result<(), Unfilled> {
        self.bytes = self.bytes.checked_sub(bytes).ok_or(Unfilled::TooLarge)?;
        Ok(())
    }

    fn take(&mut self, value: &Value) -> Result<(), Unfilled> {
        self.take_bytes(match value {
            Value::String(text) => text.len(),
            other => other.to_string().len(),
        })
    }
}

/// Fills in all templates, at any depth, with at most `bytes` bytes of values: a short template may expand to a long text many
/// times over. Member names stay as they are.
///
/// # Errors
/// If the values are larger, the templates exceed the work left, or an expression fails.
pub fn filled_in_within(value: &Value, data: &Data<'_>, bytes: usize, work: &Work) -> Result<Filled, Unfilled> {
    let mut empty = Vec::new();
    let value = filled_in_noting(value, data, bytes, work, &mut empty)?;
    Ok(Filled { value, empty })
}

/// As [`filled_in_within`]. After a failure, `empty` has the empty templates up to it.
pub(in crate::automation) fn filled_in_noting(
    value: &Value,
    data: &Data<'_>,
    bytes: usize,
    work: &Work,
    empty: &mut Vec<String>,
) -> Result<Value, Unfilled> {
    let mut room = Room { bytes, work, empty: Vec::new() };
    let filled = fill(value, data, &mut room);
    *empty = room.empty;
    filled
}

/// All texts at any depth, without member names.
pub(in crate::automation) fn texts_of(value: &Value) -> Vec<&str> {
    match value {
        Value::String(text) => vec![text],
        Value::Array(items) => items.iter().flat_map(texts_of).collect(),
        Value::Object(members) => members.values().flat_map(texts_of).collect(),
        _ => Vec::new(),
    }
}

fn fill(value: &Value, data: &Data<'_>, room: &mut Room<'_>) -> Result<Value, Unfilled> {
    match value {
        Value::String(text) if text.contains("{{") => {
            room.work.take(PARSING * text.len())?;
            Template::parse(text).0.evaluate(data, room)
        }
        Value::Array(items) => items.iter().map(|item| fill(item, data, room)).collect(),
        Value::Object(members) => {
            members.iter().map(|(name, value)| Ok((name.clone(), fill(value, data, room)?))).collect()
        }
        other => {
            room.take(other)?;
            Ok(other.clone())
        }
    }
}

fn fault(code: Code, excerpt: &str, problem: &str) -> TemplateError {
    TemplateError { code, excerpt: cut(excerpt.to_owned(), LONGEST_EXCERPT), problem: problem.to_owned() }
}

fn read(inside: &str) -> Result<Part, (Code, String)> {
    let plain = inside.trim();
    if inside.contains("{{") {
        return Err((Code::NestedTemplate, "has a template within a template".to_owned()));
    }
    let block = plain.starts_with(['#', '/', '^', '>', '!', '&', '{']) || plain == "else" || plain.starts_with("else ");
    if block {
        return Err((Code::HandlebarsBlock, "is a Handlebars block".to_owned()));
    }
    let no_path = match Path::parse(plain) {
        Ok(path) => return Ok(Part::Path(path)),
        Err(problem) => problem,
    };
    if plain.is_empty() {
        return Err((Code::InvalidTemplate, "is empty".to_owned()));
    }
    Expression::parse(plain).map(Part::Expression).map_err(|problem| {
        (Code::InvalidTemplate, format!("is not a path: it {no_path}; as an expression it {problem}"))
    })
}

#[cfg(test)]
mod tests {
    use jiff::tz::TimeZone;
    use proptest::prelude::*;
    use serde_json::json;

    use super::{
        super::data::{Lowered, Outputs, date_names, is_date},
        *,
    };

    fn value(text: &str) -> Value {
        let variables = json!({"team": "ops", "limit": 5, "event": {"user": "from variables"}});
        let mut outputs = Outputs::default();
        outputs.give("found", json!({"rows": [{"n": 1}, {"n": 2}], "ok": true}));
        outputs.give("team", json!("from outputs"));
        outputs.lack("lost", "look", "failed");
        let trigger =
            json!({"event": {"text": "urgent"}, "score": 7, "empty": null, "found": "from the trigger", "lost": "x"});
        let user = json!({"name": "Ada", "timezone": "Europe/Berlin"});
        let data = Data {
            variables: variables.as_object().unwrap(),
            outputs: &outputs,
            trigger_data: &Lowered::of(&trigger),
            user: &user,
            // A Sunday; 23:30 UTC is Monday in Berlin.
            now: "2026-11-22T23:30:05Z".parse().unwrap(),
            zone: TimeZone::get("Europe/Berlin").unwrap(),
            item: None,
        };
        let work = Work::of(MOST_FILLED_IN);
        filled_in_within(&json!({"deep": [text]}), &data, usize::MAX, &work).unwrap().value["deep"][0].clone()
    }

    #[test]
    fn a_template_that_is_the_whole_text_keeps_the_type_and_text_around_it_makes_text() {
        for (text, expected) in [
            ("{{score}}", json!(7)),
            ("{{ score }}", json!(7)),
            ("{{trigger_data.score}}", json!(7)),
            ("{{limit}}", json!(5)),
            ("Score {{score}}!", json!("Score 7!")),
            ("{{score}}{{limit}}", json!("75")),
            ("{{found.rows}}", json!([{"n": 1}, {"n": 2}])),
            ("rows: {{found.rows}}", json!(r#"rows: [{"n":1},{"n":2}]"#)),
            ("{{found.rows[-1].n}}", json!(2)),
            ("{{found.rows.0.n}}", json!(1)),
            ("{{found.ok}}", json!(true)),
            ("{{user.name}} {{team}}", json!("Ada ops")),
            ("{{event.user}}", json!("from variables")),
            ("{{trigger_data.event.text}}", json!("urgent")),
            ("{{event.text}}", json!(NO_DATA)),
            ("{{nothing.there}}", json!(NO_DATA)),
            ("{{lost}}", json!(NO_DATA)),
            ("{{trigger_data.lost}}", json!("x")),
            ("<{{nothing}}> <{{empty}}>", json!("<[No available data]> <[No available data]>")),
            ("{{empty}}", json!(null)),
            ("no template }} here {", json!("no template }} here {")),
        ] {
            assert_eq!(value(text), expected, "{text}");
        }
    }

    #[test]
    fn filled_in_values_have_a_size_limit() {
        let variables = json!({"long": "x".repeat(1_000)});
        let data = Data {
            variables: variables.as_object().unwrap(),
            outputs: &Outputs::default(),
            trigger_data: &Lowered::default(),
            user: &Value::Null,
            now: "2026-11-22T23:30:05Z".parse().unwrap(),
            zone: TimeZone::UTC,
            item: None,
        };
        for value in [json!({"a": ["{{long}}", "{{long}}"]}), json!("{{long}}{{long}}"), json!("<{{long}} {{long}}>")] {
            let filled = |bytes| filled_in_within(&value, &data, bytes, &Work::of(MOST_FILLED_IN));
            assert_eq!(filled(1_999), Err(Unfilled::TooLarge), "{value}");
            assert!(filled(2_010).is_ok(), "{value}");
        }
    }

    #[test]
    fn dates_are_the_users_unless_they_say_utc() {
        for (name, expected) in [
            ("today", "2026-11-23"),
            ("today_local", "2026-11-23"),
            ("today_utc", "2026-11-22"),
            ("tomorrow", "2026-11-24"),
            ("yesterday", "2026-11-22"),
            ("two_days_ago", "2026-11-21"),
            ("this_week_start", "2026-11-23"),
            ("this_week_end", "2026-11-29"),
            ("this_week_start_utc", "2026-11-16"),
            ("this_week_end_utc", "2026-11-22"),
            ("now", "2026-11-23T00:30:05+01:00"),
            ("now_utc", "2026-11-22T23:30:05Z"),
            ("now_minus_1h_utc", "2026-11-22T22:30:05Z"),
            ("now_minus_24h_local", "2026-11-22T00:30:05+01:00"),
        ] {
            assert_eq!(value(&format!("{{{{{name}}}}}")), json!(expected), "{name}");
        }
        assert_eq!(date_names().filter(|name| is_date(name)).count(), 33);
        assert!(!is_date("today_tomorrow") && !is_date("_utc"));
    }

    #[test]
    fn each_faulty_template_has_its_own_code() {
        for (text, code) in [
            ("{{#each items}}", Code::HandlebarsBlock),
            ("{{/each}}", Code::HandlebarsBlock),
            ("{{else}}", Code::HandlebarsBlock),
            ("{{> partial}}", Code::HandlebarsBlock),
            ("{{{raw}}}", Code::HandlebarsBlock),
            ("Hello {{name", Code::UnclosedTemplate),
            ("{{ a {{b}} }}", Code::NestedTemplate),
            ("{{}}", Code::InvalidTemplate),
            ("{{upper name}}", Code::InvalidTemplate),
            ("{{name | uper}}", Code::InvalidTemplate),
            ("{{a +}}", Code::InvalidTemplate),
            ("{{else | upper}}", Code::HandlebarsBlock),
        ] {
            let (_, faults) = Template::parse(text);
            assert_eq!(faults.first().map(|fault| fault.code), Some(code), "{text}");
        }
        // Work is bounded for any input.
        let (_, faults) = Template::parse(&"{{".repeat(500_000));
        assert_eq!(faults.len(), 1);
        let (_, faults) = Template::parse(&"{{a b}}".repeat(100_000));
        assert_eq!(faults.len(), MOST_FAULTS);
        assert!(faults.iter().all(|fault| fault.excerpt.len() < 200));
    }

    proptest! {
        #[test]
        fn any_text_is_read(text in "[a{}\\[\\]. #]{0,40}") {
            let (template, faults) = Template::parse(&text);
            prop_assert!(faults.len() <= MOST_FAULTS);
            prop_assert!(template.parts.len() <= text.len() + 1);
        }
    }
}
