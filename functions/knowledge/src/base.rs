//! The body of `POST /api/{slug}/knowledge-bases`.

use shared::{
    declared::{Body, Given, Name, Text},
    described::{Described, Json, Schemas, json},
    fields::Fields,
    models::{Field, FieldName, KnowledgeBase, OrganizationId},
};

const LONGEST_NAME: usize = 100;
const LONGEST_DESCRIPTION: usize = 1_000;
const LONGEST_LABEL: usize = 60;

#[derive(Body)]
pub(crate) struct NewKnowledgeBase {
    #[schema(minLength = 1)]
    name: Name<LONGEST_NAME>,
    description: Option<Text<LONGEST_DESCRIPTION>>,
    fields: Option<Declarations>,
}

impl NewKnowledgeBase {
    pub(crate) fn of(self, organization: OrganizationId) -> KnowledgeBase {
        let fields = self.fields.map(|Declarations(fields)| fields).unwrap_or_default();
        KnowledgeBase::new(organization, self.name.into(), self.description.map(String::from), fields)
    }
}

/// Fields, each name once.
pub(crate) struct Declarations(Vec<Field>);

impl Described for Declarations {
    fn schema(schemas: &mut Schemas) -> Json {
        json!({"type": "array", "maxItems": KnowledgeBase::MOST_FIELDS, "items": Field::schema(schemas)})
    }
}

impl Given for Declarations {
    fn read(fields: &mut Fields<'_>, name: &'static str) -> Option<Self> {
        let declared = fields.list(name, "fields")?;
        if declared.len() > KnowledgeBase::MOST_FIELDS {
            fields.problem(name, format!("has more than {} fields", KnowledgeBase::MOST_FIELDS));
            return None;
        }
        let mut read: Vec<Field> = Vec::with_capacity(declared.len());
        for (index, value) in declared.iter().enumerate() {
            let path = format!("{name}[{index}]");
            let Some(mut field) = Fields::of(value, path.as_str(), fields.problems()) else { continue };
            let name: Option<FieldName> = field.required_parse("name");
            let kind = field.required_parse("type");
            let label = field.name("label", LONGEST_LABEL);
            if label.as_deref().is_some_and(|label| ["id", "text"].contains(&&*label.to_lowercase())) {
                field.problem("label", "must not be id or text: a table's column of that name is the entry's own");
            }
            if let Some(name) = name.as_ref().filter(|name| read.iter().any(|field| field.name == **name)) {
                field.problem("name", format!("{name} is declared twice"));
            }
            field.finish();
            if let (Some(name), Some(kind)) = (name, kind) {
                read.push(Field { name, kind, label });
            }
        }
        Some(Self(read))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;
    use shared::{Error, Result, declared};

    use super::*;

    fn read(body: &Value) -> Result<KnowledgeBase> {
        let new: NewKnowledgeBase = declared::read(body, |_, _| ())?;
        Ok(new.of(OrganizationId::generate()))
    }

    fn wrong(body: &Value) -> Vec<String> {
        match read(body) {
            Err(Error::Invalid(problems)) => problems.iter().map(|problem| problem.field.clone()).collect(),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn everything_wrong_is_named_at_once() {
        let body = json!({"name": " ", "colour": 1, "fields": [
            {"name": "price", "type": "money"}, {"name": "Price €"}, {"name": "id", "type": "text"}, 5,
            {"name": "city", "type": "text"}, {"name": "city", "type": "number", "unit": "x"},
        ]});
        assert_eq!(
            wrong(&body),
            [
                "name",
                "fields[0].type",
                "fields[1].name",
                "fields[1].type",
                "fields[2].name",
                "fields[3]",
                "fields[5].name",
                "fields[5].unit",
                "colour",
            ]
        );
        let labelled = json!({"name": "Homes", "fields": [{"name": "ref", "type": "text", "label": "ID"}]});
        assert_eq!(wrong(&labelled), ["fields[0].label"]);
        assert_eq!(wrong(&json!({"name": "Homes", "fields": {}})), ["fields"]);
        let many: Vec<Value> = (0..21).map(|index| json!({"name": format!("f{index}"), "type": "text"})).collect();
        assert_eq!(wrong(&json!({"name": "Homes", "fields": many})), ["fields"]);
        assert_eq!(wrong(&json!([])), ["body"]);
    }

    #[test]
    fn text_alone_needs_no_fields() {
        let base = read(&json!({"name": "Questions and answers"})).unwrap();
        assert!(base.fields.is_empty() && base.description.is_none());
    }
}
