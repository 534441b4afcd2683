//! Arguments: JavaScript literals as JSON.

use std::borrow::Cow;

use serde_json::{Map, Number, Value};

use crate::cursor::{Cursor, Parse};

pub const DEEPEST: usize = 64;

const VALUE: &str = "a value (text in quotes, a number, `true`, `false`, `null`, a list or an object)";

impl Cursor<'_, '_> {
    /// Parses a literal into `slot`, which must be null: building in place avoids moving values. Returns false for `undefined`.
    pub(crate) fn value(&mut self, slot: &mut Value) -> Parse<bool> {
        let Some(byte) = self.peek() else { return self.expected(VALUE) };
        match byte {
            b'"' | b'\'' => *slot = Value::String(self.quoted(byte)?),
            b'`' => *slot = Value::String(self.back_ticked()?),
            b'0'..=b'9' => *slot = Value::Number(self.number(self.at, false)?),
            b'.' if self.ahead_by(1).is_some_and(|next| next.is_ascii_digit()) => {
                *slot = Value::Number(self.number(self.at, false)?);
            }
            b'+' | b'-' => *slot = Value::Number(self.signed(byte == b'-')?),
            b'[' => *slot = Value::Array(self.list()?),
            b'{' => *slot = Value::Object(self.object()?),
            _ => return self.word(byte, slot),
        }
        Ok(true)
    }

    /// Appends a value; null for `undefined`.
    pub(crate) fn one_more(&mut self, values: &mut Vec<Value>) -> Parse<()> {
        values.push(Value::Null);
        if let Some(slot) = values.last_mut() {
            self.value(slot)?;
        }
        Ok(())
    }

    fn signed(&mut self, negative: bool) -> Parse<Number> {
        let start = self.at;
        self.at += 1;
        self.blanks()?;
        match self.peek() {
            Some(b'0'..=b'9' | b'.') => self.number(start, negative),
            Some(b'I') => self.expected("a finite number: JSON has no `Infinity`"),
            _ => self.expected("a number after the sign: a value must be written out, nothing is computed"),
        }
    }

    /// `true`, `false`, `null` and `undefined`; other words are errors.
    fn word(&mut self, byte: u8, slot: &mut Value) -> Parse<bool> {
        let start = self.at;
        match self.identifier() {
            Some("null") => Ok(true),
            Some("undefined") => Ok(false),
            Some("true") => {
                *slot = Value::Bool(true);
                Ok(true)
            }
            Some("false") => {
                *slot = Value::Bool(false);
                Ok(true)
            }
            Some(name) => {
                let expected = self.instead_of(name)?;
                self.at = start;
                self.expected(expected)
            }
            None => match byte {
                b'(' => self.expected("a value written out: functions and parentheses are not executed"),
                b'/' => self.expected("a value: write a pattern as text in quotes"),
                b'.' => self.expected("a value written out: nothing can be spread with `...`"),
                b'<' if self.ahead().starts_with(b"<http") => {
                    self.expected("an address in quotes, `\"https://…\"`, without `<` and `>`")
                }
                b'&' => self.expected("a value: text stands in quotes, `\"`, not in `&quot;`"),
                b'<' | b'!' | b'~' => self.expected("a value written out: nothing is computed"),
                _ => match self.character() {
                    Some('“' | '”' | '„' | '‘' | '’' | '«' | '»') => {
                        self.expected("a value: text stands in straight quotes, `\"` or `'`")
                    }
                    _ => self.expected(VALUE),
                },
            },
        }
    }

    /// The replacement for a name; the cursor is after it.
    #[cold]
    fn instead_of(&mut self, name: &str) -> Parse<Cow<'static, str>> {
        Ok(match name {
            "True" => "`true`, in small letters".into(),
            "False" => "`false`, in small letters".into(),
            "None" | "nil" | "NULL" | "Null" => "`null`".into(),
            "NaN" | "Infinity" => format!("a finite number or `null`: JSON has no `{name}`").into(),
            "function" | "async" | "class" => "a value: functions are not executed".into(),
            "await" | "new" | "typeof" | "void" => {
                format!("a value written out: `{name} …` would have to be executed").into()
            }
            _ => {
                self.blanks()?;
                let name = short(name);
                let argument = self.open.len() == 1;
                match (self.ahead_by(0), self.ahead_by(1)) {
                    (Some(b':'), Some(b'/')) => format!("an address in quotes, `\"{name}://…\"`").into(),
                    (Some(b'='), Some(b'>')) => "a value: functions are not executed".into(),
                    (Some(b'=' | b':'), _) if argument => {
                        format!("a value: to give arguments by name, write one object, `{{{name}: …}}`").into()
                    }
                    (Some(b'('), _) => format!(
                        "a value written out: `{name}(…)` is a call; make it first, by itself, and use what it gives"
                    )
                    .into(),
                    _ => format!("a value written out: `{name}` is a name; text stands in quotes").into(),
                }
            }
        })
    }

    /// Enters a bracket, up to the maximal depth.
    pub(crate) fn enter(&mut self) -> Parse<()> {
        // The call's own parenthesis is the first open bracket.
        if self.open.len() > DEEPEST {
            return self.expected(format!("at most {DEEPEST} lists and objects inside each other"));
        }
        self.open.push(self.at);
        self.at += 1;
        Ok(())
    }

    pub(crate) fn leave(&mut self) {
        self.open.pop();
        self.at += 1;
    }

    fn list(&mut self) -> Parse<Vec<Value>> {
        self.enter()?;
        let mut items = Vec::new();
        loop {
            self.blanks()?;
            match self.peek() {
                Some(b']') => break,
                Some(b',') => {
                    items.push(Value::Null);
                    self.at += 1;
                    continue;
                }
                None => return self.expected("`]` at the end of the list"),
                Some(_) => self.one_more(&mut items)?,
            }
            self.blanks()?;
            match self.peek() {
                Some(b',') => self.at += 1,
                Some(b']') => break,
                _ => return self.behind_value("`,` or `]` after an item of a list"),
            }
        }
        self.leave();
        Ok(items)
    }

    fn object(&mut self) -> Parse<Map<String, Value>> {
        self.enter()?;
        let mut members = Map::new();
        loop {
            self.blanks()?;
            if self.peek() == Some(b'}') {
                break;
            }
            let key = self.key()?;
            self.blanks()?;
            if self.peek() != Some(b':') {
                return match self.peek() {
                    Some(_) if matches!(&key[..], "get" | "set" | "async") => {
                        self.expected(format!("`:` and a value after `{key}`: no methods"))
                    }
                    Some(b'(') => self.expected(format!("`:` and a value after `{}`: no methods", short(&key))),
                    Some(b',' | b'}') => {
                        self.expected(format!("`:` and a value after `{}`: a value must be written out", short(&key)))
                    }
                    _ => self.expected(format!("`:` and a value after `{}`", short(&key))),
                };
            }
            self.at += 1;
            self.blanks()?;
            let mut value = Value::Null;
            if self.value(&mut value)? {
                members.insert(key, value);
            } else {
                members.remove(&key);
            }
            self.blanks()?;
            match self.peek() {
                Some(b',') => self.at += 1,
                Some(b'}') => break,
                _ => return self.behind_value("`,` or `}` after a member of an object"),
            }
        }
        self.leave();
        Ok(members)
    }

    fn key(&mut self) -> Parse<String> {
        match self.peek() {
            Some(quote @ (b'"' | b'\'')) => self.quoted(quote),
            Some(b'0'..=b'9') => self.number_as_key(),
            Some(b'.') if self.ahead_by(1).is_some_and(|next| next.is_ascii_digit()) => self.number_as_key(),
            Some(b'.') => self.expected("a key: nothing can be spread with `...`"),
            Some(b'[') => self.expected("a key written out, not computed in `[…]`"),
            Some(b'`') => self.expected("a key in `\"` or `'`, or without quotes"),
            None => self.expected("`}` at the end of the object"),
            Some(_) => match self.identifier() {
                Some(name) => Ok(name.to_owned()),
                None => self.expected("a key of the object, or `}`"),
            },
        }
    }

    /// Reports an unexpected character after a value.
    #[cold]
    pub(crate) fn behind_value<T>(&mut self, expected: &'static str) -> Parse<T> {
        match self.peek() {
            Some(b'+' | b'-' | b'*' | b'/' | b'%' | b'?' | b'|' | b'&' | b'<' | b'>' | b'.' | b'[' | b'(' | b'`') => {
                self.expected(format!("{expected}: a value must be written out, nothing is computed"))
            }
            Some(b'=') if self.ahead_by(1) == Some(b'>') => self.expected("a value: functions are not executed"),
            _ => match self.at.checked_sub(1).and_then(|before| self.bytes.get(before)) {
                Some(quote @ (b'"' | b'\'')) if self.ahead_by(0) == Some(*quote) => self.expected(
                    "text in one pair of quotes, or in back-ticks if it has several lines, not in three quotes",
                ),
                Some(quote @ (b'"' | b'\'')) if !matches!(self.ahead_by(0), None | Some(b'\n' | b'\r' | b';')) => {
                    let quote = char::from(*quote);
                    self.expected(format!("{expected}: within a text, `{quote}` is written `\\{quote}`"))
                }
                _ => self.expected(expected),
            },
        }
    }
}

/// A name cut for a sentence.
pub(crate) fn short(name: &str) -> Cow<'_, str> {
    const LONGEST: usize = 40;
    match name.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", name.get(..end).unwrap_or_default()).into(),
        None => name.into(),
    }
}
