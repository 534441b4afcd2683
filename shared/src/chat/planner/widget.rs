//! Widgets: a tool result with a member `widget` of one of these forms is drawn beside the answer.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use url::Url;

use crate::described::Described;

/// In bytes of JSON; a larger widget is not drawn and stays in the result.
const LARGEST: usize = 64 * 1024;

/// Something to be drawn beside the text; a tool gives it as `widget` in its result. Unknown members are dropped.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Described)]
#[serde(tag = "type", rename_all = "snake_case")]
#[schema(name = "Widget")]
pub enum Widget {
    Table {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        title: Option<String>,
        columns: Vec<String>,
        /// Each row has as many cells as `columns`.
        rows: Vec<Vec<Value>>,
    },
    Chart {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        title: Option<String>,
        kind: ChartKind,
        labels: Vec<String>,
        series: Vec<Series>,
    },
    Map {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        title: Option<String>,
        markers: Vec<Marker>,
    },
    Card {
        title: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        text: Option<String>,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        fields: Vec<NamedValue>,
        /// https only.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[schema(format = "uri")]
        url: Option<String>,
    },
    List {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        title: Option<String>,
        items: Vec<String>,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Described)]
#[serde(rename_all = "snake_case")]
pub enum ChartKind {
    Bar,
    Line,
    Pie,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Described)]
pub struct Series {
    pub name: String,
    pub values: Vec<f64>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Described)]
pub struct Marker {
    /// Degrees.
    pub latitude: f64,
    pub longitude: f64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Described)]
pub struct NamedValue {
    pub name: String,
    pub value: String,
}

impl Widget {
    pub fn in_result(result: &Value) -> Option<Self> {
        let value = result.get("widget")?;
        let read = Self::deserialize(value).ok().filter(Self::can_be_drawn);
        if read.is_none() || value.to_string().len() > LARGEST {
            tracing::info!("a tool gave a widget that cannot be drawn");
            return None;
        }
        read
    }

    fn can_be_drawn(&self) -> bool {
        match self {
            Self::Table { columns, rows, .. } => rows.iter().all(|row| row.len() == columns.len()),
            Self::Chart { labels, series, .. } => series.iter().all(|series| series.values.len() == labels.len()),
            Self::Map { markers, .. } => {
                markers.iter().all(|at| at.latitude.abs() <= 90.0 && at.longitude.abs() <= 180.0)
            }
            Self::Card { url, .. } => {
                url.as_ref().is_none_or(|url| url.starts_with("https://") && Url::parse(url).is_ok())
            }
            Self::List { .. } => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_form_is_read_and_given_back_as_it_was() {
        for widget in [
            json!({"type": "table", "title": "Sales", "columns": ["year", "sum"], "rows": [[2024, 7.5], ["2025", null]]}),
            json!({"type": "chart", "kind": "bar", "labels": ["a", "b"], "series": [{"name": "s", "values": [1.0, 2.5]}]}),
            json!({"type": "map", "markers": [{"latitude": 41.1, "longitude": -8.6, "label": "Porto"}]}),
            json!({"type": "card", "title": "Ada", "fields": [{"name": "born", "value": "1815"}], "url": "https://a.example"}),
            json!({"type": "list", "items": ["one", "two"]}),
        ] {
            let read = Widget::in_result(&json!({"widget": widget, "more": 1})).unwrap();
            assert_eq!(serde_json::to_value(read).unwrap(), widget);
        }
    }

    #[test]
    fn a_widget_that_cannot_be_drawn_is_refused() {
        for widget in [
            json!({"type": "hologram"}),
            json!("table"),
            json!({"type": "table", "columns": ["a"], "rows": [[1, 2]]}),
            json!({"type": "chart", "kind": "bar", "labels": ["a"], "series": [{"name": "s", "values": []}]}),
            json!({"type": "map", "markers": [{"latitude": 91, "longitude": 0}]}),
            json!({"type": "card", "title": "x", "url": "javascript:alert(1)"}),
            json!({"type": "card", "title": "x", "url": "https://"}),
            json!({"type": "list", "items": ["x".repeat(LARGEST)]}),
        ] {
            assert_eq!(Widget::in_result(&json!({"widget": widget})), None);
        }
        assert_eq!(Widget::in_result(&json!("text")), None);
    }
}
