//! Committed files that are generated from the declared routes.
//!
//! These are the operations of `docs/openapi.yaml`, the APIs in `infra/template.yaml`, the routes in
//! `docs/endpoints.md`, `docs/roles.md`, and the console's `forms.json`. `UPDATE=1 cargo test -p tests --test repository generated` writes them.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test says what is wrong and stops")]

mod template;
mod yaml;

use std::{collections::BTreeSet, fmt::Write as _};

use serde_json::{Map, Value, json};
use shared::{
    http::{Caller, Document, Route},
    models::Role,
};
use tests::declared::{DECLARED, Declared, STREAMED, least_roles};

use crate::structure::source::{below, directories, read, root};

/// These routes do not change the organization and are open to every role; any member may leave.
const WRITES_OF_VIEWERS: [(&str, &str); 5] = [
    ("DELETE", "/api/{slug}/mcp"),
    ("DELETE", "/api/{slug}/members/{user_id}"),
    ("POST", "/api/{slug}/discover/fetch_tool_data"),
    ("POST", "/api/{slug}/discover/search"),
    ("POST", "/api/{slug}/mcp"),
];

/// What all operations share; the schemas that are written by hand stand beside it.
const FRAME: &str = "frame.yaml";

fn described(declared: &Declared) -> Document {
    let mut document = Document::default();
    (declared.describe)(&mut document);
    document
}

/// Compares a file with its generated text; with `UPDATE` set, writes the file first.
/// Compares a generated file, or writes it where `UPDATE` is set. `test` is the filter that runs the caller.
pub(crate) fn hold(path: &str, generated: &str, test: &str) {
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(root().join(path), generated).unwrap();
    }
    let differs = std::fs::read_to_string(root().join(path)).unwrap_or_default() != generated;
    assert!(!differs, "{path} is not as its sources say: UPDATE=1 cargo test -p tests --test repository {test}");
}

/// Replaces the lines between `# generated: name` and `# generated: end`.
fn with_section(text: &str, name: &str, lines: &str) -> String {
    let begin = format!("# generated: {name}\n");
    let (before, rest) = text.split_once(&begin).unwrap_or_else(|| panic!("no `{begin}`"));
    let at = rest.find("# generated: end\n").unwrap_or_else(|| panic!("no end of {name}"));
    let end = rest[..at].rfind('\n').map_or(0, |at| at + 1);
    format!("{before}{begin}{lines}{}", &rest[end..])
}

/// `docs/openapi.yaml` as the routes and the files of `docs/openapi` say it.
fn document() -> Value {
    let (mut paths, mut schemas) = (Map::new(), Map::new());
    for declared in &DECLARED {
        let document = described(declared);
        for operation in &document.operations {
            let item = paths.entry(operation.route.path).or_insert_with(|| Value::Object(Map::new()));
            let known = item.get("parameters").cloned().unwrap_or_else(|| operation.parameters());
            assert_eq!(known, operation.parameters(), "{}: the path's variables", operation.id);
            item["parameters"] = known;
            if declared.function == STREAMED {
                item["servers"] = json!([{
                    "url": "https://{api}.execute-api.{region}.amazonaws.com/live",
                    "description": "The REST API of `stream`, which is the output StreamAddress.",
                    "variables": {"api": {"default": "api-id"}, "region": {"default": "eu-central-1"}},
                }]);
            }
            item[operation.route.method.to_lowercase()] = operation.value();
        }
        for (name, schema) in document.schemas.into_named() {
            let known = schemas.entry(name.clone()).or_insert_with(|| schema.clone());
            assert_eq!(*known, schema, "two schemas are called {name}");
        }
    }
    for file in below("docs/openapi", "yaml").into_iter().filter(|file| !file.ends_with(FRAME)) {
        let written: Map<String, Value> = serde_saphyr::from_str(&read(&file)).unwrap();
        for (name, schema) in written {
            assert!(schemas.insert(name.clone(), schema).is_none(), "two schemas are called {name}");
        }
    }
    let mut document: Value = serde_saphyr::from_str(&read(&format!("docs/openapi/{FRAME}"))).unwrap();
    document["paths"] = Value::Object(paths);
    document["components"]["schemas"] = Value::Object(schemas);
    document
}

#[test]
fn the_document_is_as_the_routes_are_declared() {
    let document = document();
    let about = "# Made of the routes and of docs/openapi: UPDATE=1 cargo test -p tests --test repository generated\n";
    hold("docs/openapi.yaml", &format!("{about}{}", yaml::block(&document, 0)), "generated");
}

/// The bodies for which the console has a form.
const FORMS: [&str; 12] = [
    "ConnectionBody",
    "HookChange",
    "LlmClient",
    "LlmKey",
    "MemberChange",
    "NewAgent",
    "NewHook",
    "NewKnowledgeBase",
    "NewPhoneNumber",
    "PhoneNumberChange",
    "ToolConfig",
    "VapiKey",
];

/// The schema with short references, without the parts that no form shows; adds the names of the schemas that it refers to.
fn for_a_form(schema: &Value, named: &mut Vec<String>) -> Value {
    const AT: &str = "#/components/schemas/";
    match schema {
        Value::Object(members) => {
            let shown = members.iter().filter(|(name, _)| !["examples", "if", "then"].contains(&name.as_str()));
            Value::Object(shown.map(|(name, member)| (name.clone(), for_a_form(member, named))).collect())
        }
        Value::Array(items) => items.iter().map(|item| for_a_form(item, named)).collect(),
        Value::String(text) => match text.strip_prefix(AT) {
            Some(path) => {
                named.extend(path.split('/').next().map(str::to_owned));
                json!(format!("#/{path}"))
            }
            None => schema.clone(),
        },
        _ => schema.clone(),
    }
}

#[test]
fn the_forms_of_the_console_are_as_the_routes_are_declared() {
    let document = document();
    let mut named: Vec<String> = FORMS.map(str::to_owned).into();
    let mut forms = Map::new();
    while let Some(name) = named.pop() {
        if !forms.contains_key(&name) {
            let schema = &document["components"]["schemas"][&name];
            assert!(schema.is_object(), "there is no schema {name}");
            let form = for_a_form(schema, &mut named);
            forms.insert(name, form);
        }
    }
    hold("functions/console/assets/forms.json", &format!("{}\n", Value::Object(forms)), "generated");
}

/// The routes with the methods of each path together: `POST`, `GET /api/{slug}/members`.
fn routes_in_words(routes: &[Route]) -> String {
    let mut words = String::new();
    for (at, route) in routes.iter().enumerate() {
        let more = routes.get(at + 1).is_some_and(|next| next.path == route.path);
        let separator = if at == 0 { "" } else { ", " };
        let path = if more { String::new() } else { format!(" {}", route.path) };
        write!(words, "{separator}`{}{path}`", route.method).unwrap();
    }
    words
}

#[test]
fn the_page_of_endpoints_has_the_declared_routes() {
    let mut text = String::new();
    for line in read("docs/endpoints.md").lines() {
        let function = line.strip_prefix("| [").and_then(|rest| Some(rest.split_once(']')?.0));
        let declared = DECLARED.iter().find(|declared| Some(declared.function) == function);
        let cells: Vec<&str> = line.split(" | ").collect();
        match (declared, &cells[..]) {
            (Some(declared), [name, _, rest @ ..]) => {
                let routes = routes_in_words(declared.routes);
                let api = if declared.function == STREAMED { "a REST API of its own: " } else { "" };
                writeln!(text, "{name} | {api}{routes} | {}", rest.join(" | ")).unwrap();
            }
            _ => writeln!(text, "{line}").unwrap(),
        }
    }
    hold("docs/endpoints.md", &text, "generated");
}

#[test]
fn the_table_of_roles_is_as_the_routes_are_declared() {
    let mut rows: Vec<(&str, &str, &str, &str)> = Vec::new();
    for declared in &DECLARED {
        rows.extend(declared.routes.iter().map(|route| {
            let caller = match route.caller {
                Caller::Member(role) | Caller::Verified(role) => role.as_str(),
                Caller::Proof(proof) => proof,
                Caller::Anybody => "anybody",
            };
            (route.path, route.method, caller, declared.function)
        }));
    }
    rows.sort_unstable();
    let mut text = String::from(
        "# Roles\n\nThe least role for each route, or in its place what proves the caller (security schemes of [openapi.yaml](openapi.yaml), and a \
         tool's own token), generated from the routes: a change of a role shows here.\n\n\
         | path | method | least role or proof | function |\n|---|---|---|---|\n",
    );
    for (path, method, role, function) in rows {
        writeln!(text, "| `{path}` | {method} | {role} | {function} |").unwrap();
    }
    hold("docs/roles.md", &text, "generated");
}

/// Generated files cannot show a role that is too low: document, template and access follow from the same
/// declaration.
#[test]
fn a_viewer_may_only_get() {
    let open: BTreeSet<(&str, &str)> = least_roles()
        .into_iter()
        .filter(|(method, _, role)| *method != "GET" && *role < Role::Member)
        .map(|(method, path, _)| (method, path))
        .collect();
    assert_eq!(open, BTreeSet::from(WRITES_OF_VIEWERS));
}

/// The prose and schemas are not linked into a program unless it calls `describe`.
#[test]
fn no_function_describes_itself_at_run_time() {
    for function in directories("functions") {
        let main = read(&format!("functions/{function}/src/main.rs"));
        assert!(!main.contains("describe"), "functions/{function}/src/main.rs");
    }
    let calls = ["describe(document", "Document::default", "describe)(", "Operation::new("];
    for file in
        crate::structure::source::rust("shared/src").into_iter().chain(crate::structure::source::rust("functions"))
    {
        let of_engine =
            ["shared/src/entry/http/operation.rs", "shared/src/entry/http/openapi.rs"].contains(&file.path.as_str());
        let called = calls.iter().find(|call| file.code.contains(**call));
        assert!(of_engine || called.is_none(), "{}: {called:?}", file.path);
    }
    assert!(read("Cargo.toml").contains("lto = \"fat\""));
}
