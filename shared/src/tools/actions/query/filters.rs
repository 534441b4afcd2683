//! Filters of a query: fields, operators, and parameters.
//!
//! An author lists the operators of a field (`{"price": ["at_most"]}`: the model may use them) or gives an operator its own
//! parameter (`{"available": {"equals": {"mode": "fixed", "value": true}}}`). [`Filters::resolve`] derives missing parameters
//! from the base's fields; stored filters have all of them.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value, json};

use super::{super::parameters::Place, index::IndexOperator};
use crate::{
    actions::Parameter,
    error::Problems,
    fields::{Fields, kind},
    models::{Field, FieldType, KnowledgeBase},
};

#[derive(Debug, Clone, Default, PartialEq)]
pub(super) enum Filters {
    /// Not given: the defaults for the base's fields.
    #[default]
    Usual,
    Chosen(Vec<Filter>),
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Filter {
    pub(super) field: String,
    pub(super) operator: IndexOperator,
    /// `None` until derived.
    pub(super) parameter: Option<Parameter>,
}

impl IndexOperator {
    /// Whether an argument of this name could be a filter, of any field.
    pub(in super::super) fn ends(argument: &str) -> bool {
        let field = |operator: Self| argument.strip_suffix(operator.as_str());
        Self::ALL.into_iter().filter_map(field).any(|field| field.ends_with('_'))
    }

    const fn of(kind: FieldType) -> &'static [Self] {
        match kind {
            FieldType::Text => &[Self::Equals, Self::OneOf],
            FieldType::Number => &[Self::Equals, Self::AtMost, Self::AtLeast, Self::OneOf],
            FieldType::Boolean => &[Self::Equals],
        }
    }

    /// The defaults for a model.
    const fn usual(kind: FieldType) -> &'static [Self] {
        match kind {
            FieldType::Text => &[Self::OneOf],
            FieldType::Number => &[Self::AtMost, Self::AtLeast],
            FieldType::Boolean => &[Self::Equals],
        }
    }
}

impl Filter {
    pub(super) fn argument(&self) -> String {
        format!("{}_{}", self.field, self.operator.as_str())
    }

    fn path(&self) -> String {
        format!("filters.{}.{}", self.field, self.operator.as_str())
    }

    /// The parameter for the model, if the author named only the operator.
    fn derived(&self, field: &Field) -> Parameter {
        let label = field.shown();
        let prompt = match self.operator {
            IndexOperator::Equals if field.kind == FieldType::Boolean => {
                format!("Only entries where this is so (true) or is not (false): {label}")
            }
            IndexOperator::Equals => format!("Only entries with exactly this {label}"),
            IndexOperator::AtMost => format!("Only entries with at most this {label}"),
            IndexOperator::AtLeast => format!("Only entries with at least this {label}"),
            IndexOperator::OneOf => format!("Only entries with one of these: {label}"),
        };
        Parameter::Ai { prompt, schema: schema(field.kind, self.operator), required: false }
    }

    fn check(&self, parameter: &mut Parameter, field: &Field, problems: &mut Problems) {
        let must = schema(field.kind, self.operator);
        match parameter {
            Parameter::ArrayExtendable { .. } => problems.add(format!("{}.mode", self.path()), "must be fixed or ai"),
            Parameter::Fixed { value, .. } if !fits(value, field.kind, self.operator) => {
                let what = match (field.kind, self.operator) {
                    (FieldType::Boolean, _) => "true or false",
                    (FieldType::Number, IndexOperator::OneOf) => "a list of numbers",
                    (FieldType::Number, _) => "a number",
                    (FieldType::Text, IndexOperator::OneOf) => "a list of texts",
                    (FieldType::Text, _) => "text",
                };
                problems.add(format!("{}.value", self.path()), format!("must be {what}"));
            }
            Parameter::Fixed { .. } => {}
            Parameter::Ai { schema, .. } => {
                let undeclared = schema.len() == 1 && schema.get("type") == Some(&json!("string"));
                if undeclared {
                    *schema = must;
                } else if schema.get("type") != must.get("type") {
                    let must = must.get("type").and_then(Value::as_str).unwrap_or_default();
                    problems.add(format!("{}.schema.type", self.path()), format!("must be {must}"));
                }
            }
        }
    }
}

impl Filters {
    pub(super) fn read(fields: &mut Fields<'_>) -> Self {
        if fields.get("filters").is_none() {
            return Self::Usual;
        }
        let mut filters: Vec<Filter> = Vec::new();
        for (field, operators) in fields.members("filters") {
            let path = format!("{}.{field}", fields.path("filters"));
            let named: Vec<(String, Option<&Value>)> = match operators {
                Value::Array(names) => names
                    .iter()
                    .map(|name| (name.as_str().map_or_else(|| kind(name).to_owned(), str::to_owned), None))
                    .collect(),
                Value::Object(members) => members
                    .iter()
                    .map(|(name, value)| (name.clone(), Some(value).filter(|value| !value.is_null())))
                    .collect(),
                other => {
                    let problem = format!(
                        "must be a list of equals, at_most, at_least, one_of, or an object of them, not {}",
                        kind(other)
                    );
                    fields.problems().add(path, problem);
                    continue;
                }
            };
            for (name, value) in named {
                let Some(operator) = IndexOperator::named(&name) else {
                    fields.problems().add(
                        format!("{path}.{name}"),
                        "is not an operator; there are equals, at_most, at_least, one_of",
                    );
                    continue;
                };
                let parameter = match value {
                    None => None,
                    Some(value) => match Parameter::parse(value, format!("{path}.{name}"), fields.problems()) {
                        Some(parameter) => Some(parameter),
                        None => continue,
                    },
                };
                if !filters.iter().any(|filter| filter.field == *field && filter.operator == operator) {
                    filters.push(Filter { field: field.clone(), operator, parameter });
                }
            }
        }
        Self::Chosen(filters)
    }

    /// Derives missing parameters from the base's fields. `for_model`: a model will fill in arguments.
    pub(super) fn resolve(&mut self, base: &KnowledgeBase, for_model: bool, problems: &mut Problems) {
        let chosen = match std::mem::replace(self, Self::Usual) {
            Self::Chosen(filters) => filters,
            Self::Usual if for_model => usual(base),
            Self::Usual => Vec::new(),
        };
        let mut resolved = Vec::with_capacity(chosen.len());
        for mut filter in chosen {
            let Some(field) = base.field(&filter.field) else {
                let known: Vec<&str> = base.fields.iter().map(|field| field.name.as_str()).collect();
                let known = if known.is_empty() { "it has none".to_owned() } else { known.join(", ") };
                let problem = format!("is not a field of the knowledge base; known are {known}");
                problems.add(format!("filters.{}", filter.field), problem);
                continue;
            };
            if !IndexOperator::of(field.kind).contains(&filter.operator) {
                let possible: Vec<&str> =
                    IndexOperator::of(field.kind).iter().map(|operator| operator.as_str()).collect();
                problems.add(filter.path(), format!("is not for this field; possible are {}", possible.join(", ")));
                continue;
            }
            filter.parameter = match filter.parameter.take() {
                Some(mut parameter) => {
                    filter.check(&mut parameter, field, problems);
                    Some(parameter)
                }
                None if for_model => Some(filter.derived(field)),
                None => {
                    let problem = "cannot be filled in by a model: the tool only runs on call start; make it fixed";
                    problems.add(filter.path(), problem);
                    None
                }
            };
            resolved.push(filter);
        }
        *self = Self::Chosen(resolved);
    }

    pub(super) fn all(&self) -> &[Filter] {
        match self {
            Self::Usual => &[],
            Self::Chosen(filters) => filters,
        }
    }

    pub(super) fn parameters(&self) -> impl Iterator<Item = (Place, &Parameter)> {
        self.all().iter().filter_map(|filter| {
            let place = Place { field: filter.path(), argument: filter.argument() };
            filter.parameter.as_ref().map(|parameter| (place, parameter))
        })
    }

    pub(super) fn is_usual(&self) -> bool {
        matches!(self, Self::Usual)
    }

    pub(super) fn hidden(&self) -> Option<Value> {
        let hidden = by_field(self.all(), |parameter| parameter.and_then(Parameter::hidden));
        hidden.as_object().is_some_and(|hidden| !hidden.is_empty()).then_some(hidden)
    }
}

/// By field and operator; null until the parameter is derived.
impl Serialize for Filters {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        by_field(self.all(), |parameter| Some(json!(parameter))).serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Filters {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let fields = BTreeMap::<String, BTreeMap<IndexOperator, Option<Parameter>>>::deserialize(deserializer)?;
        let filters = fields.into_iter().flat_map(|(field, operators)| {
            operators.into_iter().map(move |(operator, parameter)| Filter { field: field.clone(), operator, parameter })
        });
        Ok(Self::Chosen(filters.collect()))
    }
}

fn usual(base: &KnowledgeBase) -> Vec<Filter> {
    let of_field = |field: &Field| {
        let name = field.name.to_string();
        let filter =
            move |operator: &IndexOperator| Filter { field: name.clone(), operator: *operator, parameter: None };
        IndexOperator::usual(field.kind).iter().map(filter)
    };
    base.fields.iter().flat_map(of_field).collect()
}

fn by_field(filters: &[Filter], value: impl Fn(Option<&Parameter>) -> Option<Value>) -> Value {
    let mut fields: Map<String, Value> = Map::new();
    for filter in filters {
        if let Some(value) = value(filter.parameter.as_ref()) {
            let operators = fields.entry(filter.field.clone()).or_insert_with(|| json!({}));
            if let Value::Object(operators) = operators {
                operators.insert(filter.operator.as_str().into(), value);
            }
        }
    }
    Value::Object(fields)
}

fn schema(kind: FieldType, operator: IndexOperator) -> Map<String, Value> {
    let one = match kind {
        FieldType::Text => "string",
        FieldType::Number => "number",
        FieldType::Boolean => "boolean",
    };
    let schema = match operator {
        IndexOperator::OneOf => json!({"type": "array", "items": {"type": one}}),
        _ => json!({"type": one}),
    };
    match schema {
        Value::Object(schema) => schema,
        _ => Map::new(),
    }
}

fn fits(value: &Value, kind: FieldType, operator: IndexOperator) -> bool {
    let one = |value: &Value| match kind {
        FieldType::Text => value.is_string(),
        FieldType::Number => value.is_number(),
        FieldType::Boolean => value.is_boolean(),
    };
    match (operator, value) {
        (IndexOperator::OneOf, Value::Array(values)) => !values.is_empty() && values.iter().all(one),
        (IndexOperator::OneOf, _) => false,
        _ => one(value),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn base() -> KnowledgeBase {
        let fields = json!([
            {"name": "city", "type": "text", "label": "City"}, {"name": "price", "type": "number"},
            {"name": "garden", "type": "boolean"},
        ]);
        let fields = serde_json::from_value(fields).unwrap();
        KnowledgeBase::new(crate::models::OrganizationId::generate(), "Homes".into(), None, fields)
    }

    fn resolve(filters: &Value, for_model: bool) -> Result<Filters, Vec<String>> {
        let body = json!({"filters": filters});
        let mut problems = Problems::default();
        let mut fields = Fields::of(&body, "", &mut problems).unwrap();
        let mut filters = Filters::read(&mut fields);
        filters.resolve(&base(), for_model, &mut problems);
        let named: Vec<String> = problems.iter().map(|problem| problem.field.clone()).collect();
        if named.is_empty() { Ok(filters) } else { Err(named) }
    }

    fn arguments(filters: &Filters) -> Vec<(String, Value)> {
        let property = |(place, parameter): (Place, &Parameter)| Some((place.argument, parameter.property()?.0));
        filters.parameters().filter_map(property).collect()
    }

    #[test]
    fn without_a_declaration_each_field_gets_the_filters_of_its_type() {
        let filters = resolve(&Value::Null, true).unwrap();
        let arguments = arguments(&filters);
        let names: Vec<&str> = arguments.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["city_one_of", "price_at_most", "price_at_least", "garden_equals"]);
        assert_eq!(arguments[0].1["items"]["type"], "string");
        assert_eq!(arguments[1].1["type"], "number");
        assert_eq!(arguments[3].1["type"], "boolean");
        assert!(arguments[0].1["description"].as_str().unwrap().contains("City"));
        assert!(filters.parameters().all(|(_, parameter)| !parameter.needs_model()));
    }

    #[test]
    fn none_are_derived_where_no_model_fills_them_in() {
        assert!(resolve(&Value::Null, false).unwrap().all().is_empty());
        assert_eq!(resolve(&json!({"price": ["at_most"]}), false).unwrap_err(), ["filters.price.at_most"]);
    }

    #[test]
    fn a_derived_filter_is_stored_and_read_back() {
        let filters =
            resolve(&json!({"price": ["at_most"], "garden": {"equals": {"mode": "fixed", "value": true}}}), true);
        let filters = filters.unwrap();
        assert_eq!(resolve(&json!(filters), true).unwrap(), filters);
        assert_eq!(serde_json::from_value::<Filters>(json!(filters)).unwrap(), filters);
        assert_eq!(filters.hidden().unwrap(), json!({"garden": {"equals": true}}));
        assert_eq!(arguments(&filters).len(), 1);
        let none = resolve(&json!({}), true).unwrap();
        assert_eq!((none.all().len(), none.is_usual(), json!(none)), (0, false, json!({})));
    }

    #[test]
    fn a_value_that_does_not_fit_the_field_is_named() {
        for (filters, named) in [
            (json!({"colour": ["equals"]}), "filters.colour"),
            (json!({"city": ["at_most"]}), "filters.city.at_most"),
            (json!({"garden": ["one_of"]}), "filters.garden.one_of"),
            (json!({"price": ["below"]}), "filters.price.below"),
            (json!({"price": "at_most"}), "filters.price"),
            (json!({"price": [5]}), "filters.price.a number"),
            (json!({"price": {"at_most": {"mode": "fixed", "value": "5"}}}), "filters.price.at_most.value"),
            (json!({"city": {"one_of": {"mode": "fixed", "value": []}}}), "filters.city.one_of.value"),
            (json!({"city": {"equals": {"mode": "ai"}}}), "filters.city.equals.prompt"),
            (
                json!({"price": {"equals": {"mode": "ai", "prompt": "p", "schema": {"type": "boolean"}}}}),
                "filters.price.equals.schema.type",
            ),
            (
                json!({"city": {"one_of": {"mode": "array_extendable", "fixedValues": ["x"]}}}),
                "filters.city.one_of.mode",
            ),
        ] {
            assert_eq!(resolve(&filters, true).unwrap_err(), [named], "{filters}");
        }
    }

    #[test]
    fn an_authors_own_words_and_choices_are_kept() {
        let own = json!({"city": {"equals": {"mode": "ai", "prompt": "Which town", "schema": {"type": "string", "enum": ["Porto", "Faro"]}}}});
        let filters = resolve(&own, true).unwrap();
        let [(name, property)] = &arguments(&filters)[..] else { panic!("one argument") };
        assert_eq!(
            (name.as_str(), &property["description"], &property["enum"][0]),
            ("city_equals", &json!("Which town"), &json!("Porto"))
        );
        let undeclared = resolve(&json!({"price": {"at_most": {"mode": "ai", "prompt": "Budget"}}}), true).unwrap();
        assert_eq!(arguments(&undeclared)[0].1["type"], "number");
    }
}
