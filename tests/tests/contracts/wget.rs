//! The tool `wget` against servers of every kind: the model's texts for readable and failing pages.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test says what is wrong and stops")]

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use axum::{
    Router,
    body::{Body, Bytes},
    http::{HeaderMap, StatusCode, header::LOCATION},
    response::{IntoResponse, Response},
    routing::get,
};
use futures_util::{StreamExt, stream};
use local::standins::{Standin, site};
use serde_json::{Value, json};
use shared::{
    Deadline,
    clients::Outbound,
    injection::Wget,
    models::{ExecutionOrigin, OrganizationId},
    tool::{CallContext, CallableTool, Conversation, Subject, ToolOutcome},
};
use tests::{
    clients::{ample, anywhere, nowhere},
    http_server::Server,
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpListener,
};

const MOST_READ: usize = 10 * 1024 * 1024;
const MOST_GIVEN: usize = 64 * 1024;

/// The tool, allowed to reach these private servers.
fn open_to(servers: &[&str]) -> Wget {
    let hosts = servers.iter().map(|url| url.trim_start_matches("http://").to_owned());
    Wget::new(Outbound::new(hosts.collect()).unwrap())
}

async fn call(tool: &Wget, arguments: &Value, deadline: Deadline) -> ToolOutcome {
    let context = CallContext {
        organization: OrganizationId::generate(),
        user: None,
        subject: Subject::Request("one"),
        automation: None,
        delivery: None,
        conversation: &Conversation::default(),
        trigger: ExecutionOrigin::Automation,
        refused: None,
        deadline,
    };
    tool.call(arguments.as_object().unwrap().clone(), &context).await.unwrap()
}

/// The text of a result, or of an error.
fn text(outcome: ToolOutcome) -> String {
    outcome.into_model_value().as_str().unwrap().to_owned()
}

/// The model's text for a page.
async fn got(server: &str, path: &str, format: &str) -> String {
    let output = call(&open_to(&[server]), &json!({"uri": format!("{server}{path}"), "format": format}), ample()).await;
    assert!(!output.is_failed(), "{path}: {output:?}");
    text(output)
}

/// The model's text for a failure.
async fn refused(tool: &Wget, arguments: &Value) -> String {
    told(call(tool, arguments, ample()).await)
}

fn told(output: ToolOutcome) -> String {
    assert!(output.is_failed(), "{output:?}");
    let sentence = text(output);
    sentence.strip_prefix("Error: ").unwrap_or_else(|| panic!("{sentence}")).to_owned()
}

async fn failed(server: &str, path: &str) -> String {
    refused(&open_to(&[server]), &json!({"uri": format!("{server}{path}")})).await
}

fn typed(content_type: &'static str, body: impl Into<Body>) -> Response {
    ([("content-type", content_type)], body.into()).into_response()
}

/// Sends the text again and again, about 8 KB at once, until the connection closes, and counts the bytes.
fn endless(text: &str, sent: &Arc<AtomicUsize>) -> Body {
    let piece = Bytes::from(text.repeat(8_192 / text.len()));
    let sent = Arc::clone(sent);
    Body::from_stream(stream::repeat_with(move || {
        sent.fetch_add(piece.len(), Ordering::SeqCst);
        Ok::<_, std::io::Error>(piece.clone())
    }))
}

/// A server that answers every connection with these bytes and closes it.
async fn raw(answer: &'static [u8]) -> String {
    let listener = TcpListener::bind(anywhere()).await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move {
        while let Ok((mut connection, _)) = listener.accept().await {
            let mut request = [0; 1024];
            let _read = connection.read(&mut request).await;
            let _written = connection.write_all(answer).await;
        }
    });
    url
}

fn the_site() -> Standin<site::Site> {
    site::start(anywhere()).unwrap()
}

#[tokio::test]
async fn a_page_is_given_raw_or_as_its_text() {
    let site = the_site();
    let raw = got(&site.url, "/opening-hours", "raw").await;
    assert!(raw.starts_with("<!doctype html>") && raw.contains("<nav") && raw.contains("&ndash;"), "{raw}");

    let text = got(&site.url, "/opening-hours", "text").await;
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines[0], "Title: Opening hours – Harbour Cycles");
    assert!(lines.contains(&"# Opening hours"), "{text}");
    assert!(lines.contains(&"Saturday | 10:00–16:00 | by appointment"), "{text}");
    assert!(
        text.contains("[Prices & repairs](/prices)") && text.contains("[+1 (555) 010-0199](tel:+15550100199)"),
        "{text}"
    );
    for absent in ["<", "function", "{", "dataLayer", "Decorative"] {
        assert!(!text.contains(absent), "{absent}: {text}");
    }
    assert!(text.len() * 2 < raw.len(), "{} of {}", text.len(), raw.len());
}

/// The stand-in itself serves every page that it lists.
#[tokio::test]
async fn the_site_has_pages_of_every_kind() {
    let site = the_site();
    let start = got(&site.url, "/", "text").await;
    for link in ["[order one](/order)", "[opening hours](/opening-hours)", "[what is in stock](/api/stock.json)"] {
        assert!(start.contains(link), "{link}: {start}");
    }
    let prices = got(&site.url, "/prices", "text").await;
    assert!(prices.contains("Puncture, with a new tube | $24") && prices.contains("six weeks’ wait"), "{prices}");
    let order = got(&site.url, "/order", "text").await;
    assert!(order.contains("- Anywhere else: $45, in three to five working days."), "{order}");
    let catalogue = got(&site.url, "/catalogue", "text").await;
    assert!(
        catalogue.contains("- [Part 0001](/parts/0001): fits the Harbour 200 & the Crane 310, $6.50"),
        "{catalogue}"
    );
    assert!(catalogue.contains("\n[Cut: this is only the beginning"), "{}", catalogue.len());
    assert!(failed(&site.url, "/logo.png").await.contains("image/png"));
    let slow = json!({"uri": format!("{}/slow", site.url), "timeoutMs": 1_000});
    let sentence = refused(&open_to(&[&site.url]), &slow).await;
    assert!(sentence.contains("had not answered in full after 1000 ms"), "{sentence}");
    assert_eq!(site.requests().len(), 6);
}

#[tokio::test]
async fn a_text_that_is_not_html_stays_unchanged() {
    let site = the_site();
    let json: Value = serde_json::from_str(&got(&site.url, "/api/stock.json", "text").await).unwrap();
    assert_eq!(json["items"][0]["sku"], "HC-200");
    assert!(got(&site.url, "/robots.txt", "text").await.starts_with("User-agent: *\n"));
    let server =
        Server::start(Router::new().route("/csv", get(|| async { typed("text/csv", "a<b>,  c\n1,2\n") }))).await;
    assert_eq!(got(&server.url, "/csv", "text").await, "a<b>,  c\n1,2\n");
}

/// `wget` sends nothing but a GET, without credentials, and only to the requested address.
#[tokio::test]
async fn only_a_get_is_sent() {
    let server = Server::start(Router::new().fallback(|| async { "hello" })).await;
    assert_eq!(got(&server.url, "/a?b=c%20d#e", "raw").await, "hello");
    let seen = server.seen();
    assert_eq!((seen.len(), seen[0].method.as_str(), seen[0].target.as_str()), (1, "GET", "/a?b=c%20d"));
    assert_eq!((seen[0].body.as_str(), seen[0].headers["user-agent"].as_str()), ("", "switchboard"));
    for absent in ["authorization", "cookie", "accept-encoding", "referer"] {
        assert!(!seen[0].headers.contains_key(absent), "{absent}");
    }
}

#[tokio::test]
async fn a_redirect_is_followed_and_its_links_are_whole_if_the_site_is_another() {
    let site = the_site();
    let hours = got(&site.url, "/hours", "text").await;
    assert!(hours.starts_with("Title: Opening hours") && hours.contains("](/prices)"), "{hours}");

    let target = site.url.clone();
    let old = Server::start(Router::new().fallback(move || {
        let to = format!("{target}/opening-hours");
        async move { (StatusCode::MOVED_PERMANENTLY, [(LOCATION, to)]) }
    }))
    .await;
    let tool = open_to(&[&old.url, &site.url]);
    let output = call(&tool, &json!({"uri": old.url, "format": "text"}), ample()).await;
    let text = text(output);
    assert!(text.contains(&format!("[Prices & repairs]({}/prices)", site.url)), "{text}");
}

#[tokio::test]
async fn at_most_64_kb_are_given_with_a_note_on_the_rest() {
    let sent = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&sent);
    let routes = Router::new()
        .route("/fits", get(|| async { "é".repeat(MOST_GIVEN / 2) }))
        .route("/known", get(|| async { "é".repeat(MOST_GIVEN / 2) + "x" }))
        .route("/unknown", get(move || async move { typed("text/plain", endless("é 0123456789 ", &counted)) }))
        .route("/page", get(|| async { typed("text/html", "<p>word &amp; word</p>\n".repeat(10_000)) }))
        .route("/empty", get(|| async { "" }));
    let server = Server::start(routes).await;
    assert_eq!(got(&server.url, "/fits", "raw").await, "é".repeat(MOST_GIVEN / 2));
    for (path, format, whole) in [
        ("/known", "raw", "the whole has 65537 bytes"),
        ("/unknown", "raw", "how much there is is not known"),
        ("/page", "text", "the whole page has 230000 bytes of HTML"),
    ] {
        let text = got(&server.url, path, format).await;
        let (kept, note) = text.rsplit_once('\n').unwrap();
        assert_eq!(note, format!("[Cut: this is only the beginning, 64 KB at most; {whole}.]"), "{path}");
        assert!((MOST_GIVEN - 2..=MOST_GIVEN).contains(&text.len()), "{path}: {}", text.len());
        assert!(!kept.contains('\u{fffd}') && !kept.contains('<'), "{path}");
    }
    assert!(sent.load(Ordering::SeqCst) < MOST_READ, "an endless answer is left when there is enough");
    assert_eq!(got(&server.url, "/empty", "raw").await, "[The answer is empty.]");
}

/// A page of scripts may be long without text: reading continues up to a limit.
#[tokio::test]
async fn no_more_than_10_mb_are_read() {
    let sent = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&sent);
    let long = || "<script>let x = 1;</script>".repeat(100_000) + "<p>at last</p>";
    let routes = Router::new().route("/long", get(move || async move { typed("text/html", long()) })).route(
        "/endless",
        get(move || async move {
            let begin = stream::once(async { Ok(Bytes::from_static(b"<p>first</p><script>")) });
            let rest = endless("0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef", &counted);
            typed("text/html", Body::from_stream(begin.chain(rest.into_data_stream())))
        }),
    );
    let server = Server::start(routes).await;
    assert_eq!(got(&server.url, "/long", "text").await, "at last");
    assert_eq!(got(&server.url, "/endless", "text").await, "first\n[Cut: only the first 10 MB were read.]");
    let sent = sent.load(Ordering::SeqCst);
    // Data in transit when the connection was closed sat in buffers.
    assert!((MOST_READ..4 * MOST_READ).contains(&sent), "{sent}");
}

#[tokio::test]
async fn a_page_without_text_says_that_scripts_may_make_it() {
    let page = "<!doctype html><div id=app></div><script src=/app.js></script>";
    let server = Server::start(Router::new().fallback(move || async move { typed("text/html", page) })).await;
    let text = got(&server.url, "/", "text").await;
    assert_eq!(text, "[The page has no text of its own: scripts may make it. The format \"raw\" gives its HTML.]");
}

#[tokio::test]
async fn every_failure_status_is_reported_with_the_text_of_the_page() {
    for status in [300, 304, 400, 401, 403, 404, 410, 429, 500, 502, 503] {
        let server = Server::start(Router::new().fallback(move || async move {
            let body = if status == 304 { "" } else { "no such bicycle" };
            (StatusCode::from_u16(status).unwrap(), body)
        }))
        .await;
        let sentence = failed(&server.url, "/").await;
        assert!(sentence.starts_with(&format!("127.0.0.1 answered with status {status} (")), "{sentence}");
        assert_eq!(sentence.ends_with("):\nno such bicycle"), status != 304, "{sentence}");
        assert_eq!(server.seen().len(), 1, "nothing is tried again");
    }
    let site = the_site();
    let sentence = failed(&site.url, "/bicycles/none").await;
    assert!(sentence.starts_with("127.0.0.1 answered with status 404 (Not Found):\nTitle: Not found"), "{sentence}");
    assert!(sentence.contains("# We could not find that page") && !sentence.contains('<'), "as text: {sentence}");
}

#[tokio::test]
async fn a_failure_is_short_and_says_how_long_to_wait() {
    let routes = Router::new()
        .route("/long", get(|| async { (StatusCode::INTERNAL_SERVER_ERROR, "é".repeat(100_000)) }))
        .route("/image", get(|| async { (StatusCode::NOT_FOUND, [("content-type", "image/png")], "\u{0}PNG") }))
        .route("/wait", get(|| async { (StatusCode::TOO_MANY_REQUESTS, [("retry-after", "17")]) }));
    let server = Server::start(routes).await;
    let sentence = failed(&server.url, "/long").await;
    assert!(sentence.ends_with("éé… (cut: the rest was not read)") && sentence.len() < 2_200, "{}", sentence.len());
    assert_eq!(failed(&server.url, "/image").await, "127.0.0.1 answered with status 404 (Not Found).");
    let sentence = failed(&server.url, "/wait").await;
    assert_eq!(sentence, "127.0.0.1 answered with status 429 (Too Many Requests); it asks to wait 17 s.");
}

#[tokio::test]
async fn a_file_that_is_not_text_is_named_with_its_size() {
    let routes = Router::new()
        .route("/png", get(|| async { typed("image/png", &b"\x89PNG\r\n\x1a\n\0\0"[..]) }))
        .route("/pdf", get(|| async { typed("application/pdf", "%PDF-1.7 all of it text") }))
        .route("/lies", get(|| async { typed("text/html; charset=utf-8", &b"PK\x03\x04\0\0"[..]) }))
        .route("/unknown", get(|| async { typed("application/octet-stream", &b"\x7fELF\x02\x01\x01"[..]) }))
        .route("/nameless", get(|| async { typed("", "just text, from a server that says nothing") }))
        .route("/html", get(|| async { typed("application/octet-stream", " <!DOCTYPE html><p>a page") }))
        .route("/feed", get(|| async { typed("application/atom+xml", "<feed/>") }));
    let server = Server::start(routes).await;
    for (path, what) in [
        ("/png", "image/png, 10 bytes"),
        ("/pdf", "application/pdf, 23 bytes"),
        ("/lies", "text/html, 6 bytes"),
        ("/unknown", "binary content, 7 bytes"),
    ] {
        assert_eq!(failed(&server.url, path).await, format!("127.0.0.1 answered with {what}, which is not text."));
    }
    assert_eq!(got(&server.url, "/nameless", "raw").await, "just text, from a server that says nothing");
    assert_eq!(got(&server.url, "/html", "text").await, "a page");
    assert_eq!(got(&server.url, "/feed", "text").await, "<feed/>");
}

#[tokio::test]
async fn text_in_other_encodings_is_read() {
    let utf_16 =
        || "\u{feff}Öffnungszeiten: 9–17 Uhr, 4 €".encode_utf16().flat_map(u16::to_le_bytes).collect::<Vec<u8>>();
    let routes = Router::new()
        .route("/1252", get(|| async { typed("text/html; charset=windows-1252", &b"<p>caf\xe9 4 \x80</p>"[..]) }))
        .route("/latin1", get(|| async { typed("text/plain; charset=ISO-8859-1", &b"caf\xe9"[..]) }))
        .route("/utf16", get(move || async move { typed("text/plain", utf_16()) }))
        .route("/bom", get(|| async { typed("text/plain", &b"\xef\xbb\xbfcaf\xc3\xa9"[..]) }))
        .route("/meta", get(|| async { typed("text/html", &b"<meta charset=shift_jis><p>\x93\xfa\x96{"[..]) }))
        .route("/broken", get(|| async { typed("text/plain", &b"caf\xe9 au lait"[..]) }));
    let server = Server::start(routes).await;
    for (path, format, expected) in [
        ("/1252", "text", "café 4 €"),
        ("/latin1", "raw", "café"),
        ("/utf16", "raw", "Öffnungszeiten: 9–17 Uhr, 4 €"),
        ("/bom", "raw", "café"),
        ("/meta", "text", "日本"),
        ("/broken", "raw", "caf\u{fffd} au lait\n[Bytes that are not UTF-8 were replaced by \u{fffd}.]"),
    ] {
        assert_eq!(got(&server.url, path, format).await, expected, "{path}");
    }
}

#[tokio::test]
async fn the_timeout_covers_everything_until_the_last_byte() {
    let drip = || {
        Body::from_stream(stream::unfold((), |()| async {
            tokio::time::sleep(Duration::from_millis(20)).await;
            Some((Ok::<_, std::io::Error>("<p>x"), ()))
        }))
    };
    let routes = Router::new()
        .route("/silent", get(|| async { std::future::pending::<()>().await }))
        .route("/drip", get(move || async move { typed("text/html", drip()) }))
        .route("/slow-failure", get(move || async move { (StatusCode::BAD_GATEWAY, drip()) }));
    let server = Server::start(routes).await;
    let tool = open_to(&[&server.url]);
    for path in ["/silent", "/drip"] {
        for format in ["raw", "text"] {
            let arguments = json!({"uri": format!("{}{path}", server.url), "timeoutMs": 700, "format": format});
            let sentence = refused(&tool, &arguments).await;
            assert_eq!(sentence, "127.0.0.1 had not answered in full after 700 ms; try a longer timeoutMs.", "{path}");
        }
    }
    // The status arrived in time.
    let arguments = json!({"uri": format!("{}/slow-failure", server.url), "timeoutMs": 2_500});
    assert_eq!(refused(&tool, &arguments).await, "127.0.0.1 answered with status 502 (Bad Gateway).");
}

/// The call ends before the run's deadline, regardless of its own time-out.
#[tokio::test]
async fn a_call_does_not_outlast_the_run() {
    let server = Server::start(Router::new().fallback(|| async { std::future::pending::<()>().await })).await;
    let tool = open_to(&[&server.url]);
    let deadline = Deadline::after(Duration::from_secs(2));
    let sentence = told(call(&tool, &json!({"uri": server.url, "timeoutMs": 60_000}), deadline).await);
    assert!(sentence.contains("had not answered in full after"), "{sentence}");
    assert!(!deadline.remaining().is_zero(), "what follows the call has time");
}

#[tokio::test]
async fn an_answer_that_breaks_off_or_is_none() {
    let dead = nowhere();
    assert_eq!(failed(&dead, "/").await, "127.0.0.1 cannot be reached: nothing answers at that address.");
    let nothing = raw(b"").await;
    assert_eq!(failed(&nothing, "/").await, "127.0.0.1 broke the connection off before it answered.");
    let garbage = raw(b"SSH-2.0-OpenSSH_9.6\r\n").await;
    assert_eq!(failed(&garbage, "/").await, "127.0.0.1 broke the connection off before it answered.");
    for head in [
        &b"HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: 100\r\n\r\nonly this"[..],
        b"HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\r\n",
    ] {
        let half = raw(head).await;
        let sentence = failed(&half, "/").await;
        assert_eq!(sentence, "127.0.0.1 broke the connection off in the middle of its answer.");
    }
}

#[tokio::test]
async fn a_call_that_makes_no_sense_is_told_which_argument_is_wrong() {
    let server = Server::start(Router::new().fallback(|| async { "hello" })).await;
    let tool = open_to(&[&server.url]);
    for (name, value, sentence) in [
        ("timeoutMs", json!(60_001), "timeoutMs must be a whole number of milliseconds from 1 to 60000."),
        ("format", json!("markdown"), "format must be \"raw\" or \"text\"."),
        ("uri", json!("/opening-hours"), "uri: the address is not a URL (relative URL without a base)."),
    ] {
        let mut arguments = json!({"uri": server.url});
        arguments[name] = value;
        assert_eq!(refused(&tool, &arguments).await, sentence);
    }
    assert_eq!(server.seen().len(), 0);
}

#[tokio::test]
async fn private_addresses_are_refused() {
    let private = Server::start(Router::new().fallback(|| async { "secret" })).await;
    let port = private.address.port();
    let tool = Wget::new(Outbound::new(Vec::new()).unwrap());
    for (uri, why) in [
        (private.url.clone(), "uri: only https addresses may be called, not http."),
        (
            format!("https://127.0.0.1:{port}/"),
            "uri: 127.0.0.1 is not on the public internet; give a public address of the service.",
        ),
        (
            format!("https://2130706433:{port}/"),
            "uri: 127.0.0.1 is not on the public internet; give a public address of the service.",
        ),
        (
            format!("https://[::1]:{port}/"),
            "uri: [::1] is not on the public internet; give a public address of the service.",
        ),
        (
            format!("https://[::ffff:127.0.0.1]:{port}/"),
            "uri: [::ffff:7f00:1] is not on the public internet; give a public address of the service.",
        ),
        (
            format!("https://localhost:{port}/"),
            "uri: localhost is not on the public internet; give a public address of the service.",
        ),
        (
            "https://169.254.169.254/latest/meta-data/".to_owned(),
            "uri: 169.254.169.254 is not on the public internet; give a public address of the service.",
        ),
        ("http://169.254.169.254/latest/meta-data/".to_owned(), "uri: only https addresses may be called, not http."),
        (
            "https://10.0.0.1/".to_owned(),
            "uri: 10.0.0.1 is not on the public internet; give a public address of the service.",
        ),
        (
            "https://192.168.1.1/".to_owned(),
            "uri: 192.168.1.1 is not on the public internet; give a public address of the service.",
        ),
        (
            "https://[fd00::1]/".to_owned(),
            "uri: [fd00::1] is not on the public internet; give a public address of the service.",
        ),
        (format!("https://user:pass@127.0.0.1:{port}/"), "uri: the address must not hold a user name or password."),
    ] {
        assert_eq!(refused(&tool, &json!({"uri": uri})).await, why, "{uri}");
    }
    assert_eq!(private.seen().len(), 0);
}

#[tokio::test]
async fn a_redirect_to_a_private_address_is_refused() {
    let private = Server::start(Router::new().fallback(|| async { "secret" })).await;
    let port = private.address.port();
    for (target, why) in [
        (private.url.clone(), "only https addresses may be called, not http"),
        (format!("https://127.0.0.1:{port}/"), "127.0.0.1 is not on the public internet"),
        (format!("https://user:x@127.0.0.1:{port}/"), "the address must not hold a user name or password"),
        ("https://169.254.169.254/latest/meta-data/".to_owned(), "169.254.169.254 is not on the public internet"),
        ("file:///etc/passwd".to_owned(), "the address names no host"),
    ] {
        let to = target.clone();
        let first = Server::start(Router::new().fallback(move || {
            let to = to.clone();
            async move { (StatusCode::FOUND, [(LOCATION, to)]) }
        }))
        .await;
        let sentence = failed(&first.url, "/").await;
        assert!(
            sentence.starts_with(&format!("127.0.0.1 was not downloaded: it redirects, and {why}")),
            "{target}: {sentence}"
        );
    }
    // By name, which only the resolver can check.
    let first = Server::start(
        Router::new()
            .fallback(move || async move { (StatusCode::FOUND, [(LOCATION, format!("https://localhost:{port}/"))]) }),
    )
    .await;
    let sentence = failed(&first.url, "/").await;
    assert_eq!(
        sentence,
        "127.0.0.1 was not downloaded: it redirects, and localhost is not on the public internet; give a public address \
         of the service."
    );
    assert_eq!(private.seen().len(), 0);
}

#[tokio::test]
async fn a_chain_of_redirects_ends() {
    let server =
        Server::start(Router::new().fallback(|| async { (StatusCode::FOUND, [(LOCATION, "/again".to_owned())]) }))
            .await;
    assert_eq!(failed(&server.url, "/").await, "127.0.0.1 was not downloaded: it redirects more than 5 times.");
    assert_eq!(server.seen().len(), 6);
}

#[tokio::test]
async fn a_body_of_any_size_is_bounded() {
    let declared = raw(b"HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: 99999999999\r\n\r\n\
          only the beginning of very much")
    .await;
    let sentence = failed(&declared, "/").await;
    assert_eq!(sentence, "127.0.0.1 broke the connection off in the middle of its answer.");

    let sent = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&sent);
    let server = Server::start(Router::new().fallback(move |headers: HeaderMap| {
        assert!(headers.contains_key("accept"));
        let body = endless("<p>0123456789012345678901234567890123456789</p>", &counted);
        async move { typed("text/html", body) }
    }))
    .await;
    for format in ["raw", "text"] {
        sent.store(0, Ordering::SeqCst);
        let text = got(&server.url, "/", format).await;
        assert!(text.len() <= MOST_GIVEN && text.ends_with("how much there is is not known.]"), "{format}");
        assert!(sent.load(Ordering::SeqCst) < MOST_READ, "{format}");
    }
}

/// Compressed content is never unpacked, and the model is told so.
#[tokio::test]
async fn compressed_content_is_not_unpacked() {
    for (packing, named) in
        [("gzip", "gzip"), ("br", "br"), ("zstd", "zstd"), ("deflate", "deflate"), ("identity, GZIP", "gzip")]
    {
        let server = Server::start(Router::new().fallback(move || async move {
            ([("content-type", "text/html"), ("content-encoding", packing)], &b"\x1f\x8b\x08\0\0\0\0\0"[..])
        }))
        .await;
        let expected = format!(
            "127.0.0.1 answered with compressed content ({named}) although that was not asked for, and cannot be read."
        );
        assert_eq!(failed(&server.url, "/").await, expected);
    }
    let server =
        Server::start(Router::new().fallback(|| async { ([("content-encoding", "identity")], "hello") })).await;
    assert_eq!(got(&server.url, "/", "raw").await, "hello");
}

/// Parallel calls are independent, and none waits for a slow one.
#[tokio::test]
async fn calls_run_beside_each_other() {
    let (release, gate) = tokio::sync::watch::channel(false);
    let routes = Router::new()
        .route(
            "/slow",
            get(move || {
                let mut gate = gate.clone();
                async move {
                    gate.wait_for(|open| *open).await.unwrap();
                    typed("text/html", "<p>slow")
                }
            }),
        )
        .route(
            "/{name}",
            get(|path: axum::extract::Path<String>| async move { typed("text/html", format!("<p>{}", *path)) }),
        );
    let server = Server::start(routes).await;
    let url = server.url.clone();
    let slow = tokio::spawn(async move { got(&url, "/slow", "text").await });
    let names: Vec<String> = (0..9).map(|number| format!("page-{number}")).collect();
    let paths: Vec<String> = names.iter().map(|name| format!("/{name}")).collect();
    let pages = paths.iter().map(|path| got(&server.url, path, "text"));
    assert_eq!(futures_util::future::join_all(pages).await, names);
    release.send(true).unwrap();
    assert_eq!(slow.await.unwrap(), "slow");
}
