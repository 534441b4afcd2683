//! JSON Schemas of requests and answers, for `docs/openapi.yaml`. Only tests call this, so no program contains it.

use std::collections::BTreeMap;

pub use declare::Described;
pub use serde_json::Value as Json;
pub use serde_json::json;

/// A member of an object: its name, whether it is always present, and its schema.
pub type ObjectMember = (String, bool, Json);

pub trait Described {
    fn schema(schemas: &mut Schemas) -> Json;

    /// The schema of a member that serde omits when empty.
    fn schema_if_present(schemas: &mut Schemas) -> Json {
        Self::schema(schemas)
    }
}

#[derive(Debug, Default)]
pub struct Schemas(BTreeMap<String, Json>);

impl Schemas {
    /// Registers an object with exactly these members and returns its reference.
    pub fn object(&mut self, name: &str, doc: &str, members: impl FnOnce(&mut Self) -> Vec<ObjectMember>) -> Json {
        if !self.0.contains_key(name) {
            // Registered first, because a struct may contain itself.
            self.0.insert(name.to_owned(), Json::Null);
            let members = members(self);
            let required: Vec<&str> = members.iter().filter(|member| member.1).map(|member| &*member.0).collect();
            let properties: serde_json::Map<String, Json> =
                members.iter().map(|(name, _, schema)| (name.clone(), schema.clone())).collect();
            let mut more = vec![("additionalProperties", false.into()), ("properties", properties.into())];
            if !required.is_empty() {
                more.push(("required", json!(required)));
            }
            self.0.insert(name.to_owned(), with(json!({"type": "object"}), doc, &more));
        }
        reference(name)
    }

    /// The members of a struct that is part of another (`#[serde(flatten)]`) and has no schema name of its own.
    pub fn members_of<T: Described>(&mut self) -> Vec<ObjectMember> {
        let mut inner = Self::default();
        let reference = T::schema(&mut inner);
        let name = reference.get("$ref").and_then(Json::as_str).and_then(|path| path.rsplit('/').next());
        let schema = name.and_then(|name| inner.0.remove(name)).unwrap_or_default();
        self.0.append(&mut inner.0);
        let of = |word: &str| schema.get(word);
        let required = |name: &str| {
            of("required").and_then(Json::as_array).is_some_and(|all| all.iter().any(|required| required == name))
        };
        let members = of("properties").and_then(Json::as_object).into_iter().flatten();
        members.map(|(name, schema)| (name.clone(), required(name), schema.clone())).collect()
    }

    pub fn into_named(self) -> BTreeMap<String, Json> {
        self.0
    }
}

/// A reference to a schema that `docs/openapi` defines by hand.
pub fn reference(name: &str) -> Json {
    json!({"$ref": format!("#/components/schemas/{name}")})
}

pub fn with(mut schema: Json, doc: &str, more: &[(&str, Json)]) -> Json {
    if let Some(object) = schema.as_object_mut() {
        object.extend(more.iter().map(|(name, value)| ((*name).to_owned(), value.clone())));
        if !doc.is_empty() {
            object.insert("description".to_owned(), doc.into());
        }
    }
    schema
}

pub fn names(names: &[&str]) -> Json {
    json!({"type": "string", "enum": names})
}

pub fn nullable(mut schema: Json) -> Json {
    let names = schema.get_mut("enum").and_then(Json::as_array_mut);
    let has_names = names.map(|names| names.push(Json::Null)).is_some();
    match schema.get_mut("type") {
        Some(kind) => *kind = json!([kind.take(), "null"]),
        None if has_names => {}
        None => schema = json!({"oneOf": [schema, {"type": "null"}]}),
    }
    schema
}

impl<T: Described> Described for Option<T> {
    fn schema(schemas: &mut Schemas) -> Json {
        nullable(T::schema(schemas))
    }

    fn schema_if_present(schemas: &mut Schemas) -> Json {
        T::schema(schemas)
    }
}

impl<T: Described> Described for Vec<T> {
    fn schema(schemas: &mut Schemas) -> Json {
        json!({"type": "array", "items": T::schema(schemas)})
    }
}

#[macro_export]
macro_rules! described {
    ($($type:ty => $schema:tt),+ $(,)?) => {$(
        impl $crate::described::Described for $type {
            fn schema(_: &mut $crate::described::Schemas) -> $crate::described::Json {
                $crate::described::json!($schema)
            }
        }
    )+};
}

described! {
    () => {"type": "null"},
    bool => {"type": "boolean"},
    String => {"type": "string"},
    &'static str => {"type": "string"},
    u32 => {"type": "integer", "minimum": 0},
    u64 => {"type": "integer", "minimum": 0},
    usize => {"type": "integer", "minimum": 0},
    f64 => {"type": "number"},
    serde_json::Number => {"type": "number"},
    serde_json::Map<String, Json> => {"type": "object"},
    uuid::Uuid => {"type": "string", "format": "uuid"},
    Json => {},
}

#[cfg(test)]
mod tests {
    use serde::Serialize;

    use super::*;

    /// A row.
    #[derive(Serialize, Described)]
    struct RowView {
        id: uuid::Uuid,
        /// What people call it.
        name: Option<String>,
        #[serde(flatten)]
        part: Part,
        state: State,
        #[schema(maxItems = 2)]
        tags: Vec<String>,
    }

    #[derive(Serialize, Described)]
    struct Part {
        #[serde(skip_serializing_if = "Option::is_none")]
        at: Option<u64>,
        #[serde(rename = "type")]
        kind: String,
    }

    #[derive(Serialize, Described)]
    #[serde(rename_all = "snake_case")]
    enum State {
        OnHold,
        #[serde(rename = "ready!")]
        Ready,
    }

    #[test]
    fn a_schema_holds_for_serdes_output() {
        let mut schemas = Schemas::default();
        assert_eq!(RowView::schema(&mut schemas), reference("Row"));
        let schemas = schemas.into_named();
        assert_eq!(schemas.keys().collect::<Vec<_>>(), ["Row"], "a part has no name of its own");
        let row = &schemas["Row"];
        assert_eq!(row["required"], json!(["id", "name", "type", "state", "tags"]));
        assert_eq!(
            row["properties"]["name"],
            json!({"type": ["string", "null"], "description": "What people call it."})
        );
        assert_eq!(row["properties"]["tags"]["maxItems"], 2);
        assert_eq!(row["description"], "A row.");
        let validator = jsonschema::draft202012::new(row).unwrap();
        for (at, state) in [(None, State::OnHold), (Some(7), State::Ready)] {
            let part = Part { at, kind: "x".to_owned() };
            let row = RowView { id: uuid::Uuid::nil(), name: None, part, state, tags: Vec::new() };
            let value = serde_json::to_value(row).unwrap();
            assert!(validator.is_valid(&value), "{value}");
        }
    }
}
