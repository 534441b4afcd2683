//! Words with which people ask not to be called any more.

/// Twilio's words for leaving, as a whole message.
const WORDS: [&str; 8] = ["stop", "stopall", "unsubscribe", "cancel", "end", "quit", "revoke", "optout"];

/// Within a sentence. Apostrophes are dropped, and `do not` reads as `dont`.
const PHRASES: [&str; 33] = [
    "stop calling",
    "dont call again",
    "dont call me again",
    "dont call me any more",
    "dont call me anymore",
    "dont ever call",
    "dont want any more calls",
    "dont call list",
    "never call me",
    "no more calls",
    "take me off your list",
    "take me off the list",
    "take me off this list",
    "take my number off",
    "remove me from your list",
    "remove me from the list",
    "remove my number",
    "delete my number",
    "nicht mehr anrufen",
    "mich nicht mehr an",
    "mich bitte nicht mehr an",
    "keine anrufe mehr",
    "no me llame más",
    "no me llamen más",
    "no me vuelva a llamar",
    "no me vuelvan a llamar",
    "deje de llamarme",
    "dejen de llamarme",
    "ne mappelez plus",
    "arrêtez de mappeler",
    "não me ligue mais",
    "não me liguem mais",
    "parem de me ligar",
];

/// At the end of a sentence; a longer one, such as "don't call me before nine", asks for less.
const ENDINGS: [&str; 3] = ["dont call me", "dont call this number", "dont want to be called"];

/// Whether a text message asks for it.
pub fn in_message(text: &str) -> bool {
    is_word(text, &WORDS) || has_phrase(text)
}

/// Whether a person says it in a call. A lone "stop" counts in a call that was placed; a caller may mean the agent's speech.
pub fn in_speech(said: &str, placed: bool) -> bool {
    has_phrase(said) || (placed && is_word(said, &["stop"]))
}

fn is_word(text: &str, words: &[&str]) -> bool {
    let text = plain(text);
    let word = text.trim_start_matches("please ").trim_end_matches(" please");
    words.contains(&word)
}

fn has_phrase(text: &str) -> bool {
    text.split(['.', '!', '?', ';', '\n']).map(plain).any(|sentence| {
        let padded = format!(" {sentence} ");
        let has = |phrase: &&str| padded.contains(&format!(" {phrase} "));
        !has(&"dont stop") && (PHRASES.iter().any(has) || ENDINGS.iter().any(|end| ends(&sentence, end)))
    })
}

fn ends(sentence: &str, ending: &str) -> bool {
    let sentence = sentence.trim_end_matches(" please");
    sentence.strip_suffix(ending).is_some_and(|before| before.is_empty() || before.ends_with(' '))
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
        ] {
            assert!(in_speech(said, false), "{said}");
        }
        for said in [
            "Don't call me before nine.",
            "Stop, I want another day.",
            "You should never call methods like this.",
            "Please don't stop calling me.",
            "Call me again tomorrow.",
        ] {
            assert!(!in_speech(said, true), "{said}");
        }
    }
}
