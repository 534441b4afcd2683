//! Secrets Manager for the functions' requests.

use std::collections::BTreeMap;

use serde_json::{Value, json};

pub(super) const ACTIONS: [&str; 3] = ["CreateSecret", "DeleteSecret", "GetSecretValue"];

#[derive(Debug, Default)]
struct Secret {
    content: String,
    /// The previous content: the version at the stage `AWSPREVIOUS`.
    before: Option<String>,
    /// The `ClientRequestToken` of its creation.
    made_by: Option<String>,
    deleted: bool,
}

#[derive(Debug, Default)]
pub(super) struct Shelf(BTreeMap<String, Secret>);

impl Shelf {
    pub(super) fn put(&mut self, id: &str, value: &Value) {
        let before = self.0.remove(id).map(|secret| secret.content);
        self.0.insert(id.to_owned(), Secret { content: value.to_string(), before, ..Secret::default() });
    }

    pub(super) fn forget(&mut self, id: &str) {
        self.0.remove(id);
    }

    pub(super) fn content(&self, id: &str) -> Option<Value> {
        let secret = self.0.get(id).filter(|secret| !secret.deleted)?;
        Some(serde_json::from_str(&secret.content).expect("a secret of ours is JSON"))
    }

    pub(super) fn names(&self, prefix: &str) -> Vec<String> {
        let there = self.0.iter().filter(|(name, secret)| name.starts_with(prefix) && !secret.deleted);
        there.map(|(name, _)| name.clone()).collect()
    }

    /// Executes one of [`ACTIONS`].
    pub(super) fn answer(&mut self, action: &str, request: &Value) -> (u16, Value) {
        let text = |name: &str| request[name].as_str().unwrap_or_default().to_owned();
        if action == "CreateSecret" {
            return self.create(&text("Name"), text("SecretString"), text("ClientRequestToken"));
        }
        let id = text("SecretId");
        let Some(secret) = self.0.get_mut(&id) else {
            return refusal("ResourceNotFoundException", "Secrets Manager can't find the specified secret.");
        };
        if secret.deleted {
            let message = "You can't perform this operation on the secret because it was marked for deletion.";
            return refusal("InvalidRequestException", message);
        }
        if action == "GetSecretValue" {
            let version = match request["VersionStage"].as_str().unwrap_or("AWSCURRENT") {
                "AWSCURRENT" => Some(&secret.content),
                "AWSPREVIOUS" => secret.before.as_ref(),
                _ => None,
            };
            return match version {
                Some(content) => (200, json!({"ARN": id, "Name": id, "SecretString": content})),
                None => refusal(
                    "ResourceNotFoundException",
                    "Secrets Manager can't find the specified secret value for staging label.",
                ),
            };
        }
        let days = request["RecoveryWindowInDays"].as_i64().unwrap_or(30);
        if !(7..=30).contains(&days) || request["ForceDeleteWithoutRecovery"] == true {
            return refusal("InvalidParameterException", "a secret of ours can be restored for 7 to 30 days");
        }
        secret.deleted = true;
        (200, json!({"ARN": id, "Name": id}))
    }

    fn create(&mut self, name: &str, content: String, token: String) -> (u16, Value) {
        match self.0.get(name) {
            Some(there) if there.deleted => {
                refusal("InvalidRequestException", "a secret with this name is already scheduled for deletion")
            }
            Some(there) if there.made_by.as_ref() == Some(&token) && there.content == content => {
                (200, json!({"ARN": name, "Name": name}))
            }
            Some(_) => refusal("ResourceExistsException", "a secret with this name already exists"),
            None => {
                self.0.insert(name.to_owned(), Secret { content, before: None, made_by: Some(token), deleted: false });
                (200, json!({"ARN": name, "Name": name}))
            }
        }
    }
}

fn refusal(code: &str, message: &str) -> (u16, Value) {
    (400, json!({"__type": code, "Message": message}))
}
