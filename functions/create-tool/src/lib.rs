//! Makes a tool.
//!
//! A tool for agents is made at VAPI first; a failure leaves nothing on either side.

use shared::{
    Result,
    actions::ToolConfig,
    http::{Access, Asked, Created, Sent, operation},
    lifecycle::{self, Lifecycle, References},
    models::Tool,
    platform::Parts,
};

shared::routes!(Deps, "tools": create_tool);

/// A tool's configuration.
struct NewTool;

shared::described!(NewTool => {"$ref": "#/components/schemas/ToolConfig"});

#[derive(Parts)]
pub struct Deps {
    pub access: Access,
    pub references: References,
    pub lifecycle: Lifecycle,
}

/// Make a tool
///
/// A tool that agents can call (`attach_to_agent`) is made at VAPI too, with an address of ours to call back. If anything
/// fails, nothing is left on either side.
///
/// The tool's name is made of its label, in letters, digits and `_`, at most 40; a number is added where the name is taken.
///
/// - 201: The tool's row.
///
/// ```json,sms: The model writes a text, the caller gets it
/// {"type": "sms", "label": "Send confirmation",
///  "description": "Sends the caller a text message that confirms the appointment.", "from": {"type": "called_number"},
///  "text": {"mode": "ai", "prompt": "The message to send"}, "recipients": {"mode": "array_extendable",
///  "fixedValues": ["{{caller_phone_number}}"], "aiExtension": {"enabled": false}}, "async": false,
///  "execute_on_call_start": false, "attach_to_agent": true}
/// ```
/// ```json,sms_to_more: The model may add recipients
/// {"type": "sms", "label": "Tell the office", "from": {"type": "called_number"},
///  "text": "Call from {{caller_phone_number}} at {{now}}.", "recipients": {"mode": "array_extendable",
///  "fixedValues": ["+15550100001"], "aiExtension": {"enabled": true,
///  "prompt": "Numbers of those who should know as well", "required": false}}, "allowed_recipients": ["+15550100001",
///  "+15550100003", "{{caller_phone_number}}"], "limits": {"per_call": 2, "per_hour": 100}}
/// ```
/// ```json,sms_on_call_start: Runs when a call starts; VAPI never hears of it
/// {"type": "sms", "label": "Greet the caller", "from": {"type": "called_number"}, "text": {"mode": "fixed",
///  "value": "Thank you for calling."}, "recipients": {"mode": "fixed", "value": ["{{caller_phone_number}}"]},
///  "execute_on_call_start": true, "attach_to_agent": false}
/// ```
/// ```json,api_request: Looks a customer up
/// {"type": "api_request", "label": "Look up customer", "description": "Finds the customer by the number that calls.",
///  "method": "GET", "url": "https://crm.example.com/customers?phone={{caller_phone_number}}",
///  "headers": {"Authorization": {"mode": "fixed", "value": "Bearer crm-key"}}}
/// ```
/// ```json,api_request_with_arguments: Books what the caller asked for
/// {"type": "apiRequest", "label": "Book a table", "method": "POST", "url": {"mode": "fixed",
///  "value": "https://book.example.com/tables"}, "headers": {"X-Api-Key": "book-key"},
///  "body": {"phone": "{{caller_phone_number}}", "when": {"mode": "ai", "prompt": "When the table is wanted",
///  "schema": {"type": "string", "format": "date-time"}}, "guests": {"mode": "ai", "prompt": "How many guests",
///  "schema": {"type": "integer"}}, "room": {"mode": "ai", "prompt": "Which room", "schema": {"type": "string",
///  "enum": ["inside", "terrace"]}, "required": false}, "tags": {"mode": "array_extendable", "fixedValues": ["phone"],
///  "aiExtension": {"enabled": true, "prompt": "Anything the kitchen should know"}}}}
/// ```
/// ```json,pipedream_action: Posts to a Slack channel with a connected account
/// {"type": "pipedream_action", "label": "Tell the team", "pipedreamMetadata": {"app": "slack", "appName": "Slack",
///  "accountId": "apn_abc123", "actionKey": "slack-send-message"}, "preloadedParams": {"mrkdwn": true},
///  "params": {"conversation": {"mode": "fixed", "value": "C123"}, "text": {"mode": "ai",
///  "prompt": "What to tell the team"}}}
/// ```
/// ```json,transfer_call: Hands the call over with a summary
/// {"type": "transfer_call", "label": "Transfer to the practice", "target": {"type": "number",
///  "number": "+15550100002"}, "messageStrategy": "summary"}
/// ```
/// ```json,transfer_call_to_sip
/// {"type": "transferCall", "label": "Transfer to the desk", "target": {"type": "sip",
///  "sipUri": "sip:desk@pbx.example.com"}, "message": "A caller is waiting.", "messageStrategy": "message"}
/// ```
/// ```json,transfer_call_that_returns: The caller is back with the agent if nobody answers
/// {"type": "transfer_call", "label": "Connect to the desk", "target": {"type": "number", "number": "+15550100002"},
///  "messageStrategy": "summary", "if_unanswered": {"after_seconds": 20, "say": "Nobody is at the desk just now.",
///  "then": [{"type": "number", "number": "+15550100003"}]}}
/// ```
/// ```json,transfer_call_to_one_of_several: Hands the call to whom the model chooses of these
/// {"type": "transfer_call", "label": "Connect to a person", "destinations": [{"type": "number",
///  "number": "+15550100002", "label": "Front desk"}, {"type": "number", "number": "+15550100003", "label": "Billing",
///  "description": "questions about invoices"}, {"type": "sip", "sipUri": "sip:night@pbx.example.com",
///  "label": "Night shift"}], "message": "A caller from {{caller_phone_number}} is waiting:",
///  "messageStrategy": "summary"}
/// ```
/// ```json,query: Searches a knowledge base
/// {"type": "query", "label": "Search the handbook", "knowledge_base_id": "0f1e2d3c-4b5a-4697-8788-99aabbccddee",
///  "query": {"mode": "ai", "prompt": "What to look for, in the caller's words"}}
/// ```
/// ```json,query_with_filters: Searches the homes that are still on offer
/// {"type": "query", "label": "Find a home", "knowledge_base_id": "0f1e2d3c-4b5a-4697-8788-99aabbccddee",
///  "filters": {"price": ["at_most", "at_least"], "city": {"one_of": {"mode": "ai",
///  "prompt": "Towns the caller would live in", "required": false}}, "sold": {"equals": {"mode": "fixed",
///  "value": false}}}}
/// ```
#[operation(POST "/api/{slug}/tools", Admin, also(409, 502, 504), resource(Create))]
async fn create_tool(deps: &Deps, asked: &Asked<'_>, body: Sent<NewTool>) -> Result<Created<Tool>> {
    let (organization, deadline) = (asked.organization(), asked.deadline);
    let mut config = ToolConfig::parse(&body.json()?)?;
    deps.references.check(organization, &mut config, None, deadline).await?;
    Ok(Created(lifecycle::shown(deps.lifecycle.create(organization, &config, deadline).await?)))
}
