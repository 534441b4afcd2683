//! `infra/template.yaml`, read as AWS reads it.

mod deployment;

use std::{
    collections::BTreeMap,
    fmt,
    sync::{Arc, LazyLock},
    time::Duration,
};

use serde::{
    Deserialize, Deserializer,
    de::{MapAccess, SeqAccess, Visitor},
};
use serde_json::{Map, Value, json};
use serde_saphyr::Tagged;

pub use self::deployment::Deployment;

/// The template as JSON. Short forms are expanded: `!Ref X` is `{"Ref": "X"}`, `!Sub x` is `{"Fn::Sub": "x"}`.
#[derive(Debug, Clone)]
pub struct Template(pub Arc<Value>);

/// One route of the HTTP API, or of a function's own REST API.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Route {
    pub method: String,
    /// With path variables, such as `/api/{slug}/tools`.
    pub path: String,
    /// Whether it requires the JWT authorizer.
    pub jwt: bool,
    /// The function's name, such as `create-tool`.
    pub function: String,
}

impl Template {
    /// Path of the template in this workspace.
    pub const PATH: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../infra/template.yaml");

    /// Parses the file once per process: every world of a test needs it.
    pub fn read() -> Self {
        static TEMPLATE: LazyLock<Template> = LazyLock::new(|| {
            let text = std::fs::read_to_string(Template::PATH).expect("infra/template.yaml can be read");
            let node: Node = serde_saphyr::from_str(&text).expect("infra/template.yaml is YAML");
            Template(Arc::new(node.0))
        });
        TEMPLATE.clone()
    }

    /// Logical id and properties of every resource of a type.
    pub fn resources(&self, kind: &str) -> BTreeMap<&str, &Value> {
        let resources = self.0["Resources"].as_object().expect("Resources");
        resources
            .iter()
            .filter(|(_, resource)| resource["Type"] == kind)
            .map(|(id, resource)| (id.as_str(), &resource["Properties"]))
            .collect()
    }

    /// The `CreateTable` bodies of the deployment, each with the table's TTL attribute if it has one.
    pub fn tables(&self, stack: &str) -> Vec<(Value, Option<String>)> {
        let resources = self.resources("AWS::DynamoDB::Table");
        resources.values().map(|properties| (create_table(properties, stack), time_to_live(properties))).collect()
    }

    /// The time-out of a function by its name, such as `create-tool`.
    ///
    /// # Panics
    /// If there is no such function.
    pub fn time_out(&self, function: &str) -> Duration {
        let functions = self.resources("AWS::Serverless::Function");
        let mut named = functions.iter().filter(|(id, _)| kebab(id.trim_end_matches("Function")) == function);
        let (_, properties) = named.next().unwrap_or_else(|| panic!("the template has no function {function}"));
        let usual = &self.0["Globals"]["Function"]["Timeout"];
        let seconds = properties["Timeout"].as_u64().or(usual.as_u64()).expect("a time-out");
        Duration::from_secs(seconds)
    }

    pub fn routes(&self) -> Vec<Route> {
        let integrations = self.resources("AWS::ApiGatewayV2::Integration");
        let mut routes: Vec<Route> = self
            .resources("AWS::ApiGatewayV2::Route")
            .values()
            .map(|route| {
                let key = route["RouteKey"].as_str().expect("RouteKey is text");
                let (method, path) = key.split_once(' ').expect("RouteKey is `METHOD /path`");
                let target = route["Target"]["Fn::Sub"].as_str().expect("Target is a !Sub");
                let integration = target.trim_start_matches("integrations/${").trim_end_matches('}');
                let function = &integrations[integration]["IntegrationUri"]["Fn::GetAtt"];
                let function = function.as_str().expect("IntegrationUri is a !GetAtt").trim_end_matches("Function.Arn");
                Route {
                    method: method.to_owned(),
                    path: path.to_owned(),
                    jwt: route["AuthorizationType"] == "JWT",
                    function: kebab(function),
                }
            })
            .collect();
        routes.sort();
        routes
    }

    /// The routes of functions behind a REST API, which streams; without preflights, which the API answers itself.
    pub fn rest_routes(&self) -> Vec<Route> {
        let apis = self.resources("AWS::ApiGateway::RestApi");
        let mut routes = Vec::new();
        for (path, methods) in apis.values().flat_map(|api| api["Body"]["paths"].as_object().expect("paths")) {
            for (method, operation) in methods.as_object().expect("methods") {
                let uri = operation["x-amazon-apigateway-integration"]["uri"]["Fn::Sub"].as_str();
                let Some((_, function)) = uri.and_then(|uri| uri.split_once(":path/2021-11-15/functions/${")) else {
                    continue;
                };
                let (function, _) = function.split_once("Function.Arn}").expect("the function's ARN");
                let (method, path) = (method.to_ascii_uppercase(), path.clone());
                routes.push(Route { method, path, jwt: false, function: kebab(function) });
            }
        }
        routes.sort();
        routes
    }
}

/// `CallStart` becomes `call-start`.
fn kebab(name: &str) -> String {
    let mut kebab = String::new();
    for letter in name.chars() {
        if letter.is_ascii_uppercase() && !kebab.is_empty() {
            kebab.push('-');
        }
        kebab.push(letter.to_ascii_lowercase());
    }
    kebab
}

fn create_table(properties: &Value, stack: &str) -> Value {
    let name = properties["TableName"]["Fn::Sub"].as_str().expect("TableName is a !Sub");
    let mut request = Map::from_iter([("TableName".to_owned(), name.replace("${AWS::StackName}", stack).into())]);
    for field in ["AttributeDefinitions", "KeySchema", "BillingMode", "GlobalSecondaryIndexes"] {
        if let Some(value) = properties.get(field) {
            request.insert(field.to_owned(), value.clone());
        }
    }
    Value::Object(request)
}

fn time_to_live(properties: &Value) -> Option<String> {
    let specification = properties.get("TimeToLiveSpecification")?;
    assert_eq!(specification["Enabled"], true, "a TTL that is switched off");
    specification["AttributeName"].as_str().map(str::to_owned)
}

/// A node with its tag in long form.
struct Node(Value);

impl<'de> Deserialize<'de> for Node {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let Tagged(Plain(value), tag) = Tagged::deserialize(deserializer)?;
        Ok(Self(match tag.as_deref().and_then(|tag| tag.strip_prefix('!')) {
            None => value,
            Some("Ref") => json!({ "Ref": value }),
            Some("Condition") => json!({ "Condition": value }),
            Some(function) => json!({ format!("Fn::{function}"): value }),
        }))
    }
}

/// A node without its own tag; its members keep theirs.
struct Plain(Value);

impl<'de> Deserialize<'de> for Plain {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(PlainVisitor).map(Self)
    }
}

struct PlainVisitor;

impl<'de> Visitor<'de> for PlainVisitor {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any YAML node")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        while let Some(Node(item)) = items.next_element()? {
            list.push(item);
        }
        Ok(Value::Array(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Value, A::Error> {
        let mut object = Map::new();
        while let Some((name, Node(value))) = members.next_entry::<String, Node>()? {
            object.insert(name, value);
        }
        Ok(Value::Object(object))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_forms_are_read_as_their_long_forms() {
        let text = "a: !Ref X\nb: [!Sub 'x-${Y}', !GetAtt Z.Arn]\nc: !If [D, !Ref E, 1]\nd: true\n";
        let Node(value) = serde_saphyr::from_str(text).unwrap();
        assert_eq!(
            value,
            json!({
                "a": {"Ref": "X"},
                "b": [{"Fn::Sub": "x-${Y}"}, {"Fn::GetAtt": "Z.Arn"}],
                "c": {"Fn::If": ["D", {"Ref": "E"}, 1]},
                "d": true,
            }),
        );
    }

    #[test]
    fn every_table_has_a_name_of_the_stack_and_a_key() {
        for (table, _) in Template::read().tables("stack") {
            assert!(table["TableName"].as_str().unwrap().starts_with("stack-"), "{table}");
            assert!(table["KeySchema"][0]["AttributeName"].is_string(), "{table}");
        }
    }
}
