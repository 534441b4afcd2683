//! The demo organization from `infra/local/demo.json`: rows, secrets, and the agent's assistant at VAPI's stand-in.

use reqwest::Method;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use shared::actions::token::assistant_proof;

use crate::{
    Error, Result,
    aws::Aws,
    deploy::{Deployed, STACK, create_secret},
    identity::{User, UserPool},
    workspace::Workspace,
};

/// The contents of `demo.json`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Data {
    pub(crate) organization: Organization,
    /// Email of an owner of `organization`.
    pub(crate) user: String,
    /// Emails of users of `organization` with the roles `member` and `viewer`.
    pub(crate) member: String,
    pub(crate) viewer: String,
    /// `sub` of the user in `events/*.json`, another member of `organization`.
    pub(crate) event_user_id: String,
    pub(crate) other_organization: Organization,
    /// Email of an owner of `other_organization`.
    pub(crate) other_user: String,
    pub(crate) agent: Agent,
    pub(crate) phone_number: PhoneNumber,
    pub(crate) twilio: Twilio,
    pub(crate) vapi: Vapi,
    pub(crate) pipedream: Pipedream,
    pub(crate) llm: ApiKey,
    pub(crate) crm: Crm,
    /// Master key of the tools' tokens. Fixed, so that the token in `events/execute.json` stays valid.
    pub(crate) tool_token_key: String,
    /// Items of the table `tools`: two that need no VAPI, each with the item that reserves its name.
    /// `events/delete.json` deletes the second.
    pub(crate) tools: Vec<Value>,
    /// The hook of `events/trigger.json`.
    pub(crate) hook: Hook,
    pub(crate) demo: Demo,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Organization {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) slug: String,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Agent {
    pub(crate) id: String,
    pub(crate) name: String,
    /// Body of VAPI's `POST /assistant`.
    pub(crate) assistant: Value,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct PhoneNumber {
    pub(crate) id: String,
    /// E.164.
    pub(crate) number: String,
    pub(crate) label: String,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Twilio {
    pub(crate) account_sid: String,
    pub(crate) auth_token: String,
    /// A number of the account that is not registered. E.164.
    pub(crate) spare_number: String,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Vapi {
    pub(crate) api_key: String,
    /// Authenticates VAPI's webhooks about calls.
    pub(crate) webhook_bearer: String,
    /// The key of another VAPI account, which no organization uses yet.
    pub(crate) other_api_key: String,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Crm {
    pub(crate) api_key: String,
    pub(crate) customers: Vec<Value>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ApiKey {
    pub(crate) api_key: String,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Pipedream {
    pub(crate) client_id: String,
    pub(crate) client_secret: String,
    pub(crate) project_id: String,
    pub(crate) environment: String,
    /// Connected by `organization`.
    pub(crate) accounts: Vec<PipedreamAccount>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct PipedreamAccount {
    pub(crate) id: String,
    pub(crate) app: String,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Hook {
    pub(crate) id: String,
    /// The name in the hook's address.
    pub(crate) service: String,
    pub(crate) secret_id: String,
    /// Signs the service's events.
    pub(crate) secret: String,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Demo {
    /// Body of `POST /api/{slug}/tools`.
    pub(crate) tool: Value,
    /// The model's arguments for the tool.
    pub(crate) arguments: Map<String, Value>,
    /// The caller's number, E.164.
    pub(crate) caller: String,
}

impl Data {
    pub(crate) fn read(workspace: &Workspace) -> Result<Self> {
        let text = std::fs::read_to_string(workspace.path("infra/local/demo.json"));
        let text = text.map_err(|error| Error::DemoData(error.to_string()))?;
        serde_json::from_str(&text).map_err(|error| Error::DemoData(error.to_string()))
    }
}

/// Loads the services' catalogue through the function `operator`, as on AWS.
pub(crate) async fn load_catalogue(aws: &Aws, files: Map<String, Value>) -> Result<()> {
    let path = format!("/2015-03-31/functions/{STACK}-operator/invocations");
    let event = json!({"files": files}).to_string().into_bytes();
    let answer = aws.rest("lambda", Method::POST, &path, event).await?;
    let report: Value = serde_json::from_str(&answer).unwrap_or_default();
    if report.get("result").is_some_and(|result| result == "loaded") { Ok(()) } else { Err(Error::Catalogue(answer)) }
}

/// Creates the agent's assistant at VAPI's stand-in and stores the proof of its organization there. Returns its id.
pub(crate) async fn create_assistant(http: &reqwest::Client, vapi_url: &str, data: &Data) -> Result<String> {
    let address = format!("{vapi_url}/assistant");
    let id = assistant(http.post(&address).json(&data.agent.assistant), &address, data).await?;
    let organization = data.organization.id.parse().map_err(|error| Error::DemoData(format!("{error}")))?;
    let proof = assistant_proof(&data.tool_token_key, organization, &id);
    let address = format!("{address}/{id}");
    assistant(http.patch(&address).json(&json!({"metadata": {"switchboard": proof}})), &address, data).await
}

/// The assistant's id in the answer of VAPI's stand-in.
async fn assistant(request: reqwest::RequestBuilder, address: &str, data: &Data) -> Result<String> {
    let failed = |source| Error::Http { address: address.to_owned(), source };
    let answer = request.bearer_auth(&data.vapi.api_key).send().await.map_err(failed)?;
    let (status, body) = (answer.status(), answer.text().await.map_err(failed)?);
    let assistant: Value = serde_json::from_str(&body).unwrap_or(Value::Null);
    match assistant.get("id").and_then(Value::as_str) {
        Some(id) if status.is_success() => Ok(id.to_owned()),
        _ => Err(Error::DemoData(format!("VAPI's stand-in refused the assistant: {status} {body}"))),
    }
}

#[derive(Debug, Clone)]
pub(crate) struct Users {
    pub(crate) owner: User,
    pub(crate) member: User,
    pub(crate) viewer: User,
    pub(crate) other_owner: User,
}

impl Users {
    pub(crate) async fn sign_up(pool: &UserPool, aws: &Aws, data: &Data) -> Result<Self> {
        Ok(Self {
            owner: pool.sign_up(aws, &data.user).await?,
            member: pool.sign_up(aws, &data.member).await?,
            viewer: pool.sign_up(aws, &data.viewer).await?,
            other_owner: pool.sign_up(aws, &data.other_user).await?,
        })
    }
}

pub(crate) async fn write(
    aws: &Aws,
    deployed: &Deployed,
    data: &Data,
    assistant_id: &str,
    users: &Users,
) -> Result<()> {
    let now = shared::models::Timestamp::now().to_string();
    let put = async |table: &str, attributes: &[(&str, &str)]| {
        let times = [("created_at", now.as_str()), ("updated_at", now.as_str())];
        let item: Map<String, Value> =
            attributes.iter().chain(&times).map(|(name, value)| ((*name).to_owned(), json!({"S": value}))).collect();
        let request = json!({"TableName": format!("{}{table}", deployed.table_prefix), "Item": item});
        aws.json("dynamodb", "DynamoDB_20120810.PutItem", &request).await.map(drop)
    };
    for Organization { id, name, slug } in [&data.organization, &data.other_organization] {
        put("organizations", &[("id", id), ("name", name), ("slug", slug)]).await?;
        // This item reserves the slug.
        put("organizations", &[("id", &format!("slug#{slug}")), ("organization_id", id)]).await?;
    }
    let (home, other) = (&data.organization, &data.other_organization);
    for (user, organization, role) in [
        (&users.owner.id, home, "owner"),
        (&data.event_user_id, home, "owner"),
        (&users.member.id, home, "member"),
        (&users.viewer.id, home, "viewer"),
        (&users.other_owner.id, other, "owner"),
    ] {
        let member = [("user_id", user.as_str()), ("organization_id", &organization.id), ("role", role)];
        put("organization_members", &member).await?;
    }
    let organization = ("organization_id", home.id.as_str());
    let Agent { id, name, .. } = &data.agent;
    put("agents", &[("id", id), organization, ("name", name), ("external_assistant_id", assistant_id)]).await?;
    // These items reserve the assistant and the number.
    put("agents", &[("id", &format!("assistant#{assistant_id}")), ("agent_id", id)]).await?;

    let PhoneNumber { id, number, label } = &data.phone_number;
    let Twilio { account_sid, auth_token, .. } = &data.twilio;
    let credentials = json!({"account_sid": account_sid, "auth_token": auth_token});
    let secret = create_secret(aws, &format!("{}{id}", deployed.twilio_secret_prefix), &credentials).await?;
    let number = [("id", id.as_str()), organization, ("number", number), ("label", label)];
    let rest = [("agent_id", data.agent.id.as_str()), ("credentials_secret", &secret)];
    put("phone_numbers", &[&number[..], &rest[..]].concat()).await?;
    let guard = format!("number#{}", data.phone_number.number);
    put("phone_numbers", &[("id", &guard), ("phone_number_id", id)]).await?;

    let row = async |table: &str, row: &Value| {
        let item = attribute(row).get("M").cloned().unwrap_or_default();
        let request = json!({"TableName": format!("{}{table}", deployed.table_prefix), "Item": item});
        aws.json("dynamodb", "DynamoDB_20120810.PutItem", &request).await.map(drop)
    };
    for tool in &data.tools {
        row("tools", tool).await?;
    }
    let Hook { id, service, secret_id, secret } = &data.hook;
    let name = format!("{STACK}/organizations/hooks/{}/{id}/{secret_id}", home.id);
    create_secret(aws, &name, &json!({"secret": secret})).await?;
    let hook = json!({
        "id": id, "organization_id": home.id, "service": service, "status": "active", "revision": 0,
        "secrets": [{"id": secret_id, "created_at": now}], "created_at": now, "updated_at": now,
    });
    row("hooks", &hook).await
}

fn attribute(value: &Value) -> Value {
    match value {
        Value::Null => json!({"NULL": true}),
        Value::Bool(value) => json!({"BOOL": value}),
        Value::Number(value) => json!({"N": value.to_string()}),
        Value::String(value) => json!({"S": value}),
        Value::Array(items) => json!({"L": items.iter().map(attribute).collect::<Vec<_>>()}),
        Value::Object(fields) => {
            json!({"M": fields.iter().map(|(name, field)| (name.clone(), attribute(field))).collect::<Map<_, _>>()})
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_demo_data_can_be_read_and_keeps_the_organizations_apart() {
        let data = Data::read(&Workspace::find().unwrap()).unwrap();
        assert_ne!(data.organization.id, data.other_organization.id);
        assert_ne!(data.organization.slug, data.other_organization.slug);
        assert_ne!(data.user, data.other_user);
        assert!(data.phone_number.number.parse::<shared::models::E164>().is_ok());
        assert!(data.demo.caller.parse::<shared::models::E164>().is_ok());
    }

    #[test]
    fn the_seeded_tools_are_rows_that_the_functions_can_read() {
        let data = Data::read(&Workspace::find().unwrap()).unwrap();
        assert_eq!(data.tools.len(), 4, "two tools, each with the item of its name");
        for pair in data.tools.chunks(2) {
            let [tool, name] = pair else { panic!("a tool and the item of its name") };
            let read: shared::models::Tool = serde_json::from_value(tool.clone()).unwrap();
            assert_eq!(read.organization_id.to_string(), data.organization.id);
            assert_eq!(name["tool_id"], tool["id"]);
            assert!(name["id"].as_str().unwrap().ends_with(tool["name"].as_str().unwrap()));
        }
    }

    #[test]
    fn every_kind_of_json_has_its_attribute() {
        assert_eq!(
            attribute(&json!({"a": [1, true, null], "b": "c"})),
            json!({"M": {"a": {"L": [{"N": "1"}, {"BOOL": true}, {"NULL": true}]}, "b": {"S": "c"}}})
        );
    }
}
