//! Paths to values: `event.text`, `rows[0].name`, `rows.0.name`, `rows.-1`, `fields["First name"]`.

use serde_json::Value;

use crate::cut::{is_marker, lost_its_end};

/// In characters.
const LONGEST_PATH: usize = 300;
const MOST_STEPS: usize = 30;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Path {
    text: String,
    steps: Vec<PathStep>,
}

/// A member of an object or an item of a list, depending on the value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PathStep {
    name: String,
    /// Counted from the end if negative.
    index: Option<i64>,
}

impl PathStep {
    pub fn name(&self) -> &str {
        &self.name
    }

    pub fn is_index(&self) -> bool {
        self.index.is_some()
    }

    fn place(&self, items: usize) -> Option<usize> {
        let index = self.index?;
        let from_end = || items.checked_sub(usize::try_from(index.checked_neg()?).ok()?);
        if index >= 0 { usize::try_from(index).ok() } else { from_end() }
    }

    pub fn into<'v>(&self, value: &'v Value) -> Option<&'v Value> {
        match value {
            Value::Object(members) => members.get(&self.name),
            Value::Array(items) => items.get(self.place(items.len())?),
            _ => None,
        }
    }
}

impl Path {
    /// # Errors
    /// The mistake, to follow "it".
    pub fn parse(text: &str) -> Result<Self, String> {
        let text = text.trim();
        if text.is_empty() {
            return Err("is empty".to_owned());
        }
        if text.chars().count() > LONGEST_PATH {
            return Err(format!("has more than {LONGEST_PATH} characters"));
        }
        let mut steps: Vec<PathStep> = Vec::new();
        let mut rest = text;
        while !rest.is_empty() {
            let (name, index, after) = match rest.strip_prefix('[') {
                Some(inside) => bracketed(inside)?,
                None if steps.is_empty() => named(rest)?,
                None => named(rest.strip_prefix('.').ok_or("has a ] without a dot after it")?)?,
            };
            if steps.is_empty() && index.is_some() {
                return Err("must begin with a name".to_owned());
            }
            steps.push(PathStep { name, index });
            if steps.len() > MOST_STEPS {
                return Err(format!("has more than {MOST_STEPS} steps"));
            }
            rest = after;
        }
        Ok(Self { text: text.to_owned(), steps })
    }

    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Never empty.
    pub fn steps(&self) -> &[PathStep] {
        &self.steps
    }

    /// The path up to its first index of a list.
    pub(super) fn before_index(&self) -> Self {
        let steps: Vec<PathStep> = self.steps.iter().take_while(|step| !step.is_index()).cloned().collect();
        Self { text: self.text.clone(), steps }
    }

    pub fn first(&self) -> &str {
        self.steps.first().map_or("", PathStep::name)
    }

    pub fn follow<'v>(steps: &[PathStep], value: &'v Value) -> Option<&'v Value> {
        steps.iter().try_fold(value, |value, step| step.into(value))
    }

    pub(super) fn is_cut_off(steps: &[PathStep], value: &Value) -> bool {
        if is_marker(value) {
            return true;
        }
        let Some((step, rest)) = steps.split_first() else { return false };
        let from_end = value.is_array() && step.index.is_some_and(i64::is_negative);
        match step.into(value).filter(|_| !(from_end && lost_its_end(value))) {
            Some(inner) => Self::is_cut_off(rest, inner),
            None => lost_its_end(value),
        }
    }
}

type Read<'t> = (String, Option<i64>, &'t str);

fn bracketed(inside: &str) -> Result<Read<'_>, String> {
    let unclosed = || "has a [ without a ]".to_owned();
    for quote in ['"', '\''] {
        if let Some(quoted) = inside.strip_prefix(quote) {
            let (name, after) = quoted.split_once(quote).ok_or_else(unclosed)?;
            let after = after.strip_prefix(']').ok_or_else(unclosed)?;
            return Ok((name.to_owned(), None, after));
        }
    }
    let (index, after) = inside.split_once(']').ok_or_else(unclosed)?;
    let number: i64 = index
        .trim()
        .parse()
        .map_err(|_not_a_number| format!("has [{index}], but brackets hold only a whole number or a quoted name"))?;
    Ok((number.to_string(), Some(number), after))
}

fn named(rest: &str) -> Result<Read<'_>, String> {
    let end = rest.find(['.', '[']).unwrap_or(rest.len());
    let (name, after) = rest.split_at(end);
    if name.is_empty() || after == "." {
        return Err("has a dot without a name after it".to_owned());
    }
    if let Some(wrong) = name.chars().find(|letter| !(letter.is_alphanumeric() || "_-$@".contains(*letter))) {
        return Err(if wrong.is_whitespace() {
            "has a space in it".to_owned()
        } else {
            format!("has the character {wrong:?} in it")
        });
    }
    Ok((name.to_owned(), name.parse().ok(), after))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn lists_and_members_are_reached_in_every_spelling() {
        let value = json!({"a": [{"b": 1}, {"b": 2}], "o": {"0": "zero", "-1": "minus", "First name": "Ada"}});
        for (path, expected) in [
            ("a[0].b", Some(json!(1))),
            ("a.0.b", Some(json!(1))),
            ("a.-1.b", Some(json!(2))),
            ("a[-1].b", Some(json!(2))),
            ("a[-3].b", None),
            ("a[2]", None),
            ("a.b", None),
            ("o.0", Some(json!("zero"))),
            ("o.-1", Some(json!("minus"))),
            ("o[\"First name\"]", Some(json!("Ada"))),
            ("o['First name']", Some(json!("Ada"))),
            (" a[0] ", Some(json!({"b": 1}))),
            ("a[0].b.c", None),
        ] {
            let path = Path::parse(path).unwrap();
            assert_eq!(Path::follow(path.steps(), &value), expected.as_ref(), "{path:?}");
        }
    }

    #[test]
    fn a_text_that_is_not_a_path_is_refused_with_its_mistake() {
        for (path, problem) in [
            ("", "empty"),
            ("a..b", "dot"),
            ("a.", "dot"),
            (".a", "dot"),
            ("a b", "space"),
            ("a|b", "'|'"),
            ("a[", "without a ]"),
            ("a[x]", "[x]"),
            ("a[0]b", "without a dot"),
            ("[0]", "begin with a name"),
            ("0", "begin with a name"),
        ] {
            let refused = Path::parse(path).unwrap_err();
            assert!(refused.contains(problem), "{path}: {refused}");
        }
        assert!(Path::parse(&"a".repeat(301)).is_err());
        assert!(Path::parse(&vec!["a"; 31].join(".")).is_err());
    }

    proptest! {
        #[test]
        fn any_text_is_a_path_or_a_sentence(text in "\\PC{0,40}") {
            let _ = Path::parse(&text);
        }
    }
}
