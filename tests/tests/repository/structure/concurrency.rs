//! Concurrency limits: every queue has a maximum, and `infra/concurrency` fits its accounts.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use tests::Template;

use super::source::{pascal, read};

/// Concurrent executions of the accounts.
pub(super) const ACCOUNTS: [u64; 3] = [10, 100, 1000];
/// AWS requires this many unreserved executions.
const UNRESERVED: u64 = 100;
/// Functions with waiting callers, including `stream`, which holds an execution for each chat turn.
const RESERVED: [&str; 4] = ["execute", "call-start", "run-tool", "stream"];

#[derive(Debug)]
pub(super) struct Size {
    parameters: BTreeMap<String, u64>,
}

impl Size {
    pub(super) fn of(account: u64) -> Self {
        let text = read(&format!("infra/concurrency/{account}"));
        let lines = text.lines().filter(|line| !line.starts_with('#') && !line.is_empty());
        let parameters = lines.map(|line| {
            let (name, value) = line.split_once('=').unwrap_or_else(|| panic!("{line}"));
            (name.to_owned(), value.parse().unwrap())
        });
        Self { parameters: parameters.collect() }
    }

    pub(super) fn given(&self) -> Vec<(&str, String)> {
        self.parameters.iter().map(|(name, value)| (name.as_str(), value.to_string())).collect()
    }
}

/// A number of a deployment, whose parameters are text.
pub(super) fn number(value: &Value) -> u64 {
    value.as_u64().or_else(|| value.as_str()?.parse().ok()).unwrap_or_else(|| panic!("{value} is no number"))
}

/// The reserved executions of each function, and each queue's trigger with its function and maximum concurrency.
fn deployed(size: &Size) -> (BTreeMap<String, u64>, BTreeMap<String, (String, u64)>) {
    let template = Template::read();
    let given = size.given();
    let parameters: Vec<(&str, &str)> = given.iter().map(|(name, value)| (*name, value.as_str())).collect();
    let deployment = template.deployed(&parameters);
    let functions = template.resources("AWS::Serverless::Function");
    let reserved = functions.keys().filter_map(|id| {
        let properties = deployment.properties(id).unwrap();
        Some(((*id).to_owned(), number(properties.get("ReservedConcurrentExecutions")?)))
    });
    let triggers = template.resources("AWS::Lambda::EventSourceMapping");
    let maxima = triggers.keys().map(|id| {
        let properties = deployment.properties(id).unwrap();
        let function = properties["FunctionName"]["Ref"].as_str().unwrap().to_owned();
        ((*id).to_owned(), (function, number(&properties["ScalingConfig"]["MaximumConcurrency"])))
    });
    (reserved.collect(), maxima.collect())
}

#[test]
fn every_queue_has_a_maximum() {
    let template = Template::read();
    let triggers = template.resources("AWS::Lambda::EventSourceMapping");
    assert!(triggers.len() > 3, "the triggers were found");
    for (id, trigger) in triggers {
        let maximum = &trigger["ScalingConfig"]["MaximumConcurrency"];
        // Without provisioned pollers this is the only limit of a queue.
        assert!(!maximum.is_null() && trigger.get("ProvisionedPollerConfig").is_none(), "{id} has no maximum");
        if let Some(parameter) = maximum["Ref"].as_str() {
            let declared = &template.0["Parameters"][parameter];
            assert_eq!((&declared["MinValue"], &declared["MaxValue"]), (&json!(2), &json!(1000)), "{parameter}");
        } else {
            assert_eq!(*maximum, 2, "{id}: the least that AWS takes");
        }
    }
}

#[test]
fn a_first_deployment_reserves_nothing() {
    let (reserved, _) = deployed(&Size { parameters: BTreeMap::new() });
    assert_eq!(reserved, BTreeMap::new(), "a new account lets nothing be reserved");
    let template = Template::read();
    let functions = template.resources("AWS::Serverless::Function");
    let could: Vec<&&str> = functions
        .iter()
        .filter(|(_, properties)| properties.get("ReservedConcurrentExecutions").is_some())
        .map(|(id, _)| id)
        .collect();
    let mut wanted: Vec<String> = RESERVED.map(|name| format!("{}Function", pascal(name))).to_vec();
    wanted.sort();
    assert_eq!(could.into_iter().copied().collect::<Vec<_>>(), wanted);
}

/// AWS accepts the reservations, no queue exceeds its function's reservation, and all queues together leave room for
/// HTTP requests.
#[test]
fn the_sizes_fit_their_accounts() {
    // Executions by the schedule, in addition to those of its queue.
    const SETTLE_BY_SCHEDULE: u64 = 1;
    for account in ACCOUNTS {
        let (reserved, maxima) = deployed(&Size::of(account));
        let all: u64 = reserved.values().sum();
        assert!(all == 0 || account - all >= UNRESERVED, "{account}: {all} cannot be reserved");
        for (function, _) in maxima.values() {
            let batches: u64 = maxima.values().filter(|(of, _)| of == function).map(|(_, maximum)| maximum).sum();
            let most = reserved.get(function).copied().unwrap_or(account - all);
            assert!(batches <= most, "{account}: {function} is given {batches} batches and may have {most} executions");
        }
        // Tools of calls' starts are a part of calls, and do not wait.
        let can_wait = |id: &str, function: &str| id != "StartToolsTrigger" && !reserved.contains_key(function);
        let shared: u64 =
            maxima.iter().filter(|(id, (function, _))| can_wait(id, function)).map(|(_, (_, most))| most).sum();
        let (unreserved, in_background) = (account - all, shared + SETTLE_BY_SCHEDULE);
        // Functions without a reservation share the rest, including calls in small accounts.
        let most = if account == 10 { unreserved - 1 } else { unreserved / 2 };
        assert!(in_background <= most, "{account}: {in_background} of {unreserved} are taken by what can wait");
        let row = table_row(account);
        assert_eq!(row, [all, unreserved, in_background, unreserved - in_background], "docs/operations.md, {account}");
    }
    // AWS's fair queues need 30 messages in flight before one busy organization stands out and the others are served
    // first.
    for (queue, batch) in [("StartTools", 10), ("RunTool", 10), ("RunLoop", 3), ("Schedule", 5)] {
        let most = Size::of(100).parameters[&format!("{queue}MaximumConcurrency")];
        assert!(most * batch >= 30, "{queue}: {most} batches of {batch}");
    }
}

/// A number in the template, because an alarm cannot multiply a parameter.
#[test]
fn tools_wait_when_every_batch_is_full() {
    let template = Template::read();
    for account in ACCOUNTS {
        let size = Size::of(account);
        let given = size.given();
        let parameters: Vec<(&str, &str)> = given.iter().map(|(name, value)| (*name, value.as_str())).collect();
        let deployment = template.deployed(&parameters);
        for ids in [["StartToolsWaitAlarm", "StartToolsTrigger"], ["ExecutionsWaitAlarm", "RunToolTrigger"]] {
            let [alarm, trigger] = ids.map(|id| deployment.properties(id).unwrap());
            let batches = number(&trigger["ScalingConfig"]["MaximumConcurrency"]);
            assert_eq!(number(&alarm["Threshold"]), batches * number(&trigger["BatchSize"]), "{account} {ids:?}");
            assert_eq!((&alarm["Period"], &alarm["EvaluationPeriods"]), (&json!(60), &json!(3)), "{account} {ids:?}");
        }
    }
}

#[test]
fn the_defaults_are_the_size_for_a_hundred() {
    let template = Template::read();
    for (name, value) in Size::of(100).parameters {
        assert_eq!(template.0["Parameters"][&name]["Default"], value, "{name}");
    }
}

/// The page's table repeats the files' values.
#[test]
fn the_page_has_the_sizes() {
    let template = Template::read();
    let page = read("docs/operations.md");
    for account in ACCOUNTS {
        let size = Size::of(account);
        let column = ACCOUNTS.iter().position(|other| *other == account).unwrap();
        let parameters = template.0["Parameters"].as_object().unwrap();
        for (name, declared) in parameters.iter().filter(|(name, _)| name.ends_with("Concurrency")) {
            let value = size.parameters.get(name).copied().unwrap_or_else(|| declared["Default"].as_u64().unwrap());
            let row = page.lines().find(|line| line.starts_with(&format!("| `{name}` |")));
            let row = row.unwrap_or_else(|| panic!("docs/operations.md has no row of {name}"));
            let cell = row.split('|').map(str::trim).nth(column + 2).unwrap();
            assert_eq!(cell, value.to_string(), "{name}, {account}");
        }
    }
}

/// The computed rows of the page's table: reserved, unreserved, queues and `settle`, left.
pub(super) fn table_row(account: u64) -> [u64; 4] {
    let page = read("docs/operations.md");
    let column = ACCOUNTS.iter().position(|other| *other == account).unwrap();
    [
        "reserved in all",
        "unreserved",
        "of these, queues of what can wait and `settle` use at most",
        "left for what is asked over HTTP",
    ]
    .map(|name| {
        let row = page.lines().find(|line| line.starts_with(&format!("| {name} |")));
        let row = row.unwrap_or_else(|| panic!("docs/operations.md has no row of {name}"));
        row.split('|').map(str::trim).nth(column + 2).unwrap().parse().unwrap()
    })
}
