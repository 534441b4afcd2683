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

macro_rules! asks {
    ($($type:ty: $name:literal, $doc:literal;)+) => {$(
        impl Asks for $type {
            const NAME: &'static str = $name;
            const DOC: &'static str = $doc;
        }
    )+};
}

asks! {
    AgentId: "agent_id", "Only calls of this agent.";
    ApprovalStatus: "status", "Only items with this status.";
    AutomationId: "automation_id", "Only items of this automation.";
    AutomationStatus: "status", "Only items with this status.";
    CallStatus: "status", "Only calls with this status.";
    ExecutionOrigin: "trigger", "Only executions with this cause.";
    ExecutionStatus: "status", "Only executions with this status.";
    Number: "number", "Only calls from or to this number.";
    RunStatus: "status", "Only runs with this status.";
    ToolId: "tool_id", "Only executions of this tool.";
    ToolType: "type", "Only tools of this type.";
}

/// Filters whose values are `true` and `false`.
#[macro_export]
macro_rules! bool_filters {
    ($($vis:vis $type:ident: $name:literal, $doc:literal;)+) => {$(
        $vis struct $type(pub bool);

        impl std::str::FromStr for $type {
            type Err = &'static str;

            fn from_str(text: &str) -> std::result::Result<Self, Self::Err> {
                text.parse().map(Self).map_err(|_neither| "must be true or false")
            }
        }

        $crate::described!($type => {"type": "boolean"});

        impl $crate::http::Asks for $type {
            const NAME: &'static str = $name;
            const DOC: &'static str = $doc;
        }
    )+};
}

bool_filters! {
    pub YesNo: "failed", "True: only executions that did not succeed.";
    pub DryRun: "dry_run", "True: only dry runs; false: only others.";
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
    let moment = moment.map(|moment| moment.map(|moment| moment.max(Timestamp::FIRST)));
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
