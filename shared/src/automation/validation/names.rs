//! Checks names, and finds secrets in variables. Only saving and activating check them, so running automations continue.

use serde_json::Value;

use crate::{
    automation::definition::{
        Definition,
        diagnostics::{Code, Diagnostic, Diagnostics, child},
        steps::Step,
    },
    fields::unseen_mark,
    redaction,
};

/// Names with a special meaning in JavaScript: an output read under such a name would alter a page's objects.
const OF_JAVASCRIPT: [&str; 3] = ["__proto__", "constructor", "prototype"];

pub(super) fn check(definition: &Definition, diagnostics: &mut Diagnostics) {
    if let Some(mark) = unseen_mark(&definition.name) {
        let message = format!("The name has the invisible character U+{:04X}.", u32::from(mark));
        let hint = "Write the name again without it.";
        diagnostics.push(Diagnostic::error(Code::InvalidValue, "/name", message, hint));
    }
    for step in definition.all_steps() {
        let item = if let Step::ForEach(each) = step { Some(each.item.as_str()) } else { None };
        for (field, name) in [("id", step.id()), ("output_as", step.output_as()), ("as", item)] {
            let Some(name) = name else { continue };
            check_name(name, &child(step.pointer(), field), diagnostics);
        }
    }
    for (name, value) in &definition.variables {
        let place = child("/variables", name);
        check_name(name, &place, diagnostics);
        check_secret(name, value, &place, diagnostics);
    }
}

fn check_name(name: &str, pointer: &str, diagnostics: &mut Diagnostics) {
    let message = match unseen_mark(name) {
        Some(mark) => format!("The name has the invisible character U+{:04X}.", u32::from(mark)),
        None if OF_JAVASCRIPT.contains(&name) => {
            format!("{name} means something else in JavaScript, so nothing can have this name.")
        }
        None => return,
    };
    let hint = "Choose another name, for example \"found_rows\".";
    diagnostics.push(Diagnostic::error(Code::InvalidValue, pointer, message, hint));
}

/// Every reader of the automation sees its variables, and versions keep them for good.
fn check_secret(name: &str, value: &Value, pointer: &str, diagnostics: &mut Diagnostics) {
    match value {
        Value::Object(members) => {
            for (name, value) in members {
                check_secret(name, value, &child(pointer, name), diagnostics);
            }
        }
        Value::Array(items) => {
            for (index, value) in items.iter().enumerate() {
                check_secret(name, value, &child(pointer, index.to_string()), diagnostics);
            }
        }
        Value::String(text) if !text.trim().is_empty() && redaction::is_secret(name) => {
            let message = format!("{name} looks like a secret, and every reader of the automation sees its variables.");
            let hint = "Put it into the tool that needs it, where headers and credentials are kept secret, and take the variable out. \
                        If it is no secret, give it another name.";
            diagnostics.push(Diagnostic::error(Code::SecretInVariable, pointer, message, hint));
        }
        _ => {}
    }
}
