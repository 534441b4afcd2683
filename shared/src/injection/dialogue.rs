//! The conversation of model and loop.

use std::collections::HashMap;

use super::calls::{Record, is_cut};
use crate::{
    clients::llm::Message,
    models::{CallOutcome, Phase, RunAnswer, RunCall, RunPrompt, RunReply, Spent, WholeRun},
};

/// A conversation that can be interrupted after each step and resumed from the saved steps.
#[derive(Debug)]
pub struct Dialogue {
    /// System prompt and prompt, then answers and replies in turn.
    pub(super) messages: Vec<Message>,
    pub(super) record: Record,
    pub(super) phase: Phase,
    pub(super) spent: Spent,
    pub(super) steps: u32,
    pub(super) pending: Option<RunAnswer>,
}

impl Dialogue {
    pub fn new(prompt: &RunPrompt) -> Self {
        Self {
            messages: vec![Message::system(prompt.system_prompt.as_str()), Message::user(prompt.prompt.as_str())],
            record: HashMap::new(),
            phase: Phase::default(),
            spent: Spent::default(),
            steps: 0,
            pending: None,
        }
    }

    /// Restores the dialogue from the saved steps. `repeatable`: whether results of a tool may be reused.
    pub fn resume(whole: WholeRun, repeatable: impl Fn(&str) -> bool) -> Self {
        let mut dialogue = Self { spent: whole.run.spent, ..Self::new(&whole.prompt.unwrap_or_default()) };
        let mut replies = whole.replies.into_iter().peekable();
        for answer in whole.answers {
            dialogue.steps = answer.step;
            match replies.next_if(|reply| reply.step == answer.step) {
                Some(reply) => {
                    dialogue.say(answer.text);
                    dialogue.reply(reply, &repeatable);
                }
                None => dialogue.pending = Some(answer),
            }
        }
        dialogue
    }

    pub fn spent(&self) -> &Spent {
        &self.spent
    }

    pub(super) fn say(&mut self, answer: String) {
        self.messages.push(Message::assistant(answer));
    }

    pub(super) fn reply(&mut self, reply: RunReply, repeatable: impl Fn(&str) -> bool) {
        let message = self.messages.len();
        for RunCall { name, arguments, outcome, result_at, .. } in reply.calls {
            if outcome == CallOutcome::Succeeded
                && repeatable(&name)
                && let Some(arguments) = arguments
                && reply.text.get(result_at.0..result_at.0 + result_at.1).is_some_and(|result| !is_cut(result))
            {
                self.record.insert((name, arguments), (message, result_at.0, result_at.1));
            }
        }
        self.phase = reply.phase;
        self.messages.push(Message::user(reply.text));
    }

    pub(super) fn earlier(&self, name: &str, arguments: &str) -> Option<String> {
        let (message, at, length) = *self.record.get(&(name.to_owned(), arguments.to_owned()))?;
        self.messages.get(message)?.content.get(at..at + length).map(str::to_owned)
    }
}
