//! Places a call from a number to a person.
//!
//! VAPI's list of calls has no filter by name or metadata, only by number, assistant and time; after a lost answer the call
//! is searched by its name among the number's calls since the attempt.

use std::time::Duration;

use reqwest::Method;
use serde_json::{Map, Value, json};

use super::{
    Account, ExternalCall, Vapi,
    lists::{CLOCKS_DIFFER, NamedCall},
};
use crate::{
    Deadline,
    backoff::Backoff,
    clients::{
        Error, Failure, UpstreamService,
        http_client::{Retry, send_json},
    },
    models::{CallId, E164, Timestamp},
};

/// The longest lease of a claim: the longest time-out of a function (`infra/template.yaml`), and a reserve.
const LONGEST_LEASE: Duration = Duration::from_mins(6);
/// Searches after the first.
const MORE_SEARCHES: usize = 3;
const PAUSE: Duration = Duration::from_millis(500);

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
            // An empty text, so that the assistant's own is not spoken.
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
        let since = Timestamp::now().minus(CLOCKS_DIFFER);
        let until = deadline.leaving_a_third();
        let created = send_json(UpstreamService::Vapi, request, Retry::NeverProcessed, until).await;
        let error = match created.and_then(|created: Value| placed(&created)) {
            Ok(placed) => return Ok(placed),
            Err(error) if !error.effect_possible() => return Err(NotPlaced::Refused(error)),
            Err(error) => error,
        };
        let mut backoff = Backoff::at_most(MORE_SEARCHES, PAUSE, PAUSE * 2, deadline);
        let sought = NamedCall { phone_number_id: call.phone_number_id, name: call.name, since, until: None };
        loop {
            if let Ok(Some(made)) = self.call_named(account, sought, deadline).await
                && let Ok(placed) = placed(&made)
            {
                return Ok(placed);
            }
            if !backoff.pause().await {
                return Err(NotPlaced::Unknown(error));
            }
        }
    }

    /// The call with this name from a number, whose placing held a claim until `leased_until`.
    pub async fn find_placed(
        &self,
        account: &Account,
        phone_number_id: &str,
        name: &str,
        leased_until: Timestamp,
        deadline: Deadline,
    ) -> Result<Option<PlacedCall>, Error> {
        let since = leased_until.minus(LONGEST_LEASE + CLOCKS_DIFFER);
        let until = Some(leased_until.plus(CLOCKS_DIFFER));
        let sought = NamedCall { phone_number_id, name, since, until };
        self.call_named(account, sought, deadline).await?.as_ref().map(placed).transpose()
    }
}

fn placed(call: &Value) -> Result<PlacedCall, Error> {
    let unreadable = |why: &str| Error::new(UpstreamService::Vapi, Failure::Undecodable(why.to_owned()));
    let id = call.get("id").and_then(Value::as_str).and_then(|id| id.parse().ok());
    let id = id.ok_or_else(|| unreadable("the call has no id"))?;
    let call = serde::Deserialize::deserialize(call).map_err(|_content| unreadable("the call cannot be read"))?;
    Ok(PlacedCall { id, call })
}
