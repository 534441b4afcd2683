//! The console in a browser, as somebody uses it who sees to calls and automations.

use local::standins::twilio::IncomingCall;
use reqwest::Method;
use serde_json::{Value, json};
use tests::browser::Browser;

use crate::{
    User,
    console_page::{complaints, everybody_can_use, sign_in_at},
    conversation::Chat,
};

pub(crate) async fn is_served(user: &User<'_>, chat: &Chat, browser: &Browser) {
    let call = call_with_a_failed_tool(user).await;
    let run = run_that_asks(user).await;
    sign_in_at(chat, browser, "home").await;
    finds_the_failed_request(browser, &call).await;
    allows_what_waits(chat, browser, &run).await;
    every_page_can_be_used(chat, browser).await;
    browser.click("#sign-out").await;
    browser.find("#sign-in").await;
    assert_eq!(complaints(chat, browser).await, [""; 0]);
}

/// A call comes in and the agent calls a tool whose service does not know the address; the id of the call.
async fn call_with_a_failed_tool(user: &User<'_>) -> String {
    let about = &user.stack.description;
    let crm = &about.standins.crm;
    let tool = json!({
        "type": "api_request", "label": "Book an appointment", "method": "POST", "url": format!("{crm}/appointments"),
        "body": {"day": {"mode": "ai", "prompt": "The day"}},
    });
    let tool = user.attached(&tool).await;
    let incoming = IncomingCall::new(&about.twilio_account_sid, "+14155550142", &about.phone_number);
    let url = format!("{}/api/phone-number/{}/incoming", about.api_url, about.phone_number_id);
    let answered = incoming.signed(&url, &about.twilio_auth_token).post().await.unwrap();
    let twiml = answered.twiml().unwrap();
    let call = twiml.split("/transport").next().and_then(|start| start.rsplit('/').next()).unwrap().to_owned();
    let answer = user.call_in(&call, &tool, json!({"body_day": "the thirtieth of February"})).await;
    assert_eq!(answer["success"], false, "{answer}");
    call
}

/// A run whose only action asks a person; its id.
async fn run_that_asks(user: &User<'_>) -> String {
    let ask = async |path: &str, body: Value| {
        let about = &user.stack.description;
        let path = format!("/api/{}/automations{path}", about.slug);
        let (status, answer) = user.send(Method::POST, &path, Some(&about.token), Some(&body)).await;
        assert!(status.is_success(), "{path}: {answer}");
        answer
    };
    let asks = json!({
        "name": "Look at the clock", "trigger_type": "manual", "fingerprints": {"current_time": "built-in"},
        "actions": [{
            "id": "look", "tool": "current_time", "parameters": {"timeZone": "Europe/Lisbon"},
            "approval": {"reason": "Nobody looks at the clock unasked."},
        }],
    });
    let automation = ask("", asks).await["automation"].clone();
    let id = automation["id"].as_str().unwrap();
    ask(&format!("/{id}/activate"), json!({"version": automation["version"]})).await;
    ask(&format!("/{id}/run"), json!({})).await["id"].as_str().unwrap().to_owned()
}

/// One click from the first page to what the tool was given.
async fn finds_the_failed_request(browser: &Browser, call: &str) {
    browser.click(&format!("[data-need=failed] a[href*='{call}']")).await;
    browser.find(&format!("[data-call='{call}'] [data-failures]")).await;
    browser.until("document.querySelector('#asked [data-request]')?.innerText.includes('thirtieth of February')").await;
    assert_eq!(browser.texts("#asked [data-status=failed]").await, ["Failed"]);
}

/// Two clicks from the first page to the approval, and the run ends.
async fn allows_what_waits(chat: &Chat, browser: &Browser, run: &str) {
    browser.click("[data-place=home]").await;
    browser.click("[data-need=pending] a").await;
    browser.until_shown("Nobody looks at the clock unasked.").await;
    browser.until("document.querySelector('.letter')?.innerText.includes('Europe/Lisbon')").await;
    browser.until("document.title.startsWith('(1) ')").await;
    browser.click("#allow").await;
    browser.find("[data-approval=approved]").await;
    browser.until("document.title.startsWith('Approvals')").await;
    browser.open(&format!("{}#/{}/runs/{run}", chat.at("/console_url"), chat.at("/slug"))).await;
    browser.find("[data-run=completed]").await;
}

async fn every_page_can_be_used(chat: &Chat, browser: &Browser) {
    for page in ["home", "calls", "automations", "runs", "approvals", "tools", "usage"] {
        browser.open(&format!("{}#/{}/{page}", chat.at("/console_url"), chat.at("/slug"))).await;
        browser.until(&format!("document.querySelector('[data-place={page}][aria-current=page]')")).await;
        browser.until("document.querySelector('#main table')").await;
        everybody_can_use(browser).await;
    }
}
