//! Parses a tool block: calls in sequence, up to the first other statement.
//!
//! Statements end as in JavaScript: at `;`, at a line end if the next line cannot continue it, or with the block. Any other
//! statement (a branch, a definition, half of a string) is unreadable, and the text after it may belong to it. So reading stops
//! there rather than guess where it ends.

use memchr::{memchr_iter, memchr2, memmem};

use crate::{
    Entry, ToolCall,
    collector::Collector,
    cursor::{Cursor, Parse},
    fences::{Fence, Fences},
    values::short,
    work::look_at,
};

const CALL: &str = "a call, `name(argument, …)`";
const NO_VARIABLE: &str = "a call by itself, without a variable: what it gives comes in the next message";

/// Words that begin other statements or expressions of JavaScript, or cannot be called; by length.
const RESERVED: [&[&str]; 11] = [
    &[],
    &[],
    &["do", "if", "in"],
    &["for", "new", "try"],
    &["case", "else", "enum", "null", "this", "true", "void", "with"],
    &["async", "await", "break", "catch", "class", "false", "super", "throw", "while", "yield"],
    &["delete", "export", "import", "return", "switch", "typeof"],
    &["default", "extends", "finally"],
    &["continue", "debugger", "function"],
    &[],
    &["instanceof"],
];

/// Reports the calls of the block after `opening`, and returns the offset to continue at; `None` after an unreadable statement.
pub(crate) fn block<'t>(
    text: &'t str,
    fences: &mut Fences<'t>,
    opening: &Fence,
    calls: usize,
    report: &mut Collector<'t>,
) -> Option<usize> {
    let line = report.line(opening.start);
    report.parsed.blocks += 1;
    let mut block = Block { cursor: Cursor::new(text, fences, opening, calls), name: None, outer: None };
    let read = block.statements(report);
    let Block { cursor, name, outer } = block;
    let behind = match read {
        Ok(Some(behind)) => behind,
        Ok(None) => {
            let (behind, open) = cursor.behind_block();
            if open {
                report.parsed.unclosed = Some(line);
            }
            behind
        }
        Err(problem) => {
            // The line's end is known, and the reported text does not exceed the line.
            let (end, is_over) = (cursor.limit().max(problem.at), cursor.is_over);
            let malformed = report.malformed(problem.at, end, problem.expected, name, is_over);
            report.parsed.entries.push(Entry::Malformed(malformed));
            return None;
        }
    };
    Some(outer.map_or(behind, |outer| fences.behind_doubled(&outer, behind)))
}

struct Block<'t, 'f> {
    cursor: Cursor<'t, 'f>,
    /// The name in the current statement, once it is known to be a call.
    name: Option<&'t str>,
    /// The fence around this block, if it contains only this block.
    outer: Option<Fence>,
}

impl<'t> Block<'t, '_> {
    /// All statements. Returns the end of closing marks on a statement's line.
    fn statements(&mut self, report: &mut Collector<'t>) -> Parse<Option<usize>> {
        let mut is_first = true;
        loop {
            self.name = None;
            self.cursor.open.clear();
            self.cursor.blanks()?;
            match self.cursor.peek() {
                None => return Ok(None),
                Some(b';') => self.cursor.at += 1,
                Some(b'`' | b'~') => {
                    if let Some(end) = self.cursor.closing_here() {
                        return Ok(Some(end));
                    }
                    self.outer = if is_first { self.cursor.enter_doubled() } else { None };
                    if self.outer.is_none() {
                        return self.no_call();
                    }
                }
                // Program headers without effect.
                Some(b'i' | b'f') if self.cursor.is_import() => self.cursor.at += self.cursor.line().len(),
                Some(b'\'' | b'"') if matches!(self.cursor.ahead().get(1..11), Some(b"use strict")) => {
                    let quote = self.cursor.peek().unwrap_or_default();
                    self.cursor.quoted(quote)?;
                    let line_ended = self.cursor.blanks()?;
                    self.behind_call(line_ended)?;
                }
                Some(_) => {
                    let before = report.parsed.entries.len();
                    if let Err(problem) = self.statement(report) {
                        report.parsed.entries.truncate(before);
                        return Err(problem);
                    }
                }
            }
            is_first = false;
        }
    }

    /// A list of calls separated by commas, usually one.
    fn statement(&mut self, report: &mut Collector<'t>) -> Parse<()> {
        let start = self.cursor.at;
        if self.cursor.identifier() == Some("return") {
            // In JavaScript a `return` ends with its line.
            if self.cursor.blanks()? {
                self.cursor.at = start;
                return self.cursor.expected("a call on the line of its `return`");
            }
        } else {
            self.cursor.at = start;
        }
        loop {
            let line_ended = self.call(report)?;
            if self.cursor.peek() != Some(b',') {
                return self.behind_call(line_ended);
            }
            self.cursor.at += 1;
            self.cursor.blanks()?;
        }
    }

    /// A call, perhaps in parentheses or with a TypeScript type. Returns whether a line ended after it.
    fn call(&mut self, report: &mut Collector<'t>) -> Parse<bool> {
        self.name = None;
        let cursor = &mut self.cursor;
        let (mut parentheses, mut awaited) = (0, false);
        let (at, name) = loop {
            let at = cursor.at;
            match cursor.identifier() {
                Some("await") if !awaited => awaited = true,
                Some(name) => break (at, name),
                None if cursor.peek() == Some(b'(') => {
                    (parentheses, awaited) = (parentheses + 1, false);
                    cursor.at += 1;
                }
                None => return self.no_call(),
            }
            cursor.blanks()?;
        };
        let instead = |cursor: &mut Cursor<'_, '_>, expected: String| {
            cursor.at = at;
            cursor.expected(expected)
        };
        if matches!(name, "const" | "let" | "var") {
            return instead(cursor, NO_VARIABLE.to_owned());
        }
        if is_reserved(name) {
            return instead(cursor, format!("{CALL}: nothing else is executed, no `{name}`"));
        }
        if cursor.peek() == Some(b'<') {
            cursor.type_arguments()?;
        }
        let line_ended = cursor.blanks()?;
        match cursor.peek() {
            Some(b'(') => {}
            Some(b'.' | b'?' | b'[') if name == "Promise" => {
                let each = "calls by themselves, one after the other: those of one block run side by side";
                return instead(cursor, each.to_owned());
            }
            Some(b'.' | b'?' | b'[') => {
                let alone = format!("the tool's name alone before `(`: `{}` has no members", short(name));
                return instead(cursor, alone);
            }
            Some(b'=') if cursor.ahead_by(1) == Some(b'>') => {
                return instead(cursor, format!("{CALL}: functions are not executed"));
            }
            Some(b'=') => return instead(cursor, NO_VARIABLE.to_owned()),
            _ => {
                cursor.at = if line_ended { at } else { cursor.at };
                return cursor.expected(format!("`(` and arguments after `{}`", short(name)));
            }
        }
        self.name = Some(name);
        let arguments = cursor.arguments()?;
        let line_ended = cursor.behind_arguments(parentheses)?;
        report.call(at, ToolCall { name: name.to_owned(), arguments, line: 0, column: 0 });
        Ok(line_ended)
    }

    /// A statement that does not begin with a word.
    #[cold]
    fn no_call<T>(&mut self) -> Parse<T> {
        let cursor = &mut self.cursor;
        match cursor.peek() {
            Some(b'[') => cursor.expected("calls by themselves, one after the other, not in a list"),
            Some(b'{') => cursor.expected(format!("{CALL}, not an object")),
            Some(b')') => cursor.expected(format!("{CALL}: functions are not executed")),
            _ if cursor.at_marks() => {
                cursor.expected("a call, or as many marks as the block was opened with to close it")
            }
            _ => cursor.expected(CALL),
        }
    }

    /// Only the end of the statement may follow a call, because results cannot be used.
    fn behind_call(&mut self, line_ended: bool) -> Parse<()> {
        let cursor = &mut self.cursor;
        match cursor.peek() {
            None => return Ok(()),
            Some(b';') => {
                cursor.at += 1;
                return Ok(());
            }
            Some(next) if line_ended && !cursor.carries_on(next) => return Ok(()),
            Some(_) if cursor.closing_here().is_some() => return Ok(()),
            Some(_) => {}
        }
        cursor.expected("`;` or the end of the line after a call, and nothing that goes on with what it gives")
    }
}

impl Cursor<'_, '_> {
    /// The cursor must be on the opening parenthesis.
    pub(crate) fn arguments(&mut self) -> Parse<Vec<serde_json::Value>> {
        self.enter()?;
        let mut arguments = Vec::new();
        loop {
            self.blanks()?;
            if self.peek() == Some(b')') {
                break;
            }
            self.one_more(&mut arguments)?;
            self.blanks()?;
            match self.peek() {
                Some(b',') => self.at += 1,
                Some(b')') => break,
                _ => return self.behind_value("`,` or `)` after an argument"),
            }
        }
        self.leave();
        Ok(arguments)
    }

    /// Skips `!`, `as T`, and closing parentheses. Returns whether a line ended after them.
    fn behind_arguments(&mut self, mut parentheses: usize) -> Parse<bool> {
        loop {
            let line_ended = self.blanks()?;
            let on_line = !line_ended || parentheses > 0;
            match self.peek() {
                Some(b')') if parentheses > 0 => parentheses -= 1,
                Some(b'!') if on_line && self.ahead_by(1) != Some(b'=') => {}
                Some(b'a') if on_line && self.is_word("as") => {
                    self.at += 2;
                    self.a_type()?;
                    continue;
                }
                _ if parentheses > 0 => return self.expected("`)` behind the call"),
                _ => return Ok(line_ended),
            }
            self.at += 1;
        }
    }

    fn is_word(&mut self, word: &str) -> bool {
        let at = self.at;
        let found = self.identifier() == Some(word);
        self.at = at;
        found
    }

    /// A type: names, with members, arguments, `[]` and `|`.
    fn a_type(&mut self) -> Parse<()> {
        loop {
            self.blanks()?;
            let at = self.at;
            if self.identifier().is_none_or(|name| is_reserved(name) && !matches!(name, "void" | "null")) {
                self.at = at;
                return self.expected("the name of a type, or no type at all");
            }
            if self.peek() == Some(b'<') {
                self.type_arguments()?;
            }
            while self.peek() == Some(b'[') && self.ahead_by(1) == Some(b']') {
                self.at += 2;
            }
            let behind = self.at;
            let is_member = self.peek() == Some(b'.');
            if !is_member && (self.blanks()? || self.peek() != Some(b'|') || self.ahead_by(1) == Some(b'|')) {
                self.at = behind;
                return Ok(());
            }
            self.at += 1;
        }
    }

    /// `<T>`, nested as deep as values may be.
    fn type_arguments(&mut self) -> Parse<()> {
        self.enter()?;
        loop {
            self.a_type()?;
            self.blanks()?;
            match self.peek() {
                Some(b',') => self.at += 1,
                Some(b'>') => break,
                _ => return self.expected("`>` behind the type"),
            }
        }
        self.leave();
        Ok(())
    }

    /// Whether the line is an import of names only; it contains no call and ends with the line.
    fn is_import(&self) -> bool {
        let is_from = self.ahead().starts_with(b"from ");
        if !is_from && !self.ahead().starts_with(b"import ") {
            return false;
        }
        let line = self.line();
        let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"_$ \t,.*{}'\"/@-;".contains(byte);
        let count = |counted: u8| memchr_iter(counted, line).count();
        line.iter().all(is_plain)
            && (!is_from || memmem::find(line, b" import ").is_some())
            && count(b'{') == count(b'}')
            && (count(b'\'') | count(b'"')).is_multiple_of(2)
            && memmem::find(line, b"/*").is_none()
    }

    /// The rest of the line.
    fn line(&self) -> &[u8] {
        let ahead = self.ahead();
        let line = memchr2(b'\n', b'\r', ahead).map_or(ahead, |end| ahead.get(..end).unwrap_or_default());
        look_at(line.len());
        line
    }

    /// Whether JavaScript continues the expression on a new line that begins with `next`.
    fn carries_on(&mut self, next: u8) -> bool {
        match next {
            b'(' | b'[' | b'.' | b'?' | b',' | b'*' | b'/' | b'%' | b'<' | b'>' | b'=' | b'&' | b'|' | b'^' => true,
            b'`' => !self.at_marks(),
            // `-->` begins a comment, and the text after it may continue the expression.
            b'+' | b'-' => self.ahead_by(1) != Some(next) || self.ahead_by(2) == Some(b'>'),
            b'!' => self.ahead_by(1) == Some(b'='),
            b'i' => self.is_word("in") || self.is_word("instanceof"),
            _ => false,
        }
    }
}

fn is_reserved(word: &str) -> bool {
    RESERVED.get(word.len()).is_some_and(|same| same.contains(&word))
}
