//! What must not be shown, and what stands in its place: in the history, in a run's transcript, in a dry run, in logs, and in
//! what a service repeats of a tool's configuration.
//!
//! Hidden always: phone numbers, e-mail addresses and credentials by their look (`patterns`), and what stands under the name
//! of a secret (`names`). Hidden besides: the fields that a tool's author marked (`marks`). What a configuration holds of
//! secrets, and what was given as one or under a marked field, is hidden wherever it stands again (`hidden_texts`).
//!
//! What remains is cut to a budget and says so. What is looked at closely is bounded by the budget, too.

mod hidden_texts;
mod history;
mod marks;
mod mentions;
mod names;
mod patterns;
mod redactor;
mod transcript;
mod vendor_text;

pub use hidden_texts::HiddenTexts;
pub use history::Unredacted;
pub use marks::{Marks, below};
pub use mentions::mentions;
pub use names::{is_secret, is_secret_header, words};
pub use transcript::{MarkedCall, Transcript, to_decide_on, to_look_at};
pub use vendor_text::vendor_text;

/// In place of a secret.
pub const SECRET: &str = "[secret]";
/// In place of what we sent, in what a service says of it.
const SENT: &str = "[sent]";
/// In place of a marked field.
pub const HIDDEN: &str = "[redacted]";
const NUMBER: &str = "[number]";
const EMAIL: &str = "[email]";

/// No more is looked at of one text, in bytes.
const WINDOW: usize = 16 * 1_024;
/// Levels of lists and objects; DynamoDB takes 32 in all.
const DEEPEST: usize = 12;

/// The text without what is secret by its look or its name, and at most so many bytes of it, the marker apart.
pub fn redacted(text: &str, budget: usize) -> String {
    Transcript::default().text(text, budget)
}
