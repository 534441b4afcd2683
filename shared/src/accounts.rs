//! Whose account at a service is used for an organization: its own if it has one, else the platform's.
//!
//! That there is an own account stands on the organization's row, which the dashboard's routes have read by the time anybody
//! asks here (docs/adr/0007-own-keys.md). The key is in the secret `<prefix><service>/<organization>/<key>`; a secret's content
//! never changes, since each key that is stored gets a name of its own.

use std::time::Duration;

use serde::de::DeserializeOwned;

use crate::{
    Deadline, Error, Result,
    clients::{self, Failure, Llm, Secrets, Service, llm, vapi},
    models::{KeyService, OrganizationId, OwnKeys, SecretId, ServiceId, ToolId},
    store::Organizations,
};

/// Of questions that are asked one after the other so closely, the later goes by what the earlier has read.
const QUESTIONS_APART: Duration = Duration::from_secs(2);

#[derive(Clone)]
pub struct Accounts {
    organizations: Organizations,
    secrets: Secrets,
    vapi_secret: String,
    prefix: String,
    llm: Option<PlatformLlm>,
}

/// An account at an LLM that is asked several times, perhaps over minutes: a run's, a turn's.
#[derive(Clone, Copy)]
pub struct LlmInUse<'a> {
    pub accounts: &'a Accounts,
    pub organization: OrganizationId,
    /// With which it began.
    pub account: &'a llm::Account,
}

impl LlmInUse<'_> {
    /// The account for the next question: a key that was changed meanwhile is changed here, too, and one that was taken away is
    /// used no more.
    ///
    /// # Errors
    /// [`Failure::Unreachable`] if it cannot be found out, and if the organization has got or lost a key of its own: what was begun
    /// on one budget does not go on upon the other, and begins again.
    pub async fn now(&self) -> Result<llm::Account, clients::Error> {
        let now = self.accounts.llm_as_of(self.organization, QUESTIONS_APART).await;
        let now = now.map_err(|error| clients::Error::because(Service::Llm, Failure::Unreachable, error))?;
        if now.is_own() == self.account.is_own() {
            return Ok(now);
        }
        let why = "the organization has changed between a key of its own and the platform's";
        Err(clients::Error::because(Service::Llm, Failure::Unreachable, why))
    }
}

/// A model of an account at an LLM.
#[derive(Clone, Copy)]
pub struct LlmModel<'a> {
    pub llm: &'a Llm,
    pub account: LlmInUse<'a>,
    /// The account's, if absent.
    pub model: Option<&'a str>,
}

impl LlmModel<'_> {
    /// The whole answer.
    ///
    /// # Errors
    /// As [`LlmInUse::now`] and [`Llm::complete`].
    pub async fn complete(
        &self,
        request: &llm::Request<'_>,
        deadline: Deadline,
    ) -> Result<llm::Completion, clients::Error> {
        let request = llm::Request { model: self.model, ..*request };
        self.llm.complete(&self.account.now().await?, &request, deadline).await
    }
}

/// The name of the secret with an organization's credential for a service; `prefix` is what all their names begin with.
pub fn credential_secret(prefix: &str, organization: OrganizationId, service: ServiceId, key: SecretId) -> String {
    format!("{prefix}services/{organization}/{service}/{key}")
}

#[derive(Clone)]
struct PlatformLlm {
    secret: String,
    model: String,
}

impl Accounts {
    /// `organizations` are those of `http::Access`, which has read the row. `vapi_secret` is the name or ARN of the platform's
    /// secret, `prefix` what the names of organizations' secrets begin with.
    pub fn new(
        organizations: Organizations,
        secrets: Secrets,
        vapi_secret: impl Into<String>,
        prefix: impl Into<String>,
    ) -> Self {
        Self { organizations, secrets, vapi_secret: vapi_secret.into(), prefix: prefix.into(), llm: None }
    }

    /// For a function that speaks to an LLM. `secret` is the name or ARN of the platform's secret, `model` what is asked for if
    /// neither the account nor a request names one.
    #[must_use]
    pub fn with_llm(self, secret: impl Into<String>, model: impl Into<String>) -> Self {
        Self { llm: Some(PlatformLlm { secret: secret.into(), model: model.into() }), ..self }
    }

    pub(crate) fn secrets(&self) -> Secrets {
        self.secrets.clone()
    }

    /// The VAPI account that the organization's agents and tools are at.
    pub async fn vapi(&self, organization: OrganizationId) -> Result<vapi::Account> {
        let keys = self.organizations.own_keys(organization).await?;
        self.vapi_of(organization, &keys).await
    }

    /// As [`Accounts::vapi`], by the organization's row as of now; the platform's for an organization that does not exist. Where it
    /// does not fit what somebody shows, the platform's secret is read again: it may have been changed a moment ago.
    pub async fn vapi_fitting(
        &self,
        organization: OrganizationId,
        fits: impl Fn(&vapi::Account) -> bool + Send,
    ) -> Result<vapi::Account> {
        let keys = match self.organizations.get_consistent(organization).await {
            Ok(organization) => organization.own_keys,
            Err(Error::NotFound(_)) => OwnKeys::default(),
            Err(error) => return Err(error),
        };
        let account = self.vapi_of(organization, &keys).await?;
        if fits(&account) {
            return Ok(account);
        }
        // Whoever's it is: what is asked tells nobody whether there is such an organization.
        let _platforms: vapi::Account = self.secrets.standing_now(&self.vapi_secret).await?;
        self.vapi_of(organization, &keys).await
    }

    async fn vapi_of(&self, organization: OrganizationId, keys: &OwnKeys) -> Result<vapi::Account> {
        match self.own_of(organization, KeyService::Vapi, keys).await? {
            Some(own) => Ok(own),
            None => self.platform_vapi().await,
        }
    }

    /// The VAPI account of organizations that have none of their own.
    pub async fn platform_vapi(&self) -> Result<vapi::Account> {
        Ok(self.secrets.standing(&self.vapi_secret).await?)
    }

    /// The account at an LLM that serves the organization.
    ///
    /// # Errors
    /// [`Error::Conflict`] if it has none of its own, and the platform has none either.
    pub async fn llm(&self, organization: OrganizationId) -> Result<llm::Account> {
        let keys = self.organizations.own_keys(organization).await?;
        self.llm_of(organization, &keys).await
    }

    async fn llm_as_of(&self, organization: OrganizationId, within: Duration) -> Result<llm::Account> {
        let keys = self.organizations.own_keys_within(organization, within).await?;
        self.llm_of(organization, &keys).await
    }

    async fn llm_of(&self, organization: OrganizationId, keys: &OwnKeys) -> Result<llm::Account> {
        let platforms = self.llm.as_ref();
        let platforms = platforms.ok_or_else(|| Error::internal("Accounts::with_llm was not called"))?;
        if let Some(own) = self.own_of(organization, KeyService::Llm, keys).await? {
            return Ok(llm::Account::own(organization, own, &platforms.model));
        }
        let account = llm::Account::of_platform(self.secrets.standing(&platforms.secret).await?, &platforms.model);
        account.ok_or_else(|| {
            Error::Conflict(
                "there is no LLM to ask: store a key for one (PUT /api/{slug}/keys/llm), or deploy with the parameter \
                 LlmApiKey"
                    .into(),
            )
        })
    }

    /// The account that the organization has of its own at a service, as it stands in its secret; `None` if it has none.
    pub async fn own<T: DeserializeOwned>(
        &self,
        organization: OrganizationId,
        service: KeyService,
    ) -> Result<Option<T>> {
        let keys = self.organizations.own_keys(organization).await?;
        self.own_of(organization, service, &keys).await
    }

    async fn own_of<T: DeserializeOwned>(
        &self,
        organization: OrganizationId,
        service: KeyService,
        keys: &OwnKeys,
    ) -> Result<Option<T>> {
        let Some(key) = keys.get(service) else { return Ok(None) };
        Ok(Some(self.secrets.get(&self.secret_name(organization, service, key.id)).await?))
    }

    /// The name of another secret for a tool's values. Each change of them gets one, so a secret's content never changes.
    pub fn new_tool_secret(&self, organization: OrganizationId, tool: ToolId) -> String {
        format!("{}tools/{organization}/{tool}/{}", self.prefix, SecretId::generate())
    }

    /// The name of the secret with an own key.
    pub fn secret_name(&self, organization: OrganizationId, service: KeyService, key: SecretId) -> String {
        format!("{}{service}/{organization}/{key}", self.prefix)
    }
}
