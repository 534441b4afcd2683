//! The definitions in `docs/examples`, deployed as they stand with the fingerprints of the catalogue, and run. What happens
//! to each and what it then sends is in `tests/fixtures/examples`.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::large_futures,
    reason = "a test says what is wrong and stops"
)]

mod repairs;
mod stage;

use futures_util::{StreamExt, stream};
use serde_json::{Value, json};

use repairs::{repaired, spoiled};
use stage::{Stage, example, names, script};

/// Whether a value is the expected one, in whose texts `*` stands for any text.
fn is_like(expected: &Value, found: &Value) -> bool {
    match (expected, found) {
        (Value::String(expected), Value::String(found)) => match expected.split_once('*') {
            Some((start, end)) => found.starts_with(start) && found.ends_with(end),
            None => expected == found,
        },
        (Value::Array(expected), Value::Array(found)) => {
            expected.len() == found.len()
                && expected.iter().zip(found).all(|(expected, found)| is_like(expected, found))
        }
        (Value::Object(expected), Value::Object(found)) => {
            expected.len() == found.len()
                && expected.iter().all(|(name, value)| found.get(name).is_some_and(|found| is_like(value, found)))
        }
        (expected, found) => expected == found,
    }
}

/// Deploys an example, if `mistaken` after the repair of its mistake, and plays its steps; each difference is a line.
async fn played(name: &str, mistaken: bool) -> Vec<String> {
    let (definition, script) = (example(name), script(name));
    let stage = Stage::of(&definition, &script["answers"]).await;
    stage.make_hooks(&definition).await;
    let mut definition = stage.with_fingerprints(definition);
    if mistaken {
        definition = match repaired(&stage.world, spoiled(definition, &script["mistake"])).await {
            Ok(definition) => definition,
            Err(errors) => return vec![format!("{name} is not repaired: {errors:#}")],
        };
    }
    let saved = stage.world.deploy(&definition).await;
    let diagnostics = saved.body["diagnostics"].as_array().cloned().unwrap_or_default();
    if saved.status != 201 || diagnostics.iter().any(|diagnostic| diagnostic["code"] != "not_checked") {
        return vec![format!("{name}: {} {}", saved.status, json!(diagnostics))];
    }
    let id = saved.body["automation"]["id"].as_str().unwrap().to_owned();
    stage.world.automation("POST", &format!("/{id}/activate"), &json!({"version": 1})).await.expect(200);
    let automation = stage.world.automation_row(&id).await;
    if automation.trigger_type == "polling" {
        assert_eq!(stage.world.run_scheduled().await, 0);
    }
    let (mut wrong, mut newest) = (Vec::new(), Value::Null);
    for (place, step) in script["steps"].as_array().unwrap().iter().enumerate() {
        let (asked, changed) = (&step["answers"], &step["polls"]);
        let before = stage.set_answers(asked);
        stage.set_answers(changed);
        let known: Vec<Value> = stage.world.runs_of(&id).iter().map(|run| run["id"].clone()).collect();
        stage.happens(&automation, step).await;
        let (all, effects) = (stage.world.runs_of(&id), stage.effects());
        let begun: Vec<&Value> = all.iter().map(|run| &run["id"]).filter(|id| !known.contains(id)).collect();
        if let Some(run) = begun.first() {
            newest = (*run).clone();
        }
        let going_on = ["time_comes", "approve", "refuse"].iter().any(|what| step.get(what).is_some());
        let starts = step["starts"].as_u64().unwrap_or(u64::from(!going_on));
        if begun.len() as u64 != starts {
            wrong.push(format!("{name} {place}: {} runs began, not {starts}", begun.len()));
        }
        let status = step["status"].as_str().or((starts > 0 || going_on).then_some("completed"));
        if let (Some(status), Some(run)) = (status, all.iter().find(|run| run["id"] == newest))
            && run["status"] != status
        {
            wrong.push(format!("{name} {place}: {} instead of {status}: {}", run["status"], run["error"]));
        }
        let expected = step["effects"].as_array().map_or(&[][..], Vec::as_slice);
        if !is_like(&json!(expected), &json!(effects)) {
            wrong.push(format!("{name} {place} sent {}", json!([name, place, effects])));
        }
        if step.get("occurs").is_none() {
            stage.happens(&automation, step).await;
            let again = stage.effects();
            if !again.is_empty() || stage.world.runs_of(&id).len() != all.len() {
                wrong.push(format!("{name} {place}: a repetition began a run or sent {again:?}"));
            }
        }
        stage.restore(before);
        stage.set_answers(changed);
    }
    wrong
}

async fn all_played(mistaken: bool) {
    let names = names();
    assert!(names.len() >= 30, "{names:?}");
    let played = stream::iter(&names).map(|name| played(name, mistaken)).buffer_unordered(4).collect::<Vec<_>>().await;
    let wrong = played.concat();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[tokio::test]
async fn every_example_deploys_and_does_what_it_says_once() {
    all_played(false).await;
}

/// One typical mistake in each example.
#[tokio::test]
async fn a_mistake_is_repaired_from_its_diagnostics_alone() {
    all_played(true).await;
}
