//! Pipedream's stand-in: tokens, the catalogue, and runs.
#![expect(clippy::expect_used, clippy::indexing_slicing, reason = "a test says what is missing and stops")]

use local::standins::{
    Fault, Standin,
    pipedream::{self, Pipedream},
};
use serde_json::{Value, json};

use crate::client::{anywhere, client, json};

const ACTIONS: &str = "/v1/connect/proj_local1/actions";

fn pipedream() -> Standin<Pipedream> {
    let options = pipedream::Options::default()
        .with_account("apn_mail", "org-1", "gmail")
        .with_account("apn_chat", "org-1", "slack")
        .with_account("apn_sheet", "org-1", "google_sheets")
        .with_account("apn_other", "org-2", "slack");
    pipedream::start(anywhere(), options).expect("a free port")
}

async fn token(pipedream: &Standin<Pipedream>) -> String {
    let body = json!({ "grant_type": "client_credentials", "client_id": "pd-client", "client_secret": "pd-secret" });
    let (status, body) = json(client().post(format!("{}/v1/oauth/token", pipedream.url)).json(&body)).await;
    assert_eq!((status, &body["token_type"], &body["expires_in"]), (200, &json!("Bearer"), &json!(3600)));
    body["access_token"].as_str().expect("a token").to_owned()
}

async fn run(pipedream: &Standin<Pipedream>, token: &str, body: &Value) -> (u16, Value) {
    let request = client().post(format!("{}{ACTIONS}/run", pipedream.url)).bearer_auth(token);
    json(request.header("x-pd-environment", "development").json(body)).await
}

fn to_slack(conversation: &str) -> Value {
    json!({
        "id": "slack-send-message",
        "external_user_id": "org-1",
        "configured_props": {
            "slack": { "authProvisionId": "apn_chat" },
            "conversation": conversation,
            "text": "hello",
        },
    })
}

#[tokio::test]
async fn a_token_needs_json_and_the_right_client() {
    let pipedream = pipedream();
    let url = format!("{}/v1/oauth/token", pipedream.url);
    let good = json!({ "grant_type": "client_credentials", "client_id": "pd-client", "client_secret": "pd-secret" });
    assert_eq!(json(client().post(&url).form(&good)).await.0, 400);
    for (field, value, expected) in
        [("client_secret", "wrong", 401), ("client_id", "wrong", 401), ("grant_type", "password", 400)]
    {
        let mut body = good.clone();
        body[field] = json!(value);
        let (status, body) = json(client().post(&url).json(&body)).await;
        assert_eq!(status, expected, "{field}");
        assert!(body["error"].is_string());
    }
    assert_ne!(token(&pipedream).await, token(&pipedream).await);
}

#[tokio::test]
async fn an_action_runs_and_is_kept() {
    let pipedream = pipedream();
    let token = token(&pipedream).await;
    let (status, body) = run(&pipedream, &token, &to_slack("C024")).await;
    assert_eq!(status, 200);
    assert_eq!(body["exports"], json!({ "$summary": "Successfully sent a message to channel ID C024" }));
    assert_eq!((&body["os"], &body["ret"]["ok"]), (&json!([]), &json!(true)));
    let sheet = json!({
        "id": "google_sheets-add-single-row",
        "external_user_id": "org-1",
        "configured_props": {
            "googleSheets": { "authProvisionId": "apn_sheet" },
            "sheetId": { "__lv": { "label": "Leads", "value": "1abc" } },
            "worksheetId": "0",
            "myColumnData": ["Ana", "+15550100001"],
        },
    });
    let (status, body) = run(&pipedream, &token, &sheet).await;
    assert_eq!((status, &body["exports"]["$summary"]), (200, &json!("Added 1 row to 1abc")));

    let runs = pipedream.runs();
    assert_eq!(
        runs.iter().map(|run| run.id.as_str()).collect::<Vec<_>>(),
        ["slack-send-message", "google_sheets-add-single-row"]
    );
    assert_eq!(runs[0].configured_props["text"], "hello");
    assert_eq!((runs[0].external_user_id.as_str(), runs[0].environment.as_str()), ("org-1", "development"));
    assert_eq!(json(client().get(format!("{}/runs", pipedream.url))).await.1, json!(runs));
    assert_eq!(json(client().delete(format!("{}/runs", pipedream.url))).await.0, 204);
    assert_eq!(pipedream.runs(), []);
}

#[tokio::test]
async fn an_error_inside_os_is_answered_200() {
    let fixture: Value = serde_json::from_str(include_str!("../../../../tests/fixtures/pipedream.json")).expect("JSON");
    let documented = &fixture["run"]["responses"][1]["body"];
    let pipedream = pipedream();
    let token = token(&pipedream).await;
    let (status, body) = run(&pipedream, &token, &to_slack("C404")).await;
    assert_eq!((status, &body["ret"], &body["exports"]), (200, &Value::Null, &documented["exports"]));
    let keys = |value: &Value| value.as_object().expect("an object").keys().cloned().collect::<Vec<_>>();
    assert_eq!(keys(&body["os"][1]), keys(&documented["os"][1]));
    assert_eq!(body["os"][1]["err"]["message"], documented["os"][1]["err"]["message"]);
    assert_eq!(pipedream.runs()[0].error.as_deref(), Some("channel_not_found"));

    pipedream.inject(Fault::body(documented.clone()).on("POST", "/actions/run"));
    assert_eq!(run(&pipedream, &token, &to_slack("C024")).await, (200, documented.clone()));
}

#[tokio::test]
async fn a_client_without_permission_to_run_is_refused() {
    let pipedream = pipedream();
    let token = token(&pipedream).await;
    let url = format!("{}{ACTIONS}/run", pipedream.url);
    let body = to_slack("C024");
    let post = |url: &str| client().post(url).json(&body);
    assert_eq!(json(post(&url).header("x-pd-environment", "production")).await.0, 401);
    assert_eq!(json(post(&url).header("x-pd-environment", "production").bearer_auth("x")).await.0, 401);
    assert_eq!(json(post(&url).bearer_auth(&token)).await.0, 400);
    assert_eq!(json(post(&url).bearer_auth(&token).header("x-pd-environment", "staging")).await.0, 400);
    let elsewhere = url.replace("proj_local1", "proj_other");
    assert_eq!(json(post(&elsewhere).bearer_auth(&token).header("x-pd-environment", "production")).await.0, 404);
    assert_eq!(json(post(&url).bearer_auth(&token).header("x-pd-environment", "Production")).await.0, 200);
    pipedream.revoke_tokens();
    assert_eq!(run(&pipedream, &token, &body).await.0, 401);
    assert_eq!(pipedream.runs().len(), 1);
}

#[tokio::test]
async fn wrong_bodies_are_refused_and_run_nothing() {
    let pipedream = pipedream();
    let token = token(&pipedream).await;
    let with = |pointer: &str, value: Value| {
        let mut body = to_slack("C024");
        let (parent, name) = pointer.rsplit_once('/').expect("a pointer");
        let parent = body.pointer_mut(parent).and_then(Value::as_object_mut).expect("an object");
        if value.is_null() {
            parent.remove(name)
        } else {
            parent.insert(name.to_owned(), value)
        };
        body
    };
    for (body, status, detail) in [
        (with("/id", Value::Null), 400, None),
        (with("/id", json!("slack-no-such-action")), 404, None),
        (with("/version", json!("9.9.9")), 404, None),
        (with("/external_user_id", Value::Null), 400, None),
        (with("/external_user_id", json!("x".repeat(251))), 400, None),
        (with("/props", json!({})), 400, None),
        (with("/configured_props", json!([])), 400, None),
        (with("/configured_props/text", Value::Null), 400, Some("text")),
        (with("/configured_props/text", json!(5)), 400, Some("text")),
        (with("/configured_props/mrkdwn", json!("yes")), 400, Some("mrkdwn")),
        (with("/configured_props/chanel", json!("x")), 400, Some("chanel")),
        (with("/configured_props/slack", Value::Null), 400, Some("slack")),
        (with("/configured_props/slack", json!("apn_chat")), 400, Some("slack")),
        (with("/configured_props/slack/authProvisionId", json!("apn_none")), 400, Some("slack")),
        (with("/configured_props/slack/authProvisionId", json!("apn_mail")), 400, Some("slack")),
        (with("/configured_props/slack/authProvisionId", json!("apn_other")), 400, Some("slack")),
    ] {
        let (answered, problem) = run(&pipedream, &token, &body).await;
        assert_eq!(answered, status, "{body} {problem}");
        assert!(problem["error"].is_string());
        let details = problem["details"].as_object().expect("details");
        assert_eq!(
            details.keys().map(String::as_str).collect::<Vec<_>>(),
            detail.into_iter().collect::<Vec<_>>(),
            "{body}"
        );
    }
    assert_eq!(pipedream.runs(), []);
    assert_eq!(run(&pipedream, &token, &with("/version", json!("0.1.3"))).await.0, 200);
}

#[tokio::test]
async fn the_catalogue_is_listed_in_pages_and_read_by_key() {
    let pipedream = pipedream();
    let token = token(&pipedream).await;
    let get = async |path: &str| {
        let request = client().get(format!("{}{ACTIONS}{path}", pipedream.url)).bearer_auth(&token);
        json(request.header("x-pd-environment", "development")).await
    };
    let mut seen = Vec::new();
    let mut path = "?limit=2".to_owned();
    loop {
        let (status, page) = get(&path).await;
        assert_eq!((status, &page["page_info"]["total_count"]), (200, &json!(3)));
        let items = page["data"].as_array().expect("a list");
        if items.is_empty() {
            break;
        }
        seen.extend(items.iter().filter_map(|item| item["key"].as_str().map(str::to_owned)));
        path = format!("?limit=2&after={}", page["page_info"]["end_cursor"].as_str().expect("a cursor"));
    }
    assert_eq!(seen, ["gmail-send-email", "slack-send-message", "google_sheets-add-single-row"]);
    for (query, count) in [("?app=google_sheets", 1), ("?q=message", 1), ("?q=nothing", 0), ("?app=gmail&q=row", 0)] {
        assert_eq!(get(query).await.1["page_info"]["count"], count, "{query}");
    }
    for query in ["?limit=0", "?limit=x", "?after=nowhere"] {
        assert_eq!(get(query).await.0, 400, "{query}");
    }
    let (_, action) = get("/google_sheets-add-single-row").await;
    let props = action["data"]["configurable_props"].as_array().expect("props");
    let app: Vec<_> = props.iter().filter(|prop| prop["type"] == "app").collect();
    assert_eq!(app, [&json!({ "name": "googleSheets", "type": "app", "app": "google_sheets" })]);
    assert_eq!(get("/no-such-action").await.0, 404);
}

#[tokio::test]
async fn components_of_the_catalogue_are_served_beside_older_versions() {
    let files = local::catalogue::files().expect("the files can be read");
    let options = pipedream::Options::default().with_components(files.values()).with_account(
        "apn_sheet",
        "org-1",
        "google_sheets",
    );
    let pipedream = pipedream::start(anywhere(), options).expect("a free port");
    let token = token(&pipedream).await;
    let get = async |path: &str| {
        let request = client().get(format!("{}{ACTIONS}{path}", pipedream.url)).bearer_auth(&token);
        json(request.header("x-pd-environment", "development")).await
    };
    // The newest version is listed and looked up.
    let key = "google_sheets-add-single-row";
    let (_, page) = get("?app=google_sheets&limit=100").await;
    let listed: Vec<_> = page["data"].as_array().expect("a list").iter().filter(|item| item["key"] == key).collect();
    assert_eq!(listed.len(), 1);
    assert_eq!(listed[0]["version"], "3.0.0");
    assert_eq!(get(&format!("/{key}")).await.1["data"]["version"], "3.0.0");
    // Each version runs with its own props.
    let props = |more: Value| {
        let mut props = json!({
            "googleSheets": { "authProvisionId": "apn_sheet" }, "sheetId": "s", "worksheetId": "0", "myColumnData": ["a"],
        });
        props.as_object_mut().expect("an object").extend(more.as_object().cloned().expect("an object"));
        props
    };
    for (version, more, expected) in [
        ("2.1.12", json!({ "hasHeaders": true }), 200),
        ("3.0.0", json!({ "hasHeaders": true }), 400),
        ("3.0.0", json!({ "rowIndex": 2 }), 200),
        ("3.0.0", json!({ "rowIndex": "2" }), 400),
        ("9.9.9", json!({}), 404),
    ] {
        let body =
            json!({ "id": key, "version": version, "external_user_id": "org-1", "configured_props": props(more) });
        assert_eq!(run(&pipedream, &token, &body).await.0, expected, "{body}");
    }
}
