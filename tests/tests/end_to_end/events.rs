//! Every function of the running stack gets its event of `events/`, as `cargo lambda invoke` would send it.

use local::{
    Stack,
    standins::{llm::Turn, twilio},
};
use reqwest::Url;
use serde_json::Value;

/// What is gone cannot be taken away again.
const ONCE: [&str; 2] = ["delete", "detach"];

/// In one order, and again in the other.
pub(crate) async fn are_answered(stack: &Stack, http: &reqwest::Client) {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../events");
    let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut functions: Vec<String> = files.map(|file| file.trim_end_matches(".json").to_owned()).collect();
    // What one takes away or shows, another has brought.
    functions.sort_by_key(|function| (!["attach", "execute"].contains(&function.as_str()), function.clone()));
    for function in &functions {
        let status = send(stack, http, function).await;
        assert!((200..300).contains(&status), "{function}: {status}");
    }
    for function in functions.iter().rev() {
        let status = send(stack, http, function).await;
        let gone = status == 404 && ONCE.contains(&function.as_str());
        assert!(gone || (200..300).contains(&status), "{function} again: {status}");
    }
    cancel_runs(stack, http).await;
}

/// Runs that the model's stand-in refused are tried again later, and would take what others are to be answered.
async fn cancel_runs(stack: &Stack, http: &reqwest::Client) {
    let about = &stack.description;
    let runs = format!("{}/api/{}/runs", about.api_url, about.slug);
    let listed = http.get(&runs).bearer_auth(&about.token).send().await.unwrap();
    let listed: Value = listed.json().await.unwrap();
    for run in listed["items"].as_array().unwrap() {
        if ["queued", "running"].contains(&run["status"].as_str().unwrap()) {
            let cancel = format!("{runs}/{}/cancel", run["id"].as_str().unwrap());
            let cancelled = http.post(cancel).bearer_auth(&about.token).send().await.unwrap().status().as_u16();
            // It may have come to its end meanwhile.
            assert!([200, 202, 409].contains(&cancelled), "{cancelled}");
        }
    }
}

/// The status that the function answers; 200 where its caller takes none, and the function had nothing to complain of.
async fn send(stack: &Stack, http: &reqwest::Client, function: &str) -> u64 {
    let about = &stack.description;
    let path = format!("{}/../events/{function}.json", env!("CARGO_MANIFEST_DIR"));
    let mut event: Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
    match function {
        // No authorizer has checked these two.
        "mcp" | "stream" => event["headers"]["authorization"] = format!("Bearer {}", about.token).into(),
        // It is signed for the API on its usual port, and this one has another.
        "call-start" => {
            let url = format!("{}{}", about.api_url, event["rawPath"].as_str().unwrap());
            let form = Url::parse(&format!("http://form/?{}", event["body"].as_str().unwrap())).unwrap();
            let form: Vec<(String, String)> = form.query_pairs().into_owned().collect();
            let signature = twilio::signature(&url, &form, &about.twilio_auth_token);
            event["headers"]["x-twilio-signature"] = signature.into();
        }
        _ => {}
    }
    if ["chat", "stream"].contains(&function) {
        cancel_runs(stack, http).await;
        stack.llm.script([Turn::text(r#"{"tool": "none"}"#), Turn::text("Three.")]);
    }
    let url = format!("{}/2015-03-31/functions/{}-{function}/invocations", about.endpoint_url, about.stack_name);
    // The local AWS does not check what its root key `test` signs.
    let scope = format!("Credential=test/20261120/{}/lambda/aws4_request", about.region);
    let request = http
        .post(url)
        .header("x-amz-date", "20261120T000000Z")
        .header("authorization", format!("AWS4-HMAC-SHA256 {scope}, SignedHeaders=host, Signature=0"))
        .body(event.to_string());
    let text = request.send().await.unwrap().text().await.unwrap();
    let answer: Value = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{function}: {error}: {text}"));
    assert!(answer.get("errorMessage").is_none(), "{function}: {text}");
    assert!(
        answer.get("batchItemFailures").is_none_or(|failed| failed == &serde_json::json!([])),
        "{function}: {text}"
    );
    match &answer {
        // The stream's head stands before what it streams, all in one text.
        Value::String(streamed) => u64::from(streamed.starts_with("{\"statusCode\":200")) * 200,
        _ => answer.get("statusCode").map_or(200, |status| status.as_u64().unwrap()),
    }
}
