//! Declared bodies: `#[derive(Body)]` reads and describes every field of a struct by its type.

use std::ops::Deref;

pub use declare::Body;
use serde_json::{Value, json};

use crate::{
    Result,
    described::{Described, Json, Schemas, nullable},
    error::Problems,
    fields::Fields,
    models::{AgentId, AutomationId, E164, KnowledgeBaseId, Role, SecretId, Timestamp, ToolId, UserId},
};

/// In characters.
const LONGEST_MOMENT: usize = 100;

pub trait Body: Described + Sized {
    type Draft;

    fn draft(fields: &mut Fields<'_>) -> Self::Draft;
    fn whole(draft: Self::Draft) -> Option<Self>;
}

/// Reads `body`; `check` may add problems.
///
/// # Errors
/// [`crate::Error::Invalid`] with every problem.
pub fn read<T: Body>(body: &Value, check: impl FnOnce(&mut T::Draft, &mut Fields<'_>)) -> Result<T> {
    let mut problems = Problems::default();
    let read = Fields::of(body, "", &mut problems).and_then(|mut fields| {
        let mut draft = T::draft(&mut fields);
        check(&mut draft, &mut fields);
        fields.finish();
        T::whole(draft)
    });
    problems.into_result(read)
}

/// A field of a body: `T` is required, `Option<T>` optional, [`Setting<T>`] optional and clearable, [`Kept<T>`] optional in a
/// change and not clearable.
pub trait BodyMember: Sized {
    type Draft;
    const REQUIRED: bool;

    fn draft(fields: &mut Fields<'_>, name: &'static str) -> Self::Draft;
    fn whole(draft: Self::Draft) -> Option<Self>;
    fn schema(schemas: &mut Schemas) -> Json;
}

pub trait Given: Described + Sized {
    /// The problem of JSON `null` in a change, for [`Kept`].
    const NOT_CLEARED: &'static str = "must have a value; leave it out to keep it";

    /// `None` if the field is absent or invalid; the latter is recorded as a problem.
    fn read(fields: &mut Fields<'_>, name: &'static str) -> Option<Self>;
}

impl<T: Given> BodyMember for T {
    type Draft = Option<T>;
    const REQUIRED: bool = true;

    fn draft(fields: &mut Fields<'_>, name: &'static str) -> Option<T> {
        let before = fields.problems().iter().count();
        let read = T::read(fields, name);
        if read.is_none() && fields.problems().iter().count() == before {
            fields.problem(name, "is required");
        }
        read
    }

    fn whole(draft: Option<T>) -> Option<Self> {
        draft
    }

    fn schema(schemas: &mut Schemas) -> Json {
        T::schema(schemas)
    }
}

impl<T: Given> BodyMember for Option<T> {
    type Draft = Self;
    const REQUIRED: bool = false;

    fn draft(fields: &mut Fields<'_>, name: &'static str) -> Self {
        T::read(fields, name)
    }

    fn whole(draft: Self) -> Option<Self> {
        Some(draft)
    }

    fn schema(schemas: &mut Schemas) -> Json {
        nullable(T::schema(schemas))
    }
}

/// A value that a change keeps, clears or sets: JSON `null` and empty text clear it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Setting<T> {
    Kept,
    Cleared,
    Set(T),
}

impl<T> Setting<T> {
    pub fn after<S: From<T>>(self, before: Option<S>) -> Option<S> {
        match self {
            Self::Kept => before,
            Self::Cleared => None,
            Self::Set(value) => Some(value.into()),
        }
    }

    pub const fn given(&self) -> Option<&T> {
        match self {
            Self::Set(value) => Some(value),
            Self::Kept | Self::Cleared => None,
        }
    }
}

impl<T: Given> BodyMember for Setting<T> {
    type Draft = Self;
    const REQUIRED: bool = false;

    fn draft(fields: &mut Fields<'_>, name: &'static str) -> Self {
        let empty = fields.get(name).and_then(Value::as_str).is_some_and(|text| text.trim().is_empty());
        if fields.cleared(name) || empty { Self::Cleared } else { T::read(fields, name).map_or(Self::Kept, Self::Set) }
    }

    fn whole(draft: Self) -> Option<Self> {
        Some(draft)
    }

    fn schema(schemas: &mut Schemas) -> Json {
        nullable(T::schema(schemas))
    }
}

/// A field of a change: absent keeps the value; it cannot be cleared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kept<T>(pub Option<T>);

impl<T: Given> BodyMember for Kept<T> {
    type Draft = Self;
    const REQUIRED: bool = false;

    fn draft(fields: &mut Fields<'_>, name: &'static str) -> Self {
        let (before, value) = (fields.problems().iter().count(), T::read(fields, name));
        // JSON `null`, and text that counts as absent.
        let is_given = fields.cleared(name) || fields.get(name).is_some();
        if value.is_none() && is_given && fields.problems().iter().count() == before {
            fields.problem(name, T::NOT_CLEARED);
        }
        Self(value)
    }

    fn whole(draft: Self) -> Option<Self> {
        Some(draft)
    }

    fn schema(schemas: &mut Schemas) -> Json {
        T::schema(schemas)
    }
}

/// Text types: trimmed, not empty, at most `LONGEST` characters.
macro_rules! texts {
    ($($(#[$doc:meta])* $name:ident by $read:ident;)+) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq)]
        pub struct $name<const LONGEST: usize>(pub String);

        impl<const LONGEST: usize> Deref for $name<LONGEST> {
            type Target = str;

            fn deref(&self) -> &str {
                &self.0
            }
        }

        impl<const LONGEST: usize> From<$name<LONGEST>> for String {
            fn from(text: $name<LONGEST>) -> Self {
                text.0
            }
        }

        impl<const LONGEST: usize> Described for $name<LONGEST> {
            fn schema(_: &mut Schemas) -> Json {
                json!({"type": "string", "maxLength": LONGEST})
            }
        }

        impl<const LONGEST: usize> Given for $name<LONGEST> {
            fn read(fields: &mut Fields<'_>, name: &'static str) -> Option<Self> {
                fields.$read(name, LONGEST).map(Self)
            }
        }
    )+};
}

texts! {
    Text by text;
    /// A display name for people and models, without invisible characters.
    Name by name;
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Whole<const LEAST: u32, const MOST: u32>(pub u32);

impl<const LEAST: u32, const MOST: u32> Described for Whole<LEAST, MOST> {
    fn schema(_: &mut Schemas) -> Json {
        json!({"type": "integer", "minimum": LEAST, "maximum": MOST})
    }
}

impl<const LEAST: u32, const MOST: u32> Given for Whole<LEAST, MOST> {
    fn read(fields: &mut Fields<'_>, name: &'static str) -> Option<Self> {
        fields.whole(name, LEAST..=MOST).map(Self)
    }
}

impl Given for bool {
    fn read(fields: &mut Fields<'_>, name: &'static str) -> Option<Self> {
        fields.get(name).map(|_| fields.boolean(name, false))
    }
}

/// Types parsed from text, whose error states the expected form.
macro_rules! parsed {
    ($($type:ty),+ $(,)?) => {$(
        impl Given for $type {
            fn read(fields: &mut Fields<'_>, name: &'static str) -> Option<Self> {
                fields.parse(name)
            }
        }
    )+};
}

parsed!(AgentId, AutomationId, E164, KnowledgeBaseId, SecretId, ToolId, UserId, uuid::Uuid);

impl Given for Timestamp {
    fn read(fields: &mut Fields<'_>, name: &'static str) -> Option<Self> {
        let moment = fields.text(name, LONGEST_MOMENT)?.parse::<Self>().ok();
        if moment.is_none() {
            fields.problem(name, "must be a time in ISO 8601, for example 2026-11-23T09:30:00Z");
        }
        moment.map(|moment| moment.max(Self::FIRST))
    }
}

impl Given for Role {
    const NOT_CLEARED: &'static str = "must be viewer, member, admin or owner; leave it out to keep it";

    fn read(fields: &mut Fields<'_>, name: &'static str) -> Option<Self> {
        fields.parse(name)
    }
}

/// A function's own text types: maximum length, schema, problem and parser.
#[macro_export]
macro_rules! kinds_of_text {
    ($($(#[$doc:meta])* $name:ident, $longest:literal, $schema:tt, $problem:literal, $read:expr;)+) => {$(
        $(#[$doc])*
        pub(crate) struct $name(pub(crate) String);

        impl From<$name> for String {
            fn from(text: $name) -> Self {
                text.0
            }
        }

        $crate::described!($name => $schema);

        impl $crate::declared::Given for $name {
            fn read(fields: &mut $crate::fields::Fields<'_>, name: &'static str) -> Option<Self> {
                let text = fields.text(name, $longest).filter(|text| text.chars().count() <= $longest)?;
                let read: fn(&str) -> Option<String> = $read;
                let read = read(&text);
                if read.is_none() {
                    fields.problem(name, $problem);
                }
                read.map(Self)
            }
        }
    )+};
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Error;

    #[derive(Body)]
    #[allow(dead_code, reason = "only what is wrong with some of the fields is looked at")]
    struct Change {
        role: Kept<Role>,
        label: Text<3>,
        note: Option<Text<5>>,
        #[schema(format = "phone")]
        phone: Setting<E164>,
    }

    fn problems(body: &Value) -> Vec<(String, String)> {
        match read::<Change>(body, |_, _| ()) {
            Err(Error::Invalid(problems)) => problems.iter().map(|it| (it.field.clone(), it.problem.clone())).collect(),
            _ => panic!("{body} was read"),
        }
    }

    #[test]
    fn everything_wrong_is_named_at_once() {
        let body = json!({"role": null, "label": " ", "note": 7, "phone": "x", "more": 1});
        let problems = problems(&body);
        let fields: Vec<&str> = problems.iter().map(|problem| &*problem.0).collect();
        assert_eq!(fields, ["role", "label", "note", "phone", "more"]);
        assert_eq!(problems[0].1, "must be viewer, member, admin or owner; leave it out to keep it");
        assert_eq!(problems[1].1, "is required");
        assert_eq!(problems[4].1, "is not a known field; known are label, note, phone, role");
    }

    #[test]
    fn a_setting_is_kept_cleared_or_set() {
        let phone = |body: Value| read::<Change>(&body, |_, _| ()).unwrap().phone;
        assert_eq!(phone(json!({"label": "a"})), Setting::Kept);
        assert_eq!(phone(json!({"label": "a", "phone": null})), Setting::Cleared);
        assert_eq!(phone(json!({"label": "a", "phone": " "})), Setting::Cleared);
        assert!(matches!(phone(json!({"label": "a", "phone": "+14155550101"})), Setting::Set(_)));
        assert_eq!(Setting::<Text<3>>::Kept.after(Some("before".to_owned())).as_deref(), Some("before"));
        assert_eq!(Setting::Set(Text::<3>("now".to_owned())).after(None::<String>).as_deref(), Some("now"));
    }

    #[test]
    fn a_body_is_described_as_it_is_read() {
        let mut schemas = Schemas::default();
        Change::schema(&mut schemas);
        let schema = &schemas.into_named()["Change"];
        assert_eq!(schema["required"], json!(["label"]));
        assert_eq!(schema["properties"]["note"], json!({"type": ["string", "null"], "maxLength": 5}));
        assert_eq!(schema["properties"]["phone"]["format"], "phone");
    }
}
