//! A tool block: calls, one after the other, up to the first statement that is none.
//!
//! A statement is read as JavaScript reads it: it ends at `;`, at the end of a line if what follows cannot carry it on, or with
//! the block. Whatever is no call that stands by itself (a branch, a definition, half of a text) cannot be read, and what
//! stands behind it may belong to it. So it ends the reading, and nobody guesses where it ends itself.

use crate::{
    ToolCall,
    cursor::{Cursor, Parse},
    fences::{Fence, Fences},
    report::Report,
    values::short,
};

const CALL: &str = "a call, `name(argument, …)`";

/// Reports the calls of the block that `opening` begins, and says where to go on: nowhere behind a statement that cannot be
/// read.
pub(crate) fn block<'t>(
    text: &'t str,
    fences: &mut Fences<'t>,
    opening: &Fence,
    calls: usize,
    report: &mut Report<'t>,
) -> Option<usize> {
    let line = report.line(opening.start);
    report.block();
    let mut block = Block { cursor: Cursor::new(text, fences, opening, calls), name: None };
    match block.statements(report) {
        Ok(Some(behind)) => Some(behind),
        Ok(None) => {
            let (behind, open) = block.cursor.behind_block();
            if open {
                report.unclosed(line);
            }
            Some(behind)
        }
        Err(problem) => {
            // The line's end is known, and a problem's text is no longer than its line.
            let end = block.cursor.limit().max(problem.at);
            report.malformed(problem.at, end, problem.expected, block.name);
            None
        }
    }
}

struct Block<'t, 'f> {
    cursor: Cursor<'t, 'f>,
    /// Of the statement: the name, once it is known to be a call.
    name: Option<&'t str>,
}

impl<'t> Block<'t, '_> {
    /// All statements; where the block's closing marks end, if they stand behind a statement.
    fn statements(&mut self, report: &mut Report<'t>) -> Parse<Option<usize>> {
        loop {
            self.name = None;
            self.cursor.open = 0;
            self.cursor.blanks()?;
            match self.cursor.peek() {
                None => return Ok(None),
                Some(b';') => self.cursor.at += 1,
                Some(_) => {
                    if let Some(end) = self.cursor.closing_here() {
                        return Ok(Some(end));
                    }
                    let (at, call) = self.statement()?;
                    report.call(at, call);
                }
            }
        }
    }

    /// A call, and where its name stands.
    fn statement(&mut self) -> Parse<(usize, ToolCall)> {
        let cursor = &mut self.cursor;
        let mut at = cursor.at;
        let mut name = cursor.identifier();
        if name == Some("return") {
            // JavaScript returns nothing where the line ends.
            if cursor.blanks()? {
                cursor.at = at;
                return cursor.expected("a call on the line of its `return`");
            }
            at = cursor.at;
            name = cursor.identifier();
        }
        if name == Some("await") {
            cursor.blanks()?;
            at = cursor.at;
            name = cursor.identifier();
        }
        let Some(name) = name else { return self.no_call() };
        match name {
            "const" | "let" | "var" => {
                cursor.at = at;
                return cursor
                    .expected("a call by itself, without a variable: what it gives comes in the next message");
            }
            _ if is_reserved(name) => {
                cursor.at = at;
                return cursor.expected(format!("{CALL}: nothing else is executed, no `{name}`"));
            }
            _ => {}
        }
        let line_ended = cursor.blanks()?;
        match cursor.peek() {
            Some(b'(') => {}
            Some(b'.' | b'?' | b'[') if name == "Promise" => {
                cursor.at = at;
                return cursor
                    .expected("calls by themselves, one after the other: those of one block run side by side");
            }
            Some(b'.' | b'?' | b'[') => {
                cursor.at = at;
                return cursor.expected(format!("the tool's name alone before `(`: `{}` has no members", short(name)));
            }
            Some(b'=') if cursor.ahead_by(1) == Some(b'>') => {
                cursor.at = at;
                return cursor.expected(format!("{CALL}: functions are not executed"));
            }
            Some(b'=') => {
                cursor.at = at;
                return cursor
                    .expected("a call by itself, without a variable: what it gives comes in the next message");
            }
            _ => {
                cursor.at = if line_ended { at } else { cursor.at };
                return cursor.expected(format!("`(` and arguments after `{}`", short(name)));
            }
        }
        self.name = Some(name);
        let arguments = self.arguments()?;
        self.behind_call()?;
        Ok((at, ToolCall { name: name.to_owned(), arguments, line: 0, column: 0 }))
    }

    /// Something that does not begin with a word.
    #[cold]
    fn no_call<T>(&mut self) -> Parse<T> {
        let cursor = &mut self.cursor;
        match cursor.peek() {
            Some(b'[') => cursor.expected("calls by themselves, one after the other, not in a list"),
            Some(b'{') => cursor.expected(format!("{CALL}, not an object")),
            Some(b'(') => cursor.expected(format!("{CALL}, not in parentheses")),
            _ if cursor.at_marks() => {
                cursor.expected("a call, or as many marks as the block was opened with to close it")
            }
            _ => cursor.expected(CALL),
        }
    }

    /// In parentheses; the cursor is on the first.
    fn arguments(&mut self) -> Parse<Vec<serde_json::Value>> {
        let cursor = &mut self.cursor;
        cursor.at += 1;
        cursor.open = 1;
        let mut arguments = Vec::new();
        loop {
            cursor.blanks()?;
            if cursor.peek() == Some(b')') {
                break;
            }
            cursor.one_more(&mut arguments)?;
            cursor.blanks()?;
            match cursor.peek() {
                Some(b',') => cursor.at += 1,
                Some(b')') => break,
                _ => return cursor.behind_value("`,` or `)` after an argument"),
            }
        }
        cursor.at += 1;
        cursor.open = 0;
        Ok(arguments)
    }

    /// What stands behind a call must be the end of the statement: nothing can be done with what it gives.
    fn behind_call(&mut self) -> Parse<()> {
        let cursor = &mut self.cursor;
        let line_ended = cursor.blanks()?;
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
    /// Whether JavaScript takes what begins with `next`, on a new line, for more of the expression before it.
    fn carries_on(&mut self, next: u8) -> bool {
        match next {
            b'(' | b'[' | b'.' | b'?' | b',' | b'*' | b'/' | b'%' | b'<' | b'>' | b'=' | b'&' | b'|' | b'^' => true,
            b'`' => !self.at_marks(),
            // `-->` begins a comment, and what stands behind that may carry on.
            b'+' | b'-' => self.ahead_by(1) != Some(next) || self.ahead_by(2) == Some(b'>'),
            b'!' => self.ahead_by(1) == Some(b'='),
            b'i' => {
                let at = self.at;
                let word = self.identifier();
                self.at = at;
                matches!(word, Some("in" | "instanceof"))
            }
            _ => false,
        }
    }
}

/// Words that begin another statement or expression of JavaScript, or cannot be called.
fn is_reserved(word: &str) -> bool {
    matches!(
        word,
        "async"
            | "await"
            | "break"
            | "case"
            | "catch"
            | "class"
            | "continue"
            | "debugger"
            | "default"
            | "delete"
            | "do"
            | "else"
            | "enum"
            | "export"
            | "extends"
            | "false"
            | "finally"
            | "for"
            | "function"
            | "if"
            | "import"
            | "in"
            | "instanceof"
            | "new"
            | "null"
            | "return"
            | "super"
            | "switch"
            | "this"
            | "throw"
            | "true"
            | "try"
            | "typeof"
            | "void"
            | "while"
            | "with"
            | "yield"
    )
}
