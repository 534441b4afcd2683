//! JSON that a model made, held against a JSON Schema that somebody else wrote (docs/adr/0010-checking-final-answers.md).
//!
//! The dialect is what is used of draft 2020-12, each keyword with the draft's meaning:
//!
//! | of | keywords |
//! |---|---|
//! | any value | `type`, `enum`, `const`, `nullable` |
//! | numbers | `minimum`, `maximum`, `exclusiveMinimum`, `exclusiveMaximum`, `multipleOf`, `format` |
//! | text | `minLength`, `maxLength` (in characters), `pattern`, `format` |
//! | lists | `items`, `prefixItems`, `contains`, `minContains`, `maxContains`, `minItems`, `maxItems`, `uniqueItems` |
//! | objects | `properties`, `patternProperties`, `additionalProperties`, `propertyNames`, `required`, `dependentRequired`, `minProperties`, `maxProperties` |
//! | combined | `allOf`, `anyOf`, `oneOf`, `not`, `if`, `then`, `else`, `true` and `false` as schemas |
//! | references | `$ref` to `#` or a local JSON pointer, `$defs`, `definitions` |
//! | notes | `title`, `description`, `default`, `example`, `examples`, `deprecated`, `readOnly`, `writeOnly`, `$schema`, `$comment`, `$id` of the whole |
//!
//! Draft 7's list in `items`, with `additionalItems`, means `prefixItems` and `items`. What stands beside a `$ref` counts, as
//! since 2019-09. `format` is checked, not a note ([`mod@format`]). A `pattern` is what `regex-lite` reads: no look-around, no
//! back reference, `\d \w \s` are ASCII. `nullable: true` is `OpenAPI`'s: the `type` beside it admits null too.
//!
//! Anything else is refused when the schema is compiled, and so is a keyword that can have no effect: what an author wrote
//! is checked or they are told. The schema, the depth and the work are bounded, so that neither side can keep us busy.

mod check;
mod compile;
pub mod format;
mod number;
#[cfg(test)]
mod tests;
mod wording;

use std::{collections::BTreeMap, fmt};

use regex_lite::Regex;
use serde_json::{Number, Value};

use crate::error::Problems;

/// How deep an instance may be nested, as deep as `serde_json` reads.
const DEEPEST: usize = 128;

/// The most violations that are told; a model mends a few at a time.
const MOST_TOLD: usize = 20;

/// A schema that can be checked.
#[derive(Debug, Clone)]
pub struct JsonSchema {
    /// The schema itself is the first; they refer to each other by index.
    nodes: Vec<Node>,
}

/// What does not fit, in words that a model can act on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// `orders[0].price`; empty for the whole.
    pub path: String,
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
    /// Reads a schema.
    ///
    /// # Errors
    /// Everything in it that cannot be checked, by its place (`properties.x.type`; empty for the whole).
    pub fn compile(schema: &Value) -> Result<Self, Problems> {
        compile::compile(schema).map(|nodes| Self { nodes })
    }

    /// What of `instance` does not fit: empty if it fits, at most twenty and a last one that counts the rest.
    pub fn validate(&self, instance: &Value) -> Vec<Violation> {
        check::check(&self.nodes, instance)
    }
}

/// One schema: every rule must hold.
#[derive(Debug, Clone, Default)]
struct Node {
    rules: Vec<Rule>,
    /// What looking at a value costs, before what depends on the value.
    weight: u64,
}

#[derive(Debug, Clone)]
enum Rule {
    /// The schema `false`.
    Never,
    Types(Vec<Type>),
    /// `enum`; `const` is an `enum` of one.
    OneOf(Vec<Value>),
    Bound(Bound, Number),
    MultipleOf(Number),
    /// Length of a text, a list or an object.
    Size(Measured, Size),
    Pattern(Pattern),
    Format(&'static str),
    Required(Vec<String>),
    /// These names ask for those others.
    RequiredWith(Vec<(String, Vec<String>)>),
    Names(usize),
    Members(Members),
    Items {
        first: Vec<usize>,
        rest: Option<usize>,
    },
    Contains {
        schema: usize,
        size: Size,
    },
    Unique,
    Reference(usize),
    All(Vec<usize>),
    Any(Vec<usize>),
    One(Vec<usize>),
    /// The schema, and how it is written.
    Not(usize, String),
    When {
        condition: usize,
        then: Option<usize>,
        otherwise: Option<usize>,
    },
}

/// The schemas of an object's members.
#[derive(Debug, Clone)]
struct Members {
    properties: BTreeMap<String, usize>,
    patterns: Vec<(Pattern, usize)>,
    /// Of all others.
    rest: Option<usize>,
    /// There may be no others.
    closed: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Measured {
    Text,
    List,
    Object,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Size {
    least: u64,
    most: Option<u64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Bound {
    Minimum,
    Maximum,
    ExclusiveMinimum,
    ExclusiveMaximum,
}

#[derive(Debug, Clone)]
struct Pattern {
    regex: Regex,
    /// As the author wrote it.
    text: String,
    /// What a byte of text costs: regex-lite is linear in the text times its own size.
    per_byte: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Type {
    Null,
    Boolean,
    Integer,
    Number,
    String,
    Array,
    Object,
}

impl Type {
    const ALL: [(&str, Self); 7] = [
        ("string", Self::String),
        ("number", Self::Number),
        ("integer", Self::Integer),
        ("boolean", Self::Boolean),
        ("array", Self::Array),
        ("object", Self::Object),
        ("null", Self::Null),
    ];

    fn admits(self, value: &Value) -> bool {
        match (self, value) {
            // 3.0 is a whole number, in JSON Schema too.
            (Self::Integer, Value::Number(number)) => {
                !number.is_f64() || number.as_f64().is_some_and(|float| float.fract() == 0.0)
            }
            (Self::Null, Value::Null)
            | (Self::Boolean, Value::Bool(_))
            | (Self::Number, Value::Number(_))
            | (Self::String, Value::String(_))
            | (Self::Array, Value::Array(_))
            | (Self::Object, Value::Object(_)) => true,
            _ => false,
        }
    }

    const fn words(self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Boolean => "true or false",
            Self::Integer => "a whole number",
            Self::Number => "a number",
            Self::String => "text",
            Self::Array => "a list",
            Self::Object => "an object",
        }
    }
}

/// How deep a value is nested, and about how many bytes it is. Without recursion: nobody has looked at it yet.
fn extent(value: &Value) -> (usize, usize) {
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
