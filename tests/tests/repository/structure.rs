//! The structure of the repository: names, dependencies, template, and links.
//!
//! Each function has its name in four places, modules depend only downwards, the template matches the code, and links
//! have targets.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test says what is wrong and stops")]

mod concurrency;
mod functions;
mod operations;
mod recursion;
mod requests;
pub(crate) mod source;
mod streaming;
mod throttles;
mod unused_dependencies;
mod upgrades;
mod waivers;

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};
use source::{Source, between, crate_modules, directories, kebab, pages, pascal, read, root, rust};
use tests::{Template, template::Route};

/// The modules of `shared` and their folders, lowest first; a module may use those of earlier lines. An empty folder is the
/// crate's root.
const LAYERS: [(&str, &[&str]); 19] = [
    (
        "core",
        &[
            "error",
            "config",
            "cut",
            "deadline",
            "described",
            "invocation",
            "names",
            "opt_out",
            "placeholder",
            "ranking",
        ],
    ),
    ("core", &["models", "fields", "backoff"]),
    ("core", &["redaction", "numbering", "declared"]),
    ("core", &["telemetry", "json_schema"]),
    ("", &["clients"]),
    ("", &["store"]),
    ("tools", &["accounts", "webhooks"]),
    ("tools", &["tool"]),
    ("tools", &["actions"]),
    ("tools", &["lifecycle", "receipts"]),
    ("tools", &["spoken_claims"]),
    ("tools", &["connections", "execution"]),
    ("tools", &["catalogue"]),
    ("tools", &["discovery"]),
    ("", &["injection"]),
    ("", &["automation", "chat"]),
    ("", &["authoring_tools"]),
    ("entry", &["http", "queue", "direct_invocation"]),
    ("", &["platform"]),
];

const LONGEST_FILE: usize = 600;

/// Names of several public types of `shared`, with the reason.
const NAMES_OF_SEVERAL_TYPES: [(&str, &str); 3] = [
    ("Account", "each client's account; code names the client too, as in `twilio::Account`"),
    ("Error", "a module's own error"),
    ("Result", "a module's own result"),
];

/// Functions that only operators invoke.
const OPERATED: [&str; 1] = ["operator"];

fn functions() -> BTreeSet<String> {
    directories("functions")
}

fn production_code() -> Vec<Source> {
    ["shared/src", "shared/declare/src", "shared/parser/src", "functions", "infra/local/src"]
        .iter()
        .flat_map(|folder| rust(folder))
        .collect()
}

fn set<T: Into<String>>(names: impl IntoIterator<Item = T>) -> BTreeSet<String> {
    names.into_iter().map(Into::into).collect()
}

fn kebab_id(id: &str) -> String {
    kebab(id.strip_suffix("Function").unwrap_or_else(|| panic!("{id} is a function and is not called so")))
}

// ------------------------------------------------------------------------------------------- one name, four places

#[test]
fn a_function_has_its_directory_resource_event_and_endpoint_row() {
    let functions = functions();
    assert!(!functions.is_empty());
    for name in &functions {
        for file in ["Cargo.toml", "src/lib.rs", "src/main.rs"] {
            assert!(root().join("functions").join(name).join(file).is_file(), "functions/{name}/{file} is missing");
        }
        let manifest = read(&format!("functions/{name}/Cargo.toml"));
        assert!(manifest.contains(&format!("name = \"{name}\"")), "the package of functions/{name} has another name");
    }

    let template = Template::read();
    let deployed = template.resources("AWS::Serverless::Function");
    assert_eq!(set(deployed.keys().map(|id| kebab_id(id))), functions, "functions in infra/template.yaml");
    for (id, properties) in &deployed {
        let name = kebab_id(id);
        assert_eq!(properties["FunctionName"], json!({"Fn::Sub": format!("${{AWS::StackName}}-{name}")}), "{id}");
        assert_eq!(properties["CodeUri"]["Key"], json!({"Fn::Sub": format!("${{CodePrefix}}/{name}.zip")}), "{id}");
    }

    let events = std::fs::read_dir(root().join("events")).unwrap().map(|entry| entry.unwrap().file_name());
    let events = events.map(|name| name.into_string().unwrap().strip_suffix(".json").expect("JSON only").to_owned());
    assert_eq!(set(events), functions, "files of events/");

    let endpoints = read("docs/endpoints.md");
    let rows = endpoints.lines().filter_map(|line| {
        let (name, rest) = line.strip_prefix("| [")?.split_once("](../functions/")?;
        assert!(rest.starts_with(&format!("{name})")), "{line}");
        let routes = template.routes().into_iter().chain(template.rest_routes());
        for route in routes.filter(|route| route.function == name) {
            assert!(rest.contains(&route.path), "the row of {name} in docs/endpoints.md has no {}", route.path);
        }
        Some(name)
    });
    assert_eq!(set(rows), functions, "rows of docs/endpoints.md");
}

#[test]
fn an_event_is_one_of_its_functions_routes() {
    let template = Template::read();
    let rest_routes = template.rest_routes();
    let routes: Vec<Route> = template.routes().into_iter().chain(rest_routes.clone()).collect();
    for name in functions() {
        let event: Value = serde_json::from_str(&read(&format!("events/{name}.json"))).unwrap();
        if scheduled(&Template::read()).contains(&name) {
            assert_eq!(event["source"], "aws.scheduler", "{name}");
            continue;
        }
        if OPERATED.contains(&name.as_str()) {
            assert_eq!(event["dry_run"], true, "{name}: an event that changes nothing");
            continue;
        }
        let triggers = triggers(&Template::read());
        let queues: Vec<&String> =
            triggers.iter().filter(|(_, (function, _))| *function == name).map(|(queue, _)| queue).collect();
        if !queues.is_empty() {
            let arns = queues
                .iter()
                .map(|queue| json!(format!("arn:aws:sqs:eu-central-1:123456789012:{}", queue_name(queue))));
            assert!(arns.into_iter().any(|arn| event["Records"][0]["eventSourceARN"] == arn), "{name}: {queues:?}");
            continue;
        }
        let from_rest = event.get("resource").is_some();
        let http = if from_rest { &event["requestContext"] } else { &event["requestContext"]["http"] };
        let [path, method] = if from_rest { ["path", "httpMethod"] } else { ["rawPath", "method"] };
        let (path, method) = (event[path].as_str().unwrap(), &http[method]);
        let fits = |route: &&Route| {
            let (pattern, path) = (route.path.split('/'), path.split('/'));
            route.function == name
                && *method == route.method.as_str()
                && pattern.clone().count() == path.clone().count()
                && pattern.zip(path).all(|(wanted, given)| wanted.starts_with('{') || wanted == given)
        };
        let route = routes.iter().find(fits).unwrap_or_else(|| panic!("events/{name}.json is no route of {name}"));
        assert_eq!(rest_routes.contains(route), from_rest, "{name}");
        if from_rest {
            let stage = template.resources("AWS::ApiGateway::Stage").values().next().unwrap()["StageName"].clone();
            assert_eq!((&event["resource"], &event["httpMethod"]), (&json!(route.path), method), "{name}");
            assert_eq!((&http["resourcePath"], &http["stage"]), (&json!(route.path), &stage), "{name}");
            assert_eq!(http["path"], format!("/{}{path}", stage.as_str().unwrap()), "{name}");
            assert!(http.get("authorizer").is_none(), "{name}: nobody has looked at the token");
            continue;
        }
        assert_eq!((event["version"].as_str(), http["path"].as_str()), (Some("2.0"), Some(path)), "{name}");
        assert_eq!(event["routeKey"], format!("{} {}", route.method, route.path), "{name}");
        let subject = &event["requestContext"]["authorizer"]["jwt"]["claims"]["sub"];
        assert_eq!(subject.is_string(), route.jwt, "events/{name}.json and the authorizer");
    }
}

/// Functions that a schedule invokes.
fn scheduled(template: &Template) -> BTreeSet<String> {
    let schedules = template.resources("AWS::Scheduler::Schedule");
    set(schedules.values().map(|schedule| {
        let target = schedule["Target"]["Arn"]["Fn::GetAtt"].as_str().unwrap();
        kebab_id(target.strip_suffix(".Arn").unwrap())
    }))
}

/// By the queue's logical id: the function behind it, and the trigger's properties.
fn triggers(template: &Template) -> BTreeMap<String, (String, Value)> {
    let mappings = template.resources("AWS::Lambda::EventSourceMapping");
    let triggers = mappings.values().map(|mapping| {
        let queue = mapping["EventSourceArn"]["Fn::GetAtt"].as_str().unwrap().strip_suffix(".Arn").unwrap();
        (queue.to_owned(), (kebab_id(mapping["FunctionName"]["Ref"].as_str().unwrap()), (*mapping).clone()))
    });
    triggers.collect()
}

fn queue_name(id: &str) -> String {
    let template = Template::read();
    let name = template.resources("AWS::SQS::Queue")[id]["QueueName"]["Fn::Sub"].as_str().unwrap().to_owned();
    name.replace("${AWS::StackName}", "switchboard")
}

/// Functions without a waiting caller.
fn unattended(template: &Template) -> BTreeSet<String> {
    let queued = triggers(template).into_values().map(|(function, _)| function);
    scheduled(template).into_iter().chain(queued).chain(set(OPERATED)).collect()
}

/// Neither cfn-lint nor `CloudFormation` checks this: a message is not redelivered while its function may still run,
/// a batch does not fail as a whole, and failed messages are kept.
#[test]
fn a_queue_fits_its_function() {
    let template = Template::read();
    let queues = template.resources("AWS::SQS::Queue");
    let usual = template.0["Globals"]["Function"]["Timeout"].as_u64().unwrap();
    let mut dead_letters = BTreeSet::new();
    for (queue, (function, trigger)) in triggers(&template) {
        let id = format!("{}Function", pascal(&function));
        let own = &template.resources("AWS::Serverless::Function")[id.as_str()]["Timeout"];
        let properties = queues[queue.as_str()];
        let visible_after = properties["VisibilityTimeout"].as_u64().unwrap();
        assert!(visible_after >= 6 * own.as_u64().unwrap_or(usual), "{queue}: {visible_after} s");
        let main = read(&format!("functions/{function}/src/main.rs"));
        if !main.contains("queue::serve") {
            // Its messages only start it, one at a time; a schedule starts it too.
            assert!(trigger["BatchSize"] == 1 && scheduled(&template).contains(&function), "{function}");
            continue;
        }
        assert_eq!(trigger["FunctionResponseTypes"], json!(["ReportBatchItemFailures"]), "{function}");
        let redrive = &properties["RedrivePolicy"];
        assert!(redrive["maxReceiveCount"].as_u64().unwrap() >= 5, "{queue}");
        let dead = redrive["deadLetterTargetArn"]["Fn::GetAtt"].as_str().unwrap().strip_suffix(".Arn").unwrap();
        let kept = |id: &str| queues[id]["MessageRetentionPeriod"].as_u64().unwrap();
        assert!(kept(dead) > kept(&queue), "{dead} keeps messages from when they were first sent");
        let alarm = template.resources("AWS::CloudWatch::Alarm")[format!("{dead}Alarm").as_str()].clone();
        assert_eq!(alarm["Dimensions"][0]["Value"], json!({"Fn::GetAtt": format!("{dead}.QueueName")}), "{dead}");
        dead_letters.insert(dead.to_owned());
    }
    let known: BTreeSet<String> = triggers(&template).into_keys().chain(dead_letters).collect();
    assert_eq!(set(queues.keys().copied()), known, "a queue is read by a function or holds dead letters");
    for (id, queue) in queues {
        assert_eq!(queue["SqsManagedSseEnabled"], true, "{id}");
    }
}

#[test]
fn api_gateway_may_call_exactly_the_functions_that_have_routes() {
    let template = Template::read();
    let functions_of = |routes: &[Route]| set(routes.iter().map(|route| route.function.clone()));
    let (http, rest) = (functions_of(&template.routes()), functions_of(&template.rest_routes()));
    let unattended = unattended(&template);
    assert_eq!(http.iter().chain(&rest).chain(&unattended).cloned().collect::<BTreeSet<_>>(), functions());

    let role = &template.resources("AWS::IAM::Role")["ApiRole"].clone();
    let trust = &role["AssumeRolePolicyDocument"]["Statement"];
    assert_eq!(trust.as_array().unwrap().len(), 1);
    assert_eq!(trust[0]["Principal"], json!({"Service": "apigateway.amazonaws.com"}));
    let policies = role["Policies"].as_array().unwrap();
    let [statement] = policies[0]["PolicyDocument"]["Statement"].as_array().unwrap().as_slice() else { panic!("one") };
    assert_eq!((policies.len(), &statement["Action"]), (1, &json!("lambda:InvokeFunction")));
    let invoked = statement["Resource"].as_array().unwrap().iter().map(|arn| {
        let (function, _) = arn["Fn::GetAtt"].as_str().unwrap().split_once('.').unwrap();
        kebab_id(function)
    });
    assert_eq!(set(invoked), http, "the role of the HTTP API");
    for (id, integration) in template.resources("AWS::ApiGatewayV2::Integration") {
        assert_eq!(integration["CredentialsArn"], json!({"Fn::GetAtt": "ApiRole.Arn"}), "{id}");
    }

    let permissions = template.resources("AWS::Lambda::Permission");
    let granted = permissions.values().map(|permission| {
        assert_eq!(permission["Principal"], "apigateway.amazonaws.com");
        assert_eq!(permission["Action"], "lambda:InvokeFunction");
        assert!(permission["SourceArn"]["Fn::Sub"].as_str().unwrap().ends_with(":${StreamApi}/*/*"));
        kebab_id(permission["FunctionName"]["Ref"].as_str().unwrap())
    });
    assert_eq!(set(granted), rest, "permissions for the REST API");
}

// ------------------------------------------------------------------------------------------------------- the code

#[test]
fn modules_use_only_lower_layers() {
    let layer = |module: &str| LAYERS.iter().position(|(_, modules)| modules.contains(&module));
    let in_folder = |folder: &str| {
        set(LAYERS.iter().filter(|(named, _)| *named == folder).flat_map(|(_, modules)| modules.iter().copied()))
    };
    let folders: BTreeSet<_> = LAYERS.iter().map(|(folder, _)| *folder).filter(|folder| !folder.is_empty()).collect();
    let declared = set(crate_modules(&read("shared/src/lib.rs")));
    let expected: BTreeSet<_> = in_folder("").into_iter().chain(set(folders.iter().copied())).collect();
    assert_eq!(declared, expected, "each module of shared has its place among the layers");
    for folder in &folders {
        let face = read(&format!("shared/src/{folder}.rs"));
        assert_eq!(
            set(crate_modules(&face)),
            in_folder(folder),
            "each module of {folder} has its place among the layers"
        );
    }
    for file in rust("shared/src") {
        let path = file.path.strip_prefix("shared/src/").unwrap();
        let own = path.split(['/', '.']).find(|name| !folders.contains(name)).unwrap();
        let Some(own_layer) = layer(own) else { continue }; // lib.rs, the faces of folders
        for used in file.uses_of_crate() {
            // The names that lib.rs re-exports.
            let module = match used.as_str() {
                "idempotency" => "store",
                "Error" | "Result" => "error",
                "Deadline" => "deadline",
                "Platform" => "platform",
                "planner" => "chat",
                other => other,
            };
            let used = layer(module).unwrap_or_else(|| panic!("{}: crate::{module}", file.path));
            assert!(
                used < own_layer || module == own,
                "{} uses crate::{module}, which stands above or beside it",
                file.path
            );
        }
    }
    for name in functions() {
        let manifest = read(&format!("functions/{name}/Cargo.toml"));
        for other in functions().iter().map(String::as_str).chain(["local", "tests"]) {
            assert!(!manifest.contains(&format!("\n{other} = ")), "functions/{name} depends on {other}");
        }
    }
    for forbidden in functions().iter().map(String::as_str).chain(["local", "tests"]) {
        assert!(!read("shared/Cargo.toml").contains(&format!("\n{forbidden} = ")), "shared depends on {forbidden}");
    }
}

/// Modules form no circle. In a crate with a module `deps`, no module uses the crate's root either.
#[test]
fn the_modules_of_a_function_have_no_cycle() {
    for function in functions() {
        let folder = format!("functions/{function}/src");
        let root = read(&format!("{folder}/lib.rs"));
        let modules = crate_modules(&root);
        let mut uses: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        for file in rust(&folder) {
            let own = file.path.strip_prefix(&format!("{folder}/")).unwrap().split(['/', '.']).next().unwrap();
            let Some(own) = modules.iter().find(|module| **module == own) else { continue }; // lib.rs, main.rs
            let used = file.uses_of_crate();
            let of_root: Vec<_> = used.iter().filter(|used| !modules.contains(&used.as_str())).collect();
            assert!(!modules.contains(&"deps") || of_root.is_empty(), "{} uses {of_root:?} of lib.rs", file.path);
            let used = modules.iter().filter(|module| *module != own && used.contains(**module));
            uses.entry(own).or_default().extend(used);
        }
        // Removes modules without remaining uses, until none is left or only a circle.
        while let Some(lowest) = uses.iter().find(|(_, used)| used.is_empty()).map(|(module, _)| *module) {
            uses.remove(lowest);
            for used in uses.values_mut() {
                used.remove(lowest);
            }
        }
        assert!(uses.is_empty(), "a circle of modules in functions/{function}: {uses:?}");
    }
}

#[test]
fn the_environment_is_read_in_config_only() {
    for file in rust("shared/src").into_iter().chain(rust("functions")) {
        let reads = file.code.contains("env::var") || file.code.contains("env::vars");
        // Cargo passes a build script its folders in the environment.
        if file.path.ends_with("/build.rs") {
            continue;
        }
        assert_eq!(reads, file.path == "shared/src/core/config.rs", "{} and the environment", file.path);
    }
}

#[test]
fn no_file_is_too_long_to_be_read() {
    for file in production_code().into_iter().chain(rust("tests")) {
        let lines = file.text.lines().count();
        assert!(lines <= LONGEST_FILE, "{} has {lines} lines", file.path);
    }
}

#[test]
fn public_types_of_shared_have_different_names() {
    let mut files: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for file in rust("shared/src") {
        for line in file.code.lines() {
            let item =
                ["pub struct ", "pub enum ", "pub trait ", "pub type "].iter().find_map(|it| line.strip_prefix(it));
            if let Some(item) = item {
                let name = item.chars().take_while(|letter| letter.is_alphanumeric()).collect();
                files.entry(name).or_default().push(file.path.clone());
            }
        }
    }
    assert!(files.len() > 300, "{}", files.len());
    files.retain(|_, files| files.len() > 1);
    let allowed = set(NAMES_OF_SEVERAL_TYPES.map(|(name, _)| name));
    assert_eq!(set(files.keys().cloned()), allowed, "{files:#?}");
}

#[test]
fn files_are_named_by_their_content() {
    for file in production_code().into_iter().chain(rust("tests")) {
        let name = file.path.rsplit('/').next().unwrap();
        for empty in ["util", "helper", "manager", "common.rs", "misc"] {
            assert!(!name.contains(empty), "{}", file.path);
        }
    }
}

// --------------------------------------------------------------------------------------------------- the template

/// The tables' logical ids and properties, by the code's name of the table.
fn tables(template: &Template) -> BTreeMap<String, (String, Value)> {
    let named = template.resources("AWS::DynamoDB::Table").into_iter().map(|(id, properties)| {
        let name = properties["TableName"]["Fn::Sub"].as_str().unwrap();
        let name = name.strip_prefix("${AWS::StackName}-").unwrap_or_else(|| panic!("{id} is named {name}"));
        (name.to_owned(), (id.to_owned(), properties.clone()))
    });
    named.collect()
}

fn hash_and_range(schema: &Value) -> Vec<&str> {
    schema.as_array().unwrap().iter().map(|key| key["AttributeName"].as_str().unwrap()).collect()
}

#[test]
fn the_template_has_the_tables_the_code_uses_and_no_other() {
    let template = Template::read();
    let used = rust("shared/src").into_iter().flat_map(|file| file.tables());
    let tables = tables(&template);
    assert_eq!(set(tables.keys().cloned()), set(used));
    for (name, (id, table)) in &tables {
        assert_eq!(table["BillingMode"], "PAY_PER_REQUEST", "{name}");
        assert_eq!(table["PointInTimeRecoverySpecification"]["PointInTimeRecoveryEnabled"], true, "{name}");
        assert_eq!(table["SSESpecification"]["SSEEnabled"], true, "{name}");
        assert_eq!(*id, format!("{}Table", pascal(name)), "a table's id says its name");
    }
}

#[test]
fn keys_and_indexes_are_those_of_the_template() {
    let tables = tables(&Template::read());
    let mut queries = 0;
    for file in rust("shared/src") {
        let Some(name) = file.tables().into_iter().next() else { continue };
        let (_, table) = &tables[&name];
        // Of every table in the file: a transaction may check a row of another table.
        let schemas: Vec<_> =
            file.tables().iter().map(|name| hash_and_range(&tables[name].1["KeySchema"]).join(" ")).collect();
        let mut keys: Vec<String> =
            between(&file.code, "key([", "])").into_iter().map(|parts| between(parts, "(\"", "\"").join(" ")).collect();
        keys.extend(file.code.contains("(id(").then(|| "id".to_owned()));
        for key in keys {
            assert!(schemas.contains(&key), "{}: ({key}) is no key of {name}", file.path);
        }
        let by_index = |index: &str| {
            let all = file.tables();
            let indexes = all.iter().filter_map(|name| tables[name].1["GlobalSecondaryIndexes"].as_array()).flatten();
            let found = indexes.clone().find(|known| known["IndexName"] == index);
            &found.unwrap_or_else(|| panic!("{}: {name} has no index {index}", file.path))["KeySchema"]
        };
        if file.code.contains(".of_organization(") {
            assert_eq!(hash_and_range(by_index("by_organization"))[0], "organization_id", "{}", file.path);
        }
        if file.code.contains("Page::newest") {
            let keys = hash_and_range(by_index("by_organization"));
            assert_eq!(keys, ["organization_id", "created_at"], "{}: what a page goes by", file.path);
        }
        let by_key =
            between(&file.code, ".query(\"#", "\"").into_iter().map(|condition| (&table["KeySchema"], condition));
        let by_indexes = between(&file.code, ".query_index(\"", "\")").into_iter().map(|arguments| {
            let (index, condition) = arguments.split_once("\", \"#").unwrap();
            (by_index(index), condition)
        });
        for (schema, condition) in by_key.chain(by_indexes) {
            let partition = condition.split(' ').next().unwrap();
            assert_eq!(partition, hash_and_range(schema)[0], "{}: {condition} of {name}", file.path);
            queries += 1;
        }
    }
    assert!(queries > 10, "the queries were found: {queries}");
}

/// DynamoDB deletes expired rows by `expires_at`, only in tables whose rows have it.
#[test]
fn rows_that_expire_do() {
    for (name, (id, table)) in tables(&Template::read()) {
        let code = rust("shared/src").into_iter().filter(|file| {
            let model = format!("shared/src/core/models/{}.rs", name.strip_suffix('s').unwrap_or(&name));
            file.path == model || file.tables().first() == Some(&name)
        });
        let expires = code.into_iter().any(|file| file.code.contains("expires_at"));
        let expected = json!({"AttributeName": "expires_at", "Enabled": true});
        let specification = table.get("TimeToLiveSpecification").unwrap_or(&Value::Null);
        assert_eq!(*specification, if expires { expected } else { Value::Null }, "{id}");
    }
}

// -------------------------------------------------------------------------------------------------- pages and crates

#[test]
fn links_lead_somewhere() {
    let (pages, ignored) = (pages(), read(".gitignore"));
    assert!(pages.len() > 4, "{pages:?}");
    for page in pages {
        let text = read(&page);
        let folder = root().join(&page).parent().unwrap().to_owned();
        for link in between(&text, "](", ")") {
            let target = link.split('#').next().unwrap();
            if !target.contains("://") && !target.is_empty() {
                assert!(folder.join(target).exists(), "{page} links to {target}, which is not there");
            }
        }
        for name in between(&text, "`", "`") {
            let is_path = name.contains('/') && !name.contains([' ', '<', '*', '{', '$', ':']);
            let of_ours = ["shared/", "functions/", "infra/", "tests/", "events/", "docs/"];
            // Personal files are not in the repository.
            let is_own = ignored.lines().any(|line| line.trim_start_matches('/') == name);
            if is_path && !is_own && of_ours.iter().any(|start| name.starts_with(start)) {
                assert!(root().join(name).exists(), "{page} names {name}, which is not there");
            }
        }
    }
    for file in production_code().into_iter().chain(rust("tests")) {
        for decision in between(&file.text, "docs/adr/", ")").into_iter().filter(|name| !name.contains('"')) {
            assert!(root().join("docs/adr").join(decision).is_file(), "{} names docs/adr/{decision}", file.path);
        }
    }
}

/// The crates that `deny.toml` bans are not in the lock file; only `make lint` runs cargo-deny.
#[test]
fn no_banned_crate_is_locked() {
    let deny = read("deny.toml");
    let banned: Vec<(&str, &str)> = between(&deny, "{ crate = \"", "\"")
        .into_iter()
        .map(|entry| entry.split_once(':').unwrap_or((entry, "")))
        .collect();
    for needed in ["aws-lc-rs", "aws-lc-sys", "openssl", "openssl-sys", "native-tls", "hyper", "rustls"] {
        assert!(banned.iter().any(|(name, _)| *name == needed), "deny.toml does not ban {needed}");
    }
    let lock = read("Cargo.lock");
    let mut locked = 0;
    for package in lock.split("[[package]]\n").skip(1) {
        let (name, version) = (between(package, "name = \"", "\"")[0], between(package, "version = \"", "\"")[0]);
        locked += 1;
        for (banned, versions) in &banned {
            let older = versions.strip_prefix('<').map(str::trim);
            let hit = name == *banned && older.is_none_or(|limit| semver(version) < semver(limit));
            assert!(!hit, "{name} {version} is banned by deny.toml");
        }
        if let Some(source) = between(package, "source = \"", "\"").first() {
            assert_eq!(*source, "registry+https://github.com/rust-lang/crates.io-index", "{name} {version}");
        }
    }
    assert!(locked > 100, "Cargo.lock was read");
    for once in ["rustls", "reqwest", "hyper", "ring"] {
        let copies = lock.matches(&format!("\nname = \"{once}\"\n")).count();
        assert_eq!(copies, 1, "{once} is built {copies} times");
    }
}

fn semver(version: &str) -> Vec<u64> {
    version.split(['.', '-', '+']).map_while(|part| part.parse().ok()).collect()
}

// ---------------------------------------------------------------------------------------- how the tests read source code

#[test]
fn code_is_read_as_it_is_written() {
    let code = "use crate::{\n    Error,\n    models::{Tool, ToolId},\n    store::Tools,\n};\nfn f() -> crate::Result<()> {}\n";
    let source = Source { path: String::new(), text: String::new(), code: code.to_owned() };
    assert_eq!(source.uses_of_crate(), set(["Error", "Result", "models", "store"]));
    assert_eq!((pascal("phone_numbers").as_str(), pascal("call-start").as_str()), ("PhoneNumbers", "CallStart"));
    assert_eq!(kebab("CallStart"), "call-start");
    assert!(semver("0.21.12") < semver("0.23") && semver("0.23.46") > semver("0.23") && semver("1.12.0") > semver("1"));
}
