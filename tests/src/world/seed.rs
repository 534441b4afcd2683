//! The initial rows and secrets of an organization.

use serde_json::{Map, Value, json};
use shared::models::Timestamp;

use super::Tenant;
use crate::Aws;

pub(super) fn seed(aws: &Aws, tenant: &Tenant) {
    let now = Timestamp::now().to_string();
    let put = |table: &str, row: Value| {
        let Value::Object(mut row) = row else { panic!("a row is an object") };
        row.extend(Map::from_iter([("created_at".to_owned(), json!(now)), ("updated_at".to_owned(), json!(now))]));
        aws.put(table, &Value::Object(row));
    };
    let organization = &tenant.organization_id;
    put("organizations", json!({"id": organization, "name": tenant.slug, "slug": tenant.slug}));
    put("organization_members", json!({"user_id": tenant.user_id, "organization_id": organization, "role": "owner"}));
    put(
        "agents",
        json!({"id": tenant.agent_id, "organization_id": organization, "name": "Front desk", "external_assistant_id": tenant.assistant_id}),
    );
    aws.put("agents", &json!({"id": format!("assistant#{}", tenant.assistant_id), "agent_id": tenant.agent_id}));
    let guard = format!("number#{}", tenant.phone_number);
    aws.put("phone_numbers", &json!({"id": guard, "phone_number_id": tenant.phone_number_id}));
    let secret = tenant.twilio_secret();
    put(
        "phone_numbers",
        json!({
            "id": tenant.phone_number_id,
            "organization_id": organization,
            "number": tenant.phone_number,
            "label": "Main line",
            "agent_id": tenant.agent_id,
            "credentials_secret": secret,
        }),
    );
    aws.put_secret(&secret, &json!({"account_sid": tenant.twilio_sid, "auth_token": tenant.twilio_token}));
}
