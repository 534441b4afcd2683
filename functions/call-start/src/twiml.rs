//! TwiML: VAPI's answer for Twilio, the fields read from it, and the fallback without VAPI.

use quick_xml::{
    Reader, XmlVersion,
    escape::escape,
    events::{BytesStart, Event},
};
use shared::models::{CallId, ControlUrl, DialDestination, E164, PhoneNumber};
use url::Url;

/// The used parts of VAPI's TwiML.
#[derive(Debug)]
pub struct Answered {
    /// The call behind `<Stream url="wss://host/<call id>/transport">`; absent when VAPI does something else with it.
    pub stream: Option<Stream>,
}

/// A call's media stream, and so the call.
#[derive(Debug)]
pub struct Stream {
    /// VAPI's id of the call.
    pub call_id: CallId,
    pub control_url: ControlUrl,
}

/// Reads TwiML as an XML parser does: quotes, prolog, comments, parameters and namespaces may be as they like.
///
/// # Errors
/// Why it is no TwiML: not well-formed, or its root is not `Response`.
pub fn read(text: &str) -> Result<Answered, String> {
    let mut reader = Reader::from_str(text);
    let (mut depth, mut rooted, mut stream) = (0_u32, false, None);
    loop {
        let event = reader.read_event().map_err(|error| format!("the XML breaks off: {error}"))?;
        let (element, opens) = match &event {
            Event::Start(element) => (element, true),
            Event::Empty(element) => (element, false),
            Event::End(_) => {
                depth -= 1;
                continue;
            }
            Event::Text(text) if depth == 0 && !text.trim_ascii().is_empty() => {
                return Err("there is text outside the root".into());
            }
            Event::Eof => break,
            _ => continue,
        };
        if depth == 0 {
            if rooted || element.local_name().as_ref() != "Response" {
                return Err("the root is not a single Response".into());
            }
            rooted = true;
        } else if stream.is_none() && element.local_name().as_ref() == "Stream" {
            stream = stream_of(element)?;
        }
        depth += u32::from(opens);
    }
    if rooted && depth == 0 { Ok(Answered { stream }) } else { Err("the XML has no complete Response".into()) }
}

fn stream_of(element: &BytesStart<'_>) -> Result<Option<Stream>, String> {
    let attribute = element.try_get_attribute("url").map_err(|error| format!("Stream: {error}"))?;
    let Some(attribute) = attribute else { return Ok(None) };
    let url = attribute.normalized_value(XmlVersion::Implicit1_0).map_err(|error| format!("Stream url: {error}"))?;
    Ok(control(&url))
}

/// `wss://host/<call id>/transport` is controlled at `https://host/<call id>/control`.
fn control(stream: &str) -> Option<Stream> {
    let url = Url::parse(stream.trim()).ok()?;
    let scheme = match url.scheme() {
        "wss" => "https",
        // Only where configuration opens a host; `CallControl` refuses it elsewhere.
        "ws" => "http",
        _ => return None,
    };
    let path = url.path().strip_suffix("/transport")?;
    let call_id = path.rsplit('/').next()?.parse().ok()?;
    let port = url.port().map(|port| format!(":{port}")).unwrap_or_default();
    let control = format!("{scheme}://{}{port}{path}/control", url.host_str()?);
    Some(Stream { call_id, control_url: control.parse().ok()? })
}

/// Text that Twilio's voice says. Without a language Twilio takes American English
/// (<https://www.twilio.com/docs/voice/twiml/say#language>).
#[derive(Clone, Copy)]
pub struct Say<'a> {
    pub text: &'a str,
    pub language: Option<&'a str>,
}

impl<'a> Say<'a> {
    pub fn at(number: &'a PhoneNumber, text: &'a str) -> Self {
        Self { text, language: number.language.as_deref() }
    }

    fn twiml(self) -> String {
        let language = self.language.map(|language| format!(r#" language="{}""#, escaped(language)));
        format!("<Say{}>{}</Say>", language.unwrap_or_default(), escaped(self.text))
    }
}

/// TwiML that first says a sentence. Text that is no TwiML stays as it is.
pub fn with_sentence(twiml: &str, sentence: Say<'_>) -> String {
    let mut reader = Reader::from_str(twiml);
    loop {
        match reader.read_event() {
            Ok(Event::Start(_)) => {
                let at = usize::try_from(reader.buffer_position()).unwrap_or_default();
                let (before, after) = twiml.split_at(at.min(twiml.len()));
                return format!("{before}{}{after}", sentence.twiml());
            }
            Ok(Event::Eof | Event::Empty(_)) | Err(_) => return twiml.to_owned(),
            Ok(_) => {}
        }
    }
}

/// Rings a destination; Twilio then requests the TwiML at `action` (<https://www.twilio.com/docs/voice/twiml/dial>). When the
/// destination answers, Twilio requests `answered`: if it briefs, for the TwiML that the callee hears before the two are
/// connected; else beside that (<https://www.twilio.com/docs/voice/twiml/number>).
pub struct Dial<'a> {
    pub to: &'a DialDestination,
    pub seconds: u16,
    pub action: &'a str,
    pub answered: &'a str,
    pub briefs: bool,
    /// See [`caller_id`].
    pub caller_id: Option<&'a E164>,
}

impl Dial<'_> {
    pub fn twiml(&self) -> String {
        let caller_id = caller_id_attribute(self.caller_id);
        let answered = escaped(self.answered);
        let url = if self.briefs {
            format!(r#" url="{answered}""#)
        } else {
            format!(r#" statusCallback="{answered}" statusCallbackEvent="answered""#)
        };
        let to = match self.to {
            DialDestination::Number(number) => format!("<Number{url}>{}</Number>", escaped(number.as_str())),
            DialDestination::Sip(uri) => format!("<Sip{url}>{}</Sip>", escaped(uri)),
        };
        let (action, seconds) = (escaped(self.action), self.seconds);
        response(&format!(r#"<Dial action="{action}" method="POST" timeout="{seconds}"{caller_id}>{to}</Dial>"#))
    }
}

/// A sentence, and then nothing more on this leg.
pub fn sentence(text: Option<Say<'_>>) -> String {
    response(&text.map(Say::twiml).unwrap_or_default())
}

/// Ends the call, after a sentence if there is one.
pub fn hang_up(text: Option<Say<'_>>) -> String {
    response(&format!("{}<Hangup/>", text.map(Say::twiml).unwrap_or_default()))
}

/// XML 1.0 allows few control characters, and Twilio refuses a document with any other (12100).
fn escaped(text: &str) -> String {
    let refused = |letter: char| matches!(letter, '\0'..='\u{8}' | '\u{b}' | '\u{c}' | '\u{e}'..='\u{1f}' | '\u{fffe}' | '\u{ffff}');
    escape(text.replace(refused, " ")).into_owned()
}

fn response(verbs: &str) -> String {
    format!(r#"<?xml version="1.0" encoding="UTF-8"?><Response>{verbs}</Response>"#)
}

/// The number that a `<Dial>` shows in place of the caller's. Twilio dials no phone for a client, a SIP address or a withheld
/// number without one (<https://www.twilio.com/docs/api/errors/13214>).
pub fn caller_id<'a>(caller: &str, called: &'a E164) -> Option<&'a E164> {
    let shows_caller = caller.parse::<E164>().is_ok_and(|caller| !caller.is_withheld());
    (!shows_caller).then_some(called)
}

fn caller_id_attribute(number: Option<&E164>) -> String {
    number.map(|number| format!(r#" callerId="{}""#, escaped(number.as_str()))).unwrap_or_default()
}

/// The fallback when VAPI cannot take the call: dials the fallback number, or says a sentence.
pub fn fallback(number: Option<&E164>, caller_id: Option<&E164>, sentence: Option<Say<'_>>) -> String {
    let apology = Say {
        text: "We are sorry, we cannot take your call just now. Please call again in a few minutes.",
        language: None,
    };
    let Some(number) = number else { return hang_up(sentence.or(Some(apology))) };
    response(&format!("<Dial{}>{}</Dial>", caller_id_attribute(caller_id), escaped(number.as_str())))
}

#[cfg(test)]
mod tests {
    use super::*;

    const CALL: &str = "55555555-5555-4555-8555-555555555555";

    fn control_of(twiml: &str) -> Option<String> {
        read(twiml).unwrap().stream.map(|stream| {
            assert_eq!(stream.call_id.as_str(), CALL);
            serde_json::to_value(&stream.control_url).unwrap().as_str().unwrap().to_owned()
        })
    }

    #[test]
    fn the_control_url_is_found_however_the_xml_is_written() {
        let host = "phone-call-websocket.aws-us-west-2-backend-production1.vapi.ai";
        let url = format!("wss://{host}/{CALL}/transport");
        for twiml in [
            format!("<Response><Connect><Stream url='{url}' /></Connect></Response>"),
            format!(
                "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<Response><Connect><Stream name=\"n\" url=\"{url}\"><Parameter name=\"k\" value=\"v&lt;&amp;&quot;\"/></Stream></Connect></Response>\n"
            ),
            format!(
                "<Response>\n<!-- a > b --><Connect action='https://x/a?b=1&amp;c=2'><Stream\n  url = \"{}\"/></Connect></Response>",
                url.replace('/', "&#47;")
            ),
        ] {
            assert_eq!(control_of(&twiml).unwrap(), format!("https://{host}/{CALL}/control"), "{twiml}");
        }
    }

    #[test]
    fn twiml_without_a_stream_of_vapis_is_twiml_all_the_same() {
        for twiml in [
            "<Response/>",
            "<Response><Say>Hello</Say><Hangup/></Response>",
            "<Response><Connect><Stream/></Connect></Response>",
            "<Response><Connect><Stream url='https://x.vapi.ai/c/transport'/></Connect></Response>",
            "<Response><Connect><Stream url='wss://x.vapi.ai/c/listen'/></Connect></Response>",
            "<Response><Connect><Stream url='not a url'/></Connect></Response>",
        ] {
            assert!(control_of(twiml).is_none(), "{twiml}");
        }
    }

    #[test]
    fn nonsense_is_no_twiml() {
        for nonsense in [
            "",
            "OK",
            "{\"message\":\"Internal server error\"}",
            "<html><body>Bad gateway</body></html>",
            "<Response>",
            "<Response></Response><Response></Response>",
            "<Response></Other>",
            "<Response><Connect></Response>",
            "text <Response/>",
            "</Response>",
        ] {
            assert!(read(nonsense).is_err(), "{nonsense}");
        }
    }

    #[test]
    fn a_sentence_is_said_before_the_stream() {
        let stream = format!("<Connect><Stream url='wss://x.vapi.ai/{CALL}/transport'/></Connect>");
        for start in ["<Response>", "<?xml version=\"1.0\"?>\n<!-- a > b --><Response xmlns:x='>'>"] {
            let answer = format!("{start}{stream}</Response>");
            for (language, attribute) in [(None, ""), (Some("pt-PT"), " language=\"pt-PT\"")] {
                let twiml = with_sentence(&answer, Say { text: "Nobody answers; 1 < 2.", language });
                let said = format!("<Say{attribute}>Nobody answers; 1 &lt; 2.</Say>");
                assert_eq!(twiml, format!("{start}{said}{stream}</Response>"));
                assert!(control_of(&twiml).is_some());
            }
        }
        for other in ["<Response/>", "OK", ""] {
            assert_eq!(with_sentence(other, Say { text: "x", language: None }), other);
        }
    }

    #[test]
    fn a_character_that_xml_forbids_is_a_space() {
        let heard = |letter: char| sentence(Some(Say { text: &format!("a{letter}b"), language: None }));
        for letter in ('\0'..' ').chain(['\u{fffe}', '\u{ffff}']).filter(|letter| !"\t\n\r".contains(*letter)) {
            assert!(heard(letter).contains("<Say>a b</Say>"), "{letter:?}");
        }
        for letter in ['\t', '\n', '\u{7f}', '\u{d7ff}', '\u{fffd}', '\u{10ffff}'] {
            assert!(heard(letter).contains(letter), "{letter:?}");
        }
        assert!(heard('\r').contains("a&#13;b"));
    }

    #[test]
    fn a_dial_escapes_its_texts() {
        let dial = Dial {
            to: &DialDestination::Sip("sip:a\"<b>&c@x".into()),
            seconds: 20,
            action: "https://x/a?rang=1&b",
            answered: "https://x/b?rang=1&c",
            briefs: true,
            caller_id: None,
        };
        let expected = "<Response><Dial action=\"https://x/a?rang=1&amp;b\" method=\"POST\" timeout=\"20\">\
                        <Sip url=\"https://x/b?rang=1&amp;c\">sip:a&quot;&lt;b&gt;&amp;c@x</Sip></Dial></Response>";
        assert!(dial.twiml().ends_with(expected), "{}", dial.twiml());
        let silent = Dial { briefs: false, ..dial };
        let reported = "<Sip statusCallback=\"https://x/b?rang=1&amp;c\" statusCallbackEvent=\"answered\">sip:";
        assert!(silent.twiml().contains(reported), "{}", silent.twiml());
    }

    #[test]
    fn the_fallback_dials_somebody_or_says_a_sentence() {
        let (number, called) = ("+15550100001".parse().unwrap(), "+15005550006".parse().unwrap());
        let dialled = |caller| fallback(Some(&number), caller_id(caller, &called), None);
        for twiml in [dialled("+14155550101"), dialled("anonymous"), fallback(None, None, None)] {
            assert!(read(&twiml).unwrap().stream.is_none());
        }
        assert!(dialled("+14155550101").contains("<Dial>+15550100001</Dial>"));
        for caller in ["client:browser", "sip:ana@example.com", "anonymous", "+266696687"] {
            let dial = r#"<Dial callerId="+15005550006">+15550100001</Dial>"#;
            assert!(dialled(caller).contains(dial), "{caller}");
        }
        let sorry = fallback(None, Some(&called), None);
        assert!(sorry.contains("<Say>") && sorry.contains("<Hangup/>"));
        let own = Say { text: "Ligue mais tarde.", language: Some("pt-PT") };
        let said = "<Response><Say language=\"pt-PT\">Ligue mais tarde.</Say><Hangup/></Response>";
        assert!(fallback(None, Some(&called), Some(own)).ends_with(said));
    }
}
