//! `infra/lint/template` on checkov's reports, and the facts behind its waivers.
//!
//! Only `make lint`, which has checkov, finds unused waivers.

use std::{collections::BTreeSet, process::Command};

use serde_json::{Value, json};
use tests::Template;

use super::{read, root};

const WAIVERS: &str = "
[CKV_AWS_117 of AWS::Serverless::Function]
reason = There is nothing in a private network that it could reach.

[CKV_AWS_116 of SettleFunction]
reason = The next invocation, five minutes later, does what this one did not.
";

/// The relevant part of `checkov -o json`: checks and the resources that failed them.
fn report(failed: &[(&str, &str)]) -> Value {
    let failed: Vec<Value> = failed
        .iter()
        .map(|(check, resource)| json!({"check_id": check, "check_name": "Ensure it is done", "resource": resource}))
        .collect();
    json!({
        "results": {"failed_checks": failed},
        "summary": {"passed": 3, "parsing_errors": 0, "resource_count": 5},
    })
}

/// Whether the lint passes, and its output.
fn judged(name: &str, waivers: &str, report: &Value) -> (bool, String) {
    let folder = std::env::temp_dir().join(format!("switchboard-waivers-{}-{name}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("waivers.ini"), waivers).unwrap();
    std::fs::write(folder.join("report.json"), report.to_string()).unwrap();
    let ended = Command::new("python3")
        .arg(root().join("infra/lint/template"))
        .arg("--waivers")
        .arg(folder.join("waivers.ini"))
        .arg("--report")
        .arg(folder.join("report.json"))
        .output()
        .unwrap();
    std::fs::remove_dir_all(folder).unwrap();
    let said = [ended.stdout, ended.stderr].concat();
    (ended.status.success(), String::from_utf8(said).unwrap())
}

#[test]
fn each_failed_check_is_waived_with_a_reason_and_no_waiver_is_unused() {
    let vpc = [
        ("CKV_AWS_117", "AWS::Serverless::Function.CreateFunction"),
        ("CKV_AWS_117", "AWS::Serverless::Function.SettleFunction"),
    ];
    let settle = ("CKV_AWS_116", "AWS::Serverless::Function.SettleFunction");
    let all = [vpc[0], vpc[1], settle];
    let (passes, said) = judged("all", WAIVERS, &report(&all));
    assert!(passes, "{said}");
    assert!(said.contains("3 passed, 3 waived by 2 waivers, 0 to repair"), "{said}");

    // Another kind, another resource of a waived kind, and a waiver without a failure.
    for (name, failed, wanted) in [
        (
            "kind",
            [&all[..], &[("CKV_AWS_20", "AWS::S3::Bucket.Leaky")]].concat(),
            "Leaky (AWS::S3::Bucket): CKV_AWS_20",
        ),
        (
            "resource",
            [&all[..], &[("CKV_AWS_116", "AWS::Serverless::Function.NewFunction")]].concat(),
            "NewFunction (AWS::Serverless::Function): CKV_AWS_116",
        ),
        ("repaired", vpc.to_vec(), "[CKV_AWS_116 of SettleFunction] waives nothing"),
        ("gone", vec![settle], "[CKV_AWS_117 of AWS::Serverless::Function] waives nothing"),
    ] {
        let (passes, said) = judged(name, WAIVERS, &report(&failed));
        assert!(!passes && said.contains(wanted), "{name}: {said}");
    }

    for (name, waivers, wanted) in [
        ("no-reason", "[CKV_AWS_116 of SettleFunction]\n", "has no reason"),
        ("short", "[CKV_AWS_116 of SettleFunction]\nreason = not needed\n", "has no reason, or a very short one"),
        ("shape", "[CKV_AWS_116]\nreason = The next invocation does what this one did not.\n", "is not [CHECK of"),
        ("key", &format!("{WAIVERS}reasons = and this\n"), "there is only a reason"),
    ] {
        let (passes, said) = judged(name, waivers, &report(&[settle]));
        assert!(!passes && said.contains(wanted), "{name}: {said}");
    }

    let mut unread = report(&[]);
    unread["summary"]["resource_count"] = json!(0);
    let (passes, said) = judged("unread", "", &unread);
    assert!(!passes && said.contains("could not read the template"), "{said}");
}

#[test]
fn a_waiver_names_an_existing_resource() {
    let template = Template::read();
    let resources = template.0["Resources"].as_object().unwrap();
    let names: BTreeSet<&str> =
        resources.iter().flat_map(|(id, resource)| [id.as_str(), resource["Type"].as_str().unwrap()]).collect();
    let file = read("infra/lint/waivers.ini");
    let waivers: Vec<_> =
        file.lines().filter_map(|line| line.strip_prefix('[')?.strip_suffix(']')?.split_once(" of ")).collect();
    assert!(waivers.len() > 5, "the file was read");
    for (check, of) in waivers {
        assert!(names.contains(of), "{check}: the template has no {of}");
    }
}

/// "They name secrets and hold none."
#[test]
fn no_variable_of_a_function_holds_a_secret() {
    let template = Template::read();
    let parameters = template.0["Parameters"].as_object().unwrap();
    let hidden: Vec<&str> =
        parameters.iter().filter(|(_, says)| says["NoEcho"] == true).map(|(name, _)| name.as_str()).collect();
    assert!(hidden.contains(&"VapiApiKey"), "{hidden:?}");
    for (function, properties) in template.resources("AWS::Serverless::Function") {
        let variables = properties["Environment"].to_string();
        for name in &hidden {
            let said = variables.contains(&format!("\"{name}\"")) || variables.contains(&format!("${{{name}}}"));
            assert!(!said, "{function} has {name} in a variable; Secrets Manager is for that");
        }
        assert!(!variables.contains("resolve:secretsmanager"), "{function}");
    }
}

/// "The queues are encrypted by SQS", "CloudWatch drops lines", and only `settle` is invoked asynchronously.
#[test]
fn queues_are_encrypted_logs_end_and_only_settle_is_invoked_asynchronously() {
    let template = Template::read();
    for (queue, properties) in template.resources("AWS::SQS::Queue") {
        assert_eq!(properties["SqsManagedSseEnabled"], true, "{queue}");
    }
    for (group, properties) in template.resources("AWS::Logs::LogGroup") {
        assert_eq!(properties["RetentionInDays"], json!({"Ref": "LogRetentionDays"}), "{group}");
    }
    let schedules = template.resources("AWS::Scheduler::Schedule");
    let targets: Vec<&Value> = schedules.values().map(|schedule| &schedule["Target"]["Arn"]).collect();
    assert_eq!(targets, [&json!({"Fn::GetAtt": "SettleFunction.Arn"})]);
    for kind in ["AWS::Events::Rule", "AWS::S3::Bucket"] {
        assert!(template.resources(kind).is_empty(), "what invokes asynchronously: {kind}");
    }
    let subscriptions = template.resources("AWS::SNS::Subscription");
    assert!(subscriptions.values().all(|subscription| subscription["Protocol"] != "lambda"));
}
