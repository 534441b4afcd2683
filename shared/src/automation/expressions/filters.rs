//! Filters of expressions: a choice of `MiniJinja`'s, and our own for dates, money and JSON.

use jiff::{
    Span, Timestamp, ToSpan, Zoned,
    civil::{Date, Time, Weekday},
    fmt::{strtime, temporal::Pieces},
    tz::{Offset, TimeZone},
};
use minijinja::{
    Environment, Error, ErrorKind, State,
    value::{Kwargs, Serde, Value},
};

use super::expression::{Failed, ZONE, json};

const OURS: [&str; 10] =
    ["all", "any", "business_days", "date", "json", "money", "parse_json", "plus_days", "sum", "truncate"];
const MINIJINJAS: [&[&str]; 4] = [
    &["abs", "batch", "bool", "capitalize", "count", "d", "default", "dictsort", "first", "float", "groupby", "int"],
    &["items", "join", "last", "length", "lines", "list", "lower", "map", "max", "min", "reject", "rejectattr"],
    &["replace", "reverse", "round", "select", "selectattr", "sort", "split", "string", "title", "trim"],
    &["unique", "upper"],
];
/// In bytes, of a format of dates.
const LONGEST_FORMAT: usize = 100;
const MOST_BUSINESS_DAYS: u32 = 1_000;
/// Gives the fuel that the evaluation has taken. No author can name it.
pub(super) const SPENT: &str = "fuel_spent";
/// Items that `any` and `all` look at for one fuel, as in `MiniJinja`'s filters.
const ITEMS_OF_FUEL: usize = 2;
/// Bytes that `json` writes.
const LARGEST_JSON: usize = 1_000_000;

/// Currencies whose minor unit is not a hundredth (ISO 4217, list one).
const MINOR_DIGITS: [(usize, &[&str]); 3] = [
    (
        0,
        &[
            "BIF", "CLP", "DJF", "GNF", "ISK", "JPY", "KMF", "KRW", "PYG", "RWF", "UGX", "UYI", "VND", "VUV", "XAF",
            "XOF", "XPF",
        ],
    ),
    (3, &["BHD", "IQD", "JOD", "KWD", "LYD", "OMR", "TND"]),
    (4, &["CLF", "UYW"]),
];

pub(in crate::automation) fn names() -> impl Iterator<Item = &'static str> {
    OURS.into_iter().chain(MINIJINJAS.into_iter().flatten().copied())
}

pub(in crate::automation) fn exists(name: &str) -> bool {
    names().any(|known| known == name)
}

pub(super) fn add(engine: &mut Environment<'static>) {
    engine.add_filter("all", |state: &mut State, list: &Value, test: Option<&str>| {
        some_item_is(state, list, test, false).map(|fails| !fails)
    });
    engine
        .add_filter("any", |state: &mut State, list: &Value, test: Option<&str>| some_item_is(state, list, test, true));
    engine.add_filter("business_days", business_days);
    engine.add_filter("date", date);
    engine.add_filter("json", text_of_json);
    engine.add_filter("money", money);
    engine.add_filter("parse_json", parse_json);
    engine.add_filter("plus_days", plus_days);
    engine.add_filter("sum", sum);
    engine.add_filter("truncate", truncate);
    engine.add_filter(SPENT, spent);
}

#[expect(clippy::needless_pass_by_value, reason = "callers pass errors and format arguments that they made for it")]
fn wrong(problem: impl ToString) -> Error {
    Error::new(ErrorKind::InvalidOperation, problem.to_string())
}

fn not_a_date(text: &str) -> Error {
    wrong(format_args!("{text:?} is not a date: write ISO 8601, for example 2026-11-23 or 2026-11-23T09:30:00Z"))
}

/// A day or local time of ISO 8601, with the zone in its brackets, which jiff's `DateTime` leaves unread.
pub(in crate::automation) fn local_time(text: &str) -> Option<(Date, Option<Time>, Option<TimeZone>)> {
    let pieces = Pieces::parse(text).ok().filter(|pieces| pieces.offset().is_none())?;
    Some((pieces.date(), pieces.time(), pieces.to_time_zone().ok()?))
}

/// The moment of a text in ISO 8601, in `zone`. Without an offset it is local time of the zone in its brackets, else of `zone`.
pub(in crate::automation) fn moment_in(text: &str, zone: &TimeZone) -> Option<Zoned> {
    if let Ok(at) = text.parse::<Timestamp>() {
        return Some(at.to_zoned(zone.clone()));
    }
    let (day, time, own) = local_time(text)?;
    let local = day.to_datetime(time.unwrap_or_default());
    Some(local.to_zoned(own.unwrap_or_else(|| zone.clone())).ok()?.with_time_zone(zone.clone()))
}

/// Without `zone` it is the run's zone.
fn moment(state: &State, text: &str, zone: Option<&str>) -> Result<Zoned, Error> {
    let of_run = state.lookup(ZONE);
    let name = zone.or_else(|| of_run.as_ref().and_then(Value::as_str)).unwrap_or("UTC");
    let zone = TimeZone::get(name).map_err(|_unknown| wrong(format_args!("{name:?} is not an IANA time zone")))?;
    moment_in(text, &zone).ok_or_else(|| not_a_date(text))
}

fn spent(state: &State, _value: &Value) -> u64 {
    state.fuel_levels().map_or(0, |(spent, _)| spent)
}

fn date(state: &State, text: &str, format: &str, zone: Option<&str>) -> Result<String, Error> {
    if format.len() > LONGEST_FORMAT {
        return Err(wrong(format_args!("a format of dates has at most {LONGEST_FORMAT} bytes")));
    }
    strtime::format(format, &moment(state, text, zone)?).map_err(wrong)
}

/// A date stays a date, and a moment keeps its offset.
fn plus_days(text: &str, days: i64) -> Result<String, Error> {
    let span = Span::new().try_days(days).map_err(wrong)?;
    if text.len() == "2026-11-23".len()
        && let Ok(day) = text.parse::<Date>()
    {
        return Ok(day.checked_add(span).map_err(wrong)?.to_string());
    }
    let at: Timestamp = text.parse().map_err(|_none| not_a_date(text))?;
    let offset = strtime::parse("%Y-%m-%dT%H:%M:%S%.f%:z", text).ok().and_then(|parts| parts.offset());
    let moved = at.to_zoned(TimeZone::fixed(offset.unwrap_or(Offset::UTC))).checked_add(span).map_err(wrong)?;
    let format = if offset.is_some() { "%Y-%m-%dT%H:%M:%S%:z" } else { "%Y-%m-%dT%H:%M:%SZ" };
    strtime::format(format, &moved).map_err(wrong)
}

/// Days from Monday to Friday, later or earlier; holidays count as days.
fn business_days(text: &str, days: i32) -> Result<String, Error> {
    if days.unsigned_abs() > MOST_BUSINESS_DAYS {
        return Err(wrong(format_args!("business_days takes at most {MOST_BUSINESS_DAYS} days")));
    }
    let first: Date = text.get(..10).unwrap_or(text).parse().map_err(|_none| not_a_date(text))?;
    let (mut day, mut left) = (first, days.unsigned_abs());
    while left > 0 {
        day = day.checked_add(days.signum().days()).map_err(wrong)?;
        left -= u32::from(!matches!(day.weekday(), Weekday::Saturday | Weekday::Sunday));
    }
    plus_days(text, i64::from(first.until(day).map_err(wrong)?.get_days()))
}

/// An amount of minor units with its currency: `1250 | money("EUR")` is `12.50 EUR`. Stripe writes `eur`.
fn money(minor: i64, currency: &str) -> Result<String, Error> {
    if currency.len() != 3 || !currency.bytes().all(|letter| letter.is_ascii_alphabetic()) {
        return Err(wrong(format_args!("{currency:?} is not a currency: write three letters, for example EUR")));
    }
    let currency = currency.to_ascii_uppercase();
    let of_currency = MINOR_DIGITS.iter().find(|(_, currencies)| currencies.contains(&currency.as_str()));
    let digits = of_currency.map_or(2, |(digits, _)| *digits);
    let sign = if minor < 0 { "-" } else { "" };
    let amount = format!("{:0>width$}", minor.unsigned_abs(), width = digits + 1);
    let (whole, part) = amount.split_at(amount.len() - digits);
    let point = if digits == 0 { "" } else { "." };
    Ok(format!("{sign}{whole}{point}{part} {currency}"))
}

fn parse_json(text: &str) -> Result<Value, Error> {
    let value: serde_json::Value = serde_json::from_str(text).map_err(wrong)?;
    Ok(Value::from(Serde(value)))
}

fn text_of_json(value: &Value) -> Result<String, Error> {
    match json(value, 0, &mut LARGEST_JSON.clone()) {
        Ok(value) => Ok(value.to_string()),
        Err(Failed::Because(problem)) => Err(wrong(problem)),
        Err(_) => Err(wrong(format_args!("json writes at most {LARGEST_JSON} bytes"))),
    }
}

/// As `MiniJinja`'s, which leaves missing values out.
fn sum(
    state: &mut State,
    list: &Value,
    attribute: Option<&str>,
    start: Option<Value>,
    named: Kwargs,
) -> Result<Value, Error> {
    let by_name = named.get::<Option<String>>("attribute")?;
    let attribute = attribute.or(by_name.as_deref());
    let step = |value: Value, name: &str| {
        let place = name.parse::<usize>().map_or_else(|_name| Value::from(name), Value::from);
        value.get_item(&place)
    };
    let mut items = Vec::new();
    for (place, item) in list.try_iter()?.enumerate() {
        if place.is_multiple_of(ITEMS_OF_FUEL) {
            state.consume_fuel(1)?;
        }
        let summed = attribute.map_or(Ok(item.clone()), |path| path.split('.').try_fold(item.clone(), step));
        if summed.is_ok_and(|value| value.is_undefined()) {
            return Err(wrong("an undefined value in a sum"));
        }
        items.push(item);
    }
    minijinja::filters::sum(state, items.into(), attribute, start, named)
}

/// At most `most` characters, and `end` where text was cut.
fn truncate(text: &str, most: usize, end: Option<&str>) -> String {
    match text.char_indices().nth(most) {
        Some((at, _)) => text.get(..at).unwrap_or_default().to_owned() + end.unwrap_or("…"),
        None => text.to_owned(),
    }
}

/// Whether an item passes the test (`wanted`), or fails it. Without a test, the item's truth counts.
fn some_item_is(state: &mut State, list: &Value, test: Option<&str>, wanted: bool) -> Result<bool, Error> {
    for (place, item) in list.try_iter()?.enumerate() {
        if place.is_multiple_of(ITEMS_OF_FUEL) {
            state.consume_fuel(1)?;
        }
        let passes = match test {
            Some(test) => state.perform_test(test, &[item])?,
            None => item.is_true(),
        };
        if passes == wanted {
            return Ok(true);
        }
    }
    Ok(false)
}
