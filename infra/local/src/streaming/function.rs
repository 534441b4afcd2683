//! What the local AWS says of the deployed function.

use std::{collections::BTreeMap, time::Duration};

use reqwest::Method;
use serde_json::Value;

use crate::{
    Error, Result,
    aws::{Aws, text_at},
    cors::Cors,
    deploy::{STACK, variables},
};

/// A function with a URL.
#[derive(Debug, Clone, Default)]
pub(super) struct Function {
    pub(super) name: String,
    pub(super) arn: String,
    pub(super) role: String,
    /// In megabytes.
    pub(super) memory: u64,
    pub(super) time_out: Duration,
    /// The variables of its environment, but for Lambda's own.
    pub(super) variables: BTreeMap<String, String>,
    /// Host of its URL.
    pub(super) domain: String,
    pub(super) cors: Option<Cors>,
    /// Whether everybody may call it.
    pub(super) open: bool,
}

impl Function {
    /// The function `name` of the stack; nothing if it has no URL.
    ///
    /// # Errors
    /// Also for a URL that does not stream, and for what Lambda would refuse.
    pub(super) async fn deployed(aws: &Aws, name: &str) -> Result<Option<Self>> {
        let name = format!("{STACK}-{name}");
        let Some(url) = read(aws, &format!("/2021-10-31/functions/{name}/url")).await? else { return Ok(None) };
        let text = |pointer| url.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
        if text("/InvokeMode") != "RESPONSE_STREAM" {
            return Err(Error::Stack(format!("the URL of {name} has not the InvokeMode RESPONSE_STREAM")));
        }
        let cors = url.get("Cors").map(Cors::of_url).transpose();
        let cors = cors.map_err(|refused| Error::Stack(format!("Cors of the URL of {name}: {refused}")))?;
        let action = "GetFunctionConfiguration";
        let path = format!("/2015-03-31/functions/{name}/configuration");
        let configuration = read(aws, &path).await?.unwrap_or_default();
        let number = |pointer| configuration.pointer(pointer).and_then(Value::as_u64);
        let time_out = number("/Timeout").ok_or_else(|| missing(action, "Timeout"))?;
        let policy = read(aws, &format!("/2015-03-31/functions/{name}/policy")).await?;
        let host = text("/FunctionUrl").trim_start_matches("https://").trim_end_matches('/');
        Ok(Some(Self {
            arn: text_at(&configuration, "/FunctionArn", action)?.to_owned(),
            role: text_at(&configuration, "/Role", action)?.to_owned(),
            memory: number("/MemorySize").ok_or_else(|| missing(action, "MemorySize"))?,
            time_out: Duration::from_secs(time_out),
            variables: variables(&configuration),
            domain: host.to_owned(),
            cors,
            open: text("/AuthType") == "NONE" && policy.is_some_and(|policy| lets_everybody_in(&policy)),
            name,
        }))
    }
}

async fn read(aws: &Aws, path: &str) -> Result<Option<Value>> {
    match aws.rest("lambda", Method::GET, path, Vec::new()).await {
        Ok(text) => Ok(Some(serde_json::from_str(&text).unwrap_or_default())),
        Err(Error::Aws { status: 404, .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

fn missing(action: &str, field: &'static str) -> Error {
    Error::AwsAnswer { action: action.to_owned(), field }
}

/// A function without signatures needs both permissions for everybody, or Lambda answers 403.
fn lets_everybody_in(policy: &Value) -> bool {
    let policy = policy.get("Policy").and_then(Value::as_str).unwrap_or_default();
    let policy: Value = serde_json::from_str(policy).unwrap_or_default();
    let statements = policy.get("Statement").and_then(Value::as_array);
    let granted = |action: &str| {
        statements.into_iter().flatten().any(|statement| {
            let principal = statement.get("Principal");
            let everybody = principal.is_some_and(|principal| principal == "*" || principal["AWS"] == "*");
            everybody && statement["Effect"] == "Allow" && statement["Action"] == action
        })
    };
    granted("lambda:InvokeFunctionUrl") && granted("lambda:InvokeFunction")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn policy(actions: &[&str]) -> Value {
        let statements: Vec<Value> = actions
            .iter()
            .map(|action| json!({"Effect": "Allow", "Principal": {"AWS": "*"}, "Action": action}))
            .collect();
        json!({"Policy": json!({"Statement": statements}).to_string()})
    }

    #[test]
    fn a_function_is_open_with_both_permissions_only() {
        assert!(lets_everybody_in(&policy(&["lambda:InvokeFunctionUrl", "lambda:InvokeFunction"])));
        assert!(!lets_everybody_in(&policy(&["lambda:InvokeFunctionUrl"])));
        assert!(!lets_everybody_in(&policy(&["lambda:InvokeFunction"])));
        assert!(!lets_everybody_in(&json!({})));
    }
}
