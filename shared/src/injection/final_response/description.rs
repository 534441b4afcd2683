//! Detects values that describe an answer: JSON Schemas, and examples with type names or placeholders as leaves.
//!
//! An ambiguous value counts as a description, because another question costs only one request.

use serde_json::{Map, Value};

/// Bytes of a placeholder.
const LONGEST: usize = 60;

/// Type names of programming languages and of our users' languages, in lower case.
const TYPES: &str = "string, str, text, char, varchar, number, num, numeric, integer, int, int32, int64, float, double, decimal, \
    boolean, bool, object, array, list, dict, tuple, enum, any, null, undefined, date, time, datetime, date-time, \
    timestamp, uuid, url, uri, email, json, %s, %d, strings, numbers, integers, objects, booleans, value, type, \
    iso8601, iso 8601, placeholder, zeichenkette, zahl, ganzzahl, kommazahl, wahrheitswert, liste, objekt, datum, \
    uhrzeit, zeichenfolge, chaîne, chaine, chaîne de caractères, texte, nombre, entier, booléen, booleen, objet, \
    tableau, heure, cadena, texto, número, numero, entero, booleano, objeto, lista, arreglo, fecha, hora, inteiro, \
    stringa, testo, intero, booleana, oggetto, tekst, getal, tijd, lijst, liczba, metin, sayı, строка, текст, \
    число, дата, 字符串, 文本, 数字, 日期, 布尔值, 文字列, 数値, 日付, 真偽値, 문자열, 숫자, 날짜";

/// Words without information beside a member's name.
const FILLERS: &str = "a, an, the, of, in, as, for, this, that, your, is, here, goes, some, one, short, full, brief, name, value, \
    answer, result, example, placeholder, optional, required, insert, actual, code, format, der, die, das, ein, \
    eine, le, la, les, un, une, du, de, el, los, del, o";

const KEYWORDS: &str = "type, $schema, $id, $ref, $defs, title, description, properties, required, items, enum, const, format, pattern, \
    default, example, examples, nullable, optional, additionalProperties, minimum, maximum, exclusiveMinimum, \
    exclusiveMaximum, multipleOf, minLength, maxLength, minItems, maxItems, uniqueItems, minProperties, \
    maxProperties, anyOf, oneOf, allOf, not, prefixItems, definitions, strict";

/// Words between a type's name and its explanation.
const EXPLAINS: &str = " (| of | - | – | — | or | oder | ou | with | representing | containing | in ";

const EXAMPLES: &str = "one of|either |e.g.|eg. |z. b.|z.b.|for example|such as|p. ej.|par ex|i.e.";

/// Brackets around placeholders.
const BRACKETS: &str = "<…> […] {…} {{…}} ${…} (…) «…» ‹…› ＜…＞ %…% __…__";

#[derive(Clone, Copy, PartialEq)]
enum Leaf {
    Placeholder,
    /// Possible in a description and in an answer: `null`, `true`, `0`, an empty text.
    Neutral,
    Real,
}

pub(super) fn is_description(value: &Value) -> bool {
    if is_schema(value) {
        return true;
    }
    let mut leaves = Vec::new();
    collect(value, "", &mut leaves);
    leaves.contains(&Leaf::Placeholder) && !leaves.contains(&Leaf::Real)
}

fn collect(value: &Value, name: &str, leaves: &mut Vec<Leaf>) {
    match value {
        Value::Array(items) => items.iter().for_each(|item| collect(item, name, leaves)),
        Value::Object(members) if is_schema(value) || members.is_empty() => leaves.push(Leaf::Placeholder),
        Value::Object(members) => members.iter().for_each(|(name, member)| collect(member, name, leaves)),
        Value::String(text) => leaves.push(of_text(text, name)),
        Value::Number(number) if number.as_f64() != Some(0.0) => leaves.push(Leaf::Real),
        Value::Null | Value::Bool(_) | Value::Number(_) => leaves.push(Leaf::Neutral),
    }
}

/// A JSON Schema, a provider's wrapper of one, or a map from names to schemas.
fn is_schema(value: &Value) -> bool {
    let Value::Object(members) = value else { return false };
    let wrapped = ["schema", "json_schema"].iter().filter_map(|name| members.get(*name)).any(is_schema);
    wrapped
        || members.contains_key("$schema")
        || is_schema_itself(members)
        || !members.is_empty() && members.values().all(|member| member.as_object().is_some_and(is_schema_itself))
}

fn is_schema_itself(members: &Map<String, Value>) -> bool {
    let names = "string, number, integer, boolean, object, array, null, json_schema, json_object";
    let is_type = |value: &Value| value.as_str().is_some_and(|text| is_among(names, &text.to_lowercase()));
    let has_type = match members.get("type") {
        Some(Value::Array(types)) => !types.is_empty() && types.iter().all(is_type),
        Some(value) => is_type(value),
        None => false,
    };
    let has = |name: &str| members.get(name).is_some_and(|value| value.is_object() || value.is_array());
    let combines = ["anyOf", "oneOf", "allOf"].iter().any(|name| has(name)) || members.contains_key("$ref");
    let is_known = || members.keys().all(|name| is_among(KEYWORDS, name));
    has_type && (has("properties") || is_known()) || (combines || has("properties")) && is_known()
}

fn of_text(text: &str, name: &str) -> Leaf {
    let text = text.trim();
    if text.is_empty() {
        return Leaf::Neutral;
    }
    if text.len() > LONGEST {
        return Leaf::Real;
    }
    let lower = text.trim_end_matches(['.', '!', ',', ';']).trim().to_lowercase();
    let is_placeholder = is_type(&lower)
        || is_in_brackets(text)
        || is_marks(text)
        || is_pattern_of_moment(text)
        || is_alternatives(&lower)
        || echoes(text, name);
    if is_placeholder { Leaf::Placeholder } else { Leaf::Real }
}

fn is_type(text: &str) -> bool {
    let text = text.trim().trim_end_matches(['?', ']', '[']).trim();
    if is_among(TYPES, text) {
        return true;
    }
    let first = TYPES.split(", ").filter(|name| text.starts_with(*name)).max_by_key(|name| name.len());
    let behind = first.and_then(|name| text.get(name.len()..)).unwrap_or_default();
    let is_explained = behind.starts_with(['(', '<', '[', ',', ':', '=', '>', '|', '?'])
        || EXPLAINS.split('|').any(|mark| behind.starts_with(mark));
    let with_article = ["a ", "an ", "ein ", "eine ", "un ", "une ", "optional ", "required "];
    is_explained || with_article.iter().any(|article| text.strip_prefix(article).is_some_and(is_type_bare))
}

fn is_type_bare(text: &str) -> bool {
    let text = text.trim_matches(|mark| matches!(mark, '[' | ']' | '<' | '>' | '(' | ')' | ' '));
    is_among(TYPES, text)
        || TYPES.split(", ").any(|name| text.strip_prefix(name).is_some_and(|rest| rest.starts_with(" of ")))
}

fn is_in_brackets(text: &str) -> bool {
    BRACKETS.split(' ').filter_map(|pair| pair.split_once('…')).any(|(open, close)| {
        let inside = text.strip_prefix(open).and_then(|rest| rest.strip_suffix(close)).unwrap_or_default();
        let is_name = |letter: char| letter.is_alphanumeric() || " _-./|,'’".contains(letter);
        inside.chars().any(char::is_alphabetic) && inside.chars().all(is_name) || is_marks(inside)
    })
}

fn is_marks(text: &str) -> bool {
    let is_filler = |mark: char| matches!(mark, '.' | '…' | 'x' | 'X' | '#' | '_' | '*' | '?');
    let fillers = text.chars().filter(|mark| is_filler(*mark)).count();
    let is_dressed = text.chars().all(|mark| is_filler(mark) || mark.is_ascii_digit() || " +-()/:,$€£%".contains(mark));
    let is_all = fillers == text.chars().count();
    is_all && (fillers > 1 || text == "…" || text == "?" || text == "#")
        || is_dressed && ["XXX", "xxx", "###", "___", "..."].iter().any(|mark| text.contains(mark))
}

fn is_pattern_of_moment(text: &str) -> bool {
    let mut fields = 0;
    let (mut last, mut length) = (' ', 0);
    for letter in text.chars().chain([' ']) {
        if letter == last && letter.is_alphabetic() {
            length += 1;
            continue;
        }
        match length {
            0 => {}
            1 if matches!(last, 'T' | 'Z' | 'h' | 'H' | 'm' | 'd' | 'D' | 'M' | 'Y' | 'a' | 'S') => {}
            2..=4 if "YyMmDdHhSsTtJjAaGgNn年月日".contains(last) => fields += 1,
            _ => return false,
        }
        (last, length) = (letter, usize::from(letter.is_alphabetic()));
        if !letter.is_alphabetic() && !" -/.:,+年月日'[]()".contains(letter) {
            return false;
        }
    }
    fields >= 2
}

fn is_alternatives(text: &str) -> bool {
    let parts: Vec<&str> = text.split('|').map(str::trim).collect();
    let is_short = |part: &&str| !part.is_empty() && part.split_whitespace().count() <= 3;
    parts.len() > 1 && parts.iter().all(is_short)
        || EXAMPLES.split('|').any(|begins| text.starts_with(begins))
        || ["yes/no", "true/false", "ja/nein", "oui/non", "sí/no", "si/no", "string/null", "yes or no", "true or false"]
            .contains(&text)
        || text.split('/').count() > 1 && text.split('/').all(|part| is_among(TYPES, part.trim()))
}

/// Whether a text only repeats the name of its member: `city`, `name of the city` and `the city name` for `city`.
fn echoes(text: &str, name: &str) -> bool {
    if name.is_empty() {
        return false;
    }
    let (said, named) = (words(text), words(name));
    let is_filler = |word: &String| is_among(FILLERS, word) || is_among(TYPES, word);
    let is_named = |word: &String| named.iter().any(|other| singular(other) == singular(word));
    said.iter().any(is_named) && said.iter().all(|word| is_named(word) || is_filler(word))
}

/// In lower case; `openingHours` and `opening_hours` are two words.
fn words(text: &str) -> Vec<String> {
    let mut parted = String::with_capacity(text.len() + 8);
    let mut before = ' ';
    for letter in text.chars() {
        if letter.is_uppercase() && before.is_lowercase() {
            parted.push(' ');
        }
        parted.extend(letter.to_lowercase());
        before = letter;
    }
    let words = parted.split(|letter: char| !letter.is_alphanumeric()).filter(|word| !word.is_empty());
    words.map(str::to_owned).collect()
}

fn singular(word: &str) -> &str {
    word.strip_suffix('s').unwrap_or(word)
}

fn is_among(list: &str, word: &str) -> bool {
    list.split(", ").any(|one| one == word)
}
