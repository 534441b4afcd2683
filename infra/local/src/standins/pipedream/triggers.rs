//! Deployed triggers: components that would emit events to an address.
//!
//! The stand-in emits none itself; a test signs an event with the key and posts it.

use std::sync::atomic::Ordering;

use serde::Serialize;
use serde_json::{Map, Value, json};
use uuid::Uuid;

use super::{Pipedream, Problem, Standin, asked_of, limit, locked};
use crate::standins::exchange::{Answer, Request};

const FIELDS: [&str; 8] = [
    "id",
    "external_user_id",
    "version",
    "configured_props",
    "dynamic_props_id",
    "webhook_url",
    "workflow_id",
    "emit_on_deploy",
];

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DeployedTrigger {
    /// `dc_…`
    pub id: String,
    pub component_key: String,
    pub version: String,
    pub external_user_id: String,
    pub configured_props: Value,
    /// The first is that of the deployment, until they are set anew.
    pub webhooks: Vec<Webhook>,
    pub emit_on_deploy: bool,
}

/// A destination of a trigger's events.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Webhook {
    /// `wh_…`
    pub id: String,
    pub url: String,
    /// The key that signs its deliveries.
    pub signing_key: String,
}

impl Webhook {
    fn new(url: &str) -> Self {
        let (id, signing_key) = (Uuid::new_v4().simple(), Uuid::new_v4().simple());
        Self { id: format!("wh_{id}"), url: url.to_owned(), signing_key: signing_key.to_string() }
    }
}

impl DeployedTrigger {
    /// The address of its first webhook; empty without one.
    pub fn webhook_url(&self) -> &str {
        self.webhooks.first().map_or("", |webhook| &webhook.url)
    }

    /// The key of its first webhook; empty without one.
    pub fn signing_key(&self) -> &str {
        self.webhooks.first().map_or("", |webhook| &webhook.signing_key)
    }
}

impl Standin<Pipedream> {
    /// The deployed triggers, in order.
    pub fn triggers(&self) -> Vec<DeployedTrigger> {
        locked(&self.service.deployed).clone()
    }

    /// From now on only a regeneration reveals a signing key.
    pub fn hide_signing_keys(&self) {
        self.service.hides_keys.store(true, Ordering::Relaxed);
    }

    /// From now on each change of a trigger's addresses replaces all its webhooks, and so their keys.
    pub fn renew_webhooks(&self) {
        self.service.renews_webhooks.store(true, Ordering::Relaxed);
    }

    /// Deletes all deployed triggers without telling anybody.
    pub fn lose_triggers(&self) {
        locked(&self.service.deployed).clear();
    }
}

impl Pipedream {
    pub(super) fn deploy(&self, request: &Request) -> Result<Answer, Problem> {
        if !request.is_json() {
            return Err(Problem::new(400, "invalid_request", "the body must be application/json"));
        }
        let body = request.json().map_err(|error| Problem::new(400, "invalid_request", error.to_string()))?;
        let body =
            body.as_object().ok_or_else(|| Problem::new(400, "invalid_request", "the body must be an object"))?;
        let (key, user) = asked_of(body, &FIELDS)?;
        let missing = |problem: String| Problem::new(404, "component_not_found", problem);
        let version = body.get("version").and_then(Value::as_str);
        let fits = |of: &&super::Action| of.key == key && version.is_none_or(|version| of.version == version);
        let component = self.options.triggers.iter().rfind(fits);
        let component =
            component.ok_or_else(|| missing(format!("no trigger with key {key} and version {version:?}")))?;
        let url = body.get("webhook_url").and_then(Value::as_str).filter(|url| url.starts_with("http"));
        let url = url.ok_or_else(|| Problem::new(400, "invalid_request", "webhook_url must be a URL"))?;
        let props = body.get("configured_props").cloned().unwrap_or_else(|| json!({}));
        let given = props.as_object();
        let given = given.ok_or_else(|| Problem::new(400, "invalid_request", "configured_props must be an object"))?;
        let problems = self.trigger_problems(component, user, given);
        if !problems.is_empty() {
            let details = Value::Object(problems);
            return Err(Problem { details, ..Problem::new(400, "invalid_props", "configured_props are not valid") });
        }
        let trigger = DeployedTrigger {
            id: format!("dc_{}", &Uuid::new_v4().simple().to_string()[..7]),
            component_key: key.to_owned(),
            version: component.version.clone(),
            external_user_id: user.to_owned(),
            configured_props: props.clone(),
            webhooks: vec![Webhook::new(url)],
            emit_on_deploy: body.get("emit_on_deploy") != Some(&Value::Bool(false)),
        };
        let mut answer = json!({
            "data": {
                "id": trigger.id, "owner_id": user, "component_id": "sc_local", "component_key": key, "active": true,
                "configurable_props": component.configurable_props, "configured_props": props, "name": component.name,
                "name_slug": key, "type": "DeployedComponent", "created_at": 1, "updated_at": 1,
                "webhook_signing_key": trigger.signing_key(),
            },
        });
        if self.hides_keys()
            && let Some(key) = answer.pointer_mut("/data/webhook_signing_key")
        {
            *key = Value::Null;
        }
        locked(&self.deployed).push(trigger);
        Ok(Answer::json(200, &answer))
    }

    fn trigger_problems(
        &self,
        component: &super::Action,
        user: &str,
        given: &Map<String, Value>,
    ) -> Map<String, Value> {
        let mut problems = component.problems(given);
        let known = locked(&self.accounts);
        for (prop, account) in component.accounts(given) {
            if !known.iter().any(|it| it.id == account && it.external_user_id == user && it.app == component.app) {
                let message = format!("account {account} is not connected to {} for this user", component.app);
                problems.insert(prop.to_owned(), Value::String(message));
            }
        }
        problems
    }

    pub(super) fn deployed(&self, request: &Request) -> Result<Answer, Problem> {
        let (user, limit) = (user_of(request)?, limit(request)?);
        let deployed = locked(&self.deployed);
        let mut theirs = deployed.iter().filter(|trigger| trigger.external_user_id == user);
        if let Some(cursor) = request.parameter("after")
            && !theirs.by_ref().any(|trigger| trigger.id == cursor)
        {
            return Err(Problem::new(400, "invalid_cursor", "after is no cursor of this list"));
        }
        let page: Vec<&DeployedTrigger> = theirs.take(limit).collect();
        let of = |trigger: &&DeployedTrigger| json!({"id": trigger.id, "component_key": trigger.component_key, "active": true});
        let data: Vec<Value> = page.iter().map(of).collect();
        let page_info = json!({"count": data.len(), "end_cursor": page.last().map(|trigger| &trigger.id)});
        Ok(Answer::json(200, &json!({"data": data, "page_info": page_info})))
    }

    pub(super) fn webhooks(&self, id: &str, request: &Request) -> Result<Answer, Problem> {
        let user = user_of(request)?;
        let deployed = locked(&self.deployed);
        let found = deployed.iter().find(|trigger| trigger.id == id && trigger.external_user_id == user);
        let trigger = found.ok_or_else(|| Problem::new(404, "not_found", "trigger not found"))?;
        Ok(self.webhooks_of(trigger))
    }

    /// A webhook whose address stays keeps its id and key, unless webhooks are renewed.
    pub(super) fn set_webhooks(&self, id: &str, request: &Request) -> Result<Answer, Problem> {
        let invalid = |problem: &str| Problem::new(400, "invalid_request", problem);
        let user = user_of(request)?;
        let body = request.json().map_err(|error| invalid(&error.to_string()))?;
        let urls = body.get("webhook_urls").and_then(Value::as_array);
        let urls = urls.ok_or_else(|| invalid("webhook_urls must be a list"))?;
        let urls: Option<Vec<&str>> =
            urls.iter().map(|url| url.as_str().filter(|url| url.starts_with("http"))).collect();
        let urls = urls.ok_or_else(|| invalid("webhook_urls must be URLs"))?;
        let mut deployed = locked(&self.deployed);
        let found = deployed.iter_mut().find(|trigger| trigger.id == id && trigger.external_user_id == user);
        let trigger = found.ok_or_else(|| Problem::new(404, "not_found", "trigger not found"))?;
        let renews = self.renews_webhooks.load(Ordering::Relaxed);
        let known = |url: &str| trigger.webhooks.iter().find(|webhook| !renews && webhook.url == url).cloned();
        trigger.webhooks = urls.into_iter().map(|url| known(url).unwrap_or_else(|| Webhook::new(url))).collect();
        Ok(self.webhooks_of(trigger))
    }

    fn webhooks_of(&self, trigger: &DeployedTrigger) -> Answer {
        let urls: Vec<&str> = trigger.webhooks.iter().map(|webhook| &*webhook.url).collect();
        let shown = |webhook: &Webhook| {
            let key = Some(&webhook.signing_key).filter(|_| !self.hides_keys());
            json!({"id": webhook.id, "url": webhook.url, "signing_key": key})
        };
        let webhooks: Vec<Value> = trigger.webhooks.iter().map(shown).collect();
        Answer::json(200, &json!({"webhook_urls": urls, "webhooks": webhooks}))
    }

    pub(super) fn regenerate_key(&self, id: &str, webhook: &str, request: &Request) -> Result<Answer, Problem> {
        let user = user_of(request)?;
        let mut deployed = locked(&self.deployed);
        let found = deployed.iter_mut().find(|trigger| trigger.id == id && trigger.external_user_id == user);
        let found = found.and_then(|trigger| trigger.webhooks.iter_mut().find(|known| known.id == webhook));
        let found = found.ok_or_else(|| Problem::new(404, "not_found", "webhook not found"))?;
        found.signing_key = Uuid::new_v4().simple().to_string();
        let data = json!({"id": webhook, "url": found.url, "signing_key": found.signing_key});
        Ok(Answer::json(200, &json!({"data": data})))
    }

    fn hides_keys(&self) -> bool {
        self.hides_keys.load(Ordering::Relaxed)
    }

    pub(super) fn undeploy(&self, id: &str, request: &Request) -> Result<Answer, Problem> {
        let user = user_of(request)?;
        let mut deployed = locked(&self.deployed);
        let before = deployed.len();
        deployed.retain(|trigger| trigger.id != id || trigger.external_user_id != user);
        if deployed.len() == before {
            Err(Problem::new(404, "not_found", "trigger not found"))
        } else {
            Ok(Answer::empty(204))
        }
    }
}

fn user_of(request: &Request) -> Result<&str, Problem> {
    let user = request.parameter("external_user_id").filter(|user| !user.is_empty());
    user.ok_or_else(|| Problem::new(400, "invalid_request", "external_user_id is required"))
}
