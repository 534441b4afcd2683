//! Assembles a run from its items.

use aws_sdk_dynamodb::types::AttributeValue;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{
    super::{
        database::{Item, from_item, number},
        write::Write,
    },
    ACTION, ANSWER, PLAN, PROMPT, REPLY, RESULT, RUN, visible,
};
use crate::{
    Error, Result,
    models::{ActionResult, AutomationRun, RunAnswer, RunPlan, RunPrompt, RunReply, WholeRun},
};

/// The final answer as JSON text: DynamoDB's maps reject empty names, deep nesting and some numbers.
#[derive(Serialize, Deserialize)]
pub(super) struct StoredResult {
    pub(super) result: String,
}

#[derive(Default)]
pub(super) struct Parts {
    run: Option<AutomationRun>,
    plan: Option<RunPlan>,
    prompt: Option<RunPrompt>,
    actions: Vec<ActionResult>,
    answers: Vec<RunAnswer>,
    replies: Vec<RunReply>,
    result: Option<Value>,
}

impl Parts {
    pub(super) fn add(&mut self, item: Item) -> Result<()> {
        let part = match item.get("part") {
            Some(AttributeValue::S(part)) => part.clone(),
            _ => return Err(Error::internal("an item of a run names no part")),
        };
        match part.as_str() {
            RUN => self.run = Some(from_item(item)?),
            PLAN => self.plan = Some(from_item(item)?),
            PROMPT => self.prompt = Some(from_item(item)?),
            RESULT => {
                let stored: StoredResult = from_item(item)?;
                self.result = Some(serde_json::from_str(&stored.result).map_err(Error::internal)?);
            }
            part if part.ends_with(ANSWER) => self.answers.push(from_item(item)?),
            part if part.ends_with(REPLY) => self.replies.push(from_item(item)?),
            part if part.ends_with(ACTION) => self.actions.push(from_item(item)?),
            // Written by a later version.
            _ => {}
        }
        Ok(())
    }

    pub(super) fn into_run(self) -> Result<WholeRun> {
        let run = visible(self.run.ok_or(Error::NotFound(RUN))?)?;
        let Self { plan, prompt, actions, answers, replies, result, .. } = self;
        if plan.is_none() && prompt.is_none() {
            return Err(Error::internal("a run has no plan and no prompt"));
        }
        Ok(WholeRun { run, plan, prompt, actions, answers, replies, result })
    }
}

/// Adds to the row's counts of actions.
pub(super) fn counted<'r>(change: Write, results: impl IntoIterator<Item = &'r ActionResult>) -> Write {
    let add = |(all, fails): (i64, i64), result: &ActionResult| {
        let (executed, failed) = result.counts();
        (all + i64::from(executed), fails + i64::from(failed))
    };
    let (executed, failed) = results.into_iter().fold((0, 0), add);
    let counted = change.and(" ADD #actions_executed :executed, #actions_failed :failed");
    counted.with([(":executed", number(executed)), (":failed", number(failed))])
}
