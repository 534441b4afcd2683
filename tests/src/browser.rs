//! Headless Chromium, driven by ChromeDriver, as a person would use it.

mod driver;

use std::{
    env,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde_json::{Value, json};
use uuid::Uuid;

use self::driver::{Element, Session, program};

const PATIENCE: Duration = Duration::from_mins(1);
const LOOK_EVERY: Duration = Duration::from_millis(25);

/// Root needs the first argument; the others keep Chromium off the internet.
const ARGUMENTS: [&str; 11] = [
    "--no-sandbox",
    "--headless",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-quic",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
    "--window-size=1100,1200",
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE localhost",
];

pub const ENTER: &str = "\u{E007}";
pub const TAB: &str = "\u{E004}";
pub const ESCAPE: &str = "\u{E00C}";
pub const CONTROL: &str = "\u{E009}";

/// A browser with one page and its own profile; it ends on drop.
pub struct Browser {
    // Fields in the order in which they must be dropped.
    session: Session,
    _profile: Removed,
}

/// A violation of an axe-core rule, at its first place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// `minor`, `moderate`, `serious` or `critical`.
    pub impact: String,
    pub rule: String,
    /// A CSS selector and the problem there.
    pub place: String,
}

impl Browser {
    /// Returns `None`, with a message, if there is no Chromium. With `CI` or `REQUIRE_BROWSER` in the environment
    /// that is an error.
    pub async fn start() -> Option<Self> {
        let (Some(chromium), Some(chromedriver)) = (program("chromium"), program("chromedriver")) else {
            let demanded = ["CI", "REQUIRE_BROWSER"].into_iter().find(|name| set(name));
            assert_eq!(demanded, None, "there is no browser: apt-get install chromium chromium-driver");
            println!("skipped: no page is tried in a browser (apt-get install chromium chromium-driver)");
            return None;
        };
        let profile = Removed(env::temp_dir().join(format!("switchboard-browser-{}", Uuid::now_v7())));
        let own = [format!("--user-data-dir={}", profile.0.display())];
        let arguments: Vec<String> = ARGUMENTS.into_iter().map(str::to_owned).chain(own).collect();
        let capabilities = json!({
            "browserName": "chrome",
            "goog:chromeOptions": {"binary": chromium, "args": arguments},
            "goog:loggingPrefs": {"browser": "ALL"},
            // In milliseconds, for a script's answer: axe needs more than the 30 s of ChromeDriver's on a busy machine.
            "timeouts": {"script": 55_000},
        });
        Some(Self { session: Session::start(chromedriver, capabilities).await, _profile: profile })
    }

    pub async fn open(&self, address: &str) {
        self.session.post("/url", &json!({"url": address})).await.unwrap();
    }

    pub async fn reload(&self) {
        self.session.post("/refresh", &json!({})).await.unwrap();
    }

    /// Opens another tab, which shares only cookies with this one, and switches to it.
    pub async fn open_tab(&self) {
        let tab = self.session.post("/window/new", &json!({"type": "tab"})).await.unwrap();
        self.session.post("/window", &json!({"handle": tab["handle"]})).await.unwrap();
    }

    pub async fn first_tab(&self) {
        let tabs = self.session.get("/window/handles").await.unwrap();
        self.session.post("/window", &json!({"handle": tabs[0]})).await.unwrap();
    }

    pub async fn address(&self) -> String {
        self.session.get("/url").await.unwrap().as_str().unwrap_or_default().to_owned()
    }

    pub async fn find(&self, css: &str) {
        self.with(css, async |_element| Ok(())).await;
    }

    pub async fn click(&self, css: &str) {
        self.with(css, async |element| self.session.click(element).await).await;
    }

    pub async fn write(&self, css: &str, text: &str) {
        self.with(css, async |element| self.session.keys(element, text).await).await;
    }

    pub async fn enter(&self, css: &str, text: &str) {
        self.write(css, &format!("{text}{ENTER}")).await;
    }

    /// Presses keys one after another, wherever the focus is.
    pub async fn press(&self, keys: &str) {
        let presses = keys
            .chars()
            .flat_map(|key| ["keyDown", "keyUp"].map(|kind| json!({"type": kind, "value": key.to_string()})));
        let keyboard = json!({"type": "key", "id": "keyboard", "actions": presses.collect::<Vec<_>>()});
        self.session.post("/actions", &json!({"actions": [keyboard]})).await.unwrap();
    }

    /// Presses a key while another one is held down.
    pub async fn press_with(&self, held: &str, key: &str) {
        let presses = [("keyDown", held), ("keyDown", key), ("keyUp", key), ("keyUp", held)]
            .map(|(kind, key)| json!({"type": kind, "value": key}));
        let keyboard = json!({"type": "key", "id": "keyboard", "actions": presses});
        self.session.post("/actions", &json!({"actions": [keyboard]})).await.unwrap();
    }

    /// Presses a key until the focus is on an element with this selector.
    pub async fn reach(&self, key: &str, css: &str) {
        self.find(css).await;
        for _press in 0..250 {
            if self.run("return document.activeElement?.matches(arguments[0]) ?? false", &json!([css])).await == true {
                return;
            }
            self.press(key).await;
        }
        panic!("{key} does not lead to {css}\n{}", self.situation().await);
    }

    /// Reaches an element with a key, and opens it.
    pub async fn open_with(&self, key: &str, css: &str) {
        self.reach(key, css).await;
        self.press(ENTER).await;
    }

    /// Acts on the first visible element with this selector. Retries until it succeeds: a page that is being drawn
    /// covers and replaces its elements.
    async fn with(&self, css: &str, act: impl AsyncFn(&Element) -> Result<(), driver::Failure>) {
        let begun = Instant::now();
        let mut trouble = "there is none".to_owned();
        while begun.elapsed() < PATIENCE {
            for element in self.session.elements(css).await.unwrap() {
                let done = match self.session.shown(&element).await {
                    Ok(true) => act(&element).await,
                    Ok(false) => continue,
                    Err(failure) => Err(failure),
                };
                match done {
                    Ok(()) => return,
                    Err(failure) => trouble = format!("{}: {}", failure.kind, failure.message),
                }
                break;
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
        panic!("{css}: {trouble}\n{}", self.situation().await);
    }

    /// The visible text of every element with this selector.
    pub async fn texts(&self, css: &str) -> Vec<String> {
        let shown = "return [...document.querySelectorAll(arguments[0])].map((element) => element.innerText)";
        serde_json::from_value(self.run(shown, &json!([css])).await).unwrap()
    }

    pub async fn until(&self, expression: &str) {
        let script = format!("return Boolean({expression})");
        let begun = Instant::now();
        while self.run(&script, &json!([])).await != json!(true) {
            assert!(begun.elapsed() < PATIENCE, "never came true: {expression}\n{}", self.situation().await);
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }

    pub async fn until_shown(&self, text: &str) {
        self.until(&format!("document.body.innerText.includes({})", json!(text))).await;
    }

    /// Waits until one element with this selector shows all of `texts`.
    pub async fn until_one_shows(&self, css: &str, texts: &[&str]) {
        self.until(&format!(
            "[...document.querySelectorAll({})].some((element) => {}.every((text) => element.innerText.includes(text)))",
            json!(css),
            json!(texts)
        ))
        .await;
    }

    /// Runs the body of a function with `arguments`; returns its result.
    pub async fn run(&self, script: &str, arguments: &Value) -> Value {
        self.session.post("/execute/sync", &json!({"script": script, "args": arguments})).await.unwrap()
    }

    /// From now on the page records every length of the text in the last element with this selector.
    pub async fn watch(&self, css: &str) {
        let script = "
            window.watched = [];
            const look = () => {
              const length = [...document.querySelectorAll(arguments[0])].at(-1)?.textContent.length ?? 0;
              if (window.watched.at(-1) !== length) window.watched.push(length);
            };
            look();
            new MutationObserver(look).observe(document.body, { childList: true, characterData: true, subtree: true });
        ";
        self.run(script, &json!([css])).await;
    }

    /// How often the text has grown since [`Self::watch`]; a text that arrives whole grows once or twice.
    pub async fn grew(&self) -> usize {
        let lengths: Vec<u64> = serde_json::from_value(self.run("return window.watched", &json!([])).await).unwrap();
        lengths.windows(2).filter(|pair| pair[1] > pair[0]).count()
    }

    /// Severe log entries since the last look at the log: page errors, failed requests, violations of the page's
    /// policy.
    pub async fn complaints(&self) -> Vec<String> {
        let log = self.log().await.into_iter();
        log.filter_map(|(level, message)| (level == "SEVERE").then_some(message)).collect()
    }

    /// Log entries since the last look: levels and messages.
    async fn log(&self) -> Vec<(String, String)> {
        let log = self.session.post("/se/log", &json!({"type": "browser"})).await.unwrap();
        let text = |entry: &Value, name: &str| entry[name].as_str().unwrap_or_default().to_owned();
        let entries = log.as_array().cloned().unwrap_or_default();
        entries.iter().map(|entry| (text(entry, "level"), text(entry, "message"))).collect()
    }

    /// The violations that axe-core finds on the page; `axe` is the path of its file.
    pub async fn accessibility(&self, axe: &Path) -> Vec<Finding> {
        if self.run("return typeof axe === 'undefined'", &json!([])).await == true {
            let source = std::fs::read_to_string(axe).unwrap();
            self.run(&source, &json!([])).await;
        }
        let script = "
            const done = arguments[arguments.length - 1];
            axe.run(document).then(
              ({ violations }) => done(violations.map(({ impact, id, nodes: [{ target, failureSummary }] }) =>
                ({ impact, rule: id, place: `${target.join(' ')}: ${failureSummary}` }))),
              (error) => done([{ impact: 'critical', rule: 'axe', place: String(error) }]),
            );
        ";
        let found = self.session.post("/execute/async", &json!({"script": script, "args": []})).await.unwrap();
        let found = found.as_array().cloned().unwrap_or_default();
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let finding = |found: &Value| Finding {
            impact: text(&found["impact"]),
            rule: text(&found["rule"]),
            place: text(&found["place"]),
        };
        found.iter().map(finding).collect()
    }

    /// Sets the preferred color scheme: `light` or `dark`.
    pub async fn prefer(&self, scheme: &str) {
        let wanted = json!({"features": [{"name": "prefers-color-scheme", "value": scheme}]});
        let command = json!({"cmd": "Emulation.setEmulatedMedia", "params": wanted});
        self.session.post("/goog/cdp/execute", &command).await.unwrap();
    }

    /// Sets the size of what the page is drawn in.
    pub async fn resize(&self, width: u32, height: u32) {
        let size = json!({"width": width, "height": height, "deviceScaleFactor": 1, "mobile": false});
        let command = json!({"cmd": "Emulation.setDeviceMetricsOverride", "params": size});
        self.session.post("/goog/cdp/execute", &command).await.unwrap();
    }

    pub async fn screenshot(&self, path: &Path) {
        let picture = self.session.get("/screenshot").await.unwrap();
        std::fs::write(path, STANDARD.decode(picture.as_str().unwrap()).unwrap()).unwrap();
    }

    /// Also of a browser that answers no more, with the reason.
    async fn situation(&self) -> String {
        let script = json!({"script": "return document.body?.innerText ?? ''", "args": []});
        let asked = async || {
            let address = self.session.get("/url").await?;
            let text = self.session.post("/execute/sync", &script).await?;
            Ok::<_, driver::Failure>((address, text))
        };
        match asked().await {
            Ok((address, text)) => {
                let log: Vec<String> =
                    self.log().await.iter().map(|(level, message)| format!("{level} {message}")).collect();
                let [address, text] = [&address, &text].map(|value| value.as_str().unwrap_or_default());
                format!("{address}\n---\n{text}\n---\n{}", log.join("\n"))
            }
            Err(failure) => format!("{}: {}", failure.kind, failure.message),
        }
    }
}

fn set(variable: &str) -> bool {
    env::var_os(variable).is_some_and(|value| !value.is_empty() && value != "0" && value != "false")
}

struct Removed(PathBuf);

impl Drop for Removed {
    fn drop(&mut self) {
        // Chromium's last processes may still write; leftovers stay among the temporary files.
        drop(std::fs::remove_dir_all(&self.0));
    }
}
