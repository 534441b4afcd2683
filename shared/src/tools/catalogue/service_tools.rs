//! Makes a callable tool of a `service_tools` row: its action with the organization's account, and the check of its
//! arguments.

use std::sync::Arc;

use serde_json::{Map, Number, Value};

use crate::{
    Result,
    actions::{
        ActionTool, CheckArguments, ToolAction, pipedream_action::PipedreamAction, service_request::ServiceRequest,
        sms::Sms,
    },
    connections::{ConnectedAccount, Connection, Connections},
    json_schema::{JsonSchema, properties},
    models::{Binding, ChatRules, ConnectionKind, Limits, OrganizationId, PhoneNumberId, Service, ServiceTool},
    redaction::Marks,
    tool::{
        Parameters, ToolSpec, Unavailable,
        arguments::{Checked, whole},
        literal,
    },
};

const SMS: &str = "sms";

/// # Errors
/// Why the tool cannot be called.
pub(super) fn service_tool(
    connections: &Connections,
    organization: OrganizationId,
    tool: &ServiceTool,
    service: &Service,
    connection: &Connection,
) -> Result<Result<ActionTool, Unavailable>> {
    let account = match connection {
        Connection::NotNeeded => None,
        Connection::Connected { .. } => connection.account(),
        Connection::NotConnected => {
            return Ok(Err(Unavailable::NotConnected { service: service.name.clone(), renewal: None }));
        }
        Connection::Expired { .. } => {
            let renewal = Some(connection.renewal(&service.name));
            return Ok(Err(Unavailable::NotConnected { service: service.name.clone(), renewal }));
        }
        Connection::Unknown => return Ok(Err(Unavailable::Unreachable { service: service.name.clone() })),
    };
    let Some(check) = SchemaCheck::new(&tool.parameters) else { return Ok(Err(Unavailable::Unusable)) };
    let mut values_secret = None;
    let action = match (&tool.binding, account) {
        (Binding::Pipedream { component, version, app_prop, fixed }, Some(account)) => {
            let ConnectionKind::Pipedream { app } = &service.connection else {
                return Ok(Err(Unavailable::Unusable));
            };
            let names = properties(&tool.parameters).map(|(name, _)| name.clone());
            let action = PipedreamAction::of_component(
                [app, &service.name, component, version, app_prop].map(String::as_str),
                &account.id,
                fixed.clone(),
                names,
                tool.effect,
            );
            ToolAction::PipedreamAction(action)
        }
        (Binding::ApiRequest(template), account) => {
            let fields = match (&service.connection, account) {
                (ConnectionKind::Credential { fields }, Some(account)) => {
                    values_secret = Some(connections.credential_secret(organization, service.id, account)?);
                    fields.as_slice()
                }
                _ => &[],
            };
            ToolAction::ServiceRequest(ServiceRequest::new(&service.name, template.clone(), tool.effect, fields))
        }
        (Binding::BuiltIn { name }, Some(account)) if name == SMS => match account.id.parse() {
            Ok(number) => ToolAction::Sms(Sms::from_number(number)),
            Err(_not_a_number) => return Ok(Err(Unavailable::Unusable)),
        },
        (Binding::BuiltIn { name }, _) if name != SMS => return Ok(Err(Unavailable::Unreadable)),
        _ => return Ok(Err(Unavailable::Unusable)),
    };
    let examples = tool
        .examples
        .iter()
        .map(|arguments| format!("return {}({});", tool.name, literal(&Value::Object(arguments.clone()))));
    let spec = ToolSpec {
        name: tool.name.clone(),
        description: tool.description.clone(),
        parameters: Parameters::of_schema(tool.parameters.clone()),
        returns: Value::Object(Map::new()),
        own_examples: examples.collect(),
        effect: tool.declared_effect(),
        repeatable: !tool.effect,
    };
    let static_config = action.static_config();
    Ok(Ok(ActionTool {
        id: tool.id,
        spec,
        label: format!("{} ({})", tool.name, service.name),
        action,
        limits: Limits::default(),
        chat: ChatRules { consent: tool.destructive, ..ChatRules::default() }.for_effect(tool.effect),
        redact: Marks::default(),
        static_config,
        values_secret,
        check: Some(Arc::new(check)),
    }))
}

/// The tool with an account that nobody has: its effects have the same names with any account. It cannot be called.
pub(super) fn without_account(
    connections: &Connections,
    organization: OrganizationId,
    tool: &ServiceTool,
    service: &Service,
) -> Result<Option<ActionTool>> {
    let nobodys = ConnectedAccount { id: PhoneNumberId::generate().to_string(), name: String::new() };
    let connection = Connection::Connected { accounts: vec![nobodys] };
    Ok(service_tool(connections, organization, tool, service, &connection)?.ok())
}

/// Checks a service tool's arguments against its JSON schema, after correcting frequent mistakes of models.
#[derive(Debug)]
struct SchemaCheck {
    schema: JsonSchema,
    parameters: Value,
}

impl SchemaCheck {
    fn new(parameters: &Value) -> Option<Self> {
        let schema = JsonSchema::compile(parameters).inspect_err(|problems| {
            tracing::error!("the schema of a service tool cannot be checked: {problems:?}");
        });
        Some(Self { schema: schema.ok()?, parameters: parameters.clone() })
    }

    fn is_required(&self, name: &str) -> bool {
        let required = self.parameters.get("required").and_then(Value::as_array);
        required.is_some_and(|required| required.iter().any(|one| one == name))
    }
}

impl CheckArguments for SchemaCheck {
    /// Unknown arguments are dropped and named. Null and empty text are absent for an optional argument, because many
    /// services take them for values. A required argument that is absent gets its default. All remaining mistakes are
    /// reported.
    fn check(&self, arguments: &Map<String, Value>) -> Result<Checked, String> {
        let mut checked = Checked::default();
        let known =
            |name: &str| properties(&self.parameters).find(|(known, _)| *known == name).map(|(_, schema)| schema);
        for (name, value) in arguments {
            let Some(schema) = known(name) else {
                checked.ignored.push(name.clone());
                continue;
            };
            let is_absent = value.is_null() || value.as_str().is_some_and(str::is_empty);
            if !is_absent || self.is_required(name) {
                checked.arguments.insert(name.clone(), coerce_to_schema(schema, value));
            }
        }
        for (name, schema) in properties(&self.parameters) {
            if let Some(default) = schema.get("default").filter(|_| self.is_required(name)) {
                checked.arguments.entry(name.clone()).or_insert_with(|| default.clone());
            }
        }
        let violations = self.schema.validate(&Value::Object(checked.arguments.clone()));
        if violations.is_empty() {
            return Ok(checked);
        }
        let told = violations.iter().map(|violation| match violation.path.as_str() {
            "" => format!("The arguments {}.", violation.problem),
            path => format!("The argument \"{path}\" {}.", violation.problem),
        });
        Err(told.collect::<Vec<_>>().join(" "))
    }
}

/// Converts a value to the type of its schema where the intent is clear: `"5"` for a number, `5.0` for a whole number,
/// `"true"` for a boolean, an object's JSON text for an object, one item for a list.
pub(crate) fn coerce_to_schema(schema: &Value, value: &Value) -> Value {
    let kind = schema.get("type").and_then(Value::as_str).unwrap_or_default();
    let is_json_text = schema.get("contentMediaType").is_some_and(|kind| kind == "application/json");
    match (kind, value) {
        ("integer", Value::Number(number)) => without_point(number).into(),
        ("integer" | "number", Value::String(text)) => match serde_json::from_str(text.trim()) {
            Ok(Value::Number(number)) if kind == "integer" => without_point(&number).into(),
            Ok(Value::Number(number)) => number.into(),
            _ => value.clone(),
        },
        ("boolean", Value::String(text)) => match text.trim().to_ascii_lowercase().as_str() {
            "true" => true.into(),
            "false" => false.into(),
            _ => value.clone(),
        },
        ("string", Value::Object(_) | Value::Array(_)) if is_json_text => value.to_string().into(),
        ("string", Value::Number(number)) => as_allowed(schema, number).into(),
        ("array", Value::String(text)) if !text.trim_start().starts_with('[') => {
            coerce_to_schema(schema, &Value::Array(vec![value.clone()]))
        }
        ("array" | "object", Value::String(text)) => match serde_json::from_str::<Value>(text) {
            Ok(read) if read.is_array() == (kind == "array") && read.is_object() == (kind == "object") => {
                coerce_to_schema(schema, &read)
            }
            _ => value.clone(),
        },
        ("array", Value::Array(items)) => {
            let of_items = schema.get("items").unwrap_or(&Value::Null);
            items.iter().map(|item| coerce_to_schema(of_items, item)).collect()
        }
        ("object", Value::Object(members)) => {
            let of_members = schema.get("properties").unwrap_or(&Value::Null);
            let members = members.iter().map(|(name, member)| {
                let of_member = of_members.get(name).unwrap_or(&Value::Null);
                (name.clone(), coerce_to_schema(of_member, member))
            });
            members.collect()
        }
        _ => value.clone(),
    }
}

/// As the schema spells it, such as the version `1.0`; else without a needless point.
fn as_allowed(schema: &Value, number: &Number) -> String {
    let plain = without_point(number);
    let values = schema.get("enum").and_then(Value::as_array).into_iter().flatten().chain(schema.get("const"));
    let allowed: Vec<&str> = values.filter_map(Value::as_str).collect();
    let is_same = |text: &&str| serde_json::from_str::<Number>(text).is_ok_and(|read| without_point(&read) == plain);
    let spellings = [number.to_string(), plain.to_string()];
    let exact = spellings.iter().find(|spelling| allowed.contains(&spelling.as_str()));
    let found = exact.map(String::as_str).or_else(|| allowed.iter().copied().find(is_same));
    found.map_or_else(|| plain.to_string(), str::to_owned)
}

fn without_point(number: &Number) -> Number {
    let respelled = number.as_f64().filter(|_| number.is_f64()).and_then(whole);
    respelled.map_or_else(|| number.clone(), Number::from)
}

/// Whether [`coerce_to_schema`] may convert a value of this type; for values that are not known yet.
pub(crate) fn may_become(schema: &Value, kind: &str) -> bool {
    let asked = schema.get("type").and_then(Value::as_str).unwrap_or_default();
    let is_json_text = schema.get("contentMediaType").is_some_and(|kind| kind == "application/json");
    match (asked, kind) {
        ("integer" | "number" | "boolean" | "array" | "object", "string") | ("string", "integer" | "number") => true,
        ("string", "array" | "object") => is_json_text,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[expect(clippy::needless_pass_by_value, reason = "both are made for the call")]
    fn check(parameters: Value, arguments: Value) -> Result<(Value, Vec<String>), String> {
        let check = SchemaCheck::new(&parameters).unwrap();
        let checked = check.check(arguments.as_object().unwrap())?;
        Ok((Value::Object(checked.arguments), checked.ignored))
    }

    fn schema() -> Value {
        json!({
            "type": "object",
            "properties": {
                "text": {"type": "string"}, "count": {"type": "integer", "minimum": 1}, "loud": {"type": "boolean"},
                "to": {"type": "array", "items": {"type": "string"}}, "limit": {"type": "integer", "default": 10},
                "blocks": {"type": "string", "contentMediaType": "application/json"}, "data": {"type": "object"},
            },
            "required": ["text", "limit"],
            "additionalProperties": false,
        })
    }

    #[test]
    fn an_obvious_spelling_is_accepted_and_an_unknown_argument_is_named() {
        let given = json!({
            "text": 5, "count": "3", "loud": "True", "to": "ana@example.com", "blocks": [{"a": 1}], "data": "{\"b\":2}",
            "made_up": 1,
        });
        let (arguments, ignored) = check(schema(), given).unwrap();
        let expected = json!({
            "text": "5", "count": 3, "loud": true, "to": ["ana@example.com"], "blocks": "[{\"a\":1}]", "data": {"b": 2}, "limit": 10,
        });
        assert_eq!((arguments, ignored), (expected, vec!["made_up".to_owned()]));
    }

    #[test]
    fn a_whole_number_loses_its_decimal_point_at_every_depth() {
        let schema = json!({
            "type": "object",
            "properties": {
                "amount": {"type": "integer"}, "text": {"type": "string"}, "ratio": {"type": "number"},
                "lines": {"type": "array", "items": {"type": "object", "properties": {"count": {"type": "integer"}}}},
                "numbers": {"type": "array", "items": {"type": "integer"}},
            },
        });
        let lines = |count: Value| json!([{"count": count, "other": 2.0}]);
        let cases = [
            (json!({"amount": 1250.0}), r#"{"amount":1250}"#),
            (json!({"amount": "1250.0"}), r#"{"amount":1250}"#),
            (json!({"amount": 1.5}), r#"{"amount":1.5}"#),
            (json!({"amount": u64::MAX}), r#"{"amount":18446744073709551615}"#),
            (json!({"text": 17.0}), r#"{"text":"17"}"#),
            (json!({"text": 17.25}), r#"{"text":"17.25"}"#),
            (json!({"ratio": 2.0}), r#"{"ratio":2.0}"#),
            (json!({"lines": lines(json!(3.0))}), r#"{"lines":[{"count":3,"other":2.0}]}"#),
            (json!({"lines": lines(json!("3.0")).to_string()}), r#"{"lines":[{"count":3,"other":2.0}]}"#),
            (json!({"numbers": [1.0, "2"]}), r#"{"numbers":[1,2]}"#),
            (json!({"numbers": "4.0"}), r#"{"numbers":[4]}"#),
        ];
        for (given, sent) in cases {
            assert_eq!(coerce_to_schema(&schema, &given).to_string(), sent, "{given}");
        }
    }

    #[test]
    fn a_number_is_written_as_the_schema_spells_it() {
        for (schema, given, sent) in [
            (json!({"type": "string", "enum": ["1.0", "2.0"]}), json!(1.0), "1.0"),
            (json!({"type": "string", "enum": ["1.0", "2.0"]}), json!(2), "2.0"),
            (json!({"type": "string", "const": "1.0"}), json!(1.0), "1.0"),
            (json!({"type": "string", "enum": ["1.0", "1"]}), json!(1), "1"),
            (json!({"type": "string", "enum": ["1", "2"]}), json!(1.0), "1"),
            (json!({"type": "string", "enum": ["one", 3]}), json!(3.0), "3"),
        ] {
            assert_eq!(coerce_to_schema(&schema, &given), sent, "{schema} {given}");
        }
        let tool = json!({"type": "object", "properties": {"version": {"type": "string", "enum": ["1.0", "2.0"]}}});
        assert_eq!(check(tool, json!({"version": 1.0})).unwrap().0, json!({"version": "1.0"}));
    }

    #[test]
    fn only_convertible_values_are_converted() {
        let values = [
            json!(5),
            json!(1.5),
            json!("5"),
            json!("true"),
            json!("{}"),
            json!("x"),
            json!([1]),
            json!({}),
            json!(true),
        ];
        let kind_of = |value: &Value| match value {
            Value::Number(number) if number.is_i64() => "integer",
            Value::Number(_) => "number",
            Value::String(_) => "string",
            Value::Array(_) => "array",
            Value::Object(_) => "object",
            Value::Bool(_) => "boolean",
            Value::Null => "null",
        };
        for asked in ["string", "integer", "number", "boolean", "array", "object"] {
            for schema in [json!({"type": asked}), json!({"type": asked, "contentMediaType": "application/json"})] {
                for kind in ["integer", "number", "string", "array", "object", "boolean"] {
                    let of_kind = || values.iter().filter(|value| kind_of(value) == kind);
                    let changes = of_kind().any(|value| kind_of(&coerce_to_schema(&schema, value)) != kind);
                    assert_eq!(may_become(&schema, kind), changes, "{schema} {kind}");
                }
            }
        }
    }

    #[test]
    fn an_empty_optional_argument_counts_as_absent() {
        let given = json!({"text": "x", "count": "", "loud": null, "blocks": "", "limit": 1});
        assert_eq!(check(schema(), given).unwrap().0, json!({"text": "x", "limit": 1}));
        // An empty text for a required parameter is left to the schema.
        assert_eq!(check(schema(), json!({"text": ""})).unwrap().0, json!({"text": "", "limit": 10}));
    }

    #[test]
    fn everything_that_does_not_fit_is_told() {
        let told = check(schema(), json!({"count": 0, "to": [{"a": 1}], "loud": "perhaps"})).unwrap_err();
        for name in ["text", "count", "to", "loud"] {
            assert!(told.contains(name), "{name}: {told}");
        }
    }
}
