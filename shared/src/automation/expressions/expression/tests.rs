use std::time::{Duration, Instant};

use jiff::tz::TimeZone;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::{
    super::data::{Lowered, Outputs},
    *,
};

fn with_data<T>(use_it: impl FnOnce(&Data<'_>) -> T) -> T {
    let variables = json!({
        "team": "ops", "limit": 5, "score": 7.5, "day": "2026-11-20", "at": "2026-11-20T09:30:00+01:00",
        "rows": [{"name": "Ana", "n": 3, "open": true}, {"name": "Bo", "n": 1, "open": false}, {"name": "Cy", "n": 2, "open": true}],
        "many": (0..10_000).collect::<Vec<_>>(), "long": "ab".repeat(50_000), "braces": "{{limit}}",
        "parts": {"list": [{"n": 1}, {"n": 2}, "… (cut: 7 more)"], "…": "… (cut: 1 more)"},
        "text": "{\"a\": [1, 2]}", "nothing": null, "emoji": "👩‍👩‍👧 family",
    });
    let mut outputs = Outputs::default();
    outputs.give("found", json!({"total": 12_345, "First name": "Ada"}));
    outputs.lack("lost", "look", "failed");
    let user = json!({"name": "Ada", "timezone": "Europe/Berlin"});
    use_it(&Data {
        variables: variables.as_object().unwrap(),
        outputs: &outputs,
        trigger_data: &Lowered::of(&json!({"event": {"text": "urgent"}})),
        user: &user,
        // A Sunday; 23:30 UTC is Monday in Berlin.
        now: "2026-11-22T23:30:05Z".parse().unwrap(),
        zone: TimeZone::get("Europe/Berlin").unwrap(),
        item: None,
    })
}

fn value(source: &str) -> Result<Option<Value>, String> {
    let expression = Expression::parse(source)?;
    with_data(|data| expression.evaluate(data, 200_000, &Work::of(usize::MAX))).map_err(|failed| match failed {
        Failed::TooLarge | Failed::TooMuchWork => "is too large".to_owned(),
        Failed::Because(problem) => problem,
    })
}

#[test]
fn an_expression_computes_with_the_values_of_paths_and_keeps_their_types() {
    for (source, expected) in [
        ("limit + 1", json!(6)),
        ("found.total / 100 | round(2)", json!(123.45)),
        ("(found.total / 1000) | round(1)", json!(12.3)),
        ("limit * 2 - 1", json!(9)),
        ("(19.99 | float * 100) | round | int", json!(1999)),
        ("limit > 3 and team == 'ops'", json!(true)),
        ("event.text == 'urgent' or false", json!(true)),
        ("found['First name'] | upper", json!("ADA")),
        ("rows | map(attribute='name') | join(', ')", json!("Ana, Bo, Cy")),
        ("rows | selectattr('open') | map(attribute='n') | sum", json!(5)),
        ("rows | sort(attribute='n') | map(attribute='name') | list", json!(["Bo", "Cy", "Ana"])),
        ("rows | length", json!(3)),
        ("(rows | first).name", json!("Ana")),
        ("rows[limit - 4].name", json!("Bo")),
        ("rows[:2] | length", json!(2)),
        ("[1, 2, 2, 3] | unique | list", json!([1, 2, 3])),
        ("[{'n': 1}, {'n': limit}]", json!([{"n": 1}, {"n": 5}])),
        ("'high' if score > 7 else 'low'", json!("high")),
        ("team ~ '-' ~ limit", json!("ops-5")),
        ("' a b ' | trim | replace(' ', '_')", json!("a_b")),
        ("missing | default('none')", json!("none")),
        ("missing.deep | default('none')", json!("none")),
        ("nothing | default('d', true)", json!("d")),
        ("emoji | length", json!(12)),
        ("long | truncate(4)", json!("abab…")),
        ("team | truncate(4)", json!("ops")),
        ("day | date('%d.%m.%Y')", json!("20.11.2026")),
        ("at | date('%H:%M', 'America/New_York')", json!("03:30")),
        ("'2027-01-31T09:00[America/New_York]' | date('%H:%M', 'Europe/Berlin')", json!("15:00")),
        ("now | date('%A')", json!("Monday")),
        ("now_utc | date('%A')", json!("Monday")),
        ("today | plus_days(7)", json!("2026-11-30")),
        ("at | plus_days(-1)", json!("2026-11-19T09:30:00+01:00")),
        ("day | business_days(1)", json!("2026-11-23")),
        ("day | business_days(-5)", json!("2026-11-13")),
        ("1250 | money('EUR')", json!("12.50 EUR")),
        ("-5 | money('eur')", json!("-0.05 EUR")),
        ("1250 | money('JPY')", json!("1250 JPY")),
        ("1250 | money('KWD')", json!("1.250 KWD")),
        ("(text | parse_json).a[1]", json!(2)),
        ("rows[1] | json", json!(r#"{"n":1,"name":"Bo","open":false}"#)),
        ("rows | map(attribute='open') | any", json!(true)),
        ("rows | sum(attribute='n')", json!(6)),
        ("rows | map(attribute='n') | sum(start=4)", json!(10)),
        ("(lost.rows | map(attribute='n') | sum) if lost else 'none'", json!("none")),
        ("parts.list[1].n + 1", json!(3)),
        ("(parts.list | first).n", json!(1)),
        ("parts.list[:2] | map(attribute='n') | list", json!([1, 2])),
        ("'some' if parts.list else 'none'", json!("some")),
        ("parts.list | json", json!(r#"[{"n":1},{"n":2},"… (cut: 7 more)"]"#)),
        ("parts.list | default([])", json!([{"n": 1}, {"n": 2}, "… (cut: 7 more)"])),
        ("rows | map(attribute='open') | all", json!(false)),
        ("[2, 4] | all('even')", json!(true)),
        ("braces ~ ''", json!("{{limit}}")),
    ] {
        assert_eq!(value(source), Ok(Some(expected)), "{source}");
    }
    assert_eq!(value("missing | first"), Ok(None));
    assert_eq!(value("missing | default([]) | sum"), Ok(Some(json!(0))));
    assert_eq!(value("lost | upper"), Ok(Some(json!(""))));
}

#[test]
fn a_mistake_is_named_when_the_expression_is_read_and_a_wrong_value_when_it_is_evaluated() {
    for (source, problem) in [
        ("upper name", "cannot be read"),
        ("a +", "cannot be read"),
        ("rows | uper", "uses the filter uper, which does not exist (did you mean upper?)"),
        ("range(5)", "calls a function"),
        ("team.lower()", "calls a function"),
        ("'x' * 3", "multiplies a value that may not be a number"),
        ("rows | tojson", "uses the filter tojson, which does not exist"),
        ("team * 3", "multiplies team, which is not a number"),
        ("missing + 1", "uses a value that is missing"),
        ("missing | sum", "uses a value that is missing"),
        ("lost.rows | map(attribute='n') | sum", "uses a value that is missing"),
        ("rows | map(attribute='amount') | sum", "uses a value that is missing"),
        ("rows | sum(attribute='amount')", "uses a value that is missing"),
        ("1 if (lost.rows | map(attribute='n') | sum) > 3 else 2", "uses a value that is missing"),
        ("parts.list | length", "reads parts.list, which was cut"),
        ("parts.list | selectattr('n') | list", "reads parts.list, which was cut"),
        ("parts.list | map(attribute='n') | sum", "reads parts.list, which was cut"),
        ("parts.list | last", "reads parts.list, which was cut"),
        ("parts.list[:3]", "reads parts.list[2], which was cut"),
        ("parts.list[-1].n + 1", "reads parts.list, which was cut"),
        ("parts.list[2].n + 1", "reads parts.list[2].n, which was cut"),
        ("4 in parts.list", "reads parts.list, which was cut"),
        ("parts.list | default([]) | length", "reads parts.list, which was cut"),
        ("parts.total + 1", "reads parts.total, which was cut"),
        ("parts | items | list", "reads parts, which was cut"),
        ("limit / 0", "fails: "),
        ("'2026-02-30' | plus_days(1)", "\"2026-02-30\" is not a date"),
        ("day | date('%Q%!')", "fails: "),
        ("'2027-01-31T09:00[Mars/Base]' | date('%H')", "is not a date"),
        ("day | date('%H', 'Mars/Base')", "\"Mars/Base\" is not an IANA time zone"),
        ("5 | money('euro')", "is not a currency"),
        ("'{' | parse_json", "fails: "),
        ("9223372036854775807 + 9223372036854775807 + 9223372036854775807", "beyond JSON's"),
        ("rows | map('tojson') | list", "fails: "),
    ] {
        let told = value(source).unwrap_err();
        assert!(told.contains(problem), "{source}: {told}");
    }
}

#[test]
fn the_paths_of_an_expression_are_known_with_the_fields_of_items() {
    let expression =
        Expression::parse("rows | map(attribute='name') | first ~ found['First name'] ~ (a.b if c else d[0].e)");
    let expression = expression.unwrap();
    let paths: Vec<&str> = expression.paths().iter().map(Path::as_str).collect();
    assert_eq!(paths, ["rows[0].name", "rows", "found[\"First name\"]", "c", "a.b", "d[0].e"]);
}

#[test]
fn an_expression_reads_only_the_values_at_its_paths() {
    let expression = Expression::parse("found.total + rows[0].n + user.name | length").unwrap();
    let operands = with_data(|data| expression.operands(data));
    assert_eq!(operands["found"], json!({"total": 12_345}));
    assert_eq!(operands["user"], json!({"name": "Ada"}));
    assert_eq!(operands["rows"].as_array().unwrap().len(), 3, "a list is read whole");
    assert_eq!(operands.as_object().unwrap().len(), 4);
}

const HOSTILE: [&str; 85] = [
    "[1] * 99999999",
    "'x' * 99999999",
    "('x' * 9999) * 9999",
    "2 in [1] * 99999999",
    "[1] * 9999 == [1] * 9999",
    "(many | list) * 9999",
    "([1] * 99999999) | length",
    "([1] * 99999999) ~ ''",
    "(many ~ '') * 99",
    "9 ** 9 ** 9 ** 9",
    "9999999999 ** 9999999999",
    "many | map('string') | map('upper') | map('lower') | join | length",
    "many | batch(1) | map('list') | map('json') | join",
    "long | replace('a', long)",
    "long | replace('', long)",
    "long | list | sort | unique | list",
    "long | split('') | join(long)",
    "many | sort | reverse | sort | list",
    "many | groupby('x') | list",
    "many | sum(start=many)",
    "many + many + many + many == many + many + many + many",
    "many | map('money', 'EUR') | join(long)",
    "many | join(long)",
    "long ~ long ~ long ~ long ~ long ~ long",
    "many | select('in', many) | list",
    "many | reject('in', many) | list",
    "many | any('lt', 0)",
    "many | all('ge', 0)",
    "many | map('any') | list",
    "long | truncate(99999999999)",
    "long | truncate(-1)",
    "many[::-1] | list",
    "many[::0] | list",
    "many[-99999999999:99999999999]",
    "1 / 0",
    "1 // 0",
    "1 % 0",
    "-9223372036854775808 // -1",
    "9223372036854775807 + 1",
    "1e308 * 10",
    "0.1 / 1e-308 * 1e308",
    "day | plus_days(9223372036854775807)",
    "day | plus_days(-9223372036854775808)",
    "day | business_days(2147483647)",
    "day | business_days(-2147483648)",
    "day | date('%999999999d')",
    "day | date(long)",
    "'9999-12-31' | plus_days(1)",
    "'-9999-01-01' | plus_days(-1)",
    "long | date('%d')",
    "long | parse_json",
    "-9223372036854775808 | money('EUR')",
    "many | json | length",
    "many | json | parse_json | json | length",
    "long | lines",
    "long | items",
    "many | items",
    "many | dictsort",
    "{'a': many, 'b': many} | json | length",
    "{many: 1}",
    "{long: long}",
    "many | map(attribute='a.b.c.d') | list",
    "self",
    "loop.index",
    "super()",
    "caller()",
    "debug()",
    "namespace()",
    "dict(a=1)",
    "lipsum()",
    "cycler(1)",
    "''.__class__",
    "''['__class__']['__mro__']",
    "range(99999999) | list",
    "many | pprint",
    "many | safe",
    "'%99999999d' | format(1)",
    "long | indent(99999)",
    "many | slice(99999999) | list",
    "many | attr('x')",
    "many | map('attr', 'x') | list",
    "many | chain(many, many) | list",
    "many | zip(many, many) | list",
    "@zone",
    "$x + @zone",
];

/// Nothing here ends the process, takes longer than a few seconds unoptimized, or holds a large part of the memory.
#[test]
fn hostile_expressions_end_soon_with_a_reason() {
    let nested = |open: &str, close: &str, times: usize| format!("{}1{}", open.repeat(times), close.repeat(times));
    let mut hostile: Vec<String> = HOSTILE.map(str::to_owned).to_vec();
    hostile.extend([
        nested("(", ")", 90),
        nested("(", ")", 240),
        nested("limit(", ")", 80),
        nested("[", "]", 90),
        nested("{'a':", "}", 60),
        nested("not ", "", 120),
        nested("-", "", 490),
        nested("(", ")", 100_000),
        "limit".to_owned() + &"+1".repeat(247),
        "limit".to_owned() + &"|d".repeat(247),
        "limit".to_owned() + &"~1".repeat(247),
        "a".to_owned() + &".a".repeat(240),
        "a".to_owned() + &"[0]".repeat(150),
        "1 if ".repeat(90) + "1",
        "limit".to_owned() + &" if 1 else 1".repeat(40),
        "a".repeat(100_000) + " + 1",
        "|".repeat(400),
        "long ~ ".repeat(60) + "long",
        "rows".to_owned() + &"|list".repeat(99),
        "x".to_owned() + &" and x".repeat(80),
    ]);
    assert!(hostile.len() > 100);
    for source in hostile {
        let started = Instant::now();
        let given = value(&source);
        let shown: String = source.chars().take(60).collect();
        assert!(started.elapsed() < Duration::from_secs(20), "{shown} took {:?}", started.elapsed());
        match given {
            Ok(Some(value)) => assert!(value.to_string().len() <= 1_000_000, "{shown}"),
            Ok(None) => {}
            Err(problem) => assert!(!problem.is_empty() && problem.len() < 500, "{shown}: {problem}"),
        }
    }
}

#[test]
fn a_result_larger_than_its_room_is_refused() {
    let expression = Expression::parse("[long, long, long]").unwrap();
    assert_eq!(with_data(|data| expression.evaluate(data, 200_000, &Work::of(usize::MAX))), Err(Failed::TooLarge));
    let many = Expression::parse("many + many").unwrap();
    assert_eq!(with_data(|data| many.evaluate(data, 1_000, &Work::of(usize::MAX))), Err(Failed::TooLarge));
}

/// The steps that an evaluation takes are paid for, not those that it could take.
#[test]
fn the_cost_of_an_evaluation_follows_its_steps() {
    let cost = |source: &str| {
        let expression = Expression::parse(source).unwrap();
        let enough = |most: &usize| {
            with_data(|data| expression.evaluate(data, 1_000_000, &Work::of(*most))) != Err(Failed::TooMuchWork)
        };
        (0..24).map(|power| 1_usize << power).find(enough).unwrap()
    };
    assert!(cost("many | count") <= 1 << 20, "{}", cost("many | count"));
    assert!(cost("many | map('string') | map('length') | list | count") > cost("many | count"));
    assert!(cost("limit + 1") < 1 << 14);
}

proptest! {
    #[test]
    fn any_text_is_an_expression_or_a_sentence(text in "[a-z0-9 .|()\\[\\]{}'+*/~,:=<>-]{0,60}") {
        let _ = value(&text);
    }
}
