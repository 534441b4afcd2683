//! Loops: the list is fixed when the loop begins. Its items run one after the other, or some at the same time (`lanes.rs`).

use std::collections::{BTreeMap, HashMap, HashSet};

use serde_json::{Map, Value, json};

use super::{
    ActionRun, Frame, LARGEST_ARGUMENTS, LARGEST_OUTPUT, LONGEST_ERROR, failure, lanes::Lane, with_error,
    without_output,
};
use crate::{
    automation::{
        definition::{
            OnError,
            steps::{ForEach, outputs_of},
        },
        expressions::{
            data::{Data, Outputs},
            templates::{Filled, Template, filled_in_within},
            work::{MOST_FILLED_IN, Work},
        },
    },
    cut::{cut, is_marker},
    fields::kind,
    models::{ActionResult, ActionStatus, StepKind, Timestamp, arguments_hash},
};

pub(super) type Loop = ForEach;

/// Items that a dry run goes through.
const MOST_PREVIEWED: usize = 10;
/// Bytes of a list.
const LARGEST_LIST: usize = LARGEST_ARGUMENTS;
/// Bytes of an item's key in a template, and of one that stands in the item's place as it is written.
const LARGEST_KEY: usize = 4_096;
const LONGEST_PLAIN_KEY: usize = 64;
/// Hexadecimal digits of a digest in place of a key.
const DIGEST: usize = 16;
/// Bytes of an item's error in the loop's output.
const LONGEST_ITEM_ERROR: usize = 200;

/// A loop whose items are running.
#[derive(Debug, Clone)]
pub(super) struct OpenLoop<'a> {
    pub(super) each: &'a ForEach,
    /// Its place, and the beginning of the places in the current item.
    pub(super) place: String,
    pub(super) prefix: String,
    pub(super) items: Vec<(String, Value)>,
    pub(super) begun: usize,
    pub(super) done: usize,
    /// No further item begins, and none is running.
    pub(super) is_over: bool,
    /// Why the current item failed.
    pub(super) item_failed: Option<String>,
    /// Running items, if the loop runs several at the same time.
    pub(super) lanes: Vec<Lane<'a>>,
    /// No further item begins.
    pub(super) stops: bool,
    /// Why the run is to stop at the end of the loop.
    pub(super) stops_run: Option<String>,
    failed: usize,
    /// Why the first failed item did.
    first_failure: Option<String>,
    began: Timestamp,
    gathered: Gathered,
}

/// The loop's output: the outputs of its items, as far as there is room.
#[derive(Debug, Clone, Default)]
struct Gathered {
    /// By place in the list.
    items: BTreeMap<usize, Value>,
    bytes: usize,
    /// Items whose outputs were left out.
    cut: usize,
}

/// The reason why there is no list to go through.
enum NoList {
    /// Its action gave no output.
    Lacking(String),
    Wrong(String),
}

impl<'a> ActionRun<'a> {
    /// The result that fixes the items of a loop.
    pub(super) fn begin_loop(&self, each: &Loop, place: String, now: Timestamp) -> ActionResult {
        let result = self.settled((StepKind::ForEach, "for_each"), &each.id, place, now);
        let result = match self.unless_held(each.condition.as_ref(), result) {
            Ok(result) => result,
            Err(skipped) => return *skipped,
        };
        let (data, work) = (self.data(), Work::of(MOST_FILLED_IN));
        match listed(each, &data, &work).and_then(|items| Ok((keys(each, &items, &data, &work)?, items))) {
            Ok((keys, items)) => {
                let (all, repeated) = (items.len(), keys.iter().filter(|key| key.is_none()).count());
                let kept = items.into_iter().zip(keys).filter_map(|(item, key)| Some((key?, item)));
                let most = if self.data.is_dry_run() { MOST_PREVIEWED } else { usize::MAX };
                let (keys, items): (Vec<String>, Vec<Value>) = kept.take(most).unzip();
                let note = Some(remark(all, repeated, keys.len()));
                ActionResult { output: Some(Value::Array(items).to_string()), keys, note, ..result }
            }
            Err(NoList::Lacking(why)) => {
                with_error(ActionStatus::Skipped, format!("There is no list to go through: {why}."), result)
            }
            Err(NoList::Wrong(why)) => with_error(ActionStatus::Failed, why, result),
        }
    }

    pub(super) fn enter_loop(&mut self, each: &'a Loop, result: &ActionResult, output: Option<Value>) {
        if without_output(result.status).is_some() {
            self.give(each.output_as.as_deref(), result, None);
            if result.status != ActionStatus::Skipped {
                self.failed(result);
                let stops = (each.on_error == OnError::Stop)
                    .then(|| format!("the run was to stop if {} fails", result.place()));
                self.catch_or_stop(&each.catch, failure(result, result.error.clone()), stops);
            }
            return;
        }
        let Some(Value::Array(items)) = output else { return };
        let items: Vec<(String, Value)> = result.keys.iter().cloned().zip(items).collect();
        if items.is_empty() {
            return self.give(each.output_as.as_deref(), result, Some(Value::Array(Vec::new())));
        }
        let mut going = OpenLoop {
            each,
            place: result.place().to_owned(),
            prefix: String::new(),
            items,
            begun: 0,
            done: 0,
            is_over: false,
            item_failed: None,
            lanes: Vec::new(),
            stops: false,
            stops_run: None,
            failed: 0,
            first_failure: None,
            began: result.started_at,
            gathered: Gathered::default(),
        };
        let outputs_before = Some(self.outputs.clone());
        if each.at_once > 1 {
            going.begin_lanes(self);
        } else {
            going.begin_item(&mut self.outputs);
        }
        self.frames.push(Frame { item_of: Some(Box::new(going)), outputs_before, ..Frame::of(&each.steps) });
    }

    pub(super) fn end_of_loop(&self, going: &OpenLoop<'_>, now: Timestamp) -> ActionResult {
        let OpenLoop { each, items, begun, done, failed, gathered, .. } = going;
        let result = self.settled((StepKind::ForEachEnd, "for_each"), &each.id, going.place.clone(), now);
        let (all, unfinished) = (items.len(), begun.saturating_sub(*done));
        let mut note = format!("{done} of {all} items were done");
        if *failed > 0 {
            note = format!("{note}, {failed} of them failed");
        }
        if unfinished > 0 {
            note = format!("{note}; {unfinished} were begun and not finished");
        }
        if *begun < all {
            note = format!("{note}; the others were not started, because the loop was to stop");
        }
        note.push('.');
        if gathered.cut > 0 {
            note = format!(
                "{note} The outputs of {} items are left out, because all together have more than {LARGEST_OUTPUT} bytes.",
                gathered.cut
            );
        }
        let outputs = || gathered.items.values().cloned().collect::<Value>().to_string();
        let output = each.output_as.as_ref().map(|_| outputs());
        let took = now.as_millis() - going.began.as_millis();
        ActionResult {
            status: if *failed > 0 { ActionStatus::Failed } else { ActionStatus::Succeeded },
            output,
            note: Some(note),
            // Its actions may have acted.
            had_no_effect: *failed == 0,
            started_at: going.began,
            duration_ms: u64::try_from(took).unwrap_or_default(),
            ..result
        }
    }

    pub(super) fn leave_loop(&mut self, result: &ActionResult, output: Option<Value>) {
        let Some(Frame { item_of: Some(going), outputs_before, .. }) = self.frames.pop() else { return };
        self.outputs = outputs_before.unwrap_or_default();
        if let Some(name) = &going.each.output_as {
            // Some items may have failed: the output says which.
            self.outputs.give(name, output.unwrap_or_default());
        }
        if let Some(why) = going.stops_run {
            self.stop_run(why);
        } else if result.status == ActionStatus::Failed {
            let stops = (going.each.on_error == OnError::Stop)
                .then(|| format!("the run was to stop if an item of {} fails", result.place()));
            let note = result.note.as_deref().unwrap_or_default();
            let message = format!("{note} The first failure: {}", going.first_failure.unwrap_or_default());
            self.catch_or_stop(&going.each.catch, failure(result, Some(message)), stops);
        }
    }
}

impl OpenLoop<'_> {
    fn begin_item(&mut self, outputs: &mut Outputs) {
        let Some((key, item)) = self.items.get(self.begun) else { return };
        self.prefix = self.prefix_of(key);
        self.begun += 1;
        self.begin_outputs(item.clone(), outputs);
        outputs.await_those_of(&self.each.steps);
    }

    /// The beginning of the places in an item.
    pub(super) fn prefix_of(&self, key: &str) -> String {
        format!("{}[{key}].", self.place)
    }

    /// Gives the item, and forgets the outputs of the item before.
    pub(super) fn begin_outputs(&self, item: Value, outputs: &mut Outputs) {
        outputs.give(&self.each.item, item);
        for (name, _) in outputs_of(&self.each.steps) {
            outputs.forget(name);
        }
    }

    /// Keeps the outputs of the current item, and begins the next one.
    pub(super) fn finish_item(&mut self, outputs: &mut Outputs) {
        let failed = self.item_failed.take();
        let stops = self.count(self.begun.saturating_sub(1), failed, outputs);
        if stops || self.begun >= self.items.len() {
            self.is_over = true;
        } else {
            self.begin_item(outputs);
        }
    }

    /// Counts an item that is done, and keeps its outputs. Returns whether the loop is to stop.
    pub(super) fn count(&mut self, index: usize, failed: Option<String>, outputs: &Outputs) -> bool {
        self.done += 1;
        self.failed += usize::from(failed.is_some());
        let stops = failed.is_some() && self.each.on_error == OnError::Stop;
        if self.each.output_as.is_some()
            && let Some((key, _)) = self.items.get(index)
        {
            self.gathered.add((index, key), failed.as_deref(), self.each, outputs);
        }
        self.first_failure = self.first_failure.take().or(failed);
        stops
    }
}

impl Gathered {
    fn add(&mut self, (index, key): (usize, &str), failed: Option<&str>, each: &ForEach, outputs: &Outputs) {
        let names = outputs_of(&each.steps);
        let given = names.iter().filter_map(|(name, _)| Some(((*name).to_owned(), outputs.given(name)?.clone())));
        let given: Map<String, Value> = given.collect();
        let mut item = json!({"key": key, "succeeded": failed.is_none(), "outputs": given});
        if let (Some(item), Some(why)) = (item.as_object_mut(), failed) {
            item.insert("error".to_owned(), cut(why.to_owned(), LONGEST_ITEM_ERROR).into());
        }
        let mut bytes = item.to_string().len() + 1;
        if self.bytes + bytes > LARGEST_OUTPUT {
            self.cut += 1;
            item = json!({"key": key, "succeeded": failed.is_none()});
            bytes = item.to_string().len() + 1;
        }
        self.bytes += bytes;
        self.items.insert(index, item);
    }
}

/// The items of a loop, as its template gives them.
fn listed(each: &ForEach, data: &Data<'_>, work: &Work) -> Result<Vec<Value>, NoList> {
    let written = match &each.list {
        Value::String(text) => text.as_str(),
        _ => "for_each",
    };
    let template = Template::parse(written).0;
    if let Some(lacking) = template.needed().find_map(|path| data.lacking(path)) {
        return Err(NoList::Lacking(lacking.in_words()));
    }
    if let Some(path) = template.lone().filter(|path| data.get(path).is_none_or(|found| found.is_null())) {
        return Err(NoList::Wrong(if data.is_cut_off(path) {
            format!("{written} was cut off, because the output that it is from is too large. Let the tool return less.")
        } else {
            format!("There is nothing at {written}, but for_each needs a list.")
        }));
    }
    let items = match filled_in_within(&each.list, data, LARGEST_LIST, work) {
        Ok(Filled { value: Value::Array(items), .. }) => items,
        Ok(other) => {
            let why = format!("{written} is {}, but for_each needs a list.", kind(&other.value));
            return Err(NoList::Wrong(why));
        }
        Err(unfilled) => {
            return Err(NoList::Wrong(unfilled.in_words(|| {
                format!("The list has more than {LARGEST_LIST} bytes; let the loop go through fewer or smaller items.")
            })));
        }
    };
    // A cut output would hide the other items.
    if items.last().is_some_and(is_marker) {
        let why = format!(
            "The list is incomplete: the output that it is from was cut, because it has more than {LARGEST_OUTPUT} bytes. Let the tool return less."
        );
        return Err(NoList::Wrong(why));
    }
    if items.len() > each.max_items {
        let why = format!(
            "The list has {} items, and max_items is {}, so none was done; raise max_items (at most 1000), or let the loop go through fewer.",
            items.len(),
            each.max_items
        );
        return Err(NoList::Wrong(why));
    }
    Ok(items)
}

/// A key for each item, the same whenever the item stands in the list. With `key`, an item with the key of an earlier one has
/// none: it is the same thing twice.
fn keys(each: &ForEach, items: &[Value], data: &Data<'_>, work: &Work) -> Result<Vec<Option<String>>, NoList> {
    let mut keys = Vec::new();
    if let Some(written) = &each.key {
        let template = Value::from(written.as_str());
        let mut seen = HashSet::new();
        for (index, item) in items.iter().enumerate() {
            let number = index + 1;
            let data = Data { item: Some((&each.item, item)), ..data.clone() };
            let filled = filled_in_within(&template, &data, LARGEST_KEY, work).map_err(|unfilled| {
                let why = unfilled.in_words(|| format!("it has more than {LARGEST_KEY} bytes; use a short one."));
                NoList::Wrong(format!("The key of item {number}: {why}"))
            })?;
            if !filled.empty.is_empty() {
                let why = format!("Item {number} has nothing at {written}, which is its key, so none was done.");
                return Err(NoList::Wrong(why));
            }
            let key = match filled.value {
                Value::String(text) => text,
                other => other.to_string(),
            };
            let key = if is_plain(&key) { key } else { digest(&key.into()) };
            keys.push(seen.insert(key.clone()).then_some(key));
        }
        return Ok(keys);
    }
    let mut seen: HashMap<String, usize> = HashMap::new();
    for item in items {
        let key = digest(item);
        let times = seen.entry(key.clone()).or_default();
        *times += 1;
        keys.push(Some(if *times == 1 { key } else { format!("{key}-{times}") }));
    }
    Ok(keys)
}

fn is_plain(key: &str) -> bool {
    let plain = |letter: char| letter.is_ascii_alphanumeric() || letter == '-' || letter == '_';
    !key.is_empty() && key.len() <= LONGEST_PLAIN_KEY && key.chars().all(plain)
}

fn digest(item: &Value) -> String {
    let mut digest = arguments_hash(&Map::from_iter([("item".to_owned(), item.clone())]));
    digest.truncate(DIGEST);
    digest
}

fn remark(all: usize, repeated: usize, taken: usize) -> String {
    if all == 0 {
        return "The list is empty, so nothing was done.".to_owned();
    }
    let mut remark = format!("{taken} items.");
    if repeated > 0 {
        remark = format!("{remark} {repeated} of the list's {all} have the key of an earlier one, and are left out.");
    }
    if taken + repeated < all {
        remark = format!("{remark} A dry run goes through the first {taken} only.");
    }
    cut(remark, LONGEST_ERROR)
}
