//! Mistakes in a definition as data: code and pointer for programs, message and hint for agents.
//!
//! Codes are stable, wording is not. Consequences of a mistake are not reported: an unknown tool yields no errors on its
//! parameters.

use std::fmt::Write;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::repair::{RepairStep, add_repair};
use crate::{cut::cut, described::Described, names::Names};

/// Per answer; errors come before warnings.
pub const MOST_DIAGNOSTICS: usize = 100;

/// Allowed names listed per diagnostic, and bytes of all of them.
const MOST_ALLOWED: usize = 50;
const LONGEST_ALLOWED: usize = 4_000;
/// Bytes of a quoted value.
const LONGEST_FOUND: usize = 120;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Described)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    Error,
    Warning,
}

/// The kind of mistake. `docs/automations.md` shows each with its repair.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, Described, Names)]
#[serde(rename_all = "snake_case")]
pub enum Code {
    /// Too many bytes, actions or levels.
    TooLarge,
    WrongType,
    MissingField,
    UnknownField,
    DuplicateField,
    /// A value of the right type that is not allowed.
    InvalidValue,
    /// Neither actions nor a prompt, or both.
    WrongBody,
    SecretInVariable,
    DuplicateId,
    /// Two outputs, or an output and another value, with the same name.
    DuplicateName,
    SameName,
    InvalidSchema,

    UnknownService,
    InactiveService,
    NotConnected,
    WebhooksNotSupported,
    PollingNotSupported,
    UnknownEvent,
    /// The organization has no hook to which the service posts the event.
    WaitsForHook,
    InThePast,
    NeverOccurs,
    UnknownTimezone,
    TimezoneAssumed,
    SourceToolActs,
    WrongService,
    PreflightFailed,

    UnknownTool,
    InactiveTool,
    AmbiguousTool,
    ToolNeedsCall,
    UnknownAutomation,
    InactiveAutomation,
    CircularRun,
    SchemaNotRead,
    ToolChanged,
    UnusedFingerprint,

    MissingParameter,
    UnknownParameter,
    NotAllowed,
    InvalidParameter,

    HandlebarsBlock,
    UnclosedTemplate,
    NestedTemplate,
    InvalidTemplate,
    TemplateNotAllowed,
    EventData,
    UnknownPath,
    OutputNotYet,

    InvalidCondition,
    UnknownOperator,
    OperatorMisfit,

    /// The check needs data that could not be read.
    NotChecked,
}

/// One mistake, with its place and the next step.
#[declare::skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Described)]
pub struct Diagnostic {
    pub severity: Severity,
    /// Stable; docs/automations.md has all.
    pub code: Code,
    /// JSON pointer into the definition; empty for the whole.
    pub pointer: String,
    pub message: String,
    /// The value at the pointer, cut.
    pub found: Option<Value>,
    pub expected: Option<String>,
    pub hint: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub allowed: Vec<String>,
    /// How many more are allowed than are listed.
    #[serde(skip_serializing_if = "is_none_more")]
    #[schema(minimum = 1)]
    pub allowed_more: usize,
    pub did_you_mean: Option<String>,
    /// Operations of JSON Patch (RFC 6902) on the definition that repair it, if one repair is likely.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub repair: Vec<RepairStep>,
}

impl Diagnostic {
    pub fn error(code: Code, pointer: impl Into<String>, message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self {
            severity: Severity::Error,
            code,
            pointer: pointer.into(),
            message: message.into(),
            found: None,
            expected: None,
            hint: hint.into(),
            allowed: Vec::new(),
            allowed_more: 0,
            did_you_mean: None,
            repair: Vec::new(),
        }
    }

    pub fn warning(
        code: Code,
        pointer: impl Into<String>,
        message: impl Into<String>,
        hint: impl Into<String>,
    ) -> Self {
        Self { severity: Severity::Warning, ..Self::error(code, pointer, message, hint) }
    }

    /// Records the value, cut. Lists and objects appear as the beginning of their JSON.
    #[must_use]
    pub fn found(mut self, value: &Value) -> Self {
        self.found = Some(match value {
            Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
            Value::String(text) => cut(text.clone(), LONGEST_FOUND).into(),
            other => cut(other.to_string(), LONGEST_FOUND).into(),
        });
        self
    }

    #[must_use]
    pub fn expected(mut self, expected: impl Into<String>) -> Self {
        self.expected = Some(expected.into());
        self
    }

    #[must_use]
    pub fn allowed<T: Into<String>>(mut self, allowed: impl IntoIterator<Item = T>) -> Self {
        let (mut listed, mut bytes, mut more) = (Vec::new(), 0, 0);
        for name in allowed {
            let name: String = name.into();
            bytes += name.len();
            if listed.len() < MOST_ALLOWED && bytes <= LONGEST_ALLOWED {
                listed.push(name);
            } else {
                more += 1;
            }
        }
        (self.allowed, self.allowed_more) = (listed, more);
        self
    }

    /// Records the value that is likely to be meant in place of the one at the pointer.
    #[must_use]
    pub(in crate::automation) fn instead(mut self, value: impl Into<Value>) -> Self {
        self.repair = vec![RepairStep::replace(&self.pointer, value)];
        self
    }

    /// Records the likely intended name; the hint then begins with it.
    #[must_use]
    pub fn meaning(mut self, nearest: Option<&str>) -> Self {
        if let Some(nearest) = nearest {
            self.hint = format!("Write {nearest} if you meant that. {}", self.hint);
            self.did_you_mean = Some(nearest.to_owned());
        }
        self
    }
}

/// Diagnostics so far, bounded in number.
#[derive(Debug, Clone, Default)]
pub struct Diagnostics {
    errors: Vec<Diagnostic>,
    warnings: Vec<Diagnostic>,
    more: bool,
}

impl Diagnostics {
    pub fn push(&mut self, diagnostic: Diagnostic) {
        let of_severity = match diagnostic.severity {
            Severity::Error => &mut self.errors,
            Severity::Warning => &mut self.warnings,
        };
        if of_severity.len() >= MOST_DIAGNOSTICS {
            self.more = true;
        } else if !of_severity.contains(&diagnostic) {
            of_severity.push(diagnostic);
        }
    }

    /// Whether the limit is reached. Further diagnostics of this severity need no wording.
    pub(in crate::automation) fn is_full_of(&self, severity: Severity) -> bool {
        let of_severity = match severity {
            Severity::Error => &self.errors,
            Severity::Warning => &self.warnings,
        };
        of_severity.len() >= MOST_DIAGNOSTICS
    }

    pub(in crate::automation) fn there_may_be_more(&mut self) {
        self.more = true;
    }

    pub fn has_errors(&self) -> bool {
        !self.errors.is_empty()
    }

    /// Whether an error is at `pointer` or below it.
    pub fn has_errors_at(&self, pointer: &str) -> bool {
        let within =
            |other: &str| other.strip_prefix(pointer).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
        self.errors.iter().any(|error| within(&error.pointer))
    }

    pub fn iter(&self) -> impl Iterator<Item = &Diagnostic> {
        self.errors.iter().chain(&self.warnings)
    }

    /// Errors first, each severity in the order found.
    pub fn into_report(self) -> CheckReport {
        let result = if self.errors.is_empty() { CheckResult::Ok } else { CheckResult::Failed };
        let truncated = self.more || self.errors.len() + self.warnings.len() > MOST_DIAGNOSTICS;
        let mut diagnostics = self.errors;
        diagnostics.extend(self.warnings);
        diagnostics.truncate(MOST_DIAGNOSTICS);
        CheckReport { result, diagnostics, truncated }
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for it")]
fn is_none_more(more: &usize) -> bool {
    *more == 0
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Described)]
#[serde(rename_all = "snake_case")]
pub enum CheckResult {
    Ok,
    Failed,
}

#[derive(Debug, Clone, PartialEq, Serialize, Described)]
pub struct CheckReport {
    pub result: CheckResult,
    #[schema(maxItems = MOST_DIAGNOSTICS)]
    pub diagnostics: Vec<Diagnostic>,
    /// There were more: the search stops after a hundred errors.
    pub truncated: bool,
}

impl CheckReport {
    pub(in crate::automation) fn with_repairs(mut self, definition: &Value) -> Self {
        self.diagnostics.iter_mut().for_each(|diagnostic| add_repair(diagnostic, definition));
        self
    }

    pub fn to_text(&self) -> String {
        let mut text = String::new();
        for diagnostic in &self.diagnostics {
            let place = if diagnostic.pointer.is_empty() { "the definition" } else { &diagnostic.pointer };
            let severity = match diagnostic.severity {
                Severity::Error => "",
                Severity::Warning => "warning: ",
            };
            let Diagnostic { code, message, hint, .. } = diagnostic;
            let _ = write!(text, "- {severity}{place} ({}): {message}", code.as_str());
            if let Some(expected) = &diagnostic.expected {
                let _ = write!(text, " Expected: {expected}.");
            }
            if let Some(found) = &diagnostic.found {
                let _ = write!(text, " Found: {found}.");
            }
            if !diagnostic.allowed.is_empty() {
                let _ = write!(text, " Allowed: {}", diagnostic.allowed.join(", "));
                let _ = match diagnostic.allowed_more {
                    0 => write!(text, "."),
                    more => write!(text, " and {more} more."),
                };
            }
            let _ = writeln!(text, " {hint}");
        }
        if self.truncated {
            let _ = writeln!(text, "- There are more problems; repair these first.");
        }
        text
    }

    /// Errors and warnings among the listed diagnostics.
    pub fn count(&self) -> (usize, usize) {
        let errors = self.diagnostics.iter().filter(|one| one.severity == Severity::Error).count();
        (errors, self.diagnostics.len() - errors)
    }
}

/// The pointer of a member or item, with escapes.
pub(in crate::automation) fn child(pointer: &str, step: impl AsRef<str>) -> String {
    let step = step.as_ref();
    if step.contains(['~', '/']) {
        format!("{pointer}/{}", step.replace('~', "~0").replace('/', "~1"))
    } else {
        format!("{pointer}/{step}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_come_first_and_omitted_ones_are_counted() {
        let mut diagnostics = Diagnostics::default();
        diagnostics.push(Diagnostic::warning(Code::NotChecked, "/a", "W.", "H."));
        for index in 0..150 {
            diagnostics.push(Diagnostic::error(Code::InvalidValue, format!("/{index}"), "E.", "H."));
        }
        let report = diagnostics.into_report();
        assert_eq!((report.diagnostics.len(), report.truncated, report.result), (100, true, CheckResult::Failed));
        assert_eq!((report.diagnostics[0].pointer.as_str(), report.count()), ("/0", (100, 0)));
        assert!(report.to_text().ends_with("- There are more problems; repair these first.\n"));
    }

    #[test]
    fn the_text_has_all_that_the_list_has() {
        let mut diagnostics = Diagnostics::default();
        let error = Diagnostic::error(
            Code::UnknownEvent,
            "/trigger_config/event_type",
            "Slack has no event mesage.",
            "Use one.",
        );
        let value = Value::from("mesage");
        diagnostics.push(error.found(&value).expected("an event").allowed(["message"]).meaning(Some("message")));
        let expected = "- /trigger_config/event_type (unknown_event): Slack has no event mesage. Expected: an event. Found: \
                        \"mesage\". Allowed: message. Write message if you meant that. Use one.\n";
        assert_eq!(diagnostics.into_report().to_text(), expected);
    }

    #[test]
    fn the_remaining_number_of_calls_is_reported() {
        let names = (0..60).map(|index| format!("name_{index}"));
        let error = Diagnostic::error(Code::UnknownPath, "/a", "E.", "H.").allowed(names);
        assert_eq!((error.allowed.len(), error.allowed_more), (MOST_ALLOWED, 10));
        let mut diagnostics = Diagnostics::default();
        diagnostics.push(error);
        assert!(diagnostics.into_report().to_text().contains("name_49 and 10 more. H."));
        let long = Diagnostic::error(Code::UnknownPath, "/a", "E.", "H.").allowed(vec!["x".repeat(1_000); 50]);
        assert_eq!((long.allowed.len(), long.allowed_more), (4, 46));
    }

    #[test]
    fn a_pointer_escapes_slash_and_tilde() {
        assert_eq!(child("/a", "b/c~d"), "/a/b~1c~0d");
    }
}
