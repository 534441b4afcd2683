//! The expected effects of the blocks of README.md and the pages that it links to, in the order in which they run.

use std::process::Command;

use local::Stack;

use super::{Expected, Then, not_run, root::Root, shows, then};

pub(super) static EXPECTED: &[(&str, &[Expected])] = &[
    (
        "README.md",
        &[
            not_run("make run     #", "these two commands start this very stack and these very tests"),
            then(
                ". target/local/shell     # API",
                "curl -sS \"$TWILIO/messages\"; curl -sS \"$API/api/$SLUG/tools/$TOOL/agents\" -H \"Authorization: Bearer $TOKEN\"",
                &["\"body\":\"Harbour Street 4\"", "Front desk"],
            ),
        ],
    ),
    ("docs/local.md", &[shows("export PATH=", &["\"statusCode\":200", "\\\"success\\\":true"])]),
    (
        "docs/runs.md",
        &[then(
            ". target/local/shell",
            "curl -sS \"$API/api/$SLUG/runs/$RUN\" -H \"Authorization: Bearer $TOKEN\"",
            &["\"status\":\"completed\"", "\"result\":{\"opens\":\"10:00\"}"],
        )],
    ),
    (
        "docs/mcp.md",
        &[
            shows(
                ". target/local/shell",
                &["slack_post_message", "gmail_send_email", "\"fingerprint\":", "\"state\":\"open\""],
            ),
            Expected { begins: "import { Client }", then: Then::Program(mcp_client) },
        ],
    ),
    (
        "docs/voice.md",
        &[
            then(
                ". target/local/shell",
                "echo \"$CONTEXT\"; curl -sS \"$api/calls/SCL_8f3a/receipt\" -H \"$auth\"; curl -sS \"$TWILIO/messages\"; \
                 for tool in \"$MENU\" \"$LOOKUP\"; do curl -sS -X DELETE \"$api/tools/$tool\" -H \"$auth\"; done",
                &["\"name\":\"Ana Ruiz\"", "\"tools_done\":[\"send_the_menu\"]", "\"body\":\"Soup, then plaice\""],
            ),
            not_run("from livekit", "an example"),
        ],
    ),
    (
        "docs/automations.md",
        &[then(
            ". target/local/shell",
            "curl -sS \"$api/automations/$ID\" -H \"$auth\"",
            &["\"name\":\"Urgent pumps\"", "\"status\":\"active\"", "\"active_version\":1"],
        )],
    ),
    (
        "docs/chat.md",
        &[
            shows(". target/local/shell", &["`current_time` gave"]),
            shows("curl -sN \"$STREAM/agent/stream\"", &["data: {\"type\"", "current_time"]),
            Expected { begins: "import { CopilotChat", then: Then::Program(copilotkit_page) },
        ],
    ),
    ("docs/data.md", &[shows(". target/local/shell", &["\"complete\":true"])]),
];

/// Runs it with Node and the SDK version of `tests/mcp_client`, if installed.
fn mcp_client(stack: &Stack, root: &Root, code: &str) {
    let packages = root.original("tests/mcp_client/node_modules");
    if !packages.join("made-from").is_file() {
        return println!("skipped: the MCP client of docs/mcp.md; tests/mcp_client/install installs its SDK");
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
    let Ok(run) = run else { return println!("skipped: the MCP client of docs/mcp.md: there is no Node") };
    let (output, errors) = (String::from_utf8_lossy(&run.stdout), String::from_utf8_lossy(&run.stderr));
    assert!(run.status.success() && output.starts_with("Available Slack tools:"), "{output} {errors}");
}

/// Compiles the page. The module `copilotkit_page` runs such a page in a browser.
fn copilotkit_page(_stack: &Stack, root: &Root, code: &str) {
    let esbuild = root.original("tests/chat_clients/node_modules/esbuild/bin/esbuild");
    if !esbuild.is_file() {
        return println!(
            "skipped: the CopilotKit page of docs/chat.md; tests/chat_clients/install installs a compiler"
        );
    }
    let file = root.folder("copilotkit").join("page.tsx");
    std::fs::write(&file, code).unwrap();
    let run = Command::new(esbuild).arg(file).output().unwrap();
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
}
