//! What a front end of CopilotKit asks below its `runtimeUrl`. There is one agent, `default`; its threads are those of the user.

use percent_encoding::percent_decode_str;
use serde_json::{Value, json};
use shared::{
    Deadline, Error, Result,
    http::{self, Person, Reply, Request},
};

use crate::{Deps, history, run};

const AGENT: &str = "default";

/// What there is to talk to.
pub(crate) fn info() -> Result<Reply> {
    Reply::ok(&json!({
        "version": env!("CARGO_PKG_VERSION"),
        "agents": {
            AGENT: {"name": AGENT, "description": "Answers with the organization's tools, and acts with them."},
        },
        "mode": "sse",
        "audioFileTranscriptionEnabled": false,
        "telemetryDisabled": true,
    }))
}

/// POST /copilotkit/agent/{id}/run, …/connect, …/stop/{thread}
pub(crate) async fn agent(
    deps: &'static Deps,
    request: &Request,
    person: &Person,
    path: (&str, &[&str]),
    deadline: Deadline,
) -> Result<Reply> {
    let (agent, action) = path;
    let agent = decoded(agent)?;
    if agent != AGENT {
        return unknown(&agent);
    }
    match action {
        ["run"] => run(deps, person, &http::json_body(request)?, "", deadline).await,
        ["connect"] => history::connect(deps, &person.member, &http::json_body(request)?, "", deadline).await,
        ["stop", thread] => stop(deps, person, &decoded(thread)?).await,
        _ => Err(Error::NotFound("route")),
    }
}

/// POST /copilotkit: the same, as `{"method", "params": {"agentId", "threadId"?}, "body"}`.
pub(crate) async fn call(deps: &'static Deps, request: &Request, person: &Person, deadline: Deadline) -> Result<Reply> {
    let call = http::json_body(request)?;
    let text = |value: Option<&Value>| value.and_then(Value::as_str).map(str::to_owned);
    let method = text(call.get("method")).unwrap_or_default();
    if method == "info" {
        return info();
    }
    let params = call.get("params").unwrap_or(&Value::Null);
    let agent = text(params.get("agentId")).unwrap_or_else(|| AGENT.to_owned());
    let body = call.get("body").unwrap_or(&Value::Null);
    match method.as_str() {
        "agent/run" | "agent/connect" | "agent/stop" if agent != AGENT => unknown(&agent),
        "agent/run" => run(deps, person, body, "body", deadline).await,
        "agent/connect" => history::connect(deps, &person.member, body, "body", deadline).await,
        "agent/stop" => match text(params.get("threadId")) {
            Some(thread) => stop(deps, person, &thread).await,
            None => invalid("\"params.threadId\" must name the thread"),
        },
        _ => invalid("\"method\" must be info, agent/run, agent/connect or agent/stop"),
    }
}

/// Asks the turn that is just being answered to end; whose run it is tells the thread.
async fn stop(deps: &Deps, person: &Person, thread: &str) -> Result<Reply> {
    let stopped = match deps.turns.stop(&person.member, thread).await {
        // Nothing runs in a thread that there is not.
        Err(Error::NotFound("thread")) => false,
        stopped => stopped?,
    };
    Reply::ok(&json!({"stopped": stopped}))
}

/// As CopilotKit's own runtime says it.
fn unknown(agent: &str) -> Result<Reply> {
    protocol_error(404, "Agent not found", &format!("there is no agent {agent:?}; the only one is \"{AGENT}\""))
}

fn invalid(message: &str) -> Result<Reply> {
    protocol_error(400, "invalid_request", message)
}

fn protocol_error(status: u16, error: &str, message: &str) -> Result<Reply> {
    let body = serde_json::to_vec(&json!({"error": error, "message": message})).map_err(Error::internal)?;
    Ok(Reply::of(status, "application/json", body))
}

fn decoded(segment: &str) -> Result<String> {
    let text = percent_decode_str(segment).decode_utf8().map_err(|_no_text| Error::NotFound("route"))?;
    Ok(text.into_owned())
}
