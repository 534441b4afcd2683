//! Answers that say something was done which no tool did.
//!
//! Which calls were made is known, so what the answer says is held against them. A sentence may claim, in the first person or of
//! "your message", that something was sent, booked, created, changed or deleted. It then needs a call in this turn that does such
//! a thing. It is decided by words, in English and German; what it misses is no worse than before, and what it takes for a claim
//! costs one more request.

use std::sync::LazyLock;

use regex_lite::Regex;

use crate::models::{ToolResult, TurnCall};

/// What can be claimed: the words of a claim in English and German, and words of the tools that do it.
struct Family {
    done: &'static str,
    done_german: &'static str,
    tools: &'static [&'static str],
}

const FAMILIES: [Family; 6] = [
    Family {
        done: "sent|texted|messaged|emailed|e-mailed|mailed|notified|informed|forwarded|posted|replied|shared",
        done_german: "gesendet|geschickt|verschickt|versendet|benachrichtigt|informiert|weitergeleitet|gepostet",
        tools: &[
            "send", "sms", "text", "message", "mail", "email", "post", "slack", "notify", "reply", "share", "chat",
        ],
    },
    Family {
        done: "booked|scheduled|rescheduled|reserved|arranged|planned",
        done_german: "gebucht|reserviert|eingeplant|vereinbart|verschoben",
        tools: &["book", "calendar", "event", "appointment", "schedule", "reserve", "meeting", "reservation"],
    },
    Family {
        done: "created|added|saved|stored|recorded|registered|ordered|submitted|placed|logged|uploaded|inserted",
        done_german: "erstellt|angelegt|hinzugefügt|gespeichert|eingetragen|bestellt|hochgeladen|registriert",
        tools: &[
            "create", "add", "save", "store", "record", "register", "order", "submit", "insert", "upload", "new", "log",
        ],
    },
    Family {
        done: "updated|changed|edited|modified|moved|renamed|assigned|enabled|disabled|activated",
        done_german: "aktualisiert|geändert|bearbeitet|umbenannt|zugewiesen|aktiviert|deaktiviert",
        tools: &[
            "update", "change", "edit", "modify", "move", "rename", "assign", "set", "put", "patch", "enable",
            "activate",
        ],
    },
    Family {
        done: "deleted|removed|cancelled|canceled|archived|unsubscribed",
        done_german: "gelöscht|entfernt|storniert|abgesagt|gekündigt|archiviert",
        tools: &["delete", "remove", "cancel", "archive", "unsubscribe"],
    },
    Family {
        done: "paid|charged|refunded|transferred|called|triggered|launched",
        done_german: "bezahlt|überwiesen|erstattet|angerufen|ausgelöst|gestartet",
        tools: &["pay", "payment", "charge", "refund", "transfer", "call", "trigger", "start", "run", "launch"],
    },
];

struct Patterns {
    /// "I have just sent", "we've booked".
    first_person: Option<Regex>,
    /// "your message has been sent".
    passive: Option<Regex>,
    german: Option<Regex>,
}

static PATTERNS: LazyLock<Vec<Patterns>> = LazyLock::new(|| {
    let compile = |pattern: String| Regex::new(&pattern).ok();
    FAMILIES
        .iter()
        .map(|Family { done, done_german, .. }| Patterns {
            first_person: compile(format!(
                r"(?i)\b(?:i|we)(?:['’]ve|\s+have)?\s+(?:(?:just|already|now|also|[a-z]+ly|gone ahead and)\s+)*(?:[a-z]+ed\s+and\s+)?(?:{done})\b"
            )),
            passive: compile(format!(
                r"(?i)\b(?:your|the)\s+(?:[\w-]+\s+){{1,4}}(?:has|have)\s+(?:(?:now|just|already|also|[a-z]+ly)\s+)*been\s+(?:[a-z]+ly\s+)?(?:{done})\b"
            )),
            german: compile(format!(
                r"(?i)\b(?:(?:ich|wir)\s+haben?|habe\s+ich|haben\s+wir|wurden?)\b[^.!?]{{0,90}}\b(?:{done_german})"
            )),
        })
        .collect()
});

/// Words that take a claim back, or say that it is none.
static TAKEN_BACK: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(
        r"(?i)\b(?:not|never|nothing|cannot|unable|nicht|kein\w*|nichts|once|if|when|whether|until|unless|would|could|should|will|may|might|sobald|wenn|falls|ob|würde|könnte)\b|n['’]t\b",
    )
    .ok()
});

/// "I have created a table" is said of the answer itself.
static OF_THE_ANSWER: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(
        r"(?i)\b(?:created|added|recorded|placed|shared|updated|edited|changed|erstellt|hinzugefügt|geändert)\b\s+(?:you\s+)?(?:a|an|the|this|some|your|my)?\s*(?:\w+\s+)?(?:table|list|summary|chart|overview|draft|plan|outline|answer|text|comparison|breakdown|note|details)\b",
    )
    .ok()
});

static OF_BEFORE: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"(?i)\b(?:earlier|before|previously|already|bereits|vorhin|schon|zuvor)\b").ok());

/// The sentences of an answer that claim what neither this turn's calls nor, where they say "already", earlier ones did.
/// `describe` gives what is known of a tool by its name.
pub(super) fn unsupported(
    answer: &str,
    of_turn: &[ToolResult],
    earlier: &[ToolResult],
    describe: impl Fn(&str) -> String,
) -> Vec<String> {
    let acted = |results: &[ToolResult]| -> Vec<String> {
        let acted = results
            .iter()
            .filter(|result| result.effect && matches!(result.outcome, TurnCall::Succeeded | TurnCall::Unconfirmed));
        acted.map(|result| format!("{} {}", result.tool, describe(&result.tool)).to_lowercase()).collect()
    };
    let (now, before) = (acted(of_turn), acted(earlier));
    let read = of_turn.iter().any(|result| !result.effect && result.outcome == TurnCall::Succeeded);
    let claims = sentences(answer).filter(|sentence| {
        let claimed = claimed(sentence, !read);
        let is_of_before = OF_BEFORE.as_ref().is_some_and(|pattern| pattern.is_match(sentence));
        !claimed.is_empty()
            && !claimed.iter().any(|family| {
                now.iter().any(|tool| does(tool, family))
                    || (is_of_before && before.iter().any(|tool| does(tool, family)))
            })
    });
    claims.map(|sentence| sentence.trim().to_owned()).collect()
}

/// What a sentence claims. `passive`: also where nobody is said to have done it, which may be what data says.
fn claimed(sentence: &str, passive: bool) -> Vec<&'static Family> {
    if sentence.trim_end().ends_with('?') {
        return Vec::new();
    }
    let is_none = |at: usize| {
        let taken_back =
            TAKEN_BACK.as_ref().is_some_and(|pattern| pattern.is_match(sentence.get(..at).unwrap_or(sentence)));
        taken_back || OF_THE_ANSWER.as_ref().is_some_and(|pattern| pattern.is_match(sentence))
    };
    let found = FAMILIES.iter().zip(PATTERNS.iter()).filter(|(_, patterns)| {
        let Patterns { first_person, passive: of_something, german } = patterns;
        let find = |pattern: &'static Option<Regex>| pattern.as_ref().and_then(|pattern| pattern.find(sentence));
        let first = find(first_person).or_else(|| find(german));
        let any = first.or_else(|| find(of_something).filter(|_| passive));
        any.is_some_and(|found| !is_none(found.end()))
    });
    found.map(|(family, _)| family).collect()
}

/// Whether a tool does such a thing; one whose words say nothing of what it does may do anything.
fn does(tool: &str, family: &Family) -> bool {
    let words: Vec<&str> = tool.split(|letter: char| !letter.is_alphanumeric()).collect();
    let says = |family: &Family| {
        words.iter().any(|word| {
            family
                .tools
                .iter()
                .any(|known| word.strip_prefix(known).is_some_and(|ending| matches!(ending, "" | "s" | "es" | "ing")))
        })
    };
    says(family) || !FAMILIES.iter().any(says)
}

/// Sentences and lines.
fn sentences(text: &str) -> impl Iterator<Item = &str> {
    text.split('\n').flat_map(|line| line.split_inclusive(['.', '!', '?', ';'])).filter(|part| !part.trim().is_empty())
}

#[cfg(test)]
mod tests {
    use serde_json::{Map, Value};

    use super::*;

    fn result(tool: &str, outcome: TurnCall, effect: bool) -> ToolResult {
        ToolResult { tool: tool.to_owned(), arguments: Map::new(), outcome, effect, result: Value::Null }
    }

    fn claims(answer: &str, of_turn: &[ToolResult]) -> Vec<String> {
        unsupported(answer, of_turn, &[], |_| String::new())
    }

    #[test]
    fn the_patterns_are_patterns() {
        let compiled = |patterns: &Patterns| {
            [&patterns.first_person, &patterns.passive, &patterns.german].iter().all(|pattern| pattern.is_some())
        };
        assert!(PATTERNS.iter().all(compiled) && PATTERNS.len() == FAMILIES.len());
        assert!([&TAKEN_BACK, &OF_THE_ANSWER, &OF_BEFORE].iter().all(|pattern| pattern.is_some()));
        for Family { done, .. } in &FAMILIES {
            let word = done.split('|').next().unwrap();
            assert_eq!(claims(&format!("I have {word} it."), &[]).len(), 1, "{word}");
        }
    }

    #[test]
    fn what_no_tool_did_is_a_claim() {
        for answer in [
            "I've sent the SMS to Ada.",
            "Sure. I have just booked the table for you!",
            "I went through it. We’ve already cancelled your order.",
            "Your appointment has been successfully rescheduled.",
            "I checked and updated the record.",
            "I sent it.",
            "Ich habe Ada eine Nachricht geschickt.",
            "Ihr Termin wurde für Montag gebucht.",
        ] {
            assert_eq!(claims(answer, &[]).len(), 1, "{answer}");
        }
    }

    #[test]
    fn what_is_no_claim_is_left_alone() {
        for answer in [
            "Hello! How can I help you?",
            "I have not sent anything.",
            "I couldn't send the SMS: the number is wrong.",
            "Once I have sent it, I will tell you.",
            "I can send it if you like.",
            "Have I sent it?",
            "I have created a table of the sales below.",
            "I found three orders. The first was cancelled on May 3.",
            "Ich habe nichts gesendet.",
            "Soll ich Ada eine Nachricht schicken?",
        ] {
            assert_eq!(claims(answer, &[]), Vec::<String>::new(), "{answer}");
        }
    }

    #[test]
    fn a_call_that_did_it_supports_a_claim_and_another_does_not() {
        let sent = [result("send_sms", TurnCall::Succeeded, true)];
        assert!(claims("I have sent the SMS.", &sent).is_empty());
        assert_eq!(claims("I have booked the table.", &sent).len(), 1);
        assert!(claims("I have sent it.", &[result("send_sms", TurnCall::Unconfirmed, true)]).is_empty());
        assert_eq!(claims("I have sent it.", &[result("send_sms", TurnCall::Failed, true)]).len(), 1);
        assert_eq!(claims("I have sent it.", &[result("text_search", TurnCall::Succeeded, false)]).len(), 1);
        // Its name says nothing, so it may do anything.
        assert!(claims("I have booked it.", &[result("acme_7", TurnCall::Succeeded, true)]).is_empty());
        // What was read may say so.
        assert!(
            claims("The order has been cancelled.", &[result("find_order", TurnCall::Succeeded, false)]).is_empty()
        );
    }

    #[test]
    fn an_earlier_turn_supports_only_what_is_said_of_it() {
        let earlier = [result("send_sms", TurnCall::Succeeded, true)];
        let claims = |answer: &str| unsupported(answer, &[], &earlier, |_| String::new());
        assert!(claims("I have already sent the SMS.").is_empty());
        assert_eq!(claims("I have sent another SMS.").len(), 1);
    }
}
