//! Readers of parts that occur at several places of a file.

use serde_json::Value;
use shared::fields::Fields;

/// Required text of at most `longest` bytes, without control characters.
pub(crate) fn bounded(fields: &mut Fields<'_>, name: &'static str, longest: usize) -> String {
    let text = fields.required_text(name, longest).unwrap_or_default();
    if text.len() > longest && text.chars().count() <= longest {
        fields.problem(name, format!("must have at most {longest} bytes"));
    }
    if text.chars().any(|letter| letter.is_control() && letter != '\n') {
        fields.problem(name, "must not have control characters");
    }
    text
}

/// A required list of texts.
pub(crate) fn texts(fields: &mut Fields<'_>, name: &'static str) -> Vec<String> {
    match fields.required(name) {
        Some(Value::Array(texts)) if texts.iter().all(Value::is_string) => {
            texts.iter().filter_map(Value::as_str).map(str::to_owned).collect()
        }
        Some(_) => {
            fields.problem(name, "must be a list of texts");
            Vec::new()
        }
        None => Vec::new(),
    }
}
