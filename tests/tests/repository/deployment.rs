//! `make deploy` and `make destroy` as an operator runs them, with a stand-in for the AWS CLI.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test says what is wrong and stops")]

mod account;
mod account_settings;
mod checks;
mod destroying;

pub(crate) use account::evaluate;
use account::{Account, Run};
use serde_json::json;

/// Characters that a shell, a file or JSON would each alter.
const SECRET: &str = r"k,ey='x' é$HOME == #1 `id` \n";

#[tokio::test(flavor = "multi_thread")]
async fn a_first_deployment_protects_its_tables_once_all_is_made() {
    let account = Account::new().await;
    // A file as Windows writes it, with a byte order mark, and with blanks around keys and values.
    let text = account.good().replace("VapiApiKey=key", &format!("  VapiApiKey =  {SECRET}  ")).replace('\n', "\r\n");
    account.parameters(&format!("\u{feff}# ours\r\n\r\n{text}"));
    // The template forbids a backslash in this parameter; the operator learns this before anything is built.
    let refused = account.deploy(&[]);
    refused.failed_with(&["VapiApiKey is what stands there, which is not like"]);
    account.parameters(&format!("\u{feff}# ours\r\n\r\n{}", text.replace('\\', "")));
    let deployed = account.deploy(&[]);
    deployed.succeeded();
    deployed.says("make catalogue STACK=shop");

    let deployments = account.calls("cloudformation deploy");
    assert_eq!(deployments.len(), 2, "made, then protected");
    for (call, first) in deployments.iter().zip(["true", "false"]) {
        let file = call.file("--parameter-overrides");
        let secret = SECRET.replace('\\', "");
        for parameter in [
            format!("VapiApiKey={secret}"),
            format!("JwtIssuer={}", account.issuer()),
            "JwtAudience=a,b".to_owned(),
            format!("FirstDeployment={first}"),
            "Architecture=arm64".to_owned(),
            "CodeBucket=code".to_owned(),
        ] {
            assert!(file.list().contains(&parameter), "{parameter} is not in {:?}", file.list());
        }
        assert!(!file.open, "others can read the file");
    }
    for call in account.calls("") {
        assert!(!call.argv.join(" ").contains("k,ey"), "{:?}", call.argv);
    }
    assert_eq!(account.state()["tables"]["shop-agents"]["protected"], true);
    assert_eq!(account.state()["uploaded"].as_array().unwrap().len(), account::functions().len());
    assert!(account.state()["uploaded"][0].as_str().unwrap().starts_with("code/shop/"), "{}", account.state());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_first_deployment_that_fails_says_why_and_blocks_nothing() {
    let account = Account::new().await;
    account.set("fails", json!(["UsageTable", "Subscriber limit exceeded"]));
    let failed = account.deploy(&[]);
    failed.failed_with(&[
        "UsageTable (AWS::DynamoDB::Table): Subscriber limit exceeded",
        "ROLLBACK_COMPLETE",
        "aws cloudformation delete-stack --stack-name shop",
    ]);
    assert!(!failed.output.contains("cancelled"), "{failed}");
    assert_eq!((&account.state()["tables"], &account.state()["secrets"]), (&json!({}), &json!({})), "nothing is left");

    account.set("fails", json!(null));
    account
        .deploy(&[])
        .failed_with(&["its first deployment failed", "aws cloudformation delete-stack --stack-name shop"]);
    account.aws(&["cloudformation", "delete-stack", "--stack-name", "shop"]);
    account.deploy(&[]).succeeded();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_later_deployment_keeps_omitted_parameters() {
    let account = Account::new().await;
    account.deploy(&[("ARCHITECTURE", "x86_64")]).succeeded();
    account.no_parameters();
    account.deploy(&[("CODE_BUCKET", "")]).succeeded();
    let calls = account.calls("cloudformation deploy");
    let told = calls.last().unwrap().file("--parameter-overrides").list();
    let names: Vec<&str> = told.iter().map(|each| each.split('=').next().unwrap()).collect();
    assert_eq!(names, ["CodeBucket", "CodePrefix", "Architecture", "FirstDeployment"]);
    assert!(told.contains(&"Architecture=x86_64".to_owned()), "{told:?}");
    assert_eq!(account.state()["tables"]["shop-agents"]["protected"], true);

    account.set("fails", json!(["ToolsTable", "Throttled"]));
    account.deploy(&[]).failed_with(&[
        "ToolsTable (AWS::DynamoDB::Table): Throttled",
        "everything is again as it was before (UPDATE_ROLLBACK_COMPLETE)",
    ]);
    account.run("infra/deploy", &["--failures"], &[]).says("ToolsTable (AWS::DynamoDB::Table): Throttled");

    // A skipped release: both its index and the next one's are new.
    let id = account.stack_id();
    let deployed = account.state()["stacks"][&id]["template"].as_str().unwrap().to_owned();
    account.set_at(
        &["stacks", &id, "template"],
        json!(
            deployed
                .replace("IndexName: by_call\n", "IndexName: x\n")
                .replace("IndexName: by_tool\n", "IndexName: y\n")
        ),
    );
    account.deploy(&[]).failed_with(&["DynamoDB does one of these at a time", "deploy them one after another"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deployment_that_is_interrupted_leaves_no_file_and_says_how_to_go_on() {
    let account = Account::new().await;
    account.set("sleeps", json!(30));
    let stopped: Run = account.interrupted("cloudformation deploy").await;
    assert_eq!(stopped.code, Some(130), "{stopped}");
    stopped.says("CloudFormation goes on by itself");
    stopped.says("aws cloudformation describe-stacks --stack-name shop");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_region_of_an_invocation_may_have_either_name() {
    let account = Account::new().await;
    account.deploy(&[]).succeeded();
    let made = account.run_python("infra/organization", &["--stack", "shop", "--owner", "1", "--", "harbour"]);
    made.succeeded();
    assert_eq!(account.calls("lambda invoke --function-name shop-operator").len(), 1);
}

/// The commands that make would run in a shell with a NAME of its own.
fn commands(arguments: &[&str]) -> String {
    let mut make = std::process::Command::new("make");
    make.arg("-n").args(arguments).env("NAME", "laptop").current_dir(account::root());
    let run = Run::of(make.env_remove("MAKEFLAGS").env_remove("MFLAGS"));
    run.succeeded();
    run.output
}

#[test]
fn the_machines_name_is_not_the_organizations_and_the_shells_clock_is_not_a_time_limit() {
    let organization = ["organization", "SLUG=harbour", "OWNER=1"];
    let made = commands(&organization);
    assert!(!made.contains("--name"), "{made}");
    let made = commands(&[&organization[..], &["NAME=Harbour Dental"]].concat());
    assert!(made.contains("--name"), "{made}");
    // bash gives SECONDS a meaning of its own.
    let fuzzed = commands(&["fuzz", "SECONDS=7"]);
    assert!(fuzzed.contains("FUZZ_SECONDS=7 tests/fuzz/run"), "{fuzzed}");
    let script = std::fs::read_to_string(account::root().join("tests/fuzz/run")).unwrap();
    assert!(script.contains("FUZZ_SECONDS:-60") && !script.contains("{SECONDS"), "{script}");
}

#[test]
fn the_way_of_calling_is_explained() {
    for program in ["infra/deploy", "infra/destroy"] {
        let help = Run::of(std::process::Command::new(account::root().join(program)).arg("--help"));
        help.succeeded();
        help.says("STACK");
    }
}
