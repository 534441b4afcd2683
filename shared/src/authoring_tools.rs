//! Tools with which agents build automations: find services and tools, read schemas, deploy.
//!
//! One list ([`AGENT_TOOLS`]) and one implementation serve three kinds of callers: clients of the Model Context Protocol,
//! programs with function calling (both in `functions/mcp`), and runs of automations that name these tools. Calls act for an
//! organization and a user; changes check the user's membership again.
//!
//! Each answer is built once, as text or also as data ([`Told`]). An answer that is too large is shortened, with a hint at the
//! rest.

mod automation_calls;
mod call_tool;
mod descriptions;
mod formats;
mod in_whose_name;

use std::sync::Arc;

use futures_util::future::{FutureExt, ready};
use serde_json::{Map, Value, json};

pub use self::{
    automation_calls::AutomationTools,
    call_tool::ToolCaller,
    descriptions::{AGENT_TOOLS, AgentTool, Hints, IDEMPOTENCY_KEY},
    formats::Format,
    in_whose_name::InWhoseName,
};
use self::{
    automation_calls::{automation_id, definition_of, deployment_answer},
    descriptions::Kind,
};
use crate::{
    Error, Result,
    automation::Deployment,
    cut::{cut_to, fit},
    discovery::{Discovery, ToolSearch},
    models::{Actor, Member, Role, acting},
    store::OrganizationMembers,
    tool::{
        CallContext, CallableTool, ToolFuture, ToolOutcome, ToolSpec, Toolbox,
        arguments::{Checked, check},
    },
};

const DEFINITION: &str = "automation";
/// Bytes of the text, and of the data as JSON: clients reject more than about 25,000 tokens.
const LARGEST_ANSWER: usize = 60_000;
/// Bytes of tools read in full; the rest is for the names left out.
const ROOM_FOR_TOOLS: usize = 30_000;

/// Executes the tools. Clones share discovery's index.
#[derive(Clone)]
pub struct AgentTools {
    pub discovery: Discovery,
    pub deployment: Deployment,
    pub members: OrganizationMembers,
    /// Reads, changes and starts automations; absent if not offered.
    pub automations: Option<AutomationTools>,
    /// Calls any tool of the organization; absent if not offered.
    pub caller: Option<ToolCaller>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Told {
    Text,
    /// `{"text", "data"}`, for [`AgentToolAnswer::of`].
    Both,
}

#[derive(Debug, Clone, PartialEq)]
pub struct AgentToolAnswer {
    pub failed: bool,
    pub text: String,
    /// The same as data; null if there is none.
    pub data: Value,
}

impl AgentTools {
    pub fn list(&self) -> impl Iterator<Item = &'static AgentTool> {
        AGENT_TOOLS.iter().filter(|tool| match tool.kind {
            Kind::CallTool => self.caller.is_some(),
            kind => self.automations.is_some() || !kind.is_for_clients(),
        })
    }

    pub fn named(&self, name: &str) -> Option<&'static AgentTool> {
        self.list().find(|tool| tool.spec.name == name)
    }

    pub fn toolbox(&self) -> Toolbox {
        let mut toolbox = Toolbox::default();
        self.offered(Told::Both).for_each(|tool| toolbox.offer(tool));
        toolbox
    }

    pub fn for_runs(&self) -> Vec<Arc<dyn CallableTool>> {
        self.offered(Told::Text).collect()
    }

    fn offered(&self, told: Told) -> impl Iterator<Item = Arc<dyn CallableTool>> {
        self.list()
            .map(move |described| Arc::new(Offered { tools: self.clone(), described, told }) as Arc<dyn CallableTool>)
    }

    async fn carry_out(
        &self,
        kind: Kind,
        arguments: Map<String, Value>,
        context: &CallContext<'_>,
    ) -> Result<AgentToolAnswer> {
        let (organization, deadline) = (context.organization, context.deadline);
        match kind {
            Kind::InitialMdFetch => {
                let services = names(&arguments, "services");
                let cursor = arguments.get("cursor").and_then(Value::as_str);
                let found = self.discovery.initial_md_fetch(organization, &services, cursor, deadline).await?;
                Ok(AgentToolAnswer::found(found.to_text(), json!(found)))
            }
            Kind::FetchToolData => {
                let names = names(&arguments, "tool_names");
                let found =
                    self.discovery.fetch_tool_data_within(organization, &names, ROOM_FOR_TOOLS, deadline).await?;
                Ok(AgentToolAnswer::found(found.to_text(), json!(found)))
            }
            Kind::SearchTools => {
                let search = ToolSearch::of_json(&Value::Object(arguments))?;
                let found = self.discovery.search(organization, &search, deadline).await?;
                Ok(AgentToolAnswer::found(found.to_text(), json!(found)))
            }
            Kind::DeployAutomation => self.deploy(arguments, context).await,
            Kind::CallTool => {
                let Some(caller) = &self.caller else { return Err(Error::NotFound("tool")) };
                let member = self.member(context, Role::Member).await?;
                caller.call(&self.discovery, member.role, arguments, context).await
            }
            Kind::ListAutomations => {
                self.automations()?.list(&self.member(context, Role::Viewer).await?, &arguments).await
            }
            Kind::GetAutomation => {
                self.automations()?.get(&self.member(context, Role::Viewer).await?, &arguments, deadline).await
            }
            Kind::UpdateAutomation => self.update(arguments, context).await,
            Kind::RunAutomation => {
                let automations = self.automations()?;
                automations.run(&self.member(context, Role::Member).await?, arguments, context.delivery).await
            }
            Kind::GetRun => self.automations()?.get_run(&self.member(context, Role::Viewer).await?, &arguments).await,
        }
    }

    fn automations(&self) -> Result<&AutomationTools> {
        self.automations.as_ref().ok_or(Error::NotFound("tool"))
    }

    /// The acting user, who must have at least the role `least`.
    async fn member(&self, context: &CallContext<'_>, least: Role) -> Result<Member> {
        let user = context.user.ok_or(Error::Forbidden("this needs a user, and the request names none"))?;
        let member = self.members.still_member(context.organization, user).await?;
        member.must_be(least)?;
        Ok(member)
    }

    /// Needs no claim: the same content yields the same automation.
    async fn deploy(&self, arguments: Map<String, Value>, context: &CallContext<'_>) -> Result<AgentToolAnswer> {
        let member = self.member(context, Role::Member).await?;
        let body = definition_of(arguments);
        let deploy = self.deployment.deploy(&member, &body, context.deadline);
        let deployed = acting(Some(Actor::agent_of(&member)), deploy).await?;
        Ok(deployment_answer(&deployed))
    }

    async fn update(&self, arguments: Map<String, Value>, context: &CallContext<'_>) -> Result<AgentToolAnswer> {
        self.automations()?;
        let member = self.member(context, Role::Member).await?;
        let id = automation_id(&arguments)?;
        let revision = arguments.get("revision").and_then(Value::as_u64);
        let revision =
            revision.ok_or_else(|| Error::invalid("revision", "must be the one that get_automation gave"))?;
        let body = definition_of(arguments);
        let update = self.deployment.update(&member, id, revision, &body, context.deadline);
        let deployed = acting(Some(Actor::agent_of(&member)), update).await?;
        Ok(deployment_answer(&deployed))
    }
}

impl AgentToolAnswer {
    fn found(text: String, data: Value) -> Self {
        Self { failed: false, text, data }
    }

    fn failed(sentence: impl Into<String>) -> Self {
        Self { failed: true, text: sentence.into(), data: Value::Null }
    }

    /// The answer to a wrong request; outages and our own faults stay errors.
    fn refused(error: Error) -> Result<Self> {
        match error {
            Error::Invalid(problems) => {
                let lines: Vec<String> =
                    problems.iter().map(|wrong| format!("- {}: {}", wrong.field, wrong.problem)).collect();
                let data = json!({"errors": problems});
                Ok(Self { failed: true, text: format!("The arguments are wrong:\n{}", lines.join("\n")), data })
            }
            Error::Forbidden(_)
            | Error::NotFound(_)
            | Error::Conflict(_)
            | Error::Malformed(_)
            | Error::OverBudget(_) => {
                let mut sentence = error.to_string();
                if let Some(first) = sentence.get_mut(..1) {
                    first.make_ascii_uppercase();
                }
                Ok(Self::failed(format!("{sentence}.")))
            }
            error => Err(error),
        }
    }

    /// Shortens the answer to the size of a model's context.
    fn fitted(self, how_to_get_the_rest: &str) -> Self {
        let Self { failed, mut text, mut data } = self;
        let whole = text.len();
        if whole > LARGEST_ANSWER {
            text = cut_to(text, LARGEST_ANSWER, whole);
            text = format!("{text}\nThis answer was shortened: {how_to_get_the_rest}.");
        }
        if data.to_string().len() > LARGEST_ANSWER {
            data = fit(data, LARGEST_ANSWER);
            if let Value::Object(members) = &mut data {
                members.insert("shortened".into(), format!("This answer was shortened: {how_to_get_the_rest}.").into());
            }
        }
        Self { failed, text, data }
    }

    /// The answer of a call in [`AgentTools::toolbox`].
    pub fn of(outcome: ToolOutcome) -> Self {
        let failed = outcome.is_failed();
        let mut answer = outcome.answer;
        match answer.remove("result") {
            Some(told @ Value::Object(_)) if told.get("text").is_some() => Self { failed, ..Self::read(&told) },
            _ => Self::failed(answer.get("error").and_then(Value::as_str).unwrap_or("The tool failed.")),
        }
    }

    /// The answer of a tool that an agent called.
    pub fn of_called(outcome: ToolOutcome) -> Self {
        let failed = outcome.is_failed();
        let data = outcome.into_model_value();
        let text = data.as_str().map_or_else(|| data.to_string(), str::to_owned);
        Self { failed, text, data }
    }

    fn written(&self) -> Value {
        json!({"failed": self.failed, "text": self.text, "data": self.data})
    }

    fn read(written: &Value) -> Self {
        let text = written.get("text").and_then(Value::as_str).unwrap_or_default().to_owned();
        let failed = written.get("failed").is_some_and(|failed| *failed == true);
        Self { failed, text, data: written.get("data").cloned().unwrap_or_default() }
    }

    fn told(self, told: Told) -> ToolOutcome {
        let result = match told {
            Told::Text if self.failed => return ToolOutcome::failed(self.text),
            Told::Text => self.text.into(),
            Told::Both if self.failed => {
                let written = self.written();
                return ToolOutcome::failed(self.text).and_result(written);
            }
            Told::Both => self.written(),
        };
        ToolOutcome::succeeded(result)
    }
}

/// Parses a definition given as text.
///
/// # Errors
/// A sentence for its author.
fn definition_in(text: &str) -> Result<Value, String> {
    let refused = Deployment::refuse_size(text.len()).or_else(|| Deployment::refuse_duplicates(text.as_bytes()));
    if let Some(refused) = refused {
        return Err(refused.to_text());
    }
    serde_json::from_str(text).map_err(|error| {
        format!("The argument \"{DEFINITION}\" is text that is not JSON ({error}); send the definition as an object.")
    })
}

struct Offered {
    tools: AgentTools,
    described: &'static AgentTool,
    told: Told,
}

impl CallableTool for Offered {
    fn spec(&self) -> &ToolSpec {
        &self.described.spec
    }

    fn check(&self, arguments: &Map<String, Value>) -> Result<Checked, String> {
        let parameters = self.described.spec.parameters.schema();
        match arguments.get(DEFINITION).and_then(Value::as_str).filter(|text| !text.is_empty()) {
            // Some clients send nested values as text.
            Some(text) if self.described.spec.parameters.get(DEFINITION).is_some() => {
                let mut arguments = arguments.clone();
                arguments.insert(DEFINITION.to_owned(), definition_in(text)?);
                check(parameters, &arguments)
            }
            _ => check(parameters, arguments),
        }
    }

    fn call<'a>(&'a self, arguments: Map<String, Value>, context: &'a CallContext<'a>) -> ToolFuture<'a> {
        async move {
            let answer = self.tools.carry_out(self.described.kind, arguments, context).await;
            let answer = answer.or_else(AgentToolAnswer::refused)?;
            Ok(answer.fitted(self.described.how_to_get_the_rest).told(self.told))
        }
        .boxed()
    }
}

/// Descriptions of the tools for runs, for a program that does not execute them.
pub fn described() -> Vec<Arc<dyn CallableTool>> {
    let for_runs = AGENT_TOOLS.iter().filter(|tool| !tool.kind.is_for_clients());
    for_runs.map(|tool| Arc::new(Described(tool)) as Arc<dyn CallableTool>).collect()
}

struct Described(&'static AgentTool);

impl CallableTool for Described {
    fn spec(&self) -> &ToolSpec {
        &self.0.spec
    }

    fn call<'a>(&'a self, _: Map<String, Value>, _: &'a CallContext<'a>) -> ToolFuture<'a> {
        ready(Err(Error::internal("a tool for agents was called where it is only described"))).boxed()
    }
}

/// `name`: an argument checked to be a list of texts.
fn names(arguments: &Map<String, Value>, name: &str) -> Vec<String> {
    let names = arguments.get(name).and_then(Value::as_array).into_iter().flatten();
    names.filter_map(Value::as_str).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        clients::Outbound,
        injection::{built_in_tools, described_read_feed, tools_of_runs, well_described},
    };

    #[test]
    fn a_large_answer_is_shortened_and_says_how_to_get_the_rest() {
        let long = AgentToolAnswer::found("word ".repeat(30_000), json!({"items": vec!["x".repeat(100); 1_000]}));
        let fitted = long.fitted("ask for fewer");
        assert!(fitted.text.len() < LARGEST_ANSWER + 200, "{}", fitted.text.len());
        assert!(fitted.text.ends_with(" bytes)\nThis answer was shortened: ask for fewer."), "{}", fitted.text);
        assert!(fitted.data.to_string().len() < LARGEST_ANSWER + 200);
        assert_eq!(fitted.data["shortened"], "This answer was shortened: ask for fewer.");
        let short = AgentToolAnswer::found("a".into(), json!({"a": 1}));
        assert_eq!(short.clone().fitted("x"), short);
    }

    #[test]
    fn an_answer_is_read_back_as_it_was_given() {
        for answer in [
            AgentToolAnswer::found("Text.".into(), json!({"a": 1})),
            AgentToolAnswer { failed: true, text: "Wrong.".into(), data: json!({"diagnostics": []}) },
            AgentToolAnswer::failed("No."),
        ] {
            assert_eq!(AgentToolAnswer::of(answer.clone().told(Told::Both)), answer);
            let text = answer.clone().told(Told::Text);
            assert_eq!((text.is_failed(), text.into_model_value()), (answer.failed, json!(answer.text)));
        }
        assert_eq!(AgentToolAnswer::of(ToolOutcome::failed("Too late.")), AgentToolAnswer::failed("Too late."));
    }

    #[test]
    fn a_wrong_request_is_told_in_sentences_and_an_outage_is_not() {
        let refused =
            AgentToolAnswer::refused(Error::invalid("limit", "must be a whole number from 1 to 100")).unwrap();
        assert_eq!(refused.text, "The arguments are wrong:\n- limit: must be a whole number from 1 to 100");
        assert_eq!(AgentToolAnswer::refused(Error::NotFound("organization")).unwrap().text, "Organization not found.");
        assert!(AgentToolAnswer::refused(Error::internal("x")).is_err());
    }

    #[test]
    fn every_built_in_tool_is_described_and_has_a_name_of_its_own() {
        let usual = built_in_tools(&Outbound::new(Vec::new()).unwrap());
        assert_eq!(usual.names().collect::<Vec<_>>(), ["current_time", "wget"]);
        let usual = usual.names().map(|name| usual.get(name).unwrap().clone());
        let by_name = tools_of_runs(None, None).into_iter().chain([described_read_feed()]).chain(super::described());
        well_described(usual.chain(by_name).collect()).unwrap();
    }
}
