//! `query`: searches a knowledge base.
//!
//! ```json
//! {"type": "query", "knowledge_base_id": "…", "query"?: Parameter,
//!  "filters"?: {"price": ["at_most", "at_least"], "city": {"one_of": Parameter}}}
//! ```
//!
//! The model sees `query` and an argument per filter (`price_at_most`). Filters select entries, then the words of `query` rank
//! them; the answer has the best five, at most 350 bytes each, and the number of all matches.

mod filters;
mod index;
mod knowledge;

use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use self::filters::{Filter, Filters};
use super::{
    ActionCall, Parameter,
    no_request::{NoRequest, NotRun},
    parameters::{Place, fixed_text, object, parameter},
    variables::Encoding,
};
use crate::{
    Result,
    error::{Problems, found},
    fields::Fields,
    models::{Fault, KnowledgeBase, KnowledgeBaseId},
    tool::ToolOutcome,
};

pub use self::{
    index::{Builder, Index, IndexCondition, IndexMatches, IndexOperator},
    knowledge::Knowledge,
};

/// Time to search and answer after the entries are read.
const SEARCHING: Duration = Duration::from_millis(500);

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Query {
    knowledge_base_id: KnowledgeBaseId,
    #[serde(default = "asked_by_the_model")]
    query: Parameter,
    #[serde(default, skip_serializing_if = "Filters::is_usual")]
    filters: Filters,
}

struct SearchRequest<'a> {
    words: String,
    filters: Vec<(&'a Filter, Value)>,
}

fn asked_by_the_model() -> Parameter {
    Parameter::Ai {
        prompt: "The search terms, in the caller's own words".into(),
        schema: object([("type", Some("string".into()))]),
        required: true,
    }
}

impl Query {
    pub(super) fn read(fields: &mut Fields<'_>) -> Option<Self> {
        let knowledge_base_id = fields.required_parse("knowledge_base_id");
        let query = if fields.get("query").is_some() { parameter(fields, "query") } else { Some(asked_by_the_model()) };
        if let Some(query) = &query {
            fixed_text(query, "query", fields);
        }
        let filters = Filters::read(fields);
        Some(Self { knowledge_base_id: knowledge_base_id?, query: query?, filters })
    }

    /// The default search of a base: the model gives the query and may filter by every field.
    ///
    /// # Errors
    /// As [`Query::resolve`].
    pub fn over(base: &KnowledgeBase) -> Result<Self> {
        let mut query = Self { knowledge_base_id: base.id, query: asked_by_the_model(), filters: Filters::Usual };
        query.resolve(base, true)?;
        Ok(query)
    }

    pub fn knowledge_base_id(&self) -> KnowledgeBaseId {
        self.knowledge_base_id
    }

    /// Derives the filters from the base's fields when the tool is saved, and stores them. `for_model`: a model will call the
    /// tool.
    ///
    /// # Errors
    /// [`Invalid`](crate::Error::Invalid) naming each filter that does not fit the base.
    pub fn resolve(&mut self, base: &KnowledgeBase, for_model: bool) -> Result<()> {
        let mut problems = Problems::default();
        if base.deleting {
            problems.add("knowledge_base_id", "is being deleted");
        }
        self.filters.resolve(base, for_model, &mut problems);
        problems.into_result(Some(()))
    }

    pub(super) fn parameters(&self) -> Vec<(Place, &Parameter)> {
        std::iter::once((Place::named("query"), &self.query)).chain(self.filters.parameters()).collect()
    }

    pub(super) fn static_config(&self) -> Value {
        Value::Object(object([
            ("knowledge_base_id", Some(json!(self.knowledge_base_id))),
            ("query", self.query.hidden()),
            ("filters", self.filters.hidden()),
        ]))
    }

    /// The words and filters of author and model.
    fn asked(&self, call: ActionCall<'_>) -> Result<SearchRequest<'_>, NoRequest> {
        let value = |parameter: &Parameter, argument: &str| {
            parameter.value(call.arguments.get(argument), call.context.conversation, Encoding::Plain)
        };
        let words = value(&self.query, "query")?.as_ref().and_then(Value::as_str).unwrap_or_default().to_owned();
        let mut filters = Vec::new();
        for filter in self.filters.all() {
            let Some(parameter) = &filter.parameter else { continue };
            // An empty list is no filter, like an empty text.
            let given = value(parameter, &filter.argument())?;
            let given = given.filter(|given| given.as_array().is_none_or(|list| !list.is_empty()));
            filters.extend(given.map(|given| (filter, given)));
        }
        if words.trim().is_empty() && filters.is_empty() {
            return Err("Put the search terms into the argument \"query\".".into());
        }
        Ok(SearchRequest { words, filters })
    }

    /// The search of [`Query::run`]: `{"knowledge_base_id", "query", "filters": {"price_at_most": 5}}`.
    pub(super) fn preview(&self, call: ActionCall<'_>) -> Result<Value, NotRun> {
        let SearchRequest { words, filters } = self.asked(call)?;
        let filters: Map<String, Value> =
            filters.into_iter().map(|(filter, given)| (filter.argument(), given)).collect();
        Ok(json!({"knowledge_base_id": self.knowledge_base_id, "query": words, "filters": filters}))
    }

    /// Returns `{"matched": 12, "entries": ["…"], "note"?: "…"}`; the note also reports an empty result.
    pub(super) async fn run(&self, call: ActionCall<'_>) -> Result<ToolOutcome, NotRun> {
        let asked = self.asked(call)?;
        let ActionCall { services, context, .. } = call;
        let query = asked.words.as_str();
        let deadline = context.deadline.reserving(SEARCHING);
        let opened = found(services.knowledge.open(context.organization, self.knowledge_base_id, deadline).await)?;
        let Some((base, index)) = opened.filter(|(base, _)| !base.deleting) else {
            return Ok(ToolOutcome::failed(
                "The knowledge base is no longer there. Say that you do not have this information.",
            )
            .at_fault(Fault::Configuration));
        };
        let Some(index) = index else {
            let sentence = "The knowledge base could not be read in time; try again in a moment.";
            return Ok(ToolOutcome::failed(sentence).at_fault(Fault::Ours));
        };
        let mut conditions = Vec::new();
        for (filter, given) in &asked.filters {
            match index.condition(&filter.field, filter.operator, given) {
                Ok(condition) => conditions.push(condition),
                Err(sentence) => return Ok(ToolOutcome::failed(sentence).at_fault(Fault::Model)),
            }
        }
        let found = index.search(query, &conditions);
        let note = if index.is_empty() {
            Some(format!("The knowledge base \"{}\" is empty. Say that you do not have this information.", base.name))
        } else if found.matched == 0 {
            Some(format!(
                "Nothing in the knowledge base \"{}\" matches. Say so, or ask for something else; do not make anything up.",
                base.name
            ))
        } else if !found.by_words && !query.trim().is_empty() {
            Some("These fit the filters, but contain none of the words of the query.".to_owned())
        } else {
            None
        };
        Ok(ToolOutcome::succeeded(Value::Object(object([
            ("matched", Some(found.matched.into())),
            ("entries", Some(found.entries.into())),
            ("note", note.map(Value::from)),
        ]))))
    }
}
