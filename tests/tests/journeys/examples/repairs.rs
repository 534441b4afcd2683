//! A repairer without any knowledge of the language: it applies the patches of the diagnostics, and asks for the tools that
//! they name.

use serde_json::{Value, json};
use tests::World;

/// As often as an agent may try.
const ATTEMPTS: usize = 2;

fn parent<'v>(definition: &'v mut Value, pointer: &str) -> (&'v mut Value, String) {
    let (parent, name) = pointer.rsplit_once('/').unwrap();
    let name = name.replace("~1", "/").replace("~0", "~");
    (definition.pointer_mut(parent).unwrap_or_else(|| panic!("nothing is at {parent}")), name)
}

fn taken(definition: &mut Value, pointer: &str) -> Value {
    let (parent, name) = parent(definition, pointer);
    parent.as_object_mut().unwrap().remove(&name).unwrap_or_else(|| panic!("nothing is at {pointer}"))
}

/// The definition with a mistake: values that are set, removed or renamed.
pub(super) fn spoiled(mut definition: Value, mistake: &Value) -> Value {
    for change in mistake.as_array().unwrap() {
        if let Some(pointer) = change["set"].as_str() {
            *definition.pointer_mut(pointer).unwrap_or_else(|| panic!("nothing is at {pointer}")) =
                change["to"].clone();
        } else if let Some(pointer) = change["rename"].as_str() {
            let value = taken(&mut definition, pointer);
            parent(&mut definition, pointer).0[change["to"].as_str().unwrap()] = value;
        } else {
            taken(&mut definition, change["remove"].as_str().unwrap());
        }
    }
    definition
}

/// Applies one operation of a JSON Patch.
fn apply(definition: &mut Value, step: &Value) {
    let value = match step["from"].as_str() {
        Some(from) => taken(definition, from),
        None => step["value"].clone(),
    };
    let path = step["path"].as_str().unwrap();
    if step["op"] == "replace" {
        *definition.pointer_mut(path).unwrap_or_else(|| panic!("nothing is at {path}")) = value;
    } else {
        let (parent, name) = parent(definition, path);
        parent[name] = value;
    }
}

/// A definition that is accepted after at most two repairs, or the last diagnostics.
pub(super) async fn repaired(world: &World, mut definition: Value) -> Result<Value, Value> {
    for attempt in 0..=ATTEMPTS {
        let mut dry = definition.clone();
        dry["dry_run"] = json!(true);
        let checked = world.deploy(&dry).await.expect(200);
        let diagnostics = checked["diagnostics"].as_array().unwrap();
        let errors: Vec<&Value> = diagnostics.iter().filter(|one| one["severity"] == "error").collect();
        if errors.is_empty() {
            assert!(attempt > 0, "the mistake is none");
            return Ok(definition);
        }
        if attempt == ATTEMPTS {
            return Err(json!(errors));
        }
        let mut applied: Vec<&Value> = Vec::new();
        for error in errors {
            if error["code"] == "schema_not_read" {
                let place = error["pointer"].as_str().unwrap();
                let tool = definition.pointer(place).unwrap().as_str().unwrap().to_owned();
                let path = format!("/discover/fetch_tool_data?name={tool}");
                let told = world.get_as("discover", &world.home, &path).await.expect(200);
                definition["fingerprints"][&tool] = told["tools"][0]["fingerprint"].clone();
            }
            // Two diagnostics may have one repair.
            for step in error["repair"]
                .as_array()
                .into_iter()
                .flatten()
                .filter(|step| !applied.contains(step))
                .collect::<Vec<_>>()
            {
                apply(&mut definition, step);
                applied.push(step);
            }
        }
    }
    unreachable!("the last attempt returns")
}
