//! The fields of tools and assistants.
//!
//! From VAPI's OpenAPI document of 2026-08, and from observed behaviour where VAPI accepts more: `function` on the
//! tool types that once had it.

use serde_json::{Map, Value};

use super::{
    control::{NO_E164, is_e164},
    validation::{self, Completeness, Dialect, Field, Kind, may, must},
};

static CONDITION: &[Field] = &[
    must("operator", Kind::OneOf(&["eq", "neq", "gt", "gte", "lt", "lte"])),
    must("param", Kind::TextOf(0, 1000)),
    must("value", Kind::TextOf(0, 1000)),
];
static CONDITIONS: Kind = Kind::Object(CONDITION);
static CONTENTS: Kind = Kind::Tagged(&[(
    "text",
    &[must("type", Kind::Text), must("text", Kind::Text), must("language", Kind::TextOf(2, 2))],
)]);
static MESSAGE: Kind = Kind::Tagged(&[
    (
        "request-start",
        &[
            must("type", Kind::Text),
            may("content", Kind::TextOf(0, 1000)),
            may("contents", Kind::List(&CONTENTS)),
            may("conditions", Kind::List(&CONDITIONS)),
            may("blocking", Kind::Boolean),
        ],
    ),
    (
        "request-response-delayed",
        &[
            must("type", Kind::Text),
            may("content", Kind::TextOf(0, 1000)),
            may("contents", Kind::List(&CONTENTS)),
            may("conditions", Kind::List(&CONDITIONS)),
            may("timingMilliseconds", Kind::Between(100.0, 120_000.0)),
        ],
    ),
    ("request-complete", CLOSING_MESSAGE),
    ("request-failed", CLOSING_MESSAGE),
]);
const CLOSING_MESSAGE: &[Field] = &[
    must("type", Kind::Text),
    may("content", Kind::TextOf(0, 1000)),
    may("contents", Kind::List(&CONTENTS)),
    may("conditions", Kind::List(&CONDITIONS)),
    may("role", Kind::OneOf(&["assistant", "system"])),
    may("endCallAfterSpokenEnabled", Kind::Boolean),
];
static PARAMETER: Kind = Kind::Object(&[must("key", Kind::Text), must("value", Kind::Any)]);
static BACKOFF_PLAN: &[Field] = &[
    must("type", Kind::OneOf(&["fixed", "exponential"])),
    must("maxRetries", Kind::Between(0.0, 10.0)),
    must("baseDelaySeconds", Kind::Between(0.0, 10.0)),
    may("excludedStatusCodes", Kind::List(&Kind::Number)),
];
static ALIAS: Kind = Kind::Object(&[must("key", Kind::Identifier(40)), must("value", Kind::TextOf(0, 10_000))]);
static VARIABLE_EXTRACTION_PLAN: &[Field] =
    &[may("schema", Kind::Schema(Dialect::Plain)), may("aliases", Kind::List(&ALIAS))];
static REJECTION: Kind = Kind::Tagged(&[
    (
        "regex",
        &[
            must("type", Kind::Text),
            must("regex", Kind::Text),
            may(
                "target",
                Kind::Object(&[may("role", Kind::OneOf(&["user", "assistant"])), may("position", Kind::Number)]),
            ),
            may("negate", Kind::Boolean),
        ],
    ),
    ("liquid", &[must("type", Kind::Text), must("liquid", Kind::Text)]),
    (
        "group",
        &[
            must("type", Kind::Text),
            must("operator", Kind::OneOf(&["AND", "OR"])),
            must("conditions", Kind::List(&Kind::Map)),
        ],
    ),
]);
static REJECTION_PLAN: &[Field] = &[may("conditions", Kind::List(&REJECTION))];
static SERVER: &[Field] = &[
    may("url", Kind::Text),
    may("timeoutSeconds", Kind::Between(1.0, 300.0)),
    may("credentialId", Kind::Text),
    may("headers", Kind::Map),
    may("backoffPlan", Kind::Object(BACKOFF_PLAN)),
    may("encryptedPaths", Kind::Texts),
    may("staticIpAddressesEnabled", Kind::Boolean),
];
static VOICEMAIL_DETECTION: &[Field] = &[
    must("provider", Kind::OneOf(&["vapi", "google", "openai", "twilio"])),
    may("beepMaxAwaitSeconds", Kind::Between(0.0, 30.0)),
    may("backoffPlan", Kind::Map),
    may("type", Kind::OneOf(&["audio", "transcript"])),
    may("enabled", Kind::Boolean),
    may("voicemailDetectionTypes", Kind::Texts),
];
static FUNCTION: &[Field] = &[
    must("name", Kind::Name(64)),
    may("description", Kind::Text),
    may("strict", Kind::Boolean),
    may(
        "parameters",
        Kind::Object(&[
            must("type", Kind::OneOf(&["object"])),
            must("properties", Kind::Schemas(Dialect::Plain)),
            may("required", Kind::Texts),
        ]),
    ),
];

static API_REQUEST: &[Field] = &[
    must("type", Kind::OneOf(&["apiRequest"])),
    must("method", Kind::OneOf(&["POST", "GET", "PUT", "PATCH", "DELETE"])),
    must("url", Kind::Text),
    may("name", Kind::Name(40)),
    may("description", Kind::Text),
    may("body", Kind::Schema(Dialect::Body)),
    may("headers", Kind::Schema(Dialect::Headers)),
    may("parameters", Kind::List(&PARAMETER)),
    may("timeoutSeconds", Kind::Between(1.0, 300.0)),
    may("credentialId", Kind::Text),
    may("encryptedPaths", Kind::Texts),
    may("backoffPlan", Kind::Object(BACKOFF_PLAN)),
    may("variableExtractionPlan", Kind::Object(VARIABLE_EXTRACTION_PLAN)),
    may("messages", Kind::List(&MESSAGE)),
    may("rejectionPlan", Kind::Object(REJECTION_PLAN)),
    may("function", Kind::Map),
];
static FUNCTION_TOOL: &[Field] = &[
    must("type", Kind::OneOf(&["function"])),
    may("function", Kind::Object(FUNCTION)),
    may("async", Kind::Boolean),
    may("server", Kind::Object(SERVER)),
    may("parameters", Kind::List(&PARAMETER)),
    may("variableExtractionPlan", Kind::Object(VARIABLE_EXTRACTION_PLAN)),
    may("messages", Kind::List(&MESSAGE)),
    may("rejectionPlan", Kind::Object(REJECTION_PLAN)),
];
static CUSTOM_MESSAGE: &[Field] = &[
    must("type", Kind::OneOf(&["custom-message"])),
    may("content", Kind::TextOf(0, 1000)),
    may("contents", Kind::List(&CONTENTS)),
];
static TRANSFER_PLAN: &[Field] = &[
    must(
        "mode",
        Kind::OneOf(&[
            "blind-transfer",
            "blind-transfer-add-summary-to-sip-header",
            "warm-transfer-say-message",
            "warm-transfer-say-summary",
            "warm-transfer-twiml",
            "warm-transfer-wait-for-operator-to-speak-first-and-then-say-message",
            "warm-transfer-wait-for-operator-to-speak-first-and-then-say-summary",
            "warm-transfer-experimental",
        ]),
    ),
    may("message", Kind::TextOr(CUSTOM_MESSAGE)),
    may("timeout", Kind::Between(1.0, 600.0)),
    may("sipVerb", Kind::OneOf(&["refer", "bye", "dial"])),
    may("dialTimeout", Kind::Between(1.0, 600.0)),
    may("holdAudioUrl", Kind::Text),
    may("transferCompleteAudioUrl", Kind::Text),
    may("contextEngineeringPlan", Kind::Map),
    may("twiml", Kind::TextOf(0, 4096)),
    may("summaryPlan", Kind::Map),
    may("sipHeadersInReferToEnabled", Kind::Boolean),
    may(
        "fallbackPlan",
        Kind::Object(&[must("message", Kind::TextOr(CUSTOM_MESSAGE)), may("endCallEnabled", Kind::Boolean)]),
    ),
];
pub(super) static NUMBER_DESTINATION: &[Field] = &[
    must("type", Kind::Text),
    must("number", Kind::TextOf(3, 40)),
    may("extension", Kind::TextOf(1, 10)),
    may("callerId", Kind::TextOf(0, 40)),
    may("message", Kind::TextOr(CUSTOM_MESSAGE)),
    may("description", Kind::Text),
    may("numberE164CheckEnabled", Kind::Boolean),
    may("transferPlan", Kind::Object(TRANSFER_PLAN)),
];
pub(super) static SIP_DESTINATION: &[Field] = &[
    must("type", Kind::Text),
    must("sipUri", Kind::Text),
    may("sipHeaders", Kind::Map),
    may("callerId", Kind::TextOf(0, 40)),
    may("message", Kind::TextOr(CUSTOM_MESSAGE)),
    may("description", Kind::Text),
    may("transferPlan", Kind::Object(TRANSFER_PLAN)),
];
static DESTINATION: Kind = Kind::Tagged(&[
    ("number", NUMBER_DESTINATION),
    ("sip", SIP_DESTINATION),
    (
        "assistant",
        &[
            must("type", Kind::Text),
            must("assistantName", Kind::Text),
            may(
                "transferMode",
                Kind::OneOf(&[
                    "rolling-history",
                    "swap-system-message-in-history",
                    "swap-system-message-in-history-and-remove-transfer-tool-messages",
                    "delete-history",
                ]),
            ),
            may("message", Kind::TextOr(CUSTOM_MESSAGE)),
            may("description", Kind::Text),
        ],
    ),
]);
static TRANSFER_CALL: &[Field] = &[
    must("type", Kind::OneOf(&["transferCall"])),
    may("destinations", Kind::List(&DESTINATION)),
    may("messages", Kind::List(&MESSAGE)),
    may("rejectionPlan", Kind::Object(REJECTION_PLAN)),
    may("function", Kind::Object(FUNCTION)),
];
static KNOWLEDGE_BASE: Kind = Kind::Object(&[
    must("provider", Kind::OneOf(&["google"])),
    must("name", Kind::Text),
    must("description", Kind::Text),
    must("fileIds", Kind::Texts),
    may("model", Kind::Text),
]);
static QUERY: &[Field] = &[
    must("type", Kind::OneOf(&["query"])),
    may("knowledgeBases", Kind::List(&KNOWLEDGE_BASE)),
    may("messages", Kind::List(&MESSAGE)),
    may("rejectionPlan", Kind::Object(REJECTION_PLAN)),
    may("function", Kind::Object(FUNCTION)),
];
static SMS: &[Field] = &[
    must("type", Kind::OneOf(&["sms"])),
    may("messages", Kind::List(&MESSAGE)),
    may("rejectionPlan", Kind::Object(REJECTION_PLAN)),
    may("metadata", Kind::Object(&[may("from", Kind::Text)])),
];
static TOOLS: &[(&str, &[Field])] = &[
    ("apiRequest", API_REQUEST),
    ("function", FUNCTION_TOOL),
    ("transferCall", TRANSFER_CALL),
    ("query", QUERY),
    ("sms", SMS),
];
static TOOL: Kind = Kind::Tagged(TOOLS);

const PROVIDERS: &[&str] = &[
    "anthropic",
    "anthropic-bedrock",
    "anyscale",
    "azure-openai",
    "cerebras",
    "custom-llm",
    "deepinfra",
    "deep-seek",
    "google",
    "groq",
    "inflection-ai",
    "minimax",
    "openai",
    "openrouter",
    "perplexity-ai",
    "together-ai",
    "xai",
    "vapi",
];
static MODEL_MESSAGE: Kind = Kind::Object(&[
    must("role", Kind::OneOf(&["assistant", "function", "user", "system", "tool"])),
    must("content", Kind::Text),
]);
static TOOL_REF: Kind = Kind::Object(&[must("toolId", Kind::Id), must("version", Kind::Text)]);
static MODEL: &[Field] = &[
    must("provider", Kind::OneOf(PROVIDERS)),
    must("model", Kind::Text),
    may("messages", Kind::List(&MODEL_MESSAGE)),
    may("tools", Kind::List(&TOOL)),
    may("toolIds", Kind::Ids),
    may("toolRefs", Kind::List(&TOOL_REF)),
    may("knowledgeBase", Kind::Map),
    may("temperature", Kind::Between(0.0, 2.0)),
    may("maxTokens", Kind::Between(50.0, 10_000.0)),
    may("emotionRecognitionEnabled", Kind::Boolean),
    may("numFastTurns", Kind::Between(0.0, f64::MAX)),
];
/// The `model` fields that only these providers have.
static MODEL_OF: &[(&str, &[&str])] = &[
    ("anthropic", &["thinking"]),
    ("anthropic-bedrock", &["thinking"]),
    ("custom-llm", &["metadataSendMode", "headers", "url", "wordLevelConfidenceEnabled", "timeoutSeconds"]),
    ("google", &["realtimeConfig"]),
    (
        "openai",
        &["fallbackModels", "toolStrictCompatibilityMode", "promptCacheRetention", "promptCacheKey", "reasoningEffort"],
    ),
    ("vapi", &["version", "workflowId", "workflow"]),
];
static ASSISTANT: &[Field] = &[
    may("name", Kind::TextOf(0, 40)),
    may("model", Kind::Map),
    may("voice", Kind::Provider),
    may("transcriber", Kind::Provider),
    may("firstMessage", Kind::Text),
    may("firstMessageInterruptionsEnabled", Kind::Boolean),
    may(
        "firstMessageMode",
        Kind::OneOf(&[
            "assistant-speaks-first",
            "assistant-speaks-first-with-model-generated-message",
            "assistant-waits-for-user",
        ]),
    ),
    may("voicemailDetection", Kind::TextOr(VOICEMAIL_DETECTION)),
    may("voicemailMessage", Kind::TextOf(0, 1000)),
    may("endCallMessage", Kind::TextOf(0, 1000)),
    may("endCallPhrases", Kind::List(&Kind::TextOf(2, 140))),
    may("clientMessages", Kind::Texts),
    may("serverMessages", Kind::Texts),
    may("maxDurationSeconds", Kind::Between(10.0, 43_200.0)),
    may("backgroundSound", Kind::Text),
    may("modelOutputInMessagesEnabled", Kind::Boolean),
    may("transportConfigurations", Kind::List(&Kind::Map)),
    may("observabilityPlan", Kind::Map),
    may("credentials", Kind::List(&Kind::Provider)),
    may("credentialIds", Kind::Texts),
    may("hooks", Kind::List(&Kind::Map)),
    may("compliancePlan", Kind::Map),
    may("metadata", Kind::Map),
    may("backgroundSpeechDenoisingPlan", Kind::Map),
    may("analysisPlan", Kind::Map),
    may("artifactPlan", Kind::Map),
    may("startSpeakingPlan", Kind::Map),
    may("stopSpeakingPlan", Kind::Map),
    may("monitorPlan", Kind::Map),
    may("server", Kind::Object(SERVER)),
    may("keypadInputPlan", Kind::Map),
];

/// The problems of a `POST /tool` body.
pub(super) fn new_tool(body: &Map<String, Value>) -> Vec<String> {
    tool(body, body.get("type").and_then(Value::as_str), Completeness::Whole)
}

/// The problems of a `PATCH /tool/{id}` body for a tool of this type.
pub(super) fn tool_change(body: &Map<String, Value>, kind: &str) -> Vec<String> {
    tool(body, Some(kind), Completeness::Partial)
}

fn tool(body: &Map<String, Value>, kind: Option<&str>, completeness: Completeness) -> Vec<String> {
    let mut problems = Vec::new();
    if let Some((_, fields)) = TOOLS.iter().find(|(name, _)| Some(*name) == kind) {
        validation::fields(body, fields, "", completeness, &mut problems);
    } else {
        let known: Vec<_> = TOOLS.iter().map(|(name, _)| *name).collect();
        problems.push(format!("type must be one of the following values: {}", known.join(", ")));
    }
    problems
}

/// The problems of a `POST /assistant` or `PATCH /assistant/{id}` body. A `model` is always checked as a whole,
/// because a PATCH replaces it.
pub(super) fn assistant(body: &Map<String, Value>) -> Vec<String> {
    let mut problems = Vec::new();
    validation::fields(body, ASSISTANT, "", Completeness::Whole, &mut problems);
    if let Some(given) = body.get("model").and_then(Value::as_object) {
        model(given, &mut problems);
    }
    problems
}

static CUSTOMER: &[Field] = &[
    must("number", Kind::TextOf(3, 40)),
    may("numberE164CheckEnabled", Kind::Boolean),
    may("extension", Kind::TextOf(0, 10)),
    may("sipUri", Kind::Text),
    may("name", Kind::TextOf(0, 40)),
    may("email", Kind::TextOf(0, 40)),
    may("externalId", Kind::TextOf(0, 40)),
    may("assistantOverrides", Kind::Map),
    may("squadOverrides", Kind::Map),
];
/// The OpenAPI document's fields, and `phoneCallProviderBypassEnabled` from VAPI's documentation. Required are the
/// fields of a bypassed call with one assistant and one customer.
static CALL: &[Field] = &[
    may("phoneCallProviderBypassEnabled", Kind::Boolean),
    must("phoneNumberId", Kind::Text),
    may("phoneNumber", Kind::Map),
    must("assistantId", Kind::Text),
    may("assistantVersion", Kind::Text),
    may("assistant", Kind::Map),
    may("assistantOverrides", Kind::Map),
    must("customer", Kind::Object(CUSTOMER)),
    may("customerId", Kind::Text),
    may("customers", Kind::List(&Kind::Object(CUSTOMER))),
    may("name", Kind::TextOf(0, 40)),
    may("schedulePlan", Kind::Map),
    may("transport", Kind::Map),
    may("squadId", Kind::Text),
    may("squad", Kind::Map),
    may("squadOverrides", Kind::Map),
    may("workflowId", Kind::Text),
    may("workflow", Kind::Map),
    may("workflowOverrides", Kind::Map),
];

/// A Twilio number in `POST /phone-number`.
static TWILIO_NUMBER: &[Field] = &[
    must("provider", Kind::OneOf(&["twilio"])),
    must("number", Kind::Text),
    must("twilioAccountSid", Kind::Text),
    may("twilioAuthToken", Kind::Text),
    may("twilioApiKey", Kind::Text),
    may("twilioApiSecret", Kind::Text),
    may("smsEnabled", Kind::Boolean),
    may("name", Kind::TextOf(0, 40)),
    may("assistantId", Kind::Text),
    may("squadId", Kind::Text),
    may("workflowId", Kind::Text),
    may("server", Kind::Object(SERVER)),
    may("fallbackDestination", Kind::Map),
    may("hooks", Kind::List(&Kind::Map)),
];

/// The problems of a `POST /phone-number` body. Only numbers of Twilio are accepted.
pub(super) fn twilio_number(body: &Map<String, Value>) -> Vec<String> {
    let mut problems = Vec::new();
    validation::fields(body, TWILIO_NUMBER, "", Completeness::Whole, &mut problems);
    problems
}

/// The problems of a `POST /call` body. Overrides are checked like an assistant's fields.
pub(super) fn call(body: &Map<String, Value>) -> Vec<String> {
    let mut problems = Vec::new();
    validation::fields(body, CALL, "", Completeness::Whole, &mut problems);
    let customer = body.get("customer");
    let checked = customer.and_then(|customer| customer.get("numberE164CheckEnabled")?.as_bool()).unwrap_or(true);
    let number = customer.and_then(|customer| customer.get("number")?.as_str());
    // Twilio's placeholders for withheld numbers look like numbers but are not.
    let withheld = ["+7378742833", "+266696687", "+2562533", "+8656696", "+86282452253"];
    if checked && number.is_some_and(|number| !is_e164(number) || withheld.contains(&number)) {
        problems.push(format!("customer.number {NO_E164}"));
    }
    let plain = |number: &str| {
        let rest = number.strip_prefix('+').unwrap_or(number);
        !rest.is_empty() && rest.bytes().all(|byte| byte.is_ascii_alphanumeric())
    };
    if !checked && number.is_some_and(|number| !plain(number)) {
        problems.push("customer.number must match /^\\+?[a-zA-Z0-9]+$/ regular expression".to_owned());
    }
    if let Some(given) = body.get("assistantOverrides").and_then(Value::as_object) {
        let mut overrides = given.clone();
        for own in ["variableValues", "tools:append"] {
            overrides.remove(own);
        }
        problems.extend(assistant(&overrides).into_iter().map(|problem| format!("assistantOverrides.{problem}")));
    }
    problems
}

fn model(given: &Map<String, Value>, problems: &mut Vec<String>) {
    let provider = given.get("provider").and_then(Value::as_str).unwrap_or_default();
    if !PROVIDERS.contains(&provider) {
        // The provider determines the model's fields.
        problems.push(format!("model.provider must be one of the following values: {}", PROVIDERS.join(", ")));
        return;
    }
    let own = MODEL_OF.iter().find(|(name, _)| *name == provider).map_or(&[][..], |(_, own)| *own);
    let mut common = given.clone();
    common.retain(|name, _| !own.contains(&name.as_str()));
    if provider == "vapi" {
        common.entry("model").or_insert_with(|| Value::String(String::new()));
    }
    validation::fields(&common, MODEL, "model.", Completeness::Whole, problems);
    if provider == "custom-llm" {
        validation::value(given.get("url").unwrap_or(&Value::Null), &Kind::Text, "model.", "url", problems);
    }
}
