//! Templates that read too much.

use super::*;
use crate::{automation::RunRequest, catalogue::BuiltInTools};

const COUNT: &str = "{{trigger_data.a|count}}";
const TOO_MUCH: &str = "Its templates were not filled in: with this data they read more than 500 MB. Use fewer expressions or shorter lists.";

fn long_list() -> RunData {
    data(&json!({"a": vec![1; 100_000]}))
}

fn failure_of(step: Value) -> String {
    let (steps, variables, data) = (steps(&Value::Array(vec![step])), Map::new(), long_list());
    let run = ActionRun::resume((&steps, &[]), &variables, &data, &[]).unwrap();
    let Next::Settled(result) = run.next(now()) else { panic!("no tool is called") };
    assert_eq!(result.status, ActionStatus::Failed);
    result.error.unwrap()
}

#[test]
fn the_templates_of_an_action_share_one_bound() {
    let text = json!({"parameters": {"text": COUNT.repeat(5_000)}});
    assert_eq!(failure_of(action("a", text)), TOO_MUCH);
    let texts = json!({"parameters": {"texts": vec![COUNT; 5_000]}});
    assert_eq!(failure_of(action("a", texts)), TOO_MUCH);

    let few = json!([action("a", json!({"parameters": {"texts": vec![COUNT; 10]}}))]);
    let (steps, variables, data) = (steps(&few), Map::new(), long_list());
    let run = ActionRun::resume((&steps, &[]), &variables, &data, &[]).unwrap();
    let Next::Call(planned) = run.next(now()) else { panic!("ten of them are no problem") };
    assert_eq!(planned.arguments["texts"], json!(vec![100_000; 10]));
}

#[test]
fn the_keys_of_a_loop_share_one_bound() {
    let rows: Vec<Value> = (0..1_000).map(|id| json!({"id": id})).collect();
    let key = json!({"key": format!("{{{{row.id}}}}-{COUNT}"), "max_items": 1_000});
    let why = failure_of(each(rows.into(), key));
    assert!(why.starts_with("The key of item ") && why.ends_with(TOO_MUCH), "{why}");
}

#[test]
fn both_texts_of_a_prompt_share_one_bound() {
    let (variables, outputs, data) = (Map::new(), Outputs::default(), long_list());
    let data = data.with(&variables, &outputs);
    let read = |prompt: &Value| {
        let prompt = prompt.as_object().unwrap();
        RunRequest::of_automation(prompt, &data, &BuiltInTools::default(), &|name| Err(name.to_owned()))
    };
    assert!(read(&json!({"prompt": COUNT, "system_prompt": COUNT, "tools": []})).is_ok());
    let refused = read(&json!({"prompt": COUNT.repeat(40), "system_prompt": COUNT.repeat(60), "tools": []}));
    let refused = refused.unwrap_err().to_string();
    assert!(refused.contains("system_prompt") && refused.contains(TOO_MUCH), "{refused}");
}

#[test]
fn hundreds_of_light_expressions_over_a_usual_output_are_filled_in() {
    let rows: Vec<Value> = (0..1_000).map(|number| json!({"name": format!("{number:054}")})).collect();
    let output = json!({"rows": rows});
    assert!(output.to_string().len() > 64_000);
    let data = data(&output);
    let name = "{{trigger_data.rows[3].name | default(\"\")}}";
    let list = json!([action("a", json!({"parameters": {"texts": vec![name; 500]}}))]);
    let (steps, variables) = (steps(&list), Map::new());
    let run = ActionRun::resume((&steps, &[]), &variables, &data, &[]).unwrap();
    let Next::Call(planned) = run.next(now()) else { panic!("that is no problem") };
    assert_eq!(planned.arguments["texts"][499], format!("{:054}", 3));
}

#[test]
fn a_failure_to_fill_in_names_the_templates_without_a_value() {
    let parameters = json!({"a": "{{trigger_data.gone}}", "b": "{{trigger_data.gone + 1}}"});
    let why = failure_of(action("a", json!({"parameters": parameters})));
    assert!(
        why.contains("{{trigger_data.gone + 1}}") && why.ends_with("Nothing was there for {{trigger_data.gone}}."),
        "{why}"
    );
}
