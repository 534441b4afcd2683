//! Places a call from a number to a person.
//!
//! VAPI's list of calls has no filter by name or metadata, only by number, assistant and time; after a lost answer the call
//! is searched by its name among the number's newest.

use reqwest::Method;
use serde_json::{Map, Value, json};

use super::{Account, ExternalCall, Vapi};
use crate::{
    Deadline,
    backoff::Backoff,
    clients::{
        Error, Failure, UpstreamService,
        http_client::{Retry, once, read_json, segment, send_json},
    },
    models::{CallId, E164, Timestamp},
};

/// Milliseconds searched for a call whose creation lost its answer.
const LOOKED_FOR_MS: i64 = 120_000;
const LOOKS: usize = 3;
const PAUSE: std::time::Duration = std::time::Duration::from_millis(500);

#[derive(Debug, Clone, Copy)]
pub struct OutboundCall<'a> {
    pub phone_number_id: &'a str,
    pub assistant_id: &'a str,
    pub person: &'a E164,
    /// At most 40 characters, unique: finds the call again.
    pub name: &'a str,
    /// For Liquid in the assistant's texts.
    pub variables: &'a Map<String, Value>,
    /// For an answering machine. `None` hangs up.
    pub message: Option<&'a str>,
}

#[derive(Debug, Clone)]
pub struct PlacedCall {
    pub id: CallId,
    pub call: ExternalCall,
}

#[derive(Debug)]
pub enum NotPlaced {
    /// VAPI placed no call.
    Refused(Error),
    /// VAPI may have placed it.
    Unknown(Error),
}

impl Vapi {
    /// Places a call once. After an unclear answer VAPI is asked for the call; it is never placed again.
    pub async fn place_call(
        &self,
        account: &Account,
        call: OutboundCall<'_>,
        deadline: Deadline,
    ) -> Result<PlacedCall, NotPlaced> {
        let overrides = json!({
            "variableValues": call.variables,
            "voicemailDetection": {"provider": "vapi"},
            // Empty for silence, whatever the assistant has.
            "voicemailMessage": call.message.unwrap_or_default(),
        });
        let body = json!({
            "phoneNumberId": call.phone_number_id,
            "assistantId": call.assistant_id,
            "customer": {"number": call.person},
            "name": call.name,
            "assistantOverrides": overrides,
        });
        let request = self.request(account, Method::POST, "/call").json(&body);
        // Time for the search.
        let until = deadline.at_most(deadline.remaining() * 2 / 3);
        let created = send_json(UpstreamService::Vapi, request, Retry::NeverProcessed, until).await;
        let error = match created.and_then(|created: Value| placed(&created)) {
            Ok(placed) => return Ok(placed),
            Err(error) if !error.effect_possible() => return Err(NotPlaced::Refused(error)),
            Err(error) => error,
        };
        let mut backoff = Backoff::at_most(LOOKS, PAUSE, PAUSE * 2, deadline);
        loop {
            if let Ok(Some(placed)) = self.placed_before(account, call, deadline).await {
                return Ok(placed);
            }
            if !backoff.pause().await {
                return Err(NotPlaced::Unknown(error));
            }
        }
    }

    async fn placed_before(
        &self,
        account: &Account,
        call: OutboundCall<'_>,
        deadline: Deadline,
    ) -> Result<Option<PlacedCall>, Error> {
        let since = Timestamp::from_millis(Timestamp::now().as_millis().saturating_sub(LOOKED_FOR_MS));
        let number = segment(call.phone_number_id);
        let path = format!("/call?phoneNumberId={number}&createdAtGt={}", segment(&since.to_string()));
        let request = self.request(account, Method::GET, &path).timeout(deadline.remaining());
        let calls: Vec<Value> = read_json(UpstreamService::Vapi, &once(UpstreamService::Vapi, request).await?)?;
        let named = calls.iter().find(|made| made.get("name").and_then(Value::as_str) == Some(call.name));
        named.map(placed).transpose()
    }
}

fn placed(call: &Value) -> Result<PlacedCall, Error> {
    let unreadable = |why: &str| Error::new(UpstreamService::Vapi, Failure::Undecodable(why.to_owned()));
    let id = call.get("id").and_then(Value::as_str).and_then(|id| id.parse().ok());
    let id = id.ok_or_else(|| unreadable("the call has no id"))?;
    let call = serde::Deserialize::deserialize(call).map_err(|_content| unreadable("the call cannot be read"))?;
    Ok(PlacedCall { id, call })
}
