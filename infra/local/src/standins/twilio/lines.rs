//! Live calls at Twilio: `POST …/Calls/{sid}.json` moves one to other TwiML, and [`Line::follow`] carries out TwiML as Twilio
//! does: it rings the destinations of a `<Dial>`, and requests its `action` with the outcome.

use std::{collections::BTreeMap, sync::Mutex};

use quick_xml::{
    Reader, XmlVersion,
    events::{BytesStart, Event},
};
use serde_json::json;
use uuid::Uuid;

use super::{Account, IncomingCall, Problem, SignedForm};
use crate::standins::{
    exchange::{Answer, Request},
    locked,
};

/// Twilio ends a call that is sent round in circles.
const MOST_REQUESTS: usize = 20;

#[derive(Debug, Default)]
pub(super) struct Lines(Mutex<BTreeMap<String, Line>>);

/// A caller's line.
#[derive(Clone, Debug)]
pub struct Line {
    pub call: IncomingCall,
    auth_token: String,
    live: bool,
    /// The addresses to which the API moved the line, in order.
    pub moved_to: Vec<String>,
}

/// `DialCallStatus` and `DialBridged`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rings {
    /// The callee speaks with the caller, and hangs up.
    Answered,
    /// The callee answers, and hangs up before the caller is connected.
    Declined,
    Busy,
    NoAnswer,
    Failed,
    /// The caller hangs up while it rings.
    CallerHangsUp,
}

impl Rings {
    const fn dial_status(self) -> &'static str {
        match self {
            Self::Answered | Self::Declined => "completed",
            Self::Busy => "busy",
            Self::NoAnswer => "no-answer",
            Self::Failed => "failed",
            Self::CallerHangsUp => "canceled",
        }
    }

    const fn picks_up(self) -> bool {
        matches!(self, Self::Answered | Self::Declined)
    }
}

/// One thing that the caller, or the callee, hears or Twilio does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Heard {
    /// To the caller. A language of Twilio's voice stands before the text: `pt-PT: Olá`.
    Said(String),
    /// A destination rang, so many seconds at most.
    Rang {
        to: String,
        seconds: u32,
    },
    /// To the callee.
    Briefed(String),
    /// The media go to this address.
    Streamed(String),
    HungUp,
}

#[derive(Debug, Default)]
struct Verbs(Vec<Verb>);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Verb {
    Say(String),
    Dial {
        action: Option<String>,
        seconds: u32,
        to: String,
        caller_id: Option<String>,
        briefing: Option<String>,
        answered: Option<String>,
    },
    Stream(String),
    HangUp,
}

impl Lines {
    pub(super) fn begin(&self, call: &IncomingCall, auth_token: &str) {
        let line = Line { call: call.clone(), auth_token: auth_token.to_owned(), live: true, moved_to: Vec::new() };
        locked(&self.0).insert(call.call_sid.clone(), line);
    }

    pub(super) fn end(&self, call_sid: &str) {
        if let Some(line) = locked(&self.0).get_mut(call_sid) {
            line.live = false;
        }
    }

    pub(super) fn get(&self, call_sid: &str) -> Option<Line> {
        locked(&self.0).get(call_sid).cloned()
    }

    pub(super) fn change(&self, account: &Account, sid: &str, request: &Request) -> Result<Answer, Problem> {
        let form = if request.is_form() { request.form() } else { Vec::new() };
        let field = |name: &str| form.iter().find(|(key, _)| key == name).map(|(_, value)| value.clone());
        let mut lines = locked(&self.0);
        let line = lines.get_mut(sid).filter(|line| line.call.account_sid == account.sid);
        let line = line.ok_or_else(|| Problem::not_found(&request.path))?;
        let url = field("Url").ok_or_else(|| Problem::new(21218, "Invalid ApplicationSid"))?;
        let whole = url::Url::parse(&url).is_ok_and(|url| matches!(url.scheme(), "http" | "https"));
        if !whole {
            return Err(Problem::new(21205, format!("Url is not a valid URL: {url}")));
        }
        match field("Method").as_deref() {
            None | Some("POST") => {}
            Some(other) => return Err(Problem::new(21403, format!("this stand-in requests by POST, not {other}"))),
        }
        if !line.live {
            return Err(Problem::new(21220, "Call is not in-progress. Cannot redirect."));
        }
        line.moved_to.push(url);
        let body = json!({
            "sid": sid, "account_sid": account.sid, "status": "in-progress", "direction": "inbound",
            "from": line.call.from, "to": line.call.to, "api_version": "2010-04-01",
        });
        Ok(Answer::json(200, &body))
    }
}

impl Line {
    /// Requests TwiML at an address and carries it out, until the media flow or the call is over. `rings`: the outcome of each
    /// destination in turn, the last of them for all others. `fetch` posts a signed form and gives the TwiML.
    ///
    /// # Errors
    /// Why Twilio would end the call with an error: no TwiML, a phone dialled without a caller's number, or too many requests.
    pub async fn follow(
        &self,
        url: &str,
        rings: &[Rings],
        fetch: impl AsyncFn(SignedForm) -> Result<String, String>,
    ) -> Result<Vec<Heard>, String> {
        let mut heard = Vec::new();
        let mut rang = 0;
        let mut next = Some((url.to_owned(), self.form(&[("CallStatus", "in-progress")])));
        for _ in 0..MOST_REQUESTS {
            let Some((url, form)) = next.take() else { return Ok(heard) };
            let Verbs(verbs) = Verbs::read(&fetch(SignedForm::new(&url, &form, &self.auth_token)).await?)?;
            for verb in verbs {
                match verb {
                    Verb::Say(text) => heard.push(Heard::Said(text)),
                    Verb::HangUp => heard.push(Heard::HungUp),
                    Verb::Stream(url) => {
                        heard.push(Heard::Streamed(url));
                        return Ok(heard);
                    }
                    Verb::Dial { action, seconds, to, caller_id, briefing, answered } => {
                        let is_phone = |address: &str| {
                            address.strip_prefix('+').is_some_and(|digits| digits.bytes().all(|b| b.is_ascii_digit()))
                        };
                        if is_phone(&to) && !is_phone(caller_id.as_deref().unwrap_or(&self.call.from)) {
                            return Err("13214 Dial: Invalid callerId value".to_owned());
                        }
                        heard.push(Heard::Rang { to: to.clone(), seconds });
                        let outcome = rings.get(rang).or(rings.last()).copied().unwrap_or(Rings::NoAnswer);
                        rang += 1;
                        let form = self.callee(&to);
                        if let Some(url) = answered.filter(|_| outcome.picks_up()) {
                            // Twilio ignores the answer to a status callback.
                            drop(fetch(SignedForm::new(&url, &form, &self.auth_token)).await);
                        }
                        if let Some(url) = briefing.filter(|_| outcome.picks_up()) {
                            let Verbs(said) =
                                Verbs::read(&fetch(SignedForm::new(&url, &form, &self.auth_token)).await?)?;
                            heard.extend(said.into_iter().filter_map(|verb| match verb {
                                Verb::Say(text) => Some(Heard::Briefed(text)),
                                _ => None,
                            }));
                        }
                        next = action.map(|action| (action, self.after(outcome)));
                        break;
                    }
                }
            }
        }
        Err("the TwiML leads round in circles".to_owned())
    }

    /// The form after a `<Dial>`.
    pub fn after(&self, outcome: Rings) -> Vec<(String, String)> {
        let status = if outcome == Rings::CallerHangsUp { "completed" } else { "in-progress" };
        self.form(&[
            ("CallStatus", status),
            ("DialCallStatus", outcome.dial_status()),
            ("DialCallSid", &format!("CA{}", Uuid::new_v4().simple())),
            ("DialBridged", if outcome == Rings::Answered { "true" } else { "false" }),
        ])
    }

    fn form(&self, changes: &[(&str, &str)]) -> Vec<(String, String)> {
        let mut form = self.call.form();
        form.retain(|(name, _)| !changes.iter().any(|(changed, _)| changed == name));
        form.extend(changes.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())));
        form
    }

    /// The form about the callee's leg, when it is answered.
    pub fn callee(&self, to: &str) -> Vec<(String, String)> {
        let sid = format!("CA{}", Uuid::new_v4().simple());
        self.form(&[
            ("CallSid", &sid),
            ("ParentCallSid", &self.call.call_sid),
            ("To", to),
            ("Called", to),
            ("Direction", "outbound-dial"),
            ("CallStatus", "in-progress"),
        ])
    }
}

impl Verbs {
    fn read(twiml: &str) -> Result<Self, String> {
        // quick-xml reads them.
        if twiml.contains(|letter: char| letter.is_ascii_control() && !"\t\n\r\u{7f}".contains(letter)) {
            return Err("12100 Document parse failure: an invalid character".to_owned());
        }
        let mut reader = Reader::from_str(twiml);
        let (mut verbs, mut path) = (Self::default(), Vec::new());
        loop {
            match reader.read_event().map_err(|error| format!("12100 Document parse failure: {error}"))? {
                Event::Start(element) => {
                    verbs.open(&element)?;
                    path.push(element.local_name().as_ref().to_owned());
                }
                Event::Empty(element) => verbs.open(&element)?,
                Event::End(_) => drop(path.pop()),
                Event::Text(text) => verbs.text(path.last().map(String::as_str), &text),
                Event::GeneralRef(name) => {
                    let letter = match name.as_ref() {
                        "amp" => "&",
                        "lt" => "<",
                        "gt" => ">",
                        "quot" => "\"",
                        "apos" => "'",
                        other => return Err(format!("12100 unknown entity {other}")),
                    };
                    verbs.text(path.last().map(String::as_str), letter);
                }
                Event::Eof if path.is_empty() => return Ok(verbs),
                Event::Eof => return Err("12100 Document parse failure: it breaks off".to_owned()),
                _ => {}
            }
        }
    }

    fn open(&mut self, element: &BytesStart<'_>) -> Result<(), String> {
        let attribute = |name: &str| -> Result<Option<String>, String> {
            let found = element.try_get_attribute(name).map_err(|error| error.to_string())?;
            let value =
                found.map(|found| found.normalized_value(XmlVersion::Implicit1_0).map(std::borrow::Cow::into_owned));
            value.transpose().map_err(|error| error.to_string())
        };
        match element.local_name().as_ref() {
            "Say" => {
                let language = attribute("language")?.map(|language| format!("{language}: "));
                self.0.push(Verb::Say(language.unwrap_or_default()));
            }
            "Hangup" => self.0.push(Verb::HangUp),
            "Stream" => self.0.extend(attribute("url")?.map(Verb::Stream)),
            "Dial" => {
                let seconds = attribute("timeout")?.map_or(Ok(30), |seconds| seconds.parse());
                let seconds = seconds.map_err(|_not_whole| "13214 Dial: invalid timeout value".to_owned())?;
                let (action, caller_id) = (attribute("action")?, attribute("callerId")?);
                self.0.push(Verb::Dial {
                    action,
                    seconds,
                    to: String::new(),
                    caller_id,
                    briefing: None,
                    answered: None,
                });
            }
            "Number" | "Sip" => match self.0.last_mut() {
                Some(Verb::Dial { briefing, answered, .. }) => {
                    let events = attribute("statusCallbackEvent")?.unwrap_or_default();
                    let reports = events.split(' ').any(|event| event == "answered");
                    *answered = attribute("statusCallback")?.filter(|_| reports);
                    *briefing = attribute("url")?;
                }
                _ => return Err("12200 a destination outside of a Dial".to_owned()),
            },
            "Response" | "Connect" => {}
            other => return Err(format!("12200 unknown element {other}")),
        }
        Ok(())
    }

    fn text(&mut self, within: Option<&str>, text: &str) {
        match (within, self.0.last_mut()) {
            (Some("Say"), Some(Verb::Say(said))) => said.push_str(text),
            (Some("Number" | "Sip" | "Dial"), Some(Verb::Dial { to, .. })) => to.push_str(text),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn twiml_is_read_as_its_verbs() {
        let dial = "<?xml version=\"1.0\"?><Response><Say>1 &lt; 2 &amp; so on</Say><Dial action=\"https://x/a?b=1&amp;c=2\" \
                    timeout=\"20\" callerId='+15005550006'><Number url='https://x/b'>+14155550199</Number></Dial></Response>";
        let dialled = Verb::Dial {
            action: Some("https://x/a?b=1&c=2".into()),
            seconds: 20,
            to: "+14155550199".into(),
            briefing: Some("https://x/b".into()),
            caller_id: Some("+15005550006".into()),
            answered: None,
        };
        assert_eq!(Verbs::read(dial).unwrap().0, [Verb::Say("1 < 2 & so on".into()), dialled]);
        for (event, answered) in [("ringing answered", Some("https://x/s".to_owned())), ("completed", None)] {
            let called = format!("<Sip statusCallback='https://x/s' statusCallbackEvent='{event}'>sip:a@x</Sip>");
            let read = Verbs::read(&format!("<Response><Dial>{called}</Dial></Response>")).unwrap().0;
            let to = "sip:a@x".into();
            let expected = Verb::Dial { action: None, seconds: 30, to, caller_id: None, briefing: None, answered };
            assert_eq!(read, [expected], "{event}");
        }
        let stream = "<Response><Connect><Stream url='wss://x/c/transport'/></Connect></Response>";
        assert_eq!(Verbs::read(stream).unwrap().0, [Verb::Stream("wss://x/c/transport".into())]);
        for wrong in [
            "<Response><Number>+1</Number></Response>",
            "<Response><Ring/></Response>",
            "<Response>",
            "<Response><Say>\u{19}</Say></Response>",
        ] {
            assert!(Verbs::read(wrong).is_err(), "{wrong}");
        }
    }
}
