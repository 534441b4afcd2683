//! Models that runs name on the platform's key.

use serde_json::{Value, json};
use tests::{World, automation::AMPLE, standins::llm::Turn};

use super::{FINISH, text};

const DEAR: &str = "openai/o1-pro";

#[tokio::test]
async fn a_run_on_the_platforms_key_names_a_model_of_the_deployment() {
    let world = World::start().await;
    let dear = json!({"prompt": "Hello", "model": DEAR});
    let refused = world.start_run(&dear).await;
    assert_eq!(refused.wrong_fields(), ["model"]);
    let problems = refused.body["errors"].to_string();
    assert!(problems.contains("stand-in/model, stand-in/other ") && problems.contains("/keys/llm"), "{problems}");
    for model in ["stand-in/model", "stand-in/other"] {
        world.start_run(&json!({"prompt": "Hello", "model": model})).await.expect(202);
    }
    let definition = json!({"name": "Dear", "trigger_type": "manual", "prompt": "Hello", "tools": [], "model": DEAR});
    let refused = world.deploy(&definition).await;
    assert_eq!((refused.status, &refused.body["diagnostics"][0]["pointer"]), (422, &json!("/model")));

    world.keys(&world.home, "PUT", "/llm", &json!({"api_key": "sk-1"})).await.expect(200);
    world.start_run(&dear).await.expect(202);
    world.deploy(&definition).await.expect(201);
}

#[tokio::test]
async fn a_run_that_comes_to_the_platforms_key_with_another_model_asks_nothing() {
    let world = World::start().await;
    world.keys(&world.home, "PUT", "/llm", &json!({"api_key": "sk-1"})).await.expect(200);
    let definition = json!({"name": "Dear", "trigger_type": "manual", "prompt": "Hello", "tools": [], "model": DEAR});
    let automation = world.activate(&definition).await;
    let run = world.start_run(&json!({"prompt": "Hello", "model": DEAR})).await.expect(202);
    let of_automation = world.start_automation(&automation, "once", &json!({})).await;
    world.keys(&world.home, "DELETE", "/llm", &Value::Null).await.expect(200);
    assert_eq!(world.run_loop(AMPLE).await, 0);
    for id in [text(&run["id"]).to_owned(), of_automation.id.to_string()] {
        let shown = world.run(&id).await.expect(200);
        assert_eq!(shown["status"], "failed", "{shown}");
        let error = text(&shown["error"]);
        assert!(error.contains("must be one of stand-in/model, stand-in/other on the platform's key"), "{error}");
    }
    assert!(world.llm.requests().is_empty());
}

#[tokio::test]
async fn a_run_may_come_to_the_platforms_key_with_the_model_of_its_secret() {
    let world = World::start().await;
    let secret = json!({"api_key": "llm-local-key", "base_url": world.llm.url, "model": DEAR});
    world.aws.put_secret("switchboard/llm", &secret);
    world.keys(&world.home, "PUT", "/llm", &json!({"api_key": "sk-1"})).await.expect(200);
    let run = world.start_run(&json!({"prompt": "Hello", "model": DEAR})).await.expect(202);
    world.keys(&world.home, "DELETE", "/llm", &Value::Null).await.expect(200);
    world.llm.script([Turn::text(FINISH), Turn::text("\"done\"")]);
    assert_eq!(world.run_loop(AMPLE).await, 0);
    let shown = world.run(text(&run["id"])).await.expect(200);
    assert_eq!(
        (&shown["status"], &world.llm.requests()[0].body["model"]),
        (&json!("completed"), &json!(DEAR)),
        "{shown}"
    );
}

#[tokio::test]
async fn an_agent_names_a_model_of_the_deployment() {
    let world = World::start().await;
    let definition = |name: &str, model: &str| {
        json!({
            "name": name, "trigger_type": "manual", "fingerprints": {"llm_agent": "built-in"},
            "actions": [{"id": "think", "tool": "llm_agent", "parameters": {"prompt": "Hello", "tools": [], "model": model}}],
        })
    };
    let refused = world.deploy(&definition("Dear", DEAR)).await.expect(422);
    let diagnostic = &refused["diagnostics"][0];
    assert_eq!(diagnostic["pointer"], "/actions/0/parameters/model", "{refused}");
    assert!(text(&diagnostic["message"]).contains("must be one of stand-in/model, stand-in/other"), "{refused}");
    world.deploy(&definition("Usual", "stand-in/other")).await.expect(201);

    let automation = world.activate(&definition("Agent", "{{trigger_data.model}}")).await;
    let run = world.start_automation(&automation, "once", &json!({"model": DEAR})).await;
    world.deliver_runs().await;
    let shown = world.run(&run.id.to_string()).await.expect(200);
    assert_eq!(shown["status"], "failed", "{shown}");
    assert!(text(&shown["error"]).contains("must be one of stand-in/model"), "{shown}");
    assert!(world.llm.requests().is_empty());
}
