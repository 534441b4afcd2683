//! Discovery of services and tools by agents.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test says what is wrong and stops")]

mod language;
mod search;

use local::standins::Fault as Standin;
use serde_json::{Value, json};
use tests::{Answer, Event, Fault, Tenant, World, ai_sms, sms_without_call};

/// Slack with two tools and an event, Gmail, and an inactive service.
async fn world() -> World {
    let world = World::start().await;
    world.service("Slack", Some("slack"));
    world.service_tool("Slack", "slack_list_channels", "Lists the channels of the workspace.", &[]);
    world.service_tool("Slack", "slack_post_message", "Posts a message to a channel.", &["channelId", "text"]);
    world.service_tool_with("Slack", "slack_old", &json!({"description": "Was.", "is_active": false}));
    let message = json!({
        "description": "A message was posted to a channel",
        "trigger_data_fields": {"event.channel": "Channel ID", "event.text": "The message text content"},
        "example_condition": {"op": "contains", "path": "event.text", "value": "urgent"},
    });
    world.service_capabilities("Slack", &json!({
        "supports_webhooks": true, "webhook_events": ["message", "reaction_added"], "webhook_payload_schemas": {"message": message},
        "supports_polling": true, "polling_endpoints": {"new_channel": {"source_tool": "slack_list_channels"}},
        "notes": "Bots see the channels they were invited to.",
    }));
    world.service("Google Calendar", Some("google_calendar"));
    world.service_tool(
        "Google Calendar",
        "google_calendar_create_event",
        "Creates an event in a calendar.",
        &["summary", "start"],
    );
    world.service_with("Fax", &json!({"is_active": false}));
    world.service_tool("Fax", "fax_send", "Sends a fax.", &["number"]);
    world
}

fn asked(tenant: &Tenant, path: &str, query: &[(&str, &str)]) -> Event {
    let event = Event::get(&format!("/api/{}/{path}", tenant.slug)).user(&tenant.user_id);
    query.iter().fold(event, |event, (name, value)| event.query(name, &value.replace(' ', "%20")))
}

async fn get(world: &World, path: &str, query: &[(&str, &str)]) -> Answer {
    world.send("discover", &asked(&world.home, path, query)).await
}

async fn text(world: &World, path: &str, query: &[(&str, &str)]) -> String {
    let event = asked(&world.home, path, query).header("accept", "text/plain");
    let answer = world.send("discover", &event).await;
    assert_eq!(answer.content_type, "text/plain; charset=utf-8");
    answer.expect(200).as_str().unwrap().to_owned()
}

async fn overview(world: &World, services: &[&str]) -> Value {
    let query: Vec<_> = services.iter().map(|service| ("service", *service)).collect();
    get(world, "discover/initial_md_fetch", &query).await.expect(200)
}

async fn tool_data(world: &World, names: &Value) -> Value {
    tool_data_as(world, &world.home, names).await.expect(200)
}

async fn tool_data_as(world: &World, tenant: &Tenant, names: &Value) -> Answer {
    let path = format!("/api/{}/discover/fetch_tool_data", tenant.slug);
    let event = Event::post(&path, &json!({"tool_names": names})).user(&tenant.user_id);
    world.send("discover", &event).await
}

async fn search(world: &World, body: &Value) -> Value {
    let event = Event::post(&format!("/api/{}/discover/search", world.home.slug), body).user(&world.home.user_id);
    world.send("discover", &event).await.expect(200)
}

fn names(of: &Value) -> Vec<&str> {
    of.as_array().unwrap().iter().map(|item| item["name"].as_str().unwrap()).collect()
}

// ------------------------------------------------------------------------------------------------ initial_md_fetch

/// Byte by byte, the first lines are those known to agents.
#[tokio::test]
async fn a_services_text_begins_as_agents_know_it_and_says_more_behind() {
    let world = world().await;
    let text = text(&world, "discover/initial_md_fetch", &[("service", "Slack")]).await;
    let known = "Available Slack tools:\n\
                 - slack_list_channels: Lists the channels of the workspace.\n\
                 - slack_post_message: Posts a message to a channel.\n\
                 \n\nService Capabilities:\n\
                 - Supports Webhooks: True\n\
                 - Supports Polling: True\n\
                 - Notes: Bots see the channels they were invited to.\n\
                 \nWebhook Payload Schemas:\n\
                 \n  message:\n    Description: A message was posted to a channel\n    Available fields:\n      \
                 - event.channel: Channel ID\n      - event.text: The message text content\n";
    let behind = text.strip_prefix(known).unwrap_or_else(|| panic!("{text}"));
    let account = format!("{}@slack.example", world.home.slack_account.trim_start_matches("apn_"));
    assert_eq!(
        behind,
        format!(
            "\nWebhook Examples:\n\n  message:\n    Condition: {{\"op\":\"contains\",\"path\":\"event.text\",\"value\":\"urgent\"}}\n\
             \nWebhook Events whose fields are not described: reaction_added\n\
             \nPolling Events:\n\n  new_channel:\n    source_tool: slack_list_channels\n\
             \nHow Events Arrive:\n\
             - By a hook (message, reaction_added): An administrator makes the hook with POST /api/{{slug}}/hooks \
             {{\"service\": \"slack\"}}. At api.slack.com/apps, under Event Subscriptions, enter the hook's url as Request URL and \
             subscribe to the bot events. The hook's secret is the Signing Secret under Basic Information.\n\
             - By polling (new_channel): Write \"trigger_type\": \"polling\" with the event's source_tool; it begins when the \
             automation is activated.\n\
             \nConnection:\n- Connected: True (as {account})\n"
        )
    );
}

#[tokio::test]
async fn a_service_without_capabilities_has_its_tools_alone() {
    let world = world().await;
    let text = text(&world, "discover/initial_md_fetch", &[("service", "google-calendar")]).await;
    let known = "Available Google Calendar tools:\n- google_calendar_create_event: Creates an event in a calendar.\n";
    let behind = text.strip_prefix(known).unwrap_or_else(|| panic!("{text}"));
    assert_eq!(
        behind,
        "\nConnection:\n- Connected: False (an administrator connects it with POST /api/{slug}/services/google_calendar/connect)\n"
    );
}

#[tokio::test]
async fn several_services_are_answered_each_once_in_any_case_and_the_others_are_named_one_by_one() {
    let world = world().await;
    let asked = ["sLaCk", "GOOGLE CALENDAR", "slack", "Slakc", "fax", "Salesforce"];
    let found = overview(&world, &asked).await;
    assert_eq!(names(&found["services"]), ["Slack", "Google Calendar"]);
    let slack = &found["services"][0];
    assert_eq!(names(&slack["tools"]), ["slack_list_channels", "slack_post_message"]);
    assert_eq!((&slack["total"], &slack["capabilities"]["supports_webhooks"]), (&json!(2), &json!(true)));
    assert_eq!(slack["connection"]["state"], "connected");
    assert_eq!(slack["tools"][1]["fingerprint"].as_str().unwrap().len(), 32);
    assert_eq!(found["services"][1]["connection"]["state"], "not_connected");
    let problems: Vec<(&str, &str)> = found["problems"]
        .as_array()
        .unwrap()
        .iter()
        .map(|problem| (problem["name"].as_str().unwrap(), problem["problem"].as_str().unwrap()))
        .collect();
    assert_eq!(problems, [("Slakc", "unknown"), ("fax", "inactive"), ("Salesforce", "unknown")]);
    assert_eq!(found["problems"][0]["did_you_mean"], json!(["Slack"]));
    assert!(found["problems"][2]["message"].as_str().unwrap().contains("/services lists"), "{found}");
    let text = text(&world, "discover/initial_md_fetch", &[("service", "Slakc")]).await;
    assert_eq!(text, "\nNot available:\n- Slakc: there is no service of this name; did you mean Slack?\n");
}

#[tokio::test]
async fn unreadable_capabilities_are_reported_and_tools_still_listed() {
    let world = world().await;
    world.aws.inject(Fault::throttled("BatchGetItem", "service_capabilities").times(6));
    let found = overview(&world, &["Slack"]).await;
    assert_eq!(names(&found["services"][0]["tools"]).len(), 2);
    assert_eq!(found["services"][0]["capabilities"], Value::Null);
    let problem = found["services"][0]["capabilities_problem"].as_str().unwrap();
    assert!(problem.contains("could not be read"), "{problem}");
    let text = text(&world, "discover/initial_md_fetch", &[("service", "Slack")]).await;
    assert!(text.contains("Service Capabilities:\n- Not known: the capabilities of Slack could not be read"), "{text}");
    assert_eq!(world.aws.faults_left(), 0);
}

#[tokio::test]
async fn a_long_list_goes_on_with_its_cursor_and_no_tool_is_missing() {
    let world = world().await;
    let long = "Does one thing among many, and says so at length. ".repeat(8);
    for number in 0..400 {
        let name = format!("slack_tool_{number:03}");
        world.service_tool_with("Slack", &name, &json!({"description": long}));
    }
    let (mut cursor, mut seen, mut pages) = (String::new(), Vec::new(), 0);
    loop {
        let query = [("service", "Google Calendar"), ("service", "Slack"), ("cursor", cursor.as_str())];
        let page = get(&world, "discover/initial_md_fetch", &query).await.expect(200);
        pages += 1;
        for service in page["services"].as_array().unwrap() {
            seen.extend(names(&service["tools"]).iter().map(|name| (*name).to_owned()));
        }
        match page["next_cursor"].as_str() {
            Some(next) => cursor = next.to_owned(),
            None => break,
        }
    }
    assert!(seen.len() == 403 && (3..20).contains(&pages), "{} on {pages} pages", seen.len());
    let mut distinct = seen.clone();
    distinct.sort();
    distinct.dedup();
    assert_eq!(distinct.len(), seen.len());
    let text = text(&world, "discover/initial_md_fetch", &[("service", "Slack")]).await;
    assert!(text.contains(" of 402 tools.") && text.contains("with cursor "), "{}", &text[text.len() - 600..]);
    assert!(text.contains("… marks a shortened description; fetch_tool_data gives it whole."));
    let other = get(&world, "discover/initial_md_fetch", &[("service", "Fax"), ("cursor", &cursor)]).await;
    assert_eq!(other.wrong_fields(), ["cursor"]);
}

#[tokio::test]
async fn a_request_that_names_no_service_or_too_many_is_told_so() {
    let world = world().await;
    assert_eq!(get(&world, "discover/initial_md_fetch", &[]).await.wrong_fields(), ["service"]);
    assert_eq!(get(&world, "discover/initial_md_fetch", &[("service", " ")]).await.wrong_fields(), ["service"]);
    let many: Vec<String> = (0..21).map(|number| format!("service {number}")).collect();
    let many: Vec<_> = many.iter().map(|name| ("service", name.as_str())).collect();
    assert_eq!(get(&world, "discover/initial_md_fetch", &many).await.wrong_fields(), ["service"]);
    assert_eq!(get(&world, "discover/initial_md_fetch", &[("services", "x")]).await.wrong_fields(), ["services"]);
}

/// A DynamoDB key has 1 to 2,048 bytes, and a batch with any other key fails as a whole.
#[tokio::test]
async fn an_impossible_name_does_not_affect_other_names() {
    let world = world().await;
    for name in ["x".repeat(2_049), "x".repeat(20_000), "é".repeat(101), "-".to_owned()] {
        let found = overview(&world, &["Slack", &name]).await;
        assert_eq!(found["services"][0]["capabilities"]["supports_webhooks"], true, "{found}");
        assert_eq!(names(&found["services"]), ["Slack"]);
        assert_eq!(found["problems"][0]["problem"], "unknown", "{found}");
        assert!(found["problems"][0]["name"].as_str().unwrap().len() < 250);
        let found = tool_data(&world, &json!(["slack_post_message", name])).await;
        assert_eq!((names(&found["tools"]), names(&found["problems"]).len()), (vec!["slack_post_message"], 1));
        assert_eq!(found["problems"][0]["problem"], "unknown", "{found}");
    }
    // Impossible names are not read.
    world.aws.clear_operations();
    let long = ["x".repeat(101), "y".repeat(3_000)];
    let found = overview(&world, &[&long[0], &long[1]]).await;
    assert_eq!(names(&found["problems"]).len(), 2);
    assert!(found["problems"][1]["message"].as_str().unwrap().contains("100 characters"), "{found}");
    let found = tool_data(&world, &json!(long)).await;
    assert!(found["problems"][1]["message"].as_str().unwrap().contains("100 characters"), "{found}");
    let tables = ["service_tools", "service_capabilities"];
    let read: Vec<_> =
        world.aws.dynamodb().into_iter().filter(|one| tables.iter().any(|table| one.on == [*table])).collect();
    assert!(read.is_empty(), "{read:?}");
}

// ------------------------------------------------------------------------------------------------- fetch_tool_data

#[tokio::test]
async fn a_tools_text_begins_as_agents_know_it_and_says_more_behind() {
    let world = world().await;
    let text =
        text(&world, "discover/fetch_tool_data", &[("name", "slack_list_channels"), ("name", "nothing_like_it")]).await;
    let known = "\n## slack_list_channels\nLists the channels of the workspace.\nParameters: {\n  \"additionalProperties\": false,\n  \
                 \"properties\": {},\n  \"required\": [],\n  \"type\": \"object\"\n}\nReturns: What came of it.\n";
    let behind = text.strip_prefix(known).unwrap_or_else(|| panic!("{text}"));
    assert!(behind.starts_with("Service: Slack\nConnected: True (as "), "{behind}");
    for line in ["Version: 1\n", "Effect: True\n", "Destructive: False\n", "Repeatable: False\n"] {
        assert!(behind.contains(line), "{behind}");
    }
    assert!(behind.contains("Example: {\"tool\":\"slack_list_channels\",\"parameters\":{}}\n"), "{behind}");
    assert!(
        behind.ends_with(
            "\nNot available:\n- nothing_like_it: there is no tool of this name; search for one by its purpose\n"
        ),
        "{behind}"
    );
}

#[tokio::test]
async fn sixty_names_are_answered_at_once_each_once() {
    let world = world().await;
    for number in 0..60 {
        world.service_tool("Slack", &format!("slack_tool_{number}"), "Does one thing.", &["text"]);
    }
    let mut asked: Vec<String> = (0..60).map(|number| format!("slack_tool_{number}")).collect();
    asked.push("SLACK_TOOL_7".into());
    let found = tool_data(&world, &json!(asked)).await;
    assert_eq!(names(&found["tools"]), asked[..60].iter().map(String::as_str).collect::<Vec<_>>());
    let seven = &found["tools"][7];
    assert_eq!(seven["example"], json!({"tool": "slack_tool_7", "parameters": {"text": "…"}}));
    assert_eq!(seven["connection"]["state"], "connected");
    assert_eq!((&seven["effect"], &seven["repeatable"], &seven["version"]), (&json!(true), &json!(false), &json!("1")));
    assert_eq!(seven["fingerprint"].as_str().unwrap().len(), 32);
}

#[tokio::test]
async fn the_organizations_own_tools_and_built_in_ones_are_read_as_the_services() {
    let world = world().await;
    let sms = world.tool(&ai_sms()).await;
    let found = tool_data(&world, &json!(["send_confirmation", sms["id"], "wget", "slack_post_message"])).await;
    assert_eq!(names(&found["tools"]), ["send_confirmation", "wget", "slack_post_message"], "{found}");
    let own = &found["tools"][0];
    assert_eq!((&own["source"], &own["id"]), (&json!("organization"), &sms["id"]));
    assert_eq!(own["fingerprint"], format!("v{}", sms["version"]));
    assert!(own["needs_call"].is_string(), "it sends from the number that was called: {own}");
    assert_eq!(found["tools"][1]["fingerprint"], "built-in");
    assert_eq!(found["problems"], Value::Null);
}

#[tokio::test]
async fn unknown_names_are_reported_one_by_one() {
    let world = world().await;
    let theirs = world.create_as(&world.other, &ai_sms()).await.expect(201);
    world.tool(&json!({"label": "Slack post message", "type": "api_request", "method": "GET", "url": "https://api.example.com/"})).await;
    let asked = json!([
        "slack_post_mesage",
        "fax_send",
        "slack_old",
        "slack_post_message",
        theirs["id"],
        "send_confirmation",
        "slack_list_channels"
    ]);
    let found = tool_data(&world, &asked).await;
    assert_eq!(names(&found["tools"]), ["slack_list_channels"]);
    let problems: Vec<(&str, &str)> = found["problems"]
        .as_array()
        .unwrap()
        .iter()
        .map(|problem| (problem["name"].as_str().unwrap(), problem["problem"].as_str().unwrap()))
        .collect();
    let their_id = theirs["id"].as_str().unwrap();
    assert_eq!(
        problems,
        [
            ("slack_post_mesage", "unknown"),
            ("fax_send", "inactive"),
            ("slack_old", "inactive"),
            ("slack_post_message", "ambiguous"),
            (their_id, "unknown"),
            ("send_confirmation", "unknown"),
        ]
    );
    assert_eq!(found["problems"][0]["did_you_mean"][0], "slack_post_message");
    let ambiguous = &found["problems"][3];
    let sources: Vec<&Value> = ambiguous["candidates"].as_array().unwrap().iter().map(|one| &one["source"]).collect();
    assert_eq!(sources, ["service", "organization"]);
    let searched = search(&world, &json!({"q": "slack_post_message"})).await;
    assert!(
        searched["notes"][0].as_str().unwrap().starts_with("Several tools are named slack_post_message:"),
        "{searched}"
    );
    assert!(!found.to_string().contains("Confirmation"), "nothing of the other organization's: {found}");
}

#[tokio::test]
async fn bad_names_are_refused_with_their_field() {
    let world = world().await;
    for (names, field) in [
        (json!([]), "tool_names"),
        (json!("slack_post_message"), "tool_names"),
        (json!(["a", 7]), "tool_names[1]"),
        (json!((0..201).map(|number| format!("tool_{number}")).collect::<Vec<_>>()), "tool_names"),
    ] {
        assert_eq!(tool_data_as(&world, &world.home, &names).await.wrong_fields(), [field], "{names}");
    }
    assert_eq!(get(&world, "discover/fetch_tool_data", &[("tool", "x")]).await.wrong_fields(), ["tool"]);
    let found = tool_data(&world, &json!(["\u{1f600}", "x".repeat(10_000), "'; DROP TABLE tools; --"])).await;
    assert_eq!(found["problems"].as_array().unwrap().len(), 3);
}

#[tokio::test]
async fn services_that_do_not_fit_the_answer_are_named() {
    let world = world().await;
    let long = json!({"type": "object", "properties": {}, "description": "x".repeat(350_000)});
    let asked: Vec<String> = (0..8).map(|number| format!("slack_long_{number}")).collect();
    for name in &asked {
        world.service_tool_with("Slack", name, &json!({"parameters": long}));
    }
    let found = tool_data(&world, &json!(asked)).await;
    assert_eq!(names(&found["tools"]).len(), 5);
    let left_out: Vec<&Value> = found["problems"].as_array().unwrap().iter().map(|one| &one["problem"]).collect();
    assert_eq!(left_out, ["left_out"; 3]);
}

/// Pipedream is down: the unknown connection is reported, and nothing else is missing.
#[tokio::test]
async fn an_unreachable_connection_is_reported() {
    let world = world().await;
    world.pipedream.inject(Standin::status(500).times(90));
    let found = overview(&world, &["Slack"]).await;
    let connection = &found["services"][0]["connection"];
    assert_eq!(connection["state"], "unknown");
    assert!(connection["next_step"].as_str().unwrap().contains("try again"), "{connection}");
    assert_eq!(tool_data(&world, &json!(["slack_post_message"])).await["tools"][0]["connection"]["state"], "unknown");
    for connected in [true, false] {
        let found = search(&world, &json!({"q": "message", "connected": connected, "services": ["slack"]})).await;
        assert_eq!(names(&found["items"]), ["slack_post_message"]);
        assert!(found["notes"][0].as_str().unwrap().contains("could not be asked"), "{found}");
    }
    let listed = get(&world, "services", &[("connected", "true"), ("q", "slack")]).await.expect(200);
    assert_eq!(names(&listed["items"]), ["Slack"]);
    assert!(listed["notes"][0].as_str().unwrap().contains("could not be asked"), "{listed}");
}

#[tokio::test]
async fn near_names_are_looked_for_for_the_first_unknown_ones_and_the_others_say_so() {
    let world = world().await;
    let asked: Vec<String> = (0..40).map(|number| format!("slack_post_messag{number}")).collect();
    let found = tool_data(&world, &json!(asked)).await;
    let problems = found["problems"].as_array().unwrap();
    assert_eq!(problems.len(), 40);
    for (number, problem) in problems.iter().enumerate() {
        let (near, message) = (&problem["did_you_mean"][0], problem["message"].as_str().unwrap());
        if number < 10 {
            assert_eq!(near, "slack_post_message", "{problem}");
        } else {
            assert!(near.is_null() && message.contains("the first 10 unknown names"), "{problem}");
        }
    }
}

#[tokio::test]
async fn built_in_tools_of_runs_are_listed_found_and_read() {
    let world = world().await;
    let all = search(&world, &json!({"limit": 100})).await;
    for (name, q) in [
        ("llm_classify", "classify a text as one of several options"),
        ("llm_transform", "summarize translate or extract from a text"),
        ("llm_agent", "let a model work on a task with tools"),
        ("call_automation", "run another automation and use its outputs"),
    ] {
        assert!(names(&all["items"]).contains(&name), "{name}: {all}");
        let found = search(&world, &json!({"q": q})).await;
        let first: Vec<&str> = names(&found["items"]).into_iter().take(3).collect();
        assert!(first.contains(&name), "{name} is not among {first:?}");
        let read = tool_data(&world, &json!([name])).await;
        assert_eq!((&read["tools"][0]["name"], &read["tools"][0]["fingerprint"]), (&json!(name), &json!("built-in")));
    }
}

#[tokio::test]
async fn an_overview_says_how_the_events_of_each_service_arrive() {
    let world = World::start().await;
    for file in tests::catalogue::files().unwrap().keys() {
        world.catalogue_service(file);
    }
    for (service, by, next_step) in [
        ("Slack", "hook", "Event Subscriptions"),
        ("Twilio", "hook", "auth token"),
        ("Linear", "hook", "Linear"),
        ("Telegram", "hook", "setWebhook"),
        ("GitHub", "hook", "Webhooks"),
        ("Google Sheets", "deployed_trigger", "activated"),
        ("Airtable", "polling", "polling"),
        ("Oura", "polling", "polling"),
    ] {
        let found = overview(&world, &[service]).await;
        let arrivals = found["services"][0]["arrivals"].as_array().unwrap_or_else(|| panic!("{service}: {found}"));
        let arrival =
            arrivals.iter().find(|arrival| arrival["by"] == by).unwrap_or_else(|| panic!("{service}: {found}"));
        let said = arrival["next_step"].as_str().unwrap();
        assert!(said.contains(next_step), "{service}: {said}");
        assert!(!arrival["events"].as_array().unwrap().is_empty());
        let text = text(&world, "discover/initial_md_fetch", &[("service", service)]).await;
        assert!(text.contains("How Events Arrive:") && text.contains(said), "{service}: {text}");
    }
    // This event starts nothing, so nothing is listed.
    let push = overview(&world, &["Push Notifications"]).await;
    assert_eq!(push["services"][0]["arrivals"], json!([]));
}

#[tokio::test]
async fn the_organizations_own_tools_stand_beside_the_services_and_another_organizations_do_not() {
    let world = world().await;
    world.tool(&sms_without_call(&world.home)).await;
    world.create_as(&world.other, &ai_sms()).await.expect(201);
    let found = search(&world, &json!({"q": "send sms text message"})).await;
    let sources: Vec<&str> =
        found["items"].as_array().unwrap().iter().map(|item| item["source"].as_str().unwrap()).collect();
    assert!(sources.contains(&"organization") && sources.contains(&"service"), "{found}");
    assert_eq!(sources.iter().filter(|source| **source == "organization").count(), 1, "{found}");
}

// -------------------------------------------------------------------------------------------------------- services

#[tokio::test]
async fn services_are_listed_with_their_tools_and_connections() {
    let world = world().await;
    let found = get(&world, "services", &[]).await.expect(200);
    assert_eq!(names(&found["items"]), ["Google Calendar", "Slack"]);
    let slack = &found["items"][1];
    assert_eq!((&slack["supports_webhooks"], &slack["supports_polling"]), (&json!(true), &json!(true)));
    assert_eq!(slack["connection"]["state"], "connected");
    assert_eq!(slack["connection"]["accounts"][0]["id"], world.home.slack_account.as_str());
    assert_eq!(slack["connection_kind"], json!({"type": "pipedream", "app": "slack"}));
    for (query, wanted) in [
        (vec![("q", "google")], vec!["Google Calendar"]),
        (vec![("connected", "true")], vec!["Slack"]),
        (vec![("connected", "false")], vec!["Google Calendar"]),
        (vec![("category", "crm")], vec![]),
        (vec![("q", "slakc")], vec![]),
    ] {
        let found = get(&world, "services", &query).await.expect(200);
        assert_eq!(names(&found["items"]), wanted, "{query:?}");
    }
    let near = get(&world, "services", &[("q", "slakc")]).await.expect(200);
    assert_eq!(near["notes"], json!(["No service fits q; near are Slack."]));
    let first = get(&world, "services", &[("limit", "1")]).await.expect(200);
    let next = first["next_cursor"].as_str().unwrap();
    let second = get(&world, "services", &[("limit", "1"), ("cursor", next)]).await.expect(200);
    assert_eq!((names(&second["items"]), &second["next_cursor"]), (vec!["Slack"], &Value::Null));
    for (query, field) in
        [(("limit", "0"), "limit"), (("connected", "x"), "connected"), (("x", "y"), "x"), (("cursor", "!"), "cursor")]
    {
        assert_eq!(get(&world, "services", &[query]).await.wrong_fields(), [field]);
    }
    world.aws.inject(Fault::throttled("BatchGetItem", "service_capabilities"));
    let found = get(&world, "services", &[]).await.expect(200);
    assert_eq!(found["items"][1]["supports_webhooks"], Value::Null);
    assert!(found["notes"][0].as_str().unwrap().contains("could not be read"), "{found}");
}

fn connecting(world: &World, service: &str, body: &str) -> Event {
    let path = format!("/api/{}/services/{service}/connect", world.home.slug);
    Event::new("POST", &path).user(&world.home.user_id).text(body)
}

#[tokio::test]
async fn a_service_is_connected_by_a_link_or_a_credential_and_disconnected() {
    let world = world().await;
    let link = world.send("discover", &connecting(&world, "google%20calendar", "")).await.expect(200);
    assert_eq!(link["state"], "open");
    assert!(link["url"].as_str().unwrap().contains("/connect/"), "{link}");
    let fields = json!([
        {"name": "account", "description": "The account's id.", "secret": false},
        {"name": "api_key", "description": "Under Developers."},
    ]);
    world.service_with("Stripe", &json!({"connection": {"type": "credential", "fields": fields}}));
    let incomplete = world.send("discover", &connecting(&world, "stripe", r#"{"account": "acct_1"}"#)).await;
    assert_eq!(incomplete.wrong_fields(), ["api_key"]);
    let credential = r#"{"account": "acct_1", "api_key": "sk_live_secret"}"#;
    let stored = world.send("discover", &connecting(&world, "Stripe", credential)).await.expect(200);
    assert_eq!((&stored["state"], &stored["accounts"][0]["name"]), (&json!("connected"), &json!("acct_1")));
    let listed = get(&world, "services", &[("connected", "true")]).await.expect(200);
    assert_eq!(names(&listed["items"]), ["Slack", "Stripe"]);
    assert!(!listed.to_string().contains("sk_live_secret"));
    for service in ["stripe", "slack"] {
        let path = format!("/api/{}/services/{service}/connection", world.home.slug);
        let event = Event::new("DELETE", &path).user(&world.home.user_id);
        world.send("discover", &event).await.expect(204);
        world.send("discover", &event).await.expect(404);
    }
    let left = get(&world, "services", &[("connected", "true")]).await.expect(200);
    assert_eq!(names(&left["items"]), Vec::<&str>::new());
    world.send("discover", &connecting(&world, "salesforce", "")).await.expect(404);
    world.send("discover", &connecting(&world, "fax", "")).await.expect(409);
}

#[tokio::test]
async fn an_account_connected_beside_a_refused_chosen_one_is_shown_with_a_step_that_works() {
    let world = world().await;
    let (home, chosen) = (&world.home, world.home.slack_account.as_str());
    let path = format!("/api/{}/services/slack/account", home.slug);
    let choose = |account: &str| {
        let choose = Event::new("PUT", &path).user(&home.user_id);
        choose.text(json!({"account_id": account}).to_string())
    };
    world.send("discover", &choose(chosen)).await.expect(200);
    world.pipedream.expire(chosen);
    world.pipedream.connect("apn_b", &home.organization_id, "slack");
    // A refused choice has the accounts asked for again.
    world.send("discover", &choose("apn_none")).await.expect(422);
    let slack = async || get(&world, "services", &[("q", "slack")]).await.expect(200)["items"][0]["connection"].clone();
    let refused = slack().await;
    assert_eq!((&refused["state"], &refused["accounts"][0]["id"]), (&json!("expired"), &json!(chosen)));
    assert_ne!(refused["accounts"][0]["name"], "");
    assert_eq!(refused["working"], json!([{"id": "apn_b", "name": "b@slack.example"}]));
    let next = refused["next_step"].as_str().unwrap();
    assert!(next.contains("(apn_b) with PUT /api/{slug}/services/slack/account"), "{next}");
    world.send("discover", &choose("apn_b")).await.expect(200);
    let now = slack().await;
    assert_eq!((&now["state"], &now["accounts"]), (&json!("connected"), &refused["working"]));
}

#[tokio::test]
async fn of_several_accounts_none_is_deleted_unless_it_is_named() {
    let world = world().await;
    let (home, chosen) = (&world.home, world.home.slack_account.as_str());
    for account in ["apn_b", "apn_c"] {
        world.pipedream.connect(account, &home.organization_id, "slack");
    }
    let path = |last: &str| format!("/api/{}/services/slack/{last}", home.slug);
    let choose = Event::new("PUT", &path("account")).user(&home.user_id);
    world.send("discover", &choose.text(json!({"account_id": chosen}).to_string())).await.expect(200);
    world.pipedream.expire(chosen);
    let disconnect = Event::new("DELETE", &path("connection")).user(&home.user_id);
    let refused = world.send("discover", &disconnect).await;
    assert_eq!(refused.wrong_fields(), ["account"]);
    let problems = refused.body.to_string();
    assert!([chosen, "apn_b", "apn_c"].iter().all(|account| problems.contains(account)), "{problems}");
    let deleted = || {
        let requests = world.pipedream.requests().into_iter().filter(|request| request.method == "DELETE");
        requests.map(|request| request.path).collect::<Vec<_>>()
    };
    assert_eq!(deleted(), Vec::<String>::new());
    world.send("discover", &disconnect.query("account", "apn_b")).await.expect(204);
    assert!(matches!(&deleted()[..], [path] if path.ends_with("/apn_b")), "{:?}", deleted());
}
