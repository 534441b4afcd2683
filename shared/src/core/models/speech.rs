//! The sentences that a caller hears while a tool runs.

use std::{collections::BTreeMap, time::Duration};

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{Execution, ExecutionOrigin, ExecutionStatus, Timestamp};

/// The longest silence that needs no word.
const SILENCE: Duration = Duration::from_secs(1);
/// After a sentence at the start.
const NEXT_WORD: Duration = Duration::from_secs(4);
const AT_START: &str = "One moment, please.";
const DELAYED: &str = "This is taking a moment.";
/// A choice is derived anew at most this often.
const DERIVED_FOR: Duration = Duration::from_secs(10 * 60);

/// Sentences of a tool; absent ones are automatic.
#[declare::skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Speech {
    pub start: Option<Sentence>,
    pub delayed: Option<Sentence>,
    pub failed: Option<Sentence>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Sentence {
    /// In any language; silence if empty.
    Any(String),
    /// By ISO 639-1 code.
    Languages(BTreeMap<String, String>),
}

/// Whether the automatic start speaks, derived from the tool's latest executions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct SpokenAtStart {
    pub speaks: bool,
    /// Milliseconds that four of five executions took at most; null without executions.
    pub usual_ms: Option<u64>,
    pub executions: usize,
    pub derived_at: Timestamp,
}

impl Speech {
    pub const LONGEST: usize = 1_000;
    pub const MOST_LANGUAGES: usize = 20;
    /// Executions that a choice is derived from.
    pub const LOOKS_AT: i32 = 100;

    pub fn none(&self) -> bool {
        *self == Self::default()
    }

    /// The names of the sentences that are not silence.
    pub fn worded(&self) -> impl Iterator<Item = &'static str> {
        let all = [("start", &self.start), ("delayed", &self.delayed), ("failed", &self.failed)];
        all.into_iter().filter_map(|(name, said)| (!said.as_ref()?.is_silent()).then_some(name))
    }

    /// Of a tool with `confirm`: any sentence of VAPI's would count as the one that is read back.
    #[must_use]
    pub fn silenced(&self) -> Self {
        let silence = || Some(Sentence::Any(String::new()));
        Self { start: silence(), delayed: silence(), failed: self.failed.clone().filter(Sentence::is_silent) }
    }

    /// VAPI's `messages` of the tool.
    pub fn messages(&self, at_start: Option<&SpokenAtStart>, text: impl Fn(&str) -> String) -> Value {
        let automatic = |text: &str| Sentence::Languages(BTreeMap::from([("en".to_owned(), text.to_owned())]));
        let silence = || Sentence::Any(String::new());
        let start = self.start.clone().unwrap_or_else(|| match at_start {
            Some(SpokenAtStart { speaks: false, .. }) => silence(),
            _ => automatic(AT_START),
        });
        let delayed = self.delayed.clone().unwrap_or_else(|| automatic(DELAYED));
        let after = if start.is_silent() { SILENCE } else { NEXT_WORD };
        let message = |kind: &str, sentence: &Sentence| {
            let mut message = match sentence {
                Sentence::Any(said) => json!({"content": text(said)}),
                Sentence::Languages(said) => {
                    let said = said.iter();
                    let said =
                        said.map(|(language, said)| json!({"type": "text", "text": text(said), "language": language}));
                    json!({"contents": said.collect::<Vec<_>>()})
                }
            };
            if let Some(message) = message.as_object_mut() {
                message.insert("type".into(), kind.into());
            }
            message
        };
        let mut while_it_runs = message("request-response-delayed", &delayed);
        if let Some(delayed) = while_it_runs.as_object_mut() {
            delayed.insert("timingMilliseconds".into(), json!(after.as_millis()));
        }
        let mut messages = vec![message("request-start", &start), while_it_runs];
        // Without one the model answers by itself.
        messages.extend(self.failed.as_ref().map(|failed| message("request-failed", failed)));
        messages.into()
    }

    /// Whether an execution of this length contradicts the choice, so that it may be derived anew.
    /// Without a choice callers have heard a sentence since `made_at`.
    pub fn contradicts(&self, at_start: Option<&SpokenAtStart>, made_at: Timestamp, took: Duration) -> bool {
        let (speaks, since) = at_start.map_or((true, made_at), |choice| (choice.speaks, choice.derived_at));
        self.start.is_none() && speaks != (took >= SILENCE) && since.plus(DERIVED_FOR) < Timestamp::now()
    }
}

impl Sentence {
    fn is_silent(&self) -> bool {
        matches!(self, Self::Any(text) if text.is_empty())
    }
}

impl SpokenAtStart {
    /// From the tool's latest executions.
    pub fn derive(executions: &[Execution]) -> Self {
        let ran = |run: &&Execution| {
            let waits = matches!(
                run.status,
                ExecutionStatus::Queued
                    | ExecutionStatus::Replayed
                    | ExecutionStatus::Limited
                    | ExecutionStatus::ReadBack
            );
            !waits && run.trigger != ExecutionOrigin::Test
        };
        let mut took: Vec<u64> = executions.iter().filter(ran).map(|run| run.duration_ms).collect();
        took.sort_unstable();
        let usual_ms = took.get((took.len() * 4).div_ceil(5).saturating_sub(1)).copied();
        let speaks = usual_ms.is_none_or(|usual| u128::from(usual) >= SILENCE.as_millis());
        Self { speaks, usual_ms, executions: took.len(), derived_at: Timestamp::now() }
    }

    /// For a tool whose caller waits for no upstream.
    pub fn silent() -> Self {
        Self { speaks: false, usual_ms: None, executions: 0, derived_at: Timestamp::now() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ran(took: &[u64]) -> Vec<Execution> {
        let row = |duration: &u64| {
            let id = "01930f5e-6a1b-7c2d-8e3f-4a5b6c7d8e9f";
            serde_json::from_value(json!({
                "id": id, "organization_id": id, "tool_id": id, "status": "succeeded", "duration_ms": duration,
                "started_at": "2026-11-20T16:20:52.123Z", "expires_at": 1_800_000_000,
            }))
        };
        took.iter().map(|duration| row(duration).unwrap()).collect()
    }

    #[test]
    fn a_tool_that_is_usually_under_a_second_starts_in_silence() {
        for (took, speaks, usual) in [
            (&[][..], true, None),
            (&[999], false, Some(999)),
            (&[1_000], true, Some(1_000)),
            (&[10, 10, 10, 10, 9_000], false, Some(10)),
            (&[10, 10, 10, 2_000, 9_000], true, Some(2_000)),
        ] {
            let choice = SpokenAtStart::derive(&ran(took));
            assert_eq!((choice.speaks, choice.usual_ms, choice.executions), (speaks, usual, took.len()), "{took:?}");
        }
    }

    #[test]
    fn a_caller_hears_at_most_a_second_of_silence() {
        let silent = SpokenAtStart::silent();
        let messages = Speech::default().messages(Some(&silent), str::to_owned);
        let delayed = json!([{"type": "text", "text": DELAYED, "language": "en"}]);
        let expected = json!([
            {"type": "request-start", "content": ""},
            {"type": "request-response-delayed", "contents": delayed, "timingMilliseconds": 1_000},
        ]);
        assert_eq!(messages, expected);
        let said = Speech {
            start: Some(Sentence::Languages(BTreeMap::from([("de".to_owned(), "Moment.".to_owned())]))),
            delayed: Some(Sentence::Any("Still {{name}}.".into())),
            failed: Some(Sentence::Any(String::new())),
        };
        let expected = json!([
            {"type": "request-start", "contents": [{"type": "text", "text": "Moment.", "language": "de"}]},
            {"type": "request-response-delayed", "content": "STILL {{NAME}}.", "timingMilliseconds": 4_000},
            {"type": "request-failed", "content": ""},
        ]);
        let messages = said.messages(None, str::to_uppercase);
        assert_eq!(messages.to_string().to_uppercase(), expected.to_string().to_uppercase());
    }
}
