//! Members of an organization, its open approvals, and the catalogue of all organizations.

use serde_json::{Value, json};
use tests::Event;

use crate::{
    SMALL,
    curve::{
        Cost,
        Expected::{Flat, Linear},
        Scenario, TIMES, measured, once,
    },
    rows::{PAGE, earlier, fill, full, id, world},
    runs::{AMPLE, ledger},
};

pub(crate) const SCENARIOS: &[Scenario] = &[
    Scenario {
        grows: "members of an organization",
        most: 1_000,
        small: SMALL,
        operations: &[
            ("a page of the members", Flat),
            ("a member is added", Flat),
            ("a member gets another role", Flat),
            ("a request of a member", Flat),
        ],
        measure: |size| Box::pin(members(size)),
    },
    Scenario {
        grows: "open approvals",
        most: 1_000,
        small: SMALL,
        operations: &[("a page of the open ones", Flat), ("a decision", Flat)],
        measure: |size| Box::pin(approvals(size)),
    },
    Scenario {
        grows: "tools in the catalogue",
        most: 1_000,
        small: [40, 80],
        operations: &[
            ("the first search of a process", Linear("it reads the catalogue once and makes the index")),
            ("a search", Linear("it reads when each service was loaded")),
            ("a tool's description", Linear("it reads when each service was loaded")),
        ],
        measure: |size| Box::pin(catalogue(size)),
    },
];

async fn members(size: usize) -> Vec<Cost> {
    let world = world().await;
    let organization = &world.home.organization_id;
    for number in 1..size {
        let now = earlier(number);
        world.aws.put("organization_members", &json!({
            "user_id": format!("auth0|{number:06}"), "organization_id": organization, "role": "member", "created_at": now,
            "updated_at": now,
        }));
    }
    let send = async |method: &str, path: &str, body: &Value| {
        let event = Event::new(method, &format!("/api/{}/members{path}", world.home.slug)).user(&world.home.user_id);
        let event = if body.is_null() { event } else { event.text(body.to_string()) };
        world.send("members", &event).await
    };
    let page = format!("/members?limit={PAGE}");
    let page = measured(&world, async |_| {
        full(&world.get_as("members", &world.home, &page).await.expect(200));
    })
    .await;
    let added = measured(&world, async |time| {
        send("POST", "", &json!({"user_id": format!("new|{time}"), "role": "member"})).await.expect(201);
    })
    .await;
    let changed = measured(&world, async |time| {
        send("PATCH", &format!("/new%7C{time}"), &json!({"role": "admin"})).await.expect(200);
    })
    .await;
    let read = measured(&world, async |_| drop(world.list("/tools").await.expect(200))).await;
    vec![page, added, changed, read]
}

async fn approvals(size: usize) -> Vec<Cost> {
    let (world, _crm) = ledger().await;
    let asks = json!({"id": "a", "tool": "ledger_post", "parameters": {"entry": "e"}, "approval": true});
    let automation = world.activate(&world.manual(&json!([asks]))).await;
    for number in 0..TIMES {
        world.start_automation(&automation, &format!("run {number}"), &json!({})).await;
    }
    assert_eq!(world.run_loop(AMPLE).await, 0);
    let real = world.aws.rows("approvals");
    fill(
        &world,
        "approvals",
        &real[0],
        size.saturating_sub(real.len()) + 1,
        |number| json!({"run_id": uuid::Uuid::now_v7(), "arguments_hash": format!("{number:064}")}),
    );
    let page = format!("?status=pending&limit={PAGE}");
    let page = measured(&world, async |_| full(&world.approvals("GET", &page, &Value::Null).await.expect(200))).await;
    let decided = measured(&world, async |time| {
        let path = format!("/{}/approve", id(&real[time]));
        world.approvals("POST", &path, &Value::Null).await.expect(200);
    })
    .await;
    vec![page, decided]
}

async fn catalogue(size: usize) -> Vec<Cost> {
    /// As many as in the real catalogue.
    const OF_A_SERVICE: usize = 10;
    let mut world = world().await;
    for number in 0..size {
        let service = format!("Service {}", number / OF_A_SERVICE);
        if number % OF_A_SERVICE == 0 {
            world.service(&service, None);
        }
        let description = format!("Does the work number {number} on orders and customers.");
        world.service_tool(&service, &format!("tool_{number}"), &description, &["customer", "order"]);
    }
    world.restart();
    let path = |what: &str| Event::get(&format!("/api/{}/discover/{what}", world.home.slug)).user(&world.home.user_id);
    let search = path("search").query("q", "work%20orders").query("limit", "3");
    let (first, answer) = once(&world, world.send("discover", &search)).await;
    full(&answer.expect(200));
    let later = measured(&world, async |_| full(&world.send("discover", &search).await.expect(200))).await;
    let describe = path("fetch_tool_data").query("name", "tool_1");
    let described = measured(&world, async |_| drop(world.send("discover", &describe).await.expect(200))).await;
    vec![first, later, described]
}
