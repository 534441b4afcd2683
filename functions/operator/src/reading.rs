//! Readers of parts that occur at several places of a file.

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
    fields.required(name).and_then(|_| fields.texts(name, "texts", usize::MAX)).unwrap_or_default()
}
