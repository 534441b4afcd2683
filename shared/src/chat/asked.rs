//! A person's message, as read from a request.

use super::FrontEndTool;
use crate::{
    Error, Result,
    error::Problems,
    fields::{Fields, kind},
};
use serde_json::Value;

const DEFAULT_THREAD: &str = "default";
pub const LONGEST_MESSAGE: usize = 32_000;
pub const LONGEST_THREAD: usize = 200;
/// API Gateway decodes a path before it chooses the route.
const NOT_IN_PATHS: [char; 4] = ['/', '?', '#', '%'];
const ACTION: &str = "chat";
const PARAMETERS: [&str; 2] = ["parameters", "arguments"];
const THREAD_NAMES: [&str; 3] = ["thread_id", "conversation_id", "threadId"];
const MESSAGE: &str = "message ";

/// A message to a thread, or the input that the thread waits for.
#[derive(Debug, Clone, Default)]
pub struct ChatInput {
    /// Empty when `awaited` brings results of tools.
    pub message: String,
    pub thread: String,
    pub thread_field: String,
    pub awaited: Option<Awaited>,
    /// The idempotency name: a request with the same name gets the same answer.
    pub name: Option<String>,
    pub tools: Vec<FrontEndTool>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Awaited {
    Consent(Consent),
    /// Results of the front end's tools; only that of the waiting call is taken.
    Results(Vec<FrontEndResult>),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Consent {
    pub id: String,
    pub approved: bool,
}

impl Consent {
    const WORDS_OF_APPROVAL: &str = "Yes, do it.";

    const fn words(&self) -> &'static str {
        if self.approved { Self::WORDS_OF_APPROVAL } else { "No, do not do it." }
    }

    /// The decision's own words, followed by those of the person.
    fn message(&self, said: Option<String>) -> String {
        let words = self.words();
        match said {
            Some(said) if said.starts_with(words) => said,
            Some(said) => format!("{words} {said}"),
            None => words.to_owned(),
        }
    }

    pub(super) fn is_approval(message: &str) -> bool {
        message.starts_with(Self::WORDS_OF_APPROVAL)
    }

    fn name(&self) -> String {
        format!("consent {}", self.id)
    }

    /// The decision as a request. Its repetition gets the same answer.
    pub fn asked(self, thread: String) -> ChatInput {
        ChatInput {
            message: self.message(None),
            thread,
            thread_field: String::new(),
            name: Some(self.name()),
            awaited: Some(Awaited::Consent(self)),
            tools: Vec::new(),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FrontEndResult {
    pub id: String,
    pub content: String,
    pub failed: bool,
}

impl ChatInput {
    pub(super) fn message_id(&self) -> Option<String> {
        self.name.as_deref()?.strip_prefix(MESSAGE).map(str::to_owned)
    }

    pub(super) fn refused_thread(&self) -> Option<Error> {
        let name = self.thread.as_str();
        if name.contains(NOT_IN_PATHS) {
            return Some(Error::invalid(&self.thread_field, "must be without /, ?, # and %: a path names the thread"));
        }
        let problem = "must not be . or ..: a path names the thread";
        [".", ".."].contains(&name).then(|| Error::invalid(&self.thread_field, problem))
    }

    pub fn name_of_message(id: &str) -> String {
        format!("{MESSAGE}{id}")
    }

    /// Reads the body of `POST /agent/chat` and of its streaming twin: `{"message", "thread_id"?, "metadata"?}`. `key`
    /// is the request's `Idempotency-Key`; a consent names its request itself.
    ///
    /// # Errors
    /// [`Error::Invalid`] with every wrong field.
    pub fn of_chat(body: &Value, key: Option<String>) -> Result<Self> {
        let mut problems = Problems::default();
        let request = Fields::of(body, "", &mut problems).and_then(|mut fields| {
            let consent = consent(&mut fields);
            let said = fields.text("message", LONGEST_MESSAGE);
            let message = required_message(said, consent.as_ref(), &mut fields);
            let thread = fields.name("thread_id", LONGEST_THREAD).map(|thread| (thread, "thread_id".to_owned()));
            fields.finish();
            Some(Self::of(message?, consent, thread, key))
        });
        problems.into_result(request)
    }

    /// Reads the body of `POST /copilotkit/action`. Each field is beside `action`, or below `parameters` or
    /// `arguments`. Without a consent the message may also be the person's last one in `messages`. The thread may be a
    /// `conversation_id` or a `threadId`; two different threads are refused. Other fields are ignored.
    ///
    /// # Errors
    /// [`Error::Malformed`] for an unknown action, [`Error::Invalid`] with every wrong field.
    pub fn of_action(body: &Value, key: Option<String>) -> Result<Self> {
        match body.get("action") {
            Some(Value::String(action)) if action == ACTION => {}
            Some(Value::String(_)) => {
                return Err(Error::Malformed(format!("there is no such action; the only one is \"{ACTION}\"")));
            }
            _ => return Err(Error::Malformed(format!("\"action\" must be a text; the only action is \"{ACTION}\""))),
        }
        let mut problems = Problems::default();
        let thread = named_thread(body, &mut problems);
        problems.into_result(Some(()))?;
        let mut problems = Problems::default();
        let nested = PARAMETERS.into_iter().find_map(|name| {
            let parameters =
                body.get(name).filter(|parameters| parameters.as_object().is_some_and(|of| !of.is_empty()));
            Some((parameters?, name))
        });
        // A field beside the parameters counts as one of them.
        let places = || nested.into_iter().chain([(body, "")]);
        let consent = places()
            .find(|(place, _)| place.get("metadata").is_some())
            .and_then(|(place, path)| consent(&mut Fields::of(place, path, &mut problems)?));
        let has_message = |(place, _): &(&Value, &str)| ["message", "messages"].iter().any(|name| has(place, name));
        let (place, path) = places().find(has_message).or(nested).unwrap_or((body, ""));
        let request = Fields::of(place, path, &mut problems).and_then(|mut fields| {
            let said = match fields.text("message", LONGEST_MESSAGE) {
                // The last message before a consent is the one that led to the question.
                None if consent.is_none() => last_message(&mut fields),
                said => said,
            };
            let message = required_message(said, consent.as_ref(), &mut fields);
            Some(Self::of(message?, consent, thread, key))
        });
        problems.into_result(request)
    }

    fn of(message: String, consent: Option<Consent>, thread: Option<(String, String)>, key: Option<String>) -> Self {
        let (thread, thread_field) = thread.unwrap_or_else(|| (DEFAULT_THREAD.to_owned(), String::new()));
        Self {
            message,
            thread,
            thread_field,
            name: consent.as_ref().map(Consent::name).or(key),
            awaited: consent.map(Awaited::Consent),
            tools: Vec::new(),
        }
    }
}

/// Whether an object has a field with a value that is not empty.
fn has(object: &Value, name: &str) -> bool {
    match object.get(name) {
        None | Some(Value::Null) => false,
        Some(Value::String(text)) => !text.trim().is_empty(),
        Some(Value::Array(items)) => !items.is_empty(),
        Some(_) => true,
    }
}

fn required_message(said: Option<String>, consent: Option<&Consent>, fields: &mut Fields<'_>) -> Option<String> {
    let message = match consent {
        Some(consent) => Some(consent.message(said)),
        None => said,
    };
    if message.is_none() && fields.problems().iter().count() == 0 {
        fields.problem("message", "is required");
    }
    message
}

fn named_thread(body: &Value, problems: &mut Problems) -> Option<(String, String)> {
    let mut named: Option<(String, String)> = None;
    for place in PARAMETERS.into_iter().chain([""]) {
        let Some(body) = (if place.is_empty() { Some(body) } else { body.get(place) }).filter(|body| body.is_object())
        else {
            continue;
        };
        let Some(mut fields) = Fields::of(body, place, problems) else { continue };
        for name in THREAD_NAMES {
            let Some(thread) = fields.name(name, LONGEST_THREAD) else { continue };
            match &named {
                Some((other, at)) if *other != thread => {
                    let sentence = format!("names another thread than {at}: write one of the two");
                    fields.problem(name, sentence);
                }
                Some(_) => {}
                None => named = Some((thread, fields.path(name))),
            }
        }
    }
    named
}

/// `metadata.consent`; other members of `metadata` belong to the client.
fn consent(fields: &mut Fields<'_>) -> Option<Consent> {
    let mut metadata = fields.object("metadata")?;
    let mut consent = metadata.object("consent")?;
    let id = consent.required_text("id", 100);
    let approved = consent.required("approved").is_some() && consent.boolean("approved", false);
    consent.finish();
    Some(Consent { id: id?, approved })
}

fn last_message(fields: &mut Fields<'_>) -> Option<String> {
    let messages = fields.get("messages")?.as_array()?;
    let of_person = |message: &Value| message.get("role").and_then(Value::as_str) == Some("user");
    let last = messages.iter().rposition(of_person)?;
    let path = fields.path(&format!("messages[{last}]"));
    message_text(&mut Fields::of(messages.get(last)?, path, fields.problems())?)
}

/// The text of a person's message, from its `content`.
pub fn message_text(message: &mut Fields<'_>) -> Option<String> {
    let text = message_content(message, LONGEST_MESSAGE)?;
    if text.is_empty() {
        message.problem("content", "must have text");
        return None;
    }
    Some(text)
}

/// The text of a message's `content`: itself, or its text parts.
pub fn message_content(message: &mut Fields<'_>, longest: usize) -> Option<String> {
    let text = match message.get("content") {
        Some(Value::String(text)) => text.trim().to_owned(),
        Some(Value::Array(parts)) => {
            let texts = parts.iter().filter(|part| part.get("type").is_some_and(|of| of == "text"));
            let texts: Vec<&str> = texts.filter_map(|part| part.get("text")?.as_str()).collect();
            texts.join("\n").trim().to_owned()
        }
        None => String::new(),
        Some(other) => {
            message.problem("content", format!("must be text or a list of parts, not {}", kind(other)));
            return None;
        }
    };
    if text.chars().count() > longest {
        message.problem("content", format!("must have at most {longest} characters"));
        return None;
    }
    Some(text)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_message_goes_to_the_users_own_thread_unless_another_is_named() {
        let read = ChatInput::of_chat(&json!({"message": " Hello ", "metadata": {"page": 1}}), None).unwrap();
        assert_eq!((read.message.as_str(), read.thread.as_str(), read.awaited), ("Hello", "default", None));
        let read = ChatInput::of_chat(&json!({"message": "x", "thread_id": "t1"}), Some("k".into())).unwrap();
        assert_eq!((read.thread.as_str(), read.name.as_deref()), ("t1", Some("k")));
    }

    #[test]
    fn a_consent_needs_no_words_and_has_a_name() {
        let body = json!({"metadata": {"consent": {"id": "c1", "approved": true}}});
        let read = ChatInput::of_chat(&body, None).unwrap();
        assert_eq!((read.message.as_str(), read.name.as_deref()), ("Yes, do it.", Some("consent c1")));
        assert_eq!(read.awaited, Some(Awaited::Consent(Consent { id: "c1".to_owned(), approved: true })));
        let read = ChatInput::of_chat(&body, Some("k1".into())).unwrap();
        assert_eq!(read.name.as_deref(), Some("consent c1"));
        for (approved, message, stored) in [
            (true, "Yes please", "Yes, do it. Yes please"),
            (true, "Yes, do it.", "Yes, do it."),
            (false, "Yes, do it.", "No, do not do it. Yes, do it."),
        ] {
            let body = json!({"message": message, "metadata": {"consent": {"id": "c1", "approved": approved}}});
            let read = ChatInput::of_chat(&body, None).unwrap();
            assert_eq!((read.message.as_str(), Consent::is_approval(stored)), (stored, approved));
        }
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
            let Err(Error::Invalid(problems)) = ChatInput::of_chat(&body, None) else { panic!("{body} was read") };
            assert_eq!(problems.iter().map(|problem| problem.field.as_str()).collect::<Vec<_>>(), wrong, "{body}");
        }
    }

    #[test]
    fn an_action_is_chat_however_its_parameters_stand() {
        for body in [
            json!({"action": "chat", "message": "Hello", "thread_id": "t"}),
            json!({"action": "chat", "parameters": {"message": "Hello", "conversation_id": "t"}, "frontendUrl": "x"}),
            json!({"action": "chat", "thread_id": "t", "parameters": {"message": "Hello"}}),
            json!({"action": "chat", "thread_id": "t", "arguments": {"message": "Hello"}, "parameters": {}, "message": "x"}),
            json!({"action": "chat", "threadId": "t", "thread_id": null, "parameters": {"message": "Hello"}}),
            json!({"action": "chat", "thread_id": "t", "message": "Hello", "parameters": {"thread_id": "t"}}),
            json!({"action": "chat", "arguments": {"thread_id": "t", "messages": [
                {"role": "user", "content": "Before"}, {"role": "user", "content": "Hello"}, {"role": "assistant", "content": "?"},
            ]}}),
        ] {
            let read = ChatInput::of_action(&body, None).unwrap();
            assert_eq!((read.message.as_str(), read.thread.as_str()), ("Hello", "t"), "{body}");
        }
        let consents = json!({"consent": {"id": "c1", "approved": true}});
        let messages = json!([{"role": "user", "content": "Send it"}]);
        let body = json!({"action": "chat", "metadata": consents, "messages": messages, "parameters": {}});
        let read = ChatInput::of_action(&body, None).unwrap();
        assert_eq!((read.message.as_str(), read.name.as_deref()), ("Yes, do it.", Some("consent c1")));
        for body in [json!({"action": "dance"}), json!({"message": "Hello"}), json!({"action": 7}), json!([])] {
            assert!(matches!(ChatInput::of_action(&body, None), Err(Error::Malformed(_))), "{body}");
        }
        assert!(matches!(ChatInput::of_action(&json!({"action": "chat"}), None), Err(Error::Invalid(_))));
        for (body, wrong) in [
            (json!({"action": "chat", "parameters": {"x": 1}}), "parameters.message"),
            (
                json!({"action": "chat", "thread_id": "a", "parameters": {"message": "x", "thread_id": "b"}}),
                "thread_id",
            ),
            (json!({"action": "chat", "thread_id": 7, "parameters": {"message": "x"}}), "thread_id"),
            (
                json!({"action": "chat", "message": "x", "arguments": {"conversation_id": 7}}),
                "arguments.conversation_id",
            ),
        ] {
            let Err(Error::Invalid(problems)) = ChatInput::of_action(&body, None) else { panic!("{body} was read") };
            assert_eq!(problems.iter().map(|problem| problem.field.as_str()).collect::<Vec<_>>(), [wrong], "{body}");
        }
    }

    #[test]
    fn a_list_of_messages_is_read_as_the_stream_reads_it() {
        let said =
            |content: Value| json!([{"role": "system", "content": "Be brief"}, {"role": "user", "content": content}]);
        let parts =
            json!([{"type": "text", "text": "Hello"}, {"type": "image", "url": "x"}, {"type": "text", "text": "you"}]);
        for (body, message) in [
            (json!({"action": "chat", "messages": said(parts.clone())}), "Hello\nyou"),
            (json!({"action": "chat", "parameters": {"messages": said(parts.clone())}}), "Hello\nyou"),
            (
                json!({"action": "chat", "parameters": {"message": " ", "id": 1}, "messages": said(parts.clone())}),
                "Hello\nyou",
            ),
            (json!({"action": "chat", "parameters": {"message": null, "messages": []}, "message": "Hello"}), "Hello"),
            (json!({"action": "chat", "parameters": {"messages": said(json!("Inner"))}, "message": "Outer"}), "Inner"),
        ] {
            assert_eq!(ChatInput::of_action(&body, None).unwrap().message, message, "{body}");
        }
        let long = said(json!("x".repeat(LONGEST_MESSAGE + 1)));
        let limit = "must have at most 32000 characters";
        for (body, field, problem) in [
            (json!({"action": "chat", "messages": long}), "messages[1].content", limit),
            (json!({"action": "chat", "parameters": {"messages": long}}), "parameters.messages[1].content", limit),
            (
                json!({"action": "chat", "parameters": {"message": "", "id": 1}, "messages": long}),
                "messages[1].content",
                limit,
            ),
            (json!({"action": "chat", "messages": said(json!([]))}), "messages[1].content", "must have text"),
            (
                json!({"action": "chat", "messages": said(json!(7))}),
                "messages[1].content",
                "must be text or a list of parts, not a number",
            ),
            (json!({"action": "chat", "messages": [{"role": "assistant", "content": "?"}]}), "message", "is required"),
        ] {
            let Err(Error::Invalid(problems)) = ChatInput::of_action(&body, None) else { panic!("{field} was read") };
            let found: Vec<_> = problems.iter().map(|found| (found.field.as_str(), found.problem.as_str())).collect();
            assert_eq!(found, [(field, problem)]);
        }
    }
}
