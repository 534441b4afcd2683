//! The console's page against `docs/openapi.yaml`.

use std::thread::JoinHandle;

use tests::{Answer, Event, World};

use super::{Given, part};

pub(crate) fn parts() -> [JoinHandle<Given>; 1] {
    [part(answers)]
}

async fn get(world: &World, path: &str, tag: &str) -> Answer {
    Box::pin(world.send("console", &Event::get(path).header("if-none-match", tag))).await
}

async fn answers() -> Given {
    let mut given = Given::default();
    let world = World::start().await;
    for (operation, path) in [
        ("consolePage", "/"),
        ("consoleFile", "/console/calls.js"),
        ("consoleFile", "/console/console.css"),
        ("consoleFile", "/console/htm-preact.licences.txt"),
        ("consoleFile", "/console/settings.json"),
        ("consoleFile", "/console/forms.json"),
    ] {
        given.note(operation, 200, &get(&world, path, "").await);
        given.note(operation, 304, &get(&world, path, "*").await);
    }
    given.note("consoleFile", 404, &get(&world, "/console/nothing.js", "").await);
    given
}
