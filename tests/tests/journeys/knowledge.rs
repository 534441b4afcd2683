//! Knowledge bases: loading, refusals, and the model's results.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test says what is wrong and stops")]

use futures_util::future::join_all;
use serde_json::{Value, json};
use tests::{Answer, Event, Fault, Trouble, World};
use uuid::Uuid;

fn fields() -> Value {
    json!([
        {"name": "city", "type": "text", "label": "City"}, {"name": "price", "type": "number"},
        {"name": "bedrooms", "type": "number"}, {"name": "garden", "type": "boolean"},
    ])
}

fn homes() -> Value {
    json!([
        {"id": "h1", "city": "Porto", "price": 450_000, "bedrooms": 3, "garden": true, "text": "House by the river"},
        {"id": "h2", "city": "Porto", "price": 240_000, "bedrooms": 2, "text": "Flat with a view of the river"},
        {"id": "h3", "city": "Faro", "price": 310_000, "bedrooms": 2, "garden": false, "text": "Beach house"},
        {"id": "h4", "city": "Évora", "price": 199_500.5, "bedrooms": 1, "text": "Studio in the old town"},
    ])
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap()
}

async fn base(world: &World) -> String {
    text(&world.knowledge_base(&fields(), &homes()).await["id"]).to_owned()
}

fn query(base: &str) -> Value {
    json!({"type": "query", "label": "Find a home", "description": "Finds homes for sale.", "knowledge_base_id": base})
}

async fn ask(world: &World, tool: &Value, arguments: Value) -> Value {
    world.call_tool(&world.call(tool, arguments)).await.result().clone()
}

async fn load(world: &World, base: &str, entries: Value) -> Value {
    world.knowledge("POST", &format!("/{base}/entries"), &json!({"entries": entries})).await.expect(200)
}

async fn load_csv(world: &World, base: &str, table: &str) -> Answer {
    let path = format!("/api/{}/knowledge-bases/{base}/entries", world.home.slug);
    let event = Event::new("POST", &path).user(&world.home.user_id).header("content-type", "text/csv").text(table);
    world.send("knowledge", &event).await
}

/// The row's counts, which must equal the stored entries.
async fn held(world: &World, base: &str) -> (u64, u64) {
    let row = world.knowledge("GET", &format!("/{base}"), &Value::Null).await.expect(200);
    let there =
        world.aws.rows("knowledge_entries").into_iter().filter(|entry| entry["knowledge_base_id"] == base).count();
    assert_eq!(row["entries"], there);
    (row["entries"].as_u64().unwrap(), row["version"].as_u64().unwrap())
}

#[tokio::test]
async fn a_model_finds_loaded_entries() {
    let world = World::start().await;
    let tool = world.attached(&query(&base(&world).await)).await;
    let found = ask(&world, &tool, json!({"query": "houses", "price_at_most": 400_000})).await;
    assert_eq!(found["matched"], 1);
    assert_eq!(found["entries"], json!(["City: Faro; price: 310000; bedrooms: 2; garden: no. Beach house"]));
    for (arguments, matched) in [
        (json!({"query": "river"}), 2),
        (json!({"query": "river", "bedrooms_at_least": 3}), 1),
        (json!({"query": "town", "city_one_of": ["evora", "Faro"]}), 1),
        (json!({"query": "house", "garden_equals": true}), 1),
        (json!({"query": "river", "city_one_of": [], "price_at_most": null, "price_at_least": ""}), 2),
    ] {
        assert_eq!(ask(&world, &tool, arguments.clone()).await["matched"], matched, "{arguments}");
    }
    assert!(world.executions().iter().all(|row| row["status"] == "succeeded"));
    assert!(world.aws.rows("idempotency").is_empty(), "looking something up claims nothing");
}

#[tokio::test]
async fn an_empty_result_is_reported_as_empty() {
    let world = World::start().await;
    let tool = world.attached(&query(&base(&world).await)).await;
    for arguments in [json!({"query": "castle"}), json!({"query": "river", "city_one_of": ["Lisboa"]})] {
        let found = ask(&world, &tool, arguments).await;
        assert_eq!((&found["matched"], &found["entries"]), (&json!(0), &json!([])));
        assert!(text(&found["note"]).contains("Nothing"), "{found}");
    }
    let found = ask(&world, &tool, json!({"query": "castle", "city_one_of": ["Porto"]})).await;
    assert_eq!(found["matched"], 2);
    assert!(text(&found["note"]).contains("none of the words"), "{found}");
    for (arguments, named) in [
        (json!({"query": "x", "price_at_most": "cheap"}), "price_at_most"),
        (json!({"query": "x", "city_one_of": "Porto"}), "city_one_of"),
        (json!({}), "query"),
    ] {
        let answer = world.call_tool(&world.call(&tool, arguments)).await;
        assert!(answer.sentence().contains(named), "{}", answer.body);
    }
}

#[tokio::test]
async fn the_tool_calls_message_is_answered_too() {
    let world = World::start().await;
    let tool = world.tool(&query(&base(&world).await)).await;
    world.function_tool(&tool).await;
    let answer = world.call_tool(&world.call(&tool, json!({"query": "beach"}))).await.expect(200);
    let result: Value = serde_json::from_str(text(&answer["results"][0]["result"])).unwrap();
    assert_eq!(result["result"]["matched"], 1);
    let answer = world.call_tool(&world.call(&tool, json!({"query": "beach", "price_at_most": "x"}))).await.expect(200);
    assert!(text(&answer["results"][0]["error"]).contains("price_at_most"));
}

#[tokio::test]
async fn a_fixed_query_runs_without_a_model() {
    let world = World::start().await;
    let base = base(&world).await;
    let mut config = query(&base);
    config["attach_to_agent"] = json!(false);
    config["execute_on_call_start"] = json!(true);
    assert_eq!(world.create(&config).await.wrong_fields(), ["query"]);
    config["query"] = json!("river");
    config["filters"] = json!({"price": ["at_most"]});
    assert_eq!(world.create(&config).await.wrong_fields(), ["filters.price.at_most"]);
    config["filters"] = json!({"price": {"at_most": {"mode": "fixed", "value": 300_000}}});
    let tool = world.tool(&config).await;
    assert_eq!(tool["static_config"]["filters"], json!({"price": {"at_most": 300_000}}));
    // In a conversation, too, the model cannot reach beyond the fixed filter.
    config["attach_to_agent"] = json!(true);
    let tool = world.attached(&config).await;
    assert_eq!(tool["function_schema"]["parameters"]["properties"].as_object().unwrap().len(), 1);
    for arguments in [json!({}), json!({"query": "house", "price_at_most": 900_000})] {
        let found = ask(&world, &tool, arguments).await;
        assert!(found["matched"] == 1 && text(&found["entries"][0]).contains("Flat"), "{found}");
    }
}

#[tokio::test]
async fn filters_are_derived_from_the_base_and_stored() {
    let world = World::start().await;
    let base = base(&world).await;
    let mut config = query(&base);
    config["filters"] = json!({"price": ["at_most"], "city": ["equals"]});
    let tool = world.tool(&config).await;
    let properties = &tool["function_schema"]["parameters"]["properties"];
    assert_eq!(properties["price_at_most"]["type"], "number");
    assert_eq!(properties["city_equals"]["type"], "string");
    assert_eq!(properties.as_object().unwrap().len(), 3);
    assert_eq!(tool["config_metadata"]["filters"]["price"]["at_most"]["mode"], "ai");
    for (filters, named) in [
        (json!({"colour": ["equals"]}), "filters.colour"),
        (json!({"city": ["at_most"]}), "filters.city.at_most"),
        (json!([]), "filters"),
    ] {
        config["filters"] = filters;
        assert_eq!(world.create(&config).await.wrong_fields(), [named]);
    }
}

#[tokio::test]
async fn loaded_and_deleted_entries_take_effect_at_once() {
    let world = World::start().await;
    let base = base(&world).await;
    let tool = world.attached(&query(&base)).await;
    let beach = json!({"query": "beach"});
    assert_eq!(ask(&world, &tool, beach.clone()).await["matched"], 1);
    load(&world, &base, json!([{"id": "h5", "text": "Beach cabin"}, {"id": "h1", "text": "Beach palace"}])).await;
    assert_eq!(ask(&world, &tool, beach.clone()).await["matched"], 3);
    world.knowledge("DELETE", &format!("/{base}/entries/h5"), &Value::Null).await.expect(200);
    assert_eq!(ask(&world, &tool, beach.clone()).await["matched"], 2);
    assert_eq!(held(&world, &base).await.0, 4, "h1 was replaced");
    world.knowledge("DELETE", &format!("/{base}/entries/h5"), &Value::Null).await.expect(404);
    assert_eq!(held(&world, &base).await.0, 4);
}

#[tokio::test]
async fn entries_are_read_once_and_the_version_every_time() {
    let world = World::start().await;
    let base = base(&world).await;
    let tool = world.attached(&query(&base)).await;
    let call = world.call(&tool, json!({"query": "river"}));
    world.call_tool(&call).await.result();
    world.aws.clear_operations();
    world.call_tool(&call).await.result();
    let on = |action: &str, table: &str| {
        world.aws.dynamodb().iter().filter(|done| done.action == action && done.on.iter().any(|on| on == table)).count()
    };
    assert_eq!((on("GetItem", "knowledge_bases"), on("Query", "knowledge_entries")), (1, 0));
    load(&world, &base, json!([{"text": "River again"}])).await;
    world.aws.clear_operations();
    world.call_tool(&call).await.result();
    assert_eq!((on("GetItem", "knowledge_bases"), on("Query", "knowledge_entries")), (1, 1));
}

#[tokio::test]
async fn a_base_that_is_not_read_in_time_is_read_on_by_the_next_search() {
    let world = World::start().await;
    let base = base(&world).await;
    let tool = world.attached(&query(&base)).await;
    // More than a page of DynamoDB's.
    let words = format!("River {}", "lorem ".repeat(60_000));
    let now = "2026-11-20T16:20:52.123Z";
    for number in 0..4 {
        let entry = json!({
            "knowledge_base_id": base, "id": format!("large-{number}"), "organization_id": world.home.organization_id,
            "text": words, "created_at": now, "updated_at": now,
        });
        world.aws.put("knowledge_entries", &entry);
    }
    world.aws.inject(Fault::new("Query", "knowledge_entries", Trouble::StallBefore).after(1).times(9));
    let call = world.call(&tool, json!({"query": "lorem"}));
    let late = world.send("execute", &world.vapi_event(&call).within(std::time::Duration::from_secs(5))).await;
    assert!(late.sentence().contains("could not be read in time; try again"), "{}", late.body);
    world.aws.clear_faults();
    world.aws.clear_operations();
    let found = world.call_tool(&call).await.result().clone();
    assert_eq!(found["matched"], 4, "{found}");
    let reads = world.aws.dynamodb().into_iter().filter(|done| done.action == "Query");
    let reads = reads.filter(|done| done.on.iter().any(|on| on == "knowledge_entries"));
    assert_eq!(reads.count(), 1, "the first page was kept");
}

#[tokio::test]
async fn a_base_that_is_being_read_keeps_no_other_waiting_and_is_read_once() {
    let world = World::start().await;
    let (busy, other) = (base(&world).await, base(&world).await);
    let mut of_other = query(&other);
    of_other["label"] = json!("Find another home");
    let (tool, of_other) = (world.attached(&query(&busy)).await, world.attached(&of_other).await);
    let river = || json!({"query": "river"});
    ask(&world, &of_other, river()).await;
    world.aws.inject(Fault::new("Query", "knowledge_entries", Trouble::StallBefore).times(99));
    let call = world.call(&tool, river());
    let others = async {
        world.aws.stalled().await;
        ask(&world, &of_other, river()).await
    };
    tokio::select! {
        _ = join_all([world.call_tool(&call), world.call_tool(&call)]) => panic!("the other search waited"),
        found = others => assert_eq!(found["matched"], 2),
    }
    world.aws.clear_faults();
    world.aws.clear_operations();
    join_all([ask(&world, &tool, river()), ask(&world, &tool, river())]).await;
    let reads = world.aws.dynamodb().into_iter().filter(|done| done.action == "Query");
    assert_eq!(reads.filter(|done| done.on == ["knowledge_entries"]).count(), 1);
}

#[tokio::test]
async fn a_table_is_loaded_with_a_report_of_its_wrong_rows() {
    let world = World::start().await;
    let base = base(&world).await;
    let table = "\u{feff}id,City,price,garden,text\r\n\
                 t1,\"Vila Real, Norte\",100000,yes,\"Old \"\"quinta\"\"\r\nwith a well\"\r\n\
                 t2,Braga,\"100,000\",yes,Flat\r\n\
                 t3,Braga,1,no\r\n\
                 t1,Braga,1,no,Twin\r\n";
    let report = load_csv(&world, &base, table).await.expect(200);
    assert_eq!((&report["loaded"], &report["refused_rows"]), (&json!(1), &json!(3)));
    let refused: Vec<(u64, &str)> = report["refused"]
        .as_array()
        .unwrap()
        .iter()
        .map(|refused| (refused["row"].as_u64().unwrap(), text(&refused["field"])))
        .collect();
    assert_eq!(refused, [(3, "price"), (4, "entry"), (5, "id")]);
    let entry = world.aws.rows("knowledge_entries").into_iter().find(|entry| entry["id"] == "t1").unwrap();
    assert_eq!(entry["values"], json!({"city": "Vila Real, Norte", "price": 100_000, "garden": true}));
    assert_eq!(entry["text"], "Old \"quinta\"\r\nwith a well");
    assert_eq!(load_csv(&world, &base, "id,agent\nx,y\n").await.wrong_fields(), ["columns.agent"]);
    load_csv(&world, &base, "").await.expect(400);
    assert_eq!(held(&world, &base).await.0, 5);
}

#[tokio::test]
async fn the_same_rows_sent_twice_are_there_once() {
    let world = World::start().await;
    let base = base(&world).await;
    let rows = json!((0..250).map(|n| json!({"price": n, "text": format!("Home number {n}")})).collect::<Vec<_>>());
    for _ in 0..2 {
        assert_eq!(load(&world, &base, rows.clone()).await, json!({"loaded": 250, "refused_rows": 0, "refused": []}));
        assert_eq!(held(&world, &base).await.0, 254);
    }
    let created = |rows: Vec<Value>| -> Vec<Value> { rows.into_iter().map(|row| row["created_at"].clone()).collect() };
    let before = created(world.aws.rows("knowledge_entries"));
    load(&world, &base, rows).await;
    assert_eq!(created(world.aws.rows("knowledge_entries")), before, "what is replaced stays as old as it is");
}

#[tokio::test]
async fn loads_at_the_same_moment_are_counted_right() {
    let world = World::start().await;
    let base = base(&world).await;
    let loads = (0..6).map(|part| {
        let rows: Vec<Value> =
            (0..40).map(|row| json!({"id": format!("r{}", part * 20 + row), "text": format!("Part {part}")})).collect();
        load(&world, &base, json!(rows))
    });
    let reports = join_all(loads).await;
    assert!(reports.iter().all(|report| report["loaded"] == 40), "{reports:?}");
    let (entries, version) = held(&world, &base).await;
    assert_eq!((entries, version), (4 + 140, 1 + 6), "overlapping ids count once");
}

#[tokio::test]
async fn a_full_base_takes_replacements_and_refuses_new_entries() {
    let world = World::start().await;
    let base = base(&world).await;
    let row = world.aws.row("knowledge_bases", &base).unwrap();
    world.aws.change("knowledge_bases", &base, json!({"entries": 9_999}));
    let report = load(&world, &base, json!([{"text": "a"}, {"text": "b"}, {"id": "h1", "text": "c"}])).await;
    assert_eq!(report["loaded"], 2);
    assert_eq!((&report["refused"][0]["row"], &report["refused_rows"]), (&json!(2), &json!(1)));
    assert!(text(&report["refused"][0]["problem"]).contains("no room"));
    assert_eq!(row["entries"], 4);
}

#[tokio::test]
async fn an_outage_half_way_is_reported_row_by_row() {
    let world = World::start().await;
    let base = base(&world).await;
    let rows = json!((0..150).map(|n| json!({"id": format!("n{n}"), "text": "x"})).collect::<Vec<_>>());
    let path = format!("/{base}/entries");
    world.aws.inject(Fault::throttled("TransactWriteItems", "*"));
    world.knowledge("POST", &path, &json!({"entries": rows})).await.expect(503);
    world.aws.clear_faults();
    assert_eq!(held(&world, &base).await.0, 4);
    world.aws.inject(Fault::throttled("TransactWriteItems", "*").after(1));
    let report = load(&world, &base, rows.clone()).await;
    assert_eq!((&report["loaded"], &report["refused_rows"]), (&json!(98), &json!(52)));
    assert!(text(&report["refused"][0]["problem"]).contains("send it again"));
    world.aws.clear_faults();
    assert_eq!(load(&world, &base, rows).await["loaded"], 150);
    assert_eq!(held(&world, &base).await.0, 154);
}

#[tokio::test]
async fn bases_and_entries_are_listed_in_pages() {
    let world = World::start().await;
    let ours = [base(&world).await, base(&world).await, base(&world).await];
    let theirs = json!({"name": "Theirs"});
    world.knowledge_as(&world.other, "POST", "", &theirs).await.expect(201);
    let get = async |path: &str, limit: &str, cursor: &str| {
        let path = format!("/api/{}/knowledge-bases{path}", world.home.slug);
        let event = Event::get(&path).user(&world.home.user_id).query("limit", limit).query("cursor", cursor);
        world.send("knowledge", &event).await
    };
    let first = get("", "2", "").await.expect(200);
    let second = get("", "2", text(&first["next_cursor"])).await.expect(200);
    let ids = |page: &Value| {
        page["items"].as_array().unwrap().iter().map(|row| text(&row["id"]).to_owned()).collect::<Vec<_>>()
    };
    assert_eq!([ids(&first), ids(&second)].concat(), ours.iter().rev().cloned().collect::<Vec<_>>(), "newest first");
    let entries = format!("/{}/entries", ours[0]);
    let first = get(&entries, "3", "").await.expect(200);
    let second = get(&entries, "3", text(&first["next_cursor"])).await.expect(200);
    assert_eq!([ids(&first), ids(&second)].concat(), ["h1", "h2", "h3", "h4"]);
    assert_eq!(first["items"][1]["values"], json!({"city": "Porto", "price": 240_000, "bedrooms": 2}));
    for (path, limit, cursor, field) in
        [("", "0", "", "limit"), ("", "5", "x", "cursor"), (&entries, "5", "%", "cursor")]
    {
        assert_eq!(get(path, limit, cursor).await.wrong_fields(), [field]);
    }
}

#[tokio::test]
async fn a_base_of_another_organization_does_not_exist() {
    let world = World::start().await;
    let theirs = world.knowledge_as(&world.other, "POST", "", &json!({"name": "Theirs"})).await.expect(201);
    let theirs = text(&theirs["id"]).to_owned();
    let entries = json!({"entries": [{"id": "e", "text": "Secret"}]});
    world.knowledge_as(&world.other, "POST", &format!("/{theirs}/entries"), &entries).await.expect(200);
    for id in [theirs.as_str(), &Uuid::new_v4().to_string(), "no-id"] {
        for (method, path) in [
            ("GET", format!("/{id}")),
            ("DELETE", format!("/{id}")),
            ("POST", format!("/{id}/entries")),
            ("GET", format!("/{id}/entries")),
            ("DELETE", format!("/{id}/entries/e")),
        ] {
            let body = if path.ends_with("/entries") && method != "GET" { entries.clone() } else { Value::Null };
            world.knowledge(method, &path, &body).await.expect(404);
        }
        assert_eq!(world.create(&query(id)).await.wrong_fields(), ["knowledge_base_id"]);
    }
    // As if a fault had made our tool for their base.
    let mut tool = world.attached(&query(&base(&world).await)).await;
    tool["config_metadata"]["knowledge_base_id"] = json!(theirs);
    world.aws.put("tools", &tool);
    let answer = world.call_tool(&world.call(&tool, json!({"query": "secret"}))).await;
    assert!(answer.sentence().contains("no longer there"), "{}", answer.body);
    assert_eq!(world.aws.rows("knowledge_entries").iter().filter(|row| row["knowledge_base_id"] == theirs).count(), 1);
}

#[tokio::test]
async fn a_base_that_is_searched_is_not_deleted_and_one_that_is_not_goes_with_its_entries() {
    let world = World::start().await;
    let (used, free) = (base(&world).await, base(&world).await);
    world.attached(&query(&used)).await;
    let refused = world.knowledge("DELETE", &format!("/{used}"), &Value::Null).await.expect(409);
    assert!(text(&refused["detail"]).contains("Front desk"), "{refused}");
    let spare = base(&world).await;
    world.tool(&query(&spare)).await;
    let refused = world.knowledge("DELETE", &format!("/{spare}"), &Value::Null).await.expect(409);
    assert!(text(&refused["detail"]).contains("Find a home"), "{refused}");

    let rows: Vec<Value> = (0..300).map(|n| json!({"id": format!("n{n}"), "text": "x"})).collect();
    load(&world, &free, json!(rows)).await;
    // The process dies half way: nothing is loaded or found any more, and a second DELETE continues.
    world.aws.inject(Fault::new("BatchWriteItem", "*", Trouble::Error("AccessDeniedException")).after(6));
    world.knowledge("DELETE", &format!("/{free}"), &Value::Null).await.expect(500);
    world.aws.clear_faults();
    let left = world.aws.rows("knowledge_entries").iter().filter(|row| row["knowledge_base_id"] == free).count();
    assert!(left > 0 && left < 304, "{left}");
    let row = world.knowledge("GET", &format!("/{free}"), &Value::Null).await.expect(200);
    assert_eq!(row["deleting"], true);
    world.knowledge("POST", &format!("/{free}/entries"), &json!({"entries": [{"text": "x"}]})).await.expect(409);
    assert_eq!(world.create(&query(&free)).await.wrong_fields(), ["knowledge_base_id"]);
    world.knowledge("DELETE", &format!("/{free}"), &Value::Null).await.expect(200);
    assert!(world.aws.rows("knowledge_entries").iter().all(|row| row["knowledge_base_id"] != free));
    world.knowledge("GET", &format!("/{free}"), &Value::Null).await.expect(404);
    world.knowledge("DELETE", &format!("/{free}"), &Value::Null).await.expect(404);
    assert_eq!((held(&world, &used).await.0, held(&world, &spare).await.0), (4, 4));
}

#[tokio::test]
async fn everything_wrong_with_a_base_is_named_and_nothing_is_made() {
    let world = World::start().await;
    for (body, fields) in [
        (json!({}), vec!["name"]),
        (
            json!({"name": "x", "fields": [{"name": "Price", "type": "money"}], "size": 1}),
            vec!["fields[0].name", "fields[0].type", "size"],
        ),
        (json!({"name": "x", "fields": [{"name": "text", "type": "text"}]}), vec!["fields[0].name"]),
    ] {
        assert_eq!(world.knowledge("POST", "", &body).await.wrong_fields(), fields);
    }
    assert!(world.aws.rows("knowledge_bases").is_empty());
}
