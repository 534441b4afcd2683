//! The dashboard: rejects contents that CloudWatch would refuse or show empty; the local AWS accepts any text.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};
use tests::{Template, metrics::Metric};

use super::{checked, resolved, resource, text};

/// The width of CloudWatch's grid.
const WIDTH: u64 = 24;

fn widgets(template: &Template) -> Vec<Value> {
    let body = resolved(template, &resource(template, "Dashboard")["Properties"]["DashboardBody"]);
    let body: Value =
        serde_json::from_str(&body).unwrap_or_else(|error| panic!("the dashboard is no JSON: {error}\n{body}"));
    let fields: Vec<&String> = body.as_object().unwrap().keys().collect();
    assert_eq!(fields, ["widgets"]);
    body["widgets"].as_array().unwrap().clone()
}

/// The metrics of our own namespace that the dashboard shows.
pub(super) fn shown(template: &Template) -> BTreeMap<String, Metric> {
    let mut ours = BTreeMap::new();
    for widget in widgets(template).iter().filter(|widget| widget["type"] == "metric") {
        let title = text(&widget["properties"]["title"]);
        for line in widget["properties"]["metrics"].as_array().unwrap() {
            let mut line = line.as_array().unwrap().as_slice();
            if let [rest @ .., options @ Value::Object(_)] = line {
                let known = ["label", "stat", "yAxis"];
                assert!(
                    options.as_object().unwrap().keys().all(|key| known.contains(&key.as_str())),
                    "{title}: {options}"
                );
                line = rest;
            }
            let [namespace, name, dimensions @ ..] = line else { panic!("{title}: {line:?}") };
            assert!(dimensions.len().is_multiple_of(2), "{title}: a dimension is a name and a value: {line:?}");
            let dimensions: BTreeMap<String, String> =
                dimensions.chunks(2).map(|pair| (text(&pair[0]).to_owned(), text(&pair[1]).to_owned())).collect();
            let by = format!("{title}: {name} {dimensions:?}");
            let metric = checked(template, &by, text(namespace), text(name), dimensions);
            ours.extend(metric.map(|metric| (by, metric)));
        }
    }
    ours
}

#[test]
fn widgets_stand_beside_each_other_within_the_grid() {
    let mut taken = BTreeSet::new();
    let widgets = widgets(&Template::read());
    assert!(widgets.len() <= 500, "CloudWatch takes no more");
    for widget in &widgets {
        let title = text(&widget["properties"]["title"]);
        let side = |name: &str| widget[name].as_u64().unwrap_or_else(|| panic!("{title}: {name} is a whole number"));
        let (x, y, width, height) = (side("x"), side("y"), side("width"), side("height"));
        assert!(width > 0 && height > 0 && height <= 1_000 && x + width <= WIDTH, "{title} leaves the grid");
        for place in (x..x + width).flat_map(|x| (y..y + height).map(move |y| (x, y))) {
            assert!(taken.insert(place), "{title} stands on another one");
        }
    }
}

#[test]
fn graphs_have_titles() {
    for widget in widgets(&Template::read()) {
        let properties = &widget["properties"];
        let title = text(&properties["title"]);
        if widget["type"] == "alarm" {
            continue;
        }
        assert_eq!((&widget["type"], &properties["view"]), (&json!("metric"), &json!("timeSeries")), "{title}");
        assert_eq!(properties["region"], "eu-central-1", "{title}: CloudWatch wants the region of each");
        assert_eq!(properties["period"], 300, "{title}");
        let statistic = |statistic: &Value| ["Sum", "Maximum", "p50", "p99"].contains(&text(statistic));
        assert!(statistic(&properties["stat"]), "{title}");
        let metrics = properties["metrics"].as_array().unwrap();
        assert!(!metrics.is_empty() && metrics.len() <= 500, "{title}");
        for options in metrics.iter().filter_map(|metric| metric.as_array().unwrap().last()?.as_object()) {
            assert!(options.get("stat").is_none_or(statistic), "{title}");
        }
    }
}

#[test]
fn every_alarm_is_on_it() {
    let template = Template::read();
    let widgets = widgets(&template);
    let on_it = widgets.iter().filter(|widget| widget["type"] == "alarm");
    let on_it: Vec<&str> =
        on_it.flat_map(|widget| widget["properties"]["alarms"].as_array().unwrap()).map(text).collect();
    assert!(on_it.len() <= 100, "CloudWatch shows no more in one widget");
    let wanted: BTreeSet<String> =
        template.resources("AWS::CloudWatch::Alarm").keys().map(|id| format!("<{id}>")).collect();
    assert_eq!(on_it.iter().map(|alarm| (*alarm).to_owned()).collect::<BTreeSet<_>>(), wanted);
}

/// The value of `Fn::If` in a partition of AWS; its conditions compare the partition.
fn in_partition<'t>(template: &'t Template, value: &'t Value, partition: &str) -> &'t str {
    let Some([condition, yes, no]) = value["Fn::If"].as_array().map(Vec::as_slice) else { return text(value) };
    let condition = &template.0["Conditions"][text(condition)]["Fn::Equals"];
    assert_eq!(condition[0], json!({"Ref": "AWS::Partition"}));
    in_partition(template, if condition[1] == partition { yes } else { no }, partition)
}

#[test]
fn its_address_is_that_of_the_partitions_console() {
    let template = Template::read();
    let address = &template.0["Outputs"]["DashboardUrl"]["Value"]["Fn::Sub"];
    assert!(text(&address[0]).starts_with("https://${Console}/cloudwatch/home?region=${AWS::Region}#dashboards:name="));
    for (partition, console) in [
        ("aws", "console.aws.amazon.com"),
        ("aws-us-gov", "console.amazonaws-us-gov.com"),
        ("aws-cn", "console.amazonaws.cn"),
    ] {
        assert_eq!(in_partition(&template, &address[1]["Console"], partition), console, "{partition}");
    }
}
