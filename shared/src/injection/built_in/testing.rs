//! Every built-in tool is described well enough for a model.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::{
    catalogue::BuiltInTools,
    injection::{
        FINAL_RESPONSE, parser, signature,
        testing::{TestTool, tool},
    },
    tool::{CallableTool, Parameters, ToolSpec, Toolbox, is_identifier},
};

/// A built-in tool with a bad description; the message is for its developer.
#[derive(Debug, thiserror::Error)]
#[error("the built-in tool \"{tool}\" cannot be offered: {problem}")]
pub(crate) struct BadTool {
    pub(crate) tool: String,
    pub(crate) problem: String,
}

const FEWEST_EXAMPLES: usize = 3;
const LONGEST_NAME: usize = 64;
const LONGEST_DESCRIPTION: usize = 4_000;

/// Checks the descriptions of tools.
///
/// # Errors
/// For the first bad one.
pub(crate) fn well_described(tools: Vec<Arc<dyn CallableTool>>) -> Result<BuiltInTools, BadTool> {
    for (index, tool) in tools.iter().enumerate() {
        let bad = |problem: String| BadTool { tool: tool.spec().name.clone(), problem };
        if tools.iter().take(index).any(|other| other.spec().name == tool.spec().name) {
            return Err(bad("there is a tool of this name already".into()));
        }
        check(tool).map_err(bad)?;
    }
    Ok(tools.into_iter().collect())
}

fn check(tool: &Arc<dyn CallableTool>) -> Result<(), String> {
    let spec = tool.spec();
    let name = &spec.name;
    if !is_identifier(name) || name.len() > LONGEST_NAME {
        return Err(format!(
            "its name must be 1 to {LONGEST_NAME} letters, digits, _ and $, not beginning with a digit"
        ));
    }
    if name == FINAL_RESPONSE {
        return Err(format!("{FINAL_RESPONSE} is always there and cannot be replaced"));
    }
    let described = spec.description.trim();
    if described.is_empty() || described.len() > LONGEST_DESCRIPTION {
        return Err(format!("its description must have 1 to {LONGEST_DESCRIPTION} bytes"));
    }
    let mut optional = None;
    for (index, parameter) in spec.parameters.iter().enumerate() {
        let name = parameter.name;
        if name.is_empty() {
            return Err(format!("its parameter {} has no name", index + 1));
        }
        if !is_typed(parameter.schema) {
            return Err(format!("its parameter \"{name}\" has no type"));
        }
        match optional {
            Some(before) if parameter.required => {
                return Err(format!(
                    "its parameter \"{name}\" is required and stands after \"{before}\", which is not"
                ));
            }
            None if !parameter.required => optional = Some(name),
            _ => {}
        }
    }
    let examples = if spec.own_examples.is_empty() { spec.examples() } else { spec.own_examples.clone() };
    if examples.len() < FEWEST_EXAMPLES {
        return Err(format!("it needs at least {FEWEST_EXAMPLES} examples and has {}", examples.len()));
    }
    let mut toolbox = Toolbox::default();
    toolbox.offer(tool.clone());
    examples.iter().try_for_each(|example| {
        check_example(&toolbox, spec, example).map_err(|problem| format!("its example {example} is wrong: {problem}"))
    })
}

/// Has a type, or a choice of types.
fn is_typed(schema: &Value) -> bool {
    match schema.get("type") {
        Some(Value::Array(types)) => types.len() > 1 && types.iter().all(Value::is_string),
        kind => kind.is_some_and(Value::is_string),
    }
}

/// Models imitate the examples, so these must be valid calls.
fn check_example(toolbox: &Toolbox, spec: &ToolSpec, example: &str) -> Result<(), String> {
    // Longer than any fence in an example.
    let block = format!("````````tool\n{example}\n````````");
    let mut entries = parser::parse(&block).entries.into_iter();
    match (entries.next(), entries.next()) {
        (Some(parser::Entry::Call(call)), None) if call.name == spec.name => {
            signature::bind(toolbox, spec, call.arguments).map(drop)
        }
        (Some(parser::Entry::Malformed(malformed)), _) => Err(malformed.to_string()),
        _ => Err("it must be one call of the tool".into()),
    }
}

fn refused(tool: TestTool) -> BadTool {
    well_described(vec![Arc::new(tool)]).err().unwrap()
}

#[test]
fn a_name_is_given_once() {
    let second = tool("look").with(|spec| spec.description = "Another.".into());
    let refused = well_described(vec![Arc::new(tool("look")), Arc::new(second)]).err().unwrap();
    let problem = "the built-in tool \"look\" cannot be offered: there is a tool of this name already";
    assert_eq!(refused.to_string(), problem);
}

#[test]
fn a_bad_definition_is_refused_with_its_tool_and_its_problem() {
    let named = |name: &str| tool(name);
    let described = |description: &str| tool("look").with(|spec| spec.description = description.into());
    let with = |parameters: Vec<(&str, Value, bool)>| {
        let parameters = Parameters::new(parameters);
        tool("look").with(|spec| spec.parameters = parameters)
    };
    let optional = |name: &'static str| (name, json!({"type": "number"}), false);
    let shown = |last: &str| tool("look").with(|spec| last.clone_into(&mut spec.own_examples[2]));
    let long = "n".repeat(65);
    let bad_name = "its name must be 1 to 64 letters, digits, _ and $, not beginning with a digit";
    let bad_description = "its description must have 1 to 4000 bytes";
    for (definition, problem) in [
        (named(""), bad_name),
        (named("2nd"), bad_name),
        (named("send-sms"), bad_name),
        (named("größe"), bad_name),
        (named(&long), bad_name),
        (named("finalResponse"), "finalResponse is always there and cannot be replaced"),
        (described(" \n"), bad_description),
        (described(&"ä".repeat(2_001)), bad_description),
        (with(vec![("", json!({"type": "string"}), true)]), "its parameter 1 has no name"),
        (with(vec![("text", json!({}), true)]), "its parameter \"text\" has no type"),
        (with(vec![("text", json!({"type": ["string"]}), true)]), "its parameter \"text\" has no type"),
        (
            with(vec![optional("most"), optional("least"), ("text", json!({"type": "string"}), true)]),
            "its parameter \"text\" is required and stands after \"most\", which is not",
        ),
        (tool("look").with(|spec| spec.own_examples.truncate(2)), "it needs at least 3 examples and has 2"),
        (shown("ask(\"three\")"), "its example ask(\"three\") is wrong: it must be one call of the tool"),
        (
            shown("look(\"three\"); look(\"four\")"),
            "its example look(\"three\"); look(\"four\") is wrong: it must be one call of the tool",
        ),
    ] {
        let name = definition.spec.name.clone();
        let refused = refused(definition);
        assert_eq!((refused.tool.as_str(), refused.problem.as_str()), (name.as_str(), problem));
        assert_eq!(refused.to_string(), format!("the built-in tool \"{name}\" cannot be offered: {problem}"));
    }
    for (example, problem) in [
        ("// look", "it must be one call of the tool"),
        // Line 2, because the example is wrapped in a block.
        ("return look(three);", "line 2, column 13: in the call of look, expected "),
        ("look(\"three\"", "in the call of look, expected "),
        ("return look();", "The argument \"text\" is missing. The signature is look(text: string): string."),
        ("return look({word: \"three\"});", "There is no parameter \"word\". The signature is look("),
        ("return look(3);", "The argument \"text\" must be text, not a number. The signature is look("),
    ] {
        let refused = refused(shown(example));
        assert!(refused.problem.starts_with(&format!("its example {example} is wrong: ")), "{refused}");
        assert!(refused.problem.contains(problem), "{refused}");
    }
}

#[test]
fn an_input_at_its_limit_is_accepted() {
    let name = "n".repeat(64);
    let longest = tool(&name).with(|spec| {
        spec.description = "ä".repeat(2_000);
        spec.own_examples[0] = format!("await {name}({{text: \"a fence: ```````\"}})");
    });
    let nothing = tool("now").with(|spec| {
        spec.parameters = Parameters::new([]);
        spec.own_examples = ["now()", "return now();", "return await now()"].map(str::to_owned).into();
    });
    well_described(vec![Arc::new(longest), Arc::new(nothing)]).unwrap();
}
