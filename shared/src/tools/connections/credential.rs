//! The fields of a credential that the organization gives.

use secrecy::SecretString;
use serde_json::{Map, Value};

use crate::{Error, Result, error::Problems, models::CredentialField};

/// In bytes.
const LONGEST_FIELD: usize = 4_000;

/// The content of the secret, and the name of the account.
pub(super) fn credential(fields: &[CredentialField], body: &Value) -> Result<(SecretString, String)> {
    let mut problems = Problems::default();
    let Value::Object(given) = body else { return Err(Error::invalid("body", "must be an object")) };
    let (mut content, mut names) = (Map::new(), Vec::new());
    for CredentialField { name, description, secret, in_address } in fields {
        match given.get(name) {
            Some(Value::String(text)) if text.len() > LONGEST_FIELD => {
                problems.add(name.clone(), format!("must have at most {LONGEST_FIELD} bytes"));
            }
            Some(Value::String(text)) if !text.trim().is_empty() => {
                let fits = |letter: char| !letter.is_control() && (letter.is_ascii() || !secret);
                if !text.trim().chars().all(fits) {
                    problems.add(name.clone(), "holds characters that do not belong there; copy it again");
                }
                if *in_address && !CredentialField::fits_address(text.trim()) {
                    let problem = "must be only letters, digits and hyphens, without https:// and without the rest of the address";
                    problems.add(name.clone(), problem);
                }
                if !secret {
                    names.push(text.trim().to_owned());
                }
                content.insert(name.clone(), text.trim().into());
            }
            Some(Value::String(_)) | None => problems.add(name.clone(), format!("is required: {description}")),
            Some(_) => problems.add(name.clone(), "must be text"),
        }
    }
    for name in given.keys().filter(|name| !fields.iter().any(|field| field.name == **name)) {
        let known: Vec<&str> = fields.iter().map(|field| field.name.as_str()).collect();
        problems.add(name.clone(), format!("is unknown; the fields are {}", known.join(", ")));
    }
    let content = SecretString::from(Value::Object(content).to_string());
    problems.into_result(Some((content, names.join(", "))))
}
