//! A destination of a transfer, and the hours in which it takes calls.

use jiff::{Zoned, tz::TimeZone};
use serde::{Deserialize, Serialize};

use super::live_call;
use crate::{
    Deadline, Result,
    actions::{
        ActionClients,
        hours::{Hours, read_time_zone},
    },
    clients::call_control::{self, NotAccepted},
    fields::Fields,
    models::{AgentId, ControlUrl, DialDestination, E164, OrganizationId, Timestamp},
};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Target {
    #[serde(flatten)]
    pub(super) callee: Callee,
    /// By the clock of `time_zone`; without them it takes calls at any time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    hours: Option<Hours>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    time_zone: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum Callee {
    Number {
        number: E164,
    },
    Sip {
        #[serde(rename = "sipUri")]
        uri: String,
    },
    Assistant {
        #[serde(rename = "assistantId")]
        id: String,
    },
}

impl Target {
    /// `None` for an unknown type, so that the other fields cannot be checked; `Some(None)` for a known type with a wrong field.
    #[expect(clippy::option_option, reason = "the two are told apart")]
    pub(super) fn read(fields: &mut Fields<'_>) -> Option<Option<Self>> {
        let callee = Callee::read(fields)?;
        let hours = fields.get("hours").is_some().then(|| Hours::read(fields, "hours"));
        let before = fields.problems().iter().count();
        let time_zone = read_time_zone(fields);
        match (&hours, &time_zone) {
            (Some(_), None) if fields.problems().iter().count() == before => {
                fields.problem(
                    "time_zone",
                    "is required with hours: the IANA name of a time zone, such as Europe/Lisbon",
                );
            }
            (None, Some(_)) => fields.problem("time_zone", "says nothing without hours"),
            _ => {}
        }
        let hours = match hours {
            Some(None) => return Some(None),
            Some(hours) => hours,
            None => None,
        };
        Some(callee.map(|callee| Self { callee, hours, time_zone }))
    }

    pub(super) fn is_open(&self, at: Timestamp) -> bool {
        self.hours.as_ref().is_none_or(|hours| self.zone().is_some_and(|zone| hours.hold(at, &zone)))
    }

    /// When it takes calls again, by its own clock.
    pub(super) fn opens(&self, after: Timestamp) -> Option<Zoned> {
        self.hours.as_ref()?.next_beginning(after, &self.zone()?)
    }

    fn zone(&self) -> Option<TimeZone> {
        TimeZone::get(self.time_zone.as_deref()?).ok()
    }

    pub(super) fn assistant(&self) -> Option<&str> {
        match &self.callee {
            Callee::Assistant { id } => Some(id),
            Callee::Number { .. } | Callee::Sip { .. } => None,
        }
    }

    pub(super) fn dialled(&self) -> Option<DialDestination> {
        match &self.callee {
            Callee::Number { number } => Some(DialDestination::Number(number.clone())),
            Callee::Sip { uri } => Some(DialDestination::Sip(uri.clone())),
            Callee::Assistant { .. } => None,
        }
    }

    /// The agent, if the callee is an assistant. VAPI would accept any assistant of its account, so it must belong to one of the
    /// organization's agents.
    pub(super) async fn permitted(
        &self,
        services: &ActionClients,
        organization: OrganizationId,
    ) -> Result<Result<Option<AgentId>, live_call::Refused>> {
        let Callee::Assistant { id } = &self.callee else { return Ok(Ok(None)) };
        let agent = services.agents.with_assistant(organization, id).await?;
        Ok(agent.map(|agent| Some(agent.id)).ok_or_else(|| {
            live_call::refused(
                "The assistant that should take the call over is not set up. Offer to take a message instead.",
                &format!("assistant {id} belongs to no agent of the organization"),
            )
        }))
    }

    pub(super) async fn send(
        &self,
        services: &ActionClients,
        call: &ControlUrl,
        briefing: Option<&str>,
        deadline: Deadline,
    ) -> Result<(), NotAccepted> {
        let control = &services.call_control;
        let destination = match &self.callee {
            Callee::Number { number } => call_control::Destination::Number { number },
            Callee::Sip { uri: sip_uri } => call_control::Destination::Sip { sip_uri },
            Callee::Assistant { id } => {
                if let Some(briefing) = briefing {
                    let told = control.add_message(call, briefing, false, deadline).await;
                    // Without the briefing no transfer is attempted, so nothing happened.
                    told.map_err(|not_accepted| match not_accepted {
                        NotAccepted::Unknown(error) => NotAccepted::Declined(error),
                        certain => certain,
                    })?;
                }
                return control.handoff(call, id, deadline).await;
            }
        };
        control.transfer(call, &destination, briefing, deadline).await
    }
}

impl Callee {
    #[expect(clippy::option_option, reason = "as in Target::read")]
    fn read(fields: &mut Fields<'_>) -> Option<Option<Self>> {
        Some(match fields.required_text("type", 40)?.as_str() {
            "number" => fields.required_parse("number").map(|number| Self::Number { number }),
            "sip" => match fields.required_text("sipUri", 200) {
                Some(uri) if uri.starts_with("sip:") || uri.starts_with("sips:") => Some(Self::Sip { uri }),
                Some(_) => {
                    fields.problem("sipUri", "must begin with sip: or sips:");
                    None
                }
                None => None,
            },
            "assistant" => {
                fields.required_parse::<uuid::Uuid>("assistantId").map(|id| Self::Assistant { id: id.to_string() })
            }
            _ => {
                fields.problem("type", "must be one of number, sip, assistant");
                return None;
            }
        })
    }
}
