//! Conditions: a clause `{path, op, value, case_insensitive?}`, or a group `{operator: AND|OR, clauses: […]}`. `any`, `all` and
//! `none` look through a list: their value is a condition about `item`.
//!
//! This file parses them; `comparison.rs` compares values, `decision.rs` decides clauses within a bound of work, and
//! [`Explanation`] tells why a clause holds.

mod comparison;
mod decision;
mod explanation;
mod pattern;
#[cfg(test)]
mod tests;

use serde_json::{Value, json};

use super::path::Path;
use crate::{
    automation::{
        definition::{
            diagnostics::{Code, Diagnostic, Diagnostics, child},
            fields::Members,
        },
        nearest,
    },
    fields::kind,
    names::Names,
};

pub(in crate::automation) use comparison::is_number;
pub use explanation::{Explained, ExplainedClause, Explanation};
use pattern::Pattern;

const DEEPEST: usize = 10;
const MOST_CLAUSES: usize = 100;

const SHAPE: &str =
    "a clause {\"path\", \"op\", \"value\"} or a group {\"operator\": \"AND\" or \"OR\", \"clauses\": [...]}";

#[derive(Debug, Clone, PartialEq)]
pub enum Condition {
    Clause(Clause),
    All(Vec<Condition>),
    Any(Vec<Condition>),
}

#[derive(Debug, Clone, PartialEq)]
pub struct Clause {
    /// JSON pointer into the definition.
    pub pointer: String,
    pub path: Path,
    pub operator: Operator,
    pub value: Value,
    /// Of `any`, `all` and `none`: the value, parsed.
    pub of_item: Option<Box<Condition>>,
    /// Of `matches`: the value, compiled.
    pub pattern: Option<Pattern>,
    pub case_insensitive: bool,
}

struct Reader<'d> {
    count: usize,
    depth: usize,
    /// Within a condition about an item of a list.
    in_list: bool,
    diagnostics: &'d mut Diagnostics,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Names)]
#[serde(rename_all = "snake_case")]
pub enum Operator {
    #[serde(rename = "<")]
    Less,
    #[serde(rename = ">")]
    Greater,
    #[serde(rename = "<=")]
    AtMost,
    #[serde(rename = ">=")]
    AtLeast,
    #[serde(rename = "==")]
    Equal,
    #[serde(rename = "!=")]
    NotEqual,
    Contains,
    ContainsAny,
    NotContains,
    StartsWith,
    EndsWith,
    Matches,
    In,
    Between,
    Any,
    All,
    None,
    IsEmpty,
    Exists,
    NotExists,
}

/// Each operator with its names in other languages and in simple filters, for hints.
const OTHER_NAMES: [(Operator, &[&str]); 14] = [
    (Operator::Equal, &["=", "===", "eq", "equal", "equals", "is"]),
    (Operator::NotEqual, &["!==", "<>", "ne", "neq", "not_equal", "not_equals"]),
    (Operator::Less, &["lt", "less_than"]),
    (Operator::Greater, &["gt", "greater_than"]),
    (Operator::AtMost, &["lte", "=<", "less_than_or_equal"]),
    (Operator::AtLeast, &["gte", "=>", "greater_than_or_equal"]),
    (Operator::Contains, &["includes"]),
    (Operator::In, &["one_of", "is_one_of"]),
    (Operator::Matches, &["regex", "regexp", "match"]),
    (Operator::Between, &["range"]),
    (Operator::Any, &["some"]),
    (Operator::All, &["every"]),
    (Operator::IsEmpty, &["empty"]),
    (Operator::NotContains, &["does_not_contain"]),
];

/// Operators of a simple filter, beside its field: `{"field": "event.text", "contains": "urgent"}`.
const SIMPLE: [&str; 8] =
    ["contains", "contains_any", "equals", "not_equals", "greater_than", "less_than", "starts_with", "ends_with"];

impl Operator {
    fn meant(name: &str) -> Option<Self> {
        let name = name.trim().to_lowercase();
        let other =
            || OTHER_NAMES.iter().find(|(_, others)| others.contains(&name.as_str())).map(|(operator, _)| *operator);
        let near = || nearest(&name, Self::NAMES).and_then(Self::named);
        other().or_else(near)
    }

    pub const fn takes_value(self) -> bool {
        !matches!(self, Self::Exists | Self::NotExists | Self::IsEmpty)
    }

    /// Whether it only looks if something is there, which the output of a failed action answers, too.
    const fn looks(self) -> bool {
        matches!(self, Self::Exists | Self::NotExists)
    }

    pub const fn is_about_items(self) -> bool {
        matches!(self, Self::Any | Self::All | Self::None)
    }

    pub const fn orders(self) -> bool {
        matches!(self, Self::Less | Self::Greater | Self::AtMost | Self::AtLeast)
    }
}

impl Clause {
    /// The values to compare with; a single value is a list of one.
    pub fn values(&self) -> &[Value] {
        match &self.value {
            Value::Array(values) => values,
            value => std::slice::from_ref(value),
        }
    }
}

impl Condition {
    pub fn read(value: &Value, pointer: &str, diagnostics: &mut Diagnostics) -> Option<Self> {
        Reader { count: 0, depth: 1, in_list: false, diagnostics }.read(value, pointer)
    }

    /// All clauses, including those in groups.
    pub fn clauses(&self) -> Vec<&Clause> {
        match self {
            Self::Clause(clause) => vec![clause],
            Self::All(conditions) | Self::Any(conditions) => conditions.iter().flat_map(Self::clauses).collect(),
        }
    }

    /// Cost of the regular expressions that reading the condition compiled.
    pub(in crate::automation) fn cost_of_compiling(&self) -> usize {
        let of = |clause: &Clause| {
            let of_item = clause.of_item.as_ref().map_or(0, |of_item| of_item.cost_of_compiling());
            of_item + clause.pattern.as_ref().map_or(0, Pattern::cost_of_compiling)
        };
        self.clauses().into_iter().map(of).sum()
    }
}

impl Reader<'_> {
    fn read(&mut self, value: &Value, pointer: &str) -> Option<Condition> {
        let Some(members) = value.as_object() else {
            let message = format!("A condition is an object, not {}.", kind(value));
            self.diagnostics.push(invalid(pointer, message).found(value));
            return None;
        };
        if self.depth > DEEPEST {
            let message = format!("The groups of a condition are nested more than {DEEPEST} levels deep.");
            let hint = "Write it with fewer groups.";
            self.diagnostics.push(Diagnostic::error(Code::TooLarge, pointer, message, hint));
            return None;
        }
        if members.contains_key("operator") || members.contains_key("clauses") {
            return self.group(value, pointer);
        }
        self.count += 1;
        if self.count > MOST_CLAUSES {
            let message = format!("The condition has more than {MOST_CLAUSES} clauses.");
            let hint = "Use contains_any for a list of values.";
            self.diagnostics.push(Diagnostic::error(Code::TooLarge, pointer, message, hint));
            return None;
        }
        if members.contains_key("field") && !members.contains_key("path") {
            return simple(value, pointer, self.diagnostics);
        }
        self.clause(value, pointer)
    }

    fn group(&mut self, value: &Value, pointer: &str) -> Option<Condition> {
        let mut members = Members::of(value, pointer, self.diagnostics)?;
        let operator = members.required("operator", "\"AND\"");
        let clauses =
            members.required("clauses", "[{\"path\": \"event.text\", \"op\": \"contains\", \"value\": \"urgent\"}]");
        members.finish();
        let all = operator.and_then(|operator| match operator.as_str().map(str::to_uppercase).as_deref() {
            Some("AND") => Some(true),
            Some("OR") => Some(false),
            _ => {
                let message = "A group joins its clauses with AND or with OR.";
                let (place, hint) = (child(pointer, "operator"), "Write \"AND\" or \"OR\".");
                let error = Diagnostic::error(Code::UnknownOperator, place, message, hint);
                self.diagnostics.push(error.found(operator).allowed(["AND", "OR"]));
                None
            }
        });
        let (clauses, place) = (clauses?, child(pointer, "clauses"));
        let Some(list) = clauses.as_array().filter(|list| !list.is_empty()) else {
            let message = "The clauses of a group are a list with at least one condition.".to_owned();
            self.diagnostics.push(invalid(&place, message).found(clauses));
            return None;
        };
        let mut conditions = Vec::new();
        self.depth += 1;
        for (index, clause) in list.iter().enumerate() {
            if self.count > MOST_CLAUSES {
                break;
            }
            conditions.extend(self.read(clause, &child(&place, index.to_string())));
        }
        self.depth -= 1;
        Some(if all? { Condition::All(conditions) } else { Condition::Any(conditions) })
    }

    fn clause(&mut self, value: &Value, pointer: &str) -> Option<Condition> {
        let mut members = Members::of(value, pointer, self.diagnostics)?;
        let path = members.required("path", "\"event.text\"");
        let operator = members.required("op", "\"contains\"");
        let given = members.get("value");
        let case_insensitive = members.boolean("case_insensitive");
        members.finish();
        let path = path.and_then(|path| read_path(path, &child(pointer, "path"), self.diagnostics));
        let operator =
            operator.and_then(|operator| read_operator(operator, &child(pointer, "op"), self.diagnostics))?;
        let value = compared_with(operator, given, pointer, self.diagnostics)?;
        let (mut pattern, mut of_item) = (None, None);
        if operator == Operator::Matches {
            pattern = Some(compiled(&value, case_insensitive, &child(pointer, "value"), self.diagnostics)?);
        }
        if operator.is_about_items() {
            if case_insensitive {
                let message = format!("{} compares no text itself.", operator.as_str());
                let hint = "Write \"case_insensitive\" into the condition about item.";
                let place = child(pointer, "case_insensitive");
                self.diagnostics.push(Diagnostic::error(Code::OperatorMisfit, place, message, hint));
                return None;
            }
            of_item = Some(Box::new(self.about_items(operator, &value, &child(pointer, "value"))?));
        }
        let pointer = pointer.to_owned();
        Some(Condition::Clause(Clause { pointer, path: path?, operator, value, of_item, pattern, case_insensitive }))
    }

    /// Parses the condition of `any`, `all` or `none`. They do not stand in one another, because their work would multiply.
    fn about_items(&mut self, operator: Operator, value: &Value, pointer: &str) -> Option<Condition> {
        if self.in_list {
            let message = format!("{} stands in a condition about the items of a list.", operator.as_str());
            let hint = "Let an action look through the inner list, or name one of its items by its place.";
            self.diagnostics.push(Diagnostic::error(Code::InvalidCondition, pointer, message, hint).found(value));
            return None;
        }
        self.in_list = true;
        self.depth += 1;
        let condition = self.read(value, pointer);
        self.depth -= 1;
        self.in_list = false;
        condition
    }
}

fn invalid(pointer: &str, message: String) -> Diagnostic {
    Diagnostic::error(Code::InvalidCondition, pointer, message, format!("Write {SHAPE}.")).expected("a condition")
}

fn simple(value: &Value, pointer: &str, diagnostics: &mut Diagnostics) -> Option<Condition> {
    let mut members = Members::of(value, pointer, diagnostics)?;
    let path = members.required("field", "\"event.text\"");
    let case_insensitive = members.boolean("case_insensitive");
    let given: Vec<(&str, &Value)> =
        SIMPLE.into_iter().filter_map(|name| members.get(name).map(|value| (name, value))).collect();
    members.finish();
    let path = path.and_then(|path| read_path(path, &child(pointer, "field"), diagnostics))?;
    let [(name, given)] = given[..] else {
        let message =
            format!("A simple filter has its field and exactly one comparison, and this one has {}.", given.len());
        diagnostics.push(invalid(pointer, message).allowed(SIMPLE));
        return None;
    };
    let operator = Operator::named(name).or_else(|| Operator::meant(name))?;
    let value = compared_with(operator, Some(given), pointer, diagnostics)?;
    let pointer = pointer.to_owned();
    Some(Condition::Clause(Clause { pointer, path, operator, value, of_item: None, pattern: None, case_insensitive }))
}

fn read_path(value: &Value, pointer: &str, diagnostics: &mut Diagnostics) -> Option<Path> {
    let Some(text) = value.as_str() else {
        let message = format!("A path is text, not {}.", kind(value));
        let hint = "Name the value by its path, for example \"event.text\".";
        diagnostics.push(Diagnostic::error(Code::WrongType, pointer, message, hint).found(value).expected("text"));
        return None;
    };
    if text.contains("{{") {
        let plain = text.replace("{{", "").replace("}}", "");
        let hint = format!("Write \"{}\": a path in a condition stands without braces.", plain.trim());
        let message = "The path of a condition is a template.";
        diagnostics.push(Diagnostic::error(Code::InvalidCondition, pointer, message, hint).found(value));
        return None;
    }
    Path::parse(text)
        .map_err(|problem| {
            let message = format!("The path cannot be read: it {problem}.");
            let hint = "Write names with dots between them, for example \"event.text\" or \"rows[0].name\".";
            diagnostics.push(Diagnostic::error(Code::InvalidCondition, pointer, message, hint).found(value));
        })
        .ok()
}

fn read_operator(value: &Value, pointer: &str, diagnostics: &mut Diagnostics) -> Option<Operator> {
    if let Some(operator) = value.as_str().and_then(Operator::named) {
        return Some(operator);
    }
    let meant = value.as_str().and_then(Operator::meant).map(Operator::as_str);
    let error =
        Diagnostic::error(Code::UnknownOperator, pointer, "There is no such operator.", "Use an allowed value.");
    diagnostics.push(error.found(value).allowed(Operator::NAMES).meaning(meant));
    None
}

fn compared_with(
    operator: Operator,
    given: Option<&Value>,
    pointer: &str,
    diagnostics: &mut Diagnostics,
) -> Option<Value> {
    let name = operator.as_str();
    let place = child(pointer, "value");
    if !operator.takes_value() {
        if let Some(given) = given {
            let message = format!("{name} takes no value: it compares with nothing.");
            let hint = "Leave \"value\" out, or use == to compare.";
            diagnostics.push(Diagnostic::error(Code::OperatorMisfit, place, message, hint).found(given));
            return None;
        }
        return Some(Value::Null);
    }
    let Some(given) = given else {
        let message = format!("The operator {name} needs a value to compare with.");
        let hint = match operator {
            Operator::Equal => {
                "Add \"value\"; to ask whether something is missing or null, use the operator not_exists."
            }
            _ => "Add \"value\"; to ask whether something is there, use the operator exists.",
        };
        diagnostics.push(Diagnostic::error(Code::MissingField, place, message, hint));
        return None;
    };
    let is_template = given.as_str().is_some_and(|text| text.contains("{{"));
    let (fits, expected, example) = match operator {
        // `pattern` checks it.
        Operator::Matches => (true, "", json!(null)),
        _ if is_template => (true, "", json!(null)),
        Operator::ContainsAny | Operator::In => {
            (given.as_array().is_some_and(|wanted| !wanted.is_empty()), "a list of values", json!(["urgent", "asap"]))
        }
        Operator::Between => (is_range(given), "a list of two numbers or dates, the smaller one first", json!([9, 17])),
        Operator::Any | Operator::All | Operator::None => {
            (given.is_object(), "a condition about item", json!({"path": "item.name", "op": "==", "value": "bug"}))
        }
        _ if operator.orders() => (given.is_number() || given.is_string(), "a number, or a date as text", json!(5)),
        Operator::StartsWith | Operator::EndsWith => (given.is_string(), "text", json!("urgent")),
        Operator::Contains | Operator::NotContains => {
            (!given.is_array() && !given.is_object(), "one value", json!("urgent"))
        }
        _ => (true, "", json!(null)),
    };
    if !fits {
        let message = match given {
            Value::Array(empty) if empty.is_empty() && matches!(operator, Operator::ContainsAny | Operator::In) => {
                format!("The list that {name} compares with is empty, so it never holds.")
            }
            given => format!("The operator {name} compares with {expected}, not {}.", kind(given)),
        };
        let hint = match (operator, given) {
            (Operator::Contains, Value::Array(_)) => "Use contains_any for a list of values.".to_owned(),
            (Operator::ContainsAny | Operator::In, value) if !value.is_array() => {
                format!("Put it into a list: [{}].", crate::cut::cut(value.to_string(), 60))
            }
            _ => format!("Write for example \"value\": {example}."),
        };
        diagnostics.push(Diagnostic::error(Code::OperatorMisfit, place, message, hint).found(given).expected(expected));
        return None;
    }
    Some(given.clone())
}

/// Two numbers or texts, or templates, that are not in the wrong order.
fn is_range(value: &Value) -> bool {
    let Some([low, high]) = value.as_array().map(Vec::as_slice) else { return false };
    let fits = |value: &Value| value.is_number() || value.is_string();
    let is_template = |value: &Value| value.as_str().is_some_and(|text| text.contains("{{"));
    let in_order = is_template(low) || is_template(high) || comparison::in_order(low, high);
    fits(low) && fits(high) && in_order
}

/// Compiles the regular expression of `matches`. It is no template, because a pattern of an event's could match everything.
fn compiled(given: &Value, case_insensitive: bool, place: &str, diagnostics: &mut Diagnostics) -> Option<Pattern> {
    let problem = match given.as_str() {
        None => format!("The operator matches takes a regular expression as text, not {}.", kind(given)),
        Some(text) if text.contains("{{") => "A regular expression cannot hold a template.".to_owned(),
        Some(text) if text.len() > pattern::LONGEST => {
            format!("A regular expression has at most {} bytes.", pattern::LONGEST)
        }
        Some(text) => match Pattern::compile(text, case_insensitive) {
            Ok(pattern) => return Some(pattern),
            Err(why) => format!("The regular expression cannot be read: {why}."),
        },
    };
    let hint = "Write for example \"value\": \"^INV-[0-9]+$\"; look-around and back-references do not exist.";
    let error = Diagnostic::error(Code::OperatorMisfit, place, problem, hint);
    diagnostics.push(error.found(given).expected("a regular expression"));
    None
}
