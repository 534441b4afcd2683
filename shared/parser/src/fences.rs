//! Where fenced blocks begin and end. Prose is passed over by a vectorised search for three back-ticks or tildes in a row, and
//! no part of the answer is searched twice.

use memchr::{memchr2, memchr3, memmem};

use crate::{quotations::Quotations, work::look_at};

/// What a fence is made of.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Mark {
    BackTick,
    Tilde,
}

impl Mark {
    pub(crate) fn byte(self) -> u8 {
        match self {
            Self::BackTick => b'`',
            Self::Tilde => b'~',
        }
    }
}

/// Three or more marks in a row that are the first thing in their line.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Fence {
    pub(crate) mark: Mark,
    /// Where its line begins.
    pub(crate) line: usize,
    /// Where the marks begin.
    pub(crate) start: usize,
    /// Behind the marks.
    pub(crate) end: usize,
}

impl Fence {
    pub(crate) fn length(&self) -> usize {
        self.end - self.start
    }
}

/// A fence that begins a block.
pub(crate) struct Opening {
    pub(crate) fence: Fence,
    /// Where the calls begin, in a tool block.
    pub(crate) calls: Option<usize>,
}

/// What stands behind the marks of a fence, on its line.
#[derive(Debug, PartialEq)]
enum Behind {
    Nothing,
    /// The word `tool`; where it ends.
    Tool(usize),
    Other,
}

pub(crate) struct Fences<'t> {
    bytes: &'t [u8],
    back_ticks: Upcoming,
    tildes: Upcoming,
    quotations: Quotations<'t>,
    /// Where the first tool block begins that is quoted, until it is asked for.
    quoted: Option<usize>,
}

impl<'t> Fences<'t> {
    pub(crate) fn new(text: &'t str) -> Self {
        Self {
            bytes: text.as_bytes(),
            back_ticks: Upcoming::new(Mark::BackTick),
            tildes: Upcoming::new(Mark::Tilde),
            quotations: Quotations::new(text),
            quoted: None,
        }
    }

    /// Where the first tool block begins that [`Self::opening`] passed over since this was asked for, because it is quoted.
    pub(crate) fn quoted(&mut self) -> Option<usize> {
        self.quoted.take()
    }

    /// The next block that begins at `from` or later, and is not quoted.
    pub(crate) fn opening(&mut self, mut from: usize) -> Option<Opening> {
        self.quotations.go_on(from);
        loop {
            let fence = match (self.back_ticks.at(self.bytes, from), self.tildes.at(self.bytes, from)) {
                (Some(ticks), Some(tildes)) if tildes.start < ticks.start => tildes,
                (Some(fence), _) | (None, Some(fence)) => fence,
                (None, None) => return None,
            };
            let behind = behind(self.bytes, &fence);
            if behind == Behind::Other && is_code_in_a_line(self.bytes, &fence) {
                from = fence.end;
            } else if self.quotations.hold(fence.line, fence.start) {
                if matches!(behind, Behind::Tool(_)) {
                    self.quoted.get_or_insert(fence.start);
                }
                from = fence.end;
            } else {
                let calls = if let Behind::Tool(end) = behind { Some(end) } else { None };
                return Some(Opening { fence, calls });
            }
        }
    }

    /// Behind the fence that closes the block of another language, or the end of the answer.
    pub(crate) fn behind_closing(&mut self, opening: &Fence) -> usize {
        let mut from = opening.end;
        while let Some(fence) = self.of(opening.mark, from) {
            if closes(self.bytes, opening, &fence) {
                return fence.end;
            }
            from = fence.end;
        }
        self.bytes.len()
    }

    /// The next fence of that mark at `from` or later, whatever stands behind it.
    pub(crate) fn of(&mut self, mark: Mark, from: usize) -> Option<Fence> {
        match mark {
            Mark::BackTick => self.back_ticks.at(self.bytes, from),
            Mark::Tilde => self.tildes.at(self.bytes, from),
        }
    }
}

/// How a fence in a tool block bears on the block.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Bearing {
    Closes,
    /// It begins a tool block of its own: the one before was not closed.
    Begins,
    Inside,
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

fn closes(bytes: &[u8], opening: &Fence, fence: &Fence) -> bool {
    fence.length() >= opening.length() && behind(bytes, fence) == Behind::Nothing
}

/// `CommonMark`: no back-tick stands behind a fence of back-ticks, or it would be code within a line.
fn is_code_in_a_line(bytes: &[u8], fence: &Fence) -> bool {
    let line = bytes.get(fence.end..).unwrap_or_default();
    let found = memchr3(b'`', b'\n', b'\r', line);
    look_at(found.unwrap_or(line.len()));
    fence.mark == Mark::BackTick && found.is_some_and(|found| line.get(found) == Some(&b'`'))
}

fn behind(bytes: &[u8], fence: &Fence) -> Behind {
    let line = bytes.get(fence.end..).unwrap_or_default();
    let blanks = line.iter().take_while(|byte| is_blank(**byte)).count();
    look_at(blanks + 1);
    let rest = line.get(blanks..).unwrap_or_default();
    if matches!(rest.first(), None | Some(b'\n' | b'\r')) {
        return Behind::Nothing;
    }
    let is_tool = rest.get(..4).is_some_and(|word| word.eq_ignore_ascii_case(b"tool"));
    if is_tool && rest.get(4).is_none_or(|byte| is_blank(*byte) || matches!(byte, b'\n' | b'\r')) {
        return Behind::Tool(fence.end + blanks + 4);
    }
    Behind::Other
}

pub(crate) fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t')
}

/// How many times `byte` stands at the beginning.
pub(crate) fn run(bytes: &[u8], byte: u8) -> usize {
    const WIDE: usize = 32;
    let wide = bytes.chunks_exact(WIDE).take_while(|chunk| **chunk == [byte; WIDE]).count() * WIDE;
    let length = wide + bytes.iter().skip(wide).take_while(|found| **found == byte).count();
    look_at(length);
    length
}

/// Where the line of `at` begins, if there are only blanks between.
pub(crate) fn line_of_first(bytes: &[u8], at: usize) -> Option<usize> {
    let before = bytes.get(..at).unwrap_or_default();
    let blanks = before.iter().rev().take_while(|byte| is_blank(**byte)).count();
    look_at(blanks + 1);
    let line = at - blanks;
    match line.checked_sub(1).and_then(|end| bytes.get(end)) {
        None | Some(b'\n' | b'\r') => Some(line),
        Some(_) => None,
    }
}

/// The search for the fences of one mark, which goes on from where it was.
struct Upcoming {
    mark: Mark,
    finder: memmem::Finder<'static>,
    /// From where was searched last, and what was found.
    searched: Option<(usize, Option<Fence>)>,
}

impl Upcoming {
    fn new(mark: Mark) -> Self {
        let three: &[u8; 3] = match mark {
            Mark::BackTick => b"```",
            Mark::Tilde => b"~~~",
        };
        Self { mark, finder: memmem::Finder::new(three), searched: None }
    }

    #[inline]
    fn at(&mut self, bytes: &[u8], from: usize) -> Option<Fence> {
        match self.searched {
            Some((before, None)) if before <= from => None,
            Some((before, Some(fence))) if before <= from && from <= fence.start => Some(fence),
            _ => {
                let found = self.search(bytes, from);
                self.searched = Some((from, found));
                found
            }
        }
    }

    fn search(&self, bytes: &[u8], mut from: usize) -> Option<Fence> {
        loop {
            let rest = bytes.get(from..)?;
            // A fence on the next line needs no search.
            let next = rest.strip_prefix(b"\n").is_some_and(|line| line.starts_with(&[self.mark.byte(); 3]));
            let found = if next { Some(1) } else { self.finder.find(rest) };
            look_at(found.unwrap_or(rest.len()));
            let start = from + found?;
            let end = start + run(bytes.get(start..)?, self.mark.byte());
            if let Some(line) = line_of_first(bytes, start) {
                return Some(Fence { mark: self.mark, line, start, end });
            }
            // Nothing else in its line is the first thing there.
            let rest = bytes.get(end..)?;
            let found = memchr2(b'\n', b'\r', rest);
            look_at(found.unwrap_or(rest.len()));
            from = end + found?;
        }
    }
}
