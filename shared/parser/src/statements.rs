//! A tool block: calls, one after the other, and how to go on behind one that is none.

use crate::{
    ToolCall,
    cursor::{Cursor, Parse, Problem, Rest},
    fences::{Fence, Fences},
    report::Report,
    values::short,
    work::look_at,
};

const CALL: &str = "a call, `name(argument, …)`";

/// Reports the calls of the block that `opening` begins and says where to go on.
pub(crate) fn block<'t>(
    text: &'t str,
    fences: &mut Fences<'t>,
    opening: &Fence,
    calls: usize,
    report: &mut Report<'t>,
) -> usize {
    let line = report.line(opening.start);
    report.block();
    let before = report.entries();
    let mut block = Block { cursor: Cursor::new(text, fences, opening, calls), name: None, indent: 0, blind: false };
    let (end, behind, open) = if let Some((start, end)) = block.statements(report) {
        (start, end, false)
    } else {
        let (behind, open) = block.cursor.behind_block();
        (block.cursor.limit(), behind, open)
    };
    if open {
        report.unclosed(line);
    }
    if report.entries() == before {
        report.malformed(end, end, "a call in the block, `name(argument, …)`".into(), None);
    }
    behind
}

struct Block<'t, 'f> {
    cursor: Cursor<'t, 'f>,
    /// Of the statement: the name, once it is known to be a call.
    name: Option<&'t str>,
    /// Of the statement's first line.
    indent: usize,
    /// Back-ticks that open a text were found not to be closed in this block.
    blind: bool,
}

impl<'t> Block<'t, '_> {
    /// All statements; where the block's closing marks begin and end, if they stand behind a statement.
    fn statements(&mut self, report: &mut Report<'t>) -> Option<(usize, usize)> {
        loop {
            if let Err(problem) = self.cursor.blanks() {
                self.problem(&problem, self.cursor.at, report);
                continue;
            }
            match self.cursor.peek() {
                None => return None,
                Some(b';') => {
                    self.cursor.at += 1;
                    continue;
                }
                Some(_) => {}
            }
            if let Some(end) = self.cursor.closing_here() {
                return Some((self.cursor.at, end));
            }
            let start = self.cursor.at;
            self.indent = self.cursor.indent().unwrap_or(self.indent);
            self.name = None;
            self.cursor.open = 0;
            match self.statement() {
                Ok((at, call)) => report.call(at, call),
                Err(problem) => self.problem(&problem, start, report),
            }
        }
    }

    /// A call, and where its name stands.
    fn statement(&mut self) -> Parse<(usize, ToolCall)> {
        let cursor = &mut self.cursor;
        let mut at = cursor.at;
        let mut name = cursor.identifier();
        for word in ["return", "await"] {
            if name == Some(word) {
                cursor.blanks()?;
                at = cursor.at;
                name = cursor.identifier();
            }
        }
        let Some(name) = name else { return self.no_call(at) };
        match name {
            "const" | "let" | "var" => {
                cursor.at = at;
                return cursor
                    .expected("a call by itself, without a variable: what it gives comes in the next message");
            }
            "if" | "else" | "for" | "while" | "do" | "switch" | "try" | "catch" | "finally" | "function" | "async"
            | "class" | "with" => {
                cursor.at = at;
                return cursor.expected_no_body(format!("{CALL}: nothing else is executed, no `{name}`"));
            }
            "return" => {
                cursor.at = at;
                return cursor.expected(CALL);
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
                return cursor.expected_no_body(format!("{CALL}: functions are not executed"));
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
    fn no_call<T>(&mut self, at: usize) -> Parse<T> {
        let cursor = &mut self.cursor;
        match cursor.peek() {
            Some(b'[') => cursor.expected("calls by themselves, one after the other, not in a list"),
            Some(b'{') => cursor.expected(format!("{CALL}, not an object")),
            Some(b'(') => cursor.expected_no_body(format!("{CALL}, not in parentheses")),
            Some(b'`' | b'~') if cursor.indent().is_some() => {
                cursor.expected("a call, or as many marks as the block was opened with to close it")
            }
            _ => {
                cursor.at = at;
                cursor.expected(CALL)
            }
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
        let behind = cursor.at;
        let Ok(line_ended) = cursor.blanks() else {
            // The call is good; the comment is told of next.
            cursor.at = behind;
            return Ok(());
        };
        match cursor.peek() {
            None => return Ok(()),
            Some(b';') => {
                cursor.at += 1;
                return Ok(());
            }
            Some(b'.' | b'?') => {}
            Some(_) if line_ended || cursor.closing_here().is_some() => return Ok(()),
            Some(_) => {
                let next = cursor.at;
                if matches!(cursor.identifier(), Some("return" | "await")) {
                    cursor.at = next;
                    return Ok(());
                }
                cursor.at = next;
            }
        }
        cursor.expected("`;` or the end of the line after a call: nothing can be done here with what it gives")
    }

    /// Reports what is wrong with the statement that began at `start`, and goes behind it.
    #[cold]
    fn problem(&mut self, problem: &Problem, start: usize, report: &mut Report<'t>) {
        // The line's end is known, and a problem's text is no longer than its line.
        let end = self.cursor.limit().max(problem.at);
        report.malformed(problem.at, end, problem.expected.clone(), self.name);
        self.name = None;
        match problem.rest {
            Rest::Block => self.pass_block(),
            rest => {
                self.pass_to(problem.at);
                self.pass(start, rest);
            }
        }
    }

    fn pass_block(&mut self) {
        while self.cursor.peek().is_some() {
            self.cursor.at = self.cursor.limit();
        }
    }

    /// Over the text in quotes in which a problem was found, and in any case behind what was reported: entries have an order.
    fn pass_to(&mut self, problem: usize) {
        if self.cursor.at >= problem {
            return;
        }
        match self.cursor.peek() {
            Some(quote @ (b'"' | b'\'')) => self.cursor.pass_quoted(quote),
            Some(b'`') if !self.blind => self.blind = !self.cursor.pass_back_ticked(),
            _ => {}
        }
        self.cursor.at = self.cursor.at.max(problem);
    }

    /// Goes to the end of the statement that began at `start`: to `;` or the end of a line with no bracket open, or to what
    /// looks like the next one.
    fn pass(&mut self, start: usize, rest: Rest) {
        let mut body = rest == Rest::Body;
        let mut open = self.cursor.open;
        let mut first = self.cursor.indent().is_some();
        while let Some(byte) = self.cursor.peek() {
            let here = self.cursor.at;
            match byte {
                b' ' | b'\t' => {
                    self.cursor.at += 1;
                    continue;
                }
                b'\n' | b'\r' => {
                    self.cursor.at += 1;
                    first = true;
                    if open == 0 && !(body && self.deeper()) {
                        return;
                    }
                    continue;
                }
                b';' if open == 0 => {
                    self.cursor.at += 1;
                    return;
                }
                b'(' | b'[' | b'{' => {
                    open += 1;
                    self.cursor.at += 1;
                }
                b')' | b']' | b'}' => {
                    open = open.saturating_sub(1);
                    self.cursor.at += 1;
                }
                b'"' | b'\'' => self.cursor.pass_quoted(byte),
                b'`' if !self.blind => {
                    self.blind = !self.cursor.pass_back_ticked();
                    self.cursor.at += usize::from(self.blind);
                }
                b'/' if self.cursor.ahead_by(1) == Some(b'/') => self.cursor.pass_line(),
                b'/' if self.cursor.ahead_by(1) == Some(b'*') => {
                    if self.cursor.comment().is_err() {
                        self.pass_block();
                    }
                }
                b'\\' if self.cursor.ahead_by(1).is_some_and(|next| next.is_ascii_graphic()) => self.cursor.at += 2,
                b'=' if self.cursor.ahead_by(1) == Some(b'>') => {
                    body = true;
                    self.cursor.at += 2;
                }
                _ => match self.cursor.identifier() {
                    Some("function") => body = true,
                    Some(word) if here > start && !body && self.begins_statement(word, here, first && open > 0) => {
                        self.cursor.at = here;
                        return;
                    }
                    Some(_) => {}
                    None => self.cursor.at += self.cursor.character().map_or(1, char::len_utf8),
                },
            }
            first = false;
        }
    }

    /// Whether the next line belongs to a body, being indented more than the statement.
    fn deeper(&mut self) -> bool {
        if self.cursor.peek().is_none() {
            return false;
        }
        let ahead = self.cursor.ahead();
        let blanks = ahead.iter().take_while(|byte| crate::fences::is_blank(**byte)).count();
        look_at(blanks);
        blanks > self.indent
    }

    /// Whether the word at `here`, which the cursor is behind of, begins the next statement though brackets are open.
    fn begins_statement(&mut self, word: &str, here: usize, first: bool) -> bool {
        if word == "return" {
            return true;
        }
        if !first || crate::fences::line_of_first(self.cursor.bytes, here).is_none_or(|line| here - line > self.indent)
        {
            return false;
        }
        word == "await" || self.cursor.ahead_by(0) == Some(b'(')
    }
}
