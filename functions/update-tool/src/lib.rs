//! Edits a tool.
//!
//! VAPI is changed first; after a failure VAPI is made to follow the table.

use lambda_http::http::HeaderValue;
use serde_json::{Value, json};
use shared::{
    Error, Result,
    described::{Described, Schemas},
    http::{Access, Answers, Asked, Found, Id, Operation, Part, Reply, Sent, operation},
    lifecycle::{self, Lifecycle, References, SettleWaker},
    models::{Tool, ToolId},
    platform::Parts,
};

shared::routes!(Deps, "tools": update_tool);

#[derive(Parts)]
pub struct Deps {
    pub access: Access,
    pub references: References,
    pub lifecycle: Lifecycle,
    pub settling: SettleWaker,
}

/// The fields of a tool's configuration that change.
struct ToolChanges;

shared::described!(ToolChanges => {"$ref": "#/components/schemas/ToolChanges"});

/// The header `If-Match`, which is read with the body.
struct IfMatch(Option<HeaderValue>);

impl Part for IfMatch {
    fn of(found: &Found<'_>) -> Result<Self> {
        Ok(Self(found.request.headers().get("if-match").cloned()))
    }

    fn describe(operation: &mut Operation, _: &mut Schemas) {
        let schema = json!({"type": "string", "pattern": r#"^(\*|(W/)?("[0-9]+"|[0-9]+))$"#});
        let doc = "The `version` that was read, as it is or quoted like an entity tag; `*` for any.";
        operation.request_header("If-Match", doc, schema);
    }
}

/// Edit a tool
///
/// Only the sent fields change, each as a whole; a new label alone keeps the name. Where a value is sent back as it
/// was shown, with `[secret]` in it, its secret is kept; in any other value `[secret]` is refused. Agents that have
/// the tool follow: it is put among their `toolIds` at VAPI or taken out when it starts or stops being one they can
/// call.
///
/// With `If-Match` or `version`, an edit of an outdated version is a conflict; the header counts if both are sent. If
/// the tool cannot be saved, VAPI keeps its former version.
///
/// - 200: The tool's row; every agent that has the tool is in line with it.
/// - 202: The tool's row. It is saved, and some agents are still being brought in line, which happens by itself.
///
/// ```json,text: What the model is told about its argument
/// {"text": {"mode": "ai", "prompt": "Day and time of the appointment"}, "version": 0}
/// ```
/// ```json,name: The model calls it by another name
/// {"label": "Text the caller", "name": "text_the_caller"}
/// ```
/// ```json,redact: The history hides what was written
/// {"redact": ["text"]}
/// ```
/// ```json,to_call_start: From now on it runs when a call starts, and at no other time
/// {"text": {"mode": "fixed", "value": "Thank you for calling."}, "execute_on_call_start": true,
///  "attach_to_agent": false}
/// ```
#[operation(PATCH "/api/{slug}/tools/{id}", Admin, also(409, 502, 504), resource(Update))]
async fn update_tool(
    deps: &Deps,
    asked: &Asked<'_>,
    id: Id<ToolId>,
    tag: IfMatch,
    body: Sent<ToolChanges>,
) -> Result<Updated> {
    let mut changes = body.json()?;
    let seen = seen_version(tag.0.as_ref(), &mut changes)?;
    let (organization, deadline) = (asked.organization(), asked.deadline);
    let updated = deps.lifecycle.update(&deps.references, organization, id.0, seen, &changes, deadline).await?;
    if !updated.settled {
        deps.settling.wake("update_tool").await;
    }
    Ok(Updated { tool: lifecycle::shown(updated.tool), settled: updated.settled })
}

/// 200 if every agent has the change, 202 if the rest happens in the background.
struct Updated {
    tool: Tool,
    settled: bool,
}

impl Answers for Updated {
    fn reply(self) -> Result<Reply> {
        if self.settled { Reply::ok(&self.tool) } else { Reply::accepted(&self.tool) }
    }

    fn describe(operation: &mut Operation, schemas: &mut Schemas) {
        operation.answers(200, "Every agent that has the tool is in line with it.", Tool::schema(schemas));
        operation.answers(202, "Some agents are still being brought in line.", Tool::schema(schemas));
    }
}

/// The version that the editor saw: from the header, quoted as an entity tag or not, or from the body.
fn seen_version(tag: Option<&HeaderValue>, changes: &mut Value) -> Result<Option<u64>> {
    let of_body =
        changes.as_object_mut().and_then(|changes| changes.remove("version")).filter(|version| !version.is_null());
    if let Some(tag) = tag.filter(|tag| tag.as_bytes() != b"*") {
        let number =
            tag.to_str().ok().and_then(|tag| tag.trim().trim_start_matches("W/").trim_matches('"').parse().ok());
        return number
            .map(Some)
            .ok_or_else(|| Error::invalid("If-Match", "must be the version of the tool that was read"));
    }
    match of_body {
        None => Ok(None),
        Some(version) => version
            .as_u64()
            .map(Some)
            .ok_or_else(|| Error::invalid("version", "must be the version of the tool that was read")),
    }
}
