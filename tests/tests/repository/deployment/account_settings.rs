//! `make deploy` asks the account for Lambda's limits, and for the one role of API Gateway's logs.

use serde_json::json;

use super::account::{Account, root};

const OTHERS_ROLE: &str = "arn:aws:iam::123456789012:role/service/gateway-logs";

fn sized(account: &Account, size: u32) -> String {
    let sizes = std::fs::read_to_string(root().join(format!("infra/concurrency/{size}"))).unwrap();
    format!("{}{sizes}", account.good())
}

#[tokio::test(flavor = "multi_thread")]
async fn sizes_beyond_the_account_are_refused() {
    let account = Account::new().await;
    account.set("executions", json!(10));
    account.deploy(&[]).failed_with(&[
        "This is in the way",
        "AccountConcurrency is 100, and Lambda runs at most 10 executions at once",
        "put the lines of infra/concurrency/10 into",
        "--quota-code L-B99A9384 --desired-value 100",
    ]);
    assert!(account.calls("cloudformation deploy").is_empty());
    account.parameters(&sized(&account, 10));
    account.deploy(&[]).succeeded();

    account.set("executions", json!(1000));
    account.set("reserved_by_others", json!(300));
    account.parameters(&sized(&account, 1000));
    account.deploy(&[]).failed_with(&[
        "This is in the way",
        "reserve 650 executions together, which would leave 50 unreserved of the account's 1000",
        "--desired-value 1050",
    ]);
    account.set("reserved_by_others", json!(250));
    account.deploy(&[]).succeeded();
    // The stack's own reservations are part of the reserved ones now.
    account.deploy(&[]).succeeded();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reservation_that_does_not_cover_the_queues_of_run_tool_is_refused() {
    let account = Account::new().await;
    account.set("executions", json!(1000));
    let sizes = sized(&account, 1000);
    // As a version with one queue had it.
    let former = sizes.replace("RunToolReservedConcurrency=150", "RunToolReservedConcurrency=100");
    assert_ne!(former, sizes);
    account.parameters(&former);
    account.deploy(&[]).failed_with(&[
        "RunToolReservedConcurrency is 100, and StartToolsMaximumConcurrency and RunToolMaximumConcurrency give run-tool 150",
        "as in infra/concurrency/1000",
    ]);
    account.parameters(&sizes);
    account.deploy(&[]).succeeded();
}

#[tokio::test(flavor = "multi_thread")]
async fn queues_that_take_more_than_the_account_has_are_refused() {
    let account = Account::new().await;
    account.set("executions", json!(10));
    let sizes = sized(&account, 10);
    // As a version with one queue less had it.
    let former = sizes.replace("StartToolsMaximumConcurrency=2\n", "");
    assert_ne!(former, sizes);
    account.parameters(&former);
    account.deploy(&[]).failed_with(&[
        "ScheduleMaximumConcurrency give the queues 14 batches at once, and Lambda runs at most 10 executions",
        "as in infra/concurrency/10",
    ]);
    account.parameters(&sizes);
    account.deploy(&[]).succeeded();
}

#[tokio::test(flavor = "multi_thread")]
async fn the_role_of_api_gateways_logs_is_neither_replaced_nor_missing() {
    let account = Account::new().await;
    account.set("log_role", json!(OTHERS_ROLE));
    account.set_at(&["roles", "gateway-logs"], json!({}));
    account.deploy(&[]).failed_with(&[
        "ApiGatewayLogRole is create",
        OTHERS_ROLE,
        "write ApiGatewayLogRole=existing into",
    ]);
    assert!(account.calls("cloudformation deploy").is_empty());
    account.parameters(&format!("{}ApiGatewayLogRole=existing\n", account.good()));
    account.deploy(&[]).succeeded();
    assert_eq!(account.state()["log_role"], OTHERS_ROLE);
    account.no_parameters();
    account.deploy(&[]).succeeded();
    account.parameters("ApiGatewayLogRole=create\n");
    account.deploy(&[]).failed_with(&["write ApiGatewayLogRole=existing into"]);

    let account = Account::new().await;
    account.parameters(&format!("{}ApiGatewayLogRole=existing\n", account.good()));
    account.deploy(&[]).failed_with(&["API Gateway has no role for logs", "write ApiGatewayLogRole=create into"]);
    // Its stack or somebody deleted the role.
    account.set("log_role", json!(OTHERS_ROLE));
    account.deploy(&[]).failed_with(&["which does not exist any more", "write ApiGatewayLogRole=create into"]);
    account.parameters(&account.good());
    account.deploy(&[]).succeeded();
    assert_ne!(account.state()["log_role"], OTHERS_ROLE);
    account.deploy(&[]).succeeded();
}

/// A role has at most 64 characters. The role outlives its stack, which is deployed again here.
#[tokio::test(flavor = "multi_thread")]
async fn a_stack_knows_its_own_role_by_a_shortened_name() {
    for (stack, role, is_own) in [
        ("shop", "shop-ApiGatewayLogsRole-1A2B3C4D5E6F", true),
        ("shop-of-the-north", "shop-ApiGatewayLogsRole-1A2B3C4D5E6F", false),
        ("switchboard-of-the-north-sea-harbour", "switchboard-of-the-north-sea-ha-ApiGatewayLogsRo-1A2B3C4D5E6F", true),
        (
            "switchboard-of-the-north-sea-harbour",
            "switchboard-of-the-south-sea-ha-ApiGatewayLogsRo-1A2B3C4D5E6F",
            false,
        ),
        ("switchboard-of-the-north-sea-harbour", "switchboard-ApiGatewayLogsRole-1A2B3C4D5E6F", false),
    ] {
        let account = Account::new().await;
        account.set("log_role", json!(format!("arn:aws:iam::123456789012:role/{role}")));
        account.set_at(&["roles", role], json!({}));
        let deployed = account.deploy(&[("STACK", stack)]);
        if is_own {
            deployed.succeeded();
        } else {
            deployed.failed_with(&["ApiGatewayLogRole is create", role, "write ApiGatewayLogRole=existing into"]);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_operator_who_may_not_ask_is_warned() {
    let account = Account::new().await;
    account.set("executions", json!(10));
    account.set("log_role", json!(OTHERS_ROLE));
    account.set("denied", json!(["lambda get-account-settings", "apigateway get-account"]));
    let deployed = account.deploy(&[]);
    deployed.succeeded();
    deployed.says("warning: the sizes for Lambda cannot be checked, because aws lambda get-account-settings failed");
    deployed.says("warning: ApiGatewayLogRole=create cannot be checked, because aws apigateway get-account failed");
}
