//! Requests to the local AWS in its three protocols (JSON, query, REST).
//!
//! The local AWS does not verify the signature of its root key `test`, so the header names key and service and signs
//! nothing. The functions do sign, with the credentials of their roles.

use std::time::Duration;

use reqwest::{Method, RequestBuilder};
use serde_json::Value;

use crate::{Error, Result};

pub(crate) const REGION: &str = "us-east-1";
pub(crate) const ACCESS_KEY: &str = "test";
pub(crate) const SECRET_KEY: &str = "test";

const TIME_LIMIT: Duration = Duration::from_mins(1);

#[derive(Debug, Clone)]
pub(crate) struct Aws {
    http: reqwest::Client,
    endpoint: String,
}

impl Aws {
    pub(crate) fn new(http: reqwest::Client, endpoint: &str) -> Self {
        Self { http, endpoint: endpoint.to_owned() }
    }

    pub(crate) fn endpoint(&self) -> &str {
        &self.endpoint
    }

    /// The JSON protocol: DynamoDB, Secrets Manager, Cognito, logs. `action` is `DynamoDB_20120810.PutItem`.
    pub(crate) async fn json(&self, service: &str, action: &str, body: &Value) -> Result<Value> {
        let version = if service == "dynamodb" { "1.0" } else { "1.1" };
        let request = self
            .request(Method::POST, "/", service)
            .header("content-type", format!("application/x-amz-json-{version}"))
            .header("x-amz-target", action)
            .body(body.to_string());
        let text = self.send(request, action).await?;
        Ok(serde_json::from_str(&text).unwrap_or(Value::Null))
    }

    /// The query protocol, answered in XML: `CloudFormation`.
    pub(crate) async fn query(&self, service: &str, action: &str, parameters: &[(String, String)]) -> Result<String> {
        let mut form = vec![("Action", action)];
        form.extend(parameters.iter().map(|(name, value)| (name.as_str(), value.as_str())));
        self.send(self.request(Method::POST, "/", service).form(&form), action).await
    }

    /// The REST protocols: S3, Lambda.
    pub(crate) async fn rest(&self, service: &str, method: Method, path: &str, body: Vec<u8>) -> Result<String> {
        let what = format!("{method} {path}");
        self.send(self.request(method, path, service).body(body), &what).await
    }

    fn request(&self, method: Method, path: &str, service: &str) -> RequestBuilder {
        let now = shared::models::Timestamp::now().to_string();
        let digits: String = now.chars().filter(char::is_ascii_digit).collect();
        let (date, time) = (digits.get(..8).unwrap_or_default(), digits.get(8..14).unwrap_or_default());
        let scope = format!("{ACCESS_KEY}/{date}/{REGION}/{service}/aws4_request");
        self.http
            .request(method, format!("{}{path}", self.endpoint))
            .timeout(TIME_LIMIT)
            .header("x-amz-date", format!("{date}T{time}Z"))
            .header("authorization", format!("AWS4-HMAC-SHA256 Credential={scope}, SignedHeaders=host, Signature=0"))
    }

    async fn send(&self, request: RequestBuilder, action: &str) -> Result<String> {
        let unreachable = |source| Error::Http { address: self.endpoint.clone(), source };
        let answer = request.send().await.map_err(unreachable)?;
        let status = answer.status();
        let text = answer.text().await.map_err(unreachable)?;
        if status.is_success() {
            return Ok(text);
        }
        let message = message(&text);
        Err(Error::Aws { action: action.to_owned(), status: status.as_u16(), message })
    }
}

/// The message of an error answer in JSON or XML; otherwise the beginning of the body.
fn message(body: &str) -> String {
    let json: Value = serde_json::from_str(body).unwrap_or(Value::Null);
    ["message", "Message"]
        .iter()
        .find_map(|key| json.get(key)?.as_str().map(str::to_owned))
        .or_else(|| xml_texts(body, "Message").into_iter().next())
        .unwrap_or_else(|| body.chars().take(300).collect())
}

/// The texts of all elements `tag` without child elements, in document order.
pub(crate) fn xml_texts(xml: &str, tag: &str) -> Vec<String> {
    let (open, close) = (format!("<{tag}>"), format!("</{tag}>"));
    xml.split(&open)
        .skip(1)
        .filter_map(|rest| rest.split_once(&close))
        .map(|(text, _after)| {
            let text = text.replace("&lt;", "<").replace("&gt;", ">").replace("&quot;", "\"");
            text.replace("&#39;", "'").replace("&apos;", "'").replace("&amp;", "&")
        })
        .collect()
}

pub(crate) fn text_at<'a>(answer: &'a Value, pointer: &'static str, action: &str) -> Result<&'a str> {
    answer
        .pointer(pointer)
        .and_then(Value::as_str)
        .ok_or_else(|| Error::AwsAnswer { action: action.to_owned(), field: pointer })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn xml_texts_come_in_order_and_unescaped() {
        let xml = "<R><member><K>a</K></member><member><K>b &amp;lt; &quot;c&quot;</K></member></R>";
        assert_eq!(xml_texts(xml, "K"), ["a", "b &lt; \"c\""]);
        assert!(xml_texts(xml, "Missing").is_empty());
    }

    #[test]
    fn the_sentence_of_an_error_is_found_in_json_and_xml() {
        assert_eq!(message(r#"{"__type":"X","message":"no such table"}"#), "no such table");
        assert_eq!(message("<ErrorResponse><Error><Message>exists</Message></Error></ErrorResponse>"), "exists");
        assert_eq!(message("gone"), "gone");
    }
}
