//! A reader that is private otherwise, for `tests/fuzz`.

use rmcp::model::{ClientJsonRpcMessage, ClientRequest, JsonRpcMessage};
use shared::{authoring_tools, tool::arguments};

/// Reads a client's message, and checks the arguments of a call by the schema of its tool. `None`: it is no message. Else whether
/// it is a call that fits.
pub fn message(body: &[u8]) -> Option<bool> {
    let message: ClientJsonRpcMessage = serde_json::from_slice(body).ok()?;
    let JsonRpcMessage::Request(request) = message else { return Some(false) };
    let ClientRequest::CallToolRequest(call) = request.request else { return Some(false) };
    let tools = authoring_tools::described();
    let Some(tool) = tools.iter().find(|tool| tool.spec().name == *call.params.name) else { return Some(false) };
    let given = call.params.arguments.unwrap_or_default();
    Some(arguments::check(tool.spec().parameters.schema(), &given).is_ok())
}
