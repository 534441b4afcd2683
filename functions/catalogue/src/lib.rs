//! An operator's invocation, without a route: loads the catalogue of services and their tools, or drafts a file of it.
//!
//! - `{"files": {"slack.json": {…}, …}, "dry_run"?: true}` loads the files, which are the whole catalogue: what is in none of them
//!   becomes inactive. Everything is checked before anything is written. Gives `{"result": "refused", "refused": [{"file",
//!   "pointer", "problem"}], "more"}`, `{"result": "loaded" | "checked", "services": {…}, …}`, or `{"result": "broke_off",
//!   "problem", "written": {…}}` ([`load::Report`]).
//! - `{"import": {"app": "slack_v2", "keys"?: ["slack_v2-post-message"]}}` reads an app's components at Pipedream and gives
//!   `{"draft": {…}, "left_out": [{"key", "why"}]}`; nothing is written.
//!
//! The files come in the event, not in the program: what agents find can change without a deployment, and a dry run shows what a
//! pull request would change. An event holds 6 MB, some twenty times of what there is.

mod capabilities;
mod file;
mod import;
pub mod load;
mod props;
mod request;
mod text;

use serde_json::Value;
use shared::{
    Deadline, Error, Platform, Result,
    clients::{Pipedream, Secrets},
    error::Problems,
    fields::{Fields, kind},
    platform,
    store::Services,
};

pub struct Deps {
    pub services: Services,
    pub pipedream: Pipedream,
    pub pipedream_secret: String,
    pub secrets: Secrets,
}

impl Deps {
    pub fn new(platform: &Platform) -> platform::Result<Self> {
        Ok(Self {
            services: Services::new(platform.database()?),
            pipedream: platform.pipedream(),
            pipedream_secret: platform.pipedream_secret()?,
            secrets: platform.secrets().clone(),
        })
    }
}

/// # Errors
/// [`Error::Invalid`] if the event is neither; [`Error::Conflict`] while somebody else loads; outages.
pub async fn handle(deps: &Deps, event: Value, deadline: Deadline) -> Result<Value> {
    let mut problems = Problems::default();
    let asked = Fields::of(&event, "", &mut problems).and_then(read);
    // On the heap: the layout of a function's futures is deep enough for the compiler.
    let answer = match problems.into_result(asked)? {
        Asked::Load { dry_run } => {
            let files = event.get("files").and_then(Value::as_object).into_iter().flatten().collect();
            serde_json::to_value(Box::pin(load::load(deps, files, dry_run, deadline)).await?)
        }
        Asked::Import { app, keys } => {
            serde_json::to_value(Box::pin(import::draft(deps, &app, &keys, deadline)).await?)
        }
    };
    answer.map_err(Error::internal)
}

/// What an event asks for.
enum Asked {
    Load { dry_run: bool },
    Import { app: String, keys: Vec<String> },
}

fn read(mut fields: Fields<'_>) -> Option<Asked> {
    if let Some(import) = fields.get("import") {
        let mut of_import = Fields::of(import, "import", fields.problems())?;
        let app = of_import.required_text("app", 100);
        let keys = match of_import.get("keys") {
            None => Vec::new(),
            Some(Value::Array(keys)) if keys.iter().all(Value::is_string) => {
                keys.iter().filter_map(Value::as_str).map(str::to_owned).collect()
            }
            Some(other) => {
                of_import.problem("keys", format!("must be a list of keys of components, not {}", kind(other)));
                Vec::new()
            }
        };
        of_import.finish();
        fields.finish();
        return Some(Asked::Import { app: app?, keys });
    }
    if fields.members("files").is_empty() {
        // An empty catalogue would switch everything off.
        fields.problem("files", "must hold the files of the catalogue, by their names; or import an app's components");
    }
    let dry_run = fields.boolean("dry_run", false);
    fields.finish();
    Some(Asked::Load { dry_run })
}
