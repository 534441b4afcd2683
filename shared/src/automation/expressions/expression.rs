//! Expressions in templates: `{{(total / 100) | round(2)}}`, `{{rows | map(attribute="name") | join(", ")}}`.
//!
//! `MiniJinja` evaluates them, with a budget of instructions (docs/adr/0029-expressions.md). Three costs are not part of that
//! budget, so they are bounded here: constants (computed while compiling), repetition with `*`, and the conversion of a result.

use std::sync::OnceLock;

use minijinja::{
    Environment, Error, ErrorKind, UndefinedBehavior,
    machinery::{
        ast::{BinOpKind, CallArg, Expr, Filter, Slice, UnaryOpKind},
        parse_expr,
    },
    value::{Serde, Value as Operand, ValueKind},
};
use serde_json::{Map, Number, Value};

use super::{
    data::Data,
    filters::{self, SPENT},
    path::Path,
    work::{OverBound, Work, bytes},
};
use crate::{
    automation::nearest,
    cut::{cut, lost_its_end},
};

/// In bytes. Longer chains of operators could exhaust the stack.
const LONGEST: usize = 500;
/// Instructions and items of one evaluation: enough to filter, map and sum 10,000 items.
const FUEL: u64 = 100_000;
/// Cost of reading and compiling, per byte of its source.
const LEAST_WORK: usize = 256;
/// Cost of the steps that one of [`FUEL`] pays for, and of all.
const OF_FUEL: usize = 64;
const MOST_OF_STEPS: usize = 6_400_000;
/// Levels of lists and objects in a result.
const DEEPEST: usize = 100;
/// Bytes of `MiniJinja`'s reason, which may quote values.
const LONGEST_REASON: usize = 200;
/// The variable with the zone of the run, for filters. No author can write this name.
pub(super) const ZONE: &str = "@zone";

const MISSING: &str = "uses a value that is missing: give it one with | default(…)";

/// Filters of `MiniJinja` that could cost more than the budget, write HTML, or print the state.
const REMOVED_FILTERS: [&str; 11] =
    ["attr", "chain", "e", "escape", "format", "indent", "pprint", "safe", "slice", "tojson", "zip"];
const REMOVED_FUNCTIONS: [&str; 4] = ["debug", "dict", "namespace", "range"];

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Expression {
    source: String,
    paths: Vec<Path>,
    /// Paths of its operands, none within another.
    operands: Vec<Path>,
    /// Paths that `*` multiplies, so their values must be numbers.
    factors: Vec<Path>,
    /// Must not be cut.
    whole: Vec<Path>,
    /// Without `default` or another word of the author for a missing value.
    needed: Vec<Path>,
    summed: Vec<Path>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Failed {
    TooLarge,
    TooMuchWork,
    /// To follow the quoted expression.
    Because(String),
}

impl From<OverBound> for Failed {
    fn from(_over: OverBound) -> Self {
        Self::TooMuchWork
    }
}

/// The parser descends a dozen functions for each, and a thread's stack is small.
const MOST_OPEN_BRACKETS: usize = 40;

/// The most opening brackets that are not closed yet, also those in texts.
fn deepest(source: &str) -> usize {
    let (mut open, mut deepest) = (0_usize, 0);
    for byte in source.bytes() {
        match byte {
            b'(' | b'[' | b'{' => open += 1,
            b')' | b']' | b'}' => open = open.saturating_sub(1),
            _ => {}
        }
        deepest = deepest.max(open);
    }
    deepest
}

impl Expression {
    /// # Errors
    /// The mistake, to follow "as an expression it".
    pub(super) fn parse(source: &str) -> Result<Self, String> {
        if source.len() > LONGEST {
            return Err(format!("has more than {LONGEST} bytes"));
        }
        if deepest(source) > MOST_OPEN_BRACKETS {
            return Err(format!("has more than {MOST_OPEN_BRACKETS} brackets within each other"));
        }
        let mut reading = Reading::default();
        // Before compilation, which computes constants.
        let used = Used { whole: false, needed: true, summed: false };
        reading.expression(&parse_expr(source).map_err(|error| unreadable(&error))?, used)?;
        engine().compile_expression(source).map_err(|error| unreadable(&error))?;
        let operands = outermost(&reading.paths);
        let Reading { paths, factors, whole, needed, summed } = reading;
        Ok(Self { source: source.to_owned(), paths, operands, factors, whole, needed, summed })
    }

    pub(super) fn as_str(&self) -> &str {
        &self.source
    }

    pub(super) fn paths(&self) -> &[Path] {
        &self.paths
    }

    pub(super) fn needed(&self) -> &[Path] {
        &self.needed
    }

    /// The value, of at most about `most` bytes as JSON; `None` if it is undefined. Its values are copied and converted, which costs
    /// `work` before, and its steps afterwards.
    pub(super) fn evaluate(&self, data: &Data<'_>, most: usize, work: &Work) -> Result<Option<Value>, Failed> {
        let sizes = self.operands.iter().map(|path| data.get(path).as_deref().map_or(0, bytes));
        let read = sizes.fold(0, usize::saturating_add);
        work.take((LEAST_WORK * self.source.len()).saturating_add(read.saturating_mul(2)))?;
        let is_other = |path: &&Path| data.get(path).is_some_and(|value| !value.is_number());
        if let Some(path) = self.factors.iter().find(is_other) {
            return Err(Failed::Because(format!("multiplies {}, which is not a number", path.as_str())));
        }
        let is_cut = |path: &&Path| data.is_cut_off(path) || data.get(path).as_deref().is_some_and(lost_its_end);
        if let Some(path) = self.whole.iter().find(is_cut) {
            let path = path.as_str();
            return Err(Failed::Because(format!(
                "reads {path}, which was cut because it is too large: let the tool return less"
            )));
        }
        if self.summed.iter().any(|path| data.get(path).is_none()) {
            return Err(Failed::Because(MISSING.to_owned()));
        }
        let computed = self.computed(data);
        // The fuel of a failed evaluation is unknown.
        let steps = match &computed {
            Ok((_, fuel)) => usize::try_from(*fuel).unwrap_or(MOST_OF_STEPS).saturating_mul(OF_FUEL),
            Err(_) => read.saturating_mul(self.source.len()).min(MOST_OF_STEPS),
        };
        work.take(steps)?;
        let (value, _) = computed.map_err(|error| Failed::Because(in_words(&error)))?;
        if value.is_undefined() {
            return Ok(None);
        }
        let mut left = most;
        json(&value, 0, &mut left).map(Some)
    }

    fn computed(&self, data: &Data<'_>) -> Result<(Operand, u64), Error> {
        let source = format!("[({}), 0|{SPENT}]", self.source);
        let both = engine().compile_expression(&source)?.eval(Serde(self.operands(data)))?;
        let fuel = u64::try_from(both.get_item_by_index(1)?).unwrap_or(FUEL);
        Ok((both.get_item_by_index(0)?, fuel))
    }

    /// The values that it reads, at their paths, and no others: an event may be much larger than the fields that are used.
    fn operands(&self, data: &Data<'_>) -> Value {
        let mut operands = Map::new();
        for path in &self.operands {
            if let Some(value) = data.get(path) {
                put(&mut operands, path, value.into_owned());
            }
        }
        operands.insert(ZONE.to_owned(), data.zone.iana_name().unwrap_or("UTC").into());
        Value::Object(operands)
    }
}

/// The paths of the values to read. A list is read whole, and no value is read twice.
fn outermost(paths: &[Path]) -> Vec<Path> {
    let mut all: Vec<Path> = paths.iter().map(Path::before_index).collect();
    all.sort_by_key(|path| path.steps().len());
    let mut outermost: Vec<Path> = Vec::new();
    for path in all {
        if !outermost.iter().any(|known| path.steps().starts_with(known.steps())) {
            outermost.push(path);
        }
    }
    outermost
}

fn put(operands: &mut Map<String, Value>, path: &Path, value: Value) {
    let Some((last, parents)) = path.steps().split_last() else { return };
    let mut place = operands;
    for step in parents {
        let inner = place.entry(step.name()).or_insert_with(|| Value::Object(Map::new()));
        let Value::Object(members) = inner else { return };
        place = members;
    }
    place.entry(last.name()).or_insert(value);
}

fn engine() -> &'static Environment<'static> {
    static ENGINE: OnceLock<Environment<'static>> = OnceLock::new();
    ENGINE.get_or_init(|| {
        let mut engine = Environment::new();
        for name in REMOVED_FILTERS {
            engine.remove_filter(name);
        }
        for name in REMOVED_FUNCTIONS {
            engine.remove_global(name);
        }
        engine.set_undefined_behavior(UndefinedBehavior::Chainable);
        engine.set_fuel(Some(FUEL));
        filters::add(&mut engine);
        engine
    })
}

fn unreadable(error: &Error) -> String {
    let detail = error.detail().unwrap_or("its syntax is wrong").to_owned();
    format!("cannot be read: {}", cut(detail, LONGEST_REASON))
}

fn in_words(error: &Error) -> String {
    match (error.kind(), error.detail()) {
        (ErrorKind::OutOfFuel, _) => "takes too many steps: use a shorter list".to_owned(),
        (_, Some(detail)) if detail.contains("undefined") => MISSING.to_owned(),
        (_, Some(detail)) => format!("fails: {}", cut(detail.to_owned(), LONGEST_REASON)),
        (kind, None) => format!("fails: {kind}"),
    }
}

/// The value as JSON; `left` counts down the bytes, because a short value may stand for a long list.
pub(super) fn json(value: &Operand, depth: usize, left: &mut usize) -> Result<Value, Failed> {
    let taken = 1 + value.as_str().map_or(0, str::len);
    *left = left.checked_sub(taken).ok_or(Failed::TooLarge)?;
    if depth > DEEPEST {
        return Err(Failed::Because(format!("has more than {DEEPEST} levels")));
    }
    let fails = |error: Error| Failed::Because(in_words(&error));
    Ok(match value.kind() {
        ValueKind::Undefined | ValueKind::None => Value::Null,
        ValueKind::Bool => value.is_true().into(),
        ValueKind::Number => number(value).ok_or_else(|| Failed::Because("gives a number beyond JSON's".to_owned()))?,
        ValueKind::String => value.as_str().unwrap_or_default().into(),
        ValueKind::Seq | ValueKind::Iterable => {
            let items = value.try_iter().map_err(fails)?;
            items.map(|item| json(&item, depth + 1, left)).collect::<Result<_, _>>()?
        }
        ValueKind::Map => {
            let mut members = Map::new();
            for name in value.try_iter().map_err(fails)? {
                let member = value.get_item(&name).map_err(fails)?;
                let name = name.to_string();
                *left = left.checked_sub(name.len()).ok_or(Failed::TooLarge)?;
                members.insert(name, json(&member, depth + 1, left)?);
            }
            Value::Object(members)
        }
        kind => return Err(Failed::Because(format!("gives a {kind}, which JSON does not have"))),
    })
}

/// Whole numbers of up to 64 bits, and finite ones.
fn number(value: &Operand) -> Option<Value> {
    if !value.is_integer() {
        return Number::from_f64(f64::try_from(value.clone()).ok()?).map(Value::Number);
    }
    let signed = i64::try_from(value.clone()).map(Value::from);
    signed.or_else(|_| u64::try_from(value.clone()).map(Value::from)).ok()
}

#[derive(Default)]
struct Reading {
    paths: Vec<Path>,
    factors: Vec<Path>,
    whole: Vec<Path>,
    needed: Vec<Path>,
    summed: Vec<Path>,
}

#[derive(Clone, Copy)]
struct Used {
    whole: bool,
    needed: bool,
    summed: bool,
}

impl Used {
    const fn whole(self) -> Self {
        Self { whole: true, ..self }
    }

    fn truth(self, expression: &Expr<'_>) -> Self {
        Self { whole: false, needed: self.needed && spelled(expression).is_none(), ..self }
    }

    const fn perhaps(self) -> Self {
        Self { needed: false, ..self }
    }
}

impl Reading {
    fn path(&mut self, text: &str) -> Result<Path, String> {
        let path = Path::parse(text)
            .map_err(|problem| format!("has a path that {problem}: {}", cut(text.to_owned(), LONGEST_REASON)))?;
        if !self.paths.contains(&path) {
            self.paths.push(path.clone());
        }
        Ok(path)
    }

    /// Reads the value at a path, up to its item at `last`.
    fn value(&mut self, text: &str, last: Option<usize>, used: Used) -> Result<(), String> {
        let path = self.path(text)?;
        if used.whole {
            let last = last.and_then(|last| Path::parse(&format!("{text}[{last}]")).ok());
            self.whole.push(last.unwrap_or_else(|| path.clone()));
        }
        if used.needed && used.summed {
            self.summed.push(path.clone());
        }
        if used.needed {
            self.needed.push(path);
        }
        Ok(())
    }

    fn expression(&mut self, expression: &Expr<'_>, used: Used) -> Result<(), String> {
        if let Some(path) = spelled(expression) {
            return self.value(&path, None, used);
        }
        match expression {
            Expr::Var(_) | Expr::Const(_) => Ok(()),
            Expr::Call(_) => Err("calls a function, and there are only filters: value | filter".to_owned()),
            Expr::Slice(slice) => {
                let bounds = [slice.start.as_ref(), slice.stop.as_ref(), slice.step.as_ref()];
                self.all(bounds.into_iter().flatten(), used.whole())?;
                self.list(&slice.expr, last_of(slice), used.whole())
            }
            Expr::UnaryOp(operation) => match operation.op {
                UnaryOpKind::Not => self.expression(&operation.expr, used.truth(&operation.expr)),
                UnaryOpKind::Neg => self.expression(&operation.expr, used.whole()),
            },
            Expr::BinOp(operation) => {
                let (left, right) = (&operation.left, &operation.right);
                if matches!(operation.op, BinOpKind::Mul) && !(self.is_number(left) && self.is_number(right)) {
                    return Err("multiplies a value that may not be a number: write | float after it".to_owned());
                }
                match operation.op {
                    BinOpKind::ScAnd | BinOpKind::ScOr => {
                        let truth = Used { whole: used.whole, ..used.truth(left) };
                        self.expression(left, truth)?;
                        self.expression(right, used.perhaps())
                    }
                    BinOpKind::Concat => self.all([left, right], used),
                    _ => self.all([left, right], used.whole()),
                }
            }
            Expr::Compare(compared) => {
                let others = compared.ops.iter().map(|operation| &operation.expr);
                self.all(std::iter::once(&compared.expr).chain(others), used.whole())
            }
            Expr::IfExpr(choice) => {
                self.expression(&choice.test_expr, used.truth(&choice.test_expr))?;
                self.all(std::iter::once(&choice.true_expr).chain(choice.false_expr.as_ref()), used.perhaps())
            }
            Expr::Filter(filter) => self.filter(filter, used),
            Expr::Test(test) => {
                let asks = ["defined", "undefined", "none"].contains(&test.name);
                let of_value = Used { whole: false, needed: used.needed && !asks, ..used };
                self.expression(&test.expr, of_value)?;
                self.arguments(&test.args, used.whole())
            }
            Expr::GetAttr(member) => self.expression(&member.expr, used.whole()),
            Expr::GetItem(item) => self.all([&item.expr, &item.subscript_expr], used.whole()),
            Expr::List(list) => self.all(&list.items, used),
            Expr::Tuple(tuple) => self.all(&tuple.items, used),
            Expr::Map(map) => self.all(map.keys.iter().chain(&map.values), used),
        }
    }

    fn filter(&mut self, filter: &Filter<'_>, used: Used) -> Result<(), String> {
        if !filters::exists(filter.name) {
            let near = nearest(filter.name, filters::names());
            let near = near.map(|near| format!(" (did you mean {near}?)")).unwrap_or_default();
            return Err(format!("uses the filter {}, which does not exist{near}", filter.name));
        }
        self.attribute(filter.name, filter.expr.as_ref(), &filter.args)?;
        let (of_value, of_arguments) = match filter.name {
            "default" | "d" if filter.expr.as_ref().is_some_and(is_read) => (used.perhaps(), used.perhaps()),
            "default" | "d" => (used, used.perhaps()),
            // The text shows that it was cut.
            "json" => (Used { whole: false, ..used }, used),
            "sum" => (Used { summed: true, ..used.whole() }, used.whole()),
            _ => (used.whole(), used.whole()),
        };
        if let Some(value) = &filter.expr {
            self.list(value, (filter.name == "first").then_some(0), of_value)?;
        }
        self.arguments(&filter.args, of_arguments)
    }

    fn list(&mut self, list: &Expr<'_>, last: Option<usize>, used: Used) -> Result<(), String> {
        match spelled(list) {
            Some(path) => self.value(&path, last, used),
            None => self.expression(list, used),
        }
    }

    fn all<'e, 's: 'e>(
        &mut self,
        expressions: impl IntoIterator<Item = &'e Expr<'s>>,
        used: Used,
    ) -> Result<(), String> {
        expressions.into_iter().try_for_each(|expression| self.expression(expression, used))
    }

    fn arguments(&mut self, arguments: &[CallArg<'_>], used: Used) -> Result<(), String> {
        let values = arguments.iter().map(|argument| match argument {
            CallArg::Pos(value) | CallArg::Kwarg(_, value) | CallArg::PosSplat(value) | CallArg::KwargSplat(value) => {
                value
            }
        });
        self.all(values, used)
    }

    /// The path to the items' field that a filter names: `rows | map(attribute="name")` reads `rows[0].name`.
    fn attribute(&mut self, filter: &str, list: Option<&Expr<'_>>, arguments: &[CallArg<'_>]) -> Result<(), String> {
        let named = arguments.iter().find_map(|argument| match argument {
            CallArg::Kwarg("attribute", Expr::Const(name)) => name.value.as_str(),
            _ => None,
        });
        let first = match arguments.first() {
            Some(CallArg::Pos(Expr::Const(name))) if filter.ends_with("attr") || filter == "groupby" => {
                name.value.as_str()
            }
            _ => None,
        };
        match (list.and_then(spelled), named.or(first)) {
            (Some(list), Some(name)) => self.path(&format!("{list}[0].{name}")).map(drop),
            _ => Ok(()),
        }
    }

    /// Whether the value is a number, provided that its `factors` are. A repeated list costs no fuel, however long it is.
    fn is_number(&mut self, expression: &Expr<'_>) -> bool {
        const NUMERIC: [&str; 7] = ["abs", "count", "float", "int", "length", "round", "sum"];
        if let Some(path) = spelled(expression).and_then(|text| Path::parse(&text).ok()) {
            self.factors.push(path);
            return true;
        }
        match expression {
            Expr::Const(constant) => constant.value.is_number(),
            Expr::UnaryOp(operation) => self.is_number(&operation.expr),
            Expr::BinOp(operation) => {
                !matches!(operation.op, BinOpKind::Concat)
                    && self.is_number(&operation.left)
                    && self.is_number(&operation.right)
            }
            // `int(default=[1])` may be a list.
            Expr::Filter(filter) => {
                NUMERIC.contains(&filter.name) && (filter.name == "round" || filter.args.is_empty())
            }
            _ => false,
        }
    }
}

fn is_read(expression: &Expr<'_>) -> bool {
    match expression {
        Expr::GetAttr(member) => is_read(&member.expr),
        Expr::Filter(filter) => ["first", "last"].contains(&filter.name) && filter.expr.as_ref().is_some_and(is_read),
        other => spelled(other).is_some(),
    }
}

/// The last item of a slice from the beginning of a list.
fn last_of(slice: &Slice<'_>) -> Option<usize> {
    let constant = |bound: &Expr<'_>| match bound {
        Expr::Const(bound) => usize::try_from(bound.value.clone()).ok(),
        _ => None,
    };
    let counted = |bound: &Option<Expr<'_>>| bound.as_ref().is_none_or(|bound| constant(bound).is_some());
    let stop = slice.stop.as_ref().and_then(constant)?;
    stop.checked_sub(1).filter(|_| counted(&slice.start) && counted(&slice.step))
}

/// The path that a chain of names and constant indices spells.
fn spelled(expression: &Expr<'_>) -> Option<String> {
    Some(match expression {
        Expr::Var(variable) => variable.id.to_owned(),
        Expr::GetAttr(member) => format!("{}.{}", spelled(&member.expr)?, member.name),
        Expr::GetItem(item) => {
            let Expr::Const(at) = &item.subscript_expr else { return None };
            let owner = spelled(&item.expr)?;
            match at.value.as_str() {
                Some(name) if !name.contains('"') => format!("{owner}[\"{name}\"]"),
                Some(name) => format!("{owner}['{name}']"),
                None if at.value.is_integer() => format!("{owner}[{}]", at.value),
                None => return None,
            }
        }
        _ => return None,
    })
}

#[cfg(test)]
mod tests;
