//! Reads a streamed answer.

use std::{collections::BTreeMap, time::Duration};

use futures_util::stream::{self, Stream};
use reqwest::{Response, header::CONTENT_TYPE};
use serde_json::Value;

use super::{
    super::{Error, Failure, UpstreamService},
    Completion, Finish, LARGEST_ANSWER, ToolCall, Usage,
    answer::{content_of, error_in, finish_in, text_at},
    events::Events,
    generation_id, refusal, unusable,
};

/// Longest silence in a stream. Gateways send comments while a model thinks.
const SILENCE: Duration = Duration::from_secs(60);

/// A piece of an answer. An error may follow pieces, which remain valid.
#[derive(Debug, Clone, PartialEq)]
pub enum Delta {
    /// More text, never empty.
    Text(String),
    /// The whole answer at the end, with function calls and usage.
    Done(Box<Completion>),
}

pub(super) enum Opened {
    Events(Box<Reading>),
    Whole(Box<Completion>),
}

pub(super) fn is_json(response: &Response) -> bool {
    let kind = response.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    kind.trim_start().to_ascii_lowercase().starts_with("application/json")
}

pub(super) struct Reading {
    response: Response,
    ended: bool,
    events: Events,
    /// Bytes of the conversation, to estimate tokens.
    asked: usize,
    text: String,
    /// By index, and by order among those of one index.
    tool_calls: BTreeMap<(u64, usize), ToolCall>,
    /// Bytes of text and calls.
    size: usize,
    answered: bool,
    finish: Option<Finish>,
    refused: bool,
    usage: Option<Usage>,
    model: Option<String>,
    id: Option<String>,
    asked_model: String,
}

enum State {
    Events(Box<Reading>),
    Whole(Box<Completion>),
    Said(Box<Completion>),
    Over,
}

/// Texts, then [`Delta::Done`] or an error.
pub(super) fn deltas(opened: Opened) -> impl Stream<Item = Result<Delta, Error>> + Send {
    let begin = match opened {
        Opened::Events(reading) => State::Events(reading),
        Opened::Whole(completion) if completion.text.is_empty() => State::Said(completion),
        Opened::Whole(completion) => State::Whole(completion),
    };
    stream::unfold(begin, async |state| match state {
        State::Events(mut reading) => match reading.next().await {
            Ok(Delta::Text(text)) => Some((Ok(Delta::Text(text)), State::Events(reading))),
            last => Some((last, State::Over)),
        },
        State::Whole(completion) => Some((Ok(Delta::Text(completion.text.clone())), State::Said(completion))),
        State::Said(completion) => Some((Ok(Delta::Done(completion)), State::Over)),
        State::Over => None,
    })
}

impl Reading {
    pub(super) fn new(response: Response, asked: usize, asked_model: &str) -> Self {
        let id = generation_id(&response);
        Self {
            response,
            ended: false,
            events: Events::default(),
            asked,
            text: String::new(),
            tool_calls: BTreeMap::new(),
            size: 0,
            answered: false,
            finish: None,
            refused: false,
            usage: None,
            model: None,
            id,
            asked_model: asked_model.to_owned(),
        }
    }

    async fn next(&mut self) -> Result<Delta, Error> {
        loop {
            while let Some(data) = self.events.next() {
                if data.trim_ascii() == b"[DONE]" {
                    return self.done();
                }
                // A broken connection may have cut the event.
                let Ok(chunk) = serde_json::from_slice(&data) else {
                    if self.ended {
                        break;
                    }
                    return Err(unusable("an event of the stream is not JSON"));
                };
                let text = self.take(&chunk)?;
                if !text.is_empty() {
                    return Ok(Delta::Text(text));
                }
            }
            if self.ended {
                return self.ended_by(Failure::BrokenOff, "the stream ended before the answer did");
            }
            match tokio::time::timeout(SILENCE, self.response.chunk()).await {
                Ok(Ok(Some(bytes))) => {
                    self.events.take(&bytes).map_err(|_too_large| unusable("an event of the stream is too large"))?;
                }
                Ok(Ok(None)) => {
                    self.ended = true;
                    self.events.end();
                }
                Ok(Err(error)) if error.is_timeout() => {
                    return self.ended_by(Failure::NoAnswer, error.without_url());
                }
                Ok(Err(error)) => return self.ended_by(Failure::BrokenOff, error.without_url()),
                Err(silence) => return self.ended_by(Failure::NoAnswer, silence),
            }
        }
    }

    fn take(&mut self, chunk: &Value) -> Result<String, Error> {
        if let Some(error) = error_in(chunk) {
            return Err(refusal::inside(error, None));
        }
        let told = |name: &str| text_at(chunk, name).filter(|text| !text.is_empty());
        self.model = self.model.take().or_else(|| told("model"));
        self.id = self.id.take().or_else(|| told("id"));
        self.usage = Usage::read(chunk.get("usage")).or(self.usage);
        // The chunk with the usage has no choice.
        let Some(choice) = chunk.get("choices").and_then(|choices| choices.get(0)) else { return Ok(String::new()) };
        if let Some(error) = error_in(choice) {
            return Err(refusal::inside(error, None));
        }
        self.answered = true;
        self.finish = finish_in(choice)?.or(self.finish);
        let Some(delta) = choice.get("delta") else { return Ok(String::new()) };
        let mut text = content_of(delta).ok_or_else(|| unusable("choices[0].delta.content is not text"))?;
        if let Some(refusal) = delta.get("refusal").and_then(Value::as_str).filter(|refusal| !refusal.is_empty()) {
            text.push_str(refusal);
            self.refused = true;
        }
        self.size += text.len();
        for fragment in delta.get("tool_calls").and_then(Value::as_array).into_iter().flatten() {
            self.assemble(fragment);
        }
        if self.size > LARGEST_ANSWER {
            return Err(unusable(format!("the answer is larger than {LARGEST_ANSWER} bytes")));
        }
        self.text.push_str(&text);
        Ok(text)
    }

    /// Adds a part of a call, identified by its index; id and name come with the first part. Gemini gives each call the index 0, so
    /// a name with another id begins another call.
    fn assemble(&mut self, fragment: &Value) {
        let given = |of: &Value, field: &str| text_at(of, field).filter(|text| !text.is_empty());
        let function = fragment.get("function").unwrap_or(&Value::Null);
        let (id, name) = (given(fragment, "id"), given(function, "name"));
        let last = self.tool_calls.last_key_value();
        let index = fragment.get("index").and_then(Value::as_u64).unwrap_or_else(|| match last {
            Some((&(index, _), call)) if id.as_ref().is_none_or(|id| *id == call.id) => index,
            Some((&(index, _), _)) => index.saturating_add(1),
            None => 0,
        });
        let same = self.tool_calls.range((index, 0)..=(index, usize::MAX)).next_back();
        let is_another =
            |call: &ToolCall| name.is_some() && !call.id.is_empty() && id.as_ref().is_some_and(|id| *id != call.id);
        let nth = same.map_or(0, |(&(_, nth), call)| nth + usize::from(is_another(call)));
        let call = self.tool_calls.entry((index, nth)).or_default();
        let before = call.id.len() + call.name.len() + call.arguments.len();
        if let Some(id) = id.filter(|_| call.id.is_empty()) {
            call.id = id;
        }
        if let Some(name) = name.filter(|_| call.name.is_empty()) {
            call.name = name;
        }
        match function.get("arguments") {
            None | Some(Value::Null) => {}
            Some(Value::String(text)) => call.arguments.push_str(text),
            Some(object) => call.arguments.push_str(&object.to_string()),
        }
        let after = call.id.len() + call.name.len() + call.arguments.len();
        self.size += (after - before) + size_of::<ToolCall>();
    }

    /// Handles the end of the connection, harmless after the end of the answer.
    fn ended_by(
        &mut self,
        failure: Failure,
        why: impl Into<Box<dyn std::error::Error + Send + Sync>>,
    ) -> Result<Delta, Error> {
        match self.finish {
            Some(_) => self.done(),
            None => Err(Error::because(UpstreamService::Llm, failure, why)),
        }
    }

    fn done(&mut self) -> Result<Delta, Error> {
        if !self.answered {
            return Err(unusable("the stream has no choices"));
        }
        let text = std::mem::take(&mut self.text);
        let mut tool_calls = Vec::with_capacity(self.tool_calls.len());
        for ((index, _), mut call) in std::mem::take(&mut self.tool_calls) {
            if call.name.is_empty() {
                return Err(unusable(format!("the function of tool_calls[{index}] has no name")));
            }
            if call.id.is_empty() {
                call.id = format!("call_{index}");
            }
            tool_calls.push(call);
        }
        let finish = if self.refused { Finish::Refusal } else { self.finish.unwrap_or(Finish::Other) };
        let usage = self.usage.unwrap_or_else(|| Usage::guess(self.asked, &text, &tool_calls));
        let model = self.model.take().unwrap_or_else(|| self.asked_model.clone());
        Ok(Delta::Done(Box::new(Completion { text, tool_calls, finish, usage, model, id: self.id.take() })))
    }
}
