//! Organizations: an operator makes them, sets their budgets, and restores an owner.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "a test says what is wrong and stops")]

use std::time::Duration;

use futures_util::future::join_all;
use serde_json::{Value, json};
use shared::{Deadline, Error, Result};
use tests::{Event, Fault, Template, Trouble, World};

const OWNER: &str = "0193f3b2-1111-7000-8000-000000000001";

async fn invoke(world: &World, event: Value) -> Result<Value> {
    Box::pin(operator::handle(&world.process.operator, event, Deadline::after(Duration::from_secs(60)))).await
}

async fn make(world: &World, wanted: Value) -> Result<Value> {
    invoke(world, json!({"organization": wanted})).await
}

fn stored(world: &World) -> Value {
    json!([world.aws.rows("organizations"), world.aws.rows("organization_members")])
}

fn wrong(refused: Result<Value>) -> Vec<String> {
    match refused {
        Err(Error::Invalid(problems)) => problems.iter().map(|problem| problem.field.clone()).collect(),
        other => panic!("accepted: {other:?}"),
    }
}

#[track_caller]
fn conflict(refused: Result<Value>) -> String {
    match refused {
        Err(Error::Conflict(sentence)) => sentence,
        other => panic!("no conflict: {other:?}"),
    }
}

async fn tools(world: &World, slug: &str, user: &str) -> u16 {
    world.send("list-tools", &Event::get(&format!("/api/{slug}/tools")).user(user)).await.status
}

#[tokio::test]
async fn an_organization_is_made_with_its_owner_who_is_let_in_and_made_again_nothing_changes() {
    let world = World::start().await;
    let wanted = json!({"slug": "tide-dental", "owner": OWNER, "name": "Tide Dental"});
    let made = make(&world, wanted.clone()).await.unwrap();
    assert_eq!(made["result"], "made");
    let organization = &made["organization"];
    assert_eq!((&organization["slug"], &organization["name"]), (&json!("tide-dental"), &json!("Tide Dental")));
    assert_eq!(tools(&world, "tide-dental", OWNER).await, 200);
    assert_eq!(tools(&world, "tide-dental", &world.home.user_id).await, 404);
    let row = world.aws.row("organizations", organization["id"].as_str().unwrap()).unwrap();
    assert_eq!(row["created_at"], organization["created_at"]);
    let member = world.aws.rows("organization_members").into_iter().find(|row| row["user_id"] == OWNER).unwrap();
    assert_eq!((&member["role"], &member["organization_id"]), (&json!("owner"), &organization["id"]));
    assert!(member["created_at"].is_string() && member["updated_at"].is_string());

    let before = stored(&world);
    for again in [
        wanted,
        json!({"slug": "tide-dental", "owner": OWNER}),
        json!({"slug": "tide-dental", "owner": OWNER, "name": "Else", "add_owner": true}),
    ] {
        let again = make(&world, again).await.unwrap();
        assert_eq!((&again["result"], &again["organization"]), (&json!("exists"), organization));
    }
    assert_eq!(stored(&world), before);
    // The default name is the slug.
    let plain = make(&world, json!({"slug": "x", "owner": "auth0|7"})).await.unwrap();
    assert_eq!(plain["organization"]["name"], "x");
}

#[tokio::test]
async fn a_slug_is_one_organizations_also_of_one_that_was_written_by_hand() {
    let world = World::start().await;
    make(&world, json!({"slug": "harbour", "owner": OWNER})).await.unwrap();
    // The seeded rows have no guard, like rows written by hand.
    for (slug, owner) in [("harbour", OWNER), (&world.home.slug[..], &world.home.user_id[..])] {
        let before = world.aws.rows("organization_members");
        let refused = conflict(make(&world, json!({"slug": slug, "owner": "somebody-else"})).await);
        assert!(refused.contains("another slug") && refused.contains("ADD_OWNER=1"), "{refused}");
        assert!(refused.contains(&format!("POST /api/{slug}/members")), "{refused}");
        assert!(!refused.contains(owner), "{refused}");
        assert_eq!(world.aws.rows("organization_members"), before);
        let guard = world.aws.row("organizations", &format!("slug#{slug}")).unwrap();
        assert!(world.aws.row("organizations", guard["organization_id"].as_str().unwrap()).unwrap()["slug"] == slug);
        assert_eq!(make(&world, json!({"slug": slug, "owner": owner})).await.unwrap()["result"], "exists");
        assert_eq!(tools(&world, slug, owner).await, 200);
    }
}

#[tokio::test]
async fn of_many_who_want_a_slug_at_once_one_has_it() {
    let world = World::start().await;
    let owners = (0..8).map(|number| format!("owner-{number}"));
    let asked = owners.map(|owner| make(&world, json!({"slug": "harbour", "owner": owner})));
    let made = join_all(asked).await;
    let (made, refused): (Vec<_>, Vec<_>) = made.into_iter().partition(Result::is_ok);
    assert_eq!(made.len(), 1);
    for refused in refused {
        drop(conflict(refused));
    }
    let rows = world.aws.rows("organizations");
    assert_eq!(rows.iter().filter(|row| row["slug"] == "harbour").count(), 1);
    let members = world.aws.rows("organization_members");
    assert_eq!(members.iter().filter(|row| row["user_id"].as_str().unwrap().starts_with("owner-")).count(), 1);
}

#[tokio::test]
async fn a_making_that_broke_off_is_none_and_one_whose_answer_was_lost_is_found() {
    let world = World::start().await;
    let before = stored(&world);
    let wanted = json!({"slug": "harbour", "owner": OWNER});
    world.aws.inject(Fault::new("TransactWriteItems", "organizations", Trouble::Error("ValidationException")));
    make(&world, wanted.clone()).await.unwrap_err();
    assert_eq!(stored(&world), before);
    world.aws.inject(Fault::new("TransactWriteItems", "organizations", Trouble::DropAfter).times(9));
    make(&world, wanted.clone()).await.unwrap_err();
    world.aws.clear_faults();
    assert_eq!(make(&world, wanted).await.unwrap()["result"], "exists");
    assert_eq!(tools(&world, "harbour", OWNER).await, 200);
}

#[tokio::test]
async fn an_operator_lets_an_owner_in_again() {
    let world = World::start().await;
    make(&world, json!({"slug": "harbour", "owner": "a-slip-of-the-pen"})).await.unwrap();
    let before = stored(&world);
    let misspelt = make(&world, json!({"slug": "harbor", "owner": OWNER, "add_owner": true})).await;
    assert_eq!(wrong(misspelt), ["organization.slug"]);
    assert_eq!(stored(&world), before, "a misspelt slug makes no organization");
    let added = make(&world, json!({"slug": "harbour", "owner": OWNER, "add_owner": true})).await.unwrap();
    assert_eq!(added["result"], "owner_added");
    assert_eq!(tools(&world, "harbour", OWNER).await, 200);
    // An existing member becomes an owner.
    let user = world.member(&world.home, Some("viewer"));
    make(&world, json!({"slug": world.home.slug, "owner": user, "add_owner": true})).await.unwrap();
    let row = world.aws.rows("organization_members").into_iter().find(|row| row["user_id"] == *user).unwrap();
    assert_eq!(row["role"], "owner");
}

#[tokio::test]
async fn all_wrong_fields_are_named_and_nothing_is_written() {
    let world = World::start().await;
    let before = stored(&world);
    for (wanted, fields) in [
        (json!({}), vec!["organization.slug", "organization.owner"]),
        (json!([]), vec!["organization"]),
        (json!({"slug": "", "owner": " "}), vec!["organization.slug", "organization.owner"]),
        (json!({"slug": 7, "owner": []}), vec!["organization.slug", "organization.owner"]),
        (json!({"slug": "Tide Dental", "owner": OWNER}), vec!["organization.slug"]),
        (json!({"slug": "-x", "owner": OWNER, "colour": 1}), vec!["organization.slug", "organization.colour"]),
        (json!({"slug": "a".repeat(64), "owner": "b".repeat(256)}), vec!["organization.slug", "organization.owner"]),
        (json!({"slug": "x", "owner": "a\nb", "name": "c\u{7}"}), vec!["organization.owner", "organization.name"]),
        (json!({"slug": "x", "owner": OWNER, "name": "n".repeat(201)}), vec!["organization.name"]),
        (json!({"slug": "x", "owner": OWNER, "add_owner": "yes"}), vec!["organization.add_owner"]),
    ] {
        assert_eq!(wrong(make(&world, wanted.clone()).await), fields, "{wanted}");
    }
    assert_eq!(
        wrong(invoke(&world, json!({"organization": {"slug": "x", "owner": "y"}, "files": {}})).await),
        ["files"]
    );
    assert_eq!(stored(&world), before);
}

#[tokio::test]
async fn no_slug_is_taken_for_another_route() {
    let world = World::start().await;
    let mut taken: Vec<String> = Vec::new();
    for route in Template::read().routes() {
        let second = route.path.strip_prefix("/api/").and_then(|rest| rest.split('/').next());
        taken.extend(second.filter(|second| !second.starts_with('{')).map(str::to_owned));
    }
    taken.sort_unstable();
    taken.dedup();
    assert_eq!(taken, operator::organization::RESERVED);
    for slug in taken {
        assert_eq!(wrong(make(&world, json!({"slug": slug, "owner": OWNER})).await), ["organization.slug"]);
    }
}

#[tokio::test]
async fn an_operator_sets_the_budgets_of_an_organization() {
    let world = World::start().await;
    let (slug, id) = (world.home.slug.clone(), world.home.organization_id.clone());
    world.aws.change("organizations", &id, json!({"budgets": {"runs_per_hour": "many", "newer": 1}}));
    let set = async |budgets: Value| {
        let mut new = json!({"slug": slug});
        new.as_object_mut().unwrap().extend(budgets.as_object().unwrap().clone());
        invoke(&world, json!({"budgets": new})).await
    };
    let done = set(json!({"runs_per_hour": 3, "platform_cost_per_month": 2.5})).await.unwrap();
    assert_eq!(done["result"], "budgets_set");
    assert_eq!(done["organization"]["budgets"], json!({"runs_per_hour": 3, "platform_cost_per_month": 2.5}));
    let usage = world.send("usage", &Event::get(&format!("/api/{slug}/usage")).user(&world.home.user_id)).await;
    let usage = usage.expect(200);
    assert_eq!(
        (&usage["runs_per_hour"]["limit"], &usage["platform_cost_per_month"]["limit"]),
        (&json!(3), &json!(2.5))
    );

    let done = set(json!({"runs_per_hour": null, "executions_per_hour": 0})).await.unwrap();
    assert_eq!(done["organization"]["budgets"], json!({"executions_per_hour": 0, "platform_cost_per_month": 2.5}));
    let row = world.aws.row("organizations", &id).unwrap();
    assert_eq!(row["budgets"], json!({"executions_per_hour": 0, "platform_cost_per_month": 2.5, "newer": 1}));

    for (budgets, field) in [
        (json!({}), "budgets.runs_per_hour"),
        (json!({"runs_per_hour": -1}), "budgets.runs_per_hour"),
        (json!({"executions_per_hour": 1.5}), "budgets.executions_per_hour"),
        (json!({"own_cost_per_month": "7"}), "budgets.own_cost_per_month"),
        (json!({"runs_per_hour": 1, "runs_per_day": 1}), "budgets.runs_per_day"),
    ] {
        assert_eq!(wrong(set(budgets).await), [field]);
    }
    assert_eq!(world.aws.row("organizations", &id).unwrap(), row);
    let nobody = invoke(&world, json!({"budgets": {"slug": "nobody", "runs_per_hour": 1}})).await;
    assert!(matches!(nobody, Err(Error::NotFound("organization"))));
}
