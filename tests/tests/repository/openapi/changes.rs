//! Every field of every PATCH and PUT in `docs/openapi.yaml` is stored, read back and removed.

use std::collections::BTreeSet;

use jsonschema::Validator;
use serde_json::{Value, json};
use tests::{SECOND_PLATFORM_KEY, World, ai_sms, api_request, phone, preemptive_sms, slack_action};

use super::{
    asked,
    specification::{Document, Operation},
    text,
};

/// A change of one field, and its later representation.
struct FieldChange {
    field: &'static str,
    value: Value,
    /// Pointer and value in the row.
    shown: (&'static str, Value),
    removal: Removal,
}

/// The effect of sending a field as `null`.
enum Removal {
    Refused,
    /// The row then has this value; null means no value.
    Shows(Value),
    /// The field is removed, and these fields must be sent with it as a replacement.
    Replaced(Value),
}

use Removal::{Refused, Replaced, Shows};

const GONE: Removal = Shows(Value::Null);

/// Fields of a PATCH that select the change and are not changed themselves.
const CONDITIONS: [&str; 2] = ["type", "version"];

/// A field whose representation equals its input.
fn field(field: &'static str, value: Value, pointer: &'static str, removal: Removal) -> FieldChange {
    FieldChange { field, shown: (pointer, value.clone()), value, removal }
}

/// The properties of a schema that the organization may set.
fn properties(document: &Document, schema: &Value) -> BTreeSet<String> {
    let schema = document.resolve(schema);
    let own = schema["properties"].as_object().into_iter().flatten().map(|(name, _)| name.clone());
    let of_parts = schema["anyOf"].as_array().into_iter().flatten().flat_map(|part| properties(document, part));
    own.chain(of_parts).filter(|name| !CONDITIONS.contains(&name.as_str())).collect()
}

fn body_schema(operation: &Operation) -> &Value {
    &operation.value["requestBody"]["content"]["application/json"]["schema"]
}

#[tokio::test]
async fn each_changed_field_is_read_back_and_so_is_its_removal() {
    let document = Document::read();
    for operation in document.operations().iter().filter(|operation| ["PATCH", "PUT"].contains(&&*operation.method)) {
        let world = World::start().await;
        let validator = document.validator(body_schema(operation));
        let changed = match operation.id.as_str() {
            "updateTool" => Box::pin(tools_change(&world, &validator)).await,
            "updatePhoneNumber" => Box::pin(a_number_changes(&world, &validator)).await,
            "storeKey" => Box::pin(keys_change(&world)).await,
            "chooseServiceAccount" => Box::pin(an_account_is_chosen(&world)).await,
            "updateAutomation" => Box::pin(a_definition_is_replaced(&world)).await,
            "updateHook" => Box::pin(a_hook_changes(&world)).await,
            "updateMember" => Box::pin(a_member_changes(&world, &validator)).await,
            other => panic!("{other} changes something: say here how each of its fields is changed and read again"),
        };
        assert_eq!(changed, properties(&document, body_schema(operation)), "{}", operation.id);
    }
}

async fn a_member_changes(world: &World, validator: &Validator) -> BTreeSet<String> {
    let path = format!("/members/{}", world.member(&world.home, Some("member")).replace('|', "%7C"));
    let mut fields = BTreeSet::new();
    for (field, value) in [
        ("role", json!("admin")),
        ("name", json!("Ana Ruiz")),
        ("email", json!("ana@harbour-dental.example")),
        ("phone", json!(phone(1))),
        ("timezone", json!("Europe/Madrid")),
    ] {
        for (value, status) in [(value.clone(), 200), (Value::Null, if field == "role" { 422 } else { 200 })] {
            let body = json!({field: value});
            assert_eq!(validator.is_valid(&body), status == 200, "{body}");
            world.send("members", &asked(world, "PATCH", &path).text(body.to_string())).await.expect(status);
            let read = world.send("members", &asked(world, "GET", &path)).await.expect(200);
            assert_eq!(read[field] == value, status == 200, "{read}");
        }
        fields.insert(field.to_owned());
    }
    fields
}

/// A hook's secrets are never shown, only their ids.
async fn a_hook_changes(world: &World) -> BTreeSet<String> {
    let hook = world.slack_hook().await;
    let path = format!("/hooks/{}", text(&hook["id"]));
    let change = async |path: &str, body: Value| {
        world.send("hooks", &asked(world, "PATCH", path).text(body.to_string())).await.expect(200);
        world.send("hooks", &asked(world, "GET", path)).await.expect(200)
    };
    assert_eq!(change(&path, json!({"label": "Ours"})).await["label"], "Ours");
    assert_eq!(change(&path, json!({"label": null})).await["label"], "");
    let two = change(&path, json!({"secret": "next"})).await["secrets"].clone();
    assert_eq!(two.as_array().unwrap().len(), 2);
    let one = change(&path, json!({"remove_secret": two[0]["id"]})).await["secrets"].clone();
    assert_eq!(one, json!([two[1]]));
    let nothing = json!({"secret": null, "rotate": null, "remove_secret": null, "reveal": null});
    assert_eq!(change(&path, nothing).await["secrets"], one);
    let ours = world.hook(&json!({"service": "Webhooks"})).await;
    let ours = format!("/hooks/{}", text(&ours["id"]));
    assert_eq!(change(&ours, json!({"rotate": true})).await["secrets"].as_array().unwrap().len(), 2);
    let notion = world.hook(&json!({"service": "Notion"})).await;
    let token = json!({"verification_token": "secret_of_notion"});
    world.deliver_signed(&notion, tests::webhooks::Signer::Unsigned, &token).await.expect(200);
    let notion = format!("/hooks/{}", text(&notion["id"]));
    assert_eq!(change(&notion, json!({"reveal": true})).await["unseen_secret"], false);
    ["label", "secret", "rotate", "remove_secret", "reveal"].map(str::to_owned).into()
}

/// The active account is first in the list of services; null removes the choice.
async fn an_account_is_chosen(world: &World) -> BTreeSet<String> {
    world.service("Slack", Some("slack"));
    world.pipedream.connect("apn_second", &world.home.organization_id, "slack");
    let of_home = |method: &str, path: &str| {
        tests::Event::new(method, &format!("/api/{}/{path}", world.home.slug)).user(&world.home.user_id)
    };
    for (account, first) in [(json!("apn_second"), "apn_second"), (Value::Null, &*world.home.slack_account)] {
        let choose = of_home("PUT", "services/slack/account").text(json!({"account_id": account}).to_string());
        Box::pin(world.send("discover", &choose)).await.expect(200);
        let listed = Box::pin(world.send("discover", &of_home("GET", "services"))).await.expect(200);
        assert_eq!(listed["items"][0]["connection"]["accounts"][0]["id"], first, "{listed}");
    }
    BTreeSet::from(["account_id".to_owned()])
}

/// A definition is written and read as a whole; returns the fields of both kinds.
async fn a_definition_is_replaced(world: &World) -> BTreeSet<String> {
    world.slack_service();
    let mut actions = world.urgent_messages();
    let saved = world.deploy(&actions).await.expect(201);
    let id = text(&saved["automation"]["id"]).to_owned();
    actions["name"] = json!("Another name");
    actions["quotas"] = json!({"runs_per_hour": 10});
    actions["approvals"] = json!([{"effect": "email"}]);
    let prompt = json!({
        "name": "Digest", "trigger_type": "manual", "prompt": "Sum up", "system_prompt": "Be short.", "tools": [],
        "schema": {"type": "object"}, "model": "stand-in/other", "limits": {"calls": 3},
    });
    let mut fields = BTreeSet::from(["dry_run".to_owned()]);
    for (definition, revision) in [(actions, 1), (prompt, 2)] {
        world.put_automation(&id, &format!("\"{revision}\""), &definition).await.expect(200);
        let shown = world.automation("GET", &format!("/{id}"), &Value::Null).await.expect(200);
        assert_eq!(shown["definition"], definition);
        fields.extend(definition.as_object().unwrap().keys().cloned());
    }
    fields
}

/// Changes each field separately and removes it again; returns the fields' names.
async fn walk(
    world: &World,
    validator: &Validator,
    functions: (&str, &str),
    path: &str,
    changes: Vec<FieldChange>,
) -> BTreeSet<String> {
    let mut fields = BTreeSet::new();
    for FieldChange { field, value, shown: (pointer, shown), removal } in changes {
        for (value, shown) in [(value, Some(shown)), (Value::Null, None)] {
            let mut body = json!({field: value});
            let (shown, status) = match (shown, &removal) {
                (Some(shown), _) => (Some(shown), 200),
                (None, Shows(shown)) => (Some(shown.clone()), 200),
                (None, Replaced(by)) => {
                    body.as_object_mut().unwrap().extend(by.as_object().unwrap().clone());
                    (Some(Value::Null), 200)
                }
                (None, Refused) => (None, 422),
            };
            assert_eq!(validator.is_valid(&body), status == 200, "what the document says of {body}");
            let answer = world.send(functions.0, &asked(world, "PATCH", path).text(body.to_string())).await;
            assert_eq!(answer.status, status, "{body}: {}", answer.body);
            let Some(shown) = shown else { continue };
            let row = world.send(functions.1, &asked(world, "GET", path)).await.expect(200);
            for (whose, row) in [("the answer", &answer.body), ("the row", &row)] {
                let there = row.pointer(pointer).cloned().unwrap_or_default();
                assert_eq!(there, shown, "{whose} after {body}: {row:#}");
            }
        }
        fields.insert(field.to_owned());
    }
    fields
}

async fn a_number_changes(world: &World, validator: &Validator) -> BTreeSet<String> {
    let home = &world.home;
    let agent = world.agents(1).await.remove(0);
    let at_vapi = world.vapi.set_number(&home.phone_number, &home.assistant_id).unwrap();
    let path = format!("/phone-numbers/{}", home.phone_number_id);
    let changes = vec![
        field("label", json!("Nights"), "/label", Refused),
        field("agent_id", json!(agent), "/agent_id", GONE),
        field("fallback_number", json!(phone(9)), "/fallback_number", GONE),
        field("fallback_sentence", json!("Ligue mais tarde."), "/fallback_sentence", GONE),
        field("language", json!("pt-PT"), "/language", GONE),
        field("vapi_phone_number_id", json!(at_vapi), "/vapi_phone_number_id", GONE),
    ];
    let mut fields = walk(world, validator, ("phone-numbers", "phone-numbers"), &path, changes).await;

    world.aws.change("phone_numbers", &home.phone_number_id, json!({"vapi_phone_number_id": at_vapi}));
    let wait = vec![field("wait_ms", json!(500), "/wait_ms", Shows(json!(0)))];
    fields.extend(walk(world, validator, ("phone-numbers", "phone-numbers"), &path, wait).await);

    // Credentials are never shown.
    let twilio = json!({"account_sid": home.twilio_sid, "auth_token": home.twilio_token});
    let secret = || {
        let row = world.aws.row("phone_numbers", &home.phone_number_id).unwrap();
        (row["credentials_secret"].clone(), world.aws.secret(text(&row["credentials_secret"])))
    };
    let (before, _) = secret();
    let change = |twilio: &Value| asked(world, "PATCH", &path).text(json!({"twilio": twilio}).to_string());
    world.send("phone-numbers", &change(&twilio)).await.expect(200);
    let (after, content) = secret();
    assert_ne!(after, before);
    assert_eq!(content, Some(twilio));
    assert_eq!(world.send("phone-numbers", &change(&Value::Null)).await.wrong_fields(), ["twilio"]);
    fields.insert("twilio".to_owned());
    fields
}

async fn tools_change(world: &World, validator: &Validator) -> BTreeSet<String> {
    let mut of_both = preemptive_sms();
    of_both["attach_to_agent"] = json!(true);
    let fields = [json!({"name": "city", "type": "text"}), json!({"name": "price", "type": "number"})];
    let entries = json!([{"city": "Porto", "price": 1}]);
    let (base, another) =
        (world.knowledge_base(&json!(fields), &entries).await, world.knowledge_base(&json!(fields), &entries).await);
    let query = json!({"type": "query", "label": "Find a home", "knowledge_base_id": base["id"]});
    let usual = world.tool(&query).await["config_metadata"].clone();
    let transfer = json!({
        "type": "transfer_call", "label": "Connect", "target": {"type": "number", "number": phone(9)},
        "messageStrategy": "summary",
    });
    let mut background = ai_sms();
    background["async"] = json!(true);
    let mut all = BTreeSet::new();
    for (config, changes) in [
        (ai_sms(), sms_changes(world)),
        (of_both, flags()),
        (api_request("GET", "https://crm.example.com/"), api_request_changes()),
        (slack_action(&world.home), pipedream_changes(world)),
        (transfer, transfer_changes()),
        (query, query_changes(&usual, &another)),
        (background, background_changes(world).await),
        (place_call(world), place_call_changes(world)),
    ] {
        let tool = world.tool(&config).await;
        let path = format!("/tools/{}", text(&tool["id"]));
        all.extend(walk(world, validator, ("update-tool", "list-tools"), &path, changes).await);
    }
    all
}

/// A tool that calls from the home number, which gets VAPI's id.
fn place_call(world: &World) -> Value {
    let home = &world.home;
    let at_vapi = world.vapi.set_number(&home.phone_number, &home.assistant_id).unwrap();
    world.aws.change("phone_numbers", &home.phone_number_id, json!({"vapi_phone_number_id": at_vapi}));
    json!({"type": "place_call", "label": "Call back", "phone_number_id": home.phone_number_id, "to": phone(1)})
}

fn place_call_changes(world: &World) -> Vec<FieldChange> {
    let written =
        |prompt: &str| json!({"mode": "ai", "prompt": prompt, "required": true, "schema": {"type": "string"}});
    let message = json!({"do": "leave_message", "message": "We call again."});
    let (hours, usual) =
        (json!({"from": "10:00", "until": "18:00", "days": ["mon"]}), json!({"from": "09:00", "until": "20:00"}));
    vec![
        field("phone_number_id", json!(world.home.phone_number_id), "/config_metadata/phone_number_id", Refused),
        field("agent_id", json!(world.home.agent_id), "/config_metadata/agent_id", GONE),
        field("to", written("The number"), "/config_metadata/to", Refused),
        field("reason", written("Why"), "/config_metadata/reason", GONE),
        field("variables", json!({"order": written("The order")}), "/config_metadata/variables", GONE),
        field("hours", hours, "/config_metadata/hours", Shows(usual)),
        field("time_zone", json!("Europe/Lisbon"), "/config_metadata/time_zone", GONE),
        field("answering_machine", message, "/config_metadata/answering_machine", Shows(json!({"do": "hang_up"}))),
        field("per_day", json!(9), "/config_metadata/per_day", Shows(json!(50))),
        field("per_person_and_day", json!(2), "/config_metadata/per_person_and_day", Shows(json!(1))),
    ]
}

fn flags() -> Vec<FieldChange> {
    vec![
        field("attach_to_agent", json!(false), "/attach_to_agent", Shows(json!(true))),
        // The tool stays available to agents.
        field("execute_on_call_start", json!(true), "/execute_on_call_start", Shows(json!(false))),
        field("async", json!(true), "/async", Shows(json!(false))),
    ]
}

async fn background_changes(world: &World) -> Vec<FieldChange> {
    let sender = json!({"tool": world.tool(&ai_sms()).await["id"]});
    vec![
        field("async_result", json!("note"), "/config_metadata/async_result", GONE),
        field("if_call_over", sender, "/config_metadata/if_call_over", GONE),
    ]
}

fn sms_changes(world: &World) -> Vec<FieldChange> {
    let sender = json!({"type": "specific_number", "phone_number_id": world.home.phone_number_id});
    let written = json!({"mode": "ai", "prompt": "Day and time", "required": true, "schema": {"type": "string"}});
    let recipients = json!({
        "mode": "array_extendable", "fixedValues": [phone(1), phone(2)], "aiExtension": {"enabled": false},
    });
    vec![
        // A tool always has a name, so null leaves it unchanged.
        field("name", json!("text_the_caller"), "/name", Shows(json!("text_the_caller"))),
        field("label", json!("Text the caller"), "/label", Refused),
        field("description", json!("Sends a text."), "/description", GONE),
        field("repeatable", json!(false), "/config_metadata/repeatable", GONE),
        field("limits", json!({"per_call": 3, "per_hour": 9}), "/config_metadata/limits", GONE),
        field("chat", json!({"least_role": "admin", "consent": true}), "/config_metadata/chat", GONE),
        field("redact", json!(["text"]), "/config_metadata/redact", GONE),
        field("speech", json!({"start": "One moment."}), "/config_metadata/speech", GONE),
        field("confirm", json!("read_back"), "/config_metadata/confirm", GONE),
        field("from", sender, "/config_metadata/from", Refused),
        field("text", written, "/config_metadata/text", Refused),
        field(
            "allowed_recipients",
            json!([phone(1), phone(2), "{{caller_phone_number}}"]),
            "/config_metadata/allowed_recipients",
            GONE,
        ),
        field("recipients", recipients, "/config_metadata/recipients", Refused),
    ]
}

fn api_request_changes() -> Vec<FieldChange> {
    let fixed = |value: &str| json!({"mode": "fixed", "value": value});
    vec![
        field("method", json!("POST"), "/config_metadata/method", Refused),
        field("url", fixed("https://crm.example.com/customers"), "/config_metadata/url", Refused),
        field("allowed_hosts", json!(["api.example.com", "crm.example.com"]), "/config_metadata/allowed_hosts", GONE),
        field("headers", json!({"accept": fixed("eu")}), "/config_metadata/headers", GONE),
        field("body", json!({"source": fixed("phone")}), "/config_metadata/body", GONE),
        FieldChange {
            field: "signing_secret",
            value: fixed("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"),
            shown: ("/config_metadata/signing_secret", json!({"mode": "fixed", "value": "[secret]", "secret": true})),
            removal: GONE,
        },
        // Of a request that is a POST by now.
        field("effect", json!("record"), "/config_metadata/effect", GONE),
    ]
}

fn pipedream_changes(world: &World) -> Vec<FieldChange> {
    let metadata = json!({
        "app": "slack", "appName": "Our Slack", "accountId": world.home.slack_account, "actionKey": "slack-send-message",
        "version": "0.1.3", "appProp": "slack", "dynamicPropsId": "dyp_1",
    });
    let fixed = |text: &str| json!({"mode": "fixed", "value": text});
    let params = json!({"conversation": fixed("C123"), "text": fixed("Hello")});
    vec![
        field("pipedreamMetadata", metadata, "/config_metadata/pipedreamMetadata", Refused),
        field("preloadedParams", json!({"mrkdwn": false}), "/config_metadata/preloadedParams", GONE),
        field("params", params, "/config_metadata/params", Shows(json!({}))),
    ]
}

fn transfer_changes() -> Vec<FieldChange> {
    let target = json!({"type": "sip", "sipUri": "sip:desk@example.com"});
    let destinations = |number: u32| json!([{"type": "number", "number": phone(number), "label": "Desk"}]);
    let (by_many, by_one) = (Replaced(json!({"destinations": destinations(8)})), Replaced(json!({"target": target})));
    let returns = json!({"after_seconds": 30, "return": true, "then": [{"type": "number", "number": phone(8)}]});
    vec![
        field("target", target, "/config_metadata/target", by_many),
        field("destinations", destinations(9), "/config_metadata/destinations", by_one),
        field("message", json!("A caller for you."), "/config_metadata/message", GONE),
        field("messageStrategy", json!("summary"), "/config_metadata/messageStrategy", Shows(json!("none"))),
        field("if_unanswered", returns, "/config_metadata/if_unanswered", GONE),
    ]
}

/// `usual` is the default configuration.
fn query_changes(usual: &Value, another: &Value) -> Vec<FieldChange> {
    let words = json!({"mode": "ai", "prompt": "What they want", "required": false, "schema": {"type": "string"}});
    let cheap = json!({"mode": "fixed", "value": 5});
    vec![
        field("knowledge_base_id", another["id"].clone(), "/config_metadata/knowledge_base_id", Refused),
        field(
            "filters",
            json!({"price": {"at_most": cheap}}),
            "/config_metadata/filters",
            Shows(usual["filters"].clone()),
        ),
        field("query", words, "/config_metadata/query", Shows(usual["query"].clone())),
    ]
}

/// A key is replaced as a whole and never shown; its secret is read instead.
async fn keys_change(world: &World) -> BTreeSet<String> {
    let mut fields = BTreeSet::new();
    let api = json!({"api_key": "sk-1"});
    let client = json!({
        "client_id": "us", "client_secret": "s", "token_url": "https://id.example.com/token",
        "base_url": "https://llm.example.com",
    });
    let with = |body: &Value, more: Value| {
        let mut body = body.clone();
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        body
    };
    let vapi = json!({"api_key": SECOND_PLATFORM_KEY});
    for (service, body, optional) in [
        ("vapi", vapi, json!({"webhook_bearer": "b"})),
        ("llm", api, json!({"base_url": "https://llm.example.com/v1", "model": "small", "verify_claims": true})),
        ("llm", client, json!({"model": "small", "scope": "chat", "audience": "https://llm.example.com"})),
    ] {
        for body in [with(&body, optional.clone()), body] {
            let put = asked(world, "PUT", &format!("/keys/{service}")).text(body.to_string());
            let stored = world.send("keys", &put).await.expect(200);
            let shown = world.send("keys", &asked(world, "GET", "/keys")).await.expect(200);
            let shown = shown["items"].as_array().unwrap();
            assert!(shown.contains(&stored), "{shown:?}");
            let organization = &world.home.organization_id;
            let row = world.aws.row("organizations", organization).unwrap();
            let id = text(&row["own_keys"][service]["id"]).to_owned();
            let secret = world.aws.secret(&format!("switchboard/organizations/{service}/{organization}/{id}")).unwrap();
            for (name, value) in body.as_object().unwrap() {
                // The row says it, so that no secret is read in vain.
                let kept = if name == "verify_claims" { &stored[name] } else { &secret[name] };
                assert_eq!(kept, value, "{service} {name}");
                fields.insert(name.clone());
            }
            let kept = optional.as_object().unwrap().keys().filter(|name| body.get(*name).is_none());
            for gone in kept.filter(|name| *name != "base_url") {
                assert!(secret.get(gone).is_none(), "{service} {gone} was removed");
            }
        }
    }
    fields
}
