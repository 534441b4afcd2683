//! Resources that outlive a stack, and the table changes that an update allows.

use serde_json::{Value, json};
use tests::Template;

use super::source::read;
use crate::deployment::evaluate;

/// `CloudFormation` accepts `RetainExceptOnCreate` only as a deletion policy, not as a replacement policy.
#[test]
fn kept_resources_do_not_outlive_a_failed_creation() {
    let template = Template::read();
    let mut kept = Vec::new();
    for (id, resource) in template.0["Resources"].as_object().unwrap() {
        let policies = (resource["DeletionPolicy"].as_str(), resource["UpdateReplacePolicy"].as_str());
        match policies {
            (None, None) => {}
            (Some("RetainExceptOnCreate"), Some("Retain")) => kept.push(id.as_str()),
            _ => panic!(
                "{id}: kept, it has DeletionPolicy: RetainExceptOnCreate and UpdateReplacePolicy: Retain, not {policies:?}"
            ),
        }
        // The last two are shared by all REST APIs of the account.
        let named = ["ToolTokenSecret", "ApiGatewayLogsRole", "ApiGatewayAccount"].contains(&id.as_str());
        assert_eq!(policies.0.is_some(), named || resource["Type"] == "AWS::DynamoDB::Table", "{id}");
        // A protected table could not be removed after a failed creation.
        if resource["Type"] == "AWS::DynamoDB::Table" {
            let protected = &resource["Properties"]["DeletionProtectionEnabled"];
            assert_eq!(*protected, json!({"Fn::If": ["ProtectsTables", true, false]}), "{id}");
        }
    }
    assert!(kept.len() > 20, "{kept:?}");
    let first = json!({"Fn::Equals": [{"Ref": "FirstDeployment"}, "false"]});
    assert!(template.0["Conditions"]["ProtectsTables"]["Fn::And"].as_array().unwrap().contains(&first));
}

fn impossible(before: &Value, after: &Value) -> Vec<String> {
    let told = evaluate("import template\nprint(json.dumps(template.impossible(*given)))", &json!([before, after]));
    serde_json::from_value(told).unwrap()
}

#[test]
fn the_last_release_can_be_updated_to_this_template() {
    let released: Value = serde_json::from_str(&read("infra/deployment/released-tables.json")).unwrap();
    let now = evaluate("import template\nprint(json.dumps(template.tables(template.ours())))", &json!(null));
    assert_eq!(
        impossible(&released, &now),
        Vec::<String>::new(),
        "put one index into this release and the other into the next; at a release, make released-tables"
    );
}

#[test]
fn an_update_makes_or_deletes_one_index_of_a_table() {
    let table = |indexes: Value| json!({"key": ["id S HASH"], "local_indexes": {}, "indexes": indexes});
    let index = |key: &str| json!([[format!("{key} S HASH")], {"ProjectionType": "ALL"}]);
    let before = json!({"T": table(json!({"by_a": index("a")}))});
    let told = |after: Value| {
        impossible(&before, &json!({"T": after, "New": table(json!({"x": index("x"), "y": index("y")}))}))
    };

    let fine: [Value; 3] = [json!({"by_a": index("a")}), json!({"by_a": index("a"), "by_b": index("b")}), json!({})];
    for indexes in fine {
        assert_eq!(told(table(indexes.clone())), Vec::<String>::new(), "{indexes}");
    }
    let refused = [
        (json!({"by_a": index("a"), "by_b": index("b"), "by_c": index("c")}), "makes by_b and makes by_c"),
        (json!({"by_b": index("b")}), "makes by_b and deletes by_a"),
        (json!({"by_a": index("b")}), "the index by_a changes its key"),
        (
            json!({"by_a": [["a S HASH"], {"ProjectionType": "KEYS_ONLY"}]}),
            "the index by_a changes its key or what it holds",
        ),
    ];
    for (indexes, expected) in refused {
        let told = told(table(indexes.clone()));
        assert!(told.len() == 1 && told[0].contains(expected), "{indexes}: {told:?}");
    }
    let mut other = table(json!({"by_a": index("a")}));
    other["key"] = json!(["id S HASH", "part S RANGE"]);
    assert!(told(other)[0].contains("make another table"));
    assert_eq!(impossible(&before, &json!({})), Vec::<String>::new(), "a table that leaves the template is kept");
}

/// `template.tables` returns key and indexes as DynamoDB has them.
#[test]
fn tables_are_read_from_the_template_with_key_and_indexes() {
    let now = evaluate("import template\nprint(json.dumps(template.tables(template.ours())))", &json!(null));
    assert_eq!(now["AgentToolsTable"]["key"], json!(["agent_id S HASH", "tool_id S RANGE"]));
    assert_eq!(now["ThreadsTable"]["indexes"]["by_organization"][1], json!({"ProjectionType": "KEYS_ONLY"}));
}
