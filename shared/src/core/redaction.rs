//! Redaction for the history, transcripts, dry runs, logs and texts of services.
//!
//! Always hidden: phone numbers, e-mail addresses and credentials by pattern (`patterns`), and values under the name of a secret
//! (`names`). Also hidden: fields marked by a tool's author (`marks`). Secrets of a configuration, and values given as secrets or
//! under marked fields, are hidden wherever they recur (`hidden_texts`).
//!
//! The remaining text is cut to a budget, with a marker. The budget also bounds the work.

mod digits;
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
pub use transcript::{MarkedCall, Transcript, arguments_for_approver, arguments_for_reader};
pub use vendor_text::vendor_text;

pub const SECRET: &str = "[secret]";
/// Replaces our own input in a service's text.
const SENT: &str = "[sent]";
/// Replaces a marked field.
pub const HIDDEN: &str = "[redacted]";
const NUMBER: &str = "[number]";
const EMAIL: &str = "[email]";

/// Bytes examined per text.
const WINDOW: usize = 16 * 1_024;
/// Nesting of lists and objects; DynamoDB allows 32 in all.
const DEEPEST: usize = 12;

/// Redacts by pattern and name, and cuts to `budget` bytes, not counting the marker.
pub fn redacted(text: &str, budget: usize) -> String {
    Transcript::default().text(text, budget)
}
