//! The functions in one process, over the stand-ins.

use std::time::Duration;

use lambda_http::{Body, Request, Response};
use shared::{
    accounts::Accounts,
    clients::{self, Llm, Outbound, Queue, Secrets},
    config,
    execution::Executor,
    http::{Access, Afterwards, answer},
    idempotency::Idempotency,
    injection::built_in_tools,
    lifecycle::{Assistants, Attachments, ExternalTools, Lifecycle, References, Settling, StoredSecrets},
    store::{
        AgentTools, Agents, AutomationRuns, Calls, Database, Executions, Intents, KnowledgeBases, KnowledgeEntries,
        Organizations, PhoneNumbers, Quotas, Tools,
    },
    tools::{Services, ToolTokens, query::Knowledge},
};

use crate::{
    Aws,
    aws::TABLE_PREFIX,
    world::{
        LLM_MODEL, LLM_SECRET, ORGANIZATION_SECRETS, Options, PIPEDREAM_SECRET, PUBLIC_URL, TOOL_TOKEN_SECRET,
        TWILIO_SECRETS, VAPI_SECRET,
    },
};

/// The functions, each as its `main` wires it, in one process.
pub struct Process {
    pub create: create::Deps,
    pub update: update::Deps,
    pub delete: delete::Deps,
    pub list: list::Deps,
    pub attach: attach::Deps,
    pub detach: detach::Deps,
    pub keys: keys::Deps,
    pub knowledge: knowledge::Deps,
    pub execute: execute::Deps,
    pub run_tool: run_tool::Deps,
    pub run_loop: run_loop::Deps,
    pub runs: runs::Deps,
    pub call_start: call_start::Deps,
    pub settle: settle::Deps,
    pub tools_test: tools_test::Deps,
    pub agents: agents::Deps,
    pub phone_numbers: phone_numbers::Deps,
    pub calls: calls::Deps,
    pub tokens: ToolTokens,
}

/// What functions have in common.
struct Parts {
    config: config::Aws,
    database: Database,
    access: Access,
    accounts: Accounts,
    attachments: Attachments,
    executor: Executor,
    lifecycle: Lifecycle,
    llm: Llm,
    outbound: Outbound,
    references: References,
    settling: Settling,
    stored: StoredSecrets,
    tokens: ToolTokens,
    twilio: clients::Twilio,
    vapi: clients::Vapi,
}

impl Parts {
    fn connect(options: &Options, aws: &Aws, [vapi, twilio, pipedream]: [&String; 3]) -> Self {
        let config = aws.config();
        let database = Database::connect(&config, TABLE_PREFIX);
        let secrets = Secrets::new(&config);
        let http = clients::http_client().expect("an HTTP client");
        let tokens = ToolTokens::new(secrets.clone(), TOOL_TOKEN_SECRET);
        let access = Access::new(&database);
        let control_hosts = vec![vapi.trim_start_matches("http://").to_owned()];
        let vapi = clients::Vapi::new(http.clone(), vapi);
        let twilio = clients::Twilio::new(http.clone(), twilio);
        let outbound = Outbound::new(options.open_hosts.clone()).expect("an outbound client");
        let pipedream = clients::Pipedream::new(http.clone(), pipedream);
        let accounts = Accounts::new(&database, secrets.clone(), VAPI_SECRET, ORGANIZATION_SECRETS)
            .with_llm(LLM_SECRET, LLM_MODEL);
        let stored = StoredSecrets::new(&database, secrets.clone());
        let assistants = Assistants::new(vapi.clone(), accounts.clone());
        let external = ExternalTools::new(vapi.clone(), accounts.clone(), tokens.clone(), PUBLIC_URL);
        let attachments = Attachments::new(&database, assistants.clone());
        let lifecycle = Lifecycle::new(&database, external, assistants);
        let references = References {
            phone_numbers: PhoneNumbers::new(&database),
            knowledge_bases: KnowledgeBases::new(&database),
            pipedream: pipedream.clone(),
            pipedream_secret: PIPEDREAM_SECRET.to_owned(),
            secrets: secrets.clone(),
        };
        let settling = Settling::new(Queue::new(&config, aws.queue_url("settle")));
        let llm = Llm::new(http.clone(), outbound.clone());
        let executor = Executor {
            executions: Executions::new(&database),
            idempotency: Idempotency::new(&database, options.window),
            quotas: Quotas::new(&database),
            services: Services {
                agents: Agents::new(&database),
                phone_numbers: PhoneNumbers::new(&database),
                secrets: secrets.clone(),
                twilio: twilio.clone(),
                pipedream,
                pipedream_secret: PIPEDREAM_SECRET.to_owned(),
                vapi: vapi.clone(),
                accounts: accounts.clone(),
                call_control: clients::CallControl::new(http, control_hosts),
                outbound: outbound.clone(),
                knowledge: Knowledge::new(KnowledgeBases::new(&database), KnowledgeEntries::new(&database)),
            },
            history: Duration::from_secs(30 * 24 * 60 * 60),
        };
        Self {
            config,
            database,
            access,
            accounts,
            attachments,
            executor,
            lifecycle,
            llm,
            outbound,
            references,
            settling,
            stored,
            tokens,
            twilio,
            vapi,
        }
    }
}

impl Process {
    #[expect(clippy::too_many_lines, reason = "an entry for each function")]
    pub(crate) fn connect(options: &Options, aws: &Aws, vendors: [&String; 3]) -> Box<Self> {
        let Parts {
            config,
            database,
            access,
            accounts,
            attachments,
            executor,
            lifecycle,
            llm,
            outbound,
            references,
            settling,
            stored,
            tokens,
            twilio,
            vapi,
        } = Parts::connect(options, aws, vendors);
        Box::new(Process {
            create: create::Deps {
                access: access.clone(),
                references: references.clone(),
                lifecycle: lifecycle.clone(),
            },
            update: update::Deps {
                access: access.clone(),
                references: references.clone(),
                lifecycle: lifecycle.clone(),
                settling: settling.clone(),
            },
            delete: delete::Deps { access: access.clone(), lifecycle: lifecycle.clone(), settling: settling.clone() },
            settle: settle::Deps { lifecycle: lifecycle.clone(), settling },
            call_start: call_start::Deps {
                phone_numbers: PhoneNumbers::new(&database),
                agents: Agents::new(&database),
                agent_tools: AgentTools::new(&database),
                tools: Tools::new(&database),
                calls: Calls::new(&database),
                idempotency: executor.idempotency.clone(),
                secrets: executor.services.secrets.clone(),
                accounts: accounts.clone(),
                vapi: vapi.clone(),
                runs: Queue::new(&config, aws.queue_url("runs")),
                public_url: options.public_url.clone(),
                context_due: Duration::from_secs(3),
            },
            run_tool: run_tool::Deps {
                tools: Tools::new(&database),
                calls: Calls::new(&database),
                executor: executor.clone(),
            },
            run_loop: run_loop::Deps {
                runs: AutomationRuns::new(&database),
                queue: Queue::new(&config, aws.queue_url("automation-runs")),
                tools: Tools::new(&database),
                executor: Executor {
                    idempotency: Idempotency::new(&database, Duration::from_secs(24 * 60 * 60)),
                    ..executor.clone()
                },
                registry: built_in_tools(&outbound).expect("the built-in tools are complete"),
                accounts: accounts.clone(),
                llm,
                step_needs: Duration::from_secs(5),
            },
            runs: runs::Deps {
                access: access.clone(),
                runs: AutomationRuns::new(&database),
                tools: Tools::new(&database),
                registry: built_in_tools(&outbound).expect("the built-in tools are complete"),
                queue: Queue::new(&config, aws.queue_url("automation-runs")),
                history: Duration::from_secs(30 * 24 * 60 * 60),
            },
            tools_test: tools_test::Deps {
                access: access.clone(),
                references: references.clone(),
                tools: Tools::new(&database),
                executor: executor.clone(),
            },
            list: list::Deps {
                access: access.clone(),
                tools: Tools::new(&database),
                attachments: attachments.clone(),
                executions: Executions::new(&database),
            },
            calls: calls::Deps {
                access: access.clone(),
                calls: Calls::new(&database),
                executions: Executions::new(&database),
                accounts: accounts.clone(),
            },
            attach: attach::Deps { access: access.clone(), attachments: attachments.clone() },
            detach: detach::Deps { access: access.clone(), attachments: attachments.clone() },
            agents: agents::Deps {
                access: access.clone(),
                agents: Agents::new(&database),
                attachments,
                phone_numbers: PhoneNumbers::new(&database),
                vapi: vapi.clone(),
                accounts: accounts.clone(),
            },
            keys: keys::Deps {
                access: access.clone(),
                organizations: Organizations::new(&database),
                agents: Agents::new(&database),
                tools: Tools::new(&database),
                intents: Intents::new(&database),
                vapi,
                accounts: accounts.clone(),
                secrets: stored.clone(),
                outbound,
            },
            phone_numbers: phone_numbers::Deps {
                access: access.clone(),
                agents: Agents::new(&database),
                phone_numbers: PhoneNumbers::new(&database),
                twilio,
                secrets: stored,
                secret_prefix: TWILIO_SECRETS.to_owned(),
            },
            knowledge: knowledge::Deps {
                access,
                bases: KnowledgeBases::new(&database),
                entries: KnowledgeEntries::new(&database),
                tools: Tools::new(&database),
                agents: Agents::new(&database),
                agent_tools: AgentTools::new(&database),
                lifecycle,
            },
            execute: execute::Deps {
                tools: Tools::new(&database),
                calls: Calls::new(&database),
                tokens: tokens.clone(),
                accounts,
                executor,
                runs: Queue::new(&config, aws.queue_url("runs")),
            },
            tokens,
        })
    }

    /// Hands a request to a function by its name.
    pub(crate) async fn answer(&self, function: &str, request: Request) -> (Response<Body>, Option<Afterwards>) {
        let Process {
            create,
            update,
            delete,
            list,
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
            "create" => Box::pin(answer("create", request, |request| create::handle(create, request))).await,
            "list" => Box::pin(answer("list", request, |request| list::handle(list, request))).await,
            "attach" => Box::pin(answer("attach", request, |request| attach::handle(attach, request))).await,
            "update" => Box::pin(answer("update", request, |request| update::handle(update, request))).await,
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
            "runs" => Box::pin(answer("runs", request, |request| runs::handle(&self.runs, request))).await,
            other => panic!("no function {other} is known to the world"),
        }
    }
}
