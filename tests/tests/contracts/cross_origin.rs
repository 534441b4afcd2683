//! Cross-origin access to the API.
//!
//! The local HTTP API applies the template's `CorsConfiguration` as API Gateway does; the answers are judged as a
//! browser judges them.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test says what is wrong and stops")]

use std::{collections::BTreeMap, net::TcpListener, sync::Arc};

use axum::{
    Router,
    extract::Request,
    http::{HeaderMap, StatusCode},
    response::{IntoResponse, Response},
    routing::any,
};
use local::{cors::Cors, http_api::HttpApi};
use reqwest::{Client, Method};
use serde_json::{Value, json};
use tests::{
    Event, Template, World,
    clients::anywhere,
    cross_origin::{Page, Seen},
    http_server::Server,
};

const APP: &str = "https://app.example";
const TOKEN: [(&str, &str); 2] = [("authorization", "Bearer t"), ("content-type", "application/json")];

/// The deployed API for some origins, with the server behind it.
struct Api {
    http: Client,
    url: String,
    behind: Server,
    _api: HttpApi,
}

impl Api {
    async fn deployed(parameters: &[(&str, &str)]) -> Self {
        let behind = Server::start(Router::new().fallback(any(answer))).await;
        let cors = configuration(parameters).map(|cors| Cors::of_api(&cors).unwrap());
        let listener = TcpListener::bind(anywhere()).unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let http = shared::clients::http_client().unwrap();
        let api = HttpApi::open(listener, http.clone(), &behind.url, "abc123", cors).unwrap();
        Self { http, url, behind, _api: api }
    }

    async fn fetch(&self, origin: &str, method: &str, path: &str, headers: &[(&str, &str)]) -> Result<Seen, String> {
        let body = (method != "GET").then(|| json!({}));
        let page = Page { http: &self.http, origin };
        page.fetch(method, &format!("{}{path}", self.url), headers, body.as_ref()).await
    }
}

/// The `corsConfiguration` of the deployed API.
fn configuration(parameters: &[(&str, &str)]) -> Option<Value> {
    let api = Template::read().deployed(parameters).properties("Api").unwrap();
    let configuration = api.get("CorsConfiguration")?.as_object().unwrap().iter();
    let small = configuration.map(|(name, value)| {
        let (first, rest) = name.split_at(1);
        (format!("{}{rest}", first.to_ascii_lowercase()), value.clone())
    });
    Some(small.collect())
}

/// The HTTP API behind it: its authorizer, and a function that sets CORS headers of its own beside those of the
/// local AWS.
async fn answer(request: Request) -> Response {
    if !request.headers().contains_key("authorization") {
        return (StatusCode::UNAUTHORIZED, axum::Json(json!({"message": "Unauthorized"}))).into_response();
    }
    let mut headers = HeaderMap::new();
    for (name, value) in [
        ("access-control-allow-origin", "*"),
        ("access-control-allow-origin", APP),
        ("access-control-expose-headers", "x-secret"),
        ("etag", "\"1\""),
        ("retry-after", "30"),
        ("apigw-requestid", "abc="),
        ("x-secret", "yes"),
    ] {
        headers.append(name, value.parse().unwrap());
    }
    (StatusCode::CONFLICT, headers, axum::Json(json!({"code": "conflict"}))).into_response()
}

#[tokio::test]
async fn a_page_that_may_ask_reads_answers_and_errors() {
    let api = Api::deployed(&[("DashboardOrigins", "https://app.example,http://localhost:5173")]).await;
    for origin in [APP, "http://localhost:5173"] {
        for (method, more) in [
            ("GET", &[("if-none-match", "\"1\"")][..]),
            ("POST", &[("idempotency-key", "a"), ("x-organization", "o")]),
            ("PUT", &[("if-match", "\"1\"")]),
            ("PATCH", &[]),
            ("DELETE", &[]),
        ] {
            let headers = [&TOKEN[..], more].concat();
            let seen = api.fetch(origin, method, "/api/acme/tools", &headers).await.unwrap();
            assert_eq!((seen.status, &seen.body, seen.preflighted), (409, &json!({"code": "conflict"}), true));
            let shown = ["etag", "retry-after", "apigw-requestid"].map(|name| seen.headers.contains_key(name));
            assert_eq!((shown, seen.headers.get("x-secret")), ([true; 3], None), "{method}");
        }
    }
    // Preflights reach no function.
    assert!(api.behind.seen().iter().all(|request| request.method != "OPTIONS"));
}

#[tokio::test]
async fn other_pages_are_refused_before_they_send_anything() {
    let api = Api::deployed(&[("DashboardOrigins", APP)]).await;
    for origin in [
        "https://evil.example",
        "http://app.example",
        "https://app.example:8443",
        "https://app.example.evil.example",
        "https://x.app.example",
        "null",
    ] {
        let refused = api.fetch(origin, "GET", "/api/acme/tools", &TOKEN).await.unwrap_err();
        assert!(refused.starts_with("preflight: no Access-Control-Allow-Origin"), "{origin}: {refused}");
        // A request without preflight is sent, but its answer cannot be read.
        let unread = api.fetch(origin, "GET", "/api/acme/tools", &[]).await.unwrap_err();
        assert!(unread.contains("no Access-Control-Allow-Origin"), "{origin}: {unread}");
    }
    assert!(api.behind.seen().iter().all(|request| !request.headers.contains_key("authorization")));
    // Unknown headers and headers of other clients may not be sent.
    let before = api.behind.seen().len();
    for headers in [[("x-unknown", "1")], [("x-vapi-secret", "1")]] {
        let refused = api.fetch(APP, "GET", "/api/acme/tools", &headers).await.unwrap_err();
        assert!(refused.starts_with("preflight"), "{refused}");
    }
    let refused = api.fetch(APP, "PURGE", "/api/acme/tools", &TOKEN).await.unwrap_err();
    assert!(refused.starts_with("preflight"), "{refused}");
    assert_eq!(api.behind.seen().len(), before);
}

/// AWS promises CORS headers only for functions' answers.
#[tokio::test]
async fn a_refusal_by_the_gateway_is_unreadable_for_other_origins() {
    let api = Api::deployed(&[("DashboardOrigins", APP)]).await;
    let refused = api.fetch(APP, "GET", "/api/acme/tools", &[]).await.unwrap_err();
    assert!(refused.starts_with("401"), "{refused}");
}

#[tokio::test]
async fn a_star_lets_every_page_in_and_none_without_its_own_token() {
    let api = Api::deployed(&[("DashboardOrigins", "*")]).await;
    for origin in ["https://evil.example", "http://localhost:3000", "null"] {
        assert_eq!(api.fetch(origin, "PATCH", "/api/acme/tools/1", &TOKEN).await.unwrap().status, 409, "{origin}");
        assert!(api.fetch(origin, "GET", "/api/acme/tools", &[]).await.is_err());
    }
    assert_eq!(configuration(&[("DashboardOrigins", "*")]).unwrap().get("allowCredentials"), None);
}

#[tokio::test]
async fn without_origins_no_page_of_another_is_let_in() {
    let api = Api::deployed(&[]).await;
    assert_eq!(configuration(&[]), None);
    let refused = api.fetch(APP, "GET", "/api/acme/tools", &TOKEN).await.unwrap_err();
    // In this case a route of the API answers its own preflights: that of `mcp`.
    assert!(refused.starts_with("preflight"), "{refused}");
    assert_eq!(api.behind.seen()[0].method, "OPTIONS");
}

/// The gateway has one list for all routes and drops the headers of `mcp`, so the origins of `mcp` must be on that
/// list.
#[test]
fn pages_of_agents_are_let_in_by_the_gateway_too() {
    let origins = |parameters: &[(&str, &str)]| configuration(parameters).map(|cors| cors["allowOrigins"].clone());
    let agent = ("McpOrigins", "https://agent.example,https://b.example");
    assert_eq!(
        origins(&[("DashboardOrigins", APP), agent]),
        Some(json!([APP, "https://agent.example", "https://b.example"]))
    );
    assert_eq!(origins(&[("DashboardOrigins", APP)]), Some(json!([APP])));
    assert_eq!(origins(&[("DashboardOrigins", APP), ("McpOrigins", "*")]), Some(json!(["*"])));
    assert_eq!(origins(&[agent]), None, "mcp speaks for itself");

    let template = Template::read();
    let of_mcp = |parameters: &[(&str, &str)]| {
        let function = template.deployed(parameters).properties("McpFunction").unwrap();
        function["Environment"]["Variables"]["MCP_ORIGINS"].as_str().unwrap().to_owned()
    };
    assert_eq!(
        of_mcp(&[("DashboardOrigins", APP), agent]),
        "https://agent.example,https://b.example,https://app.example"
    );
    assert_eq!(of_mcp(&[]), ",");
    for (parameters, own_route) in [(&[][..], true), (&[agent], true), (&[("DashboardOrigins", APP)], false)] {
        let deployed = template.deployed(parameters);
        assert_eq!(deployed.properties("McpPreflightRoute").is_some(), own_route, "{parameters:?}");
        let settings = deployed.properties("ApiStage").unwrap()["RouteSettings"].clone();
        assert_eq!(settings.get("OPTIONS /api/{slug}/mcp").is_some(), own_route, "settings name routes that are there");
    }
}

/// The streamed chat of a deployment: its REST API answers preflights from its stage variables, the function sets the
/// other headers.
struct Chat {
    http: Client,
    server: Server,
    bearer: String,
}

impl Chat {
    async fn deployed(parameters: &[(&str, &str)]) -> Self {
        let variables = stage_variables(parameters);
        let cors = Cors::of_stage(&variables).unwrap();
        let world = Arc::new(World::start().await);
        let bearer = format!("Bearer {}", world.issuer.token(&world.home.user_id));
        let receive = move |request: Request| {
            let (world, variables, cors) = (Arc::clone(&world), variables.clone(), cors.clone());
            async move {
                if request.method() == Method::OPTIONS {
                    return cors.preflight_of_stage(request.headers());
                }
                let mut event = Event::new(request.method().as_str(), request.uri().path());
                for (name, value) in request.headers() {
                    event = event.header(name.as_str(), value.to_str().unwrap());
                }
                event.stage = variables;
                let answer = world.send("stream", &event.text("{}")).await;
                let headers =
                    answer.headers.iter().map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap()));
                let headers: HeaderMap = headers.collect();
                (StatusCode::from_u16(answer.status).unwrap(), headers, answer.body.to_string()).into_response()
            }
        };
        let server = Server::start(Router::new().fallback(any(receive))).await;
        Self { http: shared::clients::http_client().unwrap(), server, bearer }
    }

    async fn fetch(&self, origin: &str, authorization: &str) -> Result<Seen, String> {
        let page = Page { http: &self.http, origin };
        let headers =
            [("authorization", authorization), ("content-type", "application/json"), ("x-organization", "home")];
        page.fetch("GET", &format!("{}/copilotkit/info", self.server.url), &headers, None).await
    }
}

fn stage_variables(parameters: &[(&str, &str)]) -> BTreeMap<String, String> {
    let stage = Template::read().deployed(parameters).properties("StreamStage").unwrap();
    let variables = stage["Variables"].as_object().unwrap().iter();
    // API Gateway's address of the HTTP API.
    let text = |value: &Value| value.as_str().unwrap().replace("Api.ApiEndpoint", "https://api.example");
    variables.map(|(name, value)| (name.clone(), text(value))).collect()
}

#[tokio::test]
async fn the_streamed_chat_lets_in_the_console_and_the_dashboards() {
    const CHAT: &str = "https://chat.example";
    const OWN: &str = "https://api.example";
    const PUBLIC: &str = "https://calls.acme.example";
    const ELSE: &str = "https://evil.example";
    let (chat, app) = (("StreamOrigins", CHAT), ("DashboardOrigins", APP));
    for (parameters, may) in [
        (&[][..], &[OWN][..]),
        (&[chat], &[OWN, CHAT]),
        (&[chat, app], &[OWN, CHAT, APP]),
        (&[app], &[OWN, APP]),
        (&[("PublicUrl", PUBLIC)], &[OWN, PUBLIC]),
        (&[chat, ("DashboardOrigins", "*")], &[OWN, PUBLIC, CHAT, APP, ELSE]),
        (&[("StreamOrigins", "*")], &[OWN, PUBLIC, CHAT, APP, ELSE]),
    ] {
        let deployed = Chat::deployed(parameters).await;
        for origin in [OWN, PUBLIC, CHAT, APP, ELSE] {
            let seen = deployed.fetch(origin, &deployed.bearer).await;
            if may.contains(&origin) {
                // The user is not a member of this organization.
                assert_eq!(seen.unwrap().status, 404, "{origin} {parameters:?}");
                let refused = deployed.fetch(origin, "Bearer x").await.unwrap();
                assert_eq!((refused.status, &refused.body["code"]), (401, &json!("unauthenticated")), "{origin}");
            } else {
                let refused = seen.unwrap_err();
                assert!(
                    refused.starts_with("preflight: no Access-Control-Allow-Origin"),
                    "{origin} {parameters:?}: {refused}"
                );
            }
        }
        let asked = deployed.server.seen();
        assert!(
            asked
                .iter()
                .all(|request| request.method == "OPTIONS" || may.iter().any(|may| request.headers["origin"] == *may))
        );
    }
}

#[test]
fn no_cookie_speaks_for_a_page_and_the_token_may_be_sent() {
    let open = [("DashboardOrigins", "*")];
    let api = Template::read().deployed(&open).properties("Api").unwrap().to_string();
    let stage = Template::read().0["Mappings"]["StreamApi"].to_string();
    for says in [api.as_str(), &stage] {
        assert!(!says.to_ascii_lowercase().contains("credentials"), "{says}");
    }
    assert!(
        api.contains("\"authorization\"") && stage_variables(&open)["headers"].contains("authorization"),
        "* would leave it out"
    );
}
