//! An action as a tool for the executor.

use std::{fmt, sync::Arc};

use serde_json::{Map, Value, json};

use super::{SecretValues, ToolAction, ToolConfig, variables};
use crate::{
    Result,
    models::{ChatRules, Limits, NO_ARGUMENTS, Tool, ToolId},
    redaction::{HiddenTexts, Marks},
    tool::{Conversation, Parameters, ToolSpec, arguments},
};

#[derive(Debug, Clone)]
pub struct ActionTool {
    /// Keys its claims, limits and history.
    pub id: ToolId,
    pub spec: ToolSpec,
    pub label: String,
    pub action: ToolAction,
    pub limits: Limits,
    pub chat: ChatRules,
    pub redact: Marks,
    /// Hidden from the model; variables are not filled in.
    pub static_config: Value,
    /// Name of the secret with the masked values; `None` if there are none.
    pub values_secret: Option<String>,
    /// Argument check of a tool with a foreign schema; `None` where we derived the schema.
    pub check: Option<Arc<dyn CheckArguments>>,
}

/// A part of an effect with its own claim: the message to one of several recipients.
#[derive(Debug, Clone, PartialEq)]
pub struct EffectPart {
    pub significant: Map<String, Value>,
    /// The recipients of this part, as named in the outcome.
    pub recipients: Vec<String>,
}

/// Checks arguments against a foreign schema.
pub trait CheckArguments: fmt::Debug + Send + Sync {
    /// # Errors
    /// One sentence that names the argument.
    fn check(&self, arguments: &Map<String, Value>) -> Result<arguments::Checked, String>;
}

impl ActionTool {
    /// The tool of an organization, under the name known to VAPI.
    ///
    /// # Errors
    /// If the stored configuration is unreadable.
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

    /// The spec for a model that is not VAPI's: the variables in its descriptions are filled in.
    pub fn spec_in(&self, conversation: &Conversation) -> ToolSpec {
        self.spec.clone().with_descriptions(&|text| variables::fill_description(text, conversation))
    }

    #[must_use]
    pub fn with_secrets(&self, secrets: &SecretValues) -> Self {
        let action = self.action.with_secrets(secrets);
        Self { static_config: action.with_marked(action.static_config()), action, values_secret: None, ..self.clone() }
    }

    /// The admitted arguments, and the names of the dropped ones.
    ///
    /// # Errors
    /// One sentence that names the argument.
    pub fn check(&self, arguments: &Map<String, Value>) -> Result<arguments::Checked, String> {
        match &self.check {
            Some(check) => check.check(arguments),
            None => match &self.action {
                ToolAction::PipedreamAction(action) => {
                    arguments::check(self.spec.parameters.schema(), &action.with_lists(arguments))
                }
                _ => arguments::check(self.spec.parameters.schema(), arguments),
            },
        }
    }

    /// The normalized arguments that identify the effect, independent of spelling.
    pub fn significant(&self, checked: &Map<String, Value>, conversation: &Conversation) -> Map<String, Value> {
        let mut arguments = checked.clone();
        self.action.normalize(&mut arguments, conversation);
        arguments::significant(&arguments)
    }

    /// The normalized arguments to which a person consents: also those that do not identify the effect, such as a call's reason.
    pub fn consented(&self, checked: &Map<String, Value>, conversation: &Conversation) -> Map<String, Value> {
        let mut arguments = checked.clone();
        self.action.normalize_heard(&mut arguments, conversation);
        arguments::significant(&arguments)
    }

    /// [`ActionTool::consented`], as the redacted history has it. It hides the recipients of messages.
    pub fn consented_in_history(&self, arguments: &Map<String, Value>) -> Map<String, Value> {
        let checked = self.check(arguments).map(|checked| checked.arguments);
        let mut heard = checked.unwrap_or_else(|_| arguments.clone());
        if let ToolAction::Sms(_) = self.action {
            heard.remove("recipients");
        }
        self.consented(&heard, &Conversation::default())
    }

    /// The parts of the effect with claims of their own; empty if the effect is indivisible.
    pub fn parts(&self, checked: &Map<String, Value>, conversation: &Conversation) -> Vec<EffectPart> {
        let parts = self.action.parts(checked, conversation).into_iter();
        parts.map(|part| EffectPart { significant: arguments::significant(&part.significant), ..part }).collect()
    }

    /// Configured values to remove from all output.
    pub fn hidden_texts(&self) -> HiddenTexts {
        self.action.without_public_values(HiddenTexts::of_config(&self.static_config))
    }

    /// The reason why it needs a phone call, to follow "this tool"; `None` if it needs none.
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
