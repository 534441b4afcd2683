//! `ToolConfig`, the configuration that an author edits.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::{
    EffectPart, Parameter,
    api_request::ApiRequest,
    parameters::Place,
    pipedream_action::PipedreamAction,
    place_call::PlaceCall,
    query::{IndexOperator, Query},
    schema,
    service_request::ServiceRequest,
    sms::Sms,
    transfer_call::TransferCall,
};
use crate::{
    Result,
    error::Problems,
    fields::Fields,
    models::{
        AsyncResult, CALL_METADATA, ChatRules, Confirm, IfCallOver, Limits, Role, Sentence, Speech, Tool, ToolEffect,
        ToolId, ToolName, ToolType,
    },
    redaction::{Marks, below},
    store::unreadable,
    tool::Conversation,
};

const LONGEST_LABEL: usize = 100;
/// In characters; VAPI's advice.
const LONGEST_DESCRIPTION: usize = 1_000;

/// A tool as its author configures it. serde reads and writes stored rows, [`ToolConfig::parse`] request bodies. Rows stay valid
/// if the rules for bodies change, and unknown fields of newer versions are skipped.
#[expect(clippy::struct_excessive_bools, reason = "each is a field of its own in a configuration")]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolConfig {
    pub label: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    #[serde(flatten)]
    pub action: ToolAction,
    /// The agent continues without the result. This and the next two flags have their own columns.
    #[serde(skip)]
    pub is_async: bool,
    /// Runs when a call starts, before the agent speaks.
    #[serde(skip)]
    pub execute_on_call_start: bool,
    /// False: runs on call start only, and is not attached at VAPI.
    #[serde(skip)]
    pub attach_to_agent: bool,
    /// False: its data changes, so a repeated call in a run is executed again.
    #[serde(default = "yes", skip_serializing_if = "is_yes")]
    pub repeatable: bool,
    /// Only for an `api_request` or a `pipedream_action` with an effect; other types have a fixed one.
    #[serde(default, rename = "effect", skip_serializing_if = "Option::is_none")]
    pub declared_effect: Option<ToolEffect>,
    #[serde(default, skip_serializing_if = "Limits::none")]
    pub limits: Limits,
    /// Conditions for a call on behalf of a user in a chat.
    #[serde(default, skip_serializing_if = "ChatRules::none")]
    pub chat: ChatRules,
    #[serde(default, skip_serializing_if = "Marks::is_empty")]
    pub redact: Marks,
    #[serde(default, skip_serializing_if = "Speech::none")]
    pub speech: Speech,
    /// Of an `async` tool.
    #[serde(default, skip_serializing_if = "AsyncResult::is_default")]
    pub async_result: AsyncResult,
    /// Of an `async` tool whose result is told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub if_call_over: Option<IfCallOver>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confirm: Option<Confirm>,
}

const fn yes() -> bool {
    true
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands over a reference")]
const fn is_yes(repeatable: &bool) -> bool {
    *repeatable
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ToolAction {
    #[serde(alias = "apiRequest")]
    ApiRequest(ApiRequest),
    #[serde(alias = "externalApp")]
    PipedreamAction(PipedreamAction),
    Query(Query),
    Sms(Sms),
    #[serde(alias = "transferCall")]
    TransferCall(TransferCall),
    PlaceCall(PlaceCall),
    #[serde(skip)]
    ServiceRequest(ServiceRequest),
}

impl ToolConfig {
    /// Parses the body of `POST /api/{slug}/tools`: the type's own fields beside `label`, `description`, `async`,
    /// `execute_on_call_start`, `attach_to_agent`, `repeatable`, `limits`, `chat`, `redact`, `speech`, `async_result`,
    /// `if_call_over`, `confirm`.
    ///
    /// # Errors
    /// [`crate::Error::Invalid`] with all problems.
    pub fn parse(body: &Value) -> Result<Self> {
        let mut problems = Problems::default();
        let config = Self::parse_at(body, "", &mut problems);
        problems.into_result(config)
    }

    /// # Errors
    /// [`crate::Error::Unreadable`], for example if a newer version wrote it.
    pub fn stored(tool: &Tool) -> Result<Self> {
        // serde's message may quote the configuration.
        let config = Self::deserialize(&tool.config_metadata).map_err(|_content| unreadable::<Self>(&tool.id))?;
        Ok(Self {
            is_async: tool.is_async,
            execute_on_call_start: tool.execute_on_call_start,
            attach_to_agent: tool.attach_to_agent,
            ..config
        })
    }

    /// The reason why it cannot send the result of another tool after a call, to follow "this tool".
    pub fn unfit_after_call(&self) -> Option<&'static str> {
        match &self.action {
            _ if self.is_async => Some("is async; choose a tool that is not"),
            _ if self.confirm.is_some() => {
                Some("is read back to the caller, who is gone; choose a tool without confirm")
            }
            ToolAction::TransferCall(_) => Some("transfers a call, which is over; choose another tool"),
            action if !action.has_effect() => Some("only reads; choose a tool that sends something"),
            _ => None,
        }
    }

    pub fn effect(&self) -> ToolEffect {
        match &self.action {
            action if !action.has_effect() => ToolEffect::None,
            ToolAction::Sms(_) => ToolEffect::Sms,
            ToolAction::TransferCall(_) => ToolEffect::Other,
            ToolAction::PlaceCall(_) => ToolEffect::Call,
            _ => self.declared_effect.filter(|declared| declared.acts()).unwrap_or_default(),
        }
    }

    /// As [`ToolConfig::parse`], for a configuration at `path` of a larger body; empty for the whole body.
    pub fn parse_at(body: &Value, path: &str, problems: &mut Problems) -> Option<Self> {
        Self::read(Fields::of(body, path, problems)?)
    }

    /// As [`ToolConfig::parse`], for an edit: allows `name` and `version` beside the fields of the configuration.
    pub fn parse_edited(body: &Value, problems: &mut Problems) -> Option<Self> {
        let mut fields = Fields::of(body, "", problems)?;
        for beside in ["name", "version"] {
            fields.get(beside);
        }
        Self::read(fields)
    }

    fn read(mut fields: Fields<'_>) -> Option<Self> {
        let label = fields.required_name("label", LONGEST_LABEL);
        let description = fields.text("description", LONGEST_DESCRIPTION);
        let is_async = fields.boolean("async", false);
        let async_result = fields.parse::<AsyncResult>("async_result");
        if async_result.is_some() && !is_async {
            fields.problem("async_result", "is for a tool with async; leave it out");
        }
        let if_call_over = if_call_over(&mut fields);
        if if_call_over.is_some() && (!is_async || async_result == Some(AsyncResult::None)) {
            fields.problem("if_call_over", "is for a tool with async whose result is told; leave it out");
        }
        let execute_on_call_start = fields.boolean("execute_on_call_start", false);
        let attach_to_agent = fields.boolean("attach_to_agent", true);
        let repeatable = fields.boolean("repeatable", true);
        let declared_effect = fields.parse::<ToolEffect>("effect");
        let limits = Limits::read(&mut fields);
        let chat = chat_rules(&mut fields);
        let speech = speech(&mut fields);
        let confirm = confirm(&mut fields, execute_on_call_start, &speech);
        // Without a type the other fields cannot be checked.
        let kind: ToolType = fields.required_parse("type")?;
        let action = match kind {
            ToolType::ApiRequest => ApiRequest::read(&mut fields).map(ToolAction::ApiRequest),
            ToolType::PipedreamAction => PipedreamAction::read(&mut fields).map(ToolAction::PipedreamAction),
            ToolType::Query => Query::read(&mut fields).map(ToolAction::Query),
            ToolType::Sms => Sms::read(&mut fields).map(ToolAction::Sms),
            ToolType::TransferCall => TransferCall::read(&mut fields).map(ToolAction::TransferCall),
            ToolType::PlaceCall => PlaceCall::read(&mut fields).map(ToolAction::PlaceCall),
        };
        if !attach_to_agent && !execute_on_call_start {
            fields.problem(
                "execute_on_call_start",
                "must be true for a tool that is not attached to agents, or it never runs",
            );
        }
        if confirm.is_some() && action.as_ref().is_some_and(|action| !action.has_effect()) {
            fields.problem("confirm", "is for a tool that changes something; this one only reads");
        }
        if let (Some(action), Some(effect)) = (&action, declared_effect) {
            check_effect(action, effect, &mut fields);
        }
        if let Some(action) = &action {
            let sends_secrets = matches!(action, ToolAction::ApiRequest(_) | ToolAction::PipedreamAction(_));
            for (path, parameter) in action.parameters() {
                if !sends_secrets && matches!(parameter, Parameter::Fixed { secret: Some(true), .. }) {
                    fields.problem(
                        &format!("{}.secret", path.field),
                        "can be true in an api_request or a pipedream_action only; this type sends its values to a person",
                    );
                }
                if !attach_to_agent && parameter.property().is_some() {
                    fields.problem(
                        &path.field,
                        "cannot be filled in by a model: the tool only runs on call start; make it fixed",
                    );
                } else if execute_on_call_start && parameter.needs_model() {
                    fields.problem(
                        &path.field,
                        "must be fixed or optional: the tool also runs on call start, when no model can fill it in",
                    );
                } else if path.argument == CALL_METADATA && parameter.property().is_some() {
                    fields.problem(
                        &path.field,
                        "cannot be filled in by a model: VAPI sends the call's data under this name; make it fixed",
                    );
                }
            }
        }
        let redact = Marks::read(&mut fields, |path| action.as_ref()?.not_an_argument(path));
        fields.finish();
        Some(Self {
            label: label?,
            description,
            action: action?,
            is_async,
            execute_on_call_start,
            attach_to_agent,
            repeatable,
            declared_effect,
            limits,
            chat,
            redact,
            speech,
            async_result: async_result.unwrap_or_default(),
            if_call_over,
            confirm,
        })
    }

    pub const fn kind(&self) -> ToolType {
        self.action.kind()
    }

    pub fn description_for_model(&self) -> &str {
        self.description.as_deref().unwrap_or(&self.label)
    }

    pub fn function_schema(&self, name: &ToolName) -> Value {
        let parameters = self.action.parameters().into_iter().map(|(path, parameter)| (path.argument, parameter));
        schema::function(name, self.description_for_model(), parameters)
    }

    pub fn static_config(&self) -> Value {
        self.action.static_config()
    }

    /// `config_metadata`: the configuration as stored and as returned for editing, without the flags that have their own columns.
    pub fn to_json(&self) -> Value {
        json!(self)
    }
}

/// `chat`: `{"least_role"?, "consent"?}`.
fn chat_rules(fields: &mut Fields<'_>) -> ChatRules {
    let Some(mut of_chat) = fields.object("chat") else { return ChatRules::default() };
    let least_role = of_chat.text("least_role", 20).and_then(|text| {
        let role = Role::named(&text);
        if role.is_none() {
            of_chat.problem("least_role", "must be one of viewer, member, admin, owner");
        }
        role
    });
    let consent = of_chat.boolean("consent", false);
    of_chat.finish();
    ChatRules { least_role, consent }
}

/// `if_call_over`: `{"tool", "arguments"?}`.
fn if_call_over(fields: &mut Fields<'_>) -> Option<IfCallOver> {
    let mut named = fields.object("if_call_over")?;
    let tool = named.required_parse::<ToolId>("tool");
    let arguments = named.members("arguments").into_iter();
    let arguments: Map<String, Value> = arguments.map(|(name, value)| (name.clone(), value.clone())).collect();
    if arguments.len() > IfCallOver::MOST_ARGUMENTS {
        named.problem("arguments", format!("must be at most {}", IfCallOver::MOST_ARGUMENTS));
    }
    let config = tool.map(|tool| IfCallOver { tool, arguments });
    if let Some(unknown) = config.as_ref().and_then(IfCallOver::unknown_placeholder) {
        named.problem(
            "arguments",
            format!("cannot hold {{{{{unknown}}}}}; write {{{{result}}}} or {{{{result.field}}}}"),
        );
    }
    named.finish();
    config
}

fn confirm(fields: &mut Fields<'_>, execute_on_call_start: bool, speech: &Speech) -> Option<Confirm> {
    let confirm = fields.parse::<Confirm>("confirm")?;
    if execute_on_call_start {
        fields
            .problem("confirm", "cannot be had at the start of a call, when nobody has spoken; leave out one of both");
    }
    for name in speech.worded() {
        let problem = "must be silent in a tool with confirm: the caller might take this sentence for the request";
        fields.problem(&format!("speech.{name}"), problem);
    }
    Some(confirm)
}

/// `speech`: `{"start"?, "delayed"?, "failed"?}`.
fn speech(fields: &mut Fields<'_>) -> Speech {
    let Some(mut said) = fields.object("speech") else { return Speech::default() };
    let [start, delayed, failed] = ["start", "delayed", "failed"].map(|name| sentence(&mut said, name));
    said.finish();
    Speech { start, delayed, failed }
}

/// `"auto"`, which is `None`, a text, or texts by language.
fn sentence(fields: &mut Fields<'_>, name: &'static str) -> Option<Sentence> {
    let is_short = |text: &str| text.chars().count() <= Speech::LONGEST;
    match fields.get(name)? {
        Value::String(text) if text == "auto" => None,
        Value::String(text) if is_short(text) => Some(Sentence::Any(text.trim().to_owned())),
        Value::Object(texts) => {
            let mut said = BTreeMap::new();
            for (language, text) in texts {
                let is_code = language.len() == 2 && language.bytes().all(|letter| letter.is_ascii_lowercase());
                match text.as_str().map(str::trim).filter(|text| !text.is_empty() && is_short(text)) {
                    Some(text) if is_code => drop(said.insert(language.clone(), text.to_owned())),
                    Some(_) => fields
                        .problem(name, format!("names \"{language}\"; write a language as two letters, such as en")),
                    None => fields
                        .problem(name, format!("needs a text of 1 to {} characters for {language}", Speech::LONGEST)),
                }
            }
            if texts.is_empty() || texts.len() > Speech::MOST_LANGUAGES {
                fields.problem(name, format!("must name 1 to {} languages", Speech::MOST_LANGUAGES));
            }
            Some(Sentence::Languages(said))
        }
        _ => {
            let most = Speech::LONGEST;
            fields.problem(
                name,
                format!("must be auto, a text of at most {most} characters (empty for silence), or an object of texts by language"),
            );
            None
        }
    }
}

impl ToolAction {
    pub const fn kind(&self) -> ToolType {
        match self {
            Self::ApiRequest(_) | Self::ServiceRequest(_) => ToolType::ApiRequest,
            Self::PipedreamAction(_) => ToolType::PipedreamAction,
            Self::Query(_) => ToolType::Query,
            Self::Sms(_) => ToolType::Sms,
            Self::TransferCall(_) => ToolType::TransferCall,
            Self::PlaceCall(_) => ToolType::PlaceCall,
        }
    }

    pub(super) fn parameters(&self) -> Vec<(Place, &Parameter)> {
        match self {
            Self::ApiRequest(action) => action.parameters(),
            Self::PipedreamAction(action) => action.parameters(),
            Self::Query(action) => action.parameters(),
            Self::Sms(action) => action.parameters(),
            Self::TransferCall(action) => action.parameters(),
            Self::PlaceCall(action) => action.parameters(),
            Self::ServiceRequest(_) => Vec::new(),
        }
    }

    pub(crate) fn static_config(&self) -> Value {
        match self {
            Self::ApiRequest(action) => action.static_config(),
            Self::PipedreamAction(action) => action.static_config(),
            Self::Query(action) => action.static_config(),
            Self::Sms(action) => action.static_config(),
            Self::TransferCall(action) => action.static_config(),
            Self::PlaceCall(action) => action.static_config(),
            Self::ServiceRequest(action) => action.static_config(),
        }
    }

    /// The reason why it needs a phone call, by type and options alone, to follow "this tool".
    pub(super) fn needs_call(&self) -> Option<&'static str> {
        match self {
            Self::TransferCall(_) => Some("transfers a call"),
            Self::Sms(action) => action.needs_call(),
            Self::ApiRequest(_)
            | Self::PipedreamAction(_)
            | Self::PlaceCall(_)
            | Self::Query(_)
            | Self::ServiceRequest(_) => None,
        }
    }

    /// The mistake if `path` names no argument of the function.
    fn not_an_argument(&self, path: &str) -> Option<String> {
        let arguments: Vec<String> = self.parameters().into_iter().map(|(place, _)| place.argument).collect();
        // The filters depend on the knowledge base, so any filter name passes.
        let is_filter = matches!(self, Self::Query(_)) && IndexOperator::ends(path);
        let known = is_filter || arguments.iter().any(|argument| below(path, argument).is_some());
        let arguments = arguments.join(", ");
        (!known).then(|| {
            format!("does not begin with an argument of the tool; it may begin with {arguments}, result or be *")
        })
    }

    pub(super) fn normalize(&self, arguments: &mut Map<String, Value>, conversation: &Conversation) {
        match self {
            Self::Sms(action) => action.normalize(arguments, conversation),
            Self::TransferCall(_) => TransferCall::normalize(arguments),
            Self::PlaceCall(_) => PlaceCall::normalize(arguments),
            Self::ApiRequest(_) | Self::PipedreamAction(_) | Self::Query(_) | Self::ServiceRequest(_) => {}
        }
    }

    /// As [`ToolAction::normalize`], with all that a person hears before consent. A model words a summary anew each time.
    pub(super) fn normalize_heard(&self, arguments: &mut Map<String, Value>, conversation: &Conversation) {
        match self {
            Self::PlaceCall(_) => PlaceCall::respell(arguments),
            _ => self.normalize(arguments, conversation),
        }
    }

    /// The parts of the effect with claims of their own; empty if the effect is indivisible.
    pub(super) fn parts(&self, arguments: &Map<String, Value>, conversation: &Conversation) -> Vec<EffectPart> {
        match self {
            Self::Sms(action) => action.parts(arguments, conversation),
            Self::ApiRequest(_)
            | Self::PipedreamAction(_)
            | Self::PlaceCall(_)
            | Self::Query(_)
            | Self::ServiceRequest(_)
            | Self::TransferCall(_) => Vec::new(),
        }
    }

    pub fn has_effect(&self) -> bool {
        match self {
            Self::ApiRequest(action) => action.has_effect(),
            Self::ServiceRequest(action) => action.has_effect(),
            Self::Query(_) => false,
            Self::PipedreamAction(action) => action.has_effect(),
            Self::Sms(_) | Self::TransferCall(_) | Self::PlaceCall(_) => true,
        }
    }
}

fn check_effect(action: &ToolAction, effect: ToolEffect, fields: &mut Fields<'_>) {
    if !matches!(action, ToolAction::ApiRequest(_) | ToolAction::PipedreamAction(_)) {
        fields.problem(
            "effect",
            "is for an api_request or a pipedream_action; the effect of this type is known, leave it out",
        );
    } else if action.has_effect() && !effect.acts() {
        let words = ToolEffect::OF_ACTING.map(ToolEffect::as_str).join(", ");
        fields.problem("effect", format!("must be one of {words}: this tool changes something"));
    } else if !action.has_effect() && effect.acts() {
        fields.problem("effect", "must be none or left out: this tool only reads");
    }
}

#[cfg(test)]
mod tests;
