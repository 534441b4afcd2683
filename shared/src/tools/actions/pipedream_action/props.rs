//! Validates a configuration against the action's props; Pipedream itself checks them only at run time.

use serde_json::{Map, Value, json};

use super::{Parameter, PipedreamAction};
use crate::{
    actions::parameter::unlabelled,
    clients::pipedream::{Account, PipedreamComponent, Prop},
    error::Problems,
    fields::kind,
};

/// Props listed beside an unknown one.
const NAMED: usize = 30;

impl PipedreamAction {
    /// Checks the configuration against Pipedream's current version of the action, and against its account. `known`: the
    /// configuration saved before; Pipedream does not return the props of a pinned older version.
    pub fn check_against_component(
        &self,
        action: &PipedreamComponent,
        account: Option<&Account>,
        known: Option<&Self>,
        problems: &mut Problems,
    ) {
        let metadata = &self.metadata;
        let add = |problems: &mut Problems, name: &str, problem: String| {
            problems.add(format!("pipedreamMetadata.{name}"), problem);
        };
        let app = action.app().filter(|app| *app != metadata.app);
        if let Some(app) = app {
            add(problems, "app", format!("is not the app of {}, which is {app}", action.key));
        }
        if let Some(account) = account {
            let of = &account.app;
            if app.is_none() && !of.is_empty() && *of != metadata.app {
                add(problems, "accountId", format!("is an account of {of}, not of {}", metadata.app));
            } else if !account.works() && known.is_none_or(|known| known.metadata.account_id != metadata.account_id) {
                add(problems, "accountId", "no longer works; connect it again at Pipedream".into());
            }
        }
        let accounts: Vec<&str> = of_accounts(action).collect();
        if let Some(prop) = metadata.app_prop.as_deref().filter(|prop| !accounts.contains(prop)) {
            let named = accounts.join(", ");
            add(problems, "appProp", format!("{prop} takes no account; the prop of the action that does is {named}"));
        }
        let pinned = metadata.version.as_ref().filter(|version| **version != action.version);
        match pinned {
            Some(pinned) if known.is_some_and(|known| known.metadata.version.as_ref() == Some(pinned)) => {}
            Some(pinned) => {
                let now = &action.version;
                add(
                    problems,
                    "version",
                    format!(
                        "{pinned} is not the current version at Pipedream, {now}; leave it out to use the current one"
                    ),
                );
            }
            None => self.hold_props(action, problems),
        }
    }

    fn hold_props(&self, action: &PipedreamComponent, problems: &mut Problems) {
        let preloaded = self
            .preloaded
            .iter()
            .map(|(name, value)| (format!("preloadedParams.{name}"), name, Parameter::fixed(value.clone())));
        let params = self.params.iter().map(|(name, parameter)| (format!("params.{name}"), name, parameter.clone()));
        for (field, name, parameter) in preloaded.chain(params) {
            match action.props().iter().find(|prop| prop.name == *name) {
                Some(prop) if prop.is_account() => {
                    problems.add(field, "is filled in with the account of pipedreamMetadata.accountId; leave it out");
                }
                Some(prop) => {
                    if let Some(problem) = misfit(prop, &parameter) {
                        problems.add(field, problem);
                    }
                }
                // Dynamic props are known only at run time.
                None if self.metadata.dynamic_props_id.is_some() => {}
                None => {
                    let names: Vec<&str> =
                        action.props().iter().filter(|prop| !prop.is_account()).map(|prop| &*prop.name).collect();
                    let named = names.iter().take(NAMED).copied().collect::<Vec<_>>().join(", ");
                    problems.add(field, format!("is not a prop of {}, which has {named}", action.key));
                }
            }
        }
        let is_whole = self.metadata.dynamic_props_id.is_none();
        for prop in action.props().iter().filter(|prop| is_whole && prop.is_required()) {
            if !self.params.contains_key(&prop.name) && !self.preloaded.contains_key(&prop.name) {
                let problem = format!("is required by {} ({})", action.key, prop.kind);
                problems.add(format!("params.{}", prop.name), problem);
            }
        }
    }

    /// Gives untyped parameters and items the types of their props, and turns single values into lists where the prop is a list.
    pub(super) fn take_types(&mut self, action: &PipedreamComponent) {
        for prop in action.props() {
            let item = prop.kind.strip_suffix("[]");
            if let (Some(_), Some(value)) = (item, self.preloaded.get_mut(&prop.name)) {
                wrap(value);
            }
            match self.params.get_mut(&prop.name) {
                Some(Parameter::Fixed { value, .. }) if item.is_some() => wrap(value),
                Some(Parameter::ArrayExtendable { declared_item, .. }) => *declared_item = item_of(&prop.kind),
                Some(Parameter::Ai { schema, .. }) if *schema == plain("string") => {
                    if let Some(typed) = schema_of(&prop.kind) {
                        *schema = typed;
                    }
                }
                _ => {}
            }
        }
    }

    /// The arguments, with a model's single value of a list as a list.
    pub(in super::super) fn with_lists(&self, arguments: &Map<String, Value>) -> Map<String, Value> {
        let is_list = |name: &String| match self.params.get(name) {
            Some(Parameter::Ai { schema, .. }) => schema.get("type").is_some_and(|kind| kind == "array"),
            Some(Parameter::ArrayExtendable { .. }) => true,
            _ => false,
        };
        let given = arguments.iter().map(|(name, value)| {
            let mut value = value.clone();
            if is_list(name) && value.as_str() != Some("") {
                wrap(&mut value);
            }
            (name.clone(), value)
        });
        given.collect()
    }
}

fn of_accounts(action: &PipedreamComponent) -> impl Iterator<Item = &str> {
    action.props().iter().filter(|prop| prop.is_account()).map(|prop| prop.name.as_str())
}

fn wrap(value: &mut Value) {
    if matches!(value, Value::String(_) | Value::Number(_) | Value::Bool(_)) {
        *value = json!([value.take()]);
    }
}

fn plain(kind: &str) -> Map<String, Value> {
    Map::from_iter([("type".to_owned(), kind.into())])
}

/// The schema of a prop's values; `None` for text or any value.
fn schema_of(kind: &str) -> Option<Map<String, Value>> {
    match kind {
        "integer" | "boolean" | "object" => Some(plain(kind)),
        _ => {
            let mut list = plain("array");
            list.insert("items".into(), json!({"type": item_of(kind)?}));
            Some(list)
        }
    }
}

/// The type of an item of a prop that is a list.
fn item_of(kind: &str) -> Option<&'static str> {
    match kind {
        "string[]" => Some("string"),
        "integer[]" => Some("integer"),
        _ => None,
    }
}

fn misfit(prop: &Prop, parameter: &Parameter) -> Option<String> {
    let wanted = match prop.kind.as_str() {
        "string" => "text",
        "integer" => "a whole number",
        "boolean" => "true or false",
        "object" => "an object",
        "string[]" => "a list of texts",
        "integer[]" => "a list of whole numbers",
        _ => return None,
    };
    let fits = match parameter {
        Parameter::Fixed { value, .. } => fits(&prop.kind, value),
        Parameter::Ai { schema, .. } => {
            let declared = schema.get("type").and_then(Value::as_str).unwrap_or("string");
            // A plain text parameter takes the prop's type on saving.
            *schema == plain("string")
                || matches!(
                    (prop.kind.as_str(), declared),
                    ("string", "string")
                        | ("integer", "integer")
                        | ("boolean", "boolean")
                        | ("object", "object")
                        | ("string[]" | "integer[]", "array")
                )
        }
        Parameter::ArrayExtendable { fixed, .. } => {
            prop.kind.ends_with("[]") && fits(&prop.kind, &Value::Array(fixed.clone()))
        }
    };
    let given = match parameter {
        Parameter::Fixed { value, .. } => kind(value),
        Parameter::Ai { .. } => "of the type in its schema",
        Parameter::ArrayExtendable { .. } => "a list that can be extended",
    };
    (!fits).then(|| format!("must be {wanted} for this action, not {given}"))
}

fn fits(kind: &str, value: &Value) -> bool {
    match (kind, unlabelled(value)) {
        ("string", Value::String(_)) | ("boolean", Value::Bool(_)) | ("object", Value::Object(_)) => true,
        ("integer", Value::Number(number)) => number.is_i64(),
        ("string[]" | "integer[]", Value::Array(items)) => {
            items.iter().all(|item| fits(kind.trim_end_matches("[]"), item))
        }
        // A single value becomes a list.
        ("string[]" | "integer[]", one) => fits(kind.trim_end_matches("[]"), one),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_extended_list_has_the_items_of_its_prop() {
        let labelled = json!({"__lv": {"label": "Sheet 1", "value": 1}});
        for (kind, fixed, item) in [
            ("integer[]", json!([]), "integer"),
            ("integer[]", json!([1, 2]), "integer"),
            ("integer[]", json!([labelled]), "integer"),
            ("string[]", json!([labelled]), "string"),
            ("any", json!([1]), "integer"),
            ("any", json!([labelled]), "integer"),
        ] {
            let component =
                json!({"key": "k", "version": "1.0.0", "configurable_props": [{"name": "ids", "type": kind}]});
            let component: PipedreamComponent = serde_json::from_value(component).unwrap();
            let extension = json!({"enabled": true, "prompt": "More"});
            let mut action: PipedreamAction = serde_json::from_value(json!({
                "pipedreamMetadata": {"app": "a", "accountId": "apn_1", "actionKey": "k"},
                "params": {"ids": {"mode": "array_extendable", "fixedValues": fixed, "aiExtension": extension}},
            }))
            .unwrap();
            action.take_types(&component);
            let (property, _) = action.params["ids"].property().unwrap();
            assert_eq!(property["items"], json!({"type": item}), "{kind}");
            assert_eq!(action.with_lists(&Map::from_iter([("ids".to_owned(), json!(3))]))["ids"], json!([3]));
        }
    }
}
