//! Reads the deployed function's settings from the local AWS.

use std::{collections::BTreeMap, time::Duration};

use reqwest::Method;
use serde_json::Value;

use crate::{
    Error, Result,
    aws::{Aws, text_at},
    cors::Cors,
    deploy::{STACK, variables},
    lambda::{Answers, Configuration},
};

use super::{STAGE, event::Stage, routes::Routes};

#[derive(Debug, Clone, Default)]
pub(super) struct Function {
    pub(super) configuration: Configuration,
    pub(super) role: String,
    /// Its environment variables, without Lambda's own.
    pub(super) variables: BTreeMap<String, String>,
    pub(super) stage: Stage,
    pub(super) routes: Routes,
    pub(super) cors: Cors,
    /// The methods and paths for which the API may invoke the function, as patterns of `METHOD/path`.
    pub(super) granted: Vec<String>,
}

impl Function {
    /// The function `name` of the stack; `None` if there is no REST API of that name.
    ///
    /// # Errors
    /// Also for an integration that does not stream, and for settings that API Gateway would reject.
    pub(super) async fn deployed(aws: &Aws, name: &str) -> Result<Option<Self>> {
        let name = format!("{STACK}-{name}");
        let Some(stage) = stage(aws, &name).await? else { return Ok(None) };
        let refused = |refused| Error::Stack(format!("the REST API {name}: {refused}"));
        let cors = Cors::of_stage(&stage.variables).map_err(refused)?;
        let resources = format!("/restapis/{}/resources?embed=methods&limit=500", stage.api);
        let routes = Routes::read(&read(aws, "apigateway", &resources).await?.unwrap_or_default()).map_err(refused)?;
        let action = "GetFunctionConfiguration";
        let path = format!("/2015-03-31/functions/{name}/configuration");
        let configuration = read(aws, "lambda", &path).await?.unwrap_or_default();
        let number = |pointer| configuration.pointer(pointer).and_then(Value::as_u64);
        let time_out = number("/Timeout").ok_or_else(|| missing(action, "Timeout"))?;
        let policy = read(aws, "lambda", &format!("/2015-03-31/functions/{name}/policy")).await?.unwrap_or_default();
        Ok(Some(Self {
            configuration: Configuration {
                name,
                arn: text_at(&configuration, "/FunctionArn", action)?.to_owned(),
                memory: number("/MemorySize").ok_or_else(|| missing(action, "MemorySize"))?,
                time_out: Duration::from_secs(time_out),
                answers: Answers::Streamed,
            },
            role: text_at(&configuration, "/Role", action)?.to_owned(),
            variables: variables(&configuration),
            granted: granted(&policy, &stage.api),
            stage,
            routes,
            cors,
        }))
    }
}

/// The only stage of the REST API `name`; `None` if there is no such API.
async fn stage(aws: &Aws, name: &str) -> Result<Option<Stage>> {
    let apis = read(aws, "apigateway", "/restapis?limit=500").await?.unwrap_or_default();
    let Some(api) = items(&apis).find(|api| api["name"] == name) else { return Ok(None) };
    let api = text_at(api, "/id", "GetRestApis")?.to_owned();
    let stages = read(aws, "apigateway", &format!("/restapis/{api}/stages")).await?.unwrap_or_default();
    let stage = items(&stages).next().ok_or_else(|| missing("GetStages", "item"))?;
    let variables = stage.get("variables").and_then(Value::as_object).into_iter().flatten();
    let variables = variables.filter_map(|(name, value)| Some((name.clone(), value.as_str()?.to_owned()))).collect();
    if stage["stageName"] != STAGE {
        return Err(Error::Stack(format!("the stage of the REST API {name} is not called {STAGE}")));
    }
    Ok(Some(Stage { api, variables }))
}

fn items(list: &Value) -> impl Iterator<Item = &Value> {
    list.get("item").and_then(Value::as_array).into_iter().flatten()
}

async fn read(aws: &Aws, service: &str, path: &str) -> Result<Option<Value>> {
    match aws.rest(service, Method::GET, path, Vec::new()).await {
        Ok(text) => Ok(Some(serde_json::from_str(&text).unwrap_or_default())),
        Err(Error::Aws { status: 404, .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

fn missing(action: &str, field: &'static str) -> Error {
    Error::AwsAnswer { action: action.to_owned(), field }
}

/// The methods and paths for which `policy` lets this API invoke the function, in any stage.
fn granted(policy: &Value, api: &str) -> Vec<String> {
    let policy = policy.get("Policy").and_then(Value::as_str).unwrap_or_default();
    let policy: Value = serde_json::from_str(policy).unwrap_or_default();
    let statements = policy.get("Statement").and_then(Value::as_array).into_iter().flatten();
    let to_gateway = statements.filter(|statement| {
        statement["Effect"] == "Allow"
            && statement["Action"] == "lambda:InvokeFunction"
            && statement.pointer("/Principal/Service").is_some_and(|service| service == "apigateway.amazonaws.com")
    });
    let source = |statement: &Value| {
        let source = statement.pointer("/Condition/ArnLike/AWS:SourceArn")?.as_str()?;
        Some(source.split_once(&format!(":{api}/*/"))?.1.to_owned())
    };
    to_gateway.filter_map(source).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_permission_is_for_one_api_and_one_route() {
        let statement = |service: &str, source: &str| {
            json!({
                "Effect": "Allow", "Principal": {"Service": service}, "Action": "lambda:InvokeFunction",
                "Condition": {"ArnLike": {"AWS:SourceArn": format!("arn:aws:execute-api:us-east-1:000000000000:{source}")}},
            })
        };
        let gateway = "apigateway.amazonaws.com";
        let statements = [
            statement(gateway, "abc/*/POST/agents/*"),
            statement(gateway, "other/*/GET/agents"),
            statement("events.amazonaws.com", "abc/*/GET/agents"),
        ];
        let policy = json!({"Policy": json!({"Statement": statements}).to_string()});
        assert_eq!(granted(&policy, "abc"), ["POST/agents/*"]);
        assert!(granted(&json!({}), "abc").is_empty());
    }
}
