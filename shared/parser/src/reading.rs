//! Reads an answer block by block.
//!
//! A quotation is often recognized only after its block; then the block's calls are taken back.

use memchr::memmem;

use crate::{
    Parsed,
    collector::Collector,
    fences::{Fence, Fences, Outer},
    statements,
    work::look_at,
};

pub(crate) fn parse(text: &str) -> Parsed {
    let mut fences = Fences::new(text);
    let Some(first) = fences.opening(0) else { return Parsed::default() };
    let mut reading = Reading {
        text,
        fences,
        report: Collector::new(text),
        thought: Thought::Unknown(first.start),
        searched: 0,
        first: None,
        doubled: None,
        marked: None,
    };
    let mut from = Some(0);
    loop {
        let block = from.and_then(|from| reading.fences.tool_block(from));
        if let Some(end) = reading.thought_before(block.map(|(fence, _calls)| fence.start)) {
            from = Some(reading.forget(end));
        } else if let Some((fence, calls)) = block {
            from = reading.block(&fence, calls);
        } else {
            break;
        }
    }
    let Reading { fences, mut report, .. } = reading;
    report.parsed.quoted = fences.passed.map(|start| Collector::new(text).line(start));
    report.parsed
}

struct Reading<'t> {
    text: &'t str,
    fences: Fences<'t>,
    report: Collector<'t>,
    thought: Thought,
    /// The offset searched so far for `<think`.
    searched: usize,
    /// Offset of the first block read.
    first: Option<usize>,
    /// The state before the blocks in a fence without a word.
    doubled: Option<Before>,
    /// An open quotation mark, with the state before the blocks after it.
    marked: Option<(char, Before)>,
}

/// A thought from the beginning of the answer, recognizable only by its end tag.
#[derive(Clone, Copy)]
enum Thought {
    /// Not searched yet, from the first fence on.
    Unknown(usize),
    EndsAt(usize),
    None,
}

#[derive(Clone, Copy)]
struct Before {
    entries: usize,
    blocks: usize,
    start: usize,
}

impl Reading<'_> {
    /// Reads a block, and returns the offset to continue at.
    fn block(&mut self, fence: &Fence, calls: usize) -> Option<usize> {
        let parsed = &self.report.parsed;
        let before = Before { entries: parsed.entries.len(), blocks: parsed.blocks, start: fence.start };
        self.first.get_or_insert(fence.start);
        let is_behind_mark = self.fences.is_behind_mark(fence);
        let end = statements::block(self.text, &mut self.fences, fence, calls, &mut self.report);
        if let Thought::EndsAt(thought) = self.thought
            && fence.start < thought
        {
            match end {
                None => return Some(self.forget(thought)),
                // The tag is inside an argument or comment.
                Some(end) if thought < end => self.look_for_thought(end),
                Some(_) => {}
            }
        }
        let mut end = end?;
        let first = self.doubled.take().unwrap_or(before);
        if self.fences.is_doubled(fence, calls, end) {
            self.doubled = Some(first);
            return Some(end);
        }
        match self.fences.within_outer(end) {
            Outer::None => {}
            Outer::Doubles(behind) => end = behind,
            Outer::GoesOn => self.doubled = Some(first),
            Outer::Quotes(behind) => {
                self.take_back(first);
                return Some(behind);
            }
        }
        if is_behind_mark {
            self.take_back(before);
        } else if !self.fences.is_last(end) {
            let marked = self.marked.take();
            let marked = marked.or_else(|| self.fences.open_mark(fence).map(|mark| (mark, before)));
            if let Some((mark, before)) = marked {
                match self.fences.closes_mark(end, mark) {
                    Some(true) => self.take_back(before),
                    Some(false) => {}
                    None => self.marked = Some((mark, before)),
                }
            }
        }
        Some(end)
    }

    /// The end of a thought that contains everything before `block`.
    fn thought_before(&mut self, block: Option<usize>) -> Option<usize> {
        if let Thought::Unknown(first) = self.thought
            && (block.is_some() || self.fences.passed.is_some())
        {
            self.look_for_thought(first);
        }
        match self.thought {
            Thought::EndsAt(end) if block.is_none_or(|start| end <= start) => Some(end),
            _ => None,
        }
    }

    fn look_for_thought(&mut self, from: usize) {
        let rest = self.text.as_bytes().get(from..).unwrap_or_default();
        let found = memmem::find(rest, b"</think");
        look_at(found.unwrap_or(rest.len()));
        self.thought = match found.map(|found| from + found) {
            Some(end) if !self.begins_thought(end) => Thought::EndsAt(end),
            _ => Thought::None,
        };
    }

    fn begins_thought(&mut self, end: usize) -> bool {
        let before = self.text.as_bytes().get(self.searched..end).unwrap_or_default();
        look_at(before.len());
        self.searched = end;
        memmem::find(before, b"<think").is_some()
    }

    /// Discards all results before the end of a thought, and continues there.
    fn forget(&mut self, end: usize) -> usize {
        let passed = self.fences.passed.into_iter().chain(self.first).min();
        self.report = Collector::new(self.text);
        self.fences = Fences::new(self.text);
        self.fences.passed = passed;
        (self.thought, self.doubled, self.marked) = (Thought::None, None, None);
        end
    }

    /// Removes the calls read since `before`, because they are quoted.
    fn take_back(&mut self, before: Before) {
        let parsed = &mut self.report.parsed;
        parsed.entries.truncate(before.entries);
        (parsed.blocks, parsed.unclosed) = (before.blocks, None);
        self.fences.pass(before.start);
    }
}
