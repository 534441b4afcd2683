//! A file of the catalogue: a service with its tools and capabilities.
//!
//! `infra/catalogue/README.md` has the format. Every mistake is named with the JSON pointer of its place.

use std::collections::BTreeSet;

use serde::Deserialize;
use serde_json::{Map, Value};
use shared::{
    error::Problems,
    fields::{Fields, kind, pointer_step},
    json_schema::{JsonSchema, properties},
    models::{
        Binding, ConnectionKind, Service, ServiceCapabilities, ServiceId, ServiceTool, Timestamp, ToolEffect,
        folded_name, service_tool_id,
    },
};

use crate::{
    capabilities,
    props::{Component, Overlay, derive},
    reading::{bounded, texts},
    request,
};

/// MCP clients put a prefix of their own before the name.
const LONGEST_NAME: usize = 40;
const LONGEST_TITLE: usize = 100;
/// In bytes, because lists contain it.
const LONGEST_DESCRIPTION: usize = 1_000;
const LONGEST_RETURNS: usize = 2_000;
const MOST_TOOLS: usize = 1_000;
const MOST_EXAMPLES: usize = 5;
const MOST_KEYWORDS: usize = 20;
const LONGEST_KEYWORD: usize = 30;
const CATEGORIES: [&str; 4] = ["read", "write", "search", "delete"];
/// Our own actions that a tool may be bound to.
const BUILT_IN: [&str; 1] = ["sms"];

/// A file as rows, without their times.
#[derive(Debug, Clone)]
pub(crate) struct Entry {
    pub(crate) service: Service,
    pub(crate) tools: Vec<ServiceTool>,
    pub(crate) capabilities: ServiceCapabilities,
}

/// Reads a file. `None` if the mistakes leave no service; `problems` has them.
pub(crate) fn read(file: &Value, problems: &mut Problems) -> Option<Entry> {
    let mut fields = Fields::at_pointer(file, "", problems)?;
    let name = fields.required_name("name", LONGEST_TITLE);
    let description = bounded(&mut fields, "description", LONGEST_DESCRIPTION);
    let categories = texts(&mut fields, "categories");
    let connection = read_connection(&mut fields);
    let (tools, rest) = (fields.required("tools"), fields.required("capabilities"));
    let tools = tools.and_then(|_| fields.list("tools", "tools")).unwrap_or_default();
    if tools.len() > MOST_TOOLS {
        fields.problem("tools", format!("must be at most {MOST_TOOLS} tools"));
        return None;
    }
    let capabilities = rest.and_then(|rest| capabilities::read(rest, fields.problems()));
    let only_events = matches!(connection, Some(ConnectionKind::None))
        && capabilities.as_ref().is_some_and(|capabilities| capabilities.supports_webhooks);
    if tools.is_empty() && !only_events {
        let problem =
            format!("must be 1 to {MOST_TOOLS} tools; only a service with events and no connection may have none");
        fields.problem("tools", problem);
    }
    let Some(name) = name.filter(|name| !folded_name(name).is_empty()) else {
        fields.problem("name", "must have a letter or a digit");
        fields.finish();
        return None;
    };
    let now = Timestamp::from_millis(0);
    let service = Service {
        id: ServiceId::of_name(&name),
        name,
        description,
        categories,
        // A placeholder while the tools are checked.
        connection: connection.clone().unwrap_or(ConnectionKind::None),
        is_active: true,
        tools: u32::try_from(tools.len()).unwrap_or(u32::MAX),
        edition: String::new(),
        created_at: now,
        updated_at: now,
    };
    let read = |(index, tool)| {
        let pointer = format!("/tools/{index}");
        read_tool(tool, &service, connection.as_ref(), &pointer, fields.problems())
    };
    let tools: Vec<ServiceTool> = tools.iter().enumerate().filter_map(read).collect();
    fields.finish();
    let capabilities = ServiceCapabilities { service_name: folded_name(&service.name), ..capabilities? };
    Some(Entry { service, tools, capabilities })
}

fn read_connection(fields: &mut Fields<'_>) -> Option<ConnectionKind> {
    let value = fields.required("connection")?;
    let connection = ConnectionKind::deserialize(value);
    let members = match &connection {
        Ok(ConnectionKind::None | ConnectionKind::PhoneNumber) => &["type"] as &[&str],
        Ok(ConnectionKind::Pipedream { .. }) => &["type", "app"],
        Ok(ConnectionKind::Credential { .. }) => &["type", "fields"],
        Err(error) => {
            fields.problem("connection", format!("cannot be read: {error}"));
            return None;
        }
    };
    for unknown in value.as_object().into_iter().flat_map(Map::keys).filter(|name| !members.contains(&name.as_str())) {
        let place = format!("{}/{}", fields.path("connection"), pointer_step(unknown));
        fields.problems().add(place, format!("is not a known field; known are {}", members.join(", ")));
    }
    if let Ok(ConnectionKind::Credential { fields: of_credential }) = &connection {
        let mut names = BTreeSet::new();
        let place = format!("{}/fields", fields.path("connection"));
        if of_credential.is_empty() {
            fields.problems().add(place.clone(), "must have at least one field");
        }
        for (index, field) in of_credential.iter().enumerate() {
            let place = format!("{place}/{index}");
            if !is_name(&field.name) || !names.insert(field.name.as_str()) {
                let problem = "must be a name of its own: at most 40 of a-z, 0-9 and _";
                fields.problems().add(format!("{place}/name"), problem);
            }
            if field.in_address && field.secret {
                fields.problems().add(format!("{place}/secret"), "must be false: everybody may see an address");
            }
            if field.description.trim().is_empty() {
                fields.problems().add(format!("{place}/description"), "must say where a person finds it");
            }
        }
    }
    connection.ok()
}

fn read_tool(
    value: &Value,
    service: &Service,
    connection: Option<&ConnectionKind>,
    pointer: &str,
    problems: &mut Problems,
) -> Option<ServiceTool> {
    let mut fields = Fields::at_pointer(value, pointer, problems)?;
    let name = fields.required_name("name", 200);
    let title = fields.required_name("title", LONGEST_TITLE);
    let description = bounded(&mut fields, "description", LONGEST_DESCRIPTION);
    let returns = bounded(&mut fields, "returns", LONGEST_RETURNS);
    let category = fields.required_text("category", 20);
    if category.as_deref().is_some_and(|category| !CATEGORIES.contains(&category)) {
        fields.problem("category", format!("must be one of {}", CATEGORIES.join(", ")));
    }
    if let Some(name) = &name {
        let prefix = format!("{}_", folded_name(&service.name));
        if !is_name(name) {
            fields.problem("name", format!("must be at most {LONGEST_NAME} of a-z, 0-9 and _"));
        } else if !name.starts_with(&prefix) || name.len() == prefix.len() {
            fields.problem("name", format!("must begin with the service's name: {prefix}…"));
        }
    }
    let declared = fields.parse::<ToolEffect>("effect");
    let own_destructive = flag(&mut fields, "destructive");
    let bound = read_binding(&mut fields, connection, pointer);
    let keywords = read_keywords(&mut fields);
    let examples = fields.get("examples");
    let Some(bound) = bound else {
        fields.finish();
        return None;
    };
    let effect = declared.map_or(bound.effect, ToolEffect::acts);
    let says_nothing = fields.get("effect").is_none_or(|word| word.as_str().is_some_and(|word| word.trim().is_empty()));
    if effect && says_nothing {
        let words = ToolEffect::OF_ACTING.map(ToolEffect::as_str).join(", ");
        fields
            .problem("effect", format!("is required of a tool that changes something: {words}; none if it only reads"));
    }
    let destructive = effect && own_destructive.unwrap_or(bound.destructive);
    agree(category.as_deref(), effect, destructive, pointer, fields.problems());
    let schema = check_parameters(&bound.parameters, &bound.place, fields.problems());
    let examples = read_examples(examples, schema.as_ref(), pointer, fields.problems());
    fields.finish();
    let (name, title, category) = (name?, title?, category?);
    let now = Timestamp::from_millis(0);
    let parameter_names = properties(&bound.parameters).map(|(name, _)| name.clone()).collect();
    Some(ServiceTool {
        id: service_tool_id(&name),
        fingerprint: ServiceTool::fingerprint_of(&name, &bound.parameters, &returns, &bound.binding),
        name,
        title,
        description,
        service_id: service.id,
        service_name: service.name.clone(),
        category,
        parameters: bound.parameters,
        returns,
        is_active: true,
        version: match &bound.binding {
            Binding::Pipedream { version, .. } => version.clone(),
            // Counted by the load.
            _ => String::new(),
        },
        binding: bound.binding,
        effect,
        acts_as: declared.unwrap_or_default(),
        destructive,
        examples,
        parameter_names,
        keywords,
        previous: None,
        created_at: now,
        updated_at: now,
    })
}

/// A tool's binding with its arguments and their places.
struct Bound {
    binding: Binding,
    parameters: Value,
    /// Pointer of the parameters, or of their source.
    place: String,
    effect: bool,
    destructive: bool,
}

fn read_binding(fields: &mut Fields<'_>, connection: Option<&ConnectionKind>, pointer: &str) -> Option<Bound> {
    let (component, overlay) = (fields.get("component"), fields.get("overlay"));
    let (request, built_in) = (fields.get("request"), fields.get("built_in"));
    let parameters = fields.get("parameters");
    if [component, request, built_in].into_iter().flatten().count() != 1 {
        fields.problems().add(pointer, "must have one of component, request and built_in: what carries it out");
        return None;
    }
    if component.is_none() && overlay.is_some() {
        fields.problem("overlay", "goes with a component; write the schema in parameters");
    }
    if let Some(component) = component {
        if parameters.is_some() {
            fields.problem("parameters", "are made of the component's props; change them by the overlay");
        }
        if connection.is_some_and(|connection| !matches!(connection, ConnectionKind::Pipedream { .. })) {
            fields.problem("component", "needs the service's connection to be of type pipedream");
        }
        return read_component(component, overlay, connection, pointer, fields.problems());
    }
    let parameters = fields.required("parameters")?.clone();
    let place = fields.path("parameters");
    if let Some(name) = built_in {
        let known = name.as_str().filter(|name| BUILT_IN.contains(name));
        let Some(name) = known else {
            fields.problem("built_in", format!("must be one of {}", BUILT_IN.join(", ")));
            return None;
        };
        if connection.is_some_and(|connection| *connection != ConnectionKind::PhoneNumber) {
            fields.problem("built_in", "sms needs the service's connection to be of type phone_number");
        }
        let binding = Binding::BuiltIn { name: name.to_owned() };
        return Some(Bound { binding, parameters, place, effect: true, destructive: true });
    }
    let place_of_request = fields.path("request");
    let template = request::read(request?, &parameters, connection, &place_of_request, fields.problems())?;
    let effect = template.method != "GET";
    Some(Bound { binding: Binding::ApiRequest(template), parameters, place, effect, destructive: effect })
}

fn read_component(
    value: &Value,
    overlay: Option<&Value>,
    connection: Option<&ConnectionKind>,
    pointer: &str,
    problems: &mut Problems,
) -> Option<Bound> {
    let place = format!("{pointer}/component");
    let component = match Component::deserialize(value) {
        Ok(component) => component,
        Err(error) => {
            problems.add(place, format!("cannot be read: {error}"));
            return None;
        }
    };
    for (name, text) in [("key", &component.key), ("version", &component.version)] {
        if text.is_empty() || text.len() > 200 {
            problems.add(format!("{place}/{name}"), "must be 1 to 200 bytes");
        }
    }
    if let Some(ConnectionKind::Pipedream { app }) = connection
        && !component.key.starts_with(&format!("{app}-"))
    {
        let problem = format!("is not a component of {app}, the app that the organization connects");
        problems.add(format!("{place}/key"), problem);
    }
    let overlay = overlay.map(|overlay| Overlay::read(overlay, &format!("{pointer}/overlay"), problems));
    let derived = derive(&component, &overlay.unwrap_or_default(), pointer, problems)?;
    Some(Bound {
        binding: derived.binding,
        parameters: derived.parameters,
        place,
        effect: derived.effect,
        destructive: derived.destructive,
    })
}

/// Category, effect and danger must agree.
fn agree(category: Option<&str>, effect: bool, destructive: bool, pointer: &str, problems: &mut Problems) {
    let (place, problem) = match (category, effect, destructive) {
        (Some("read" | "search"), true, _) => (
            "effect",
            "must be none or left out of a tool that reads or searches; if it may change something, its category is write",
        ),
        (Some("write" | "delete"), false, _) => ("effect", "must not be none of a tool that writes or deletes"),
        (Some("delete"), true, false) => ("destructive", "must be true of a tool that deletes"),
        _ => return,
    };
    problems.add(format!("{pointer}/{place}"), problem);
}

/// Compiles the schema of a tool's arguments. Several models accept only an object at the top.
fn check_parameters(parameters: &Value, place: &str, problems: &mut Problems) -> Option<JsonSchema> {
    if parameters.get("type").and_then(Value::as_str) != Some("object") {
        problems.add(format!("{place}/type"), "must be object");
        return None;
    }
    for keyword in ["oneOf", "anyOf", "allOf", "not", "if", "$ref", "enum", "const"] {
        if parameters.get(keyword).is_some() {
            let problem = "must not stand at the top level, which several models refuse; say it in a description";
            problems.add(format!("{place}/{keyword}"), problem);
        }
    }
    for (name, schema) in properties(parameters) {
        let property = format!("{place}/properties/{}", pointer_step(name));
        if !is_argument_name(name) {
            problems.add(property.clone(), "must have a name of at most 64 letters, digits, _ and -");
        }
        let described = schema.get("description").and_then(Value::as_str).is_some_and(|text| !text.trim().is_empty());
        if !described && !place.ends_with("/component") {
            problems.add(format!("{property}/description"), "is required: it is what a model knows of the argument");
        }
    }
    let known: BTreeSet<&str> = properties(parameters).map(|(name, _)| name.as_str()).collect();
    let required = parameters.get("required").and_then(Value::as_array).into_iter().flatten();
    for name in required.filter_map(Value::as_str).filter(|name| !known.contains(name)) {
        problems.add(format!("{place}/required"), format!("names {name}, which is not a property"));
    }
    match JsonSchema::compile(parameters) {
        Ok(schema) => Some(schema),
        Err(wrong) => {
            for problem in wrong.iter() {
                let at = if problem.field.is_empty() { String::new() } else { format!("{}: ", problem.field) };
                problems.add(place, format!("{at}{}", problem.problem));
            }
            None
        }
    }
}

fn read_examples(
    examples: Option<&Value>,
    schema: Option<&JsonSchema>,
    pointer: &str,
    problems: &mut Problems,
) -> Vec<Map<String, Value>> {
    let place = format!("{pointer}/examples");
    let examples = match examples {
        Some(Value::Array(examples)) if (1..=MOST_EXAMPLES).contains(&examples.len()) => examples,
        _ => {
            problems.add(place, format!("must be a list of 1 to {MOST_EXAMPLES} whole arguments"));
            return Vec::new();
        }
    };
    let mut read = Vec::new();
    for (index, example) in examples.iter().enumerate() {
        let Value::Object(arguments) = example else {
            problems.add(format!("{place}/{index}"), format!("must be an object, not {}", kind(example)));
            continue;
        };
        for violation in schema.map(|schema| schema.validate(example)).unwrap_or_default() {
            problems.add(format!("{place}/{index}"), format!("does not fit the parameters: {violation}"));
        }
        read.push(arguments.clone());
    }
    read
}

/// Words and short phrases, without duplicates.
fn read_keywords(fields: &mut Fields<'_>) -> Vec<String> {
    let given = match fields.get("keywords") {
        None => return Vec::new(),
        Some(Value::Array(given)) if given.len() <= MOST_KEYWORDS => given,
        Some(_) => {
            fields.problem("keywords", format!("must be a list of at most {MOST_KEYWORDS} words or short phrases"));
            return Vec::new();
        }
    };
    let mut keywords = Vec::new();
    for (index, keyword) in given.iter().enumerate() {
        let is_plain = |text: &&str| {
            let has_word = text.chars().any(char::is_alphanumeric);
            has_word && text.chars().count() <= LONGEST_KEYWORD && !text.chars().any(char::is_control)
        };
        let problem = match keyword.as_str().filter(is_plain) {
            Some(text) if keywords.iter().any(|other| other == text) => "appears twice".to_owned(),
            Some(text) => {
                keywords.push(text.to_owned());
                continue;
            }
            None => format!("must be a word or short phrase of at most {LONGEST_KEYWORD} characters"),
        };
        let place = format!("{}/{index}", fields.path("keywords"));
        fields.problems().add(place, problem);
    }
    keywords
}

/// Whether the text is a valid name of a tool or a field.
pub(crate) fn is_name(name: &str) -> bool {
    (1..=LONGEST_NAME).contains(&name.len())
        && name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_')
}

/// The form that models' interfaces accept. Arguments of components have the names of their props.
fn is_argument_name(name: &str) -> bool {
    (1..=64).contains(&name.len())
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'))
}

fn flag(fields: &mut Fields<'_>, name: &'static str) -> Option<bool> {
    fields.get(name)?;
    Some(fields.boolean(name, true))
}
