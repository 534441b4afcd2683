//! The routes of both APIs, as they stand in `infra/template.yaml`.

use std::fmt::Write as _;

use shared::http::{Caller, Operation, Route};
use tests::declared::{DECLARED, Declared, STREAMED};

use super::{described, hold, with_section};
use crate::structure::source::{pascal, read};

/// Answered by the REST API itself, without a function.
const PREFLIGHT: &str = "options: {responses: {\"200\": {description: What pages may do}}, x-amazon-apigateway-integration: {type: mock, \
    requestTemplates: {application/json: '{\"statusCode\": 200}'}, responses: {default: {statusCode: \"200\", \
    responseTemplates: {application/json: !FindInMap [StreamApi, Preflight, Template]}}}}}";

fn resource(id: &str, kind: &str, more: &str, properties: &str) -> String {
    format!("  {id}: {{Type: \"AWS::{kind}\", {more}Properties: {{{properties}}}}}\n")
}

/// The role in which the HTTP API invokes its functions: one resource instead of a permission per function.
fn invoking_role(functions: &[String]) -> String {
    let functions: Vec<_> = functions.iter().map(|function| format!("!GetAtt {function}Function.Arn")).collect();
    let trust = "AssumeRolePolicyDocument: {Version: \"2012-10-17\", Statement: [{Effect: Allow, Principal: {Service: \
                 apigateway.amazonaws.com}, Action: \"sts:AssumeRole\"}]}";
    let statement =
        format!("{{Effect: Allow, Action: \"lambda:InvokeFunction\", Resource: [{}]}}", functions.join(", "));
    let policies = format!(
        "Policies: [{{PolicyName: invoke, PolicyDocument: {{Version: \"2012-10-17\", Statement: [{statement}]}}}}]"
    );
    resource("ApiRole", "IAM::Role", "", &format!("{trust}, {policies}"))
}

/// The JWT authorizer stands before the routes that ask for a role, unless the function verifies the token.
fn route(function: &str, operation: &Operation) -> String {
    let Route { method, path, caller, .. } = operation.route;
    let authorizer = match caller {
        Caller::Member(_) => "AuthorizationType: JWT, AuthorizerId: !Ref ApiAuthorizer",
        Caller::Verified(_) | Caller::Proof(_) | Caller::Anybody => "AuthorizationType: NONE",
    };
    let condition = match operation.condition {
        "" => String::new(),
        condition => format!("Condition: {condition}, "),
    };
    resource(
        &format!("{}Route", operation.resource),
        "ApiGatewayV2::Route",
        &condition,
        &format!(
            "ApiId: !Ref Api, RouteKey: \"{method} {path}\", Target: !Sub \"integrations/${{{function}Integration}}\", {authorizer}"
        ),
    )
}

/// The resources of a function behind the HTTP API.
fn resources(declared: &Declared) -> String {
    let function = pascal(declared.function);
    let mut lines = resource(
        &format!("{function}Integration"),
        "ApiGatewayV2::Integration",
        "",
        &format!(
            "ApiId: !Ref Api, IntegrationType: AWS_PROXY, IntegrationUri: !GetAtt {function}Function.Arn, PayloadFormatVersion: \"2.0\", CredentialsArn: !GetAtt ApiRole.Arn"
        ),
    );
    lines.extend(described(declared).operations.iter().map(|operation| route(&function, operation)));
    lines
}

/// Requests a second, and at once, by the columns that a route names.
fn limits(columns: &str) -> String {
    let column = |of: &str| format!("!FindInMap [Throttles, !Ref AccountConcurrency, {columns}{of}]");
    format!("ThrottlingBurstLimit: {}, ThrottlingRateLimit: {}", column("Burst"), column("Rate"))
}

/// Each path of the REST API with its methods, of which each has a throttle of its own.
fn streamed(operations: &[Operation]) -> (String, String) {
    let (mut paths, mut settings) = (String::new(), String::new());
    for operation in operations {
        let Route { method, path, .. } = operation.route;
        let names = path.split(['{', '}']).skip(1).step_by(2);
        let variables: Vec<String> =
            names.map(|name| format!("{{name: {name}, in: path, required: true, schema: {{type: string}}}}")).collect();
        let variables =
            if variables.is_empty() { String::new() } else { format!("parameters: [{}], ", variables.join(", ")) };
        writeln!(
            paths,
            "          \"{path}\": {{{variables}{}: {{x-amazon-apigateway-integration: {{type: aws_proxy, httpMethod: POST, \
             responseTransferMode: STREAM, timeoutInMillis: 900000, uri: !Sub \"arn:${{AWS::Partition}}:apigateway:${{AWS::Region}}:lambda:path/\
             2021-11-15/functions/${{{}Function.Arn}}/response-streaming-invocations\"}}}}, {PREFLIGHT}}}",
            method.to_lowercase(),
            pascal(STREAMED),
        )
        .unwrap();
        // CloudFormation wants a slash, and then the path with its slashes as ~1.
        let path = path.replace('/', "~1");
        let own = limits(operation.throttle);
        writeln!(settings, "        - {{ResourcePath: \"/{path}\", HttpMethod: {method}, {own}}}").unwrap();
        let preflight = "ThrottlingBurstLimit: 100, ThrottlingRateLimit: 50";
        writeln!(settings, "        - {{ResourcePath: \"/{path}\", HttpMethod: OPTIONS, {preflight}}}").unwrap();
    }
    (paths, settings)
}

#[test]
fn the_template_has_the_routes_as_they_are_declared() {
    let (mut lines, mut paths, mut methods) = (String::new(), String::new(), String::new());
    let streamed_function = pascal(STREAMED);
    let mut invoked = Vec::new();
    let (mut named, mut throttles) = (String::new(), String::new());
    for declared in &DECLARED {
        let operations = described(declared).operations;
        if declared.function == STREAMED {
            lines += &resource(
                &format!("{streamed_function}Permission"),
                "Lambda::Permission",
                "",
                &format!(
                    "FunctionName: !Ref {streamed_function}Function, Action: \"lambda:InvokeFunction\", Principal: \
                     apigateway.amazonaws.com, SourceArn: !Sub \"arn:${{AWS::Partition}}:execute-api:${{AWS::Region}}:\
                     ${{AWS::AccountId}}:${{StreamApi}}/*/*\""
                ),
            );
            (paths, methods) = streamed(&operations);
            continue;
        }
        lines += &resources(declared);
        invoked.push(pascal(declared.function));
        for operation in operations.iter().filter(|operation| !operation.throttle.is_empty()) {
            let (route, own) = (operation.route, limits(operation.throttle));
            let own = match operation.condition {
                "" => format!("{{{own}}}"),
                condition => format!("!If [{condition}, {{{own}}}, !Ref AWS::NoValue]"),
            };
            writeln!(throttles, "        \"{} {}\": {own}", route.method, route.path).unwrap();
            if operation.condition.is_empty() {
                writeln!(named, "      - {}Route", operation.resource).unwrap();
            }
        }
    }
    lines += &invoking_role(&invoked);
    let mut text = read("infra/template.yaml");
    let sections = [
        ("routes", lines),
        ("streamed paths", paths),
        ("streamed throttles", methods),
        ("throttled routes", named),
        ("throttles", throttles),
    ];
    for (name, lines) in sections {
        text = with_section(&text, name, &lines);
    }
    hold("infra/template.yaml", &text, "generated");
}
