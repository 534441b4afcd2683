//! The accounts used for an organization at VAPI and at an LLM: its own if it has one, else the platform's.
//!
//! The organization's row, which dashboard routes have read before, says whether it has an own account
//! (docs/adr/0007-own-keys.md). The key is in the secret `<prefix><service>/<organization>/<key>`; each stored key gets a new
//! name.

use std::time::Duration;

use serde::de::DeserializeOwned;

use crate::{
    Deadline, Error, Result,
    clients::{self, Failure, Llm, Secrets, UpstreamService, llm, vapi},
    error::found,
    models::{KeyService, OrganizationId, OwnKeys, SecretId, ServiceId, ToolId},
    store::{CheckedWith, Organizations},
};

/// Within this time a later request reuses the account that an earlier one read.
const QUESTIONS_APART: Duration = Duration::from_secs(2);

#[derive(Clone)]
pub struct Accounts {
    organizations: Organizations,
    secrets: Secrets,
    vapi_secret: String,
    prefix: String,
    llm: Option<PlatformLlm>,
}

/// An LLM account for several requests over minutes: a run's, a turn's.
#[derive(Clone, Copy)]
pub struct LlmInUse<'a> {
    pub accounts: &'a Accounts,
    pub organization: OrganizationId,
    pub account: &'a llm::Account,
}

impl LlmInUse<'_> {
    /// The account for the next request. A changed key is used at once, and a removed one no more.
    ///
    /// # Errors
    /// [`Failure::Unreachable`] if the account cannot be read, and if the organization got or lost a key of its own:
    /// work begun on one budget does not continue on the other, but begins again.
    pub async fn now(&self) -> Result<llm::Account, clients::Error> {
        let now = self.accounts.llm_as_of(self.organization, QUESTIONS_APART).await;
        let now = now.map_err(|error| clients::Error::because(UpstreamService::Llm, Failure::Unreachable, error))?;
        if now.is_own() == self.account.is_own() {
            return Ok(now);
        }
        let why = "the organization has changed between a key of its own and the platform's";
        Err(clients::Error::because(UpstreamService::Llm, Failure::Unreachable, why))
    }
}

#[derive(Clone, Copy)]
pub struct LlmModel<'a> {
    pub llm: &'a Llm,
    pub account: LlmInUse<'a>,
    pub model: Option<&'a str>,
}

impl LlmModel<'_> {
    pub async fn complete(
        &self,
        request: &llm::CompletionRequest<'_>,
        deadline: Deadline,
    ) -> Result<llm::Completion, clients::Error> {
        let request = llm::CompletionRequest { model: self.model, ..*request };
        self.llm.complete(&self.account.now().await?, &request, deadline).await
    }
}

/// The name of the secret with an organization's credential for a service; `prefix` begins all their names.
pub fn credential_secret(prefix: &str, organization: OrganizationId, service: ServiceId, key: SecretId) -> String {
    format!("{prefix}services/{organization}/{service}/{key}")
}

#[derive(Clone)]
struct PlatformLlm {
    secret: String,
    model: String,
}

impl Accounts {
    /// `organizations` are those of `http::Access`, which has read the row. `vapi_secret` is the name or ARN of the
    /// platform's secret; `prefix` begins the names of organizations' secrets.
    pub fn new(
        organizations: Organizations,
        secrets: Secrets,
        vapi_secret: impl Into<String>,
        prefix: impl Into<String>,
    ) -> Self {
        Self { organizations, secrets, vapi_secret: vapi_secret.into(), prefix: prefix.into(), llm: None }
    }

    /// Adds the LLM. `secret` is the name or ARN of the platform's secret, `model` the default model.
    #[must_use]
    pub fn with_llm(self, secret: impl Into<String>, model: impl Into<String>) -> Self {
        Self { llm: Some(PlatformLlm { secret: secret.into(), model: model.into() }), ..self }
    }

    pub(crate) fn secrets(&self) -> Secrets {
        self.secrets.clone()
    }

    pub async fn vapi(&self, organization: OrganizationId) -> Result<vapi::Account> {
        let keys = self.organizations.own_keys(organization).await?;
        self.vapi_of(organization, &keys).await
    }

    /// As [`Accounts::vapi`], with a consistent read; the platform's account for an unknown organization. If the account does
    /// not fit the presented secret, the platform's secret, which may just have changed, is read again.
    pub async fn vapi_fitting(
        &self,
        organization: OrganizationId,
        fits: impl Fn(&vapi::Account) -> bool + Send,
    ) -> Result<vapi::Account> {
        let owner = found(self.organizations.get_consistent(organization).await)?;
        let keys = owner.map(|organization| organization.own_keys).unwrap_or_default();
        let account = self.vapi_of(organization, &keys).await?;
        if fits(&account) {
            return Ok(account);
        }
        // Read in every case, so that the requests do not tell whether the organization exists.
        let _platforms: vapi::Account = self.secrets.of_deployment_now(&self.vapi_secret).await?;
        self.vapi_of(organization, &keys).await
    }

    async fn vapi_of(&self, organization: OrganizationId, keys: &OwnKeys) -> Result<vapi::Account> {
        match self.own_of(organization, KeyService::Vapi, keys).await? {
            Some(own) => Ok(own),
            None => self.platform_vapi().await,
        }
    }

    pub async fn platform_vapi(&self) -> Result<vapi::Account> {
        Ok(self.secrets.of_deployment(&self.vapi_secret).await?)
    }

    /// The organization's LLM account.
    ///
    /// # Errors
    /// [`Error::Conflict`] if neither the organization nor the platform has one.
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
        let account = llm::Account::of_platform(self.secrets.of_deployment(&platforms.secret).await?, &platforms.model);
        account.ok_or_else(|| {
            Error::Conflict(
                "there is no LLM to ask: store a key for one (PUT /api/{slug}/keys/llm), or deploy with the parameter \
                 LlmApiKey"
                    .into(),
            )
        })
    }

    /// The organization's own LLM account, if it checks what agents say. `model`: the default if the account names none.
    pub async fn llm_for_claims(&self, organization: OrganizationId, model: &str) -> Result<Option<llm::Account>> {
        let keys = self.organizations.own_keys(organization).await?;
        if !keys.get(KeyService::Llm).is_some_and(|key| key.verifies_claims) {
            return Ok(None);
        }
        let own = self.own_of(organization, KeyService::Llm, &keys).await?;
        Ok(own.map(|own| llm::Account::own(organization, own, model)))
    }

    /// To be read before the account with which VAPI is asked.
    pub async fn checked_with(&self, organization: OrganizationId) -> Result<CheckedWith> {
        let keys = self.organizations.own_keys(organization).await?;
        Ok(CheckedWith(keys.get(KeyService::Vapi).map(|key| key.id)))
    }

    /// `None` without an own account.
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

    /// A new secret name for a tool's values. Each change gets one, so a secret's content never changes.
    pub fn new_tool_secret(&self, organization: OrganizationId, tool: ToolId) -> String {
        format!("{}tools/{organization}/{tool}/{}", self.prefix, SecretId::generate())
    }

    pub fn secret_name(&self, organization: OrganizationId, service: KeyService, key: SecretId) -> String {
        format!("{}{service}/{organization}/{key}", self.prefix)
    }
}
