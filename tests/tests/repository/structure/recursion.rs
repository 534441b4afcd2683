//! Functions that queues lead back to: by default Lambda takes a chain of them for an endless loop, and drops it.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};
use tests::Template;

use super::{kebab_id, triggers};

fn list(value: &Value) -> Vec<&Value> {
    value.as_array().map_or_else(|| vec![value], |items| items.iter().collect())
}

/// The queues that a role may send to, also through a role that it passes on.
fn queues(template: &Template, role: &str) -> BTreeSet<String> {
    let roles = template.resources("AWS::IAM::Role");
    let policies = list(&roles[role]["Policies"]);
    let mut found = BTreeSet::new();
    for statement in policies.into_iter().flat_map(|policy| list(&policy["PolicyDocument"]["Statement"])) {
        let actions = list(&statement["Action"]);
        let allows = |action: &str| actions.iter().any(|allowed| allowed.as_str() == Some(action));
        for resource in list(&statement["Resource"]) {
            let Some((id, "Arn")) = resource["Fn::GetAtt"].as_str().and_then(|attribute| attribute.split_once('.'))
            else {
                continue;
            };
            if allows("sqs:SendMessage") {
                found.insert(id.to_owned());
            }
            if allows("iam:PassRole") {
                found.extend(queues(template, id));
            }
        }
    }
    found
}

/// The functions at the ends of all chains that begin with a function.
fn reached<'a>(sends_to: &'a BTreeMap<String, BTreeSet<String>>, from: &'a str) -> BTreeSet<&'a str> {
    let mut reached = BTreeSet::new();
    let mut open = vec![from];
    while let Some(function) = open.pop() {
        for receiver in &sends_to[function] {
            if reached.insert(receiver.as_str()) {
                open.push(receiver);
            }
        }
    }
    reached
}

#[test]
fn functions_that_queues_lead_back_to_may_loop_and_no_others() {
    let template = Template::read();
    let receivers: BTreeMap<String, String> =
        triggers(&template).into_iter().map(|(queue, (function, _))| (queue, function)).collect();
    let functions = template.resources("AWS::Serverless::Function");
    let receivers_of = |function: &Value| -> BTreeSet<String> {
        let role = function["Role"]["Fn::GetAtt"].as_str().unwrap().trim_end_matches(".Arn");
        queues(&template, role).iter().filter_map(|queue| receivers.get(queue).cloned()).collect()
    };
    let sends_to: BTreeMap<String, BTreeSet<String>> =
        functions.iter().map(|(id, function)| (kebab_id(id), receivers_of(function))).collect();
    let mut looping = BTreeSet::new();
    for (id, function) in &functions {
        let name = kebab_id(id);
        let loops = reached(&sends_to, &name).contains(name.as_str());
        let wanted = if loops { json!("Allow") } else { Value::Null };
        assert_eq!(function["RecursiveLoop"], wanted, "{id}: a chain of its messages leads back to it: {loops}");
        if loops {
            looping.insert(name);
        }
    }
    assert_eq!(looping, receivers.into_values().collect::<BTreeSet<_>>(), "every queue's function sends to it");
}
