//! Cursors of one list in another: DynamoDB refuses a place outside the bounds of a query.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test says what is wrong and stops")]

use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use serde_json::{Value, json};
use shared::models::Timestamp;
use tests::{Answer, Event, World, ai_sms};

/// Path and function of each list with `since` and `until`.
const LISTS: [(&str, &str); 7] = [
    ("/runs", "runs"),
    ("/runs?automation_id=0193a9f0-0000-7000-8000-0000000000e9", "runs"),
    ("/calls", "calls"),
    ("/events", "hooks"),
    ("/events?matched=false", "hooks"),
    ("/executions", "list-tools"),
    ("/audit", "members"),
];

async fn page(world: &World, (path, function): (&str, &str), query: &[(&str, &str)]) -> Answer {
    let (path, first) = path.split_once('?').unwrap_or((path, ""));
    let event = Event::get(&format!("/api/{}{path}", world.home.slug)).user(&world.home.user_id);
    let event = first.split_once('=').into_iter().fold(event, |event, (name, value)| event.query(name, value));
    world.send(function, &query.iter().fold(event, |event, (name, value)| event.query(name, value))).await
}

/// A cursor at midnight of this day.
fn cursor(path: &str, day: &str) -> String {
    let at: Timestamp = format!("{day}T00:00:00.000Z").parse().unwrap();
    let place = if path == "/executions" {
        let millis = u64::try_from(at.as_millis()).unwrap();
        uuid::Builder::from_unix_timestamp_millis(millis, &[7; 10]).into_uuid().to_string()
    } else {
        format!("{day}T00:00:00.000Z 0193a9f0-0000-7000-8000-000000000001")
    };
    BASE64_URL_SAFE_NO_PAD.encode(place)
}

#[tokio::test]
async fn a_cursor_outside_the_times_of_a_list_ends_it_or_is_named() {
    let world = World::start().await;
    for list in LISTS {
        let times = [("since", "2026-03-01T00:00:00Z"), ("until", "2026-04-01T00:00:00Z")];
        let asked = async |day: &str| {
            let cursor = cursor(list.0, day);
            page(&world, list, &[times[0], times[1], ("cursor", &cursor)]).await
        };
        for day in ["2026-03-15", "2026-02-01"] {
            assert_eq!(asked(day).await.expect(200), json!({"items": [], "next_cursor": null}), "{list:?} {day}");
        }
        let refused = asked("2026-05-01").await.expect(422);
        let said = "is later than until, so it is of another list; leave it out to begin with the first page";
        assert_eq!(refused["errors"], json!([{"field": "cursor", "problem": said}]), "{list:?}");
        // Without times every place is one of the list.
        page(&world, list, &[("cursor", &cursor(list.0, "2026-05-01"))]).await.expect(200);
    }
}

#[tokio::test]
async fn a_cursor_without_a_time_is_named() {
    let world = World::start().await;
    for list in LISTS.into_iter().filter(|(path, _)| !["/audit", "/executions"].contains(path)) {
        for place in ["", "tomorrow", "~", "0", "2026-13-01T00:00:00Z"] {
            let cursor = BASE64_URL_SAFE_NO_PAD.encode(format!("{place} 0193a9f0-0000-7000-8000-000000000001"));
            let refused = page(&world, list, &[("cursor", &cursor)]).await.expect(422);
            assert_eq!(refused["errors"][0]["field"], "cursor", "{list:?} {place:?}");
        }
    }
    let tool = world.attached(&ai_sms()).await;
    let path = format!("/tools/{}/executions", tool["id"].as_str().unwrap());
    let late = cursor("/executions", "2026-05-01");
    let answer = world.list(&format!("{path}?until=2026-04-01T00:00:00Z&cursor={late}")).await;
    assert_eq!(answer.expect(422)["errors"][0]["field"], Value::from("cursor"));
}

#[tokio::test]
async fn times_before_the_year_0_are_before_every_item() {
    const LONG_AGO: &str = "-000001-01-01T00:00:00Z";
    let world = World::start().await;
    for list in LISTS {
        for name in ["since", "until"] {
            let answer = page(&world, list, &[(name, LONG_AGO)]).await.expect(200);
            assert_eq!(answer["next_cursor"], Value::Null, "{list:?} {name}");
        }
    }
    for long_ago in [LONG_AGO, "1960-01-01T00:00:00Z"] {
        let plan = world.replays(&world.home, "POST", "", &json!({"until": long_ago})).await.expect(201);
        assert_eq!(plan["events"], 0, "{plan}");
    }
}
