//! Phone calls: incoming, and in the API.

use local::standins::twilio::IncomingCall;
use serde_json::json;
use shared::models::Timestamp;

use super::{Tenant, World};
use crate::{Answer, Event};

impl World {
    /// Calls: `calls("?limit=5")`, `calls("/<id>")`.
    pub async fn calls(&self, path: &str) -> Answer {
        self.calls_as(&self.home, path).await
    }

    pub async fn calls_as(&self, tenant: &Tenant, path: &str) -> Answer {
        self.get_as("calls", tenant, &format!("/calls{path}")).await
    }

    /// An incoming call to the home organization's number.
    pub fn caller(&self, number: &str) -> IncomingCall {
        IncomingCall::new(&self.home.twilio_sid, number, &self.home.phone_number)
    }

    /// Twilio's signed request for the call, as API Gateway passes it on.
    pub fn incoming(&self, call: &IncomingCall) -> Event {
        let path = format!("/api/phone-number/{}/incoming", self.home.phone_number_id);
        let form = call.signed(&format!("{}{path}", self.options.public_url), &self.home.twilio_token);
        let mut event = Event::new("POST", &path).text(form.body);
        for (name, value) in &form.headers {
            event = event.header(name, value);
        }
        event
    }

    /// Adds a row of `calls`, as for a call that came in through Switchboard.
    pub fn incoming_call(&self, tenant: &Tenant, call_id: &str, caller: &str) {
        let now = Timestamp::now().to_string();
        let row = json!({
            "id": call_id,
            "organization_id": tenant.organization_id,
            "agent_id": tenant.agent_id,
            "caller_phone_number": caller,
            "called_phone_number": tenant.phone_number,
            "created_at": now,
            "updated_at": now,
        });
        self.aws.put("calls", &row);
    }
}
