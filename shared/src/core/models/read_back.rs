//! A request that is read back to the caller before it counts.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::Timestamp;
use crate::names::Names;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Names)]
#[serde(rename_all = "snake_case")]
pub enum Confirm {
    /// The second time it is called with the same arguments, after the caller heard them and spoke.
    ReadBack,
}

/// The latest request of a call that was read back.
#[declare::skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReadBack {
    /// Of the tool and its arguments.
    pub key: String,
    /// When the model was given the sentence.
    pub at: Timestamp,
    /// VAPI's id of the tool call, which a redelivery keeps.
    pub asked_by: Option<String>,
    /// Who spoke since, in the order of VAPI's messages.
    pub heard: Vec<SpeechTurn>,
    pub acted_at: Option<Timestamp>,
    pub acted_by: Option<String>,
    /// Digests of the effects it asks for, of each recipient too. Requests of an older version have none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub effects: Vec<String>,
    /// The latest request before it that the caller confirmed.
    pub confirmed_before: Option<ConfirmedRequest>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConfirmedRequest {
    pub effects: Vec<String>,
    pub at: Timestamp,
    /// [`ReadBack::confirmed_after`] of the request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<Timestamp>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct SpeechTurn {
    pub agent: bool,
    /// False: it stopped.
    pub started: bool,
    /// VAPI's time.
    pub at: Timestamp,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SecondRequest {
    Acts,
    /// It was done, and the record has its answer.
    Repeats,
    SameRequest,
    ReadsBackAnew,
}

impl ReadBack {
    /// After so much talk nobody remembers the sentence.
    pub const MOST_TURNS: usize = 40;
    /// The record of an effect expires in whole seconds.
    const MARGIN: Duration = Duration::from_secs(2);

    /// `previous`: the request that it replaces.
    pub fn new(key: String, effects: Vec<String>, asked_by: Option<&str>, previous: Option<&Self>) -> Self {
        let confirmed_before = previous.and_then(|previous| match previous.acted_at {
            Some(at) => {
                let (effects, after) = (previous.effects.clone(), previous.confirmed_after());
                Some(ConfirmedRequest { effects, at, after })
            }
            None => previous.confirmed_before.clone(),
        });
        Self {
            key,
            at: Timestamp::now(),
            asked_by: asked_by.map(str::to_owned),
            heard: Vec::new(),
            acted_at: None,
            acted_by: None,
            effects,
            confirmed_before,
        }
    }

    /// When the caller confirmed another effect before this request: a record from before that is no answer to it. A request that
    /// shares an effect with the latest confirmed one, such as a longer list of recipients, continues that one.
    pub fn confirmed_after(&self) -> Option<Timestamp> {
        let before = self.confirmed_before.as_ref()?;
        let continues = before.effects.is_empty() || before.effects.iter().any(|effect| self.effects.contains(effect));
        if continues { before.after } else { Some(before.at) }
    }

    /// `window`: how long the record answers a repetition.
    pub fn second(&self, key: &str, delivery: Option<&str>, window: Duration) -> SecondRequest {
        let is = |by: &Option<String>| by.is_some() && by.as_deref() == delivery;
        let recorded = |at: Timestamp| at.plus(window) > Timestamp::now().plus(Self::MARGIN);
        match self.acted_at {
            _ if self.key != key => SecondRequest::ReadsBackAnew,
            _ if is(&self.acted_by) => SecondRequest::Repeats,
            Some(at) if recorded(at) => SecondRequest::Repeats,
            None if is(&self.asked_by) => SecondRequest::SameRequest,
            None if self.is_answered() => SecondRequest::Acts,
            Some(_) | None => SecondRequest::ReadsBackAnew,
        }
    }

    pub fn listens(&self) -> bool {
        self.acted_at.is_none() && self.heard.len() < Self::MOST_TURNS
    }

    /// The caller heard a whole sentence of the agent's since the request, and spoke then. If the agent and again the caller
    /// spoke after that, the caller may have answered another question.
    pub fn is_answered(&self) -> bool {
        #[derive(PartialEq)]
        enum Heard {
            Nothing,
            Beginning,
            Sentence,
            Answer,
            Further,
        }
        let mut turns: Vec<SpeechTurn> = self.heard.iter().copied().filter(|turn| turn.at > self.at).collect();
        turns.sort_by_key(|turn| turn.at);
        let mut heard = Heard::Nothing;
        for turn in turns {
            heard = match (heard, turn.agent, turn.started) {
                // The agent begins, or reads on.
                (Heard::Nothing | Heard::Sentence, true, true) => Heard::Beginning,
                (Heard::Beginning, true, false) => Heard::Sentence,
                (Heard::Sentence, false, true) => Heard::Answer,
                (Heard::Answer, true, true) => Heard::Further,
                (Heard::Further, false, true) => return false,
                (heard, ..) => heard,
            };
        }
        matches!(heard, Heard::Answer | Heard::Further) && self.heard.len() < Self::MOST_TURNS
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `A` and `a`: the agent starts and stops; `C` and `c`: the caller. Each a second after the one before.
    fn after(turns: &str) -> ReadBack {
        let at = Timestamp::from_millis(Timestamp::now().as_millis() - 100_000);
        let mut read_back = ReadBack { at, ..ReadBack::new("key".into(), Vec::new(), Some("call_1"), None) };
        for (second, turn) in (1..).zip(turns.chars()) {
            read_back.heard.push(SpeechTurn {
                agent: turn.eq_ignore_ascii_case(&'a'),
                started: turn.is_ascii_uppercase(),
                at: at.plus(Duration::from_secs(second)),
            });
        }
        read_back
    }

    #[test]
    fn only_a_caller_who_heard_the_sentence_has_answered() {
        let slips =
            ["", "C", "Cc", "A", "AC", "ACc", "Aa", "AaA", "CA", "CcA", "CcAa", "a", "aC", "ACcA", "AaAC", "AaAaA"];
        // Yes to another question.
        let others = ["AaCcAaC", "AaCAC", "AaCcAaCc", "AaCcAaCcAaCc"];
        for turns in slips.into_iter().chain(others) {
            assert!(!after(turns).is_answered(), "{turns}");
        }
        for turns in ["AaC", "AaCc", "AaCcC", "ACcaC", "AaAaC", "AaCcA", "AaCcAa", "CcAaC", "aCAaC"] {
            assert!(after(turns).is_answered(), "{turns}");
        }
        let mut shuffled = after("AaCc");
        shuffled.heard.reverse();
        assert!(shuffled.is_answered(), "messages come in any order");
        assert!(!after(&format!("AaC{}", "c".repeat(40))).is_answered());
    }

    #[test]
    fn a_second_request_counts_once() {
        let window = Duration::from_secs(120);
        let answered = after("AaC");
        assert_eq!(answered.second("key", Some("call_2"), window), SecondRequest::Acts);
        assert_eq!(answered.second("key", None, window), SecondRequest::Acts);
        assert_eq!(answered.second("key", Some("call_1"), window), SecondRequest::SameRequest);
        assert_eq!(answered.second("other", None, window), SecondRequest::ReadsBackAnew);
        assert_eq!(after("Aa").second("key", None, window), SecondRequest::ReadsBackAnew);
        let acted = |seconds: u64| {
            let at = Timestamp::from_millis(Timestamp::now().as_millis() - i64::try_from(seconds).unwrap() * 1_000);
            ReadBack { acted_at: Some(at), acted_by: Some("call_2".into()), ..after("AaC") }
        };
        assert_eq!(acted(5).second("key", Some("call_3"), window), SecondRequest::Repeats);
        assert_eq!(acted(119).second("key", Some("call_3"), window), SecondRequest::ReadsBackAnew);
        assert_eq!(acted(999).second("key", Some("call_2"), window), SecondRequest::Repeats);
        assert_eq!(acted(999).second("key", None, window), SecondRequest::ReadsBackAnew);
    }

    #[test]
    fn only_another_confirmed_effect_makes_an_earlier_record_no_answer() {
        let at = |second: u64| Timestamp::from_millis(0).plus(Duration::from_secs(second));
        let asked = |effects: &[&str], previous: Option<&ReadBack>| {
            let effects = effects.iter().map(|effect| (*effect).to_owned()).collect();
            ReadBack::new("key".into(), effects, None, previous)
        };
        let confirmed = |second: u64, asked: ReadBack| ReadBack { acted_at: Some(at(second)), ..asked };
        let tuesday = confirmed(1, asked(&["tuesday"], None));
        assert_eq!(tuesday.confirmed_after(), None);
        assert_eq!(asked(&["tuesday"], Some(&tuesday)).confirmed_after(), None);
        let considered = asked(&["wednesday"], Some(&tuesday));
        assert_eq!(asked(&["tuesday"], Some(&considered)).confirmed_after(), None, "it was not confirmed");
        let wednesday = confirmed(2, considered);
        assert_eq!(wednesday.confirmed_after(), Some(at(1)));
        let again = confirmed(3, asked(&["tuesday"], Some(&wednesday)));
        assert_eq!(again.confirmed_after(), Some(at(2)));
        let longer = asked(&["tuesday", "tuesday to Ana"], Some(&again));
        assert_eq!(longer.confirmed_after(), Some(at(2)), "it continues the same effect");
        let older = ReadBack { effects: Vec::new(), ..again };
        assert_eq!(asked(&["tuesday"], Some(&older)).confirmed_after(), Some(at(2)), "an older version names none");
    }
}
