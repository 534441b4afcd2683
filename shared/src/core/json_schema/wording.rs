//! Words the crate's errors for people and models: place, value, expectation.
//!
//! A problem is one short line; a value is shown by its kind, except numbers.

use std::fmt::{self, Write};

use jsonschema::{
    JsonType, ValidationError,
    error::{TypeKind, ValidationErrorKind as Kind},
};
use serde_json::Value;

use super::{MOST_TOLD, Violation, assertions::duplicates};
use crate::fields::kind;

const LONGEST_VALUE: usize = 60;
const LONGEST_NAME: usize = 60;
const LONGEST_LIST: usize = 300;
const LONGEST_SCHEMA: usize = 120;
/// In steps; a longer path omits its middle.
const LONGEST_PATH: usize = 20;

/// A constant distinguishes alternatives, so another constant is worse than any other mistake.
const FAR: u64 = 20;

/// The end of a problem about one alternative.
const CLOSEST: &str = "the closest)";

#[derive(Clone, Copy)]
pub(super) struct Wording<'w> {
    pub(super) schema: &'w Value,
    pub(super) instance: &'w Value,
}

#[derive(Default)]
struct Explained {
    violations: Vec<Violation>,
    /// Distance from the likely intention.
    distance: u64,
}

impl<'w> Wording<'w> {
    pub(super) fn all<'e>(self, errors: impl Iterator<Item = ValidationError<'e>>) -> Vec<Violation> {
        let (mut violations, mut more): (Vec<Violation>, usize) = (Vec::new(), 0);
        for violation in errors.flat_map(|error| self.told(&error).violations) {
            // Two paths may lead to the same schema.
            if violations.contains(&violation) {
                continue;
            }
            if violations.len() < MOST_TOLD {
                violations.push(violation);
            } else {
                more += 1;
            }
        }
        if more > 0 {
            let problem = format!("has {more} more problems");
            violations.push(Violation { path: String::new(), pointer: String::new(), problem });
        }
        violations
    }

    fn told(self, error: &ValidationError<'_>) -> Explained {
        let pointer = error.instance_path().as_str();
        let value = error.instance().as_ref();
        match error.kind() {
            Kind::AnyOf { context } | Kind::OneOfNotValid { context } => self.closest(context, pointer, value),
            Kind::Constant { .. } | Kind::FalseSchema => Explained { distance: FAR, ..self.plain(error) },
            _ => self.plain(error),
        }
    }

    fn plain(self, error: &ValidationError<'_>) -> Explained {
        let pointer = error.instance_path().as_str();
        let value = error.instance().as_ref();
        let here = |problem: String| vec![(String::new(), problem)];
        let problems: Vec<(String, String)> = match error.kind() {
            Kind::AdditionalProperties { unexpected } => {
                let known = self.known(error);
                let one = |name: &String| (step(name), format!("is not a property of the schema; {known}"));
                unexpected.iter().take(MOST_TOLD + 1).map(one).collect()
            }
            Kind::Required { property } => {
                let name = property.as_str().unwrap_or_default();
                vec![(step(name), self.required(error, name))]
            }
            Kind::PropertyNames { error: of_name } => {
                let inner = self.told(of_name).violations.into_iter();
                let name = step(of_name.instance().as_str().unwrap_or_default());
                inner.map(|one| (name.clone(), format!("has a name that {}", one.problem))).collect()
            }
            Kind::Custom { keyword, .. } if keyword == "uniqueItems" => duplicates(value)
                .take(MOST_TOLD + 1)
                .map(|(first, own)| (format!("/{own}"), format!("must not be the same as the item [{first}]")))
                .collect(),
            Kind::Custom { message, .. } => here(message.clone()),
            kind => here(self.sentence(kind, error, value)),
        };
        let violation = |(step, problem)| {
            let pointer = format!("{pointer}{step}");
            Violation { path: place(self.instance, &pointer), pointer, problem }
        };
        Explained { distance: problems.len() as u64, violations: problems.into_iter().map(violation).collect() }
    }

    fn sentence(self, kind: &Kind, error: &ValidationError<'_>, value: &Value) -> String {
        match kind {
            Kind::Type { kind } => format!("must be {}, not {}", types(kind), shown_kind(value)),
            Kind::Constant { expected_value } => format!("must be {}", Shown(expected_value)),
            Kind::Enum { options } => {
                let options = options.as_array().map(Vec::as_slice).unwrap_or_default();
                let of = if options.len() == 1 { "" } else { "one of " };
                format!("must be {of}{}", listed(options.iter().map(Shown)))
            }
            Kind::Minimum { limit } => format!("must be at least {limit}, not {value}"),
            Kind::Maximum { limit } => format!("must be at most {limit}, not {value}"),
            Kind::ExclusiveMinimum { limit } => format!("must be more than {limit}, not {value}"),
            Kind::ExclusiveMaximum { limit } => format!("must be less than {limit}, not {value}"),
            Kind::MultipleOf { multiple_of } => format!("must be a multiple of {multiple_of}, not {value}"),
            Kind::MinLength { limit } => sized("at least", *limit, "characters", value),
            Kind::MaxLength { limit } => sized("at most", *limit, "characters", value),
            Kind::MinItems { limit } => sized("at least", *limit, "items", value),
            Kind::MaxItems { limit } => sized("at most", *limit, "items", value),
            Kind::AdditionalItems { limit } => sized("at most", *limit as u64, "items", value),
            Kind::MinProperties { limit } => sized("at least", *limit, "properties", value),
            Kind::MaxProperties { limit } => sized("at most", *limit, "properties", value),
            Kind::Pattern { pattern } => format!("must match the pattern {}", bare(pattern)),
            Kind::FalseSchema => "is not allowed here".to_owned(),
            Kind::Not { schema } => format!("must not fit {}", short_schema(schema)),
            Kind::Contains => self.contains(error),
            Kind::OneOfMultipleValid { context } => {
                let fitting = context.iter().zip(1_usize..).filter(|(errors, _)| errors.is_empty());
                let fitting: Vec<String> = fitting.map(|(_, number)| number.to_string()).take(5).collect();
                format!("fits alternatives {} of oneOf, and must fit exactly one", fitting.join(" and "))
            }
            other => format!("does not fit the keyword {}", other.keyword()),
        }
    }

    /// The schema that contains the error's keyword.
    fn parent(self, error: &ValidationError<'_>) -> Option<&'w Value> {
        let (parent, _) = error.schema_path().as_str().rsplit_once('/')?;
        self.schema.pointer(parent)
    }

    /// The existing properties, to follow "is not a property of the schema; ".
    fn known(self, error: &ValidationError<'_>) -> String {
        let names = |keyword| self.parent(error)?.get(keyword)?.as_object().filter(|schemas| !schemas.is_empty());
        let list = |schemas: &serde_json::Map<String, Value>| listed(schemas.keys().map(|name| bare(name)));
        match (names("properties").map(list), names("patternProperties").map(list)) {
            (Some(names), None) => format!("known are {names}"),
            (Some(names), Some(patterns)) => format!("known are {names}, and names like {patterns}"),
            (None, Some(patterns)) => format!("names must be like {patterns}"),
            (None, None) => "it has none".to_owned(),
        }
    }

    /// Also names the property that requires the missing one.
    fn required(self, error: &ValidationError<'_>, name: &str) -> String {
        let because = error.schema_path().as_str().ends_with("/dependentRequired").then(|| {
            let asked = self.schema.pointer(error.schema_path().as_str())?.as_object()?.iter();
            let asks =
                |others: &Value| others.as_array().is_some_and(|others| others.iter().any(|other| other == name));
            asked
                .filter(|(_, others)| asks(others))
                .map(|(name, _)| name)
                .find(|name| error.instance().get(name).is_some())
        });
        match because.flatten() {
            Some(other) => format!("is required beside {} and missing", quoted(other)),
            None => "is required and missing".to_owned(),
        }
    }

    fn contains(self, error: &ValidationError<'_>) -> String {
        let parent = self.parent(error);
        let of = |keyword| parent.and_then(|parent| parent.get(keyword));
        let wanted = of("contains").map(short_schema).unwrap_or_default();
        match (error.schema_path().as_str().ends_with("/maxContains"), of("maxContains"), of("minContains")) {
            (true, Some(most), _) => format!("must have at most {most} items that fit {wanted}, and has more"),
            (_, _, Some(least)) => format!("must have at least {least} items that fit {wanted}, and has fewer"),
            _ => format!("must have at least 1 item that fits {wanted}, and has none"),
        }
    }

    /// The closest alternative, if none is valid.
    fn closest(self, alternatives: &[Vec<ValidationError<'static>>], pointer: &str, value: &Value) -> Explained {
        let count = alternatives.len();
        let here = place(self.instance, pointer);
        let end = format!(", not {}", shown_kind(value));
        let told = |errors: &Vec<ValidationError<'static>>| {
            errors.iter().map(|error| self.told(error)).fold(Explained::default(), |mut all, one| {
                all.distance = all.distance.saturating_add(one.distance);
                all.violations.extend(one.violations);
                all
            })
        };
        let others: Vec<Explained> = alternatives.iter().map(told).collect();
        // Another kind for all alternatives: "must be text or null, not true" suffices.
        let kind_wanted = |told: &Explained| match told.violations.as_slice() {
            [only] if only.path == here => only.problem.strip_suffix(&end)?.strip_prefix("must be ").map(str::to_owned),
            _ => None,
        };
        let wanted: Option<Vec<String>> = others.iter().map(kind_wanted).collect();
        if let Some(wanted) = wanted {
            let problem = format!("must be {}{end}", bare(&wanted.join(" or ")));
            return Explained {
                violations: vec![Violation { path: here, pointer: pointer.to_owned(), problem }],
                distance: 1,
            };
        }
        let closest =
            others.into_iter().zip(1_usize..).min_by_key(|(told, _)| (kind_wanted(told).is_some(), told.distance));
        let Some((mut closest, number)) = closest else { return Explained::default() };
        for violation in closest.violations.iter_mut().filter(|one| count > 1 && !one.problem.ends_with(CLOSEST)) {
            violation.problem = format!("{} (alternative {number} of {count}, {CLOSEST}", violation.problem);
        }
        closest
    }
}

fn types(kind: &TypeKind) -> String {
    let words = |one: JsonType| match one {
        JsonType::Null => "null",
        JsonType::Boolean => "true or false",
        JsonType::Integer => "a whole number",
        JsonType::Number => "a number",
        JsonType::String => "text",
        JsonType::Array => "a list",
        JsonType::Object => "an object",
    };
    match kind {
        TypeKind::Single(one) => words(*one).to_owned(),
        TypeKind::Multiple(all) => all.iter().map(words).collect::<Vec<_>>().join(" or "),
    }
}

fn sized(bound: &str, limit: u64, unit: &str, value: &Value) -> String {
    let count = match value {
        Value::String(text) => text.chars().count(),
        Value::Array(items) => items.len(),
        Value::Object(members) => members.len(),
        _ => 0,
    };
    let unit = match (limit, unit) {
        (1, "properties") => "property",
        (1, _) => unit.trim_end_matches('s'),
        _ => unit,
    };
    format!("must have {bound} {limit} {unit}, not {count}")
}

/// The kind of a value, or a number itself.
fn shown_kind(value: &Value) -> String {
    if value.is_number() { value.to_string() } else { kind(value).to_owned() }
}

fn short_schema(schema: &Value) -> String {
    shortened(LONGEST_SCHEMA, format_args!("{schema}"))
}

pub(super) fn step(name: &str) -> String {
    format!("/{}", name.replace('~', "~0").replace('/', "~1"))
}

/// A JSON pointer as `orders[0].price`; empty for the whole.
pub(super) fn place(root: &Value, pointer: &str) -> String {
    let steps: Vec<&str> = pointer.split('/').skip(1).collect();
    let left_out = LONGEST_PATH / 2..steps.len().saturating_sub(LONGEST_PATH / 2);
    let (mut text, mut value) = (String::new(), Some(root));
    for (index, step) in steps.iter().enumerate() {
        let name = step.replace("~1", "/").replace("~0", "~");
        let list = value.is_some_and(Value::is_array);
        value = match value {
            Some(Value::Array(items)) => name.parse().ok().and_then(|index: usize| items.get(index)),
            Some(value) => value.get(&name),
            None => None,
        };
        let plain = |letter: char| letter.is_alphanumeric() || "_-$".contains(letter);
        if left_out.contains(&index) {
            if index == left_out.start {
                text.push('…');
            }
        } else if list {
            let _ = write!(text, "[{name}]");
        } else if name.is_empty() || name.chars().count() > LONGEST_NAME || !name.chars().all(plain) {
            let _ = write!(text, "[{}]", quoted(&name));
        } else {
            let _ = write!(text, "{}{name}", if index == 0 { "" } else { "." });
        }
    }
    text
}

/// A value as JSON, cut.
pub(super) struct Shown<'v>(pub(super) &'v Value);

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&shortened(LONGEST_VALUE, format_args!("{}", self.0)))
    }
}

pub(super) fn quoted(text: &str) -> String {
    // Copies only the shown part.
    let start: String = text.chars().take(LONGEST_NAME + 1).collect();
    Shown(&Value::String(start)).to_string()
}

/// An author's text without quotes, cut.
fn bare(text: &str) -> String {
    let text = shortened(LONGEST_LIST, format_args!("{text}"));
    text.replace(char::is_control, " ")
}

/// `a, b, c`: as many as fit, then the total number.
fn listed<T: fmt::Display>(all: impl ExactSizeIterator<Item = T>) -> String {
    let count = all.len();
    let mut text = String::new();
    for one in all {
        if text.len() > LONGEST_LIST {
            let _ = write!(text, ", … ({count} in all)");
            break;
        }
        let separator = if text.is_empty() { "" } else { ", " };
        let _ = write!(text, "{separator}{one}");
    }
    text
}

/// Stops writing after `longest` characters.
fn shortened(longest: usize, text: fmt::Arguments<'_>) -> String {
    let mut short = Short { text: String::new(), left: longest };
    if short.write_fmt(text).is_err() {
        short.text.push('…');
    }
    short.text
}

struct Short {
    text: String,
    left: usize,
}

impl Write for Short {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for letter in text.chars() {
            self.left = self.left.checked_sub(1).ok_or(fmt::Error)?;
            self.text.push(letter);
        }
        Ok(())
    }
}
