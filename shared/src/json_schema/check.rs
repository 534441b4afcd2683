//! Holding a value against a schema.
//!
//! Everything costs a little of a fixed allowance, so no schema makes it long, however its references multiply.

use std::{cmp::Ordering, collections::HashMap, fmt};

use serde_json::{Map, Value};

use super::{
    Bound, DEEPEST, MOST_TOLD, Measured, Members, Node, Pattern, Rule, Size, Violation, extent, format,
    number::{Decimal, same},
    wording::{Path, Shown, bare, listed, quoted},
};
use crate::fields::kind;

/// In comparisons of short values: an answer of a hundred thousand values, each with a few rules. Used up in 25 ms by
/// references that double, in 0.2 s by the slowest patterns.
const ALLOWANCE: u64 = 4_000_000;

/// Schemas within each other at one time, each a few hundred bytes of stack.
const MOST_FRAMES: usize = 512;

const PER_VIOLATION: u64 = 50;

/// How far a violation is from what may have been meant, to find the closest of several alternatives.
const WRONG: u64 = 1;
/// A constant tells the alternatives apart.
const WRONG_CONSTANT: u64 = 20;

/// How a problem ends that is told of one alternative.
const CLOSEST: &str = "the closest)";

pub(super) fn check(nodes: &[Node], instance: &Value) -> Vec<Violation> {
    if extent(instance).0 > DEEPEST {
        let problem = format!("must not be nested more than {DEEPEST} levels deep");
        return vec![Violation { path: String::new(), problem }];
    }
    let mut run = Run { nodes, allowance: ALLOWANCE, frames: 0, stopped: None };
    let mut report = Report { told: true, ..Report::default() };
    run.apply(0, instance, &Path::WHOLE, &mut report);
    match run.stopped {
        // What is not checked to the end is not right: a "not" may stand above it.
        Some(problem) => vec![Violation { path: String::new(), problem: problem.into() }],
        None => report.finish(),
    }
}

/// What was found about one value.
#[derive(Default)]
struct Report {
    /// Whether anybody reads the words; otherwise only the count matters.
    told: bool,
    violations: Vec<Violation>,
    count: usize,
    distance: u64,
}

impl Report {
    const fn fits(&self) -> bool {
        self.count == 0
    }

    /// Whether there is nothing more to find out.
    const fn decided(&self) -> bool {
        !self.told && !self.fits()
    }

    /// An empty one that is told if this one is.
    fn another(&self) -> Self {
        Self { told: self.told, ..Self::default() }
    }

    fn silent() -> Self {
        Self::default()
    }

    fn add(&mut self, path: &Path<'_>, distance: u64, problem: fmt::Arguments<'_>) {
        self.count += 1;
        self.distance = self.distance.saturating_add(distance);
        if self.told && self.violations.len() < MOST_TOLD {
            let violation = Violation { path: path.to_string(), problem: problem.to_string() };
            // Two ways may lead to the same schema.
            if self.violations.contains(&violation) {
                self.count -= 1;
            } else {
                self.violations.push(violation);
            }
        }
    }

    fn take(&mut self, other: Self) {
        self.count += other.count;
        self.distance = self.distance.saturating_add(other.distance);
        let room = MOST_TOLD.saturating_sub(self.violations.len());
        self.violations.extend(other.violations.into_iter().take(room));
    }

    fn finish(mut self) -> Vec<Violation> {
        let more = self.count - self.violations.len();
        if more > 0 {
            self.violations.push(Violation { path: String::new(), problem: format!("has {more} more problems") });
        }
        self.violations
    }
}

struct Run<'s> {
    nodes: &'s [Node],
    allowance: u64,
    frames: usize,
    stopped: Option<&'static str>,
}

impl Run<'_> {
    fn spend(&mut self, cost: u64) {
        match self.allowance.checked_sub(cost) {
            Some(left) => self.allowance = left,
            None => self.stopped = self.stopped.or(Some("is too large to be checked; make it shorter")),
        }
    }

    fn apply(&mut self, node: usize, value: &Value, path: &Path<'_>, report: &mut Report) {
        let Some(node) = self.nodes.get(node) else { return };
        self.spend(node.weight);
        if self.frames == MOST_FRAMES {
            self.stopped = Some("is nested too deeply to be checked; make it flatter");
        }
        self.frames += 1;
        for rule in &node.rules {
            let before = report.count;
            if self.stopped.is_some() {
                break;
            }
            self.hold(rule, value, path, report);
            if report.count > before {
                self.spend(PER_VIOLATION);
                // Of a text in place of an object no more need be said.
                if report.decided() || matches!(rule, Rule::Never | Rule::Types(_) | Rule::OneOf(_)) {
                    break;
                }
            }
        }
        self.frames -= 1;
    }

    /// Whether a schema fits, in no words.
    fn fits(&mut self, node: usize, value: &Value, path: &Path<'_>) -> bool {
        let mut report = Report::silent();
        self.apply(node, value, path, &mut report);
        report.fits()
    }

    fn hold(&mut self, rule: &Rule, value: &Value, path: &Path<'_>, report: &mut Report) {
        match (rule, value) {
            (Rule::Reference(node), _) => self.apply(*node, value, path, report),
            (Rule::All(all), _) => {
                for node in all {
                    self.apply(*node, value, path, report);
                    if report.decided() || self.stopped.is_some() {
                        break;
                    }
                }
            }
            (Rule::Any(nodes), _) => self.alternatives(nodes, false, value, path, report),
            (Rule::One(nodes), _) => self.alternatives(nodes, true, value, path, report),
            (Rule::Not(node, shown), _) => {
                if self.fits(*node, value, path) {
                    report.add(path, WRONG, format_args!("must not fit {shown}"));
                }
            }
            (Rule::When { condition, then, otherwise }, _) => {
                let next = if self.fits(*condition, value, path) { then } else { otherwise };
                if let Some(next) = next {
                    self.apply(*next, value, path, report);
                }
            }
            (Rule::Members(members), Value::Object(given)) => self.members(members, given, path, report),
            (Rule::Names(node), Value::Object(given)) => self.names(*node, given, path, report),
            (Rule::Items { first, rest }, Value::Array(items)) => {
                for (index, item) in items.iter().enumerate() {
                    let Some(node) = first.get(index).or(rest.as_ref()) else { break };
                    self.apply(*node, item, &path.index(index), report);
                    if report.decided() || self.stopped.is_some() {
                        break;
                    }
                }
            }
            (Rule::Contains { schema, size }, Value::Array(items)) => {
                self.contains(*schema, *size, items, path, report);
            }
            (Rule::Unique, Value::Array(items)) => self.unique(items, path, report),
            (Rule::Pattern(pattern), Value::String(text)) => {
                if !self.matches(pattern, text) {
                    report.add(path, WRONG, format_args!("must match the pattern {}", bare(&pattern.text)));
                }
            }
            (Rule::Size(Measured::Text, size), Value::String(text)) => {
                self.spend(text.len() as u64 / 64);
                measured(*size, text.chars().count(), "characters", path, report);
            }
            (Rule::Size(Measured::List, size), Value::Array(items)) => {
                measured(*size, items.len(), "items", path, report);
            }
            (Rule::Size(Measured::Object, size), Value::Object(members)) => {
                measured(*size, members.len(), "properties", path, report);
            }
            _ => simple(rule, value, path, report),
        }
    }

    fn matches(&mut self, pattern: &Pattern, text: &str) -> bool {
        self.spend((text.len() as u64).saturating_mul(pattern.per_byte));
        self.stopped.is_none() && pattern.regex.is_match(text)
    }

    fn members(&mut self, members: &Members, given: &Map<String, Value>, path: &Path<'_>, report: &mut Report) {
        for (name, value) in given {
            self.spend(1);
            if report.decided() || self.stopped.is_some() {
                return;
            }
            let path = path.name(name);
            let mut known = false;
            if let Some(node) = members.properties.get(name) {
                known = true;
                self.apply(*node, value, &path, report);
            }
            for (pattern, node) in &members.patterns {
                if self.matches(pattern, name) {
                    known = true;
                    self.apply(*node, value, &path, report);
                }
            }
            match members.rest {
                _ if known => {}
                Some(_) if members.closed => {
                    self.spend(PER_VIOLATION);
                    let names = listed(members.properties.keys().map(|name| Plain(name)));
                    let patterns = listed(members.patterns.iter().map(|(pattern, _)| Plain(&pattern.text)));
                    let known = match (members.properties.is_empty(), members.patterns.is_empty()) {
                        (false, true) => format!("known are {names}"),
                        (false, false) => format!("known are {names}, and names like {patterns}"),
                        (true, false) => format!("names must be like {patterns}"),
                        (true, true) => "it has none".to_owned(),
                    };
                    report.add(&path, WRONG, format_args!("is not a property of the schema; {known}"));
                }
                Some(node) => self.apply(node, value, &path, report),
                None => {}
            }
        }
    }

    fn names(&mut self, node: usize, given: &Map<String, Value>, path: &Path<'_>, report: &mut Report) {
        for name in given.keys() {
            if report.decided() || self.stopped.is_some() {
                return;
            }
            self.spend(name.len() as u64 / 16);
            let mut found = report.another();
            let path = path.name(name);
            self.apply(node, &Value::String(name.clone()), &path, &mut found);
            for violation in &mut found.violations {
                violation.problem = format!("has a name that {}", violation.problem);
            }
            report.take(found);
        }
    }

    fn contains(&mut self, node: usize, size: Size, items: &[Value], path: &Path<'_>, report: &mut Report) {
        let mut count = 0;
        for (index, item) in items.iter().enumerate() {
            if self.stopped.is_some() || (count >= size.least && size.most.is_none_or(|most| count > most)) {
                break;
            }
            if self.fits(node, item, &path.index(index)) {
                count += 1;
            }
        }
        if let Some(most) = size.most.filter(|most| count > *most) {
            report.add(
                path,
                WRONG,
                format_args!("must have at most {most} items of the kind that is asked for, and has more"),
            );
        } else if count < size.least {
            let mut first = report.another();
            if let Some(item) = items.first().filter(|_| count == 0) {
                self.apply(node, item, &path.index(0), &mut first);
            }
            let of_first = first.violations.first().map(|violation| format!(": {}", one_line(violation)));
            report.add(
                path,
                WRONG,
                format_args!(
                    "must have at least {} of the kind that is asked for, not {count}{}",
                    counted(size.least, "items"),
                    of_first.unwrap_or_default()
                ),
            );
        }
    }

    fn unique(&mut self, items: &[Value], path: &Path<'_>, report: &mut Report) {
        let mut seen = HashMap::new();
        for (index, item) in items.iter().enumerate() {
            let mut key = String::new();
            write_canonical(item, &mut key);
            self.spend(1 + key.len() as u64 / 16);
            if self.stopped.is_some() {
                return;
            }
            if let Some(first) = seen.insert(key, index) {
                let item = path.index(index);
                report.add(&item, WRONG, format_args!("must not be the same as the item [{first}]"));
                if report.decided() {
                    return;
                }
            }
        }
    }

    /// `anyOf`, and `oneOf` if exactly one may fit. Tells of the closest alternative.
    fn alternatives(&mut self, nodes: &[usize], exactly: bool, value: &Value, path: &Path<'_>, report: &mut Report) {
        let mut fitting = Vec::new();
        let mut others: Vec<(usize, Report)> = Vec::new();
        for (node, number) in nodes.iter().zip(1_usize..) {
            let mut found = report.another();
            self.apply(*node, value, path, &mut found);
            if self.stopped.is_some() {
                return;
            }
            if found.fits() {
                fitting.push(number);
                if !exactly {
                    return;
                }
                if fitting.len() > 1 {
                    break;
                }
            } else {
                others.push((number, found));
            }
        }
        match fitting.as_slice() {
            [] => self.none_fits(others, value, path, report),
            [_] => {}
            [first, second, ..] => {
                let problem = format_args!("fits alternatives {first} and {second} of oneOf, and must fit exactly one");
                report.add(path, WRONG, problem);
            }
        }
    }

    fn none_fits(&mut self, others: Vec<(usize, Report)>, value: &Value, path: &Path<'_>, report: &mut Report) {
        if !report.told {
            report.add(path, WRONG, format_args!(""));
            return;
        }
        let count = others.len();
        let here = path.to_string();
        let end = format!(", not {}", shown_kind(value));
        // Of another kind altogether: "must be text or null, not true" is all there is to say.
        let kind_wanted = |found: &Report| match found.violations.as_slice() {
            [only] if only.path == here => only.problem.strip_suffix(&end)?.strip_prefix("must be ").map(str::to_owned),
            _ => None,
        };
        let wanted: Option<Vec<String>> = others.iter().map(|(_, found)| kind_wanted(found)).collect();
        if let Some(wanted) = wanted {
            report.add(path, WRONG, format_args!("must be {}{end}", bare(&wanted.join(" or "))));
            return;
        }
        let closest = others.into_iter().min_by_key(|(_, found)| (kind_wanted(found).is_some(), found.distance));
        let Some((number, mut closest)) = closest else { return };
        if count > 1 {
            self.spend(PER_VIOLATION);
            for violation in &mut closest.violations {
                if !violation.problem.ends_with(CLOSEST) {
                    violation.problem = format!("{} (alternative {number} of {count}, {CLOSEST}", violation.problem);
                }
            }
        }
        report.take(closest);
    }
}

/// The rules that look at no other schema.
fn simple(rule: &Rule, value: &Value, path: &Path<'_>, report: &mut Report) {
    match (rule, value) {
        (Rule::Never, _) => report.add(path, WRONG_CONSTANT, format_args!("is not allowed here")),
        (Rule::Types(types), _) if !types.iter().any(|admitted| admitted.admits(value)) => {
            let words: Vec<&str> = types.iter().map(|admitted| admitted.words()).collect();
            let words = words.join(" or ");
            report.add(path, WRONG, format_args!("must be {words}, not {}", shown_kind(value)));
        }
        (Rule::OneOf(values), _) if !values.iter().any(|allowed| equal(allowed, value)) => {
            let of = if values.len() == 1 { "" } else { "one of " };
            let distance = if values.len() == 1 { WRONG_CONSTANT } else { WRONG };
            report.add(path, distance, format_args!("must be {of}{}", listed(values.iter().map(Shown))));
        }
        (Rule::Bound(bound, limit), Value::Number(number)) => {
            let order = Decimal::of(number).cmp(&Decimal::of(limit));
            let (holds, words) = match bound {
                Bound::Minimum => (order != Ordering::Less, "at least"),
                Bound::Maximum => (order != Ordering::Greater, "at most"),
                Bound::ExclusiveMinimum => (order == Ordering::Greater, "more than"),
                Bound::ExclusiveMaximum => (order == Ordering::Less, "less than"),
            };
            if !holds {
                report.add(path, WRONG, format_args!("must be {words} {limit}, not {number}"));
            }
        }
        (Rule::MultipleOf(factor), Value::Number(number))
            if !Decimal::of(number).is_multiple_of(Decimal::of(factor)) =>
        {
            report.add(path, WRONG, format_args!("must be a multiple of {factor}, not {number}"));
        }
        (Rule::Format(format), Value::String(text)) if !format::has(format, text) => {
            report.add(path, WRONG, format_args!("must be a valid {format}{}", format::example(format)));
        }
        (Rule::Format(format), Value::Number(number)) if !format::has_number(format, number) => {
            report.add(path, WRONG, format_args!("must be a valid {format}, not {number}"));
        }
        (Rule::Required(names), Value::Object(given)) => {
            for name in names.iter().filter(|name| !given.contains_key(*name)) {
                report.add(&path.name(name), WRONG, format_args!("is required and missing"));
            }
        }
        (Rule::RequiredWith(asked), Value::Object(given)) => {
            for (name, others) in asked.iter().filter(|(name, _)| given.contains_key(name)) {
                for other in others.iter().filter(|other| !given.contains_key(*other)) {
                    let problem = format_args!("is required beside {} and missing", quoted(name));
                    report.add(&path.name(other), WRONG, problem);
                }
            }
        }
        _ => {}
    }
}

fn measured(size: Size, count: usize, unit: &str, path: &Path<'_>, report: &mut Report) {
    let count = count as u64;
    if count < size.least {
        report.add(path, WRONG, format_args!("must have at least {}, not {count}", counted(size.least, unit)));
    }
    if let Some(most) = size.most.filter(|most| count > *most) {
        report.add(path, WRONG, format_args!("must have at most {}, not {count}", counted(most, unit)));
    }
}

/// `1 item`, `2 items`.
fn counted(count: u64, unit: &str) -> String {
    let unit = match (count, unit) {
        (1, "properties") => "property",
        (1, _) => unit.trim_end_matches('s'),
        _ => unit,
    };
    format!("{count} {unit}")
}

/// What a value is; of a number, which.
fn shown_kind(value: &Value) -> String {
    if value.is_number() { value.to_string() } else { kind(value).to_owned() }
}

fn one_line(violation: &Violation) -> String {
    format!("{} {}", violation.path, violation.problem)
}

struct Plain<'t>(&'t str);

impl fmt::Display for Plain<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&bare(self.0))
    }
}

/// Equality of JSON: 1 and 1.0 are the same, and the order of members does not matter.
fn equal(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Number(one), Value::Number(other)) => same(one, other),
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| equal(one, other))
        }
        (Value::Object(one), Value::Object(other)) => {
            one.len() == other.len()
                && one.iter().all(|(name, value)| other.get(name).is_some_and(|other| equal(value, other)))
        }
        _ => one == other,
    }
}

/// A text that equal values share, and no others.
fn write_canonical(value: &Value, text: &mut String) {
    match value {
        Value::Number(number) => text.push_str(&Decimal::of(number).to_string()),
        Value::Array(items) => {
            text.push('[');
            for item in items {
                write_canonical(item, text);
                text.push(',');
            }
            text.push(']');
        }
        Value::Object(members) => {
            text.push('{');
            let mut members: Vec<_> = members.iter().collect();
            members.sort_unstable_by_key(|(name, _)| *name);
            for (name, member) in members {
                text.push_str(&Value::from(name.as_str()).to_string());
                text.push(':');
                write_canonical(member, text);
                text.push(',');
            }
            text.push('}');
        }
        other => text.push_str(&other.to_string()),
    }
}
