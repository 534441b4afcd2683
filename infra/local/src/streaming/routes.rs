//! The routes of a REST API.

use std::collections::{BTreeMap, BTreeSet};

use percent_encoding::percent_decode_str;
use serde_json::Value;

/// The suffix of a streaming integration's URI.
const STREAMS: &str = "/response-streaming-invocations";

/// A REST API's resources. Some methods lead to the function, some are answered by the API itself.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Routes(Vec<Resource>);

#[derive(Debug, Clone, PartialEq, Eq)]
struct Resource {
    /// With path variables, such as `/agents/{id}`.
    path: String,
    to_function: BTreeSet<String>,
    preflight: bool,
}

/// The resource of a path and the values of its variables.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Matched {
    pub(super) resource: String,
    pub(super) parameters: BTreeMap<String, String>,
}

/// The part that answers a request.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Target {
    Function(Matched),
    /// The API itself answers the preflight.
    Preflight,
    Nobody,
}

impl Routes {
    /// Reads API Gateway's list of resources and their methods.
    ///
    /// # Errors
    /// With the integration that does not stream.
    pub(super) fn read(resources: &Value) -> Result<Self, String> {
        let items = resources.get("item").and_then(Value::as_array);
        items.into_iter().flatten().map(Resource::read).collect::<Result<_, _>>().map(Self)
    }

    /// Routes of `methods` at `paths`, all to the function.
    #[cfg(test)]
    pub(super) fn to_function(paths: &[&str], methods: &[&str]) -> Self {
        let to_function: BTreeSet<String> = methods.iter().map(|method| (*method).to_owned()).collect();
        let at = |path: &&str| Resource { path: (*path).to_owned(), to_function: to_function.clone(), preflight: true };
        Self(paths.iter().map(at).collect())
    }

    /// Literal segments take precedence over variables, as in API Gateway.
    pub(super) fn target(&self, method: &str, path: &str) -> Target {
        let fitting = self.0.iter().filter_map(|resource| Some((resource, resource.parameters(path)?)));
        let Some((resource, parameters)) = fitting.min_by_key(|(_, parameters)| parameters.len()) else {
            return Target::Nobody;
        };
        match method {
            "OPTIONS" if resource.preflight => Target::Preflight,
            method if resource.to_function.contains(method) => {
                Target::Function(Matched { resource: resource.path.clone(), parameters })
            }
            _ => Target::Nobody,
        }
    }
}

impl Resource {
    fn read(resource: &Value) -> Result<Self, String> {
        let path = resource.get("path").and_then(Value::as_str).unwrap_or_default().to_owned();
        let mut read = Self { path, to_function: BTreeSet::new(), preflight: false };
        for (method, says) in resource.get("resourceMethods").and_then(Value::as_object).into_iter().flatten() {
            let text = |pointer| says.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
            match text("/methodIntegration/type") {
                "MOCK" => read.preflight = true,
                _ if text("/methodIntegration/uri").ends_with(STREAMS) => {
                    read.to_function.insert(method.clone());
                }
                _ => return Err(format!("{method} {} does not stream", read.path)),
            }
        }
        Ok(read)
    }

    /// The values of the path's variables; `None` if `path` does not match.
    fn parameters(&self, path: &str) -> Option<BTreeMap<String, String>> {
        let (mut wanted, mut given) = (self.path.split('/'), path.split('/'));
        let mut parameters = BTreeMap::new();
        loop {
            match (wanted.next(), given.next()) {
                (None, None) => return Some(parameters),
                (Some(wanted), Some(given)) => {
                    let name = wanted.strip_prefix('{').and_then(|name| name.strip_suffix('}'));
                    match name {
                        Some(name) if !given.is_empty() => {
                            let value = percent_decode_str(given).decode_utf8_lossy().into_owned();
                            parameters.insert(name.to_owned(), value);
                        }
                        None if wanted == given => {}
                        _ => return None,
                    }
                }
                _ => return None,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn method(kind: &str, uri: &str) -> Value {
        json!({"methodIntegration": {"type": kind, "uri": uri}})
    }

    #[test]
    fn a_path_leads_where_api_gateway_leads_it() {
        let (function, mock) = (method("AWS_PROXY", &format!("arn{STREAMS}")), method("MOCK", ""));
        let routes = Routes::read(&json!({"item": [
            {"path": "/"},
            {"path": "/agents/{id}", "resourceMethods": {"POST": function, "OPTIONS": mock}},
            {"path": "/agents/info", "resourceMethods": {"GET": function}},
        ]}))
        .unwrap();
        let Target::Function(matched) = routes.target("POST", "/agents/a%20b") else { panic!("not the function") };
        assert_eq!((matched.resource.as_str(), matched.parameters["id"].as_str()), ("/agents/{id}", "a b"));
        assert_eq!(routes.target("OPTIONS", "/agents/a"), Target::Preflight);
        assert!(matches!(routes.target("GET", "/agents/info"), Target::Function(_)));
        for (method, path) in [
            ("POST", "/agents/info"),
            ("GET", "/agents/a"),
            ("POST", "/agents/"),
            ("GET", "/"),
            ("OPTIONS", "/agents/info"),
        ] {
            assert_eq!(routes.target(method, path), Target::Nobody, "{method} {path}");
        }
        let whole =
            json!({"item": [{"path": "/x", "resourceMethods": {"POST": method("AWS_PROXY", "arn/invocations")}}]});
        assert_eq!(Routes::read(&whole).unwrap_err(), "POST /x does not stream");
    }
}
