//! The files that a running stack writes for people and their tools.

use std::{collections::BTreeMap, fmt::Write as _, fs, path::Path};

use crate::{
    Error, Result,
    aws::{ACCESS_KEY, REGION, SECRET_KEY},
    identity::PASSWORD,
    stack::Description,
};

/// The tools of `.venv`, including the AWS CLI.
const TOOLS: &str = "export PATH=\"$PWD/.venv/bin:$PATH\"\n";

/// Reads a field of a JSON answer or explains its absence; docs/getting-started.md has the same function.
const FIELD: &str = r#"field() { python3 -c '
import json, sys
text = sys.stdin.read()
try:
    found = json.loads(text)
    for name in sys.argv[1].split("."):
        found = found[int(name) if name.isdigit() else name]
    print(found)
except (ValueError, LookupError, TypeError):
    sys.exit(f"There is no {sys.argv[1]} in the answer: " + (text or "it is empty; the reason stands above."))
' "$1"; }
"#;

/// Values that docs/getting-started.md needs on this machine, beyond the public description of the stack.
pub(crate) struct Trial {
    /// A number at Twilio's stand-in that is not registered.
    pub(crate) number: String,
    /// The key of a second account at VAPI's stand-in.
    pub(crate) other_vapi_key: String,
    /// The template parameters that a second deployment shares with the first.
    pub(crate) parameters: Vec<(&'static str, String)>,
}

/// Writes `stack.json`; `env`, the functions' environment, for `cargo lambda watch --env-file`; `shell`, variables
/// for manual commands; `trial`, the variables for docs/getting-started.md.
pub(crate) fn write(
    state_dir: &Path,
    description: &Description,
    mut environment: BTreeMap<String, String>,
    trial: &Trial,
) -> Result<()> {
    let to = |name: &str, text: String| {
        let path = state_dir.join(name);
        fs::write(&path, text).map_err(Error::file(format!("write {}", path.display())))
    };
    to("stack.json", serde_json::to_string_pretty(description).unwrap_or_default() + "\n")?;

    let aws = [
        ("AWS_ENDPOINT_URL", description.endpoint_url.as_str()),
        ("AWS_REGION", REGION),
        ("AWS_ACCESS_KEY_ID", ACCESS_KEY),
        ("AWS_SECRET_ACCESS_KEY", SECRET_KEY),
    ];
    environment.extend(aws.map(|(name, value)| (name.to_owned(), value.to_owned())));
    let mut lines = String::new();
    for (name, value) in environment.iter().filter(|(_name, value)| !value.is_empty()) {
        // cargo-lambda rejects a file with unquoted spaces. Writing to a String cannot fail.
        let _ok = writeln!(lines, "{name}='{value}'");
    }
    to("env", lines)?;
    to("shell", exported(&for_commands(description)) + FIELD)?;
    to("trial", exported(&aws) + &exported(&for_trial(description, trial)) + TOOLS)
}

fn for_commands(description: &Description) -> Vec<(&'static str, &str)> {
    let mut variables = vec![
        ("API", description.api_url.as_str()),
        ("TOKEN", &description.token),
        ("MEMBER_TOKEN", &description.member_token),
        ("VIEWER_TOKEN", &description.viewer_token),
        ("SLUG", &description.slug),
        ("AGENT", &description.agent_id),
        ("ASSISTANT", &description.assistant_id),
        ("NUMBER", &description.phone_number),
        ("VAPI", &description.standins.vapi),
        ("TWILIO", &description.standins.twilio),
        ("PIPEDREAM", &description.standins.pipedream),
        ("LLM", &description.standins.llm),
        ("CRM", &description.standins.crm),
        ("SITE", &description.standins.site),
        ("GOOGLE", &description.standins.google),
    ];
    if let Some(stream_url) = &description.stream_url {
        variables.extend([("STREAM", stream_url.as_str()), ("CONSOLE", &description.console_url)]);
    }
    variables
}

fn for_trial(description: &Description, trial: &Trial) -> Vec<(&'static str, String)> {
    let parameters: Vec<String> = trial.parameters.iter().map(|(name, value)| format!("{name}={value}")).collect();
    let text = |name, value: &str| (name, value.to_owned());
    vec![
        text("VAPI_API_KEY", &description.vapi_api_key),
        text("VAPI_WEBHOOK_BEARER", &description.vapi_webhook_bearer),
        text("ACCOUNT_SID", &description.twilio_account_sid),
        text("AUTH_TOKEN", &description.twilio_auth_token),
        text("NUMBER", &trial.number),
        text("EMAIL", "you@example.com"),
        text("PASSWORD", PASSWORD),
        text("STACK", "switchboard-trial"),
        text("PARAMETERS", "target/local/trial.parameters"),
        ("MORE_PARAMETERS", parameters.join("\n")),
        text("VAPI", &description.standins.vapi),
        text("TWILIO", &description.standins.twilio),
        ("WEB_PAGE", format!("{}/opening-hours", description.standins.site)),
        text("LLM", &description.standins.llm),
        text("OWN_VAPI_API_KEY", &trial.other_vapi_key),
        text("LLM_KEY", "llm-other-local-key"),
        // Deploys the programs that already run a second time.
        text("PROGRAMS", "target/debug"),
        text("ARCHITECTURE", if cfg!(target_arch = "aarch64") { "arm64" } else { "x86_64" }),
        text("AWS_DEFAULT_REGION", REGION),
        text("AWS_PAGER", ""),
    ]
}

fn exported<V: AsRef<str>>(variables: &[(&str, V)]) -> String {
    let mut lines = String::new();
    for (name, value) in variables {
        let _ok = writeln!(lines, "export {name}='{}'", value.as_ref());
    }
    lines
}
