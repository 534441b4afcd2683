//! The actors: the organization's user over the API, and VAPI through its stand-in.

use reqwest::{Method, RequestBuilder};
use serde_json::{Value, json};

use crate::{Error, Result, stack::Stack};

pub(super) struct User<'a> {
    pub(super) stack: &'a Stack,
}

impl<'a> User<'a> {
    pub(super) fn of(stack: &'a Stack) -> Self {
        Self { stack }
    }

    /// Sends a request below `/api/{slug}`; any status but a success is an error.
    pub(super) async fn ask(&self, method: Method, path: &str, body: Option<&Value>) -> Result<Value> {
        let about = &self.stack.description;
        let address = format!("{}/api/{}{path}", about.api_url, about.slug);
        let what = format!("{method} {path}");
        let mut request = self.stack.http.request(method, &address).bearer_auth(&about.token);
        if let Some(body) = body {
            request = request.json(body);
        }
        answer(&what, &address, request).await
    }

    /// Creates a tool over the API and attaches it to the demo's agent.
    pub(super) async fn attached(&self, config: &Value) -> Result<Value> {
        let tool = self.ask(Method::POST, "/tools", Some(config)).await?;
        let path = format!("/agents/{}/tools/attach", self.stack.description.agent_id);
        self.ask(Method::POST, &path, Some(&json!({"tool_id": text(&tool, "id")?}))).await?;
        Ok(tool)
    }

    /// Lets VAPI's stand-in call the tool; returns request and response. A failure is an error.
    pub(super) async fn call(&self, tool: &Value, arguments: &Value, call_id: &str) -> Result<Value> {
        let about = &self.stack.description;
        let address = format!("{}/simulate/tool-call", about.standins.vapi);
        let request = self.stack.http.post(&address).json(&json!({
            "assistant_id": about.assistant_id,
            "tool_name": text(tool, "name")?,
            "arguments": arguments,
            "customer_number": self.stack.data.demo.caller,
            "phone_number": about.phone_number,
            "call_id": call_id,
        }));
        let call = answer("VAPI's call of the tool", &address, request).await?;
        let succeeded = call.pointer("/response/status").is_some_and(|status| status == 200)
            && call.pointer("/response/body/success").is_some_and(|success| success == true);
        if succeeded {
            return Ok(call);
        }
        let came = call.get("response").filter(|response| !response.is_null()).or_else(|| call.get("failure"));
        Err(Error::Demo(format!("VAPI called the tool and got {}", came.unwrap_or(&Value::Null))))
    }

    /// The messages that Twilio's stand-in has received.
    pub(super) async fn messages(&self) -> Result<Vec<Value>> {
        let address = format!("{}/messages", self.stack.description.standins.twilio);
        match answer("reading what Twilio received", &address, self.stack.http.get(&address)).await? {
            Value::Array(messages) => Ok(messages),
            other => Err(Error::Demo(format!("reading what Twilio received gave {other}, which is no list"))),
        }
    }

    /// Whether the tool is in the `toolIds` of the demo's assistant.
    pub(super) fn assistant_has(&self, tool: &Value) -> bool {
        let assistant = self.stack.vapi.assistant(&self.stack.description.assistant_id).unwrap_or_default();
        let ids = assistant.pointer("/model/toolIds").and_then(Value::as_array);
        ids.into_iter().flatten().any(|id| Some(id) == tool.get("external_tool_id"))
    }
}

/// Sends a request; the response must be a success with JSON.
pub(super) async fn answer(what: &str, address: &str, request: RequestBuilder) -> Result<Value> {
    let failed = |source| Error::Http { address: address.to_owned(), source };
    let answer = request.send().await.map_err(failed)?;
    let status = answer.status();
    let body = answer.text().await.map_err(failed)?;
    if !status.is_success() {
        return Err(Error::Demo(format!("{what} was answered {status}: {body}")));
    }
    if body.is_empty() {
        return Ok(Value::Null);
    }
    serde_json::from_str(&body)
        .map_err(|_not_json| Error::Demo(format!("{what} was answered {status} without JSON: {body}")))
}

pub(super) fn text(object: &Value, field: &str) -> Result<String> {
    let missing = || Error::Demo(format!("an answer has no `{field}`: {object}"));
    object.get(field).and_then(Value::as_str).map(str::to_owned).ok_or_else(missing)
}

/// Ends the demo with an error unless the condition holds.
pub(super) fn must(holds: bool, otherwise: &str) -> Result<()> {
    if holds { Ok(()) } else { Err(Error::Demo(otherwise.to_owned())) }
}
