//! An action as a tool: what the executor carries out, whoever asks.

use std::{fmt, sync::Arc};

use serde_json::{Map, Value, json};

use super::{Action, SecretValues, ToolConfig, variables};
use crate::{
    Result,
    models::{ChatRules, Limits, NO_ARGUMENTS, Tool, ToolId},
    redaction::{HiddenTexts, Marks},
    tool::{Conversation, Parameters, ToolSpec, arguments},
};

/// An action, with what a model is told of it and what the history must hide.
#[derive(Debug, Clone)]
pub struct ActionTool {
    /// Its effects, its limits and its history are kept under this id.
    pub id: ToolId,
    pub spec: ToolSpec,
    /// What people call it.
    pub label: String,
    pub action: Action,
    pub limits: Limits,
    pub chat: ChatRules,
    /// What the history hides.
    pub redact: Marks,
    /// What the model must never see, with its variables still in place.
    pub static_config: Value,
    /// Name of the secret with the values that are only masked here; none if nothing is missing.
    pub values_secret: Option<String>,
    /// What checks the arguments of a tool whose schema somebody else wrote; none where we derived it.
    pub check: Option<Arc<dyn CheckArguments>>,
}

/// A part of an effect that is claimed by itself: what one of several recipients gets.
#[derive(Debug, Clone, PartialEq)]
pub struct Part {
    /// The arguments that tell its effect from another one's.
    pub significant: Map<String, Value>,
    /// Those who get something by it, as the outcome names them.
    pub recipients: Vec<String>,
}

/// Holds arguments against a schema that somebody else wrote.
pub trait CheckArguments: fmt::Debug + Send + Sync {
    /// # Errors
    /// One sentence that names the argument.
    fn check(&self, arguments: &Map<String, Value>) -> Result<arguments::Checked, String>;
}

impl ActionTool {
    /// The tool of an organization, under the name that VAPI knows.
    ///
    /// # Errors
    /// When its stored configuration cannot be read.
    pub fn of_row(tool: &Tool) -> Result<Self> {
        let config = ToolConfig::stored(tool)?;
        let mut schema = tool.function_schema.get("parameters").cloned().unwrap_or_else(|| json!({}));
        if let Some(properties) = schema.get_mut("properties").and_then(Value::as_object_mut) {
            properties.remove(NO_ARGUMENTS);
        }
        let described = tool.description.as_deref().map(str::trim).filter(|description| !description.is_empty());
        let effect = config.effect();
        Ok(Self {
            id: tool.id,
            spec: ToolSpec {
                name: tool.name.as_str().to_owned(),
                description: described.unwrap_or(&tool.label).to_owned(),
                parameters: Parameters::of_schema(schema),
                returns: json!({}),
                own_examples: Vec::new(),
                effect,
                repeatable: config.repeatable && !effect.acts(),
            },
            label: tool.label.clone(),
            static_config: config.action.with_marked(tool.static_config.clone()),
            action: config.action,
            limits: config.limits,
            chat: config.chat.for_effect(effect.acts()),
            redact: Marks::stored(tool),
            values_secret: tool.values_secret.clone(),
            check: None,
        })
    }

    /// The same with its secrets in place.
    #[must_use]
    pub fn with_secrets(&self, secrets: &SecretValues) -> Self {
        let action = self.action.with_secrets(secrets);
        Self { static_config: action.with_marked(action.static_config()), action, values_secret: None, ..self.clone() }
    }

    /// The arguments that may go on to the action, and the names of those that may not.
    ///
    /// # Errors
    /// One sentence that names the argument.
    pub fn check(&self, arguments: &Map<String, Value>) -> Result<arguments::Checked, String> {
        match &self.check {
            Some(check) => check.check(arguments),
            None => match &self.action {
                Action::PipedreamAction(action) => {
                    arguments::check(self.spec.parameters.schema(), &action.with_lists(arguments))
                }
                _ => arguments::check(self.spec.parameters.schema(), arguments),
            },
        }
    }

    /// What tells the effect of these checked arguments from another one's, however the model wrote them.
    pub fn significant(&self, checked: &Map<String, Value>, conversation: &Conversation) -> Map<String, Value> {
        let mut arguments = checked.clone();
        self.action.normalize(&mut arguments, conversation);
        arguments::significant(&arguments)
    }

    /// The parts of the effect of these checked arguments; none where it is one whole.
    pub fn parts(&self, checked: &Map<String, Value>, conversation: &Conversation) -> Vec<Part> {
        let parts = self.action.parts(checked, conversation).into_iter();
        parts.map(|part| Part { significant: arguments::significant(&part.significant), ..part }).collect()
    }

    /// What of its configuration must not be shown, wherever it stands again.
    pub fn hidden_texts(&self) -> HiddenTexts {
        self.action.without_what_is_shown(HiddenTexts::of_config(&self.static_config))
    }

    /// Why it can run in a phone call only, to follow "this tool"; `None` if it can run anywhere.
    pub fn needs_call(&self) -> Option<String> {
        self.action.needs_call().map(str::to_owned).or_else(|| {
            let spec = &self.spec;
            let variable = variables::of_a_call(&self.static_config)
                .or_else(|| variables::of_a_call(spec.parameters.schema()))
                .or_else(|| variables::of_a_call(&spec.description.as_str().into()))?;
            Some(format!("uses {{{{{variable}}}}}"))
        })
    }
}
