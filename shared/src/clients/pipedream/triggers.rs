//! Deployed triggers: components at Pipedream that post a service's events to our hooks.

use reqwest::Method;
use secrecy::SecretString;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::{Call, MOST_PAGES, PAGE, Pipedream, Project, Retry, UpstreamService, segment, unless_404};
use crate::{
    Deadline,
    clients::{Error, Failure},
    models::OrganizationId,
};

#[derive(Debug)]
pub struct NewTrigger<'a> {
    pub component: &'a str,
    pub version: &'a str,
    /// Including the account.
    pub configured_props: Map<String, Value>,
    pub webhook_url: &'a str,
}

#[derive(Debug)]
pub struct PipedreamTrigger {
    /// `dc_…`
    pub id: String,
    /// Signs its deliveries; absent if Pipedream does not return it with the deployment.
    pub signing_key: Option<SecretString>,
}

#[derive(Debug, Clone, Deserialize)]
pub struct TriggerWebhook {
    pub id: Option<String>,
    pub url: String,
    pub signing_key: Option<SecretString>,
}

impl Pipedream {
    /// Deploys a trigger for the organization. It emits no earlier events.
    ///
    /// # Errors
    /// After an error with [`Error::effect_possible`] the trigger may be deployed.
    pub async fn deploy_trigger(
        &self,
        project: &Project,
        organization: OrganizationId,
        trigger: NewTrigger<'_>,
        deadline: Deadline,
    ) -> Result<PipedreamTrigger, Error> {
        #[derive(Deserialize)]
        struct Answer {
            data: Deployed,
            webhook_signing_key: Option<SecretString>,
        }
        #[derive(Deserialize)]
        struct Deployed {
            id: String,
            webhook_signing_key: Option<SecretString>,
        }
        let body = json!({
            "id": trigger.component,
            "version": trigger.version,
            "external_user_id": organization.to_string(),
            "configured_props": trigger.configured_props,
            "webhook_url": trigger.webhook_url,
            "emit_on_deploy": false,
        });
        let call = Call { method: Method::POST, path: "triggers/deploy".into(), body: Some(body) };
        let answer: Answer = self.send(project, &call, Retry::NeverProcessed, deadline).await?;
        let signing_key = answer.webhook_signing_key.or(answer.data.webhook_signing_key);
        Ok(PipedreamTrigger { id: answer.data.id, signing_key })
    }

    pub async fn deployed_triggers(
        &self,
        project: &Project,
        organization: OrganizationId,
        deadline: Deadline,
    ) -> Result<Vec<String>, Error> {
        #[derive(Deserialize)]
        struct DeployedTrigger {
            id: String,
        }
        let path = format!("deployed-triggers?external_user_id={organization}");
        let (triggers, is_complete) = self.list::<DeployedTrigger>(project, &path, deadline).await?;
        if is_complete {
            return Ok(triggers.into_iter().map(|trigger| trigger.id).collect());
        }
        let problem = format!("more than {} triggers are deployed", PAGE * MOST_PAGES);
        Err(Error::new(UpstreamService::Pipedream, Failure::Undecodable(problem)))
    }

    /// The destinations of a trigger's events; empty if there is no such trigger.
    pub async fn trigger_webhooks(
        &self,
        project: &Project,
        organization: OrganizationId,
        trigger: &str,
        deadline: Deadline,
    ) -> Result<Vec<TriggerWebhook>, Error> {
        #[derive(Deserialize)]
        struct Answer {
            #[serde(default)]
            webhook_urls: Vec<String>,
            #[serde(default)]
            webhooks: Vec<TriggerWebhook>,
        }
        let call = Call { method: Method::GET, path: webhooks_path(trigger, organization), body: None };
        let answer = unless_404(self.send::<Answer>(project, &call, Retry::Harmless, deadline).await)?;
        let Some(mut answer) = answer else { return Ok(Vec::new()) };
        // Pipedream lists only the addresses unless an OAuth client of our own is used.
        answer.webhook_urls.retain(|url| answer.webhooks.iter().all(|webhook| webhook.url != *url));
        let unsigned = answer.webhook_urls.into_iter().map(|url| TriggerWebhook { id: None, url, signing_key: None });
        answer.webhooks.extend(unsigned);
        Ok(answer.webhooks)
    }

    /// Sets the destinations of a trigger's events, in place of all earlier ones.
    pub async fn set_trigger_webhooks(
        &self,
        project: &Project,
        organization: OrganizationId,
        (trigger, urls): (&str, &[&str]),
        deadline: Deadline,
    ) -> Result<(), Error> {
        let body = Some(json!({"webhook_urls": urls}));
        let call = Call { method: Method::PUT, path: webhooks_path(trigger, organization), body };
        self.send_raw(project, &call, Retry::Harmless, deadline).await.map(drop)
    }

    /// Replaces the signing key of a deployed trigger. Pipedream shows a key only once.
    pub async fn regenerate_signing_key(
        &self,
        project: &Project,
        organization: OrganizationId,
        (trigger, webhook): (&str, &str),
        deadline: Deadline,
    ) -> Result<SecretString, Error> {
        #[derive(Deserialize)]
        struct Answer {
            data: Regenerated,
        }
        #[derive(Deserialize)]
        struct Regenerated {
            signing_key: SecretString,
        }
        let (trigger, webhook) = (segment(trigger), segment(webhook));
        let path = format!(
            "deployed-triggers/{trigger}/webhooks/{webhook}/regenerate_signing_key?external_user_id={organization}"
        );
        // Repeats are harmless: the latest key is valid.
        let call = Call { method: Method::POST, path, body: None };
        let answer: Answer = self.send(project, &call, Retry::Harmless, deadline).await?;
        Ok(answer.data.signing_key)
    }

    /// Deletes a deployed trigger, even if the service prevents its clean-up; a missing one is fine.
    pub async fn delete_trigger(
        &self,
        project: &Project,
        organization: OrganizationId,
        trigger: &str,
        deadline: Deadline,
    ) -> Result<(), Error> {
        let path =
            format!("deployed-triggers/{}?external_user_id={organization}&ignore_hook_errors=true", segment(trigger));
        let call = Call { method: Method::DELETE, path, body: None };
        unless_404(self.send_raw(project, &call, Retry::Harmless, deadline).await).map(drop)
    }
}

fn webhooks_path(trigger: &str, organization: OrganizationId) -> String {
    format!("deployed-triggers/{}/webhooks?external_user_id={organization}", segment(trigger))
}
