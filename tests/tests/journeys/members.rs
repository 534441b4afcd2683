//! Members of an organization come, change and go, and an owner always stays.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::large_futures,
    reason = "a test says what is wrong and stops"
)]

use std::time::Duration;

use futures_util::{future::join_all, join};
use serde_json::{Value, json};
use shared::{
    Error,
    models::{Contact, Member, OrganizationMember, Role, UserId},
};
use tests::{Answer, Event, Fault, Tenant, Trouble, World};

/// Whom other issuers call so.
const ANA: &str = "auth0|ana";

async fn ask(world: &World, by: &str, method: &str, path: &str, body: &Value) -> Answer {
    ask_of(world, &world.home, by, method, path, body).await
}

async fn ask_of(world: &World, tenant: &Tenant, by: &str, method: &str, path: &str, body: &Value) -> Answer {
    let event = Event::new(method, &format!("/api/{}/members{path}", tenant.slug)).user(by);
    let event = if body.is_null() { event } else { event.text(body.to_string()) };
    Box::pin(world.send("members", &event)).await
}

/// Adds a member as the home organization's owner.
async fn add(world: &World, user: &str, role: &str) -> Value {
    ask(world, &world.home.user_id, "POST", "", &json!({"user_id": user, "role": role})).await.expect(201)
}

fn role(world: &World, user: &str) -> Option<String> {
    let rows = world.aws.rows("organization_members").into_iter();
    let mut here = rows.filter(|row| row["organization_id"] == world.home.organization_id.as_str());
    here.find(|row| row["user_id"] == user).map(|row| row["role"].as_str().unwrap_or_default().to_owned())
}

fn owners(world: &World) -> usize {
    let rows = world.aws.rows("organization_members").into_iter();
    let here = rows.filter(|row| row["organization_id"] == world.home.organization_id.as_str());
    here.filter(|row| row["role"] == "owner").count()
}

async fn tools(world: &World, user: &str) -> u16 {
    world.send("list-tools", &Event::get(&format!("/api/{}/tools", world.home.slug)).user(user)).await.status
}

/// As a path has it.
fn encoded(user: &str) -> String {
    format!("/{}", user.replace('%', "%25").replace('|', "%7C").replace(' ', "%20"))
}

#[track_caller]
fn detail(answer: &Answer, status: u16) -> String {
    assert_eq!(answer.status, status, "{}", answer.body);
    answer.body["detail"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn a_member_comes_is_changed_and_goes() {
    let world = World::start().await;
    let owner = &world.home.user_id;
    assert_eq!(tools(&world, ANA).await, 404);
    let added = add(&world, ANA, "viewer").await;
    assert_eq!((&added["user_id"], &added["role"], &added["name"]), (&json!(ANA), &json!("viewer"), &Value::Null));
    assert!(added["created_at"].is_string() && added.get("organization_id").is_none(), "{added}");
    assert_eq!(tools(&world, ANA).await, 200);

    // The path as API Gateway hands it on, decoded, and as a function URL would.
    for path in [encoded(ANA), format!("/{ANA}")] {
        assert_eq!(ask(&world, owner, "GET", &path, &Value::Null).await.expect(200), added);
    }
    let change = json!({"role": "admin", "name": "Ana Ruiz", "phone": "+1 415 555 0101", "timezone": "Europe/Madrid"});
    let changed = ask(&world, owner, "PATCH", &encoded(ANA), &change).await.expect(200);
    assert_eq!((&changed["role"], &changed["phone"]), (&json!("admin"), &json!("+14155550101")));
    assert_eq!((&changed["created_at"], &changed["email"]), (&added["created_at"], &Value::Null));
    assert_eq!(ask(&world, ANA, "GET", &encoded(ANA), &Value::Null).await.expect(200), changed, "an admin by now");
    // Automations find the person.
    let members = &world.process.members.members;
    let person = members.person(world.home.organization_id.parse().unwrap(), &UserId::new(ANA)).await.unwrap();
    let expected = json!({"id": ANA, "name": "Ana Ruiz", "phone": "+14155550101", "timezone": "Europe/Madrid"});
    assert_eq!(person, expected);

    // Removed with the next request, in every process.
    assert_eq!(
        ask(&world, owner, "DELETE", &encoded(ANA), &Value::Null).await.expect(200),
        json!({"status": "deleted"})
    );
    assert_eq!(tools(&world, ANA).await, 404);
    for method in ["GET", "PATCH", "DELETE"] {
        let body = if method == "PATCH" { json!({"role": "viewer"}) } else { Value::Null };
        assert_eq!(detail(&ask(&world, owner, method, &encoded(ANA), &body).await, 404), "member not found");
    }
}

#[tokio::test]
async fn a_removed_member_is_out_in_every_process() {
    let world = World::start().await;
    add(&world, ANA, "member").await;
    assert_eq!(tools(&world, ANA).await, 200);
    world.aws.clear_operations();
    assert_eq!(tools(&world, ANA).await, 200);
    let asked = world.aws.dynamodb();
    let membership =
        asked.iter().find(|asked| asked.body["TableName"].as_str().unwrap().ends_with("_members")).unwrap();
    assert_eq!(membership.body["ConsistentRead"], true, "not as it was a moment ago");
    ask(&world, &world.home.user_id, "DELETE", &encoded(ANA), &Value::Null).await.expect(200);
    assert_eq!(tools(&world, ANA).await, 404);
}

#[tokio::test]
async fn the_same_once_more_is_the_row_and_another_role_is_for_patch() {
    let world = World::start().await;
    let owner = &world.home.user_id;
    let ana = json!({"user_id": ANA, "role": "member"});
    let (one, other) = join!(ask(&world, owner, "POST", "", &ana), ask(&world, owner, "POST", "", &ana));
    let mut statuses = [one.status, other.status];
    statuses.sort_unstable();
    assert_eq!(statuses, [200, 201]);
    assert_eq!(one.body, other.body);
    for (body, differs) in [
        (json!({"user_id": ANA, "role": "admin"}), "with the role member;"),
        (json!({"user_id": ANA, "role": "member", "name": "Ana"}), "with another name,"),
    ] {
        let refused = detail(&ask(&world, owner, "POST", "", &body).await, 409);
        assert!(refused.contains(differs) && refused.contains("PATCH /api/{slug}/members/{user_id}"), "{refused}");
    }
    assert_eq!(role(&world, ANA).as_deref(), Some("member"));
    // Oneself is a member already.
    let oneself = |role: &str| json!({"user_id": owner, "role": role});
    assert_eq!(ask(&world, owner, "POST", "", &oneself("owner")).await.status, 200);
    detail(&ask(&world, owner, "POST", "", &oneself("member")).await, 409);
    // A change that changes nothing writes nothing.
    let before = world.aws.rows("organization_members");
    assert_eq!(ask(&world, owner, "PATCH", &encoded(ANA), &json!({"role": "member"})).await.expect(200), one.body);
    assert_eq!(world.aws.rows("organization_members"), before);
}

#[tokio::test]
async fn members_are_listed_in_pages_also_those_written_by_hand() {
    let world = World::start().await;
    world.member(&world.home, None);
    for user in [ANA, "50% | of", "日本", "0193f3b2-1111-7000-8000-000000000001"] {
        add(&world, user, "member").await;
    }
    let mut seen = Vec::new();
    let mut cursor = None;
    loop {
        let event =
            Event::get(&format!("/api/{}/members", world.home.slug)).user(&world.home.user_id).query("limit", "2");
        let event = cursor.iter().fold(event, |event, cursor: &String| event.query("cursor", cursor));
        let page = world.send("members", &event).await.expect(200);
        assert!(page["items"].as_array().unwrap().len() <= 2);
        seen.extend(page["items"].as_array().unwrap().iter().map(|item| item["user_id"].as_str().unwrap().to_owned()));
        let Some(next) = page["next_cursor"].as_str() else { break };
        // Another tenant cannot use this cursor.
        let event = Event::get(&format!("/api/{}/members", world.other.slug)).user(&world.other.user_id);
        let elsewhere = world.send("members", &event.query("cursor", next)).await.expect(200);
        assert!(!elsewhere.to_string().contains(ANA), "{elsewhere}");
        cursor = Some(next.to_owned());
    }
    let mut all = seen.clone();
    all.sort_unstable();
    all.dedup();
    assert_eq!((seen.len(), all), (6, seen));
    // A member without role and times is a viewer, who can be promoted and removed.
    let by_hand = format!("user|{}|no role", world.home.slug);
    let (owner, path) = (&world.home.user_id, encoded(&by_hand));
    let shown = ask(&world, owner, "GET", &path, &Value::Null).await.expect(200);
    assert_eq!((&shown["role"], &shown["created_at"]), (&json!("viewer"), &Value::Null));
    ask(&world, owner, "PATCH", &path, &json!({"role": "member"})).await.expect(200);
    assert_eq!(role(&world, &by_hand).as_deref(), Some("member"));
    ask(&world, owner, "DELETE", &path, &Value::Null).await.expect(200);
    ask(&world, owner, "DELETE", &encoded("50% | of"), &Value::Null).await.expect(200);
    assert_eq!(role(&world, "50% | of"), None);
}

#[tokio::test]
async fn only_owners_make_change_and_remove_owners() {
    let world = World::start().await;
    let admin = world.member(&world.home, Some("admin"));
    add(&world, ANA, "owner").await;
    add(&world, "bo", "member").await;
    for (method, path, body) in [
        ("POST", String::new(), json!({"user_id": "new", "role": "owner"})),
        ("PATCH", encoded("bo"), json!({"role": "owner"})),
        ("PATCH", encoded(&admin), json!({"role": "owner"})),
        ("PATCH", encoded(ANA), json!({"role": "admin"})),
        ("PATCH", encoded(ANA), json!({"email": "mine@example.com"})),
        ("DELETE", encoded(ANA), Value::Null),
    ] {
        let before = world.aws.rows("organization_members");
        let refused = detail(&ask(&world, &admin, method, &path, &body).await, 403);
        assert!(refused.contains("role owner"), "{refused}");
        assert_eq!(world.aws.rows("organization_members"), before);
    }
    // Everything else is open to admins, changes of other admins too.
    ask(&world, &admin, "PATCH", &encoded("bo"), &json!({"role": "admin"})).await.expect(200);
    ask(&world, &admin, "PATCH", &encoded("bo"), &json!({"role": "viewer"})).await.expect(200);
    ask(&world, &admin, "DELETE", &encoded("bo"), &Value::Null).await.expect(200);
    ask(&world, &admin, "PATCH", &encoded(&admin), &json!({"role": "member"})).await.expect(200);
    assert_eq!(ask(&world, &admin, "GET", "", &Value::Null).await.status, 403);
}

#[tokio::test]
async fn a_member_may_leave_but_not_remove_others() {
    let world = World::start().await;
    add(&world, ANA, "member").await;
    for role_of in [Some("viewer"), Some("member"), None] {
        let user = world.member(&world.home, role_of);
        for other in [ANA, "nobody", &world.home.user_id] {
            let refused = detail(&ask(&world, &user, "DELETE", &encoded(other), &Value::Null).await, 403);
            assert!(refused.contains("role admin"), "as if there were nobody to tell of: {refused}");
        }
        ask(&world, &user, "DELETE", &encoded(&user), &Value::Null).await.expect(200);
        assert_eq!(tools(&world, &user).await, 404);
    }
    assert_eq!(role(&world, ANA).as_deref(), Some("member"));
}

#[tokio::test]
async fn owners_cannot_see_or_change_members_of_another_organization() {
    let world = World::start().await;
    // A user of both.
    let row = json!({"user_id": ANA, "organization_id": world.other.organization_id, "role": "owner"});
    world.aws.put("organization_members", &row);
    add(&world, ANA, "viewer").await;
    let theirs = encoded(&world.other.user_id);
    let owner = &world.home.user_id;
    for (method, body) in [("GET", Value::Null), ("PATCH", json!({"role": "viewer"})), ("DELETE", Value::Null)] {
        assert_eq!(ask(&world, owner, method, &theirs, &body).await.status, 404);
        assert_eq!(ask_of(&world, &world.other, owner, method, &theirs, &body).await.status, 404);
    }
    ask(&world, owner, "DELETE", &encoded(ANA), &Value::Null).await.expect(200);
    let left: Vec<Value> =
        world.aws.rows("organization_members").into_iter().filter(|row| row["user_id"] == ANA).collect();
    assert_eq!(left, [row]);
}

#[tokio::test]
async fn the_last_owner_stays_until_there_is_another() {
    let world = World::start().await;
    let owner = &world.home.user_id;
    add(&world, ANA, "admin").await;
    for (method, body) in [("DELETE", Value::Null), ("PATCH", json!({"role": "admin"}))] {
        let refused = detail(&ask(&world, owner, method, &encoded(owner), &body).await, 409);
        assert!(refused.contains("last owner") && refused.contains("make another member an owner first"), "{refused}");
    }
    // Their name is theirs to change.
    ask(&world, owner, "PATCH", &encoded(owner), &json!({"name": "Olu"})).await.expect(200);
    ask(&world, owner, "PATCH", &encoded(ANA), &json!({"role": "owner"})).await.expect(200);
    ask(&world, owner, "PATCH", &encoded(owner), &json!({"role": "member"})).await.expect(200);
    assert_eq!(owners(&world), 1);
    detail(&ask(&world, ANA, "DELETE", &encoded(ANA), &Value::Null).await, 409);
}

#[tokio::test]
async fn owners_who_go_at_once_leave_one_behind() {
    for (number, everybody_leaves) in [(2, true), (2, false), (3, true), (3, false), (5, true)] {
        let world = World::start().await;
        let mut users = vec![world.home.user_id.clone()];
        for other in 1..number {
            add(&world, &format!("owner-{other}"), "owner").await;
            users.push(format!("owner-{other}"));
        }
        // All requests have read before the first one writes.
        world.aws.slow_down(Duration::from_millis(20));
        let asked = users.iter().enumerate().map(|(index, user)| {
            // Each leaves, or removes the next.
            let gone = if everybody_leaves { user } else { &users[(index + 1) % users.len()] };
            let world = &world;
            async move {
                let (method, body) =
                    if index % 2 == 0 { ("DELETE", Value::Null) } else { ("PATCH", json!({"role": "member"})) };
                ask(world, user, method, &encoded(gone), &body).await
            }
        });
        let answers = join_all(asked).await;
        let done = answers.iter().filter(|answer| answer.status == 200).count();
        assert!(done >= 1 && owners(&world) == users.len() - done, "{number}: {answers:?}");
        assert!(owners(&world) >= 1, "{number}: {answers:?}");
        // No answer is a fault of ours.
        assert!(answers.iter().all(|answer| [200, 404, 409].contains(&answer.status)), "{number}: {answers:?}");
    }
}

#[tokio::test]
async fn an_owner_who_lost_the_role_meanwhile_changes_no_member() {
    let world = World::start().await;
    let members = &world.process.members.members;
    let organization = world.home.organization_id.parse().unwrap();
    add(&world, ANA, "viewer").await;
    let before = members.find(organization, &UserId::new(ANA)).await.unwrap().unwrap();
    // With roles from the time of their access check.
    for (role_then, role_now) in [(Role::Admin, "member"), (Role::Owner, "admin")] {
        let user = world.member(&world.home, Some(role_now));
        let by = Member { organization_id: organization, user_id: UserId::new(&user), role: role_then };
        let new = |role: Role| OrganizationMember::new(organization, UserId::new("new"), role, Contact::default());
        let stored = world.aws.rows("organization_members");
        let made = if role_then == Role::Owner { Role::Owner } else { Role::Viewer };
        let added = members.add(organization, &by, &new(made)).await.map(drop);
        let changed =
            members.change(organization, &by, &before, made.max(Role::Member), &before.contact).await.map(drop);
        let mut refused = vec![added, changed];
        if role_then == Role::Admin {
            refused.push(members.remove(organization, &by, &before).await);
            let own = OrganizationMember { user_id: by.user_id.clone(), role: Role::Admin, ..before.clone() };
            refused.push(members.change(organization, &by, &own, Role::Viewer, &own.contact).await.map(drop));
        }
        for refused in refused {
            let Err(Error::Conflict(sentence)) = refused else { panic!("{role_now}: {refused:?}") };
            assert!(sentence.contains("came in between"), "{sentence}");
        }
        assert_eq!(world.aws.rows("organization_members"), stored);
    }
}

#[tokio::test]
async fn a_change_with_a_lost_answer_is_found_by_the_retry() {
    let world = World::start().await;
    let owner = &world.home.user_id;
    let ana = json!({"user_id": ANA, "role": "member"});
    let lost = || Fault::new("TransactWriteItems", "organization_members", Trouble::DropAfter).times(9);
    world.aws.inject(lost());
    assert_eq!(ask(&world, owner, "POST", "", &ana).await.status, 503);
    world.aws.clear_faults();
    ask(&world, owner, "POST", "", &ana).await.expect(200);
    world.aws.inject(lost());
    ask(&world, owner, "DELETE", &encoded(ANA), &Value::Null).await.expect(200);
    world.aws.clear_faults();
    assert_eq!(role(&world, ANA), None);
    // A failed removal says so.
    add(&world, ANA, "member").await;
    world.aws.inject(Fault::throttled("TransactWriteItems", "organization_members").times(9));
    assert_eq!(ask(&world, owner, "DELETE", &encoded(ANA), &Value::Null).await.status, 503);
    assert_eq!(role(&world, ANA).as_deref(), Some("member"));
}
