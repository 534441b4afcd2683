//! Calls the polled tool: once on saving, to see its answer, then at every poll.

use std::time::Duration;

use serde_json::{Map, Value, json};

use super::polling::{MOST_ITEMS, PolledItem, answered_items, hash, items_in};
use crate::{
    Deadline, Error, Result,
    automation::{
        Deployment,
        definition::{AutomationBody, Definition, trigger::Polling},
        expressions::{
            data::{Data, Lowered},
            templates::{Filled, filled_in_within},
            work::{MOST_FILLED_IN, Work},
        },
        running::action_run::LARGEST_ARGUMENTS,
        validation::{
            PolledPlaces,
            known::{BUILT_IN_FINGERPRINT, KnownTool, Purpose},
        },
    },
    catalogue::CatalogueTool,
    connections::Connection,
    cut,
    models::{
        Automation, AutomationVersion, ExecutionId, ExecutionOrigin, OrganizationId, PollCursor, Role, Timestamp,
        ToolRef, UserId, Validators, folded_name,
    },
    tool::{CallContext, Conversation, NotBound, SourcePoll, Subject, Toolbox, Unavailable},
};

const ANSWER_WITHIN: Duration = Duration::from_secs(30);

#[derive(Debug, Clone, PartialEq)]
pub enum SourceAnswer {
    /// `source`: hash of the request and of the fields that identify an item; `account`: as in [`PollCursor`]. Items of
    /// different sources or accounts are not comparable.
    Items { items: Vec<PolledItem>, source: String, account: Option<String>, validators: Option<Validators> },
    /// As at the last poll.
    Unchanged,
    /// With the reason, a sentence. A later poll may succeed.
    Failed(String),
    /// The tool changed since the automation was validated; with the repair, a sentence.
    Gone(String),
}

pub(in crate::automation) struct SourceCall<'a> {
    pub(in crate::automation) organization: OrganizationId,
    pub(in crate::automation) user: Option<&'a UserId>,
    /// Of the person who has the tool called; `None` for an active automation.
    pub(in crate::automation) role: Option<Role>,
    pub(in crate::automation) tool: &'a ToolRef,
    pub(in crate::automation) parameters: &'a Map<String, Value>,
    pub(in crate::automation) data: &'a Data<'a>,
    pub(in crate::automation) trigger: ExecutionOrigin,
    /// The tool's, and the validators of an earlier answer.
    pub(in crate::automation) fingerprint: &'a str,
    pub(in crate::automation) earlier: Option<&'a Validators>,
    pub(in crate::automation) deadline: Deadline,
}

pub(in crate::automation) enum AnsweredSource {
    /// With the validators for a later request.
    Answer(Value, Option<Validators>),
    Unchanged,
}

impl Deployment {
    /// Polls the source of an automation with this definition. Tools with an effect and tools changed since validation are never
    /// called.
    ///
    /// # Errors
    /// An outage of ours.
    pub async fn ask_source(
        &self,
        automation: &Automation,
        version: &AutomationVersion,
        (definition, polling): (&Definition, &Polling),
        (person, cursor): (&Value, Option<&PollCursor>),
        deadline: Deadline,
    ) -> Result<SourceAnswer> {
        let organization = automation.organization_id;
        let name = &polling.source_tool;
        // Avoids look-ups for the actions.
        let alone = Definition { body: AutomationBody::Actions(Vec::new()), ..definition.clone() };
        let earlier = version.checked.clone();
        let known = Box::pin(self.look_up(organization, &alone, earlier, Purpose::Activation, deadline)).await?;
        let checked = version.checked.get(name).map(|checked| &checked.fingerprint);
        let tool = match known.tools.get(name) {
            Some(KnownTool::Here(tool)) if checked == Some(&tool.fingerprint) && !tool.effect => tool,
            Some(KnownTool::Here(_)) => {
                let sentence = "has changed since the automation was activated; look at it, deploy the automation again and activate it.";
                return Ok(SourceAnswer::Gone(format!("The source tool {name} {sentence}")));
            }
            Some(KnownTool::Inactive { service }) => {
                self.refuse_unreadable(version, name, deadline).await?;
                let sentence = format!("The source tool {name} of {service} is switched off; use another one.");
                return Ok(SourceAnswer::Gone(sentence));
            }
            Some(KnownTool::Unusable(why)) => return Ok(SourceAnswer::Failed(format!("{name}: this tool {why}."))),
            _ => {
                self.refuse_unreadable(version, name, deadline).await?;
                return Ok(SourceAnswer::Gone(no_tool(name)));
            }
        };
        if let Some((_, Connection::Unknown)) = &tool.service {
            return Err(Error::Unavailable("the connections of services", "not known now".into()));
        }
        if let Some((service, connection)) = &tool.service
            && !connection.can_act()
        {
            let next = match connection {
                Connection::Expired { .. } => connection.renewal(service),
                _ => "connect one".to_owned(),
            };
            return Ok(SourceAnswer::Failed(format!(
                "The organization has no account at {service} that works; {next}."
            )));
        }
        // Another id or list path would make old items look new, so a failed look-up stops the poll.
        let Polling { service, source_tool, tool_params, .. } = polling;
        let of_service = match service.as_str() {
            "" => None,
            service => {
                let mut found = self.catalogue.services.capabilities(&[service.to_owned()], deadline).await?;
                found.remove(&folded_name(service))
            }
        };
        let PolledPlaces { items, id } = PolledPlaces::of(polling, of_service.as_ref());
        let source = hash(&json!([service, source_tool, tool_params, items, id]).to_string());
        let account = tool.service.as_ref().and_then(|(_, connection)| connection.account());
        let account = account.map(|account| hash(if account.name.is_empty() { &account.id } else { &account.name }));
        // An account that is not known yet is learned from a whole answer.
        let is_same = |cursor: &&PollCursor| cursor.source == source && cursor.account == account;
        let earlier = cursor.filter(is_same).and_then(|cursor| cursor.validators.as_ref());
        let nothing = Lowered::default();
        let call = SourceCall {
            organization,
            user: automation.activated_by.as_ref(),
            role: None,
            tool: &tool.reference,
            parameters: &polling.tool_params,
            data: &Data::of_trigger(&definition.variables, &nothing, person, Timestamp::now()),
            trigger: ExecutionOrigin::Automation,
            fingerprint: &tool.fingerprint,
            earlier,
            deadline: deadline.at_most(ANSWER_WITHIN),
        };
        Ok(match Box::pin(self.call_source(call)).await? {
            None => {
                self.refuse_unreadable(version, name, deadline).await?;
                SourceAnswer::Gone(no_tool(name))
            }
            Some(Err(sentence)) => SourceAnswer::Failed(format!("{name}: {sentence}")),
            Some(Ok(AnsweredSource::Unchanged)) => SourceAnswer::Unchanged,
            // The items cut off would never run where the newest come last.
            Some(Ok(AnsweredSource::Answer(answer, _))) if items_in(&answer, items) > MOST_ITEMS => {
                SourceAnswer::Failed(format!(
                    "{name} gave back more than {MOST_ITEMS} items, which are too many to compare, so nothing was run. Ask it for fewer, the newest of them."
                ))
            }
            Some(Ok(AnsweredSource::Answer(answer, validators))) => match answered_items(&answer, items, id) {
                // What was cut off would count as gone.
                Some(items) if items.last().is_some_and(|item| cut::is_marker(&item.value)) => SourceAnswer::Failed(
                    format!("{name} gave back too much, so nothing was run. Ask it for fewer items."),
                ),
                Some(items) => SourceAnswer::Items { items, source, account, validators },
                None => SourceAnswer::Failed(without_list(name, items)),
            },
        })
    }

    /// # Errors
    /// [`Error::Unreadable`] if the tool that the version was checked against needs a newer program.
    async fn refuse_unreadable(&self, version: &AutomationVersion, name: &str, deadline: Deadline) -> Result<()> {
        let checked = version.checked.get(name);
        let tool = match checked.and_then(|checked| checked.tool_id) {
            Some(id) => ToolRef::Organization { id, version: None },
            None if checked.is_some_and(|checked| checked.fingerprint == BUILT_IN_FINGERPRINT) => {
                ToolRef::BuiltIn(name.to_owned())
            }
            None => ToolRef::Service { name: name.to_owned(), fingerprint: None },
        };
        match self.catalogue.resolve(version.organization_id, &[tool], deadline).await?.pop() {
            Some(Err(Unavailable::Unreadable)) => Err(Error::Unreadable { row: "tool", key: name.to_owned() }),
            _ => Ok(()),
        }
    }

    /// The answer of a read-only tool, or the reason it failed. `None` if the tool is missing, has an effect or needs a higher
    /// role.
    pub(in crate::automation) async fn call_source(
        &self,
        call: SourceCall<'_>,
    ) -> Result<Option<Result<AnsweredSource, String>>> {
        let SourceCall { organization, deadline, .. } = call;
        let resolved = self.catalogue.resolve(organization, std::slice::from_ref(call.tool), deadline).await?.pop();
        let allowed = |found: CatalogueTool| match call.role {
            Some(role) => found.for_role(role),
            None => Ok(found),
        };
        let found = match resolved.map(|found| found.and_then(allowed)) {
            Some(Ok(found)) if !found.spec().acts() => found,
            _ => return Ok(None),
        };
        let (parameters, work) = (Value::Object(call.parameters.clone()), Work::of(MOST_FILLED_IN));
        let arguments = match filled_in_within(&parameters, call.data, LARGEST_ARGUMENTS, &work) {
            Ok(Filled { value: Value::Object(arguments), .. }) => arguments,
            Ok(_) => Map::new(),
            Err(unfilled) => {
                let too_large = || format!("Its filled-in parameters have more than {LARGEST_ARGUMENTS} bytes.");
                return Ok(Some(Err(unfilled.in_words(too_large))));
            }
        };
        let of = hash(&json!([call.fingerprint, arguments]).to_string());
        let mut toolbox = Toolbox::default();
        let called = found.spec().name.clone();
        toolbox.offer(found.callable(&self.executor));
        let bound = match toolbox.check(&called, &arguments) {
            Ok(bound) => bound,
            Err(NotBound::Unknown(sentence) | NotBound::Invalid(sentence)) => return Ok(Some(Err(sentence))),
        };
        let request = ExecutionId::generate().to_string();
        let poll = SourcePoll::new(request.clone(), of, call.earlier);
        let context = CallContext {
            organization,
            user: call.user,
            subject: Subject::Poll(&poll),
            automation: None,
            delivery: Some(&request),
            conversation: &Conversation::default(),
            trigger: call.trigger,
            refused: None,
            deadline,
        };
        let limit = deadline.remaining();
        Ok(Some(match tokio::time::timeout(limit, bound.call(&context)).await {
            Err(_elapsed) => Err(format!("it did not answer within {} s.", limit.as_secs())),
            Ok(Err(outage)) => Err(format!("{outage}.")),
            Ok(Ok(outcome)) => {
                let part = if outcome.is_failed() { "error" } else { "result" };
                let told = outcome.answer.get(part).cloned().unwrap_or_default();
                match (part, told) {
                    ("result", _) if poll.is_unchanged() => Ok(AnsweredSource::Unchanged),
                    ("result", answer) => Ok(AnsweredSource::Answer(answer, poll.validators())),
                    (_, Value::String(sentence)) => Err(sentence),
                    (_, other) => Err(other.to_string()),
                }
            }
        }))
    }
}

fn no_tool(name: &str) -> String {
    format!("There is no tool {name} any more; use another source tool.")
}

fn without_list(tool: &str, items: Option<&str>) -> String {
    let place = items.filter(|place| !place.is_empty()).map(|place| format!(" at {place}")).unwrap_or_default();
    format!(
        "{tool} answered without a list of items{place}, so nothing was run. Use a source tool that lists or searches."
    )
}
