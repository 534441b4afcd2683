//! What a person says, as the doors bring it.

use super::FrontEndTool;
use crate::{Error, Result, error::Problems, fields::Fields};
use serde_json::Value;

/// The thread of a user who names none.
const DEFAULT_THREAD: &str = "default";
/// In characters.
pub const LONGEST_MESSAGE: usize = 32_000;
/// In characters.
pub const LONGEST_THREAD: usize = 200;
const ACTION: &str = "chat";
/// Before the id of a message, in the name of its request.
const MESSAGE: &str = "message ";

/// What somebody says to a thread, or what it waits for.
#[derive(Debug, Clone, Default)]
pub struct Asked {
    /// Empty where `awaited` brings results: nobody has said anything then.
    pub message: String,
    /// As its user's clients call it.
    pub thread: String,
    /// What the thread waits for.
    pub awaited: Option<Awaited>,
    /// The name under which the same request comes again, and gets the same answer.
    pub name: Option<String>,
    /// Tools that the front end carries out.
    pub tools: Vec<FrontEndTool>,
}

/// What a turn waits for when it can go no further by itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Awaited {
    /// The person's decision about a call.
    Consent(Consent),
    /// What the front end's tools gave; only that of the call that waits is taken.
    Results(Vec<FrontEndResult>),
}

/// What a person has decided about a call that waits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Consent {
    pub id: String,
    pub approved: bool,
}

impl Consent {
    pub(super) const WORDS_OF_APPROVAL: &str = "Yes, do it.";

    /// The decision in the words in which it stands in the thread.
    pub const fn words(&self) -> &'static str {
        if self.approved { Self::WORDS_OF_APPROVAL } else { "No, do not do it." }
    }

    /// The name of the request that brings it.
    pub(super) fn name(&self) -> String {
        format!("consent {}", self.id)
    }

    /// The decision as a request: the same one again gets the same answer.
    pub fn asked(self, thread: String) -> Asked {
        Asked {
            message: self.words().to_owned(),
            thread,
            name: Some(self.name()),
            awaited: Some(Awaited::Consent(self)),
            tools: Vec::new(),
        }
    }
}

/// What a tool of the front end gave.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FrontEndResult {
    /// Of the call.
    pub id: String,
    pub content: String,
    /// The front end says that it went wrong.
    pub failed: bool,
}

impl Asked {
    /// As the client calls the message, if it does.
    pub(super) fn message_id(&self) -> Option<String> {
        self.name.as_deref()?.strip_prefix(MESSAGE).map(str::to_owned)
    }

    /// The name of a request by the client's id of its message.
    pub fn name_of_message(id: &str) -> String {
        format!("{MESSAGE}{id}")
    }

    /// Reads the body of `POST /agent/chat`, and of its streaming twin: `{"message", "thread_id"?, "metadata"?}`. `key` is the request's
    /// `Idempotency-Key`.
    ///
    /// # Errors
    /// [`Error::Invalid`] with every wrong field.
    pub fn of_chat(body: &Value, key: Option<String>) -> Result<Self> {
        Self::read(body, "", key, true)
    }

    /// Reads the body of `POST /copilotkit/action`: its fields stand beside `action`, or below `parameters` or `arguments`. The
    /// message may also be the last one of a person in `messages`, the thread a `conversation_id`. Other fields are the client's.
    ///
    /// # Errors
    /// [`Error::Malformed`] for an action that there is not, [`Error::Invalid`] with every wrong field.
    pub fn of_action(body: &Value, key: Option<String>) -> Result<Self> {
        match body.get("action") {
            Some(Value::String(action)) if action == ACTION => {}
            Some(Value::String(_)) => {
                return Err(Error::Malformed(format!("there is no such action; the only one is \"{ACTION}\"")));
            }
            _ => return Err(Error::Malformed(format!("\"action\" must be a text; the only action is \"{ACTION}\""))),
        }
        match ["parameters", "arguments"].iter().find(|name| body.get(**name).is_some_and(Value::is_object)) {
            Some(name) => Self::read(body.get(*name).unwrap_or(&Value::Null), name, key, false),
            None => Self::read(body, "", key, false),
        }
    }

    fn read(body: &Value, path: &str, key: Option<String>, strict: bool) -> Result<Self> {
        let mut problems = Problems::default();
        let request = Fields::of(body, path, &mut problems).and_then(|mut fields| {
            let consent = consent(&mut fields);
            let message = match fields.text("message", LONGEST_MESSAGE) {
                None if !strict => last_message(fields.get("messages")),
                message => message,
            };
            let message = message.or_else(|| consent.as_ref().map(|consent| consent.words().to_owned()));
            if message.is_none() && fields.problems().iter().count() == 0 {
                fields.problem("message", "is required");
            }
            let thread = fields.text("thread_id", LONGEST_THREAD);
            let thread = if strict { thread } else { thread.or(fields.text("conversation_id", LONGEST_THREAD)) };
            if strict {
                fields.finish();
            }
            let name = key.or_else(|| consent.as_ref().map(Consent::name));
            Some(Self {
                message: message?,
                thread: thread.unwrap_or_else(|| DEFAULT_THREAD.to_owned()),
                awaited: consent.map(Awaited::Consent),
                name,
                tools: Vec::new(),
            })
        });
        problems.into_result(request)
    }
}

/// `metadata.consent`; what else is in `metadata` is the client's.
fn consent(fields: &mut Fields<'_>) -> Option<Consent> {
    let metadata = fields.get("metadata")?;
    let path = fields.path("metadata");
    let mut metadata = Fields::of(metadata, path, fields.problems())?;
    let value = metadata.get("consent")?;
    let path = metadata.path("consent");
    let mut consent = Fields::of(value, path, metadata.problems())?;
    let id = consent.required_text("id", 100);
    let approved = consent.required("approved").is_some() && consent.boolean("approved", false);
    consent.finish();
    Some(Consent { id: id?, approved })
}

/// The last message of a person in a list of them.
fn last_message(messages: Option<&Value>) -> Option<String> {
    let of_person = |message: &&Value| message.get("role").and_then(Value::as_str) == Some("user");
    let last = messages?.as_array()?.iter().rev().find(of_person)?;
    let text = last.get("content")?.as_str()?.trim();
    let within = text.chars().count() <= LONGEST_MESSAGE;
    (!text.is_empty() && within).then(|| text.to_owned())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_message_goes_to_the_users_own_thread_unless_another_is_named() {
        let read = Asked::of_chat(&json!({"message": " Hello ", "metadata": {"page": 1}}), None).unwrap();
        assert_eq!((read.message.as_str(), read.thread.as_str(), read.awaited), ("Hello", "default", None));
        let read = Asked::of_chat(&json!({"message": "x", "thread_id": "t1"}), Some("k".into())).unwrap();
        assert_eq!((read.thread.as_str(), read.name.as_deref()), ("t1", Some("k")));
    }

    #[test]
    fn a_consent_needs_no_words_and_has_a_name() {
        let body = json!({"metadata": {"consent": {"id": "c1", "approved": true}}});
        let read = Asked::of_chat(&body, None).unwrap();
        assert_eq!((read.message.as_str(), read.name.as_deref()), ("Yes, do it.", Some("consent c1")));
        assert_eq!(read.awaited, Some(Awaited::Consent(Consent { id: "c1".to_owned(), approved: true })));
    }

    #[test]
    fn everything_wrong_is_named() {
        for (body, wrong) in [
            (json!({}), vec!["message"]),
            (json!([]), vec!["body"]),
            (json!({"message": ""}), vec!["message"]),
            (json!({"message": 7, "thread_id": 7, "user_id": "x"}), vec!["message", "thread_id", "user_id"]),
            (json!({"message": "x".repeat(LONGEST_MESSAGE + 1)}), vec!["message"]),
            (json!({"message": "x", "metadata": []}), vec!["metadata"]),
            (json!({"metadata": {"consent": {"id": "x"}}}), vec!["metadata.consent.approved"]),
            (json!({"metadata": {"consent": {"approved": "yes", "id": "x"}}}), vec!["metadata.consent.approved"]),
        ] {
            let Err(Error::Invalid(problems)) = Asked::of_chat(&body, None) else { panic!("{body} was read") };
            assert_eq!(problems.iter().map(|problem| problem.field.as_str()).collect::<Vec<_>>(), wrong, "{body}");
        }
    }

    #[test]
    fn an_action_is_chat_however_its_parameters_stand() {
        for body in [
            json!({"action": "chat", "message": "Hello", "thread_id": "t"}),
            json!({"action": "chat", "parameters": {"message": "Hello", "conversation_id": "t"}, "frontendUrl": "x"}),
            json!({"action": "chat", "arguments": {"thread_id": "t", "messages": [
                {"role": "user", "content": "Before"}, {"role": "user", "content": "Hello"}, {"role": "assistant", "content": "?"},
            ]}}),
        ] {
            let read = Asked::of_action(&body, None).unwrap();
            assert_eq!((read.message.as_str(), read.thread.as_str()), ("Hello", "t"), "{body}");
        }
        for body in [json!({"action": "dance"}), json!({"message": "Hello"}), json!({"action": 7}), json!([])] {
            assert!(matches!(Asked::of_action(&body, None), Err(Error::Malformed(_))), "{body}");
        }
        assert!(matches!(Asked::of_action(&json!({"action": "chat"}), None), Err(Error::Invalid(_))));
    }
}
