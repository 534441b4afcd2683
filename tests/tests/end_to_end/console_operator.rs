//! The console in a browser, as an operator of calls and automations uses it.

use std::{path::Path, time::Duration};

use local::standins::twilio::IncomingCall;
use reqwest::Method;
use serde_json::{Value, json};
use tests::browser::{Browser, ENTER, TAB};

use crate::{
    User,
    console_page::{complaints, everybody_can_use, sign_in_at},
    conversation::Chat,
};

pub(crate) async fn is_served(user: &User<'_>, chat: &Chat, browser: &Browser) {
    let call = call_with_a_failed_tool(user, "+14155550142").await;
    let asks = json!({"reason": "Nobody looks at the clock unasked."});
    let run = run_of(user, "Look at the clock", json!([look("look", "Europe/Lisbon", &asks)])).await;
    let unknown_zone =
        json!([look("here", "Europe/Lisbon", &Value::Null), look("there", "Nowhere/Land", &Value::Null)]);
    let failed = run_of(user, "Look at two clocks", unknown_zone).await;
    sign_in_at(chat, browser, "home").await;
    finds_the_failed_request(browser, &call).await;
    sees_the_receipt(user, chat, browser, &call).await;
    sees_what_no_tool_did(user, chat, browser).await;
    allows_what_waits(chat, browser, &run).await;
    decides_about_the_request_that_was_read(user, chat, browser).await;
    every_page_can_be_used(chat, browser).await;
    filters_stand_in_the_address(chat, browser, &call).await;
    a_typed_filter_stays(user, chat, browser).await;
    members_come_and_go(user, chat, browser).await;
    events_are_replayed(chat, browser).await;
    goes_on_where_it_failed(chat, browser, &failed).await;
    a_chosen_step_comes_into_view(chat, browser, &failed).await;
    forgets_a_value(user, chat, browser).await;
    data_of_a_number_is_erased(chat, browser).await;
    browser.click("#sign-out").await;
    browser.find("#sign-in").await;
    assert_eq!(complaints(chat, browser).await, [""; 0]);
}

/// A call comes in and the agent calls a tool whose service does not know the address; the id of the call.
async fn call_with_a_failed_tool(user: &User<'_>, caller: &str) -> String {
    let about = &user.stack.description;
    let crm = &about.standins.crm;
    let tool = json!({
        "type": "api_request", "label": "Book an appointment", "method": "POST", "url": format!("{crm}/appointments"),
        "body": {"day": {"mode": "ai", "prompt": "The day"}},
    });
    let tool = user.attached(&tool).await;
    let incoming = IncomingCall::new(&about.twilio_account_sid, caller, &about.phone_number);
    let url = format!("{}/api/phone-number/{}/incoming", about.api_url, about.phone_number_id);
    let answered = incoming.signed(&url, &about.twilio_auth_token).post().await.unwrap();
    let twiml = answered.twiml().unwrap();
    let call = twiml.split("/transport").next().and_then(|start| start.rsplit('/').next()).unwrap().to_owned();
    let answer = user.call_in(&call, &tool, json!({"body_day": "the thirtieth of February"})).await;
    assert_eq!(answer["success"], false, "{answer}");
    call
}

fn look(id: &str, zone: &str, approval: &Value) -> Value {
    json!({"id": id, "tool": "current_time", "parameters": {"timeZone": zone}, "approval": approval})
}

/// Of the stand-in for the LLM.
const LLM_KEY: &str = "llm-local-key";

/// The button, once it acts.
const ALLOW: &str = "#allow:not([aria-disabled])";

/// Starts a run of a new automation with these actions; its id.
async fn run_of(user: &User<'_>, name: &str, actions: Value) -> String {
    let ask = async |path: &str, body: Value| {
        let about = &user.stack.description;
        let path = format!("/api/{}/automations{path}", about.slug);
        let (status, answer) = user.send(Method::POST, &path, Some(&about.token), Some(&body)).await;
        assert!(status.is_success(), "{path}: {answer}");
        answer
    };
    let definition = json!({
        "name": name, "trigger_type": "manual", "actions": actions,
        "fingerprints": {"current_time": "built-in", "remember": "built-in"},
    });
    let automation = ask("", definition).await["automation"].clone();
    let id = automation["id"].as_str().unwrap();
    ask(&format!("/{id}/activate"), json!({"version": automation["version"]})).await;
    ask(&format!("/{id}/run"), json!({})).await["id"].as_str().unwrap().to_owned()
}

/// With keys only: Enter opens the call with the tool's request, and then the request that the tool would send now.
async fn finds_the_failed_request(browser: &Browser, call: &str) {
    browser.find("[data-need=failed]").await;
    picture(browser, "home").await;
    browser.open_with("j", &format!("[data-need=failed] a[href*='{call}']")).await;
    browser.find(&format!("[data-call='{call}'] [data-failures]")).await;
    browser.until("document.querySelector('#asked [data-request]')?.innerText.includes('thirtieth of February')").await;
    assert_eq!(browser.texts("#asked [data-status=failed]").await, ["Failed"]);
    browser.until_shown("Book an appointment").await;
    browser.until_shown("Front desk").await;
    picture(browser, "call").await;
    browser.open_with(TAB, "[data-now-link]").await;
    browser.until("document.querySelector('[data-now=ready]')?.innerText.includes('thirtieth of February')").await;
    let given = browser.texts("[data-execution-view] [data-request] [data-state=used]").await;
    assert!(given.iter().any(|row| row.contains("body_day")), "{given:?}");
    everybody_can_use(browser).await;
    picture(browser, "execution").await;
}

/// The call ends; its page lists the tool that failed among the effects.
async fn sees_the_receipt(user: &User<'_>, chat: &Chat, browser: &Browser, call: &str) {
    let about = &user.stack.description;
    let report = json!({"message": {"type": "end-of-call-report", "endedReason": "customer-ended-call", "cost": 0.07, "call": {"id": call}}});
    let bearer = Some(&*about.vapi_webhook_bearer);
    let (status, answer) = user.send(Method::POST, "/api/vapi/events", bearer, Some(&report)).await;
    assert!(status.is_success(), "{answer}");
    browser.open(&format!("{}#/{}/calls/{call}", chat.at("/console_url"), chat.at("/slug"))).await;
    browser.find("[data-receipt=final]").await;
    let lines = browser.texts("[data-receipt] tbody tr").await;
    let says = ["Book an appointment", "Failed", "Not declared"];
    assert!(lines.len() == 1 && says.iter().all(|says| lines[0].contains(says)), "{lines:?}");
    everybody_can_use(browser).await;
    browser.until_shown("Front desk").await;
    picture(browser, "receipt").await;
}

/// The agent of a call confirms an effect that no tool had: Home names the call, and the call's page says it.
async fn sees_what_no_tool_did(user: &User<'_>, chat: &Chat, browser: &Browser) {
    let about = &user.stack.description;
    let keys = format!("/api/{}/keys/llm", about.slug);
    let key = json!({"api_key": LLM_KEY, "base_url": about.llm_url, "verify_claims": true});
    let (status, stored) = user.send(Method::PUT, &keys, Some(&about.token), Some(&key)).await;
    assert!(status.is_success() && stored["verify_claims"] == true, "{stored}");
    let call = call_with_a_failed_tool(user, "+14155550143").await;
    let claims = json!({"claims": [{"sentence": 1, "tool": null, "line": null}]});
    chat.script(&[json!({"tool_calls": [{"name": "report_claims", "arguments": claims}]})]).await;
    let report = json!({"message": {
        "type": "end-of-call-report", "endedReason": "customer-ended-call", "call": {"id": call},
        "artifact": {"messages": [{"role": "bot", "message": "Your appointment is booked.", "time": 1.0}]},
    }});
    let bearer = Some(&*about.vapi_webhook_bearer);
    let (status, answer) = user.send(Method::POST, "/api/vapi/events", bearer, Some(&report)).await;
    assert!(status.is_success(), "{answer}");
    browser.press("gh").await;
    let need = format!("[data-need=unproven] a[href*='{call}']");
    browser.find(&need).await;
    let needs = browser.texts("[data-need=unproven]").await;
    assert!(needs.len() == 1 && needs[0].contains("The agent confirmed an effect that no tool had."), "{needs:?}");
    everybody_can_use(browser).await;
    browser.open_with("j", &need).await;
    browser.find(&format!("[data-call='{call}'] [data-unproven]")).await;
    assert_eq!(browser.texts("[data-unproven]").await, ["The agent confirmed an effect that no tool had."]);
    everybody_can_use(browser).await;
    let (status, gone) = user.send(Method::DELETE, &keys, Some(&about.token), None).await;
    assert!(status.is_success(), "{gone}");
}

/// With keys only: Enter opens the approval, `a` and Enter allow it, and the run ends.
async fn allows_what_waits(chat: &Chat, browser: &Browser, run: &str) {
    browser.press("gh").await;
    browser.open_with("j", "[data-need=pending] a").await;
    browser.until_shown("Nobody looks at the clock unasked.").await;
    browser.until("document.querySelector('.letter')?.innerText.includes('Europe/Lisbon')").await;
    browser.until("document.title.startsWith('(1) ')").await;
    browser.until_shown("Look at the clock asks").await;
    picture(browser, "approval").await;
    browser.find(ALLOW).await;
    // Both letters lead to this page: the second one chooses no button.
    browser.press("ga").await;
    browser.until("location.hash.endsWith('/approvals')").await;
    assert_eq!(browser.run("return document.activeElement.id === 'allow'", &json!([])).await, false);
    browser.find(ALLOW).await;
    browser.press("a").await;
    browser.press(ENTER).await;
    browser.find("[data-approval=approved]").await;
    browser.until("document.title.startsWith('Approvals')").await;
    browser.press("gr").await;
    browser.open_with("j", &format!("a[data-row='{run}']")).await;
    browser.find("[data-run=completed]").await;
    picture(browser, "run").await;
    // The address leads another tab to the same run.
    assert!(browser.address().await.ends_with(&format!("#/{}/runs/{run}", chat.at("/slug"))));
}

/// A decided request stays on the page, and the next takes no click before it can be read.
async fn decides_about_the_request_that_was_read(user: &User<'_>, chat: &Chat, browser: &Browser) {
    let about = &user.stack.description;
    let ask = async |method: Method, path: &str| {
        let path = format!("/api/{}/approvals{path}", about.slug);
        let (status, answer) = user.send(method, &path, Some(&about.token), None).await;
        assert!(status.is_success(), "{path}: {answer}");
        answer
    };
    let reasons = ["The first question.", "The second question.", "The third question."];
    let mut ids = Vec::new();
    for reason in reasons {
        run_of(user, reason, json!([look("look", "Europe/Lisbon", &json!({"reason": reason}))])).await;
        let id = async || {
            let pending = ask(Method::GET, "?status=pending").await;
            let found = pending["items"].as_array().unwrap().iter().find(|asked| asked["reason"] == reason).cloned();
            found.map(|asked| asked["id"].as_str().unwrap().to_owned())
        };
        let found = async {
            loop {
                match id().await {
                    Some(id) => break id,
                    None => tokio::time::sleep(Duration::from_millis(50)).await,
                }
            }
        };
        ids.push(tokio::time::timeout(Duration::from_secs(30), found).await.unwrap());
    }
    let shows = async |reason: &str, status: &str| {
        let css = format!("document.querySelector('[data-approval={status}] header')?.innerText.includes('{reason}')");
        browser.until(&css).await;
    };
    browser.open(&format!("{}#/{}/approvals", chat.at("/console_url"), chat.at("/slug"))).await;
    shows(reasons[0], "pending").await;
    ask(Method::POST, &format!("/{}/approve", ids[0])).await;
    shows(reasons[0], "approved").await;
    everybody_can_use(browser).await;
    browser.open_with(TAB, "[data-following]").await;
    shows(reasons[1], "pending").await;
    browser.click(ALLOW).await;
    shows(reasons[1], "approved").await;
    browser.find("[data-following]").await;
    let next = browser.run("return document.querySelector('[data-following]').href", &json!([])).await;
    assert!(next.as_str().unwrap().ends_with(&ids[2]), "{next} was decided");
    // A click at the moment at which the third appears.
    let click = "new MutationObserver((_, watch) => {
        const allow = document.querySelector('[data-approval=pending] #allow');
        if (!allow) return;
        watch.disconnect();
        allow.click();
        window.clicked = true;
      }).observe(document.body, { childList: true, subtree: true });";
    browser.run(click, &json!([])).await;
    browser.open_with(TAB, "[data-following]").await;
    browser.until("window.clicked").await;
    shows(reasons[2], "pending").await;
    browser.click(ALLOW).await;
    shows(reasons[2], "approved").await;
}

async fn every_page_can_be_used(chat: &Chat, browser: &Browser) {
    let pages = [
        "home",
        "calls",
        "automations",
        "runs",
        "events",
        "approvals",
        "tools",
        "usage",
        "members",
        "audit",
        "erasure",
    ];
    for page in pages {
        browser.open(&format!("{}#/{}/{page}", chat.at("/console_url"), chat.at("/slug"))).await;
        browser.until(&format!("document.querySelector('[data-place={page}][aria-current=page]')")).await;
        browser.until("document.querySelector('#main :is(table, form.form, [data-empty])')").await;
        browser.until("!document.querySelector('[data-failed]')").await;
        everybody_can_use(browser).await;
        if page == "automations" {
            picture(browser, page).await;
        }
    }
}

/// A filter is part of the address, and a list without rows says so.
async fn filters_stand_in_the_address(chat: &Chat, browser: &Browser, call: &str) {
    let events = format!("{}#/{}/events", chat.at("/console_url"), chat.at("/slug"));
    browser.open(&events).await;
    browser.reach(TAB, "[data-filter=matched]").await;
    browser.press("B").await;
    browser.find("[data-clear]").await;
    assert_eq!(browser.address().await, format!("{events}?matched=false"));
    browser.click("[data-clear]").await;
    browser.until("!document.querySelector('[data-clear]')").await;
    assert_eq!(browser.address().await, events);
    let calls = format!("{}#/{}/calls", chat.at("/console_url"), chat.at("/slug"));
    browser.open(&format!("{calls}?failed=true&since=24h&number=%2B1+415-555+0142")).await;
    browser.find(&format!("[data-row='{call}']")).await;
    browser.find("td [data-status=failed]").await;
    browser.open(&format!("{calls}?failed=true&number=%2B14155550199")).await;
    browser.find("[data-empty]").await;
}

/// A new call is announced while a number is typed.
async fn a_typed_filter_stays(user: &User<'_>, chat: &Chat, browser: &Browser) {
    let calls = format!("{}#/{}/calls", chat.at("/console_url"), chat.at("/slug"));
    browser.open(&calls).await;
    browser.find("[data-row]").await;
    browser.reach(TAB, "[data-filter=number]").await;
    browser.press("+1415").await;
    let call = call_with_a_failed_tool(user, "+14155550144").await;
    browser.find("[data-fresh]").await;
    browser.until("document.querySelector('[data-filter=number]').value === '+1415'").await;
    browser.press(&format!("5550144{ENTER}")).await;
    browser.find(&format!("[data-row='{call}']")).await;
    assert_eq!(browser.address().await, format!("{calls}?number=%2B14155550144"));
}

/// A new member is listed at once and a removed one is not. A role is chosen with keys, then saved; a refused one is taken back.
async fn members_come_and_go(user: &User<'_>, chat: &Chat, browser: &Browser) {
    let members = format!("{}#/{}/members", chat.at("/console_url"), chat.at("/slug"));
    browser.open(&format!("{members}/new")).await;
    browser.find("[data-row]").await;
    browser.enter("#new-member-user_id", "auth0|new").await;
    let row = "[data-row='auth0|new']";
    browser.find(row).await;
    browser.reach(TAB, "#member-role").await;
    browser.press("\u{E013}\u{E013}").await;
    browser.until("document.querySelector('#member-role').value === 'viewer'").await;
    browser.open_with(TAB, "#member-save").await;
    browser.until_shown("Saved. It holds with their next request.").await;
    let path = format!("/api/{}/members", user.stack.description.slug);
    let (_, page) = user.send(Method::GET, &path, Some(&user.stack.description.token), None).await;
    let known = page["items"].as_array().unwrap().iter().find(|member| member["user_id"] == "auth0|new").unwrap();
    assert_eq!(known["role"], "viewer", "{known}");
    everybody_can_use(browser).await;
    let refuse = "
        const asks = window.fetch;
        const refused = () => new Response('{\"detail\": \"Only owners make owners.\"}', { status: 403 });
        window.fetch = (address, asked) => (asked?.method === 'PATCH' ? Promise.resolve(refused()) : asks(address, asked));
    ";
    browser.run(refuse, &json!([])).await;
    browser.write("#member-role", "o").await;
    browser.click("#member-save").await;
    browser.until_shown("Only owners make owners.").await;
    browser.until("document.querySelector('#member-role').value === 'viewer'").await;
    browser.click("#remove-member").await;
    browser.click("#remove-member-yes").await;
    browser.until(&format!("document.querySelector('[data-row]') && !document.querySelector(\"{row}\")")).await;
}

/// A plan of a replay is made, and cancelled before it starts.
async fn events_are_replayed(chat: &Chat, browser: &Browser) {
    let replay = format!("{}#/{}/events?replay=", chat.at("/console_url"), chat.at("/slug"));
    browser.open(&format!("{replay}all")).await;
    browser.find("[data-empty]").await;
    everybody_can_use(browser).await;
    browser.open(&format!("{replay}new&since=24h")).await;
    browser.click("#plan-replay").await;
    browser.find("[data-replay=planned]").await;
    everybody_can_use(browser).await;
    browser.click("#replay-cancel").await;
    browser.click("#replay-cancel-yes").await;
    browser.find("[data-replay=cancelled]").await;
    browser.open(&format!("{replay}all")).await;
    browser.find("td [data-status=cancelled]").await;
}

/// The plan names the kept results, and the new run leads back to the failed one.
async fn goes_on_where_it_failed(chat: &Chat, browser: &Browser, run: &str) {
    browser.open(&format!("{}#/{}/runs/{run}", chat.at("/console_url"), chat.at("/slug"))).await;
    browser.click("#retry").await;
    browser.find("[data-retry=planned] [data-plan=kept]").await;
    assert_eq!(browser.texts("[data-plan=runs] th").await, ["current_time there"]);
    everybody_can_use(browser).await;
    picture(browser, "retry").await;
    browser.click("#retry-start").await;
    browser
        .find(&format!("[data-run]:not([data-run=queued],[data-run=running]) a[data-retry-link][href$='{run}']"))
        .await;
    browser.until_shown("kept from an earlier run").await;
    everybody_can_use(browser).await;
}

/// On a phone the step stands below the list.
async fn a_chosen_step_comes_into_view(chat: &Chat, browser: &Browser, run: &str) {
    browser.resize(390, 800).await;
    browser.open(&format!("{}#/{}/runs/{run}", chat.at("/console_url"), chat.at("/slug"))).await;
    browser.find("a[data-row=here]").await;
    browser.run("scrollTo(0, 0)", &json!([])).await;
    let top = "document.querySelector('.pane').getBoundingClientRect().top";
    browser.until(&format!("{top} > innerHeight / 2")).await;
    browser.click("a[data-row=here]").await;
    browser.until(&format!("document.activeElement.matches('.pane') && {top} > -1 && {top} < innerHeight")).await;
    browser.resize(1100, 1200).await;
}

/// An automation that acts once per customer shows the value, which its page deletes after a question.
async fn forgets_a_value(user: &User<'_>, chat: &Chat, browser: &Browser) {
    let about = &user.stack.description;
    let key = "offer ada <b>2026-11</b>";
    let mark = json!([{"id": "mark", "tool": "remember", "parameters": {"key": key, "if_absent": true}}]);
    let run = run_of(user, "Offer once", mark).await;
    let path = format!("/api/{}/runs/{run}", about.slug);
    let (_, run) = user.send(Method::GET, &path, Some(&about.token), None).await;
    let automation = run["automation_id"].as_str().unwrap();
    browser.open(&format!("{}#/{}/automations/{automation}", chat.at("/console_url"), chat.at("/slug"))).await;
    browser.until(&format!("document.querySelector('[data-remembered] bdi')?.innerText === '{key}'")).await;
    everybody_can_use(browser).await;
    browser.open_with(TAB, "#forget-0").await;
    browser.click("#forget-0-yes").await;
    browser.until("!document.querySelector('[data-remembered]')").await;
}

/// A number that is typed twice is erased, and the page says how many rows that were.
async fn data_of_a_number_is_erased(chat: &Chat, browser: &Browser) {
    browser.open(&format!("{}#/{}/erasure", chat.at("/console_url"), chat.at("/slug"))).await;
    browser.write("#erase-number", "+1 415 555 0142").await;
    browser.write("#erase-again", "+1 415 555 0143").await;
    browser.until_shown("The two numbers differ.").await;
    browser.find("#erase[aria-disabled=true]").await;
    browser.enter("#erase-again", "\u{E003}2").await;
    browser.find("[data-erased=complete]").await;
    let counts = browser.texts("[data-erased] tbody tr").await;
    assert!(counts.iter().any(|row| row.starts_with("Calls") && !row.ends_with('0')), "{counts:?}");
}

/// A picture of the documentation, which is made anew with `UPDATE` in the environment.
pub(crate) async fn picture(browser: &Browser, name: &str) {
    if std::env::var_os("UPDATE").is_some() {
        browser.resize(1280, 800).await;
        let folder = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/console"));
        std::fs::create_dir_all(folder).unwrap();
        browser.screenshot(&folder.join(format!("{name}.png"))).await;
    }
}
