//! The request: one try of a tool.

use serde_json::{Map, Value};
use shared::{
    Result,
    actions::ToolConfig,
    error::Problems,
    fields::Fields,
    models::{E164, ToolId},
};

#[derive(Debug)]
pub(crate) struct TestRequest {
    pub(crate) which: TestedTool,
    pub(crate) arguments: Map<String, Value>,
    pub(crate) caller: Option<E164>,
    pub(crate) called: Option<E164>,
    pub(crate) dry_run: bool,
}

#[derive(Debug)]
pub(crate) enum TestedTool {
    Saved(ToolId),
    Unsaved(Box<ToolConfig>),
}

impl TestRequest {
    /// # Errors
    /// [`shared::Error::Invalid`] with all problems, the configuration's fields as `config.…`.
    pub(crate) fn read(body: &Value) -> Result<Self> {
        let mut problems = Problems::default();
        let request = Self::read_fields(body, &mut problems);
        problems.into_result(request)
    }

    fn read_fields(body: &Value, problems: &mut Problems) -> Option<Self> {
        let mut fields = Fields::of(body, "", problems)?;
        let arguments = fields.members("arguments").into_iter().map(|(name, value)| (name.clone(), value.clone()));
        let arguments = arguments.collect();
        let caller = fields.parse("caller_phone_number");
        let called = fields.parse("called_phone_number");
        // Without the field nothing is sent by accident.
        let dry_run = fields.boolean("dry_run", true);
        let saved = fields.get("tool_id").filter(|id| **id != "");
        let which = match (fields.get("config"), saved) {
            (Some(config), None) => {
                ToolConfig::parse_at(config, "config", fields.problems()).map(Box::new).map(TestedTool::Unsaved)
            }
            (None, Some(_)) => fields.parse("tool_id").map(TestedTool::Saved),
            (Some(_), Some(_)) => {
                fields.problem("tool_id", "must not be given together with config");
                None
            }
            (None, None) => {
                fields.problem("config", "is required, or tool_id in its place");
                None
            }
        };
        fields.finish();
        Some(Self { which: which?, arguments, caller, called, dry_run })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use shared::Error;

    use super::*;

    fn wrong(body: &Value) -> Vec<String> {
        match TestRequest::read(body) {
            Err(Error::Invalid(problems)) => problems.iter().map(|problem| problem.field.clone()).collect(),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn nothing_is_sent_unless_that_is_asked_for() {
        let id = uuid();
        assert!(TestRequest::read(&json!({"tool_id": id})).unwrap().dry_run);
        assert!(!TestRequest::read(&json!({"tool_id": id, "dry_run": false})).unwrap().dry_run);
    }

    #[test]
    fn everything_wrong_is_named_at_once_with_its_place_in_the_body() {
        let config = json!({"type": "sms", "from": {"type": "fax"}, "text": {"mode": "ai"}, "colour": 1});
        let body = json!({
            "config": config, "arguments": [], "caller_phone_number": "5550100", "called_phone_number": 7, "dry_run": "no",
            "extra": 1,
        });
        let expected = [
            "arguments",
            "caller_phone_number",
            "called_phone_number",
            "dry_run",
            "config.label",
            "config.from.type",
            "config.text.prompt",
            "config.recipients",
            "config.colour",
            "extra",
        ];
        assert_eq!(wrong(&body), expected);
        assert_eq!(wrong(&json!({"config": 7})), ["config"]);
        assert_eq!(wrong(&json!([])), ["body"]);
    }

    #[test]
    fn a_tool_or_a_configuration_and_not_both() {
        assert_eq!(wrong(&json!({})), ["config"]);
        assert_eq!(wrong(&json!({"tool_id": ""})), ["config"]);
        assert_eq!(wrong(&json!({"tool_id": uuid(), "config": {}})), ["tool_id"]);
        assert_eq!(wrong(&json!({"tool_id": "x"})), ["tool_id"]);
    }

    fn uuid() -> String {
        ToolId::generate().to_string()
    }
}
