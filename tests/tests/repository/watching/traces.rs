//! Tracing, behind a parameter.

use serde_json::json;
use tests::Template;

use super::resource;

/// Lambda rejects a traced function whose role may not write traces, so the parameter controls both.
#[test]
fn tracing_is_off_unless_asked_for_and_comes_with_its_permission() {
    let template = Template::read();
    let parameter = &template.0["Parameters"]["Tracing"];
    assert_eq!(
        (&parameter["Default"], &parameter["AllowedValues"]),
        (&json!("PassThrough"), &json!(["PassThrough", "Permitted", "Active"]))
    );
    let mode = json!({"Fn::If": ["Traces", "Active", "PassThrough"]});
    assert_eq!(template.0["Globals"]["Function"]["Tracing"], mode);
    let may = json!({"Fn::Not": [{"Fn::Equals": [{"Ref": "Tracing"}, "PassThrough"]}]});
    assert_eq!(template.0["Conditions"]["MayTrace"], may);
    assert_eq!(template.0["Conditions"]["Traces"], json!({"Fn::Equals": [{"Ref": "Tracing"}, "Active"]}));

    let of_stage = json!({"Fn::If": ["Traces", true, false]});
    assert_eq!(resource(&template, "StreamStage")["Properties"]["TracingEnabled"], of_stage, "as its function");

    let policy = resource(&template, "TracingPolicy");
    assert_eq!(policy["Condition"], "MayTrace");
    let statements = policy["Properties"]["PolicyDocument"]["Statement"].as_array().unwrap();
    assert_eq!(statements.len(), 1);
    assert_eq!(statements[0]["Action"], json!(["xray:PutTraceSegments", "xray:PutTelemetryRecords"]));

    let roles = template.resources("AWS::IAM::Role");
    let if_traced = json!({"Fn::If": ["MayTrace", [{"Ref": "TracingPolicy"}], {"Ref": "AWS::NoValue"}]});
    for (id, function) in template.resources("AWS::Serverless::Function") {
        assert!(function.get("Tracing").is_none(), "{id} is traced as all are");
        let role = function["Role"]["Fn::GetAtt"].as_str().unwrap().trim_end_matches(".Arn");
        assert_eq!(roles[role]["ManagedPolicyArns"], if_traced, "{role}");
    }
}
