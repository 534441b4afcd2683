//! Secrets in Secrets Manager that belong to rows of our tables.
//!
//! A secret is created under an intent that the row's transaction closes, and deleted under an intent that the row's transaction
//! opens. So a row or an intent always names it; settling keeps secrets with a row and deletes the others.

use secrecy::SecretString;

use super::{left_open, ownership};
use crate::{
    Deadline, Error, Result,
    actions::SecretValues,
    clients::Secrets,
    error::found,
    models::{Change, Intent, OrganizationId, SecretOwner},
    store::{Database, Hooks, Intents, Organizations, PhoneNumbers, Tools},
};

#[derive(Clone)]
pub struct StoredSecrets {
    secrets: Secrets,
    intents: Intents,
    phone_numbers: PhoneNumbers,
    organizations: Organizations,
    tools: Tools,
    hooks: Hooks,
}

impl StoredSecrets {
    pub fn new(database: &Database, secrets: Secrets) -> Self {
        Self {
            secrets,
            intents: Intents::new(database),
            phone_numbers: PhoneNumbers::new(database),
            organizations: Organizations::new(database),
            tools: Tools::new(database),
            hooks: Hooks::new(database),
        }
    }

    pub fn intent(
        organization: OrganizationId,
        secret: impl Into<String>,
        of: SecretOwner,
        deadline: Deadline,
    ) -> Intent {
        Intent::new(organization, Change::StoreSecret { secret: secret.into(), of }, ownership(deadline))
    }

    /// Creates the secret of an intent, runs `write`, which writes the row and closes the intent, and deletes the secret if the
    /// row does not name it in the end.
    ///
    /// # Errors
    /// The error of `write`, unless the row shows that only its answer was lost.
    pub async fn store(
        &self,
        intent: &Intent,
        content: &SecretString,
        write: impl Future<Output = Result<()>>,
    ) -> Result<()> {
        let Change::StoreSecret { secret, of } = &intent.change else {
            return Err(Error::internal("the intent is of no secret"));
        };
        self.make(intent, secret, content).await?;
        let Err(error) = write.await else { return Ok(()) };
        match self.is_named(intent.organization_id, secret, *of).await {
            Ok(true) => return Ok(()),
            Ok(false) => self.discard(intent).await,
            Err(unknown) => left_open("a secret whose row may not name it", &unknown),
        }
        Err(error)
    }

    async fn make(&self, intent: &Intent, secret: &str, content: &SecretString) -> Result<()> {
        self.intents.open(intent).await?;
        let Err(error) = self.secrets.create(secret, content).await else { return Ok(()) };
        if error.effect_possible() {
            // The intent stays: the creation may still arrive.
            if let Err(left) = self.secrets.delete(secret).await {
                left_open("a secret without a row", &left.into());
            }
        } else if let Err(left) = self.intents.close(intent.id).await {
            left_open("an intent", &left);
        }
        Err(error.into())
    }

    /// Deletes the secret of a recorded intent, which no row names. `settle` retries failures.
    pub async fn discard(&self, intent: &Intent) {
        let Change::StoreSecret { secret, .. } = &intent.change else { return };
        let discarded = async {
            self.secrets.delete(secret).await?;
            self.intents.close(intent.id).await
        };
        if let Err(left) = discarded.await {
            left_open("a secret without a row", &left);
        }
    }

    /// The values in a tool's secret; empty if it was deleted by hand.
    pub(super) async fn values(&self, secret: &str) -> Result<SecretValues> {
        Ok(self.secrets.find(secret).await?.unwrap_or_default())
    }

    pub(super) async fn settle(
        &self,
        organization: OrganizationId,
        secret: &str,
        of: SecretOwner,
    ) -> Result<&'static str> {
        if !of.owns_secret_name(organization, secret) {
            return Err(Error::internal("the intent names a secret that is not its owner's"));
        }
        if self.is_named(organization, secret, of).await? {
            return Ok("the secret is in use");
        }
        self.secrets.delete(secret).await?;
        Ok("the secret was deleted")
    }

    async fn is_named(&self, organization: OrganizationId, secret: &str, of: SecretOwner) -> Result<bool> {
        let named = match of {
            SecretOwner::PhoneNumber(id) => {
                self.phone_numbers.get(organization, id).await.map(|row| {
                    let named = row.credentials_secret;
                    // An ARN ends in the name, a dash and six characters chosen by AWS.
                    named == secret || named.contains(&format!(":secret:{secret}-"))
                })
            }
            SecretOwner::Tool(id) => {
                let row = self.tools.get(organization, id).await;
                row.map(|row| row.values_secret.as_deref() == Some(secret))
            }
            SecretOwner::OwnKey { service, id } => {
                let row = self.organizations.get_consistent(organization).await;
                row.map(|row| row.own_keys.get(service).is_some_and(|key| key.id == id))
            }
            SecretOwner::Credential { service, id } => {
                let row = self.organizations.get_consistent(organization).await;
                row.map(|row| row.service_credentials.get(&service).is_some_and(|credential| credential.id == id))
            }
            SecretOwner::Hook { hook, id } => {
                let row = self.hooks.get(organization, hook).await;
                row.map(|row| row.secrets.iter().any(|secret| secret.id == id))
            }
        };
        Ok(found(named)?.unwrap_or(false))
    }
}
