//! POST /api/{slug}/tools: makes a tool.
//!
//! Body: a `ToolConfig` (its type's fields, `label`, `description`) with the flags `async`, `execute_on_call_start` and
//! `attach_to_agent`. Answer: 201 with the row of `tools`. A tool that agents can call is made at VAPI first; if anything
//! fails, nothing is left on either side.

use std::time::Duration;

use secrecy::{ExposeSecret, SecretString};
use serde_json::{Value, json};
use shared::{
    Deadline, Error, Result,
    clients::{Pipedream, Secrets, Vapi, pipedream, vapi},
    error,
    http::{self, Access, Reply, Request, ToolTokens},
    models::{Member, OrganizationId, Timestamp, Tool, ToolId, ToolName},
    store::{KnowledgeBases, PhoneNumbers, Tools},
    tools::{Action, ToolConfig, VAPI_WAITS_SECONDS, sms::Sender},
};

/// Numbered names that are tried before a random ending is taken: `send_sms_2` … `send_sms_5`.
const NUMBERED: u32 = 5;

/// Kept back for taking VAPI's tool back when its answer is lost or the row cannot be written.
const UNDO: Duration = Duration::from_secs(5);

pub struct Deps {
    pub access: Access,
    pub tools: Tools,
    pub phone_numbers: PhoneNumbers,
    pub knowledge_bases: KnowledgeBases,
    pub tokens: ToolTokens,
    pub vapi: Vapi,
    /// Name or ARN of VAPI's secret.
    pub vapi_secret: String,
    pub pipedream: Pipedream,
    /// Name or ARN of the Pipedream project's secret.
    pub pipedream_secret: String,
    pub secrets: Secrets,
    /// Base address under which VAPI reaches this API.
    pub public_url: String,
}

pub async fn handle(deps: &Deps, request: Request) -> Result<Reply> {
    let deadline = http::deadline(&request);
    let path = http::path(&request);
    let ["api", slug, "tools"] = path.iter().map(String::as_str).collect::<Vec<_>>()[..] else {
        return Err(Error::NotFound("route"));
    };
    let member = deps.access.member(&request, slug).await?;
    let mut config = ToolConfig::parse(&http::json_body(&request)?)?;
    check_references(deps, &member, &mut config, deadline).await?;

    let id = ToolId::generate();
    let name = reserve_name(deps, member.organization_id, &config.label, id).await?;
    let created = create(deps, member.organization_id, id, &name, &config, deadline).await;
    if created.is_err()
        && let Err(error) = deps.tools.release_name(member.organization_id, &name, id).await
    {
        // The reservation runs out by itself.
        tracing::warn!(tool.id = %id, "a reserved name could not be given back: {}", error::chain(&error));
    }
    Reply::created(&created?)
}

/// What the configuration names must exist, and be the organization's.
async fn check_references(deps: &Deps, member: &Member, config: &mut ToolConfig, deadline: Deadline) -> Result<()> {
    match &mut config.action {
        Action::Sms(sms) => {
            let Sender::SpecificNumber(id) = sms.from else { return Ok(()) };
            deps.phone_numbers.get(member.organization_id, id).await.map(drop).map_err(|error| match error {
                Error::NotFound(_) => {
                    Error::invalid("from.phone_number_id", "is not a phone number of this organization")
                }
                other => other,
            })
        }
        Action::PipedreamAction(action) => {
            let project: pipedream::Project = deps.secrets.get(&deps.pipedream_secret).await?;
            let found = deps.pipedream.action(&project, action.key(), deadline).await?;
            let found = found
                .ok_or_else(|| Error::invalid("pipedreamMetadata.actionKey", "is not an action of Pipedream's"))?;
            action.pin(&found);
            Ok(())
        }
        Action::Query(query) => {
            let base = deps.knowledge_bases.get(member.organization_id, query.knowledge_base_id()).await;
            let base = base.map_err(|error| match error {
                Error::NotFound(_) => {
                    Error::invalid("knowledge_base_id", "is not a knowledge base of this organization")
                }
                other => other,
            })?;
            query.resolve(&base, config.attach_to_agent)
        }
        Action::ApiRequest(_) | Action::TransferCall(_) => Ok(()),
    }
}

/// A name of the label that no other tool of the organization has, reserved for this one.
async fn reserve_name(deps: &Deps, organization: OrganizationId, label: &str, id: ToolId) -> Result<ToolName> {
    let plain = ToolName::from_label(label);
    let numbered = (2..=NUMBERED).map(|number| plain.with_suffix(&number.to_string()));
    // The end of the id is random; with it the name is as good as unique.
    let tail: String = id.to_string().chars().rev().take(8).collect();
    for name in std::iter::once(plain.clone()).chain(numbered).chain([plain.with_suffix(&tail)]) {
        if deps.tools.reserve_name(organization, &name, id).await? {
            return Ok(name);
        }
    }
    Err(Error::Conflict(format!("no free name could be found for the label \"{label}\"; choose another one")))
}

/// VAPI first, then the row; VAPI's tool is taken back if the row cannot be written.
async fn create(
    deps: &Deps,
    organization: OrganizationId,
    id: ToolId,
    name: &ToolName,
    config: &ToolConfig,
    deadline: Deadline,
) -> Result<Tool> {
    let function_schema = config.function_schema(name);
    let external = if config.attach_to_agent {
        Some(create_at_vapi(deps, id, name, config, &function_schema, deadline).await?)
    } else {
        None
    };
    let now = Timestamp::now();
    let tool = Tool {
        id,
        name: name.clone(),
        label: config.label.clone(),
        description: config.description.clone(),
        organization_id: organization,
        external_tool_id: external.as_ref().map(|external| external.id.clone()),
        kind: config.kind(),
        function_schema,
        static_config: config.static_config(),
        config_metadata: config.to_json(),
        is_async: config.is_async,
        execute_on_call_start: config.execute_on_call_start,
        attach_to_agent: config.attach_to_agent,
        data: external.as_ref().map_or_else(|| json!({}), |external| without_token(external.object.clone())),
        created_at: now,
        updated_at: now,
    };
    let written = deps.tools.create(&tool).await;
    match (written, external) {
        (Ok(()), _) => Ok(tool),
        (Err(error), None) => Err(error),
        (Err(error), Some(external)) => {
            let account: vapi::Account = deps.secrets.get(&deps.vapi_secret).await?;
            if let Err(left) = deps.vapi.delete_tool(&account, &external.id, deadline).await {
                tracing::error!(tool.id = %id, "VAPI keeps a tool without a row: {}", error::chain(&left));
            }
            Err(error)
        }
    }
}

async fn create_at_vapi(
    deps: &Deps,
    id: ToolId,
    name: &ToolName,
    config: &ToolConfig,
    function_schema: &Value,
    deadline: Deadline,
) -> Result<vapi::ExternalTool> {
    let account: vapi::Account = deps.secrets.get(&deps.vapi_secret).await?;
    let token = deps.tokens.issue(id).await?;
    let url = format!("{}/api/tools/{id}/execute", deps.public_url);
    let description = function_schema.get("description").and_then(Value::as_str).unwrap_or_default();
    let tool = vapi::NewTool {
        name: name.as_str(),
        description,
        url: &url,
        body: function_schema.get("parameters").unwrap_or(&Value::Null),
        parameters: static_parameters(&token, !config.action.has_effect()),
        timeout_seconds: VAPI_WAITS_SECONDS,
    };
    let error = match deps.vapi.create_tool(&account, &tool, deadline.reserving(UNDO)).await {
        Ok(external) => return Ok(external),
        Err(error) => error,
    };
    if error.effect_possible()
        && let Err(left) = delete_lost(deps, &account, &url, deadline).await
    {
        tracing::error!(tool.id = %id, "VAPI may keep a tool without a row: {}", error::chain(&left));
    }
    Err(error.into())
}

/// Deletes what a lost answer may have left at VAPI: the callback address, which is only this tool's, finds it.
async fn delete_lost(
    deps: &Deps,
    account: &vapi::Account,
    url: &str,
    deadline: Deadline,
) -> Result<(), shared::clients::Error> {
    for external in deps.vapi.tools_calling(account, url, deadline).await? {
        deps.vapi.delete_tool(account, &external.id, deadline).await?;
    }
    Ok(())
}

/// What VAPI sends beside the model's arguments, out of the model's sight: who is on the line, and our token.
fn static_parameters(token: &SecretString, read_only: bool) -> Value {
    let mut metadata = json!({
        "callerPhoneNumber": "{{ customer.number }}",
        "calledPhoneNumber": "{{ phoneNumber.number }}",
        "callId": "{{ call.id }}",
        "token": token.expose_secret(),
    });
    if read_only && let Value::Object(metadata) = &mut metadata {
        metadata.insert("readOnly".into(), true.into());
    }
    json!([{"key": "metadata", "value": metadata}])
}

/// VAPI's object as it is kept for reference: without the token.
fn without_token(mut object: Value) -> Value {
    let parameters = object.get_mut("parameters").and_then(Value::as_array_mut).into_iter().flatten();
    for parameter in parameters {
        if let Some(token) = parameter.pointer_mut("/value/token") {
            *token = "***".into();
        }
    }
    object
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_token_goes_to_vapi_and_not_into_the_table() {
        let parameters = static_parameters(&SecretString::from("t0ken".to_owned()), true);
        assert_eq!(parameters[0]["value"]["token"], "t0ken");
        assert_eq!(parameters[0]["value"]["readOnly"], true);
        let kept = without_token(json!({"id": "x", "parameters": parameters}));
        assert_eq!(kept["parameters"][0]["value"]["token"], "***");
        assert!(!kept.to_string().contains("t0ken"));
    }
}
