use serde_json::json;

use super::*;

fn segment(service: &str, tools: &[(&str, &str, &[&str])]) -> Segment {
    let row = json!({
        "id": ServiceId::of_name(service), "name": service, "categories": ["work"], "connection": {"type": "none"}, "is_active": true,
        "created_at": "2026-01-01T00:00:00.000Z", "updated_at": "2026-01-01T00:00:00.000Z",
    });
    let tool = |(name, description, parameters): &(&str, &str, &[&str])| {
        let row = json!({
            "name": name, "description": description, "service_name": service, "is_active": true, "fingerprint": "f",
            "parameter_names": parameters,
        });
        serde_json::from_value(row).unwrap()
    };
    Segment::of_service(
        serde_json::from_value(row).unwrap(),
        tools.iter().map(tool).collect(),
        Some(TriggerKinds::default()),
    )
}

fn index() -> ToolIndex {
    ToolIndex::default()
        .with(segment(
            "Slack",
            &[
                (
                    "slack_post_message",
                    "Posts a message to a channel, a group or a direct message.",
                    &["channel", "text"],
                ),
                ("slack_list_channels", "Lists the channels of the workspace.", &["limit", "cursor"]),
                ("slack_upload_file", "Uploads a file to a channel.", &["channel", "file_url"]),
            ],
        ))
        .with(segment(
            "Gmail",
            &[
                ("gmail_send_email", "Sends an e-mail from the connected account.", &["to", "subject", "body"]),
                ("gmail_find_email", "Finds e-mails that match a query in Gmail's own syntax.", &["q", "maxResults"]),
                ("gmail_create_draft", "Creates a draft of an email, and sends nothing.", &["to", "subject", "body"]),
            ],
        ))
        .with(segment(
            "Google Calendar",
            &[
                (
                    "google_calendar_create_event",
                    "Creates an event, with guests if any are given.",
                    &["calendarId", "summary"],
                ),
                ("google_calendar_query_free_busy", "Tells when somebody is free or busy.", &["timeMin", "timeMax"]),
                ("google_calendar_delete_event", "Deletes an event for good.", &["calendarId", "eventId"]),
            ],
        ))
        .with(segment(
            "Stripe",
            &[
                ("stripe_create_refund", "Pays a charge back, whole or in part.", &["charge", "amount"]),
                ("stripe_search_customers", "Finds customers by mail address or metadata.", &["query"]),
                ("stripe_create_payment_intent", "Begins to collect a payment.", &["amount", "currency"]),
            ],
        ))
}

fn found<'a>(index: &'a ToolIndex, query: &str) -> Vec<&'a str> {
    let all: Vec<&Segment> = index.segments.iter().map(AsRef::as_ref).collect();
    index.rank(query, &all, |_, _| true).found.into_iter().map(|(_, tool)| tool.name.as_str()).collect()
}

#[test]
fn the_best_match_comes_first() {
    let index = index();
    for (query, first) in [
        ("post a message to a channel", "slack_post_message"),
        ("send an email", "gmail_send_email"),
        ("draft", "gmail_create_draft"),
        ("upload file", "slack_upload_file"),
        ("create event", "google_calendar_create_event"),
        ("delete calendar events", "google_calendar_delete_event"),
        ("when is somebody free", "google_calendar_query_free_busy"),
        ("refund a charge", "stripe_create_refund"),
        ("stripe customers", "stripe_search_customers"),
        ("payment currency", "stripe_create_payment_intent"),
        ("max results", "gmail_find_email"),
        ("timeMin", "google_calendar_query_free_busy"),
        ("STRIPE_CREATE_REFUND", "stripe_create_refund"),
        // Typing errors.
        ("refnud", "stripe_create_refund"),
        ("chanels", "slack_list_channels"),
        ("slakc uplaod", "slack_upload_file"),
        ("calender delte", "google_calendar_delete_event"),
        ("custmers", "stripe_search_customers"),
    ] {
        assert_eq!(found(&index, query).first(), Some(&first), "{query}: {:?}", found(&index, query));
    }
}

#[test]
fn a_known_word_is_never_taken_for_another() {
    let index = index();
    let all: Vec<&Segment> = index.segments.iter().map(AsRef::as_ref).collect();
    // `email` and `mail` are one edit apart, but both are known words.
    let ranked = index.rank("mail", &all, |_, _| true);
    assert!(ranked.corrected.is_empty());
    assert!(ranked.found.iter().any(|(_, tool)| tool.name == "stripe_search_customers"));
    assert_eq!(index.rank("zzzzzz", &all, |_, _| true).corrected, [("zzzzzz".to_owned(), Vec::new())]);
}

#[test]
fn a_segment_that_is_made_anew_changes_the_order_of_no_other() {
    let (whole, mut parts) = (index(), index());
    let slack = parts.segments.remove(0);
    parts.segments.push(slack);
    for query in ["message", "send", "create", "channel calendar"] {
        let (mut one, mut other) = (found(&whole, query), found(&parts, query));
        assert_eq!(one, other, "{query}");
        one.sort_unstable();
        other.dedup();
        assert_eq!(one.len(), other.len());
    }
}

#[test]
fn without_words_all_that_pass_are_listed_by_name() {
    let index = index();
    let names = found(&index, " ");
    assert_eq!(names.len(), 12);
    assert!(names.is_sorted());
    let slack: Vec<&Segment> = index.segments.iter().take(1).map(AsRef::as_ref).collect();
    let ranked = index.rank("", &slack, |_, tool| tool.name.contains("channels"));
    assert_eq!(ranked.found.len(), 1);
}

#[test]
fn words_that_say_nothing_find_nothing() {
    let index = index();
    let all: Vec<&Segment> = index.segments.iter().map(AsRef::as_ref).collect();
    for query in ["the of and", "\u{1f600}", "?", "a"] {
        let ranked = index.rank(query, &all, |_, _| true);
        assert!(ranked.found.is_empty() && !ranked.has_words, "{query}");
    }
    // The list has words in their compared form.
    let mut as_compared = Vec::new();
    words(STOP_WORDS, |word| as_compared.push(word.to_owned()));
    assert_eq!(as_compared.join(" "), STOP_WORDS);
}

#[test]
fn an_index_holds_until_the_edition_changes_or_its_rows_may_not_have_followed() {
    let segment = segment("Slack", &[]);
    let service = segment.service.clone().unwrap();
    assert!(segment.holds_for(&service));
    assert!(!segment.holds_for(&Service { edition: "2".to_owned(), ..service.clone() }));
    assert!(!segment.holds_for(&Service { updated_at: Timestamp::now(), ..service.clone() }));
    let fresh = Service { updated_at: Timestamp::now(), ..service.clone() };
    assert!(!Segment::of_service(fresh.clone(), Vec::new(), Some(TriggerKinds::default())).holds_for(&fresh));
    // Capabilities that could not be read are tried again.
    assert!(!Segment::of_service(service.clone(), Vec::new(), None).holds_for(&service));
}

#[test]
fn names_fall_into_their_words() {
    assert_eq!(apart("channelId"), "channel Id");
    assert_eq!(apart("slack_post_message"), "slack_post_message");
    assert_eq!(apart("HTTPServer2Go ÄÖ"), "HTTPServer2 Go ÄÖ");
}
