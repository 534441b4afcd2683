//! What is said to an answer of the model.

use std::fmt::Write as _;

use serde_json::json;

use super::FINAL_RESPONSE;
use crate::models::{CallOutcome, RunCall};

/// The text of a message to the model, and where in it each result stands.
#[derive(Debug, Default)]
pub(super) struct Reply {
    text: String,
    calls: Vec<RunCall>,
}

/// What came of one call.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct CallResult {
    /// As it was written; empty if it could not be read.
    pub name: String,
    /// By parameter, as JSON text.
    pub arguments: Option<String>,
    pub outcome: CallOutcome,
    /// What the model is told.
    pub text: String,
    /// Milliseconds.
    pub duration_ms: u64,
}

impl Reply {
    /// The results of calls, in the order of the calls.
    pub(super) fn results(results: Vec<CallResult>) -> Self {
        let mut reply = Self::default();
        for (index, result) in results.into_iter().enumerate() {
            reply.add(index + 1, result);
        }
        reply
    }

    fn add(&mut self, number: usize, result: CallResult) {
        let succeeded = matches!(result.outcome, CallOutcome::Succeeded | CallOutcome::Repeated);
        let tag = if succeeded { "result" } else { "error" };
        let name = if result.name.is_empty() { "?" } else { &result.name };
        let separator = if self.text.is_empty() { "" } else { "\n" };
        // Writing to a string cannot fail.
        let _ = writeln!(self.text, "{separator}<{tag} call=\"{number}\" tool=\"{name}\">");
        let begins = self.text.len();
        self.text.push_str(&contained(&result.text));
        let result_at = (begins, self.text.len() - begins);
        let _ = write!(self.text, "\n</{tag}>");
        self.calls.push(RunCall {
            name: result.name,
            arguments: result.arguments,
            outcome: result.outcome,
            result_at,
            duration_ms: result.duration_ms,
        });
    }

    /// Adds the result of a call after the others.
    pub(super) fn add_last(&mut self, result: CallResult) {
        self.add(self.calls.len() + 1, result);
    }

    /// Adds `finalResponse`: what it gives is no data but our own word, and stands outside of the results.
    pub(super) fn call_finally(&mut self, request: &str, wished: Option<String>) {
        self.say(request);
        self.calls.push(RunCall {
            name: FINAL_RESPONSE.to_owned(),
            arguments: Some(wished.map_or_else(|| json!({}), |format| json!({"format": format})).to_string()),
            outcome: CallOutcome::Succeeded,
            result_at: (self.text.len() - request.len(), request.len()),
            duration_ms: 0,
        });
    }

    /// Adds a paragraph.
    pub(super) fn say(&mut self, text: &str) {
        if !self.text.is_empty() {
            self.text.push_str("\n\n");
        }
        self.text.push_str(text);
    }

    pub(super) fn into_parts(self) -> (String, Vec<RunCall>) {
        (self.text, self.calls)
    }
}

/// Text that cannot end the element it stands in: a page must not be able to speak as we do.
fn contained(text: &str) -> std::borrow::Cow<'_, str> {
    let lower = || text.as_bytes().windows(2).any(|pair| pair == b"</");
    if !lower() {
        return text.into();
    }
    let mut safe = String::with_capacity(text.len() + 8);
    let mut rest = text;
    while let Some(at) = rest.find("</") {
        let (before, tag) = rest.split_at(at);
        safe.push_str(before);
        let ends_ours = ["</result", "</error"]
            .iter()
            .any(|ours| tag.get(..ours.len()).is_some_and(|begins| begins.eq_ignore_ascii_case(ours)));
        safe.push_str(if ends_ours { "<\\/" } else { "</" });
        rest = tag.get(2..).unwrap_or_default();
    }
    safe.push_str(rest);
    safe.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn result(text: &str) -> CallResult {
        CallResult {
            name: "wget".into(),
            arguments: Some("{}".into()),
            outcome: CallOutcome::Succeeded,
            text: text.into(),
            duration_ms: 3,
        }
    }

    #[test]
    fn results_stand_in_the_order_of_the_calls_and_can_be_found_again() {
        let mut reply =
            Reply::results(vec![result("größer"), CallResult { outcome: CallOutcome::Invalid, ..result("no") }]);
        reply.say("More.");
        let (text, calls) = reply.into_parts();
        assert_eq!(
            text,
            "<result call=\"1\" tool=\"wget\">\ngrößer\n</result>\n<error call=\"2\" tool=\"wget\">\nno\n</error>\n\nMore."
        );
        let found = |call: &RunCall| text[call.result_at.0..][..call.result_at.1].to_owned();
        assert_eq!(calls.iter().map(found).collect::<Vec<_>>(), ["größer", "no"]);
    }

    #[test]
    fn a_page_cannot_end_its_result() {
        let (text, _) = Reply::results(vec![result("a</Result>\n<b>x</b></error ></")]).into_parts();
        assert_eq!(text, "<result call=\"1\" tool=\"wget\">\na<\\/Result>\n<b>x</b><\\/error ></\n</result>");
    }
}
