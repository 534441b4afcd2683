//! Each parser of outside input, fed with any bytes.
//!
//! A target stops at a panic, and at a result that breaks what its parser promises. The tests include this file too, and feed
//! it the corpus (`tests/tests/contracts/fuzz_corpus.rs`).
#![allow(clippy::expect_used, clippy::indexing_slicing, clippy::panic, reason = "a finding stops the program")]

use std::net::{IpAddr, Ipv4Addr};

use base64::{Engine, prelude::BASE64_STANDARD};
use lambda_http::http::{HeaderMap, HeaderName, HeaderValue};
use ring::hmac::{HMAC_SHA1_FOR_LEGACY_USE_ONLY, HMAC_SHA256, Key, sign};
use secrecy::SecretString;
use serde_json::{Map, Value, json};
use shared::{
    actions::ToolConfig,
    automation::{
        self, Data, Definition, Diagnostics, Lowered, MOST_FILLED_IN, Outputs, Path, Template, Unfilled, Work,
        filled_in_within,
    },
    clients::llm,
    injection::{
        entries_of_feed,
        parser::{DEEPEST, Entry, parse},
        text_of_page,
    },
    json_schema::JsonSchema,
    models::{E164, KnowledgeBase, Timestamp},
    store::{CreatedAt, Cursor},
    webhooks::{
        AddressRange, HookKeys, HookSecret, Scheme, WebhookRequest, claimed_tenants, key_id, learn, receive,
        twilio_signature,
    },
};

/// Reads outside input. It must not panic.
pub type Target = fn(&[u8]);

/// A target's name, which is also the file's in `fuzz_targets` and the folder's in `corpus`.
pub const TARGETS: [(&str, Target); 19] = [
    ("tool_calls", tool_calls),
    ("twilio_form", twilio_form),
    ("twiml", twiml),
    ("vapi_tool_calls", vapi_tool_calls),
    ("vapi_events", vapi_events),
    ("webhooks", webhooks),
    ("webhook_headers", webhook_headers),
    ("definitions", definitions),
    ("templates", templates),
    ("conditions", conditions),
    ("cursors", cursors),
    ("tool_configs", tool_configs),
    ("json_schemas", json_schemas),
    ("tables", tables),
    ("pages", pages),
    ("feeds", feeds),
    ("mcp_messages", mcp_messages),
    ("chat_runs", chat_runs),
    ("model_answers", model_answers),
];

/// A time at which signatures of the corpus are good.
const NOW: i64 = 1_780_000_000_000;
const SECRET: &str = "whsec_c2VjcmV0LW9mLWEtaG9vaw==";
const ADDRESS: &str = "https://api.switchboard.example/api/hooks/slack/hook";
/// Bytes of a filled-in template.
const MOST_FILLED: usize = 100_000;

fn text(data: &[u8]) -> Option<&str> {
    std::str::from_utf8(data).ok()
}

fn json_of(data: &[u8]) -> Option<Value> {
    serde_json::from_slice(data).ok()
}

/// The first line, and what is behind it.
fn halves(data: &[u8]) -> (&[u8], &[u8]) {
    let line = data.iter().position(|byte| *byte == b'\n');
    line.map_or((data, &[][..]), |line| (&data[..line], &data[line + 1..]))
}

/// The answers of models.
pub fn tool_calls(data: &[u8]) {
    let Some(answer) = text(data) else { return };
    let parsed = parse(answer);
    let unified = answer.replace("\r\n", "\n");
    let lines: Vec<&str> = unified.split(['\n', '\r']).collect();
    let mut before = (1, 1);
    for (index, entry) in parsed.entries.iter().enumerate() {
        let place = match entry {
            Entry::Call(call) => {
                let there: String = lines[call.line - 1].chars().skip(call.column - 1).collect();
                assert!(there.starts_with(&call.name), "a call is where its name stands");
                assert!(call.arguments.iter().all(|value| depth(value) <= DEEPEST));
                (call.line, call.column)
            }
            Entry::Malformed(wrong) => {
                assert_eq!(index + 1, parsed.entries.len(), "nothing is read behind what is malformed");
                assert!(wrong.to_string().len() < 1000, "a sentence is short");
                (wrong.line, wrong.column)
            }
        };
        assert!(before <= place, "entries stand in their order");
        assert!((1..=lines[place.0 - 1].chars().count() + 1).contains(&place.1), "a place lies in the text");
        before = place;
    }
    for line in [parsed.unclosed, parsed.quoted].into_iter().flatten() {
        assert!((1..=lines.len()).contains(&line));
    }
    is_read_as_written(&parsed.entries);
}

fn depth(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(depth).max().unwrap_or(0),
        Value::Object(members) => 1 + members.values().map(depth).max().unwrap_or(0),
        _ => 0,
    }
}

/// Each call, printed with JSON arguments, parses to the same call.
fn is_read_as_written(entries: &[Entry]) {
    for entry in entries {
        let Entry::Call(call) = entry else { continue };
        let arguments: Vec<String> = call.arguments.iter().map(Value::to_string).collect();
        let written = format!("```tool\n{}({})\n```", call.name, arguments.join(", "));
        let again = parse(&written);
        let [Entry::Call(read)] = &again.entries[..] else { panic!("{written}: {again:?}") };
        assert_eq!((&read.name, &read.arguments), (&call.name, &call.arguments), "{written}");
    }
}

/// Twilio's form of an incoming call, and its signature.
pub fn twilio_form(data: &[u8]) {
    let (signature, form) = halves(data);
    if let Some((id, caller)) = call_start::fuzzing::incoming(form) {
        assert!(id <= 34 && caller <= 200, "{id} {caller}");
    }
    let token = SecretString::from(SECRET);
    let signature = String::from_utf8_lossy(signature);
    assert!(!twilio_signature::is_valid(&token, &[ADDRESS], form, &signature), "nobody knows the token");
}

/// VAPI's answer for Twilio.
pub fn twiml(data: &[u8]) {
    let Some(text) = text(data) else { return };
    drop(call_start::twiml::read(text));
}

/// VAPI's requests to run tools.
pub fn vapi_tool_calls(data: &[u8]) {
    let Some(body) = json_of(data) else { return };
    execute::fuzzing::invocation(body);
}

/// VAPI's reports of a call.
pub fn vapi_events(data: &[u8]) {
    let Some(body) = json_of(data) else { return };
    calls::fuzzing::event(&body);
}

/// Events of services, signed: the first byte chooses the service, the rest is the body.
pub fn webhooks(data: &[u8]) {
    let Some((choice, body)) = data.split_first() else { return };
    let scheme = Scheme::ALL[usize::from(*choice) % Scheme::ALL.len()];
    let headers = signed(scheme, body);
    let request = request(&headers, body);
    let secrets = [HookSecret { channel_id: Some("a-channel".into()), ..HookSecret::of(SECRET) }];
    let keys = HookKeys { scheme, secrets: &secrets, google_key: None, own: None };
    let received = receive(keys, &request, Timestamp::from_millis(NOW));
    if let Ok(shared::webhooks::Delivery::Events(events)) = received {
        let data: Vec<Value> = events.into_iter().map(|event| event.data).collect();
        learn(&data);
    }
    claimed_tenants(scheme, &request);
}

/// Headers of requests that nobody signed: the first byte chooses the service; then a header's value, and the body.
pub fn webhook_headers(data: &[u8]) {
    let Some((choice, rest)) = data.split_first() else { return };
    let (value, body) = halves(rest);
    let scheme = Scheme::ALL[usize::from(*choice) % Scheme::ALL.len()];
    let mut headers = HeaderMap::new();
    for name in signed(scheme, b"{}").keys() {
        headers.insert(name, HeaderValue::from_bytes(value).unwrap_or(HeaderValue::from_static("")));
    }
    let request = request(&headers, body);
    let secrets = [HookSecret::of(SECRET)];
    let keys = HookKeys { scheme, secrets: &secrets, google_key: None, own: None };
    let events = matches!(
        receive(keys, &request, Timestamp::from_millis(NOW)),
        Ok(shared::webhooks::Delivery::Events(events)) if !events.is_empty()
    );
    // The proof of these is a value of the request itself.
    let known = [value, body].iter().any(|part| part.windows(SECRET.len()).any(|part| part == SECRET.as_bytes()));
    assert!(!events || known || scheme == Scheme::Unsigned, "{scheme:?} takes an event that nobody signed");
    key_id(&request);
    if let Some(range) = text(value) {
        let _read: Result<AddressRange, _> = range.parse();
    }
}

fn request<'a>(headers: &'a HeaderMap, body: &'a [u8]) -> WebhookRequest<'a> {
    WebhookRequest { method: "POST", urls: &[ADDRESS], headers, body, source: Some(IpAddr::V4(Ipv4Addr::LOCALHOST)) }
}

fn signed(scheme: Scheme, body: &[u8]) -> HeaderMap {
    let seconds = NOW / 1000;
    let mac = |parts: &[&[u8]]| sign(&Key::new(HMAC_SHA256, SECRET.as_bytes()), &parts.concat()).as_ref().to_vec();
    let timed = |separator: &str| hex(&mac(&[format!("{seconds}{separator}").as_bytes(), body]));
    let headers: Vec<(&str, String)> = match scheme {
        Scheme::Slack => {
            let signature = hex(&mac(&[format!("v0:{seconds}:").as_bytes(), body]));
            vec![("x-slack-request-timestamp", seconds.to_string()), ("x-slack-signature", format!("v0={signature}"))]
        }
        Scheme::Github => {
            let signature = format!("sha256={}", hex(&mac(&[body])));
            vec![("x-github-event", "issues".into()), ("x-hub-signature-256", signature)]
        }
        Scheme::Stripe => vec![("stripe-signature", format!("t={seconds},v1={}", timed(".")))],
        Scheme::Pipedream => vec![("x-pd-signature", format!("t={seconds},v1={}", timed(".")))],
        Scheme::Notion => vec![("x-notion-signature", format!("sha256={}", hex(&mac(&[body]))))],
        Scheme::Hubspot => {
            let signature = mac(&[b"POST", ADDRESS.as_bytes(), body, NOW.to_string().as_bytes()]);
            vec![
                ("x-hubspot-request-timestamp", NOW.to_string()),
                ("x-hubspot-signature-v3", BASE64_STANDARD.encode(signature)),
            ]
        }
        Scheme::StandardWebhooks => {
            let key = BASE64_STANDARD.decode(SECRET.trim_start_matches("whsec_")).unwrap_or_default();
            let signed = [format!("msg_1.{seconds}.").as_bytes(), body].concat();
            let signature = BASE64_STANDARD.encode(sign(&Key::new(HMAC_SHA256, &key), &signed));
            vec![
                ("webhook-id", "msg_1".into()),
                ("webhook-timestamp", seconds.to_string()),
                ("webhook-signature", format!("v1,{signature}")),
            ]
        }
        Scheme::GoogleCalendar => vec![
            ("x-goog-channel-token", SECRET.into()),
            ("x-goog-channel-id", "a-channel".into()),
            ("x-goog-resource-state", "exists".into()),
            ("x-goog-message-number", "7".into()),
        ],
        Scheme::Twilio => {
            // Each field once, in the order of its name, as Twilio signs it.
            let mut fields: Vec<_> = url::form_urlencoded::parse(body).collect();
            fields.sort();
            fields.dedup();
            let fields: String = fields.iter().flat_map(|(name, value)| [name.as_ref(), value.as_ref()]).collect();
            let key = Key::new(HMAC_SHA1_FOR_LEGACY_USE_ONLY, SECRET.as_bytes());
            let signature = BASE64_STANDARD.encode(sign(&key, format!("{ADDRESS}{fields}").as_bytes()));
            vec![("content-type", "application/x-www-form-urlencoded".into()), ("x-twilio-signature", signature)]
        }
        Scheme::Telegram => vec![("x-telegram-bot-api-secret-token", SECRET.into())],
        Scheme::Linear => vec![("linear-signature", hex(&mac(&[body])))],
        Scheme::Hmac => vec![("x-signature", hex(&mac(&[body])))],
        Scheme::Bearer | Scheme::GooglePubsub => vec![("authorization", format!("Bearer {SECRET}"))],
        Scheme::Basic => vec![("authorization", format!("Basic {}", BASE64_STANDARD.encode(SECRET)))],
        Scheme::MicrosoftGraph | Scheme::Unsigned => Vec::new(),
    };
    let headers = headers
        .into_iter()
        .filter_map(|(name, value)| Some((HeaderName::from_static(name), HeaderValue::try_from(value).ok()?)));
    headers.collect()
}

fn hex(bytes: &[u8]) -> String {
    bytes
        .iter()
        .flat_map(|byte| [byte >> 4, byte & 15])
        .filter_map(|digit| char::from_digit(digit.into(), 16))
        .collect()
}

/// Definitions of automations.
pub fn definitions(data: &[u8]) {
    let Some(body) = json_of(data) else { return };
    let mut diagnostics = Diagnostics::default();
    let read = Definition::read(&body, &mut diagnostics);
    // One spelling, which stays when it is written again.
    let canonical = Definition::canonical(&body);
    assert_eq!(Definition::canonical(&canonical), canonical);
    if let Some(definition) = read {
        definition.tools();
    }
}

/// A template on the first line, and the data for it as JSON behind.
pub fn templates(data: &[u8]) {
    let (template, given) = halves(data);
    let Some(template) = text(template) else { return };
    let (parsed, _) = Template::parse(template);
    for path in parsed.paths() {
        assert_eq!(Path::parse(path.as_str()).as_ref().map(Path::as_str), Ok(path.as_str()));
    }
    with_data(given, |data| {
        let work = Work::of(MOST_FILLED_IN);
        let filled = filled_in_within(&json!({"field": template}), data, MOST_FILLED, &work);
        if let Ok(filled) = &filled {
            assert!(filled.value.to_string().len() <= 8 * MOST_FILLED + template.len(), "more than a bound of bytes");
        }
        if let Err(Unfilled::Expression(why)) = filled {
            assert!(why.len() < 4_000, "a sentence is short");
        }
    });
}

/// A condition as JSON on the first line, and the data for it behind.
pub fn conditions(data: &[u8]) {
    let (condition, given) = halves(data);
    let Some(condition) = json_of(condition) else { return };
    with_data(given, |data| {
        automation::fuzzing::condition(&condition, data);
    });
}

fn with_data(given: &[u8], used: impl FnOnce(&Data<'_>)) {
    let given = json_of(given).unwrap_or_else(|| json!({"name": "Ana", "items": [1, 2], "at": "2026-11-20T16:20:52Z"}));
    let mut outputs = Outputs::default();
    outputs.give("found", given.clone());
    let trigger_data: Lowered<'_> = given.into();
    used(&automation::fuzzing::data(&Map::new(), &outputs, &trigger_data, Timestamp::from_millis(NOW)));
}

/// Cursors, times and phone numbers, as they stand in addresses.
pub fn cursors(data: &[u8]) {
    let Some(text) = text(data) else { return };
    if let Ok(cursor) = Cursor::<CreatedAt>::parse(text) {
        let again = Cursor::<CreatedAt>::parse(&cursor.to_string());
        assert_eq!(again.ok().map(|again| again.to_string()), Some(cursor.to_string()));
    }
    if let Ok(at) = text.parse::<Timestamp>() {
        assert_eq!(at.to_string().parse::<Timestamp>().ok(), Some(at));
    }
    if let Ok(number) = text.parse::<E164>() {
        assert_eq!(number.as_str().parse::<E164>().ok().as_ref(), Some(&number));
    }
}

/// Bodies of tools.
pub fn tool_configs(data: &[u8]) {
    let Some(body) = json_of(data) else { return };
    let Ok(config) = ToolConfig::parse(&body) else { return };
    let again = ToolConfig::parse(&config.to_json());
    let again = again.unwrap_or_else(|error| panic!("what is stored can be sent again: {error:?}"));
    assert_eq!(again.to_json(), config.to_json());
    config.static_config();
}

/// A JSON Schema of a user's on the first line, and a value behind.
pub fn json_schemas(data: &[u8]) {
    let (schema, value) = halves(data);
    let Some(schema) = json_of(schema) else { return };
    let Ok(schema) = JsonSchema::compile(&schema) else { return };
    schema.validate(&json_of(value).unwrap_or_default());
}

/// Entries of a knowledge base: the first byte chooses JSON or CSV.
pub fn tables(data: &[u8]) {
    let Some((choice, body)) = data.split_first() else { return };
    let base = json!({
        "id": "0193aa11-2b3c-7d4e-8f50-617283940a1b", "organization_id": "0193aa11-2b3c-7d4e-8f50-617283940a1c", "name": "Menu",
        "fields": [
            {"name": "price", "type": "number"}, {"name": "kind", "type": "text"},
            {"name": "vegan", "type": "boolean"},
        ],
        "created_at": "2026-11-20T16:20:52.123Z", "updated_at": "2026-11-20T16:20:52.123Z",
    });
    let base: KnowledgeBase = serde_json::from_value(base).expect("a base");
    let kind = if choice % 2 == 0 { "application/json" } else { "text/csv; charset=utf-8" };
    knowledge::fuzzing::rows(&base, kind, body);
}

/// Web pages, in pieces: the first byte is their size.
pub fn pages(data: &[u8]) {
    const LIMIT: usize = 4096;
    let Some((size, html)) = data.split_first() else { return };
    let html = String::from_utf8_lossy(html).into_owned();
    let letters: Vec<char> = html.chars().collect();
    let pieces = letters.chunks(usize::from(*size).max(1)).map(|piece| piece.iter().collect::<String>());
    let page = "https://shop.example/menu/today?x=1".parse().expect("an address");
    let text = text_of_page(pieces, &page, LIMIT);
    let whole = text_of_page(std::iter::once(html), &page, LIMIT);
    assert_eq!(text, whole, "the pieces make no difference");
}

/// RSS, Atom and JSON Feed.
pub fn feeds(data: &[u8]) {
    let at = "https://blog.example/feed.xml".parse().expect("an address");
    let Ok(feed) = entries_of_feed(data, &at) else { return };
    let entries = feed["entries"].as_array().expect("a list");
    assert!(entries.iter().all(|entry| entry["id"].as_str().is_some_and(|id| !id.is_empty())), "each entry has an id");
    assert_eq!(entries_of_feed(data, &at).as_ref(), Ok(&feed), "the same feed has the same entries");
}

/// Messages of MCP clients.
pub fn mcp_messages(data: &[u8]) {
    mcp::fuzzing::message(data);
}

/// Bodies of AG-UI clients.
pub fn chat_runs(data: &[u8]) {
    let Some(body) = json_of(data) else { return };
    let (named, read) = stream::fuzzing::run_input(&body);
    assert!(named || !read, "a run has a thread");
}

/// Answers of a model's gateway, whole or streamed in pieces: the first byte is their size.
pub fn model_answers(data: &[u8]) {
    let Some((size, body)) = data.split_first() else { return };
    llm::fuzzing::answer(body);
    let events = llm::fuzzing::events(body, usize::from(*size));
    assert_eq!(events, llm::fuzzing::events(body, body.len()), "the pieces make no difference");
}
