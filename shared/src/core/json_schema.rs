//! Validates JSON from models against JSON Schemas of other authors.
//!
//! The `jsonschema` crate validates; this module restricts the schemas, bounds the work, and words the problems
//! (docs/adr/0010-checking-final-answers.md). A schema is read as draft 2020-12, or as 2019-09 if `items` is a list, draft 7's
//! form, which 2019-09 still accepts. `$schema` is only an annotation. Known keywords:
//!
//! | of | keywords |
//! |---|---|
//! | any value | `type`, `enum`, `const`, `nullable` |
//! | numbers | `minimum`, `maximum`, `exclusiveMinimum`, `exclusiveMaximum`, `multipleOf`, `format` |
//! | text | `minLength`, `maxLength` (in characters), `pattern`, `format`, `contentMediaType` (`application/json`) |
//! | lists | `items`, `additionalItems`, `prefixItems`, `contains`, `minContains`, `maxContains`, `minItems`, `maxItems`, `uniqueItems` |
//! | objects | `properties`, `patternProperties`, `additionalProperties`, `propertyNames`, `required`, `dependentRequired`, `dependentSchemas`, `minProperties`, `maxProperties` |
//! | combined | `allOf`, `anyOf`, `oneOf`, `not`, `if`, `then`, `else`, `true` and `false` as schemas |
//! | references | `$ref` to `#` or a local JSON pointer, `$defs`, `definitions` |
//! | notes | `title`, `description`, `default`, `example`, `examples`, `deprecated`, `readOnly`, `writeOnly`, `$schema`, `$comment`, `$id` of the whole |
//!
//! Any other keyword is rejected at compilation, and so is one without effect: every rule of the author is checked or reported.
//! `format` is checked ([`mod@format`]). `nullable: true` is `OpenAPI`'s: the `type` beside it also admits null. A `pattern` runs
//! in linear time, so look-around and back-references are unavailable.

mod assertions;
mod cost;
pub mod format;
mod reading;
#[cfg(test)]
mod tests;
mod wording;

use std::fmt;

use jsonschema::{Draft, PatternOptions, Validator};
use serde_json::Value;

use self::{
    assertions::{Format, JsonText, UniqueItems},
    cost::{Cost, Costs},
    reading::Reading,
    wording::Wording,
};
use crate::error::Problems;

/// Nesting of an instance, as in `serde_json`.
const DEEPEST: usize = 128;

/// Violations per answer; a model corrects only a few at a time.
const MOST_TOLD: usize = 20;

const MOST_PROBLEMS: usize = 50;

/// Bytes of a pattern's cache, beside the pattern itself.
const PATTERN_CACHE: usize = 128 * 1024;

pub fn properties(schema: &Value) -> impl Iterator<Item = (&String, &Value)> {
    schema.get("properties").and_then(Value::as_object).into_iter().flatten()
}

#[derive(Debug, Clone)]
pub struct JsonSchema {
    schema: Value,
    validator: Validator,
    costs: Costs,
}

/// A mismatch, worded for models.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// `orders[0].price`; empty for the whole.
    pub path: String,
    /// The same as a JSON pointer: `/orders/0/price`.
    pub pointer: String,
    /// `must be a number, not text`
    pub problem: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = if self.path.is_empty() { "the whole" } else { &self.path };
        write!(f, "{path}: {}", self.problem)
    }
}

impl JsonSchema {
    /// Compiles a schema if every validation against it ends soon. Call it before storing a schema.
    ///
    /// # Errors
    /// All unsupported parts, by place (`properties.x.type`; empty for the whole).
    pub fn compile(schema: &Value) -> Result<Self, Problems> {
        let reading = Reading::of(schema)?;
        let draft = reading.draft();
        // The draft's meta-schema checks the values of keywords.
        let meta = match draft {
            Draft::Draft201909 => jsonschema::draft201909::meta::validator(),
            _ => jsonschema::draft202012::meta::validator(),
        };
        let wrong = Wording { schema: &Value::Null, instance: schema }.all(meta.iter_errors(schema));
        let mut problems = Problems::default();
        let own = reading.problems.iter().map(|own| (own.field.clone(), own.problem.clone()));
        for (field, problem) in own.chain(wrong.into_iter().map(|violation| (violation.path, violation.problem))) {
            if problems.iter().count() < MOST_PROBLEMS && problems.iter().all(|other| other.field != field) {
                problems.add(field, problem);
            }
        }
        if !problems.is_empty() {
            return Err(problems);
        }
        let (costs, prepared) = reading.finish()?;
        let validator = options(draft, reading::LARGEST_PATTERN).build(&prepared).map_err(|error| {
            let place = wording::place(schema, error.instance_path().as_str());
            one(place, format!("cannot be checked: its keyword {} is not usable", error.kind().keyword()))
        })?;
        Ok(Self { schema: prepared, validator, costs })
    }

    /// All mismatches: empty if `instance` is valid; at most twenty, and a last one with the number of the others.
    pub fn validate(&self, instance: &Value) -> Vec<Violation> {
        let whole = |problem: String| vec![Violation { path: String::new(), pointer: String::new(), problem }];
        if extent(instance).0 > DEEPEST {
            return whole(format!("must not be nested more than {DEEPEST} levels deep"));
        }
        let demand = Cost::of(&self.costs, instance);
        if demand.is_too_deep() {
            return whole("is nested too deeply to be checked; make it flatter".to_owned());
        }
        if demand.exceeds_limit() {
            return whole("is too large to be checked; make it shorter".to_owned());
        }
        if self.validator.is_valid(instance) {
            return Vec::new();
        }
        if demand.is_too_much_to_explain() {
            return whole("does not fit, and is too large for its problems to be listed; make it shorter".to_owned());
        }
        Wording { schema: &self.schema, instance }.all(self.validator.iter_errors(instance))
    }
}

/// Configures the crate: no network access, our own `format` and `uniqueItems`, linear patterns.
fn options(draft: Draft, largest_pattern: usize) -> jsonschema::ValidationOptions<'static> {
    jsonschema::options()
        .offline()
        .with_draft(draft)
        .with_keyword("format", |_, value, _| Ok(Box::new(Format(value.as_str().unwrap_or_default().to_owned()))))
        .with_keyword("contentMediaType", |_, _, _| Ok(Box::new(JsonText)))
        .with_keyword("uniqueItems", |_, value, _| Ok(Box::new(UniqueItems(value == &Value::Bool(true)))))
        .with_pattern_options(PatternOptions::regex().size_limit(largest_pattern).dfa_size_limit(PATTERN_CACHE))
}

fn one(field: impl Into<String>, problem: impl Into<String>) -> Problems {
    let mut problems = Problems::default();
    problems.add(field, problem);
    problems
}

/// Depth and approximate bytes of a value. Not recursive, because the value is unchecked input.
pub(crate) fn extent(value: &Value) -> (usize, usize) {
    let (mut deepest, mut bytes) = (0, 0);
    let mut ahead = vec![(value, 1)];
    while let Some((value, depth)) = ahead.pop() {
        deepest = deepest.max(depth);
        bytes += 2;
        match value {
            Value::String(text) => bytes += text.len(),
            Value::Array(items) => ahead.extend(items.iter().map(|item| (item, depth + 1))),
            Value::Object(members) => {
                bytes += members.keys().map(|name| name.len() + 3).sum::<usize>();
                ahead.extend(members.values().map(|member| (member, depth + 1)));
            }
            Value::Number(_) => bytes += 4,
            Value::Null | Value::Bool(_) => bytes += 3,
        }
    }
    (deepest, bytes)
}
