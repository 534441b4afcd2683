//! Services and their tools: `services`, `service_tools`, `service_capabilities`.
//!
//! Written by the catalogue (`infra/catalogue`), read by all organizations.

use std::{collections::BTreeMap, fmt};

use ring::digest::{SHA256, digest};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use uuid::Uuid;

use super::{SecretId, Timestamp, ToolId};
use crate::{described::Described, models::ToolEffect};

/// `services.id`, derived from the folded name, so that a name is unique in any spelling.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ServiceId(Uuid);

impl ServiceId {
    pub fn of_name(name: &str) -> Self {
        Self(uuid::Builder::from_custom_bytes(half_digest(&format!("service {}", folded_name(name)))).into_uuid())
    }
}

impl Service {
    /// The hash of a service with its tools, without times. It changes with the content.
    pub fn edition_of(content: &Value) -> String {
        hexadecimal(half_digest(&content.to_string()))
    }
}

impl fmt::Display for ServiceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.hyphenated().fmt(f)
    }
}

/// A service's name for comparisons: lower case, `google calendar` as `google_calendar`.
pub fn folded_name(name: &str) -> String {
    let separates = |letter: char| letter.is_whitespace() || matches!(letter, '-' | '_');
    let name = name.to_lowercase();
    name.split(separates).filter(|word| !word.is_empty()).collect::<Vec<_>>().join("_")
}

/// Derived from the unique name, so that reading by name needs no index.
pub fn service_tool_id(name: &str) -> ToolId {
    ToolId::of_digest(half_digest(&format!("service tool {}", name.to_lowercase())))
}

fn half_digest(content: &str) -> [u8; 16] {
    let mut half = [0; 16];
    half.iter_mut().zip(digest(&SHA256, content.as_bytes()).as_ref()).for_each(|(to, from)| *to = *from);
    half
}

fn hexadecimal(bytes: [u8; 16]) -> String {
    Uuid::from_bytes(bytes).simple().to_string()
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Service {
    pub id: ServiceId,
    /// Displayed: `Google Calendar`.
    pub name: String,
    #[serde(default)]
    pub description: String,
    #[serde(default)]
    pub categories: Vec<String>,
    pub connection: ConnectionKind,
    #[serde(default)]
    pub is_active: bool,
    #[serde(default)]
    pub tools: u32,
    /// Changes with every change of the service or its tools.
    #[serde(default)]
    pub edition: String,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

/// The kind of connection between an organization and a service.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Described)]
#[serde(tag = "type", rename_all = "snake_case")]
#[schema(name = "ConnectionKind")]
pub enum ConnectionKind {
    None,
    /// An account at Pipedream.
    Pipedream {
        /// The app's slug at Pipedream: `slack_v2`.
        app: String,
    },
    /// A stored credential: a value for each field.
    Credential {
        fields: Vec<CredentialField>,
    },
    PhoneNumber,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Described)]
pub struct CredentialField {
    pub name: String,
    /// Where a person finds it.
    pub description: String,
    /// Whether it is hidden. A visible field names the account.
    #[serde(default = "yes")]
    pub secret: bool,
    /// Whether it is part of the address of requests, such as the `acme` of `https://acme.zendesk.com`, so has only letters,
    /// digits and hyphens.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub in_address: bool,
}

impl CredentialField {
    /// Whether a value can be part of an address: at most 63 letters, digits and hyphens, so it never ends the host or a step.
    pub fn fits_address(value: &str) -> bool {
        let fits = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
        (1..=63).contains(&value.len()) && value.bytes().all(fits) && !value.starts_with('-') && !value.ends_with('-')
    }
}

/// `organizations.service_credentials`: by service.
pub type ServiceCredentials = BTreeMap<ServiceId, ServiceCredential>;

/// The reference to a stored credential. The credential itself is in Secrets Manager.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServiceCredential {
    /// End of the secret's name. Each stored credential gets a new one, so a secret's content never changes.
    pub id: SecretId,
    /// The account's name: its visible fields.
    #[serde(default)]
    pub name: String,
    pub updated_at: Timestamp,
    /// Fields of a newer version. The credentials of all services are written together.
    #[serde(flatten)]
    pub newer: Map<String, Value>,
}

const fn yes() -> bool {
    true
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ServiceTool {
    pub id: ToolId,
    /// The callable name: at most 40 of `[a-z0-9_]`.
    pub name: String,
    /// For people: `Post a message`.
    #[serde(default)]
    pub title: String,
    #[serde(default)]
    pub description: String,
    pub service_id: ServiceId,
    pub service_name: String,
    /// `read`, `write`, `search` or `delete`.
    #[serde(default)]
    pub category: String,
    /// JSON schema of type `object`.
    pub parameters: Value,
    #[serde(default)]
    pub returns: String,
    #[serde(default)]
    pub is_active: bool,
    pub binding: Binding,
    /// The version of its binding: `0.4.0` of a component, otherwise the catalogue's count.
    pub version: String,
    pub fingerprint: String,
    /// Whether a call changes something outside. True if unknown.
    #[serde(default = "yes")]
    pub effect: bool,
    #[serde(default)]
    pub acts_as: ToolEffect,
    /// Whether a call deletes, overwrites or pays. True if unknown.
    #[serde(default = "yes")]
    pub destructive: bool,
    /// Examples of whole arguments: `{"channel": "C024BE91L", "text": "Hello"}`.
    #[serde(default)]
    pub examples: Vec<Map<String, Value>>,
    #[serde(default)]
    pub parameter_names: Vec<String>,
    /// Synonyms for the search, not shown: `notify`, `alert`.
    #[serde(default)]
    pub keywords: Vec<String>,
    /// Its form before the last change of the fingerprint, for describing a drift.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub previous: Option<PreviousTool>,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PreviousTool {
    pub fingerprint: String,
    pub version: String,
    pub parameters: Value,
    #[serde(default)]
    pub returns: String,
}

impl ServiceTool {
    pub const fn declared_effect(&self) -> ToolEffect {
        match (self.effect, self.acts_as) {
            (false, _) => ToolEffect::None,
            (true, ToolEffect::None) => ToolEffect::Undeclared,
            (true, declared) => declared,
        }
    }

    /// The first half of the SHA-256 of name, parameters, returns and binding (sorted members, no blanks), in hexadecimal.
    /// `refused_by` does not count: it changes no request, so automations with the earlier fingerprint keep running.
    pub fn fingerprint_of(name: &str, parameters: &Value, returns: &str, binding: &Binding) -> String {
        // serde_json sorts the members of objects.
        let mut content = json!({"name": name, "parameters": parameters, "returns": returns, "binding": binding});
        if let Some(binding) = content.get_mut("binding").and_then(Value::as_object_mut) {
            binding.remove("refused_by");
        }
        hexadecimal(half_digest(&content.to_string()))
    }
}

/// The columns of `service_tools` in its index, for lists and the search.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ListedServiceTool {
    pub name: String,
    #[serde(default)]
    pub title: String,
    #[serde(default)]
    pub description: String,
    pub service_name: String,
    #[serde(default)]
    pub category: String,
    #[serde(default)]
    pub is_active: bool,
    pub fingerprint: String,
    #[serde(default)]
    pub version: String,
    #[serde(default = "yes")]
    pub effect: bool,
    #[serde(default = "yes")]
    pub destructive: bool,
    #[serde(default)]
    pub parameter_names: Vec<String>,
    #[serde(default)]
    pub keywords: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Binding {
    /// A Pipedream component with the organization's account. The tool's arguments are its props.
    Pipedream {
        /// Its key: `slack_v2-post-message`.
        component: String,
        /// Sent with every run.
        version: String,
        /// The prop that takes the account; it is neither the app's slug nor part of the key.
        app_prop: String,
        #[serde(default, skip_serializing_if = "Map::is_empty")]
        fixed: Map<String, Value>,
    },
    /// A request to the service's own API.
    ApiRequest(RequestTemplate),
    /// An action of ours: `sms`.
    BuiltIn { name: String },
}

/// Arguments named in the path go there, those in `query` into the query, all others into the body.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RequestTemplate {
    /// GET, POST, PUT, PATCH or DELETE.
    pub method: String,
    /// `https://api.stripe.com/v1/payment_intents/{id}/cancel`. The host is literal but for fields of the credential:
    /// `https://{subdomain}.zendesk.com/api/v2/tickets`.
    pub url: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub query: Vec<String>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, String>,
    #[serde(default)]
    pub body: BodyFormat,
    /// Fixed members of the body, or of the query if there is no body.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub fixed: Map<String, Value>,
    #[serde(default)]
    pub auth: RequestAuth,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idempotency_key: Option<KeyPlace>,
    /// JSON pointers of places in an answer with the status of a success that hold a text, list or object only if the service
    /// refused: `/errors`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub refused_by: Vec<String>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BodyFormat {
    #[default]
    None,
    Json,
    /// `a=1&b[c]=2&d[0]=3`, Stripe's form.
    Form,
}

/// Where a request carries the organization's credential, by field names.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum RequestAuth {
    #[default]
    None,
    Bearer {
        field: String,
    },
    Basic {
        user: String,
        password: String,
    },
    Header {
        header: String,
        field: String,
        /// Text before the value, such as `Bot `.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        prefix: String,
    },
    Body {
        members: BTreeMap<String, String>,
    },
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "in", rename_all = "snake_case")]
pub enum KeyPlace {
    Header { name: String },
    Body { name: String },
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Described)]
pub struct ServiceCapabilities {
    /// Folded: `google_calendar`.
    pub service_name: String,
    #[serde(default)]
    pub supports_webhooks: bool,
    #[serde(default)]
    pub webhook_events: Vec<String>,
    /// By event.
    #[serde(default)]
    pub webhook_payload_schemas: BTreeMap<String, WebhookPayload>,
    #[serde(default)]
    pub supports_polling: bool,
    /// By event: `{"source_tool", "description", …}`.
    #[serde(default)]
    pub polling_endpoints: Map<String, Value>,
    #[serde(default)]
    pub notes: String,
    #[serde(default)]
    pub auth_types: Vec<String>,
}

/// The content of `trigger_data` for an event.
#[declare::skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, Described)]
pub struct WebhookPayload {
    #[serde(default)]
    pub description: String,
    /// Descriptions by path (`event.text`).
    #[serde(default)]
    pub trigger_data_fields: BTreeMap<String, String>,
    pub example_condition: Option<Value>,
    /// A whole event as it comes.
    pub example: Option<Value>,
    /// The trigger that emits the event, if the service does not post it to a hook.
    pub deployed_trigger: Option<TriggerComponent>,
    /// The event is ours: it comes without a hook.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub built_in: bool,
}

/// A Pipedream component that emits a service's events for an automation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Described)]
pub struct TriggerComponent {
    /// Its key: `gmail-new-email-received`.
    pub component: String,
    pub version: String,
    /// The prop that takes the account.
    pub app_prop: String,
    /// JSON schema of the props chosen by an automation: its `trigger_config.params`.
    #[schema(r#type = "object")]
    pub parameters: Value,
    /// Props with these values unless an automation chooses others.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub defaults: Map<String, Value>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_service_is_the_same_however_its_name_is_written() {
        for name in ["Google Calendar", "google calendar", "GOOGLE_CALENDAR", "google-calendar", " Google  Calendar "] {
            assert_eq!(ServiceId::of_name(name), ServiceId::of_name("google_calendar"), "{name}");
        }
        assert_ne!(ServiceId::of_name("Slack"), ServiceId::of_name("Slack 2"));
    }

    #[test]
    fn a_fingerprint_changes_with_the_tool_and_not_with_the_order_of_its_fields() {
        let binding = Binding::BuiltIn { name: "sms".into() };
        let of = |name: &str, parameters: &str, returns: &str, binding: &Binding| {
            ServiceTool::fingerprint_of(name, &serde_json::from_str(parameters).unwrap(), returns, binding)
        };
        let one = of("a", r#"{"type": "object", "properties": {}}"#, "r", &binding);
        assert_eq!(one, of("a", r#"{"properties": {}, "type": "object"}"#, "r", &binding));
        assert_eq!(one.len(), 32);
        let others = [
            of("b", r#"{"type": "object", "properties": {}}"#, "r", &binding),
            of("a", r#"{"type": "object"}"#, "r", &binding),
            of("a", r#"{"type": "object", "properties": {}}"#, "s", &binding),
            of("a", r#"{"type": "object", "properties": {}}"#, "r", &Binding::BuiltIn { name: "x".into() }),
        ];
        assert!(others.iter().all(|other| *other != one), "{others:?}");
        let request = |more: Value| {
            let mut request = json!({"type": "api_request", "method": "POST", "url": "https://a.example/x"});
            request.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            of("a", "{}", "r", &serde_json::from_value(request).unwrap())
        };
        assert_eq!(request(json!({})), request(json!({"refused_by": ["/errors"]})));
        assert_ne!(request(json!({})), request(json!({"query": ["q"]})));
    }
}
