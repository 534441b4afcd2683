//! A request to a service's API, from a template, the arguments and the organization's credential.
//!
//! Built from a [`RequestTemplate`] for each call of a service's tool; nobody configures it.

use std::{
    collections::{BTreeMap, BTreeSet},
    iter,
    time::Duration,
};

use base64::{Engine, prelude::BASE64_STANDARD};
use reqwest::{
    Method,
    header::{AUTHORIZATION, HeaderMap, HeaderName, HeaderValue},
};
use serde_json::{Map, Value};
use url::Url;

use super::{
    ActionCall, Attempt, Parameter,
    api_request::{LARGEST_ANSWER, report, shown, unanswered},
    no_request::{NoRequest, NotRun},
    parameters::object,
    secret_values::{FixedValue, SentAs},
};
use crate::{
    Deadline,
    backoff::Backoff,
    clients::{
        outbound::{Request, RequestBody, field_text},
        path_segment,
    },
    models::{AllowedHosts, BodyFormat, CredentialField, Fault, KeyPlace, RequestAuth, RequestTemplate, folded_name},
    redaction::{HiddenTexts, SECRET},
    tool::{Effect, ToolOutcome},
};

/// Pause before the second attempt of a request with an idempotency key.
const PAUSE: Duration = Duration::from_millis(500);
/// Remaining time needed for the second attempt.
const SECOND_TRY_NEEDS: Duration = Duration::from_millis(1_500);

#[derive(Debug, Clone, PartialEq)]
pub struct ServiceRequest {
    service: String,
    template: RequestTemplate,
    /// False for a search by POST.
    effect: bool,
    /// By the service's field names; masked until the tool is executed.
    credential: BTreeMap<String, Parameter>,
    /// Names of the fields that are part of the address.
    in_address: BTreeSet<String>,
}

impl ServiceRequest {
    /// `fields`: of the credential, which is filled in at execution.
    pub fn new(service: &str, template: RequestTemplate, effect: bool, fields: &[CredentialField]) -> Self {
        let masked = |field: &CredentialField| {
            (field.name.clone(), Parameter::Fixed { value: SECRET.into(), secret: Some(field.secret) })
        };
        let credential = fields.iter().map(masked).collect();
        let in_address = fields.iter().filter(|field| field.in_address).map(|field| field.name.clone()).collect();
        Self { service: service.to_owned(), template, effect, credential, in_address }
    }

    pub(super) fn fixed_values(&mut self) -> Vec<FixedValue<'_>> {
        let fields = self.credential.iter_mut();
        fields
            .filter_map(|(name, parameter)| FixedValue::of_parameter(name.clone(), name, SentAs::Member, parameter))
            .collect()
    }

    pub(super) fn static_config(&self) -> Value {
        let credential =
            self.credential.iter().filter_map(|(name, parameter)| Some((name.clone(), parameter.hidden()?)));
        Value::Object(object([("credential", Some(credential.collect()))]))
    }

    pub(super) const fn has_effect(&self) -> bool {
        self.effect
    }

    pub(super) async fn run(&self, call: ActionCall<'_>, attempt: Attempt<'_>, hidden: &HiddenTexts) -> ToolOutcome {
        let context = call.context;
        let keyed = self.effect && self.template.idempotency_key.is_some();
        let deadline = if keyed { of_first_try(context.deadline) } else { context.deadline };
        let first = self.send(ActionCall { context: &context.until(deadline), ..call }, attempt, hidden).await;
        let may_repeat = keyed && matches!(first.effect, Effect::Unknown { .. });
        let mut backoff = Backoff::at_most(1, PAUSE, PAUSE, context.deadline.reserving(SECOND_TRY_NEEDS));
        if !may_repeat || !backoff.pause().await {
            return first;
        }
        // A service that knows the key repeats the answer to the first request. Any other answer, such as "busy", tells nothing
        // about the first request.
        let second = self.send(call, attempt, hidden).await;
        if second.effect == Effect::Done { second } else { first }
    }

    async fn send(&self, call: ActionCall<'_>, attempt: Attempt<'_>, hidden: &HiddenTexts) -> ToolOutcome {
        let ActionCall { services, context, .. } = call;
        let mut request = match self.request(call, &attempt.id.to_string()) {
            Ok(request) => request,
            Err(none) => return none.into_outcome(),
        };
        let poll = context.source_poll();
        if let Some(poll) = poll {
            poll.ask_for_changes(&mut request.headers);
        }
        match services.outbound.send(request, context.deadline).await {
            Ok(answer) if answer.status == 401 && !self.credential.is_empty() => ToolOutcome::failed(format!(
                "{service} does not take the stored credential (status 401); nothing was done. An administrator connects \
                 it again (POST /api/{{slug}}/services/{name}/connect).",
                service = self.service,
                name = folded_name(&self.service),
            ))
            .at_fault(Fault::Configuration),
            Ok(answer) if poll.is_some_and(|poll| poll.took(answer.status, &answer.headers)) => {
                ToolOutcome::succeeded(Value::Null)
            }
            Ok(answer) => report(&answer, self.effect, self.effect, &self.template.refused_by, hidden),
            Err(error) => unanswered(error, self.effect, |why| format!("The request was not sent: {why}.")),
        }
    }

    /// The request of [`ServiceRequest::run`]: `{"method", "url", "headers", "body"?}`, the credential masked.
    pub(super) fn preview(&self, call: ActionCall<'_>, key: &str) -> Result<Value, NotRun> {
        let request = self.request(call, key)?;
        let credential_header = match &self.template.auth {
            RequestAuth::Bearer { .. } | RequestAuth::Basic { .. } => AUTHORIZATION.as_str().to_owned(),
            RequestAuth::Header { header, .. } => header.to_ascii_lowercase(),
            RequestAuth::None | RequestAuth::Body { .. } => String::new(),
        };
        Ok(shown(request, |name| name.as_str() == credential_header, iter::empty()))
    }

    /// `key`: unique per execution.
    fn request(&self, call: ActionCall<'_>, key: &str) -> Result<Request, NoRequest> {
        let template = &self.template;
        let broken = |what: &str| {
            let sentence =
                format!("The request was not sent: the tool's {what} is broken; its maintainers must mend it.");
            NoRequest::of(Fault::Configuration, sentence)
        };
        let method = Method::from_bytes(template.method.as_bytes()).map_err(|_not_a_method| broken("method"))?;
        let mut rest = call.arguments.clone();
        let url = filled_in(&self.address()?, &mut rest)?;
        // Arguments stand in the address as segments of its path only.
        let refused = |why: String| NoRequest::of(Fault::Configuration, format!("The request was not sent: {why}."));
        let mut url = call.services.outbound.parse(&url).map_err(refused)?;
        let mut allowed_hosts = AllowedHosts::default();
        let host = url.host_str().unwrap_or_default();
        let host = url.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"));
        allowed_hosts.add(&host).map_err(|_not_a_host| broken("address"))?;
        let in_query = |name: &String| template.body == BodyFormat::None || template.query.contains(name);
        let (query, mut members): (Map<_, _>, Map<_, _>) = rest.into_iter().partition(|(name, _)| in_query(name));
        let (fixed_query, fixed): (Map<_, _>, Map<_, _>) =
            template.fixed.clone().into_iter().partition(|(name, _)| in_query(name));
        add_query(&mut url, query.iter().filter(|(name, _)| !fixed_query.contains_key(*name)).chain(&fixed_query));
        members.extend(fixed);
        let mut headers = HeaderMap::new();
        let mut set = |name: &str, value: &str, secret: bool| -> Result<(), NoRequest> {
            let name = HeaderName::from_bytes(name.as_bytes()).map_err(|_not_a_name| broken("header"))?;
            let mut value = HeaderValue::from_str(value).map_err(|_not_a_value| unusable())?;
            value.set_sensitive(secret);
            headers.insert(name, value);
            Ok(())
        };
        for (name, value) in &template.headers {
            set(name, value, false)?;
        }
        match &template.auth {
            RequestAuth::None => {}
            RequestAuth::Bearer { field } => {
                set(AUTHORIZATION.as_str(), &format!("Bearer {}", self.field(field)?), true)?;
            }
            RequestAuth::Basic { user, password } => {
                let pair = BASE64_STANDARD.encode(format!("{}:{}", self.field(user)?, self.field(password)?));
                set(AUTHORIZATION.as_str(), &format!("Basic {pair}"), true)?;
            }
            RequestAuth::Header { header, field, prefix } => {
                set(header, &format!("{prefix}{}", self.field(field)?), true)?;
            }
            RequestAuth::Body { members: fields } => {
                for (member, field) in fields {
                    members.insert(member.clone(), self.field(field)?.into());
                }
            }
        }
        match &template.idempotency_key {
            Some(KeyPlace::Header { name }) => set(name, key, false)?,
            Some(KeyPlace::Body { name }) => drop(members.insert(name.clone(), key.into())),
            None => {}
        }
        let body = match template.body {
            BodyFormat::None => None,
            BodyFormat::Json => Some(RequestBody::Json(Value::Object(members))),
            BodyFormat::Form => Some(RequestBody::form(&members)),
        };
        // The credential goes only to the service's own host, also after redirects.
        Ok(Request { method, url, headers, body, limit: LARGEST_ANSWER, allowed_hosts })
    }

    /// The template's address with the fields of the credential. A preview, which has only their masks, shows their names.
    fn address(&self) -> Result<String, NoRequest> {
        let mut address = self.template.url.clone();
        for name in &self.in_address {
            let place = format!("{{{name}}}");
            if !address.contains(&place) {
                continue;
            }
            let value = match self.field(name)? {
                SECRET => name.as_str(),
                value if CredentialField::fits_address(value) => value,
                _ => return Err(unusable()),
            };
            address = address.replace(&place, value);
        }
        Ok(address)
    }

    fn field(&self, name: &str) -> Result<&str, NoRequest> {
        let value = match self.credential.get(name) {
            Some(Parameter::Fixed { value: Value::String(text), .. }) => text.as_str(),
            _ => "",
        };
        if value.is_empty() {
            return Err(NoRequest::of(
                Fault::Configuration,
                "The request was not sent: the stored credential is not complete; connect the service again.",
            ));
        }
        Ok(value)
    }
}

/// A first request that hangs leaves time for the second, unless a slow one would need that time itself.
fn of_first_try(deadline: Deadline) -> Deadline {
    // The pause with its jitter is at most twice as long.
    let second = PAUSE * 2 + SECOND_TRY_NEEDS * 2;
    if deadline.remaining() > second * 3 { deadline.reserving(second) } else { deadline }
}

fn unusable() -> NoRequest {
    NoRequest::of(
        Fault::Configuration,
        "The request was not sent: the stored credential cannot be used; connect the service again.",
    )
}

/// Substitutes arguments into the address, and removes them from `arguments`.
fn filled_in(url: &str, arguments: &mut Map<String, Value>) -> Result<String, String> {
    let mut filled = String::with_capacity(url.len());
    let mut rest = url;
    while let Some((before, after)) = rest.split_once('{') {
        let Some((name, after)) = after.split_once('}') else { break };
        let value = arguments.remove(name).map(|value| field_text(&value)).unwrap_or_default();
        // An empty, `.` or `..` segment would change the path.
        if value.is_empty() || value == "." || value == ".." {
            return Err(format!("The request was not sent: the argument \"{name}\" must not be {value:?}."));
        }
        filled.push_str(before);
        filled.push_str(&path_segment(&value));
        rest = after;
    }
    filled.push_str(rest);
    Ok(filled)
}

/// Each item of a list becomes its own parameter.
fn add_query<'a>(url: &mut Url, members: impl Iterator<Item = (&'a String, &'a Value)>) {
    let pairs: Vec<(&String, String)> = members
        .flat_map(|(name, value)| match value {
            Value::Array(items) => items.iter().map(|item| (name, field_text(item))).collect(),
            Value::Null => Vec::new(),
            value => vec![(name, field_text(value))],
        })
        .collect();
    if !pairs.is_empty() {
        url.query_pairs_mut().extend_pairs(pairs);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn arguments(value: Value) -> Map<String, Value> {
        let Value::Object(arguments) = value else { panic!() };
        arguments
    }

    #[test]
    fn arguments_stand_in_the_path_as_one_segment() {
        let mut given = arguments(json!({"id": "pi_1/../x?y", "amount": 5}));
        assert_eq!(
            filled_in("https://api.example/v1/{id}/cancel", &mut given).unwrap(),
            "https://api.example/v1/pi_1%2F%2E%2E%2Fx%3Fy/cancel"
        );
        assert_eq!(given, arguments(json!({"amount": 5})));
        for id in [json!(""), json!(".."), json!(".")] {
            assert!(filled_in("https://a.example/{id}", &mut arguments(json!({"id": id}))).is_err());
        }
        assert!(filled_in("https://a.example/{id}", &mut Map::new()).is_err());
    }

    #[test]
    fn a_first_request_that_hangs_leaves_time_for_the_second() {
        let of_first = |seconds| of_first_try(Deadline::after(Duration::from_secs(seconds))).remaining().as_secs_f64();
        assert!((13.0..=14.0).contains(&of_first(18)));
        assert!((9.0..=10.0).contains(&of_first(10)), "a slow first one needs the time");
    }

    #[test]
    fn a_list_is_several_parameters_of_a_query() {
        let mut url = Url::parse("https://a.example/x?fixed=1").unwrap();
        let members = arguments(json!({"tag": ["a", "b"], "n": 2, "none": null}));
        add_query(&mut url, members.iter());
        assert_eq!(url.query(), Some("fixed=1&n=2&tag=a&tag=b"));
    }
}
