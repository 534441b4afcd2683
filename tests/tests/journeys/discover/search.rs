//! Search for tools: results, filters, pages, freshness.

use serde_json::{Value, json};
use tests::{Answer, Event, Fault, World, ai_sms, sms_without_call};

use super::{asked, get, names, search, text, tool_data, world};

// ---------------------------------------------------------------------------------------------------------- search

/// Nothing half read is kept.
#[tokio::test]
async fn a_search_that_could_not_read_all_says_so_and_the_next_one_finds_all() {
    let world = world().await;
    let event = asked(&world.home, "discover/search", &[("q", "message")]);
    // Both services are read at once, and each is tried three times.
    world.aws.inject(Fault::throttled("Query", "service_tools").times(6));
    world.send("discover", &event).await.expect(503);
    world.aws.clear_faults();
    world.aws.inject(Fault::throttled("BatchGetItem", "service_capabilities"));
    let found = search(&world, &json!({"q": "message", "trigger": "webhook"})).await;
    assert_eq!(names(&found["items"]), ["slack_post_message"]);
    assert!(found["notes"][0].as_str().unwrap().contains("could not be read"), "{found}");
    let found = search(&world, &json!({"q": "message", "trigger": "webhook"})).await;
    assert_eq!((names(&found["items"]), &found["notes"]), (vec!["slack_post_message"], &Value::Null));
}

#[tokio::test]
async fn a_tool_is_found_by_its_purpose_despite_typing_errors() {
    let world = world().await;
    for (q, first) in [
        ("post a message to a channel", "slack_post_message"),
        ("mesage", "slack_post_message"),
        ("channelId", "slack_post_message"),
        ("posting", "slack_post_message"),
        ("SLACK_LIST_CHANNELS", "slack_list_channels"),
        ("calender event", "google_calendar_create_event"),
        ("fetch an address of the web", "wget"),
    ] {
        let found = search(&world, &json!({"q": q})).await;
        assert_eq!(names(&found["items"]).first(), Some(&first), "{q}: {found}");
    }
    let found = search(&world, &json!({"q": "mesage xylophone"})).await;
    let corrected = json!([{"word": "mesage", "taken_as": ["message"]}, {"word": "xylophone", "taken_as": []}]);
    assert_eq!(found["corrected"], corrected);
    let text = text(&world, "discover/search", &[("q", "post mesage"), ("limit", "1")]).await;
    assert!(text.starts_with("Found tools (1 of "), "{text}");
    assert!(
        text.contains("- slack_post_message: Posts a message to a channel. [Slack; effect: True; connected: True (as "),
        "{text}"
    );
    assert!(text.contains("No tool has the word mesage; looked for message instead."), "{text}");
}

/// An everyday phrase, its tool or those that do the same elsewhere, and the lowest rank allowed to one of them.
const EVERYDAY: &[(&str, &str, usize)] = &[
    ("notify the team", "push_notifications_send", 2),
    ("notify the team in slack", "slack_post_message", 1),
    ("alert me", "push_notifications_send", 1),
    ("send an alert to my phone", "push_notifications_send", 1),
    ("remind me", "push_notifications_send|todoist_create_task", 1),
    ("let me know", "push_notifications_send", 1),
    ("ping somebody on telegram", "telegram_send_message", 1),
    ("text a customer", "twilio_send_sms|whatsapp_send_text", 1),
    ("send a text message to a phone number", "twilio_send_sms", 1),
    ("tell my team", "slack_post_message", 2),
    ("send an email", "gmail_send_email|sendgrid_send_email|resend_send_email|brevo_send_email", 2),
    ("write a mail", "gmail_send_email|sendgrid_send_email|resend_send_email|brevo_send_email", 3),
    ("reply to a mail in outlook", "outlook_reply_to_email", 1),
    ("unread mails", "gmail_find_email", 3),
    ("search my inbox", "gmail_find_email", 2),
    ("archive an email", "gmail_modify_labels", 1),
    ("prepare an email without sending it", "gmail_create_draft", 1),
    ("schedule a meeting", "google_calendar_create_event|calendly_book_meeting", 2),
    ("scheduling", "google_calendar_create_event|calendly_create_scheduling_link", 3),
    (
        "book an appointment",
        "google_calendar_create_event|highlevel_book_appointment|acuity_scheduling_book_appointment",
        2,
    ),
    ("invite somebody", "google_calendar_create_event|outlook_create_event|calendly_book_meeting", 2),
    ("move a meeting", "google_calendar_update_event", 2),
    ("reschedule", "google_calendar_update_event|cal_com_reschedule_booking", 1),
    ("cancel an appointment", "google_calendar_delete_event|acuity_scheduling_cancel_appointment", 1),
    ("what is on my agenda today", "google_calendar_list_events", 1),
    ("am I free tomorrow", "google_calendar_query_free_busy", 1),
    ("check availability", "google_calendar_query_free_busy", 1),
    ("charge a card", "stripe_create_payment_intent", 1),
    ("charge", "stripe_create_payment_intent", 1),
    ("take a payment", "stripe_create_payment_intent", 2),
    ("pay back", "stripe_create_refund", 1),
    ("give the money back", "stripe_create_refund", 1),
    ("refund", "stripe_create_refund", 1),
    ("unpaid bills", "stripe_list_invoices", 1),
    ("new customer", "stripe_create_customer", 3),
    ("open a ticket", "linear_create_issue|intercom_create_ticket|zendesk_create_ticket|freshdesk_create_ticket", 3),
    ("create a task", "linear_create_issue|asana_create_task|todoist_create_task|clickup_create_task", 2),
    ("report a bug on github", "github_create_issue", 1),
    ("close a ticket", "linear_update_issue|freshdesk_update_ticket|zendesk_update_ticket", 1),
    ("make a pr", "github_create_pull_request", 1),
    ("append to a spreadsheet", "google_sheets_add_single_row", 2),
    ("log a line in excel", "google_sheets_add_single_row", 1),
    ("take a note", "notion_create_page|pipedrive_add_note", 2),
    ("save a lead", "hubspot_upsert_contact|hubspot_create_crm_object|activecampaign_upsert_contact", 2),
    (
        "look up a contact",
        "hubspot_search_crm|mailchimp_search_contacts|freshdesk_find_contacts|highlevel_find_contact",
        2,
    ),
    ("how did I sleep last night", "oura_get_daily_sleep", 2),
    ("pulse", "oura_get_heart_rate", 1),
    ("how many steps", "oura_get_daily_activity", 1),
    ("share a picture", "telegram_send_photo", 2),
    ("attach a document in slack", "slack_upload_file", 1),
    ("when is somebody free in calendly", "calendly_list_available_times", 1),
    ("book a meeting in calendly", "calendly_book_meeting", 1),
    ("free slots in cal.com", "cal_com_list_free_times", 1),
    ("move a cal.com booking", "cal_com_reschedule_booking", 1),
    ("book an acuity appointment", "acuity_scheduling_book_appointment", 1),
    ("which treatments do we offer", "acuity_scheduling_list_types", 4),
    ("find the caller in highlevel", "highlevel_find_contact", 1),
    ("book an appointment in highlevel", "highlevel_book_appointment", 1),
    ("look up a customer in intercom", "intercom_search_contacts", 1),
    ("reply in intercom", "intercom_reply_to_conversation", 1),
    ("create an asana task", "asana_create_task", 1),
    ("complete an asana task", "asana_update_task", 1),
    ("open deals in pipedrive", "pipedrive_list_deals", 1),
    ("log a call in pipedrive", "pipedrive_add_note", 1),
    ("send an email by sendgrid", "sendgrid_send_email", 1),
    ("did my resend email arrive", "resend_get_email", 1),
    ("add a lead to brevo", "brevo_upsert_contact", 1),
    ("post a message on discord", "discord_send_message", 1),
    ("send a whatsapp message", "whatsapp_send_text", 2),
    ("send an appointment reminder on whatsapp", "whatsapp_send_template", 1),
    ("answers to a form", "typeform_list_responses", 1),
    ("survey results", "typeform_list_responses", 1),
    ("find a customer in square", "square_search_customers", 1),
    ("book a square appointment", "square_create_booking", 1),
    ("add a todo to todoist", "todoist_create_task", 1),
    ("check off a task", "todoist_complete_task", 2),
    ("add a task in clickup", "clickup_create_task", 1),
    ("add an item to a monday board", "monday_create_item", 1),
    ("open a zendesk ticket", "zendesk_create_ticket", 1),
    ("solve a zendesk ticket", "zendesk_update_ticket", 1),
    ("new freshdesk case", "freshdesk_create_ticket", 1),
    ("answer a freshdesk ticket", "freshdesk_reply_to_ticket", 1),
    ("open bugs in jira", "jira_search_issues", 1),
    ("close a jira ticket", "jira_transition_issue", 1),
    ("where is my order", "shopify_search_orders", 1),
    ("is it in stock", "shopify_search_products", 1),
    ("subscribe somebody to the mailchimp newsletter", "mailchimp_add_contact", 1),
    ("unsubscribe somebody", "mailchimp_update_contact", 2),
    ("tag a contact in activecampaign", "activecampaign_tag_contact", 1),
];

/// Of the catalogue as it is.
#[tokio::test]
async fn everyday_words_find_the_tool_that_does_it() {
    let world = World::start().await;
    let files = Value::Object(tests::catalogue::files().unwrap());
    let deadline = shared::Deadline::after(std::time::Duration::from_secs(60));
    Box::pin(operator::handle(&world.process.operator, json!({"files": files}), deadline)).await.unwrap();
    let mut wrong = Vec::new();
    for (q, wanted, within) in EVERYDAY {
        let found = search(&world, &json!({"q": q})).await;
        let first: Vec<&str> = names(&found["items"]).into_iter().take(4).collect();
        if !first.iter().take(*within).any(|name| wanted.split('|').any(|wanted| wanted == *name)) {
            wrong.push(format!("{q}: {wanted} is not among the first {within} of {first:?} {}", found["corrected"]));
        }
    }
    // Among equals, an agent names the service that the organization has.
    for (q, service, wanted) in [
        ("send an email", "gmail", "gmail_send_email"),
        ("book an appointment", "google calendar", "google_calendar_create_event"),
        ("reschedule", "google calendar", "google_calendar_update_event"),
        ("open a ticket", "linear", "linear_create_issue"),
        ("look up a contact", "hubspot", "hubspot_search_crm"),
        ("text a customer", "twilio", "twilio_send_sms"),
    ] {
        let found = search(&world, &json!({"q": q, "services": [service]})).await;
        if names(&found["items"]).first() != Some(&wanted) {
            wrong.push(format!("{q} in {service}: {found}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[tokio::test]
async fn an_unusable_tool_is_not_found_and_one_for_phone_calls_says_so() {
    let world = world().await;
    world.tool(&ai_sms()).await;
    let found = search(&world, &json!({"limit": 100})).await;
    let all = names(&found["items"]);
    assert!(!all.contains(&"fax_send") && !all.contains(&"slack_old"), "{all:?}");
    let own = found["items"].as_array().unwrap().iter().find(|item| item["name"] == "send_confirmation").unwrap();
    assert!(own["needs_call"].is_string());
    let others: Vec<&Value> =
        found["items"].as_array().unwrap().iter().filter(|item| item["needs_call"].is_null()).collect();
    let usable: Vec<&Value> = others.iter().map(|item| &item["name"]).collect();
    let read = tool_data(&world, &json!(usable)).await;
    assert_eq!(read["tools"].as_array().unwrap().len(), usable.len(), "{read}");
    assert_eq!(read["problems"], Value::Null);
}

#[tokio::test]
async fn filters_narrow_the_results() {
    let world = world().await;
    for (filter, wanted) in [
        (json!({"services": ["slack"]}), vec!["slack_list_channels", "slack_post_message"]),
        (json!({"services": ["google calendar"]}), vec!["google_calendar_create_event"]),
        (json!({"trigger": "webhook"}), vec!["slack_list_channels", "slack_post_message"]),
        (json!({"trigger": "polling", "q": "channels"}), vec!["slack_list_channels", "slack_post_message"]),
        (json!({"connected": false}), vec!["google_calendar_create_event"]),
        (json!({"connected": true, "services": ["Google Calendar"]}), vec![]),
        (
            json!({"category": "Work"}),
            vec!["google_calendar_create_event", "slack_list_channels", "slack_post_message"],
        ),
        (json!({"category": "nonsense"}), vec![]),
    ] {
        let found = search(&world, &filter).await;
        let mut found_names = names(&found["items"]);
        found_names.sort_unstable();
        assert_eq!(found_names, wanted, "{filter}: {found}");
        assert_eq!(found["total"], wanted.len());
    }
    let by_query = get(&world, "discover/search", &[("service", "slack"), ("connected", "true"), ("limit", "1")])
        .await
        .expect(200);
    assert_eq!((names(&by_query["items"]).len(), &by_query["total"]), (1, &json!(2)));
}

#[tokio::test]
async fn pages_are_explicit_and_a_cursor_is_of_its_search_alone() {
    let world = world().await;
    for number in 0..25 {
        world.service_tool("Slack", &format!("slack_tool_{number:02}"), "Sends one thing.", &[]);
    }
    let (mut seen, mut body) = (Vec::new(), json!({"q": "sends", "limit": 10}));
    loop {
        let page = search(&world, &body).await;
        assert_eq!(page["total"], 25);
        seen.extend(names(&page["items"]).iter().map(|name| (*name).to_owned()));
        let Some(cursor) = page["next_cursor"].as_str() else { break };
        body["cursor"] = json!(cursor);
    }
    assert_eq!(seen, (0..25).map(|number| format!("slack_tool_{number:02}")).collect::<Vec<_>>());
    body["q"] = json!("another");
    let event = Event::post(&format!("/api/{}/discover/search", world.home.slug), &body).user(&world.home.user_id);
    assert_eq!(world.send("discover", &event).await.wrong_fields(), ["cursor"]);
}

/// Otherwise a page would repeat or skip items.
#[tokio::test]
async fn a_page_of_a_list_that_is_another_by_now_is_refused() {
    let world = world().await;
    for number in 0..25 {
        world.service_tool("Slack", &format!("slack_tool_{number:02}"), "Sends one thing.", &[]);
    }
    let by_word = json!({"q": "sends", "limit": 5});
    let connected = json!({"connected": true, "limit": 5});
    let first = |body: &Value| {
        let body = body.clone();
        let world = &world;
        async move {
            let cursor = search(world, &body).await["next_cursor"].clone();
            let mut next = body;
            next["cursor"] = cursor;
            next
        }
    };
    let path = format!("/api/{}/discover/search", world.home.slug);
    let ask = |body: &Value| Event::post(&path, body).user(&world.home.user_id);
    let refused = |answer: &Answer| {
        assert_eq!(answer.wrong_fields(), ["cursor"]);
        assert!(
            answer.body.to_string().contains("the tools have changed; begin again without cursor"),
            "{}",
            answer.body
        );
    };
    let next = first(&by_word).await;
    world.send("discover", &ask(&next)).await.expect(200);
    // A tool of the organization's.
    let sms = json!({"label": "Sends it all", "description": "Sends one thing."});
    let mut own = sms_without_call(&world.home);
    own.as_object_mut().unwrap().extend(sms.as_object().unwrap().clone());
    world.tool(&own).await;
    refused(&world.send("discover", &ask(&next)).await);
    // The catalogue.
    let next = first(&by_word).await;
    world.service_tool("Slack", "slack_aaa", "Sends one thing.", &[]);
    world.service_with("Slack", &json!({"connection": {"type": "pipedream", "app": "slack"}, "edition": "2"}));
    refused(&world.send("discover", &ask(&next)).await);
    // An account.
    let next = first(&connected).await;
    world.send("discover", &ask(&next)).await.expect(200);
    let disconnect = format!("/api/{}/services/slack/connection", world.home.slug);
    world.send("discover", &Event::new("DELETE", &disconnect).user(&world.home.user_id)).await.expect(204);
    refused(&world.send("discover", &ask(&next)).await);
}

#[tokio::test]
async fn malformed_queries_have_a_clear_answer() {
    let world = world().await;
    for q in ["\u{1f600}", "the of and to", "?!", "日本語で"] {
        let found = search(&world, &json!({"q": q})).await;
        assert_eq!(found["items"], json!([]), "{q}: {found}");
        assert!(found["notes"][0].is_string(), "{q}: {found}");
    }
    let all = search(&world, &json!({"q": "  "})).await;
    assert!(all["total"].as_u64().unwrap() >= 4, "an empty query lists: {all}");
    for (body, field) in [
        (json!({"q": "x".repeat(10_000)}), "q"),
        (json!({"q": 7}), "q"),
        (json!({"trigger": "cron"}), "trigger"),
        (json!({"connected": "yes"}), "connected"),
        (json!({"limit": 0}), "limit"),
        (json!({"limit": 101}), "limit"),
        (json!({"services": ["slakc"]}), "services[0]"),
        (json!({"services": ["fax"]}), "services[0]"),
        (json!({"services": "slack"}), "services"),
        (json!({"cursor": "x"}), "cursor"),
        (json!({"query": "x"}), "query"),
    ] {
        let event = Event::post(&format!("/api/{}/discover/search", world.home.slug), &body).user(&world.home.user_id);
        assert_eq!(world.send("discover", &event).await.wrong_fields(), [field], "{body}");
    }
    let many_unknown = (0..60).map(|number| format!("zq{number}x")).collect::<Vec<_>>().join(" ");
    let found = search(&world, &json!({"q": many_unknown})).await;
    assert!(found["notes"].to_string().contains("were not compared"), "{found}");
}

#[tokio::test]
async fn a_new_tool_is_found_without_a_restart_by_reading_only_changes() {
    let world = world().await;
    search(&world, &json!({"q": "message"})).await;
    world.aws.clear_operations();
    search(&world, &json!({"q": "message"})).await;
    let read = |world: &World| world.aws.dynamodb().iter().filter(|one| one.on == ["service_tools"]).count();
    assert_eq!(read(&world), 0, "nothing has changed");
    world.service_tool("Slack", "slack_pin", "Pins something to the board.", &[]);
    let slack = json!({"connection": {"type": "pipedream", "app": "slack"}, "edition": "2"});
    world.service_with("Slack", &slack);
    let found = search(&world, &json!({"q": "pin"})).await;
    assert_eq!(names(&found["items"])[0], "slack_pin");
    assert_eq!(read(&world), 1, "one service has changed");
    world.service_with("Slack", &json!({"is_active": false, "edition": "3"}));
    let found = search(&world, &json!({"q": "pin"})).await;
    assert!(!names(&found["items"]).contains(&"slack_pin"), "{found}");
}

/// DynamoDB's index lags behind its table: a read just after a change may be outdated.
#[tokio::test]
async fn a_service_that_has_just_changed_is_read_again_until_its_index_has_followed() {
    let world = world().await;
    let now = shared::models::Timestamp::now();
    world.service_with("Slack", &json!({"edition": "2", "updated_at": now}));
    search(&world, &json!({"q": "message"})).await;
    world.service_tool("Slack", "slack_pin", "Pins something to the board.", &[]);
    let found = search(&world, &json!({"q": "pin"})).await;
    assert_eq!(names(&found["items"])[0], "slack_pin");
}
