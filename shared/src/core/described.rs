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

/// The members of an object; those of `variants` stand beside them, one variant at a time.
#[derive(Debug, Clone, Default)]
pub struct Members {
    all: Vec<ObjectMember>,
    variants: Vec<(String, Self)>,
}

impl Members {
    pub fn push(&mut self, name: &str, required: bool, schema: Json) {
        self.all.push((name.to_owned(), required, schema));
    }

    /// Adds the members of a struct, or of each variant of an enum, that is part of the object (`#[serde(flatten)]`) and has no
    /// schema name of its own.
    pub fn flatten<T: Described>(&mut self, schemas: &mut Schemas) {
        let mut inner = Schemas::default();
        let mut schema = T::schema(&mut inner);
        let name = schema.get("$ref").and_then(Json::as_str).and_then(|path| path.rsplit('/').next());
        if let Some(named) = name.and_then(|name| inner.0.remove(name)) {
            schema = named;
        }
        schemas.0.append(&mut inner.0);
        let members = Self::of(&schema);
        self.all.extend(members.all);
        self.variants.extend(members.variants);
    }

    fn of(schema: &Json) -> Self {
        let list = |word: &str| schema.get(word).and_then(Json::as_array).into_iter().flatten();
        let members = schema.get("properties").and_then(Json::as_object).into_iter().flatten();
        let required = |name: &str| list("required").any(|required| required == name);
        let variants = list("oneOf").map(|variant| {
            let doc = variant.get("description").and_then(Json::as_str).unwrap_or_default();
            (doc.to_owned(), Self::of(variant))
        });
        Self {
            all: members.map(|(name, schema)| (name.clone(), required(name), schema.clone())).collect(),
            variants: variants.collect(),
        }
    }

    /// The schema of an object with exactly these members.
    pub fn closed(&self, doc: &str) -> Json {
        if !self.variants.is_empty() {
            let variants = self.variants.iter().map(|(doc, variant)| {
                let all = self.all.iter().chain(&variant.all).cloned().collect();
                Self { all, variants: variant.variants.clone() }.closed(doc)
            });
            return with(json!({"oneOf": (variants.collect::<Vec<_>>())}), doc, &[]);
        }
        let required: Vec<&str> = self.all.iter().filter(|member| member.1).map(|member| &*member.0).collect();
        let properties: serde_json::Map<String, Json> =
            self.all.iter().map(|(name, _, schema)| (name.clone(), schema.clone())).collect();
        let mut more = vec![("additionalProperties", false.into()), ("properties", properties.into())];
        if !required.is_empty() {
            more.push(("required", json!(required)));
        }
        with(json!({"type": "object"}), doc, &more)
    }
}

#[derive(Debug, Default)]
pub struct Schemas(BTreeMap<String, Json>);

impl Schemas {
    /// Registers a schema, made unless it is there, and returns its reference.
    pub fn named(&mut self, name: &str, schema: impl FnOnce(&mut Self) -> Json) -> Json {
        if !self.0.contains_key(name) {
            // Registered first, because a struct may contain itself.
            self.0.insert(name.to_owned(), Json::Null);
            let schema = schema(self);
            self.0.insert(name.to_owned(), schema);
        }
        reference(name)
    }

    /// Registers an object with exactly these members and returns its reference.
    pub fn object(
        &mut self,
        name: &str,
        doc: &str,
        more: &[(&str, Json)],
        members: impl FnOnce(&mut Self) -> Members,
    ) -> Json {
        self.named(name, |schemas| with(members(schemas).closed(""), doc, more))
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
        let may_be_null = object.get("type").is_some_and(Json::is_array);
        object.extend(more.iter().map(|(name, value)| ((*name).to_owned(), value.clone())));
        if let Some(names) = object.get_mut("enum").and_then(Json::as_array_mut)
            && may_be_null
            && !names.contains(&Json::Null)
        {
            names.push(Json::Null);
        }
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
    let is_any = schema.as_object().is_some_and(serde_json::Map::is_empty);
    match schema.get_mut("type") {
        Some(Json::Array(kinds)) => kinds.push("null".into()),
        Some(kind) => *kind = json!([kind.take(), "null"]),
        None if has_names || is_any => {}
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

impl<T: Described + ?Sized> Described for Box<T> {
    fn schema(schemas: &mut Schemas) -> Json {
        T::schema(schemas)
    }
}

/// An object whose members have names of its author's choice.
impl<K, T: Described> Described for BTreeMap<K, T> {
    fn schema(schemas: &mut Schemas) -> Json {
        json!({"type": "object", "additionalProperties": T::schema(schemas)})
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
    i64 => {"type": "integer"},
    f64 => {"type": "number"},
    serde_json::Number => {"type": "number"},
    uuid::Uuid => {"type": "string", "format": "uuid"},
    Json => {},
    serde_json::Map<String, Json> => {"type": "object"},
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
