//! The account that acts, and the fields of a credential.

use secrecy::ExposeSecret;
use serde_json::json;

use super::*;
use crate::models::CredentialField;

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
    assert!(matches!(of_accounts(&all, "gmail"), Connection::Expired { accounts, .. } if accounts[0].id == "d"));
    // An account of the older app does not belong to this service.
    assert_eq!(of_accounts(&all, "slack"), Connection::NotConnected);
}

#[test]
fn a_refused_chosen_account_is_shown_with_those_that_could_act_instead() {
    let mut all = vec![
        account("apn_a", "gmail", "2026-01-01T00:00:00Z", false),
        account("apn_b", "gmail", "2026-03-01T00:00:00Z", true),
        account("apn_c", "gmail", "2026-05-01T00:00:00Z", true),
    ];
    let ids = |accounts: &[ConnectedAccount]| accounts.iter().map(|it| it.id.clone()).collect::<Vec<_>>();
    let chosen = |all: &[Account], at: usize| of_accounts(all, "gmail").led_by(all.get(at).map(of_account));
    let refused = chosen(&all, 0);
    let Connection::Expired { accounts, working } = &refused else { panic!("{refused:?}") };
    assert_eq!((accounts[0].name.as_str(), ids(working)), ("apn_a@example.com", vec!["apn_c".into(), "apn_b".into()]));
    let next = refused.renewal("Gmail");
    assert!(next.contains("(apn_c, apn_b)") && next.contains("PUT /api/{slug}/services/gmail/account"), "{next}");
    assert!(next.ends_with("DELETE /api/{slug}/services/gmail/connection?account=apn_a"), "{next}");
    assert_eq!(chosen(&all, 1).account().unwrap().id, "apn_b");
    for account in &mut all {
        *account = self::account(&account.id, "gmail", &account.created_at, false);
    }
    let refused = chosen(&all, 1);
    let Connection::Expired { accounts, working } = &refused else { panic!("{refused:?}") };
    assert_eq!((ids(accounts), working.len()), (vec!["apn_b".into(), "apn_c".into(), "apn_a".into()], 0));
    assert!(refused.renewal("Gmail").ends_with("POST /api/{slug}/services/gmail/connect"));
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
