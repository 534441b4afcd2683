//! Results that are too long, cut where it makes sense, and saying so.

use serde_json::{Map, Value};

/// Of a member that does not fit whole, nothing is kept in less than this.
const LEAST_OF_A_MEMBER: usize = 80;
const CUT: &str = " … (cut)";

/// The value, if its JSON has at most `budget` bytes. Else a text is cut at a word; of a list or an object those members are
/// kept that fit, in order, the first that does not fit cut in the same way, with a note of how many are left out.
pub fn fit(value: Value, budget: usize) -> Value {
    if length(&value) <= budget { value } else { cut(&value, budget) }
}

fn cut(value: &Value, budget: usize) -> Value {
    match value {
        Value::String(text) => cut_text(text, budget),
        Value::Array(items) => {
            let note = |left: usize| Value::from(format!("{left} more are left out"));
            // Brackets, and the note with its comma.
            let mut left = budget.saturating_sub(3 + length(&note(items.len())));
            let (mut kept, mut out, mut one_is_cut) = (Vec::new(), 0, false);
            for item in items {
                match shorten(item, left.saturating_sub(1), &mut one_is_cut) {
                    Some(item) => {
                        left -= length(&item) + 1;
                        kept.push(item);
                    }
                    None => out += 1,
                }
            }
            kept.extend((out > 0).then(|| note(out)));
            Value::Array(kept)
        }
        Value::Object(members) => {
            let note = |left: usize| Value::from(format!("{left} more members"));
            let mut left = budget.saturating_sub(16 + length(&note(members.len())));
            let (mut kept, mut out, mut one_is_cut) = (Map::new(), 0, false);
            for (name, member) in members {
                let name_length = length(&Value::from(name.as_str())) + 2;
                match shorten(member, left.saturating_sub(name_length), &mut one_is_cut) {
                    Some(member) => {
                        left -= length(&member) + name_length;
                        kept.insert(name.clone(), member);
                    }
                    None => out += 1,
                }
            }
            kept.extend((out > 0).then(|| ("left_out".to_owned(), note(out))));
            Value::Object(kept)
        }
        other => cut_text(&other.to_string(), budget),
    }
}

/// A member whole, or once for each list or object cut to what is left.
fn shorten(member: &Value, left: usize, one_is_cut: &mut bool) -> Option<Value> {
    if length(member) <= left {
        return Some(member.clone());
    }
    let can_be_cut = matches!(member, Value::String(_) | Value::Array(_) | Value::Object(_));
    if *one_is_cut || !can_be_cut || left < LEAST_OF_A_MEMBER {
        return None;
    }
    *one_is_cut = true;
    Some(cut(member, left)).filter(|member| length(member) <= left)
}

fn cut_text(text: &str, budget: usize) -> Value {
    let mut end = budget.saturating_sub(CUT.len() + 2).min(text.len());
    loop {
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        let kept = text.get(..end).unwrap_or_default();
        let at_word = kept.rfind(char::is_whitespace).filter(|at| *at > end / 2).unwrap_or(end);
        let cut = Value::from(format!("{}{CUT}", text.get(..at_word).unwrap_or_default().trim_end()));
        let length = length(&cut);
        if length <= budget || end == 0 {
            return cut;
        }
        // Escapes made it longer than it was.
        end = end.saturating_sub((length - budget).max(1));
    }
}

/// Of the JSON text, in bytes.
fn length(value: &Value) -> usize {
    struct Counted(usize);
    impl std::io::Write for Counted {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0 += bytes.len();
            Ok(bytes.len())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let mut counted = Counted(0);
    // Nothing that is JSON already can fail to be written.
    serde_json::to_writer(&mut counted, value).map_or(usize::MAX, |()| counted.0)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_too_long_is_cut_where_it_makes_sense_and_says_so() {
        let list: Vec<Value> = (0..500).map(|number| json!({"order": number, "state": "shipped"})).collect();
        let cut = fit(json!(list), 400);
        let kept = cut.as_array().unwrap();
        assert_eq!(kept[0], json!({"order": 0, "state": "shipped"}));
        assert_eq!(kept.last().unwrap(), &json!(format!("{} more are left out", 501 - kept.len())));

        let object = json!({"name": "Ana", "notes": "word ".repeat(1_000), "orders": list, "tier": "gold"});
        let cut = fit(object, 300);
        assert_eq!((&cut["name"], &cut["left_out"]), (&json!("Ana"), &json!("2 more members")));
        assert!(cut["notes"].as_str().unwrap().ends_with("word … (cut)"), "{cut}");

        let deep = fit(json!({"data": {"orders": list}}), 300);
        assert_eq!(deep["data"]["orders"][0], list[0]);
        assert_eq!(fit(json!({"short": true}), 20), json!({"short": true}));
    }

    proptest! {
        #[test]
        fn what_is_cut_fits(text in "\\PC{0,200}", times in 1_usize..80, budget in 100_usize..3_000) {
            let list = json!(vec![text.clone(); times]);
            for value in [json!(text.repeat(times)), list.clone(), json!({"a": text.repeat(times), "b": list, "c": 1})] {
                prop_assert!(length(&fit(value, budget)) <= budget);
            }
        }
    }
}
