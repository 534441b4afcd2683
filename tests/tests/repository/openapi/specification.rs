//! Reads `docs/openapi.yaml` and checks the functions' answers against it.

mod configurations;

use std::collections::{BTreeMap, BTreeSet};

use jsonschema::Validator;
use serde_json::{Value, json};
use tests::Answer;

/// The document, and the descriptions that have occurred.
pub(crate) struct Document {
    pub(crate) root: Value,
    seen: BTreeSet<Described>,
}

/// A described answer: operation id, status and content type.
pub(crate) type Described = (String, u16, String);

#[derive(Debug, Clone)]
pub(crate) struct Operation {
    pub(crate) id: String,
    pub(crate) method: String,
    /// With path variables, such as `/api/{slug}/tools`.
    pub(crate) path: String,
    pub(crate) value: Value,
}

impl Document {
    pub(crate) fn read() -> Self {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/openapi.yaml");
        let text = std::fs::read_to_string(path).unwrap();
        let root = serde_saphyr::from_str(&text).unwrap_or_else(|error| panic!("docs/openapi.yaml: {error}"));
        Self { root, seen: BTreeSet::new() }
    }

    pub(crate) fn operations(&self) -> Vec<Operation> {
        let mut operations = Vec::new();
        for (path, item) in self.root["paths"].as_object().unwrap() {
            for (method, value) in
                item.as_object().unwrap().iter().filter(|(name, _)| !["parameters", "servers"].contains(&name.as_str()))
            {
                operations.push(Operation {
                    id: value["operationId"].as_str().unwrap().to_owned(),
                    method: method.to_ascii_uppercase(),
                    path: path.clone(),
                    value: value.clone(),
                });
            }
        }
        operations
    }

    pub(crate) fn operation(&self, id: &str) -> Operation {
        let mut operations = self.operations().into_iter();
        operations.find(|operation| operation.id == id).unwrap_or_else(|| panic!("no operation {id}"))
    }

    /// The target of a `$ref` within the document, or the value itself.
    pub(crate) fn resolve<'a>(&'a self, value: &'a Value) -> &'a Value {
        match value["$ref"].as_str().filter(|_| value.as_object().is_some_and(|object| object.len() == 1)) {
            Some(reference) => {
                let pointer = reference.strip_prefix('#').unwrap_or_else(|| panic!("{reference} is elsewhere"));
                self.root.pointer(pointer).unwrap_or_else(|| panic!("{reference} is not there"))
            }
            None => value,
        }
    }

    /// A validator of a schema in the document; it checks formats too.
    pub(crate) fn validator(&self, schema: &Value) -> Validator {
        let mut root = schema.clone();
        root["components"] = json!({"schemas": self.root["components"]["schemas"]});
        let options = jsonschema::options().with_draft(jsonschema::Draft::Draft202012).should_validate_formats(true);
        options.build(&root).unwrap_or_else(|error| panic!("{schema}: {error}"))
    }

    #[track_caller]
    pub(crate) fn hold(&self, what: &str, schema: &Value, value: &Value) {
        let validator = self.validator(schema);
        let problems: Vec<String> =
            validator.iter_errors(value).map(|error| format!("{}: {error}", error.instance_path())).collect();
        assert!(problems.is_empty(), "{what}: {problems:#?}\n{value:#}");
    }

    /// Checks an answer against the operation's description: status, content type and body.
    #[track_caller]
    pub(crate) fn check(&mut self, operation: &str, answer: &Answer) {
        let Answer { status, content_type, body, .. } = answer;
        let described = self.operation(operation).value["responses"][status.to_string()].clone();
        assert!(!described.is_null(), "{operation} answers {status}, which is not described: {body}");
        if self.resolve(&described)["content"].is_null() {
            assert!(body.is_null() && content_type.is_empty(), "{operation} answers {status} with a body: {body}");
            self.seen.insert((operation.to_owned(), *status, String::new()));
            return;
        }
        let content = &self.resolve(&described)["content"][content_type];
        assert!(!content.is_null(), "{operation} answers {status} as {content_type}, which is not described");
        self.hold(&format!("{operation} {status}"), &content["schema"], body);
        self.seen.insert((operation.to_owned(), *status, content_type.clone()));
    }

    pub(crate) fn answers_304(&self, operation: &str) -> bool {
        !self.operation(operation).value["responses"]["304"].is_null()
    }

    /// The descriptions that did not occur, without API Gateway's own answers.
    pub(crate) fn unseen(&self) -> Vec<Described> {
        let gateway = json!({"$ref": "#/components/schemas/GatewayMessage"});
        let mut unseen = Vec::new();
        for operation in self.operations() {
            for (status, response) in operation.value["responses"].as_object().unwrap() {
                let no_content = json!({"": {}});
                let content = self.resolve(response)["content"].as_object();
                for (content_type, content) in content.or(no_content.as_object()).unwrap() {
                    let described = (operation.id.clone(), status.parse().unwrap(), content_type.clone());
                    if content["schema"] != gateway && !self.seen.contains(&described) {
                        unseen.push(described);
                    }
                }
            }
        }
        unseen
    }

    /// The examples of an operation's request, by name.
    pub(crate) fn request_examples(&self, operation: &str) -> BTreeMap<String, Value> {
        let content = &self.operation(operation).value["requestBody"]["content"]["application/json"];
        let examples = content["examples"].as_object().unwrap_or_else(|| panic!("{operation} has no examples"));
        examples.iter().map(|(name, example)| (name.clone(), example["value"].clone())).collect()
    }
}

/// Every object inside a value, including the value itself.
pub(crate) fn objects(value: &Value) -> Vec<&Value> {
    let mut found = Vec::new();
    match value {
        Value::Object(object) => {
            found.push(value);
            object.values().for_each(|member| found.extend(objects(member)));
        }
        Value::Array(items) => items.iter().for_each(|item| found.extend(objects(item))),
        _ => {}
    }
    found
}
