//! Filters of lists, as query parameters.

use std::str::FromStr;

use lambda_http::RequestExt;
use serde_json::json;

use super::{Asks, Found, Operation, Paged, Part, Wanted};
use crate::{
    Error, Result,
    described::{Described, Json, Schemas, names},
    models::{
        AgentId, ApprovalStatus, AutomationId, AutomationStatus, CallStatus, E164, ExecutionId, ExecutionOrigin,
        ExecutionStatus, Fault, NotE164, RunStatus, Timestamp, ToolId, ToolType,
    },
    store::{CreatedAt, CreatedFilter, ExecutionFilter, OfOrganization},
};

impl Asks for ToolType {
    const NAME: &'static str = "type";
    const DOC: &'static str = "Only tools of this type.";
}

impl Asks for ApprovalStatus {
    const NAME: &'static str = "status";
    const DOC: &'static str = "Only items with this status.";
}

impl Asks for AutomationStatus {
    const NAME: &'static str = "status";
    const DOC: &'static str = "Only items with this status.";
}

impl Asks for ExecutionStatus {
    const NAME: &'static str = "status";
    const DOC: &'static str = "Only executions with this status.";
}

pub struct YesNo(pub bool);

impl FromStr for YesNo {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        text.parse().map(Self).map_err(|_neither| "must be true or false")
    }
}

impl Described for YesNo {
    fn schema(_: &mut Schemas) -> serde_json::Value {
        json!({"type": "boolean"})
    }
}

impl Asks for YesNo {
    const NAME: &'static str = "failed";
    const DOC: &'static str = "True: only executions that did not succeed.";
}

impl Asks for ToolId {
    const NAME: &'static str = "tool_id";
    const DOC: &'static str = "Only executions of this tool.";
}

impl Asks for ExecutionOrigin {
    const NAME: &'static str = "trigger";
    const DOC: &'static str = "Only executions with this cause.";
}

impl Asks for Fault {
    const NAME: &'static str = "fault";
    const DOC: &'static str = "Only failures that are this one's fault.";

    fn asked(_: &mut Schemas) -> Json {
        names(&["ours", "configuration", "service", "caller", "model"])
    }
}

fn moment(found: &Found<'_>, name: &'static str) -> Result<Option<Timestamp>> {
    let text = found.request.query_string_parameters();
    let moment = text.first(name).filter(|text| !text.is_empty()).map(str::parse::<Timestamp>).transpose();
    moment.map_err(|_no_moment| Error::invalid(name, "must be a time in ISO 8601, for example 2026-11-23T09:30:00Z"))
}

/// `?since=&until=`
fn period(found: &Found<'_>) -> Result<(Option<Timestamp>, Option<Timestamp>)> {
    let (since, until) = (moment(found, "since")?, moment(found, "until")?);
    if since.zip(until).is_some_and(|(since, until)| since > until) {
        return Err(Error::invalid("until", "must not be before since"));
    }
    Ok((since, until))
}

fn describe_period(operation: &mut Operation) {
    let moment = || json!({"type": "string", "format": "date-time"});
    operation.may_ask("since", "Only items that began at this time or later.", moment());
    operation.may_ask("until", "Only items that began at this time or earlier.", moment());
}

/// `?limit=&cursor=&since=&until=` of a list in order of creation.
pub struct Newest(pub CreatedFilter);

impl Part for Newest {
    const QUERY: &'static [&'static str] = &["limit", "cursor", "since", "until"];

    fn of(found: &Found<'_>) -> Result<Self> {
        let Paged { limit, cursor: after } = Paged::of(found)?;
        let (since, until) = period(found)?;
        Ok(Self(CreatedFilter { limit, after, since, until }))
    }

    fn describe(operation: &mut Operation, schemas: &mut Schemas) {
        Paged::<CreatedAt>::describe(operation, schemas);
        describe_period(operation);
    }
}

/// `?limit=&cursor=&status=&failed=&since=&until=` of the history of executions.
pub struct History(pub ExecutionFilter);

/// Further parameters of the history of all tools.
pub struct OfAllTools(pub OfOrganization);

impl Part for OfAllTools {
    const QUERY: &'static [&'static str] = &["tool_id", "trigger", "fault"];

    fn of(found: &Found<'_>) -> Result<Self> {
        let (Wanted(tool), Wanted(trigger), Wanted(fault)) =
            (Wanted::of(found)?, Wanted::of(found)?, Wanted::of(found)?);
        Ok(Self(OfOrganization { tool, trigger, fault }))
    }

    fn describe(operation: &mut Operation, schemas: &mut Schemas) {
        Wanted::<ToolId>::describe(operation, schemas);
        Wanted::<ExecutionOrigin>::describe(operation, schemas);
        Wanted::<Fault>::describe(operation, schemas);
    }
}

impl Part for History {
    const QUERY: &'static [&'static str] = &["limit", "cursor", "status", "failed", "since", "until"];

    fn of(found: &Found<'_>) -> Result<Self> {
        let Paged { limit, cursor: after } = Paged::of(found)?;
        let (Wanted(status), Wanted(failed)) = (Wanted::of(found)?, Wanted::of(found)?);
        let failed = failed.is_some_and(|YesNo(failed)| failed);
        let (since, until) = period(found)?;
        Ok(Self(ExecutionFilter { limit, after, status, failed, since, until }))
    }

    fn describe(operation: &mut Operation, schemas: &mut Schemas) {
        Paged::<ExecutionId>::describe(operation, schemas);
        Wanted::<ExecutionStatus>::describe(operation, schemas);
        Wanted::<YesNo>::describe(operation, schemas);
        describe_period(operation);
    }
}

impl Asks for AgentId {
    const NAME: &'static str = "agent_id";
    const DOC: &'static str = "Only calls of this agent.";
}

impl Asks for CallStatus {
    const NAME: &'static str = "status";
    const DOC: &'static str = "Only calls with this status.";
}

impl Asks for AutomationId {
    const NAME: &'static str = "automation_id";
    const DOC: &'static str = "Only items of this automation.";
}

impl Asks for RunStatus {
    const NAME: &'static str = "status";
    const DOC: &'static str = "Only runs with this status.";
}

/// A phone number in a query. A `+` that is not percent-encoded arrives as a blank.
pub struct Number(pub E164);

impl FromStr for Number {
    type Err = NotE164;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let digits = text.strip_prefix(' ').map(|digits| format!("+{digits}"));
        digits.as_deref().unwrap_or(text).parse().map(Self)
    }
}

impl Described for Number {
    fn schema(schemas: &mut Schemas) -> serde_json::Value {
        E164::schema(schemas)
    }
}

impl Asks for Number {
    const NAME: &'static str = "number";
    const DOC: &'static str = "Only calls from or to this number.";
}

/// True, false, or both.
pub struct DryRun(pub bool);

impl FromStr for DryRun {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        YesNo::from_str(text).map(|YesNo(dry_run)| Self(dry_run))
    }
}

impl Described for DryRun {
    fn schema(schemas: &mut Schemas) -> serde_json::Value {
        YesNo::schema(schemas)
    }
}

impl Asks for DryRun {
    const NAME: &'static str = "dry_run";
    const DOC: &'static str = "True: only dry runs; false: only others.";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_whose_plus_arrives_as_a_blank_is_read() {
        for text in ["+14155550101", " 14155550101", " 1 415 555 0101"] {
            assert!(text.parse::<Number>().is_ok_and(|Number(number)| number.to_string() == "+14155550101"), "{text}");
        }
        assert!("14155550101".parse::<Number>().is_err());
    }
}
