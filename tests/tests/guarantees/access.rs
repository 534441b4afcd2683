//! Access to every route: without credentials, with another tenant's, and with every role.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::large_futures,
    reason = "a test says what is wrong and stops"
)]

mod other_organizations;

use std::collections::BTreeMap;

use serde_json::{Value, json};
use shared::models::{DoNotCall, DoNotCallId, DoNotCallSource, Role};
use tests::{Event, Tenant, World, ai_sms, declared, standins::llm::Turn, template::Route};

/// Knowledge bases of the home organization and of the other one.
pub(super) const BASE: &str = "01930f5e-0000-7000-8000-0000000000b1";
const THEIR_BASE: &str = "01930f5e-0000-7000-8000-0000000000b2";

/// Calls of the home organization and of the other one.
const CALL: &str = "01930f5e-0000-7000-8000-0000000000c1";
const THEIR_CALL: &str = "01930f5e-0000-7000-8000-0000000000c2";

/// Runs of automations of the home organization and of the other one.
pub(super) const RUN: &str = "01930f5e-0000-7000-8000-0000000000d1";
const THEIR_RUN: &str = "01930f5e-0000-7000-8000-0000000000d2";

/// Automations of the home organization and of the other one.
pub(super) const AUTOMATION: &str = "01930f5e-0000-7000-8000-0000000000e1";
const THEIR_AUTOMATION: &str = "01930f5e-0000-7000-8000-0000000000e2";

/// Approvals of the home organization and of the other one.
pub(super) const APPROVAL: &str = "01930f5e-0000-7000-8000-0000000000f5";
const THEIR_APPROVAL: &str = "01930f5e-0000-7000-8000-0000000000f6";
/// Hooks and events of the home organization and of the other one.
const HOOK: &str = "01930f5e-0000-7000-8000-0000000000f1";
const THEIR_HOOK: &str = "01930f5e-0000-7000-8000-0000000000f2";
const EVENT: &str = "01930f5e-0000-7000-8000-0000000000f3";
const THEIR_EVENT: &str = "01930f5e-0000-7000-8000-0000000000f4";
/// Replays of the home organization and of the other one.
pub(super) const REPLAY: &str = "01930f5e-0000-7000-8000-0000000000a8";
const THEIR_REPLAY: &str = "01930f5e-0000-7000-8000-0000000000a9";

/// On the do-not-call list of both organizations.
const LISTED: &str = "+14155550178";

/// A member of both organizations.
const MEMBER: &str = "auth0|7";

/// A valid request to a route, with slug and ids of `owner`; `tool` is one of its tools.
#[expect(clippy::too_many_lines, reason = "it is a list of routes")]
pub(super) fn request(route: &Route, owner: &Tenant, tool: &str, agent: &str) -> Event {
    let path = route.path.replace("{slug}", &owner.slug).replace("/tools/{id}", &format!("/tools/{tool}"));
    let path = path.replace("/agents/{id}", &format!("/agents/{agent}"));
    let path = path.replace("/agent/{id}", "/agent/default").replace("{thread}", "main");
    let path = path.replace("/knowledge-bases/{id}", &format!("/knowledge-bases/{BASE}")).replace("{entry_id}", "e1");
    let listed = DoNotCallId::of_number(owner.organization_id.parse().unwrap(), &LISTED.parse().unwrap());
    let path = path.replace("/do-not-call/{id}", &format!("/do-not-call/{listed}"));
    let path = path.replace("/phone-numbers/{id}", &format!("/phone-numbers/{}", owner.phone_number_id));
    let path = path.replace("{service}", "vapi").replace("/services/{name}", "/services/slack");
    let path = path.replace("/agent-tools/{name}", "/agent-tools/search_tools");
    let path = path.replace("/phone-number/{id}", &format!("/phone-number/{}", owner.phone_number_id));
    let path = path.replace("/transfers/{call}", &format!("/transfers/{CALL}"));
    let path = path.replace("/calls/{id}", &format!("/calls/{CALL}"));
    let path = path.replace("/runs/{id}", &format!("/runs/{RUN}"));
    let path = path.replace("/automations/{id}", &format!("/automations/{AUTOMATION}")).replace("{version}", "1");
    let path = path.replace("/approvals/{id}", &format!("/approvals/{APPROVAL}"));
    let path = path.replace("/hooks/{id}", &format!("/hooks/{HOOK}")).replace("{hook_id}", HOOK);
    let path = path.replace("{user_id}", "auth0%7C7");
    let path = path.replace("/replays/{id}", &format!("/replays/{REPLAY}"));
    let path = path.replace("/events/{id}", &format!("/events/{EVENT}"));
    let path = path.replace("/threads/{id}", "/threads/default").replace("{file}", "settings.json");
    assert!(!path.contains('{'), "{}: say in tests/access.rs what this variable stands for", route.path);
    let body = match format!("{} {}", route.method, route.path).as_str() {
        "POST /api/{slug}/tools" => ai_sms(),
        "POST /api/{slug}/agents/{id}/tools/attach" | "POST /api/{slug}/agents/{id}/tools/detach" => {
            json!({"tool_id": tool})
        }
        "POST /api/{slug}/agents/{id}/knowledge-bases/attach"
        | "POST /api/{slug}/agents/{id}/knowledge-bases/detach" => {
            json!({"knowledge_base_id": BASE})
        }
        "PATCH /api/{slug}/tools/{id}" => json!({"label": "Another label"}),
        "POST /api/tools/{id}/execute" => json!({"text": "Hello", "metadata": {"token": "not-the-token"}}),
        "POST /api/{slug}/tools/test" => {
            json!({"tool_id": tool, "arguments": {"text": "Hello"}, "caller_phone_number": "+14155550101", "dry_run": false})
        }
        "POST /api/{slug}/knowledge-bases" => json!({"name": "Homes"}),
        "POST /api/{slug}/knowledge-bases/{id}/entries" => json!({"entries": [{"text": "House"}]}),
        "POST /api/{slug}/agents" => json!({"external_assistant_id": owner.assistant_id}),
        "POST /api/{slug}/phone-numbers" => json!({
            "number": owner.phone_number, "label": "Main line",
            "twilio": {"account_sid": owner.twilio_sid, "auth_token": owner.twilio_token},
        }),
        "POST /api/phone-number/{id}/incoming"
        | "POST /api/phone-number/{id}/transfers/{call}"
        | "POST /api/phone-number/{id}/transfers/{call}/briefing" => {
            let form = format!(
                "CallSid=CA1&From=%2B14155550101&To={}&CallStatus=ringing",
                owner.phone_number.replace('+', "%2B")
            );
            return Event::new(&route.method, &path).text(form).header("x-twilio-signature", "bm90IHR3aWxpbydz");
        }
        "PUT /api/{slug}/keys/{service}" => json!({"api_key": tests::OWN_KEYS[0]}),
        "POST /api/vapi/events" => {
            json!({"message": {"type": "status-update", "status": "ended", "call": {"id": CALL}}})
        }
        "POST /api/{slug}/runs" => json!({"prompt": "Hello"}),
        "POST /agent/chat" | "POST /agent/stream" => json!({"message": "Hello"}),
        "POST /copilotkit/action" => json!({"action": "chat", "message": "Hello"}),
        "POST /copilotkit" => json!({"method": "info"}),
        "POST /copilotkit/stream" | "POST /copilotkit/agent/{id}/run" | "POST /copilotkit/agent/{id}/connect" => {
            tests::run_input("main", "u1", "Hello")
        }
        "POST /api/{slug}/discover/fetch_tool_data" => json!({"tool_names": ["slack_post_message", tool]}),
        "POST /api/{slug}/discover/search" => json!({"q": "post a message"}),
        "POST /copilotkit/agent/{id}/stop/{thread}" | "POST /api/{slug}/services/{name}/connect" => json!({}),
        "GET /api/{slug}/discover/initial_md_fetch" => return Event::get(&path).query("service", "slack"),
        "GET /api/{slug}/discover/fetch_tool_data" => return Event::get(&path).query("name", tool),
        "POST /api/{slug}/automations" => json!({"name": "Hello", "trigger_type": "manual", "prompt": "Hello"}),
        "PUT /api/{slug}/automations/{id}" => {
            json!({"name": "Hello", "trigger_type": "manual", "prompt": "Hello again"})
        }
        "POST /api/{slug}/automations/{id}/activate" | "POST /api/{slug}/automations/{id}/rollback" => {
            json!({"version": 1})
        }
        "POST /api/{slug}/automations/{id}/memory/forget" => json!({"key": "offer"}),
        "POST /api/{slug}/events/{id}/replay" => json!({"automation_id": AUTOMATION}),
        "POST /api/{slug}/events/replays" => json!({"only_failed": true}),
        "POST /api/{slug}/automations/{id}/run" | "POST /api/{slug}/runs/{id}/retry" => json!({"dry_run": true}),
        "POST /api/{slug}/approvals/{id}/approve" | "POST /api/{slug}/approvals/{id}/refuse" => json!({"reason": "So"}),
        "PUT /api/{slug}/services/{name}/account" => json!({"account_id": null}),
        "GET /api/{slug}/automations/{id}/diff" => {
            return Event::new(&route.method, &path).query("from", "1").query("to", "1");
        }
        "POST /api/{slug}/members" => json!({"user_id": "auth0|8", "role": "member"}),
        "PATCH /api/{slug}/members/{user_id}" => json!({"role": "viewer"}),
        "POST /api/{slug}/hooks" => json!({"service": "Webhooks"}),
        "PATCH /api/{slug}/hooks/{id}" => json!({"label": "Ours"}),
        "POST /api/hooks/{service}" | "POST /api/hooks/{service}/{hook_id}" | "POST /api/hooks/twilio/statuses" => {
            json!({"type": "event_callback"})
        }
        "POST /api/{slug}/do-not-call" => json!({"phone_number": "+14155550177"}),
        "POST /api/{slug}/erasures" => json!({"phone_number": "+14155550101"}),
        "PATCH /api/{slug}/phone-numbers/{id}" => json!({"label": "Nights"}),
        "POST /api/{slug}/mcp" | "POST /api/{slug}/voice/mcp" => json!({"jsonrpc": "2.0", "id": 1, "method": "ping"}),
        "POST /api/{slug}/agents/{id}/context" => json!({"caller_phone_number": "+14155550101"}),
        "POST /api/{slug}/agent-tools/{name}" => json!({"q": "message"}),
        "POST /api/{slug}/agents/{id}/voice-token"
        | "POST /api/{slug}/events/replays/{id}/start"
        | "POST /api/{slug}/events/replays/{id}/cancel" => Value::Null,
        "POST /api/{slug}/runs/{id}/cancel" | "POST /api/{slug}/automations/{id}/pause" | "OPTIONS /api/{slug}/mcp" => {
            Value::Null
        }
        key if key.starts_with("GET ") || key.starts_with("DELETE ") => Value::Null,
        key => panic!("{key} is a new route: say in tests/access.rs what a request to it looks like"),
    };
    let event = Event::new(&route.method, &path);
    let event = if route.path.contains("{slug}") { event } else { event.header("x-organization", &owner.slug) };
    if body.is_null() { event } else { event.header("content-type", "application/json").text(body.to_string()) }
}

/// Every state that a request could change.
fn footprint(world: &World) -> BTreeMap<&'static str, String> {
    let tables = [
        "organizations",
        "intents",
        "agents",
        "phone_numbers",
        "do_not_call",
        "calls",
        "tools",
        "agent_tools",
        "executions",
        "idempotency",
        "knowledge_bases",
        "knowledge_entries",
        "automation_runs",
        "automations",
        "automation_versions",
        "automation_memory",
        "event_waits",
        "approvals",
        "hooks",
        "events",
        "replays",
        "threads",
        "audit_entries",
    ];
    let mut footprint: BTreeMap<&str, String> =
        tables.into_iter().map(|table| (table, json!(world.aws.rows(table)).to_string())).collect();
    // The test adds its own users as needed.
    let mut members = world.aws.rows("organization_members");
    members.retain(|row| !row["user_id"].as_str().unwrap().starts_with("user|"));
    footprint.insert("organization_members", json!(members).to_string());
    let outside = [world.vapi.requests().len(), world.twilio.requests().len(), world.pipedream.requests().len()];
    footprint.insert("queued runs", format!("{:?}", world.aws.messages("runs")));
    footprint.insert("vendors", format!("{outside:?}"));
    footprint.insert("secrets", format!("{:?}", world.aws.secret_names("")));
    footprint
}

/// A problem document without its request-specific fields.
fn problem(body: &Value) -> Value {
    let mut body = body.clone();
    body["request_id"] = Value::Null;
    body
}

pub(super) async fn world_with_tools() -> (World, String, String) {
    let world = World::start().await;
    world.service("Slack", Some("slack"));
    world.service_tool("Slack", "slack_post_message", "Posts a message.", &["text"]);
    let id = |tool: &Value| tool["id"].as_str().unwrap().to_owned();
    let ours = id(&world.attached(&ai_sms()).await);
    let theirs = id(&world.create_as(&world.other, &ai_sms()).await.expect(201));
    for (base, owner) in [(BASE, &world.home), (THEIR_BASE, &world.other)] {
        let listed = LISTED.parse().unwrap();
        let entry = DoNotCall::new(owner.organization_id.parse().unwrap(), &listed, DoNotCallSource::Member);
        world.aws.put("do_not_call", &json!(entry));
        world.aws.put("knowledge_bases", &json!({
            "id": base, "organization_id": owner.organization_id, "name": "Homes", "fields": [], "version": 1, "entries": 1,
            "deleting": false, "created_at": "2026-01-01T00:00:00.000Z", "updated_at": "2026-01-01T00:00:00.000Z",
        }));
        world.aws.put(
            "knowledge_entries",
            &json!({
                "knowledge_base_id": base, "id": "e1", "organization_id": owner.organization_id, "text": "House",
                "created_at": "2026-01-01T00:00:00.000Z", "updated_at": "2026-01-01T00:00:00.000Z",
            }),
        );
    }
    for owner in [&world.home, &world.other] {
        let row = json!({"user_id": MEMBER, "organization_id": owner.organization_id, "role": "member"});
        world.aws.put("organization_members", &row);
    }
    for (call, owner) in [(CALL, &world.home), (THEIR_CALL, &world.other)] {
        world.incoming_call(owner, call, "+14155550101");
    }
    for (run, owner) in [(RUN, &world.home), (THEIR_RUN, &world.other)] {
        let started = world.start_run_as(owner, &json!({"prompt": "Hello"})).await.expect(202);
        for mut part in world.aws.rows("automation_runs").into_iter().filter(|part| part["id"] == started["id"]) {
            part["id"] = json!(run);
            world.aws.put("automation_runs", &part);
        }
    }
    for (automation, owner) in [(AUTOMATION, &world.home), (THEIR_AUTOMATION, &world.other)] {
        let definition = json!({"name": "Hello", "trigger_type": "manual", "prompt": "Hello"});
        world.automation_as(owner, "POST", "", &definition).await.expect(201);
        let mine = |row: &&Value| row["organization_id"] == owner.organization_id.as_str();
        let mut row = world.aws.rows("automations").iter().find(mine).unwrap().clone();
        row["id"] = json!(automation);
        world.aws.put("automations", &row);
        let mut version = world.aws.rows("automation_versions").iter().find(mine).unwrap().clone();
        version["automation_id"] = json!(automation);
        world.aws.put("automation_versions", &version);
        world.remembers_offer(owner, automation);
    }
    for (approval, run, owner) in [(APPROVAL, RUN, &world.home), (THEIR_APPROVAL, THEIR_RUN, &world.other)] {
        world.aws.put("approvals", &json!({
            "id": approval, "organization_id": owner.organization_id, "run_id": run, "action_id": "tell", "tool": "slack_post_message",
            "arguments": "{}", "arguments_hash": "00", "status": "pending", "valid_until": "2096-01-01T00:00:00.000Z",
            "created_at": "2026-01-01T00:00:00.000Z", "updated_at": "2026-01-01T00:00:00.000Z", "expires_at": 4_000_000_000_u64,
        }));
    }
    for (hook, event, owner) in [(HOOK, EVENT, &world.home), (THEIR_HOOK, THEIR_EVENT, &world.other)] {
        let now = "2026-01-01T00:00:00.000Z";
        world.aws.put("hooks", &json!({
            "id": hook, "organization_id": owner.organization_id, "service": "vapi", "label": "", "status": "active",
            "secrets": [], "revision": 0, "created_at": now, "updated_at": now,
        }));
        world.aws.put("events", &json!({
            "id": event, "organization_id": owner.organization_id, "hook_id": hook, "service": "slack", "data": "{}",
            "event_type": "message", "status": "dispatched", "created_at": now, "updated_at": now, "expires_at": 4_000_000_000_u64,
        }));
        let replay = if event == EVENT { REPLAY } else { THEIR_REPLAY };
        world.aws.put(
            "replays",
            &json!({
                "id": replay, "organization_id": owner.organization_id, "filter": {"until": "2026-01-02T00:00:00.000Z"},
                "events": 0, "runs": 0, "batch": 0, "created_by": owner.user_id, "created_at": now,
                "start_before": "2096-01-01T00:00:00.000Z", "expires_at": 4_000_000_000_u64,
            }),
        );
    }
    (world, ours, theirs)
}

#[tokio::test]
async fn every_route_is_known_here_and_has_an_authorizer_or_a_token_of_its_own() {
    let routes = tests::Template::read().routes();
    assert!(routes.len() >= 6, "{routes:?}");
    let open: Vec<String> = routes.iter().filter(|route| !route.jwt).map(|route| route.path.clone()).collect();
    let known = [
        "/api/{slug}/mcp",
        "/",
        "/.well-known/oauth-protected-resource",
        "/.well-known/oauth-protected-resource/api/{slug}/mcp",
        "/api/{slug}/mcp",
        "/console/{file}",
        "/api/{slug}/mcp",
        "/api/hooks/{service}",
        "/api/hooks/{service}/{hook_id}",
        "/api/hooks/twilio/statuses",
        "/api/phone-number/{id}/incoming",
        "/api/phone-number/{id}/transfers/{call}",
        "/api/phone-number/{id}/transfers/{call}/briefing",
        "/api/tools/{id}/execute",
        "/api/vapi/events",
        "/api/{slug}/mcp",
        "/api/{slug}/agents/{id}/context",
        "/api/{slug}/voice/mcp",
        "/api/{slug}/voice/mcp",
        "/api/{slug}/voice/mcp",
    ];
    let (mut open, mut known) = (open, known.map(str::to_owned).to_vec());
    open.sort_unstable();
    known.sort_unstable();
    assert_eq!(open, known, "a route without authorizer must let in by itself");
}

/// Routes without personal data: token metadata, preflights, and the page before sign-in.
fn says_nothing_of_anybody(route: &Route) -> bool {
    route.path.starts_with("/.well-known/") || route.method == "OPTIONS" || route.function == "console"
}

#[tokio::test]
async fn without_credentials_every_route_is_401_and_does_nothing() {
    let (world, ours, _) = world_with_tools().await;
    let before = footprint(&world);
    for route in routes(&world).into_iter().filter(|route| !says_nothing_of_anybody(route)) {
        let event = request(&route, &world.home, &ours, &world.home.agent_id);
        let answer = world.send(&route.function, &event).await;
        // Twilio treats 401 as a request for credentials, so it gets 403.
        let (status, code) = if route.function == "call-start" { (403, "forbidden") } else { (401, "unauthenticated") };
        assert_eq!(answer.status, status, "{route:?}: {}", answer.body);
        if route.function == "trigger" {
            // A service gets no explanation.
            assert_eq!((&answer.content_type[..], &answer.body), ("", &Value::Null), "{route:?}");
        } else {
            assert_eq!((&answer.content_type[..], &answer.body["code"]), ("application/problem+json", &json!(code)));
        }
        // API Gateway's authorizer accepts nobody without a subject; another kind of authorizer counts as none.
        for authorizer in [
            json!({}),
            json!({"jwt": {"claims": {}, "scopes": null}}),
            json!({"jwt": {"claims": {"sub": ""}}}),
            json!({"lambda": {"sub": world.home.user_id}}),
        ] {
            let mut raw = event.to_json();
            raw["requestContext"]["authorizer"] = authorizer.clone();
            let answer = world.send_json(&route.function, &raw).await;
            assert_eq!(answer.status, status, "{route:?} {authorizer}: {}", answer.body);
        }
        for (name, value) in
            [("authorization", "Bearer x"), ("x-user-id", world.home.user_id.as_str()), ("x-vapi-secret", "")]
        {
            let answer = world.send(&route.function, &event.clone().header(name, value)).await;
            assert_eq!(answer.status, status, "{route:?} {name}: {}", answer.body);
        }
    }
    assert_eq!(footprint(&world), before);
}

/// Stored roles and their meaning.
const ROLES: [(Option<&str>, Role); 6] = [
    (Some("owner"), Role::Owner),
    (Some("admin"), Role::Admin),
    (Some("member"), Role::Member),
    (Some("viewer"), Role::Viewer),
    (Some("Owner"), Role::Viewer),
    (None, Role::Viewer),
];

fn least_role(route: &Route) -> Role {
    let role = declared::least_role(&route.method, &route.path);
    role.unwrap_or_else(|| panic!("{} {} is not declared", route.method, route.path))
}

/// Whether the function verifies the token instead of the authorizer.
fn verifies(route: &Route) -> bool {
    route.path == "/api/{slug}/mcp" && route.method != "OPTIONS" || route.function == "stream"
}

pub(super) fn routes(world: &World) -> Vec<Route> {
    world.template.routes().into_iter().chain(world.template.rest_routes()).collect()
}

/// The routes of the dashboard's users.
fn of_users(world: &World) -> impl Iterator<Item = Route> {
    routes(world).into_iter().filter(|route| route.jwt || route.function == "stream")
}

/// The request as this user: with the authorizer's claims, or with a token for the function to verify.
pub(super) fn by(world: &World, route: &Route, event: Event, user: &str) -> Event {
    if route.jwt {
        return event.user(user);
    }
    event.header("authorization", &format!("Bearer {}", world.issuer.token(user)))
}

#[test]
fn every_route_with_an_authorizer_has_a_least_role_and_no_other_has() {
    let mut named: Vec<(&str, &str)> =
        declared::least_roles().into_iter().map(|(method, path, _)| (method, path)).collect();
    named.sort_unstable();
    let template = tests::Template::read();
    let routes: Vec<Route> = template.routes().into_iter().chain(template.rest_routes()).collect();
    let mut with_authorizer: Vec<(&str, &str)> = routes
        .iter()
        .filter(|route| route.jwt || verifies(route))
        .map(|route| (&route.method[..], &route.path[..]))
        .collect();
    with_authorizer.sort_unstable();
    assert_eq!(named, with_authorizer);
}

#[tokio::test]
async fn every_route_is_refused_to_each_lesser_role_and_does_nothing() {
    let (world, ours, _) = world_with_tools().await;
    let before = footprint(&world);
    for route in of_users(&world) {
        let least = least_role(&route);
        for (stored, role) in ROLES.into_iter().filter(|(_, role)| *role < least) {
            let user = world.member(&world.home, stored);
            let event = request(&route, &world.home, &ours, &world.home.agent_id);
            let event = by(&world, &route, event, &user);
            // The refusal precedes the check of the body.
            for event in [event.clone(), event.text("{")] {
                let refused = world.send(&route.function, &event).await;
                assert_eq!(refused.status, 403, "{route:?} as {role:?}: {}", refused.body);
                assert_eq!(refused.body["code"], "forbidden");
                let detail = refused.body["detail"].as_str().unwrap();
                assert!(detail.contains(&format!("role {}", least.as_str())), "{route:?}: {detail}");
            }
        }
    }
    assert_eq!(footprint(&world), before);
}

#[tokio::test]
async fn every_route_is_open_to_each_role_that_does() {
    for (stored, role) in ROLES {
        let (world, ours, _) = world_with_tools().await;
        world.own_key(&world.home, &json!({"api_key": tests::OWN_KEYS[0]}));
        world.llm.script(vec![Turn::text("Hello!"); 8]);
        let user = world.member(&world.home, stored);
        // Deletions come last.
        let mut routes: Vec<Route> = of_users(&world).collect();
        routes.sort_by_key(|route| ["GET", "PATCH", "PUT", "POST", "DELETE"].iter().position(|it| *it == route.method));
        for route in routes.into_iter().filter(|route| least_role(route) <= role) {
            let event = request(&route, &world.home, &ours, &world.home.agent_id);
            let event = by(&world, &route, event, &user);
            let answer = world.send(&route.function, &event).await;
            if least_role(&route) == Role::Viewer && route.method == "DELETE" && role < Role::Admin {
                // Members may remove only themselves (journeys/members.rs).
                assert_eq!((&route.function[..], answer.status), ("members", 403), "{route:?} as {stored:?}");
                continue;
            }
            assert_ne!(answer.status, 403, "{route:?} as {stored:?}: {}", answer.body);
            // Threads are private, and these users have none.
            let found = answer.status == 200 || route.path == "/agent/threads/{id}";
            assert!(route.method != "GET" || found, "{route:?} as {stored:?}: {}", answer.body);
        }
    }
}

#[tokio::test]
async fn a_configuration_that_is_not_saved_runs_only_for_who_may_make_tools() {
    let world = World::start().await;
    let try_out = async |role: &str, dry_run: bool| {
        let user = world.member(&world.home, Some(role));
        let body = json!({
            "config": ai_sms(), "arguments": {"text": "Hello"}, "caller_phone_number": "+14155550101", "dry_run": dry_run,
        });
        let event = Event::post(&format!("/api/{}/tools/test", world.home.slug), &body).user(&user);
        world.send("tools-test", &event).await
    };
    try_out("member", true).await.expect(200);
    let refused = try_out("member", false).await.expect(403);
    assert!(refused["detail"].as_str().unwrap().contains("role admin"), "{refused}");
    assert_eq!(world.twilio.requests().len(), 0);
    assert_eq!(try_out("admin", false).await.expect(200)["status"], "succeeded");
}
