//! Sends each function of the running stack its event of `events/`, as `cargo lambda invoke` would.

use local::{
    Stack,
    standins::{llm::Turn, twilio},
};
use reqwest::Url;
use serde_json::{Value, json};

/// These requests succeed only once.
const ONCE: [&str; 2] = ["delete", "detach"];

/// Sends all events in one order, and again in reverse.
pub(crate) async fn are_answered(stack: &Stack, http: &reqwest::Client) {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../events");
    let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut functions: Vec<String> = files.map(|file| file.trim_end_matches(".json").to_owned()).collect();
    // Some events need the results of others.
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
    end_calls(stack, http).await;
}

/// Reports the end of calls: a page erases their caller's number, which is not complete during a call.
async fn end_calls(stack: &Stack, http: &reqwest::Client) {
    let about = &stack.description;
    let calls = format!("{}/api/{}/calls?status=ringing", about.api_url, about.slug);
    let listed: Value = http.get(calls).bearer_auth(&about.token).send().await.unwrap().json().await.unwrap();
    for call in listed["items"].as_array().unwrap() {
        let ended = json!({"message": {"type": "end-of-call-report", "call": {"id": call["id"]}}});
        let told = http.post(format!("{}/api/vapi/events", about.api_url)).bearer_auth(&about.vapi_webhook_bearer);
        assert!(told.json(&ended).send().await.unwrap().status().is_success());
    }
}

/// Cancels runs: retried runs would use up answers of the model's stand-in that are meant for others.
async fn cancel_runs(stack: &Stack, http: &reqwest::Client) {
    let about = &stack.description;
    let runs = format!("{}/api/{}/runs", about.api_url, about.slug);
    let listed = http.get(&runs).bearer_auth(&about.token).send().await.unwrap();
    let listed: Value = listed.json().await.unwrap();
    for run in listed["items"].as_array().unwrap() {
        if ["queued", "running"].contains(&run["status"].as_str().unwrap()) {
            let cancel = format!("{runs}/{}/cancel", run["id"].as_str().unwrap());
            let cancelled = http.post(cancel).bearer_auth(&about.token).send().await.unwrap().status().as_u16();
            // The run may have ended in the meantime.
            assert!([200, 202, 409].contains(&cancelled), "{cancelled}");
        }
    }
}

/// The status of the function's answer; 200 if its answer has none and it reported no error.
async fn send(stack: &Stack, http: &reqwest::Client, function: &str) -> u64 {
    let about = &stack.description;
    let path = format!("{}/../events/{function}.json", env!("CARGO_MANIFEST_DIR"));
    let mut event: Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
    match function {
        // Without an authorizer, these functions check the token themselves.
        "mcp" | "stream" => event["headers"]["authorization"] = format!("Bearer {}", about.token).into(),
        // The event is signed for the API's default port, but this stack has another.
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
    // The local AWS does not verify signatures of its root key `test`.
    let scope = format!("Credential=test/20261120/{}/lambda/aws4_request", about.region);
    let request = http
        .post(url)
        .header("x-amz-date", "20261120T000000Z")
        .header("authorization", format!("AWS4-HMAC-SHA256 {scope}, SignedHeaders=host, Signature=0"))
        .body(event.to_string());
    let text = request.send().await.unwrap().text().await.unwrap();
    let answer: Value = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{function}: {error}: {text}"));
    assert!(answer.get("errorMessage").is_none(), "{function}: {text}");
    assert!(answer.get("batchItemFailures").is_none_or(|failed| failed == &json!([])), "{function}: {text}");
    match &answer {
        // The stream's head precedes its body, all in one text.
        Value::String(streamed) => u64::from(streamed.starts_with("{\"statusCode\":200")) * 200,
        _ => answer.get("statusCode").map_or(200, |status| status.as_u64().unwrap()),
    }
}
