//! Permissions that operations need, and permissions that roles grant.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use tests::{
    Template,
    aws::{Operation, TABLE_PREFIX},
};

use super::STACK;

/// The permissions of an operation, in IAM's names.
pub(super) fn needed(operation: &Operation) -> Vec<String> {
    let Operation { action, body, .. } = operation;
    let table = |name: &Value| name.as_str().unwrap().strip_prefix(TABLE_PREFIX).unwrap().to_owned();
    match action.as_str() {
        secret if secret.contains("Secret") => {
            let name = body["SecretId"].as_str().or_else(|| body["Name"].as_str());
            vec![format!("secretsmanager:{action} {}", name.unwrap())]
        }
        // Creating a schedule needs permission to pass its sending role.
        "CreateSchedule" | "DeleteSchedule" => {
            let schedule = format!("{}/{}", body["GroupName"].as_str().unwrap(), body["Name"].as_str().unwrap());
            let passed = (operation.action == "CreateSchedule").then(|| "iam:PassRole ScheduledQueueRole".to_owned());
            [format!("scheduler:{} {schedule}", operation.action)].into_iter().chain(passed).collect()
        }
        "SendMessage" | "SendMessageBatch" => {
            let queue = body["QueueUrl"].as_str().unwrap().rsplit('/').next().unwrap();
            vec![format!("sqs:SendMessage {queue}")]
        }
        "TransactWriteItems" => {
            let items = body["TransactItems"].as_array().unwrap().iter().flat_map(|item| item.as_object().unwrap());
            let named = |kind: &str| match kind {
                "ConditionCheck" => "ConditionCheckItem".to_owned(),
                other => format!("{other}Item"),
            };
            items.map(|(kind, item)| format!("dynamodb:{} {}", named(kind), table(&item["TableName"]))).collect()
        }
        "BatchGetItem" | "BatchWriteItem" => {
            let tables = body["RequestItems"].as_object().unwrap().keys();
            tables.map(|name| format!("dynamodb:{action} {}", table(&json!(name)))).collect()
        }
        _ => {
            let index = body["IndexName"].as_str().map(|index| format!("/index/{index}")).unwrap_or_default();
            vec![format!("dynamodb:{action} {}{index}", table(&body["TableName"]))]
        }
    }
}

/// The grants of a role in the same notation, without logs.
pub(super) fn granted(template: &Template, function: &str) -> BTreeSet<String> {
    let role = format!("{}Role", pascal(function));
    let policies = &template.resources("AWS::IAM::Role")[role.as_str()]["Policies"];
    let list = |value: &Value| value.as_array().cloned().unwrap_or_else(|| vec![value.clone()]);
    let mut granted = BTreeSet::new();
    for statement in policies.as_array().unwrap().iter().flat_map(|policy| list(&policy["PolicyDocument"]["Statement"]))
    {
        assert_eq!(statement["Effect"], "Allow");
        for action in list(&statement["Action"]).iter().map(|action| action.as_str().unwrap().to_owned()) {
            if !action.starts_with("logs:") {
                let on = list(&statement["Resource"]);
                granted.extend(on.iter().map(|resource| format!("{action} {}", resource_name(template, resource))));
            }
        }
    }
    granted
}

/// The function's name within the ids of its resources.
pub(super) fn pascal(function: &str) -> String {
    let words = function.split('-').map(|word| format!("{}{}", word[..1].to_ascii_uppercase(), &word[1..]));
    words.collect::<String>()
}

fn resource_name(template: &Template, resource: &Value) -> String {
    let of_stack = |text: &str| text.replace("${AWS::StackName}", STACK);
    let table = |id: &str| {
        let name = &template.resources("AWS::DynamoDB::Table")[id]["TableName"]["Fn::Sub"];
        of_stack(name.as_str().unwrap()).strip_prefix(TABLE_PREFIX).unwrap().to_owned()
    };
    if let Some(attribute) = resource["Fn::GetAtt"].as_str() {
        return match attribute.split_once('.').unwrap() {
            (id, "Arn") if id.ends_with("Queue") => {
                let name = &template.resources("AWS::SQS::Queue")[id]["QueueName"]["Fn::Sub"];
                of_stack(name.as_str().unwrap())
            }
            (id, "Arn") if id.ends_with("Role") => id.to_owned(),
            (id, "Arn") => table(id),
            (id, "Id") => {
                let name = &template.resources("AWS::SecretsManager::Secret")[id]["Name"]["Fn::Sub"];
                of_stack(name.as_str().unwrap())
            }
            _ => panic!("{attribute}"),
        };
    }
    let text = resource["Fn::Sub"].as_str().unwrap();
    if let Some((id, rest)) = text.strip_prefix("${").and_then(|rest| rest.split_once(".Arn}")) {
        return format!("{}{rest}", table(id));
    }
    let named = [":secret:", ":schedule/"].iter().find_map(|kind| text.split_once(kind));
    of_stack(named.unwrap().1)
}

/// Whether a grant covers a need; the grant may end in `*`.
pub(super) fn allows(grant: &str, need: &str) -> bool {
    grant.strip_suffix('*').map_or(grant == need, |start| need.starts_with(start))
}
