//! Tests the API with a real function and with faulty ones.
//!
//! The real function (`lambda_http`) is this test program in another process; the faulty ones violate the runtime
//! API.

use std::{
    collections::BTreeMap,
    sync::Mutex,
    time::{Duration, Instant},
};

use futures_util::future::BoxFuture;
use lambda_http::{RequestExt, request::RequestContext};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use tokio::{process::Command, time::sleep};

use shared::models::Timestamp;

use super::{event::Stage, routes::Routes, *};
use crate::{
    cors::Cors,
    lambda::{Answers, Configuration},
    ports,
};

const ORIGIN: &str = "https://app.example";

/// The function, if this process was started as one; otherwise does nothing.
#[tokio::test]
async fn the_function_itself() {
    if std::env::var_os("AWS_LAMBDA_RUNTIME_API").is_some() {
        lambda_http::run_with_streaming_response(lambda_http::service_fn(handle)).await.unwrap();
    }
}

async fn handle(request: lambda_http::Request) -> std::result::Result<Response, lambda_http::Error> {
    let query = request.query_string_parameters();
    let number = |name| query.first(name).and_then(|number| number.parse::<u64>().ok()).unwrap_or_default();
    let json = |value: Value| axum::Json(value).into_response();
    Ok(match request.raw_http_path() {
        "/events" => events(number("count"), Duration::from_millis(number("pause")), || {}),
        "/dies" => events(3, Duration::from_millis(300), || std::process::exit(3)),
        "/sleeps" => {
            sleep(Duration::from_secs(60)).await;
            json(Value::Null)
        }
        "/fails" => return Err("it cannot".into()),
        "/process" => {
            sleep(Duration::from_millis(number("pause"))).await;
            json(json!(std::process::id()))
        }
        "/twice" => axum::response::AppendHeaders([("x-twice", "1"), ("x-twice", "2")]).into_response(),
        "/own-cors" => [("access-control-allow-origin", "https://of-the-function.example")].into_response(),
        "/ids" => {
            let Some(RequestContext::ApiGatewayV1(context)) = request.request_context_ref() else {
                panic!("no REST API's")
            };
            json(json!({"gateway": context.request_id, "lambda": request.lambda_context().request_id}))
        }
        _ => {
            let left = i64::try_from(request.lambda_context().deadline).unwrap() - Timestamp::now().as_millis();
            let body = String::from_utf8_lossy(request.body()).into_owned();
            let header = |name: &str| request.headers().get(name).map(|value| value.to_str().unwrap().to_owned());
            let said = json!({
                "method": request.method().as_str(), "path": request.raw_http_path(), "query": query.first("x"), "body": body, "left_ms": left,
                "authorization": header("authorization"), "cookie": header("cookie"), "host": header("host"),
            });
            let cookies = axum::response::AppendHeaders([("set-cookie", "a=1"), ("set-cookie", "b=2")]);
            (StatusCode::IM_A_TEAPOT, cookies, axum::Json(said)).into_response()
        }
    })
}

/// `count` events with a pause after each; `last` replaces the last pause.
fn events(count: u64, pause: Duration, last: fn()) -> Response {
    let events = stream::unfold(1, move |number| async move {
        if number > count {
            return None;
        }
        if number > 1 {
            sleep(pause).await;
        }
        if number == count {
            println!("said all {count}");
            last();
        }
        Some((Ok::<_, std::io::Error>(format!("data: {number}\n\n")), number + 1))
    });
    ([("content-type", "text/event-stream")], Body::from_stream(events)).into_response()
}

/// Starts this test program as the function.
struct OwnProgram {
    function: Arc<Function>,
    log: Log,
}

impl Launch for OwnProgram {
    fn launch(&self, runtime_api: String) -> BoxFuture<'_, std::result::Result<JoinHandle<String>, String>> {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.env_clear().args(["--exact", "streaming::tests::the_function_itself", "--nocapture"]);
        lambda::as_lambda(&mut command, &self.function.configuration, &runtime_api);
        let started = lambda::run(command, Arc::clone(&self.log)).map_err(|error| error.to_string());
        Box::pin(async move { started })
    }
}

/// A function that uses its runtime API's address as a test wants.
struct Fake(fn(String, reqwest::Client) -> BoxFuture<'static, ()>);

impl Launch for Fake {
    fn launch(&self, runtime_api: String) -> BoxFuture<'_, std::result::Result<JoinHandle<String>, String>> {
        let running = (self.0)(format!("{runtime_api}/2018-06-01/runtime"), http());
        Box::pin(async move {
            Ok(tokio::spawn(async move {
                running.await;
                "it ended".to_owned()
            }))
        })
    }
}

struct Opened {
    api: StreamingApi,
    url: String,
    lines: Arc<Mutex<Vec<String>>>,
}

impl Opened {
    fn with(function: Function, launch: impl FnOnce(Arc<Function>, Log) -> Box<dyn Launch>) -> Self {
        let lines = Arc::<Mutex<Vec<String>>>::default();
        let kept = Arc::clone(&lines);
        let log: Log = Arc::new(move |line| kept.lock().unwrap().push(line.to_owned()));
        let function = Arc::new(function);
        let listener = ports::listen(0, SERVICE).unwrap();
        let url = format!("http://{}/{STAGE}", listener.local_addr().unwrap());
        let launch = launch(Arc::clone(&function), Arc::clone(&log));
        let api = StreamingApi::serve(listener, function, launch, log).unwrap();
        Self { api, url, lines }
    }

    fn of(function: Function) -> Self {
        Self::with(function, |function, log| Box::new(OwnProgram { function, log }))
    }

    fn before(fake: fn(String, reqwest::Client) -> BoxFuture<'static, ()>) -> Self {
        Self::with(function(), |_function, _log| Box::new(Fake(fake)))
    }

    async fn get(&self, path: &str) -> reqwest::Response {
        http().get(format!("{}{path}", self.url)).send().await.unwrap()
    }

    async fn refused(&self, path: &str) {
        let answer = self.get(path).await;
        assert_eq!(answer.status(), StatusCode::BAD_GATEWAY, "{path}");
        assert_eq!(answer.text().await.unwrap(), r#"{"message":"Internal server error"}"#);
    }

    /// Waits until at least `times` lines contain `text`.
    async fn logged(&self, text: &str, times: usize) {
        for _attempt in 0..3000 {
            if self.lines.lock().unwrap().iter().filter(|line| line.contains(text)).count() >= times {
                return;
            }
            sleep(Duration::from_millis(10)).await;
        }
        panic!("{text:?} was not logged {times} times: {:?}", self.lines.lock().unwrap());
    }

    fn processes(&self) -> usize {
        self.api.lambda.processes()
    }
}

fn http() -> reqwest::Client {
    shared::clients::http_client().unwrap()
}

fn variables() -> BTreeMap<String, String> {
    let variables = [("own_origin", ORIGIN), ("methods", "GET,POST"), ("headers", "authorization")];
    variables.map(|(name, value)| (name.to_owned(), value.to_owned())).into()
}

fn configuration(time_out: Duration) -> Configuration {
    Configuration {
        name: "switchboard-stream".to_owned(),
        arn: "arn:aws:lambda:us-east-1:000000000000:function:switchboard-stream".to_owned(),
        memory: 256,
        time_out,
        answers: Answers::Streamed,
    }
}

fn function() -> Function {
    Function {
        configuration: configuration(Duration::from_secs(30)),
        cors: Cors::of_stage(&variables()).unwrap(),
        stage: Stage { api: "abc".to_owned(), variables: variables() },
        routes: Routes::to_function(&["/{one}", "/agent/{two}"], &["GET", "POST"]),
        granted: vec!["GET/*".to_owned(), "POST/*".to_owned()],
        ..Function::default()
    }
}

/// Whether the answer breaks off after at least one piece.
async fn breaks_off(mut answer: reqwest::Response) -> bool {
    assert!(answer.chunk().await.unwrap().is_some());
    loop {
        match answer.chunk().await {
            Ok(Some(_piece)) => {}
            Ok(None) => return false,
            Err(_broken) => return true,
        }
    }
}

#[tokio::test]
async fn each_piece_arrives_when_it_is_said() {
    let opened = Opened::of(function());
    let mut answer = opened.get("/events?count=4&pause=500").await;
    assert_eq!(answer.headers()["content-type"], "text/event-stream");
    let mut seen = Vec::new();
    while let Some(piece) = answer.chunk().await.unwrap() {
        seen.push((Instant::now(), String::from_utf8(piece.to_vec()).unwrap()));
    }
    let texts: Vec<&str> = seen.iter().map(|(_at, text)| text.as_str()).collect();
    assert_eq!(texts, ["data: 1\n\n", "data: 2\n\n", "data: 3\n\n", "data: 4\n\n"]);
    assert!(seen[3].0 - seen[0].0 > Duration::from_millis(600), "{seen:?}");
}

#[tokio::test]
async fn small_pieces_do_not_wait_for_one_another() {
    let opened = Opened::of(function());
    let mut fastest = Duration::MAX;
    for number in 0..300 {
        let asked = Instant::now();
        assert!(opened.get("/process").await.bytes().await.is_ok());
        // The system acknowledges the first pieces of a connection quickly.
        if number > 2 {
            fastest = fastest.min(asked.elapsed());
        }
        // Pieces that wait take 40 ms each time; a busy machine is fast at times.
        if fastest < Duration::from_millis(35) {
            return;
        }
        opened.logged("REPORT", number + 1).await;
    }
    panic!("{fastest:?}");
}

#[tokio::test]
async fn the_function_gets_the_request_and_its_head_is_the_answers() {
    let opened = Opened::of(function());
    let request = http().post(format!("{}/agent/a%20b?x=1", opened.url)).header("cookie", "c=1; d=2");
    let answer = request.bearer_auth("t").json(&json!({"a": "ä"})).send().await.unwrap();
    assert_eq!(answer.status(), StatusCode::IM_A_TEAPOT);
    let cookies: Vec<_> = answer.headers().get_all("set-cookie").iter().collect();
    assert_eq!(cookies, ["a=1", "b=2"]);
    assert!(answer.headers().contains_key("x-amzn-requestid"));
    let said: Value = answer.json().await.unwrap();
    assert_eq!((&said["method"], &said["path"]), (&json!("POST"), &json!("/agent/a%20b")));
    assert_eq!((&said["body"], &said["cookie"]), (&json!(r#"{"a":"ä"}"#), &json!("c=1; d=2")));
    assert_eq!(said["authorization"], "Bearer t");
    assert_eq!((&said["host"], &said["query"]), (&json!("abc.execute-api.us-east-1.amazonaws.com"), &json!("1")));
    let left = said["left_ms"].as_i64().unwrap();
    assert!((20_000..=30_000).contains(&left), "{left}");
}

#[tokio::test]
async fn two_at_once_have_a_process_each_and_idle_ones_are_used_again() {
    let opened = Opened::of(function());
    let process = async |pause| -> u32 { opened.get(&format!("/process?pause={pause}")).await.json().await.unwrap() };
    let (one, two) = tokio::join!(process(1_000), process(1_000));
    assert_ne!(one, two);
    opened.logged("REPORT", 2).await;
    let third = process(0).await;
    assert!(third == one || third == two, "{third} is neither {one} nor {two}");
    assert_eq!(opened.processes(), 2);
}

#[tokio::test]
async fn the_function_goes_on_when_its_client_has_left() {
    let opened = Opened::of(function());
    let mut answer = opened.get("/events?count=5&pause=60").await;
    assert!(answer.chunk().await.unwrap().is_some());
    drop(answer);
    opened.logged("said all 5", 1).await;
    opened.logged("REPORT", 1).await;
    // The client may also leave before the head.
    tokio::select! {
        answer = opened.get("/process?pause=2000") => panic!("{answer:?}"),
        () = opened.logged("START", 2) => {}
    }
    opened.logged("REPORT", 2).await;
    assert_eq!(opened.processes(), 1);
}

#[tokio::test]
async fn a_process_that_dies_breaks_the_connection_and_another_takes_its_place() {
    let opened = Opened::of(function());
    assert!(breaks_off(opened.get("/dies").await).await);
    assert_eq!(opened.get("/events?count=1").await.text().await.unwrap(), "data: 1\n\n");
    assert_eq!(opened.processes(), 1);
}

#[tokio::test]
async fn when_its_time_is_over_the_function_is_killed() {
    let opened = Opened::of(Function { configuration: configuration(Duration::from_secs(2)), ..function() });
    opened.refused("/sleeps").await;
    opened.logged("Task timed out after 2.00 seconds", 1).await;
    assert!(breaks_off(opened.get("/events?count=100&pause=100").await).await);
    opened.logged("Task timed out after 2.00 seconds", 2).await;
    assert_eq!(opened.processes(), 0);
}

#[tokio::test]
async fn a_failure_and_a_head_that_aws_may_not_take_are_a_502() {
    let opened = Opened::of(function());
    opened.refused("/fails").await;
    opened.logged("it cannot", 1).await;
    opened.refused("/twice").await;
    opened.logged("has the header x-twice more than once", 1).await;
    // The process survives.
    opened.logged("REPORT", 2).await;
    assert_eq!(opened.get("/events?count=1").await.text().await.unwrap(), "data: 1\n\n");
}

#[tokio::test]
async fn a_request_beyond_6_mb_is_refused() {
    let opened = Opened::of(function());
    // As a JSON string the second body is twice as long.
    for (byte, size) in [(b'a', LARGEST_EVENT + 1), (b'"', 4 * 1024 * 1024)] {
        let request = http().post(format!("{}/process", opened.url)).body(vec![byte; size]);
        let answer = request.send().await.unwrap();
        assert_eq!(answer.status(), StatusCode::PAYLOAD_TOO_LARGE, "{size}");
        assert_eq!(answer.text().await.unwrap(), r#"{"message":"Request Too Long"}"#);
    }
    assert_eq!(opened.processes(), 0);
}

#[tokio::test]
async fn the_api_answers_preflights_itself_and_leaves_answers_to_the_function() {
    let opened = Opened::of(function());
    let preflight = async |origin: &str| {
        let preflight = http().request(Method::OPTIONS, format!("{}/process", opened.url)).header("origin", origin);
        preflight.header("access-control-request-method", "POST").send().await.unwrap()
    };
    let allowed = preflight(ORIGIN).await;
    assert_eq!(
        (allowed.status(), &allowed.headers()["access-control-allow-methods"]),
        (StatusCode::OK, &HeaderValue::from_static("GET,POST"))
    );
    let other = preflight("https://other.example").await;
    assert!(!other.headers().contains_key("access-control-allow-origin"), "{other:?}");
    assert_eq!(opened.processes(), 0);
    let origins = async |path: &str| {
        let answer = http().get(format!("{}{path}", opened.url)).header("origin", ORIGIN).send().await.unwrap();
        answer.headers().get_all("access-control-allow-origin").iter().cloned().collect::<Vec<_>>()
    };
    assert!(origins("/process").await.is_empty(), "the function said nothing");
    assert_eq!(origins("/own-cors").await, ["https://of-the-function.example"]);
    // The API's own answer.
    assert_eq!(origins("/fails").await, ["*"]);
}

#[tokio::test]
async fn a_request_without_a_route_reaches_no_function() {
    let opened = Opened::of(function());
    let origin = opened.url.strip_suffix(&format!("/{STAGE}")).unwrap();
    for (method, url, said) in [
        (Method::GET, format!("{}/one/two/three", opened.url), "Missing Authentication Token"),
        (Method::DELETE, format!("{}/process", opened.url), "Missing Authentication Token"),
        (Method::GET, opened.url.clone(), "Forbidden"),
        (Method::GET, format!("{origin}/process"), "Forbidden"),
        (Method::GET, format!("{origin}/{STAGE}ly/process"), "Forbidden"),
    ] {
        let answer = http().request(method, &url).send().await.unwrap();
        assert_eq!(answer.status(), StatusCode::FORBIDDEN, "{url}");
        assert_eq!(answer.json::<Value>().await.unwrap(), json!({"message": said}), "{url}");
    }
    assert_eq!(opened.processes(), 0);
}

#[tokio::test]
async fn without_a_permission_the_api_cannot_invoke_the_function() {
    let opened = Opened::of(Function { granted: vec!["GET/other/*".to_owned()], ..function() });
    let answer = opened.get("/process").await;
    assert_eq!(answer.status(), StatusCode::INTERNAL_SERVER_ERROR);
    assert_eq!(opened.processes(), 0);
}

#[tokio::test]
async fn the_requests_id_is_the_gateways_and_not_lambdas() {
    let opened = Opened::of(function());
    let answer = opened.get("/ids").await;
    let of_gateway = answer.headers()["x-amzn-requestid"].to_str().unwrap().to_owned();
    let said: Value = answer.json().await.unwrap();
    assert_eq!(said["gateway"], of_gateway);
    assert_ne!(said["lambda"], of_gateway);
}

/// Asks for an event; returns its request id.
async fn next(http: &reqwest::Client, api: &str) -> String {
    let answer = http.get(format!("{api}/invocation/next")).send().await.unwrap();
    assert_eq!(answer.status(), StatusCode::OK);
    answer.headers()["lambda-runtime-aws-request-id"].to_str().unwrap().to_owned()
}

#[tokio::test]
async fn a_function_that_does_not_stream_is_a_502() {
    let opened = Opened::before(|api, http| {
        Box::pin(async move {
            let id = next(&http, &api).await;
            let answer = http.post(format!("{api}/invocation/{id}/response")).json(&json!({"statusCode": 200}));
            assert_eq!(answer.send().await.unwrap().status(), StatusCode::ACCEPTED);
            next(&http, &api).await;
        })
    });
    opened.refused("/any").await;
    opened.logged("does not stream", 1).await;
}

#[tokio::test]
async fn an_answer_to_another_request_is_not_taken() {
    let opened = Opened::before(|api, http| {
        Box::pin(async move {
            let id = next(&http, &api).await;
            let answer = async |id: &str| {
                let answer = http.post(format!("{api}/invocation/{id}/response"));
                let answer = answer.header("lambda-runtime-function-response-mode", "streaming");
                let answer = answer.header("content-type", "application/vnd.awslambda.http-integration-response");
                answer.body("{}\0\0\0\0\0\0\0\0whole").send().await.unwrap().status()
            };
            assert_eq!(answer("another").await, StatusCode::BAD_REQUEST);
            assert_eq!(answer(&id).await, StatusCode::ACCEPTED);
            assert_eq!(answer(&id).await, StatusCode::BAD_REQUEST, "answered already");
            next(&http, &api).await;
        })
    });
    assert_eq!(opened.get("/any").await.text().await.unwrap(), "whole");
}

#[tokio::test]
async fn the_next_event_is_for_those_who_have_answered() {
    let opened = Opened::before(|api, http| {
        Box::pin(async move {
            next(&http, &api).await;
            let answer = http.get(format!("{api}/invocation/next")).send().await;
            assert!(answer.is_ok_and(|answer| answer.status() == StatusCode::FORBIDDEN));
        })
    });
    opened.refused("/any").await;
    opened.logged("before it had answered", 1).await;
    assert_eq!(opened.processes(), 0);
}

#[tokio::test]
async fn a_function_that_does_not_start_is_a_502() {
    let opened = Opened::before(|api, http| {
        Box::pin(async move {
            let error = json!({"errorType": "Config", "errorMessage": "TABLE_PREFIX is missing"});
            http.post(format!("{api}/init/error")).json(&error).send().await.ok();
            sleep(Duration::from_secs(60)).await;
        })
    });
    opened.refused("/any").await;
    opened.logged("did not start: Config: TABLE_PREFIX is missing", 1).await;
    // A process that exits without an answer fails in the same way.
    let opened = Opened::before(|_api, _http| Box::pin(async {}));
    opened.refused("/any").await;
    opened.logged("it ended", 1).await;
}
