//! An account's custom credentials, which people create in VAPI's dashboard.

use std::{collections::BTreeMap, sync::Mutex};

use serde::Deserialize;
use serde_json::{Map, Value, json};
use uuid::Uuid;

use super::Vapi;
use crate::standins::{
    Standin,
    exchange::{Answer, Request, refused},
    locked,
};

/// A custom credential: a header for the requests of the tools and servers that name it.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Credential {
    #[serde(default = "new_id")]
    pub id: String,
    pub header: String,
    pub value: String,
}

fn new_id() -> String {
    Uuid::new_v4().to_string()
}

#[derive(Debug, Default)]
pub(super) struct Credentials(Mutex<Vec<Credential>>);

impl Credentials {
    pub(super) fn new(given: Vec<Credential>) -> Self {
        Self(Mutex::new(given))
    }

    /// Replaces a credential with the same id.
    fn put(&self, credential: Credential) {
        let mut credentials = locked(&self.0);
        credentials.retain(|other| other.id != credential.id);
        credentials.push(credential);
    }

    pub(super) fn has(&self, id: &str) -> bool {
        locked(&self.0).iter().any(|credential| credential.id == id)
    }

    /// Adds the header of the credential in `credentialId`, unless that header is set already.
    pub(super) fn add_to(&self, named_by: &Map<String, Value>, headers: &mut BTreeMap<String, String>) {
        let id = named_by.get("credentialId").and_then(Value::as_str);
        if let Some(credential) = locked(&self.0).iter().find(|credential| Some(credential.id.as_str()) == id) {
            headers.entry(credential.header.to_ascii_lowercase()).or_insert_with(|| credential.value.clone());
        }
    }
}

impl Vapi {
    pub(super) fn simulated_credential(&self, request: &Request) -> Answer {
        match serde_json::from_slice::<Credential>(&request.body) {
            Ok(credential) => {
                let answer = Answer::json(200, &json!({ "id": credential.id }));
                self.credentials.put(credential);
                answer
            }
            Err(error) => refused(error),
        }
    }
}

impl Standin<Vapi> {
    /// Creates a credential, as the dashboard does.
    pub fn put_credential(&self, id: &str, header: &str, value: &str) {
        let credential = Credential { id: id.to_owned(), header: header.to_owned(), value: value.to_owned() };
        self.service.credentials.put(credential);
    }
}
