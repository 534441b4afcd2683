//! Readers that are private otherwise, for `tests/fuzz`.

use jiff::tz::TimeZone;
use serde_json::{Map, Value};

use super::{Condition, Data, Lowered, Outputs, definition::diagnostics::Diagnostics};
use crate::models::Timestamp;

/// The data of a run that begins at `now`, in UTC, for no user.
pub const fn data<'a>(
    variables: &'a Map<String, Value>,
    outputs: &'a Outputs,
    trigger_data: &'a Lowered<'a>,
    now: Timestamp,
) -> Data<'a> {
    Data { variables, outputs, trigger_data, user: &Value::Null, now, zone: TimeZone::UTC, item: None }
}

/// Reads a condition, and evaluates it. `None`: it is none; false: it compares too much.
pub fn condition(value: &Value, data: &Data<'_>) -> Option<bool> {
    let mut diagnostics = Diagnostics::default();
    let condition = Condition::read(value, "", &mut diagnostics)?;
    Some(data.explain(&condition).is_ok())
}
