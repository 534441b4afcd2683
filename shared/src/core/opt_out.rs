//! Words with which people ask not to be called any more.

/// Twilio's words for leaving, as a whole message.
const WORDS: [&str; 8] = ["stop", "stopall", "unsubscribe", "cancel", "end", "quit", "revoke", "optout"];

/// Within a clause. Apostrophes are dropped, and `do not` reads as `dont`.
const PHRASES: [&str; 48] = [
    "stop calling",
    "quit calling",
    "dont call again",
    "dont call me again",
    "dont call me any more",
    "dont call me anymore",
    "dont call this number again",
    "dont ever call",
    "never call me again",
    "never call this number again",
    "dont want any more calls",
    "want no more calls",
    "i said no more calls",
    "i told you no more calls",
    "no me llame más",
    "no me llames más",
    "no me llamen más",
    "no me vuelva a llamar",
    "no me vuelvas a llamar",
    "no me vuelvan a llamar",
    "no vuelva a llamarme",
    "no vuelvan a llamarme",
    "deje de llamarme",
    "deja de llamarme",
    "dejen de llamarme",
    "no quiero más llamadas",
    "quíteme de su lista",
    "ne mappelez plus",
    "ne mappelle plus",
    "ne me rappelez plus",
    "ne me rappelle plus",
    "ne nous appelez plus",
    "ne nous rappelez plus",
    "ne plus mappeler",
    "ne plus me rappeler",
    "ne plus être appelé",
    "ne plus être appelée",
    "arrêtez de mappeler",
    "arrête de mappeler",
    "arrêtez de me rappeler",
    "cessez de mappeler",
    "não me ligue mais",
    "não me liguem mais",
    "não ligue mais",
    "não liguem mais",
    "pare de me ligar",
    "parem de me ligar",
    "não quero mais ligações",
];

/// After a phrase, these words ask for less.
const LIMITS: [&str; 25] = [
    "before",
    "until",
    "till",
    "unless",
    "today",
    "tonight",
    "during",
    "after",
    "while",
    "when",
    "so early",
    "so late",
    "so much",
    "so often",
    "hoy",
    "hasta",
    "antes",
    "tan",
    "aujourdhui",
    "avant",
    "ce",
    "si",
    "hoje",
    "até",
    "tão",
];
/// May stand between a phrase and its limit.
const CALLED: [&str; 7] = ["me ", "us ", "here ", "this number ", "my number ", "guys ", "people "];
const INSISTING: [&str; 6] = ["i told", "i said", "i asked", "i call the", "i report", "i sue"];

/// At the end of a clause; a longer one, such as "don't call me before nine", asks for less.
const ENDINGS: [&str; 13] = [
    "dont call me",
    "dont call us",
    "dont call here",
    "dont call this number",
    "dont call my number",
    "dont want to be called",
    "dont want you to call me",
    "dont want you calling me",
    "never call me",
    "never call us",
    "never call here",
    "never call this number",
    "never call my number",
];
const REMOVALS: [&str; 4] = ["lose my number", "take my number off", "remove my number", "delete my number"];

/// May follow an ending.
const CLOSINGS: [&str; 14] = [
    "please",
    "again",
    "ever",
    "anymore",
    "any more",
    "at all",
    "thanks",
    "thank you",
    "ok",
    "okay",
    "bye",
    "goodbye",
    "sir",
    "on this number",
];
const AT_ONCE: [&str; 5] = ["right now", "now", "immediately", "right away", "today"];

/// A clause that begins so asks for information, and never for an end of the calls.
const QUESTIONS: [&str; 22] = [
    "why",
    "how come",
    "did",
    "do you",
    "do i",
    "do we",
    "do they",
    "does",
    "am i",
    "is my",
    "should i",
    "have you",
    "have i",
    "warum",
    "wieso",
    "weshalb",
    "haben sie",
    "bin ich",
    "pourquoi",
    "por qué",
    "por que",
    "est ce que",
];
/// With a question mark, a statement about someone is such a question, too.
const TOLD_OF: [&str; 7] = ["you", "youre", "they", "he", "she", "sie", "ihr"];
const FILLERS: [&str; 19] = [
    "and", "but", "so", "well", "hey", "hi", "hello", "ok", "okay", "yes", "yeah", "oh", "wait", "sorry", "please",
    "bitte", "und", "aber", "also",
];
/// A comma before these words does not end a clause.
const JOINING: [&str; 11] = ["and", "but", "or", "then", "please", "und", "oder", "bitte", "dass", "y", "et"];

/// Whether a text message asks for it.
pub fn in_message(text: &str) -> bool {
    is_word(text, &WORDS) || has_request(text)
}

/// Whether a person says it in a call. A lone "stop" counts in a call that was placed;
/// a caller may mean the agent's speech.
pub fn in_speech(said: &str, placed: bool) -> bool {
    has_request(said) || (placed && is_word(said, &["stop"]))
}

fn is_word(text: &str, words: &[&str]) -> bool {
    let text = plain(text);
    let word = text.trim_start_matches("please ").trim_end_matches(" please");
    words.contains(&word)
}

fn has_request(text: &str) -> bool {
    clauses(text).iter().any(Clause::is_request)
}

struct Clause {
    /// [`plain`], with a blank before and after.
    text: String,
    /// It ends with a question mark.
    asked: bool,
}

fn clauses(text: &str) -> Vec<Clause> {
    let mut clauses: Vec<Clause> = Vec::new();
    let mut goes_on = false;
    for piece in text.split_inclusive(['.', '!', '?', ';', ',', '\n']) {
        let (asked, words) = (piece.ends_with('?'), plain(piece));
        match clauses.last_mut() {
            Some(last) if goes_on && JOINING.iter().any(|joining| begins(&words, joining)) => {
                *last = Clause { text: format!("{}{words} ", last.text), asked };
            }
            _ => clauses.push(Clause { text: format!(" {words} "), asked }),
        }
        goes_on = piece.ends_with(',');
    }
    clauses
}

impl Clause {
    fn is_request(&self) -> bool {
        let lets_go_on = self.has("dont stop") && !self.has("if you dont stop");
        if lets_go_on || self.is_question() {
            return false;
        }
        PHRASES.iter().any(|phrase| self.has_whole(phrase))
            || ENDINGS.iter().any(|ending| self.ends_with(ending, &[]))
            || REMOVALS.iter().any(|removal| self.ends_with(removal, &AT_ONCE))
            || (begins(start(&self.text), "no more calls")
                && (self.ends_with("no more calls", &[]) || self.has_whole("no more calls from you")))
            || self.asks_for_the_list()
            || self.asks_off_a_list()
            || self.is_german_request()
    }

    fn has(&self, words: &str) -> bool {
        self.text.contains(&format!(" {words} "))
    }

    fn has_any(&self, words: &[&str]) -> bool {
        words.iter().any(|words| self.has(words))
    }

    fn has_whole(&self, phrase: &str) -> bool {
        let Some((before, after)) = self.text.split_once(&format!(" {phrase} ")) else { return false };
        let after = CALLED.iter().find_map(|called| after.strip_prefix(called)).unwrap_or(after);
        let insists =
            after.split_once(' ').is_some_and(|(_, rest)| INSISTING.iter().any(|insisting| begins(rest, insisting)));
        (insists || !LIMITS.iter().any(|limit| begins(after, limit))) && !is_told_of_someone(before, phrase)
    }

    fn ends_with(&self, ending: &str, closings: &[&str]) -> bool {
        let before = self.unclosed(closings).strip_suffix(ending);
        before.is_some_and(|before| before.ends_with(' ') && !is_told_of_someone(before, ending))
    }

    /// Without the words that may follow a request.
    fn unclosed(&self, more: &[&str]) -> &str {
        let mut rest = self.text.trim_end();
        while let Some(shorter) =
            CLOSINGS.iter().chain(more).find_map(|closing| rest.strip_suffix(closing)?.strip_suffix(' '))
        {
            rest = shorter;
        }
        rest
    }

    fn is_question(&self) -> bool {
        let start = start(&self.text);
        let is = |beginnings: &[&str]| beginnings.iter().any(|beginning| begins(start, beginning));
        let is_repeated = self.has_any(&["told you", "tell you", "asked you", "you keep calling"]);
        !is_repeated && ((is(&QUESTIONS) && !is(&["why dont you"])) || (self.asked && is(&TOLD_OF)))
    }

    fn asks_for_the_list(&self) -> bool {
        let Some((before, _)) = self.text.split_once(" dont call list ") else { return false };
        let has = |words: &[&str]| before.split(' ').any(|word| words.contains(&word));
        !has(&["off", "from"]) && (has(&["put", "add", "place"]) || (!self.asked && has(&["on"])))
    }

    /// "Take me off your call list", and neither "off the waiting list" nor "off the list for Tuesday".
    fn asks_off_a_list(&self) -> bool {
        const OBJECTS: [&[&str]; 7] = [
            &["me"],
            &["us"],
            &["my", "number"],
            &["my", "phone", "number"],
            &["my", "name"],
            &["this", "number"],
            &["this", "phone", "number"],
        ];
        const KINDS: [&str; 9] =
            ["call", "calling", "calls", "phone", "contact", "contacts", "mailing", "marketing", "telemarketing"];
        let words: Vec<&str> = self.unclosed(&AT_ONCE).split_whitespace().collect();
        let verbs = words.iter().enumerate().filter(|(_, word)| ["take", "remove", "delete", "get"].contains(word));
        verbs.filter_map(|(at, _)| words.get(at + 1..)).any(|rest| {
            let rest = OBJECTS.iter().find_map(|object| rest.strip_prefix(*object));
            let rest = rest.and_then(|rest| match rest {
                ["off" | "out", "of", rest @ ..] | ["off" | "from", rest @ ..] => Some(rest),
                _ => None,
            });
            let Some(["your" | "the" | "this" | "that" | "any" | "all", rest @ ..]) = rest else { return false };
            let kinds = rest.iter().take_while(|word| KINDS.contains(word)).count();
            match rest.get(kinds..) {
                Some(["database" | "system" | "records"]) => true,
                Some(["list" | "lists", rest @ ..]) => !matches!(rest, ["for" | "of", ..]),
                _ => false,
            }
        })
    }

    fn is_german_request(&self) -> bool {
        if self.has_any(&["heute", "morgen"]) {
            return false;
        }
        let start = start(&self.text);
        let to_here = self.has_any(&["mich", "uns", "hier", "nummer"]);
        let is_called = self.has_any(&["rufen", "ruft", "ruf"])
            && !self.has_any(&["wir rufen", "sie rufen", "die rufen", "ihr ruft", "er ruft", "sie ruft"]);
        let wants = self.has_any(&["will", "wollen", "möchte", "möchten", "wünsche", "bitte"]);
        (is_called && self.has("nicht mehr an"))
            || (self.has("nicht mehr anrufen")
                && (to_here
                    || begins(start, "nicht mehr anrufen")
                    || self.has_any(&["sie bitte", "sie sollen"])
                    || (wants && self.has("dass sie"))))
            || (self.has("nicht mehr angerufen werden") && wants)
            || (self.has("keine anrufe mehr") && (wants || begins(start, "keine anrufe mehr")))
    }
}

/// Without fillers.
fn start(text: &str) -> &str {
    let mut rest = text.trim();
    while let Some(shorter) = FILLERS.iter().find_map(|filler| rest.strip_prefix(filler)?.strip_prefix(' ')) {
        rest = shorter;
    }
    rest
}

fn begins(text: &str, words: &str) -> bool {
    text.strip_prefix(words).is_some_and(|rest| rest.is_empty() || rest.starts_with(' '))
}

/// Whether it tells who does not call, as "you never call me" does.
fn is_told_of_someone(before: &str, phrase: &str) -> bool {
    let told = ["dont call", "dont ever call", "never call"].iter().any(|told| phrase.starts_with(told));
    told && match before.split_whitespace().next_back() {
        Some("you") => start(before) == "you" && !phrase.ends_with("again"),
        Some(who) => ["i", "he", "she", "we", "they", "people", "who"].contains(&who),
        None => false,
    }
}

/// Lower case, words with single blanks between them, no punctuation.
fn plain(text: &str) -> String {
    let letters = text.chars().filter(|letter| !matches!(letter, '\'' | '’'));
    let spaced: String = letters.map(|letter| if letter.is_alphanumeric() { letter } else { ' ' }).collect();
    let words = spaced.to_lowercase();
    format!(" {} ", words.split_whitespace().collect::<Vec<_>>().join(" "))
        .replace(" do not ", " dont ")
        .trim()
        .to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_a_word_for_leaving_or_a_phrase() {
        for text in ["STOP", " stop. ", "Stop please!", "Unsubscribe", "Please don't call me any more."] {
            assert!(in_message(text), "{text}");
        }
        for text in ["", "Please do not stop calling", "Stop by tomorrow", "The end", "START"] {
            assert!(!in_message(text), "{text}");
        }
    }

    #[test]
    fn a_lone_stop_is_a_request_only_in_a_placed_call() {
        assert!(in_speech("Stop.", true) && !in_speech("Stop.", false));
        for said in [
            "Could you please stop calling?",
            "No. Do not call me again, I'm busy.",
            "Don’t call me.",
            "Put me on the do-not-call list",
            "Rufen Sie mich bitte nicht mehr an!",
            "No me llamen más, por favor.",
            "Ne m'appelez plus",
            "Não me ligue mais.",
            "Never call this number again.",
            "Never call me again!",
            "Take me off your call list",
            "Can you please take me off your list?",
            "Can you remove my number from your list, please?",
            "Could you stop calling me?",
            "Why don't you stop calling me?",
            "How many times do I have to tell you to stop calling me?",
            "If you don't stop calling me I will complain.",
            "Stop calling me, I'm not interested.",
            "Please take me off the list, I am not interested.",
            "I'd like you to never call me again.",
            "No more calls, please.",
            "Rufen Sie hier nicht mehr an!",
            "Bitte nicht mehr anrufen.",
            "Ich möchte, dass Sie mich nicht mehr anrufen.",
            "Ich will nicht mehr angerufen werden",
            "Ich möchte keine Anrufe mehr.",
            "Ne me rappelez plus",
            "Merci de ne plus m’appeler.",
            "Por favor, no vuelva a llamarme.",
            "I told you don't call me anymore.",
            "I told you do not call me.",
            "Please make sure you do not call me any more.",
            "I asked that you don't call me anymore.",
            "Take me off the list right now.",
            "Remove me from the list immediately.",
            "Take me off this list and don't call back.",
            "Remove my number immediately.",
            "Delete my number right now.",
            "Take my number off today, please.",
            "I said no more calls.",
            "I told you no more calls.",
            "No more calls from you guys.",
            "Never call me on this number.",
            "Können Sie bitte nicht mehr anrufen?",
            "Würden Sie bitte nicht mehr anrufen.",
            "Sie sollen nicht mehr anrufen.",
            "Ich möchte, dass Sie nicht mehr anrufen.",
            "Stop calling me before I call the police.",
            "Stop calling me after I told you no.",
            "Stop calling me when I said no.",
            "Why do you keep calling me stop calling me.",
        ] {
            assert!(in_speech(said, false), "{said}");
        }
        for said in [
            "Don't call me before nine.",
            "Stop, I want another day.",
            "You should never call methods like this.",
            "Please don't stop calling me.",
            "Call me again tomorrow.",
            "You never call me back!",
            "You never call me.",
            "How come you don't call me?",
            "Why did you stop calling?",
            "So why did you stop calling me?",
            "You don't call me anymore?",
            "Please don't call me again until Monday.",
            "Stop calling me so early.",
            "Please remove my number and put in the new one.",
            "Please remove my number, and put in the new one.",
            "Did you remove my number?",
            "Can you take me off the list for Tuesday's class?",
            "Take me off the waiting list.",
            "Take me off the do-not-call list, please.",
            "Am I on your do-not-call list?",
            "Why am I getting no more calls from you?",
            "Ich kann Sie heute nicht mehr anrufen",
            "Ich kann Sie nicht mehr anrufen",
            "Das geht mich nicht mehr an",
            "Rufen Sie mich heute nicht mehr an.",
            "Warum rufen Sie mich nicht mehr an?",
            "Sie rufen mich gar nicht mehr an!",
            "Ich bekomme keine Anrufe mehr.",
            "Well you don't call me anymore.",
            "Don't call me today.",
            "Don't call me right now.",
            "I said no more calls before nine.",
            "No more calls from you guys until Monday.",
            "I get no more calls from you.",
            "Take me off the list for now.",
            "Stop calling me after eight.",
            "Stop calling me when I am at work.",
            "Why did you stop calling me",
            "Schade, dass Sie nicht mehr anrufen.",
        ] {
            assert!(!in_speech(said, true), "{said}");
        }
    }
}
