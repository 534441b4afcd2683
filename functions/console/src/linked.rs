//! Modules of JavaScript as a few scripts: those in the page itself, and files that the page loads when it needs them.
//!
//! All modules of a script are in one scope, so that the minifier can shorten and drop names across modules: each name at a module's top
//! gets the module's number as a suffix, and an import becomes the name that it stands for. A script in the page puts the names that
//! others take from it into `globalThis.$`; a file exports them.
//!
//! A module that is loaded when it is opened is written as `import('./folder/name.js')`, and is the entry of a script.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write as _,
    io,
};

use oxc_allocator::{Allocator, TakeIn};
use oxc_ast::ast::{BindingPattern, Declaration, ImportDeclarationSpecifier, ModuleExportName, Program, Statement};
use oxc_codegen::{Codegen, CodegenOptions};
use oxc_parser::{ParseOptions, Parser};
use oxc_semantic::SemanticBuilder;
use oxc_span::SourceType;

/// A script to be made of `entries` and the modules that they import.
pub(crate) struct Script<'a> {
    pub(crate) name: &'a str,
    pub(crate) entries: &'a [&'a str],
    pub(crate) kind: Kind,
    /// Files whose modules this one takes from them instead of bringing its own; it takes those in the page, too.
    pub(crate) shares: &'a [&'a str],
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// In the page, and run before all files.
    InPage,
    File,
}

/// The files below `console/` have the version before their names; this stands for it until all files are known.
pub(crate) const VERSION: &str = "0VERSION0";

/// The module that lists the files of each place, made here: `export const SCRIPTS = {calls: ['console/…'], …}`. The second text stands for
/// it until the files are known.
const LIST: &str = "scripts.js";
const LISTED: &str = "export const SCRIPTS = {};";

/// The scripts, in the order of the plan. `module` gives a module's text by its path.
pub(crate) fn linked(plan: &[Script<'_>], module: &impl Fn(&str) -> Option<String>) -> io::Result<Vec<String>> {
    let mut linker = Linker { plan, module, modules: BTreeMap::new(), order: Vec::new() };
    for script in plan {
        let mut order = Vec::new();
        for entry in script.entries {
            linker.visit(entry, &mut order)?;
        }
        linker.order.push(order);
    }
    let bodies: Vec<Vec<Body>> = (0..plan.len()).map(|script| linker.bodies(script)).collect::<io::Result<_>>()?;
    (0..plan.len()).map(|script| linker.joined(script, &bodies)).collect()
}

/// A module's export, as its path and name.
type Name = (String, String);

struct Module {
    number: usize,
    text: String,
    /// The paths in its import declarations.
    imports: Vec<String>,
    /// The names at its top by the names under which it exports them.
    exports: BTreeMap<String, String>,
}

/// A module in the scope of its script.
struct Body {
    text: String,
    /// Names that it takes from other modules.
    takes: BTreeSet<Name>,
}

struct Linker<'a, F> {
    plan: &'a [Script<'a>],
    module: &'a F,
    modules: BTreeMap<String, Module>,
    /// The modules of each script so far, each after those that it imports.
    order: Vec<Vec<String>>,
}

#[allow(clippy::indexing_slicing, reason = "a script's number is its place in the plan, the orders and the bodies")]
impl<F: Fn(&str) -> Option<String>> Linker<'_, F> {
    /// Adds the module and its imports to the order of the next script, without those that an earlier script shares.
    fn visit(&mut self, path: &str, order: &mut Vec<String>) -> io::Result<()> {
        if order.iter().any(|known| known == path) || self.giver(path, self.order.len()).is_some() {
            return Ok(());
        }
        if !self.modules.contains_key(path) {
            let text = if path == LIST { Some(LISTED.to_owned()) } else { (self.module)(path) };
            let text = text.ok_or_else(|| wrong(path, "is not there"))?;
            let module = read(path, text, self.modules.len())?;
            self.modules.insert(path.to_owned(), module);
        }
        for import in self.known(path)?.imports.clone() {
            self.visit(&import, order)?;
        }
        // Two modules that import each other.
        if !order.iter().any(|known| known == path) {
            order.push(path.to_owned());
        }
        Ok(())
    }

    fn known(&self, path: &str) -> io::Result<&Module> {
        self.modules.get(path).ok_or_else(|| wrong(path, "is in no script"))
    }

    /// The earlier script from which a script takes this module.
    fn giver(&self, path: &str, script: usize) -> Option<usize> {
        let taker = self.plan.get(script)?;
        self.order.iter().zip(self.plan).take(script).position(|(order, giver)| {
            (giver.kind == Kind::InPage || taker.shares.contains(&giver.name))
                && order.iter().any(|known| known == path)
        })
    }

    /// The script that has this module as an entry.
    fn opens(&self, path: &str) -> Option<usize> {
        self.plan.iter().position(|script| script.entries.contains(&path))
    }

    fn list(&self) -> String {
        let mut text = "export const SCRIPTS = {".to_owned();
        for (at, script) in self.plan.iter().enumerate().filter(|(_, script)| script.kind == Kind::File) {
            for place in script.entries.iter().filter_map(|entry| entry.strip_suffix("/page.js")) {
                let files = self.needed_files(at).into_iter().map(|name| format!("'console/{VERSION}.{name}'"));
                let _a_string_takes_everything = write!(text, "{place}: [{}],", files.collect::<Vec<_>>().join(", "));
            }
        }
        text + "};\n"
    }

    /// The names of a file and of those that it imports, the file last.
    fn needed_files(&self, at: usize) -> Vec<&str> {
        let order = self.order.get(at).map_or(&[][..], Vec::as_slice);
        let imports = order.iter().filter_map(|path| self.modules.get(path)).flat_map(|module| &module.imports);
        let givers: BTreeSet<usize> = imports.filter_map(|import| self.giver(import, at)).collect();
        let mut files = Vec::new();
        for name in givers.into_iter().flat_map(|giver| self.needed_files(giver)) {
            if !files.contains(&name) {
                files.push(name);
            }
        }
        files.extend(self.plan.get(at).filter(|script| script.kind == Kind::File).map(|script| script.name));
        files
    }

    /// The modules of a script with the names that they have in its scope.
    fn bodies(&self, script: usize) -> io::Result<Vec<Body>> {
        let order = self.order.get(script).map_or(&[][..], Vec::as_slice);
        order.iter().map(|path| self.body(path, script)).collect()
    }

    fn body(&self, path: &str, script: usize) -> io::Result<Body> {
        let module = self.known(path)?;
        let mut takes = BTreeSet::new();
        let text = if path == LIST { self.list() } else { self.opened(path, &module.text, script, &mut takes)? };
        let allocator = Allocator::default();
        let mut program = parsed(path, &allocator, &text)?;
        let mut scoping = SemanticBuilder::new().build(&program).semantic.into_scoping();
        let mut names = BTreeMap::new();
        for statement in &program.body {
            let Statement::ImportDeclaration(import) = statement else { continue };
            let from = resolved(path, import.source.value.as_str());
            for specifier in import.specifiers.iter().flatten() {
                let ImportDeclarationSpecifier::ImportSpecifier(one) = specifier else {
                    return Err(wrong(path, "may import names only"));
                };
                let imported = text_of(&one.imported);
                names.insert(one.local.name.to_string(), self.name(&from, imported)?);
                takes.insert((from.clone(), imported.to_owned()));
            }
        }
        let root = scoping.root_scope_id();
        let own: Vec<_> = scoping.get_bindings(root).iter().map(|(name, symbol)| (name.to_string(), *symbol)).collect();
        for (name, symbol) in own {
            let unique = names.remove(&name).unwrap_or_else(|| format!("{name}${}", module.number));
            scoping.set_symbol_name(symbol, unique.as_str().into());
        }
        let body = program.body.take_in(&&allocator);
        for statement in body {
            match statement {
                Statement::ImportDeclaration(_) | Statement::ExportNamedDeclaration(_) => {}
                Statement::ExportDeclaration(export) => {
                    program.body.push(Statement::from(export.unbox().declaration));
                }
                other => program.body.push(other),
            }
        }
        let text =
            Codegen::new().with_options(CodegenOptions::default()).with_scoping(Some(scoping)).build(&program).code;
        Ok(Body { text: format!("// {path}\n{text}"), takes })
    }

    /// An export's name in the scope of a script.
    fn name(&self, path: &str, exported: &str) -> io::Result<String> {
        let module = self.known(path)?;
        let local = module.exports.get(exported).ok_or_else(|| wrong(path, &format!("exports no {exported}")))?;
        Ok(format!("{local}${}", module.number))
    }

    /// The text with the names of files in place of those of modules that are loaded when they are opened.
    fn opened(&self, path: &str, text: &str, script: usize, takes: &mut BTreeSet<Name>) -> io::Result<String> {
        const OPENS: &str = "import('";
        let mut opened = String::new();
        let mut rest = text;
        while let Some((before, after)) = rest.split_once(OPENS) {
            let (opens, after) = after.split_once("')").ok_or_else(|| wrong(path, "opens a module by a name"))?;
            let module = resolved(path, opens);
            let from = self.opens(&module).ok_or_else(|| wrong(&module, "is opened, and is no entry"))?;
            let exports: Vec<&String> = self.known(&module)?.exports.keys().collect();
            opened.push_str(before);
            // Writing to a string cannot fail, here and below.
            if from == script {
                let mut names = Vec::new();
                for name in exports {
                    takes.insert((module.clone(), name.clone()));
                    names.push(format!("{name}: {}", self.name(&module, name)?));
                }
                let _ = write!(opened, "Promise.resolve({{ {} }})", names.join(", "));
            } else {
                let folder =
                    if self.plan.get(script).is_some_and(|own| own.kind == Kind::InPage) { "./console/" } else { "./" };
                let files: Vec<String> = self
                    .needed_files(from)
                    .into_iter()
                    .map(|name| format!("import('{folder}{VERSION}.{name}')"))
                    .collect();
                let names = exports.iter().map(|name| format!("{}: {name}", outside(&module, name)));
                let given = exports.iter().map(|name| name.as_str()).collect::<Vec<_>>().join(", ");
                let _ = write!(
                    opened,
                    "({}).then(({{ {} }}) => ({{ {given} }}))",
                    files.join(", "),
                    names.collect::<Vec<_>>().join(", ")
                );
            }
            rest = after;
        }
        Ok(opened + rest)
    }

    /// The script with the names that it takes from others, and gives to others.
    fn joined(&self, script: usize, bodies: &[Vec<Body>]) -> io::Result<String> {
        let (plan, order) = (&self.plan[script], &self.order[script]);
        let mut text = String::new();
        let mut from: BTreeMap<usize, Vec<String>> = BTreeMap::new();
        let taken: BTreeSet<&Name> = bodies[script].iter().flat_map(|body| &body.takes).collect();
        for (path, name) in taken.into_iter().filter(|(path, _)| !order.contains(path)) {
            let giver = self.giver(path, script).ok_or_else(|| wrong(path, "comes later"))?;
            let in_page = self.plan[giver].kind == Kind::InPage;
            let alias = self.alias(giver, path, name, bodies);
            let is = if in_page { ":" } else { " as" };
            from.entry(giver).or_default().push(format!("{alias}{is} {}", self.name(path, name)?));
        }
        for (giver, names) in &from {
            let (names, giver) = (names.join(", "), &self.plan[*giver]);
            let _ = if giver.kind == Kind::InPage {
                writeln!(text, "const {{ {names} }} = globalThis.$;")
            } else {
                writeln!(text, "import {{ {names} }} from './{VERSION}.{}';", giver.name)
            };
        }
        for body in &bodies[script] {
            text.push_str(&body.text);
        }
        let gives = self.given(script, bodies);
        let in_page = plan.kind == Kind::InPage;
        let mut names = Vec::new();
        for (path, name) in &gives {
            let alias = self.alias(script, path, name, bodies);
            let own = self.name(path, name)?;
            names.push(if in_page { format!("{alias}: {own}") } else { format!("{own} as {alias}") });
        }
        let names = names.join(", ");
        let _ = match (gives.is_empty(), in_page) {
            (true, _) => Ok(()),
            (_, true) => writeln!(text, "globalThis.$ = {{ ...globalThis.$, {names} }};"),
            (_, false) => writeln!(text, "export {{ {names} }};"),
        };
        Ok(text)
    }
}

#[allow(clippy::indexing_slicing, reason = "a script's number is its place in the plan, the orders and the bodies")]
impl<F: Fn(&str) -> Option<String>> Linker<'_, F> {
    /// The names that a script gives to others: those that they take, and those of its entries.
    fn given(&self, script: usize, bodies: &[Vec<Body>]) -> BTreeSet<Name> {
        let mut given = BTreeSet::new();
        for (taker, bodies) in bodies.iter().enumerate().skip(script + 1) {
            let taken = bodies.iter().flat_map(|body| &body.takes);
            given.extend(taken.filter(|(path, _)| self.is_taken(path, script, taker)).cloned());
        }
        let plan = &self.plan[script];
        for path in plan.entries.iter().filter(|_| plan.kind == Kind::File) {
            let exports = self.modules.get(*path).map(|module| &module.exports);
            given.extend(exports.into_iter().flatten().map(|(name, _)| ((*path).to_owned(), name.clone())));
        }
        given
    }

    fn is_taken(&self, path: &str, giver: usize, taker: usize) -> bool {
        !self.order[taker].iter().any(|own| own == path) && self.giver(path, taker) == Some(giver)
    }

    /// A name's short one between scripts. Those of entries are longer, for they are needed before the others are known.
    fn alias(&self, giver: usize, path: &str, name: &str, bodies: &[Vec<Body>]) -> String {
        let plan = &self.plan[giver];
        if plan.kind == Kind::File && plan.entries.contains(&path) {
            return outside(path, name);
        }
        let at = self.given(giver, bodies).iter().position(|(from, given)| from == path && given == name);
        // The scripts in the page put their names into one object.
        let before: usize =
            (0..giver).filter(|_| plan.kind == Kind::InPage).map(|before| self.given(before, bodies).len()).sum();
        short(before + at.unwrap_or_default())
    }
}

/// `a` to `Z`, then `aa` and so on.
fn short(number: usize) -> String {
    const LETTERS: &[u8] = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
    let letter = |at: usize| LETTERS.get(at % LETTERS.len()).map_or('_', |letter| char::from(*letter));
    match number / LETTERS.len() {
        0 => letter(number).to_string(),
        more => format!("{}{}", letter(more - 1), letter(number)),
    }
}

/// The name of an entry's export outside its file.
fn outside(path: &str, name: &str) -> String {
    format!("{}_{name}", path.trim_end_matches(".js").trim_end_matches("/page").replace(['/', '-'], "_"))
}

fn read(path: &str, text: String, number: usize) -> io::Result<Module> {
    let allocator = Allocator::default();
    let program = parsed(path, &allocator, &text)?;
    let (mut imports, mut exports) = (Vec::new(), BTreeMap::new());
    for statement in &program.body {
        match statement {
            Statement::ImportDeclaration(import) => imports.push(resolved(path, import.source.value.as_str())),
            Statement::ExportNamedDeclaration(export) => exports.extend(
                export.specifiers.iter().map(|one| (text_of(&one.exported).to_owned(), text_of(&one.local).to_owned())),
            ),
            Statement::ExportDeclaration(export) => {
                exports.extend(declared(&export.declaration).map(|name| (name.clone(), name)));
            }
            Statement::ExportDefaultDeclaration(_)
            | Statement::ExportAllDeclaration(_)
            | Statement::ExportFromDeclaration(_) => {
                return Err(wrong(path, "may export its own names only"));
            }
            _ => {}
        }
    }
    Ok(Module { number, text, imports, exports })
}

fn declared(declaration: &Declaration<'_>) -> impl Iterator<Item = String> {
    let one = declaration.id().map(|id| id.name.to_string());
    let variables = match declaration {
        Declaration::VariableDeclaration(variables) => Some(variables),
        _ => None,
    };
    let names =
        variables.into_iter().flat_map(|variables| &variables.declarations).filter_map(|variable| match &variable.id {
            BindingPattern::BindingIdentifier(id) => Some(id.name.to_string()),
            _ => None,
        });
    one.into_iter().chain(names).collect::<Vec<_>>().into_iter()
}

fn text_of<'a>(name: &'a ModuleExportName<'_>) -> &'a str {
    match name {
        ModuleExportName::IdentifierName(name) => name.name.as_str(),
        ModuleExportName::IdentifierReference(name) => name.name.as_str(),
        ModuleExportName::StringLiteral(name) => name.value.as_str(),
    }
}

pub(crate) fn parsed<'a>(path: &str, allocator: &'a Allocator, text: &'a str) -> io::Result<Program<'a>> {
    let options = ParseOptions { preserve_parens: false, ..ParseOptions::default() };
    let parsed = Parser::new(allocator, text, SourceType::mjs()).with_options(options).parse();
    match parsed.diagnostics.first() {
        Some(problem) => Err(wrong(path, &problem.to_string())),
        None => Ok(parsed.program),
    }
}

/// The path that a module names from its own.
fn resolved(path: &str, named: &str) -> String {
    let mut parts: Vec<&str> = path.split('/').collect();
    parts.pop();
    for part in named.split('/') {
        match part {
            "." => {}
            ".." => _ = parts.pop(),
            part => parts.push(part),
        }
    }
    parts.join("/")
}

fn wrong(path: &str, problem: &str) -> io::Error {
    io::Error::other(format!("{path}: {problem}"))
}

/// A style sheet without comments and indentation.
pub(crate) fn sheet(text: &str) -> String {
    let mut rest = text;
    let mut rules = String::new();
    while let Some((before, after)) = rest.split_once("/*") {
        rules.push_str(before);
        rest = after.split_once("*/").map_or("", |(_, after)| after);
    }
    rules.push_str(rest);
    rules.lines().map(str::trim).filter(|line| !line.is_empty()).fold(String::new(), |sheet, line| sheet + line + "\n")
}

/// The text with a place for the version in the name of each file: the bytes at such an address never change.
pub(crate) fn versioned<'a>(text: &str, names: impl Iterator<Item = &'a str>) -> String {
    names.fold(text.to_owned(), |text, name| {
        ["'console/", "\"console/"].iter().fold(text, |text, before| {
            let end = if before.starts_with('"') { '"' } else { '\'' };
            text.replace(&format!("{before}{name}{end}"), &format!("{before}{VERSION}.{name}{end}"))
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn module(path: &str) -> Option<String> {
        let text = match path {
            "app.js" => {
                "import { two as both } from './in/two.js';\nimport { ONE } from './one.js';\nboth(ONE, { ONE }, () => import('./in/page.js'), () => import('./home.js'));\n"
            }
            "in/two.js" => {
                "import { h } from '../of-others.js';\nimport { ONE } from '../one.js';\nconst own = (ONE) => ONE;\nexport async function* two(x) { h(own, ONE); }\n"
            }
            "one.js" => "export const ONE = 1;\nconst own = 2;\nexport class Three extends Error {}\n",
            "of-others.js" => "const a = 1, b = 2;\nexport { a as h, b };\n",
            "home.js" => "import { SCRIPTS } from './scripts.js';\nexport const View = SCRIPTS;\n",
            "in/page.js" => {
                "import { ONE } from '../one.js';\nimport { four } from './four.js';\nimport { five } from './five.js';\nexport const View = four(ONE, five);\n"
            }
            "in/four.js" => "export function four() {}\n",
            "in/five.js" => "import { Three } from '../one.js';\nexport const five = Three;\n",
            _ => return None,
        };
        Some(text.to_owned())
    }

    const PLAN: [Script<'_>; 3] = [
        Script { name: "app.js", entries: &["app.js", "home.js"], kind: Kind::InPage, shares: &[] },
        Script { name: "shared.js", entries: &["in/five.js"], kind: Kind::File, shares: &[] },
        Script { name: "in.js", entries: &["in/page.js"], kind: Kind::File, shares: &["shared.js"] },
    ];

    #[test]
    fn modules_share_one_scope_in_the_order_in_which_they_are_needed() {
        let scripts = linked(&PLAN, &module).unwrap();
        let begins = "// of-others.js\nconst a$2 = 1, b$2 = 2;\n\
            // one.js\nconst ONE$3 = 1;\nconst own$3 = 2;\nclass Three$3 extends Error {}\n\
            // in/two.js\nconst own$1 = (ONE) => ONE;\nasync function* two$1(x) {\n\ta$2(own$1, ONE$3);\n}\n\
            // app.js\ntwo$1(ONE$3, { ONE: ONE$3 }, ";
        assert!(scripts[0].starts_with(begins), "{}", scripts[0]);
        for part in [
            "(import(\"./console/0VERSION0.shared.js\"), import(\"./console/0VERSION0.in.js\")).then(({ in_View: View }) => ({ View }))",
            "() => Promise.resolve({ View: View$4 })",
            "SCRIPTS$5 = { in: [\"console/0VERSION0.shared.js\", \"console/0VERSION0.in.js\"] };",
            "\nglobalThis.$ = { ...globalThis.$, a: ONE$3, b: Three$3 };\n",
        ] {
            assert!(scripts[0].contains(part), "{part} in {}", scripts[0]);
        }
    }

    #[test]
    fn a_file_takes_from_the_page_and_a_shared_file_what_is_there_and_brings_the_rest() {
        let scripts = linked(&PLAN, &module).unwrap();
        let shared = "const { b: Three$3 } = globalThis.$;\n// in/five.js\nconst five$6 = Three$3;\nexport { five$6 as in_five_five };\n";
        assert_eq!(scripts[1], shared);
        let expected = "const { a: ONE$3 } = globalThis.$;\nimport { in_five_five as five$6 } from './0VERSION0.shared.js';\n\
            // in/four.js\nfunction four$8() {}\n// in/page.js\nconst View$7 = four$8(ONE$3, five$6);\nexport { View$7 as in_View };\n";
        assert_eq!(scripts[2], expected);
    }

    #[test]
    fn a_module_or_name_that_is_not_there_is_an_error_of_the_build() {
        for (text, problem) in [
            ("import { a } from './none.js';", "none.js: is not there"),
            ("import { TWO } from './one.js';", "one.js: exports no TWO"),
            ("import * as one from './one.js';", "app.js: may import names only"),
            ("export default 1;", "app.js: may export its own names only"),
            ("import('./one.js');", "one.js: is opened, and is no entry"),
        ] {
            let plan = [Script { name: "app.js", entries: &["app.js"], kind: Kind::InPage, shares: &[] }];
            let failed = linked(&plan, &|path| if path == "app.js" { Some(text.to_owned()) } else { module(path) });
            assert_eq!(failed.err().map(|error| error.to_string()).as_deref(), Some(problem));
        }
    }

    #[test]
    fn a_sheet_keeps_its_rules_and_a_name_gets_the_version_where_it_is_an_address() {
        assert_eq!(sheet("/* All\n of it */\n\n  a { b: c; } /* d */\n"), "a { b: c; }\n");
        let text = "fetch('console/a.js'); of('a.js', './console/a.js'); <x y=\"console/a.js\">";
        let expected =
            "fetch('console/0VERSION0.a.js'); of('a.js', './console/a.js'); <x y=\"console/0VERSION0.a.js\">";
        assert_eq!(versioned(text, ["a.js"].into_iter()), expected);
    }
}
