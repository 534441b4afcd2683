//! A page from CopilotKit's documentation, with our address as its `runtimeUrl`, in a browser.

use std::path::{Path, PathBuf};

use axum::{
    extract::{Request, State},
    http::{StatusCode, header::CONTENT_TYPE},
    response::{Html, IntoResponse, Response},
};
use serde_json::json;
use tests::browser::Browser;

use crate::{
    conversation::{Chat, installed, no_tool, plan, says, words},
    edge::{Files, FrontEnd},
};

const FIELD: &str = "[data-testid=copilot-chat-textarea]";
const ANSWER: &str = "[data-testid=copilot-assistant-message]";
/// While an answer is streamed, this button stops it.
const BUTTON: &str = "[data-testid=copilot-send-button]";

/// The built page; deleted on drop.
struct Page {
    directory: PathBuf,
}

impl Page {
    fn build(clients: &Path) -> Self {
        let directory = std::env::temp_dir().join(format!("switchboard-page-{}", uuid::Uuid::now_v7()));
        let page = Self { directory };
        let mut command = std::process::Command::new("node");
        let built = command.arg("page/build.mjs").arg(&page.directory).current_dir(clients).output().unwrap();
        assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
        page
    }
}

impl Drop for Page {
    fn drop(&mut self) {
        drop(std::fs::remove_dir_all(&self.directory));
    }
}

pub(crate) async fn file(State(files): State<Files>, request: Request) -> Response {
    let Some((directory, settings)) = files.lock().unwrap().clone() else {
        let page = "<!doctype html><title>A front end</title><link rel=icon href='data:,'>";
        return if request.uri().path() == "/" {
            Html(page).into_response()
        } else {
            StatusCode::NOT_FOUND.into_response()
        };
    };
    let (name, kind) = match request.uri().path() {
        "/" => ("index.html", "text/html; charset=utf-8"),
        "/page.js" => ("page.js", "text/javascript"),
        "/page.css" => ("page.css", "text/css"),
        "/settings.json" => return axum::Json(settings).into_response(),
        _ => return StatusCode::NOT_FOUND.into_response(),
    };
    ([(CONTENT_TYPE, kind)], std::fs::read(directory.join(name)).unwrap()).into_response()
}

/// Tests both of CopilotKit's transports: a path for each operation, and a single path for all.
pub(crate) async fn is_served(chat: &Chat, browser: &Browser, front_end: &FrontEnd) {
    let Some(clients) = installed() else { return };
    let page = Page::build(&clients);
    for single in [false, true] {
        let settings = json!({
            "runtimeUrl": format!("{}/copilotkit", chat.at("/stream_url")),
            "headers": {"Authorization": format!("Bearer {}", chat.at("/token"))},
            "useSingleEndpoint": single,
        });
        front_end.show(page.directory.clone(), settings);
        browser.open(&front_end.origin()).await;
        converse(chat, browser).await;
        assert_eq!(browser.complaints().await, [""; 0], "single: {single}");
    }
}

async fn converse(chat: &Chat, browser: &Browser) {
    let greeting = "Good morning from the other side of the wire! What can I do for you?";
    chat.script(&[no_tool(), says(greeting, 250)]).await;
    browser.find(FIELD).await;
    browser.watch(ANSWER).await;
    browser.enter(FIELD, "Hello").await;
    browser.until_shown(greeting).await;
    let grew = browser.grew().await;
    // An answer that comes whole grows once; a busy browser shows several pieces at a time.
    assert!(grew > 2, "the answer grew {grew} times");

    // The model calls a tool of the page, which runs it and repeats the request.
    chat.script(&[plan("paint_wall", &json!({"colour": "blue"})), says("Your wall is blue now.", 0)]).await;
    browser.enter(FIELD, "Paint my wall blue").await;
    browser.until_shown("Your wall is blue now.").await;
    assert_eq!(browser.texts("#wall").await, ["blue"]);

    // A tool with an effect waits for the person.
    for (button, says_then, more) in
        [("#refuse", "All right, I did not send it.", 0), ("#approve", "I have sent the reminder.", 1)]
    {
        let before = chat.sent().await;
        chat.script(&[plan(&chat.reminder, &json!({"text": "See you at nine"}))]).await;
        browser.enter(FIELD, "Remind her that we meet at nine").await;
        browser.find(button).await;
        assert_eq!(chat.sent().await, before);
        chat.script(&[says(says_then, 0)]).await;
        browser.click(button).await;
        browser.until_shown(says_then).await;
        assert_eq!(chat.sent().await, before + more);
    }

    // After the stop the answer no longer grows.
    chat.script(&[no_tool(), says(&words(2_000), 100)]).await;
    browser.enter(FIELD, "Tell me everything").await;
    browser.until_shown("word5 ").await;
    browser.click(BUTTON).await;
    browser.until("!document.querySelector('[data-testid=copilot-loading-cursor]')").await;
    chat.script(&[no_tool(), says("Here I am again.", 0)]).await;
    browser.enter(FIELD, "Still there?").await;
    browser.until_shown("Here I am again.").await;
    let text = browser.texts("body").await.join("");
    assert!(text.contains("word5 ") && !text.contains("word1999"), "{text}");
}
