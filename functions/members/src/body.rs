//! Bodies: a new member, and a change of a member.

use jiff::tz::TimeZone;
use shared::{
    declared::{Body, Kept, Setting},
    models::{Contact, E164, Role, UserId},
};

#[derive(Body)]
pub(crate) struct NewMember {
    /// The `sub` of the user's tokens.
    pub(crate) user_id: UserId,
    pub(crate) role: Role,
    name: Setting<Name>,
    email: Setting<Email>,
    phone: Setting<Phone>,
    timezone: Setting<Zone>,
}

#[derive(Body)]
pub(crate) struct MemberChange {
    pub(crate) role: Kept<Role>,
    name: Setting<Name>,
    email: Setting<Email>,
    phone: Setting<Phone>,
    timezone: Setting<Zone>,
}

impl NewMember {
    pub(crate) fn contact(self) -> Contact {
        let Self { name, email, phone, timezone, .. } = self;
        MemberChange { role: Kept(None), name, email, phone, timezone }.contact(Contact::default())
    }
}

impl MemberChange {
    /// The contact after the change.
    pub(crate) fn contact(self, before: Contact) -> Contact {
        Contact {
            name: self.name.after(before.name),
            email: self.email.after(before.email),
            phone: self.phone.after(before.phone),
            timezone: self.timezone.after(before.timezone),
        }
    }
}

shared::kinds_of_text! {
    Name, 200, {"type": "string", "maxLength": 200}, "must have no control characters",
    |name| (!name.chars().any(char::is_control)).then(|| name.to_owned());

    /// The length is that of RFC 5321.
    Email, 254, {"type": "string", "maxLength": 254}, "must be an e-mail address",
    |email| {
        let whole = !email.chars().any(|letter| letter.is_control() || letter.is_whitespace());
        let parts = email.rsplit_once('@').filter(|(of, at)| !of.is_empty() && !at.is_empty() && whole);
        parts.map(|_| email.to_owned())
    };

    Phone, 200, {"type": "string", "description": "E.164."}, "must be a phone number such as +14155550101",
    |phone| phone.parse::<E164>().ok().map(|number| number.to_string());

    Zone, 100, {"type": "string", "description": "IANA name of a time zone."},
    "must be the IANA name of a time zone, such as Europe/Madrid",
    |name| TimeZone::get(name).ok().and_then(|zone| zone.iana_name().map(str::to_owned));
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use shared::{
        Error, Result,
        declared::read,
        models::{OrganizationId, OrganizationMember},
    };

    use super::*;

    fn new_member(body: &Value) -> Result<NewMember> {
        read(body, |_, _| ())
    }

    fn change(body: &Value, before: &OrganizationMember) -> Result<(Role, Contact)> {
        let change: MemberChange = read(body, |_, _| ())?;
        Ok((change.role.0.unwrap_or(before.role), change.contact(before.contact.clone())))
    }

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
    fn any_subject_of_an_issuer_is_a_valid_user_id() {
        for user in ["0193f3b2-1111-7000-8000-000000000001", "auth0|7", "google oauth2|50%", "日本", &"x".repeat(255)]
        {
            let read = new_member(&json!({"user_id": user, "role": "viewer"})).unwrap();
            assert_eq!((read.user_id.as_str(), read.role), (user, Role::Viewer));
        }
    }

    #[test]
    fn a_change_keeps_fields_it_does_not_name() {
        let new = new_member(&json!({"user_id": "u", "role": "admin", "name": "Ana", "phone": "+1 (415) 555-0101"}));
        let new = new.unwrap();
        let (user_id, role) = (new.user_id.clone(), new.role);
        let contact = new.contact();
        assert_eq!(contact.phone.as_deref(), Some("+14155550101"));
        let before = OrganizationMember::new(OrganizationId::generate(), user_id, role, contact);
        assert_eq!(change(&json!({}), &before).unwrap(), (Role::Admin, before.contact.clone()));
        let after = change(&json!({"role": "viewer", "name": null, "phone": "", "timezone": "europe/madrid"}), &before);
        let zone = Some("Europe/Madrid".to_owned());
        assert_eq!(after.unwrap(), (Role::Viewer, Contact { timezone: zone, ..Contact::default() }));
        assert_eq!(wrong(change(&json!({"role": null, "user_id": "v"}), &before)), ["role", "user_id"]);
    }
}
