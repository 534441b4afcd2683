//! The organization's agents, each an assistant that exists at VAPI.
//!
//! - POST /api/{slug}/agents `{"external_assistant_id", "name"?}`: registers an assistant, once over all organizations; 201
//!   with the row. The name is the assistant's own unless another one is given. In the account that organizations share,
//!   only who can write into the assistant's metadata may register it: the refusal says what to write.
//! - GET /api/{slug}/agents?limit=&cursor=: newest first, as `{items, next_cursor}`
//! - GET /api/{slug}/agents/{id}: one agent
//! - DELETE /api/{slug}/agents/{id}: `{"status": "deleted"}`. The assistant stays at VAPI, without our tools: they are taken
//!   out of its `toolIds` before their rows go. An agent that phone numbers ring is not deleted.

use serde_json::{Value, json};
use shared::{
    Deadline, Error, Platform, Result,
    accounts::Accounts,
    actions::ToolTokens,
    clients::{Vapi, vapi},
    error::Problems,
    fields::Fields,
    http::{self, Access, Reply, Request},
    lifecycle::Attachments,
    models::{Agent, AgentId, KeyService, OrganizationId, Timestamp},
    platform,
    store::{Agents, PhoneNumbers},
};
use uuid::Uuid;

/// The member of an assistant's metadata that shows whose it is.
const PROOF: &str = "switchboard";

/// In characters.
const LONGEST_NAME: usize = 100;

pub struct Deps {
    pub access: Access,
    pub agents: Agents,
    pub attachments: Attachments,
    pub phone_numbers: PhoneNumbers,
    pub vapi: Vapi,
    pub accounts: Accounts,
    pub tokens: ToolTokens,
}

impl Deps {
    pub fn new(platform: &Platform) -> platform::Result<Self> {
        let database = platform.database()?;
        Ok(Self {
            access: platform.access()?,
            agents: Agents::new(database),
            attachments: platform.attachments()?,
            phone_numbers: PhoneNumbers::new(database),
            vapi: platform.vapi(),
            accounts: platform.accounts()?,
            tokens: platform.tokens()?,
        })
    }
}

pub async fn handle(deps: &Deps, request: Request) -> Result<Reply> {
    let deadline = http::deadline(&request);
    let organization = deps.access.member(&request).await?.organization_id;
    match http::route(&request)[..] {
        ["POST", "api", _, "agents"] => {
            let agent = register(deps, organization, &http::json_body(&request)?, deadline).await?;
            Reply::created(&agent)
        }
        ["GET", "api", _, "agents"] => {
            let (limit, cursor) = http::page(&request)?;
            Reply::ok(&deps.agents.page(organization, cursor.as_ref(), limit).await?)
        }
        ["GET", "api", _, "agents", id] => Reply::ok(&deps.agents.get(organization, http::id(id, "agent")?).await?),
        ["DELETE", "api", _, "agents", id] => {
            let id = http::id(id, "agent")?;
            Box::pin(deps.attachments.remove_agent(&deps.phone_numbers, organization, id, deadline)).await?;
            Reply::ok(&json!({"status": "deleted"}))
        }
        _ => Err(Error::NotFound("route")),
    }
}

/// What is asked for.
struct Registration {
    name: Option<String>,
    assistant: Uuid,
}

async fn register(deps: &Deps, organization: OrganizationId, body: &Value, deadline: Deadline) -> Result<Agent> {
    let Registration { name, assistant } = registration(body)?;
    let external_assistant_id = assistant.hyphenated().to_string();
    let own = deps.accounts.own(organization, KeyService::Vapi).await?;
    let is_shared = own.is_none();
    let account = match own {
        Some(own) => own,
        None => deps.accounts.platform_vapi().await?,
    };
    let found = deps.vapi.assistant(&account, &external_assistant_id, deadline).await?;
    let found = found.ok_or_else(|| Error::invalid("external_assistant_id", "is not an assistant at VAPI"))?;
    if is_shared {
        must_be_theirs(deps, organization, &external_assistant_id, &found).await?;
    }
    let name = match name {
        Some(name) => name,
        None => name_at_vapi(found)?,
    };
    let now = Timestamp::now();
    let agent = Agent {
        id: AgentId::generate(),
        organization_id: organization,
        name,
        external_assistant_id,
        created_at: now,
        updated_at: now,
    };
    deps.agents.create(&agent).await?;
    Ok(agent)
}

/// Every organization without an account of its own could name any assistant of the shared one. Whose it is, shows who can
/// write into its metadata what only this organization is told.
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

fn registration(body: &Value) -> Result<Registration> {
    let mut problems = Problems::default();
    let registration = Fields::of(body, "", &mut problems).and_then(|mut fields| {
        let name = fields.name("name", LONGEST_NAME);
        let assistant = fields.required("external_assistant_id").and_then(|value| {
            let id = value.as_str().and_then(|text| Uuid::parse_str(text.trim()).ok());
            if id.is_none() {
                fields.problem("external_assistant_id", "must be the UUID of an assistant at VAPI");
            }
            id
        });
        fields.finish();
        Some(Registration { name, assistant: assistant? })
    });
    problems.into_result(registration)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "5C9C5A6E-0000-4000-8000-00000000000A";

    fn wrong(body: &Value) -> Vec<String> {
        match registration(body) {
            Err(Error::Invalid(problems)) => problems.iter().map(|problem| problem.field.clone()).collect(),
            _ => panic!("{body} is accepted"),
        }
    }

    #[test]
    fn an_assistant_id_is_one_however_it_is_written() {
        let read = |text: String| registration(&json!({"external_assistant_id": text})).unwrap().assistant;
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
