//! CORS as API Gateway answers it, without asking a function.
//!
//! A REST API answers preflights from its stage's variables, an HTTP API from its `corsConfiguration`; the HTTP API
//! also sets the CORS headers of all other answers.

use std::collections::BTreeMap;

use axum::{
    body::Body,
    http::{HeaderMap, HeaderName, HeaderValue, header},
    response::Response,
};
use serde_json::Value;

/// Prefix of the CORS headers; an HTTP API drops them from a function's answer.
const OWN: &str = "access-control-";
const MOST_NAMES: usize = 100;
const LONGEST_MAX_AGE: u64 = 86_400;
/// The limit of one stage variable, in bytes.
const LONGEST_VARIABLE: usize = 512;

/// The CORS configuration of an API.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Cors {
    origins: Vec<String>,
    methods: Vec<String>,
    headers: Vec<String>,
    exposed: Vec<String>,
    credentials: bool,
    max_age: Option<u64>,
}

impl Cors {
    /// Reads the stage variables from which a REST API answers preflights.
    ///
    /// # Errors
    /// With API Gateway's reason for rejecting the value.
    pub fn of_stage(variables: &BTreeMap<String, String>) -> Result<Self, String> {
        let fits = |value: &str| {
            !value.is_empty() && value.len() <= LONGEST_VARIABLE && value.chars().all(may_be_in_a_variable)
        };
        if let Some((name, value)) = variables.iter().find(|(_, value)| !fits(value)) {
            return Err(format!("the stage's variable {name} may not be {value:?}"));
        }
        let list = |name: &str| variables.get(name).map_or("", String::as_str).split(',').map(str::to_owned);
        let origins = ["own_origin", "dashboard_origins", "stream_origins"].into_iter().flat_map(list);
        Ok(Self {
            origins: origins.map(|origin| if origin == "all" { "*".to_owned() } else { origin }).collect(),
            methods: list("methods").collect(),
            headers: list("headers").collect(),
            max_age: Some(7_200),
            ..Self::default()
        })
    }

    /// Reads `corsConfiguration` in the form that API Gateway's API returns.
    ///
    /// # Errors
    /// With API Gateway's reason for rejecting the value.
    pub fn of_api(cors: &Value) -> Result<Self, String> {
        let fields = ["allowOrigins", "allowMethods", "allowHeaders", "exposeHeaders", "allowCredentials", "maxAge"];
        let cors = Self::read(cors, fields)?;
        if cors.credentials && cors.origins.iter().any(|origin| origin == "*") {
            return Err("allowCredentials is not supported if allowOrigins is *".to_owned());
        }
        Ok(cors)
    }

    fn read(cors: &Value, fields: [&str; 6]) -> Result<Self, String> {
        let [origins, methods, headers, exposed, credentials, max_age] = fields;
        let read = Self {
            origins: names(cors, origins)?,
            methods: names(cors, methods)?,
            headers: names(cors, headers)?,
            exposed: names(cors, exposed)?,
            credentials: flag(cors, credentials),
            max_age: number(cors, max_age)?,
        };
        if read.max_age.is_some_and(|seconds| seconds > LONGEST_MAX_AGE) {
            return Err(format!("{max_age} is more than {LONGEST_MAX_AGE} seconds"));
        }
        Ok(read)
    }

    /// The answer to OPTIONS. A request that is not allowed gets no CORS headers, so the browser refuses it.
    pub fn preflight(&self, asked: &HeaderMap) -> Response {
        let mut response = Response::new(Body::empty());
        let asked_for = |name| asked.get(name).and_then(|value: &HeaderValue| value.to_str().ok()).unwrap_or_default();
        let method = asked_for(header::ACCESS_CONTROL_REQUEST_METHOD);
        let allowed = allows(&self.methods, method)
            && asked_for(header::ACCESS_CONTROL_REQUEST_HEADERS)
                .split(',')
                .map(str::trim)
                .filter(|name| !name.is_empty())
                .all(|name| allows(&self.headers, name));
        if allowed {
            self.permit(asked, response.headers_mut());
        }
        response
    }

    /// A REST API's own answer to OPTIONS; it checks only the origin.
    pub fn preflight_of_stage(&self, asked: &HeaderMap) -> Response {
        let mut response = Response::new(Body::empty());
        put(response.headers_mut(), header::VARY, "Origin");
        self.permit(asked, response.headers_mut());
        response
    }

    fn permit(&self, asked: &HeaderMap, headers: &mut HeaderMap) {
        if !self.admit(asked, headers) {
            return;
        }
        put(headers, header::ACCESS_CONTROL_ALLOW_METHODS, &self.methods.join(","));
        put(headers, header::ACCESS_CONTROL_ALLOW_HEADERS, &self.headers.join(","));
        put(headers, header::ACCESS_CONTROL_MAX_AGE, &self.max_age.map(|age| age.to_string()).unwrap_or_default());
    }

    /// Sets the CORS headers of an answer. The function's own CORS headers are removed, as an HTTP API does.
    pub fn answered_instead(&self, asked: &HeaderMap, headers: &mut HeaderMap) {
        let own: Vec<HeaderName> = headers.keys().filter(|name| name.as_str().starts_with(OWN)).cloned().collect();
        for name in own {
            headers.remove(name);
        }
        if self.admit(asked, headers) {
            put(headers, header::ACCESS_CONTROL_EXPOSE_HEADERS, &self.exposed.join(","));
        }
    }

    /// Whether the page's origin may read the answer; if so, sets the headers that say it.
    fn admit(&self, asked: &HeaderMap, headers: &mut HeaderMap) -> bool {
        let Some(origin) = asked.get(header::ORIGIN).and_then(|origin| origin.to_str().ok()) else { return false };
        if !allows(&self.origins, origin) {
            return false;
        }
        // Browsers refuse `*` when credentials are sent.
        let anyone = self.origins.iter().any(|allowed| allowed == "*") && !self.credentials;
        put(headers, header::ACCESS_CONTROL_ALLOW_ORIGIN, if anyone { "*" } else { origin });
        if !anyone && !headers.contains_key(header::VARY) {
            put(headers, header::VARY, "Origin");
        }
        if self.credentials {
            put(headers, header::ACCESS_CONTROL_ALLOW_CREDENTIALS, "true");
        }
        true
    }
}

const fn may_be_in_a_variable(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || matches!(letter, '-' | '.' | '_' | '~' | ':' | '/' | '?' | '#' | '&' | '=' | ',')
}

fn allows(allowed: &[String], asked: &str) -> bool {
    !asked.is_empty() && allowed.iter().any(|allowed| allowed == "*" || allowed.eq_ignore_ascii_case(asked))
}

fn put(headers: &mut HeaderMap, name: HeaderName, value: &str) {
    if let Ok(value) = HeaderValue::from_str(value)
        && !value.is_empty()
    {
        headers.append(name, value);
    }
}

/// A list of names. A parameter of type `CommaDelimitedList` may still be a single string.
fn names(cors: &Value, field: &str) -> Result<Vec<String>, String> {
    let names: Vec<String> = match cors.get(field) {
        None | Some(Value::Null) => Vec::new(),
        Some(Value::String(names)) => names.split(',').map(|name| name.trim().to_owned()).collect(),
        Some(Value::Array(names)) => names
            .iter()
            .map(|name| name.as_str().map(str::to_owned).ok_or_else(|| format!("{field} holds {name}")))
            .collect::<Result<_, _>>()?,
        Some(other) => return Err(format!("{field} is {other}")),
    };
    if names.len() > MOST_NAMES {
        return Err(format!("{field} has more than {MOST_NAMES} names"));
    }
    Ok(names)
}

fn flag(cors: &Value, field: &str) -> bool {
    cors.get(field).is_some_and(|value| value == true || value == "true")
}

fn number(cors: &Value, field: &str) -> Result<Option<u64>, String> {
    match cors.get(field) {
        None | Some(Value::Null) => Ok(None),
        Some(value) => {
            let number = value.as_u64().or_else(|| value.as_str()?.parse().ok());
            number.map(Some).ok_or_else(|| format!("{field} is {value}"))
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn cors() -> Cors {
        Cors::of_api(&json!({
            "allowOrigins": ["https://app.example"], "allowMethods": ["GET", "POST"], "maxAge": "600",
            "allowHeaders": ["authorization", "content-type"], "exposeHeaders": ["x-thread"],
        }))
        .unwrap()
    }

    fn asked(origin: &str, method: &str, headers: &str) -> HeaderMap {
        let mut asked = HeaderMap::new();
        put(&mut asked, header::ORIGIN, origin);
        put(&mut asked, header::ACCESS_CONTROL_REQUEST_METHOD, method);
        put(&mut asked, header::ACCESS_CONTROL_REQUEST_HEADERS, headers);
        asked
    }

    #[test]
    fn a_preflight_lists_the_allowed_methods_and_headers() {
        let answer = cors().preflight(&asked("https://app.example", "POST", "Authorization, content-type"));
        assert_eq!(answer.status(), 200);
        let said = |name: &str| answer.headers()[name].to_str().unwrap().to_owned();
        assert_eq!(said("access-control-allow-origin"), "https://app.example");
        assert_eq!(said("access-control-allow-methods"), "GET,POST");
        assert_eq!(said("access-control-allow-headers"), "authorization,content-type");
        assert_eq!(said("access-control-max-age"), "600");
        assert_eq!(said("vary"), "Origin");
    }

    #[test]
    fn an_origin_that_is_not_allowed_gets_no_headers() {
        for (origin, method, headers) in [
            ("https://other.example", "POST", ""),
            ("https://app.example", "DELETE", ""),
            ("https://app.example", "POST", "x-organization"),
            ("", "POST", ""),
        ] {
            let answer = cors().preflight(&asked(origin, method, headers));
            assert_eq!((answer.status().as_u16(), answer.headers().len()), (200, 0), "{origin} {method} {headers}");
        }
    }

    #[test]
    fn everybody_is_a_star_unless_there_are_credentials() {
        let open = Cors::of_api(&json!({"allowOrigins": "*", "allowMethods": ["*"]})).unwrap();
        let mut headers = HeaderMap::new();
        open.answered_instead(&asked("https://app.example", "", ""), &mut headers);
        assert_eq!((&headers["access-control-allow-origin"], headers.len()), (&HeaderValue::from_static("*"), 1));
        let with_credentials = Cors { credentials: true, ..open };
        let mut headers = HeaderMap::new();
        with_credentials.answered_instead(&asked("https://app.example", "", ""), &mut headers);
        assert_eq!(headers["access-control-allow-origin"], "https://app.example");
        assert_eq!(headers["access-control-allow-credentials"], "true");
    }

    #[test]
    fn where_api_gateway_speaks_a_function_does_not() {
        let cors = Cors::of_api(&json!({"allowOrigins": ["https://app.example"], "exposeHeaders": ["etag"]})).unwrap();
        let functions = || {
            let mut headers = HeaderMap::new();
            put(&mut headers, header::ACCESS_CONTROL_ALLOW_ORIGIN, "*");
            put(&mut headers, header::ACCESS_CONTROL_EXPOSE_HEADERS, "x-own");
            put(&mut headers, header::ETAG, "1");
            headers
        };
        let mut headers = functions();
        cors.answered_instead(&asked("https://app.example", "", ""), &mut headers);
        let said: Vec<_> = headers.get_all("access-control-allow-origin").iter().collect();
        assert_eq!((said.len(), headers["access-control-expose-headers"].as_bytes()), (1, "etag".as_bytes()));
        assert_eq!(said, ["https://app.example"]);
        let mut headers = functions();
        cors.answered_instead(&asked("https://other.example", "", ""), &mut headers);
        assert_eq!(headers.keys().collect::<Vec<_>>(), ["etag"]);
        let refused = Cors::of_api(&json!({"allowOrigins": ["*"], "allowCredentials": true})).unwrap_err();
        assert!(refused.contains("allowCredentials"), "{refused}");
    }

    #[test]
    fn a_configuration_that_api_gateway_refuses_is_refused() {
        for (cors, named) in [
            (json!({"maxAge": 86_401}), "maxAge"),
            (json!({"maxAge": "long"}), "maxAge"),
            (json!({"allowHeaders": [1]}), "allowHeaders"),
        ] {
            let refused = Cors::of_api(&cors).unwrap_err();
            assert!(refused.contains(named), "{cors}: {refused}");
        }
    }

    fn stage(stream_origins: &str) -> Result<Cors, String> {
        let variables = [
            ("own_origin", "https://api.example"),
            ("dashboard_origins", "none"),
            ("stream_origins", stream_origins),
            ("methods", "GET,POST"),
            ("headers", "authorization,content-type"),
        ];
        Cors::of_stage(&variables.map(|(name, value)| (name.to_owned(), value.to_owned())).into())
    }

    #[test]
    fn a_stage_answers_only_its_own_pages() {
        let some = stage("https://app.example,https://b.example").unwrap();
        for origin in ["https://app.example", "https://b.example", "https://api.example"] {
            let answer = some.preflight_of_stage(&asked(origin, "DELETE", "x-any"));
            let said = |name: &str| answer.headers()[name].to_str().unwrap().to_owned();
            assert_eq!((answer.status().as_u16(), said("access-control-allow-origin")), (200, origin.to_owned()));
            assert_eq!(said("access-control-allow-methods"), "GET,POST");
            assert_eq!(said("access-control-allow-headers"), "authorization,content-type");
            assert_eq!(answer.headers().get_all("vary").iter().collect::<Vec<_>>(), ["Origin"]);
        }
        for origin in ["https://other.example", "https://app.example,https://b.example", ""] {
            let answer = some.preflight_of_stage(&asked(origin, "POST", ""));
            assert_eq!(answer.headers().keys().collect::<Vec<_>>(), ["vary"], "{origin}");
        }
        let answer = stage("all").unwrap().preflight_of_stage(&asked("https://other.example", "POST", ""));
        assert_eq!(answer.headers()["access-control-allow-origin"], "*");
        for value in ["*", "", "https://b.example, https://c.example", &"a".repeat(513)] {
            let refused = stage(value).unwrap_err();
            assert!(refused.contains("stream_origins"), "{refused}");
        }
    }
}
