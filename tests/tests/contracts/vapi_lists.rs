//! VAPI's lists, from which a lost call or tool is found again.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test says what is wrong and stops")]

use local::standins::{
    Standin,
    vapi::{self as standin, Options},
};
use serde_json::{Map, Value, json};
use shared::{
    clients::{
        Vapi, http_client,
        vapi::{Account, OutboundCall},
    },
    models::{E164, Timestamp},
};
use tests::clients::{ample, anywhere};

const ASSISTANT: &str = "33333333-3333-4333-8333-333333333333";
const NUMBER_ID: &str = "66666666-6666-4666-8666-666666666666";
const NUMBER: &str = "+15550100002";
const CALLER: &str = "+15550100001";
const CALLBACK: &str = "https://api.example.com/api/tools/0190a1b2-0000-7000-8000-000000000001/execute";

fn account() -> Account {
    serde_json::from_value(json!({"api_key": "vapi-private-key"})).unwrap()
}

fn client(url: &str) -> Vapi {
    Vapi::new(http_client().unwrap(), url)
}

fn lists_read(vapi: &Standin<standin::Vapi>) -> usize {
    vapi.requests().iter().filter(|request| request.method == "GET").count()
}

#[tokio::test]
async fn a_placed_call_is_found_among_many_large_ones() {
    // Pages of 20 calls, each of which begins with the last call of the page before; a page of 5 MB is refused and halved.
    for (calls, bytes, pages) in [(60, 100_000, 4), (18, 300_000, 3)] {
        let options = Options::default().with_assistant(ASSISTANT).with_number_id(NUMBER_ID, NUMBER, ASSISTANT);
        let vapi = standin::start(anywhere(), options).unwrap();
        let client = client(&vapi.url);
        let person: E164 = CALLER.parse().unwrap();
        let call = OutboundCall {
            phone_number_id: NUMBER_ID,
            assistant_id: ASSISTANT,
            person: &person,
            name: "the call",
            variables: &Map::new(),
            message: None,
        };
        let placed = client.place_call(&account(), call, ample()).await.unwrap();
        let busy = standin::PhoneCall {
            assistant_id: Some(ASSISTANT.to_owned()),
            customer_number: CALLER.to_owned(),
            phone_number: NUMBER.to_owned(),
            phone_number_id: Some(NUMBER_ID.to_owned()),
            variable_values: Map::from_iter([("text".to_owned(), Value::from("x".repeat(bytes)))]),
            ..standin::PhoneCall::default()
        };
        for _ in 0..calls {
            vapi.begin_call(&busy).unwrap();
        }
        let find = async |name: &str| {
            let found = client.find_placed(&account(), NUMBER_ID, name, Timestamp::now(), ample()).await.unwrap();
            found.map(|found| found.id.to_string())
        };
        assert_eq!(find("the call").await, Some(placed.id.to_string()));
        assert_eq!(lists_read(&vapi), pages, "{calls} calls");
        assert_eq!(find("another call").await, None);
    }
}

#[tokio::test]
async fn a_tool_is_found_behind_a_page_of_newer_ones() {
    let tool = |url: &str| json!({"type": "apiRequest", "method": "POST", "url": url, "name": "book_slot"});
    let newer = (0..150).map(|number| tool(&format!("https://api.example.com/{number}")));
    let tools = std::iter::once(tool(CALLBACK)).chain(newer).collect();
    let vapi = standin::start(anywhere(), Options { tools, ..Options::default() }).unwrap();
    let oldest = vapi.tools().pop().unwrap()["id"].clone();
    let find = async |since: Option<Timestamp>| {
        client(&vapi.url).tools_calling(&account(), CALLBACK, since, ample()).await.unwrap()
    };
    assert_eq!(json!(find(None).await), json!([oldest]));
    assert_eq!(lists_read(&vapi), 2);
    let later = Timestamp::now().plus(std::time::Duration::from_secs(3_600));
    assert_eq!(find(Some(later)).await, Vec::<String>::new());
}
