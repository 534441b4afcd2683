//! `automation_runs`. Key: id, part. Index `by_organization`: `organization_id`, `created_at`. TTL on `expires_at`.
//!
//! A run is several items under one id, so that none outgrows DynamoDB's 400 KB and the one that is written at every step stays
//! small:
//!
//! | part | what it is |
//! |---|---|
//! | `run` | the row: status, limits, what was used, the lease of whoever carries it on; the only one in the index |
//! | `prompt` | what it was asked, and what it was offered |
//! | `0001#answer` | the model's first answer |
//! | `0001#reply` | what was said to it: the results of its calls |
//! | `result` | the final answer |
//!
//! Each step is written in one transaction with the row, under the lease: whoever lost the lease can write nothing.

use std::time::Duration;

use aws_sdk_dynamodb::{
    Client,
    operation::update_item::builders::UpdateItemFluentBuilder,
    types::{AttributeValue, Put, ReturnValue, TransactWriteItem},
};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::Value;

use super::{
    Cursor, Lease, Page,
    database::{
        Database, Item, Refused, condition_failure, failed, from_item, is_of, number, owned, text, to_attribute,
        to_item, transact,
    },
};
use crate::{
    Deadline, Error, Result,
    models::{
        AutomationRun, OrganizationId, RunAnswer, RunId, RunPrompt, RunReply, RunStatus, Spent, Timestamp, WholeRun,
    },
};

const RUN: &str = "run";
const PROMPT: &str = "prompt";
const RESULT: &str = "result";
const ANSWER: &str = "#answer";
const REPLY: &str = "#reply";

#[derive(Clone)]
pub struct AutomationRuns {
    client: Client,
    table: String,
}

/// What became of the wish to carry a run on.
#[derive(Debug)]
pub enum TakenUp {
    /// It is ours, until the lease runs out.
    Ours(Box<AutomationRun>, Lease),
    /// Somebody else is at it.
    Busy,
    /// There is nothing more to do, or no such run.
    Over,
}

/// A step to be written.
#[derive(Debug, Clone, Copy)]
pub enum Step<'a> {
    Answer(&'a RunAnswer),
    Reply(&'a RunReply),
}

/// How a run ends.
#[derive(Debug, Clone, Copy)]
pub struct RunEnd<'a> {
    pub status: RunStatus,
    pub result: Option<&'a Value>,
    pub error: Option<&'a str>,
}

/// What became of a write under the lease.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Saved {
    Yes,
    /// Nothing was written: somebody wants the run to stop.
    CancelRequested,
    /// Nothing was written: the lease is no longer ours.
    Lost,
}

/// The final answer, as JSON text: DynamoDB's own maps take neither empty names nor every depth and number.
#[derive(Serialize, Deserialize)]
struct StoredResult {
    result: String,
}

impl AutomationRuns {
    pub fn new(database: &Database) -> Self {
        Self { client: database.client.clone(), table: database.table("automation_runs") }
    }

    /// Writes a new run down, whole or not at all.
    ///
    /// # Errors
    /// [`Error::Conflict`] if there is a run with its id.
    pub async fn create(&self, run: &AutomationRun, prompt: &RunPrompt) -> Result<()> {
        let new = |part: &str, item| {
            let put = Put::builder()
                .table_name(&self.table)
                .set_item(Some(self.part(run.id, part, run.expires_at, item)))
                .condition_expression("attribute_not_exists(#id)")
                .expression_attribute_names("#id", "id")
                .build()
                .map_err(Error::internal)?;
            Ok::<_, Error>(TransactWriteItem::builder().put(put).build())
        };
        let items = vec![new(RUN, to_item(run)?)?, new(PROMPT, to_item(prompt)?)?];
        transact(&self.client, items).await.map_err(|refused| refused.or("there is such a run"))
    }

    /// The row of a run, as of now.
    pub async fn get(&self, organization: OrganizationId, id: RunId) -> Result<AutomationRun> {
        let found = self
            .client
            .get_item()
            .table_name(&self.table)
            .set_key(Some(row(id)))
            .consistent_read(true)
            .send()
            .await
            .map_err(failed)?;
        let run: AutomationRun = owned(organization, found.item, "run")?;
        if is_past(run.expires_at) { Err(Error::NotFound("run")) } else { Ok(run) }
    }

    /// A page of the organization's runs, newest first.
    pub async fn page(
        &self,
        organization: OrganizationId,
        after: Option<&Cursor>,
        limit: i32,
    ) -> Result<Page<AutomationRun>> {
        let query = self.client.query().table_name(&self.table).index_name("by_organization");
        let start = after.map(|cursor| {
            let mut key = cursor.start_key(organization);
            key.insert("part".into(), text(RUN));
            key
        });
        Page::newest_from(query, organization, start, limit).await
    }

    /// A run with all its steps, as of now.
    pub async fn whole(&self, organization: OrganizationId, id: RunId) -> Result<WholeRun> {
        let mut items = Vec::new();
        let mut start = None;
        loop {
            let found = self
                .client
                .query()
                .table_name(&self.table)
                .key_condition_expression("#id = :id")
                .expression_attribute_names("#id", "id")
                .expression_attribute_values(":id", text(id))
                .consistent_read(true)
                .set_exclusive_start_key(start)
                .send()
                .await
                .map_err(failed)?;
            items.extend(found.items.unwrap_or_default());
            start = found.last_evaluated_key;
            if start.is_none() {
                break;
            }
        }
        // Only the row says whose it is.
        if !items.iter().any(|item| is_of(item, organization)) {
            return Err(Error::NotFound("run"));
        }
        let mut parts = Parts::default();
        items.into_iter().try_for_each(|item| parts.add(item))?;
        parts.into_run()
    }

    /// Takes a run up for `length`, unless somebody else has it or it is over.
    pub async fn take(&self, organization: OrganizationId, id: RunId, length: Duration) -> Result<TakenUp> {
        let at_once = Deadline::after(Duration::ZERO);
        let taken = Lease::acquire(&self.client, &self.table, (organization, row(id)), RUN, length, at_once).await;
        let (run, lease): (AutomationRun, Lease) = match taken {
            Ok(taken) => taken,
            Err(Error::Conflict(_)) => return Ok(TakenUp::Busy),
            // It was dropped after its time.
            Err(Error::NotFound(_)) => return Ok(TakenUp::Over),
            Err(error) => return Err(error),
        };
        if run.status.is_over() {
            lease.release(&self.client).await?;
            return Ok(TakenUp::Over);
        }
        let begun = self
            .client
            .update_item()
            .table_name(&self.table)
            .set_key(Some(row(id)))
            .update_expression(
                "SET #status = :running, #attempts = #attempts + :one, #updated = :now, #started = if_not_exists(#started, :now)",
            )
            .condition_expression("#token = :token")
            .expression_attribute_names("#status", "status")
            .expression_attribute_names("#attempts", "attempts")
            .expression_attribute_names("#updated", "updated_at")
            .expression_attribute_names("#started", "started_at")
            .expression_attribute_names("#token", "lease_token")
            .expression_attribute_values(":running", text(RunStatus::Running.as_str()))
            .expression_attribute_values(":one", number(1))
            .expression_attribute_values(":now", text(Timestamp::now()))
            .expression_attribute_values(":token", lease.token())
            .return_values(ReturnValue::AllNew)
            .send()
            .await;
        match begun {
            Ok(begun) => Ok(TakenUp::Ours(Box::new(from_item(begun.attributes.unwrap_or_default())?), lease)),
            Err(error) if condition_failure(&error).is_some() => Ok(TakenUp::Busy),
            Err(error) => Err(failed(error)),
        }
    }

    /// Lets a run go that is not over, to be carried on at once, or not before `resume_at`.
    pub async fn let_go(&self, lease: Lease, resume_at: Option<Timestamp>) -> Result<()> {
        let Some(resume_at) = resume_at else { return lease.release(&self.client).await };
        let update = lease
            .update_in_transaction()
            .update_expression("SET #resume = :resume REMOVE #token, #until")
            .expression_attribute_names("#until", "lease_until")
            .expression_attribute_names("#resume", "resume_at")
            .expression_attribute_values(":resume", number(resume_at.as_millis()))
            .build()
            .map_err(Error::internal)?;
        match transact(&self.client, vec![TransactWriteItem::builder().update(update).build()]).await {
            Ok(()) | Err(Refused::Condition(_)) => Ok(()),
            Err(Refused::Other(error)) => Err(error),
        }
    }

    /// Writes a step and what has been used with it.
    pub async fn save(&self, run: &AutomationRun, lease: &Lease, step: Step<'_>, spent: &Spent) -> Result<Saved> {
        let (part, item) = step.item()?;
        let put = self.put(run, &part, item)?;
        let update = lease
            .update_in_transaction()
            .update_expression("SET #spent = :spent, #attempts = :none, #updated = :now")
            .condition_expression("#token = :token AND attribute_not_exists(#cancel)")
            .expression_attribute_names("#cancel", "cancel_requested_at")
            .expression_attribute_names("#spent", "spent")
            .expression_attribute_names("#attempts", "attempts")
            .expression_attribute_names("#updated", "updated_at")
            .expression_attribute_values(":spent", to_attribute(spent)?)
            .expression_attribute_values(":none", number(0))
            .expression_attribute_values(":now", text(Timestamp::now()))
            .build()
            .map_err(Error::internal)?;
        let update = TransactWriteItem::builder().update(update).build();
        match transact(&self.client, vec![update, put]).await {
            Ok(()) => Ok(Saved::Yes),
            Err(Refused::Condition(_)) => {
                let now = self.get(run.organization_id, run.id).await?;
                Ok(if now.cancel_requested_at.is_some() { Saved::CancelRequested } else { Saved::Lost })
            }
            Err(Refused::Other(error)) => Err(error),
        }
    }

    /// Ends a run and gives its lease back; `last` is a step that belongs to the end. False if the lease is no longer ours.
    pub async fn end(
        &self,
        run: &AutomationRun,
        lease: Lease,
        last: Option<Step<'_>>,
        spent: &Spent,
        end: RunEnd<'_>,
    ) -> Result<bool> {
        let now = Timestamp::now();
        let mut items = Vec::new();
        if let Some(step) = last {
            let (part, item) = step.item()?;
            items.push(self.put(run, &part, item)?);
        }
        if let Some(result) = end.result {
            items.push(self.put(run, RESULT, to_item(&StoredResult { result: result.to_string() })?)?);
        }
        let mut set = "SET #status = :status, #spent = :spent, #updated = :now, #finished = :now".to_owned();
        let mut update = lease
            .update_in_transaction()
            .expression_attribute_names("#until", "lease_until")
            .expression_attribute_names("#status", "status")
            .expression_attribute_names("#spent", "spent")
            .expression_attribute_names("#updated", "updated_at")
            .expression_attribute_names("#finished", "finished_at")
            .expression_attribute_values(":status", text(end.status.as_str()))
            .expression_attribute_values(":spent", to_attribute(spent)?)
            .expression_attribute_values(":now", text(now));
        if let Some(error) = end.error {
            set.push_str(", #error = :error");
            update =
                update.expression_attribute_names("#error", "error").expression_attribute_values(":error", text(error));
        }
        let update = update.update_expression(format!("{set} REMOVE #token, #until")).build();
        items.insert(0, TransactWriteItem::builder().update(update.map_err(Error::internal)?).build());
        match transact(&self.client, items).await {
            Ok(()) => Ok(true),
            Err(Refused::Condition(_)) => Ok(false),
            Err(Refused::Other(error)) => Err(error),
        }
    }

    /// Wants a run stopped: one that waits ends now, one that is being carried on at its next step.
    ///
    /// # Errors
    /// [`Error::Conflict`] for a run that is over.
    pub async fn cancel(&self, organization: OrganizationId, id: RunId) -> Result<AutomationRun> {
        let now = Timestamp::now();
        let update = |expression: &str, condition: &str| {
            self.client
                .update_item()
                .table_name(&self.table)
                .set_key(Some(row(id)))
                .update_expression(expression)
                .condition_expression(format!("#organization = :organization AND {condition}"))
                .expression_attribute_names("#organization", "organization_id")
                .expression_attribute_names("#status", "status")
                .expression_attribute_names("#cancel", "cancel_requested_at")
                .expression_attribute_names("#updated", "updated_at")
                .expression_attribute_names("#until", "lease_until")
                .expression_attribute_values(":organization", text(organization))
                .expression_attribute_values(":queued", text(RunStatus::Queued.as_str()))
                .expression_attribute_values(":running", text(RunStatus::Running.as_str()))
                .expression_attribute_values(":clock", number(now.as_millis()))
                .expression_attribute_values(":now", text(now))
                .return_values(ReturnValue::AllNew)
        };
        let at_once = update(
            "SET #status = :cancelled, #cancel = :now, #updated = :now, #finished = :now",
            "#status IN (:queued, :running) AND (attribute_not_exists(#until) OR #until < :clock)",
        )
        .expression_attribute_names("#finished", "finished_at")
        .expression_attribute_values(":cancelled", text(RunStatus::Cancelled.as_str()));
        match at_once.send().await {
            Ok(done) => return from_item(done.attributes.unwrap_or_default()),
            Err(error) if condition_failure(&error).is_some() => {}
            Err(error) => return Err(failed(error)),
        }
        let asked_for = update(
            "SET #cancel = if_not_exists(#cancel, :now), #updated = :now",
            "#status IN (:queued, :running) AND #until >= :clock",
        );
        match asked_for.send().await {
            Ok(done) => from_item(done.attributes.unwrap_or_default()),
            Err(error) if condition_failure(&error).is_some() => {
                let run = self.get(organization, id).await?;
                Err(Error::Conflict(if run.status.is_over() {
                    format!("the run is over: its status is {}", run.status.as_str())
                } else {
                    "the run is just being taken up; try again".into()
                }))
            }
            Err(error) => Err(failed(error)),
        }
    }

    /// Ends a run that waits, because nobody could be told to carry it out. Gives it as it then is: it goes on if somebody
    /// took it up all the same.
    pub async fn fail_waiting(&self, organization: OrganizationId, id: RunId, error: &str) -> Result<AutomationRun> {
        let failed_now = self
            .waiting(organization, id)
            .update_expression("SET #status = :to, #error = :error, #updated = :now, #finished = :now")
            .condition_expression("#organization = :organization AND #status = :from AND attribute_not_exists(#until)")
            .expression_attribute_names("#until", "lease_until")
            .expression_attribute_values(":from", text(RunStatus::Queued.as_str()))
            .expression_attribute_values(":to", text(RunStatus::Failed.as_str()))
            .expression_attribute_values(":error", text(error));
        self.or_as_it_is(failed_now, organization, id).await
    }

    /// Lets a run wait again that failed before anybody took it up. Gives it as it then is.
    pub async fn wait_again(&self, organization: OrganizationId, id: RunId) -> Result<AutomationRun> {
        let waits_again = self
            .waiting(organization, id)
            .update_expression("SET #status = :to, #updated = :now REMOVE #error, #finished")
            .condition_expression(
                "#organization = :organization AND #status = :from AND attribute_not_exists(#started)",
            )
            .expression_attribute_names("#started", "started_at")
            .expression_attribute_values(":from", text(RunStatus::Failed.as_str()))
            .expression_attribute_values(":to", text(RunStatus::Queued.as_str()));
        self.or_as_it_is(waits_again, organization, id).await
    }

    /// A change of a run that nobody carries on.
    fn waiting(&self, organization: OrganizationId, id: RunId) -> UpdateItemFluentBuilder {
        self.client
            .update_item()
            .table_name(&self.table)
            .set_key(Some(row(id)))
            .expression_attribute_names("#organization", "organization_id")
            .expression_attribute_names("#status", "status")
            .expression_attribute_names("#error", "error")
            .expression_attribute_names("#updated", "updated_at")
            .expression_attribute_names("#finished", "finished_at")
            .expression_attribute_values(":organization", text(organization))
            .expression_attribute_values(":now", text(Timestamp::now()))
            .return_values(ReturnValue::AllNew)
    }

    async fn or_as_it_is(
        &self,
        change: UpdateItemFluentBuilder,
        organization: OrganizationId,
        id: RunId,
    ) -> Result<AutomationRun> {
        match change.send().await {
            Ok(done) => from_item(done.attributes.unwrap_or_default()),
            Err(error) if condition_failure(&error).is_some() => self.get(organization, id).await,
            Err(error) => Err(failed(error)),
        }
    }

    fn put(&self, run: &AutomationRun, part: &str, item: Item) -> Result<TransactWriteItem> {
        let put = Put::builder()
            .table_name(&self.table)
            .set_item(Some(self.part(run.id, part, run.expires_at, item)))
            .build()
            .map_err(Error::internal)?;
        Ok(TransactWriteItem::builder().put(put).build())
    }

    #[expect(clippy::unused_self, reason = "what an item of this table has")]
    fn part(&self, id: RunId, part: &str, expires_at: i64, mut item: Item) -> Item {
        item.insert("id".into(), text(id));
        item.insert("part".into(), text(part));
        item.insert("expires_at".into(), number(expires_at));
        item
    }
}

impl Step<'_> {
    fn item(self) -> Result<(String, Item)> {
        // Four digits: steps sort as their numbers do.
        Ok(match self {
            Self::Answer(answer) => (format!("{:04}{ANSWER}", answer.step), to_item(answer)?),
            Self::Reply(reply) => (format!("{:04}{REPLY}", reply.step), to_item(reply)?),
        })
    }
}

fn row(id: RunId) -> Item {
    Item::from([("id".to_owned(), text(id)), ("part".to_owned(), text(RUN))])
}

fn is_past(seconds: i64) -> bool {
    seconds <= Timestamp::now().as_seconds()
}

/// What a query finds of a run.
#[derive(Default)]
struct Parts {
    run: Option<AutomationRun>,
    prompt: Option<RunPrompt>,
    answers: Vec<RunAnswer>,
    replies: Vec<RunReply>,
    result: Option<Value>,
}

impl Parts {
    fn add(&mut self, item: Item) -> Result<()> {
        let part = match item.get("part") {
            Some(AttributeValue::S(part)) => part.clone(),
            _ => return Err(Error::internal("an item of a run names no part")),
        };
        match part.as_str() {
            RUN => self.run = Some(from_item(item)?),
            PROMPT => self.prompt = Some(from_item(item)?),
            RESULT => self.result = Some(json(&from_item::<StoredResult>(item)?.result)?),
            part if part.ends_with(ANSWER) => self.answers.push(from_item(item)?),
            part if part.ends_with(REPLY) => self.replies.push(from_item(item)?),
            // Of a later version.
            _ => {}
        }
        Ok(())
    }

    fn into_run(self) -> Result<WholeRun> {
        let run = self.run.filter(|run| !is_past(run.expires_at)).ok_or(Error::NotFound("run"))?;
        let prompt = self.prompt.ok_or_else(|| Error::internal("a run has no prompt"))?;
        Ok(WholeRun { run, prompt, answers: self.answers, replies: self.replies, result: self.result })
    }
}

fn json<T: DeserializeOwned>(text: &str) -> Result<T> {
    serde_json::from_str(text).map_err(Error::internal)
}
