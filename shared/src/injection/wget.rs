//! `wget(uri, timeoutMs?, format?)`: the content at a public address.
//!
//! Only GET, through the guarded client; at most [`MOST_READ`] bytes are read and [`MOST_GIVEN`] returned. Errors are sentences
//! that begin with `Error:`.

pub(super) mod charset;
mod page;

use std::{sync::Arc, time::Duration};

use futures_util::future::OptionFuture;
use reqwest::{
    Response, StatusCode, Url,
    header::{ACCEPT, CONTENT_TYPE, HeaderName, HeaderValue, RETRY_AFTER},
};
use serde_json::{Map, Value, json};
use tokio::{sync::mpsc, task::spawn_blocking};

use self::charset::Decoder;
use crate::{
    Deadline, Result,
    clients::{
        Failure, Outbound,
        outbound::{Request, compressed},
    },
    cut::instead_of,
    models::{AllowedHosts, ToolEffect},
    tool::{CallContext, CallableTool, Parameters, ToolFuture, ToolOutcome, ToolSpec},
};

/// The text of a page that comes in these pieces, for `tests/fuzz`.
#[doc(hidden)]
pub fn text_of_page(mut pieces: impl Iterator<Item = String>, page: &Url, limit: usize) -> String {
    page::text(|| pieces.next(), page, true, limit).0
}

const ACCEPTED: &str = "text/html,application/json,text/*;q=0.9,*/*;q=0.5";
/// Bytes of an answer.
const MOST_READ: usize = 10 * 1024 * 1024;
/// Bytes for the model, including the note about omitted text.
const MOST_GIVEN: usize = 64 * 1024;
/// Bytes of an error answer.
const MOST_OF_A_FAILURE: usize = 2 * 1024;
/// Bytes read before the content is classified; enough for an encoding declaration.
const HEAD: usize = 1024;
/// Bytes decoded at a time.
const PIECE: usize = 16 * 1024;

const DEFAULT_TIMEOUT: u64 = 30_000;
const LONGEST_TIMEOUT: u64 = 60_000;
/// Time reserved for the steps after the call.
const RESERVE: Duration = Duration::from_secs(1);

#[derive(Clone)]
pub struct Wget {
    spec: ToolSpec,
    outbound: Outbound,
    /// Also applied to redirects; unrestricted if empty.
    allowed_hosts: AllowedHosts,
}

struct PageRequest {
    url: Url,
    timeout: Duration,
    format: Format,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Format {
    Raw,
    Text,
}

impl CallableTool for Wget {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn calls_out(&self) -> bool {
        true
    }

    fn call<'a>(&'a self, arguments: Map<String, Value>, context: &'a CallContext<'a>) -> ToolFuture<'a> {
        Box::pin(async move {
            let content = match self.asked(&arguments) {
                Ok(asked) => self.fetch(asked, context.deadline).await,
                Err(problem) => Err(problem),
            };
            Ok(ToolOutcome::of(content.map_err(|problem| format!("Error: {problem}"))))
        })
    }

    fn restricted_to_hosts(&self, hosts: &AllowedHosts) -> Option<Arc<dyn CallableTool>> {
        let mut held = Self { allowed_hosts: hosts.clone(), ..self.clone() };
        held.spec.description = format!("{} Only from {hosts}.", self.spec.description);
        Some(Arc::new(held))
    }
}

impl Wget {
    pub fn new(outbound: Outbound) -> Self {
        let uri = json!({"type": "string", "description": "whole address, https://…"});
        let timeout = json!({
            "type": "number", "minimum": 1, "maximum": LONGEST_TIMEOUT, "default": DEFAULT_TIMEOUT,
            "description": "1 to 60000, default 30000",
        });
        let format = json!({
            "type": "string", "enum": ["raw", "text"], "default": "raw",
            "description": "\"text\": only the text of an HTML page, with [links](address); default \"raw\"",
        });
        let spec = ToolSpec {
            name: "wget".to_owned(),
            description: "Downloads a public https address (GET) and gives its content, at most 64 KB.".to_owned(),
            parameters: Parameters::new([("uri", uri, true), ("timeoutMs", timeout, false), ("format", format, false)]),
            returns: json!({"type": "string"}),
            own_examples: vec![
                r#"wget("https://example.com/opening-hours", 30000, "text")"#.to_owned(),
                r#"wget("https://api.example.com/v1/prices?item=7")"#.to_owned(),
                r#"wget({uri: "https://example.com/news", format: "text"})"#.to_owned(),
            ],
            effect: ToolEffect::None,
            repeatable: true,
        };
        Self { spec, outbound, allowed_hosts: AllowedHosts::default() }
    }

    fn asked(&self, arguments: &Map<String, Value>) -> Result<PageRequest, String> {
        let argument = |name| arguments.get(name).filter(|value| !value.is_null());
        let uri = argument("uri").and_then(Value::as_str).ok_or("uri must be a text, the address to download.")?;
        // The guard's own message mentions headers, which this tool lacks.
        if Url::parse(uri.trim()).is_ok_and(|url| !url.username().is_empty() || url.password().is_some()) {
            return Err("uri: the address must not hold a user name or password.".to_owned());
        }
        let url = self.outbound.parse(uri).map_err(|why| format!("uri: {why}."))?;
        let timeout = match argument("timeoutMs") {
            None => DEFAULT_TIMEOUT,
            Some(given) => whole(given).filter(|ms| (1..=LONGEST_TIMEOUT).contains(ms)).ok_or_else(|| {
                format!("timeoutMs must be a whole number of milliseconds from 1 to {LONGEST_TIMEOUT}.")
            })?,
        };
        let format = match argument("format").map(Value::as_str) {
            None | Some(Some("raw")) => Format::Raw,
            Some(Some("text")) => Format::Text,
            Some(_) => return Err("format must be \"raw\" or \"text\".".to_owned()),
        };
        Ok(PageRequest { url, timeout: Duration::from_millis(timeout), format })
    }

    async fn fetch(&self, asked: PageRequest, deadline: Deadline) -> Result<String, String> {
        let PageRequest { url, timeout, format } = asked;
        let deadline = deadline.reserving(RESERVE);
        let patience = deadline.remaining().min(timeout);
        let deadline = deadline.at_most(patience);
        let host = url.host_str().unwrap_or_default().to_owned();
        let late =
            || format!("{host} had not answered in full after {} ms; try a longer timeoutMs.", patience.as_millis());
        let origin = url.origin();
        let allowed_hosts = self.allowed_hosts.clone();
        let mut request = Request { allowed_hosts, ..Request::get(url, MOST_READ) };
        request.headers.insert(ACCEPT, HeaderValue::from_static(ACCEPTED));
        let response = self.outbound.open(request, deadline).await.map_err(|error| match error.failure {
            Failure::Refused(why) => format!("{host} was not downloaded: {why}."),
            Failure::Unreachable => format!("{host} cannot be reached: nothing answers at that address."),
            _ if deadline.remaining().is_zero() => late(),
            _ => format!("{host} broke the connection off before it answered."),
        })?;

        let status = response.status();
        let known = response.url().origin() == origin;
        if !status.is_success() {
            return Err(failure(&host, response, known).await);
        }
        let answer = Answer::begin(response).await.map_err(|error| broken(&error, &host, &late))?;
        if let Some(why) = answer.unreadable() {
            return Err(format!("{host} answered with {why}."));
        }
        let of_html = format == Format::Text && answer.is_html();
        let size = answer.size;
        let text = answer.read(of_html.then_some(known), MOST_GIVEN).await;
        let text = text.map_err(|error| broken(&error, &host, &late))?;
        Ok(text.told(of_html, size))
    }
}

/// A whole number, also if written with a zero fraction.
fn whole(number: &Value) -> Option<u64> {
    number.as_u64().or_else(|| number.to_string().strip_suffix(".0")?.parse().ok())
}

fn broken(error: &reqwest::Error, host: &str, late: &impl Fn() -> String) -> String {
    if error.is_timeout() { late() } else { format!("{host} broke the connection off in the middle of its answer.") }
}

/// An error answer: its status, and the page's explanation.
async fn failure(host: &str, response: Response, known: bool) -> String {
    let status = response.status();
    let phrase = status.canonical_reason().map(|reason| format!(" ({reason})")).unwrap_or_default();
    let wait = header(&response, RETRY_AFTER).parse::<u64>().ok();
    let wait = wait.filter(|_| matches!(status, StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE));
    let wait = wait.map(|seconds| format!("; it asks to wait {seconds} s")).unwrap_or_default();
    let mut told = format!("{host} answered with status {}{phrase}{wait}", status.as_u16());
    // The status is the main information; an unreadable body is left out.
    if let Ok(answer) = Answer::begin(response).await
        && answer.unreadable().is_none()
    {
        let of_html = answer.is_html().then_some(known);
        if let Ok(read) = answer.read(of_html, MOST_OF_A_FAILURE).await
            && !read.text.trim().is_empty()
        {
            let cut = if read.cut { instead_of("the rest was not read") } else { String::new() };
            told = format!("{told}:\n{}{cut}", read.text.trim());
            return told;
        }
    }
    told + "."
}

fn header(response: &Response, name: HeaderName) -> &str {
    response.headers().get(name).and_then(|value| value.to_str().ok()).unwrap_or_default().trim()
}

struct Answer {
    response: Response,
    content_type: String,
    /// From the server; bytes.
    size: Option<u64>,
    head: Vec<u8>,
    decoder: Decoder,
}

struct Read {
    /// At most as long as requested.
    text: String,
    cut: bool,
    /// Text was left out because the limit of bytes was reached.
    read_to_the_limit: bool,
    /// Encoding in which some bytes were invalid.
    replaced: Option<&'static str>,
}

impl Answer {
    async fn begin(mut response: Response) -> reqwest::Result<Self> {
        // Reading chunks reduces the reported length.
        let size = response.content_length();
        let mut head = Vec::new();
        while head.len() < HEAD
            && let Some(chunk) = response.chunk().await?
        {
            head.extend_from_slice(&chunk);
        }
        let content_type = header(&response, CONTENT_TYPE).to_ascii_lowercase();
        let decoder = Decoder::of(&content_type, &head);
        Ok(Self { response, content_type, size, head, decoder })
    }

    fn beginning(&self) -> &[u8] {
        self.head.get(..HEAD).unwrap_or(&self.head)
    }

    /// `text/html` of `text/html; charset=utf-8`; `None` if the server sent no specific type.
    fn media_type(&self) -> Option<&str> {
        let media_type = self.content_type.split(';').next().unwrap_or_default().trim();
        Some(media_type).filter(|known| !["", "application/octet-stream"].contains(known))
    }

    /// The reason why the content is unreadable, if it is.
    fn unreadable(&self) -> Option<String> {
        if let Some(compressed) = compressed(self.response.headers()) {
            return Some(compressed);
        }
        let media_type = self.media_type();
        let is_text = media_type.is_none_or(|known| {
            let (kind, subtype) = known.split_once('/').unwrap_or_default();
            let known =
                ["json", "xml", "javascript", "ecmascript", "x-javascript", "yaml", "x-yaml", "toml", "sql", "x-sh"];
            let lines = ["x-ndjson", "ndjson", "jsonl", "x-www-form-urlencoded", "graphql", "rtf"];
            kind == "text"
                || kind == "application" && (known.contains(&subtype) || lines.contains(&subtype))
                || ["+json", "+xml", "+yaml"].iter().any(|suffix| subtype.ends_with(suffix))
        });
        // In declared text only a 0 byte means binary; without a type, any control character does.
        let binary =
            |byte: &u8| *byte == 0 || media_type.is_none() && matches!(byte, 1..=8 | 0x0b | 0x0e..=0x1a | 0x1c..=0x1f);
        if is_text && (self.decoder.is_utf_16() || !self.beginning().iter().any(binary)) {
            return None;
        }
        let size = self.size.map(|bytes| format!(", {bytes} bytes")).unwrap_or_default();
        Some(format!("{}{size}, which is not text", media_type.unwrap_or("binary content")))
    }

    fn is_html(&self) -> bool {
        let begins = |with: &[u8]| {
            let head = self.beginning().trim_ascii_start();
            head.get(..with.len()).is_some_and(|head| head.eq_ignore_ascii_case(with))
        };
        match self.media_type() {
            Some(known) => ["text/html", "application/xhtml+xml"].contains(&known),
            None => begins(b"<!doctype html") || begins(b"<html"),
        }
    }

    /// Reads up to `limit` bytes of text. `of_html`: extract the text of a page, with a flag that links may omit the page's site.
    /// Memory is bounded by the returned text.
    async fn read(self, of_html: Option<bool>, limit: usize) -> reqwest::Result<Read> {
        let Self { mut response, head, decoder, .. } = self;
        let mut reading = Reading { decoder, read: 0, limit, to: To::Text(String::new()) };
        let mut page = None;
        if let Some(known) = of_html {
            let (to, mut pieces) = mpsc::channel(1);
            reading.to = To::Page(to);
            let url = response.url().clone();
            // The tokenizer pulls its input, so it blocks a thread of its own.
            page = Some(spawn_blocking(move || page::text(|| pieces.blocking_recv(), &url, known, limit)));
        }
        let mut more = reading.take(&head).await;
        drop(head);
        while more && let Some(chunk) = response.chunk().await? {
            more = reading.take(&chunk).await;
        }
        let read_to_the_limit = reading.read >= MOST_READ;
        if more {
            reading.put(&[], true).await;
        }
        let replaced = reading.decoder.replaced.then(|| reading.decoder.encoding().name());
        let (mut text, enough) = match (reading.to, page) {
            (To::Text(text), _) => (text, false),
            (To::Page(to), page) => {
                drop(to);
                // If the tokenizer panics, the text is empty.
                OptionFuture::from(page).await.and_then(Result::ok).unwrap_or_default()
            }
        };
        let cut = enough || text.len() > limit;
        text.truncate(text.floor_char_boundary(limit));
        Ok(Read { text, cut: cut || read_to_the_limit, read_to_the_limit: read_to_the_limit && !cut, replaced })
    }
}

struct Reading {
    decoder: Decoder,
    /// Bytes.
    read: usize,
    limit: usize,
    to: To,
}

enum To {
    Text(String),
    Page(mpsc::Sender<String>),
}

impl Reading {
    /// Returns false when no more input is needed.
    async fn take(&mut self, bytes: &[u8]) -> bool {
        for piece in bytes.chunks(PIECE) {
            let piece = piece.get(..MOST_READ - self.read).unwrap_or(piece);
            self.read += piece.len();
            if !self.put(piece, false).await || self.read >= MOST_READ {
                return false;
            }
        }
        true
    }

    async fn put(&mut self, bytes: &[u8], last: bool) -> bool {
        let piece = self.decoder.decode(bytes, last);
        match &mut self.to {
            To::Text(text) => {
                text.push_str(&piece);
                text.len() <= self.limit
            }
            To::Page(page) => page.send(piece).await.is_ok(),
        }
    }
}

impl Read {
    /// The text with a note, together within the limit; `size`: bytes of the whole answer.
    fn told(self, of_html: bool, size: Option<u64>) -> String {
        let Self { mut text, cut, read_to_the_limit, replaced } = self;
        let whole = match size {
            Some(bytes) if of_html => format!("the whole page has {bytes} bytes of HTML"),
            Some(bytes) => format!("the whole has {bytes} bytes"),
            None => "how much there is is not known".to_owned(),
        };
        let about_length = if read_to_the_limit {
            Some("[Cut: only the first 10 MB were read.]".to_owned())
        } else {
            cut.then(|| format!("[Cut: this is only the beginning, 64 KB at most; {whole}.]"))
        };
        let about_bytes = replaced.map(|name| format!("[Bytes that are not {name} were replaced by \u{fffd}.]"));
        let empty = if of_html {
            "[The page has no text of its own: scripts may make it. The format \"raw\" gives its HTML.]"
        } else {
            "[The answer is empty.]"
        };
        let about_nothing = text.trim().is_empty().then(|| empty.to_owned());
        let is_empty = about_nothing.is_some();
        let notes: Vec<String> = [about_nothing, about_length, about_bytes].into_iter().flatten().collect();
        let notes = notes.join("\n");
        if is_empty || notes.is_empty() {
            return if is_empty { notes } else { text };
        }
        text.truncate(text.floor_char_boundary(MOST_GIVEN.saturating_sub(notes.len() + 1)));
        format!("{text}\n{notes}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wget() -> Wget {
        Wget::new(Outbound::new(Vec::new()).unwrap())
    }

    fn asked(arguments: &Value) -> Result<PageRequest, String> {
        wget().asked(arguments.as_object().unwrap())
    }

    #[test]
    fn optional_arguments_have_defaults() {
        let read = asked(&json!({"uri": " https://shop.example/a?b "})).unwrap();
        assert_eq!(read.url.as_str(), "https://shop.example/a?b");
        assert_eq!((read.timeout, read.format), (Duration::from_secs(30), Format::Raw));
        let nothing = json!({"uri": "https://shop.example", "timeoutMs": null, "format": null});
        assert_eq!(asked(&nothing).unwrap().timeout, Duration::from_secs(30));
        for (timeout, format, expected) in [
            (json!(1), "raw", (Duration::from_millis(1), Format::Raw)),
            (json!(60_000), "text", (Duration::from_secs(60), Format::Text)),
            (json!(5e3), "text", (Duration::from_secs(5), Format::Text)),
        ] {
            let read = asked(&json!({"uri": "https://shop.example", "timeoutMs": timeout, "format": format})).unwrap();
            assert_eq!((read.timeout, read.format), expected);
        }
    }

    #[test]
    fn a_wrong_argument_is_named() {
        let with = |name: &str, value: Value| {
            let mut arguments = json!({"uri": "https://shop.example"});
            arguments[name] = value;
            asked(&arguments).map(|_asked| ()).unwrap_err()
        };
        for timeout in [json!(0), json!(-1), json!(60_001), json!(1.5), json!(1e300), json!("5000"), json!([1])] {
            let why = with("timeoutMs", timeout.clone());
            assert_eq!(why, "timeoutMs must be a whole number of milliseconds from 1 to 60000.", "{timeout}");
        }
        for format in [json!("TEXT"), json!(""), json!(1), json!({})] {
            assert_eq!(with("format", format), "format must be \"raw\" or \"text\".");
        }
        for (uri, why) in [
            (json!(null), "uri must be a text"),
            (json!(7), "uri must be a text"),
            (json!("shop.example/x"), "uri: the address is not a URL"),
            (json!(""), "uri: the address is not a URL"),
            (json!("http://shop.example/"), "uri: only https addresses may be called, not http."),
            (json!("ftp://shop.example/"), "uri: only https addresses may be called, not ftp."),
            (json!("file:///etc/passwd"), "uri: "),
            (json!("data:text/plain,x"), "uri: the address names no host"),
            (json!("https://user:pass@shop.example/"), "uri: the address must not hold a user name or password."),
            (
                json!("https://127.0.0.1/"),
                "uri: 127.0.0.1 is not on the public internet; give a public address of the service.",
            ),
        ] {
            let told = with("uri", uri.clone());
            assert!(told.starts_with(why) && !told.contains("pass@"), "{uri}: {told}");
        }
    }

    #[test]
    fn the_text_and_its_note_keep_within_the_budget() {
        let read = |text: &str, cut| Read { text: text.to_owned(), cut, read_to_the_limit: false, replaced: None };
        assert_eq!(read("\n x \n", false).told(false, None), "\n x \n");
        assert_eq!(read("x", true).told(false, Some(70_000)).lines().last().unwrap(), {
            "[Cut: this is only the beginning, 64 KB at most; the whole has 70000 bytes.]"
        });
        assert_eq!(read(" \n", false).told(false, Some(2)), "[The answer is empty.]");
        let longest = Read { replaced: Some("windows-1252"), ..read(&"é".repeat(MOST_GIVEN / 2), true) };
        let told = longest.told(true, Some(u64::MAX));
        assert!((MOST_GIVEN - 1..=MOST_GIVEN).contains(&told.len()), "{}", told.len());
        assert!(told.ends_with("é\n[Cut: this is only the beginning, 64 KB at most; the whole page has 18446744073709551615 bytes of HTML.]\n[Bytes that are not windows-1252 were replaced by \u{fffd}.]"));
    }

    /// It is part of every prompt with the tool.
    #[test]
    fn the_definition_is_short_and_has_its_examples() {
        let wget = Wget::new(Outbound::new(Vec::new()).unwrap());
        let spec = wget.spec();
        let described: Vec<&str> =
            spec.parameters.iter().map(|one| one.schema["description"].as_str().unwrap()).collect();
        assert!(spec.description.len() + described.concat().len() < 260);
        assert!(spec.own_examples.len() >= 3 && spec.is_repeatable());
        let names: Vec<(&str, bool)> = spec.parameters.iter().map(|one| (one.name, one.required)).collect();
        assert_eq!(names, [("uri", true), ("timeoutMs", false), ("format", false)]);
    }
}
