//! Knowledge bases: entries with typed fields and free text, such as an estate agent's properties.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    str::FromStr,
};

use serde::{Deserialize, Serialize};
use serde_json::Number;

use crate::{described::Described, names::Names};

use super::{AgentId, KnowledgeBaseId, OrganizationId, Timestamp, ToolId};

/// A row of `knowledge_bases`.
#[derive(Debug, Clone, Serialize, Deserialize, Described)]
pub struct KnowledgeBase {
    pub id: KnowledgeBaseId,
    pub organization_id: OrganizationId,
    pub name: String,
    pub description: Option<String>,
    pub fields: Vec<Field>,
    /// Rises with every change of the entries.
    #[serde(default)]
    pub version: u64,
    /// How many there are.
    #[serde(default)]
    pub entries: u64,
    /// Its deletion has begun and is not finished; loading and searching are refused.
    #[serde(default)]
    pub deleting: bool,
    /// The tool made by attaching the base; ignored if deleted or now another base's.
    #[serde(default, skip_serializing)]
    pub query_tool_id: Option<ToolId>,
    /// A superset of the agents that have that tool: check `agent_tools` for each.
    #[serde(default, skip_serializing)]
    pub agent_ids: BTreeSet<AgentId>,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

impl KnowledgeBase {
    /// The largest entry, in bytes of JSON. It bounds the memory of a search.
    pub const LARGEST_ENTRY: usize = 4_096;
    pub const MOST_ENTRIES: usize = 10_000;
    pub const MOST_FIELDS: usize = 20;

    pub fn new(organization_id: OrganizationId, name: String, description: Option<String>, fields: Vec<Field>) -> Self {
        let (id, now) = (KnowledgeBaseId::generate(), Timestamp::now());
        Self {
            id,
            organization_id,
            name,
            description,
            fields,
            version: 0,
            entries: 0,
            deleting: false,
            query_tool_id: None,
            agent_ids: BTreeSet::new(),
            created_at: now,
            updated_at: now,
        }
    }

    pub fn field(&self, name: &str) -> Option<&Field> {
        self.fields.iter().find(|field| field.name.as_str() == name)
    }
}

/// A typed field of a knowledge base.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Described)]
#[schema(name = "FieldDeclaration")]
pub struct Field {
    pub name: FieldName,
    #[serde(rename = "type")]
    pub kind: FieldType,
    /// Label for people and models; by default the name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(maxLength = 60)]
    pub label: Option<String>,
}

impl Field {
    pub fn shown(&self) -> &str {
        self.label.as_deref().unwrap_or_else(|| self.name.as_str())
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Described, Names)]
#[serde(rename_all = "snake_case")]
pub enum FieldType {
    Text,
    Number,
    Boolean,
}

/// 1 to 40 of `a-z`, `0-9` and `_`, beginning with a letter. With an operator appended it is the name of an argument.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct FieldName(String);

shows_text!(FieldName);

#[derive(Debug, thiserror::Error)]
pub enum NotAFieldName {
    #[error("must be 1 to 40 of a-z, 0-9 and _, beginning with a letter")]
    Spelling,
    #[error("is taken: every entry has an id and a text")]
    Taken,
}

impl FromStr for FieldName {
    type Err = NotAFieldName;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let allowed = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
        let valid = text.len() <= 40
            && text.bytes().all(allowed)
            && text.bytes().next().is_some_and(|first| first.is_ascii_lowercase());
        match text {
            "id" | "text" => Err(NotAFieldName::Taken),
            _ if valid => Ok(Self(text.to_owned())),
            _ => Err(NotAFieldName::Spelling),
        }
    }
}

/// A row of `knowledge_entries`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Described)]
pub struct KnowledgeEntry {
    pub knowledge_base_id: KnowledgeBaseId,
    pub id: EntryId,
    pub organization_id: OrganizationId,
    /// By field; a field without a value is omitted.
    #[serde(default)]
    pub values: BTreeMap<String, FieldValue>,
    pub text: Option<String>,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum FieldValue {
    Boolean(bool),
    Number(Number),
    Text(String),
}

impl fmt::Display for FieldValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Boolean(true) => f.write_str("yes"),
            Self::Boolean(false) => f.write_str("no"),
            Self::Number(number) => number.fmt(f),
            Self::Text(text) => f.write_str(text),
        }
    }
}

/// An entry's id within its knowledge base: 1 to 100 of `a-z`, `A-Z`, `0-9` and `-_.:`, beginning with a letter or
/// digit, so that a URL needs no escapes.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct EntryId(String);

shows_text!(EntryId);

crate::described! {
    EntryId => {"type": "string", "pattern": "^[A-Za-z0-9][A-Za-z0-9_.:-]{0,99}$"},
    FieldName => {"type": "string", "pattern": "^[a-z][a-z0-9_]{0,39}$", "not": {"enum": ["id", "text"]}},
    FieldValue => {"type": ["string", "number", "boolean"]},
}

#[derive(Debug, thiserror::Error)]
#[error("must be 1 to 100 letters (a-z), digits, or - _ . :, beginning with a letter or digit")]
pub struct NotAnEntryId;

impl FromStr for EntryId {
    type Err = NotAnEntryId;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b':');
        let valid = text.len() <= 100
            && text.bytes().all(allowed)
            && text.bytes().next().is_some_and(|first| first.is_ascii_alphanumeric());
        if valid { Ok(Self(text.to_owned())) } else { Err(NotAnEntryId) }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn names_that_every_entry_has_are_taken() {
        for name in ["id", "text"] {
            assert!(name.parse::<FieldName>().unwrap_err().to_string().starts_with("is taken"));
        }
    }

    proptest! {
        #[test]
        fn a_field_name_with_an_operator_is_a_name_of_an_argument(text in "[a-zA-Z0-9_ -]{0,45}") {
            if let Ok(name) = text.parse::<FieldName>() {
                let argument = format!("{name}_at_least");
                prop_assert!(argument.len() <= 64);
                prop_assert!(argument.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_'));
            }
        }

        #[test]
        fn an_entry_id_stands_in_a_path_as_it_is(text in "\\PC{0,120}") {
            if let Ok(id) = text.parse::<EntryId>() {
                prop_assert!(!id.as_str().contains(['/', '%', '?', '#', ' ']));
                prop_assert!(!matches!(id.as_str(), "" | "." | ".."));
            }
        }
    }
}
