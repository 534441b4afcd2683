//! The body of `POST /api/{slug}/knowledge-bases`.

use serde_json::Value;
use shared::{
    Result,
    error::Problems,
    fields::{Fields, kind},
    models::{Field, FieldName, KnowledgeBase, OrganizationId},
};

const LONGEST_NAME: usize = 100;
const LONGEST_DESCRIPTION: usize = 1_000;
const LONGEST_LABEL: usize = 60;

/// `{name, description?, fields?: [{name, type: text | number | boolean, label?}]}`
pub(crate) fn read(organization: OrganizationId, body: &Value) -> Result<KnowledgeBase> {
    let mut problems = Problems::default();
    let base = Fields::of(body, "", &mut problems).and_then(|mut fields| {
        let name = fields.required_name("name", LONGEST_NAME);
        let description = fields.text("description", LONGEST_DESCRIPTION);
        let declared = read_fields(&mut fields);
        fields.finish();
        Some(KnowledgeBase::new(organization, name?, description, declared))
    });
    problems.into_result(base)
}

fn read_fields(fields: &mut Fields<'_>) -> Vec<Field> {
    let declared = match fields.get("fields") {
        None => return Vec::new(),
        Some(Value::Array(declared)) => declared,
        Some(other) => {
            fields.problem("fields", format!("must be a list, not {}", kind(other)));
            return Vec::new();
        }
    };
    if declared.len() > KnowledgeBase::MOST_FIELDS {
        fields.problem("fields", format!("has more than {} fields", KnowledgeBase::MOST_FIELDS));
        return Vec::new();
    }
    let mut read: Vec<Field> = Vec::with_capacity(declared.len());
    for (index, value) in declared.iter().enumerate() {
        let path = format!("fields[{index}]");
        let Some(mut field) = Fields::of(value, path.as_str(), fields.problems()) else { continue };
        let name: Option<FieldName> = field.required_parse("name");
        let kind = field.required_parse("type");
        let label = field.name("label", LONGEST_LABEL);
        if let Some(name) = name.as_ref().filter(|name| read.iter().any(|field| field.name == **name)) {
            field.problem("name", format!("{name} is declared twice"));
        }
        field.finish();
        if let (Some(name), Some(kind)) = (name, kind) {
            read.push(Field { name, kind, label });
        }
    }
    read
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use shared::Error;

    use super::*;

    fn wrong(body: &Value) -> Vec<String> {
        match read(OrganizationId::generate(), body) {
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
        assert_eq!(wrong(&json!({"name": "Homes", "fields": {}})), ["fields"]);
        let many: Vec<Value> = (0..21).map(|index| json!({"name": format!("f{index}"), "type": "text"})).collect();
        assert_eq!(wrong(&json!({"name": "Homes", "fields": many})), ["fields"]);
        assert_eq!(wrong(&json!([])), ["body"]);
    }

    #[test]
    fn text_alone_needs_no_fields() {
        let base = read(OrganizationId::generate(), &json!({"name": "Questions and answers"})).unwrap();
        assert!(base.fields.is_empty() && base.description.is_none());
    }
}
