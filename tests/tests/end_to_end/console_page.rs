//! The console in a browser: a person signs in and chats.

use std::path::Path;

use serde_json::json;
use tests::browser::Browser;

use crate::conversation::{Chat, installed, no_tool, plan, says, words};

const ANSWER: &str = "[data-message-role=assistant]";

pub(crate) async fn serves_a_person(chat: &Chat, browser: &Browser) {
    sign_in(chat, browser).await;
    growing_answer(chat, browser).await;
    widget(chat, browser).await;
    consent(chat, browser).await;
    receipt(chat, browser).await;
    reloaded(chat, browser).await;
    second_tab(chat, browser).await;
    everybody_can_use(browser).await;
    stopped(chat, browser).await;
    kept(browser).await;
    browser.click("#sign-out").await;
    only_the_button_signs_in(browser).await;
    assert_eq!(complaints(chat, browser).await, [""; 0]);
}

async fn sign_in(chat: &Chat, browser: &Browser) {
    sign_in_at(chat, browser, "chat").await;
    browser.find("#message").await;
}

/// Opens a page of the organization and signs in. The browser comes back to the address that was opened, and this keeps neither the
/// code nor any other part of the sign-in.
pub(crate) async fn sign_in_at(chat: &Chat, browser: &Browser, page: &str) {
    let address = format!("{}#/{}/{page}", chat.at("/console_url"), chat.at("/slug"));
    browser.open(&address).await;
    browser.click("#sign-in").await;
    browser.write("#username", chat.at("/console_user/email")).await;
    browser.enter("input[name=password]", chat.at("/console_user/password")).await;
    browser.find("#main").await;
    assert_eq!(browser.address().await, address);
}

/// Sends a message after the previous answer's stream has ended; until then the button is disabled.
async fn ask(browser: &Browser, message: &str) {
    browser.write("#message", message).await;
    browser.click("#send:not([aria-disabled=true])").await;
}

async fn growing_answer(chat: &Chat, browser: &Browser) {
    let answer = "It is a quarter past nine in Lisbon, an hour behind Madrid. Shall I look up anything else for you?";
    chat.script(&[plan("current_time", &json!({"timeZone": "Europe/Lisbon"})), says(answer, 250)]).await;
    browser.watch(ANSWER).await;
    ask(browser, "What time is it in Lisbon?").await;
    // The tool call is shown before the answer.
    browser.find("[data-tool-call][data-tool=current_time]").await;
    browser.until_shown(answer).await;
    let grew = browser.grew().await;
    // An answer that comes whole grows once; a busy browser shows several pieces at a time.
    assert!(grew > 2, "the answer grew {grew} times");
    browser.until("document.querySelector('[data-tool=current_time]').dataset.outcome !== 'running'").await;
}

async fn widget(chat: &Chat, browser: &Browser) {
    chat.script(&[plan(&chat.sales, &json!({})), says("Here are the sales of both years.", 0)]).await;
    ask(browser, "Show me the sales").await;
    browser.until_shown("Here are the sales of both years.").await;
    browser.until_one_shows("[data-widget=table]", &["Year", "2024"]).await;
}

async fn consent(chat: &Chat, browser: &Browser) {
    for (button, says_then, more) in [
        ("#consent-approve", "I have sent the reminder.", 1),
        ("#consent-refuse", "All right, I did not send the reminder.", 0),
    ] {
        let before = chat.sent().await;
        chat.script(&[plan(&chat.reminder, &json!({"text": "See you on Tuesday at nine"}))]).await;
        ask(browser, "Remind Ana of Tuesday, nine o'clock").await;
        browser.find(button).await;
        browser.until_shown("See you on Tuesday at nine").await;
        assert_eq!(chat.sent().await, before, "it is asked first");
        if more == 1 {
            picture(browser).await;
        }
        chat.script(&[says(says_then, 0)]).await;
        browser.click(button).await;
        browser.until_shown(says_then).await;
        assert_eq!(chat.sent().await, before + more);
    }
}

/// The answer is followed by the recorded effects, or by the statement that there were none.
async fn receipt(chat: &Chat, browser: &Browser) {
    let text = json!({"text": "12 Harbour Street, second floor"});
    chat.script(&[plan(&chat.directions, &text), says("Ana has the address now.", 0)]).await;
    ask(browser, "Send Ana the way").await;
    browser.until_shown("Ana has the address now.").await;
    let done = "[data-receipt=entries]:has([data-receipt-state=done])";
    browser.until_one_shows(done, &["+14155550123", "Text the way"]).await;
    chat.script(&[no_tool(), says("I have sent it to everybody!", 0)]).await;
    ask(browser, "And to everybody else").await;
    browser.until_shown("I have sent it to everybody!").await;
    // Earlier turns show the same statement.
    let last = "[...document.querySelectorAll('[data-receipt]')].at(-1)";
    browser.until(&format!("{last}?.innerText === 'No action was taken.'")).await;
}

/// A page reloaded during the answer follows it to its end, and no effect is repeated.
async fn reloaded(chat: &Chat, browser: &Browser) {
    let before = chat.sent().await;
    let text = json!({"text": "34 Castle Hill, first floor"});
    let answer = format!("The way is: {}and it was sent once.", "left right ".repeat(40));
    chat.script(&[plan(&chat.directions, &text), says(&answer, 60)]).await;
    let question = "Send Ana the way to the other practice";
    ask(browser, question).await;
    browser.until_shown("The way is: left right").await;
    browser.reload().await;
    browser.until_shown("and it was sent once.").await;
    browser.until("!document.querySelector('#stop')").await;
    let asked = browser.texts("[data-message-role=user]").await;
    assert_eq!(asked.iter().filter(|text| text.contains(question)).count(), 1, "{asked:?}");
    assert_eq!(chat.sent().await, before + 1);
    assert_eq!(browser.run("return sessionStorage.getItem('switchboard.unanswered')", &json!([])).await, json!("{}"));
}

/// A second tab shows the running turn of the first, and can stop it.
async fn second_tab(chat: &Chat, browser: &Browser) {
    let text = json!({"text": "56 Mill Lane, third floor"});
    chat.script(&[plan(&chat.directions, &text), says(&format!("By lift: {}", "up down ".repeat(2_000)), 40)]).await;
    ask(browser, "Send Ana the way to the third practice").await;
    browser.until_shown("By lift: up down").await;
    browser.open_tab().await;
    sign_in(chat, browser).await;
    browser.click("#thread-list button.open").await;
    browser.until_shown("Send Ana the way to the third practice").await;
    browser.find(&format!("[data-tool={}]", chat.directions)).await;
    browser.click("#stop").await;
    browser.until("!document.querySelector('#stop')").await;
    browser.first_tab().await;
    browser.until("!document.querySelector('#stop')").await;
}

/// Saves the documentation's picture to the path in `CONSOLE_PICTURE`, if set.
async fn picture(browser: &Browser) {
    if let Some(path) = std::env::var_os("CONSOLE_PICTURE") {
        browser.screenshot(Path::new(&path)).await;
    }
}

/// Asserts that there are no accessibility violations, in light and in dark.
pub(crate) async fn everybody_can_use(browser: &Browser) {
    for scheme in ["light", "dark"] {
        browser.prefer(scheme).await;
        accessible(browser, scheme).await;
    }
    browser.prefer("light").await;
}

/// Asserts that there are no accessibility violations of any impact.
pub(crate) async fn accessible(browser: &Browser, place: &str) {
    let Some(clients) = installed() else { return };
    let axe = clients.join("node_modules/axe-core/axe.min.js");
    assert_eq!(browser.accessibility(&axe).await, [], "{place}");
}

async fn stopped(chat: &Chat, browser: &Browser) {
    chat.script(&[no_tool(), says(&words(2_000), 100)]).await;
    ask(browser, "Tell me everything").await;
    browser.until_shown("word5 ").await;
    browser.click("#stop").await;
    browser.until("!document.querySelector('#stop')").await;
    let said = browser.texts(ANSWER).await.pop().unwrap_or_default();
    assert!(said.contains("word5") && !said.contains("word1999"), "{said}");
    chat.script(&[no_tool(), says("Here I am again.", 0)]).await;
    ask(browser, "Still there?").await;
    browser.until_shown("Here I am again.").await;
}

/// A reopened page shows the same conversation; a new conversation is empty.
async fn kept(browser: &Browser) {
    browser.reload().await;
    browser.until_shown("Here I am again.").await;
    let said = browser.texts(ANSWER).await.join("\n");
    assert!(said.contains("I have sent the reminder.") && said.contains("word5"), "{said}");
    browser.click("#new-thread").await;
    browser.until(&format!("!document.querySelector('{ANSWER}')")).await;
    browser.click("#thread-list button.open").await;
    browser.until_shown("Here I am again.").await;
}

/// The button has the focus, and a click beside it asks for nothing.
async fn only_the_button_signs_in(browser: &Browser) {
    browser.until("document.activeElement?.matches('button#sign-in')").await;
    let click = "
        const asks = window.fetch;
        let asked = false;
        window.fetch = () => { asked = true; return new Promise(() => {}); };
        document.getElementById('everywhere').click();
        window.fetch = asks;
        return asked;
    ";
    assert_eq!(browser.run(click, &json!([])).await, false);
}

/// The browser's complaints, without those about the sign-in form, which is not ours.
pub(crate) async fn complaints(chat: &Chat, browser: &Browser) -> Vec<String> {
    let mut complaints = browser.complaints().await;
    complaints.retain(|complaint| !complaint.contains(chat.at("/endpoint_url")));
    complaints
}
