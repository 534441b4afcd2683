//! `make destroy`, and a deployment after it.

use serde_json::{Value, json};
use shared::models::Timestamp;

use super::account::Account;

const SURE: (&str, &str) = ("CONFIRM", "shop");

#[tokio::test(flavor = "multi_thread")]
async fn destroying_keeps_the_data_and_the_next_deployment_takes_it_over() {
    let account = Account::new().await;
    account.deploy(&[]).succeeded();
    account.set_at(&["secrets", "shop/twilio/1"], json!({}));
    // Another stack with the same prefix, and its table.
    account.set_at(&["tables", "shop-test-agents"], json!({"protected": false}));

    account.destroy(&[("STACK", "")]).failed_with(&["STACK is missing: make destroy STACK="]);
    for sure in ["", "Shop", "yes"] {
        account.destroy(&[("CONFIRM", sure)]).failed_with(&["is not shop: nothing was deleted"]);
    }
    let asked = account.destroy(&[]);
    asked.failed_with(&["Will be deleted", "Is kept", "shop-agents", "shop/twilio/1", "CONFIRM=shop does it unasked"]);
    asked.says("queues, with what waits in them: runs of automations stop");
    asked.says("and the ends of runs' pauses");
    assert!(account.calls("cloudformation delete-stack").is_empty());

    let destroyed = account.destroy(&[SURE]);
    destroyed.succeeded();
    destroyed.says("make deploy STACK=shop CODE_BUCKET=code ADOPT=1");
    destroyed.says("make destroy STACK=shop DATA=delete");
    destroyed.says("unfinished runs of automations then go on");
    destroyed.says("aws s3 rm --recursive s3://code/shop/");
    assert!(!destroyed.output.contains("shop-test-agents"), "{destroyed}");
    assert_eq!(account.state()["tables"]["shop-agents"]["protected"], true);
    let kept: Vec<String> = account.state()["secrets"].as_object().unwrap().keys().cloned().collect();
    assert_eq!(kept, ["shop/tool-token", "shop/twilio/1"]);

    account.deploy(&[]).failed_with(&["exist already", "ADOPT=1", "DATA=delete", "STACK=<another name>"]);
    account.deploy(&[("ADOPT", "1")]).succeeded();
    let imports = account.calls("cloudformation create-change-set");
    assert!(!imports[0].file("--cli-input-json").open);
    assert!(account.state()["stacks"][account.stack_id()]["resources"]["AgentsTable"].is_array());
    assert_eq!(account.state()["tables"]["shop-agents"]["protected"], true);
}

/// Their messages, and the schedules that end long pauses, went with the earlier stack.
#[tokio::test(flavor = "multi_thread")]
async fn unfinished_runs_go_on_after_an_adoption() {
    let account = Account::new().await;
    account.deploy(&[]).succeeded();
    account.destroy(&[SURE]).succeeded();
    let row = |id: u32, part: &str, status: &str, resume_at: i64| {
        json!({
            "id": {"S": id.to_string()}, "part": {"S": part}, "status": {"S": status},
            "organization_id": {"S": format!("o{}", id % 2)}, "resume_at": {"N": resume_at.to_string()},
        })
    };
    let later = Timestamp::now().as_millis();
    let mut items: Vec<Value> = (0..11).map(|id| row(id, "run", "running", 0)).collect();
    items
        .extend([row(11, "run", "queued", later + 500_000), row(12, "run", "waiting_for_approval", later + 9_000_000)]);
    items.extend([row(13, "run", "completed", 0), row(14, "0001#reply", "running", 0)]);
    let four_days = 4 * 24 * 60 * 60 * 1_000;
    for (id, held_until) in [(15, later - four_days - 60_000), (16, later - four_days + 600_000)] {
        let mut interrupted = row(id, "run", "running", 0);
        interrupted["lease_until"] = json!({"N": held_until.to_string()});
        items.push(interrupted);
    }
    account.set_at(&["tables", "shop-automation_runs", "items"], json!(items));

    account.set("unsent", json!("try again"));
    let unsent = account.deploy(&[("ADOPT", "1")]);
    unsent.failed_with(&[
        "Everything is deployed",
        "SQS refused 1 messages: try again",
        "STACK=shop ADOPT=1    does it",
    ]);
    account.set("unsent", json!(null));
    let deployed = account.deploy(&[("ADOPT", "1")]);
    deployed.succeeded();
    deployed.says("14 unfinished runs of automations are on their queue again");
    deployed.says("1 are not: they were interrupted more than four days ago, and might repeat an effect.");
    deployed.says("/runs/{id}/cancel): 15");
    let messages = account.state()["messages"].as_array().unwrap().clone();
    assert_eq!(messages.len(), 14);
    for (id, message) in (0..13).chain([16]).zip(&messages) {
        let organization = format!("o{}", id % 2);
        let body: Value = serde_json::from_str(message["MessageBody"].as_str().unwrap()).unwrap();
        assert_eq!(body, json!({"organization_id": organization, "run_id": id.to_string()}));
        assert_eq!(
            (&message["MessageGroupId"], &message["queue"]),
            (&json!(organization), &json!("https://sqs/shop-runs"))
        );
        let expected = match id {
            11 => 200..=501,
            12 => 900..=900,
            _ => 0..=0,
        };
        assert!(expected.contains(&message["DelaySeconds"].as_i64().unwrap()), "{message}");
    }
    account.deploy(&[]).succeeded();
    assert_eq!(account.state()["messages"].as_array().unwrap().len(), 14, "only an adoption queues runs");
}

#[tokio::test(flavor = "multi_thread")]
async fn tables_of_another_release_are_not_taken_over_and_unprotected_ones_are_protected_again() {
    let account = Account::new().await;
    account.deploy(&[]).succeeded();
    account.destroy(&[SURE]).succeeded();
    let kept = account.state()["tables"].clone();
    account.set_at(&["tables", "shop-agents", "shape", "GlobalSecondaryIndexes"], json!([]));
    account.set_at(&["tables", "shop-calls", "expires"], json!(null));
    account.deploy(&[("ADOPT", "1")]).failed_with(&[
        "These 2 things",
        "shop-agents is of another release (it lacks the index by_organization): check that release out, deploy it with \
         ADOPT=1, then upgrade",
        "shop-calls is of another release (its rows do not expire by expires_at",
    ]);
    assert!(account.calls("cloudformation create-change-set").is_empty());

    account.set("tables", kept);
    account.set_at(&["tables", "shop-agents", "protected"], json!(false));
    account.deploy(&[("ADOPT", "1")]).succeeded();
    assert_eq!(account.state()["tables"]["shop-agents"]["protected"], true);
    assert_eq!(account.state()["tables"]["shop-calls"]["protected"], true);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_adoption_that_fails_leaves_no_stack_behind() {
    let account = Account::new().await;
    account.deploy(&[]).succeeded();
    account.destroy(&[SURE]).succeeded();
    account.set("unimportable", json!("the table shop-agents is being updated"));
    account
        .deploy(&[("ADOPT", "1")])
        .failed_with(&["They cannot be taken over: the table shop-agents is being updated", "nothing was made"]);
    for stack in account.state()["stacks"].as_object().unwrap().values() {
        assert_eq!(stack["StackStatus"], "DELETE_COMPLETE", "{}", stack["StackId"]);
    }
    account.set("unimportable", json!(null));
    account.deploy(&[("ADOPT", "1")]).succeeded();
}

#[tokio::test(flavor = "multi_thread")]
async fn protected_tables_of_a_stack_that_cannot_be_deployed_any_more_are_unprotected_by_hand() {
    let account = Account::new().await;
    account.deploy(&[]).succeeded();
    account.set("undeletable", json!("CreateToolRole"));
    account.destroy(&[SURE]).failed_with(&["make destroy STACK=shop goes on"]);
    let refused = account.destroy(&[SURE, ("DATA", "delete")]);
    refused.failed_with(&["are protected against deletion", "for table in shop-", "--no-deletion-protection-enabled"]);
    assert!(!refused.output.contains("make deploy"), "a stack that is DELETE_FAILED takes no deployment: {refused}");
}

#[tokio::test(flavor = "multi_thread")]
async fn data_is_deleted_only_on_request_and_if_unprotected() {
    let account = Account::new().await;
    account.deploy(&[]).succeeded();
    account.set_at(&["secrets", "shop/organizations/vapi/1"], json!({}));
    account.set_at(&["tables", "shop-test-agents"], json!({"protected": false}));
    let data = ("DATA", "delete");
    account.destroy(&[SURE, ("DATA", "all")]).failed_with(&["DATA is 'all'"]);
    account.destroy(&[SURE, data]).failed_with(&[
        "are protected against deletion",
        "DeletionProtection=false",
        "make deploy",
    ]);
    account.set_at(&["stacks", &account.stack_id(), "EnableTerminationProtection"], json!(true));
    account.destroy(&[SURE]).failed_with(&["update-termination-protection --stack-name shop --no-enable"]);
    account.set_at(&["stacks", &account.stack_id(), "EnableTerminationProtection"], json!(false));

    account.parameters(&format!("{}DeletionProtection=false\n", account.good()));
    account.deploy(&[]).succeeded();
    account.set("undeletable", json!("CreateToolRole"));
    account
        .destroy(&[SURE, data])
        .failed_with(&["CreateToolRole (AWS::IAM::Role): it is protected", "make destroy STACK=shop goes on"]);
    account.deploy(&[]).failed_with(&["DELETE_FAILED", "make destroy STACK=shop"]);
    account.set("undeletable", json!(null));
    account.destroy(&[SURE, data]).succeeded();
    assert_eq!(account.state()["tables"], json!({"shop-test-agents": {"protected": false}}));
    // The stack's own key would block the next stack; an organization's key can be restored.
    assert_eq!(account.state()["secrets"], json!({"shop/organizations/vapi/1": {"deleted": "30"}}));

    account
        .destroy(&[SURE, data])
        .failed_with(&["There is no stack shop in account 123456789012, region eu-central-1"]);
    account.deploy(&[]).succeeded();
}

#[tokio::test(flavor = "multi_thread")]
async fn the_rest_of_a_stack_can_be_deleted_and_a_pending_secret_is_explained() {
    let account = Account::new().await;
    account.deploy(&[]).succeeded();
    account.destroy(&[SURE]).succeeded();
    account.destroy(&[SURE, ("DATA", "delete")]).failed_with(&[
        "are protected against deletion",
        "for table in shop-",
        "--no-deletion-protection-enabled",
    ]);
    account.set_at(&["secrets", "shop/tool-token", "deleted"], json!("30"));
    account.deploy(&[("ADOPT", "1")]).failed_with(&[
        "the secret shop/tool-token waits for its deletion",
        "aws secretsmanager restore-secret --secret-id shop/tool-token",
        "--force-delete-without-recovery",
    ]);
}

/// Back to a template without this table, which stays; gives its state in the account.
fn back(account: &Account) -> Value {
    let id = account.stack_id();
    let mut stack = account.state()["stacks"][&id].clone();
    let template = stack["template"].as_str().unwrap().to_owned();
    let (before, rest) = template.split_once("  UsageTable:\n").unwrap();
    let (_, after) = rest.split_once("\n\n").unwrap();
    stack["template"] = json!(format!("{before}{after}"));
    stack["resources"].as_object_mut().unwrap().remove("UsageTable").unwrap();
    account.set_at(&["stacks", &id], stack);
    account.state()["tables"]["shop-usage"].clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_table_that_an_older_template_left_is_taken_over_on_the_way_forward() {
    let account = Account::new().await;
    account.deploy(&[]).succeeded();
    let table = back(&account);
    let refused = account.deploy(&[]);
    refused.failed_with(&["shop-usage exist", "make deploy STACK=shop CODE_BUCKET=code ADOPT=1    takes them over"]);
    assert!(!refused.output.contains("delete"), "{refused}");

    let adopts = ("ADOPT", "1");
    account.set_at(&["tables", "shop-usage", "protected"], json!(false));
    account.deploy(&[adopts]).failed_with(&[
        "shop-usage is not protected against deletion, unlike the stack's tables",
        "aws dynamodb update-table --table-name shop-usage --deletion-protection-enabled",
    ]);
    account.set_at(&["tables", "shop-usage", "expires"], json!(null));
    account.deploy(&[adopts]).failed_with(&[
        "shop-usage is of another release",
        "or, if nothing is in it, delete it:",
        "aws dynamodb scan --table-name shop-usage --select COUNT",
        "aws dynamodb delete-table --table-name shop-usage",
    ]);
    account.set_at(&["tables", "shop-usage"], table.clone());

    account.set("unimportable", json!("the table shop-usage is being updated"));
    account.deploy(&[adopts]).failed_with(&[
        "They cannot be taken over: the table shop-usage is being updated",
        "everything is again as it was before (UPDATE_COMPLETE)",
    ]);
    account.set("unimportable", json!(null));
    // An import that began and failed.
    account.set_at(&["stacks", &account.stack_id(), "StackStatus"], json!("IMPORT_ROLLBACK_COMPLETE"));
    account.deploy(&[adopts]).succeeded();
    let stack = account.state()["stacks"][account.stack_id()].clone();
    assert_eq!(
        (&stack["StackStatus"], &stack["resources"]["UsageTable"][0]),
        (&json!("UPDATE_COMPLETE"), &json!("shop-usage"))
    );
    assert_eq!(account.state()["tables"]["shop-usage"], table, "with its protection");
    let import = &account.calls("cloudformation create-change-set")[0];
    assert!(!import.file("--cli-input-json").open && !import.argv.join(" ").contains("VapiApiKey"));
    account.deploy(&[]).succeeded();
}

/// The addresses of S3 end otherwise there.
#[tokio::test(flavor = "multi_thread")]
async fn a_table_is_taken_over_in_china_too() {
    let account = Account::new().await;
    account.set_at(&["buckets", "code"], json!("cn-north-1"));
    let china = ("AWS_REGION", "cn-north-1");
    account.deploy(&[china]).succeeded();
    back(&account);
    account.deploy(&[china, ("ADOPT", "1")]).succeeded();
    let request = account.calls("cloudformation create-change-set")[0].file("--cli-input-json");
    assert!(request.text.contains("https://s3.cn-north-1.amazonaws.com.cn/code/shop/template/"), "{}", request.text);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stack_whose_template_was_deployed_as_json_takes_a_table_over() {
    let account = Account::new().await;
    account.deploy(&[]).succeeded();
    back(&account);
    account.set("templates_in_json", json!(true));
    account.deploy(&[("ADOPT", "1")]).succeeded();
    assert_eq!(account.state()["stacks"][account.stack_id()]["resources"]["UsageTable"][0], json!("shop-usage"));
}
