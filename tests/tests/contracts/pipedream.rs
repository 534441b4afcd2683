//! The Pipedream client against its stand-in: requests, the shared token, and names of failures.
//!
//! Running an action is not idempotent and a 200 may contain an error, so the tests count runs.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test says what is wrong and stops")]

use futures_util::future::join_all;
use local::standins::{
    Effect, Fault, Recorded, Standin,
    pipedream::{self as standin, Options},
};
use serde_json::{Map, Value, json};
use shared::{
    Deadline,
    clients::{
        Error, Pipedream, http_client,
        pipedream::{Finished, Project, Run},
    },
    models::OrganizationId,
};
use tests::clients::{LATE, ample, anywhere, class, excerpt, fixture, nowhere, short, until};

const ORGANIZATION: &str = "0190a1b2-0000-7000-8000-00000000000a";
const SLACK: &str = "slack-send-message";

fn start() -> Standin<standin::Pipedream> {
    standin::start(anywhere(), Options::default().with_account("apn_slack1", ORGANIZATION, "slack")).unwrap()
}

fn client(url: &str) -> Pipedream {
    Pipedream::new(http_client().unwrap(), url)
}

fn organization() -> OrganizationId {
    ORGANIZATION.parse().unwrap()
}

fn project() -> Project {
    serde_json::from_value(json!({
        "client_id": "pd-client", "client_secret": "pd-secret", "project_id": "proj_local1",
        "environment": "development",
    }))
    .unwrap()
}

fn to(conversation: &str) -> Map<String, Value> {
    let props = json!({"slack": {"authProvisionId": "apn_slack1"}, "conversation": conversation, "text": "Hello"});
    props.as_object().unwrap().clone()
}

fn message(conversation: &str) -> Run<'static> {
    Run { action: SLACK, version: None, dynamic_props_id: None, configured_props: to(conversation) }
}

async fn run(client: &Pipedream, deadline: Deadline) -> Result<Finished, Error> {
    client.run(&project(), organization(), message("C1"), deadline).await
}

/// Splits the requests into token requests and others.
fn sorted(pipedream: &Standin<standin::Pipedream>) -> (Vec<Recorded>, Vec<Recorded>) {
    pipedream.requests().into_iter().partition(|request| request.path == "/v1/oauth/token")
}

#[tokio::test]
async fn the_requests_are_those_pipedream_documents() {
    let pipedream = start();
    let vector = fixture("pipedream.json");
    let (token, wanted) = (&vector["token"], &vector["run"]["request"]);
    pipedream.inject(Fault::body(token["response"]["body"].clone()).on("POST", "/v1/oauth/token"));
    pipedream.inject(Fault::body(vector["run"]["responses"][0]["body"].clone()).on("POST", "/actions/run"));
    let project: Project = serde_json::from_value(json!({
        "client_id": "cid", "client_secret": "sec", "project_id": "proj_abc", "environment": "development",
    }))
    .unwrap();
    let body = &wanted["body"];
    let run = Run {
        action: body["id"].as_str().unwrap(),
        version: None,
        dynamic_props_id: None,
        configured_props: body["configured_props"].as_object().unwrap().clone(),
    };
    let finished = client(&pipedream.url).run(&project, organization(), run, ample()).await.unwrap();

    let requests = pipedream.requests();
    assert_eq!(requests.len(), 2);
    let asked = &token["request"];
    assert_eq!(requests[0].method, asked["method"]);
    assert_eq!(format!("https://api.pipedream.com{}", requests[0].path), asked["url"]);
    assert_eq!(requests[0].body, asked["body"]);
    assert_eq!(requests[0].headers["content-type"], "application/json");
    assert_eq!(requests[0].headers["x-pd-environment"], "development");
    assert!(!requests[0].headers.contains_key("authorization"));
    assert_eq!(requests[1].method, wanted["method"]);
    assert_eq!(format!("https://api.pipedream.com{}", requests[1].path), wanted["url"]);
    for (name, value) in wanted["headers"].as_object().unwrap() {
        assert_eq!(requests[1].headers[&name.to_ascii_lowercase()], *value, "{name}");
    }
    let mut expected = body.clone();
    expected["external_user_id"] = json!(ORGANIZATION);
    assert_eq!(requests[1].body, expected, "the external user is the organization");

    let Finished::Done { result, exports } = finished else { panic!("{finished:?}") };
    assert_eq!((result, exports), (json!([{"id": "387262ae"}]), json!({"$summary": "Retrieved 1 commit"})));
}

#[tokio::test]
async fn version_and_dynamic_props_are_sent_when_the_tool_has_them() {
    let pipedream = start();
    pipedream.inject(Fault::body(json!({"ret": 1})).on("POST", "/actions/run"));
    let run = Run { version: Some("0.1.2"), dynamic_props_id: Some("dyp_1"), ..message("C1") };
    client(&pipedream.url).run(&project(), organization(), run, ample()).await.unwrap();
    let body = pipedream.requests().pop().unwrap().body;
    assert_eq!((&body["version"], &body["dynamic_props_id"]), (&json!("0.1.2"), &json!("dyp_1")));
}

#[tokio::test]
async fn the_stand_in_runs_the_clients_requests() {
    let pipedream = start();
    let finished = run(&client(&pipedream.url), ample()).await.unwrap();
    assert!(matches!(finished, Finished::Done { .. }), "{finished:?}");
    let runs = pipedream.runs();
    assert_eq!((runs.len(), runs[0].id.as_str(), runs[0].external_user_id.as_str()), (1, SLACK, ORGANIZATION));
    assert_eq!(runs[0].configured_props, Value::Object(to("C1")));
    assert_eq!(runs[0].environment, "development");
}

/// 200 does not mean success.
#[tokio::test]
async fn an_error_inside_200_is_a_failure_of_the_action() {
    let pipedream = start();
    let client = client(&pipedream.url);
    let finished = client.run(&project(), organization(), message("C404"), ample()).await.unwrap();
    assert!(matches!(&finished, Finished::Failed(why) if why == "channel_not_found"), "{finished:?}");

    for (body, why) in [
        (fixture("pipedream.json")["run"]["responses"][1]["body"].clone(), "channel_not_found"),
        (json!({"os": [], "error": "token expired"}), "token expired"),
        (json!({"error": {"message": "no such sheet", "attribution": "user"}, "ret": 1}), "no such sheet"),
    ] {
        pipedream.inject(Fault::body(body).on("POST", "/actions/run"));
        let finished = run(&client, ample()).await.unwrap();
        assert!(matches!(&finished, Finished::Failed(said) if said == why), "{finished:?}");
    }
}

#[tokio::test]
async fn a_result_may_stand_in_the_exports() {
    let pipedream = start();
    pipedream.inject(Fault::body(json!({"exports": {"$return_value": {"id": 7}}})).on("POST", "/actions/run"));
    let finished = run(&client(&pipedream.url), ample()).await.unwrap();
    assert!(matches!(&finished, Finished::Done { result, .. } if *result == json!({"id": 7})), "{finished:?}");
}

/// Every failure after which the action may have run: one request, no retry.
#[tokio::test]
async fn nothing_is_run_again_once_it_may_have_run() {
    let run_route = |fault: Fault| fault.on("POST", "/actions/run");
    let cases: [(&str, Fault, &str, usize); 6] = [
        ("the connection breaks after the effect", Fault::drop_after(), "no answer", 1),
        ("the connection breaks before the effect", Fault::drop_before(), "no answer", 0),
        ("500", Fault::status(500), "broken 500", 0),
        ("504 although it ran", Fault::status(504).with_effect(Effect::First), "broken 504", 1),
        ("no JSON", Fault::body(json!("<html>")).with_effect(Effect::First), "undecodable", 1),
        ("a list", Fault::body(json!([])), "undecodable", 0),
    ];
    for (name, fault, expected, runs) in cases {
        let pipedream = start();
        pipedream.inject(run_route(fault));
        let error = run(&client(&pipedream.url), ample()).await.unwrap_err();
        assert_eq!(class(&error), expected, "{name}");
        assert!(error.effect_possible(), "{name}");
        assert_eq!((sorted(&pipedream).1.len(), pipedream.runs().len()), (1, runs), "{name}");
    }
}

#[tokio::test]
async fn a_late_answer_is_no_answer_and_the_action_ran_once() {
    let pipedream = start();
    let client = client(&pipedream.url);
    run(&client, ample()).await.unwrap();
    pipedream.inject(Fault::delay(LATE).on("POST", "/actions/run"));
    let error = run(&client, short()).await.unwrap_err();
    assert_eq!(class(&error), "no answer");
    assert!(error.effect_possible());
    until(|| pipedream.runs().len() == 2).await;
    assert_eq!(sorted(&pipedream).1.len(), 2);
}

#[tokio::test]
async fn too_many_requests_is_tried_again_because_it_was_not_processed() {
    let pipedream = start();
    let client = client(&pipedream.url);
    pipedream.inject(Fault::status(429).on("POST", "/actions/run"));
    pipedream.inject(Fault::status(429).with_header("Retry-After", "0").on("POST", "/actions/run"));
    run(&client, ample()).await.unwrap();
    assert_eq!((sorted(&pipedream).1.len(), pipedream.runs().len()), (3, 1));

    pipedream.inject(Fault::status(429).with_header("Retry-After", "300").on("POST", "/actions/run"));
    let error = run(&client, ample()).await.unwrap_err();
    assert_eq!(class(&error), "rate limited for 300 s");
    assert!(!error.effect_possible());
    pipedream.inject(Fault::status(429).times(99).on("POST", "/actions/run"));
    assert_eq!(class(&run(&client, ample()).await.unwrap_err()), "rate limited");
    assert_eq!(pipedream.runs().len(), 1);
}

#[tokio::test]
async fn a_refusal_is_read_and_not_repeated() {
    let vector = fixture("pipedream.json");
    let pipedream = start();
    let client = client(&pipedream.url);
    let refusal = &vector["run"]["responses"][2];
    pipedream.inject(Fault::status(400).with_body(refusal["body"].clone()).on("POST", "/actions/run"));
    let error = run(&client, ample()).await.unwrap_err();
    assert_eq!((class(&error).as_str(), excerpt(&error)), ("rejected 400", "\"x\": msg"));
    assert!(!error.effect_possible());

    // Another organization's account: the stand-in itself refuses it.
    let stranger = OrganizationId::generate();
    let error = client.run(&project(), stranger, message("C1"), ample()).await.unwrap_err();
    assert_eq!(class(&error), "rejected 400");
    assert_eq!((sorted(&pipedream).1.len(), pipedream.runs().len()), (2, 0));
}

#[tokio::test]
async fn one_token_serves_all_runs_even_ten_at_once() {
    let pipedream = start();
    let client = client(&pipedream.url);
    // Late enough for the other nine requests to arrive while the first is being answered.
    pipedream.inject(Fault::delay(100).on("POST", "/v1/oauth/token"));
    for finished in join_all((0..10).map(|_| run(&client, ample()))).await {
        finished.unwrap();
    }
    run(&client.clone(), ample()).await.unwrap();
    let (tokens, runs) = sorted(&pipedream);
    assert_eq!((tokens.len(), runs.len()), (1, 11));
    let bearers: std::collections::BTreeSet<&String> = runs.iter().map(|run| &run.headers["authorization"]).collect();
    assert_eq!(bearers.len(), 1);
}

#[tokio::test]
async fn a_token_is_renewed_when_its_time_is_over() {
    let pipedream = start();
    let client = client(&pipedream.url);
    for token in ["first", "second"] {
        let answer = json!({"access_token": token, "token_type": "Bearer", "expires_in": 0});
        pipedream.inject(Fault::body(answer).on("POST", "/v1/oauth/token"));
        pipedream.inject(Fault::body(json!({"ret": token})).on("POST", "/actions/run"));
        run(&client, ample()).await.unwrap();
    }
    let bearers: Vec<String> = sorted(&pipedream).1.iter().map(|run| run.headers["authorization"].clone()).collect();
    assert_eq!(bearers, ["Bearer first", "Bearer second"]);
}

/// A token may be revoked early: a refused token is replaced once. No action ran, so none can run twice.
#[tokio::test]
async fn a_revoked_token_is_replaced_and_the_run_goes_on() {
    let pipedream = start();
    let client = client(&pipedream.url);
    run(&client, ample()).await.unwrap();
    pipedream.revoke_tokens();
    run(&client, ample()).await.unwrap();
    let (tokens, runs) = sorted(&pipedream);
    assert_eq!((tokens.len(), runs.len(), pipedream.runs().len()), (2, 3, 2));

    pipedream.clear_requests();
    pipedream.inject(Fault::status(401).times(9).on("POST", "/actions/run"));
    let error = run(&client, ample()).await.unwrap_err();
    assert_eq!(class(&error), "rejected 401");
    let (tokens, runs) = sorted(&pipedream);
    assert_eq!((tokens.len(), runs.len()), (1, 2), "a new token that is refused too is not replaced again");
}

/// Without a token the action was not requested, regardless of the token request's outcome.
#[tokio::test]
async fn without_a_token_nothing_can_have_happened() {
    let cases: [(&str, Fault); 6] = [
        ("cut off", Fault::drop_after().times(99)),
        ("500", Fault::status(500).times(99)),
        ("late", Fault::delay(LATE).times(99)),
        ("no JSON", Fault::body(json!("<html>")).times(99)),
        ("no token", Fault::body(json!({"token_type": "Bearer"})).times(99)),
        ("429", Fault::status(429).times(99)),
    ];
    join_all(cases.map(|(name, fault)| async move {
        let pipedream = start();
        let deadline = if fault.delay_ms == 0 { ample() } else { short() };
        pipedream.inject(fault.on("POST", "/v1/oauth/token"));
        let error = run(&client(&pipedream.url), deadline).await.unwrap_err();
        assert!(!error.effect_possible(), "{name}: {error:?}");
        assert_eq!(sorted(&pipedream).1.len(), 0, "{name}");
    }))
    .await;
    let error = run(&client(&nowhere()), ample()).await.unwrap_err();
    assert_eq!(class(&error), "unreachable");
    assert!(!error.effect_possible());
}

#[tokio::test]
async fn a_failed_request_for_a_token_leaves_nothing_behind() {
    let pipedream = start();
    let client = client(&pipedream.url);
    pipedream.inject(Fault::status(401).on("POST", "/v1/oauth/token"));
    let error = run(&client, ample()).await.unwrap_err();
    assert_eq!(class(&error), "rejected 401");
    assert!(!format!("{error} {}", shared::error::chain(&error)).contains("pd-secret"));
    pipedream.inject(Fault::status(503).on("POST", "/v1/oauth/token"));
    run(&client, ample()).await.unwrap();
    assert_eq!(pipedream.runs().len(), 1, "503 for a token is tried again");
}

#[tokio::test]
async fn an_apps_actions_are_listed_page_by_page_and_read_whole() {
    let pipedream = start();
    let client = client(&pipedream.url);
    pipedream.inject(Fault::status(500).on("GET", "/actions"));
    let keys = client.action_keys(&project(), "google_sheets", ample()).await.unwrap();
    assert_eq!(keys, ["google_sheets-add-single-row"]);
    let component = client.component(&project(), &keys[0], ample()).await.unwrap().unwrap();
    assert_eq!((component.key.as_str(), component.version.as_str()), ("google_sheets-add-single-row", "2.1.12"));
    assert_eq!(component.configurable_props[0]["type"], "app");
    assert_eq!(component.annotations.unwrap()["readOnlyHint"], false);
    assert!(client.action_keys(&project(), "no such&app=gmail", ample()).await.unwrap().is_empty());
    assert!(client.component(&project(), "gmail-nothing", ample()).await.unwrap().is_none());
    pipedream.inject(Fault::status(403).on("GET", "/actions"));
    let refused = client.action_keys(&project(), "gmail", ample()).await.unwrap_err();
    assert_eq!(class(&refused), "rejected 403");
}

#[tokio::test]
async fn an_action_is_looked_up_by_its_key() {
    let pipedream = start();
    let client = client(&pipedream.url);
    pipedream.inject(Fault::status(500).on("GET", "/actions/"));
    let action = client.action(&project(), "google_sheets-add-single-row", ample()).await.unwrap().unwrap();
    assert_eq!(action.key, "google_sheets-add-single-row");
    assert_eq!(action.app_prop(), Some("googleSheets"), "the prop's own name, not the app's");
    assert!(!action.version.is_empty());
    let asked = pipedream.requests().pop().unwrap();
    assert_eq!(asked.method, "GET");
    assert_eq!(asked.headers["x-pd-environment"], "development");
    assert!(asked.path.starts_with("/v1/connect/proj_local1/actions/google"), "{}", asked.path);

    assert!(client.action(&project(), "gmail-nothing", ample()).await.unwrap().is_none());
    assert!(client.action(&project(), "../accounts", ample()).await.unwrap().is_none());
    assert!(!pipedream.requests().iter().any(|request| request.path.contains("/accounts")));
}

#[tokio::test]
async fn an_action_that_cannot_be_looked_up_is_not_one_that_is_missing() {
    let cases = [
        (Fault::status(500).times(9), "broken 500"),
        (Fault::drop_before().times(9), "no answer"),
        (Fault::status(403), "rejected 403"),
        (Fault::body(json!({"data": {}})), "undecodable"),
    ];
    join_all(cases.map(|(fault, expected)| async move {
        let pipedream = start();
        pipedream.inject(fault.on("GET", "/actions/"));
        let error = client(&pipedream.url).action(&project(), SLACK, ample()).await.unwrap_err();
        assert_eq!(class(&error), expected);
    }))
    .await;
}

#[tokio::test]
async fn an_account_is_looked_for_among_those_the_organization_has_connected() {
    let mut options = Options::default().with_account("apn_theirs", "somebody else", "slack");
    for number in 0..230 {
        options = options.with_account(&format!("apn_{number}"), ORGANIZATION, "slack");
    }
    let pipedream = standin::start(anywhere(), options).unwrap();
    let client = client(&pipedream.url);
    let has = async |account: &str| {
        let found = client.account(&project(), organization(), account, ample()).await;
        found.map(|found| found.is_some())
    };
    for (account, is_there, pages) in
        [("apn_0", true, 3), ("apn_229", true, 3), ("apn_theirs", false, 3), ("", false, 3)]
    {
        pipedream.clear_requests();
        assert_eq!(has(account).await.unwrap(), is_there, "{account}");
        let (_, asked) = sorted(&pipedream);
        assert_eq!(asked.len(), pages, "{account}");
        let user = ("external_user_id".to_owned(), ORGANIZATION.to_owned());
        assert!(asked.iter().all(|request| request.path.ends_with("/accounts") && request.query.contains(&user)));
    }
    for (fault, expected) in [(Fault::status(403), "rejected 403"), (Fault::status(502), "broken 502")] {
        pipedream.inject(fault.times(20));
        assert_eq!(class(&has("apn_0").await.unwrap_err()), expected);
        pipedream.clear_faults();
    }
}
