//! The template's alarms: each notifies somebody, names the remedy, and fires in time without false alarms.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};
use tests::{Template, metrics::Metric};

use super::{STACK, checked, number, resolved, resource, text};
use crate::structure::source::read;

const PAGE: &str = "docs/operations.md";

/// The link anchors of a page's headings.
fn anchors(page: &str) -> BTreeSet<String> {
    let headings = page.lines().filter(|line| line.starts_with('#')).map(|line| line.trim_start_matches(['#', ' ']));
    let anchor = |heading: &str| {
        let kept = heading.to_lowercase().replace(' ', "-");
        kept.chars().filter(|letter| letter.is_alphanumeric() || *letter == '-').collect()
    };
    headings.map(anchor).collect()
}

fn alarms(template: &Template) -> BTreeMap<&str, &Value> {
    let alarms = template.resources("AWS::CloudWatch::Alarm");
    assert!(alarms.len() > 20, "they are looked for in the wrong place");
    alarms
}

fn dimensions(template: &Template, alarm: &Value) -> BTreeMap<String, String> {
    let dimensions = alarm["Dimensions"].as_array().into_iter().flatten();
    dimensions.map(|dimension| (text(&dimension["Name"]).to_owned(), resolved(template, &dimension["Value"]))).collect()
}

/// The alarm of an AWS metric for one function or queue.
fn about<'a>(template: &'a Template, metric: &str, of: &str) -> Option<&'a Value> {
    let fits = |alarm: &&Value| alarm["MetricName"] == metric && dimensions(template, alarm).values().eq([of]);
    alarms(template).into_values().find(fits)
}

/// Bad periods required, periods considered, and threshold.
fn trips(alarm: &Value) -> (f64, f64, f64) {
    let periods = number(&alarm["EvaluationPeriods"]);
    (alarm["DatapointsToAlarm"].as_f64().unwrap_or(periods), periods, number(&alarm["Threshold"]))
}

/// The metrics of our own namespace that the code writes and alarms watch.
pub(super) fn watched(template: &Template) -> BTreeMap<String, Metric> {
    let filtered = filtered(template);
    let mut ours = BTreeMap::new();
    for (id, alarm) in alarms(template) {
        // The local AWS rejects metric math, and no alarm needs it.
        assert!(alarm.get("Metrics").is_none(), "{id} is about one metric");
        let namespace = resolved(template, &alarm["Namespace"]);
        let metric = checked(template, id, &namespace, text(&alarm["MetricName"]), dimensions(template, alarm));
        ours.extend(metric.filter(|metric| !filtered.contains(metric)).map(|metric| (id.to_owned(), metric)));
    }
    ours
}

/// The metrics that CloudWatch Logs counts in our own namespace.
fn filtered(template: &Template) -> BTreeSet<Metric> {
    let filters = template.resources("AWS::Logs::MetricFilter");
    let counted = filters.values().flat_map(|filter| filter["MetricTransformations"].as_array().unwrap());
    let metric = |counted: &Value| {
        assert_eq!(
            (resolved(template, &counted["MetricNamespace"]).as_str(), &counted["MetricValue"]),
            (STACK, &json!("1"))
        );
        (text(&counted["MetricName"]).to_owned(), BTreeMap::new())
    };
    counted.map(metric).collect()
}

#[test]
fn an_alarm_has_a_recipient_and_a_next_step() {
    let template = Template::read();
    let page = read(PAGE);
    let anchors = anchors(&page);
    let (_, section) = page.split_once("\n## Alarms\n").unwrap();
    let section = section.split("\n## ").next().unwrap();
    let mut names = BTreeSet::new();
    for (id, alarm) in alarms(&template) {
        assert_eq!(alarm["AlarmActions"], json!([{"Ref": "AlarmTopic"}]), "{id}");
        assert!(alarm.get("OKActions").is_none_or(|actions| *actions == alarm["AlarmActions"]), "{id}");
        let name = resolved(&template, &alarm["AlarmName"]);
        let short =
            name.strip_prefix(&format!("{STACK}-")).unwrap_or_else(|| panic!("{id}: {name} is of another stack"));
        assert!(section.contains(&format!("\n| `{short}` |")), "{PAGE} has no row for {short}");
        assert!(names.insert(name), "two alarms have the name of {id}");

        let description = text(&alarm["AlarmDescription"]);
        assert!(description.len() <= 1_024, "{id}: CloudWatch takes 1,024 characters");
        let (said, anchor) =
            description.rsplit_once(&format!("{PAGE}#")).unwrap_or_else(|| panic!("{id}: {description}"));
        assert!(said.len() > 60, "{id} says what happened and what to do: {description}");
        assert!(anchors.contains(anchor), "{PAGE} has no {anchor}, which {id} points to");
    }
    let rows = section.lines().filter(|line| line.starts_with("| `")).count();
    assert_eq!(rows, names.len(), "{PAGE} has rows of alarms that are gone");
    // $0.10 each, beside the dashboard ($3) and the topic's key ($1).
    let (count, cents) = (names.len(), 10 * names.len() + 400);
    let costs = format!("the key of their topic, 1.00 | {}.{:02} |", cents / 100, cents % 100);
    for said in [format!("They are {count}, and cost"), format!("| {count} alarms, 0.10 each; "), costs] {
        assert!(page.contains(&said), "{PAGE} does not say: {said}");
    }
}

#[test]
fn the_costs_count_each_queue_that_a_function_reads() {
    let (page, template) = (read(PAGE), Template::read());
    let triggers = template.resources("AWS::Lambda::EventSourceMapping").len();
    // 650,000 requests at $0.40 a million.
    let cents = 26 * triggers;
    let said = format!(
        "ask {triggers} queues all the time: about 650,000 requests each | {}.{:02} |",
        cents / 100,
        cents % 100
    );
    assert!(page.contains(&said), "{PAGE} does not say: {said}");
}

#[test]
fn the_topic_is_encrypted_with_a_key_that_alarms_may_use() {
    let template = Template::read();
    let topic = &resource(&template, "AlarmTopic")["Properties"];
    assert_eq!(topic["KmsMasterKeyId"], json!({"Ref": "AlarmKey"}));
    let key = &resource(&template, "AlarmKey")["Properties"];
    let statements = key["KeyPolicy"]["Statement"].as_array().unwrap();
    let service = statements.iter().find(|statement| statement["Principal"]["Service"] == "cloudwatch.amazonaws.com");
    // With AWS's own key for SNS CloudWatch could not publish, and only the alarm's history would show it.
    assert_eq!(service.unwrap()["Action"], json!(["kms:Decrypt", "kms:GenerateDataKey*"]));
    let account = json!({"StringEquals": {"aws:SourceAccount": {"Ref": "AWS::AccountId"}}});
    assert_eq!(service.unwrap()["Condition"], account, "for alarms of this account alone");
    let subscription = resource(&template, "AlarmSubscription");
    assert_eq!(subscription["Condition"], "HasAlarmEmail");
    let wanted = json!({"TopicArn": {"Ref": "AlarmTopic"}, "Protocol": "email", "Endpoint": {"Ref": "AlarmEmail"}});
    assert_eq!(subscription["Properties"], wanted);
    assert_eq!(template.0["Parameters"]["AlarmEmail"]["Default"], "", "nobody has to have one");
}

#[test]
fn silence_is_a_fault_of_settle_alone() {
    for (id, alarm) in alarms(&Template::read()) {
        let wanted = match id {
            "SettleStoppedAlarm" => "breaching",
            // The metric is written every five minutes, and an open change does not end in between.
            "OpenIntentsAlarm" => "ignore",
            _ => "notBreaching",
        };
        assert_eq!(alarm["TreatMissingData"], wanted, "{id}");
    }
}

/// A failed caller triggers an alarm at once; retried work does so only after its retries fail.
#[test]
fn every_function_is_watched_as_its_callers_need_it() {
    let template = Template::read();
    let once = (1.0, 1.0, 0.0);
    for function in ["execute", "call-start"] {
        for metric in ["Errors", "Throttles"] {
            let alarm = about(&template, metric, &format!("{STACK}-{function}"));
            assert_eq!(
                trips(alarm.unwrap_or_else(|| panic!("{metric} of {function}"))),
                once,
                "{metric} of {function}"
            );
        }
    }
    for id in ["CallFallbackAlarm", "CallIncompleteAlarm", "ExecuteFaultsAlarm", "ToolFaultsAlarm"] {
        assert_eq!(trips(&resource(&template, id)["Properties"]), once, "{id}");
    }
    // Anybody may send them a few wrong requests.
    for id in ["CallStartRefusalsAlarm", "ExecuteRefusalsAlarm", "CallsRefusalsAlarm"] {
        assert_eq!(trips(&resource(&template, id)["Properties"]), (2.0, 3.0, 5.0), "{id}");
    }
    let behind_the_api = about(&template, "5xx", "<Api>").expect("an alarm of the API's 5xx");
    assert_eq!((&behind_the_api["Statistic"], trips(behind_the_api)), (&json!("Average"), (2.0, 3.0, 0.05)));

    let integrated: BTreeSet<String> = template.routes().into_iter().map(|route| route.function).collect();
    let by_itself = template.0["Resources"].as_object().unwrap().values().filter_map(|resource| {
        let target = match text(&resource["Type"]) {
            "AWS::Lambda::EventSourceMapping" => &resource["Properties"]["FunctionName"]["Ref"],
            "AWS::Scheduler::Schedule" => &resource["Properties"]["Target"]["Arn"]["Fn::GetAtt"],
            _ => return None,
        };
        Some(text(target).trim_end_matches(".Arn"))
    });
    for id in by_itself.collect::<BTreeSet<_>>() {
        let name = resolved(&template, &json!({"Ref": id}));
        let (bad, periods, above) =
            trips(about(&template, "Errors", &name).unwrap_or_else(|| panic!("errors of {name}")));
        assert!(bad >= 2.0 && periods > bad && above == 0.0, "{name}: one failure is tried again by itself");
        assert!(!integrated.contains(name.trim_start_matches("switchboard-")), "{name} has two doors");
    }
    for function in template.rest_routes().into_iter().map(|route| route.function) {
        assert!(
            about(&template, "5XXError", &format!("{STACK}-{function}")).is_some(),
            "5xx of the REST API of {function}"
        );
    }
}

/// Throttling of functions with waiting callers triggers an alarm: phone calls, services, agents and chats. The API's
/// 5xx cover dashboard users. Calls and events may not be repeated, the others ask again.
#[test]
fn every_function_that_callers_services_and_chats_wait_for_says_when_there_was_no_room() {
    const NOT_ASKED_AGAIN: [&str; 4] = ["execute", "call-start", "calls", "trigger"];
    let template = Template::read();
    let open = template.routes().into_iter().filter(|route| !route.jwt);
    let waited_for: BTreeSet<String> =
        open.chain(template.rest_routes()).map(|route| route.function).chain(["chat".to_owned()]).collect();
    assert!(
        NOT_ASKED_AGAIN.iter().all(|function| waited_for.contains(*function)) && waited_for.len() > 6,
        "{waited_for:?}"
    );
    for function in waited_for {
        let alarm = about(&template, "Throttles", &format!("{STACK}-{function}"));
        let alarm = alarm.unwrap_or_else(|| panic!("nothing tells that there was no room for {function}"));
        let wanted = if NOT_ASKED_AGAIN.contains(&function.as_str()) { (1.0, 1.0, 0.0) } else { (2.0, 3.0, 0.0) };
        assert_eq!(trips(alarm), wanted, "{function}");
    }
}

/// The start's tools are on a queue, but a caller is on the line, and few messages are no reason for `start-tools-wait`.
#[test]
fn run_tool_says_when_there_was_no_room_for_three_minutes() {
    let template = Template::read();
    let alarm = about(&template, "Throttles", &format!("{STACK}-run-tool")).expect("an alarm of run-tool's throttles");
    assert_eq!((&alarm["Period"], trips(alarm)), (&json!(60), (3.0, 3.0, 0.0)));
}

/// Functions that may loop drop nothing, so the alarm is about all functions of the account.
#[test]
fn a_chain_of_messages_that_lambda_stops_is_an_alarm_at_once() {
    let template = Template::read();
    let alarm = &resource(&template, "RecursionDropsAlarm")["Properties"];
    let metric = (&alarm["Namespace"], &alarm["MetricName"], alarm.get("Dimensions"));
    assert_eq!(metric, (&json!("AWS/Lambda"), &json!("RecursiveInvocationsDropped"), None));
    assert_eq!(trips(alarm), (1.0, 1.0, 0.0));
}

#[test]
fn a_queue_is_watched_and_a_retry_that_helps_is_no_alarm() {
    let template = Template::read();
    let queues = template.resources("AWS::SQS::Queue");
    let is_dead = |id: &str| {
        queues.values().any(|queue| queue["RedrivePolicy"]["deadLetterTargetArn"]["Fn::GetAtt"] == format!("{id}.Arn"))
    };
    for (id, queue) in &queues {
        let name = resolved(&template, &queue["QueueName"]);
        if is_dead(id) {
            let alarm = about(&template, "ApproximateNumberOfMessagesVisible", &name).unwrap_or_else(|| panic!("{id}"));
            assert_eq!((&alarm["Statistic"], trips(alarm)), (&json!("Maximum"), (1.0, 1.0, 0.0)), "{id}");
            continue;
        }
        let alarm = about(&template, "ApproximateAgeOfOldestMessage", &name).unwrap_or_else(|| panic!("age of {id}"));
        let (.., above) = trips(alarm);
        assert!(above >= 2.0 * number(&queue["VisibilityTimeout"]), "{id}: one retry is no reason");
        assert!(above < number(&queue["MessageRetentionPeriod"]), "{id}: SQS forgets messages before that");
    }
}

/// `CloudFormation` allows 500 resources per stack.
#[test]
fn the_template_has_room_left() {
    let count = Template::read().0["Resources"].as_object().unwrap().len();
    assert!(count <= 475, "{count} resources: a second stack is due soon");
}
