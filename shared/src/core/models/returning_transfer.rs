//! A transfer of the caller's line at Twilio, which returns to the agent if nobody answers.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::{CallId, E164, ExecutionId, Timestamp};
use crate::described::Described;

/// The transfer in the row of its call. At its end the destinations, the briefing and the sentence are removed.
#[declare::skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReturningTransfer {
    /// The execution that moved the line.
    pub execution_id: ExecutionId,
    pub at: Timestamp,
    pub ring_seconds: u16,
    /// They ring one after the other.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub destinations: Vec<DialDestination>,
    /// The caller hears it if nobody answers.
    pub say: Option<String>,
    /// The person who answers hears it before the caller is connected, and the agent reads it if the caller returns.
    pub briefing: Option<String>,
    /// False: the call ends if nobody answers.
    pub returns: bool,
    #[serde(default)]
    pub rung: Vec<RungDestination>,
    /// When the destination that rang last answered.
    pub answered_at: Option<Timestamp>,
    pub outcome: Option<TransferOutcome>,
    pub ended_at: Option<Timestamp>,
    /// The call in which the caller is back with the agent.
    pub returned_as: Option<CallId>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DialDestination {
    Number(E164),
    Sip(String),
}

impl DialDestination {
    /// The word of VAPI for this kind of destination.
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Number(_) => "number",
            Self::Sip(_) => "sip",
        }
    }
}

/// The number is not stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RungDestination {
    pub at: Timestamp,
    /// `number` or `sip`.
    pub to: String,
    /// Absent while it rings.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<TransferOutcome>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Described)]
#[serde(rename_all = "snake_case")]
pub enum TransferOutcome {
    /// Somebody answered, and the call goes on.
    Connected,
    /// Somebody answered, and the call is over.
    Answered,
    Busy,
    /// Nobody answered in time.
    NoAnswer,
    /// The callee hung up before Twilio connected the caller.
    Declined,
    /// Twilio could not reach the destination.
    Failed,
    /// The caller hung up while it rang.
    CallerHungUp,
    #[serde(other)]
    Other,
}

impl TransferOutcome {
    /// Of `DialCallStatus` and `DialBridged`, <https://www.twilio.com/docs/voice/twiml/dial#dialcallstatus-values>.
    pub fn of_dial(status: &str, bridged: Option<&str>) -> Self {
        match status {
            "completed" | "answered" if bridged == Some("false") => Self::Declined,
            "completed" | "answered" => Self::Answered,
            "busy" => Self::Busy,
            "no-answer" => Self::NoAnswer,
            "canceled" => Self::CallerHungUp,
            _ => Self::Failed,
        }
    }

    /// The end of a sentence for the model.
    pub const fn reason(self) -> &'static str {
        match self {
            Self::Connected | Self::Answered => "the call was answered",
            Self::Busy => "the line was busy",
            Self::NoAnswer => "nobody answered",
            Self::Declined => "the person who answered hung up before the caller was connected",
            Self::CallerHungUp => "the caller hung up",
            Self::Failed | Self::Other => "the destination could not be reached",
        }
    }
}

impl ReturningTransfer {
    pub const fn is_over(&self) -> bool {
        self.outcome.is_some()
    }

    /// The callee has heard the briefing, at this many letters a second.
    pub fn is_connected(&self, now: Timestamp) -> bool {
        const SPOKEN: usize = 5;
        let letters = self.briefing.as_ref().map_or(0, |briefing| briefing.chars().count());
        let briefing = Duration::from_secs((letters / SPOKEN) as u64);
        !self.is_over() && self.answered_at.is_some_and(|at| at.plus(briefing) <= now)
    }

    /// With the outcome so far of the one that rings or speaks.
    pub fn rung_so_far(&self) -> Vec<RungDestination> {
        let mut rung = self.rung.clone();
        if let Some(last) = rung.last_mut().filter(|_| self.answered_at.is_some()) {
            last.outcome.get_or_insert(TransferOutcome::Connected);
        }
        rung
    }

    /// Twilio has not requested what to do with the line.
    pub fn is_unrequested(&self) -> bool {
        !self.is_over() && self.rung.is_empty()
    }

    /// Begins to ring the next destination.
    pub fn ring(&mut self, at: Timestamp) -> Option<DialDestination> {
        let next = self.destinations.get(self.rung.len())?.clone();
        self.answered_at = None;
        self.rung.push(RungDestination { at, to: next.kind().to_owned(), outcome: None });
        Some(next)
    }

    /// The destination that rang last is over.
    pub fn rang(&mut self, outcome: TransferOutcome) {
        if let Some(last) = self.rung.last_mut() {
            last.outcome.get_or_insert(outcome);
        }
    }

    pub fn end(&mut self, outcome: TransferOutcome, at: Timestamp, returned_as: Option<CallId>) {
        self.rang(outcome);
        self.answered_at = None;
        self.outcome = Some(outcome);
        self.ended_at = Some(at);
        self.returned_as = returned_as;
        self.destinations.clear();
        self.say = None;
        self.briefing = None;
    }

    /// For the agent to which the caller returns.
    pub fn report(&self) -> String {
        let attempts: Vec<&str> =
            self.rung.iter().filter_map(|rung| rung.outcome).map(TransferOutcome::reason).collect();
        let why =
            if attempts.is_empty() { TransferOutcome::Failed.reason().to_owned() } else { attempts.join(", then ") };
        let before = match &self.briefing {
            Some(briefing) => format!(" Before the transfer: {briefing}"),
            None => String::new(),
        };
        format!(
            "This caller was transferred a moment ago and is back: {why}. Do not greet the caller as \
             if the call were new; say so, and offer to take a message or to try again later.{before}"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn transfer() -> ReturningTransfer {
        ReturningTransfer {
            execution_id: ExecutionId::generate(),
            at: Timestamp::now(),
            ring_seconds: 20,
            destinations: vec![
                DialDestination::Number("+14155550199".parse().unwrap()),
                DialDestination::Sip("sip:desk@pbx.example.com".into()),
            ],
            say: None,
            briefing: Some("Ana asks about invoice 42.".into()),
            returns: true,
            rung: Vec::new(),
            answered_at: None,
            outcome: None,
            ended_at: None,
            returned_as: None,
        }
    }

    #[test]
    fn destinations_ring_in_turn_and_the_report_has_each_reason() {
        let mut transfer = transfer();
        let now = Timestamp::now();
        assert_eq!(transfer.ring(now).unwrap().kind(), "number");
        transfer.rang(TransferOutcome::Busy);
        assert_eq!(transfer.ring(now).unwrap().kind(), "sip");
        transfer.rang(TransferOutcome::NoAnswer);
        assert!(transfer.ring(now).is_none());
        let report = transfer.report();
        assert!(
            report.contains("the line was busy, then nobody answered") && report.contains("invoice 42"),
            "{report}"
        );
    }

    #[test]
    fn a_callee_who_answered_speaks_with_the_caller_after_the_briefing() {
        let (mut transfer, now) = (transfer(), Timestamp::now());
        let outcome = |transfer: &ReturningTransfer| transfer.rung_so_far().last().unwrap().outcome;
        transfer.ring(now);
        assert_eq!((outcome(&transfer), transfer.is_connected(now)), (None, false));
        transfer.answered_at = Some(now);
        assert_eq!((outcome(&transfer), transfer.is_connected(now)), (Some(TransferOutcome::Connected), false));
        assert!(transfer.is_connected(now.plus(Duration::from_secs(10))));
        transfer.rang(TransferOutcome::Declined);
        transfer.ring(now);
        assert_eq!((outcome(&transfer), transfer.is_connected(now.plus(Duration::from_secs(10)))), (None, false));
        transfer.answered_at = Some(now);
        transfer.end(TransferOutcome::Answered, now, None);
        assert_eq!((outcome(&transfer), transfer.is_connected(now)), (Some(TransferOutcome::Answered), false));
    }

    #[test]
    fn the_end_of_a_transfer_drops_its_numbers_and_texts() {
        let mut transfer = transfer();
        transfer.ring(Timestamp::now());
        transfer.end(TransferOutcome::NoAnswer, Timestamp::now(), None);
        let stored = serde_json::to_string(&transfer).unwrap();
        assert!(!stored.contains("4155550199") && !stored.contains("invoice") && !stored.contains("sip:"), "{stored}");
        assert_eq!(transfer.rung[0].outcome, Some(TransferOutcome::NoAnswer));
    }
}
