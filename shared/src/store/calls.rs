//! `calls`. Key: id, which is VAPI's id of the call. Index `by_organization`: `organization_id`, `created_at`.
//!
//! What the start of a call brings together is brought together here: each tool adds its result in one write, whose answer
//! says whether it was the last, and one conditional write decides who tells the model.

use aws_sdk_dynamodb::{
    Client,
    operation::update_item::builders::UpdateItemFluentBuilder,
    types::{AttributeValue, ReturnValue, ReturnValuesOnConditionCheckFailure},
};

use super::{
    Cursor, Page,
    database::{Database, condition_failure, failed, from_item, text, to_item},
};
use crate::{
    Error, Result,
    models::{Call, CallId, CallStatus, ControlUrl, ExecutionId, OrganizationId, Timestamp, Unowned},
};

#[derive(Clone)]
pub struct Calls {
    client: Client,
    table: String,
}

/// What became of a result that was added.
#[derive(Debug)]
pub enum Added {
    /// It is new; the call as it is with it.
    Now(Box<Call>),
    /// It, or another outcome of the same run, was there.
    Before(Box<Call>),
    /// The call's row is not there, or not yet.
    NoCall,
}

/// What VAPI told of a call's end.
#[derive(Debug, Default)]
pub struct End {
    pub at: Option<Timestamp>,
    pub reason: Option<String>,
    pub duration_seconds: Option<f64>,
    pub cost: Option<f64>,
}

impl Calls {
    pub fn new(database: &Database) -> Self {
        Self { client: database.client.clone(), table: database.table("calls") }
    }

    /// The call, if it came in through us. Read beside the tool that tells whose call it must be.
    pub async fn find(&self, id: &CallId) -> Result<Option<Unowned<Call>>> {
        let found = self.client.get_item().table_name(&self.table).key("id", text(id)).send().await.map_err(failed)?;
        found.item.map(|item| from_item(item).map(Unowned::new)).transpose()
    }

    /// A page of the organization's calls, newest first.
    pub async fn page(&self, organization: OrganizationId, after: Option<&Cursor>, limit: i32) -> Result<Page<Call>> {
        let query = self.client.query().table_name(&self.table).index_name("by_organization");
        Page::newest_of(query, organization, after, limit).await
    }

    /// Writes a call that came in. One that is there stays as it is.
    pub async fn put(&self, call: &Call) -> Result<()> {
        let outcome = self
            .client
            .put_item()
            .table_name(&self.table)
            .set_item(Some(to_item(call)?))
            .condition_expression("attribute_not_exists(#id)")
            .expression_attribute_names("#id", "id")
            .send()
            .await;
        match outcome {
            Ok(_) => Ok(()),
            Err(error) if condition_failure(&error).is_some() => Ok(()),
            Err(error) => Err(failed(error)),
        }
    }

    /// Adds what came of a tool that the call's start set off: the line to be told, or nothing to tell. The first outcome of
    /// a run stays.
    pub async fn add_result(
        &self,
        organization: OrganizationId,
        id: &CallId,
        execution: ExecutionId,
        line: Option<&str>,
    ) -> Result<Added> {
        let value = line.map_or(AttributeValue::Null(true), text);
        let outcome = self
            .of_organization(organization, id)
            .update_expression("SET #results.#execution = :line, #updated = :updated")
            .condition_expression("#organization = :organization AND attribute_not_exists(#results.#execution)")
            .expression_attribute_names("#results", "results")
            .expression_attribute_names("#execution", execution.to_string())
            .expression_attribute_values(":line", value)
            .return_values_on_condition_check_failure(ReturnValuesOnConditionCheckFailure::AllOld)
            .send()
            .await;
        let error = match outcome {
            Ok(updated) => return Ok(Added::Now(Box::new(from_item(updated.attributes.unwrap_or_default())?))),
            Err(error) => error,
        };
        match condition_failure(&error) {
            Some(item) if item.is_empty() => Ok(Added::NoCall),
            Some(item) => {
                let call: Call = from_item(item)?;
                if call.organization_id == organization { Ok(Added::Before(Box::new(call))) } else { Ok(Added::NoCall) }
            }
            None => Err(failed(error)),
        }
    }

    /// Takes the results to be told to the model. `None`: somebody else has, or there is no such call.
    pub async fn take_context(&self, organization: OrganizationId, id: &CallId) -> Result<Option<Call>> {
        let outcome = self
            .of_organization(organization, id)
            .update_expression("SET #taken = :updated, #updated = :updated")
            .condition_expression("#organization = :organization AND attribute_not_exists(#taken)")
            .expression_attribute_names("#taken", "context_taken_at")
            .send()
            .await;
        match outcome {
            Ok(updated) => from_item(updated.attributes.unwrap_or_default()).map(Some),
            Err(error) if condition_failure(&error).is_some() => Ok(None),
            Err(error) => Err(failed(error)),
        }
    }

    /// Notes whether the call took what it was to be told.
    pub async fn note_context(&self, organization: OrganizationId, id: &CallId, told: Result<(), &str>) -> Result<()> {
        let request = self.of_organization(organization, id).condition_expression("#organization = :organization");
        let request = match told {
            Ok(()) => request
                .update_expression("SET #injected = if_not_exists(#injected, :updated), #updated = :updated")
                .expression_attribute_names("#injected", "context_injected_at"),
            Err(why) => request
                .update_expression("SET #error = :why, #failed = :updated, #updated = :updated")
                .expression_attribute_names("#error", "context_error")
                .expression_attribute_names("#failed", "context_failed_at")
                .expression_attribute_values(":why", text(why)),
        };
        match request.send().await {
            Ok(_) => Ok(()),
            Err(error) if condition_failure(&error).is_some() => Ok(()),
            Err(error) => Err(failed(error)),
        }
    }

    /// Notes how far VAPI says the call is, and where it is controlled if that was not known. A call that has ended stays so,
    /// and one that has begun does not ring again, in whichever order VAPI's messages arrive.
    pub async fn note_status(
        &self,
        organization: OrganizationId,
        id: &CallId,
        status: CallStatus,
        control_url: Option<&ControlUrl>,
    ) -> Result<()> {
        let mut set = vec!["#status = :status", "#updated = :updated"];
        let mut condition = "#organization = :organization AND attribute_not_exists(#ended)".to_owned();
        let mut request = self.of_organization(organization, id);
        if matches!(status, CallStatus::Scheduled | CallStatus::Queued | CallStatus::Ringing) {
            condition.push_str(" AND NOT #status IN (:in_progress, :forwarding)");
            request = request
                .expression_attribute_values(":in_progress", super::to_attribute(&CallStatus::InProgress)?)
                .expression_attribute_values(":forwarding", super::to_attribute(&CallStatus::Forwarding)?);
        }
        let mut request = request
            .condition_expression(condition)
            .expression_attribute_names("#status", "status")
            .expression_attribute_names("#ended", "ended_at")
            .expression_attribute_values(":status", super::to_attribute(&status)?);
        if let Some(url) = control_url {
            set.push("#url = if_not_exists(#url, :url)");
            request = request
                .expression_attribute_names("#url", "control_url")
                .expression_attribute_values(":url", super::to_attribute(url)?);
        }
        match request.update_expression(format!("SET {}", set.join(", "))).send().await {
            Ok(_) => Ok(()),
            Err(error) if condition_failure(&error).is_some() => Ok(()),
            Err(error) => Err(failed(error)),
        }
    }

    /// Closes the call with what VAPI told of its end; what an earlier message told stays unless this one says more.
    pub async fn close(&self, organization: OrganizationId, id: &CallId, end: &End) -> Result<()> {
        let mut set = vec!["#status = :ended", "#updated = :updated"];
        let mut request = self
            .of_organization(organization, id)
            .condition_expression("#organization = :organization")
            .expression_attribute_names("#status", "status")
            .expression_attribute_values(":ended", super::to_attribute(&CallStatus::Ended)?)
            .expression_attribute_names("#at", "ended_at");
        match end.at {
            Some(at) => {
                set.push("#at = :at");
                request = request.expression_attribute_values(":at", text(at));
            }
            None => set.push("#at = if_not_exists(#at, :updated)"),
        }
        if let Some(reason) = &end.reason {
            set.push("#reason = :reason");
            request = request
                .expression_attribute_names("#reason", "ended_reason")
                .expression_attribute_values(":reason", text(reason));
        }
        for (name, alias, placeholder, set_it, value) in [
            ("duration_seconds", "#duration", ":duration", "#duration = :duration", end.duration_seconds),
            ("cost", "#cost", ":cost", "#cost = :cost", end.cost),
        ] {
            if let Some(value) = value {
                set.push(set_it);
                request = request
                    .expression_attribute_names(alias, name)
                    .expression_attribute_values(placeholder, super::to_attribute(&value)?);
            }
        }
        match request.update_expression(format!("SET {}", set.join(", "))).send().await {
            Ok(_) => Ok(()),
            Err(error) if condition_failure(&error).is_some() => Err(Error::NotFound("call")),
            Err(error) => Err(failed(error)),
        }
    }

    /// An update that gives the row as it is afterwards; `#organization`, `#updated` and their values are there to be used.
    fn of_organization(&self, organization: OrganizationId, id: &CallId) -> UpdateItemFluentBuilder {
        self.client
            .update_item()
            .table_name(&self.table)
            .key("id", text(id))
            .expression_attribute_names("#organization", "organization_id")
            .expression_attribute_names("#updated", "updated_at")
            .expression_attribute_values(":organization", text(organization))
            .expression_attribute_values(":updated", text(Timestamp::now()))
            .return_values(ReturnValue::AllNew)
    }
}
