//! Finds the beginnings and ends of fenced blocks.
//!
//! Prose is skipped by a vectorised search for three back-ticks or tildes, and no part is searched twice. Without a further
//! `tool` fence nothing is read at all.

use memchr::{memchr, memchr2, memchr3, memmem, memrchr2};

use crate::{marks, quotations::Quotations, work::look_at};

/// Longest fence that a shorter one may close; nobody writes longer ones.
const LONGEST_LEFT_OPEN: usize = 8;

/// Three or more back-ticks or tildes, first in their line, or after text if they can only open a block.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Fence {
    pub(crate) mark: u8,
    pub(crate) is_first: bool,
    /// Offset of its line.
    pub(crate) line: usize,
    /// Offset of the marks.
    pub(crate) start: usize,
    /// Offset after the marks.
    pub(crate) end: usize,
}

impl Fence {
    pub(crate) fn length(&self) -> usize {
        self.end - self.start
    }
}

/// The text after a fence's marks, on its line.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Behind {
    Nothing,
    /// The word `tool`; with the first possible offset of calls.
    Tool(usize),
    Other,
}

/// The effect of a fence inside a block.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Bearing {
    Closes,
    /// Begins another tool block; the current one was not closed.
    Begins,
    Inside,
}

/// The relation of a tool block to a surrounding fence without a word.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Outer {
    None,
    /// The surrounding block contains nothing else; with its end.
    Doubles(usize),
    /// The surrounding block contains other text; with its end.
    Quotes(usize),
    /// Another tool block follows.
    GoesOn,
}

pub(crate) struct Fences<'t> {
    bytes: &'t [u8],
    marks: [(u8, Search); 2],
    /// For the word `tool`, in lower and upper case.
    words: [Search; 2],
    text: &'t str,
    quotations: Quotations<'t>,
    /// The beginning of the text before the block.
    prose: usize,
    /// A fence without a word, directly before the block.
    outer: Option<Fence>,
    /// The first tool block skipped as quoted.
    pub(crate) passed: Option<usize>,
}

impl<'t> Fences<'t> {
    pub(crate) fn new(text: &'t str) -> Self {
        Self {
            bytes: text.as_bytes(),
            marks: [(b'`', Search::new(b"```")), (b'~', Search::new(b"~~~"))],
            words: [Search::new(b"ool"), Search::new(b"OOL")],
            text,
            quotations: Quotations::new(text),
            prose: 0,
            outer: None,
            passed: None,
        }
    }

    /// The next tool block from `from`, unless it is visibly quoted before its content: its fence, and the offset of its calls.
    pub(crate) fn tool_block(&mut self, mut from: usize) -> Option<(Fence, usize)> {
        self.prose = from;
        loop {
            self.quotations.go_on(from);
            let fence = self.opening(from)?;
            let behind = behind(self.bytes, &fence);
            let is_tool = matches!(behind, Behind::Tool(_));
            if !is_tool && self.tool_fence(fence.end).is_none() {
                return None;
            }
            from = if self.quotations.hold(&fence) {
                if is_tool {
                    self.pass(fence.start);
                }
                self.behind_held(&fence)
            } else if let Behind::Tool(calls) = behind {
                return Some((fence, calls));
            } else {
                self.behind_other(&fence, behind == Behind::Other)
            };
        }
    }

    /// The offset after a quoted fence, or after its closing fence if that is the next one.
    fn behind_held(&mut self, fence: &Fence) -> usize {
        self.outer = None;
        let next = self.fence(usize::from(fence.mark == b'~'), fence.end);
        let next = next.filter(|next| next.is_first && bearing(self.bytes, fence, next) == Bearing::Closes);
        next.map_or(fence.end, |next| next.end)
    }

    /// Skips a block other than `tool`, up to a tool block that it does not hide.
    fn behind_other(&mut self, fence: &Fence, hides: bool) -> usize {
        self.outer = None;
        let behind = match self.closing(fence, false) {
            (end, behind) if end < behind || end == self.bytes.len() => behind,
            (begin, _) if !hides && self.is_blank(fence.end, begin) => {
                self.outer = Some(*fence);
                return begin;
            }
            (begin, _) => self.behind_quoting(fence, begin),
        };
        if let Some(tool) = self.tool_fence(fence.end).filter(|tool| *tool < behind) {
            self.pass(tool);
        }
        self.prose = behind;
        behind
    }

    /// The end of a block that quotes the tool block at `at`: after the second of two closing fences, if there are two.
    fn behind_quoting(&mut self, outer: &Fence, at: usize) -> usize {
        let (mut from, mut closed) = (at, None);
        while let Some(fence) = self.first_of(outer.mark, from) {
            from = fence.end;
            match (bearing(self.bytes, outer, &fence), closed) {
                (Bearing::Closes, None) => closed = Some(fence.end),
                (Bearing::Closes, Some(_)) => return fence.end,
                (_, Some(closed)) => return closed,
                (_, None) => {}
            }
        }
        closed.unwrap_or(self.bytes.len())
    }

    pub(crate) fn pass(&mut self, start: usize) {
        let first = self.passed.get_or_insert(start);
        *first = start.min(*first);
    }

    /// Whether a tool block contains only another one, and so merely surrounds it.
    pub(crate) fn is_doubled(&mut self, fence: &Fence, calls: usize, end: usize) -> bool {
        let is_doubled = end < self.bytes.len() && self.is_blank(calls, end);
        if is_doubled {
            self.outer = Some(*fence);
        }
        is_doubled
    }

    /// The relation of a block that ends at `end` to a surrounding fence without a word.
    pub(crate) fn within_outer(&mut self, end: usize) -> Outer {
        let Some(outer) = self.outer.take() else { return Outer::None };
        let Some(next) = self.first_of(outer.mark, end) else { return Outer::None };
        let is_blank = self.is_blank(end, next.line);
        match bearing(self.bytes, &outer, &next) {
            Bearing::Closes if is_blank => Outer::Doubles(next.end),
            Bearing::Closes => Outer::Quotes(next.end),
            Bearing::Begins if is_blank => {
                self.outer = Some(outer);
                Outer::GoesOn
            }
            _ => Outer::None,
        }
    }

    /// Whether quotation marks stand directly before the block.
    pub(crate) fn is_behind_mark(&self, fence: &Fence) -> bool {
        self.text.get(self.prose..fence.start).is_some_and(marks::is_behind_mark)
    }

    /// The quotation mark open before the block.
    pub(crate) fn open_mark(&self, fence: &Fence) -> Option<char> {
        self.text.get(self.prose..fence.start).and_then(|prose| marks::open_mark(prose, None))
    }

    /// Whether the text up to the next block closes the quotation; `None` without any text.
    pub(crate) fn closes_mark(&mut self, end: usize, mark: char) -> Option<bool> {
        let next = self.opening(end).map_or(self.bytes.len(), |fence| fence.start);
        let behind = self.text.get(end..next)?;
        look_at(behind.len());
        (!behind.trim_ascii().is_empty()).then(|| marks::closes(behind, mark))
    }

    pub(crate) fn is_last(&self, end: usize) -> bool {
        self.is_blank(end, self.bytes.len())
    }

    fn is_blank(&self, from: usize, to: usize) -> bool {
        let between = self.bytes.get(from..to).unwrap_or_default();
        let rest = between.trim_ascii_start();
        look_at(between.len() - rest.len() + 1);
        rest.is_empty()
    }

    /// The next opening fence from `from`.
    pub(crate) fn opening(&mut self, mut from: usize) -> Option<Fence> {
        loop {
            let [ticks, tildes] = [0, 1].map(|mark| self.fence(mark, from));
            let fence = match (ticks, tildes) {
                (Some(ticks), Some(tildes)) if tildes.start < ticks.start => tildes,
                (fence, other) => fence.or(other)?,
            };
            if behind(self.bytes, &fence) != Behind::Other || !is_code_in_a_line(self.bytes, &fence) {
                return Some(fence);
            }
            from = fence.end;
        }
    }

    /// The end of the content of a block other than `tool`, and the offset to continue at. A block with a language hides its
    /// content. A fence without one is often the end of an unseen block, so such a block ends where a tool block begins.
    pub(crate) fn closing(&mut self, opening: &Fence, hides: bool) -> (usize, usize) {
        let mut from = opening.end;
        while let Some(fence) = self.first_of(opening.mark, from) {
            match bearing(self.bytes, opening, &fence) {
                Bearing::Closes => return (fence.line, fence.end),
                Bearing::Begins if !hides => return (fence.line, fence.line),
                _ if matches!(behind(self.bytes, &fence), Behind::Tool(_)) => {
                    self.pass(fence.start);
                }
                _ => {}
            }
            from = fence.end;
        }
        (self.bytes.len(), self.bytes.len())
    }

    /// The next fence of this mark from `from` that is first in its line, with any text after it.
    pub(crate) fn first_of(&mut self, mark: u8, mut from: usize) -> Option<Fence> {
        loop {
            let fence = self.fence(usize::from(mark == b'~'), from)?;
            if fence.is_first {
                return Some(fence);
            }
            from = fence.end;
        }
    }

    #[inline]
    fn fence(&mut self, mark: usize, from: usize) -> Option<Fence> {
        let (mark, search) = self.marks.get_mut(mark)?;
        search.at(from, |finder| fence(self.bytes, *mark, finder, from))
    }

    /// Whether a fence that is too short still closes a tool block: nothing follows on its line, and no sufficient fence comes
    /// before another block.
    pub(crate) fn closes_short(&mut self, opening: &Fence, short: &Fence) -> bool {
        if opening.length() > LONGEST_LEFT_OPEN || behind(self.bytes, short) != Behind::Nothing {
            return false;
        }
        let mut from = short.end;
        while let Some(fence) = self.first_of(opening.mark, from) {
            match bearing(self.bytes, opening, &fence) {
                Bearing::Inside => from = fence.end,
                bearing => return bearing == Bearing::Begins,
            }
        }
        true
    }

    /// The offset after the fence that closes the outer block, if only blanks precede it.
    pub(crate) fn behind_doubled(&mut self, outer: &Fence, at: usize) -> usize {
        let fence = self.first_of(outer.mark, at).filter(|fence| bearing(self.bytes, outer, fence) == Bearing::Closes);
        let is_next =
            |fence: &Fence| self.bytes.get(at..fence.start).is_some_and(|between| between.trim_ascii().is_empty());
        fence.filter(is_next).map_or(at, |fence| fence.end)
    }

    /// The next marks before the word `tool`.
    fn tool_fence(&mut self, from: usize) -> Option<usize> {
        let bytes = self.bytes;
        let [small, capital] =
            self.words.each_mut().map(|word| word.at(from, |finder| tool_fence(bytes, finder, from)));
        small.into_iter().chain(capital).map(|fence| fence.start).min()
    }
}

/// The next mark before the word `tool`, whether a fence or not.
fn tool_fence(bytes: &[u8], finder: &memmem::Finder<'_>, from: usize) -> Option<Fence> {
    let rest = bytes.get(from..)?;
    let found = finder.find_iter(rest).find_map(|at| {
        let before = rest.get(..at)?.strip_suffix(b"t").or_else(|| rest.get(..at)?.strip_suffix(b"T"))?;
        let marks = before.len() - blanks_before(before);
        matches!(before.get(..marks)?, [.., b'`' | b'~']).then(|| from + marks - 1)
    });
    look_at(found.map_or(rest.len(), |found| found - from));
    found.map(|at| Fence { mark: b'`', is_first: false, line: at, start: at, end: at })
}

pub(crate) fn bearing(bytes: &[u8], opening: &Fence, fence: &Fence) -> Bearing {
    if fence.length() < opening.length() {
        return Bearing::Inside;
    }
    match behind(bytes, fence) {
        Behind::Nothing => Bearing::Closes,
        Behind::Tool(_) => Bearing::Begins,
        Behind::Other => Bearing::Inside,
    }
}

/// `CommonMark`: back-ticks after a fence of back-ticks make it inline code.
fn is_code_in_a_line(bytes: &[u8], fence: &Fence) -> bool {
    let line = bytes.get(fence.end..).unwrap_or_default();
    let found = memchr3(b'`', b'\n', b'\r', line);
    look_at(found.unwrap_or(line.len()));
    fence.mark == b'`' && found.is_some_and(|found| line.get(found) == Some(&b'`'))
}

/// Skips marks of bold text like blanks.
pub(crate) fn behind(bytes: &[u8], fence: &Fence) -> Behind {
    let bold = |at: usize| at + bytes.get(at..).map_or(0, |rest| rest.iter().take_while(|byte| **byte == b'*').count());
    let at = |from: usize| from + blanks(bytes.get(from..).unwrap_or_default());
    let is_end = |at: usize| matches!(bytes.get(at), None | Some(b'\n' | b'\r'));
    let word = at(bold(fence.end));
    look_at(word - fence.end + 1);
    if is_end(word) {
        return Behind::Nothing;
    }
    let (behind_word, is_tool) =
        (bold(word + 4), bytes.get(word..word + 4).is_some_and(|word| matches!(word, b"tool" | b"Tool" | b"TOOL")));
    if is_tool && (is_end(behind_word) || at(behind_word) > behind_word) {
        Behind::Tool(at(behind_word))
    } else {
        Behind::Other
    }
}

/// Bytes of leading blanks and invisible characters.
pub(crate) fn blanks(bytes: &[u8]) -> usize {
    let mut count = 0;
    loop {
        count += match bytes.get(count..).unwrap_or_default() {
            [b' ' | b'\t', ..] => 1,
            [0xC2, 0xA0, ..] => 2,
            [0xEF, 0xBB, 0xBF, ..] | [0xE2, 0x80, 0x8B..=0x8D, ..] | [0xE2, 0x81, 0xA0, ..] => 3,
            _ => return count,
        };
    }
}

/// Bytes of trailing ones.
fn blanks_before(bytes: &[u8]) -> usize {
    let mut rest = bytes;
    loop {
        rest = match rest {
            [rest @ .., b' ' | b'\t'] | [rest @ .., 0xC2, 0xA0] => rest,
            [rest @ .., 0xEF, 0xBB, 0xBF] | [rest @ .., 0xE2, 0x80, 0x8B..=0x8D] | [rest @ .., 0xE2, 0x81, 0xA0] => {
                rest
            }
            _ => return bytes.len() - rest.len(),
        };
        look_at(1);
    }
}

/// The number of leading `byte`s.
pub(crate) fn run(bytes: &[u8], byte: u8) -> usize {
    const WIDE: usize = 32;
    let wide = bytes.chunks_exact(WIDE).take_while(|chunk| **chunk == [byte; WIDE]).count() * WIDE;
    let length = wide + bytes.iter().skip(wide).take_while(|found| **found == byte).count();
    look_at(length);
    length
}

/// The beginning of the line of `at`, if only blanks stand between.
pub(crate) fn line_of_first(bytes: &[u8], at: usize) -> Option<usize> {
    let before = bytes.get(..at).unwrap_or_default();
    let line = at - blanks_before(before);
    match line.checked_sub(1).and_then(|end| bytes.get(end)) {
        None | Some(b'\n' | b'\r') => Some(line),
        Some(_) => None,
    }
}

/// A resumable search.
struct Search {
    finder: memmem::Finder<'static>,
    /// The last start and its result.
    searched: Option<(usize, Option<Fence>)>,
}

impl Search {
    fn new(needle: &'static [u8]) -> Self {
        Self { finder: memmem::Finder::new(needle), searched: None }
    }

    #[inline]
    fn at(&mut self, from: usize, search: impl FnOnce(&memmem::Finder<'_>) -> Option<Fence>) -> Option<Fence> {
        match self.searched {
            Some((before, found)) if before <= from && found.is_none_or(|found| from <= found.start) => found,
            _ => {
                let found = search(&self.finder);
                self.searched = Some((from, found));
                found
            }
        }
    }
}

/// The next fence of one mark.
fn fence(bytes: &[u8], mark: u8, finder: &memmem::Finder<'_>, mut from: usize) -> Option<Fence> {
    loop {
        let rest = bytes.get(from..)?;
        // Fast path: a fence on the next line.
        let next = rest.strip_prefix(b"\n").is_some_and(|line| line.starts_with(&[mark; 3]));
        let found = if next { Some(1) } else { finder.find(rest) };
        look_at(found.unwrap_or(rest.len()));
        let start = from + found?;
        let end = start + run(bytes.get(start..)?, mark);
        if let Some(line) = line_of_first(bytes, start) {
            return Some(Fence { mark, is_first: true, line, start, end });
        }
        // After text, a fence needs a word and the line end behind it, and nothing else in its line can be a fence.
        let rest = bytes.get(end..)?;
        let length = memchr2(b'\n', b'\r', rest);
        look_at(length.unwrap_or(rest.len()));
        let fence = Fence { mark, is_first: false, line: start, start, end };
        if let Some(line) = behind_text(bytes, &fence, rest.get(..length.unwrap_or(rest.len()))?) {
            return Some(Fence { line, ..fence });
        }
        from = end + length?;
    }
}

/// The beginning of the line of a fence after text, if a word ends the line and no inline code is open before it.
fn behind_text(bytes: &[u8], fence: &Fence, rest: &[u8]) -> Option<usize> {
    let word = rest.trim_ascii().strip_suffix(b"**").unwrap_or(rest.trim_ascii());
    let is_word = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'+' | b'#' | b'.');
    if fence.mark != b'`' || word.is_empty() || !word.iter().all(is_word) {
        return None;
    }
    // Results of tools contain escaped fences.
    let before = bytes.get(..fence.start).filter(|before| !before.ends_with(b"\\"))?;
    let line = memrchr2(b'\n', b'\r', before).map_or(0, |end| end + 1);
    let (mut open, mut from, before) = (None, 0, before.get(line..)?);
    // Inline code ends with as many back-ticks as it began with.
    while let Some(found) = memchr(b'`', before.get(from..)?) {
        let length = run(before.get(from + found..)?, b'`');
        open = match open {
            None => Some(length),
            Some(begun) if begun == length => None,
            open => open,
        };
        from += found + length;
    }
    look_at(rest.len() + before.len());
    open.is_none().then_some(line)
}
