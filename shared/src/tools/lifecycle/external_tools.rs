//! Our tools at VAPI.

use secrecy::{ExposeSecret, SecretString};
use serde_json::{Value, json};

use crate::{
    Deadline, Error, Result,
    accounts::Accounts,
    actions::{ToolConfig, ToolTokens, VAPI_WAITS_SECONDS, to_liquid},
    clients::{self, Failure, Secrets, Vapi, vapi::NewTool},
    models::{CALL_METADATA, OrganizationId, Tool, ToolId},
    redaction::HiddenTexts,
};

/// Another form has every tool at VAPI compared once more.
const FORM: &str = "silent while read back";

#[derive(Clone)]
pub struct ExternalTools {
    vapi: Vapi,
    accounts: Accounts,
    /// Absent where tools are only deleted.
    tokens: Option<ToolTokens>,
    public_url: String,
}

impl ExternalTools {
    /// `public_url`: the base address at which VAPI reaches this API.
    pub fn new(vapi: Vapi, accounts: Accounts, tokens: Option<ToolTokens>, public_url: impl Into<String>) -> Self {
        Self { vapi, accounts, tokens, public_url: public_url.into() }
    }

    pub(super) fn secrets(&self) -> Secrets {
        self.accounts.secrets()
    }

    pub(super) fn new_secret(&self, organization: OrganizationId, tool: ToolId) -> String {
        self.accounts.new_tool_secret(organization, tool)
    }

    /// Updates VAPI's tool from the row, or creates one if the row has no id or VAPI lost the tool. Returns VAPI's id and
    /// object, without the token. If the answer to a creation is lost, [`ExternalTools::leftover_tool_ids`] finds the tool.
    pub(super) async fn upsert(&self, tool: &Tool, deadline: Deadline) -> Result<(String, Value)> {
        self.upsert_as(tool, &ToolConfig::stored(tool)?, deadline).await
    }

    pub(super) async fn upsert_as(
        &self,
        tool: &Tool,
        config: &ToolConfig,
        deadline: Deadline,
    ) -> Result<(String, Value)> {
        let account = self.accounts.vapi(tool.organization_id).await?;
        let token = self.tokens()?.issue(tool.id).await?;
        let url = self.callback(tool.id);
        let definition = definition(tool, config, &url, &token);
        let changed = match &tool.external_tool_id {
            Some(id) => self.vapi.update_tool(&account, id, &definition, deadline).await?,
            None => None,
        };
        let external = match changed {
            Some(external) => external,
            None => self.vapi.create_tool(&account, &definition, deadline).await?,
        };
        Ok((external.id, without_token(external.object, &token)))
    }

    /// Changes with the tokens' signing key or the callback address.
    pub(super) async fn fingerprint(&self) -> Result<String> {
        self.tokens()?.fingerprint(&format!("{FORM} {}", self.public_url)).await
    }

    /// Whether VAPI's tool has the current address, token, static parameters and, with `confirm`, silence. `None`: VAPI has no such
    /// tool.
    pub(super) async fn is_current(&self, tool: &Tool, deadline: Deadline) -> Result<Option<bool>> {
        let Some(id) = &tool.external_tool_id else { return Ok(None) };
        let config = ToolConfig::stored(tool)?;
        let account = self.accounts.vapi(tool.organization_id).await?;
        let Some(object) = self.vapi.tool(&account, id, deadline).await? else { return Ok(None) };
        let token = self.tokens()?.issue(tool.id).await?;
        let url = self.callback(tool.id);
        let NewTool { parameters, messages, .. } = definition(tool, &config, &url, &token);
        let of = |name: &str| object.get(name).unwrap_or(&Value::Null);
        let says = config.confirm.is_none() || *of("messages") == messages;
        Ok(Some(says && *of("url") == url && *of("parameters") == parameters))
    }

    /// False if VAPI has no such tool; none is created.
    pub(super) async fn reissue(&self, tool: &Tool, deadline: Deadline) -> Result<bool> {
        let Some(id) = &tool.external_tool_id else { return Ok(false) };
        let config = ToolConfig::stored(tool)?;
        let account = self.accounts.vapi(tool.organization_id).await?;
        let token = self.tokens()?.issue(tool.id).await?;
        let url = self.callback(tool.id);
        let definition = definition(tool, &config, &url, &token);
        Ok(self.vapi.update_tool(&account, id, &definition, deadline).await?.is_some())
    }

    /// Deletes VAPI's tool. Repeatable.
    ///
    /// # Errors
    /// [`Error::Conflict`] with instructions if a published assistant pins the tool.
    pub(super) async fn delete(
        &self,
        organization: OrganizationId,
        external_id: &str,
        deadline: Deadline,
    ) -> Result<()> {
        let account = self.accounts.vapi(organization).await?;
        self.vapi.delete_tool(&account, external_id, deadline).await.map_err(pinned)
    }

    /// VAPI's ids of tools that call back to this one: leftovers of lost answers, crashes and former kinds.
    pub(super) async fn leftover_tool_ids(
        &self,
        organization: OrganizationId,
        tool: ToolId,
        deadline: Deadline,
    ) -> Result<Vec<String>> {
        let account = self.accounts.vapi(organization).await?;
        Ok(self.vapi.tools_calling(&account, &self.callback(tool), tool.generated_at(), deadline).await?)
    }

    /// VAPI's ids of this tool other than that of the row. `before`: ids from before the change.
    pub(super) async fn former_tool_ids(
        &self,
        tool: &Tool,
        before: [Option<&String>; 2],
        deadline: Deadline,
    ) -> Result<Vec<String>> {
        let present = tool.external_tool_id.as_ref();
        // VAPI still had the tool of before, so none was created in its place.
        if present.is_some() && before.iter().all(|id| *id == present) {
            return Ok(Vec::new());
        }
        let mut former = self.leftover_tool_ids(tool.organization_id, tool.id, deadline).await?;
        former.retain(|id| Some(id) != present);
        // VAPI may have lost the id of before the edit, or the replaced one, and assistants still name it.
        for id in before.into_iter().flatten().filter(|id| Some(*id) != present) {
            if !former.contains(id) {
                former.push(id.clone());
            }
        }
        Ok(former)
    }

    fn tokens(&self) -> Result<&ToolTokens> {
        self.tokens.as_ref().ok_or_else(|| Error::internal("this function makes no tools at VAPI"))
    }

    fn callback(&self, tool: ToolId) -> String {
        format!("{}/api/tools/{tool}/execute", self.public_url)
    }
}

fn definition<'a>(tool: &'a Tool, config: &ToolConfig, url: &'a str, token: &SecretString) -> NewTool<'a> {
    let at = |name: &str| tool.function_schema.get(name).unwrap_or(&Value::Null);
    let silenced = config.confirm.map(|_read_back| config.speech.silenced());
    let speech = silenced.as_ref().unwrap_or(&config.speech);
    NewTool {
        name: tool.name.as_str(),
        description: at("description").as_str().unwrap_or_default(),
        url,
        body: at("parameters"),
        parameters: static_parameters(token, !config.action.has_effect(), at("parameters")),
        messages: speech.messages(tool.spoken_at_start.as_ref(), to_liquid),
        timeout_seconds: VAPI_WAITS_SECONDS,
    }
}

/// VAPI's 409 `tool_pinned`: a published version of an assistant still uses the tool.
fn pinned(error: clients::Error) -> Error {
    match error.failure {
        Failure::Rejected { status: 409, .. } => Error::Conflict(
            "VAPI keeps this tool because a published version of an assistant uses it; publish that assistant without the \
             tool, then delete the tool again"
                .into(),
        ),
        _ => error.into(),
    }
}

/// Parameters that VAPI adds to the model's arguments, invisible to the model: the phone numbers, our token, and the fields that
/// `execute` needs to tell the arguments from an envelope, and to claim the effect before it reads the tool
/// (docs/adr/0001-speculative-claim.md).
fn static_parameters(token: &SecretString, read_only: bool, schema: &Value) -> Value {
    let mut metadata = json!({
        "callerPhoneNumber": "{{ customer.number }}",
        "calledPhoneNumber": "{{ phoneNumber.number }}",
        "callId": "{{ call.id }}",
        "token": token.expose_secret(),
    });
    let names = schema.get("properties").and_then(Value::as_object).map(|properties| properties.keys().collect());
    let names: Vec<&String> = names.unwrap_or_default();
    if let Value::Object(metadata) = &mut metadata {
        metadata.insert("arguments".into(), json!(names));
        if read_only {
            metadata.insert("readOnly".into(), true.into());
        }
    }
    json!([{"key": CALL_METADATA, "value": metadata}])
}

fn without_token(object: Value, token: &SecretString) -> Value {
    HiddenTexts::of_config(&json!({"token": token.expose_secret()})).replaced_in(object)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_token_goes_to_vapi_and_not_into_the_table() {
        let token = SecretString::from("t0ken-of-the-tool".to_owned());
        let parameters = static_parameters(&token, true, &json!({}));
        assert_eq!(parameters[0]["value"]["token"], "t0ken-of-the-tool");
        assert_eq!(parameters[0]["value"]["readOnly"], true);
        let kept = without_token(json!({"id": "x", "parameters": parameters}), &token);
        assert_eq!(kept["parameters"][0]["value"]["token"], "[secret]");
        assert!(!kept.to_string().contains("t0ken"));
    }
}
