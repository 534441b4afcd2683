//! Ten million phone calls a day: the figures of `docs/scale.md`, computed and simulated.
//!
//! The page's assumptions, the measured costs of `docs/operations.md` and the sizes of `infra/concurrency/1000` are the input.
//! The computed figures are means of the busiest hour. The simulation has calls come by chance, from organizations of unequal
//! size, and takes their steps one after the other; its figures are those of the busiest second.

mod simulation;

use std::collections::BTreeMap;

use simulation::{Busiest, simulate};
use tests::page_tables::{number, page, table};

pub(crate) const PEAK_SECONDS: f64 = 86_400.0;

/// A path of `docs/operations.md`, as often as a phone call takes it.
pub(crate) struct Step {
    function: &'static str,
    path: &'static str,
    /// Seconds after the call's beginning, or, for a tool call of the model's, `None`: at any moment of it.
    pub(crate) at: Option<f64>,
    pub(crate) seconds: f64,
}

/// The input, from the three files.
pub(crate) struct Input {
    pub(crate) calls_per_second: f64,
    pub(crate) call_seconds: f64,
    pub(crate) organizations: usize,
    pub(crate) steps: Vec<Step>,
    writes: BTreeMap<String, f64>,
    /// Units that one call writes under its organization's key, by place.
    by_organization: BTreeMap<String, f64>,
    costs: BTreeMap<String, Vec<f64>>,
    assumed: BTreeMap<String, f64>,
    sizes: BTreeMap<String, f64>,
}

const STEPS: [(&str, &str, Option<f64>); 10] = [
    ("call-start", "`call-start`, two tools", Some(0.0)),
    ("run-tool", "`run-tool`, a tool of the call's start", Some(0.3)),
    ("run-tool", "`run-tool`, a tool of the call's start", Some(0.3)),
    ("run-tool", "`run-tool`, the latest moment to tell", Some(3.3)),
    ("calls", "`calls`, an event of VAPI's", Some(1.0)),
    ("execute", "`execute`, reading", None),
    ("execute", "`execute`, with an effect", None),
    ("execute", "`execute`, with an effect", None),
    ("calls", "`calls`, an event of VAPI's", Some(149.0)),
    ("calls", "`calls`, the report at the end", Some(150.0)),
];

impl Input {
    fn read() -> Self {
        let (scale, operations) = (page("docs/scale.md"), page("docs/operations.md"));
        let first = |rows: BTreeMap<String, Vec<String>>| -> BTreeMap<String, f64> {
            rows.into_iter().map(|(name, cells)| (name, number(&cells[0]))).collect()
        };
        let assumed = first(table(&scale, "### Assumptions"));
        let costs = table(&operations, "### Units of each path");
        let costs: BTreeMap<String, Vec<f64>> =
            costs.into_iter().map(|(path, cells)| (path, cells.iter().map(|cell| number(cell)).collect())).collect();
        let step = |(function, path, at): (&'static str, &'static str, Option<f64>)| {
            let seconds = costs[path][2] / 1000.0;
            Step { function, path, at, seconds }
        };
        let sizes = page("infra/concurrency/1000");
        let sizes = sizes.lines().filter_map(|line| line.split_once('='));
        Self {
            calls_per_second: assumed["calls a day"] / PEAK_SECONDS * assumed["the busiest hour, times the mean"],
            call_seconds: assumed["seconds that a call lasts"],
            organizations: assumed["organizations"] as usize,
            steps: STEPS.map(step).into(),
            writes: first(table(&scale, "### Writes of one call")),
            by_organization: first(table(&scale, "### Keys of an organization")),
            sizes: sizes.map(|(name, value)| (name.to_owned(), number(value))).collect(),
            assumed,
            costs,
        }
    }

    /// The share of the largest organization, if the n-th has 1/n of its calls.
    fn largest_share(&self) -> f64 {
        1.0 / (1..=self.organizations).map(|rank| 1.0 / rank as f64).sum::<f64>()
    }

    /// Each step's figure in a column of `docs/operations.md`, summed over a call.
    fn per_call(&self, column: usize) -> f64 {
        self.steps.iter().map(|step| self.costs[step.path][column]).sum()
    }

    fn requests(&self, function: &str) -> f64 {
        let of_function = self.steps.iter().filter(|step| step.function == function);
        of_function.map(|step| self.costs[step.path][0]).sum::<f64>() * self.calls_per_second
    }

    fn at_once(&self, function: &str) -> f64 {
        let of_function = self.steps.iter().filter(|step| step.function == function);
        of_function.map(|step| step.seconds).sum::<f64>() * self.calls_per_second
    }
}

/// A resource: its need at the busiest hour, in the busiest second of the simulation, and its limit.
struct Resource {
    name: String,
    computed: f64,
    simulated: f64,
    limit: f64,
}

impl Resource {
    fn line(&self, calls_a_day: f64) -> String {
        let full = calls_a_day * self.limit / self.computed / 1e6;
        let used = self.computed / self.limit * 100.0;
        format!(
            "| {} | {:.0} | {:.0} | {} | {used:.0} % | {full:.1} |",
            self.name, self.computed, self.simulated, self.limit
        )
    }
}

fn resources(input: &Input, busiest: &Busiest) -> Vec<Resource> {
    let calls = input.calls_per_second;
    let largest = input.largest_share() * calls;
    let resource = |name: &str, computed: f64, simulated: f64, limit: f64| Resource {
        name: name.to_owned(),
        computed,
        simulated,
        limit,
    };
    let size = |name: &str| input.sizes[name];
    let assumed = |name: &str| input.assumed[name];
    let events = input.requests("calls");
    let (hottest, units) = input.by_organization.iter().max_by(|a, b| a.1.total_cmp(b.1)).unwrap();
    let (table, written) = input.writes.iter().max_by(|a, b| a.1.total_cmp(b.1)).unwrap();
    let requests = calls * input.per_call(0);
    let queued = busiest.queue_in_work;
    let mut all = vec![
        resource("throttle of incoming calls, requests a second", calls, busiest.per_second("call-start"), 50.0),
        resource(
            "throttle of tool calls, requests a second",
            input.requests("execute"),
            busiest.per_second("execute"),
            200.0,
        ),
        resource("throttle of VAPI's events, requests a second", events, busiest.per_second("calls"), 200.0),
        resource(
            "executions of `execute`",
            input.at_once("execute"),
            busiest.at_once("execute"),
            size("ExecuteReservedConcurrency"),
        ),
        resource(
            "executions of `call-start`",
            input.at_once("call-start"),
            busiest.at_once("call-start"),
            size("CallStartReservedConcurrency"),
        ),
        resource(
            "messages at `run-tool`",
            input.at_once("run-tool"),
            queued,
            size("StartToolsMaximumConcurrency") * 10.0,
        ),
        resource(
            "executions of all functions",
            ["execute", "call-start", "run-tool", "calls"].iter().map(|name| input.at_once(name)).sum(),
            busiest.at_once_of_all(),
            size("AccountConcurrency"),
        ),
        resource("messages in flight", input.at_once("run-tool"), queued, assumed("messages in flight of a queue")),
        resource(
            "requests to API Gateway a second",
            requests,
            busiest.requests,
            assumed("requests a second to an account's APIs"),
        ),
        resource(
            &format!("write units a second of one key, {hottest}"),
            largest * units,
            busiest.largest_organization * units,
            assumed("write units a second of a partition"),
        ),
        resource(
            &format!("write units a second of {table}"),
            calls * written,
            busiest.per_second("call-start") * written,
            assumed("write units a second of a table"),
        ),
    ];
    all.sort_by(|a, b| (b.computed / b.limit).total_cmp(&(a.computed / a.limit)));
    all
}

/// The lines of a table below a heading.
fn lines<'p>(page: &'p str, heading: &str) -> Vec<&'p str> {
    let (_, section) = page.split_once(&format!("\n{heading}\n")).unwrap_or_else(|| panic!("no {heading}"));
    let rows = section.lines().skip_while(|line| !line.starts_with('|')).take_while(|line| line.starts_with('|'));
    rows.skip(2).collect()
}

#[track_caller]
fn says(page: &str, heading: &str, expected: &[String]) {
    assert_eq!(lines(page, heading), expected, "docs/scale.md, {heading:?}, must say:\n{}", expected.join("\n"));
}

#[test]
fn the_page_has_the_figures_of_the_simulation() {
    let (input, scale) = (Input::read(), page("docs/scale.md"));
    let calls = input.calls_per_second;
    let busiest = simulate(&input);
    // The means of the simulation are the computed ones: both are about the same system.
    for function in ["execute", "call-start", "calls"] {
        let (computed, simulated) = (input.at_once(function), busiest.mean_at_once(function));
        assert!((simulated / computed - 1.0).abs() < 0.02, "{function}: {computed} computed, {simulated} simulated");
    }
    let largest = input.largest_share();
    // Each may be the one slow tool of its batch.
    let full = |maximum: &str| input.sizes[maximum] * 60.0 / 45.0;
    says(
        &scale,
        "### The load",
        &[
            format!("| phone calls a second | {calls:.0} |"),
            format!("| phone calls at the same time | {:.0} |", calls * input.call_seconds),
            format!("| requests to the API a second | {:.0} |", calls * input.per_call(0)),
            format!("| invocations a second, each message by itself | {:.0} |", calls * input.per_call(1)),
            format!("| read units a second | {:.0} |", calls * input.per_call(3)),
            format!("| write units a second | {:.0} |", calls * input.per_call(4)),
            format!("| share of the largest organization | {:.1} % |", largest * 100.0),
            format!("| its phone calls a second | {:.0} |", largest * calls),
        ],
    );
    let resources = resources(&input, &busiest);
    let day = input.assumed["calls a day"];
    let expected: Vec<String> = resources.iter().map(|resource| resource.line(day)).collect();
    says(&scale, "### The first bottleneck", &expected);
    says(
        &scale,
        "### The queue of calls' starts",
        &[
            format!("| messages a second | {:.0} |", calls * 3.0),
            format!("| messages in a batch, in the mean | {:.1} |", busiest.messages_in_a_batch),
            format!("| batches at work, at most | {:.0} |", busiest.batches),
            format!("| longest wait of a message, ms | {:.0} |", busiest.longest_wait * 1000.0),
            format!("| tools of 45 s a minute that keep every batch | {:.0} |", full("StartToolsMaximumConcurrency")),
            format!("| the same of `async` tools, at their queue | {:.0} |", full("RunToolMaximumConcurrency")),
        ],
    );
    says(&scale, "### Automations at nine o'clock", &at_nine(&input));
}

/// Automations that are due in the same minute, through Scheduler and the two queues.
fn at_nine(input: &Input) -> Vec<String> {
    let assumed = |name: &str| input.assumed[name];
    let due = assumed("automations due at nine");
    let fired = due / assumed("invocations of Scheduler a second");
    let taken = due / (input.sizes["ScheduleMaximumConcurrency"] * 5.0 / assumed("seconds of an occurrence"));
    let run = due / (input.sizes["RunLoopMaximumConcurrency"] * 3.0 / assumed("seconds of a run"));
    let minutes = |what: &str, seconds: f64| format!("| {what} | {:.1} |", seconds / 60.0);
    vec![
        minutes("Scheduler has sent all messages", fired),
        minutes("`schedule` alone would take them in", taken),
        minutes("`run-loop` has carried out all runs", run.max(taken).max(fired)),
    ]
}

#[test]
fn the_costs_of_the_page_are_those_of_its_figures() {
    let (input, scale) = (Input::read(), page("docs/scale.md"));
    let prices = table(&page("docs/operations.md"), "### Prices");
    let millionth = |what: &str| number(&prices[what][0]) / 1e6;
    let memory = 0.25;
    let seconds: f64 = input.per_call(2) / 1000.0;
    let parts = [
        ("Lambda, invocations", input.per_call(1) * millionth("a million invocations")),
        ("Lambda, duration", seconds * memory * millionth("a million GB-seconds, arm64")),
        ("DynamoDB, writes", input.per_call(4) * millionth("a million write units")),
        ("DynamoDB, reads", input.per_call(3) * millionth("a million read units")),
        ("API Gateway", input.per_call(0) * millionth("a million requests to the HTTP API")),
        ("SQS", input.per_call(5) * millionth("a million requests to SQS")),
        ("logs", input.per_call(6) / 1e6 * number(&prices["a GB of logs"][0])),
        ("storage and its backup", storage(&input)),
    ];
    let total: f64 = parts.iter().map(|(_, cost)| cost).sum();
    let day = input.assumed["calls a day"];
    let line = |what: &str, cost: f64| (what.to_owned(), format!("{:.2}", cost * 1e6), format!("{:.0}", cost * day));
    let mut expected: Vec<_> = parts.iter().map(|(what, cost)| line(what, *cost)).collect();
    expected.push(line("together", total));
    let said: Vec<(String, String, String)> = lines(&scale, "### Costs of a million calls")
        .into_iter()
        .map(|line| {
            let mut cells = line.trim_matches('|').split(" | ").map(|cell| cell.trim().to_owned());
            let mut next = || cells.next().unwrap_or_default();
            (next(), next(), next())
        })
        .collect();
    assert_eq!(said, expected, "docs/scale.md, \"Costs of a million calls\"");
}

/// USD for the rows that a call leaves, as long as they are kept.
fn storage(input: &Input) -> f64 {
    let assumed = |name: &str| input.assumed[name];
    let months = |days: &str| assumed(days) / 30.0;
    let rows = |kilobytes: f64, indexes: f64, months: f64| {
        let gigabytes = kilobytes / 1e6 * months;
        gigabytes * (1.0 + indexes) * assumed("USD for a GB stored in a month")
            + gigabytes * assumed("USD for the backup of a GB in a month")
    };
    rows(assumed("KB of a call's row"), 1.0, months("days that a call is kept"))
        + 5.0 * rows(assumed("KB of an execution's row"), 2.2, months("days that an execution is kept"))
}
