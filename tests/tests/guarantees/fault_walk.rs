//! Each request of each flow to AWS or a vendor fails once, in each way, and the promises hold afterwards.
//!
//! Two requests of a play fail, chosen by a printed seed; the shortest failing case is shown. `make faults` plays many such pairs,
//! and every way.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "a test says what is wrong and stops")]

mod flows;

use std::fmt;

use futures_util::{StreamExt as _, stream};
use tests::{
    Fault, Trouble, World, fault_options,
    random::Random,
    standins::{self, Effect},
    vapi_differences,
};

use flows::{Flow, Record, Scene, Told};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Service {
    Aws,
    Vapi,
    Twilio,
    Pipedream,
    Llm,
}

const SERVICES: [Service; 5] = [Service::Aws, Service::Vapi, Service::Twilio, Service::Pipedream, Service::Llm];

const QUEUES: [&str; 4] = ["start-tools", "executions", "runs", "scheduled"];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    /// Refused for good, without an effect.
    Refused,
    /// Too many requests: every attempt, without an effect.
    Throttled,
    /// The connection is cut before the effect.
    CutBefore,
    /// The connection is cut after the effect.
    CutAfter,
    /// The process is killed before the effect. Only of AWS.
    KilledBefore,
    /// The process is killed after the effect. Only of AWS.
    KilledAfter,
    /// 500, without an effect. Only of vendors.
    Broken,
    /// 500, after the effect. Only of vendors.
    BrokenAfter,
    /// An answer that is no JSON, after the effect. Only of vendors.
    Garbage,
    /// The right answer, 300 ms late. Only of vendors.
    Slow,
}

const OF_AWS: [Way; 6] =
    [Way::Refused, Way::CutAfter, Way::KilledAfter, Way::Throttled, Way::CutBefore, Way::KilledBefore];
/// Of `OF_AWS` without `FAULT_WAYS=all`: as the first of them, the others have no effect.
const USUAL_OF_AWS: usize = 3;
const OF_VENDORS: [Way; 8] = [
    Way::Refused,
    Way::Throttled,
    Way::CutBefore,
    Way::CutAfter,
    Way::Broken,
    Way::BrokenAfter,
    Way::Garbage,
    Way::Slow,
];

impl Service {
    fn ways(self) -> &'static [Way] {
        match self {
            Self::Aws if fault_options::all() => &OF_AWS,
            Self::Aws => OF_AWS.split_at(USUAL_OF_AWS).0,
            Self::Vapi | Self::Twilio | Self::Pipedream | Self::Llm => &OF_VENDORS,
        }
    }

    /// Requests so far.
    fn requests(self, world: &World) -> usize {
        match self {
            Self::Aws => world.aws.operations().len(),
            Self::Vapi => world.vapi.requests().len(),
            Self::Twilio => world.twilio.requests().len(),
            Self::Pipedream => world.pipedream.requests().len(),
            Self::Llm => world.llm.requests().len(),
        }
    }
}

/// The request with this number to a service fails in this way.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Point {
    service: Service,
    request: u32,
    way: Way,
}

impl fmt::Debug for Point {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} request {} {:?}", self.service, self.request, self.way)
    }
}

impl Point {
    fn inject(self, world: &World) {
        let vendor = |inject: &dyn Fn(standins::Fault)| {
            if self.request > 0 {
                inject(standins::Fault::delay(0).times(self.request));
            }
            inject(match self.way {
                Way::Refused => standins::Fault::status(400),
                Way::Throttled => standins::Fault::status(429).times(9),
                Way::CutBefore => standins::Fault::drop_before(),
                Way::CutAfter => standins::Fault::drop_after(),
                Way::Broken => standins::Fault::status(500),
                Way::BrokenAfter => standins::Fault::status(500).with_effect(Effect::First),
                Way::Garbage => standins::Fault::body("<html>".into()).with_effect(Effect::First),
                Way::Slow => standins::Fault::delay(300),
                Way::KilledBefore | Way::KilledAfter => unreachable!("only of AWS"),
            });
        };
        match self.service {
            Service::Aws => {
                let (trouble, times) = match self.way {
                    Way::Refused => (Trouble::Error("AccessDeniedException"), 1),
                    Way::Throttled => (Trouble::Error("ProvisionedThroughputExceededException"), 3),
                    Way::CutBefore => (Trouble::DropBefore, 3),
                    Way::CutAfter => (Trouble::DropAfter, 3),
                    Way::KilledBefore => (Trouble::StallBefore, 1),
                    Way::KilledAfter => (Trouble::StallAfter, 1),
                    Way::Broken | Way::BrokenAfter | Way::Garbage | Way::Slow => unreachable!("only of vendors"),
                };
                world.aws.inject(Fault::new("*", "*", trouble).after(self.request).times(times));
            }
            Service::Vapi => vendor(&|fault| world.vapi.inject(fault)),
            Service::Twilio => vendor(&|fault| world.twilio.inject(fault)),
            Service::Pipedream => vendor(&|fault| world.pipedream.inject(fault)),
            Service::Llm => vendor(&|fault| world.llm.inject(fault)),
        }
    }

    /// Whether the request was reached. The faults are removed.
    fn reached(self, world: &World) -> bool {
        let whole = |left: Vec<standins::Fault>| match self.way {
            Way::Throttled => left.iter().any(|fault| fault.status == Some(429) && fault.times == 9),
            _ => !left.is_empty(),
        };
        let left = match self.service {
            Service::Aws => world.aws.faults_not_reached() > 0,
            Service::Vapi => whole(world.vapi.faults()),
            Service::Twilio => whole(world.twilio.faults()),
            Service::Pipedream => whole(world.pipedream.faults()),
            Service::Llm => whole(world.llm.faults()),
        };
        !left
    }
}

fn clear(world: &World) {
    world.aws.clear_faults();
    for clear in [
        &(|| world.vapi.clear_faults()) as &dyn Fn(),
        &|| world.twilio.clear_faults(),
        &|| world.pipedream.clear_faults(),
        &|| world.llm.clear_faults(),
    ] {
        clear();
    }
}

/// Plays the flow once with these faults. Whether all were reached, and the broken promises.
async fn play(scene: &mut Scene, points: &[Point]) -> (bool, Vec<String>) {
    scene.begin().await;
    for point in points {
        point.inject(&scene.world);
    }
    let told = tokio::select! {
        told = scene.play() => told,
        () = scene.world.aws.stalled() => Told::Nothing,
    };
    let reached = points.iter().all(|point| point.reached(&scene.world));
    clear(&scene.world);
    scene.world.restart();
    let again = scene.repeated(told).await;
    settled(scene).await;
    (reached, broken_promises(scene, told, again).await)
}

/// Delivers every message and lets time pass, until nothing waits.
async fn settled(scene: &Scene) {
    let world = &scene.world;
    scene.put_back();
    for _ in 0..8 {
        world.later();
        scene.approve().await;
        if QUEUES.iter().all(|queue| world.aws.messages(queue).is_empty()) {
            break;
        }
        for queue in QUEUES {
            scene.deliver(queue, 900).await;
        }
    }
    world.settle().await;
}

async fn broken_promises(scene: &Scene, told: Told, again: Told) -> Vec<String> {
    let (world, effects, record) = (&scene.world, scene.effects(), scene.record().await);
    let mut broken = Vec::new();
    if effects > 1 {
        broken.push(format!("{effects} effects"));
    }
    for (whose, told) in [("the answer", told), ("the answer to the repetition", again)] {
        match told {
            // An accepted request has a record, which says how it ended.
            Told::Done if effects == 0 && !scene.flow.is_certain() => {
                broken.push(format!("{whose} says done, and nothing was done"));
            }
            Told::Failed if effects == 1 && again != Told::Done => {
                broken.push(format!("{whose} says failed, and it was done"));
            }
            _ => {}
        }
    }
    match record {
        Record::Succeeded if effects == 0 => broken.push("the record says done, and nothing was done".to_owned()),
        Record::Failed if effects == 1 => broken.push("the record says failed, and it was done".to_owned()),
        Record::Open => broken.push("the record never ends".to_owned()),
        Record::Missing if scene.flow.is_certain() && again == Told::Done => {
            broken.push("it was accepted, and there is no record".to_owned());
        }
        _ => {}
    }
    for queue in QUEUES {
        for queue in [queue.to_owned(), format!("{queue}-dead")] {
            let left = world.aws.messages(&queue).len();
            if left > 0 {
                broken.push(format!("{left} messages are left in {queue}"));
            }
        }
    }
    broken.extend(vapi_differences::differences(world));
    broken
}

/// Plays in one world: an organization may begin a hundred runs an hour.
const MOST_PLAYS: u32 = 80;
/// Much of a play is waiting, so several worlds are played in side by side.
const WORLDS: usize = 6;

/// The broken promises of this flow, for each request of a play that fails.
async fn walk(flow: Flow) {
    let mut scene = flow.scene().await;
    let before = SERVICES.map(|service| service.requests(&scene.world));
    let (_, broken) = play(&mut scene, &[]).await;
    let asked = SERVICES.iter().zip(before).filter(|(service, before)| service.requests(&scene.world) > *before);
    let asked: Vec<Service> = asked.map(|(service, _)| *service).collect();
    let effects = scene.effects();
    assert!(broken.is_empty() && effects == 1, "{flow:?} without a fault: {broken:?}, {effects} effects");
    let ways = asked.iter().flat_map(|service| service.ways().iter().map(|&way| (*service, way)));
    let walks = stream::iter(ways).map(|(service, way)| Box::pin(walk_in(flow, service, way)));
    let (mut plays, mut found) = (0, Vec::new());
    for (played, broken) in walks.buffer_unordered(WORLDS).collect::<Vec<_>>().await {
        plays += played;
        found.extend(broken);
    }
    found.sort();
    assert!(found.is_empty(), "{flow:?}, {} of {plays} plays:\n{}", found.len(), found.join("\n"));
}

/// Fails one request after the other in this way, until a play ends before the request. The number of plays, and what was broken.
async fn walk_in(flow: Flow, service: Service, way: Way) -> (u32, Vec<String>) {
    let mut scene = flow.scene().await;
    let mut found = Vec::new();
    for request in 0.. {
        assert!(request < 200, "{flow:?} never ends");
        let point = Point { service, request, way };
        if request % MOST_PLAYS == MOST_PLAYS - 1 {
            scene = flow.scene().await;
        }
        let (reached, broken) = play(&mut scene, &[point]).await;
        if !broken.is_empty() {
            found.push(format!("{point:?}: {}", broken.join("; ")));
            // The remains of this play are not those of the next.
            scene = flow.scene().await;
        }
        if !reached {
            return (request + 1, found);
        }
    }
    unreachable!("a play ends")
}

const FLOWS: [Flow; 8] = [
    Flow::ToolOfACall,
    Flow::BackgroundTool,
    Flow::CallStart,
    Flow::Event,
    Flow::Approval,
    Flow::PlacedCall,
    Flow::Chat,
    Flow::AgentRun,
];
/// Requests of a play to one service; a later one is not reached.
const MOST_REQUESTS: usize = 40;

fn random_point(random: &mut Random) -> Point {
    let service = SERVICES[random.below(SERVICES.len())];
    let way = service.ways()[random.below(service.ways().len())];
    Point { service, request: u32::try_from(random.below(MOST_REQUESTS)).unwrap(), way }
}

/// Of each flow, `FAULT_PAIRS` plays with two faults each. `FAULT_SEED` repeats a run.
#[tokio::test]
async fn two_faults_in_one_play() {
    let (seed, pairs) = (fault_options::seed(), fault_options::pairs());
    println!("FAULT_SEED={seed} FAULT_PAIRS={pairs}");
    let mut random = Random(seed);
    let mut found = Vec::new();
    for flow in FLOWS {
        let mut scene = flow.scene().await;
        for number in 1..=pairs {
            if number % u64::from(MOST_PLAYS) == 0 {
                scene = flow.scene().await;
            }
            let pair = [random_point(&mut random), random_point(&mut random)];
            let (_, broken) = play(&mut scene, &pair).await;
            if broken.is_empty() {
                continue;
            }
            let mut least = (pair.to_vec(), broken);
            for point in pair {
                let (_, broken) = play(&mut flow.scene().await, &[point]).await;
                if !broken.is_empty() {
                    least = (vec![point], broken);
                }
            }
            found.push(format!("{flow:?} {:?}: {}", least.0, least.1.join("; ")));
            scene = flow.scene().await;
        }
    }
    assert!(found.is_empty(), "FAULT_SEED={seed}:\n{}", found.join("\n"));
}

#[tokio::test]
async fn a_tool_of_a_call() {
    walk(Flow::ToolOfACall).await;
}

#[tokio::test]
async fn a_background_tool() {
    walk(Flow::BackgroundTool).await;
}

#[tokio::test]
async fn the_start_of_a_call() {
    walk(Flow::CallStart).await;
}

#[tokio::test]
async fn an_event() {
    walk(Flow::Event).await;
}

#[tokio::test]
async fn an_approval() {
    walk(Flow::Approval).await;
}

#[tokio::test]
async fn a_placed_call() {
    walk(Flow::PlacedCall).await;
}

#[tokio::test]
async fn a_chat() {
    walk(Flow::Chat).await;
}

#[tokio::test]
async fn a_run_of_an_agent() {
    walk(Flow::AgentRun).await;
}
