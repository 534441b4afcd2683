//! Captures the metrics of handlers.

use std::{
    cell::RefCell,
    collections::{BTreeMap, BTreeSet},
};

use serde_json::Value;
use shared::telemetry;

thread_local! {
    static CAUGHT: RefCell<Option<Vec<Value>>> = const { RefCell::new(None) };
}

/// Name and dimensions: CloudWatch's identity of a metric.
pub type Metric = (String, BTreeMap<String, String>);

/// Captures the metrics of this thread until dropped.
pub struct Metrics(());

impl Metrics {
    pub fn capture() -> Self {
        telemetry::metrics_to(keep);
        CAUGHT.with_borrow_mut(|caught| *caught = Some(Vec::new()));
        Self(())
    }

    /// Every value so far, in order, parsed as CloudWatch parses a line.
    pub fn values(&self) -> Vec<(Metric, f64)> {
        let lines = CAUGHT.with_borrow(|caught| caught.clone().unwrap_or_default());
        lines.iter().flat_map(metrics).collect()
    }

    pub fn seen(&self) -> BTreeSet<Metric> {
        self.values().into_iter().map(|(metric, _)| metric).collect()
    }

    /// The sum of a metric's values over all dimensions.
    pub fn sum(&self, name: &str) -> f64 {
        self.values().iter().filter(|((metric, _), _)| metric == name).map(|(_, value)| value).sum()
    }
}

impl Drop for Metrics {
    fn drop(&mut self) {
        CAUGHT.with_borrow_mut(|caught| *caught = None);
    }
}

fn keep(line: &Value) {
    CAUGHT.with_borrow_mut(|caught| {
        if let Some(caught) = caught {
            caught.push(line.clone());
        }
    });
}

fn metrics(line: &Value) -> Vec<(Metric, f64)> {
    let declared = &line["_aws"]["CloudWatchMetrics"][0];
    let dimensions = declared["Dimensions"][0].as_array().expect("a set of dimensions");
    let dimension = |name: &Value| {
        let name = name.as_str().expect("a name");
        (name.to_owned(), line[name].as_str().expect("a dimension is text").to_owned())
    };
    let dimensions: BTreeMap<String, String> = dimensions.iter().map(dimension).collect();
    let metric = |metric: &Value| {
        let name = metric["Name"].as_str().expect("a name");
        let value = line[name].as_f64().expect("a metric is a number");
        ((name.to_owned(), dimensions.clone()), value)
    };
    declared["Metrics"].as_array().expect("metrics").iter().map(metric).collect()
}
