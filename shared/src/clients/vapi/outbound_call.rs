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

/// Milliseconds before and after an attempt in which its call may have been created: more than an attempt and a lease last.
const AROUND: i64 = 20 * 60_000;
/// VAPI's limit for a list.
const MOST_LISTED: u32 = 1_000;
/// Searches after the first.
const MORE_SEARCHES: usize = 3;
const PAUSE: std::time::Duration = std::time::Duration::from_millis(500);

#[derive(Debug, Clone, Copy)]
pub struct OutboundCall<'a> {
    pub phone_number_id: &'a str,
    pub assistant_id: &'a str,
    pub person: &'a E164,
    /// At most 40 characters, unique: the call is found again by it.
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
        let mut backoff = Backoff::at_most(MORE_SEARCHES, PAUSE, PAUSE * 2, deadline);
        loop {
            if let Ok(Some(placed)) =
                self.find_placed(account, call.phone_number_id, call.name, Timestamp::now(), deadline).await
            {
                return Ok(placed);
            }
            if !backoff.pause().await {
                return Err(NotPlaced::Unknown(error));
            }
        }
    }

    /// The call with this name that was placed from a number at about this time.
    pub async fn find_placed(
        &self,
        account: &Account,
        phone_number_id: &str,
        name: &str,
        at: Timestamp,
        deadline: Deadline,
    ) -> Result<Option<PlacedCall>, Error> {
        let moment = |millis: i64| segment(&Timestamp::from_millis(at.as_millis().saturating_add(millis)).to_string());
        let path = format!(
            "/call?phoneNumberId={}&createdAtGt={}&createdAtLt={}&limit={MOST_LISTED}",
            segment(phone_number_id),
            moment(-AROUND),
            moment(AROUND),
        );
        let request = self.request(account, Method::GET, &path).timeout(deadline.remaining());
        let calls: Vec<Value> = read_json(UpstreamService::Vapi, &once(UpstreamService::Vapi, request).await?)?;
        let named = calls.iter().find(|made| made.get("name").and_then(Value::as_str) == Some(name));
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
