//! The accounts that an organization has of its own at VAPI and at an LLM; without one the platform's is used.
//!
//! - GET /api/{slug}/keys: `{items: [{service, own, updated_at}], next_cursor: null}`, every service, never a key
//! - PUT /api/{slug}/keys/{service}: stores a key; 200 with `{service, own, updated_at}`. Bodies are in `body.rs`
//! - DELETE /api/{slug}/keys/{service}: goes back to the platform's account; `{"status": "deleted"}`
//!
//! A VAPI key is tried at VAPI first, and must see the agents and tools that the organization has (`switch.rs`). The key is in
//! a secret of its own; the organization's row says which, so that writing the row is what changes the account, at once and
//! entirely. A secret that no row names is on record as an intent.

mod body;
mod switch;

use secrecy::SecretString;
use serde::Serialize;
use serde_json::{Value, json};
use shared::{
    Deadline, Error, Platform, Result,
    accounts::Accounts,
    clients::{Outbound, Vapi},
    http::{self, Access, Reply, Request},
    lifecycle::StoredSecrets,
    models::{Intent, KeyService, Organization, OrganizationId, OwnKey, SecretId, SecretOwner, Timestamp},
    platform,
    store::{Agents, Intents, Organizations, Page, Tools},
};

pub struct Deps {
    pub access: Access,
    pub organizations: Organizations,
    pub agents: Agents,
    pub tools: Tools,
    pub intents: Intents,
    pub vapi: Vapi,
    pub accounts: Accounts,
    pub secrets: StoredSecrets,
    /// Says which addresses of an LLM may be called.
    pub outbound: Outbound,
}

impl Deps {
    pub fn new(platform: &Platform) -> platform::Result<Self> {
        let database = platform.database()?;
        Ok(Self {
            access: platform.access()?,
            organizations: platform.organizations()?.clone(),
            agents: Agents::new(database),
            tools: Tools::new(database),
            intents: Intents::new(database),
            vapi: platform.vapi(),
            accounts: platform.accounts()?,
            secrets: platform.stored_secrets()?,
            outbound: platform.outbound()?.clone(),
        })
    }
}

/// What is shown of a key.
#[derive(Serialize)]
struct KeyView {
    service: KeyService,
    /// False: the platform's account is used.
    own: bool,
    updated_at: Option<Timestamp>,
}

impl KeyView {
    fn new(service: KeyService, key: Option<OwnKey>) -> Self {
        Self { service, own: key.is_some(), updated_at: key.map(|key| key.updated_at) }
    }
}

pub async fn handle(deps: &Deps, request: Request) -> Result<Reply> {
    let deadline = http::deadline(&request);
    let organization = deps.access.member(&request).await?.organization_id;
    match http::route(&request)[..] {
        ["GET", "api", _, "keys"] => {
            let keys = deps.organizations.get_consistent(organization).await?.own_keys;
            let items = KeyService::ALL.map(|service| KeyView::new(service, keys.get(service)));
            Reply::ok(&Page { items: items.into(), next_cursor: None })
        }
        ["PUT", "api", _, "keys", service] => {
            let (service, body) = (http::id(service, "service")?, http::json_body(&request)?);
            let key = Box::pin(put(deps, organization, service, &body, deadline)).await?;
            Reply::ok(&KeyView::new(service, Some(key)))
        }
        ["DELETE", "api", _, "keys", service] => {
            Box::pin(remove(deps, organization, http::id(service, "service")?, deadline)).await?;
            Reply::ok(&json!({"status": "deleted"}))
        }
        _ => Err(Error::NotFound("route")),
    }
}

async fn put(
    deps: &Deps,
    organization: OrganizationId,
    service: KeyService,
    body: &Value,
    deadline: Deadline,
) -> Result<OwnKey> {
    let (before, content) = match service {
        KeyService::Vapi => {
            let account = body::vapi(body)?;
            // The row is read before anything is compared: a change of it in between is noticed when it is written.
            let before = deps.organizations.get_consistent(organization).await?;
            if !deps.vapi.lets_in(&account, deadline).await? {
                return Err(Error::invalid("api_key", "was refused by VAPI: it is no private key of an account there"));
            }
            switch::check(deps, organization, &account, deadline).await?;
            (before, account.to_secret())
        }
        KeyService::Llm => {
            let content = body::llm(body, &deps.outbound)?;
            (deps.organizations.get_consistent(organization).await?, content)
        }
    };
    store(deps, &before, service, &content, deadline).await
}

/// Makes the secret, has the row name it, and deletes the one that the row named before.
async fn store(
    deps: &Deps,
    before: &Organization,
    service: KeyService,
    content: &SecretString,
    deadline: Deadline,
) -> Result<OwnKey> {
    let key = OwnKey { id: SecretId::generate(), updated_at: Timestamp::now() };
    let made = secret_intent(deps, before.id, service, key.id, deadline);
    let left = before.own_keys.get(service).map(|old| secret_intent(deps, before.id, service, old.id, deadline));
    let write = deps.organizations.set_own_key(before, service, Some(key), Some(made.id), left.as_ref());
    deps.secrets.store(&made, content, write).await?;
    deps.organizations.index_follows(before, |row| row.own_keys.get(service) == Some(key)).await;
    if let Some(left) = left {
        deps.secrets.discard(&left).await;
    }
    Ok(key)
}

async fn remove(deps: &Deps, organization: OrganizationId, service: KeyService, deadline: Deadline) -> Result<()> {
    let before = deps.organizations.get_consistent(organization).await?;
    let key = before.own_keys.get(service).ok_or(Error::NotFound("key"))?;
    if service == KeyService::Vapi {
        let account = deps.accounts.platform_vapi().await?;
        switch::check(deps, organization, &account, deadline).await?;
    }
    let left = secret_intent(deps, organization, service, key.id, deadline);
    if let Err(error) = deps.organizations.set_own_key(&before, service, None, None, Some(&left)).await {
        let now = deps.organizations.get_consistent(organization).await;
        if !now.is_ok_and(|row| row.own_keys.get(service).is_none()) {
            return Err(error);
        }
    }
    deps.organizations.index_follows(&before, |row| row.own_keys.get(service).is_none()).await;
    deps.secrets.discard(&left).await;
    Ok(())
}

fn secret_intent(
    deps: &Deps,
    organization: OrganizationId,
    service: KeyService,
    key: SecretId,
    deadline: Deadline,
) -> Intent {
    let name = deps.accounts.secret_name(organization, service, key);
    StoredSecrets::intent(organization, name, SecretOwner::OwnKey { service, id: key }, deadline)
}
