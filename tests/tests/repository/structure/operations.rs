//! `docs/operations.md` against the template: its commands name existing resources.
//!
//! Every queue to redrive and every secret to rotate is on the page.

use std::{collections::BTreeSet, process::Command};

use serde_json::Value;
use tests::Template;

use super::{between, functions, read};

const PAGE: &str = "docs/operations.md";

fn shell() -> Vec<String> {
    let page = read(PAGE);
    let blocks: Vec<String> = between(&page, "```sh\n", "\n```").into_iter().map(str::to_owned).collect();
    assert!(blocks.len() > 5, "the page was read");
    blocks
}

/// The names that follow `open`; empty where a variable follows.
fn named(text: &str, open: &str) -> BTreeSet<String> {
    let ends = |letter: char| !(letter.is_ascii_alphanumeric() || "-_".contains(letter));
    let after = text.split(open).skip(1).map(|after| after.split(ends).next().unwrap().to_owned());
    after.filter(|name| !name.is_empty()).collect()
}

/// Names of the resources of a type, without the stack's prefix.
fn of_type(template: &Template, kind: &str, property: &str) -> BTreeSet<String> {
    let resources = template.resources(kind);
    let name = |properties: &&Value| properties[property]["Fn::Sub"].as_str().unwrap().to_owned();
    let without_stack =
        |name: String| name.trim_start_matches("${AWS::StackName}").trim_start_matches(['-', '/']).to_owned();
    resources.values().map(name).map(without_stack).collect()
}

#[test]
fn the_commands_for_operators_are_shell() {
    for block in shell() {
        let checked = Command::new("sh").args(["-n", "-c", &block]).output().unwrap();
        assert!(checked.status.success(), "{}\n{block}", String::from_utf8_lossy(&checked.stderr));
    }
}

/// Values that the reader brings along.
const GIVEN: [&str; 7] = ["ACCOUNT_SID", "AGENT", "CALL", "NEW_AUTH_TOKEN", "NUMBER_ID", "TOKEN", "VERSION"];

#[test]
fn an_operators_command_is_about_the_named_stack_and_uses_no_unset_variable() {
    let text = shell().join("\n");
    for line in text.lines().filter(|line| !line.starts_with("STACK=")) {
        assert!(!line.contains("switchboard"), "another stack's resource: {line}");
        assert!(
            !line.contains("make deploy") || line.contains("STACK=\"$STACK\""),
            "another stack's deployment: {line}"
        );
        // It exists only after a build.
        assert!(!line.contains("target/"), "{line}");
        assert!(!line.contains("contains(") && !line.contains("-prefix \"/aws"), "also of a stack `$STACK-…`: {line}");
    }
    let is_variable = |name: &String| name.bytes().all(|byte| byte.is_ascii_uppercase() || byte == b'_');
    for name in named(&text, "$").into_iter().chain(named(&text, "${")).filter(is_variable) {
        assert!(GIVEN.contains(&name.as_str()) || text.contains(&format!("{name}=")), "{name} is set nowhere");
    }
}

#[test]
fn the_operators_commands_name_existing_things() {
    let template = Template::read();
    let text = shell().join("\n");
    let queues = of_type(&template, "AWS::SQS::Queue", "QueueName");
    let tables = of_type(&template, "AWS::DynamoDB::Table", "TableName");
    let secrets = of_type(&template, "AWS::SecretsManager::Secret", "Name");
    let functions = functions();
    for (opens, there, least) in [
        (&["$(queue ", "$(arn ", "peek "][..], &queues, 4),
        (&["--table-name \"$STACK-", "forget "], &tables, 3),
        (&["--function-name \"$STACK-", "/aws/lambda/$STACK-"], &functions, 1),
        (&["--secret-id \"$STACK/"], &secrets, 1),
    ] {
        let mut names: BTreeSet<String> = opens.iter().flat_map(|open| named(&text, open)).collect();
        // The prefix of restored tables.
        names.remove("restored-");
        assert!(names.len() >= least, "{opens:?}: {names:?}");
        let missing: Vec<_> = names.difference(there).collect();
        assert!(missing.is_empty(), "{PAGE} names {missing:?}; there are {there:?}");
    }
    let outputs = template.0["Outputs"].as_object().unwrap();
    for output in named(&text, "$(output ") {
        assert!(outputs.contains_key(&output), "{output}");
    }
}

#[test]
fn every_dead_letter_queue_and_every_secret_of_the_deployment_is_on_the_page_for_operators() {
    let template = Template::read();
    let page = read(PAGE);
    let queues = template.resources("AWS::SQS::Queue");
    let targets =
        queues.values().filter_map(|queue| queue["RedrivePolicy"]["deadLetterTargetArn"]["Fn::GetAtt"].as_str());
    for target in targets {
        let queue = queues[target.strip_suffix(".Arn").unwrap()]["QueueName"]["Fn::Sub"].as_str().unwrap();
        let name = queue.trim_start_matches("${AWS::StackName}-");
        assert!(page.contains(&format!("\n| `{name}` | ")), "\"Redrive\" says nothing of {name}");
    }
    let rotate = between(&page, "\n## Rotate\n", "\n## ")[0];
    for (name, says) in template.0["Parameters"].as_object().unwrap() {
        assert!(says["NoEcho"] != true || rotate.contains(name), "\"Rotate\" says nothing of {name}");
    }
}
