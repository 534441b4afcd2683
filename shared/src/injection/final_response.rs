//! `finalResponse`, available in every run: ends the tool calls and starts the final answer.
//!
//! The automation states the format of the answer; only without one the model chooses.

mod description;

use description::is_description;
use serde_json::{Value, json};

use super::parser::{self, Found, Place};
use crate::{
    Result,
    cut::cut,
    fields::kind,
    json_schema::JsonSchema,
    models::ToolEffect,
    tool::{Parameters, ToolSpec},
};

pub const FINAL_RESPONSE: &str = "finalResponse";

/// Problems reported per answer.
const MOST_PROBLEMS: usize = 10;
/// Values of an answer with reported problems.
const MOST_VALUES: usize = 3;
/// Bytes of the model's own format that are repeated to it.
const LONGEST_WISH: usize = 8 * 1024;

/// Its description in prompts. The loop itself handles the call.
pub fn final_response() -> ToolSpec {
    let format = json!({"type": "string", "description": "only if the task names no format: the one you will use"});
    ToolSpec {
        name: FINAL_RESPONSE.to_owned(),
        description:
            "Ends the work with tools. You are then told the format of the final answer; do not give the answer here."
                .to_owned(),
        parameters: Parameters::new([("format", format, false)]),
        returns: json!({"type": "string"}),
        own_examples: ["return finalResponse();", "finalResponse()", "return await finalResponse();"]
            .map(str::to_owned)
            .into(),
        effect: ToolEffect::None,
        repeatable: false,
    }
}

pub struct FinalFormat {
    schema: Option<(String, JsonSchema)>,
}

impl FinalFormat {
    pub fn new(schema: Option<&Value>) -> Result<Self> {
        let compile = |schema: &Value| {
            let compiled =
                JsonSchema::compile(schema).map_err(|problems| crate::Error::Invalid(problems.below("schema")))?;
            Ok::<_, crate::Error>((schema.to_string(), compiled))
        };
        Ok(Self { schema: schema.map(compile).transpose()? })
    }

    /// The request for the final answer; `wished`: the model's own format.
    pub(super) fn request(&self, wished: Option<&str>) -> String {
        let format = match (&self.schema, wished) {
            (Some((schema, _)), _) => format!(" It must fit this JSON schema:\n{schema}"),
            (None, Some(wished)) => format!(" Its format: {wished}"),
            (None, None) => String::new(),
        };
        format!("Give the final answer now: one JSON value and nothing else, no tool calls, no text around it.{format}")
    }

    /// The final answer: the likeliest valid value in the text. A description of the answer is accepted only if the model
    /// `insists`.
    ///
    /// # Errors
    /// The values found and their problems, for the model.
    pub(super) fn read(&self, text: &str, insists: bool) -> Result<Value, String> {
        let (found, malformed) = parser::values(text, FINAL_RESPONSE);
        // A schema whose fields are all optional allows an empty object.
        let is_empty = |value: &Value| value.as_object().is_some_and(serde_json::Map::is_empty);
        let is_refused = |value: &Value| !insists && !is_empty(value) && is_description(value);
        self.fitting(found, |_place| true, is_refused).map_err(|mut wrong| {
            wrong.extend(malformed.map(|malformed| format!("In {malformed}.")));
            if wrong.is_empty() { "There is no JSON value in it.".to_owned() } else { wrong.join("\n") }
        })
    }

    /// An unrequested answer, if the schema proves it to be one. A schema that fits anything proves nothing, and values mentioned
    /// in passing do not count.
    pub(super) fn proven(&self, text: &str) -> Option<Value> {
        let fits = |value: &Value| self.schema.is_none() || self.check(value).is_ok();
        if fits(&json!({"": null})) || fits(&json!([{"": null}])) {
            return None;
        }
        let is_meant = |rank: u8| rank <= OBJECT_WITHIN;
        self.fitting(parser::values(text, FINAL_RESPONSE).0, is_meant, is_description).ok()
    }

    fn fitting(
        &self,
        mut found: Vec<Found>,
        is_meant: impl Fn(u8) -> bool,
        is_refused: impl Fn(&Value) -> bool,
    ) -> Result<Value, Vec<String>> {
        found.retain(|found| is_meant(rank(found)) && (self.schema.is_some() || !is_citation(found)));
        found.reverse();
        found.sort_by_key(rank);
        let mut wrong = Vec::new();
        for Found { value, place, line } in found {
            let which =
                if place == Place::Whole { String::new() } else { format!("In line {line}, {}: ", kind(&value)) };
            let accepted = self
                .accept(&value)
                .and_then(|value| if is_refused(&value) { Err(DESCRIBES.to_owned()) } else { Ok(value) });
            match accepted {
                Ok(value) => return Ok(value),
                Err(problems) if wrong.len() < MOST_VALUES => wrong.push(which + &problems),
                Err(_more) => {}
            }
        }
        Err(wrong)
    }

    /// The value, or the JSON in its text, if valid.
    fn accept(&self, value: &Value) -> Result<Value, String> {
        self.check(value).map_or_else(
            |wrong| written_in(value).filter(|value| self.check(value).is_ok()).ok_or(wrong),
            |()| Ok(value.clone()),
        )
    }

    /// The meaning of a `finalResponse` call. Its argument describes the answer, unless the schema proves it to be the answer.
    pub(super) fn said(&self, arguments: &[Value]) -> Said {
        let (mut wished, mut wrong) = (None, None);
        for (value, is_alone) in arguments.iter().flat_map(with_members) {
            let meant = written_in(value).unwrap_or_else(|| value.clone());
            let is_composite = meant.is_object() || meant.is_array();
            let may_be_answer = self.schema.is_some() && !is_description(&meant) && (is_composite || is_alone);
            match self.check(&meant) {
                Ok(()) if may_be_answer && self.proves(&meant) => return Said::Answer(meant),
                Err(why) if may_be_answer && is_composite => {
                    wrong.get_or_insert(format!("The answer in {FINAL_RESPONSE} cannot be taken. {why}"));
                }
                _ if value.is_string() || is_composite => {
                    let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
                    wished.get_or_insert(cut(text, LONGEST_WISH));
                }
                _ => {}
            }
        }
        Said::Format { wished, wrong }
    }

    /// Whether a valid value cannot be a description: `null` may be one, and so may a text if the schema accepts any text of its
    /// length.
    fn proves(&self, value: &Value) -> bool {
        match value {
            Value::Null => false,
            Value::String(text) => self.check(&"a".repeat(text.chars().count()).into()).is_err(),
            _ => true,
        }
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

#[derive(Debug, PartialEq)]
pub(super) enum Said {
    Answer(Value),
    /// The model's own format, if any, and the problem of an answer already given.
    Format {
        wished: Option<String>,
        wrong: Option<String>,
    },
}

const DESCRIBES: &str = "This describes the answer. Give the answer itself, with its values.";

const OBJECT_WITHIN: u8 = 2;

/// Objects before scalars, and standalone values before mentioned ones.
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

/// Whether the value may be part of the prose, such as a reference `[1]` or a last line `5`; only a schema can tell.
fn is_citation(found: &Found) -> bool {
    let is_number = |items: &Vec<Value>| items.iter().all(Value::is_number);
    found.place == Place::Line || found.place == Place::Within && found.value.as_array().is_some_and(is_number)
}

fn written_in(value: &Value) -> Option<Value> {
    let found = parser::values(value.as_str()?, FINAL_RESPONSE).0.into_iter().next();
    let whole = found.filter(|found| found.place == Place::Whole).map(|found| found.value);
    whole.filter(|value| value.is_object() || value.is_array())
}

/// An argument and the values of its members, each with a flag that it stands alone. An argument with only `format` yields just
/// that member; members of a description are left out.
fn with_members(argument: &Value) -> impl Iterator<Item = (&Value, bool)> {
    let members = argument.as_object().filter(|_members| !is_description(argument));
    let is_only = members.is_some_and(|members| members.len() == 1);
    let names_format = is_only && members.is_some_and(|members| members.contains_key("format"));
    let itself = (!names_format).then_some((argument, true));
    let members = members.into_iter().flat_map(serde_json::Map::values);
    itself.into_iter().chain(members.map(move |member| (member, is_only)))
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
            assert_eq!(format().read(text, false).as_ref(), Ok(&expected), "{text}");
        }
    }

    #[test]
    fn the_automations_schema_is_the_authority() {
        let wrong = format().read(r#"{"city": "Oslo", "degrees": "cold"}"#, false).unwrap_err();
        assert!(wrong.contains("degrees") && wrong.contains("number"), "{wrong}");
        let wrong = format().read("It is cold in Oslo.", false).unwrap_err();
        assert!(wrong.contains("no JSON"), "{wrong}");
        // A valid value counts anywhere in the text.
        let text = r#"I first had {"city": 1}, now {"city": "Oslo", "degrees": 1}."#;
        assert_eq!(format().read(text, false), Ok(json!({"city": "Oslo", "degrees": 1})));
    }

    #[test]
    fn without_a_schema_any_json_will_do() {
        let format = FinalFormat::new(None).unwrap();
        assert_eq!(format.read("[1, 2]", false), Ok(json!([1, 2])));
        assert_eq!(format.read("\"done\"", false), Ok(json!("done")));
        assert!(format.read("done", false).is_err());
        assert!(format.request(Some("a list of names")).contains("a list of names"));
    }

    fn of(schema: &Value) -> FinalFormat {
        FinalFormat::new(Some(schema)).unwrap()
    }

    /// Only text fields, so that any description of the answer is valid.
    fn of_texts() -> FinalFormat {
        of(&json!({"type": "object", "additionalProperties": {"type": "string"}}))
    }

    #[test]
    fn a_description_of_the_answer_is_not_an_answer() {
        let any = || of(&json!({}));
        for described in [
            json!({"city": "string", "degrees": "number"}),
            json!([{"city": "string"}]),
            json!({"city": "String", "when": "Date"}),
            json!({"city": "string | null", "level": "low | high"}),
            json!({"city": "'low' | 'high'"}),
            json!({"city": "string (required)", "degrees": "number, in Celsius"}),
            json!({"city": "a string", "names": ["string"]}),
            json!({"names": "string[]", "hours": "Array<number>"}),
            json!({"names": "list of strings", "ages": "list[int]"}),
            json!({"city": "<city>"}),
            json!({"city": "[city]", "name": "{name}", "day": "{{day}}", "id": "${id}"}),
            json!({"city": "..."}),
            json!({"city": "…", "other": "___"}),
            json!(["..."]),
            json!({"phone": "+1XXXXXXXXXX"}),
            json!({"date": "YYYY-MM-DD", "time": "HH:mm"}),
            json!({"date": "TT.MM.JJJJ", "at": "YYYY-MM-DDTHH:mm:ssZ"}),
            json!({"stadt": "Zeichenkette", "grad": "Zahl"}),
            json!({"ville": "texte", "degrés": "nombre"}),
            json!({"ciudad": "cadena", "grados": "número"}),
            json!({"город": "строка", "градусы": "число"}),
            json!({"城市": "字符串", "度数": "数字"}),
            json!({"city": "city", "openingHours": "the opening hours"}),
            json!({"city": "name of the city"}),
            json!({"city": "string", "degrees": 0, "open": true, "note": null}),
            json!({"city": "e.g. Oslo"}),
            json!({"answer": "yes/no"}),
            json!({"city": {"name": "string", "tags": ["text", "..."]}}),
            json!({"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}),
            json!({"type": "object", "properties": {}}),
            json!({"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "City"}),
            json!({"city": {"type": "string", "description": "Where it is"}, "degrees": {"type": "number", "minimum": 3}}),
            json!({"type": "array", "items": {"type": "string"}}),
            json!({"type": "string"}),
            json!({"type": "json_schema", "json_schema": {"name": "weather", "schema": {"type": "object"}}}),
            json!({"name": "weather", "schema": {"type": "object", "properties": {"city": {"type": "string"}}}}),
            json!({"anyOf": [{"type": "string"}, {"type": "null"}]}),
            json!({"city": ["string", "null"], "degrees": "int"}),
            json!({}),
        ] {
            for format in [any(), of_texts()] {
                for arguments in
                    [vec![described.clone()], vec![json!(described.to_string())], vec![json!({"format": described})]]
                {
                    let said = format.said(&arguments);
                    assert!(matches!(said, Said::Format { .. }), "{arguments:?}: {said:?}");
                }
                assert_eq!(format.proven(&described.to_string()), None, "{described}");
            }
        }
    }

    /// A text allowed by the schema is as likely to be a format; so is a value that is valid by chance.
    #[test]
    fn a_text_that_may_be_a_format_is_no_answer() {
        let text = of(&json!({"type": "string", "minLength": 2, "maxLength": 80}));
        for said in
            ["a list of hours", "JSON", "It opens at eight.", "string", "one sentence", "{\"city\": \"string\"}"]
        {
            for format in [&text, &of(&json!({}))] {
                let said = format.said(&[json!(said)]);
                assert!(matches!(said, Said::Format { wished: Some(_), .. }), "{said:?}");
            }
        }
        assert!(matches!(of(&json!({})).said(&[json!(null)]), Said::Format { wished: None, wrong: None }));
        let number = of(&json!({"type": "integer"}));
        assert!(matches!(number.said(&[json!({"style": "brief", "indent": 2})]), Said::Format { .. }));
    }

    #[test]
    fn an_answer_that_fits_the_schema_ends_the_run() {
        let weather =
            json!({"type": "object", "required": ["city", "degrees"], "properties": {"degrees": {"type": "number"}}});
        for (schema, answer) in [
            (weather.clone(), json!({"city": "Oslo", "degrees": 3.5})),
            (weather.clone(), json!({"city": "string", "degrees": 3.5})),
            (weather, json!({"city": "City of London", "degrees": 0})),
            (json!({}), json!({"city": "Oslo"})),
            (json!({}), json!({"city": "string", "country": "Norway"})),
            (json!({}), json!(["milk", "number"])),
            (json!({}), json!([])),
            (json!({}), json!({"items": []})),
            (json!({}), json!({"items": [], "total": 0})),
            (json!({}), json!({"open": true})),
            (json!({}), json!({"note": null})),
            (json!({}), json!({"note": ""})),
            (json!({}), json!({"opens": "8:00"})),
            (json!({}), json!({"opens": "8:00 to 12:00", "day": "2026-11-23"})),
            (json!({}), json!({"summary": "The number of guests rose to 12."})),
            (json!({}), json!({"summary": "Text messages were sent to Ana and Bo."})),
            (json!({}), json!({"html": "<b>Open</b> until noon"})),
            (json!({}), json!({"link": "<https://example.com>"})),
            (json!({}), json!({"allergies": "none", "status": "unknown"})),
            (json!({}), json!({"type": "bakery", "items": ["bread"]})),
            (json!({}), json!({"type": "object", "owner": "Ana"})),
            (json!({}), json!({"schema": "public", "table": "users"})),
            (json!({}), json!({"description": "A bakery", "title": "Ana's"})),
            (json!({}), json!({"phone": "+14155550123"})),
            (json!({}), json!({"size": "XXL"})),
            (json!({}), json!({"name": "Ann Data"})),
            (json!({}), json!({"stadt": "Zürich", "text": "Guten Tag"})),
            (json!({}), json!({"answer": "yes"})),
            (json!({}), json!(8)),
            (json!({}), json!(false)),
            (json!({"type": "array", "items": {"type": "integer"}}), json!([1, 2])),
            (json!({"enum": ["open", "closed"]}), json!("open")),
            (json!({"type": "string", "pattern": "^[0-9]+:[0-9]{2}$"}), json!("8:00")),
        ] {
            for arguments in [vec![answer.clone()], vec![json!({"answer": answer})], vec![json!({"format": answer})]] {
                let expected =
                    if of(&schema).check(&arguments[0]).is_ok() { arguments[0].clone() } else { answer.clone() };
                // With a schema that accepts anything, an object is the answer itself.
                let expected = if arguments[0].get("format").is_some() { answer.clone() } else { expected };
                assert_eq!(of(&schema).said(&arguments), Said::Answer(expected), "{arguments:?} for {schema}");
            }
            if answer.is_object() || answer.is_array() {
                assert_eq!(of(&schema).said(&[json!(answer.to_string())]), Said::Answer(answer));
            }
        }
    }

    #[test]
    fn without_a_schema_nothing_in_the_call_is_the_answer() {
        let format = FinalFormat::new(None).unwrap();
        for said in [
            json!({"city": "Oslo"}),
            json!([1, 2]),
            json!("Oslo"),
            json!("{\"city\": \"Oslo\"}"),
            json!(8),
            json!(true),
        ] {
            assert!(matches!(format.said(std::slice::from_ref(&said)), Said::Format { wrong: None, .. }), "{said}");
        }
    }

    #[test]
    fn a_description_in_place_of_the_answer_is_asked_about_once() {
        let (format, described) = (FinalFormat::new(None).unwrap(), json!(["string", "number"]));
        let wrong = format.read(&described.to_string(), false).unwrap_err();
        assert!(wrong.contains("describes the answer"), "{wrong}");
        assert_eq!(format.read(&described.to_string(), true), Ok(described));
    }

    #[test]
    fn hostile_text_is_looked_at_a_bounded_number_of_times() {
        let format = FinalFormat::new(None).unwrap();
        assert!(format.read(&"{".repeat(100_000), false).is_err());
        assert!(format.read(&"```".repeat(50_000), false).is_err());
    }
}
