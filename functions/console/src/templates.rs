//! The markup of views as calls, made while the function is built: the tag `html` becomes calls of `h('div', {…}, …)`, as htm 3.1 would have
//! made them in the browser. This is smaller, and the browser reads no markup.

use std::{fmt::Write as _, iter};

use oxc_allocator::Allocator;
use oxc_ast::ast::{Expression, Statement, TaggedTemplateExpression, TemplateLiteral};
use oxc_ast_visit::{Visit, walk};
use oxc_parser::Parser;
use oxc_span::{GetSpan, SourceType, Span};

/// The function that makes an element, in place of the tag.
const MAKES: &str = "$h";
const TAG: &str = "html";

/// The module's text with calls in place of templates. A text that cannot be read stays as it is; the linker tells.
pub(crate) fn compiled(text: &str) -> Result<String, String> {
    let allocator = Allocator::default();
    let parsed = Parser::new(&allocator, text, SourceType::mjs()).parse();
    let program = parsed.program;
    let mut edits = Edits { text, edits: Vec::new(), problem: None };
    for statement in &program.body {
        if let Statement::ImportDeclaration(import) = statement {
            for specifier in import.specifiers.iter().flatten().filter(|one| one.local().name == TAG) {
                edits.edits.push((specifier.span(), format!("h as {MAKES}")));
            }
        }
    }
    edits.visit_program(&program);
    edits.problem.take().map_or_else(|| Ok(edits.applied(program.span)), Err)
}

struct Edits<'t> {
    text: &'t str,
    edits: Vec<(Span, String)>,
    problem: Option<String>,
}

impl<'a> Visit<'a> for Edits<'_> {
    fn visit_tagged_template_expression(&mut self, template: &TaggedTemplateExpression<'a>) {
        if !matches!(&template.tag, Expression::Identifier(tag) if tag.name == TAG) {
            return walk::walk_tagged_template_expression(self, template);
        }
        match self.calls(&template.quasi) {
            Ok(calls) => self.edits.push((template.span, calls)),
            Err(problem) => self.problem = Some(format!("{problem}: {}", template.span.source_text(self.text))),
        }
    }
}

impl Edits<'_> {
    /// The text of a span with the edits in it.
    fn applied(&self, span: Span) -> String {
        let (mut text, mut at) = (String::new(), span.start);
        let mut edits: Vec<_> =
            self.edits.iter().filter(|(edit, _)| span.start <= edit.start && edit.end <= span.end).collect();
        edits.sort_by_key(|(edit, _)| edit.start);
        for (edit, newer) in edits {
            text.push_str(Span::new(at, edit.start).source_text(self.text));
            text.push_str(newer);
            at = edit.end;
        }
        text + Span::new(at, span.end).source_text(self.text)
    }

    /// The calls in place of a template.
    fn calls(&mut self, template: &TemplateLiteral<'_>) -> Result<String, String> {
        let mut values = Vec::new();
        for expression in &template.expressions {
            let mut within = Edits { text: self.text, edits: Vec::new(), problem: None };
            within.visit_expression(expression);
            if let Some(problem) = within.problem.take() {
                return Err(problem);
            }
            let value = within.applied(expression.span());
            values.push(if matches!(expression, Expression::SequenceExpression(_)) {
                format!("({value})")
            } else {
                value
            });
        }
        let texts = template.quasis.iter().map(|quasi| quasi.value.cooked.as_ref().map_or("", |text| text.as_str()));
        let mut reader = Reader::default();
        for (text, value) in texts.zip(values.into_iter().map(Some).chain(iter::once(None))) {
            reader.read(text)?;
            if let Some(value) = value {
                if reader.mode == Mode::Text {
                    reader.commit(None)?;
                }
                reader.commit(Some(value))?;
            }
        }
        reader.commit(None)?;
        let [root] = <[Element; 1]>::try_from(reader.open).map_err(|_open| "an element is not closed".to_owned())?;
        Ok(match root.children.as_slice() {
            [one] => one.clone(),
            several => format!("[{}]", several.join(", ")),
        })
    }
}

/// The place that is being read, as htm has them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Mode {
    /// Behind the slash of a tag.
    Closing,
    #[default]
    Text,
    Whitespace,
    TagName,
    Comment,
    /// The first part of a property's value, and another one.
    Property,
    Appended,
}

#[derive(Default)]
struct Element {
    tag: Option<String>,
    properties: Vec<Property>,
    /// Expressions.
    children: Vec<String>,
}

enum Property {
    Spread(String),
    /// A name with the parts of its value: texts and expressions.
    Named(String, Vec<Part>),
    True(String),
}

enum Part {
    Text(String),
    Value(String),
}

struct Reader {
    mode: Mode,
    buffer: String,
    quote: Option<char>,
    name: String,
    /// From the outermost, which is the template itself.
    open: Vec<Element>,
}

impl Default for Reader {
    fn default() -> Self {
        Self {
            mode: Mode::Text,
            buffer: String::new(),
            quote: None,
            name: String::new(),
            open: vec![Element::default()],
        }
    }
}

impl Reader {
    fn last(&mut self) -> Result<&mut Element, String> {
        self.open.last_mut().ok_or_else(|| "an element is closed twice".to_owned())
    }

    fn read(&mut self, text: &str) -> Result<(), String> {
        let mut letters = text.chars().peekable();
        while let Some(letter) = letters.next() {
            match (self.mode, self.quote) {
                (Mode::Text, _) if letter == '<' => {
                    self.commit(None)?;
                    self.open.push(Element::default());
                    self.mode = Mode::TagName;
                }
                (Mode::Text, _) => self.buffer.push(letter),
                (Mode::Comment, _) => {
                    self.buffer.push(letter);
                    if self.buffer.ends_with("-->") {
                        self.buffer.clear();
                        self.mode = Mode::Text;
                    }
                }
                (_, Some(quote)) if letter == quote => self.quote = None,
                (_, Some(_)) => self.buffer.push(letter),
                (_, None) => self.read_in_tag(letter, letters.peek() == Some(&'>'))?,
            }
            if self.mode == Mode::TagName && self.buffer == "!--" {
                self.open.pop();
                self.mode = Mode::Comment;
            }
        }
        Ok(())
    }

    fn read_in_tag(&mut self, letter: char, ends: bool) -> Result<(), String> {
        let in_value = matches!(self.mode, Mode::Property | Mode::Appended);
        match letter {
            '"' | '\'' => self.quote = Some(letter),
            '>' => {
                self.commit(None)?;
                self.mode = Mode::Text;
            }
            _ if self.mode == Mode::Closing => {}
            '=' => {
                self.mode = Mode::Property;
                self.name = std::mem::take(&mut self.buffer);
            }
            '/' if !in_value || ends => {
                self.commit(None)?;
                if self.mode == Mode::TagName {
                    self.open.pop();
                }
                self.mode = Mode::Closing;
                let element = self.open.pop().ok_or("an element is closed twice")?;
                let call = element.call()?;
                self.last()?.children.push(call);
            }
            ' ' | '\t' | '\n' | '\r' => {
                self.commit(None)?;
                self.mode = Mode::Whitespace;
            }
            letter => self.buffer.push(letter),
        }
        Ok(())
    }

    /// Ends the text that was read so far; `value` is an expression that stands here.
    fn commit(&mut self, value: Option<String>) -> Result<(), String> {
        let buffer = std::mem::take(&mut self.buffer);
        match self.mode {
            Mode::Text => {
                // Instead of an element it could stand in any expression.
                let alone = self.open.len() == 1;
                let child = value.map(|value| if alone { format!("({value})") } else { value }).or_else(|| {
                    let text = without_lines(&buffer);
                    (!text.is_empty()).then(|| quoted(text))
                });
                self.last()?.children.extend(child);
            }
            Mode::TagName if value.is_some() || !buffer.is_empty() => {
                self.last()?.tag = Some(value.unwrap_or_else(|| quoted(&buffer)));
                self.mode = Mode::Whitespace;
            }
            Mode::Whitespace => match value {
                Some(value) if buffer == "..." => self.last()?.properties.push(Property::Spread(value)),
                Some(_) => return Err("a value is no property".to_owned()),
                None if !buffer.is_empty() => self.last()?.properties.push(Property::True(buffer)),
                None => {}
            },
            Mode::Property | Mode::Appended => {
                let mut parts = Vec::new();
                if !buffer.is_empty() || value.is_none() && self.mode == Mode::Property {
                    parts.push(Part::Text(buffer));
                }
                parts.extend(value.map(Part::Value));
                let name = self.name.clone();
                let begins = self.mode == Mode::Property;
                let element = self.last()?;
                match element.properties.last_mut() {
                    Some(Property::Named(_, before)) if !begins => before.extend(parts),
                    _ => element.properties.push(Property::Named(name, parts)),
                }
                self.mode = Mode::Appended;
            }
            Mode::TagName | Mode::Comment | Mode::Closing => {}
        }
        Ok(())
    }
}

impl Element {
    fn call(self) -> Result<String, String> {
        let mut call = format!("{MAKES}({}", self.tag.ok_or("an element has no name")?);
        let properties: Vec<String> = self.properties.into_iter().map(Property::member).collect();
        match (properties.as_slice(), self.children.is_empty()) {
            ([], true) => {}
            ([], false) => call.push_str(", null"),
            (members, _) => {
                // A string takes everything, here and below.
                let _ = write!(call, ", {{ {} }}", members.join(", "));
            }
        }
        for child in &self.children {
            let _ = write!(call, ", {child}");
        }
        Ok(call + ")")
    }
}

impl Property {
    fn member(self) -> String {
        match self {
            Self::Spread(value) => format!("...{value}"),
            Self::True(name) => format!("{}: true", quoted(&name)),
            Self::Named(name, parts) => {
                let value = match <[Part; 1]>::try_from(parts) {
                    Ok([Part::Text(text)]) => quoted(&text),
                    Ok([Part::Value(value)]) => value,
                    Err(parts) => {
                        let parts = parts.into_iter().map(|part| match part {
                            Part::Text(text) => text.replace('\\', "\\\\").replace('`', "\\`").replace("${", "\\${"),
                            Part::Value(value) => format!("${{{value}}}"),
                        });
                        format!("`{}`", parts.collect::<String>())
                    }
                };
                format!("{}: {value}", quoted(&name))
            }
        }
    }
}

/// Without the whitespace at an end that breaks the line.
fn without_lines(text: &str) -> &str {
    let space = |text: &str| text.contains('\n');
    let inner = text.trim_start();
    let text = if space(&text[..text.len() - inner.len()]) { inner } else { text };
    let inner = text.trim_end();
    if space(&text[inner.len()..]) { inner } else { text }
}

fn quoted(text: &str) -> String {
    let text = text.replace('\\', "\\\\").replace('\'', "\\'").replace('\n', "\\n").replace('\r', "\\r");
    format!("'{text}'")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(template: &str) -> String {
        compiled(&format!("html`{template}`;")).unwrap_or_else(|problem| problem)
    }

    #[test]
    fn markup_becomes_calls() {
        for (template, expected) in [
            ("<a />", "$h('a');"),
            ("<a>b</a>", "$h('a', null, 'b');"),
            (
                "<a href=b c=\"d e\" f data-g=''>h</a>",
                "$h('a', { 'href': 'b', 'c': 'd e', 'f': true, 'data-g': '' }, 'h');",
            ),
            ("<a class=\"b ${c}\" d=${e} f=\"${g}h\" />", "$h('a', { 'class': `b ${c}`, 'd': e, 'f': `${g}h` });"),
            ("<${A} ...${b} c=/d>e<//>", "$h(A, { ...b, 'c': '/d' }, 'e');"),
            ("<a>it's <b>c</b>${d}</a>", "$h('a', null, 'it\\'s ', $h('b', null, 'c'), d);"),
            ("\n  <a>\n    b\n    c ${d}\n    ${e} f\n  </a>\n", "$h('a', null, 'b\\n    c ', d, e, ' f');"),
            ("<a /><b />", "[$h('a'), $h('b')];"),
            ("${a}<!-- <b> ${c} --> ${d}", "[(a), ' ', (d)];"),
            ("<a>${b.map((c) => html`<d>${c}</d>`)}</a>", "$h('a', null, b.map((c) => $h('d', null, c)));"),
        ] {
            assert_eq!(call(template), expected, "{template}");
        }
    }

    #[test]
    fn the_import_follows_and_other_templates_stay() {
        let text = "import { html, useState } from './x.js';\nconst a = `b ${c}`, d = other`<e>${html`<f />`}`;\n";
        let expected = "import { h as $h, useState } from './x.js';\nconst a = `b ${c}`, d = other`<e>${$h('f')}`;\n";
        assert_eq!(compiled(text).unwrap(), expected);
    }

    #[test]
    fn wrong_markup_is_an_error_of_the_build() {
        for (template, problem) in [
            ("<a>", "an element is not closed: html`<a>`"),
            ("<a></a></a>", "an element has no name: html`<a></a></a>`"),
            ("<a ${b} />", "a value is no property: html`<a ${b} />`"),
        ] {
            assert_eq!(call(template), problem);
        }
    }
}
