//! `query`: looks something up in a knowledge base.
//!
//! ```json
//! {"type": "query", "knowledge_base_id": "…", "query": Parameter}
//! ```

use serde_json::{Map, Value, json};
use uuid::Uuid;

use super::{
    Parameter, Ran,
    config::{Place, object, parameter},
};
use crate::fields::Fields;

#[derive(Debug, Clone, PartialEq)]
pub struct Query {
    knowledge_base_id: Uuid,
    query: Parameter,
}

impl Query {
    pub(super) fn read(fields: &mut Fields<'_>) -> Option<Self> {
        let knowledge_base_id = fields.required_parse("knowledge_base_id");
        let query = if fields.get("query").is_some() {
            parameter(fields, "query")
        } else {
            Some(Parameter::Ai {
                prompt: "What to look for, in the caller's words".into(),
                schema: object([("type", Some("string".into()))]),
                required: true,
            })
        };
        if matches!(query, Some(Parameter::ArrayExtendable { .. })) {
            fields.problem("query.mode", "must be fixed or ai");
        }
        Some(Self { knowledge_base_id: knowledge_base_id?, query: query? })
    }

    pub(super) fn parameters(&self) -> Vec<(Place, &Parameter)> {
        vec![(Place::named("query"), &self.query)]
    }

    pub(super) fn static_config(&self) -> Value {
        Value::Object(object([
            ("knowledge_base_id", Some(json!(self.knowledge_base_id))),
            ("query", self.query.hidden()),
        ]))
    }

    pub(super) fn to_json(&self) -> Map<String, Value> {
        object([("knowledge_base_id", Some(json!(self.knowledge_base_id))), ("query", Some(self.query.to_json()))])
    }

    /// Knowledge bases are not searched yet, and the model is told so.
    #[expect(clippy::unused_self, reason = "every action runs on itself")]
    pub(super) fn run(&self) -> Ran {
        Ran::failed("The knowledge base cannot be searched yet. Say that you do not have this information.")
    }
}
