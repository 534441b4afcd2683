//! A person signs in by authorization code and PKCE, as in the console, and receives a streamed answer.

use std::time::Duration;

use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use local::{Stack, standins::llm::Turn};
use reqwest::{Client, Method, StatusCode, Url};
use ring::digest;
use serde_json::{Value, json};
use shared::{Deadline, clients::Jwks, http::TokenVerifier};

const VERIFIER: &str = "a-verifier-of-at-least-forty-three-characters";

/// Signs the demo user in with only the console's public settings; returns the id token.
pub(crate) async fn sign_in(http: &Client, stack: &Stack) -> String {
    let about = &stack.description;
    let settings: Value = get(http, &format!("{}console/settings.json", about.console_url)).await;
    let configuration: Value = get(http, settings["openid_configuration"].as_str().unwrap()).await;
    assert_eq!(configuration["issuer"], settings["issuer"]);
    let at = |name: &str| configuration[name].as_str().unwrap().to_owned();

    // The page requests a code with a PKCE challenge.
    let challenge = BASE64_URL_SAFE_NO_PAD.encode(digest::digest(&digest::SHA256, VERIFIER.as_bytes()));
    let client = settings["client_id"].as_str().unwrap();
    let asked = [
        ("response_type", "code"),
        ("client_id", client),
        ("redirect_uri", &about.console_url),
        ("scope", settings["scopes"].as_str().unwrap()),
        ("state", "state-1"),
        ("nonce", "nonce-1"),
        ("code_challenge", &challenge),
        ("code_challenge_method", "S256"),
    ];
    let authorize = Url::parse_with_params(&at("authorization_endpoint"), asked).unwrap();
    let page = http.get(authorize.clone()).send().await.unwrap();
    assert_eq!(page.status(), StatusCode::OK);

    // The person first submits a wrong password.
    let (target, hidden) = form(&page.text().await.unwrap());
    let typed = async |password: &str| {
        let mut fields = hidden.clone();
        fields.push(("username".to_owned(), about.console_user.email.clone()));
        fields.push(("password".to_owned(), password.to_owned()));
        http.post(authorize.join(&target).unwrap()).form(&fields).send().await.unwrap()
    };
    assert_eq!(typed("wrong").await.status(), StatusCode::OK, "the form again");
    let back = typed(&about.console_user.password).await;
    assert_eq!(back.status(), StatusCode::FOUND);
    let back = Url::parse(back.headers()["location"].to_str().unwrap()).unwrap();
    assert!(back.as_str().starts_with(&about.console_url), "{back}");
    let given = |name: &str| back.query_pairs().find(|(key, _value)| key == name).unwrap().1.into_owned();
    assert_eq!(given("state"), "state-1");

    // The page exchanges the code for tokens, across origins; the code without the verifier is refused.
    let code = given("code");
    let exchange = async |verifier: &str| {
        let fields = [
            ("grant_type", "authorization_code"),
            ("client_id", client),
            ("code", &code),
            ("redirect_uri", &about.console_url),
            ("code_verifier", verifier),
        ];
        let origin = about.api_url.clone();
        http.post(at("token_endpoint")).header("origin", origin).form(&fields).send().await.unwrap()
    };
    assert_eq!(exchange("another").await.status(), StatusCode::BAD_REQUEST);
    let answer = exchange(VERIFIER).await;
    assert_eq!(
        (answer.status(), &answer.headers()["access-control-allow-origin"]),
        (StatusCode::OK, &"*".parse().unwrap())
    );
    let tokens: Value = answer.json().await.unwrap();
    assert_eq!(exchange(VERIFIER).await.status(), StatusCode::BAD_REQUEST, "a code works once");

    let token = tokens["id_token"].as_str().unwrap().to_owned();
    let keys = Jwks::new(&at("issuer"), Some(at("jwks_uri"))).unwrap();
    let verifier = TokenVerifier::new(at("issuer"), vec![client.to_owned()], keys);
    verifier.verify(&token, &[], Deadline::after(Duration::from_secs(5))).await.unwrap();
    let claims = BASE64_URL_SAFE_NO_PAD.decode(token.split('.').nth(1).unwrap()).unwrap();
    let claims: Value = serde_json::from_slice(&claims).unwrap();
    assert_eq!((&claims["email"], &claims["nonce"]), (&json!(about.console_user.email), &json!("nonce-1")));
    token
}

/// The streaming function, through its REST API's address.
pub(crate) async fn stream(http: &Client, stack: &Stack, token: &str) {
    let url = format!("{}/agent/stream", stack.description.stream_url.as_deref().unwrap());
    let preflight = |origin: &str| {
        let preflight = http.request(Method::OPTIONS, &url).header("origin", origin);
        let preflight = preflight.header("access-control-request-method", "POST");
        preflight.header("access-control-request-headers", "authorization,content-type,x-organization").send()
    };
    let own = stack.description.api_url.trim_end_matches('/').to_owned();
    let allowed = preflight(&own).await.unwrap();
    assert_eq!(allowed.headers()["access-control-allow-origin"], own.as_str());
    let foreign = preflight("https://app.example").await.unwrap();
    assert!(!foreign.headers().contains_key("access-control-allow-origin"));
    let ask = http.post(&url).json(&json!({"message": "Hello!"}));
    assert_eq!(ask.try_clone().unwrap().send().await.unwrap().status(), StatusCode::UNAUTHORIZED);

    stack.llm.script([Turn::text(r#"{"tool": "none", "reason": "a greeting"}"#), Turn::text("Hello! How can I help?")]);
    let answer = ask.bearer_auth(token).send().await.unwrap();
    assert_eq!(
        (answer.status(), &answer.headers()["content-type"]),
        (StatusCode::OK, &"text/event-stream".parse().unwrap())
    );
    let text = answer.text().await.unwrap();
    let events = text.lines().filter_map(|line| line.strip_prefix("data: "));
    let events: Vec<Value> = events.map(|event| serde_json::from_str(event).unwrap()).collect();
    let said = |kind: &str| events.iter().filter(|event| event["type"] == kind).count();
    assert_eq!((said("message"), said("done"), said("error")), (1, 1, 0), "{text}");
    assert_eq!(events.last().unwrap()["type"], "done");
}

async fn get(http: &Client, url: &str) -> Value {
    let answer = http.get(url).send().await.unwrap();
    assert_eq!(answer.status(), StatusCode::OK, "{url}");
    answer.json().await.unwrap()
}

/// The target of a page's form, and its hidden fields.
fn form(page: &str) -> (String, Vec<(String, String)>) {
    let attribute = |tag: &str, name: &str| {
        let value = tag.split(&format!(" {name}=\"")).nth(1)?.split('"').next()?;
        Some(value.replace("&amp;", "&"))
    };
    let form = page.split("<form").nth(1).unwrap();
    let inputs =
        form.split("<input").skip(1).filter(|input| attribute(input, "type").is_some_and(|kind| kind == "hidden"));
    let hidden = inputs.map(|input| (attribute(input, "name").unwrap(), attribute(input, "value").unwrap())).collect();
    (attribute(form, "action").unwrap(), hidden)
}
