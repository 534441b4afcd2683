//! Reads entries from JSON or CSV, each row typed by the base's fields.
//!
//! A wrong row is refused with all its problems; the others are loaded. Rows are counted as a person sees them: in JSON from 1,
//! in CSV with the header as row 1; blank lines do not count.

use std::collections::{BTreeMap, HashMap};

use serde::Serialize;
use serde_json::{Map, Number, Value};
use shared::{
    Error, Result,
    cut::cut,
    described::Described,
    error::Problems,
    fields::{Fields, kind},
    models::{EntryId, Field, FieldType, FieldValue, KnowledgeBase, KnowledgeEntry, Timestamp},
};

/// Rows of one request, so that they can be written within a function's time.
pub(crate) const MOST_ROWS: usize = 5_000;
/// Lambda takes requests of 6 MB, the event around the body and the escapes of its quotes included.
pub(crate) const LARGEST_BODY: usize = 4 * 1024 * 1024;
/// DynamoDB's numbers have 38 digits; a model's are floating-point numbers of 15.
const LARGEST_NUMBER: f64 = 1e15;
const SMALLEST_NUMBER: f64 = 1e-9;
/// Bytes of a wrong value that a problem repeats.
const LONGEST_REPEATED: usize = 100;

/// The rows of a request.
pub(crate) struct Rows {
    /// Valid rows, with their numbers.
    pub(crate) entries: Vec<(usize, KnowledgeEntry)>,
    pub(crate) refused: Vec<Refused>,
}

/// A problem of a row that was not loaded. A row may have several.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Described)]
pub(crate) struct Refused {
    /// Counted from 1; in a table the header is row 1, and blank lines do not count.
    #[schema(minimum = 1)]
    pub(crate) row: usize,
    /// The field that is wrong, or `entry` for the row as a whole.
    pub(crate) field: String,
    pub(crate) problem: String,
}

/// The field of a problem with the row as a whole.
const WHOLE: &str = "entry";

/// Reads a body of the given content type.
///
/// # Errors
/// If the request as a whole is unusable: no JSON, no table, an unknown column, too large.
pub(crate) fn read(base: &KnowledgeBase, content_type: &str, body: &[u8]) -> Result<Rows> {
    if body.len() > LARGEST_BODY {
        let problem = format!("has more than {} MB; send the rows in several requests", LARGEST_BODY / (1024 * 1024));
        return Err(Error::invalid("body", problem));
    }
    let kind = content_type.split(';').next().unwrap_or_default().trim();
    let rows = if kind.eq_ignore_ascii_case("text/csv") { csv(base, body)? } else { json(base, body)? };
    Ok(without_twins(rows))
}

fn json(base: &KnowledgeBase, body: &[u8]) -> Result<Rows> {
    let body: Value = serde_json::from_slice(body)
        .map_err(|error| Error::Malformed(format!("the body is not valid JSON (for CSV send text/csv): {error}")))?;
    let mut problems = Problems::default();
    if let Some(mut fields) = Fields::of(&body, "", &mut problems) {
        if fields.required("entries").is_some() {
            fields.list("entries", "rows");
        }
        fields.finish();
    }
    let entries = problems.into_result(body.get("entries").and_then(Value::as_array))?;
    at_most(entries.len())?;
    let mut rows = Rows { entries: Vec::new(), refused: Vec::new() };
    for (index, entry) in entries.iter().enumerate() {
        let mut row = Row::new(base, index + 1);
        match entry {
            Value::Object(members) => row.object(members),
            other => row.refuse(WHOLE, format!("must be an object, not {}", kind(other))),
        }
        row.finish(&mut rows);
    }
    Ok(rows)
}

fn csv(base: &KnowledgeBase, body: &[u8]) -> Result<Rows> {
    let text = std::str::from_utf8(body)
        .map_err(|_not_utf8| Error::Malformed("the table is not UTF-8 text; save it as \"CSV UTF-8\"".into()))?;
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut reader = csv::ReaderBuilder::new()
        .delimiter(delimiter(text))
        .flexible(true)
        .trim(csv::Trim::All)
        .from_reader(text.as_bytes());
    let unreadable = |error: csv::Error| Error::Malformed(format!("the table cannot be read: {error}"));
    let columns = columns(base, reader.headers().map_err(unreadable)?)?;
    let mut rows = Rows { entries: Vec::new(), refused: Vec::new() };
    for (index, record) in reader.records().enumerate() {
        at_most(index + 1)?;
        let record = record.map_err(unreadable)?;
        let mut row = Row::new(base, index + 2);
        if record.len() == columns.len() {
            columns.iter().zip(&record).for_each(|(column, cell)| row.cell(column, cell));
        } else {
            row.refuse(WHOLE, format!("has {} columns, and the header has {}", record.len(), columns.len()));
        }
        row.finish(&mut rows);
    }
    Ok(rows)
}

fn at_most(rows: usize) -> Result<()> {
    if rows <= MOST_ROWS {
        return Ok(());
    }
    Err(Error::invalid("entries", format!("has more than {MOST_ROWS} rows; send the rest in another request")))
}

/// Comma, semicolon (as spreadsheets write it where the comma is the decimal point) or tab: the most frequent in the header.
fn delimiter(text: &str) -> u8 {
    let (mut quoted, mut counts) = (false, [(b',', 0), (b';', 0), (b'\t', 0)]);
    for byte in text.bytes() {
        match byte {
            b'"' => quoted = !quoted,
            b'\n' | b'\r' if !quoted => break,
            _ if quoted => {}
            _ => counts.iter_mut().filter(|(delimiter, _)| *delimiter == byte).for_each(|(_, count)| *count += 1),
        }
    }
    // The first of equals: without any of them there is one column.
    counts.into_iter().rev().max_by_key(|(_, count)| *count).map_or(b',', |(delimiter, _)| delimiter)
}

/// The content of a column.
enum Column<'a> {
    Id,
    Text,
    Field(&'a Field),
}

/// The columns by their heads: a field's name or label, `id` or `text`, in upper or lower case.
fn columns<'a>(base: &'a KnowledgeBase, heads: &csv::StringRecord) -> Result<Vec<Column<'a>>> {
    if heads.iter().all(str::is_empty) {
        return Err(Error::Malformed("the table is empty; its first row must name the columns".into()));
    }
    let mut problems = Problems::default();
    let mut columns = Vec::with_capacity(heads.len());
    let mut seen: Vec<String> = Vec::new();
    for (index, head) in heads.iter().enumerate() {
        let same = |name: &str| name.to_lowercase() == head.to_lowercase();
        let field = || {
            let named = base.fields.iter().find(|field| same(field.name.as_str()));
            named.or_else(|| base.fields.iter().find(|field| field.label.as_deref().is_some_and(same)))
        };
        let column = if same("id") {
            Some((Column::Id, "id"))
        } else if same("text") {
            Some((Column::Text, "text"))
        } else {
            field().map(|field| (Column::Field(field), field.name.as_str()))
        };
        let path = if head.is_empty() { format!("columns[{index}]") } else { format!("columns.{}", repeated(head)) };
        match column {
            None => problems.add(path, format!("is not a field of the knowledge base; known are {}", known(base))),
            Some((_, name)) if seen.iter().any(|seen| seen == name) => {
                problems.add(path, format!("appears twice: {name} has a column already"));
            }
            Some((column, name)) => {
                seen.push(name.to_owned());
                columns.push(column);
            }
        }
    }
    problems.into_result(Some(columns))
}

fn known(base: &KnowledgeBase) -> String {
    let fields = base.fields.iter().map(|field| field.name.as_str());
    ["id", "text"].into_iter().chain(fields).collect::<Vec<_>>().join(", ")
}

struct Row<'a> {
    base: &'a KnowledgeBase,
    number: usize,
    id: Option<EntryId>,
    text: Option<String>,
    values: BTreeMap<String, FieldValue>,
    refused: Vec<Refused>,
}

impl<'a> Row<'a> {
    fn new(base: &'a KnowledgeBase, number: usize) -> Self {
        Self { base, number, id: None, text: None, values: BTreeMap::new(), refused: Vec::new() }
    }

    fn refuse(&mut self, field: &str, problem: impl Into<String>) {
        self.refused.push(Refused { row: self.number, field: field.to_owned(), problem: problem.into() });
    }

    fn object(&mut self, members: &Map<String, Value>) {
        for (name, value) in members {
            match (name.as_str(), value) {
                (_, Value::Null) => {}
                ("id", Value::String(text)) => self.id(text),
                ("text", Value::String(text)) => self.text(text),
                ("id" | "text", other) => self.refuse(name, format!("must be text, not {}", kind(other))),
                _ => match self.base.field(name) {
                    None => {
                        let known = known(self.base);
                        let problem = format!("is not a field of the knowledge base; known are {known}");
                        self.refuse(&repeated(name), problem);
                    }
                    Some(field) => self.value(field, value),
                },
            }
        }
    }

    fn value(&mut self, field: &Field, value: &Value) {
        let value = match (field.kind, value) {
            (FieldType::Text, Value::String(text)) => {
                let text = text.trim();
                if text.is_empty() {
                    return;
                }
                Ok(FieldValue::Text(text.to_owned()))
            }
            (FieldType::Text, other) => Err(format!("must be text, not {}", kind(other))),
            (FieldType::Number, Value::Number(number)) => number.as_f64().map_or_else(|| Err(range()), checked),
            (FieldType::Number, other) => Err(format!("must be a number, not {}", kind(other))),
            (FieldType::Boolean, Value::Bool(value)) => Ok(FieldValue::Boolean(*value)),
            (FieldType::Boolean, other) => Err(format!("must be true or false, not {}", kind(other))),
        };
        self.set(field, value);
    }

    fn cell(&mut self, column: &Column<'_>, cell: &str) {
        if cell.is_empty() {
            return;
        }
        match column {
            Column::Id => self.id(cell),
            Column::Text => self.text(cell),
            Column::Field(field) => {
                let value = match field.kind {
                    FieldType::Text => Ok(FieldValue::Text(cell.to_owned())),
                    FieldType::Number => number(cell),
                    FieldType::Boolean => boolean(cell),
                };
                self.set(field, value);
            }
        }
    }

    fn set(&mut self, field: &Field, value: Result<FieldValue, String>) {
        match value {
            Ok(value) => drop(self.values.insert(field.name.to_string(), value)),
            Err(problem) => self.refuse(field.name.as_str(), problem),
        }
    }

    fn id(&mut self, text: &str) {
        match text.trim().parse() {
            Ok(id) => self.id = Some(id),
            Err(error) => self.refuse("id", format!("{error}, not \"{}\"", repeated(text))),
        }
    }

    fn text(&mut self, text: &str) {
        self.text = Some(text.trim().to_owned()).filter(|text| !text.is_empty());
    }

    fn finish(mut self, rows: &mut Rows) {
        if self.refused.is_empty() && self.values.is_empty() && self.text.is_none() {
            self.refuse(WHOLE, "is empty");
        }
        let content = serde_json::to_string(&(&self.values, &self.text)).unwrap_or_default();
        if content.len() > KnowledgeBase::LARGEST_ENTRY {
            let most = KnowledgeBase::LARGEST_ENTRY;
            self.refuse(WHOLE, format!("has {} bytes, and {most} is the most; make several of it", content.len()));
        }
        let id = self.id.or_else(|| id_of(&content));
        match id {
            Some(id) if self.refused.is_empty() => {
                let now = Timestamp::now();
                let entry = KnowledgeEntry {
                    knowledge_base_id: self.base.id,
                    id,
                    organization_id: self.base.organization_id,
                    values: self.values,
                    text: self.text,
                    created_at: now,
                    updated_at: now,
                };
                rows.entries.push((self.number, entry));
            }
            _ => rows.refused.append(&mut self.refused),
        }
    }
}

/// The id of an entry that came without one, made of its content: the same rows sent again add nothing.
fn id_of(content: &str) -> Option<EntryId> {
    let digest = ring::digest::digest(&ring::digest::SHA256, content.as_bytes());
    let (half, _) = digest.as_ref().split_first_chunk::<16>()?;
    format!("{:032x}", u128::from_be_bytes(*half)).parse().ok()
}

/// Loads the first of several rows with one id; the others are refused.
fn without_twins(rows: Rows) -> Rows {
    let Rows { entries, mut refused } = rows;
    let mut first: HashMap<EntryId, usize> = HashMap::new();
    let mut kept = Vec::with_capacity(entries.len());
    for (row, entry) in entries {
        if let Some(earlier) = first.get(&entry.id) {
            let problem = format!("is that of row {earlier} too, or the rows are the same; give each its own id");
            refused.push(Refused { row, field: "id".to_owned(), problem });
        } else {
            first.insert(entry.id.clone(), row);
            kept.push((row, entry));
        }
    }
    Rows { entries: kept, refused }
}

/// Accepts digits, a sign and a decimal point; nothing ambiguous, such as `450.000` with a second point.
fn number(cell: &str) -> Result<FieldValue, String> {
    let digits = cell.strip_prefix(['-', '+']).unwrap_or(cell);
    let plain = digits.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    match cell.parse() {
        Ok(number) if plain => checked(number),
        _ => Err(format!("must be a number such as 450000 or 2.5, not \"{}\"", repeated(cell))),
    }
}

fn checked(number: f64) -> Result<FieldValue, String> {
    let size = number.abs();
    if !(size <= LARGEST_NUMBER && (size == 0.0 || size >= SMALLEST_NUMBER)) {
        return Err(range());
    }
    // A whole number is stored and shown without a fraction: 3, not 3.0.
    let whole = if number.fract() == 0.0 { format!("{number:.0}").parse::<i64>().ok() } else { None };
    let number = whole.map(Number::from).or_else(|| Number::from_f64(number));
    number.map(FieldValue::Number).ok_or_else(range)
}

fn range() -> String {
    format!("must be a number of at most {LARGEST_NUMBER:e}, and if not zero at least {SMALLEST_NUMBER:e}")
}

fn boolean(cell: &str) -> Result<FieldValue, String> {
    match cell.to_ascii_lowercase().as_str() {
        "true" | "yes" | "1" => Ok(FieldValue::Boolean(true)),
        "false" | "no" | "0" => Ok(FieldValue::Boolean(false)),
        _ => Err(format!("must be true, false, yes, no, 1 or 0, not \"{}\"", repeated(cell))),
    }
}

/// The beginning of a wrong value.
fn repeated(text: &str) -> String {
    cut(text.to_owned(), LONGEST_REPEATED)
}

#[cfg(test)]
mod tests;
