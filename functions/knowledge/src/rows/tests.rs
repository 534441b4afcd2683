use proptest::prelude::*;
use serde_json::json;
use shared::models::OrganizationId;

use super::*;

fn base() -> KnowledgeBase {
    let fields = json!([
        {"name": "city", "type": "text", "label": "Town"}, {"name": "price", "type": "number"},
        {"name": "garden", "type": "boolean"},
    ]);
    KnowledgeBase::new(OrganizationId::generate(), "Homes".into(), None, serde_json::from_value(fields).unwrap())
}

fn csv(table: &str) -> Rows {
    read(&base(), "text/csv; charset=utf-8", table.as_bytes()).unwrap_or_else(|error| panic!("{table:?}: {error}"))
}

fn rows(rows: &Rows) -> Vec<Value> {
    rows.entries
        .iter()
        .map(|(row, entry)| json!({"row": row, "id": entry.id, "values": entry.values, "text": entry.text}))
        .collect()
}

fn refused(rows: &Rows) -> Vec<(usize, &str)> {
    rows.refused.iter().map(|refused| (refused.row, refused.field.as_str())).collect()
}

fn wrong(content_type: &str, body: &[u8]) -> Vec<String> {
    match read(&base(), content_type, body) {
        Err(Error::Invalid(problems)) => problems.iter().map(|problem| problem.field.clone()).collect(),
        Err(Error::Malformed(problem)) => vec![problem],
        Err(error) => panic!("{error}"),
        Ok(rows) => panic!("{:?}", rows.refused),
    }
}

#[test]
fn quotes_line_ends_a_byte_order_mark_and_blanks_are_understood() {
    let table = "\u{feff}ID, Town ,price,GARDEN,Text\r\n\
                 a,\"Porto, centre\",300000,yes,\"He said \"\"wow\"\"\r\nand left\"\r\n\
                 b,,450000.5,0,\r\n";
    let read = csv(table);
    assert_eq!(
        rows(&read),
        [
            json!({"row": 2, "id": "a", "values": {"city": "Porto, centre", "garden": true, "price": 300_000},
                "text": "He said \"wow\"\r\nand left"}),
            json!({"row": 3, "id": "b", "values": {"garden": false, "price": 450_000.5}, "text": null}),
        ]
    );
    assert!(read.refused.is_empty());
}

#[test]
fn semicolons_and_tabs_separate_too() {
    for table in [
        "id;city;price\na;Porto, centre;5\n",
        "id\tcity\tprice\na\tPorto, centre\t5\n",
        "id,city,price\na,\"Porto, centre\",5",
    ] {
        assert_eq!(rows(&csv(table))[0]["values"], json!({"city": "Porto, centre", "price": 5}), "{table}");
    }
    assert_eq!(rows(&csv("text\none; two; three\n"))[0]["text"], "one; two; three", "the header decides");
}

#[test]
fn a_column_that_is_missing_is_a_field_without_value_and_one_too_many_is_named() {
    assert_eq!(rows(&csv("id,price\na,5\n"))[0]["values"], json!({"price": 5}));
    assert_eq!(wrong("text/csv", b"id,agent,town,,city\na,b,c,d,e\n"), ["columns.agent", "columns[3]", "columns.city"]);
}

#[test]
fn each_wrong_cell_is_reported_and_the_good_rows_go_on() {
    let read = csv("id,price,garden,text\n\
                    a,\"300,000\",maybe,x\n\
                    b,5,true,good\n\
                    c d,1e9,,x\n\
                    e,5\n\
                    ,,,\n\
                    f,inf,,x\n\
                    g,NaN,,x\n");
    assert_eq!(rows(&read).len(), 1);
    assert_eq!(rows(&read)[0]["row"], 3);
    let expected =
        [(2, "price"), (2, "garden"), (4, "id"), (4, "price"), (5, "entry"), (6, "entry"), (7, "price"), (8, "price")];
    assert_eq!(refused(&read), expected);
    assert!(read.refused[0].problem.contains("300,000"));
    assert_eq!(read.refused[4].problem, "has 2 columns, and the header has 4");
}

#[test]
fn a_file_that_is_not_a_table_is_refused_with_the_next_step() {
    for (table, hint) in [
        (&b""[..], "first row must name the columns"),
        (b"\n\n", "first row must name the columns"),
        (b"id,text\na,caf\xe9\n", "UTF-8"),
    ] {
        let problems = wrong("text/csv", table);
        assert!(problems[0].contains(hint), "{problems:?}");
    }
}

#[test]
fn json_is_typed_strictly() {
    let body = json!({"entries": [
        {"id": "a", "city": " Porto ", "price": 3.0, "garden": false, "text": " River "},
        {"city": "", "price": null},
        {"price": "5", "garden": "yes", "city": 5, "id": 7, "text": ["x"], "colour": "red"},
        "text",
        {"price": 1e300}, {"price": 1e-200},
        {"text": "x".repeat(5_000)},
        {"id": "a", "text": "again"},
    ]});
    let read = read(&base(), "application/json", body.to_string().as_bytes()).unwrap();
    assert_eq!(
        rows(&read),
        [json!({"row": 1, "id": "a", "values": {"city": "Porto", "garden": false, "price": 3}, "text": "River"})]
    );
    let mut expected = vec![
        (2, "entry"),
        (3, "city"),
        (3, "colour"),
        (3, "garden"),
        (3, "id"),
        (3, "price"),
        (3, "text"),
        (4, "entry"),
        (5, "price"),
        (6, "price"),
        (7, "entry"),
        (8, "id"),
    ];
    let mut named = refused(&read);
    named.sort_unstable();
    expected.sort_unstable();
    assert_eq!(named, expected);
    let twin = read.refused.iter().find(|refused| refused.row == 8).unwrap();
    assert!(twin.problem.contains("row 1"), "{}", twin.problem);
}

#[test]
fn a_body_of_another_shape_is_refused_as_a_whole() {
    assert_eq!(wrong("application/json", b"[]"), ["body"]);
    assert_eq!(wrong("application/json", b"{}"), ["entries"]);
    assert_eq!(wrong("application/json", b"{\"entries\": {}, \"mode\": 1}"), ["entries", "mode"]);
    assert!(wrong("", b"id,text\na,b\n")[0].contains("text/csv"));
}

#[test]
fn too_much_at_once_is_refused_with_the_limit() {
    let many = json!({"entries": vec![json!({"text": "x"}); MOST_ROWS + 1]}).to_string();
    assert_eq!(wrong("application/json", many.as_bytes()), ["entries"]);
    let table = format!("text\n{}", "x\n".repeat(MOST_ROWS + 1));
    assert_eq!(wrong("text/csv", table.as_bytes()), ["entries"]);
    assert_eq!(wrong("text/csv", &vec![b'x'; LARGEST_BODY + 1]), ["body"]);
}

#[test]
fn the_same_content_has_the_same_id() {
    let [one, two] = [csv("city,text\nPorto,x\n"), csv("text;city\nx;Porto\n")];
    assert_eq!(one.entries[0].1.id, two.entries[0].1.id);
    let twins = csv("text\nx\ny\nx\n");
    assert_eq!((twins.entries.len(), refused(&twins)), (2, vec![(4, "id")]));
}

proptest! {
    #[test]
    fn every_row_is_loaded_or_refused_once(table in prop::collection::vec(prop::collection::vec("[a-z0-9 ,;\"\\n]{0,6}", 1..5), 0..12)) {
        let quoted = |cells: &Vec<String>| {
            cells.iter().map(|cell| format!("\"{}\"", cell.replace('"', "\"\""))).collect::<Vec<_>>().join(",")
        };
        let body = format!("id,city,price,garden\n{}\n", table.iter().map(quoted).collect::<Vec<_>>().join("\n"));
        let read = csv(&body);
        let mut numbers: Vec<usize> = read.entries.iter().map(|(row, _)| *row).collect();
        numbers.extend(read.refused.iter().map(|refused| refused.row));
        numbers.sort_unstable();
        numbers.dedup();
        prop_assert_eq!(numbers, (2..table.len() + 2).collect::<Vec<_>>());
        let refused: std::collections::BTreeSet<usize> = read.refused.iter().map(|refused| refused.row).collect();
        prop_assert!(read.entries.iter().all(|(row, _)| !refused.contains(row)));
    }

    #[test]
    fn no_body_breaks_it(body in prop::collection::vec(any::<u8>(), 0..200), csv in any::<bool>()) {
        let _ = read(&base(), if csv { "text/csv" } else { "application/json" }, &body);
    }
}
