//! The REST API of the streamed chat: faults that cfn-lint and the local AWS do not notice.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write,
};

use ring::digest::{SHA256, digest};
use serde_json::{Value, json};
use tests::Template;

/// API Gateway's limit of a stream, in milliseconds.
const LONGEST_STREAM: u64 = 900_000;

fn operations(template: &Template) -> Vec<(String, String, Value)> {
    let paths =
        template.resources("AWS::ApiGateway::RestApi")["StreamApi"]["Body"]["paths"].as_object().unwrap().clone();
    let of_path = |(path, methods): (String, Value)| {
        let methods = methods.as_object().unwrap().clone().into_iter();
        let methods = methods.filter(|(method, _)| method != "parameters");
        methods
            .map(move |(method, operation)| (path.clone(), method.to_ascii_uppercase(), operation))
            .collect::<Vec<_>>()
    };
    paths.into_iter().flat_map(of_path).collect()
}

#[test]
fn no_function_has_an_address_without_a_gateway_before_it() {
    let template = Template::read();
    assert!(template.resources("AWS::Lambda::Url").is_empty(), "anybody with the address takes executions from calls");
    for (id, permission) in template.resources("AWS::Lambda::Permission") {
        assert_ne!(permission["Principal"], "*", "{id}");
    }
}

#[test]
fn the_streaming_door_streams_and_answers_preflights_without_a_function() {
    let template = Template::read();
    let api = template.resources("AWS::ApiGateway::RestApi")["StreamApi"].clone();
    // Other endpoint types end a stream after 30 s of silence.
    assert_eq!(api["EndpointConfiguration"], json!({"Types": ["REGIONAL"]}));
    let operations = operations(&template);
    assert!(operations.len() > 10, "the operations were found");
    for (path, method, operation) in &operations {
        let integration = &operation["x-amazon-apigateway-integration"];
        if method == "OPTIONS" {
            assert_eq!(integration["type"], "mock", "{path}: a preflight would take an execution");
            assert_eq!(integration["requestTemplates"]["application/json"], "{\"statusCode\": 200}", "{path}");
            let template = json!({"Fn::FindInMap": ["StreamApi", "Preflight", "Template"]});
            assert_eq!(
                integration["responses"]["default"]["responseTemplates"]["application/json"], template,
                "{path}"
            );
            continue;
        }
        assert_eq!(
            (&integration["type"], &integration["httpMethod"], &integration["responseTransferMode"]),
            (&json!("aws_proxy"), &json!("POST"), &json!("STREAM")),
            "{path}"
        );
        let uri = integration["uri"]["Fn::Sub"].as_str().unwrap();
        assert_eq!(
            uri,
            "arn:${AWS::Partition}:apigateway:${AWS::Region}:lambda:path/2021-11-15/functions/${StreamFunction.Arn}/response-streaming-invocations"
        );
        let longest = integration["timeoutInMillis"].as_u64().unwrap();
        let function = template.resources("AWS::Serverless::Function")["StreamFunction"]["Timeout"].as_u64().unwrap();
        assert!(longest <= LONGEST_STREAM && function * 1000 < longest, "{path}: the function ends first and says why");
        let preflight = operations.iter().any(|(other, method, _)| other == path && method == "OPTIONS");
        assert!(preflight, "{path}: every request of a page is preflighted");
    }
}

/// The same text for equal values, independent of the order of members.
fn ordered(value: &Value) -> String {
    match value {
        Value::Object(members) => {
            let members: BTreeMap<&String, String> =
                members.iter().map(|(name, value)| (name, ordered(value))).collect();
            format!("{members:?}")
        }
        Value::Array(items) => format!("{:?}", items.iter().map(ordered).collect::<Vec<_>>()),
        plain => plain.to_string(),
    }
}

/// A stage shows the API as of its deployment; `CloudFormation` replaces a deployment only under another name.
#[test]
fn the_deployments_id_follows_its_content() {
    let template = Template::read();
    let api = &template.resources("AWS::ApiGateway::RestApi")["StreamApi"]["Body"];
    let shown = [api, &template.0["Mappings"]["StreamApi"]].map(ordered);
    let digest = digest(&SHA256, shown.concat().as_bytes());
    let short = digest.as_ref()[..4].iter().fold(String::new(), |mut hex, byte| {
        write!(hex, "{byte:02x}").unwrap();
        hex
    });
    let wanted = format!("StreamDeployment{short}");
    let there: Vec<&str> = template.resources("AWS::ApiGateway::Deployment").into_keys().collect();
    assert_eq!(there, [wanted.as_str()], "StreamApi was changed: rename its deployment in infra/template.yaml");
    assert_eq!(template.resources("AWS::ApiGateway::Stage")["StreamStage"]["DeploymentId"], json!({"Ref": wanted}));
}

/// Parameters reach preflights through stage variables: both sides use the same names, and API Gateway accepts the
/// values.
#[test]
fn the_preflights_template_reads_the_stages_variables() {
    let template = Template::read();
    let stage = template.deployed(&[]).properties("StreamStage").unwrap();
    let variables = stage["Variables"].as_object().unwrap();
    let preflight = template.0["Mappings"]["StreamApi"]["Preflight"]["Template"].as_str().unwrap();
    let read: BTreeSet<&str> = preflight
        .split("$stageVariables.")
        .skip(1)
        .map(|rest| rest.split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_').next().unwrap())
        .collect();
    // The function reads the last variable.
    let known: BTreeSet<&str> =
        variables.keys().map(String::as_str).filter(|name| *name != "exposed_headers").collect();
    assert_eq!(read, known);
    let count = |word: &str| preflight.matches(word).count();
    assert_eq!(count("#if(") + count("#foreach("), count("#end"), "each ends");
    assert!(preflight.lines().all(|line| line.starts_with('#')), "a body is nothing but empty lines");
    for parameter in ["DashboardOrigins", "StreamOrigins"] {
        let declared = &template.0["Parameters"][parameter];
        assert_eq!(
            (&declared["Default"], &declared["MaxLength"]),
            (&json!(""), &json!(512)),
            "{parameter}: a stage's variable"
        );
    }
}

/// API Gateway rejects a stage with a log unless the account has a role for it; an account has only one such role.
#[test]
fn the_access_log_has_its_role_unless_the_account_has_one() {
    let template = Template::read();
    let resources = &template.0["Resources"];
    assert_eq!(resources["StreamStage"]["Metadata"]["Role"]["Fn::If"][1], json!({"Ref": "ApiGatewayAccount"}));
    for id in ["ApiGatewayAccount", "ApiGatewayLogsRole"] {
        let resource = &resources[id];
        assert_eq!(resource["Condition"], "CreatesApiGatewayLogRole", "{id}");
    }
    let settings = &resources["StreamStage"]["Properties"]["AccessLogSetting"];
    assert_eq!(settings["DestinationArn"], json!({"Fn::GetAtt": "StreamApiLogs.Arn"}));
}
