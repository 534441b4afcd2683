//! Loads of the catalogue that break off, meet or come too late.

use std::{collections::BTreeSet, time::Duration};

use serde_json::{Value, json};
use shared::{Deadline, Error};
use tests::{Fault, Trouble, World};

use super::{invoke, load, row, small, stored};

#[tokio::test]
async fn a_load_that_breaks_off_is_mended_by_the_next() {
    let whole = World::start().await;
    load(&whole, &small()).await;
    let expected: BTreeSet<String> = essentials(&whole);
    for (table, action) in [
        ("service_tools", "PutItem"),
        ("service_capabilities", "PutItem"),
        ("services", "PutItem"),
        ("service_tools", "Scan"),
    ] {
        let world = World::start().await;
        world.aws.inject(Fault::new(action, table, Trouble::Error("AccessDeniedException")));
        let broken = invoke(&world, json!({"files": small()})).await;
        if action == "Scan" {
            assert!(broken.is_err(), "{broken:?}");
        } else {
            let broken = broken.unwrap();
            assert_eq!(broken["result"], "broke_off", "{table}: {broken}");
            // It reports exactly the written rows.
            let written: BTreeSet<&str> = ["tools", "services", "capabilities"]
                .iter()
                .flat_map(|kind| broken["written"][kind].as_array().unwrap())
                .map(|name| name.as_str().unwrap())
                .collect();
            let rows = stored(&world);
            let name = |row: &Value| row.get("name").unwrap_or(&row["service_name"]).as_str().unwrap().to_owned();
            let there: BTreeSet<String> = rows.iter().map(name).collect();
            assert!(written.iter().copied().eq(there.iter().map(String::as_str)), "{table}: {broken} {there:?}");
        }
        let report = load(&world, &small()).await;
        assert_eq!(report["result"], "loaded", "{table} {action}");
        assert_eq!(essentials(&world), expected, "{table} {action}");
        assert_eq!(load(&world, &small()).await["services"], json!({}), "{table} {action}");
    }
}

#[tokio::test]
async fn tools_of_a_load_that_broke_off_and_is_never_repeated_end() {
    let world = World::start().await;
    world.aws.inject(Fault::new("PutItem", "services", Trouble::Error("AccessDeniedException")));
    assert_eq!(load(&world, &small()).await["result"], "broke_off");
    let mut files = small();
    files.as_object_mut().unwrap().remove("chat.json");
    load(&world, &files).await;
    assert!(world.aws.rows("services").iter().all(|row| row["name"] != "Chat"));
    for name in ["chat_send", "chat_find"] {
        assert_eq!(row(&world, "service_tools", name)["is_active"], false, "{name}");
    }
}

/// The stored rows, without times.
fn essentials(world: &World) -> BTreeSet<String> {
    let without_times = |mut row: Value| {
        let row = row.as_object_mut().unwrap();
        row.retain(|name, _| !name.ends_with("_at"));
        Value::Object(std::mem::take(row)).to_string()
    };
    stored(world).into_iter().map(without_times).collect()
}

#[tokio::test]
async fn two_loads_do_not_mix() {
    let world = World::start().await;
    let mut other = small();
    for file in ["chat.json", "weather.json"] {
        for tool in other[file]["tools"].as_array_mut().unwrap() {
            tool["returns"] = json!("Something else.");
        }
    }
    let first = small();
    let (one, two) = futures_util::join!(load(&world, &first), load(&world, &other));
    assert_eq!((&one["result"], &two["result"]), (&json!("loaded"), &json!("loaded")));
    let returns: BTreeSet<bool> =
        world.aws.rows("service_tools").iter().map(|tool| tool["returns"] == "Something else.").collect();
    assert_eq!(returns.len(), 1, "all tools are of the one or of the other");
    // A load does not wait without end for the lease.
    world.aws.change("services", "load", json!({"lease_token": "other", "lease_until": 99_999_999_999_999_i64}));
    let event = json!({"files": small()});
    let refused = operator::handle(&world.process.operator, event, Deadline::after(Duration::from_millis(300))).await;
    assert!(matches!(&refused, Err(Error::Conflict(why)) if why.contains("catalogue")), "{refused:?}");
    assert!(world.process.operator.services.all().await.unwrap().len() == 2, "the lease is no service");
    // It stops waiting while there is still time for the load.
    let waited = std::time::Instant::now();
    let deadline = Deadline::after(Duration::from_secs(31));
    let refused = operator::handle(&world.process.operator, json!({"files": small()}), deadline).await;
    assert!(matches!(&refused, Err(Error::Conflict(_))) && waited.elapsed() < Duration::from_secs(15), "{refused:?}");
}

#[tokio::test]
async fn a_load_begins_to_write_only_with_time_to_end() {
    let world = World::start().await;
    let event = json!({"files": small()});
    let deadline = Deadline::after(Duration::from_secs(10));
    let refused = operator::handle(&world.process.operator, event, deadline).await;
    assert!(matches!(&refused, Err(Error::Conflict(why)) if why.contains("nothing was written")), "{refused:?}");
    assert_eq!(stored(&world), Vec::<Value>::new());
    assert_eq!(load(&world, &small()).await["result"], "loaded", "nobody is in its way");
}
