#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test says what is wrong and stops")]
#![allow(clippy::needless_pass_by_value, reason = "cases are written where they are used")]

use super::*;

fn component(props: Value) -> Component {
    let Value::Array(mut props) = props else { unreachable!("a list of props") };
    props.insert(0, json!({"name": "acme", "type": "app", "app": "acme_v2"}));
    serde_json::from_value(json!({"key": "acme_v2-do", "version": "1.2.3", "props": props})).unwrap()
}

fn derived(props: Value, overlay: Value) -> Result<Derived, Vec<(String, String)>> {
    let mut problems = Problems::default();
    let overlay = Overlay::read(&overlay, "/tools/0/overlay", &mut problems);
    let derived = derive(&component(props), &overlay, "/tools/0", &mut problems);
    let problems: Vec<_> = problems.iter().map(|one| (one.field.clone(), one.problem.clone())).collect();
    if problems.is_empty() { Ok(derived.unwrap()) } else { Err(problems) }
}

/// The schema of the single prop `p`, and whether it is required; `None` if it is no argument.
fn of_prop(prop: Value, overlay: Value) -> Option<(Value, bool)> {
    let mut parameters = derived(json!([prop]), overlay).unwrap().parameters;
    let required = parameters.get("required").is_some_and(|required| required == &json!(["p"]));
    Some((parameters["properties"].as_object_mut().unwrap().remove("p")?, required))
}

fn refusal(props: Value, overlay: Value) -> (String, String) {
    let problems = derived(props, overlay).unwrap_err();
    assert_eq!(problems.len(), 1, "{problems:?}");
    problems.into_iter().next().unwrap()
}

#[test]
fn each_kind_of_prop_has_its_schema() {
    let many: Vec<String> = (0..51).map(|number| format!("zone-{number}")).collect();
    for (prop, expected, required) in [
        (json!({"type": "string"}), json!({"type": "string"}), true),
        (json!({"type": "string", "optional": true}), json!({"type": "string"}), false),
        (json!({"type": "string", "optional": false}), json!({"type": "string"}), true),
        (json!({"type": "string", "label": "Text"}), json!({"type": "string", "description": "Text"}), true),
        (
            json!({"type": "string", "label": "Text", "description": "The **text**. [More](https://x.example)"}),
            json!({"type": "string", "description": "The text. More"}),
            true,
        ),
        (
            json!({"type": "integer", "min": 1, "max": 10, "optional": true}),
            json!({"type": "integer", "minimum": 1, "maximum": 10}),
            false,
        ),
        (json!({"type": "boolean"}), json!({"type": "boolean"}), true),
        (json!({"type": "object"}), json!({"type": "object", "additionalProperties": true}), true),
        (json!({"type": "any"}), json!({"type": ["string", "object", "array", "number", "boolean"]}), true),
        (json!({"type": "string[]"}), json!({"type": "array", "items": {"type": "string"}}), true),
        (
            json!({"type": "integer[]", "min": 0}),
            json!({"type": "array", "items": {"type": "integer", "minimum": 0}}),
            true,
        ),
        (
            json!({"type": "any[]"}),
            json!({"type": "array", "items": {"type": ["string", "object", "array", "number", "boolean"]}}),
            true,
        ),
        (json!({"type": "$.discord.channel"}), json!({"type": "string"}), true),
        (json!({"type": "$.discord.channel[]"}), json!({"type": "array", "items": {"type": "string"}}), true),
        (json!({"type": "$.airtable.tableId"}), json!({"type": "string"}), true),
        (json!({"type": "string", "withLabel": true}), json!({"type": "string"}), true),
        // Options: values, never labels; each once.
        (json!({"type": "string", "options": ["a", "b", "a"]}), json!({"type": "string", "enum": ["a", "b"]}), true),
        (
            json!({"type": "string", "options": [{"label": "One", "value": "1"}, {"label": "2", "value": "2"}]}),
            json!({"type": "string", "enum": ["1", "2"], "description": "One of 1 (One)."}),
            true,
        ),
        (
            json!({"type": "string[]", "options": ["a", "b"], "label": "Which"}),
            json!({"type": "array", "items": {"type": "string", "enum": ["a", "b"]}, "description": "Which"}),
            true,
        ),
        (
            json!({"type": "integer", "options": [{"label": "High", "value": 2}]}),
            json!({"type": "integer", "enum": [2], "description": "One of 2 (High)."}),
            true,
        ),
        // A long list is no enum.
        (
            json!({"type": "string", "options": many}),
            json!({"type": "string", "examples": ["zone-0", "zone-1", "zone-2", "zone-3", "zone-4"]}),
            true,
        ),
        (
            json!({"type": "string", "remoteOptions": true, "useQuery": true, "label": "Channel"}),
            json!({"type": "string", "description": "Channel. One of the connected account's own."}),
            true,
        ),
        // Defaults: sent in any case where the prop is not optional.
        (json!({"type": "integer", "default": 25, "optional": true}), json!({"type": "integer", "default": 25}), false),
        (json!({"type": "integer", "default": 25}), json!({"type": "integer", "default": 25}), true),
        (
            json!({"type": "string", "options": ["a"], "default": "b", "optional": true}),
            json!({"type": "string", "enum": ["a", "b"], "default": "b"}),
            false,
        ),
        (
            json!({"type": "string", "options": ["a"], "default": "", "optional": true}),
            json!({"type": "string", "enum": ["a"]}),
            false,
        ),
        (json!({"type": "string", "default": 5, "optional": true}), json!({"type": "string"}), false),
        (
            json!({"type": "string[]", "default": ["x"]}),
            json!({"type": "array", "items": {"type": "string"}, "default": ["x"]}),
            true,
        ),
        (
            json!({"type": "string[]", "format": "file-ref", "optional": true, "label": "Files"}),
            json!({"type": "array", "items": {"type": "string"}, "description": "Files. Public https addresses."}),
            false,
        ),
    ] {
        let mut prop = prop;
        prop["name"] = json!("p");
        assert_eq!(of_prop(prop.clone(), json!({})), Some((expected, required)), "{prop}");
    }
}

#[test]
fn a_prop_without_an_argument_is_left_out() {
    for prop in [
        json!({"type": "alert", "content": "Mind this"}),
        json!({"type": "dir"}),
        json!({"type": "dir", "optional": true}),
        json!({"type": "$.service.db"}),
        json!({"type": "$.interface.http"}),
        json!({"type": "$.interface.timer"}),
        json!({"type": "$.interface.apphook"}),
        json!({"type": "data_store"}),
        json!({"type": "string", "optional": true, "hidden": true}),
        json!({"type": "string", "optional": true, "disabled": true}),
        json!({"type": "string", "default": "x", "readOnly": true}),
        json!({"type": "string", "optional": true, "secret": true}),
        json!({"type": "string", "optional": true, "reloadProps": true}),
        json!({"type": "$.new.thing", "optional": true}),
    ] {
        let mut prop = prop;
        prop["name"] = json!("p");
        assert_eq!(of_prop(prop.clone(), json!({})), None, "{prop}");
    }
    let named = derived(json!([{"name": "authToken", "type": "string", "optional": true}]), json!({})).unwrap();
    assert_eq!(named.parameters["properties"], json!({}));
}

#[test]
fn a_required_prop_that_cannot_be_filled_refuses_the_tool() {
    for (prop, word) in [
        (json!({"type": "string", "hidden": true}), "hidden"),
        (json!({"type": "string", "secret": true}), "secret"),
        (json!({"type": "string", "reloadProps": true}), "reload"),
        (json!({"type": "string", "default": "x", "reloadProps": true}), "reload"),
        (json!({"type": "sql", "optional": true}), "sql"),
        (json!({"type": "http_request"}), "http_request"),
        (json!({"type": "$.new.thing"}), "$.new.thing"),
    ] {
        let mut prop = prop;
        prop["name"] = json!("p");
        let (place, why) = refusal(json!([prop]), json!({}));
        assert_eq!(place, "/tools/0/component/props/1");
        assert!(why.contains(word) && why.starts_with("p "), "{why}");
    }
    for name in ["apiKey", "password", "serviceAccountKeyJson"] {
        let (_, why) = refusal(json!([{"name": name, "type": "string"}]), json!({}));
        assert!(why.contains("secret"), "{name}: {why}");
    }
    assert!(refusal(json!([{"name": "other", "type": "app", "app": "b"}]), json!({})).1.contains("one account"));
    assert!(refusal(json!([{"name": "acme", "type": "string"}]), json!({})).1.contains("earlier prop"));
}

#[test]
fn an_overlay_adds_facts_of_the_code() {
    let props = json!([
        {"name": "text", "type": "string", "optional": true, "default": "x", "label": "Text"},
        {"name": "blocks", "type": "string", "optional": true},
        {"name": "create", "type": "boolean", "optional": true},
        {"name": "thread", "type": "string", "optional": true, "hidden": true},
        {"name": "more", "type": "boolean", "optional": true, "reloadProps": true},
        {"name": "old", "type": "string", "optional": true},
        {"name": "pageToken", "type": "string", "optional": true},
    ]);
    let overlay = json!({
        "properties": {"blocks": {"contentMediaType": "application/json", "description": "Blocks."}, "text": {"default": null}},
        "required": ["text"], "show": ["thread", "more", "pageToken"], "hide": ["old"], "fixed": {"create": false},
        "dependentRequired": {"thread": ["text"]},
    });
    let tool = derived(props, overlay).unwrap();
    let expected = json!({
        "type": "object",
        "properties": {
            "text": {"type": "string", "description": "Text"},
            "blocks": {"type": "string", "contentMediaType": "application/json", "description": "Blocks."},
            "thread": {"type": "string"}, "more": {"type": "boolean"}, "pageToken": {"type": "string"},
        },
        "required": ["text"], "additionalProperties": false, "dependentRequired": {"thread": ["text"]},
    });
    assert_eq!(tool.parameters, expected);
    let binding = Binding::Pipedream {
        component: "acme_v2-do".into(),
        version: "1.2.3".into(),
        app_prop: "acme".into(),
        fixed: json!({"create": false}).as_object().cloned().unwrap(),
    };
    assert_eq!(tool.binding, binding);
}

#[test]
fn an_overlay_that_does_not_fit_its_component_is_refused() {
    let props = || json!([{"name": "text", "type": "string"}, {"name": "info", "type": "alert"}]);
    for (overlay, place) in [
        (json!({"properties": {"words": {}}}), "/tools/0/overlay/properties/words"),
        (json!({"required": ["words"]}), "/tools/0/overlay/required/words"),
        (json!({"show": ["info"]}), "/tools/0/overlay/show/info"),
        (json!({"hide": ["a/b"]}), "/tools/0/overlay/hide/a~1b"),
        (json!({"hide": ["text"]}), "/tools/0/component/props/1"),
        (json!({"fixed": {"words": 1}}), "/tools/0/overlay/fixed/words"),
        (json!({"fixed": {"text": 1}}), "/tools/0/component/props/1"),
        (json!({"dependentRequired": {"words": ["text"]}}), "/tools/0/overlay/dependentRequired/words"),
        (json!({"require": ["text"]}), "/tools/0/overlay/require"),
        (json!({"required": "text"}), "/tools/0/overlay/required"),
        (json!({"properties": {"text": 1}}), "/tools/0/overlay/properties/text"),
        (json!([]), "/tools/0/overlay"),
    ] {
        let problems = derived(props(), overlay.clone()).unwrap_err();
        assert!(problems.iter().any(|(found, _)| found == place), "{overlay}: {problems:?}");
    }
}

#[test]
fn an_unknown_action_counts_as_an_effect() {
    let of = |annotations: Value, props: Value, overlay: Value| {
        let mut problems = Problems::default();
        let overlay = Overlay::read(&overlay, "", &mut problems);
        let component = Component { annotations: serde_json::from_value(annotations).unwrap(), ..component(props) };
        let derived = derive(&component, &overlay, "", &mut problems).unwrap();
        (derived.effect, derived.destructive)
    };
    let none = || json!([]);
    let creates = || json!([{"name": "createIfNotFound", "type": "boolean", "optional": true}]);
    assert_eq!(of(json!(null), none(), json!({})), (true, true));
    assert_eq!(of(json!({}), none(), json!({})), (true, true));
    assert_eq!(of(json!({"readOnlyHint": false}), none(), json!({})), (true, true));
    assert_eq!(of(json!({"readOnlyHint": false, "destructiveHint": false}), none(), json!({})), (true, false));
    assert_eq!(of(json!({"readOnlyHint": true}), none(), json!({})), (false, false));
    // A claim to only read beside an argument that acts is not believed.
    assert_eq!(of(json!({"readOnlyHint": true}), creates(), json!({})), (true, true));
    assert_eq!(
        of(json!({"readOnlyHint": true}), creates(), json!({"fixed": {"createIfNotFound": true}})),
        (true, true)
    );
    assert_eq!(
        of(json!({"readOnlyHint": true}), creates(), json!({"fixed": {"createIfNotFound": false}})),
        (false, false)
    );
    assert_eq!(
        of(json!({"readOnlyHint": true}), json!([{"name": "address", "type": "string"}]), json!({})),
        (false, false)
    );
}
