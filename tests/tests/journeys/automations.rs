//! Automations, from an agent's first try to the running version.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "a test says what is wrong and stops")]

use std::time::Duration;

use futures_util::{future::join_all, join};
use serde_json::{Value, json};
use tests::{Answer, Fault, Trouble, World, automation_event};

async fn world() -> World {
    let world = World::start().await;
    world.slack_service();
    world.slack_hook().await;
    world
}

/// The diagnostics, as `pointer code`.
fn told(body: &Value) -> Vec<String> {
    let one = |one: &Value| format!("{} {}", one["pointer"].as_str().unwrap(), one["code"].as_str().unwrap());
    body["diagnostics"].as_array().unwrap().iter().map(one).collect()
}

async fn deployed(world: &World) -> (String, String) {
    let answer = world.deploy(&world.urgent_messages()).await;
    let etag = answer.headers["etag"].clone();
    let body = answer.expect(201);
    (body["automation"]["id"].as_str().unwrap().to_owned(), etag)
}

fn stored(world: &World) -> (usize, usize) {
    (world.aws.rows("automations").len(), world.aws.rows("automation_versions").len())
}

#[tokio::test]
async fn an_agent_is_refused_repairs_from_the_text_and_is_accepted_and_a_person_activates() {
    let world = world().await;
    let mut definition = world.urgent_messages();
    definition["actions"][0]["parameters"]["text"] = json!("Alert: {{event.txt}}");
    definition["actions"][0]["parameters"]["chanel"] = definition["actions"][0]["parameters"]["channel"].take();
    definition["actions"][0]["parameters"].as_object_mut().unwrap().remove("channel");
    let event = automation_event(&world.home, "POST", "", &definition).header("accept", "text/plain");
    let refused = world.send("deploy", &event).await;
    assert_eq!((refused.status, refused.content_type.as_str()), (422, "text/plain; charset=utf-8"));
    let text = refused.body.as_str().unwrap();
    assert!(text.starts_with("Nothing was saved or changed: 3 errors, 0 warnings."), "{text}");
    for part in [
        "- /actions/0/parameters/text (unknown_path): ",
        "Write event.text if you meant that.",
        "- /actions/0/parameters/chanel (unknown_parameter): ",
        "Write channel if you meant that.",
    ] {
        assert!(text.contains(part), "{text}");
    }
    // JSON has the same diagnostics, and a dry run answers the same body.
    let body = world.deploy(&definition).await.expect(422);
    assert_eq!((&body["result"], &body["truncated"], body.get("automation")), (&json!("failed"), &json!(false), None));
    definition["dry_run"] = json!(true);
    assert_eq!(world.deploy(&definition).await.expect(200), body);
    assert_eq!(stored(&world), (0, 0));

    let fixed = world.urgent_messages();
    let mut dry = fixed.clone();
    dry["dry_run"] = json!(true);
    assert_eq!(world.deploy(&dry).await.expect(200), json!({"result": "ok", "diagnostics": [], "truncated": false}));
    assert_eq!(stored(&world), (0, 0));
    let saved = world.deploy(&fixed).await.expect(201);
    assert_eq!((&saved["result"], &saved["diagnostics"]), (&json!("ok"), &json!([])));
    let automation = &saved["automation"];
    assert_eq!((&automation["version"], &automation["status"]), (&json!(1), &json!("pending_review")));
    assert_eq!(automation["active_version"], json!(null));

    let id = automation["id"].as_str().unwrap();
    let shown = world.automation("GET", &format!("/{id}"), &Value::Null).await;
    assert_eq!(shown.headers["etag"], "\"1\"");
    let shown = shown.expect(200);
    assert_eq!(
        (&shown["definition"], &shown["status"], &shown["created_by"]),
        (&fixed, &json!("pending_review"), &json!(world.home.user_id))
    );
    let active = world.automation("POST", &format!("/{id}/activate"), &json!({"version": 1})).await.expect(200);
    assert_eq!(
        (&active["automation"]["status"], &active["automation"]["active_version"]),
        (&json!("active"), &json!(1))
    );
    let shown = world.automation("GET", &format!("/{id}"), &Value::Null).await.expect(200);
    assert_eq!((&shown["activated_by"], &shown["active_version"]), (&json!(world.home.user_id), &json!(1)));
}

#[tokio::test]
async fn the_same_content_again_is_the_same_automation_however_often_and_however_written() {
    let world = world().await;
    let definition = world.urgent_messages();
    let all: Vec<Answer> = join_all((0..4).map(|_| world.deploy(&definition))).await;
    let mut created: Vec<u16> = all.iter().map(|answer| answer.status).collect();
    created.sort_unstable();
    assert_eq!(created, [200, 200, 200, 201]);
    let ids: Vec<&Value> = all.iter().map(|answer| &answer.body["automation"]["id"]).collect();
    assert!(ids.iter().all(|id| *id == ids[0]), "{ids:?}");
    let mut aliased = definition.clone();
    let action = aliased["actions"][0].as_object_mut().unwrap();
    let (parameters, id) = (action.remove("parameters").unwrap(), action.remove("id").unwrap());
    action.extend([("params".to_owned(), parameters), ("action_id".to_owned(), id)]);
    assert_eq!(world.deploy(&aliased).await.expect(200)["automation"]["id"], *ids[0]);
    assert_eq!(stored(&world), (1, 1));
    let theirs = world.automation_as(&world.other, "POST", "", &definition).await;
    // Their Slack is another account, and their automation another one.
    assert_ne!(theirs.expect(201)["automation"]["id"], *ids[0]);
}

#[tokio::test]
async fn versions_are_kept_compared_activated_and_rolled_back() {
    let world = world().await;
    let (id, etag) = deployed(&world).await;
    let at = |rest: &str| format!("/{id}{rest}");
    world.automation("POST", &at("/activate"), &json!({"version": 1})).await.expect(200);
    let mut second = world.urgent_messages();
    second["variables"]["team"] = json!("C0TEAM");
    second["actions"][0]["output_as"] = json!("sent");
    // The ETag that was read is outdated.
    let stale = world.put_automation(&id, &etag, &second).await.expect(409);
    assert!(stale["detail"].as_str().unwrap().contains("its ETag is \"2\" now, with version 1"), "{stale}");
    assert_eq!(world.automation("PUT", &at(""), &second).await.wrong_fields(), ["If-Match"]);
    let put = world.put_automation(&id, "\"2\"", &second).await;
    assert_eq!(put.headers["etag"], "\"3\"");
    let put = put.expect(200);
    assert_eq!((&put["automation"]["version"], &put["automation"]["active_version"]), (&json!(2), &json!(1)));
    assert_eq!(put["automation"]["status"], "active", "the first version goes on");
    // The content of an existing version.
    let same = world.put_automation(&id, "\"3\"", &world.urgent_messages()).await.expect(200);
    assert_eq!(same["automation"]["version"], 1);
    let same = world.put_automation(&id, "\"3\"", &second).await.expect(200);
    assert_eq!((&same["automation"]["version"], stored(&world)), (&json!(2), (1, 2)));

    let versions = world.automation("GET", &at("/versions"), &Value::Null).await.expect(200);
    let numbers: Vec<&Value> = versions["items"].as_array().unwrap().iter().map(|item| &item["version"]).collect();
    assert_eq!((numbers, &versions["next_cursor"]), (vec![&json!(2), &json!(1)], &json!(null)));
    let first = world.automation("GET", &at("/versions?limit=1"), &Value::Null).await.expect(200);
    let cursor = first["next_cursor"].as_str().unwrap();
    let next =
        world.automation("GET", &at(&format!("/versions?limit=1&cursor={cursor}")), &Value::Null).await.expect(200);
    assert_eq!((&first["items"][0]["version"], &next["items"][0]["version"]), (&json!(2), &json!(1)));
    let one = world.automation("GET", &at("/versions/1"), &Value::Null).await.expect(200);
    assert_eq!(one["definition"], world.urgent_messages());
    assert_eq!(one["checked"]["slack_post_message"]["fingerprint"], world.fingerprint("slack_post_message"));
    let diff = world.automation("GET", &at("/diff?from=1&to=2"), &Value::Null).await.expect(200);
    assert_eq!(
        diff["changes"],
        json!([
            {"pointer": "/actions/0/output_as", "change": "added", "to": "sent"},
            {"pointer": "/variables/team", "change": "changed", "from": "C024BE91L", "to": "C0TEAM"},
        ])
    );
    assert_eq!(world.automation("GET", &at("/diff?from=1&to=x"), &Value::Null).await.wrong_fields(), ["to"]);
    world.automation("GET", &at("/versions/3"), &Value::Null).await.expect(404);

    world.automation("POST", &at("/rollback"), &json!({"version": 1})).await.expect(409);
    world.automation("POST", &at("/activate"), &json!({"version": 3})).await.expect(404);
    assert_eq!(world.automation("POST", &at("/activate"), &json!({})).await.wrong_fields(), ["version"]);
    world.automation("POST", &at("/activate"), &json!({"version": 2})).await.expect(200);
    let back = world.automation("POST", &at("/rollback"), &json!({"version": 1})).await.expect(200);
    assert_eq!((&back["automation"]["active_version"], &back["automation"]["status"]), (&json!(1), &json!("active")));
    let paused = world.automation("POST", &at("/pause"), &Value::Null).await.expect(200);
    assert_eq!((&paused["status"], &paused["active_version"]), (&json!("paused"), &json!(1)));
    world.automation("POST", &at("/pause"), &Value::Null).await.expect(200);
    for (status, count) in [("paused", 1), ("active", 0)] {
        let listed = world.automation("GET", &format!("?status={status}"), &Value::Null).await.expect(200);
        assert_eq!(listed["items"].as_array().unwrap().len(), count, "{status}");
    }
    assert_eq!(world.automation("GET", "?status=running", &Value::Null).await.wrong_fields(), ["status"]);

    world.automation("DELETE", &at(""), &Value::Null).await.expect(204);
    assert_eq!(stored(&world), (0, 0));
    world.automation("DELETE", &at(""), &Value::Null).await.expect(404);
}

#[tokio::test]
async fn of_two_changes_at_once_one_wins() {
    let world = world().await;
    let (id, etag) = deployed(&world).await;
    let changed = |name: &str| {
        let mut definition = world.urgent_messages();
        definition["name"] = json!(name);
        definition
    };
    let (one, other) = (changed("One"), changed("Other"));
    let both = join_all([world.put_automation(&id, &etag, &one), world.put_automation(&id, &etag, &other)]).await;
    let mut statuses: Vec<u16> = both.iter().map(|answer| answer.status).collect();
    statuses.sort_unstable();
    assert_eq!(statuses, [200, 409]);
    assert_eq!(stored(&world), (1, 2));
}

#[tokio::test]
async fn activation_names_changed_and_removed_tools() {
    let world = world().await;
    let (id, _) = deployed(&world).await;
    let activate = async || world.automation("POST", &format!("/{id}/activate"), &json!({"version": 1})).await;
    world.slack_tool(&json!({"channel": {"type": "string"}, "text": {"type": "string"}, "thread": {"type": "string"}}));
    let refused = activate().await.expect(422);
    assert_eq!(told(&refused), ["/fingerprints/slack_post_message tool_changed"]);
    let message = refused["diagnostics"][0]["message"].as_str().unwrap();
    assert!(message.contains("thread is new (string, required)"), "{message}");
    assert_eq!(world.aws.rows("automations")[0]["status"], "pending_review");
    world.service_tool_with("Slack", "slack_post_message", &json!({"is_active": false}));
    assert_eq!(told(&activate().await.expect(422)), ["/actions/0/tool inactive_tool"]);
    let definition = world.urgent_messages();
    assert_eq!(told(&world.deploy(&definition).await.expect(422)), ["/actions/0/tool inactive_tool"]);
}

#[tokio::test]
async fn an_automation_without_a_connection_is_saved_and_not_activated() {
    let world = world().await;
    world.service("Notion", Some("notion"));
    let parameters = json!({"type": "object", "properties": {}});
    world.service_tool_with("Notion", "notion_search", &json!({"parameters": parameters}));
    let mut definition = world.urgent_messages();
    definition["actions"]
        .as_array_mut()
        .unwrap()
        .push(json!({"id": "look", "tool": "notion_search", "parameters": {}}));
    definition["fingerprints"]["notion_search"] = json!(world.fingerprint("notion_search"));
    let saved = world.deploy(&definition).await.expect(201);
    assert_eq!(
        (told(&saved), &saved["diagnostics"][0]["severity"]),
        (vec!["/actions/1/tool not_connected".to_owned()], &json!("warning"))
    );
    let id = saved["automation"]["id"].as_str().unwrap();
    let refused = world.automation("POST", &format!("/{id}/activate"), &json!({"version": 1})).await.expect(422);
    assert_eq!(
        (told(&refused), &refused["diagnostics"][0]["severity"]),
        (vec!["/actions/1/tool not_connected".to_owned()], &json!("error"))
    );
    // By then it is.
    world.pipedream.connect("apn_notion", &world.home.organization_id, "notion");
    tokio::time::sleep(Duration::from_millis(1)).await;
    let mut world = world;
    world.restart();
    world.automation("POST", &format!("/{id}/activate"), &json!({"version": 1})).await.expect(200);
}

#[tokio::test]
async fn unknown_services_tools_and_events_get_the_nearest_names() {
    let world = world().await;
    let said = async |change: &dyn Fn(&mut Value)| {
        let mut definition = world.urgent_messages();
        change(&mut definition);
        let body = world.deploy(&definition).await.body;
        body["diagnostics"]
            .as_array()
            .unwrap()
            .iter()
            .map(|one| (one["code"].as_str().unwrap().to_owned(), one["did_you_mean"].clone()))
            .collect::<Vec<_>>()
    };
    let expect = |code: &str, meant: &str| vec![(code.to_owned(), json!(meant))];
    assert_eq!(said(&|it| it["trigger_config"]["service"] = json!("slack")).await, []);
    assert_eq!(said(&|it| it["trigger_config"]["service"] = json!("Slak")).await, expect("unknown_service", "Slack"));
    assert_eq!(
        said(&|it| it["trigger_config"]["event_type"] = json!("mesage")).await,
        expect("unknown_event", "message")
    );
    let unknown = said(&|it| {
        it["actions"][0]["tool"] = json!("slack_post_mesage");
        it["fingerprints"] = json!({});
    });
    assert_eq!(unknown.await, expect("unknown_tool", "slack_post_message"));
}

#[tokio::test]
async fn a_duplicate_name_is_reported_with_the_next_step() {
    let world = world().await;
    let (id, _) = deployed(&world).await;
    let mut second = world.urgent_messages();
    second["name"] = json!(" urgent MESSAGES ");
    second["description"] = json!("Another.");
    let saved = world.deploy(&second).await.expect(201);
    let warning = saved["diagnostics"].as_array().unwrap().iter().find(|one| one["code"] == "same_name").unwrap();
    assert_eq!((&warning["severity"], &warning["pointer"]), (&json!("warning"), &json!("/name")));
    let said = format!("{} {}", warning["message"], warning["hint"]);
    assert!(said.contains(&id) && said.contains("update_automation") && said.contains("PUT"), "{said}");
    // The same content is the same automation, but never another organization's.
    let again = world.deploy(&world.urgent_messages()).await.expect(200);
    assert!(!again["diagnostics"].to_string().contains(&id), "{again}");
    let mut theirs = second.clone();
    theirs["fingerprints"] = json!({"current_time": "built-in"});
    theirs["actions"] = json!([{"id": "now", "tool": "current_time", "parameters": {}}]);
    let theirs = world.automation_as(&world.other, "POST", "", &theirs).await.expect(201);
    assert!(!told(&theirs).contains(&"/name same_name".to_owned()), "{theirs}");
}

#[tokio::test]
async fn an_automation_says_that_its_service_still_needs_a_hook() {
    let world = World::start().await;
    world.slack_service();
    let waits = async |id: &str| {
        world.automation("GET", &format!("/{id}"), &Value::Null).await.expect(200)["waits_for"].clone()
    };
    let needs = "/trigger_config/event_type waits_for_hook";
    let saved = world.deploy(&world.urgent_messages()).await.expect(201);
    assert_eq!((told(&saved), &saved["diagnostics"][0]["severity"]), (vec![needs.to_owned()], &json!("warning")));
    let hint = saved["diagnostics"][0]["hint"].as_str().unwrap();
    assert!(hint.contains("POST /api/{slug}/hooks") && hint.contains("Event Subscriptions"), "{hint}");
    let id = saved["automation"]["id"].as_str().unwrap();
    assert_eq!(waits(id).await, "hook");
    // Another organization's hook does not count; a hook without its secret accepts nothing yet.
    let theirs = json!({"service": "Slack", "secret": "theirs"});
    world.hooks(&world.other, "POST", "", &theirs).await.expect(201);
    let pending = world.hook(&json!({"service": "Slack"})).await;
    let activated = world.automation("POST", &format!("/{id}/activate"), &json!({"version": 1})).await.expect(200);
    assert_eq!(told(&activated), [needs]);
    let hint = activated["diagnostics"][0]["hint"].as_str().unwrap();
    assert!(!hint.contains(pending["id"].as_str().unwrap()) && hint.contains("PATCH"), "{hint}");
    assert_eq!(waits(id).await, "hook");
    let path = format!("/{}", pending["id"].as_str().unwrap());
    world.hooks(&world.home, "PATCH", &path, &json!({"secret": tests::SLACK_SECRET})).await.expect(200);
    assert_eq!(waits(id).await, Value::Null);
    assert_eq!(told(&world.deploy(&world.urgent_messages()).await.expect(200)), Vec::<String>::new());

    // Events by Pipedream's triggers or by polling wait for no hook.
    world.catalogue_service("google_sheets");
    let sheet = json!({
        "name": "Rows", "trigger_type": "webhook",
        "trigger_config": {"service": "Google Sheets", "event_type": "row.added", "params": {"sheetID": "1", "worksheetIDs": [0]}},
        "actions": [{"id": "now", "tool": "current_time", "parameters": {}}], "fingerprints": {"current_time": "built-in"},
    });
    let by_hand = world.manual(&json!([{"id": "now", "tool": "current_time", "parameters": {}}]));
    for definition in [sheet, by_hand] {
        let saved = world.deploy(&definition).await.expect(201);
        assert_eq!(told(&saved), Vec::<String>::new(), "{saved}");
        assert_eq!(waits(saved["automation"]["id"].as_str().unwrap()).await, Value::Null);
    }
}

#[tokio::test]
async fn a_failed_lookup_is_reported() {
    let world = world().await;
    world.aws.inject(Fault::throttled("BatchGetItem", "service_capabilities"));
    let saved = world.deploy(&world.urgent_messages()).await.expect(201);
    assert_eq!(told(&saved), ["/trigger_config/service not_checked"]);
}

#[tokio::test]
async fn tools_of_the_organization_and_built_in_ones_are_used_as_any_other() {
    let world = world().await;
    let tool = world
        .tool(&json!({
            "type": "api_request", "label": "Open ticket", "description": "Opens a ticket.", "method": "POST",
            "url": "https://tickets.example.com/new",
            "body": {"title": {"mode": "ai", "prompt": "The title"}},
        }))
        .await;
    let (id, name) = (tool["id"].as_str().unwrap(), tool["name"].as_str().unwrap().replace('-', "_"));
    let properties = tool["function_schema"]["parameters"]["properties"].as_object().unwrap();
    let title = properties.keys().next().unwrap();
    for used in [id, name.as_str()] {
        let definition = json!({
            "name": format!("Ticket {used}"), "trigger_type": "manual",
            "actions": [
                {"id": "when", "tool": "current_time", "parameters": {}, "output_as": "time"},
                {"id": "open", "tool": used, "parameters": {title: "At {{time.time}}"}},
            ],
            "fingerprints": {"current_time": "built-in", used: "v0"},
        });
        let version = tool["version"].as_u64().unwrap_or_default();
        let mut right = definition.clone();
        right["fingerprints"][used] = json!(format!("v{version}"));
        let saved = world.deploy(&right).await;
        assert_eq!(saved.status, 201, "{}", saved.body);
        let mut wrong = right.clone();
        wrong["actions"][1]["parameters"] = json!({title: "At {{time.tme}}", "other": 1});
        wrong["fingerprints"][used] = json!("v99");
        assert_eq!(
            told(&world.deploy(&wrong).await.expect(422)),
            [format!("/fingerprints/{used} tool_changed"), format!("/actions/1/parameters/{title} unknown_path"),]
        );
    }
}

#[tokio::test]
async fn one_tool_may_be_named_by_its_name_and_by_its_id() {
    let world = world().await;
    let tool = world.tool(&tests::sms_without_call(&world.home)).await;
    let (id, name) = (tool["id"].as_str().unwrap(), tool["name"].as_str().unwrap().replace('-', "_"));
    let version = format!("v{}", tool["version"].as_u64().unwrap_or_default());
    let definition = json!({
        "name": "Twice", "trigger_type": "manual",
        "actions": [
            {"id": "one", "tool": id, "parameters": {"text": "One"}},
            {"id": "other", "tool": name, "parameters": {"text": "Two"}},
        ],
        "fingerprints": {id: version, name: version},
    });
    let saved = world.deploy(&definition).await;
    assert_eq!(saved.status, 201, "{}", saved.body);
    let prompt = json!({"prompt": "Tell them.", "tools": [id, id, "current_time"]});
    let run = world.start_run(&prompt).await;
    assert!(run.status < 500, "{}", run.body);
}

#[tokio::test]
async fn the_tool_that_is_polled_is_called_once_and_its_answer_is_checked() {
    let world = world().await;
    world.service("Clock", None);
    world.service_capabilities(
        "Clock",
        &json!({"supports_polling": true, "polling_endpoints": {"tick": {"source_tool": "current_time"}}}),
    );
    let polling = |path: &str| {
        json!({
            "name": "Weekday", "trigger_type": "polling", "dry_run": true,
            "trigger_config": {"service": "Clock", "source_tool": "current_time", "tool_params": {"timeZone": "{{zone}}"}},
            "actions": [{"id": "a", "tool": "slack_post_message", "parameters": {"channel": "C", "text": path}}],
            "variables": {"zone": "Europe/Lisbon"},
            "fingerprints": {"current_time": "built-in", "slack_post_message": world.fingerprint("slack_post_message")},
        })
    };
    let good = world.deploy(&polling("{{trigger_data.weekday}}")).await.expect(200);
    assert_eq!((&good["result"], told(&good)), (&json!("ok"), vec![]));
    let bad = world.deploy(&polling("{{trigger_data.weekdy}}")).await.expect(200);
    assert_eq!(told(&bad), ["/actions/0/parameters/text unknown_path"]);
    assert_eq!(bad["diagnostics"][0]["did_you_mean"], "trigger_data.weekday");
    // A tool with an effect is not called for the check.
    let mut acts = polling("{{trigger_data.x}}");
    acts["trigger_config"]["source_tool"] = json!("slack_post_message");
    acts["trigger_config"]["tool_params"] = json!({"channel": "C", "text": "x"});
    let acts = world.deploy(&acts).await.expect(200);
    assert!(told(&acts).contains(&"/trigger_config/source_tool source_tool_acts".to_owned()), "{acts}");
    assert!(world.pipedream.runs().is_empty());
}

#[tokio::test]
async fn a_prompt_with_tools_is_an_automation_too() {
    let world = world().await;
    let mut definition = json!({
        "name": "Digest", "trigger_type": "schedule_recurring",
        "trigger_config": {"interval": "daily", "time_of_day": "08:00", "timezone": "Europe/Berlin"},
        "prompt": "Sum up what was said in {{channel}} since {{yesterday}} and post it.", "tools": ["slack_post_message"],
        "schema": {"type": "object", "properties": {"posted": {"type": "boolean"}}},
        "variables": {"channel": "C024BE91L"},
        "fingerprints": {"slack_post_message": world.fingerprint("slack_post_message")},
    });
    world.deploy(&definition).await.expect(201);
    definition["limits"] = json!({"calls": 9_999});
    definition["tools"] = json!(["slack_post_message", "no_such_tool"]);
    let refused = world.deploy(&definition).await.expect(422);
    assert_eq!(told(&refused), ["/tools/1 unknown_tool", "/limits/calls invalid_value"]);
}

/// A schedule without a zone gets its author's, and keeps it when another member saves or runs it later.
#[tokio::test]
async fn a_schedule_without_a_zone_is_saved_in_its_authors() {
    let world = world().await;
    let mut definition = world.urgent_messages();
    definition["trigger_type"] = json!("schedule_recurring");
    definition["trigger_config"] = json!({"interval": "daily", "time_of_day": "08:00"});
    definition["actions"][0]["parameters"] = json!({"channel": "C024BE91L", "text": "Good morning."});
    let mut dry = definition.clone();
    dry["dry_run"] = json!(true);
    let unknown = world.deploy(&dry).await.expect(200);
    assert_eq!(told(&unknown), ["/trigger_config/time_of_day timezone_assumed"], "UTC, of an author without a zone");

    let user = &world.home.user_id;
    let mut row = world.aws.rows("organization_members").into_iter().find(|row| row["user_id"] == *user).unwrap();
    row["timezone"] = json!("Europe/Madrid");
    world.aws.put("organization_members", &row);
    dry["trigger_config"]["timezone"] = Value::Null;
    let assumed = world.deploy(&dry).await.expect(200);
    assert_eq!(told(&assumed), ["/trigger_config/timezone timezone_assumed"], "null is absent");
    let saved = world.deploy(&definition).await.expect(201);
    assert_eq!(told(&saved), ["/trigger_config/timezone timezone_assumed"]);
    let id = saved["automation"]["id"].as_str().unwrap();
    let version = world.automation("GET", &format!("/{id}/versions/1"), &Value::Null).await.expect(200);
    assert_eq!(version["definition"]["trigger_config"]["timezone"], "Europe/Madrid", "{version}");

    row["timezone"] = json!("Asia/Tokyo");
    world.aws.put("organization_members", &row);
    let later = world.automation("GET", &format!("/{id}/versions/1"), &Value::Null).await.expect(200);
    assert_eq!(later["definition"], version["definition"]);
}

#[tokio::test]
async fn bad_input_is_answered_before_anything_is_looked_up() {
    let world = world().await;
    let good = world.urgent_messages();
    let large = |name: &str, value: Value| {
        let mut definition = good.clone();
        definition[name] = value;
        definition
    };
    let action = json!({"tool": "{{{{{{"});
    world.deploy(&good).await.expect(201);
    world.aws.clear_operations();
    let before = stored(&world);
    for (definition, place) in [
        (large("description", json!("x".repeat(2_000_000))), " too_large"),
        (large("actions", json!(vec![action; 10_000])), "/actions too_large"),
        (large("variables", json!({"deep": (0..90).fold(json!(1), |inner, _| json!([inner]))})), " too_large"),
    ] {
        assert_eq!(told(&world.deploy(&definition).await.expect(422)), [place]);
    }
    // Only the user is read.
    let asked: Vec<String> = world.aws.operations().iter().map(|operation| format!("{operation:?}")).collect();
    assert!(asked.iter().all(|asked| !asked.contains("service") && !asked.contains("automation")), "{asked:?}");
    let unreadable = automation_event(&world.home, "POST", "", &Value::Null).text("[".repeat(10_000));
    world.send("deploy", &unreadable).await.expect(400);
    assert_eq!(world.deploy(&json!([])).await.expect(422)["diagnostics"][0]["code"], "wrong_type");
    let nested = large("description", json!("{{".repeat(50_000)));
    assert_eq!(told(&world.deploy(&nested).await.expect(422)), ["/description invalid_value"]);
    let mut nested = good.clone();
    nested["actions"][0]["parameters"]["text"] = json!("{{".repeat(50_000));
    assert_eq!(told(&world.deploy(&nested).await.expect(422)), ["/actions/0/parameters/text unclosed_template"]);
    assert_eq!(stored(&world), before);
}

#[tokio::test]
async fn another_organizations_automation_is_not_there() {
    let world = world().await;
    let (id, _) = deployed(&world).await;
    let before = world.aws.rows("automations");
    for (method, path, body) in [
        ("GET", "", Value::Null),
        ("PUT", "", world.urgent_messages()),
        ("DELETE", "", Value::Null),
        ("GET", "/versions", Value::Null),
        ("GET", "/versions/1", Value::Null),
        ("GET", "/diff?from=1&to=1", Value::Null),
        ("POST", "/activate", json!({"version": 1})),
        ("POST", "/rollback", json!({"version": 1})),
        ("POST", "/pause", Value::Null),
    ] {
        let answer = world.automation_as(&world.other, method, &format!("/{id}{path}"), &body).await;
        assert_eq!(answer.status, 404, "{method} {path}: {}", answer.body);
    }
    let listed = world.automation_as(&world.other, "GET", "", &Value::Null).await.expect(200);
    assert_eq!((&listed["items"], world.aws.rows("automations")), (&json!([]), before));
}

#[tokio::test]
async fn members_save_and_only_administrators_activate() {
    let world = world().await;
    let as_role = async |role: &str, method: &str, path: &str, body: &Value| {
        let user = world.member(&world.home, Some(role));
        world.send("deploy", &automation_event(&world.home, method, path, body).user(&user)).await
    };
    as_role("viewer", "POST", "", &world.urgent_messages()).await.expect(403);
    let saved = as_role("member", "POST", "", &world.urgent_messages()).await.expect(201);
    let id = saved["automation"]["id"].as_str().unwrap();
    as_role("viewer", "GET", &format!("/{id}"), &Value::Null).await.expect(200);
    as_role("member", "POST", &format!("/{id}/activate"), &json!({"version": 1})).await.expect(403);
    as_role("admin", "POST", &format!("/{id}/activate"), &json!({"version": 1})).await.expect(200);
}

#[tokio::test]
async fn a_deletion_that_broke_off_is_gone_on_with() {
    let world = world().await;
    let (id, _) = deployed(&world).await;
    world.aws.inject(Fault::throttled("TransactWriteItems", "automation_versions"));
    world.automation("DELETE", &format!("/{id}"), &Value::Null).await.expect(503);
    world.automation("GET", &format!("/{id}"), &Value::Null).await.expect(404);
    let listed = world.automation("GET", "", &Value::Null).await.expect(200);
    assert_eq!(listed["items"], json!([]));
    world.deploy(&world.urgent_messages()).await.expect(409);
    world.automation("DELETE", &format!("/{id}"), &Value::Null).await.expect(204);
    assert_eq!(stored(&world), (0, 0));
    world.deploy(&world.urgent_messages()).await.expect(201);
}

#[tokio::test]
async fn a_slow_deletion_leaves_an_automation_that_was_deployed_after_a_faster_one() {
    let world = world().await;
    let (id, _) = deployed(&world).await;
    let delete = async || world.automation("DELETE", &format!("/{id}"), &Value::Null).await;
    // The SDK sends the stalled request again.
    world.aws.inject(Fault::new("Query", "automation_memory", Trouble::StallBefore));
    let faster = async {
        world.aws.stalled().await;
        delete().await.expect(204);
        deployed(&world).await;
        world.remembers_offer(&world.home, &id);
    };
    let (slow, ()) = join!(delete(), faster);
    slow.expect(204);
    world.automation("POST", &format!("/{id}/activate"), &json!({"version": 1})).await.expect(200);
    assert_eq!((stored(&world), world.aws.rows("automation_memory").len()), ((1, 1), 2));
}
