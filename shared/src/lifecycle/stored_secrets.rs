//! Secrets at Secrets Manager that belong to rows of ours, which no transaction spans either.
//!
//! A secret is made under an intent that the row's transaction closes; one whose row goes, or takes another, is deleted under
//! an intent that the row's transaction opens. So at any moment a secret is named by a row or by an intent, and settling keeps
//! the one and deletes the other.

use secrecy::SecretString;

use super::{left_open, ownership};
use crate::{
    Deadline, Error, Result,
    clients::Secrets,
    error,
    models::{Change, Intent, OrganizationId, PhoneNumberId, SecretOf},
    store::{Database, Intents, Organizations, PhoneNumbers},
};

#[derive(Clone)]
pub struct StoredSecrets {
    secrets: Secrets,
    intents: Intents,
    phone_numbers: PhoneNumbers,
    organizations: Organizations,
}

impl StoredSecrets {
    pub fn new(database: &Database, secrets: Secrets) -> Self {
        Self {
            secrets,
            intents: Intents::new(database),
            phone_numbers: PhoneNumbers::new(database),
            organizations: Organizations::new(database),
        }
    }

    /// What is to be recorded of a secret: that it is being made, or that its row leaves it.
    pub fn intent(organization: OrganizationId, secret: impl Into<String>, of: SecretOf, deadline: Deadline) -> Intent {
        Intent::new(organization, Change::StoreSecret { secret: secret.into(), of }, ownership(deadline))
    }

    /// Makes the secret of an intent, lets `write` write the row that names it and closes the intent, and deletes the secret
    /// if it does not. A write that fails may have happened all the same: `find` then gives the row if it names the secret.
    ///
    /// # Errors
    /// As `write` fails.
    pub async fn store<T>(
        &self,
        intent: &Intent,
        content: &SecretString,
        write: impl Future<Output = Result<T>>,
        find: impl Future<Output = Result<Option<T>>>,
    ) -> Result<T> {
        self.make(intent, content).await?;
        let error = match write.await {
            Ok(row) => return Ok(row),
            Err(error) => error,
        };
        match find.await {
            Ok(Some(row)) => return Ok(row),
            Ok(None) => self.discard(intent).await,
            Err(unknown) => {
                let cause = error::chain(&unknown);
                tracing::error!("whether a row names a new secret is left to settle: {cause}");
            }
        }
        Err(error)
    }

    /// Makes the secret of an intent, which is recorded first.
    async fn make(&self, intent: &Intent, content: &SecretString) -> Result<()> {
        let Change::StoreSecret { secret, .. } = &intent.change else {
            return Err(Error::internal("the intent is of no secret"));
        };
        self.intents.open(intent).await?;
        let Err(error) = self.secrets.create(secret, content).await else { return Ok(()) };
        if error.effect_possible() {
            // The intent stays: what was sent may still arrive.
            if let Err(left) = self.secrets.delete(secret).await {
                left_open("a secret without a row", &left.into());
            }
        } else if let Err(left) = self.intents.close(intent.id).await {
            left_open("an intent", &left);
        }
        Err(error.into())
    }

    /// Deletes the secret of an intent that is on record: no row names it. What fails is left to settle.
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

    /// The row decides whether the secret stays.
    pub(super) async fn settle(
        &self,
        organization: OrganizationId,
        secret: &str,
        of: SecretOf,
    ) -> Result<&'static str> {
        let named = match of {
            SecretOf::PhoneNumber(id) => self.phone_number_names(organization, id, secret).await?,
            SecretOf::OwnKey { service, id } => match self.organizations.get_now(organization).await {
                Ok(row) => row.own_keys.get(service).is_some_and(|key| key.id == id),
                Err(Error::NotFound(_)) => false,
                Err(error) => return Err(error),
            },
        };
        if named {
            return Ok("the secret is in use");
        }
        self.secrets.delete(secret).await?;
        Ok("the secret was deleted")
    }

    async fn phone_number_names(&self, organization: OrganizationId, id: PhoneNumberId, secret: &str) -> Result<bool> {
        match self.phone_numbers.get_now(organization, id).await {
            // An ARN ends in the name, a dash and six characters of AWS's.
            Ok(row) => {
                let named = row.credentials_secret;
                Ok(named == secret || named.contains(&format!(":secret:{secret}-")))
            }
            Err(Error::NotFound(_)) => Ok(false),
            Err(error) => Err(error),
        }
    }
}
