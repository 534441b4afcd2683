//! Starts the whole system on this machine.

use std::{
    fs,
    path::{Path, PathBuf},
};

use serde::Serialize;
use serde_json::{Map, Value};

use crate::{
    Error, Result,
    aws::{Aws, REGION},
    catalogue,
    deploy::{self, Deployed, STACK},
    function_logs::{FunctionLogs, LogFile},
    http_api::HttpApi,
    identity::{PASSWORD, UserPool},
    llm_service::LlmService,
    lock::Lock,
    ministack::{self, Ministack},
    ports::{self, Ports},
    programs,
    progress::Progress,
    python::Venv,
    seed::{self, Data, Users},
    standins::{
        self, Standin, crm::Crm, google::Google, llm::Llm, pipedream::Pipedream, site::Site, twilio::Twilio, vapi::Vapi,
    },
    state_files,
    streaming::{self, StreamingApi},
    workspace::Workspace,
};

/// The account of the second key that VAPI's stand-in knows.
const OTHER_VAPI_ACCOUNT: &str = "22222222-2222-4222-8222-222222222222";

/// The number of steps that [`Stack::start`] prints.
pub const STEPS: usize = 7;

#[derive(Debug, Clone)]
pub struct Options {
    /// The directory of `stack.json`, `env` and the logs.
    pub state_dir: PathBuf,
    pub ports: Ports,
    /// Private hosts (`host` or `host:port`) that `api_request` tools may reach in addition to the stand-ins.
    pub open_hosts: Vec<String>,
    /// Origins whose pages may use the API and the streamed chat; `*` allows all.
    pub origins: Vec<String>,
    /// Replaces the LLM's stand-in, which is started nevertheless.
    pub llm: Option<LlmService>,
    /// The functions share the crates that were compiled for the tests, which have more features than those of `make run`.
    pub beside_tests: bool,
}

/// A running system. Dropping it ends all its parts and waits a few milliseconds until they are gone.
#[derive(Debug)]
pub struct Stack {
    /// The contents of `stack.json`.
    pub description: Description,
    pub vapi: Standin<Vapi>,
    pub twilio: Standin<Twilio>,
    pub pipedream: Standin<Pipedream>,
    pub llm: Standin<Llm>,
    pub crm: Standin<Crm>,
    pub site: Standin<Site>,
    pub google: Standin<Google>,
    pub(crate) data: Data,
    pub(crate) http: reqwest::Client,
    state_dir: PathBuf,
    _http_api: HttpApi,
    _streaming: Option<StreamingApi>,
    _function_logs: FunctionLogs,
    ministack: Ministack,
    // Dropped last: the directory is released after everything has ended.
    _state: Lock,
}

/// `stack.json`: how to reach and use the running system.
#[derive(Debug, Clone, Serialize)]
pub struct Description {
    pub api_url: String,
    /// Address of the streaming function without a trailing slash; `None` if the template has no such function.
    pub stream_url: Option<String>,
    /// The page on which the demo user signs in and chats.
    pub console_url: String,
    pub console_user: ConsoleUser,
    /// Id token of an owner of the organization `slug`.
    pub token: String,
    /// Id tokens of users of the same organization with the roles `member` and `viewer`.
    pub member_token: String,
    pub viewer_token: String,
    /// Id token of an owner of the organization `other_slug`, who has no role in `slug`.
    pub other_token: String,
    pub slug: String,
    pub other_slug: String,
    pub organization_id: String,
    pub other_organization_id: String,
    pub agent_id: String,
    /// VAPI's id of the agent.
    pub assistant_id: String,
    pub phone_number_id: String,
    pub phone_number: String,
    pub twilio_account_sid: String,
    pub twilio_auth_token: String,
    pub vapi_api_key: String,
    /// The bearer of VAPI's messages about calls.
    pub vapi_webhook_bearer: String,
    pub execute_token_hint: String,
    pub standins: Standins,
    /// The default LLM of organizations: the stand-in or a real one.
    pub llm_url: String,
    /// The local AWS, with the credentials `test` and `test`.
    pub endpoint_url: String,
    pub region: String,
    pub stack_name: String,
    pub table_prefix: String,
}

/// The demo user's sign-in.
#[derive(Debug, Clone, Serialize)]
pub struct ConsoleUser {
    pub email: String,
    pub password: String,
}

#[derive(Debug, Clone, Serialize)]
pub struct Standins {
    pub vapi: String,
    pub twilio: String,
    pub pipedream: String,
    pub llm: String,
    pub crm: String,
    pub site: String,
    pub google: String,
}

impl Stack {
    /// Builds, starts and seeds everything; prints its steps to `progress`. If it fails or is dropped early, it ends
    /// all that it had started.
    pub async fn start(options: &Options, progress: &Progress) -> Result<Self> {
        let workspace = Workspace::find()?;
        let data = Data::read(&workspace)?;
        let http = shared::clients::http_client().map_err(Error::Client)?;
        let state_dir = &options.state_dir;
        fs::create_dir_all(state_dir).map_err(Error::file(format!("create {}", state_dir.display())))?;
        let state_dir = state_dir.canonicalize().map_err(Error::file(format!("open {}", state_dir.display())))?;

        let state = Lock::of_state(&state_dir)?;

        // Bind the ports before the long steps that follow. `make run` tries the default ports before the build, too.
        let step =
            progress.step("starting the stand-ins for VAPI, Twilio, Pipedream, the LLM, a CRM, a web site and Google");
        let listener = ports::listen(options.ports.api, "the API")?;
        let api_address = listener.local_addr().map_err(Error::file("find the API's port"))?;
        let api_url = format!("http://{api_address}");
        let stream_listener = ports::listen(options.ports.stream, streaming::SERVICE)?;
        let stream_address = stream_listener.local_addr().map_err(Error::file("find the port for streamed answers"))?;
        let stream_url = format!("http://{stream_address}/{}", streaming::STAGE);
        let files = catalogue::files().map_err(Error::file("read infra/catalogue"))?;
        let (vapi, twilio, pipedream, llm, crm, site, google) = start_standins(options.ports, &data, &files)?;
        ports::free(options.ports.aws, ministack::SERVICE)?;
        step.done("listening");

        let step = progress.step("checking Python and the tools in .venv");
        let venv = Venv::ensure(&workspace, &step).await?;
        step.done("ready");

        let step = progress.step("building the functions");
        let programs = programs::build(&workspace, options.beside_tests, &step).await?;
        step.done(&format!("{} functions built", programs.len()));

        let step = progress.step("packing the functions");
        let packages = programs::pack(&workspace, programs, &step).await?;
        step.done("packed");

        let step = progress.step("starting AWS (ministack)");
        let ministack = Ministack::start(&venv, &state_dir, options.ports.aws, &http, &step).await?;
        let aws = Aws::new(http.clone(), ministack.endpoint());
        step.done(ministack.endpoint());

        let step = progress.step("deploying infra/template.yaml");
        let code_prefix = deploy::upload(&aws, &packages, &step).await?;
        let pool = UserPool::create(&aws, &pages(&api_url)).await?;
        let addresses = Standins {
            vapi: vapi.url.clone(),
            twilio: twilio.url.clone(),
            pipedream: pipedream.url.clone(),
            llm: llm.url.clone(),
            crm: crm.url.clone(),
            site: site.url.clone(),
            google: google.url.clone(),
        };
        let llm_service = options.llm.clone().unwrap_or_else(|| standin_of_llm(&data, &llm.url));
        let parameters = parameters(&data, &pool, &api_url, &addresses, options);
        let trial = trial(&data, &parameters, &llm.url);
        let sizes = sizes(&workspace)?;
        let mut parameters: Vec<(&str, String)> = parameters;
        parameters.extend(sizes.iter().map(|(name, value)| (name.as_str(), value.clone())));
        parameters.extend([("JwksUrl", pool.keys(aws.endpoint())), ("GoogleKeysUrl", google.keys_url())]);
        parameters.extend([("LlmApiKey", llm_service.api_key), ("LlmUrl", llm_service.url.clone())]);
        parameters.extend(llm_service.model.map(|model| ("LlmModel", model)));
        parameters.push(("StreamPublicUrl", stream_url.clone()));
        parameters.push(("OidcConfigurationUrl", pool.configuration(aws.endpoint())));
        let deployed = deploy::deploy(&aws, &workspace, &code_prefix, &parameters, &step).await?;
        step.done(&format!("stack {STACK} is complete"));

        let step = progress.step("seeding the demo organization and the catalogue of services");
        let users = Users::sign_up(&pool, &aws, &data).await?;
        let assistant_id = seed::create_assistant(&http, &vapi.url, &data).await?;
        let number = &data.phone_number;
        vapi.set_number(&number.number, &assistant_id).map_err(|error| Error::Demo(error.to_string()))?;
        twilio.set_voice_url(&number.number, &format!("{api_url}/api/phone-number/{}/incoming", number.id));
        seed::write(&aws, &deployed, &data, &assistant_id, &users).await?;
        seed::load_catalogue(&aws, files).await?;
        let cors = deploy::cors(&aws, &deployed.api_id).await?;
        let http_api = HttpApi::open(listener, http.clone(), aws.endpoint(), &deployed.api_id, cors)?;
        let functions = packages.iter().map(|package| package.function.clone()).collect();
        let log = state_dir.join("functions.log");
        let function_logs = FunctionLogs::follow(&aws, functions, log.clone())?;
        let directory = state_dir.join(streaming::FUNCTION);
        let streaming = StreamingApi::open(stream_listener, &aws, &packages, &directory, LogFile::new(log)).await?;
        let environment = deploy::environment(&aws, &packages).await?;
        let description = Description {
            llm_url: llm_service.url,
            stream_url: streaming.as_ref().map(|_open| stream_url),
            ..describe(&data, users, api_url, assistant_id, addresses, &aws, &deployed)
        };
        state_files::write(&state_dir, &description, environment, &trial)?;
        step.done(&format!("organization {}", description.slug));

        Ok(Self {
            description,
            vapi,
            twilio,
            pipedream,
            llm,
            crm,
            site,
            google,
            data,
            http,
            state_dir,
            _http_api: http_api,
            _streaming: streaming,
            _function_logs: function_logs,
            ministack,
            _state: state,
        })
    }

    /// Returns only if a part ended by itself, with the reason.
    pub async fn ended(&mut self) -> Error {
        self.ministack.ended().await
    }

    /// The directory of `stack.json`, `env` and the logs.
    pub fn state_dir(&self) -> &Path {
        &self.state_dir
    }

    /// The last lines of the functions' log.
    pub fn last_function_logs(&self, lines: usize) -> Vec<String> {
        let log = fs::read_to_string(self.state_dir.join("functions.log")).unwrap_or_default();
        let all: Vec<&str> = log.lines().collect();
        all.iter().skip(all.len().saturating_sub(lines)).map(|&line| line.to_owned()).collect()
    }
}

/// The console's addresses (the API's root) as people may type them.
fn pages(api_url: &str) -> [String; 2] {
    [format!("{api_url}/"), format!("{}/", api_url.replace("127.0.0.1", "localhost"))]
}

type AllStandins =
    (Standin<Vapi>, Standin<Twilio>, Standin<Pipedream>, Standin<Llm>, Standin<Crm>, Standin<Site>, Standin<Google>);

fn start_standins(ports: Ports, data: &Data, catalogue: &Map<String, Value>) -> Result<AllStandins> {
    let failed = |service, port| {
        move |source: std::io::Error| match source.kind() {
            std::io::ErrorKind::AddrInUse => Error::PortTaken { port, service },
            _ => Error::Standin { service, source },
        }
    };
    let twilio = standins::twilio::Options::default().with_account(
        &data.twilio.account_sid,
        &data.twilio.auth_token,
        &[&data.phone_number.number, &data.twilio.spare_number],
    );
    let twilio = standins::twilio::start(ports::address(ports.twilio), twilio)
        .map_err(failed("Twilio's stand-in", ports.twilio))?;
    let vapi = standins::vapi::Options {
        api_key: data.vapi.api_key.clone(),
        twilio: Some(twilio.url.clone()),
        ..Default::default()
    }
    .with_key(&data.vapi.other_api_key, OTHER_VAPI_ACCOUNT);
    let mut pipedream = standins::pipedream::Options {
        client_id: data.pipedream.client_id.clone(),
        client_secret: data.pipedream.client_secret.clone(),
        project_id: data.pipedream.project_id.clone(),
        ..Default::default()
    }
    .with_components(catalogue.values());
    for account in &data.pipedream.accounts {
        pipedream = pipedream.with_account(&account.id, &data.organization.id, &account.app);
    }
    let llm = standins::llm::Options { api_key: data.llm.api_key.clone(), plain: true, ..Default::default() };
    let crm = standins::crm::Options { api_key: data.crm.api_key.clone(), customers: data.crm.customers.clone() };
    Ok((
        standins::vapi::start(ports::address(ports.vapi), vapi).map_err(failed("VAPI's stand-in", ports.vapi))?,
        twilio,
        standins::pipedream::start(ports::address(ports.pipedream), pipedream)
            .map_err(failed("Pipedream's stand-in", ports.pipedream))?,
        standins::llm::start(ports::address(ports.llm), llm).map_err(failed("the LLM's stand-in", ports.llm))?,
        standins::crm::start(ports::address(ports.crm), crm).map_err(failed("the CRM's stand-in", ports.crm))?,
        standins::site::start(ports::address(ports.site)).map_err(failed("the web site", ports.site))?,
        standins::google::start(ports::address(ports.google)).map_err(failed("Google's stand-in", ports.google))?,
    ))
}

fn standin_of_llm(data: &Data, address: &str) -> LlmService {
    LlmService { api_key: data.llm.api_key.clone(), url: format!("{address}/v1"), model: None }
}

/// The concurrency settings for 1000 executions, the usual limit of an AWS account.
fn sizes(workspace: &Workspace) -> Result<Vec<(String, String)>> {
    let path = workspace.path("infra/concurrency/1000");
    let text = fs::read_to_string(&path).map_err(Error::file(format!("read {}", path.display())))?;
    let lines = text.lines().filter(|line| !line.starts_with('#')).filter_map(|line| line.split_once('='));
    Ok(lines.map(|(name, value)| (name.to_owned(), value.to_owned())).collect())
}

/// The template's parameters, without those of the code.
fn parameters(
    data: &Data,
    pool: &UserPool,
    api_url: &str,
    standins: &Standins,
    options: &Options,
) -> Vec<(&'static str, String)> {
    let hosts = [&standins.vapi, &standins.twilio, &standins.pipedream, &standins.llm, &standins.crm, &standins.site];
    let hosts: Vec<&str> = hosts
        .iter()
        .map(|url| url.trim_start_matches("http://"))
        .chain(options.open_hosts.iter().map(String::as_str))
        .collect();
    vec![
        ("JwtIssuer", pool.issuer()),
        ("JwtAudience", pool.audience().to_owned()),
        ("PublicUrl", api_url.to_owned()),
        ("DashboardOrigins", options.origins.join(",")),
        ("ToolTokenKey", data.tool_token_key.clone()),
        ("VapiApiKey", data.vapi.api_key.clone()),
        ("VapiWebhookBearer", data.vapi.webhook_bearer.clone()),
        ("PipedreamClientId", data.pipedream.client_id.clone()),
        ("PipedreamClientSecret", data.pipedream.client_secret.clone()),
        ("PipedreamProjectId", data.pipedream.project_id.clone()),
        ("PipedreamEnvironment", data.pipedream.environment.clone()),
        ("VapiUrl", standins.vapi.clone()),
        ("TwilioUrl", standins.twilio.clone()),
        ("PipedreamUrl", standins.pipedream.clone()),
        ("OutboundOpenHosts", hosts.join(",")),
        ("ControlHosts", standins.vapi.trim_start_matches("http://").to_owned()),
    ]
}

fn describe(
    data: &Data,
    users: Users,
    api_url: String,
    assistant_id: String,
    standins: Standins,
    aws: &Aws,
    deployed: &Deployed,
) -> Description {
    Description {
        stream_url: None,
        console_url: format!("{api_url}/"),
        console_user: ConsoleUser { email: data.user.clone(), password: PASSWORD.to_owned() },
        api_url,
        token: users.owner.token,
        member_token: users.member.token,
        viewer_token: users.viewer.token,
        other_token: users.other_owner.token,
        slug: data.organization.slug.clone(),
        other_slug: data.other_organization.slug.clone(),
        organization_id: data.organization.id.clone(),
        other_organization_id: data.other_organization.id.clone(),
        agent_id: data.agent.id.clone(),
        assistant_id,
        phone_number_id: data.phone_number.id.clone(),
        phone_number: data.phone_number.number.clone(),
        twilio_account_sid: data.twilio.account_sid.clone(),
        twilio_auth_token: data.twilio.auth_token.clone(),
        vapi_api_key: data.vapi.api_key.clone(),
        vapi_webhook_bearer: data.vapi.webhook_bearer.clone(),
        execute_token_hint: format!(
            "A tool's token is what VAPI sends: GET {}/tool/{{external_tool_id}} with `authorization: Bearer {}`, there \
             `value.token` of the entry with the key `metadata` in `parameters`.",
            standins.vapi, data.vapi.api_key
        ),
        llm_url: standins.llm.clone(),
        standins,
        endpoint_url: aws.endpoint().to_owned(),
        region: REGION.to_owned(),
        stack_name: STACK.to_owned(),
        table_prefix: deployed.table_prefix.clone(),
    }
}

/// Parameters for a second deployment with the same stand-ins, including the LLM's: a real LLM's key is never written
/// to a file.
fn trial(data: &Data, parameters: &[(&'static str, String)], llm: &str) -> state_files::Trial {
    const SAME: [&str; 8] = [
        "VapiUrl",
        "TwilioUrl",
        "PipedreamUrl",
        "PipedreamClientId",
        "PipedreamClientSecret",
        "PipedreamProjectId",
        "OutboundOpenHosts",
        "ControlHosts",
    ];
    let mut same: Vec<_> = parameters.iter().filter(|(name, _value)| SAME.contains(name)).cloned().collect();
    same.extend([("LlmApiKey", data.llm.api_key.clone()), ("LlmUrl", format!("{llm}/v1"))]);
    // The local AWS is discarded at the end, so nothing needs protection.
    same.push(("DeletionProtection", "false".to_owned()));
    // An account has one role for the logs of REST APIs, and the running stack gave it.
    same.push(("ApiGatewayLogRole", "existing".to_owned()));
    state_files::Trial {
        number: data.twilio.spare_number.clone(),
        other_vapi_key: data.vapi.other_api_key.clone(),
        parameters: same,
    }
}
