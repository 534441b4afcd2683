//! Bodies of forms, `application/x-www-form-urlencoded`.

use serde_json::{Map, Value};
use url::form_urlencoded::Serializer;

use super::RequestBody;

impl RequestBody {
    /// Nested values are named in brackets, as Stripe reads them.
    pub fn form(members: &Map<String, Value>) -> Self {
        let mut form = Serializer::new(String::new());
        for (name, value) in members {
            add(&mut form, name, value);
        }
        Self::Form(form.finish())
    }
}

pub fn field_text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

fn add(form: &mut Serializer<'_, String>, name: &str, value: &Value) {
    match value {
        Value::Null => {}
        Value::Array(items) => {
            items.iter().enumerate().for_each(|(at, item)| add(form, &format!("{name}[{at}]"), item));
        }
        Value::Object(members) => {
            members.iter().for_each(|(member, value)| add(form, &format!("{name}[{member}]"), value));
        }
        value => drop(form.append_pair(name, &field_text(value))),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_form_writes_nested_fields_in_brackets() {
        let members = json!({
            "amount": 5, "metadata": {"a b": "c&d"}, "expand": ["x", "y"], "items": [{"price": "p"}],
            "off": false, "none": null,
        });
        let form =
            "amount=5&expand%5B0%5D=x&expand%5B1%5D=y&items%5B0%5D%5Bprice%5D=p&metadata%5Ba+b%5D=c%26d&off=false";
        assert_eq!(RequestBody::form(members.as_object().unwrap()), RequestBody::Form(form.to_owned()));
    }
}
