//! Hooks: a row, and its secrets in Secrets Manager.
//!
//! A secret is created before the row names it and deleted after the row drops it. Its content never changes: each secret has
//! its own name. Interrupted changes are settled by their intents.

use secrecy::SecretString;

use super::StoredSecrets;
use crate::{
    Deadline, Error, Result,
    clients::Secrets,
    models::{
        AutomationId, Hook, HookId, HookSecretRef, HookStatus, Intent, OrganizationId, OwnHook, SecretId, SecretOwner,
        Timestamp,
    },
    store::{HookChange, Hooks},
    webhooks::{HookSecret, Scheme},
};

/// Accepted secrets of a hook: the current one, and the next or the previous.
pub const MOST_SECRETS: usize = 2;

#[derive(Clone)]
pub struct HookRegistry {
    pub hooks: Hooks,
    pub(crate) stored: StoredSecrets,
    pub(crate) secrets: Secrets,
    pub(crate) prefix: String,
}

#[derive(Debug, Clone)]
pub struct NewHook {
    /// Chosen in advance if the service must be told the address before there is a secret.
    pub id: HookId,
    pub service: String,
    pub scheme: Scheme,
    pub own: Option<OwnHook>,
    pub label: String,
    pub tenant_key: Option<String>,
    /// The automation that alone receives its events, and the trigger that the hook is made for.
    pub deployed: Option<(AutomationId, Option<String>)>,
    /// `None`: the hook is pending until it gets one, unless its scheme needs none.
    pub secret: Option<SecretString>,
}

impl HookRegistry {
    pub async fn create(&self, organization: OrganizationId, new: NewHook, deadline: Deadline) -> Result<Hook> {
        let now = Timestamp::now();
        let (automation_id, deployed_for) = new.deployed.unzip();
        let secret = new.secret.as_ref().map(|_| HookSecretRef { id: SecretId::generate(), created_at: now });
        let hook = Hook {
            id: new.id,
            organization_id: organization,
            scheme: Some(new.scheme),
            own: new.own,
            throttled: None,
            throttled_at: None,
            service: new.service,
            label: new.label,
            status: match (&secret, new.scheme) {
                (Some(_), _) | (None, Scheme::Unsigned) => HookStatus::Active,
                (None, _) => HookStatus::Pending,
            },
            tenant_key: new.tenant_key,
            secrets: secret.into_iter().collect(),
            unseen_secret: false,
            automation_id,
            deployed_for: deployed_for.flatten(),
            revision: 0,
            created_at: now,
            updated_at: now,
        };
        match (secret, &new.secret) {
            (Some(named), Some(content)) => {
                let made = self.intent(&hook, named.id, deadline);
                self.stored.store(&made, content, self.hooks.create(&hook, Some(made.id))).await?;
            }
            _ => self.hooks.create(&hook, None).await?,
        }
        Ok(hook)
    }

    /// Adds a secret, which activates the hook. `unseen`: the service provided the secret, and its owner has not seen it.
    ///
    /// # Errors
    /// [`Error::Conflict`] at the maximum number, or if the hook has changed since it was read.
    pub async fn add_secret(
        &self,
        read: &Hook,
        content: &SecretString,
        unseen: bool,
        label: Option<&str>,
        deadline: Deadline,
    ) -> Result<Hook> {
        if read.secrets.len() >= MOST_SECRETS {
            return Err(Error::Conflict("the hook has two secrets already; remove the old one first".into()));
        }
        let added = HookSecretRef { id: SecretId::generate(), created_at: Timestamp::now() };
        let secrets: Vec<HookSecretRef> = read.secrets.iter().copied().chain([added]).collect();
        let made = self.intent(read, added.id, deadline);
        let none = HookChange::none(read);
        let change = HookChange {
            secrets: &secrets,
            status: HookStatus::Active,
            unseen_secret: unseen,
            label: label.unwrap_or(none.label),
        };
        let mut changed = None;
        let write = async {
            changed = Some(self.hooks.change(read, change, Some(made.id), None).await?);
            Ok(())
        };
        self.stored.store(&made, content, write).await?;
        match changed {
            Some(changed) => Ok(changed),
            // Only the answer to the write was lost.
            None => self.hooks.get(read.organization_id, read.id).await,
        }
    }

    /// # Errors
    /// [`Error::Conflict`] for the last secret, or if the hook has changed since it was read.
    pub async fn remove_secret(
        &self,
        read: &Hook,
        secret: SecretId,
        label: Option<&str>,
        deadline: Deadline,
    ) -> Result<Hook> {
        let kept: Vec<HookSecretRef> = read.secrets.iter().copied().filter(|kept| kept.id != secret).collect();
        if kept.is_empty() {
            return Err(Error::Conflict(
                "it is the hook's only secret; add another one first, or delete the hook".into(),
            ));
        }
        let left = self.intent(read, secret, deadline);
        let none = HookChange::none(read);
        let change = HookChange { secrets: &kept, label: label.unwrap_or(none.label), ..none };
        let changed = self.hooks.change(read, change, None, Some(&left)).await?;
        self.stored.discard(&left).await;
        Ok(changed)
    }

    pub async fn delete(&self, read: &Hook, deadline: Deadline) -> Result<()> {
        let left: Vec<Intent> = read.secrets.iter().map(|secret| self.intent(read, secret.id, deadline)).collect();
        if let Err(error) = self.hooks.delete(read, &left).await {
            // Unless only the answer was lost and the row is gone.
            let Err(Error::NotFound(_)) = self.hooks.get(read.organization_id, read.id).await else {
                return Err(error);
            };
        }
        for left in &left {
            self.stored.discard(left).await;
        }
        Ok(())
    }

    /// Secrets that were deleted by hand are skipped.
    pub async fn secrets(&self, hook: &Hook) -> Result<Vec<HookSecret>> {
        let mut secrets = Vec::with_capacity(hook.secrets.len());
        for secret in &hook.secrets {
            secrets.extend(self.secrets.find::<HookSecret>(&self.name(hook, secret.id)).await?);
        }
        Ok(secrets)
    }

    fn name(&self, hook: &Hook, secret: SecretId) -> String {
        format!("{}hooks/{}/{}/{secret}", self.prefix, hook.organization_id, hook.id)
    }

    fn intent(&self, hook: &Hook, secret: SecretId, deadline: Deadline) -> Intent {
        let owner = SecretOwner::Hook { hook: hook.id, id: secret };
        StoredSecrets::intent(hook.organization_id, self.name(hook, secret), owner, deadline)
    }
}
