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
