//! RSS (0.9x, 1.0, 2.0) and Atom, read as a stream: memory is bounded by what is kept.
//!
//! Entities that a document defines are never expanded: a reference to one stays as it is written.

use quick_xml::{
    Reader, XmlVersion,
    events::{BytesRef, BytesStart, Event},
};
use reqwest::Url;

use super::entry::{Entry, Feed, MOST_CATEGORIES, MOST_READ, absolute};

/// Bytes kept of one field.
const LONGEST_FIELD: usize = 16 * 1024;
const DEEPEST: usize = 100;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Field {
    Id,
    Title,
    Link,
    Published,
    Updated,
    Author,
    /// The name within an author.
    AuthorName,
    Summary,
    Content,
    Category,
}

#[derive(Default)]
struct FeedReader {
    feed: Feed,
    depth: usize,
    /// The depth of `feed` or `channel`, whose fields are the feed's.
    head: Option<usize>,
    /// The open entry, with its depth.
    entry: Option<(Entry, usize)>,
    /// The field whose text is being read, with its depth.
    field: Option<(Field, usize)>,
    text: String,
}

/// # Errors
/// Why it is no feed, or not whole.
pub(super) fn parse(text: &str, at: &Url) -> Result<Feed, String> {
    let mut reader = Reader::from_str(text);
    let mut state = FeedReader::default();
    let mut rooted = false;
    loop {
        let event = reader.read_event().map_err(|error| format!("its XML is broken ({error})"))?;
        match event {
            Event::Start(element) => {
                if !rooted && !is_root(&element) {
                    break;
                }
                rooted = true;
                state.open(&element, at)?;
            }
            Event::Empty(element) => {
                if !rooted && !is_root(&element) {
                    break;
                }
                rooted = true;
                state.open(&element, at)?;
                state.close(at);
            }
            Event::End(_) => state.close(at),
            Event::Text(text) => state.add(&text.xml10_content()),
            Event::CData(text) => state.add(&text.xml10_content()),
            Event::GeneralRef(reference) => state.add_reference(&reference),
            Event::Eof => break,
            Event::Decl(_) | Event::PI(_) | Event::DocType(_) | Event::Comment(_) => {}
        }
    }
    if !rooted {
        return Err("its XML is neither RSS nor Atom".to_owned());
    }
    if state.depth > 0 {
        return Err("its XML ends in the middle".to_owned());
    }
    Ok(state.feed)
}

fn is_root(element: &BytesStart<'_>) -> bool {
    matches!(element.local_name().into_inner(), "rss" | "RDF" | "feed")
}

impl FeedReader {
    fn open(&mut self, element: &BytesStart<'_>, at: &Url) -> Result<(), String> {
        self.depth += 1;
        if self.depth > DEEPEST {
            return Err("its elements are nested too deep".to_owned());
        }
        let name = element.name().into_inner();
        let (prefix, local) = name.split_once(':').unwrap_or(("", name));
        if self.entry.is_none() && matches!(local, "item" | "entry") {
            if self.feed.entries.len() >= MOST_READ {
                return Err(format!("it has more than {MOST_READ} entries"));
            }
            self.entry = Some((Entry::default(), self.depth));
            self.field = None;
            return Ok(());
        }
        if self.entry.is_none() && self.head.is_none() && matches!(local, "channel" | "feed") {
            self.head = Some(self.depth);
            return Ok(());
        }
        match self.field {
            Some((Field::Author, within)) if local == "name" && self.depth == within + 1 => {
                self.field = Some((Field::AuthorName, self.depth));
                self.text.clear();
            }
            // Markup within a field: its text counts.
            Some(_) => self.add(" "),
            None => self.begin_field(element, prefix, local, at),
        }
        Ok(())
    }

    fn begin_field(&mut self, element: &BytesStart<'_>, prefix: &str, local: &str, at: &Url) {
        let of_entry = self.entry.as_ref().is_some_and(|(_, entry)| self.depth == entry + 1);
        let of_head = self.entry.is_none() && self.head.is_some_and(|head| self.depth == head + 1);
        let Some(field) =
            field(prefix, local).filter(|field| of_entry || of_head && matches!(field, Field::Title | Field::Link))
        else {
            return;
        };
        let of = |name: &str| attribute(element, name);
        match (field, &mut self.entry) {
            // Atom's links and categories are attributes.
            (Field::Link, entry) => {
                let shown = of("rel").is_none_or(|rel| rel == "alternate");
                let link = of("href").filter(|_| shown).map(|href| absolute(&href, at)).unwrap_or_default();
                let place = entry.as_mut().map_or(&mut self.feed.link, |(entry, _)| &mut entry.link);
                if place.is_empty() {
                    *place = link;
                }
            }
            (Field::Category, Some((entry, _))) => {
                let term = of("label").or_else(|| of("term")).filter(|term| !term.is_empty());
                entry.categories.extend(term.filter(|_| entry.categories.len() < MOST_CATEGORIES));
            }
            _ => {}
        }
        self.field = Some((field, self.depth));
        self.text.clear();
    }

    fn close(&mut self, at: &Url) {
        match self.field {
            Some((field, depth)) if depth == self.depth => {
                self.field = None;
                let text = std::mem::take(&mut self.text);
                self.keep(field, text.trim(), at);
            }
            Some(_) => self.add(" "),
            None => {}
        }
        if let Some((entry, _)) = self.entry.take_if(|(_, depth)| *depth == self.depth) {
            self.feed.entries.push(entry);
        }
        self.depth = self.depth.saturating_sub(1);
    }

    fn keep(&mut self, field: Field, trimmed: &str, at: &Url) {
        let Some((entry, _)) = &mut self.entry else {
            match field {
                Field::Title if self.feed.title.is_empty() => trimmed.clone_into(&mut self.feed.title),
                Field::Link if self.feed.link.is_empty() => self.feed.link = absolute(trimmed, at),
                _ => {}
            }
            return;
        };
        let place = match field {
            Field::Id => &mut entry.id,
            Field::Title => &mut entry.title,
            Field::Link => {
                if entry.link.is_empty() {
                    entry.link = absolute(trimmed, at);
                }
                return;
            }
            Field::Category => {
                if !trimmed.is_empty() && entry.categories.len() < MOST_CATEGORIES {
                    entry.categories.push(trimmed.to_owned());
                }
                return;
            }
            Field::Published => &mut entry.published,
            Field::Updated => &mut entry.updated,
            Field::Author | Field::AuthorName => &mut entry.author,
            Field::Summary => &mut entry.summary,
            Field::Content => &mut entry.content,
        };
        if place.is_empty() {
            trimmed.clone_into(place);
        }
    }

    fn add(&mut self, text: &str) {
        if self.field.is_some() {
            let room = LONGEST_FIELD.saturating_sub(self.text.len());
            self.text.push_str(text.get(..text.floor_char_boundary(room)).unwrap_or_default());
        }
    }

    /// `&amp;`, `&#65;`, and HTML's `&nbsp;` as it is written, for the reading of the markup.
    fn add_reference(&mut self, reference: &BytesRef<'_>) {
        if let Ok(Some(letter)) = reference.resolve_char_ref() {
            let mut buffer = [0; 4];
            return self.add(letter.encode_utf8(&mut buffer));
        }
        let name = reference.xml10_content();
        match name.as_ref() {
            "amp" => self.add("&"),
            "lt" => self.add("<"),
            "gt" => self.add(">"),
            "quot" => self.add("\""),
            "apos" => self.add("'"),
            other => {
                for part in ["&", other, ";"] {
                    self.add(part);
                }
            }
        }
    }
}

/// Elements of extensions have names that say something else, such as `media:title`.
fn field(prefix: &str, local: &str) -> Option<Field> {
    const CORE: [&str; 3] = ["", "atom", "rss"];
    let name = if CORE.contains(&prefix) { local } else { "" };
    Some(match (prefix, local, name) {
        (.., "id" | "guid") => Field::Id,
        (.., "title") => Field::Title,
        (.., "link") => Field::Link,
        ("dc", "date", _) | (.., "pubDate" | "published" | "issued") => Field::Published,
        (.., "updated" | "modified") => Field::Updated,
        ("dc", "creator", _) | (.., "author") => Field::Author,
        (.., "description" | "summary") => Field::Summary,
        ("content", "encoded", _) | (.., "content") => Field::Content,
        (.., "category") => Field::Category,
        _ => return None,
    })
}

fn attribute(element: &BytesStart<'_>, name: &str) -> Option<String> {
    let mut all = element.attributes();
    all.with_checks(false);
    let found = all.flatten().find(|attribute| attribute.key.into_inner() == name)?;
    Some(found.normalized_value(XmlVersion::Implicit1_0).ok()?.into_owned())
}
