//! Placeholders in texts: `{{name}}`.
//!
//! Tools fill in variables of the call ([`crate::actions`]), automations fill in paths ([`crate::automation`]).

/// The first placeholder of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Placeholder<'a> {
    pub before: &'a str,
    /// The text after the opening braces.
    pub opened: &'a str,
    /// The text between the braces and the text after them; `None` without closing braces.
    pub closed: Option<(&'a str, &'a str)>,
}

impl<'a> Placeholder<'a> {
    pub fn first_in(text: &'a str) -> Option<Self> {
        let (before, opened) = text.split_once("{{")?;
        Some(Self { before, opened, closed: opened.split_once("}}") })
    }

    /// The text between the braces, if the text is one placeholder, apart from blanks.
    pub fn only_placeholder_in(text: &'a str) -> Option<&'a str> {
        let inside = text.trim().strip_prefix("{{")?.strip_suffix("}}")?;
        (!inside.contains(['{', '}'])).then_some(inside)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_placeholder_is_found_with_its_surroundings() {
        for (text, expected) in [
            ("plain }} text", None),
            ("a {{b}} {{c}}", Some(("a ", "b}} {{c}}", Some(("b", " {{c}}"))))),
            ("a {{b", Some(("a ", "b", None))),
            ("{{}}", Some(("", "}}", Some(("", ""))))),
            ("{{{x}}}", Some(("", "{x}}}", Some(("{x", "}"))))),
        ] {
            let found = Placeholder::first_in(text);
            assert_eq!(found.map(|found| (found.before, found.opened, found.closed)), expected, "{text}");
        }
    }

    #[test]
    fn one_that_is_alone_has_neither_text_nor_braces_beside_it() {
        for (text, expected) in [
            ("{{now}}", Some("now")),
            (" {{ now }} ", Some(" now ")),
            ("{{now}}!", None),
            ("{{a}}{{b}}", None),
            ("{{{a}}}", None),
            ("{{a", None),
            ("now", None),
        ] {
            assert_eq!(Placeholder::only_placeholder_in(text), expected, "{text}");
        }
    }
}
