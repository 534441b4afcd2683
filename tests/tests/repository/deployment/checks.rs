//! Problems that `make deploy` reports before it builds, uploads or creates anything.

use axum::{
    Json, Router,
    http::{HeaderMap, StatusCode},
    routing::get,
};
use serde_json::{Value, json};
use tests::http_server::Server;

use super::account::{Account, evaluate, root};

/// Asserts that only reading calls were made.
fn untouched(account: &Account) {
    let reading = ["get-", "describe-", "list-"];
    for call in account.calls("") {
        let operation = &call.argv[1];
        assert!(reading.iter().any(|begin| operation.starts_with(begin)) || operation == "get", "{:?}", call.argv);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_example_as_it_is_and_a_file_full_of_mistakes_are_refused_in_one_go() {
    let account = Account::new().await;
    let example = std::fs::read_to_string(root().join("infra/deploy.parameters.example")).unwrap();
    account.parameters(&example);
    let refused = account.deploy(&[]);
    refused.failed_with(&["These 3 things", "JwtIssuer still has", "JwtAudience still has", "VapiApiKey still has"]);
    refused.says("OIDC issuer whose tokens the dashboard's routes accept");

    account.parameters(
        "JwtAudience=\nVapiApikey=hush-1\nLogLevel=info\nLogLevel=INFO\nHistoryDays=soon\nTurnSeconds=5\nCodeBucket=mine\n\
         LlmApiKey=\"hush-2\"\nhush-3\nJwtIssuer=<the issuer>\nPublicUrl=https://api.acme.dev/\nElephant=1\n",
    );
    let refused = account.deploy(&[("CODE_BUCKET", "far"), ("ARCHITECTURE", "arm")]);
    refused.failed_with(&[
        "These 15 things",
        "CODE_BUCKET=far is in us-east-1 and the stack in eu-central-1",
        "ARCHITECTURE is 'arm'",
        "JwtAudience is empty",
        "VapiApikey is no parameter of infra/template.yaml: is VapiApiKey meant?",
        "VapiApiKey is missing",
        "LogLevel stands on line 3 and again on line 4",
        "LogLevel is 'info': it can be TRACE, DEBUG, INFO, WARN, ERROR",
        "HistoryDays is 'soon': it is a number",
        "TurnSeconds is '5': it is at least 10 and at most 290",
        "CodeBucket does not belong into",
        "values stand without quotes",
        "line 9 is not Key=Value",
        "JwtIssuer still has the example's value '<the issuer>'",
        "PublicUrl is 'https://api.acme.dev/'",
        "Elephant is no parameter of infra/template.yaml: infra/deploy.parameters.example lists them",
    ]);
    assert!(!refused.output.contains("hush"), "{refused}");
    untouched(&account);
}

#[test]
fn every_line_of_the_example_is_a_parameter_and_is_right_or_known_as_a_placeholder() {
    let problems = evaluate(
        "import pathlib, re, template, parameters\n\
         text = pathlib.Path(given).read_text(encoding='utf-8')\n\
         values = [line.lstrip('#').split('=', 1) for line in text.splitlines() if re.match('#?[A-Z][A-Za-z]+=', line)]\n\
         known = template.ours()['Parameters']\n\
         print(json.dumps([parameters.problems({key: value}, known, {}, False, 'x') for key, value in values]))",
        &json!(root().join("infra/deploy.parameters.example")),
    );
    let told: Vec<&str> = problems
        .as_array()
        .unwrap()
        .iter()
        .flat_map(|each| each.as_array().unwrap())
        .map(|each| each.as_str().unwrap())
        .collect();
    assert!(told.len() > 8, "{told:?}");
    for problem in told {
        assert!(problem.contains("still has the example's value"), "{problem}");
    }
}

/// On the way back the file still has the lines of the newer version.
#[tokio::test(flavor = "multi_thread")]
async fn a_parameter_of_the_deployed_version_is_no_misspelt_one() {
    let account = Account::new().await;
    account.deploy(&[]).succeeded();
    let id = account.stack_id();
    let mut deployed = account.state()["stacks"][&id]["Parameters"].clone();
    deployed.as_array_mut().unwrap().push(json!({"ParameterKey": "RunToolsMaximumConcurrency", "ParameterValue": "7"}));
    account.set_at(&["stacks", &id, "Parameters"], deployed);
    account.parameters(&format!("{}RunToolsMaximumConcurrency=7\nRunLoopsMaximumConcurrency=7\n", account.good()));
    let refused = account.deploy(&[]);
    refused.failed_with(&[
        "RunToolsMaximumConcurrency is a parameter of the version that is deployed, and not of this one: put a # in front",
        "RunLoopsMaximumConcurrency is no parameter of infra/template.yaml: is RunLoopMaximumConcurrency meant?",
    ]);
    assert!(!refused.output.contains("is RunToolMaximumConcurrency meant"), "{refused}");
}

/// The CLI gives up after an hour.
#[tokio::test(flavor = "multi_thread")]
async fn a_deployment_that_outlasts_the_clis_waiter_is_waited_for() {
    let account = Account::new().await;
    account.deploy(&[]).succeeded();
    account.set("slow", json!(true));
    let deployed = account.deploy(&[]);
    deployed.succeeded();
    deployed.says("Max attempts exceeded");
    deployed.says("CloudFormation goes on (UPDATE_IN_PROGRESS)");
    deployed.says("make catalogue STACK=shop");
    let status = || account.state()["stacks"][account.stack_id()]["StackStatus"].clone();
    assert_eq!(status(), "UPDATE_COMPLETE");

    account.set("fails", json!(["ToolsTable", "Throttled"]));
    account.deploy(&[]).failed_with(&[
        "CloudFormation goes on (UPDATE_ROLLBACK_IN_PROGRESS)",
        "ToolsTable (AWS::DynamoDB::Table): Throttled",
        "everything is again as it was before (UPDATE_ROLLBACK_COMPLETE)",
    ]);

    let destroyed = account.destroy(&[("CONFIRM", "shop")]);
    destroyed.succeeded();
    destroyed.says("The stack shop is deleted.");
    assert_eq!(status(), "DELETE_COMPLETE");
}

/// Its update is waited for, and its success is not ours.
#[tokio::test(flavor = "multi_thread")]
async fn a_deployment_that_another_one_forestalls_has_failed() {
    let account = Account::new().await;
    account.deploy(&[]).succeeded();
    account.set("forestalled", json!(true));
    account.deploy(&[]).failed_with(&["can not be updated", "CloudFormation goes on (UPDATE_IN_PROGRESS)", "failed"]);
}

/// With the same programs the stack looks as if it were deployed.
#[tokio::test(flavor = "multi_thread")]
async fn a_deployment_that_is_refused_at_once_has_failed() {
    let account = Account::new().await;
    account.deploy(&[]).succeeded();
    account.set("refused", json!(true));
    account.deploy(&[]).failed_with(&["AccessDenied", "not authorized"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_missing_prerequisite_is_named_with_the_next_step() {
    let account = Account::new().await;
    account.no_parameters();
    account.deploy(&[("CODE_BUCKET", "")]).failed_with(&[
        "CODE_BUCKET is missing: make deploy CODE_BUCKET=",
        "cp infra/deploy.parameters.example infra/deploy.parameters",
    ]);
    account.deploy(&[("CODE_BUCKET", "mine")]).failed_with(&["NoSuchBucket", "aws s3 mb s3://mine"]);
    account.deploy(&[("PARAMETERS", "elsewhere")]).failed_with(&["PARAMETERS=elsewhere cannot be read: No such file"]);
    account.deploy(&[("STACK", "my_shop")]).failed_with(&["STACK is 'my_shop'"]);
    account.deploy(&[("AWS_REGION", "")]).failed_with(&["No region is set: AWS_REGION=eu-central-1 make"]);
    account.parameters("Elephant=1");
    account.set("account", json!(null));
    // Problems that need no account are reported nevertheless.
    account.deploy(&[]).failed_with(&["Unable to locate credentials", "aws configure", "Elephant is no parameter"]);
    untouched(&account);
    let without = format!("{}:/usr/bin:/bin", root().join(".venv/bin").display());
    if !std::path::Path::new("/usr/bin/aws").exists() && !root().join(".venv/bin/aws").exists() {
        account.deploy(&[("PATH", &without)]).failed_with(&["https://aws.amazon.com/cli/"]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_issuer_that_cannot_be_asked_is_refused() {
    let json_at = |value: Value| get(move || async move { Json(value) });
    let own = |path: &'static str| {
        move |headers: HeaderMap| async move {
            let url = format!("http://{}{path}", headers["host"].to_str().unwrap());
            let keys = format!("http://{}{path}/keys", headers["host"].to_str().unwrap());
            Json(json!({"issuer": url, "jwks_uri": keys}))
        }
    };
    let at = |path: &str| format!("/{path}/.well-known/openid-configuration");
    let server = Server::start(
        Router::new()
            .route(&at("page"), get(|| async { "<html>" }))
            .route(&at("list"), json_at(json!([])))
            .route(&at("down"), get(|| async { StatusCode::SERVICE_UNAVAILABLE }))
            .route(
                &at("other"),
                json_at(json!({"issuer": "https://login.acme.dev", "jwks_uri": "http://127.0.0.1:1/"})),
            )
            .route(&at("fine"), get(own("/fine")))
            .route("/fine/keys", json_at(json!({"keys": [{"kty": "RSA"}]})))
            .route(&at("keyless"), get(own("/keyless")))
            .route(&at("curve"), get(own("/curve")))
            .route("/curve/keys", json_at(json!({"keys": [{"kty": "EC"}]}))),
    )
    .await;
    let issuer = |path: &str| format!("{}/{path}", server.url);
    let cases = [
        (json!({"JwtIssuer": issuer("fine")}), None),
        (json!({"JwtIssuer": issuer("fine/")}), Some("mind the slash at the end")),
        (json!({"JwtIssuer": issuer("nothing")}), Some("answers 404")),
        (json!({"JwtIssuer": issuer("down")}), Some("answers 503")),
        (json!({"JwtIssuer": issuer("page")}), Some("answers no JSON")),
        (json!({"JwtIssuer": issuer("list")}), Some("JSON that is no object")),
        (json!({"JwtIssuer": issuer("other")}), Some("names 'https://login.acme.dev'")),
        (json!({"JwtIssuer": issuer("keyless")}), Some("the issuer's keys cannot be read")),
        (json!({"JwtIssuer": issuer("curve")}), Some("has no RSA key")),
        (json!({"JwtIssuer": "http://127.0.0.1:1"}), Some("does not answer (")),
        (json!({"JwtIssuer": "https://[broken"}), Some("is no address")),
        (json!({"JwtIssuer": issuer("fine"), "JwksUrl": issuer("down")}), Some("JwksUrl: ")),
        (json!({"JwtIssuer": issuer("fine"), "OidcConfigurationUrl": issuer("down")}), Some("OidcConfigurationUrl: ")),
    ];
    let values: Vec<&Value> = cases.iter().map(|(values, _)| values).collect();
    let told = evaluate("import issuer\nprint(json.dumps([issuer.problems(each) for each in given]))", &json!(values));
    for ((values, expected), told) in cases.iter().zip(told.as_array().unwrap()) {
        match expected {
            None => assert_eq!(*told, json!([]), "{values}"),
            Some(expected) => assert!(told[0].as_str().is_some_and(|text| text.contains(expected)), "{values}: {told}"),
        }
    }

    // Nothing is done in this case.
    let account = Account::new().await;
    account.parameters(&account.good().replace("JwtAudience", "#").replace(account.issuer(), &issuer("down")));
    account.deploy(&[]).failed_with(&["These 2 things", "JwtAudience is missing", "answers 503"]);
    untouched(&account);
}

#[test]
fn every_state_of_a_stack_can_be_deployed_to_or_is_explained() {
    // StackStatus in CloudFormation's API, without the two states that have no stack.
    let states = "CREATE_IN_PROGRESS CREATE_FAILED CREATE_COMPLETE ROLLBACK_IN_PROGRESS ROLLBACK_FAILED ROLLBACK_COMPLETE \
        DELETE_IN_PROGRESS DELETE_FAILED UPDATE_IN_PROGRESS UPDATE_COMPLETE_CLEANUP_IN_PROGRESS UPDATE_COMPLETE UPDATE_FAILED \
        UPDATE_ROLLBACK_IN_PROGRESS UPDATE_ROLLBACK_FAILED UPDATE_ROLLBACK_COMPLETE_CLEANUP_IN_PROGRESS UPDATE_ROLLBACK_COMPLETE \
        IMPORT_IN_PROGRESS IMPORT_COMPLETE IMPORT_ROLLBACK_IN_PROGRESS IMPORT_ROLLBACK_FAILED IMPORT_ROLLBACK_COMPLETE";
    let states: Vec<&str> = states.split_whitespace().collect();
    let told = evaluate(
        "import stack_state\nprint(json.dumps([stack_state.in_the_way('shop', each) for each in given]))",
        &json!(states),
    );
    for (state, told) in states.iter().zip(told.as_array().unwrap()) {
        let steps = match *state {
            "CREATE_COMPLETE" | "UPDATE_COMPLETE" | "UPDATE_ROLLBACK_COMPLETE" | "IMPORT_COMPLETE" => {
                assert!(told.is_null(), "{state}: {told}");
                continue;
            }
            "ROLLBACK_COMPLETE" | "ROLLBACK_FAILED" | "CREATE_FAILED" | "IMPORT_ROLLBACK_COMPLETE" => {
                "aws cloudformation delete-stack --stack-name shop"
            }
            "DELETE_FAILED" => "make destroy STACK=shop",
            "UPDATE_ROLLBACK_FAILED" => "aws cloudformation continue-update-rollback --stack-name shop",
            "UPDATE_FAILED" | "IMPORT_ROLLBACK_FAILED" => "aws cloudformation rollback-stack --stack-name shop",
            _ => "aws cloudformation wait stack-",
        };
        let told = told.as_str().unwrap_or_else(|| panic!("{state}"));
        assert!(told.contains(steps) && told.contains(state), "{state}: {told}");
    }
}
