//! The console's forms in a browser: tools, knowledge and hooks are made, mostly by keyboard.

use reqwest::Method;
use serde_json::{Value, json};
use tests::browser::{Browser, ENTER, TAB};

use crate::{
    User,
    console_page::{complaints, everybody_can_use, sign_in_at},
    conversation::Chat,
};

const DOWN: &str = "\u{E015}";
const LABEL: &str = "Confirm the visit";
const TEXT: &str = "We expect you on Tuesday at nine.";

pub(crate) async fn are_filled_in(user: &User<'_>, chat: &Chat, browser: &Browser) {
    sign_in_at(chat, browser, "home").await;
    a_tool_is_made(browser).await;
    everybody_can_use(browser).await;
    let tool = it_is_attached(user, browser).await;
    it_is_called(user, browser, &tool).await;
    a_table_is_loaded(user, chat, browser).await;
    a_hook_is_made(chat, browser).await;
    a_deletion_keeps_the_focus_in_the_page(user, chat, browser).await;
    a_number_is_on_the_do_not_call_list(chat, browser).await;
    nothing_is_typed_while_a_form_is_saved(chat, browser).await;
    a_saved_form_leads_nobody_back(chat, browser).await;
    a_draft_outlives_what_others_save(user, chat, browser, &tool).await;
    a_list_shows_what_it_saves(chat, browser).await;
    a_knowledge_base_is_chosen_before_it_is_attached(chat, browser).await;
    every_page_can_be_used(chat, browser).await;
    browser.click("#sign-out").await;
    browser.find("#sign-in").await;
    // The API refuses an incomplete dry run, and a version that others have replaced.
    let mut complaints = complaints(chat, browser).await;
    let known = ["status of 422", "status of 409", "[DOM]"];
    complaints.retain(|complaint| !known.iter().any(|known| complaint.contains(known)));
    assert_eq!(complaints, [""; 0]);
}

/// By keyboard alone: the problem at its field, the draft after a reload, the dry run beside it.
async fn a_tool_is_made(browser: &Browser) {
    browser.press("gt").await;
    browser.reach(TAB, "#new-tool").await;
    browser.press(ENTER).await;
    browser.reach(TAB, "#tool-recipients-value").await;
    browser.press("{{caller_phone_number}}").await;
    browser.reach(TAB, "#tool-text-kind").await;
    browser.press(DOWN).await;
    browser.reach(TAB, "#tool-text-prompt").await;
    browser.press("What the visit is about").await;
    browser.reach(TAB, "[data-save]").await;
    browser.press(ENTER).await;
    browser.find("[data-field=label] [data-problem]").await;
    browser.until("document.activeElement.id === 'tool-label'").await;
    browser.press(LABEL).await;
    browser.reload().await;
    browser.find("[data-kept]").await;
    browser.until(&format!("document.querySelector('#tool-label').value === '{LABEL}'")).await;
    browser.reach(TAB, "#trial-text").await;
    browser.press(TEXT).await;
    browser.find("[data-trial=ready]").await;
    browser.until(&format!("document.querySelector('[data-request]')?.innerText.includes('{TEXT}')")).await;
    browser.until_shown("+14155550101").await;
}

/// Saves the tool and attaches it to the agent; the tool.
async fn it_is_attached(user: &User<'_>, browser: &Browser) -> Value {
    browser.reach(TAB, "[data-save]").await;
    browser.press(ENTER).await;
    browser.find("[data-tool-view]").await;
    browser.reach(TAB, "#tool-agents-choice").await;
    browser.press(DOWN).await;
    browser.reach(TAB, "#tool-agents-attach").await;
    browser.press(ENTER).await;
    browser.find("[data-attachments=tool-agents] [data-attached]").await;
    let about = &user.stack.description;
    let (_, tools) =
        user.send(Method::GET, &format!("/api/{}/tools?attached=true", about.slug), Some(&about.token), None).await;
    let tool = tools["items"].as_array().unwrap().iter().find(|tool| tool["label"] == LABEL).unwrap();
    tool.clone()
}

async fn it_is_called(user: &User<'_>, browser: &Browser, tool: &Value) {
    let answer = user.call(tool, json!({"text": TEXT})).await;
    assert_eq!(answer["success"], true, "{answer}");
    assert_eq!(user.stack.twilio.messages().last().unwrap().body, TEXT);
    browser.click("[data-fresh], a[data-row]").await;
    browser.find("[data-tool-view] [data-status=succeeded]").await;
    // An execution that is not among the rows is not shown as another one.
    let address = browser.address().await;
    let other = uuid::Uuid::now_v7();
    browser.open(&format!("{}?execution={other}", address.split('?').next().unwrap())).await;
    browser.find(&format!("[data-tool-view] .pane a[href*='executions/{other}']")).await;
    assert_eq!(browser.texts(".pane [data-request]").await, [""; 0]);
}

/// A row that is wrong is named, the others are loaded.
async fn a_table_is_loaded(user: &User<'_>, chat: &Chat, browser: &Browser) {
    let about = &user.stack.description;
    let base = json!({"name": "Homes", "fields": [{"name": "price", "type": "number"}]});
    let path = format!("/api/{}/knowledge-bases", about.slug);
    let (status, base) = user.send(Method::POST, &path, Some(&about.token), Some(&base)).await;
    assert_eq!(status, 201, "{base}");
    let table = std::env::temp_dir().join(format!("switchboard-{}.csv", uuid::Uuid::now_v7()));
    std::fs::write(&table, "id,price,text\nH-1,450000,House\nH-2,much,Flat\n").unwrap();
    let id = base["id"].as_str().unwrap();
    browser.open(&format!("{}#/{}/knowledge/{id}", chat.at("/console_url"), chat.at("/slug"))).await;
    browser.write("#load-file", table.to_str().unwrap()).await;
    browser.click("#load:not([aria-disabled])").await;
    browser.find("[data-loaded='1']").await;
    let wrong = browser.texts("[data-refused-rows] tbody tr").await;
    assert!(wrong.len() == 1 && wrong[0].starts_with('3') && wrong[0].contains("price"), "{wrong:?}");
    browser.find("[data-base='1']").await;
    everybody_can_use(browser).await;
    std::fs::remove_file(table).unwrap();
}

/// Its secret is shown once.
async fn a_hook_is_made(chat: &Chat, browser: &Browser) {
    let hooks = format!("{}#/{}/hooks", chat.at("/console_url"), chat.at("/slug"));
    browser.open(&format!("{hooks}/new")).await;
    browser.until("document.querySelector('#hooks-service-list option[value=Webhooks]')").await;
    browser.write("#hooks-service", "Webhooks").await;
    browser.enter("#hooks-label", "Our shop").await;
    browser.find("[data-hook=active]").await;
    browser.until("document.querySelector('#shown-secret')?.value.startsWith('whsec_')").await;
    browser.until("document.querySelector('#hook-url').value.includes('/api/hooks/')").await;
    everybody_can_use(browser).await;
    browser.reload().await;
    browser.find("[data-hook=active]").await;
    browser.until("!document.querySelector('#shown-secret')").await;
}

/// With keys: the question goes, the deletion is told, and the focus is in the page.
async fn a_deletion_keeps_the_focus_in_the_page(user: &User<'_>, chat: &Chat, browser: &Browser) {
    let about = &user.stack.description;
    let hook = json!({"service": "Webhooks", "label": "Closed shop"});
    let (status, hook) =
        user.send(Method::POST, &format!("/api/{}/hooks", about.slug), Some(&about.token), Some(&hook)).await;
    assert_eq!(status, 201, "{hook}");
    let id = hook["id"].as_str().unwrap();
    browser.open(&format!("{}#/{}/hooks/{id}", chat.at("/console_url"), chat.at("/slug"))).await;
    browser.open_with(TAB, "#delete-hook").await;
    browser.open_with(TAB, "#delete-hook-yes").await;
    browser.until("location.hash.endsWith('/hooks') && document.activeElement.id === 'main'").await;
    browser.until("document.querySelector('#done').textContent === 'Done: Delete this hook.'").await;
    browser.until("!document.querySelector('dialog') && !document.body.innerText.includes('Closed shop')").await;
    everybody_can_use(browser).await;
}

/// Looked up, added, found again, and taken off.
async fn a_number_is_on_the_do_not_call_list(chat: &Chat, browser: &Browser) {
    let lookup =
        |number: &str| format!("{}#/{}/donotcall?number=%2B{number}", chat.at("/console_url"), chat.at("/slug"));
    browser.open(&lookup("14155550177")).await;
    browser.until_shown("It is not on the list").await;
    everybody_can_use(browser).await;
    browser.click("[data-empty] a").await;
    browser.until("document.querySelector('#donotcall-phone_number')?.value === '+14155550177'").await;
    everybody_can_use(browser).await;
    browser.click("[data-save]").await;
    browser.find("[data-entry='+…77']").await;
    everybody_can_use(browser).await;
    browser.open(&lookup("14155550178")).await;
    browser.until_shown("It is not on the list").await;
    browser.open(&lookup("14155550177")).await;
    browser.click("a[data-row]").await;
    browser.click("#unlist").await;
    browser.click("#unlist-yes").await;
    browser.until_shown("It is not on the list").await;
}

/// Text typed then would be neither saved nor kept.
async fn nothing_is_typed_while_a_form_is_saved(chat: &Chat, browser: &Browser) {
    let numbers = format!("{}#/{}/numbers", chat.at("/console_url"), chat.at("/slug"));
    browser.open(&numbers).await;
    browser.click("a[data-row]").await;
    browser.until("document.querySelector('#number-wait_ms')?.value === '0'").await;
    hold_the_saving(browser).await;
    browser.enter("#number-label", " of the shop").await;
    browser.until("window.goOn").await;
    browser.press(" and more").await;
    let label = "document.querySelector('#number-label').value.endsWith(' of the shop')";
    browser
        .until(&format!("{label} && document.querySelector('form.saved[aria-busy=true] #number-label:disabled')"))
        .await;
    go_on(browser).await;
    browser
        .until(&format!("{label} && document.querySelector('form.saved:not([aria-busy]) #number-label:enabled')"))
        .await;
    browser.until_shown("of the shop").await;
}

/// The person has gone elsewhere before the answer comes.
async fn a_saved_form_leads_nobody_back(chat: &Chat, browser: &Browser) {
    let at = |place: &str| format!("{}#/{}/{place}", chat.at("/console_url"), chat.at("/slug"));
    browser.open(&at("knowledge/new")).await;
    browser.find("#knowledge-name").await;
    hold_the_saving(browser).await;
    browser.enter("#knowledge-name", "Answers").await;
    browser.until("window.goOn").await;
    // Narrow pages have the link behind "More".
    browser.run("document.querySelector('[data-place=knowledge]').click()", &json!([])).await;
    browser.until("!document.querySelector('#knowledge-name')").await;
    go_on(browser).await;
    browser.until_shown("Answers").await;
    assert_eq!(browser.address().await, at("knowledge"));
}

/// Another member saves the same row: the draft's changes are made to their version, after a reload and after a refusal.
async fn a_draft_outlives_what_others_save(user: &User<'_>, chat: &Chat, browser: &Browser, tool: &Value) {
    let about = &user.stack.description;
    let id = tool["id"].as_str().unwrap();
    let path = format!("/api/{}/tools/{id}", about.slug);
    let others_save = async |change: Value| {
        let (status, saved) = user.send(Method::PATCH, &path, Some(&about.token), Some(&change)).await;
        assert_eq!(status, 200, "{saved}");
    };
    let shows = |label: &str, description: &str| {
        format!(
            "document.querySelector('#tool-label').value === '{label}' \
             && document.querySelector('#tool-description').value === '{description}'"
        )
    };
    let write = async |css: &str, text: &str| {
        browser.find(css).await;
        browser.run("document.querySelector(arguments[0]).select()", &json!([css])).await;
        browser.write(css, text).await;
    };
    browser.open(&format!("{}#/{}/tools/{id}?edit=1", chat.at("/console_url"), chat.at("/slug"))).await;
    write("#tool-description", "Confirms it.").await;
    others_save(json!({"label": "Confirm a visit"})).await;
    browser.reload().await;
    browser.until_shown("Somebody saved another version meanwhile.").await;
    browser.until(&shows("Confirm a visit", "Confirms it.")).await;
    everybody_can_use(browser).await;
    others_save(json!({"label": LABEL})).await;
    browser.click("[data-save]").await;
    browser.until(&shows(LABEL, "Confirms it.")).await;
    browser.click("[data-save]:not([aria-disabled])").await;
    browser.find("[data-tool-view]").await;
    let (_, saved) = user.send(Method::GET, &path, Some(&about.token), None).await;
    assert_eq!((&saved["label"], &saved["description"]), (&json!(LABEL), &json!("Confirms it.")), "{saved}");
}

/// Of two rows the first is removed; a long number is kept as it was typed; a discarded draft leaves nothing.
async fn a_list_shows_what_it_saves(chat: &Chat, browser: &Browser) {
    let address = format!("{}#/{}/tools/new?type=api_request", chat.at("/console_url"), chat.at("/slug"));
    browser.open(&address).await;
    browser.click(".made > details.further > summary").await;
    browser.click("#tool-body-add").await;
    browser.click("#tool-body-add").await;
    browser.write("#tool-body-name_2-value", "1234567890123456789").await;
    browser.click("[aria-label='Remove name_1']").await;
    browser.until("document.querySelector('#tool-body-name-0').value === 'name_2'").await;
    browser.reload().await;
    browser.find("[data-kept]").await;
    browser.until("document.querySelector('#tool-body-name_2-value').value === '1234567890123456789'").await;
    browser.click("[data-kept] button").await;
    browser.until("!document.querySelector('#tool-body-name-0')").await;
}

async fn a_knowledge_base_is_chosen_before_it_is_attached(chat: &Chat, browser: &Browser) {
    browser.open(&format!("{}#/{}/agents", chat.at("/console_url"), chat.at("/slug"))).await;
    browser.click("[data-row]").await;
    browser.reach(TAB, "#agent-base-choice").await;
    browser.press(DOWN).await;
    browser.find("#agent-base-attach:not([aria-disabled])").await;
    everybody_can_use(browser).await;
}

/// Keeps the next request that saves something in the page, as `goOn`.
pub(crate) async fn hold_the_saving(browser: &Browser) {
    let hold = "
        const asks = window.fetch;
        window.goOn = null;
        const saves = ({ method, body } = {}) => ['PATCH', 'POST', 'PUT'].includes(method) && !String(body).includes('\"dry_run\":true');
        window.fetch = (address, asked) => {
          if (!saves(asked)) return asks(address, asked);
          window.fetch = asks;
          return new Promise((go) => { window.goOn = go; }).then(() => asks(address, asked));
        };
    ";
    browser.run(hold, &json!([])).await;
}

/// Sends the kept request.
pub(crate) async fn go_on(browser: &Browser) {
    browser.run("window.goOn()", &json!([])).await;
}

async fn every_page_can_be_used(chat: &Chat, browser: &Browser) {
    for (page, shown) in [
        ("agents", "[data-row]"),
        ("agents/new", "#agents-external_assistant_id"),
        ("numbers", "[data-row]"),
        ("numbers/new", "#numbers-twilio-auth_token[type=password]"),
        ("knowledge", "[data-row]"),
        ("knowledge/new", "#knowledge-name"),
        ("services", "[data-row]"),
        ("services/Gmail", "[data-service=connected]"),
        ("donotcall", "[data-empty]"),
        ("hooks", "[data-row]"),
        ("keys", "#llm-key-api_key[type=password]"),
        ("tools/new?type=api_request", "#tool-method"),
        ("tools/new?type=transfer_call", "[data-field=target]"),
        ("tools/new?type=pipedream_action", "#tool-pipedreamMetadata-actionKey"),
        ("tools/new?type=query", "#tool-knowledge_base_id"),
    ] {
        browser.open(&format!("{}#/{}/{page}", chat.at("/console_url"), chat.at("/slug"))).await;
        browser.find(shown).await;
        everybody_can_use(browser).await;
    }
}
