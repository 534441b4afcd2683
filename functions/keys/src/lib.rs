//! The organization's own accounts at VAPI and at an LLM, in place of the platform's.
//!
//! A VAPI key is tried at VAPI first, and must see the organization's agents, numbers and tools (`switch.rs`). Each key is a secret of
//! its own, which the organization's row names: writing the row changes the account at once and entirely. A secret without a
//! row is on record as an intent.

mod body;
mod switch;

use secrecy::SecretString;
use serde::Serialize;
use serde_json::Value;
use shared::{
    Deadline, Error, Result,
    accounts::Accounts,
    clients::{Outbound, Vapi},
    described::Described,
    http::{Access, Asked, Deleted, Id, Sent, Shown, operation},
    lifecycle::StoredSecrets,
    models::{Intent, KeyService, KeySettings, Organization, OrganizationId, OwnKey, SecretId, SecretOwner, Timestamp},
    platform::Parts,
    store::{Agents, Intents, Organizations, Page, PhoneNumbers, Tools},
};

use crate::body::AnyKey;

shared::routes!(Deps, "keys": list_keys, store_key, delete_key);

#[derive(Parts)]
pub struct Deps {
    pub access: Access,
    pub organizations: Organizations,
    pub agents: Agents,
    pub phone_numbers: PhoneNumbers,
    pub tools: Tools,
    pub intents: Intents,
    pub vapi: Vapi,
    pub accounts: Accounts,
    pub secrets: StoredSecrets,
    /// Decides which addresses of an LLM may be called.
    pub outbound: Outbound,
}

#[derive(Serialize, Described)]
struct OwnKeyView {
    service: KeyService,
    /// False: the platform's account is used.
    own: bool,
    updated_at: Option<Timestamp>,
    /// Of `llm`: the words of agents are compared with the effects of their tools.
    verify_claims: bool,
    #[serde(flatten)]
    settings: KeySettings,
}

impl OwnKeyView {
    fn new(service: KeyService, key: Option<&OwnKey>) -> Self {
        Self {
            service,
            own: key.is_some(),
            updated_at: key.map(|key| key.updated_at),
            verify_claims: key.is_some_and(|key| key.verifies_claims),
            settings: key.map(|key| key.settings.clone()).unwrap_or_default(),
        }
    }
}

/// Which accounts the organization has of its own
///
/// Every service there is, and whether the organization has a key of its own there. A key is never shown; its settings
/// are, because the next key needs them again. Keys that an earlier version stored show none.
///
/// - 200: One item a service.
#[operation(GET "/api/{slug}/keys", Viewer)]
async fn list_keys(deps: &Deps, asked: &Asked<'_>) -> Result<Page<OwnKeyView>> {
    let keys = deps.organizations.get_consistent(asked.organization()).await?.own_keys;
    let items = KeyService::ALL.map(|service| OwnKeyView::new(service, keys.get(service)));
    Ok(Page { items: items.into(), next_cursor: None })
}

/// Use an account of the organization's own
///
/// For `vapi`, `VapiKey`: VAPI is asked whether it lets the key in. The organization's agents must be assistants of
/// the key's account, so another key of the same account can always be put in the place of one; to change to another
/// account, remove the agents, delete the tools and set `vapi_phone_number_id` of the phone numbers to null, and their
/// `wait_ms` to 0, first. With an account of its own, an organization's tools are no longer called with the bearer of the
/// platform's credential: with their own tokens, or with `webhook_bearer`.
///
/// For `llm`, `LlmKey` or `LlmClient`: any service that speaks OpenAI's API. The addresses must be public and https. With
/// `verify_claims` the account also reads the agent's words at the end of each call: see `claim_check` of a call.
///
/// The previous key is replaced as a whole. The key goes to Secrets Manager.
///
/// - 200: It is stored, and used from now on.
///
/// ```json,vapi: For vapi
/// {"api_key": "own-vapi-key", "webhook_bearer": "what-the-credential-sends"}
/// ```
/// ```json,llm: For llm, with a key for OpenRouter
/// {"api_key": "sk-or-v1-0123456789", "model": "openai/gpt-4o-mini"}
/// ```
/// ```json,llm_oauth: For llm, with OAuth client credentials
/// {"client_id": "switchboard", "client_secret": "s3cret", "token_url": "https://login.example.com/oauth2/token",
///  "base_url": "https://llm.example.com/v1"}
/// ```
#[operation(PUT "/api/{slug}/keys/{service}", Admin, also(409, 502, 504))]
async fn store_key(
    deps: &Deps,
    asked: &Asked<'_>,
    service: Id<KeyService>,
    body: Sent<AnyKey>,
) -> Result<Shown<OwnKeyView>> {
    let service = service.0;
    let key = put(deps, asked.organization(), service, &body.json()?, asked.deadline).await?;
    Ok(Shown(OwnKeyView::new(service, Some(&key))))
}

/// Go back to the platform's account
///
/// The same holds as for a change to another account. The key can be restored in Secrets Manager for 30 days.
///
/// - 200: It is gone.
#[operation(DELETE "/api/{slug}/keys/{service}", Admin, also(409, 502, 504), resource(RemoveKey))]
async fn delete_key(deps: &Deps, asked: &Asked<'_>, service: Id<KeyService>) -> Result<Deleted> {
    remove(deps, asked.organization(), service.0, asked.deadline).await?;
    Ok(Deleted)
}

async fn put(
    deps: &Deps,
    organization: OrganizationId,
    service: KeyService,
    body: &Value,
    deadline: Deadline,
) -> Result<OwnKey> {
    let (before, content, settings, verifies_claims) = match service {
        KeyService::Vapi => {
            let account = body::vapi(body)?;
            // The row is read before the comparison, so its write notices a change in between.
            let before = deps.organizations.get_consistent(organization).await?;
            if !deps.vapi.accepts_credentials(&account, deadline).await? {
                return Err(Error::invalid(
                    "api_key",
                    "was refused by VAPI: it is not a private key of an account there",
                ));
            }
            switch::check(deps, organization, &account, deadline).await?;
            let has_webhook_bearer = Some(account.webhook_bearer.is_some());
            (before, account.to_secret(), KeySettings { has_webhook_bearer, ..KeySettings::default() }, false)
        }
        KeyService::Llm => {
            let (content, settings, verifies_claims) = body::llm(body, &deps.outbound)?;
            (deps.organizations.get_consistent(organization).await?, content, settings, verifies_claims)
        }
    };
    let key = OwnKey { id: SecretId::generate(), updated_at: Timestamp::now(), verifies_claims, settings };
    store(deps, &before, service, key, &content, deadline).await
}

/// Makes the secret, writes its name into the row, and deletes the previous secret.
async fn store(
    deps: &Deps,
    before: &Organization,
    service: KeyService,
    key: OwnKey,
    content: &SecretString,
    deadline: Deadline,
) -> Result<OwnKey> {
    let made = secret_intent(deps, before.id, service, key.id, deadline);
    let left = before.own_keys.get(service).map(|old| secret_intent(deps, before.id, service, old.id, deadline));
    let write = deps.organizations.set_own_key(before, service, Some(key.clone()), Some(made.id), left.as_ref());
    deps.secrets.store(&made, content, write).await?;
    deps.organizations.wait_for_index(before, |row| row.own_keys.get(service) == Some(&key)).await;
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
    deps.organizations.wait_for_index(&before, |row| row.own_keys.get(service).is_none()).await;
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
