//! What an agent reads about definitions.

use serde_json::{Value, json};
use tests::World;

use super::{overview, tool_data};

const PARTS: [&str; 9] =
    ["for_each", "choose", "wait", "cron", "expressions", "conditions", "catch", "remember", "recall"];

/// Deploys it with the fingerprints of this catalogue; only warnings are allowed.
async fn deploys(world: &World, mut definition: Value) {
    for (tool, fingerprint) in definition["fingerprints"].as_object_mut().unwrap() {
        if *fingerprint != "built-in" {
            *fingerprint = world.fingerprint(tool).into();
        }
    }
    let saved = world.deploy(&definition).await;
    assert_eq!(saved.status, 201, "{definition}: {}", saved.body);
}

#[tokio::test]
async fn the_language_is_taught_on_one_page_with_an_example_that_deploys() {
    let world = World::start().await;
    world.slack_service();
    world.catalogue_service("github.json");
    let told = overview(&world, &["Automations", "GitHub"]).await;
    let page = told["guide"].as_str().unwrap();
    assert_eq!((told["services"][0]["name"].as_str(), told.get("problems")), (Some("GitHub"), None));
    // Four bytes of English are about one token.
    assert!(page.len() / 4 <= 2_000, "{} bytes", page.len());
    for part in PARTS {
        assert!(page.contains(part), "{part}");
    }
    let example = page.split_once("## Example\n").unwrap().1;
    deploys(&world, serde_json::from_str(example).unwrap()).await;
}

#[tokio::test]
async fn each_part_of_the_language_has_an_example_that_deploys() {
    let world = World::start().await;
    let told = tool_data(&world, &json!(PARTS)).await;
    let parts = told["language"].as_array().unwrap();
    assert_eq!(parts.iter().map(|part| part["name"].as_str().unwrap()).collect::<Vec<_>>(), PARTS);
    assert_eq!(told.get("problems"), None);
    for part in parts {
        deploys(&world, part["example"].clone()).await;
    }
}
