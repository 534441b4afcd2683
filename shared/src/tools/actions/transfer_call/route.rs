//! The destinations that a transfer tries: closed ones are left out, and others stand in for them.

use serde_json::{Map, Value};

use super::{TransferCall, target::Target};
use crate::{
    models::{ExecutionStatus, Fault, Timestamp},
    tool::ToolOutcome,
};

/// The destinations in their order. Without `if_unanswered` only the first is tried.
pub(super) struct Route<'a> {
    pub(super) first: &'a Target,
    pub(super) further: Vec<&'a Target>,
    pub(super) label: Option<&'a str>,
    /// The name of the chosen destination if another takes its place.
    closed: Option<&'a str>,
}

/// The reason why there is nobody to transfer to.
pub(super) enum NoRoute {
    NotListed(String),
    Closed(String),
}

impl NoRoute {
    pub(super) fn into_sentence(self) -> String {
        match self {
            Self::NotListed(sentence) | Self::Closed(sentence) => sentence,
        }
    }

    pub(super) fn into_outcome(self) -> ToolOutcome {
        match self {
            Self::NotListed(sentence) => ToolOutcome::failed(sentence).at_fault(Fault::Model),
            Self::Closed(sentence) => ToolOutcome::failed(sentence).status(ExecutionStatus::Limited),
        }
    }
}

impl Route<'_> {
    /// Continues "The call is being transferred".
    pub(super) fn words(&self) -> String {
        match (self.label, self.closed) {
            (None, None) => String::new(),
            (Some(label), None) => format!(" to {label}"),
            (label, Some(closed)) => {
                format!(" to {}, because {closed} is closed now", label.unwrap_or("the next destination"))
            }
        }
    }
}

impl TransferCall {
    /// The open ones of the chosen destination and `if_unanswered.then`. If there are none, the next open destination of the
    /// list takes the place of the chosen one.
    pub(super) fn route(&self, arguments: &Map<String, Value>, at: Timestamp) -> Result<Route<'_>, NoRoute> {
        let (chosen, label, after) = self.stored.allowed.chosen(arguments).map_err(NoRoute::NotListed)?;
        let then = self.stored.if_unanswered.iter().flat_map(|rule| rule.then.iter());
        let rung: Vec<&Target> = std::iter::once(chosen).chain(then).collect();
        let mut open = rung.iter().copied().filter(|target| target.is_open(at));
        let closed = (!chosen.is_open(at)).then(|| label.unwrap_or("the destination"));
        if let Some(first) = open.next() {
            return Ok(Route { first, further: open.collect(), label: label.filter(|_| closed.is_none()), closed });
        }
        if let Some(next) = after.iter().find(|next| next.target.is_open(at)) {
            return Ok(Route { first: &next.target, further: Vec::new(), label: Some(&next.label), closed });
        }
        let all = rung.into_iter().chain(after.iter().map(|next| &next.target));
        Err(NoRoute::Closed(closed_sentence(label, all, at)))
    }
}

fn closed_sentence<'a>(label: Option<&str>, all: impl Iterator<Item = &'a Target>, at: Timestamp) -> String {
    let all: Vec<&Target> = all.collect();
    let who = label.unwrap_or("the destination");
    let (others, opens) = match all.len() {
        1 => ("", "It opens"),
        _ => (", and so is everybody else to whom the call could go", "The first of them opens"),
    };
    let next = all.iter().filter_map(|target| target.opens(at)).min();
    let next = next.map_or_else(String::new, |next| {
        let zone = next.time_zone().iana_name().unwrap_or_default();
        format!(" {opens} on {} by the clock of {zone}.", next.strftime("%A, %B %-d, at %H:%M"))
    });
    format!("Nothing was transferred: {who} is closed now{others}.{next} Offer to take a message instead.")
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::{error::Problems, fields::Fields};

    // November 23, 2026 is a Monday.
    const MONDAY_AT_NINE_IN_BERLIN: &str = "2026-11-23T08:00:00Z";

    fn read(config: &Value) -> TransferCall {
        let mut problems = Problems::default();
        let read = TransferCall::read(&mut Fields::of(config, "", &mut problems).unwrap());
        assert!(problems.is_empty(), "{problems:?}");
        // As it is stored.
        serde_json::from_value(json!(read.unwrap())).unwrap()
    }

    fn sip(name: &str, from: &str, days: &[&str]) -> Value {
        json!({
            "type": "sip", "sipUri": format!("sip:{name}"), "label": name,
            "hours": {"from": from, "until": "17:00", "days": days}, "time_zone": "Europe/Berlin",
        })
    }

    /// The addresses in their order, and the words about them.
    fn tried(tool: &TransferCall, label: &str, at: &str) -> Result<(Vec<String>, String), String> {
        let arguments = Map::from_iter([("destination".to_owned(), label.into())]);
        let route = tool.route(&arguments, at.parse().unwrap()).map_err(NoRoute::into_sentence)?;
        let all = std::iter::once(route.first).chain(route.further.iter().copied());
        let addresses = all.map(|target| json!(target)["sipUri"].as_str().unwrap().to_owned());
        Ok((addresses.collect(), route.words()))
    }

    #[test]
    fn a_destination_opens_and_closes_at_the_minute() {
        let tool = read(&json!({"destinations": [sip("desk", "09:00", &["mon"])]}));
        for (at, open) in [
            ("2026-11-23T07:59:59Z", false),
            (MONDAY_AT_NINE_IN_BERLIN, true),
            ("2026-11-23T15:59:59Z", true),
            ("2026-11-23T16:00:00Z", false),
        ] {
            assert_eq!(tried(&tool, "desk", at).is_ok(), open, "{at}");
        }
        let told = tried(&tool, "desk", "2026-11-23T16:00:00Z").unwrap_err();
        assert_eq!(
            told,
            "Nothing was transferred: desk is closed now. It opens on Monday, November 30, at 09:00 by the clock of \
             Europe/Berlin. Offer to take a message instead."
        );
    }

    #[test]
    fn the_next_open_one_of_the_list_takes_the_place_of_a_closed_one() {
        let all = [sip("a", "10:00", &["mon"]), sip("b", "09:00", &["mon"]), sip("c", "09:00", &["tue"])];
        let tool = read(&json!({"destinations": all}));
        let at = MONDAY_AT_NINE_IN_BERLIN;
        let b = vec!["sip:b".to_owned()];
        assert_eq!(tried(&tool, "b", at), Ok((b.clone(), " to b".to_owned())));
        assert_eq!(tried(&tool, "a", at), Ok((b, " to b, because a is closed now".to_owned())));
        let told = tried(&tool, "c", at).unwrap_err();
        assert!(told.contains("c is closed now. It opens on Tuesday, November 24, at 09:00"), "{told}");
        let told = tried(&tool, "a", "2026-11-23T07:00:00Z").unwrap_err();
        assert!(told.contains("a is closed now, and so is everybody else"), "{told}");
        assert!(told.contains("The first of them opens on Monday, November 23, at 09:00"), "{told}");
    }

    #[test]
    fn of_those_that_ring_in_turn_the_open_ones_do() {
        let of_list = |name: &str, from: &str, days: &[&str]| {
            let mut target = sip(name, from, days);
            target.as_object_mut().unwrap().remove("label");
            target
        };
        let then = [of_list("x", "09:00", &["tue"]), of_list("y", "09:00", &["mon"])];
        let tool = read(&json!({
            "destinations": [sip("a", "10:00", &["mon"]), sip("b", "09:00", &["sun"]), sip("c", "08:00", &["mon"])],
            "if_unanswered": {"then": then},
        }));
        let tried = |label: &str, at: &str| tried(&tool, label, at);
        let all = |names: &[&str]| names.iter().map(|name| format!("sip:{name}")).collect::<Vec<_>>();
        let (at_nine, at_ten) = (MONDAY_AT_NINE_IN_BERLIN, "2026-11-23T09:00:00Z");
        assert_eq!(tried("a", at_ten), Ok((all(&["a", "y"]), " to a".to_owned())));
        let instead = " to the next destination, because a is closed now".to_owned();
        assert_eq!(tried("a", at_nine), Ok((all(&["y"]), instead)));
        let before = "2026-11-23T07:00:00Z";
        assert_eq!(tried("a", before), Ok((all(&["c"]), " to c, because a is closed now".to_owned())));
    }

    #[test]
    fn hours_in_a_zone_that_is_unknown_by_now_are_closed() {
        let mut config = sip("desk", "09:00", &["mon"]);
        config.as_object_mut().unwrap().insert("time_zone".into(), "Mars/Base".into());
        let stored = json!({"destinations": [config], "messageStrategy": "none"});
        let tool: TransferCall = serde_json::from_value(stored).unwrap();
        let told = tried(&tool, "desk", MONDAY_AT_NINE_IN_BERLIN).unwrap_err();
        assert_eq!(told, "Nothing was transferred: desk is closed now. Offer to take a message instead.");
    }
}
