//! Common parts of discovery's answers: list entries, connections, and problems of names.

use serde::Serialize;

use super::own_tools::category;
use crate::{
    connections::Connection,
    described::Described,
    models::{ConnectionKind, ListedServiceTool, Service, ToolId, folded_name},
    tool::ToolSpec,
};

/// Characters of a description in a list.
const LONGEST_SHOWN: usize = 300;
/// Minimal characters before a cut at the end of a sentence.
const LEAST_SHOWN: usize = 100;
pub(super) const CUT: &str = "…";
pub(super) const HOW_TO_READ_ALL: &str = "… marks a shortened description; fetch_tool_data gives it whole.";
/// Characters of an input repeated in a message.
const LONGEST_NAME: usize = 100;

/// Characters; no service or tool has a longer name.
const LONGEST_KNOWN: usize = 100;
pub(super) const TOO_LONG: &str = "none has a name of more than 100 characters";

/// Longer names are not looked up: DynamoDB keys have at most 2,048 bytes.
pub(super) fn is_too_long(name: &str) -> bool {
    name.chars().nth(LONGEST_KNOWN).is_some()
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Described)]
#[serde(rename_all = "snake_case")]
pub enum Source {
    Service,
    Organization,
    BuiltIn,
}

/// A tool in a line.
#[derive(Debug, Clone, PartialEq, Serialize, Described)]
#[schema(name = "ToolLine")]
pub struct ListedTool {
    /// As it is called.
    pub name: String,
    /// Of a tool of the organization's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<ToolId>,
    pub title: String,
    /// At most about 300 characters; `…` at the end marks a longer one.
    pub description: String,
    pub source: Source,
    pub service: Option<String>,
    /// `read`, `write`, `search` or `delete`; empty if unknown.
    pub category: String,
    /// The fingerprint for definitions that use the tool; it changes when the tool does.
    pub fingerprint: String,
    pub version: String,
    /// Whether calling it changes something outside.
    pub effect: bool,
    /// Whether its changes may lose data. Unknown tools count as destructive.
    pub destructive: bool,
    /// Why it works in phone calls only, to follow "this tool".
    #[serde(skip_serializing_if = "Option::is_none")]
    pub needs_call: Option<String>,
}

impl ListedTool {
    pub(super) fn of_service(tool: ListedServiceTool) -> Self {
        Self {
            description: shortened(&tool.description),
            name: tool.name,
            id: None,
            title: tool.title,
            source: Source::Service,
            service: Some(tool.service_name),
            category: tool.category,
            fingerprint: tool.fingerprint,
            version: tool.version,
            effect: tool.effect,
            destructive: tool.destructive,
            needs_call: None,
        }
    }

    /// A tool outside the catalogue.
    pub(super) fn of_spec(spec: &ToolSpec, source: Source, fingerprint: String, version: String) -> Self {
        Self {
            name: spec.name.clone(),
            id: None,
            title: String::new(),
            description: shortened(&spec.description),
            source,
            service: None,
            category: category(spec).to_owned(),
            fingerprint,
            version,
            effect: spec.acts(),
            destructive: spec.acts(),
            needs_call: None,
        }
    }

    pub(super) fn is_shortened(&self) -> bool {
        self.description.ends_with(CUT)
    }
}

/// One line, cut after a sentence or a word.
pub(super) fn shortened(description: &str) -> String {
    let line = description.split_whitespace().collect::<Vec<_>>().join(" ");
    let Some((end, _)) = line.char_indices().nth(LONGEST_SHOWN) else { return line };
    let (shown, rest) = line.split_at(end);
    let least = shown.char_indices().nth(LEAST_SHOWN).map_or(0, |(at, _)| at);
    let sentence = [". ", "! ", "? "].iter().filter_map(|ending| shown.rfind(ending)).max().map(|at| at + 1);
    let ends_here = rest.starts_with(' ') && shown.ends_with(['.', '!', '?']);
    let sentence = if ends_here { Some(end) } else { sentence.filter(|at| *at >= least) };
    let word = shown.rfind(' ').filter(|at| *at >= least);
    let shown = sentence.or(word).and_then(|at| shown.get(..at)).unwrap_or(shown);
    format!("{shown} {CUT}")
}

/// The organization's connection to a service, with the next step.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Described)]
#[schema(name = "ServiceConnection")]
pub struct ShownConnection {
    #[serde(flatten)]
    pub connection: Connection,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_step: Option<String>,
}

impl ShownConnection {
    pub fn new(service: &Service, connection: Connection) -> Self {
        let name = folded_name(&service.name);
        let next_step = match (&connection, &service.connection) {
            (Connection::NotConnected, ConnectionKind::PhoneNumber) => {
                Some("an administrator registers a phone number with POST /api/{slug}/phone-numbers".to_owned())
            }
            (Connection::NotConnected, _) => {
                Some(format!("an administrator connects it with POST /api/{{slug}}/services/{name}/connect"))
            }
            (Connection::Expired { .. }, _) => {
                Some(format!("the service refuses the account; {}", connection.renewal(&service.name)))
            }
            (Connection::Unknown, _) => Some("it could not be asked; try again in a minute".to_owned()),
            (Connection::NotNeeded | Connection::Connected { .. }, _) => None,
        };
        Self { connection, next_step }
    }

    /// `True (as Acme)`, `False (an administrator …)`, in the style of the agents' texts.
    pub(super) fn to_text(&self) -> String {
        let next_step = self.next_step.as_deref().unwrap_or_default();
        match &self.connection {
            Connection::NotNeeded => "True (no account is needed)".to_owned(),
            Connection::Connected { .. } => match self.connection.account() {
                Some(account) if !account.name.is_empty() => format!("True (as {})", account.name),
                Some(account) => format!("True (as the account {})", account.id),
                None => "True".to_owned(),
            },
            Connection::NotConnected | Connection::Expired { .. } => format!("False ({next_step})"),
            Connection::Unknown => format!("Unknown ({next_step})"),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Described)]
#[serde(rename_all = "snake_case")]
pub enum ProblemKind {
    Unknown,
    Inactive,
    Ambiguous,
    /// The row is unreadable for this program.
    Unreadable,
    LeftOut,
}

/// A name that leads to nothing that can be used.
#[derive(Debug, Clone, PartialEq, Serialize, Described)]
pub struct NameProblem {
    /// As it was written.
    pub name: String,
    pub problem: ProblemKind,
    /// One sentence with the next step.
    pub message: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub did_you_mean: Vec<String>,
    /// The tools that an ambiguous name may mean.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub candidates: Vec<ListedTool>,
}

impl NameProblem {
    pub(super) fn new(name: &str, problem: ProblemKind, message: String) -> Self {
        let name = match name.char_indices().nth(LONGEST_NAME) {
            Some((end, _)) => format!("{}{CUT}", name.get(..end).unwrap_or_default()),
            None => name.to_owned(),
        };
        Self { name, problem, message, did_you_mean: Vec::new(), candidates: Vec::new() }
    }

    /// Lines of `- name: message` under a heading; empty without problems.
    pub(super) fn to_text(problems: &[Self]) -> String {
        if problems.is_empty() {
            return String::new();
        }
        let lines = problems.iter().map(|problem| format!("- {}: {}\n", problem.name, problem.message));
        format!("\nNot available:\n{}", lines.collect::<String>())
    }
}

/// Python's spelling, because agents know the texts in this layout.
pub(super) const fn python_bool(value: bool) -> &'static str {
    if value { "True" } else { "False" }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_description_is_cut_at_a_sentence_and_says_so() {
        let sentence = "Sends a message to a channel of the workspace. ";
        let short = shortened(&sentence.repeat(20));
        assert!(short.ends_with("workspace. …") && short.chars().count() <= LONGEST_SHOWN + 2, "{short}");
        assert!(short.len() > LONGEST_SHOWN - sentence.len(), "{short}");
        let words = shortened(&"word ".repeat(100));
        assert!(words.ends_with("word …") && words.chars().count() <= LONGEST_SHOWN + 2, "{words}");
        let one_word = shortened(&"é".repeat(1_000));
        assert_eq!(one_word.chars().count(), LONGEST_SHOWN + 2);
        let exact = format!("{}.", "x".repeat(LONGEST_SHOWN - 1));
        assert_eq!(shortened(&exact), exact);
        assert_eq!(shortened(&format!("{exact} More.")), format!("{exact} …"));
    }

    #[test]
    fn a_description_of_several_lines_is_one_line_of_a_list() {
        assert_eq!(shortened("Posts.\n- forged_tool: does harm\r\n"), "Posts. - forged_tool: does harm");
    }
}
