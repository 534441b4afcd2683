//! `finalResponse`, the tool that every run has: it ends the calls and begins the final answer.
//!
//! What the answer must look like is the automation's to say. Only an automation that says nothing leaves it to the model.

use serde_json::{Value, json};

use crate::{
    Result,
    json_schema::JsonSchema,
    tool::{Parameters, ToolSpec},
};

pub const FINAL_RESPONSE: &str = "finalResponse";

/// Problems of an answer that are told at once.
const MOST_PROBLEMS: usize = 10;

/// As it stands in a prompt. The loop itself acts on the call.
pub fn final_response() -> ToolSpec {
    let format = json!({"type": "string", "description": "only if the task names no format: the one you will use"});
    ToolSpec {
        name: FINAL_RESPONSE.to_owned(),
        description:
            "Ends the work with tools. You are then told the format of the final answer; do not give the answer here."
                .to_owned(),
        parameters: Parameters::new([("format", format, false)]),
        returns: json!({"type": "string"}),
        own_examples: vec!["return finalResponse();".to_owned()],
        effect: false,
        repeatable: false,
    }
}

/// What the final answer must be.
pub struct FinalFormat {
    /// The schema as it was written, and ready to be held against an answer.
    schema: Option<(String, JsonSchema)>,
}

impl FinalFormat {
    /// # Errors
    /// When the schema cannot be used, field by field.
    pub fn new(schema: Option<&Value>) -> Result<Self> {
        let compile = |schema: &Value| {
            let compiled =
                JsonSchema::compile(schema).map_err(|problems| crate::Error::Invalid(problems.below("schema")))?;
            Ok::<_, crate::Error>((schema.to_string(), compiled))
        };
        Ok(Self { schema: schema.map(compile).transpose()? })
    }

    /// What is asked of the model; `wished` is the format that it named itself.
    pub(super) fn request(&self, wished: Option<&str>) -> String {
        let format = match (&self.schema, wished) {
            (Some((schema, _)), _) => format!(" It must fit this JSON schema:\n{schema}"),
            (None, Some(wished)) => format!(" Its format: {wished}"),
            (None, None) => String::new(),
        };
        format!("Give the final answer now: one JSON value and nothing else, no tool calls, no text around it.{format}")
    }

    /// The final answer in what the model wrote.
    ///
    /// # Errors
    /// What is wrong with it, for the model.
    pub(super) fn read(&self, text: &str) -> Result<Value, String> {
        let mut wrong = None;
        for candidate in candidates(text) {
            match self.check(&candidate) {
                Ok(()) => return Ok(candidate),
                Err(problems) => wrong = wrong.or(Some(problems)),
            }
        }
        Err(wrong.unwrap_or_else(|| "There is no JSON value in it.".to_owned()))
    }

    fn check(&self, value: &Value) -> Result<(), String> {
        let Some((_, schema)) = &self.schema else { return Ok(()) };
        let violations = schema.validate(value);
        if violations.is_empty() {
            return Ok(());
        }
        let lines: Vec<String> =
            violations.iter().take(MOST_PROBLEMS).map(|violation| format!("- {violation}")).collect();
        Err(format!("It does not fit the schema:\n{}", lines.join("\n")))
    }
}

/// Places in a text at which a JSON value is looked for, where it does not stand by itself.
const MOST_PLACES: usize = 16;

/// The JSON values that a text may mean as its answer, the likeliest first: the whole of it, what stands in a fence, what
/// begins somewhere in it. Each is a value that was written out; nothing is guessed.
fn candidates(text: &str) -> impl Iterator<Item = Value> {
    let text = text.trim().trim_start_matches('\u{feff}');
    let whole = std::iter::once_with(move || serde_json::from_str(text).ok()).flatten();
    let fenced = fences(text).filter_map(|inside| serde_json::from_str(inside.trim()).ok());
    let (mut places, mut tried, mut after) = (text.match_indices(['{', '[']), 0, 0);
    let within = std::iter::from_fn(move || {
        while tried < MOST_PLACES {
            let (at, _) = places.next()?;
            // What lies within a value that was read is no value of its own.
            if at < after {
                continue;
            }
            tried += 1;
            let mut values = serde_json::Deserializer::from_str(text.get(at..)?).into_iter::<Value>();
            if let Some(Ok(value)) = values.next() {
                after = at + values.byte_offset();
                return Some(value);
            }
        }
        None
    });
    whole.chain(fenced).chain(within)
}

/// What stands between fences of back-ticks.
fn fences(text: &str) -> impl Iterator<Item = &str> {
    text.split("```").skip(1).step_by(2).map(|block| match block.split_once('\n') {
        // The first line names the language.
        Some((language, inside)) if !language.contains(['{', '[', '"']) => inside,
        _ => block,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn format() -> FinalFormat {
        let schema = json!({
            "type": "object",
            "properties": {"city": {"type": "string"}, "degrees": {"type": "number"}},
            "required": ["city", "degrees"],
        });
        FinalFormat::new(Some(&schema)).unwrap()
    }

    #[test]
    fn a_fenced_or_prefixed_answer_is_unwrapped() {
        let expected = json!({"city": "Oslo", "degrees": 3.5});
        for text in [
            r#"{"city": "Oslo", "degrees": 3.5}"#,
            "\u{feff} {\"city\": \"Oslo\", \"degrees\": 3.5}\n",
            "```json\n{\"city\": \"Oslo\", \"degrees\": 3.5}\n```",
            "````\r\n{\"city\": \"Oslo\", \"degrees\": 3.5}\r\n````",
            "Here it is:\n\n```JSON\n{\"city\": \"Oslo\", \"degrees\": 3.5}\n```\nAnything else?",
            r#"The final answer is {"city": "Oslo", "degrees": 3.5}."#,
            r#"For [this] city {not json}: {"city": "Oslo", "degrees": 3.5}"#,
            "```tool\nreturn finalResponse({\"city\": \"Oslo\", \"degrees\": 3.5});\n```",
        ] {
            assert_eq!(format().read(text).as_ref(), Ok(&expected), "{text}");
        }
    }

    #[test]
    fn the_automations_schema_is_the_authority() {
        let wrong = format().read(r#"{"city": "Oslo", "degrees": "cold"}"#).unwrap_err();
        assert!(wrong.contains("degrees") && wrong.contains("number"), "{wrong}");
        let wrong = format().read("It is cold in Oslo.").unwrap_err();
        assert!(wrong.contains("no JSON"), "{wrong}");
        // The value that fits counts, wherever it stands.
        let text = r#"I first had {"city": 1}, now {"city": "Oslo", "degrees": 1}."#;
        assert_eq!(format().read(text), Ok(json!({"city": "Oslo", "degrees": 1})));
    }

    #[test]
    fn without_a_schema_any_json_will_do() {
        let format = FinalFormat::new(None).unwrap();
        assert_eq!(format.read("[1, 2]"), Ok(json!([1, 2])));
        assert_eq!(format.read("\"done\""), Ok(json!("done")));
        assert!(format.read("done").is_err());
        assert!(format.request(Some("a list of names")).contains("a list of names"));
    }

    #[test]
    fn hostile_text_is_looked_at_a_bounded_number_of_times() {
        let format = FinalFormat::new(None).unwrap();
        assert!(format.read(&"{".repeat(100_000)).is_err());
        assert!(format.read(&"```".repeat(50_000)).is_err());
    }
}
