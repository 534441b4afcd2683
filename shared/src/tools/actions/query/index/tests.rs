use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::models::{KnowledgeBaseId, OrganizationId, Timestamp};

fn fields() -> Vec<Field> {
    let fields = json!([
        {"name": "city", "type": "text", "label": "City"}, {"name": "price", "type": "number"},
        {"name": "garden", "type": "boolean"},
    ]);
    serde_json::from_value(fields).unwrap()
}

fn entry(id: usize, values: Value, text: &str) -> KnowledgeEntry {
    KnowledgeEntry {
        knowledge_base_id: KnowledgeBaseId::generate(),
        id: format!("e{id}").parse().unwrap(),
        organization_id: OrganizationId::generate(),
        values: serde_json::from_value(values).unwrap(),
        text: (!text.is_empty()).then(|| text.to_owned()),
        created_at: Timestamp::now(),
        updated_at: Timestamp::now(),
    }
}

fn index(entries: &[KnowledgeEntry]) -> Index {
    let mut builder = Builder::new(&fields());
    for entry in entries {
        builder.add(entry);
    }
    builder.finish()
}

fn homes() -> Index {
    index(&[
        entry(0, json!({"city": "Porto", "price": 300_000, "garden": true}), "House by the river"),
        entry(
            1,
            json!({"city": "Vila Nova de Gaia", "price": 450_000.5, "garden": false}),
            "Flat with a view of the river",
        ),
        entry(2, json!({"city": "porto", "price": 120_000}), "Small flat near the station"),
        entry(3, json!({"city": "Faro"}), "Beach house. Beach, beach and beach again, with two gardens"),
    ])
}

fn found(index: &Index, query: &str, filters: &[(&str, IndexOperator, Value)]) -> (usize, Vec<String>) {
    let conditions: Vec<IndexCondition> =
        filters.iter().map(|(field, operator, value)| index.condition(field, *operator, value).unwrap()).collect();
    let found = index.search(query, &conditions);
    (found.matched, found.entries.into_iter().map(str::to_owned).collect())
}

#[test]
fn words_find_and_rank() {
    let homes = homes();
    let (matched, entries) = found(&homes, "beach house", &[]);
    assert_eq!(matched, 2);
    assert!(entries[0].contains("Beach house") && entries[1].contains("House by the river"), "{entries:?}");
    let (_, entries) = found(&homes, "FLATS", &[]);
    assert!(entries.len() == 2 && entries.iter().all(|entry| entry.contains("lat ")), "{entries:?}");
    assert_eq!(found(&homes, "castle", &[]), (0, vec![]));
    assert_eq!(found(&homes, "garden", &[]).0, 2, "what is true and what is written, but not what is false");
}

#[test]
fn a_word_that_most_entries_have_does_not_decide() {
    let homes = homes();
    // "with" and "the" alone would match nearly everything.
    assert_eq!(found(&homes, "the station", &[]).0, 1);
    assert_eq!(found(&homes, "the", &[]).0, 3, "unless nothing else was said");
}

#[test]
fn words_that_carry_nothing_make_no_match() {
    let practice = index(&[
        entry(
            0,
            json!({}),
            "The practice is open from Monday to Friday. What it does on holidays is told on the phone.",
        ),
        entry(1, json!({}), "Parking is behind the house; the first hour is free."),
    ]);
    for query in [
        "What does the implant cost?",
        "How much is the implant, please?",
        "implant and the crown",
        "is there an MRI scan",
    ] {
        assert_eq!(found(&practice, query, &[]), (0, vec![]), "{query}");
    }
    for query in ["Where is the parking?", "parking for the car", "is it open on friday"] {
        assert_eq!(found(&practice, query, &[]).0, 1, "{query}");
    }
    let praxis = index(&[
        entry(0, json!({}), "Die Praxis ist von Montag bis Freitag offen, das Telefon auch am Samstag."),
        entry(1, json!({}), "Der Parkplatz ist hinter dem Haus, die erste Stunde ist frei."),
        entry(2, json!({}), "Ein MRT kostet 300 Euro."),
    ]);
    assert_eq!(found(&praxis, "Ist die Zahnreinigung im Haus?", &[]).0, 1, "the house is a word of its own");
    assert_eq!(found(&praxis, "Was macht die Zahnreinigung und das Bleaching?", &[]), (0, vec![]));
    assert_eq!(found(&praxis, "MRT", &[]).0, 1);
    assert_eq!(found(&praxis, "Preis MRT", &[]).0, 1);
}

#[test]
fn filters_come_first() {
    let homes = homes();
    let porto = ("city", IndexOperator::Equals, json!("PORTO"));
    assert_eq!(found(&homes, "", std::slice::from_ref(&porto)).0, 2);
    assert_eq!(found(&homes, "river", std::slice::from_ref(&porto)).0, 1);
    assert_eq!(
        found(&homes, "", &[("city", IndexOperator::OneOf, json!(["Faro", "vila nova  de gaia", "Lisboa"]))]).0,
        2
    );
    assert_eq!(
        found(&homes, "", &[("price", IndexOperator::AtMost, json!(300_000))]).0,
        2,
        "the bound itself included"
    );
    assert_eq!(found(&homes, "", &[("price", IndexOperator::AtLeast, json!(300_000.0))]).0, 2);
    assert_eq!(found(&homes, "", &[("price", IndexOperator::Equals, json!(450_000.5))]).0, 1);
    assert_eq!(found(&homes, "", &[("price", IndexOperator::OneOf, json!([120_000, 300_000]))]).0, 2);
    assert_eq!(
        found(&homes, "", &[("garden", IndexOperator::Equals, json!(false))]).0,
        1,
        "what is not said is not no"
    );
    assert_eq!(found(&homes, "", &[porto, ("price", IndexOperator::AtMost, json!(5))]), (0, vec![]));
}

#[test]
fn unmatched_words_fall_back_to_the_filters_and_are_reported() {
    let homes = homes();
    let condition = homes.condition("city", IndexOperator::Equals, &json!("Porto")).unwrap();
    let found = homes.search("castle", &[condition]);
    assert_eq!((found.matched, found.by_words), (2, false));
}

#[test]
fn a_value_of_a_wrong_type_is_a_sentence() {
    let homes = homes();
    for (field, value) in [("city", json!(5)), ("price", json!("5")), ("garden", json!("yes")), ("roof", json!("x"))] {
        let sentence = homes.condition(field, IndexOperator::Equals, &value).unwrap_err();
        assert!(sentence.contains(field) && sentence.ends_with('.'), "{sentence}");
    }
}

#[test]
fn an_entry_is_shown_in_one_line_within_350_bytes() {
    let long = "word ".repeat(500);
    let index = index(&[entry(0, json!({"city": "São\nPaulo", "price": 5, "garden": true}), &long)]);
    let (_, entries) = found(&index, "word", &[]);
    assert!(entries[0].starts_with("City: São Paulo; price: 5; garden: yes. word word"), "{}", entries[0]);
    assert!(entries[0].contains("word… (cut: the first ") && entries[0].len() <= 350, "{}", entries[0]);
}

#[test]
fn five_are_shown_and_all_are_counted() {
    let entries: Vec<_> = (0..50).map(|id| entry(id, json!({}), if id < 20 { "river view" } else { "town" })).collect();
    let (matched, shown) = found(&index(&entries), "river", &[]);
    assert_eq!((matched, shown.len()), (20, 5));
}

#[test]
fn an_empty_base_finds_nothing() {
    let empty = index(&[]);
    assert!(empty.is_empty());
    assert_eq!(found(&empty, "anything", &[]), (0, vec![]));
}

type Row = (String, Option<i32>, Option<bool>, Vec<&'static str>);

fn any_entries() -> impl Strategy<Value = Vec<Row>> {
    let word = prop::sample::select(vec!["river", "beach", "garden", "station", "view", "house", "flat"]);
    prop::collection::vec(
        ("[a-c]", prop::option::of(0..20), prop::option::of(any::<bool>()), prop::collection::vec(word, 0..6)),
        0..40,
    )
}

fn built(rows: &[Row]) -> Index {
    let entries: Vec<_> = rows
        .iter()
        .enumerate()
        .map(|(id, (city, price, garden, words))| {
            let mut values = json!({"city": city});
            if let Some(price) = price {
                values["price"] = json!(price);
            }
            if let Some(garden) = garden {
                values["garden"] = json!(garden);
            }
            entry(id, values, &words.join(" "))
        })
        .collect();
    index(&entries)
}

proptest! {
    #[test]
    fn filters_pass_exactly_the_matching_entries(
        rows in any_entries(), most in 0..20i32, least in 0..20i32, cities in prop::collection::vec("[a-d]", 1..3),
    ) {
        let index = built(&rows);
        let expected = rows.iter().filter(|(city, price, _, _)| {
            cities.contains(city) && price.is_some_and(|price| price <= most && price >= least)
        }).count();
        let filters = [
            ("city", IndexOperator::OneOf, json!(cities)), ("price", IndexOperator::AtMost, json!(most)),
            ("price", IndexOperator::AtLeast, json!(least)),
        ];
        prop_assert_eq!(found(&index, "", &filters).0, expected);
    }

    #[test]
    fn a_filter_never_adds_and_every_hit_has_a_word(rows in any_entries(), word in "river|beach|view", most in 0..20i32) {
        let index = built(&rows);
        let with_word = |words: &Vec<&str>| words.contains(&word.as_str());
        let expected = rows.iter().filter(|(_, _, _, words)| with_word(words)).count();
        prop_assert_eq!(found(&index, &word, &[]).0, expected);
        let both = rows.iter().filter(|(_, price, _, words)| with_word(words) && price.is_some_and(|price| price <= most)).count();
        let condition = index.condition("price", IndexOperator::AtMost, &json!(most)).unwrap();
        let filtered = index.search(&word, &[condition]);
        if filtered.by_words {
            prop_assert_eq!(filtered.matched, both);
        } else {
            prop_assert_eq!(both, 0);
        }
    }

    #[test]
    fn more_of_a_word_in_a_text_of_the_same_length_ranks_higher(times in 1..5usize, others in 1..20usize) {
        let text = |times: usize| format!("{}{}", "river ".repeat(times), "town ".repeat(6 - times));
        let mut entries: Vec<_> = (0..others).map(|id| entry(id, json!({}), "town town town town town town")).collect();
        entries.push(entry(90, json!({"city": "less"}), &text(times)));
        entries.push(entry(91, json!({"city": "more"}), &text(times + 1)));
        let (matched, shown) = found(&index(&entries), "river", &[]);
        prop_assert_eq!(matched, 2);
        prop_assert!(shown[0].contains("more") && shown[1].contains("less"));
    }

    #[test]
    fn any_query_is_answered(rows in any_entries(), query in "\\PC{0,60}") {
        let index = built(&rows);
        let found = index.search(&query, &[]);
        prop_assert!(found.entries.len() <= 5 && found.entries.len() <= found.matched && found.matched <= rows.len());
    }
}
