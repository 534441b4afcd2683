//! The account that acts, and the fields of a credential.

use secrecy::ExposeSecret;
use serde_json::json;

use super::*;

fn account(id: &str, app: &str, created_at: &str, healthy: bool) -> Account {
    let row = json!({
        "id": id, "name": format!("{id}@example.com"), "app": {"name_slug": app}, "created_at": created_at, "healthy": healthy,
    });
    serde_json::from_value(row).unwrap()
}

#[test]
fn the_newest_account_that_works_acts() {
    let all = [
        account("a", "slack_v2", "2026-01-01T00:00:00Z", true),
        account("b", "slack_v2", "2026-03-01T00:00:00Z", true),
        account("c", "slack_v2", "2026-05-01T00:00:00Z", false),
        account("d", "gmail", "2026-06-01T00:00:00Z", false),
    ];
    let slack = of_accounts(&all, "slack_v2");
    assert_eq!(slack.account().unwrap().id, "b");
    assert!(matches!(of_accounts(&all, "gmail"), Connection::Expired { accounts } if accounts[0].id == "d"));
    // An account of the older app does not belong to this service.
    assert_eq!(of_accounts(&all, "slack"), Connection::NotConnected);
}

#[test]
fn a_credential_has_each_of_its_fields_and_no_other() {
    let field = |name: &str, secret| CredentialField {
        name: name.into(),
        description: "Where.".into(),
        secret,
        in_address: false,
    };
    let fields = [field("account", false), field("api_key", true)];
    let (content, name) = credential(&fields, &json!({"account": " acme ", "api_key": "sk_1"})).unwrap();
    assert_eq!((content.expose_secret(), name.as_str()), (r#"{"account":"acme","api_key":"sk_1"}"#, "acme"));
    let Err(Error::Invalid(problems)) = credential(&fields, &json!({"api_key": " ", "key": "x", "account": 7})) else {
        panic!()
    };
    let named: Vec<_> = problems.iter().map(|problem| problem.field.as_str()).collect();
    assert_eq!(named, ["account", "api_key", "key"]);
    assert!(credential(&fields, &json!({"account": "a", "api_key": "sk\u{200b}"})).is_err());
    assert_eq!(
        credential(&fields, &json!({"account": "Praxis München", "api_key": "sk"})).unwrap().1,
        "Praxis München"
    );
}

#[test]
fn a_part_of_an_address_cannot_lead_elsewhere() {
    let field =
        CredentialField { name: "subdomain".into(), description: "Where.".into(), secret: false, in_address: true };
    let of = |value: &str| credential(std::slice::from_ref(&field), &json!({"subdomain": value}));
    assert_eq!(of(" acme-2 ").unwrap().1, "acme-2");
    for value in ["https://acme.zendesk.com", "acme.zendesk.com", "evil.example/", "a@b", "a b", "-a", "a#", "ä", "a_b"]
    {
        let Err(Error::Invalid(problems)) = of(value) else { panic!("{value}") };
        assert!(problems.iter().any(|problem| problem.field == "subdomain"), "{value}");
    }
    assert!(of(&"a".repeat(64)).is_err());
}
