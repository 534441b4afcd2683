//! Triggers deployed at Pipedream, for services that post no events to a hook of the organization's.
//!
//! Each trigger has its own hook, to whose address Pipedream posts. A row in `deployed_triggers` is written before the
//! deployment, so a trigger left by a crash is found by its hook's address among the organization's triggers at Pipedream. After
//! a new public address the trigger stays, and Pipedream gets the hook's new address.

use futures_util::{StreamExt, TryStreamExt, future::BoxFuture, stream};
use secrecy::SecretString;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::{
    Deadline, Error, Result,
    automation::definition::trigger::Trigger,
    clients::{
        self, Failure, Pipedream, Secrets,
        pipedream::{NewTrigger, Project, TriggerWebhook},
    },
    connections::{Connection, Connections},
    error::{self, found},
    lifecycle::{HookRegistry, MOST_SECRETS, NewHook},
    models::{
        Automation, AutomationId, AutomationStatus, ConnectionKind, DeployedTrigger, Hook, HookId, OrganizationId,
        Timestamp, folded_name,
    },
    store::{DeployedTriggers, Lease, Services},
    webhooks::{HookSecret, Scheme},
};

const TRIES: u32 = 4;
const BESIDE: usize = 8;
/// Triggers that are given a new address at once.
const PAGE: i32 = 8;
/// The service in the addresses of these hooks.
const PIPEDREAM: &str = "pipedream";

#[derive(Clone)]
pub struct PipedreamTriggers {
    pub rows: DeployedTriggers,
    pub hooks: HookRegistry,
    pub services: Services,
    pub connections: Connections,
    pub pipedream: Pipedream,
    pub secrets: Secrets,
    pub pipedream_secret: String,
    /// Base URL of hooks, without a trailing slash.
    pub public_url: String,
}

/// Compared to detect a change: an equal configuration is not deployed again.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Configuration {
    component: String,
    version: String,
    configured_props: Map<String, Value>,
}

/// The reason why no trigger can be deployed, a sentence for the automation's owner.
#[derive(Debug)]
pub(super) struct Refused(pub(super) String);

impl PipedreamTriggers {
    /// Deploys or deletes the trigger of an automation. Only an active automation that listens to an event of a deployable
    /// trigger has one. A permanent refusal is returned, and leaves nothing deployed.
    ///
    /// # Errors
    /// An outage; the call may be repeated.
    pub(super) async fn agree(
        &self,
        organization: OrganizationId,
        id: AutomationId,
        automation: Option<(&Automation, &Trigger)>,
        deadline: Deadline,
    ) -> Result<Option<Refused>> {
        let wanted = match automation {
            Some((automation, trigger)) if automation.status == AutomationStatus::Active => {
                Box::pin(self.wanted(organization, trigger, deadline)).await?
            }
            _ => Ok(None),
        };
        let (wanted, refused) = match wanted {
            Ok(wanted) => {
                (wanted.map(|wanted| serde_json::to_string(&wanted)).transpose().map_err(Error::internal)?, None)
            }
            Err(refused) => (None, Some(refused)),
        };
        let deployed_for = automation.and_then(|(_, trigger)| trigger.deployed_for());
        let is_wanted = |row: &DeployedTrigger| {
            wanted.as_ref() == Some(&row.configuration)
                && (row.deployed_for.is_none() || row.deployed_for == deployed_for)
        };
        for _ in 0..TRIES {
            let recorded = self.rows.find(organization, id).await?;
            match (&recorded, &wanted) {
                (None, None) => return Ok(refused),
                (Some(row), _) if is_wanted(row) && row.trigger_id.is_some() && self.is_here(row) => return Ok(None),
                (None, Some(wanted)) => {
                    self.rows.record(&self.new_row(organization, id, wanted, deployed_for.clone())).await?;
                }
                (Some(_), _) => {}
            }
            // Unless another process deleted the row.
            let Some((row, lease)) = found(self.rows.acquire(organization, id, deadline).await)? else { continue };
            match Box::pin(self.under_lease(&row, &lease, is_wanted(&row), deadline)).await {
                Ok(Done::Kept) => {
                    lease.release().await?;
                    // The next iteration moves a trigger that was deployed at an earlier address.
                    if row.trigger_id.is_some() || self.is_here(&row) {
                        return Ok(None);
                    }
                }
                // The old trigger is deleted; the next iteration deploys the new one.
                Ok(Done::Gone) => self.rows.delete(&row, lease).await?,
                Ok(Done::Refused(sentence)) => {
                    self.rows.delete(&row, lease).await?;
                    return Ok(Some(Refused(sentence)));
                }
                Err(error) => {
                    lease.release().await?;
                    return Err(error);
                }
            }
        }
        Err(Error::Conflict("the triggers of the automation are being changed; try again".into()))
    }

    async fn under_lease(
        &self,
        row: &DeployedTrigger,
        lease: &Lease,
        is_wanted: bool,
        deadline: Deadline,
    ) -> Result<Done> {
        if !is_wanted {
            self.undeploy(row, deadline).await?;
            return Ok(Done::Gone);
        }
        let Some(trigger) = &row.trigger_id else { return self.deploy(row, lease, deadline).await };
        if Box::pin(self.move_here(row, trigger, lease, deadline)).await? {
            return Ok(Done::Kept);
        }
        self.undeploy(row, deadline).await?;
        Ok(Done::Gone)
    }

    /// Has a page of all organizations' triggers post to the current address. Gives those that could not be changed, and the key
    /// to continue after.
    pub(super) async fn readdress(
        &self,
        after: Option<&str>,
        deadline: Deadline,
    ) -> Result<(Vec<DeployedTrigger>, Option<String>)> {
        let (rows, next) = self.rows.page(after, PAGE).await?;
        let mut moving: Vec<BoxFuture<'_, (DeployedTrigger, Result<bool>)>> = Vec::with_capacity(rows.len());
        for row in rows {
            moving.push(Box::pin(async move {
                let moved = self.readdress_one(&row, deadline).await;
                (row, moved)
            }));
        }
        let moved: Vec<_> = stream::iter(moving).buffer_unordered(BESIDE).collect().await;
        let is_left = |(row, moved): (DeployedTrigger, Result<bool>)| match moved {
            Ok(moved) => (!moved).then_some(row),
            Err(error) => {
                let error = error::chain(&error);
                tracing::warn!(automation.id = %row.id, "a trigger could not be given its new address: {error}");
                Some(row)
            }
        };
        Ok((moved.into_iter().filter_map(is_left).collect(), next))
    }

    async fn readdress_one(&self, row: &DeployedTrigger, deadline: Deadline) -> Result<bool> {
        // A deployment under way has an intent.
        if self.is_here(row) || row.trigger_id.is_none() {
            return Ok(true);
        }
        let acquired = self.rows.acquire(row.organization_id, row.id, deadline).await;
        let Some((row, lease)) = found(acquired)? else { return Ok(true) };
        let moved = match &row.trigger_id {
            Some(trigger) => Box::pin(self.move_here(&row, trigger, &lease, deadline)).await,
            None => Ok(true),
        };
        lease.release().await?;
        moved
    }

    /// Has Pipedream post the trigger's events to the current address. They go to both addresses until the hook has the new
    /// address's key, so none is lost; the hook takes each once. False: the trigger or its hook is gone.
    async fn move_here(&self, row: &DeployedTrigger, trigger: &str, lease: &Lease, deadline: Deadline) -> Result<bool> {
        if self.is_here(row) {
            return Ok(true);
        }
        let (organization, address) = (row.organization_id, self.address(row.hook_id));
        let project: Project = self.secrets.of_deployment(&self.pipedream_secret).await?;
        let Some(hook) = found(self.hooks.hooks.get(organization, row.hook_id).await)? else { return Ok(false) };
        let webhooks = self.pipedream.trigger_webhooks(&project, organization, trigger, deadline).await?;
        // Without an address it posts nowhere, and the hook may lack its key.
        if webhooks.is_empty() {
            return Ok(false);
        }
        let mut urls: Vec<&str> = webhooks.iter().map(|webhook| webhook.url.as_str()).collect();
        if urls != [address.as_str()] {
            if !urls.contains(&address.as_str()) {
                urls.push(&address);
                self.pipedream.set_trigger_webhooks(&project, organization, (trigger, &urls), deadline).await?;
            }
            let posts = (trigger, address.as_str());
            let (hook, webhook) = self.take_key(hook, &project, posts, deadline).await?;
            let only = [address.as_str()];
            self.pipedream.set_trigger_webhooks(&project, organization, (trigger, &only), deadline).await?;
            // If Pipedream has replaced the webhook, its key is another one.
            let now = self.webhook(&project, organization, posts, deadline).await?;
            if now.and_then(|now| now.id) != webhook {
                self.take_key(hook, &project, posts, deadline).await?;
            }
            tracing::info!(automation.id = %row.id, hook.id = %row.hook_id, "a trigger was given its new address");
        }
        self.rows.deployed(lease, trigger, &address).await?;
        Ok(true)
    }

    /// Whether the row's trigger is known to post to the current address.
    fn is_here(&self, row: &DeployedTrigger) -> bool {
        row.webhook_url.as_ref() == Some(&self.address(row.hook_id))
    }

    /// Deploys the recorded configuration, or adopts the trigger that an earlier attempt deployed.
    async fn deploy(&self, row: &DeployedTrigger, lease: &Lease, deadline: Deadline) -> Result<Done> {
        let organization = row.organization_id;
        let project: Project = self.secrets.of_deployment(&self.pipedream_secret).await?;
        let hook = match self.hooks.hooks.get(organization, row.hook_id).await {
            Ok(hook) => hook,
            Err(Error::NotFound(_)) => {
                let new = NewHook {
                    id: row.hook_id,
                    service: PIPEDREAM.to_owned(),
                    scheme: Scheme::Pipedream,
                    own: None,
                    label: String::new(),
                    tenant_key: None,
                    deployed: Some((row.id, row.deployed_for.clone())),
                    secret: None,
                };
                self.hooks.create(organization, new, deadline).await?
            }
            Err(error) => return Err(error),
        };
        let address = self.address_of(row);
        let found =
            if row.asked { self.found_by_address(&project, organization, &address, deadline).await? } else { None };
        let is_new = found.is_none();
        let (trigger_id, signing_key) = if let Some((trigger, webhook)) = found {
            (trigger, webhook.signing_key)
        } else {
            if !row.asked {
                self.rows.asked(lease).await?;
            }
            let Configuration { component, version, configured_props } =
                serde_json::from_str(&row.configuration).map_err(Error::internal)?;
            let new = NewTrigger { component: &component, version: &version, configured_props, webhook_url: &address };
            match self.pipedream.deploy_trigger(&project, organization, new, deadline).await {
                Ok(deployed) => (deployed.id, deployed.signing_key),
                Err(error) => match refusal(&error) {
                    Some(sentence) => {
                        self.hooks.delete(&hook, deadline).await?;
                        return Ok(Done::Refused(sentence));
                    }
                    None => return Err(error.into()),
                },
            }
        };
        // The hook's key may belong to a deleted trigger.
        if is_new || hook.secrets.is_empty() {
            if let Some(key) = signing_key {
                self.add_key(hook, key, deadline).await?;
            } else {
                self.take_key(hook, &project, (&trigger_id, &address), deadline).await?;
            }
        }
        self.rows.deployed(lease, &trigger_id, &address).await?;
        tracing::info!(automation.id = %row.id, hook.id = %row.hook_id, "a trigger was deployed");
        Ok(Done::Kept)
    }

    /// Adds the signing key of the trigger's webhook for this address. Gives the hook, and the webhook's id.
    async fn take_key(
        &self,
        hook: Hook,
        project: &Project,
        (trigger, address): (&str, &str),
        deadline: Deadline,
    ) -> Result<(Hook, Option<String>)> {
        let organization = hook.organization_id;
        let webhook = self.webhook(project, organization, (trigger, address), deadline).await?;
        let id = webhook.as_ref().and_then(|webhook| webhook.id.clone());
        let key = self.signing_key(project, organization, trigger, webhook, deadline).await?;
        Ok((self.add_key(hook, key, deadline).await?, id))
    }

    /// Adds a signing key to a hook, in place of the oldest if there is no room.
    async fn add_key(&self, hook: Hook, key: SecretString, deadline: Deadline) -> Result<Hook> {
        let hook = match hook.secrets.first().filter(|_| hook.secrets.len() >= MOST_SECRETS) {
            Some(oldest) => self.hooks.remove_secret(&hook, oldest.id, None, deadline).await?,
            None => hook,
        };
        let secret = HookSecret { secret: key, ..HookSecret::default() };
        self.hooks.add_secret(&hook, &secret.to_secret(), false, None, deadline).await
    }

    async fn undeploy(&self, row: &DeployedTrigger, deadline: Deadline) -> Result<()> {
        let organization = row.organization_id;
        let project: Project = self.secrets.of_deployment(&self.pipedream_secret).await?;
        let trigger = match &row.trigger_id {
            Some(trigger) => Some(trigger.clone()),
            None if row.asked => {
                let found = self.found_by_address(&project, organization, &self.address_of(row), deadline).await?;
                found.map(|(trigger, _)| trigger)
            }
            None => None,
        };
        if let Some(trigger) = trigger {
            self.pipedream.delete_trigger(&project, organization, &trigger, deadline).await?;
            tracing::info!(automation.id = %row.id, "a trigger was deleted");
        }
        match found(self.hooks.hooks.get(organization, row.hook_id).await)? {
            Some(hook) => self.hooks.delete(&hook, deadline).await,
            None => Ok(()),
        }
    }

    fn address(&self, hook: HookId) -> String {
        format!("{}/api/hooks/{PIPEDREAM}/{hook}", self.public_url)
    }

    fn address_of(&self, row: &DeployedTrigger) -> String {
        row.webhook_url.clone().unwrap_or_else(|| self.address(row.hook_id))
    }

    fn new_row(
        &self,
        organization: OrganizationId,
        id: AutomationId,
        configuration: &str,
        deployed_for: Option<String>,
    ) -> DeployedTrigger {
        let hook_id = HookId::generate();
        DeployedTrigger {
            id,
            organization_id: organization,
            configuration: configuration.to_owned(),
            deployed_for,
            hook_id,
            webhook_url: Some(self.address(hook_id)),
            trigger_id: None,
            asked: false,
            created_at: Timestamp::now(),
        }
    }

    async fn found_by_address(
        &self,
        project: &Project,
        organization: OrganizationId,
        address: &str,
        deadline: Deadline,
    ) -> Result<Option<(String, TriggerWebhook)>> {
        let triggers = self.pipedream.deployed_triggers(project, organization, deadline).await?;
        let mut asked: Vec<BoxFuture<'_, Result<Option<TriggerWebhook>>>> = Vec::with_capacity(triggers.len());
        for trigger in &triggers {
            asked.push(Box::pin(self.webhook(project, organization, (trigger, address), deadline)));
        }
        let answers: Vec<_> = stream::iter(asked).buffered(BESIDE).try_collect().await?;
        Ok(triggers.iter().zip(answers).find_map(|(trigger, webhook)| Some((trigger.clone(), webhook?))))
    }

    async fn webhook(
        &self,
        project: &Project,
        organization: OrganizationId,
        (trigger, address): (&str, &str),
        deadline: Deadline,
    ) -> Result<Option<TriggerWebhook>> {
        let webhooks = self.pipedream.trigger_webhooks(project, organization, trigger, deadline).await?;
        Ok(webhooks.into_iter().find(|webhook| webhook.url == address))
    }

    /// The signing key of a trigger's webhook. Pipedream may show a key only once; then a new one replaces it.
    async fn signing_key(
        &self,
        project: &Project,
        organization: OrganizationId,
        trigger: &str,
        webhook: Option<TriggerWebhook>,
        deadline: Deadline,
    ) -> Result<SecretString> {
        match webhook {
            Some(TriggerWebhook { signing_key: Some(key), .. }) => Ok(key),
            Some(TriggerWebhook { id: Some(webhook), .. }) => {
                let made =
                    self.pipedream.regenerate_signing_key(project, organization, (trigger, &webhook), deadline).await;
                Ok(made?)
            }
            _ => Err(Error::internal("Pipedream did not return the signing key of a deployed trigger")),
        }
    }

    async fn wanted(
        &self,
        organization: OrganizationId,
        trigger: &Trigger,
        deadline: Deadline,
    ) -> Result<Result<Option<Configuration>, Refused>> {
        let Trigger::Webhook { service, event_type, params, .. } = trigger else { return Ok(Ok(None)) };
        let mut capabilities = self.services.capabilities(std::slice::from_ref(service), deadline).await?;
        let payload = capabilities
            .remove(&folded_name(service))
            .and_then(|mut capabilities| capabilities.webhook_payload_schemas.remove(event_type));
        let Some(component) = payload.and_then(|payload| payload.deployed_trigger) else { return Ok(Ok(None)) };
        let found = self.services.named(std::slice::from_ref(service), deadline).await?;
        let Some(service) = found.into_iter().find(|found| folded_name(&found.name) == folded_name(service)) else {
            return Ok(Err(Refused(format!("There is no service {service} any more."))));
        };
        let ConnectionKind::Pipedream { .. } = service.connection else { return Ok(Ok(None)) };
        let connections = self.connections.of(organization, std::slice::from_ref(&service), deadline).await;
        let connection = connections.get(&service.id).unwrap_or(&Connection::Unknown);
        let Some(account) = connection.account().filter(|_| connection.can_act()) else {
            return match connection {
                Connection::Unknown => Err(Error::Unavailable("the connections of services", "not known now".into())),
                Connection::Expired { .. } => {
                    let (name, renewal) = (&service.name, connection.renewal(&service.name));
                    Ok(Err(Refused(format!("{name} refuses the account; {renewal}, and activates again."))))
                }
                _ => Ok(Err(Refused(format!("{} is not connected; connect it, and activate again.", service.name)))),
            };
        };
        let mut configured_props = component.defaults;
        configured_props.extend(params.clone());
        configured_props.insert(component.app_prop, json!({"authProvisionId": account.id}));
        Ok(Ok(Some(Configuration { component: component.component, version: component.version, configured_props })))
    }
}

enum Done {
    Kept,
    Gone,
    Refused(String),
}

/// The sentence for the owner, if Pipedream rejects the request itself; Pipedream's own text is only logged. An owner cannot
/// repair rejected credentials or a missing project, so these yield no sentence.
fn refusal(error: &clients::Error) -> Option<String> {
    match &error.failure {
        Failure::Rejected { status: 400 | 422, .. } => {
            tracing::warn!("Pipedream refused to deploy a trigger: {}", error::chain(error));
            Some("Pipedream did not deploy the trigger of this event; check the params of the trigger, and whether the connected account may do this.".to_owned())
        }
        _ => None,
    }
}
