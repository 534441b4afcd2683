//! The running system has the template's API and Lambda settings, and other origins may use the API.

use std::{
    path::PathBuf,
    sync::{Arc, Mutex},
};

use crate::copilotkit_page;
use axum::Router;
use local::Stack;
use serde_json::{Value, json};
use tests::{Template, browser::Browser, cross_origin::Page, http_server::Server, template::Deployment};

/// A directory with the settings of its page; `None` serves a plain page.
pub(crate) type Files = Arc<Mutex<Option<(PathBuf, Value)>>>;

/// A front end on another server. Its own address is the deployment's allowed origin; at `localhost` it is a
/// different origin to browsers.
pub(crate) struct FrontEnd(Server, Files);

impl FrontEnd {
    pub(crate) async fn serve() -> Self {
        let files = Files::default();
        let routes = Router::new().fallback(copilotkit_page::file).with_state(files.clone());
        Self(Server::start(routes).await, files)
    }

    /// Serves a directory with these settings instead of the plain page.
    pub(crate) fn show(&self, directory: PathBuf, settings: Value) {
        *self.1.lock().unwrap() = Some((directory, settings));
    }

    pub(crate) fn origin(&self) -> String {
        self.0.url.clone()
    }

    fn other_origin(&self) -> String {
        self.0.url.replace("127.0.0.1", "localhost")
    }
}

pub(crate) async fn holds(stack: &Stack, front_end: &FrontEnd) {
    let http = shared::clients::http_client().unwrap();
    let origin = front_end.origin();
    let sizes = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../infra/concurrency/1000")).unwrap();
    let sizes = sizes.lines().filter_map(|line| line.split_once('='));
    let parameters: Vec<(&str, &str)> = sizes.chain([("DashboardOrigins", origin.as_str())]).collect();
    let template = Template::read();
    is_as_deployed(stack, &http, &template.deployed(&parameters), &template).await;
    a_page_uses_the_api(stack, &http, front_end).await;
    if let Some(browser) = Browser::start().await {
        a_browser_agrees(stack, &browser, front_end).await;
    }
}

/// Compares the local AWS's API, functions and queue triggers with the deployment.
async fn is_as_deployed(stack: &Stack, http: &reqwest::Client, wanted: &Deployment<'_>, template: &Template) {
    let name = &stack.description.stack_name;
    let apis = aws(stack, http, "apigateway", "/v2/apis").await;
    let cors = &apis["items"][0]["corsConfiguration"];
    let of_template = &wanted.properties("Api").unwrap()["CorsConfiguration"];
    for (ours, theirs) in [
        ("AllowOrigins", "allowOrigins"),
        ("AllowMethods", "allowMethods"),
        ("AllowHeaders", "allowHeaders"),
        ("ExposeHeaders", "exposeHeaders"),
        ("MaxAge", "maxAge"),
    ] {
        assert_eq!(cors[theirs], of_template[ours], "{cors}");
    }
    let rest = aws(stack, http, "apigateway", "/restapis").await;
    let id = rest["item"][0]["id"].as_str().unwrap();
    let stages = aws(stack, http, "apigateway", &format!("/restapis/{id}/stages")).await;
    let mut variables = wanted.properties("StreamStage").unwrap()["Variables"].clone();
    let endpoint = apis["items"][0]["apiEndpoint"].as_str().unwrap();
    variables["own_origin"] = format!("{},{endpoint}", stack.description.api_url).into();
    assert_eq!(stages["item"][0]["variables"], variables);
    let mut reserved = 0;
    for (id, declared) in template.resources("AWS::Serverless::Function") {
        let function = declared["FunctionName"]["Fn::Sub"].as_str().unwrap().replace("${AWS::StackName}", name);
        let there = aws(stack, http, "lambda", &format!("/2019-09-30/functions/{function}/concurrency")).await;
        let properties = wanted.properties(id).unwrap();
        let number =
            properties.get("ReservedConcurrentExecutions").map(|number| number.as_str().unwrap().parse().unwrap());
        assert_eq!(there["ReservedConcurrentExecutions"].as_u64(), number, "{function}");
        reserved += u64::from(number.is_some());
        let there = aws(stack, http, "lambda", &format!("/2024-08-31/functions/{function}/recursion-config")).await;
        let loops = properties.get("RecursiveLoop").and_then(Value::as_str).unwrap_or("Terminate");
        assert_eq!(there["RecursiveLoop"], loops, "{function}");
    }
    assert_eq!(reserved, 4);
    let triggers = aws(stack, http, "lambda", "/2015-03-31/event-source-mappings/").await;
    let queues = template.resources("AWS::SQS::Queue");
    for (id, trigger) in template.resources("AWS::Lambda::EventSourceMapping") {
        let maximum = wanted.properties(id).unwrap()["ScalingConfig"]["MaximumConcurrency"].clone();
        let maximum = maximum.as_u64().unwrap_or_else(|| maximum.as_str().unwrap().parse().unwrap());
        let queue = trigger["EventSourceArn"]["Fn::GetAtt"].as_str().unwrap().strip_suffix(".Arn").unwrap();
        let queue = queues[queue]["QueueName"]["Fn::Sub"].as_str().unwrap().replace("${AWS::StackName}", name);
        let mut there = triggers["EventSourceMappings"].as_array().unwrap().iter();
        let there = there.find(|there| there["EventSourceArn"].as_str().unwrap().ends_with(&format!(":{queue}")));
        assert_eq!(there.unwrap()["ScalingConfig"]["MaximumConcurrency"], maximum, "{queue}");
    }
}

/// A response of the local AWS's own API.
async fn aws(stack: &Stack, http: &reqwest::Client, service: &str, path: &str) -> Value {
    let about = &stack.description;
    let scope = format!("test/20260101/{}/{service}/aws4_request", about.region);
    let signature = format!("AWS4-HMAC-SHA256 Credential={scope}, SignedHeaders=host, Signature=0");
    let request = http.get(format!("{}{path}", about.endpoint_url)).header("authorization", signature);
    let answer = request.send().await.unwrap();
    assert_eq!(answer.status(), 200, "{path}");
    answer.json().await.unwrap()
}

/// The judgement of the CORS standard, on the deployed functions.
async fn a_page_uses_the_api(stack: &Stack, http: &reqwest::Client, front_end: &FrontEnd) {
    let about = &stack.description;
    let bearer = format!("Bearer {}", about.token);
    let headers = [("authorization", bearer.as_str()), ("content-type", "application/json")];
    let (own, other) = (front_end.origin(), front_end.other_origin());
    let tools = format!("{}/api/{}/tools", about.api_url, about.slug);
    let page = Page { http, origin: &own };
    let seen = page.fetch("GET", &tools, &headers, None).await.unwrap();
    assert!(seen.preflighted && seen.body["items"].is_array(), "{seen:?}");
    let seen = page.fetch("POST", &tools, &headers, Some(&json!({}))).await.unwrap();
    assert_eq!((seen.status, &seen.body["code"]), (422, &json!("invalid")), "a refusal is read as well");
    // The MCP server sets a CORS header of its own, which must not be duplicated.
    let mcp = format!("{}/api/{}/mcp", about.api_url, about.slug);
    let ping = json!({"jsonrpc": "2.0", "id": 1, "method": "ping"});
    let of_mcp = [&headers[..], &[("accept", "application/json, text/event-stream")]].concat();
    assert_eq!(page.fetch("POST", &mcp, &of_mcp, Some(&ping)).await.unwrap().status, 200);
    let nobody = page.fetch("POST", &mcp, &of_mcp[1..], Some(&ping)).await.unwrap();
    assert!(nobody.status == 401 && nobody.headers.contains_key("www-authenticate"), "{nobody:?}");
    // The streamed chat allows the same origins.
    let info = format!("{}/copilotkit/info", about.stream_url.as_deref().unwrap());
    let seen = page.fetch("GET", &info, &headers, None).await.unwrap();
    assert!(seen.preflighted && seen.body["agents"].is_object(), "{seen:?}");
    let nobody = page.fetch("GET", &info, &headers[1..], None).await.unwrap();
    assert!(nobody.status == 401 && nobody.headers.contains_key("x-amzn-remapped-www-authenticate"), "{nobody:?}");
    let metadata = format!("{}/.well-known/oauth-protected-resource/api/{}/mcp", about.api_url, about.slug);
    assert_eq!(page.fetch("GET", &metadata, &[], None).await.unwrap().status, 200);
    for origin in [other.as_str(), "null", "https://evil.example"] {
        let page = Page { http, origin };
        for (method, address) in [("GET", &tools), ("POST", &mcp), ("GET", &info)] {
            let refused = page.fetch(method, address, &headers, Some(&ping)).await.unwrap_err();
            assert!(refused.starts_with("preflight"), "{origin}: {refused}");
        }
    }
}

/// Repeats the requests in Chromium.
async fn a_browser_agrees(stack: &Stack, browser: &Browser, front_end: &FrontEnd) {
    let about = &stack.description;
    let ask = "
        const [address, method, token] = arguments;
        const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json', 'if-match': '*' };
        return fetch(address, { method, headers, body: method === 'GET' ? undefined : '{}' }).then(
          async (answer) => ({ status: answer.status, body: await answer.json() }),
          (error) => ({ failed: String(error) }),
        );";
    let tools = format!("{}/api/{}/tools", about.api_url, about.slug);
    let unknown = format!("{tools}/00000000-0000-7000-8000-000000000000");
    browser.open(&front_end.origin()).await;
    let seen = browser.run(ask, &json!([tools, "GET", about.token])).await;
    assert!(seen["status"] == 200 && seen["body"]["items"].is_array(), "{seen}");
    let seen = browser.run(ask, &json!([unknown, "DELETE", about.token])).await;
    assert_eq!((&seen["status"], &seen["body"]["code"]), (&json!(404), &json!("not_found")), "{seen}");
    browser.open(&front_end.other_origin()).await;
    let refused = browser.run(ask, &json!([tools, "GET", about.token])).await;
    assert_eq!(refused, json!({"failed": "TypeError: Failed to fetch"}));
}
