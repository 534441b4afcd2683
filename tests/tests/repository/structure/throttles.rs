//! The room that both APIs' throttles leave for calls, by account size.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use tests::{Template, template::Route};

use super::{
    concurrency::{ACCOUNTS, Size, table_row},
    source::read,
};

/// The routes of a call, with the same throttles in every account.
const OF_CALLS: [&str; 5] = [
    "POST /api/tools/{id}/execute",
    "POST /api/vapi/events",
    "POST /api/phone-number/{id}/incoming",
    "POST /api/phone-number/{id}/transfers/{call}",
    "POST /api/phone-number/{id}/transfers/{call}/briefing",
];
/// A chat answer may take as long as its gateway waits; a streamed turn, as `TurnSeconds` says.
const CHATS: [&str; 2] = ["POST /agent/chat", "POST /copilotkit/action"];
const TURNS: [&str; 4] =
    ["POST /agent/stream", "POST /copilotkit", "POST /copilotkit/agent/{id}/run", "POST /copilotkit/stream"];
/// Seconds of a request that fails authentication, including process starts.
const REFUSED: f64 = 0.2;
/// The usual seconds of a turn.
const USUAL_TURN: f64 = 15.0;
/// Executions that stay free for calls in an account of 100, under full queues and chats: ten, and the batches of calls' starts.
const KEPT: f64 = 18.0;

#[derive(Debug, Clone, Copy, PartialEq)]
struct Throttle {
    rate: f64,
    burst: f64,
}

impl Throttle {
    fn of(settings: &Value) -> Self {
        let [rate, burst] = ["ThrottlingRateLimit", "ThrottlingBurstLimit"]
            .map(|name| settings[name].as_f64().unwrap_or_else(|| panic!("{settings} has no {name}")));
        Self { rate, burst }
    }

    /// The maximum executions held by requests that take this many seconds.
    fn holds(self, seconds: f64) -> f64 {
        self.burst + self.rate * seconds
    }
}

fn key(route: &Route) -> String {
    format!("{} {}", route.method, route.path)
}

/// The throttle of each route in an account of this size, including the REST API's own preflights.
fn throttles(account: u64) -> BTreeMap<String, Throttle> {
    let template = Template::read();
    let size = Size::of(account);
    let given = size.given();
    let parameters: Vec<(&str, &str)> = given.iter().map(|(name, value)| (*name, value.as_str())).collect();
    let deployment = template.deployed(&parameters);
    let of_http = deployment.properties("ApiStage").unwrap();
    let usual = Throttle::of(&of_http["DefaultRouteSettings"]);
    let of_rest = deployment.properties("StreamStage").unwrap();
    let mut throttles: BTreeMap<String, Throttle> = template.routes().iter().map(|route| (key(route), usual)).collect();
    for (route, settings) in of_http["RouteSettings"].as_object().unwrap() {
        throttles.insert(route.clone(), Throttle::of(settings));
    }
    for settings in of_rest["MethodSettings"].as_array().unwrap() {
        let path = settings["ResourcePath"].as_str().unwrap();
        // CloudFormation expects a slash and then the path with every slash escaped.
        let path = path.strip_prefix('/').filter(|path| !path.contains('/')).unwrap_or_else(|| panic!("{path}"));
        let route = format!("{} {}", settings["HttpMethod"].as_str().unwrap(), path.replace("~1", "/"));
        assert!(throttles.insert(route.clone(), Throttle::of(settings)).is_none(), "{route} has two throttles");
    }
    throttles
}

#[test]
fn every_method_of_the_streaming_door_has_a_throttle_of_its_own() {
    let routes = Template::read().rest_routes();
    let paths: BTreeSet<&str> = routes.iter().map(|route| route.path.as_str()).collect();
    for account in ACCOUNTS {
        let throttles = throttles(account);
        let preflights = paths.iter().map(|path| format!("OPTIONS {path}"));
        for name in routes.iter().map(key).chain(preflights) {
            assert!(throttles.contains_key(&name), "{name} has no throttle");
        }
        for (name, throttle) in &throttles {
            assert!(
                throttle.rate > 0.0 && throttle.burst >= 1.0 && throttle.burst >= throttle.rate,
                "{name}: {throttle:?}"
            );
        }
        for name in OF_CALLS {
            assert_eq!(
                throttles[name],
                self::throttles(1000)[name],
                "{name}: calls are not throttled for others' sake"
            );
        }
    }
}

/// Throttles keep room where nothing can be reserved.
#[test]
fn throttles_leave_room_for_calls_where_nothing_is_reserved() {
    let template = Template::read();
    let turn = template.0["Parameters"]["TurnSeconds"]["Default"].as_f64().unwrap();
    let gateway = template.0["Globals"]["Function"]["Timeout"].as_f64().unwrap();
    let open = template.routes().into_iter().filter(|route| !route.jwt).chain(template.rest_routes());
    let open: Vec<String> = open.map(|route| key(&route)).filter(|route| !OF_CALLS.contains(&route.as_str())).collect();
    assert!(open.len() > 10, "{open:?}");
    for account in [10, 100] {
        let [reserved, .., left] = table_row(account);
        assert_eq!(reserved, 0);
        let [whole, left] = [account, left].map(|number| f64::from(u32::try_from(number).unwrap()));
        let throttles = throttles(account);
        // A flood without tokens on all routes at once, in addition to all queues.
        let floods: f64 = open.iter().map(|route| throttles[route].rate * REFUSED).sum();
        assert!(floods <= left, "{account}: {floods} of {left} are taken by nobody's requests");
        // The longest chats on one route leave the other routes their share.
        for (doors, seconds) in [(&CHATS[..], gateway), (&TURNS, turn)] {
            for door in doors {
                let held = throttles[*door].holds(seconds);
                let most = if account == 10 { whole - 1.0 } else { left - KEPT };
                assert!(held <= most, "{account}: {door} may hold {held} of {most}");
            }
        }
    }
    let throttles = throttles(100);
    let [.., left] = table_row(100);
    let held: f64 = CHATS.iter().chain(&TURNS).map(|door| throttles[*door].holds(USUAL_TURN)).sum();
    assert!(
        held <= f64::from(u32::try_from(left).unwrap()) - KEPT,
        "people at all doors at once hold {held} of {left}"
    );
}

/// The page's table repeats the template's values: `rate; burst` in accounts of 10, 100 and 1,000.
#[test]
fn the_page_has_the_throttles() {
    let page = read("docs/operations.md");
    let (_, section) = page.split_once("\n### Throttles\n").unwrap();
    let rows: Vec<Vec<&str>> = section
        .split("\n#")
        .next()
        .unwrap()
        .lines()
        .filter(|line| line.starts_with("| ") && line.contains('`'))
        .map(|line| line.split('|').map(str::trim).collect())
        .collect();
    let mut named = BTreeSet::new();
    for (column, account) in ACCOUNTS.into_iter().enumerate() {
        let throttles = throttles(account);
        for row in &rows {
            let routes: Vec<&str> = row[2].split('`').skip(1).step_by(2).collect();
            assert!(!routes.is_empty(), "{row:?}");
            for route in routes {
                let throttle = throttles.get(route).unwrap_or_else(|| panic!("{route} has no throttle"));
                let said = format!("{}; {}", throttle.rate, throttle.burst);
                assert_eq!(row[3 + column], said, "{route} in an account of {account}");
                named.insert(route);
            }
        }
    }
    let template = Template::read();
    let settings = template.0["Resources"]["ApiStage"]["Properties"]["RouteSettings"].as_object().unwrap();
    let rest = template.rest_routes();
    for route in settings.keys().cloned().chain(rest.iter().map(key)) {
        assert!(named.contains(route.as_str()), "docs/operations.md says nothing of {route}");
    }
}
