//! What the routes say of themselves, for `docs/openapi.yaml`. No function calls any of this, so no program has it in it.

use std::collections::BTreeMap;

use serde_json::{Map, json};

use super::operation::Route;
use crate::{
    described::{Json, Schemas},
    models::Role,
};

/// The operations that were described, in their order, and their schemas.
#[derive(Debug, Default)]
pub struct Document {
    pub operations: Vec<Operation>,
    pub schemas: Schemas,
    pub tag: &'static str,
}

impl Document {
    pub fn add(&mut self, operation: Operation) {
        self.operations.push(Operation { tag: self.tag, ..operation });
    }
}

/// One route, described.
#[derive(Debug)]
pub struct Operation {
    pub route: &'static Route,
    pub id: &'static str,
    /// The beginning of its logical id in the template.
    pub resource: &'static str,
    tag: &'static str,
    prose: Prose,
    body: Option<Json>,
    answers: BTreeMap<u16, Json>,
    /// Of the path's variables, but for the slug.
    variables: Vec<(&'static str, Json)>,
    query: Vec<Json>,
}

impl Operation {
    pub fn new(route: &'static Route, id: &'static str, resource: &'static str, doc: &str, also: &[u16]) -> Self {
        let mut operation = Self {
            route,
            id,
            resource,
            tag: "",
            prose: Prose::of(doc),
            body: None,
            answers: BTreeMap::new(),
            variables: Vec::new(),
            query: Vec::new(),
        };
        let forbidden = (route.role > Role::Viewer).then_some(403);
        for status in [401, 404, 429, 500, 503].into_iter().chain(forbidden).chain(also.iter().copied()) {
            operation.refuses(status);
        }
        operation
    }

    /// One of the refusals that are described once, for all.
    fn refuses(&mut self, status: u16) {
        let name = match status {
            400 => "Malformed",
            401 => "Unauthenticated",
            403 => "Forbidden",
            404 => "NotFound",
            409 => "Conflict",
            422 => "Invalid",
            429 => "TooManyRequests",
            502 => "BadGateway",
            503 => "Unavailable",
            504 => "GatewayTimeout",
            _ => "Internal",
        };
        self.answers.insert(status, json!({"$ref": format!("#/components/responses/{name}")}));
    }

    pub fn sends(&mut self, schema: Json) {
        self.body = Some(schema);
        self.refuses(400);
        self.refuses(422);
    }

    pub fn names(&mut self, doc: &'static str, schema: Json) {
        self.variables.push((doc, schema));
    }

    pub fn may_ask(&mut self, name: &str, doc: &str, schema: Json) {
        let parameter =
            [("name", name.into()), ("in", "query".into()), ("description", doc.into()), ("schema", schema)];
        self.query.push(parameter.into_iter().collect());
        self.refuses(422);
    }

    /// `usual` is said of the answer if the prose says nothing of it.
    pub fn answers(&mut self, status: u16, usual: &str, schema: Json) {
        let mut content = Map::from_iter([("schema".to_owned(), schema)]);
        if let Some(example) = self.prose.examples.iter().find(|example| example.name == status.to_string()) {
            content.insert("example".into(), example.value.clone());
        }
        let description = self.prose.answers.get(&status).map_or(usual, String::as_str);
        let answer = json!({"description": description, "content": {"application/json": content}});
        self.answers.insert(status, answer);
    }

    /// The parameters of the path.
    pub fn parameters(&self) -> Json {
        let names = self.route.path.split(['{', '}']).skip(1).step_by(2).filter(|name| *name != "slug");
        let variables = names.zip(&self.variables).map(|(name, (doc, schema))| {
            json!({"name": name, "in": "path", "required": true, "description": doc, "schema": schema})
        });
        [json!({"$ref": "#/components/parameters/slug"})].into_iter().chain(variables).collect()
    }

    /// As it stands under its path and method.
    pub fn value(&self) -> Json {
        let mut value = Map::new();
        value.insert("operationId".into(), self.id.into());
        value.insert("security".into(), json!([{"jwt": [self.route.role.as_str()]}]));
        value.insert("tags".into(), json!([self.tag]));
        value.insert("summary".into(), self.prose.summary.clone().into());
        if !self.prose.description.is_empty() {
            value.insert("description".into(), self.prose.description.clone().into());
        }
        if !self.query.is_empty() {
            value.insert("parameters".into(), self.query.clone().into());
        }
        if let Some(schema) = &self.body {
            let of_body = self.prose.examples.iter().filter(|example| !example.of_answer());
            let examples: Map<String, Json> = of_body.map(Example::named).collect();
            let content = json!({"schema": schema, "examples": examples});
            value.insert("requestBody".into(), json!({"required": true, "content": {"application/json": content}}));
        }
        let answers: Map<String, Json> =
            self.answers.iter().map(|(status, answer)| (status.to_string(), answer.clone())).collect();
        value.insert("responses".into(), answers.into());
        value.into()
    }
}

/// A doc comment: its first paragraph, the others, what it says of answers (`- 201: The member's row.`), and examples of bodies and
/// answers: blocks of ` ```json,name: summary ` or ` ```json,200 `.
#[derive(Debug, Default)]
struct Prose {
    summary: String,
    description: String,
    answers: BTreeMap<u16, String>,
    examples: Vec<Example>,
}

#[derive(Debug)]
struct Example {
    name: String,
    summary: Option<String>,
    value: Json,
}

impl Example {
    fn named(&self) -> (String, Json) {
        let value = &self.value;
        let example = match &self.summary {
            Some(summary) => json!({"summary": summary, "value": value}),
            None => json!({"value": value}),
        };
        (self.name.clone(), example)
    }

    fn of_answer(&self) -> bool {
        self.name.parse::<u16>().is_ok()
    }
}

impl Prose {
    fn of(doc: &str) -> Self {
        let mut prose = Self::default();
        let (mut text, mut code) = (String::new(), None::<(&str, String)>);
        for line in doc.lines() {
            let answer = line.strip_prefix("- ").and_then(|line| line.split_once(": "));
            let answer = answer.and_then(|(status, said)| Some((status.parse().ok()?, said)));
            code = match (code, answer) {
                (None, Some((status, said))) => {
                    prose.answers.insert(status, said.to_owned());
                    None
                }
                (None, None) if line.starts_with("```json,") => {
                    Some((line.trim_start_matches("```json,"), String::new()))
                }
                (None, None) => {
                    text.push_str(line);
                    text.push('\n');
                    None
                }
                (Some((name, body)), _) if line == "```" => {
                    let (name, summary) = match name.split_once(": ") {
                        Some((name, summary)) => (name, Some(summary.to_owned())),
                        None => (name, None),
                    };
                    let value = serde_json::from_str(&body).unwrap_or_else(|error| json!(format!("{error}: {body}")));
                    prose.examples.push(Example { name: name.trim().to_owned(), summary, value });
                    None
                }
                (Some((name, body)), _) => Some((name, body + line)),
            };
        }
        let (summary, rest) = text.trim().split_once("\n\n").unwrap_or((text.trim(), ""));
        let summary = summary.trim().trim_end_matches('.').replace('\n', " ");
        Self { summary, description: rest.trim().to_owned(), ..prose }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_doc_comment_has_summary_prose_answers_and_examples() {
        let doc = "Add a member\n\nA user.\nTwo lines.\n\n- 201: The row.\n\n```json,one: Only one\n{\"a\":\n 1}\n```\n```json,200\n[]\n```\n";
        let prose = Prose::of(doc);
        assert_eq!((&*prose.summary, &*prose.description), ("Add a member", "A user.\nTwo lines."));
        assert_eq!(prose.answers[&201], "The row.");
        let [one, answer] = &prose.examples[..] else { panic!("{prose:?}") };
        assert_eq!((&*one.name, one.summary.as_deref(), &one.value), ("one", Some("Only one"), &json!({"a": 1})));
        assert!(answer.of_answer() && !one.of_answer());
    }

    #[test]
    fn refusals_follow_from_the_route_its_role_and_its_parts() {
        static ROUTE: Route = Route { method: "PUT", path: "/api/{slug}/x/{id}", role: Role::Admin, query: &[] };
        let mut operation = Operation::new(&ROUTE, "putX", "PutX", "Put", &[409]);
        operation.names("The x.", json!({}));
        operation.sends(json!({}));
        operation.answers(200, "It is there.", json!({}));
        let value = operation.value();
        let statuses: Vec<&String> = value["responses"].as_object().unwrap().keys().collect();
        assert_eq!(statuses, ["200", "400", "401", "403", "404", "409", "422", "429", "500", "503"]);
        assert_eq!(operation.parameters()[1]["name"], "id");
    }
}
