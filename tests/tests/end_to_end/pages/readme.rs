//! The expected effects of the blocks of README.md.

use std::process::Command;

use local::Stack;

use super::{Expected, Then, not_run, root::Root, shows, then};

pub(super) static EXPECTED: &[Expected] = &[
    not_run("make run     #", "these two commands start this very stack and these very tests"),
    then(
        ". target/local/shell     # API",
        "curl -sS \"$TWILIO/messages\"; curl -sS \"$API/api/$SLUG/tools/$TOOL/agents\" -H \"Authorization: Bearer $TOKEN\"",
        &["\"body\":\"Harbour Street 4\"", "Front desk"],
    ),
    shows("export PATH=", &["\"statusCode\":200", "\\\"success\\\":true"]),
    then(
        ". target/local/shell",
        "curl -sS \"$API/api/$SLUG/runs/$RUN\" -H \"Authorization: Bearer $TOKEN\"",
        &["\"status\":\"completed\"", "\"result\":{\"opens\":\"10:00\"}"],
    ),
    shows(
        "api=\"$API/api/$SLUG\"",
        &["slack_post_message", "gmail_send_email", "\"fingerprint\":", "\"state\":\"open\""],
    ),
    then(
        "api=\"$API/api/$SLUG\"",
        "curl -sS \"$api/automations/$ID\" -H \"$auth\"",
        &["\"name\":\"Urgent pumps\"", "\"status\":\"active\"", "\"active_version\":1"],
    ),
    Expected { begins: "import { Client }", then: Then::Program(mcp_client) },
    shows("curl -sS \"$API/agent/chat\"", &["`current_time` gave"]),
    shows("curl -sN \"$STREAM/agent/stream\"", &["data: {\"type\"", "current_time"]),
    Expected { begins: "import { CopilotChat", then: Then::Program(copilotkit_page) },
    shows("curl -sS \"$API/api/$SLUG/erasures\"", &["\"complete\":true"]),
];

/// Runs it with Node and the SDK version of `tests/mcp_client`, if installed.
fn mcp_client(stack: &Stack, root: &Root, code: &str) {
    let packages = root.original("tests/mcp_client/node_modules");
    if !packages.join("made-from").is_file() {
        return println!("skipped: the README's MCP client; tests/mcp_client/install installs its SDK");
    }
    let folder = root.folder("mcp");
    std::os::unix::fs::symlink(packages, folder.join("node_modules")).unwrap();
    std::fs::write(folder.join("client.mjs"), code).unwrap();
    let about = &stack.description;
    let run = Command::new("node")
        .arg("client.mjs")
        .current_dir(folder)
        .envs([("API", &about.api_url), ("SLUG", &about.slug), ("TOKEN", &about.token)])
        .output();
    let Ok(run) = run else { return println!("skipped: the README's MCP client: there is no Node") };
    let (output, errors) = (String::from_utf8_lossy(&run.stdout), String::from_utf8_lossy(&run.stderr));
    assert!(run.status.success() && output.starts_with("Available Slack tools:"), "{output} {errors}");
}

/// Compiles the page. The module `copilotkit_page` runs such a page in a browser.
fn copilotkit_page(_stack: &Stack, root: &Root, code: &str) {
    let esbuild = root.original("tests/chat_clients/node_modules/esbuild/bin/esbuild");
    if !esbuild.is_file() {
        return println!("skipped: the README's page of CopilotKit; tests/chat_clients/install installs a compiler");
    }
    let file = root.folder("copilotkit").join("page.tsx");
    std::fs::write(&file, code).unwrap();
    let run = Command::new(esbuild).arg(file).output().unwrap();
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
}
