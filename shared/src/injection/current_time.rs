//! `current_time(timeZone?)`: the current time in a time zone.

use futures_util::future::{FutureExt, ready};
use jiff::tz::TimeZone;
use serde_json::{Map, Value, json};

use crate::{
    models::{Timestamp, ToolEffect},
    tool::{CallContext, CallableTool, Parameters, ToolFuture, ToolOutcome, ToolSpec},
};

pub struct CurrentTime {
    spec: ToolSpec,
}

impl CurrentTime {
    pub fn new() -> Self {
        let zone = json!({"type": "string", "description": "IANA name, such as Europe/Lisbon; default UTC"});
        let text = || json!({"type": "string"});
        let spec = ToolSpec {
            name: "current_time".to_owned(),
            description: "The current date and time, in a time zone.".to_owned(),
            parameters: Parameters::new([("timeZone", zone, false)]),
            returns: json!({
                "type": "object",
                "properties": {"time": text(), "time_zone": text(), "weekday": text()},
                "required": ["time", "time_zone", "weekday"],
            }),
            own_examples: vec![
                "current_time()".to_owned(),
                r#"current_time("Europe/Lisbon")"#.to_owned(),
                r#"current_time({timeZone: "America/New_York"})"#.to_owned(),
            ],
            effect: ToolEffect::None,
            repeatable: false,
        };
        Self { spec }
    }
}

impl Default for CurrentTime {
    fn default() -> Self {
        Self::new()
    }
}

impl CallableTool for CurrentTime {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn call<'a>(&'a self, arguments: Map<String, Value>, _: &'a CallContext<'a>) -> ToolFuture<'a> {
        let name = arguments.get("timeZone").and_then(Value::as_str).unwrap_or("UTC");
        ready(Ok(told(Timestamp::now(), name))).boxed()
    }
}

fn told(now: Timestamp, name: &str) -> ToolOutcome {
    let Ok(zone) = TimeZone::get(name) else {
        return ToolOutcome::failed("There is no such time zone; give an IANA name, such as Europe/Lisbon.");
    };
    let Ok(now) = jiff::Timestamp::from_millisecond(now.as_millis()) else {
        return ToolOutcome::failed("The time is not known just now; do without it.");
    };
    let local = now.to_zoned(zone);
    ToolOutcome::succeeded(json!({
        "time": local.strftime("%Y-%m-%dT%H:%M:%S%:z").to_string(),
        "time_zone": name,
        "weekday": local.strftime("%A").to_string(),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_is_told_with_its_offset_summer_and_winter() {
        let told = |at: &str, zone| told(at.parse().unwrap(), zone).into_model_value();
        let summer = json!({"time": "2026-07-04T18:30:00+02:00", "time_zone": "Europe/Berlin", "weekday": "Saturday"});
        assert_eq!(told("2026-07-04T16:30:00Z", "Europe/Berlin"), summer);
        assert_eq!(told("2026-01-05T23:30:00Z", "Europe/Berlin")["time"], "2026-01-06T00:30:00+01:00");
        assert_eq!(told("2026-01-05T23:30:00Z", "UTC")["time"], "2026-01-05T23:30:00+00:00");
    }

    #[test]
    fn an_unknown_time_zone_is_reported_with_the_next_step() {
        for name in ["", "Berlin", "Europe/Atlantis", "../etc/passwd"] {
            let outcome = told(Timestamp::now(), name);
            assert!(outcome.is_failed(), "{name}");
            assert!(outcome.into_model_value().as_str().unwrap().contains("an IANA name"));
        }
    }
}
