//! The console's places without data, and while the API cannot be asked.

use serde_json::json;
use tests::browser::Browser;

use crate::{
    console_page::{accessible, complaints, sign_in_at},
    conversation::Chat,
};

/// Places, and details that cannot be read.
const PLACES: [&str; 22] = [
    "home",
    "calls",
    "calls/none",
    "executions",
    "automations",
    "automations/none",
    "runs",
    "runs/none",
    "events",
    "events/none",
    "approvals",
    "tools",
    "agents",
    "numbers",
    "donotcall",
    "knowledge",
    "services",
    "hooks",
    "keys",
    "usage",
    "members",
    "audit",
];

/// Each place without data (light) and with the API down (dark) says so, and has no accessibility violation.
pub(crate) async fn can_be_used(chat: &Chat, browser: &Browser) {
    sign_in_at(chat, browser, "erasure").await;
    for (scheme, status, body, shown) in [
        ("light", 200, json!({"items": [], "next_cursor": null}), "[data-empty], form"),
        ("dark", 503, json!({"detail": "The tables cannot be reached."}), "[data-failed], form"),
    ] {
        browser.prefer(scheme).await;
        answer_all_with(browser, status, &body.to_string()).await;
        for place in PLACES {
            let is_never_empty = ["keys", "usage", "members"].contains(&place) || place.ends_with("/none");
            if status == 200 && is_never_empty {
                continue;
            }
            let address = format!("#/{}/{place}", chat.at("/slug"));
            browser.run("location.hash = arguments[0]", &json!([address])).await;
            let page = place.split('/').next().unwrap_or_default();
            browser.until(&format!("document.querySelector('[data-place={page}][aria-current=page]')")).await;
            browser.until(&format!("document.querySelector('#main :is({shown})')")).await;
            accessible(browser, &format!("{place}, {scheme}, {status}")).await;
        }
    }
    browser.prefer("light").await;
    browser.reload().await;
    browser.click("#sign-out").await;
    browser.find("#sign-in").await;
    assert_eq!(complaints(chat, browser).await, [""; 0]);
}

/// Has the page get this answer from each route of the organization (a list of nothing is no answer of `usage`), until the page is loaded again.
async fn answer_all_with(browser: &Browser, status: u16, body: &str) {
    let script = "
        const [status, body] = arguments;
        window.asks ??= window.fetch;
        const headers = { 'content-type': 'application/json' };
        const answered = (address) => address.includes('/api/') && !(status === 200 && address.includes('/usage'));
        window.fetch = (address, asked) =>
          answered(String(address)) ? Promise.resolve(new Response(body, { status, headers })) : window.asks(address, asked);
    ";
    browser.run(script, &json!([status, body])).await;
}
