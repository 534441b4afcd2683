//! JSON in the layout of Python's `json.dumps(value, indent=2)`, which agents know.

use std::fmt::Write as _;

use serde_json::Value;

/// Indents by two spaces, and escapes non-ASCII characters as `\u00e9`.
pub(super) fn dumps(value: &Value) -> String {
    let pretty = serde_json::to_string_pretty(value).unwrap_or_default();
    if pretty.is_ascii() {
        return pretty;
    }
    let mut dumped = String::with_capacity(pretty.len() + 16);
    let mut units = [0; 2];
    for letter in pretty.chars() {
        if letter.is_ascii() {
            dumped.push(letter);
        } else {
            // Non-ASCII characters occur only inside strings.
            for unit in letter.encode_utf16(&mut units) {
                // Writing to a string cannot fail.
                let _ = write!(dumped, "\\u{unit:04x}");
            }
        }
    }
    dumped
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Output of Python 3.11.
    #[test]
    fn the_output_equals_pythons() {
        let value = json!({
            "a": [], "b": {}, "c": [1, 2.5, true, null], "d": {"type": "string", "description": "é \"quoted\"\n\u{1f600}\t\u{1}"},
        });
        let python = "{\n  \"a\": [],\n  \"b\": {},\n  \"c\": [\n    1,\n    2.5,\n    true,\n    null\n  ],\n  \"d\": {\n    \
                      \"description\": \"\\u00e9 \\\"quoted\\\"\\n\\ud83d\\ude00\\t\\u0001\",\n    \"type\": \"string\"\n  }\n}";
        assert_eq!(dumps(&value), python);
        assert_eq!(dumps(&json!({})), "{}");
    }
}
