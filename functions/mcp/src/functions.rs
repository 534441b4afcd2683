//! The tools as definitions of functions, and calls of them.

use lambda_http::RequestExt;
use percent_encoding::percent_decode_str;
use serde_json::{Value, json};
use shared::{
    Error, Result,
    agent_tools::{Answer, Format, InWhoseName},
    fields::kind,
    http::{self, Reply, Request},
    tool::NotBound,
};

use crate::Deps;

pub(crate) async fn list(deps: &Deps, request: &Request) -> Result<Reply> {
    deps.access.member(request).await?;
    let query = request.query_string_parameters();
    let format = query.first("format").filter(|name| !name.is_empty()).map_or(Ok(Format::JsonSchema), Format::parse);
    let format = format.map_err(|problem| Error::invalid("format", problem))?;
    Reply::ok(&json!({"tools": deps.tools.list().map(|tool| tool.in_format(format)).collect::<Vec<_>>()}))
}

pub(crate) async fn call(deps: &Deps, request: &Request, name: &str) -> Result<Reply> {
    let member = deps.access.member(request).await?;
    let key = http::idempotency_key(request)?;
    let name = percent_decode_str(name).decode_utf8_lossy();
    if deps.tools.named(&name).is_none() {
        return Err(Error::NotFound("tool"));
    }
    let arguments = match http::json_body(request)? {
        Value::Object(arguments) => arguments,
        other => return Err(Error::invalid("body", format!("must be an object, not {}", kind(&other)))),
    };
    let deadline = http::deadline(request);
    let whose = InWhoseName::of(member, key.as_deref(), &arguments);
    let toolbox = deps.tools.toolbox();
    let answer = match toolbox.check(&name, &arguments) {
        Ok(bound) => Answer::of(bound.call(&whose.context(deadline)).await?),
        Err(NotBound::Unknown(_)) => return Err(Error::NotFound("tool")),
        Err(NotBound::Invalid(sentence)) => Answer { failed: true, text: sentence, data: Value::Null },
    };
    Reply::ok(&json!({"success": !answer.failed, "text": answer.text, "data": answer.data}))
}
