//! What the pages say of the catalogue's services.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test says what is wrong and stops")]

use serde_json::Value;

/// The services of the catalogue that are polled: those that call no hooks, and the others.
fn polled() -> (Vec<String>, Vec<String>) {
    let files = tests::catalogue::files().unwrap();
    let all = files.values().filter(|file| {
        file["capabilities"]["polling_endpoints"].as_object().is_some_and(|endpoints| !endpoints.is_empty())
    });
    let names = |of: Vec<&Value>| -> Vec<String> {
        let mut names: Vec<String> = of.iter().map(|file| file["name"].as_str().unwrap().to_owned()).collect();
        names.sort();
        names
    };
    let (with_events, only): (Vec<&Value>, Vec<&Value>) = all.partition(|file| {
        let events = file["capabilities"]["webhook_payload_schemas"].as_object();
        let others = file["capabilities"]["other_webhook_events"].as_array();
        events.is_some_and(|events| !events.is_empty()) || others.is_some_and(|others| !others.is_empty())
    });
    (names(only), names(with_events))
}

#[test]
fn the_page_of_automations_names_every_polled_service() {
    let page = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/automations.md")).unwrap();
    let (only, with_events) = polled();
    for sentence in [
        format!("Polled only: {}.", only.join(", ")),
        format!("Polled, beside their events: {}.", with_events.join(", ")),
    ] {
        assert!(page.contains(&sentence), "docs/automations.md lacks: {sentence}");
    }
}
