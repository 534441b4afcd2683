//! Generates `docs/openapi.yaml` from the routes. No function calls it, so no binary contains it.

use std::collections::BTreeMap;

use serde_json::{Map, json};

use super::operation::{Caller, Route};
use crate::{
    described::{Json, Schemas},
    models::Role,
};

#[derive(Debug, Default)]
pub struct Document {
    pub operations: Vec<Operation>,
    pub schemas: Schemas,
    pub tag: &'static str,
}

impl Document {
    pub fn add(&mut self, operation: Operation) {
        let tag = if operation.tag.is_empty() { self.tag } else { operation.tag };
        self.operations.push(Operation { tag, ..operation });
    }
}

#[derive(Debug)]
pub struct Operation {
    pub route: &'static Route,
    pub id: &'static str,
    /// The prefix of its logical id in the template.
    pub resource: &'static str,
    /// Empty for the function's own tag.
    pub tag: &'static str,
    /// The columns' prefix in the template's mapping `Throttles`, for APIs without a default: `StreamTurn`.
    pub throttle: &'static str,
    pub condition: &'static str,
    prose: Prose,
    body: Option<Json>,
    answers: BTreeMap<u16, Json>,
    /// The path's variables except the slug.
    variables: Vec<(&'static str, Json)>,
    more: Vec<Json>,
    body_required: bool,
    other_bodies: Vec<(&'static str, Json)>,
}

impl Operation {
    pub fn new(
        route: &'static Route,
        id: &'static str,
        resource: &'static str,
        doc: &str,
        also: &[(u16, &str)],
    ) -> Self {
        let mut operation = Self {
            route,
            id,
            resource,
            tag: "",
            throttle: "",
            condition: "",
            prose: Prose::of(doc),
            body: None,
            answers: BTreeMap::new(),
            variables: Vec::new(),
            more: Vec::new(),
            body_required: false,
            other_bodies: Vec::new(),
        };
        for (status, response) in also.iter().filter(|(_, response)| !response.is_empty()) {
            operation.answers_as(*status, response);
        }
        let usual: &[u16] = match route.caller {
            Caller::Member(_) => &[401, 404, 429, 500, 503],
            Caller::Verified(_) => &[404, 500, 503],
            Caller::Proof(_) | Caller::Anybody => &[],
        };
        if let Caller::Verified(_) = route.caller {
            operation.answers_as(401, "Challenged");
        }
        if let Some(role) = route.role() {
            if role > Role::Viewer {
                operation.refuses(403);
            }
            if !route.path.contains("{slug}") {
                operation.more.push(json!({"$ref": "#/components/parameters/organization"}));
                operation.refuses(400);
            }
        }
        if route.is_tagged() {
            operation.answers_as(304, "NotModified");
        }
        for status in usual.iter().chain(also.iter().map(|(status, _)| status)) {
            operation.refuses(*status);
        }
        operation
    }

    pub fn answers_as(&mut self, status: u16, response: &str) {
        self.answers.insert(status, json!({"$ref": format!("#/components/responses/{response}")}));
    }

    /// For an answer whose `ETag` is no tag of its content.
    pub fn never_unchanged(&mut self) {
        self.answers.remove(&304);
    }

    pub fn refuses(&mut self, status: u16) {
        if self.answers.contains_key(&status) {
            return;
        }
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
        self.answers_as(status, name);
    }

    /// A body with its own reader; implies no refusals.
    pub fn takes(&mut self, schema: Json, required: bool) {
        (self.body, self.body_required) = (Some(schema), required);
    }

    pub fn sends(&mut self, schema: Json, required: bool) {
        self.takes(schema, required);
        self.refuses(400);
        if self.route.role().is_some() {
            self.refuses(422);
        }
    }

    pub fn sends_as(&mut self, content_type: &'static str, content: Json) {
        self.body_required = true;
        self.also_sends(content_type, content);
    }

    pub fn also_sends(&mut self, content_type: &'static str, content: Json) {
        self.other_bodies.push((content_type, content));
    }

    pub fn names(&mut self, doc: &'static str, schema: Json) {
        self.variables.push((doc, schema));
    }

    pub fn may_ask(&mut self, name: &str, doc: &str, schema: Json) {
        self.more.push(parameter("query", name, doc, schema));
        self.refuses(422);
    }

    pub fn is_paged(&mut self) {
        let limit = json!({"type": "integer", "minimum": 1, "maximum": 200, "default": 50});
        self.may_ask("limit", "Items on a page.", limit);
        self.may_ask("cursor", "The `next_cursor` of the page before.", json!({"type": "string"}));
    }

    pub fn request_header(&mut self, name: &str, doc: &str, schema: Json) {
        self.more.push(parameter("header", name, doc, schema));
    }

    pub fn must(&mut self) {
        if let Some(last) = self.more.last_mut().and_then(Json::as_object_mut) {
            last.insert("required".into(), true.into());
        }
    }

    /// `usual` is the description if the prose has none.
    pub fn answers(&mut self, status: u16, usual: &str, schema: Json) {
        let examples: Vec<&Example> =
            self.prose.examples.iter().filter(|example| example.status() == Some(status)).collect();
        let mut content = Map::from_iter([("schema".to_owned(), schema)]);
        match examples[..] {
            [] => {}
            [one] => drop(content.insert("example".into(), one.value.clone())),
            _ => {
                let examples: Map<String, Json> = examples.into_iter().map(Example::named).collect();
                content.insert("examples".into(), examples.into());
            }
        }
        self.answers_with(status, usual, "application/json", content.into());
    }

    pub fn answers_with(&mut self, status: u16, usual: &str, content_type: &str, content: Json) {
        self.answers_nothing(status, usual);
        if let Some(answer) = self.answers.get_mut(&status).and_then(Json::as_object_mut) {
            let contents = answer.entry("content").or_insert_with(|| json!({}));
            contents.as_object_mut().map(|contents| contents.insert(content_type.to_owned(), content));
        }
    }

    pub fn tells(&mut self, status: u16, name: &str, doc: &str) {
        if let Some(answer) = self.answers.get_mut(&status).and_then(Json::as_object_mut) {
            let header = json!({"description": doc, "schema": {"type": "string"}});
            let headers = answer.entry("headers").or_insert_with(|| json!({}));
            headers.as_object_mut().map(|headers| headers.insert(name.to_owned(), header));
        }
    }

    pub fn answers_nothing(&mut self, status: u16, usual: &str) {
        let description = self.prose.answers.get(&status).map_or(usual, String::as_str);
        let answer = self.answers.entry(status).or_default();
        if answer.get("description").is_none() {
            *answer = json!({"description": description});
        }
    }

    pub fn parameters(&self) -> Json {
        let names = self.route.path.split(['{', '}']).skip(1).step_by(2).filter(|name| *name != "slug");
        let variables = names.zip(&self.variables).map(|(name, (doc, schema))| {
            json!({"name": name, "in": "path", "required": true, "description": doc, "schema": schema})
        });
        let slug = self.route.path.contains("{slug}").then(|| json!({"$ref": "#/components/parameters/slug"}));
        slug.into_iter().chain(variables).collect()
    }

    fn security(&self) -> Json {
        match self.route.caller {
            Caller::Member(role) => json!([{"jwt": [role.as_str()]}]),
            Caller::Verified(role) => json!([{"verifiedJwt": [role.as_str()]}]),
            Caller::Anybody => json!([]),
            // The token is in the body, which OpenAPI has no scheme for; VAPI's credential is an alternative.
            Caller::Proof("toolToken") => json!([{}, {"vapiBearer": []}, {"vapiSecret": []}]),
            // Each service has a header of its own.
            Caller::Proof("webhookSignature") => json!([{}, {"webhookSignature": []}]),
            // VAPI's credential may be configured to send either.
            Caller::Proof("vapiBearer") => json!([{"vapiBearer": []}, {"vapiSecret": []}]),
            Caller::Proof(scheme) => json!([{scheme: []}]),
        }
    }

    pub fn value(&self) -> Json {
        let mut value = Map::new();
        value.insert("operationId".into(), self.id.into());
        value.insert("security".into(), self.security());
        value.insert("tags".into(), json!([self.tag]));
        value.insert("summary".into(), self.prose.summary.clone().into());
        if !self.prose.description.is_empty() {
            value.insert("description".into(), self.prose.description.clone().into());
        }
        if !self.more.is_empty() {
            value.insert("parameters".into(), self.more.clone().into());
        }
        let mut bodies = Map::new();
        if let Some(schema) = &self.body {
            let of_body = self.prose.examples.iter().filter(|example| example.status().is_none());
            let examples: Map<String, Json> = of_body.map(Example::named).collect();
            let mut content = Map::from_iter([("schema".to_owned(), schema.clone())]);
            if !examples.is_empty() {
                content.insert("examples".into(), examples.into());
            }
            bodies.insert("application/json".into(), content.into());
        }
        bodies.extend(self.other_bodies.iter().map(|(name, content)| ((*name).to_owned(), content.clone())));
        if !bodies.is_empty() {
            value.insert("requestBody".into(), json!({"required": self.body_required, "content": bodies}));
        }
        let answers: Map<String, Json> =
            self.answers.iter().map(|(status, answer)| (status.to_string(), answer.clone())).collect();
        value.insert("responses".into(), answers.into());
        value.into()
    }
}

fn parameter(place: &str, name: &str, doc: &str, schema: Json) -> Json {
    let members = [("name", name.into()), ("in", place.into()), ("description", doc.into()), ("schema", schema)];
    members.into_iter().collect()
}

/// A parsed doc comment: summary (first paragraph), description, answers (`- 201: The member's row.`), and examples of bodies
/// and answers, in blocks ` ```json,name: summary `, ` ```json,200 ` or, for several, ` ```json,200 name `.
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
        let name = self.name.split_once(' ').map_or(&*self.name, |(_, name)| name);
        (name.to_owned(), example)
    }

    /// For an example of an answer: `200` or `200 name`.
    fn status(&self) -> Option<u16> {
        self.name.split(' ').next()?.parse().ok()
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
        assert!(answer.status() == Some(200) && one.status().is_none());
    }

    #[test]
    fn refusals_follow_from_the_route_its_role_and_its_parts() {
        static ROUTE: Route = Route {
            method: "PUT",
            path: "/api/{slug}/x/{id}",
            caller: Caller::Member(Role::Admin),
            query: &[],
            own_query: false,
        };
        let mut operation = Operation::new(&ROUTE, "putX", "PutX", "Put", &[(409, "")]);
        operation.names("The x.", json!({}));
        operation.sends(json!({}), true);
        operation.answers(200, "It is there.", json!({}));
        let value = operation.value();
        let statuses: Vec<&String> = value["responses"].as_object().unwrap().keys().collect();
        assert_eq!(statuses, ["200", "400", "401", "403", "404", "409", "422", "429", "500", "503"]);
        assert_eq!(operation.parameters()[1]["name"], "id");
    }

    #[test]
    fn a_route_by_proof_is_refused_only_as_it_says() {
        static ROUTE: Route = Route {
            method: "POST",
            path: "/api/x",
            caller: Caller::Proof("twilioSignature"),
            query: &[],
            own_query: false,
        };
        let mut operation = Operation::new(&ROUTE, "takeX", "TakeX", "Take", &[(401, ""), (409, "ChatConflict")]);
        operation.sends(json!({}), false);
        operation.may_ask("from", "A version.", json!({}));
        operation.must();
        operation.answers_with(200, "Taken.", "text/plain", json!({}));
        operation.answers_with(200, "", "text/csv", json!({}));
        let value = operation.value();
        assert_eq!(value["security"], json!([{"twilioSignature": []}]));
        assert_eq!(operation.parameters(), json!([]), "no organization is in the path");
        assert_eq!(value["parameters"][0]["required"], true);
        assert_eq!(value["requestBody"]["required"], false);
        let answers = value["responses"].as_object().unwrap();
        assert_eq!(answers.keys().collect::<Vec<_>>(), ["200", "400", "401", "409", "422"], "422 for the query");
        assert_eq!(answers["409"]["$ref"], "#/components/responses/ChatConflict");
        assert_eq!(answers["200"]["description"], "Taken.");
        assert_eq!(answers["200"]["content"].as_object().unwrap().len(), 2);
    }
}
