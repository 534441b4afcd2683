//! The console's editor of automations in a browser: a definition is written, repaired, saved and activated, with keys only.

use reqwest::Method;
use serde_json::{Value, json};
use tests::browser::{Browser, CONTROL, ENTER, ESCAPE, TAB};

use crate::{
    User,
    console_forms::{go_on, hold_the_saving},
    console_operator::picture,
    console_page::{complaints, everybody_can_use, sign_in_at},
    conversation::Chat,
};

const NAME: &str = "Look at the clock of Lisbon";
/// The tool's name lacks a letter.
const WRITTEN: &str = r#"{"name": "Look at the clock of Lisbon", "trigger_type": "manual", "actions": [{"id": "look", "tool": "curent_time", "parameters": {"timeZone": "Europe/Lisbon"}}], "fingerprints": {"current_time": "built-in"}}"#;
const CHECKED: &str = "document.querySelector('[data-mistakes]:not([data-mistakes=late])')";
const SELECTED: &str = "(({ value, selectionStart: from, selectionEnd: to }) => value?.slice(from, to) === '\"curent_time\"')(document.activeElement)";

pub(crate) async fn are_written(user: &User<'_>, chat: &Chat, browser: &Browser) {
    sign_in_at(chat, browser, "home").await;
    a_mistake_is_repaired_by_its_button(browser).await;
    it_is_saved_and_activated(browser).await;
    let address = it_is_run_by_hand(user, browser).await;
    another_version_is_a_conflict(user, browser).await;
    every_template_can_be_used(chat, browser).await;
    it_is_deleted(user, browser, &address).await;
    browser.click("#sign-out").await;
    browser.find("#sign-in").await;
    // Saving over another version is refused, and the page may read the deleted automation once more.
    let deleted = format!("/automations/{}", id_in(&address));
    let is_known = |complaint: &str| {
        complaint.contains("status of 409") || (complaint.contains("status of 404") && complaint.contains(&deleted))
    };
    let mut complaints = complaints(chat, browser).await;
    complaints.retain(|complaint| !is_known(complaint));
    assert_eq!(complaints, [""; 0]);
}

async fn a_mistake_is_repaired_by_its_button(browser: &Browser) {
    browser.press("gw").await;
    browser.open_with(TAB, "#new-automation").await;
    browser.reach(TAB, "#definition").await;
    browser.press_with(CONTROL, "a").await;
    browser.press(WRITTEN).await;
    browser.find("[data-diagnostic=unknown_tool]").await;
    browser.find("#save-automation[aria-disabled=true]").await;
    everybody_can_use(browser).await;
    // Tab indents until Esc is pressed.
    browser.press(TAB).await;
    browser.until("document.activeElement.id === 'definition'").await;
    browser.press(ESCAPE).await;
    browser.open_with(TAB, "[data-diagnostic=unknown_tool] [data-go]").await;
    browser.until(SELECTED).await;
    browser.press(ESCAPE).await;
    browser.open_with(TAB, "[data-repair]").await;
    browser.find("[data-mistakes=none]").await;
    // The draft is still there after a reload.
    browser.reload().await;
    browser.find("[data-kept]").await;
    browser.until("document.querySelector('#definition').value.includes('\"current_time\"')").await;
}

async fn it_is_saved_and_activated(browser: &Browser) {
    browser.reach(TAB, "#definition").await;
    hold_the_saving(browser).await;
    browser.press_with(CONTROL, "s").await;
    browser.until("window.goOn").await;
    browser.until("document.querySelector('#definition').readOnly").await;
    go_on(browser).await;
    browser.find("[data-saved='1']").await;
    everybody_can_use(browser).await;
    browser.reach(TAB, "#activate").await;
    // The second press comes before the page knows of the first one's effect.
    browser.press(&format!("{ENTER}{ENTER}")).await;
    browser.find("[data-automation=active]").await;
    assert_eq!(browser.texts("#main [role=alert]").await, [""; 0]);
    browser.press("gw").await;
    browser.open_with("j", "a[data-row]").await;
    browser.find("[data-automation=active]").await;
    assert_eq!(browser.texts("#main h1").await, [NAME]);
}

/// A second press starts no second run; the automation's address.
async fn it_is_run_by_hand(user: &User<'_>, browser: &Browser) -> String {
    let address = browser.address().await;
    browser.open_with(TAB, "#run").await;
    browser.until("document.querySelector('#start-trigger_data')?.value === '{}'").await;
    everybody_can_use(browser).await;
    browser.reach(TAB, "#start").await;
    browser.press(&format!("{ENTER}{ENTER}")).await;
    browser.find("[data-run=completed]").await;
    let about = &user.stack.description;
    let path = format!("/api/{}/automations/{}/runs", about.slug, id_in(&address));
    let (_, runs) = user.send(Method::GET, &path, Some(&about.token), None).await;
    assert_eq!(runs["items"].as_array().unwrap().len(), 1, "{runs}");
    browser.open(&address).await;
    address
}

fn id_in(address: &str) -> &str {
    address.split("/automations/").nth(1).and_then(|rest| rest.split('?').next()).unwrap()
}

/// The text stays, the differences are shown, and the text becomes the next version.
async fn another_version_is_a_conflict(user: &User<'_>, browser: &Browser) {
    browser.open_with(TAB, "#edit-automation").await;
    browser.reach(TAB, "#definition").await;
    browser.press(" ").await;
    browser.until(CHECKED).await;
    let address = browser.address().await;
    let id = id_in(&address);
    hold_the_saving(browser).await;
    browser.press_with(CONTROL, "s").await;
    browser.until("window.goOn").await;
    another_version(user, id).await;
    // Esc counts also while the field cannot be written.
    browser.press(ESCAPE).await;
    go_on(browser).await;
    browser.find("[data-conflict='2']").await;
    browser.until("!document.querySelector('#definition').readOnly").await;
    browser.open_with(TAB, "#conflict-see").await;
    browser.until("document.querySelector('[data-conflict] .diff').innerText.includes('/description')").await;
    everybody_can_use(browser).await;
    browser.open_with(TAB, "#conflict-keep").await;
    browser.until("!document.querySelector('[data-conflict]')").await;
    browser.press_with(CONTROL, "s").await;
    // It is the content of the first version.
    browser.until("location.hash.endsWith('?version=1')").await;
}

async fn another_version(user: &User<'_>, id: &str) {
    let about = &user.stack.description;
    let path = format!("/api/{}/automations/{id}", about.slug);
    let (_, now) = user.send(Method::GET, &path, Some(&about.token), None).await;
    let mut definition = now["definition"].clone();
    definition["description"] = json!("As somebody else writes it.");
    let request = user.http.put(format!("{}{path}", about.api_url)).bearer_auth(&about.token);
    let saved = request.header("if-match", format!("\"{}\"", now["revision"])).json(&definition).send().await.unwrap();
    let saved: Value = saved.json().await.unwrap();
    assert_eq!(saved["automation"]["version"], 2, "{saved}");
}

async fn every_template_can_be_used(chat: &Chat, browser: &Browser) {
    for (template, mistakes) in [("webhook", "1 warning"), ("schedule", "1 warning"), ("prompt", "none")] {
        let address = format!("{}#/{}/automations/new?template={template}", chat.at("/console_url"), chat.at("/slug"));
        browser.open(&address).await;
        browser.find(&format!("[data-mistakes='{mistakes}']")).await;
        browser.click("[data-help=fields] summary").await;
        browser.until("document.querySelector('[data-help=fields] dl')?.innerText.includes('trigger_config')").await;
        everybody_can_use(browser).await;
        if template == "webhook" {
            picture(browser, "editor").await;
        }
    }
}

async fn it_is_deleted(user: &User<'_>, browser: &Browser, address: &str) {
    browser.open(address).await;
    browser.find("#delete-automation").await;
    everybody_can_use(browser).await;
    browser.click("#delete-automation").await;
    browser.click("#delete-automation-yes").await;
    browser.until("location.hash.endsWith('/automations')").await;
    let about = &user.stack.description;
    let path = format!("/api/{}/automations/{}", about.slug, id_in(address));
    let (status, gone) = user.send(Method::GET, &path, Some(&about.token), None).await;
    assert_eq!(status, 404, "{gone}");
}
