//! The expected effects of the blocks of docs/getting-started.md, in a separate deployment.

use super::{Expected, shows, then};

/// The slowest block.
pub(super) const DEPLOYS: &str = "CODE_BUCKET=";

pub(super) static EXPECTED: &[Expected] = &[
    // On this machine `. target/local/trial` replaces it, as the page explains below the block.
    then("VAPI_API_KEY=…", ". target/local/trial; echo $STACK", &["switchboard-trial"]),
    then("field() {", "echo '{\"a\": [{\"b\": \"found\"}]}' | field a.0.b", &["found"]),
    then("POOL=", "echo \"$USER_ID $CLIENT $ISSUER\"", &["https://cognito-idp.us-east-1.amazonaws.com/us-east-1_"]),
    then(DEPLOYS, "curl -sS \"$API/console/settings.json\"", &["us-east-1_"]),
    shows("make catalogue", &["\"result\": \"loaded\"", "\"Calls\""]),
    shows("SLUG=harbour-dental", &["harbour-dental"]),
    shows("TOKEN=", &["{\"items\":[],\"next_cursor\":null}"]),
    shows("COLLEAGUE=", &["\"role\":\"member\"", "\"role\":\"admin\"", "\"role\":\"owner\"", "Ana Ruiz"]),
    then("ASSISTANT=", "api \"/agents/$AGENT\"", &["\"name\":\"Front desk\""]),
    shows("CREDENTIAL=…", &[]),
    then("CREDENTIAL=$(", "test -n \"$CREDENTIAL\" && echo there", &["there"]),
    shows("curl -sS --fail-with-body -X PATCH \"$VAPI/assistant/", &["/api/vapi/events", "end-of-call-report"]),
    then("PHONE_NUMBER=", "api \"/phone-numbers/$PHONE_NUMBER\"", &["\"label\":\"Main line\""]),
    then(
        "VAPI_NUMBER=",
        "curl -sS -G \"$TWILIO/2010-04-01/Accounts/$ACCOUNT_SID/IncomingPhoneNumbers.json\" -u \"$ACCOUNT_SID:$AUTH_TOKEN\" \\\n\
         --data-urlencode \"PhoneNumber=$NUMBER\"",
        &["/twilio/inbound_call\"", "\"sms_url\":\"\""],
    ),
    shows("SID=", &["/incoming\"", "\"voice_method\":\"POST\""]),
    shows("api \"/phone-numbers/$PHONE_NUMBER\" -X PATCH", &["\"vapi_phone_number_id\":\""]),
    shows("TOOL=", &["\"tool_id\""]),
    shows("CALL=$(curl", &["{\"result\":", "200", "\"body\":\"Harbour Street 4\"", "\"from\":\"+14155550170\""]),
    then(
        "CALL=$(api",
        "api \"/calls/$CALL\"; aws logs filter-log-events --log-group-name \"/aws/lambda/$STACK-execute\" --limit 50 \\\n\
         --query 'events[].message' --output text",
        &["customer-ended-call", "\"event\":\"tool_finished\"", "ToolRuns"],
    ),
    shows("curl -sS --fail-with-body -X PUT \"$LLM/script\"", &[]),
    then("RUN=", "api \"/runs/$RUN\"", &["\"status\":\"completed\"", "\"result\":{\"heading\":\"Opening hours\"}"]),
    shows("OWN_VAPI_API_KEY=…", &[]),
    shows("make organization", &["lakeside-garage", "\"own\":true"]),
    shows("curl -sS --fail-with-body -X DELETE \"$VAPI/phone-number/", &["{\"status\":\"deleted\"}"]),
];
