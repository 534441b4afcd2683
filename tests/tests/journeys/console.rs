//! The console's page as browsers get it, and the page's modules.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "a test says what is wrong and stops"
)]

use std::{collections::BTreeSet, path::Path, process::Command};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde_json::json;
use tests::{Answer, Event, Options, World};

async fn world(variables: &[(&'static str, &str)]) -> World {
    let variables = variables.iter().map(|(name, value)| (*name, (*value).to_owned())).collect();
    World::with(Options { variables, ..Options::default() }).await
}

async fn get(world: &World, path: &str) -> Answer {
    world.send("console", &Event::get(path)).await
}

/// The sources that a directive of the policy allows.
fn allowed(answer: &Answer, directive: &str) -> BTreeSet<String> {
    let policy = &answer.headers["content-security-policy"];
    let directive =
        policy.split("; ").find_map(|each| each.strip_prefix(directive)).unwrap_or_else(|| panic!("{policy}"));
    directive.split_whitespace().map(str::to_owned).collect()
}

/// The files below `console/` that the page and its script name.
fn files(page: &Answer) -> BTreeSet<String> {
    let page = page.body.as_str().unwrap();
    let named = |quote: char| {
        let begins = format!("{quote}console/");
        let parts = page.split(&begins).skip(1);
        parts
            .filter_map(move |rest| rest.split(quote).next().map(|name| format!("/console/{name}")))
            .collect::<Vec<_>>()
    };
    ['"', '\'', '`'].into_iter().flat_map(named).collect()
}

/// `/console/{name}` of `/console/{version}.{name}`.
fn without_version(file: &str) -> String {
    let name = file.rsplit('/').next().unwrap();
    match name.split_once('.') {
        Some((version, name)) if version.len() == 16 && name.contains('.') => format!("/console/{name}"),
        _ => file.to_owned(),
    }
}

/// The texts of the page's elements of this kind.
fn inline<'a>(page: &'a str, element: &str) -> Vec<&'a str> {
    let begins = format!("<{element}");
    let elements = page.split(&*begins).skip(1);
    elements.map(|rest| rest.split_once('>').unwrap().1.split_once(&format!("</{element}>")).unwrap().0).collect()
}

#[tokio::test]
async fn the_page_and_all_that_it_names_is_served_to_anybody() {
    let world = world(&[]).await;
    let page = get(&world, "/").await;
    assert_eq!((page.status, page.content_type.as_str()), (200, "text/html; charset=utf-8"));
    let files = files(&page);
    let plain: BTreeSet<String> = files.iter().map(|file| without_version(file)).collect();
    for name in ["calls.js", "operator.css", "htm-preact.licences.txt", "settings.json"] {
        assert!(plain.contains(&format!("/console/{name}")), "{name} {plain:?}");
    }
    for file in files.iter().filter(|file| file.rsplit('.').next() != Some("json")) {
        let file = file.as_str();
        let answer = get(&world, file).await;
        let lasting = "public, max-age=31536000, immutable";
        assert_eq!(answer.headers["cache-control"], lasting, "{file}: its address changes with it");
        let of_another_version = file.replacen("/console/", "/console/0", 1);
        assert_eq!(get(&world, &of_another_version).await.status, 404, "files of two versions do not meet");
        let kind = match file.rsplit('.').next() {
            Some("js") => "text/javascript; charset=utf-8",
            Some("css") => "text/css; charset=utf-8",
            _ => "text/plain; charset=utf-8",
        };
        assert_eq!((answer.status, answer.content_type.as_str()), (200, kind), "{file}");
        assert!(!answer.body.as_str().unwrap().is_empty(), "{file}");
    }
    assert!(world.aws.operations().is_empty(), "nothing is looked up for a page");
    for path in ["/console/", "/console/index.html", "/console/..%2Fsrc%2Flib.rs", "/console/app.js/x", "/console/app"]
    {
        let answer = get(&world, path).await;
        assert_eq!((answer.status, answer.content_type.as_str()), (404, "application/problem+json"), "{path}");
    }
}

#[tokio::test]
async fn a_cached_asset_is_not_sent_again() {
    let world = world(&[]).await;
    for (path, cached) in [
        ("/", "no-cache"),
        ("/console/calls.js", "no-cache"),
        ("/console/console.css", "no-cache"),
        ("/console/settings.json", "max-age=60, stale-while-revalidate=86400"),
    ] {
        let first = get(&world, path).await;
        let tag = &first.headers["etag"];
        assert!(tag.starts_with('"') && tag.ends_with('"') && tag.len() > 20, "{tag}");
        assert_eq!(first.headers["cache-control"], cached, "{path}");
        for given in [tag.clone(), format!("\"other\", {tag}"), format!("W/{tag}"), "*".to_owned()] {
            let again = world.send("console", &Event::get(path).header("if-none-match", &given)).await;
            assert_eq!((again.status, again.content_type.as_str()), (304, ""), "{path} {given}");
            assert!(again.body.is_null(), "{path} {given}");
            assert_eq!((&again.headers["etag"], again.headers["cache-control"].as_str()), (tag, cached));
        }
        let newer = world.send("console", &Event::get(path).header("if-none-match", "\"of another version\"")).await;
        assert_eq!((newer.status, &newer.body), (200, &first.body), "{path}");
    }
    let tags = ["/", "/console/calls.js", "/console/forms.js"].map(|path| get(&world, path));
    let tags = futures_util::future::join_all(tags).await;
    let tags: BTreeSet<&String> = tags.iter().map(|answer| &answer.headers["etag"]).collect();
    assert_eq!(tags.len(), 3);
}

#[tokio::test]
async fn a_browser_that_takes_a_coding_is_sent_the_same_compressed_under_another_tag() {
    let world = world(&[]).await;
    for path in ["/", "/console/calls.js", "/console/console.css"] {
        let plain = get(&world, path).await;
        assert_eq!((plain.headers.get("content-encoding"), plain.headers["vary"].as_str()), (None, "accept-encoding"));
        for refused in ["zstd", "gzip;q=0", "identity"] {
            let answer = world.send("console", &Event::get(path).header("accept-encoding", refused)).await;
            assert_eq!((answer.headers.get("content-encoding"), &answer.body), (None, &plain.body), "{refused}");
        }
        for (taken, coding) in [("gzip, deflate, br;q=0", "gzip"), ("gzip", "gzip"), ("gzip, deflate, br, zstd", "br")]
        {
            let zipped = world.send("console", &Event::get(path).header("accept-encoding", taken)).await;
            assert_eq!((zipped.headers["content-encoding"].as_str(), &zipped.body), (coding, &plain.body), "{path}");
            let tag = &zipped.headers["etag"];
            assert!(tag.ends_with(&format!("-{coding}\"")) && tag != &plain.headers["etag"], "{tag}");
            let again = Event::get(path).header("accept-encoding", taken).header("if-none-match", tag);
            assert_eq!(world.send("console", &again).await.status, 304, "{path}");
        }
    }
    // It is smaller than a header.
    let settings = Event::get("/console/settings.json").header("accept-encoding", "br");
    assert_eq!(world.send("console", &settings).await.headers.get("content-encoding"), None);
}

#[tokio::test]
async fn the_page_may_ask_the_issuer_and_the_streaming_door_and_run_nothing_but_its_own_files() {
    let world = world(&[
        ("JWT_ISSUER", "https://cognito-idp.eu-central-1.amazonaws.com/eu-central-1_X"),
        ("STREAM_URL", "https://stream.example:8443/x/"),
        (
            "CONSOLE_CONNECT_ORIGINS",
            "https://login.example, https://login.example,javascript:x, https://a.example;script-src",
        ),
    ])
    .await;
    let page = get(&world, "/").await;
    let page = page.body.as_str().unwrap();
    let digest = |element: &str| {
        let digest = |text: &str| ring::digest::digest(&ring::digest::SHA256, text.as_bytes());
        let sources =
            inline(page, element).into_iter().map(|text| format!("'sha256-{}'", STANDARD.encode(digest(text))));
        sources.collect::<Vec<_>>()
    };
    for path in ["/", "/console/calls.js", "/console/settings.json"] {
        let answer = get(&world, path).await;
        let policy = &answer.headers["content-security-policy"];
        assert!(!policy.contains("unsafe"), "{policy}");
        assert_eq!(allowed(&answer, "default-src "), BTreeSet::from(["'none'".to_owned()]));
        for (directive, element) in [("script-src ", "script"), ("style-src ", "style")] {
            let own = digest(element).into_iter().chain(["'self'".to_owned()]).collect();
            assert_eq!(allowed(&answer, directive), own, "{directive}");
        }
        for directive in ["base-uri ", "form-action ", "frame-ancestors "] {
            assert_eq!(allowed(&answer, directive), BTreeSet::from(["'none'".to_owned()]), "{directive}");
        }
        assert_eq!(allowed(&answer, "require-trusted-types-for "), BTreeSet::from(["'script'".to_owned()]));
        let asked = [
            "'self'",
            "https://cognito-idp.eu-central-1.amazonaws.com",
            "https://stream.example:8443",
            "https://login.example",
        ];
        assert_eq!(allowed(&answer, "connect-src "), asked.map(str::to_owned).into());
        assert_eq!(policy.matches("script-src").count(), 1, "{policy}");
        let also = ["x-content-type-options", "referrer-policy"].map(|name| answer.headers[name].as_str());
        assert_eq!(also, ["nosniff", "no-referrer"]);
    }
    // Nothing else is inline, which the policy would refuse.
    for inline in [" style=", " onclick=", " onload=", "javascript:"] {
        assert!(!page.contains(inline), "{inline}");
    }
}

#[tokio::test]
async fn the_settings_say_where_to_sign_in_and_where_answers_stream_from() {
    let all = world(&[
        ("JWT_ISSUER", "https://issuer.example/"),
        ("JWT_AUDIENCE", "first, second"),
        ("OIDC_CONFIGURATION_URL", "http://127.0.0.1:4566/pool/.well-known/openid-configuration"),
        ("CONSOLE_CLIENT_ID", "console"),
        ("CONSOLE_SCOPES", "openid email offline_access"),
        ("STREAM_URL", "http://127.0.0.1:4601/"),
    ])
    .await;
    let answer = get(&all, "/console/settings.json").await;
    let expected = json!({
        "issuer": "https://issuer.example/",
        "openid_configuration": "http://127.0.0.1:4566/pool/.well-known/openid-configuration",
        "client_id": "console",
        "stream_url": "http://127.0.0.1:4601",
        "scopes": "openid email offline_access",
    });
    assert_eq!((answer.content_type.as_str(), &answer.body), ("application/json", &expected));
    let asked = ["'self'", "https://issuer.example", "http://127.0.0.1:4566", "http://127.0.0.1:4601"];
    assert_eq!(allowed(&answer, "connect-src "), asked.map(str::to_owned).into());

    // An issuer with a final slash, such as Auth0's, has its configuration at the same place.
    let least = world(&[("JWT_ISSUER", "https://issuer.example/"), ("JWT_AUDIENCE", "first, second")]).await;
    let expected = json!({
        "issuer": "https://issuer.example/",
        "openid_configuration": "https://issuer.example/.well-known/openid-configuration",
        "client_id": "first",
        "stream_url": null,
        "scopes": "openid email",
    });
    assert_eq!(get(&least, "/console/settings.json").await.body, expected);
}

/// Whether Node understands the page's JavaScript; prints a note if not.
fn has_node() -> bool {
    let version = Command::new("node").arg("--version").output();
    let version = version.map(|said| String::from_utf8_lossy(&said.stdout).trim().to_owned()).unwrap_or_default();
    let major: u32 = version.trim_start_matches('v').split('.').next().and_then(|text| text.parse().ok()).unwrap_or(0);
    if major < 20 {
        println!("skipped: the page's modules are tried with Node 20 or newer, and there is {version:?}");
    }
    major >= 20
}

fn succeeds(command: &mut Command) {
    let run = command.output().unwrap();
    assert!(run.status.success(), "{}{}", String::from_utf8_lossy(&run.stdout), String::from_utf8_lossy(&run.stderr));
}

/// The page's scripts start the sign-in, and each file after them has the view of its place: every module runs after its imports.
#[tokio::test]
async fn the_modules_run_as_a_few_scripts() {
    if !has_node() {
        return;
    }
    let world = world(&[]).await;
    let folder = std::env::temp_dir().join(format!("switchboard-page-{}", uuid::Uuid::now_v7()));
    std::fs::create_dir_all(&folder).unwrap();
    let page = get(&world, "/").await;
    let files = files(&page);
    let scripts = files.iter().filter(|file| file.rsplit_once('.').is_some_and(|(_, kind)| kind == "js"));
    let mut names = Vec::new();
    for file in scripts {
        let script = get(&world, file).await;
        let name = file.rsplit('/').next().unwrap().to_owned();
        std::fs::write(folder.join(&name), script.body.as_str().unwrap()).unwrap();
        names.push(name);
    }
    assert!(names.len() > 5, "{names:?}");
    let in_page = inline(page.body.as_str().unwrap(), "script");
    for (name, text) in ["first.cjs", "second.js"].into_iter().zip(&in_page) {
        std::fs::write(folder.join(name), text).unwrap();
    }
    std::fs::write(folder.join("package.json"), r#"{"type": "module"}"#).unwrap();
    let begins = format!(
        "const element = () => ({{ addEventListener() {{}}, focus() {{}} }});
        globalThis.document = {{ getElementById: element }};
        globalThis.location = {{ hash: '#/-/nowhere', search: '' }};
        globalThis.addEventListener = () => {{}};
        globalThis.sessionStorage = {{ getItem: () => null, removeItem() {{}} }};
        const asked = new Promise((tell) => {{ globalThis.fetch = (address) => {{ tell(address); return new Promise(() => {{}}); }}; }});
        await import('./first.cjs');
        if (await asked !== 'console/settings.json') throw new Error(await asked);
        await import('./second.js');
        for (const name of {names:?}) {{
          const shown = Object.values(await import(`./${{name}}`));
          if (!shown.some((one) => typeof one === 'function')) throw new Error(name);
        }}"
    );
    succeeds(Command::new("node").args(["--input-type=module", "--eval", &begins]).current_dir(&folder));
    std::fs::remove_dir_all(folder).unwrap();
}

/// Modules without browser calls, run by Node.
#[test]
fn the_tests_of_the_pages_modules_pass() {
    if !has_node() {
        return;
    }
    let folder = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../functions/console/tests"));
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let tests: Vec<_> = entries.filter(|path| path.to_string_lossy().ends_with(".test.js")).collect();
    assert!(tests.len() > 5, "{tests:?}");
    succeeds(Command::new("node").arg("--test").args(tests));
}
