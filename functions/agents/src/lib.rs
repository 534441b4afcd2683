//! Agents of an organization, each an assistant at VAPI.
//!
//! Over all organizations an assistant is registered once. In the shared VAPI account the caller must write a text into the
//! assistant's metadata, which the refusal names. Removing an agent keeps the assistant at VAPI; our tools leave its `toolIds`
//! before the rows are deleted.

mod voice;

use serde_json::Value;
use shared::{
    Error, Result,
    accounts::Accounts,
    actions::ToolTokens,
    clients::{Vapi, vapi},
    declared::{Body, Given, Name},
    fields::Fields,
    http::{Access, Asked, Created, Deleted, Id, Paged, Sent, Shown, operation},
    lifecycle::Attachments,
    models::{Agent, AgentId, KeyService, OrganizationId, Timestamp},
    platform::Parts,
    store::{Agents, Page, PhoneNumbers},
};
use uuid::Uuid;

shared::routes!(
    Deps,
    "agents": register_agent,
    list_agents,
    get_agent,
    delete_agent,
    voice::issue_voice_token,
    voice::revoke_voice_token,
);

/// The member of an assistant's metadata that proves its owner.
const PROOF: &str = "switchboard";

/// In characters.
const LONGEST_NAME: usize = 100;

#[derive(Parts)]
pub struct Deps {
    pub access: Access,
    pub agents: Agents,
    pub attachments: Attachments,
    pub phone_numbers: PhoneNumbers,
    pub vapi: Vapi,
    pub accounts: Accounts,
    pub tokens: ToolTokens,
}

#[derive(Body)]
struct NewAgent {
    name: Option<Name<LONGEST_NAME>>,
    /// VAPI's id of the assistant.
    external_assistant_id: AssistantId,
}

struct AssistantId(Uuid);

shared::described!(AssistantId => {"type": "string", "format": "uuid"});

impl Given for AssistantId {
    fn read(fields: &mut Fields<'_>, name: &'static str) -> Option<Self> {
        let id = fields.get(name)?.as_str().and_then(|text| Uuid::parse_str(text.trim()).ok());
        if id.is_none() {
            fields.problem(name, "must be the UUID of an assistant at VAPI");
        }
        id.map(Self)
    }
}

/// Register an assistant as an agent
///
/// The assistant must exist at VAPI, in the organization's account there: its own if it has stored a key, else the
/// platform's. An assistant that any organization has registered is refused with 409, and so is one that comes during a change
/// of the account. Without a name the agent has the assistant's.
///
/// In the platform's account, which organizations share, an assistant is registered only with proof that it is the
/// organization's: the first request is answered with 422, and the problem of `external_assistant_id` says which text
/// belongs into `metadata.switchboard` of the assistant at VAPI. With that in its place, the same request succeeds. The
/// text is for this organization and this assistant, and it does not change. An account of the organization's own needs
/// no proof.
///
/// - 201: The agent's row.
///
/// ```json,assistant
/// {"external_assistant_id": "5c9c5a6e-31a4-4a0b-9d53-6c1f0a6e2b11"}
/// ```
/// ```json,named
/// {"external_assistant_id": "5c9c5a6e-31a4-4a0b-9d53-6c1f0a6e2b11", "name": "Front desk"}
/// ```
#[operation(POST "/api/{slug}/agents", Admin, also(409, 502, 504))]
async fn register_agent(deps: &Deps, asked: &Asked<'_>, body: Sent<NewAgent>) -> Result<Created<Agent>> {
    let organization = asked.organization();
    let NewAgent { name, external_assistant_id: AssistantId(assistant) } = body.read()?;
    let external_assistant_id = assistant.hyphenated().to_string();
    let checked = deps.accounts.checked_with(organization).await?;
    let own = deps.accounts.own(organization, KeyService::Vapi).await?;
    let is_shared = own.is_none();
    let account = match own {
        Some(own) => own,
        None => deps.accounts.platform_vapi().await?,
    };
    let found = deps.vapi.assistant(&account, &external_assistant_id, asked.deadline).await?;
    let found = found.ok_or_else(|| Error::invalid("external_assistant_id", "is not an assistant at VAPI"))?;
    if is_shared {
        must_be_theirs(deps, organization, &external_assistant_id, &found).await?;
    }
    let name = match name {
        Some(name) => name.0,
        None => name_at_vapi(found)?,
    };
    let now = Timestamp::now();
    let agent = Agent {
        id: AgentId::generate(),
        organization_id: organization,
        name,
        external_assistant_id,
        voice_token_at: None,
        created_at: now,
        updated_at: now,
    };
    deps.agents.create(&agent, checked).await?;
    Ok(Created(agent))
}

/// List the organization's agents
///
/// Newest first.
///
/// - 200: A page of agents.
#[operation(GET "/api/{slug}/agents", Viewer)]
async fn list_agents(deps: &Deps, asked: &Asked<'_>, page: Paged) -> Result<Page<Agent>> {
    deps.agents.page(asked.organization(), page.cursor.as_ref(), page.limit).await
}

/// Show an agent
///
/// - 200: The agent's row.
#[operation(GET "/api/{slug}/agents/{id}", Viewer, resource(ShowAgent))]
async fn get_agent(deps: &Deps, asked: &Asked<'_>, agent: Id<AgentId>) -> Result<Shown<Agent>> {
    deps.agents.get(asked.organization(), agent.0).await.map(Shown)
}

/// Remove an agent with its attachments
///
/// Its tools are taken out of the assistant's `toolIds` at VAPI first; an error of VAPI's stops the removal, and nothing
/// is lost. Assistant and tools stay. An agent that phone numbers ring is not removed: 409 names the numbers.
///
/// - 200: It is gone.
#[operation(DELETE "/api/{slug}/agents/{id}", Admin, also(409, 502, 504), resource(RemoveAgent))]
async fn delete_agent(deps: &Deps, asked: &Asked<'_>, agent: Id<AgentId>) -> Result<Deleted> {
    let attachments = &deps.attachments;
    attachments.remove_agent(&deps.phone_numbers, asked.organization(), agent.0, asked.deadline).await?;
    Ok(Deleted)
}

/// In the shared account every organization could name any assistant, so the metadata must hold a text that only this
/// organization was told.
async fn must_be_theirs(
    deps: &Deps,
    organization: OrganizationId,
    assistant: &str,
    found: &vapi::Assistant,
) -> Result<()> {
    let shown = found.metadata.get(PROOF).and_then(Value::as_str).unwrap_or_default();
    if deps.tokens.proves_assistant(organization, assistant, shown).await? {
        return Ok(());
    }
    let proof = deps.tokens.assistant_proof(organization, assistant).await?;
    Err(Error::invalid(
        "external_assistant_id",
        format!(
            "is an assistant of the VAPI account that organizations share; to show that it is yours, set metadata.{PROOF} of \
             the assistant at VAPI to \"{proof}\", then register it again"
        ),
    ))
}

fn name_at_vapi(assistant: vapi::Assistant) -> Result<String> {
    let name = assistant.name.map(|name| name.trim().chars().take(LONGEST_NAME).collect::<String>());
    name.filter(|name| !name.is_empty())
        .ok_or_else(|| Error::invalid("name", "is required, because the assistant has no name at VAPI"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use shared::declared;

    use super::*;

    fn registration(body: &Value) -> Result<NewAgent> {
        declared::read(body, |_, _| ())
    }

    const ID: &str = "5C9C5A6E-0000-4000-8000-00000000000A";

    fn wrong(body: &Value) -> Vec<String> {
        match registration(body) {
            Err(Error::Invalid(problems)) => problems.iter().map(|problem| problem.field.clone()).collect(),
            _ => panic!("{body} is accepted"),
        }
    }

    #[test]
    fn an_assistant_id_is_one_however_it_is_written() {
        let read =
            |text: String| registration(&json!({"external_assistant_id": text})).unwrap().external_assistant_id.0;
        assert_eq!(read(ID.to_owned()), read(format!(" {} ", ID.to_lowercase().replace('-', ""))));
    }

    #[test]
    fn every_wrong_field_is_named_at_once() {
        assert_eq!(wrong(&json!({})), ["external_assistant_id"]);
        assert_eq!(wrong(&json!([])), ["body"]);
        let body = json!({"name": "x".repeat(101), "external_assistant_id": "1", "id": ID});
        assert_eq!(wrong(&body), ["name", "external_assistant_id", "id"]);
        assert_eq!(wrong(&json!({"external_assistant_id": 7})), ["external_assistant_id"]);
    }

    #[test]
    fn the_name_is_the_assistants_own_if_it_has_one() {
        let named =
            |name: Option<&str>| name_at_vapi(vapi::Assistant { name: name.map(str::to_owned), metadata: Value::Null });
        assert_eq!(named(Some(" Front desk ")).unwrap(), "Front desk");
        assert_eq!(named(Some(&"é".repeat(200))).unwrap(), "é".repeat(100));
        assert!(named(None).is_err() && named(Some("  ")).is_err());
    }
}
