//! What bodies say of a member.
//!
//! ```json
//! {"user_id": "auth0|7", "role": "member", "name": "Ana Ruiz", "email": "ana@example.com", "phone": "+14155550101",
//!  "timezone": "Europe/Madrid"}
//! ```

use jiff::tz::TimeZone;
use serde_json::Value;
use shared::{
    Result,
    error::Problems,
    fields::Fields,
    models::{Contact, E164, OrganizationMember, Role, UserId},
};

/// In characters.
const LONGEST_NAME: usize = 200;
/// Of an address, by RFC 5321.
const LONGEST_EMAIL: usize = 254;
const LONGEST_TIMEZONE: usize = 100;

/// Body of a POST.
pub(crate) struct NewMember {
    pub(crate) user_id: UserId,
    pub(crate) role: Role,
    pub(crate) contact: Contact,
}

pub(crate) fn new_member(body: &Value) -> Result<NewMember> {
    let mut problems = Problems::default();
    let read = Fields::of(body, "", &mut problems).and_then(|mut fields| {
        let user_id = fields.required_parse("user_id");
        let role = fields.required_parse("role");
        let contact = contact(&mut fields, &Contact::default());
        fields.finish();
        Some(NewMember { user_id: user_id?, role: role?, contact })
    });
    problems.into_result(read)
}

/// Body of a PATCH: the role and the contact as they are to be.
pub(crate) fn change(body: &Value, before: &OrganizationMember) -> Result<(Role, Contact)> {
    let mut problems = Problems::default();
    let read = Fields::of(body, "", &mut problems).map(|mut fields| {
        let role = if fields.cleared("role") {
            fields.problem("role", "must be viewer, member, admin or owner; leave it out to keep it");
            None
        } else {
            fields.parse("role")
        };
        let contact = contact(&mut fields, &before.contact);
        fields.finish();
        (role.unwrap_or(before.role), contact)
    });
    problems.into_result(read)
}

/// What is given takes the place of what was before; JSON `null` and empty text clear it.
fn contact(fields: &mut Fields<'_>, before: &Contact) -> Contact {
    let name = member(fields, "name", before.name.as_ref(), LONGEST_NAME, |name| {
        (!name.chars().any(char::is_control)).then(|| name.to_owned()).ok_or("must have no control characters")
    });
    let email = member(fields, "email", before.email.as_ref(), LONGEST_EMAIL, |email| {
        let whole = !email.chars().any(|letter| letter.is_control() || letter.is_whitespace());
        let parts = email.rsplit_once('@').filter(|(of, at)| !of.is_empty() && !at.is_empty() && whole);
        parts.map(|_| email.to_owned()).ok_or("must be an e-mail address")
    });
    let phone = member(fields, "phone", before.phone.as_ref(), LONGEST_NAME, |phone| {
        let number = phone.parse::<E164>().map(|number| number.to_string());
        number.map_err(|_not_a_number| "must be a phone number such as +14155550101")
    });
    let timezone = member(fields, "timezone", before.timezone.as_ref(), LONGEST_TIMEZONE, |name| {
        let zone = TimeZone::get(name).ok().and_then(|zone| zone.iana_name().map(str::to_owned));
        zone.ok_or("must be the IANA name of a time zone, such as Europe/Madrid")
    });
    Contact { name, email, phone, timezone }
}

fn member(
    fields: &mut Fields<'_>,
    name: &'static str,
    before: Option<&String>,
    longest: usize,
    read: impl Fn(&str) -> Result<String, &'static str>,
) -> Option<String> {
    if fields.cleared(name) {
        return None;
    }
    let Some(value) = fields.get(name) else { return before.cloned() };
    let given = fields.text(name, longest);
    if value.as_str().is_none_or(|text| text.trim().is_empty()) {
        // Empty, or refused already.
        return None;
    }
    match read(&given?) {
        Ok(read) => Some(read),
        Err(problem) => {
            fields.problem(name, problem);
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use shared::{Error, models::OrganizationId};

    use super::*;

    fn wrong<T>(read: Result<T>) -> Vec<String> {
        match read {
            Err(Error::Invalid(problems)) => problems.iter().map(|problem| problem.field.clone()).collect(),
            _ => panic!("accepted"),
        }
    }

    #[test]
    fn every_wrong_field_is_named_at_once() {
        assert_eq!(wrong(new_member(&json!({}))), ["user_id", "role"]);
        assert_eq!(wrong(new_member(&json!([]))), ["body"]);
        let odd = json!({
            "user_id": "a\nb", "role": "Owner", "name": "\u{7}", "email": "@x", "phone": "0049", "timezone": "Europe/Madrit",
            "organization_id": "x",
        });
        let all = ["user_id", "role", "name", "email", "phone", "timezone", "organization_id"];
        assert_eq!(wrong(new_member(&odd)), all);
        let numbers = json!({"user_id": 1, "role": 2, "name": 3, "email": 4, "phone": 5, "timezone": 6});
        assert_eq!(wrong(new_member(&numbers)), all[..6]);
        for user in ["", " ", &"x".repeat(256)] {
            assert_eq!(wrong(new_member(&json!({"user_id": user, "role": "member"}))), ["user_id"]);
        }
    }

    #[test]
    fn whatever_an_issuer_calls_its_users_is_taken() {
        for user in ["0193f3b2-1111-7000-8000-000000000001", "auth0|7", "google oauth2|50%", "日本", &"x".repeat(255)]
        {
            let read = new_member(&json!({"user_id": user, "role": "viewer"})).unwrap();
            assert_eq!((read.user_id.as_str(), read.role), (user, Role::Viewer));
        }
    }

    #[test]
    fn a_change_keeps_what_it_does_not_name() {
        let new = new_member(&json!({"user_id": "u", "role": "admin", "name": "Ana", "phone": "+1 (415) 555-0101"}));
        let NewMember { user_id, role, contact } = new.unwrap();
        assert_eq!(contact.phone.as_deref(), Some("+14155550101"));
        let before = OrganizationMember::new(OrganizationId::generate(), user_id, role, contact);
        assert_eq!(change(&json!({}), &before).unwrap(), (Role::Admin, before.contact.clone()));
        let after = change(&json!({"role": "viewer", "name": null, "phone": "", "timezone": "europe/madrid"}), &before);
        let zone = Some("Europe/Madrid".to_owned());
        assert_eq!(after.unwrap(), (Role::Viewer, Contact { timezone: zone, ..Contact::default() }));
        assert_eq!(wrong(change(&json!({"role": null, "user_id": "v"}), &before)), ["role", "user_id"]);
    }
}
