//! `finalResponse`, the tool that every run has: it ends the calls and begins the final answer.
//!
//! What the answer must look like is the automation's to say. Only an automation that says nothing leaves it to the model.

use serde_json::{Value, json};

use super::parser::{self, Found, Place};
use crate::{
    Result,
    fields::kind,
    json_schema::JsonSchema,
    tool::{Parameters, ToolSpec},
};

pub const FINAL_RESPONSE: &str = "finalResponse";

/// Problems of an answer that are told at once.
const MOST_PROBLEMS: usize = 10;
/// Values of an answer that are told of.
const MOST_VALUES: usize = 3;

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

    /// The final answer in what the model wrote: the likeliest of its values that fits.
    ///
    /// # Errors
    /// What was found where, and what is wrong with it, for the model.
    pub(super) fn read(&self, text: &str) -> Result<Value, String> {
        let (found, malformed) = parser::values(text, FINAL_RESPONSE);
        self.fitting(found, |_place| true).map_err(|mut wrong| {
            wrong.extend(malformed.map(|malformed| format!("In {malformed}.")));
            if wrong.is_empty() { "There is no JSON value in it.".to_owned() } else { wrong.join("\n") }
        })
    }

    /// An answer that nobody asked for yet, if the schema proves that it is one. What anything would fit proves nothing, nor
    /// does what is spoken of in passing.
    pub(super) fn proven(&self, text: &str) -> Option<Value> {
        let fits = |value: &Value| self.schema.is_none() || self.check(value).is_ok();
        if fits(&json!({"": null})) || fits(&json!([{"": null}])) {
            return None;
        }
        let is_meant = |rank: u8| rank <= OBJECT_WITHIN;
        self.fitting(parser::values(text, FINAL_RESPONSE).0, is_meant).ok()
    }

    fn fitting(&self, mut found: Vec<Found>, is_meant: impl Fn(u8) -> bool) -> Result<Value, Vec<String>> {
        found.retain(|found| is_meant(rank(found)) && (self.schema.is_some() || !is_citation(found)));
        found.reverse();
        found.sort_by_key(rank);
        let mut wrong = Vec::new();
        for Found { value, place, line } in found {
            let which =
                if place == Place::Whole { String::new() } else { format!("In line {line}, {}: ", kind(&value)) };
            match self.accept(&value) {
                Ok(value) => return Ok(value),
                Err(problems) if wrong.len() < MOST_VALUES => wrong.push(which + &problems),
                Err(_more) => {}
            }
        }
        Err(wrong)
    }

    /// A value, or the one that its text is, if that fits.
    fn accept(&self, value: &Value) -> Result<Value, String> {
        self.check(value).map_or_else(
            |wrong| written_in(value).filter(|value| self.check(value).is_ok()).ok_or(wrong),
            |()| Ok(value.clone()),
        )
    }

    /// What a call of `finalResponse` says: the answer itself, in any of its arguments, or how it will be written.
    pub(super) fn said(&self, arguments: &[Value]) -> Said {
        let mut said = (None, None);
        for value in arguments.iter().flat_map(with_members) {
            let text = value.as_str();
            let meant = text.map_or_else(|| Some(value.clone()), |_text| written_in(value));
            let is_answer =
                |value: &Value| self.schema.is_some() || value.is_array() || value.is_object() && !is_schema(value);
            match meant.filter(is_answer).map(|value| (self.check(&value), value)) {
                Some((Ok(()), value)) => return Said::Answer(value),
                Some((Err(wrong), Value::Object(_) | Value::Array(_))) => {
                    said.1.get_or_insert(format!("The answer in {FINAL_RESPONSE} cannot be taken. {wrong}"));
                }
                _ => said.0 = said.0.or_else(|| text.map(str::to_owned)),
            }
        }
        Said::Format { wished: said.0, wrong: said.1 }
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

/// What a call of `finalResponse` says.
#[derive(Debug, PartialEq)]
pub(super) enum Said {
    Answer(Value),
    /// How the model would write it, if it says so; and what is wrong with the answer that it gave already.
    Format {
        wished: Option<String>,
        wrong: Option<String>,
    },
}

const OBJECT_WITHIN: u8 = 2;

/// Objects before bare values, and what stands by itself before what is spoken of.
fn rank(found: &Found) -> u8 {
    match (found.place, &found.value) {
        (Place::Whole, _) => 0,
        (Place::Block, Value::Object(_) | Value::Array(_)) => 1,
        (Place::Within, Value::Object(_)) => OBJECT_WITHIN,
        (Place::Within, _) => 3,
        (Place::Block, _) => 4,
        (Place::Line, _) => 5,
    }
}

/// `[1]` in a text is none of its own, nor is a last line such as `5`: that such a value is meant, only a schema can tell.
fn is_citation(found: &Found) -> bool {
    let is_number = |items: &Vec<Value>| items.iter().all(Value::is_number);
    found.place == Place::Line || found.place == Place::Within && found.value.as_array().is_some_and(is_number)
}

/// The object or list that a text is.
fn written_in(value: &Value) -> Option<Value> {
    let found = parser::values(value.as_str()?, FINAL_RESPONSE).0.into_iter().next();
    let whole = found.filter(|found| found.place == Place::Whole).map(|found| found.value);
    whole.filter(|value| value.is_object() || value.is_array())
}

/// An argument, and what stands in it by name; of one that names the format only, but that.
fn with_members(argument: &Value) -> impl Iterator<Item = &Value> {
    let members = argument.as_object();
    let names_format = members.is_some_and(|members| members.len() == 1 && members.contains_key("format"));
    let itself = (!names_format).then_some(argument);
    itself.into_iter().chain(members.into_iter().flat_map(serde_json::Map::values))
}

/// Whether a value describes others.
fn is_schema(value: &Value) -> bool {
    let has = |name: &str| value.get(name).is_some();
    has("$schema") || value.get("type").is_some_and(Value::is_string) && (has("properties") || has("items"))
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
