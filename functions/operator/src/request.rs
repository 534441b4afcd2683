//! Checks a tool's request template: every place is filled, and the host is written out.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;
use serde_json::{Map, Value};
use shared::{
    error::Problems,
    fields::{Fields, pointer_step},
    json_schema::properties,
    models::{BodyFormat, ConnectionKind, KeyPlace, RequestAuth, RequestTemplate},
    redaction::is_secret_header,
};
use url::Url;

const METHODS: [&str; 5] = ["GET", "POST", "PUT", "PATCH", "DELETE"];
/// Headers that the sender writes.
const OWN_HEADERS: [&str; 5] = ["host", "content-length", "content-type", "connection", "transfer-encoding"];

/// Reads a template at `pointer`, for a tool with these parameters.
pub(crate) fn read(
    value: &Value,
    parameters: &Value,
    connection: Option<&ConnectionKind>,
    pointer: &str,
    problems: &mut Problems,
) -> Option<RequestTemplate> {
    let mut fields = Fields::at_pointer(value, pointer, problems)?;
    for name in ["method", "url", "query", "headers", "body", "fixed", "auth", "idempotency_key", "refused_by"] {
        fields.get(name);
    }
    fields.finish();
    let template = match RequestTemplate::deserialize(value) {
        Ok(template) => template,
        Err(error) => {
            problems.add(pointer, format!("cannot be read: {error}"));
            return None;
        }
    };
    let arguments: BTreeMap<&str, &Value> =
        properties(parameters).map(|(name, schema)| (name.as_str(), schema)).collect();
    let check = Check { template: &template, arguments, parameters, pointer, problems };
    check.all(connection);
    Some(template)
}

/// Whether a header selects a version of a service's API: `version`, `Stripe-Version`.
fn selects_version(name: &str) -> bool {
    name == "version" || name.ends_with("-version")
}

struct Check<'c> {
    template: &'c RequestTemplate,
    arguments: BTreeMap<&'c str, &'c Value>,
    parameters: &'c Value,
    pointer: &'c str,
    problems: &'c mut Problems,
}

impl Check<'_> {
    fn all(mut self, connection: Option<&ConnectionKind>) {
        if !METHODS.contains(&self.template.method.as_str()) {
            self.refuse("/method", format!("must be one of {}", METHODS.join(", ")));
        }
        let in_path = self.address(connection);
        self.places(&in_path);
        self.headers();
        if let Some(connection) = connection {
            self.auth(connection);
        }
        self.idempotency_key();
        for (index, place) in self.template.refused_by.iter().enumerate() {
            if !place.starts_with('/') {
                self.refuse(&format!("/refused_by/{index}"), "must be a JSON pointer, such as /errors");
            }
        }
    }

    fn refuse(&mut self, place: &str, problem: impl Into<String>) {
        self.problems.add(format!("{}{place}", self.pointer), problem);
    }

    /// Checks the address; gives the arguments in its path.
    fn address(&mut self, connection: Option<&ConnectionKind>) -> BTreeSet<String> {
        let template = self.template;
        let of_credential: BTreeSet<&str> = match connection {
            Some(ConnectionKind::Credential { fields }) => {
                fields.iter().filter(|field| field.in_address).map(|field| field.name.as_str()).collect()
            }
            _ => BTreeSet::new(),
        };
        let host_end = template.url.find("://").map(|start| start + 3).and_then(|start| {
            let rest = template.url.get(start..)?;
            Some(start + rest.find(['/', '?', '#']).unwrap_or(rest.len()))
        });
        let (host, path) = template.url.split_at(host_end.unwrap_or_default());
        let parsed = Url::parse(&template.url.replace(['{', '}'], ""));
        let is_plain = parsed.as_ref().is_ok_and(|url| {
            url.scheme() == "https"
                && url.domain().is_some_and(|domain| domain.contains('.'))
                && url.username().is_empty()
                && url.password().is_none()
                && url.port().is_none()
        });
        let literal_host =
            (of_credential.iter()).fold(host.to_owned(), |host, name| host.replace(&format!("{{{name}}}"), ""));
        let domain = host.rsplit_once('}').map(|(_, domain)| domain.strip_prefix('.').unwrap_or_default());
        let is_owned = domain.is_none_or(|domain| domain.contains('.'));
        if host.is_empty() || literal_host.contains(['{', '}']) || !is_owned || !is_plain {
            let problem = "must be https:// and a host that is written out, without user, password and port; only before the \
                           service's domain may stand a field of the credential that is in_address";
            self.refuse("/url", problem);
        }
        if path.contains(['?', '#']) {
            self.refuse("/url", "must not have a query or a fragment; name arguments in query, other members in fixed");
        }
        let mut names = BTreeSet::new();
        let mut rest = path;
        while let Some((before, after)) = rest.split_once('{') {
            let Some((name, after)) = after.split_once('}').filter(|_| !before.contains('}')) else { break };
            names.insert(name.to_owned());
            rest = after;
        }
        if rest.contains(['{', '}']) || path.split('/').any(|step| step == "..") {
            self.refuse("/url", "must have its arguments as {name} and no step ..");
        }
        for name in &of_credential {
            if names.remove(*name) && self.arguments.contains_key(name) {
                self.refuse("/url", format!("has {{{name}}}, which is a parameter and a field of the credential"));
            }
        }
        for name in &names {
            match self.arguments.get(name.as_str()) {
                None => self.refuse("/url", format!("has {{{name}}}, which is not a parameter")),
                Some(schema) => {
                    let kind = schema.get("type").and_then(Value::as_str).unwrap_or_default();
                    if !matches!(kind, "string" | "integer") {
                        self.refuse("/url", format!("has {{{name}}}, which must be of type string or integer"));
                    }
                    if !self.is_required(name) {
                        self.refuse("/url", format!("has {{{name}}}, which must be required"));
                    }
                }
            }
        }
        names
    }

    fn is_required(&self, name: &str) -> bool {
        let required = self.parameters.get("required").and_then(Value::as_array);
        required.is_some_and(|required| required.iter().any(|one| one == name))
    }

    /// Checks that every argument has exactly one place.
    fn places(&mut self, in_path: &BTreeSet<String>) {
        let template = self.template;
        for (index, name) in template.query.iter().enumerate() {
            if !self.arguments.contains_key(name.as_str()) {
                self.refuse(&format!("/query/{index}"), format!("{name} is not a parameter"));
            }
            if in_path.contains(name) {
                self.refuse(&format!("/query/{index}"), format!("{name} stands in the path"));
            }
        }
        let has_body = template.body != BodyFormat::None;
        if has_body && template.method == "GET" {
            self.refuse("/body", "must be none for GET");
        }
        let left: Vec<&str> = self.arguments.keys().copied().collect();
        for name in left {
            let placed = in_path.contains(name) || template.query.iter().any(|query| query == name);
            if !placed && !has_body {
                let problem =
                    format!("{name} goes nowhere: it stands neither in the path nor in query, and there is no body");
                self.refuse("/query", problem);
            }
        }
        for name in template.fixed.keys() {
            if self.arguments.contains_key(name.as_str()) {
                self.refuse(&format!("/fixed/{}", pointer_step(name)), "is a parameter as well");
            }
        }
    }

    fn headers(&mut self) {
        for (name, value) in &self.template.headers {
            let place = format!("/headers/{}", pointer_step(name));
            let is_token = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
            let lower = name.to_ascii_lowercase();
            if !is_token || value.bytes().any(|byte| !(b' '..=b'~').contains(&byte)) {
                self.refuse(&place, "must be a header's name and printable ASCII");
            } else if OWN_HEADERS.contains(&lower.as_str()) {
                self.refuse(&place, "is written by whoever sends the request; leave it out");
            } else if is_secret_header(&lower) && !selects_version(&lower) {
                let problem = "may be a secret, and this file is public; let the credential go there by auth";
                self.refuse(&place, problem);
            }
        }
    }

    fn auth(&mut self, connection: &ConnectionKind) {
        let template = self.template;
        let named: Vec<(String, &String)> = match &template.auth {
            RequestAuth::None => Vec::new(),
            RequestAuth::Bearer { field } | RequestAuth::Header { field, .. } => vec![("field".into(), field)],
            RequestAuth::Basic { user, password } => vec![("user".into(), user), ("password".into(), password)],
            RequestAuth::Body { members } => {
                if template.body == BodyFormat::None {
                    self.refuse("/auth/type", "body needs a request with a body");
                }
                members.iter().map(|(member, field)| (format!("members/{}", pointer_step(member)), field)).collect()
            }
        };
        let ConnectionKind::Credential { fields } = connection else {
            let problem = match (&template.auth, connection) {
                (RequestAuth::None, ConnectionKind::None) => return,
                (RequestAuth::None, _) => "goes out without the account that the organization connects",
                _ => "shows a credential, so the service's connection must be of type credential",
            };
            return self.refuse("/auth", problem);
        };
        if template.auth == RequestAuth::None {
            self.refuse("/auth", "is required: the service's connection is a credential");
        }
        for (place, name) in named {
            if !fields.iter().any(|field| field.name == *name) {
                let known: Vec<&str> = fields.iter().map(|field| field.name.as_str()).collect();
                let known = known.join(", ");
                self.refuse(
                    &format!("/auth/{place}"),
                    format!("{name} is not a field of the credential; known are {known}"),
                );
            }
        }
        if let RequestAuth::Body { members } = &template.auth {
            self.only_once(members.keys(), "/auth/members");
        }
    }

    fn idempotency_key(&mut self) {
        match &self.template.idempotency_key {
            Some(_) if self.template.method == "GET" => self.refuse("/idempotency_key", "is of no use to GET"),
            Some(KeyPlace::Body { .. }) if self.template.body == BodyFormat::None => {
                self.refuse("/idempotency_key", "in the body needs a request with a body");
            }
            Some(KeyPlace::Body { name }) => self.only_once(std::iter::once(name), "/idempotency_key"),
            _ => {}
        }
    }

    /// Refuses our own members of the body as parameters or fixed values.
    fn only_once<'n>(&mut self, names: impl Iterator<Item = &'n String>, place: &str) {
        let fixed: &Map<String, Value> = &self.template.fixed;
        let taken: Vec<&String> =
            names.filter(|name| self.arguments.contains_key(name.as_str()) || fixed.contains_key(*name)).collect();
        for name in taken {
            self.refuse(place, format!("{name} is a parameter or fixed as well"));
        }
    }
}
