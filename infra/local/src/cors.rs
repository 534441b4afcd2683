//! What AWS itself says to browsers, before a function URL by its `Cors` and before an HTTP API by its `corsConfiguration`: the
//! answer to a preflight, for which no function is asked, and headers of the other answers.

use axum::{
    body::Body,
    http::{HeaderMap, HeaderName, HeaderValue, header},
    response::Response,
};
use serde_json::Value;

const METHODS: [&str; 7] = ["GET", "PUT", "HEAD", "POST", "PATCH", "DELETE", "*"];
const MOST_METHODS_OF_A_URL: usize = 6;
/// What browsers read; no function may say it where AWS does.
const OWN: &str = "access-control-";
const MOST_NAMES: usize = 100;
const LONGEST_MAX_AGE: u64 = 86_400;

/// What the template allows pages of other origins.
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
    /// Reads `Cors` as Lambda's API shows it.
    ///
    /// # Errors
    /// With a sentence on what Lambda would refuse.
    pub fn of_url(cors: &Value) -> Result<Self, String> {
        let fields = ["AllowOrigins", "AllowMethods", "AllowHeaders", "ExposeHeaders", "AllowCredentials", "MaxAge"];
        let cors = Self::read(cors, fields)?;
        if cors.methods.len() > MOST_METHODS_OF_A_URL {
            return Err(format!("AllowMethods has more than {MOST_METHODS_OF_A_URL} methods"));
        }
        if let Some(unknown) = cors.methods.iter().find(|method| !METHODS.contains(&method.as_str())) {
            return Err(format!("AllowMethods has {unknown}, which Lambda does not take; it answers OPTIONS itself"));
        }
        Ok(cors)
    }

    /// Reads `corsConfiguration` as API Gateway's API shows it.
    ///
    /// # Errors
    /// With a sentence on what API Gateway would refuse.
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

    /// The answer to OPTIONS. What is not allowed gets no word of it, and so the browser refuses.
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
        if !allowed || !self.admit(asked, response.headers_mut()) {
            return response;
        }
        let headers = response.headers_mut();
        put(headers, header::ACCESS_CONTROL_ALLOW_METHODS, &self.methods.join(","));
        put(headers, header::ACCESS_CONTROL_ALLOW_HEADERS, &self.headers.join(","));
        put(headers, header::ACCESS_CONTROL_MAX_AGE, &self.max_age.map(|age| age.to_string()).unwrap_or_default());
        response
    }

    /// Adds to the answer to a page's request what its browser must hear. A function that says so itself has said it twice:
    /// browsers refuse that, and so it shows.
    pub fn answered(&self, asked: &HeaderMap, headers: &mut HeaderMap) {
        if self.admit(asked, headers) {
            put(headers, header::ACCESS_CONTROL_EXPOSE_HEADERS, &self.exposed.join(","));
        }
    }

    /// The same where a function's own words to browsers are not passed on, as API Gateway does it.
    pub fn answered_instead(&self, asked: &HeaderMap, headers: &mut HeaderMap) {
        let own: Vec<HeaderName> = headers.keys().filter(|name| name.as_str().starts_with(OWN)).cloned().collect();
        for name in own {
            headers.remove(name);
        }
        self.answered(asked, headers);
    }

    /// Whether the page's origin may read the answer; says so in it.
    fn admit(&self, asked: &HeaderMap, headers: &mut HeaderMap) -> bool {
        let Some(origin) = asked.get(header::ORIGIN).and_then(|origin| origin.to_str().ok()) else { return false };
        if !allows(&self.origins, origin) {
            return false;
        }
        // Browsers refuse `*` where there are credentials.
        let anyone = self.origins.iter().any(|allowed| allowed == "*") && !self.credentials;
        put(headers, header::ACCESS_CONTROL_ALLOW_ORIGIN, if anyone { "*" } else { origin });
        if !anyone {
            put(headers, header::VARY, "Origin");
        }
        if self.credentials {
            put(headers, header::ACCESS_CONTROL_ALLOW_CREDENTIALS, "true");
        }
        true
    }
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

/// A list of names; a parameter of the type `CommaDelimitedList` may still be one text.
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
        Cors::of_url(&json!({
            "AllowOrigins": ["https://app.example"], "AllowMethods": ["GET", "POST"], "MaxAge": "600",
            "AllowHeaders": ["authorization", "content-type"], "ExposeHeaders": ["x-thread"],
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
    fn a_preflight_is_told_what_is_allowed() {
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
    fn what_is_not_allowed_hears_nothing() {
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
        let open = Cors::of_url(&json!({"AllowOrigins": "*", "AllowMethods": ["*"]})).unwrap();
        let mut headers = HeaderMap::new();
        open.answered(&asked("https://app.example", "", ""), &mut headers);
        assert_eq!((&headers["access-control-allow-origin"], headers.len()), (&HeaderValue::from_static("*"), 1));
        let with_credentials = Cors { credentials: true, ..open };
        let mut headers = HeaderMap::new();
        with_credentials.answered(&asked("https://app.example", "", ""), &mut headers);
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
    fn what_lambda_refuses_is_refused() {
        for (cors, named) in [
            (json!({"AllowMethods": ["OPTIONS"]}), "OPTIONS"),
            (json!({"AllowMethods": ["GET", "PUT", "HEAD", "POST", "PATCH", "DELETE", "*"]}), "more than 6"),
            (json!({"MaxAge": 86_401}), "MaxAge"),
            (json!({"MaxAge": "long"}), "MaxAge"),
            (json!({"AllowHeaders": [1]}), "AllowHeaders"),
        ] {
            let refused = Cors::of_url(&cors).unwrap_err();
            assert!(refused.contains(named), "{cors}: {refused}");
        }
    }
}
