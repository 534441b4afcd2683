//! `pipedream_action`: runs an action of Pipedream's with an account the organization has connected.
//!
//! ```json
//! {"type": "pipedream_action",
//!  "pipedreamMetadata": {"app": "gmail", "appName": "Gmail", "accountId": "apn_…", "actionKey": "gmail-send-email",
//!                        "version": "0.1.0", "appProp": "gmail", "dynamicPropsId": "dyp_…"},
//!  "preloadedParams": {…}, "params": {"to": Parameter, …}}
//! ```
//!
//! `version` and `appProp` are filled in from Pipedream when the tool is created.

mod props;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::{
    ActionCall, Parameter,
    no_request::{NoRequest, NotRun, without_secret},
    parameter::check_storable,
    parameters::{Place, all_hidden, argument_name, object, parameters},
    secret_values::{FixedValue, SentAs, first_secret},
    variables::{self, Encoding},
};
use crate::{
    Result,
    clients::{
        self,
        pipedream::{Finished, PipedreamComponent, Project, Run},
    },
    cut::cut,
    fields::Fields,
    models::Fault,
    redaction::{HiddenTexts, words},
    tool::{CallContext, Effect, ToolOutcome},
};

/// Bytes of Pipedream's error text passed to the model.
const LONGEST_REASON: usize = 250;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PipedreamAction {
    #[serde(rename = "pipedreamMetadata")]
    metadata: Metadata,
    #[serde(rename = "preloadedParams", default, skip_serializing_if = "Map::is_empty")]
    preloaded: Map<String, Value>,
    #[serde(default)]
    params: BTreeMap<String, Parameter>,
    /// True for actions chosen by an organization, whose effect is unknown.
    #[serde(skip, default = "yes")]
    effect: bool,
}

const fn yes() -> bool {
    true
}

#[declare::skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Metadata {
    app: String,
    app_name: Option<String>,
    account_id: String,
    action_key: String,
    version: Option<String>,
    app_prop: Option<String>,
    dynamic_props_id: Option<String>,
}

impl PipedreamAction {
    pub(super) fn read(fields: &mut Fields<'_>) -> Option<Self> {
        let preloaded: Map<String, Value> =
            fields.members("preloadedParams").into_iter().map(|(name, value)| (name.clone(), value.clone())).collect();
        let path = fields.path("preloadedParams");
        for (name, value) in &preloaded {
            if name.is_empty() {
                fields.problem("preloadedParams", "has a member without a name");
            }
            check_storable(value, &format!("{path}.{name}"), 0, fields.problems());
        }
        let params = parameters(fields, "params", argument_name);
        fields.required("pipedreamMetadata")?;
        let mut metadata = fields.object("pipedreamMetadata")?;
        let app = metadata.required_text("app", 100);
        let app_name = metadata.text("appName", 100);
        let account_id = metadata.required_text("accountId", 100);
        let action_key = metadata.required_text("actionKey", 200);
        let version = metadata.text("version", 40);
        let app_prop = metadata.text("appProp", 100);
        let dynamic_props_id = metadata.text("dynamicPropsId", 100);
        metadata.finish();
        let metadata = Metadata {
            app: app?,
            app_name,
            account_id: account_id?,
            action_key: action_key?,
            version,
            app_prop,
            dynamic_props_id,
        };
        let action = Self { metadata, preloaded, params, effect: true };
        if let Some((address, secret)) = action.secret_for_any_host() {
            let problem = format!("must be fixed: {secret} is a secret, and would go wherever the model says");
            fields.problem(&format!("params.{address}"), problem);
        }
        Some(action)
    }

    /// A component with an account, whose props `names` become arguments. `named`: the app's slug, the app's label, the
    /// component's key, its version, and the prop for the account.
    pub(crate) fn of_component(
        named: [&str; 5],
        account: &str,
        fixed: Map<String, Value>,
        names: impl IntoIterator<Item = String>,
        effect: bool,
    ) -> Self {
        let [app, app_name, key, version, app_prop] = named.map(str::to_owned);
        let given = || Parameter::Ai { prompt: String::new(), schema: Map::new(), required: false };
        let metadata = Metadata {
            app,
            app_name: Some(app_name),
            account_id: account.to_owned(),
            action_key: key,
            version: Some(version),
            app_prop: Some(app_prop),
            dynamic_props_id: None,
        };
        Self { metadata, preloaded: fixed, params: names.into_iter().map(|name| (name, given())).collect(), effect }
    }

    /// The parameter by which a model chooses the destination of a secret, and the field of that secret. Only Pipedream knows how
    /// an action uses its props, so names decide.
    fn secret_for_any_host(&self) -> Option<(String, String)> {
        let mut by_model = self.params.iter().filter(|(_, parameter)| matches!(parameter, Parameter::Ai { .. }));
        let (address, _) = by_model.find(|(name, _)| names_address(name))?;
        Some((address.clone(), first_secret(self.clone().fixed_values())?))
    }

    pub(super) fn fixed_values(&mut self) -> Vec<FixedValue<'_>> {
        let params = self.params.iter_mut().filter_map(|(name, parameter)| {
            FixedValue::of_parameter(format!("params.{name}"), name, SentAs::Member, parameter)
        });
        let preloaded = self.preloaded.iter_mut();
        let preloaded =
            preloaded.map(|(name, value)| FixedValue::plain(format!("preloadedParams.{name}"), name, value));
        params.chain(preloaded).collect()
    }

    pub fn key(&self) -> &str {
        &self.metadata.action_key
    }

    pub fn account(&self) -> &str {
        &self.metadata.account_id
    }

    /// Pins the action to the current version, and takes the account's prop and the types of the others from it.
    pub fn pin(&mut self, action: &PipedreamComponent) {
        self.metadata.version.get_or_insert_with(|| action.version.clone());
        if let Some(prop) = action.app_prop() {
            self.metadata.app_prop.get_or_insert_with(|| prop.to_owned());
        }
        self.take_types(action);
    }

    pub(super) const fn has_effect(&self) -> bool {
        self.effect
    }

    pub(super) fn parameters(&self) -> Vec<(Place, &Parameter)> {
        let place = |name: &str| Place { field: format!("params.{name}"), argument: name.to_owned() };
        self.params.iter().map(|(name, parameter)| (place(name), parameter)).collect()
    }

    pub(super) fn static_config(&self) -> Value {
        json!({"preloadedParams": self.preloaded, "params": all_hidden(&self.params)})
    }

    /// The props for Pipedream: preloaded ones, then the parameters, then the account, which nothing overrides.
    fn props(&self, call: ActionCall<'_>) -> Result<Map<String, Value>, variables::Unknown> {
        let ActionCall { context: CallContext { conversation, .. }, arguments, .. } = call;
        let mut props = Map::new();
        for (name, value) in &self.preloaded {
            props.insert(name.clone(), variables::fill(value, conversation, Encoding::Plain)?);
        }
        for (name, parameter) in &self.params {
            if let Some(value) = parameter.value(arguments.get(name), conversation, Encoding::Plain)? {
                props.insert(name.clone(), value);
            }
        }
        let Metadata { app, app_prop, account_id, .. } = &self.metadata;
        props.insert(app_prop.as_ref().unwrap_or(app).clone(), json!({"authProvisionId": account_id}));
        Ok(props)
    }

    fn request(&self, call: ActionCall<'_>) -> Result<Run<'_>, NoRequest> {
        // Validation rejects such tools now, but older rows may contain them.
        if self.secret_for_any_host().is_some_and(|(address, _)| call.arguments.contains_key(&address)) {
            return Err(NoRequest::of(
                Fault::Configuration,
                "The action was not run: the tool has a secret that would go to an address of the model's choice. \
                 Its author must make that address fixed.",
            ));
        }
        Ok(Run {
            action: &self.metadata.action_key,
            version: self.metadata.version.as_deref(),
            dynamic_props_id: self.metadata.dynamic_props_id.as_deref(),
            configured_props: self.props(call)?,
        })
    }

    /// The request of [`PipedreamAction::run`]: `{"app", "account_id", "external_user_id", "action", "version"?,
    /// "dynamic_props_id"?, "configured_props"}`.
    pub(super) fn preview(&self, call: ActionCall<'_>) -> Result<Value, NotRun> {
        let Run { action, version, dynamic_props_id, configured_props } = self.request(call)?;
        Ok(Value::Object(object([
            ("app", Some(self.metadata.app.clone().into())),
            ("account_id", Some(self.metadata.account_id.clone().into())),
            ("external_user_id", Some(call.context.organization.to_string().into())),
            ("action", Some(action.into())),
            ("version", version.map(Value::from)),
            ("dynamic_props_id", dynamic_props_id.map(Value::from)),
            ("configured_props", Some(Value::Object(configured_props))),
        ])))
    }

    pub(super) async fn run(&self, call: ActionCall<'_>, hidden: &HiddenTexts) -> Result<ToolOutcome, NotRun> {
        let run = self.request(call)?;
        let ActionCall { services, context, .. } = call;
        let name = self.metadata.app_name.as_deref().unwrap_or(&self.metadata.app);
        let project: Project = match services.secrets.of_deployment(&services.pipedream_secret).await {
            Ok(project) => project,
            Err(error) => return Ok(without_secret(error, format!("{name} is not available just now."), context)?),
        };
        Ok(match services.pipedream.run(&project, context.organization, run, context.deadline).await {
            Ok(Finished::Done { result, exports }) => ToolOutcome::succeeded(hidden.replaced_in(result))
                .and_exports(hidden.replaced_in(exports))
                .with(Effect::Done),
            // The action ran with an unknown effect, so the same call must not run it again.
            Ok(Finished::Failed(reason)) => {
                let reason = cut(hidden.replaced(&reason), LONGEST_REASON);
                let told = ToolOutcome::failed(format!("{name} reported a problem: {reason}"));
                if self.effect { told.with(Effect::Unknown { done: Map::new() }) } else { told }
            }
            Err(error) if !self.effect && error.effect_possible() => {
                ToolOutcome::failed(format!("{name} did not answer; try again in a moment.")).because(error)
            }
            Err(error) if error.effect_possible() => ToolOutcome::unknown(format!(
                "{name} did not confirm; it is not known whether it was done. Do not try again."
            ))
            .because(error),
            Err(error) => ToolOutcome::failed(refusal(name, &error, hidden)).because(error),
        })
    }
}

fn names_address(name: &str) -> bool {
    const ADDRESSES: [&str; 7] = ["domain", "endpoint", "host", "hostname", "uri", "url", "webhook"];
    words(name).iter().any(|word| ADDRESSES.contains(&word.as_str()))
}

fn refusal(name: &str, error: &clients::Error, hidden: &HiddenTexts) -> String {
    match (error.status(), error.said()) {
        _ if error.refuses_platform() => format!("{name} cannot be reached just now; nothing was done."),
        (Some(429), _) => format!("{name} is busy just now; try again in a moment."),
        (Some(_), None) => format!("{name} refused the request; nothing was done."),
        (Some(_), Some(said)) => {
            let said = cut(hidden.replaced(said), LONGEST_REASON);
            format!("{name} refused the request; nothing was done. It said: {said}")
        }
        (None, _) => format!("{name} cannot be reached just now; nothing was done."),
    }
}
