//! Writes the text of html5gum's tokens.

use std::{cell::Cell, convert::Infallible, str};

use html5gum::{Emitter, State, emitters::naive_next_state};
use url::{Origin, Position, Url};

/// Bytes; no relevant tag or attribute has a longer name.
const LONGEST_NAME: usize = 16;
const LONGEST_TITLE: usize = 300;
/// Bytes; a link with a longer address becomes plain text.
pub(super) const LONGEST_ADDRESS: usize = 500;
/// Empty cells shown before a cell with text.
const MOST_BARS: usize = 32;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Gap {
    None,
    Space,
    Line,
    Paragraph,
}

#[derive(Default)]
struct Tag {
    name: Vec<u8>,
    ends: bool,
    self_closing: bool,
    attribute: Vec<u8>,
    href: Option<Vec<u8>>,
    alt: Option<Vec<u8>>,
    /// A repeated attribute; the first one counts.
    repeated: bool,
}

struct Link {
    address: String,
    begun: bool,
}

pub(super) struct Writer<'e> {
    /// Bytes, because input may split characters.
    text: Vec<u8>,
    limit: usize,
    enough: &'e Cell<bool>,
    base: Url,
    /// The site omitted from links.
    site: Option<Origin>,
    tag: Tag,
    last_start: Vec<u8>,
    gap: Gap,
    /// Precedes the next text: the mark of a heading or item.
    mark: &'static str,
    /// Cells ended since the last text of the row.
    bars: usize,
    in_row: bool,
    row: usize,
    preformatted: usize,
    pre_begins: bool,
    link: Option<Link>,
    title: Option<Vec<u8>>,
    /// The skipped element, and its nesting depth within itself.
    left_out: Option<(Vec<u8>, usize)>,
    has_base: bool,
}

impl<'e> Writer<'e> {
    pub(super) fn new(base: Url, site: Option<Origin>, limit: usize, enough: &'e Cell<bool>) -> Self {
        Self {
            text: Vec::new(),
            limit,
            enough,
            base,
            site,
            tag: Tag::default(),
            last_start: Vec::new(),
            gap: Gap::None,
            mark: "",
            bars: 0,
            in_row: false,
            row: 0,
            preformatted: 0,
            pre_begins: false,
            link: None,
            title: None,
            left_out: None,
            has_base: false,
        }
    }

    /// Bytes in memory.
    #[cfg(test)]
    pub(super) fn kept(&self) -> usize {
        let names = [&self.text, &self.tag.name, &self.tag.attribute, &self.last_start];
        let values = [self.tag.href.as_ref(), self.tag.alt.as_ref(), self.title.as_ref()];
        names.into_iter().chain(values.into_iter().flatten()).map(Vec::len).sum()
    }

    pub(super) fn finish(mut self) -> String {
        self.end_link();
        let text = match String::from_utf8(self.text) {
            Ok(text) => text,
            Err(error) => String::from_utf8_lossy(error.as_bytes()).into_owned(),
        };
        text.trim_end().to_owned()
    }

    /// Table rows have no empty lines.
    fn at_least(&mut self, gap: Gap) {
        self.gap = self.gap.max(if self.in_row { gap.min(Gap::Line) } else { gap });
    }

    fn write(&mut self, text: &[u8]) {
        if let Some(title) = &mut self.title {
            title.extend(text.iter().take(LONGEST_TITLE.saturating_sub(title.len())));
            return;
        }
        if self.left_out.is_some() || self.enough.get() {
            return;
        }
        if self.preformatted > 0 {
            // HTML ignores a line break directly after `<pre>`.
            let text =
                if std::mem::take(&mut self.pre_begins) { text.strip_prefix(b"\n").unwrap_or(text) } else { text };
            if !text.is_empty() {
                self.add(text);
            }
            return;
        }
        let mut rest = text;
        while let Some(first) = rest.first() {
            let space = if first.is_ascii_whitespace() {
                1
            } else if rest.starts_with("\u{a0}".as_bytes()) {
                2
            } else {
                0
            };
            if space > 0 {
                self.at_least(Gap::Space);
                rest = rest.get(space..).unwrap_or_default();
                continue;
            }
            let breaks = |byte: &u8| byte.is_ascii_whitespace() || *byte == 0xc2;
            // Skip the first byte: it may be 0xc2, the first byte of a no-break space, and still begin a word.
            let length = rest.iter().skip(1).position(breaks).map_or(rest.len(), |at| at + 1);
            let (word, after) = rest.split_at(length);
            self.add(word);
            rest = after;
        }
    }

    fn add(&mut self, text: &[u8]) {
        self.begin_text();
        self.text.extend_from_slice(text);
        self.enough.set(self.text.len() > self.limit);
    }

    fn begin_text(&mut self) {
        if self.bars > 0 && self.text.len() > self.row {
            self.gap = Gap::None;
        }
        if self.gap > Gap::Space {
            let kept = self.text.trim_ascii_end().len();
            self.text.truncate(kept);
        }
        if !self.text.is_empty() {
            let gap: &[u8] = match self.gap {
                Gap::None => b"",
                Gap::Space => b" ",
                Gap::Line => b"\n",
                Gap::Paragraph => b"\n\n",
            };
            self.text.extend_from_slice(gap);
        }
        self.gap = Gap::None;
        for _cell in 0..self.bars {
            let bar: &[u8] = if self.text.last().is_none_or(u8::is_ascii_whitespace) { b"| " } else { b" | " };
            self.text.extend_from_slice(bar);
        }
        self.bars = 0;
        self.text.extend_from_slice(self.mark.as_bytes());
        self.mark = "";
        if let Some(link) = self.link.as_mut().filter(|link| !link.begun) {
            link.begun = true;
            self.text.push(b'[');
        }
    }

    fn end_link(&mut self) {
        let Some(link) = self.link.take().filter(|link| link.begun) else { return };
        self.text.extend_from_slice(b"](");
        self.text.extend_from_slice(link.address.as_bytes());
        self.text.push(b')');
    }

    /// The address for the model; `None` if it cannot be fetched, called or mailed.
    fn address(&self, href: &[u8]) -> Option<String> {
        let href = str::from_utf8(href).ok()?.trim();
        if href.is_empty() || href.starts_with('#') || href.len() > LONGEST_ADDRESS {
            return None;
        }
        let url = self.base.join(href).ok()?;
        let within = self.site.as_ref().is_some_and(|site| *site == url.origin());
        let address = match url.scheme() {
            "http" | "https" if within => &url[Position::BeforePath..],
            "http" | "https" | "mailto" | "tel" => url.as_str(),
            _ => return None,
        };
        (address.len() <= LONGEST_ADDRESS).then(|| address.to_owned())
    }

    fn start(&mut self, tag: Tag) {
        let name = tag.name.as_slice();
        if let Some((left_out, depth)) = &mut self.left_out {
            *depth += usize::from(left_out == name && !tag.self_closing);
            return;
        }
        match name {
            b"script" | b"style" | b"template" | b"iframe" | b"noembed" | b"noframes" => {
                self.left_out = Some((tag.name, 1));
            }
            b"svg" if !tag.self_closing => self.left_out = Some((tag.name, 1)),
            b"title" => self.title = Some(Vec::new()),
            b"base" if !self.has_base => {
                let base = tag.href.and_then(|href| self.base.join(str::from_utf8(&href).ok()?.trim()).ok());
                self.has_base = base.is_some();
                self.base = base.unwrap_or_else(|| self.base.clone());
            }
            b"a" => {
                self.end_link();
                let address = tag.href.and_then(|href| self.address(&href));
                self.link = address.map(|address| Link { address, begun: false });
            }
            b"img" => self.write(&tag.alt.unwrap_or_default()),
            b"br" => self.gap = if self.gap < Gap::Line { Gap::Line } else { Gap::Paragraph },
            b"h1" | b"h2" | b"h3" | b"h4" | b"h5" | b"h6" => {
                self.at_least(Gap::Paragraph);
                self.mark = match name {
                    b"h1" => "# ",
                    b"h2" => "## ",
                    b"h3" => "### ",
                    _ => "#### ",
                };
            }
            b"li" => {
                self.at_least(Gap::Line);
                self.mark = "- ";
            }
            b"tr" => {
                self.gap = Gap::Line;
                (self.bars, self.in_row, self.row) = (0, false, self.text.len());
            }
            b"td" | b"th" => {
                if self.in_row {
                    self.bars = MOST_BARS.min(self.bars + 1);
                }
                self.in_row = true;
            }
            b"pre" => {
                self.at_least(Gap::Paragraph);
                self.preformatted += 1;
                self.pre_begins = true;
            }
            _ => self.at_least(around(name)),
        }
    }

    fn end(&mut self, name: &[u8]) {
        if let Some((left_out, depth)) = &mut self.left_out {
            *depth -= usize::from(left_out == name);
            if *depth == 0 {
                self.left_out = None;
            }
            return;
        }
        match name {
            b"title" => {
                let title = self.title.take().unwrap_or_default();
                // Other titles belong to pictures.
                if self.text.is_empty() && !title.trim_ascii().is_empty() {
                    self.text.extend_from_slice(b"Title:");
                    self.gap = Gap::Space;
                    self.write(&title);
                    self.gap = Gap::Paragraph;
                }
            }
            b"a" => self.end_link(),
            b"h1" | b"h2" | b"h3" | b"h4" | b"h5" | b"h6" | b"li" => {
                self.mark = "";
                self.at_least(if name == b"li" { Gap::Line } else { Gap::Paragraph });
            }
            b"pre" => {
                self.preformatted = self.preformatted.saturating_sub(1);
                self.at_least(Gap::Paragraph);
            }
            b"tr" | b"table" => {
                (self.bars, self.in_row) = (0, false);
                self.at_least(if name == b"tr" { Gap::Line } else { Gap::Paragraph });
            }
            _ => self.at_least(around(name)),
        }
    }
}

fn around(name: &[u8]) -> Gap {
    match name {
        b"p" | b"ul" | b"ol" | b"dl" | b"table" | b"blockquote" | b"hr" | b"form" | b"section" | b"article" => {
            Gap::Paragraph
        }
        b"address" | b"aside" | b"body" | b"caption" | b"center" | b"dd" | b"details" | b"dialog" | b"div" | b"dt"
        | b"fieldset" | b"figcaption" | b"figure" | b"footer" | b"header" | b"legend" | b"main" | b"menu" | b"nav"
        | b"optgroup" | b"option" | b"summary" | b"thead" | b"tbody" | b"tfoot" => Gap::Line,
        _ => Gap::None,
    }
}

fn extend(name: &mut Vec<u8>, part: &[u8], most: usize) {
    name.extend(part.iter().take(most.saturating_sub(name.len())));
}

impl Emitter for &mut Writer<'_> {
    type Token = Infallible;

    fn pop_token(&mut self) -> Option<Infallible> {
        None
    }

    #[inline(never)]
    fn emit_string(&mut self, text: &[u8]) {
        self.write(text);
    }

    #[inline(never)]
    fn init_start_tag(&mut self) {
        self.tag = Tag::default();
    }

    #[inline(never)]
    fn init_end_tag(&mut self) {
        self.tag = Tag { ends: true, ..Tag::default() };
    }

    #[inline(never)]
    fn push_tag_name(&mut self, name: &[u8]) {
        extend(&mut self.tag.name, name, LONGEST_NAME);
    }

    #[inline(never)]
    fn init_attribute(&mut self) {
        self.tag.attribute.clear();
    }

    #[inline(never)]
    fn push_attribute_name(&mut self, name: &[u8]) {
        extend(&mut self.tag.attribute, name, LONGEST_NAME);
        let tag = &mut self.tag;
        tag.repeated = match tag.attribute.as_slice() {
            b"href" => tag.href.is_some(),
            b"alt" => tag.alt.is_some(),
            _ => false,
        };
    }

    #[inline(never)]
    fn push_attribute_value(&mut self, value: &[u8]) {
        let tag = &mut self.tag;
        let kept = match tag.attribute.as_slice() {
            _ if tag.repeated => return,
            b"href" => &mut tag.href,
            b"alt" => &mut tag.alt,
            _ => return,
        };
        // One byte more, to detect addresses that are too long.
        extend(kept.get_or_insert_default(), value, LONGEST_ADDRESS + 1);
    }

    #[inline(never)]
    fn set_self_closing(&mut self) {
        self.tag.self_closing = true;
    }

    #[inline(never)]
    fn emit_current_tag(&mut self) -> Option<State> {
        let tag = std::mem::take(&mut self.tag);
        if tag.ends {
            self.end(&tag.name);
            return None;
        }
        self.last_start.clone_from(&tag.name);
        let name = tag.name.clone();
        self.start(tag);
        // Without scripts, `noscript` is content.
        if name == b"noscript" { None } else { naive_next_state(&name) }
    }

    #[inline(never)]
    fn current_is_appropriate_end_tag_token(&mut self) -> bool {
        self.tag.ends && self.tag.name == self.last_start
    }

    fn should_emit_errors(&mut self) -> bool {
        false
    }

    fn set_last_start_tag(&mut self, _: Option<&[u8]>) {}
    fn emit_eof(&mut self) {}
    fn emit_error(&mut self, _: html5gum::Error) {}
    fn init_comment(&mut self) {}
    fn push_comment(&mut self, _: &[u8]) {}
    fn emit_current_comment(&mut self) {}
    fn init_doctype(&mut self) {}
    fn push_doctype_name(&mut self, _: &[u8]) {}
    fn set_doctype_public_identifier(&mut self, _: &[u8]) {}
    fn set_doctype_system_identifier(&mut self, _: &[u8]) {}
    fn push_doctype_public_identifier(&mut self, _: &[u8]) {}
    fn push_doctype_system_identifier(&mut self, _: &[u8]) {}
    fn set_force_quirks(&mut self) {}
    fn emit_current_doctype(&mut self) {}
}
