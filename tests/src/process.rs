//! The functions in one process, over the stand-ins.

use std::{collections::BTreeMap, time::Duration};

use http_body_util::BodyExt;
use lambda_http::{Body, Request, Response};
use shared::{
    Platform,
    actions::ToolTokens,
    automation::RunStarter,
    config::Environment,
    http::{Afterwards, answer, answer_streaming},
};

use crate::{
    Aws,
    aws::{TABLE_PREFIX, identity},
    issuer::AUDIENCE,
    world::{
        LLM_MODEL, LLM_SECRET, ORGANIZATION_SECRETS, OTHER_MODEL, Options, PIPEDREAM_SECRET, TOOL_TOKEN_SECRET,
        TWILIO_SECRETS, VAPI_SECRET,
    },
};

/// The functions, each wired as in its `main`.
pub struct Process {
    pub create_tool: create_tool::Deps,
    pub update_tool: update_tool::Deps,
    pub delete: delete::Deps,
    pub list_tools: list_tools::Deps,
    pub attach: attach::Deps,
    pub detach: detach::Deps,
    pub keys: keys::Deps,
    pub knowledge: knowledge::Deps,
    pub execute: execute::Deps,
    pub run_tool: run_tool::Deps,
    pub run_loop: run_loop::Deps,
    pub runs: runs::Deps,
    pub schedule: schedule::Deps,
    pub call_start: call_start::Deps,
    pub chat: chat::Deps,
    pub console: console::Deps,
    pub settle: settle::Deps,
    /// `'static`, because its answers go on after it has returned.
    pub stream: &'static stream::Deps,
    pub operator: operator::Deps,
    pub tools_test: tools_test::Deps,
    pub agents: agents::Deps,
    pub phone_numbers: phone_numbers::Deps,
    pub calls: calls::Deps,
    pub erasures: erasures::Deps,
    pub usage: usage::Deps,
    pub discover: discover::Deps,
    pub mcp: mcp::Deps,
    pub members: members::Deps,
    pub approvals: approvals::Deps,
    pub deploy: deploy::Deps,
    pub hooks: hooks::Deps,
    pub trigger: trigger::Deps,
    pub tokens: ToolTokens,
    /// Starts runs for every kind of cause.
    pub run_starter: RunStarter,
}

/// The functions' environment variables, without AWS's own.
pub(crate) fn variables(
    options: &Options,
    aws: &Aws,
    [vapi, twilio, pipedream, issuer]: [&String; 4],
) -> BTreeMap<&'static str, String> {
    let mut variables = BTreeMap::from([
        ("AWS_ENDPOINT_URL", aws.url.clone()),
        ("TABLE_PREFIX", TABLE_PREFIX.to_owned()),
        ("PUBLIC_URL", options.public_url.clone()),
        ("TOOL_TOKEN_SECRET", TOOL_TOKEN_SECRET.to_owned()),
        ("VAPI_SECRET", VAPI_SECRET.to_owned()),
        ("PIPEDREAM_SECRET", PIPEDREAM_SECRET.to_owned()),
        ("LLM_SECRET", LLM_SECRET.to_owned()),
        ("LLM_MODEL", LLM_MODEL.to_owned()),
        ("PLATFORM_MODELS", OTHER_MODEL.to_owned()),
        ("TWILIO_SECRET_PREFIX", TWILIO_SECRETS.to_owned()),
        ("ORGANIZATION_SECRET_PREFIX", ORGANIZATION_SECRETS.to_owned()),
        ("START_TOOLS_QUEUE_URL", aws.queue_url("start-tools")),
        ("EXECUTIONS_QUEUE_URL", aws.queue_url("executions")),
        ("RUNS_QUEUE_URL", aws.queue_url("runs")),
        ("SETTLE_QUEUE_URL", aws.queue_url("settle")),
        ("SCHEDULED_QUEUE_URL", aws.queue_url("scheduled")),
        ("SCHEDULED_QUEUE_ARN", aws.queue_arn("scheduled")),
        ("SCHEDULED_DEAD_LETTERS_ARN", aws.queue_arn("scheduled-dead")),
        ("SCHEDULE_GROUP", format!("{TABLE_PREFIX}automations")),
        ("SCHEDULE_ROLE_ARN", format!("arn:aws:iam::123456789012:role/{TABLE_PREFIX}scheduled")),
        ("VAPI_URL", vapi.clone()),
        ("TWILIO_URL", twilio.clone()),
        ("PIPEDREAM_URL", pipedream.clone()),
        ("CONTROL_HOSTS", vapi.trim_start_matches("http://").to_owned()),
        ("OUTBOUND_OPEN_HOSTS", options.open_hosts.join(",")),
        ("IDEMPOTENCY_WINDOW_SECONDS", options.window.as_secs().to_string()),
        ("GOOGLE_KEYS_URL", format!("{issuer}/keys")),
        ("JWT_ISSUER", issuer.clone()),
        ("JWT_AUDIENCE", format!("another,{AUDIENCE}")),
    ]);
    variables.extend(options.variables.iter().cloned());
    variables
}

impl Process {
    pub(crate) fn connect(options: &Options, aws: &Aws, others: [&String; 4]) -> Box<Self> {
        let (region, credentials) = identity();
        let variables = variables(options, aws, others);
        let environment = Environment::new(move |name| variables.get(name).cloned());
        let platform = Platform::new(environment, region, credentials);
        let process = platform.and_then(|platform| Self::on(&platform));
        Box::new(process.expect("the environment is complete"))
    }

    fn on(platform: &Platform) -> shared::platform::Result<Self> {
        Ok(Self {
            create_tool: create_tool::Deps::new(platform)?,
            update_tool: update_tool::Deps::new(platform)?,
            delete: delete::Deps::new(platform)?,
            list_tools: list_tools::Deps::new(platform)?,
            attach: attach::Deps::new(platform)?,
            detach: detach::Deps::new(platform)?,
            keys: keys::Deps::new(platform)?,
            knowledge: knowledge::Deps::new(platform)?,
            execute: execute::Deps::new(platform)?,
            run_tool: run_tool::Deps::new(platform)?,
            run_loop: run_loop::Deps {
                step_needs: Duration::from_secs(5),
                retry_pause: Duration::ZERO,
                ..run_loop::Deps::new(platform)?
            },
            runs: runs::Deps::new(platform)?,
            schedule: schedule::Deps::new(platform)?,
            call_start: call_start::Deps::new(platform)?,
            chat: chat::Deps::new(platform)?,
            console: console::Deps::new(platform)?,
            settle: settle::Deps::new(platform)?,
            stream: Box::leak(Box::new(stream::Deps::new(platform)?)),
            operator: operator::Deps::new(platform)?,
            tools_test: tools_test::Deps::new(platform)?,
            agents: agents::Deps::new(platform)?,
            phone_numbers: phone_numbers::Deps::new(platform)?,
            calls: calls::Deps::new(platform)?,
            erasures: erasures::Deps::new(platform)?,
            usage: usage::Deps::new(platform)?,
            discover: discover::Deps::new(platform)?,
            mcp: mcp::Deps::new(platform)?,
            members: members::Deps::new(platform)?,
            approvals: approvals::Deps::new(platform)?,
            deploy: deploy::Deps::new(platform)?,
            hooks: hooks::Deps::new(platform)?,
            // A machine that is busy with other tests must not fail the test.
            trigger: trigger::Deps { answer_within: Some(Duration::from_secs(20)), ..trigger::Deps::new(platform)? },
            tokens: platform.tokens()?,
            run_starter: platform.run_starter()?,
        })
    }

    /// Passes a request to the function of this name.
    pub(crate) async fn answer(&self, function: &str, request: Request) -> (Response<Body>, Option<Afterwards>) {
        let Process {
            create_tool,
            update_tool,
            delete,
            list_tools,
            attach,
            detach,
            keys,
            knowledge,
            execute,
            agents,
            phone_numbers,
            ..
        } = self;
        let calls = &self.calls;
        match function {
            "create-tool" => {
                Box::pin(answer("create-tool", request, |request| create_tool::handle(create_tool, request))).await
            }
            "list-tools" => {
                Box::pin(answer("list-tools", request, |request| list_tools::handle(list_tools, request))).await
            }
            "attach" => Box::pin(answer("attach", request, |request| attach::handle(attach, request))).await,
            "update-tool" => {
                Box::pin(answer("update-tool", request, |request| update_tool::handle(update_tool, request))).await
            }
            "delete" => Box::pin(answer("delete", request, |request| delete::handle(delete, request))).await,
            "detach" => Box::pin(answer("detach", request, |request| detach::handle(detach, request))).await,
            "knowledge" => {
                Box::pin(answer("knowledge", request, |request| knowledge::handle(knowledge, request))).await
            }
            "keys" => Box::pin(answer("keys", request, |request| keys::handle(keys, request))).await,
            "call-start" => {
                let call_start = &self.call_start;
                Box::pin(answer("call-start", request, |request| call_start::handle(call_start, request))).await
            }
            "execute" => Box::pin(answer("execute", request, |request| execute::handle(execute, request))).await,
            "agents" => Box::pin(answer("agents", request, |request| agents::handle(agents, request))).await,
            "tools-test" => {
                let tools_test = &self.tools_test;
                Box::pin(answer("tools-test", request, |request| tools_test::handle(tools_test, request))).await
            }
            "phone-numbers" => {
                Box::pin(answer("phone-numbers", request, |request| phone_numbers::handle(phone_numbers, request)))
                    .await
            }
            "calls" => Box::pin(answer("calls", request, |request| calls::handle(calls, request))).await,
            "erasures" => {
                Box::pin(answer("erasures", request, |request| erasures::handle(&self.erasures, request))).await
            }
            "usage" => Box::pin(answer("usage", request, |request| usage::handle(&self.usage, request))).await,
            "discover" => {
                Box::pin(answer("discover", request, |request| discover::handle(&self.discover, request))).await
            }
            "mcp" => Box::pin(answer("mcp", request, |request| mcp::handle(&self.mcp, request))).await,
            "members" => Box::pin(answer("members", request, |request| members::handle(&self.members, request))).await,
            "chat" => Box::pin(answer("chat", request, |request| chat::handle(&self.chat, request))).await,
            "stream" => {
                let stream = self.stream;
                let answered = answer_streaming("stream", request, |request| stream::handle(stream, request));
                let (response, afterwards) = Box::pin(answered).await;
                let (head, body) = response.into_parts();
                let Ok(body) = body.collect().await;
                (Response::from_parts(head, Body::from(body.to_bytes().to_vec())), afterwards)
            }
            "console" => Box::pin(answer("console", request, |request| console::handle(&self.console, request))).await,
            "approvals" => {
                Box::pin(answer("approvals", request, |request| approvals::handle(&self.approvals, request))).await
            }
            "deploy" => Box::pin(answer("deploy", request, |request| deploy::handle(&self.deploy, request))).await,
            "hooks" => Box::pin(answer("hooks", request, |request| hooks::handle(&self.hooks, request))).await,
            "trigger" => Box::pin(answer("trigger", request, |request| trigger::handle(&self.trigger, request))).await,
            "runs" => Box::pin(answer("runs", request, |request| runs::handle(&self.runs, request))).await,
            other => panic!("no function {other} is known to the world"),
        }
    }
}
