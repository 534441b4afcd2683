//! The tools there are.

use std::collections::BTreeMap;

use super::{FINAL_RESPONSE, ToolDefinition, parser, signature::is_identifier};

/// As a model can make use of them.
const FEWEST_EXAMPLES: usize = 3;
const LONGEST_NAME: usize = 64;
const LONGEST_DESCRIPTION: usize = 4_000;

/// Tools by name. What is in it can be offered and called; a bad definition does not get in.
#[derive(Debug, Clone, Default)]
pub struct ToolRegistry {
    tools: BTreeMap<String, ToolDefinition>,
}

/// Why a definition is refused, for whoever wrote it.
#[derive(Debug, thiserror::Error)]
#[error("the tool \"{tool}\" cannot be registered: {problem}")]
pub struct BadDefinition {
    pub tool: String,
    pub problem: String,
}

impl ToolRegistry {
    /// Puts a tool in.
    ///
    /// # Errors
    /// When its name is taken, or the definition is not complete.
    pub fn register(&mut self, definition: ToolDefinition) -> Result<(), BadDefinition> {
        let bad = |problem: String| BadDefinition { tool: definition.name.clone(), problem };
        if self.has(&definition.name) {
            return Err(bad("there is a tool of this name already".into()));
        }
        check(&definition).map_err(bad)?;
        self.tools.insert(definition.name.clone(), definition);
        Ok(())
    }

    pub fn get(&self, name: &str) -> Option<&ToolDefinition> {
        self.tools.get(name)
    }

    pub fn has(&self, name: &str) -> bool {
        self.tools.contains_key(name)
    }

    /// All of them, by name.
    pub fn get_all(&self) -> impl ExactSizeIterator<Item = &ToolDefinition> {
        self.tools.values()
    }
}

fn check(definition: &ToolDefinition) -> Result<(), String> {
    let name = &definition.name;
    if !is_identifier(name) || name.len() > LONGEST_NAME {
        return Err(format!(
            "its name must be 1 to {LONGEST_NAME} letters, digits, _ and $, not beginning with a digit"
        ));
    }
    if name == FINAL_RESPONSE {
        return Err(format!("{FINAL_RESPONSE} is always there and cannot be replaced"));
    }
    let described = definition.description.trim();
    if described.is_empty() || described.len() > LONGEST_DESCRIPTION {
        return Err(format!("its description must have 1 to {LONGEST_DESCRIPTION} bytes"));
    }
    let mut optional = None;
    for (index, parameter) in definition.parameters.iter().enumerate() {
        let name = &parameter.name;
        if name.is_empty() || definition.parameters.iter().take(index).any(|other| other.name == *name) {
            return Err(format!("its parameter {} has no name of its own", index + 1));
        }
        if parameter.schema.get("type").and_then(serde_json::Value::as_str).is_none() {
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
    if definition.examples.len() < FEWEST_EXAMPLES {
        let has = definition.examples.len();
        return Err(format!("it needs at least {FEWEST_EXAMPLES} examples and has {has}"));
    }
    definition.examples.iter().try_for_each(|example| {
        check_example(definition, example).map_err(|problem| format!("its example {example} is wrong: {problem}"))
    })
}

/// A model does as the examples do.
fn check_example(definition: &ToolDefinition, example: &str) -> Result<(), String> {
    // Longer than any fence that an example may hold.
    let block = format!("````````tool\n{example}\n````````");
    let mut entries = parser::parse(&block).entries.into_iter();
    match (entries.next(), entries.next()) {
        (Some(parser::Entry::Call(call)), None) if call.name == definition.name => {
            definition.bind(call.arguments).map(drop)
        }
        (Some(parser::Entry::Malformed(malformed)), _) => Err(malformed.to_string()),
        _ => Err("it must be one call of the tool".into()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::{
        clients::Outbound,
        injection::{ToolParameter, built_in_tools, testing::tool},
    };

    fn parameter(name: &str, schema: Value, required: bool) -> ToolParameter {
        ToolParameter { name: name.to_owned(), schema, required }
    }

    #[test]
    fn what_is_registered_can_be_found_by_name() {
        let mut registry = ToolRegistry::default();
        for name in ["look", "ask", "$_2"] {
            registry.register(tool(name)).unwrap();
        }
        assert!(registry.has("look") && !registry.has("Look"));
        assert_eq!(registry.get("ask").map(|tool| tool.description.as_str()), Some("Says what ask was called with."));
        assert!(registry.get("tell").is_none());
        let all = registry.get_all();
        assert_eq!(all.len(), 3);
        assert_eq!(all.map(|tool| tool.name.as_str()).collect::<Vec<_>>(), ["$_2", "ask", "look"]);
    }

    #[test]
    fn a_name_is_given_once() {
        let mut registry = ToolRegistry::default();
        registry.register(tool("look")).unwrap();
        let second = ToolDefinition { description: "Another.".into(), ..tool("look") };
        let refused = registry.register(second).unwrap_err();
        assert_eq!(refused.to_string(), "the tool \"look\" cannot be registered: there is a tool of this name already");
        assert_eq!(registry.get("look").unwrap().description, "Says what look was called with.");
    }

    #[test]
    fn a_bad_definition_is_refused_with_its_tool_and_its_problem() {
        let named = |name: &str| tool(name);
        let described = |description: &str| ToolDefinition { description: description.into(), ..tool("look") };
        let with = |parameters: Vec<ToolParameter>| ToolDefinition { parameters, ..tool("look") };
        let text = || parameter("text", json!({"type": "string"}), true);
        let optional = |name: &str| parameter(name, json!({"type": "number"}), false);
        let shown = |last: &str| {
            let mut look = tool("look");
            look.examples[2] = last.to_owned();
            look
        };
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
            (with(vec![parameter("", json!({"type": "string"}), true)]), "its parameter 1 has no name of its own"),
            (with(vec![text(), text()]), "its parameter 2 has no name of its own"),
            (with(vec![parameter("text", json!({}), true)]), "its parameter \"text\" has no type"),
            (with(vec![parameter("text", json!({"type": ["string"]}), true)]), "its parameter \"text\" has no type"),
            (
                with(vec![optional("most"), optional("least"), text()]),
                "its parameter \"text\" is required and stands after \"most\", which is not",
            ),
            (
                ToolDefinition { examples: vec!["look(\"a\")".into(), "look(\"b\")".into()], ..tool("look") },
                "it needs at least 3 examples and has 2",
            ),
            (shown("ask(\"three\")"), "its example ask(\"three\") is wrong: it must be one call of the tool"),
            (
                shown("look(\"three\"); look(\"four\")"),
                "its example look(\"three\"); look(\"four\") is wrong: it must be one call of the tool",
            ),
        ] {
            let name = definition.name.clone();
            let mut registry = ToolRegistry::default();
            let refused = registry.register(definition).unwrap_err();
            assert_eq!((refused.tool.as_str(), refused.problem.as_str()), (name.as_str(), problem));
            assert_eq!(refused.to_string(), format!("the tool \"{name}\" cannot be registered: {problem}"));
            assert_eq!(registry.get_all().len(), 0);
        }
        for (example, problem) in [
            ("// look", "expected a call in the block"),
            // Line 2, for the example stands in a block.
            ("return look(three);", "line 2, column 13: in the call of look, expected "),
            ("look(\"three\"", "in the call of look, expected "),
            ("return look();", "The argument \"text\" is missing. The signature is look(text: string): string."),
            ("return look({word: \"three\"});", "There is no parameter \"word\". The signature is look("),
            ("return look(3);", "The argument \"text\" must be text, not a number. The signature is look("),
        ] {
            let refused = ToolRegistry::default().register(shown(example)).unwrap_err();
            assert!(refused.problem.starts_with(&format!("its example {example} is wrong: ")), "{refused}");
            assert!(refused.problem.contains(problem), "{refused}");
        }
    }

    #[test]
    fn what_is_just_good_enough_gets_in() {
        let mut registry = ToolRegistry::default();
        let mut longest = tool(&"n".repeat(64));
        longest.description = "ä".repeat(2_000);
        longest.examples[0] = format!("await {}({{text: \"a fence: ```````\"}})", longest.name);
        registry.register(longest).unwrap();
        let nothing = ToolDefinition {
            parameters: Vec::new(),
            examples: ["now()", "return now();", "return await now()"].map(str::to_owned).into(),
            ..tool("now")
        };
        registry.register(nothing).unwrap();
    }

    #[test]
    fn the_built_in_tools_are_complete() {
        let registry = built_in_tools(&Outbound::new(Vec::new()).unwrap()).unwrap();
        assert_eq!(registry.get_all().map(|tool| tool.name.as_str()).collect::<Vec<_>>(), ["wget"]);
    }
}
