//! A user of another organization learns nothing and changes nothing.

use serde_json::json;
use tests::{Event, Tenant, template::Route};
use uuid::Uuid;

use super::{
    APPROVAL, AUTOMATION, BASE, CALL, EVENT, HOOK, REPLAY, RUN, THEIR_APPROVAL, THEIR_AUTOMATION, THEIR_BASE,
    THEIR_CALL, THEIR_EVENT, THEIR_HOOK, THEIR_REPLAY, THEIR_RUN, by, footprint, of_users, problem, request,
    world_with_tools,
};

#[tokio::test]
async fn a_user_of_another_organization_learns_nothing_and_does_nothing() {
    let (world, ours, _) = world_with_tools().await;
    let before = footprint(&world);
    let nowhere = Tenant { slug: "no-such-organization".to_owned(), ..world.home.clone() };
    for route in of_users(&world) {
        for user in [world.other.user_id.as_str(), "user|of-no-organization"] {
            let event = by(&world, &route, request(&route, &world.home, &ours, &world.home.agent_id), user);
            let refused = world.send(&route.function, &event).await;
            assert_eq!(refused.status, 404, "{route:?}: {}", refused.body);
            let unknown = by(&world, &route, request(&route, &nowhere, &ours, &world.home.agent_id), user);
            let unknown = world.send(&route.function, &unknown).await;
            assert_eq!(problem(&refused.body), problem(&unknown.body), "{route:?}: as if it did not exist");
        }
    }
    assert_eq!(footprint(&world), before);
}

#[tokio::test]
#[expect(clippy::too_many_lines, reason = "it is a list of routes")]
async fn ids_of_another_organization_are_as_unknown_as_ids_of_nobody() {
    let (world, ours, theirs) = world_with_tools().await;
    let before = footprint(&world);
    let (home, other) = (&world.home, &world.other);
    let nobody = Uuid::new_v4().to_string();
    let names_one = |route: &Route| route.jwt && (route.path.contains("{id}") || route.function == "tools-test");
    for route in world.template.routes().into_iter().filter(names_one) {
        let send = async |tool: &str, agent: &str| {
            world.send(&route.function, &request(&route, home, tool, agent).user(&home.user_id)).await
        };
        let in_body = ["attach", "tools-test"].contains(&route.function.as_str());
        let names_tool = route.path.contains("/tools/{id}") || in_body;
        if names_tool {
            let refused = send(&theirs, &home.agent_id).await;
            assert_eq!(refused.status, 404, "{route:?}: {}", refused.body);
            assert_eq!(problem(&refused.body), problem(&send(&nobody, &home.agent_id).await.body), "{route:?}");
        }
        if route.path.contains("/knowledge-bases/{id}") {
            let send = async |base: &str| {
                let mut event = request(&route, home, &ours, &home.agent_id).user(&home.user_id);
                event.path = event.path.replace(BASE, base);
                world.send(&route.function, &event).await
            };
            let refused = send(THEIR_BASE).await;
            assert_eq!(refused.status, 404, "{route:?}: {}", refused.body);
            assert_eq!(problem(&refused.body), problem(&send(&nobody).await.body), "{route:?}");
        }
        if route.path.contains("/agents/{id}/knowledge-bases") {
            let send = async |base: &str| {
                let mut event = request(&route, home, &ours, &home.agent_id).user(&home.user_id);
                event.body = event.body.map(|body| body.replace(BASE, base));
                world.send(&route.function, &event).await
            };
            let refused = send(THEIR_BASE).await;
            assert_eq!(refused.status, 404, "{route:?}: {}", refused.body);
            assert_eq!(problem(&refused.body), problem(&send(&nobody).await.body), "{route:?}");
        }
        if route.path.contains("/automations/{id}") {
            let send = async |automation: &str| {
                let mut event = request(&route, home, &ours, &home.agent_id).user(&home.user_id);
                event.path = event.path.replace(AUTOMATION, automation);
                world.send(&route.function, &event).await
            };
            let refused = send(THEIR_AUTOMATION).await;
            assert_eq!(refused.status, 404, "{route:?}: {}", refused.body);
            assert_eq!(problem(&refused.body), problem(&send(&nobody).await.body), "{route:?}");
        }
        if route.path.contains("/approvals/{id}") {
            let send = async |approval: &str| {
                let mut event = request(&route, home, &ours, &home.agent_id).user(&home.user_id);
                event.path = event.path.replace(APPROVAL, approval);
                world.send(&route.function, &event).await
            };
            let refused = send(THEIR_APPROVAL).await;
            assert_eq!(refused.status, 404, "{route:?}: {}", refused.body);
            assert_eq!(problem(&refused.body), problem(&send(&nobody).await.body), "{route:?}");
        }
        if route.path.contains("/calls/{id}") {
            let send = async |call: &str| {
                let mut event = request(&route, home, &ours, &home.agent_id).user(&home.user_id);
                event.path = event.path.replace(CALL, call);
                world.send(&route.function, &event).await
            };
            let refused = send(THEIR_CALL).await;
            assert_eq!(refused.status, 404, "{route:?}: {}", refused.body);
            assert_eq!(problem(&refused.body), problem(&send(&nobody).await.body), "{route:?}");
        }
        for (path, ours, theirs) in [
            ("/hooks/{id}", HOOK, THEIR_HOOK),
            ("/events/{id}", EVENT, THEIR_EVENT),
            ("/replays/{id}", REPLAY, THEIR_REPLAY),
        ] {
            if !route.path.contains(path) {
                continue;
            }
            let send = async |id: &str| {
                let mut event = request(&route, home, "", &home.agent_id).user(&home.user_id);
                event.path = event.path.replace(ours, id);
                world.send(&route.function, &event).await
            };
            let refused = send(theirs).await;
            assert_eq!(refused.status, 404, "{route:?}: {}", refused.body);
            assert_eq!(problem(&refused.body), problem(&send(&nobody).await.body), "{route:?}");
        }
        if route.path.contains("/runs/{id}") {
            let send = async |run: &str| {
                let mut event = request(&route, home, &ours, &home.agent_id).user(&home.user_id);
                event.path = event.path.replace(RUN, run);
                world.send(&route.function, &event).await
            };
            let refused = send(THEIR_RUN).await;
            assert_eq!(refused.status, 404, "{route:?}: {}", refused.body);
            assert_eq!(problem(&refused.body), problem(&send(&nobody).await.body), "{route:?}");
        }
        if route.path.contains("/agents/{id}") {
            let refused = send(&ours, &other.agent_id).await;
            assert_eq!(refused.status, 404, "{route:?}: {}", refused.body);
            assert_eq!(problem(&refused.body), problem(&send(&ours, &nobody).await.body), "{route:?}");
        }
        if route.path.contains("/phone-numbers/{id}") {
            let send = async |phone_number: &str| {
                let owner = Tenant { phone_number_id: phone_number.to_owned(), ..home.clone() };
                world.send(&route.function, &request(&route, &owner, "", "").user(&home.user_id)).await
            };
            let refused = send(&other.phone_number_id).await;
            assert_eq!(refused.status, 404, "{route:?}: {}", refused.body);
            assert_eq!(problem(&refused.body), problem(&send(&nobody).await.body), "{route:?}");
        }
    }
    assert_eq!(footprint(&world), before);
}

#[tokio::test]
async fn a_row_that_names_another_organization_is_not_shown_to_this_one() {
    let (world, ours, theirs) = world_with_tools().await;
    // Simulates a fault that attached another organization's tool to our agent.
    world.aws.put("agent_tools", &json!({
        "id": Uuid::new_v4().to_string(), "organization_id": world.home.organization_id, "agent_id": world.home.agent_id,
        "tool_id": theirs, "is_vapi_attached": true, "created_at": "2026-01-01T00:00:00.000Z", "updated_at": "2026-01-01T00:00:00.000Z",
    }));
    let shown = world.list(&format!("/agents/{}/tools", world.home.agent_id)).await.expect(200);
    let ids: Vec<&str> = shown["items"].as_array().unwrap().iter().map(|tool| tool["id"].as_str().unwrap()).collect();
    assert_eq!(ids, [ours]);
}

#[tokio::test]
async fn a_slug_with_wildcards_or_path_characters_is_404() {
    let (world, ..) = world_with_tools().await;
    for slug in [
        "HARBOUR-DENTAL",
        "harbour-denta",
        "%2e%2e",
        "harbour-dental%00",
        "harbour-dental%2ftools",
        "*",
        "%F0%9F%A6%80",
    ] {
        let event = Event::get(&format!("/api/{slug}/tools")).user(&world.home.user_id);
        let answer = world.send("list-tools", &event).await;
        assert_eq!(answer.status, 404, "{slug}: {}", answer.body);
    }
}

#[tokio::test]
async fn a_member_of_two_organizations_sees_each_by_its_own_slug() {
    let (world, ours, theirs) = world_with_tools().await;
    let row = json!({"user_id": world.home.user_id, "organization_id": world.other.organization_id, "role": "member"});
    world.aws.put("organization_members", &row);
    let both = Tenant { user_id: world.home.user_id.clone(), ..world.other.clone() };
    world.list_as(&both, &format!("/tools/{theirs}")).await.expect(200);
    world.list_as(&both, &format!("/tools/{ours}")).await.expect(404);
    world.list(&format!("/tools/{theirs}")).await.expect(404);
}
