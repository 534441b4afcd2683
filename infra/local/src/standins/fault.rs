//! Faults that a stand-in shows on command.

use std::{collections::BTreeMap, sync::Mutex};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{exchange::Request, locked};

/// Whether the connection is cut before or after the request takes effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DropAt {
    Before,
    After,
}

/// Whether and when a request with a fault is carried out, relative to the delay.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Effect {
    /// Carried out, then the delay, then the answer.
    First,
    /// The delay, then carried out and answered.
    Last,
    /// Never carried out.
    None,
}

/// A fault for the next `times` matching requests. The first matching fault of the list applies.
///
/// By default a request is carried out before the delay, unless `status` or `body` replaces its answer; `effect`
/// overrides this. `drop` takes precedence: `before` never carries the request out, `after` always does.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Fault {
    /// Any method if absent.
    pub method: Option<String>,
    /// A part of the path; any path if absent.
    pub path: Option<String>,
    /// Answered with the service's own error body for this status, unless `body` is given.
    pub status: Option<u16>,
    /// A string is sent as text, any other value as JSON; the default status is 200.
    pub body: Option<Value>,
    /// Added to the real answer and to a replaced one.
    pub headers: BTreeMap<String, String>,
    pub delay_ms: u64,
    /// The connection is closed without an answer.
    pub drop: Option<DropAt>,
    pub effect: Option<Effect>,
    /// At least 1.
    pub times: u32,
}

impl Default for Fault {
    fn default() -> Self {
        Self {
            method: None,
            path: None,
            status: None,
            body: None,
            headers: BTreeMap::new(),
            delay_ms: 0,
            drop: None,
            effect: None,
            times: 1,
        }
    }
}

impl Fault {
    pub fn status(status: u16) -> Self {
        Self { status: Some(status), ..Self::default() }
    }

    /// With status 200.
    pub fn body(body: Value) -> Self {
        Self { body: Some(body), ..Self::default() }
    }

    /// Carried out at once, answered after the delay.
    pub fn delay(milliseconds: u64) -> Self {
        Self { delay_ms: milliseconds, ..Self::default() }
    }

    /// Carried out at once, answered after [`Standin::release`](super::Standin::release).
    pub fn held() -> Self {
        Self::delay(600_000)
    }

    pub fn drop_before() -> Self {
        Self { drop: Some(DropAt::Before), ..Self::default() }
    }

    pub fn drop_after() -> Self {
        Self { drop: Some(DropAt::After), ..Self::default() }
    }

    #[must_use]
    pub fn on(mut self, method: &str, path: &str) -> Self {
        self.method = Some(method.to_owned());
        self.path = Some(path.to_owned());
        self
    }

    #[must_use]
    pub fn times(mut self, times: u32) -> Self {
        self.times = times;
        self
    }

    #[must_use]
    pub fn with_body(mut self, body: Value) -> Self {
        self.body = Some(body);
        self
    }

    #[must_use]
    pub fn with_header(mut self, name: &str, value: &str) -> Self {
        self.headers.insert(name.to_owned(), value.to_owned());
        self
    }

    #[must_use]
    pub fn with_effect(mut self, effect: Effect) -> Self {
        self.effect = Some(effect);
        self
    }

    pub(super) fn effect(&self) -> Effect {
        let replaced = self.status.is_some() || self.body.is_some();
        match (self.drop, self.effect) {
            (Some(DropAt::Before), _) => Effect::None,
            (Some(DropAt::After), Some(Effect::Last)) => Effect::Last,
            (None, Some(chosen)) => chosen,
            (None, None) if replaced => Effect::None,
            (Some(DropAt::After), _) | (None, None) => Effect::First,
        }
    }

    fn matches(&self, request: &Request) -> bool {
        self.method.as_ref().is_none_or(|method| method.eq_ignore_ascii_case(&request.method))
            && self.path.as_ref().is_none_or(|part| request.path.contains(part.as_str()))
    }

    fn problem(&self) -> Option<&'static str> {
        if self.times == 0 {
            return Some("times: at least 1");
        }
        if self.status.is_some_and(|status| !(200..=599).contains(&status)) {
            return Some("status: 200 to 599");
        }
        None
    }
}

#[derive(Debug, Default)]
pub(super) struct Faults(Mutex<Vec<Fault>>);

impl Faults {
    pub(super) fn add(&self, fault: Fault) {
        locked(&self.0).push(fault);
    }

    /// Replaces all pending faults by one fault or a list.
    pub(super) fn replace(&self, faults: Value) -> Result<(), String> {
        let faults = match faults {
            Value::Array(items) => items,
            one => vec![one],
        };
        let faults = faults
            .into_iter()
            .map(|fault| {
                let fault: Fault = serde_json::from_value(fault).map_err(|error| error.to_string())?;
                fault.problem().map_or(Ok(fault), |problem| Err(problem.to_owned()))
            })
            .collect::<Result<Vec<_>, String>>()?;
        *locked(&self.0) = faults;
        Ok(())
    }

    pub(super) fn left(&self) -> Vec<Fault> {
        locked(&self.0).clone()
    }

    pub(super) fn clear(&self) {
        locked(&self.0).clear();
    }

    pub(super) fn end_delays(&self) {
        for fault in locked(&self.0).iter_mut() {
            fault.delay_ms = 0;
        }
    }

    /// The fault that applies to this request; uses one of its `times`.
    pub(super) fn meet(&self, request: &Request) -> Option<Fault> {
        let mut faults = locked(&self.0);
        faults.retain(|fault| fault.times > 0);
        let position = faults.iter().position(|fault| fault.matches(request))?;
        let fault = faults.get_mut(position)?;
        fault.times -= 1;
        let met = fault.clone();
        if met.times == 0 {
            faults.remove(position);
        }
        Some(met)
    }
}
