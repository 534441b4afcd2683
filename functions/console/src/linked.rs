//! Modules of JavaScript as one, which a browser asks for once. Each becomes a function that returns the module's exports; imports
//! become constants.
//!
//! This is no parser. It relies on the form that the page's modules have: each import is one line, `import {…} from './name.js';` or
//! `import * as name from './name.js';`, a page that is loaded when it is opened is named as `import('./folder/name.js')`, and exports
//! are declared where they are exported. Tests hold the modules to it.

use std::{collections::BTreeMap, fmt::Write};

/// The scripts by the name that browsers ask for: the shell, what some pages `share`, and each page that the shell imports
/// when the page is opened.
pub(crate) fn scripts(entry: &str, share: &str, module: &impl Fn(&str) -> Option<String>) -> BTreeMap<String, String> {
    let shell = linked(entry, &[], true, module);
    let known = [(entry.to_owned(), shell.modules)];
    let shared = linked(share, &known, true, module);
    let [shell_modules] = known;
    let known = [shell_modules, (served(share), shared.modules)];
    let mut scripts: BTreeMap<String, String> =
        shell.opened.iter().map(|page| (served(page), linked(page, &known, false, module).text)).collect();
    scripts.insert(entry.to_owned(), shell.text);
    scripts.insert(served(share), shared.text);
    scripts
}

/// The script in the page itself, from where the others are below `console/`.
pub(crate) fn sign_in(entry: &str, module: &impl Fn(&str) -> Option<String>) -> String {
    let text = linked(entry, &[], false, module).text;
    let script = text.rsplit_once("export ").map_or(&*text, |(script, _)| script);
    script.replace("import('./", "import('./console/")
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

/// The text with the version in the name of each file: the bytes at such an address never change.
pub(crate) fn versioned(text: &str, names: &[String], version: &str) -> String {
    names.iter().fold(text.to_owned(), |text, name| {
        ["'./", "'./console/", "'console/", "\"console/"].iter().fold(text, |text, before| {
            let end = if before.starts_with('"') { '"' } else { '\'' };
            text.replace(&format!("{before}{name}{end}"), &format!("{before}{version}.{name}{end}"))
        })
    })
}

struct Linked {
    text: String,
    /// The paths of the modules in it.
    modules: Vec<String>,
    /// The paths of the modules that it imports when they are needed.
    opened: Vec<String>,
}

/// The module `entry` and its imports, each before the modules that need it. A module of one of the `known` scripts is
/// imported from there; a module unknown to `module` stays an import. A script that `shares` exports its modules,
/// another one the names that its entry exports.
fn linked(
    entry: &str,
    known: &[(String, Vec<String>)],
    shares: bool,
    module: &impl Fn(&str) -> Option<String>,
) -> Linked {
    let mut linker = Linker {
        module,
        scripts: known,
        known: Vec::new(),
        modules: Vec::new(),
        opened: Vec::new(),
        imports: String::new(),
        text: String::new(),
    };
    let names = linker.add(entry);
    let Linker { modules, opened, imports, text, .. } = linker;
    let exports = if shares {
        let constants: Vec<String> = modules.iter().map(|path| constant(path)).collect();
        format!("export {{ {} }};\n", constants.join(", "))
    } else {
        format!("export const {{ {} }} = {};\n", names.join(", "), constant(entry))
    };
    Linked { text: format!("{imports}{text}{exports}"), modules, opened }
}

/// The name under which a page's script is asked for: routes have one part below `console/`.
fn served(path: &str) -> String {
    path.replace('/', "-")
}

struct Linker<'a, F> {
    module: &'a F,
    scripts: &'a [(String, Vec<String>)],
    known: Vec<String>,
    modules: Vec<String>,
    opened: Vec<String>,
    imports: String,
    text: String,
}

impl<F: Fn(&str) -> Option<String>> Linker<'_, F> {
    /// The names that the module exports.
    fn add(&mut self, path: &str) -> Vec<String> {
        if self.known.iter().any(|known| known == path) {
            return Vec::new();
        }
        self.known.push(path.to_owned());
        let known = self.scripts.iter().find(|(_, modules)| modules.iter().any(|known| known == path));
        if let Some((script, _)) = known {
            // Writing to a string cannot fail, here and below.
            let _ = writeln!(self.imports, "import {{ {} }} from './{script}';", constant(path));
            return Vec::new();
        }
        let Some(text) = (self.module)(path) else {
            let _ = writeln!(self.imports, "import * as {} from './{path}';", constant(path));
            return Vec::new();
        };
        let (mut body, mut exported) = (String::new(), Vec::new());
        for line in without_comments(&text) {
            if let Some((names, from)) = import(line) {
                let from = resolved(path, from);
                self.add(&from);
                let names = names.strip_prefix("* as ").unwrap_or(names).replace(" as ", ": ");
                let _ = writeln!(body, "const {names} = {};", constant(&from));
                continue;
            }
            let line = self.opening(path, line);
            if let Some(declaration) = line.strip_prefix("export ") {
                exported.extend(declared(declaration));
                let _ = writeln!(body, "{declaration}");
            } else {
                let _ = writeln!(body, "{line}");
            }
        }
        let names = exported.join(", ");
        let _ =
            write!(self.text, "// {path}\nconst {} = (() => {{\n{body}return {{ {names} }};\n}})();\n", constant(path));
        self.modules.push(path.to_owned());
        exported
    }

    /// The line with the name that a page is served under in place of its path.
    fn opening(&mut self, path: &str, line: &str) -> String {
        const OPENS: &str = "import('";
        let Some((before, rest)) = line.split_once(OPENS) else { return line.to_owned() };
        let Some((from, after)) = rest.split_once('\'') else { return line.to_owned() };
        let opened = resolved(path, from);
        let name = served(&opened);
        self.opened.push(opened);
        format!("{before}{OPENS}./{name}'{after}")
    }
}

/// The names that a line imports, and the file that it imports them from.
fn import(line: &str) -> Option<(&str, &str)> {
    let (names, from) = line.strip_prefix("import ")?.split_once(" from '")?;
    Some((names, from.strip_suffix("';")?))
}

/// The path that a module means by an address.
fn resolved(module: &str, address: &str) -> String {
    let mut parts: Vec<&str> = module.split('/').collect();
    parts.pop();
    for part in address.split('/') {
        match part {
            "." => {}
            ".." => {
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    parts.join("/")
}

/// The lines that are no comment as a whole, without indentation: browsers need neither.
fn without_comments(text: &str) -> impl Iterator<Item = &str> {
    let mut within = false;
    text.lines().map(str::trim).filter(move |line| {
        let begins = line.starts_with("/**");
        let comment = within || begins || line.starts_with("// ");
        within = (within || begins) && !line.ends_with("*/");
        !comment && !line.is_empty()
    })
}

fn declared(declaration: &str) -> Option<String> {
    let rest = declaration.strip_prefix("async ").unwrap_or(declaration);
    let rest =
        ["function* ", "function ", "class ", "const ", "let "].iter().find_map(|kind| rest.strip_prefix(kind))?;
    let end = rest.find(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_' && letter != '$');
    rest.get(..end.unwrap_or(rest.len())).map(str::to_owned)
}

/// The constant that holds a module's exports.
fn constant(path: &str) -> String {
    format!("${}", path.trim_end_matches(".js").replace(['-', '.', '/'], "_"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn module(path: &str) -> Option<String> {
        let text = match path {
            "app.js" => {
                "import { two as both } from './in/two.js';\nimport * as one from './one.js';\nboth(one.ONE, () => import('./in/page.js'));\n"
            }
            "in/two.js" => {
                "import { h } from '../of-others.js';\nimport { ONE } from '../one.js';\nexport async function* two(x) {}\n"
            }
            "one.js" => {
                "// One.\n\n/**\n * It.\n */\nexport const ONE = 1;\n/** Own. */\nconst own = 2;\nexport class Three extends Error {}\n"
            }
            "in/page.js" => {
                "import { ONE } from '../one.js';\nimport { four } from './four.js';\nexport const View = four(ONE);\n"
            }
            "in/four.js" => "import { FIVE } from './five.js';\nexport function four() {}\n",
            "in/five.js" => "import { ONE } from '../one.js';\nexport const FIVE = ONE + 4;\n",
            "in/shared.js" => "import * as five from './five.js';\n",
            _ => return None,
        };
        Some(text.to_owned())
    }

    #[test]
    fn the_sign_in_opens_the_shell_below_console_and_exports_nothing() {
        let text = sign_in("in/sign_in.js", &|path| match path {
            "in/sign_in.js" => Some("import { ONE } from '../one.js';\nimport('../app.js', ONE);\n".to_owned()),
            path => module(path),
        });
        assert!(
            text.ends_with("const { ONE } = $one;\nimport('./console/app.js', ONE);\nreturn {  };\n})();\n"),
            "{text}"
        );
    }

    #[test]
    fn a_sheet_keeps_its_rules_and_a_name_gets_the_version_where_it_is_an_address() {
        assert_eq!(sheet("/* All\n of it */\n\n  a { b: c; } /* d */\n"), "a { b: c; }\n");
        let text =
            "import './a.js'; fetch('console/a.js'); of('a.js', './b/a.js', './console/a.js'); <x y=\"console/a.js\">";
        let expected = "import './7.a.js'; fetch('console/7.a.js'); of('a.js', './b/a.js', './console/7.a.js'); <x y=\"console/7.a.js\">";
        assert_eq!(versioned(text, &["a.js".to_owned()], "7"), expected);
    }

    #[test]
    fn modules_become_functions_in_the_order_in_which_they_are_needed() {
        let expected = "import * as $of_others from './of-others.js';\n\
            // one.js\nconst $one = (() => {\nconst ONE = 1;\nconst own = 2;\nclass Three extends Error {}\nreturn { ONE, Three };\n})();\n\
            // in/two.js\nconst $in_two = (() => {\nconst { h } = $of_others;\nconst { ONE } = $one;\nasync function* two(x) {}\nreturn { two };\n})();\n\
            // app.js\nconst $app = (() => {\nconst { two: both } = $in_two;\nconst one = $one;\nboth(one.ONE, () => import('./in-page.js'));\nreturn {  };\n})();\n\
            export { $one, $in_two, $app };\n";
        let shell = linked("app.js", &[], true, &module);
        assert_eq!(shell.text, expected);
        assert_eq!(shell.opened, ["in/page.js"]);
    }

    #[test]
    fn a_page_takes_from_the_shell_and_the_shared_script_what_is_there_and_brings_the_rest() {
        let scripts = scripts("app.js", "in/shared.js", &module);
        assert_eq!(scripts.keys().collect::<Vec<_>>(), ["app.js", "in-page.js", "in-shared.js"]);
        let shared = "import { $one } from './app.js';\n\
            // in/five.js\nconst $in_five = (() => {\nconst { ONE } = $one;\nconst FIVE = ONE + 4;\nreturn { FIVE };\n})();\n\
            // in/shared.js\nconst $in_shared = (() => {\nconst five = $in_five;\nreturn {  };\n})();\n\
            export { $in_five, $in_shared };\n";
        assert_eq!(scripts["in-shared.js"], shared);
        let expected = "import { $one } from './app.js';\nimport { $in_five } from './in-shared.js';\n\
            // in/four.js\nconst $in_four = (() => {\nconst { FIVE } = $in_five;\nfunction four() {}\nreturn { four };\n})();\n\
            // in/page.js\nconst $in_page = (() => {\nconst { ONE } = $one;\nconst { four } = $in_four;\nconst View = four(ONE);\nreturn { View };\n})();\n\
            export const { View } = $in_page;\n";
        assert_eq!(scripts["in-page.js"], expected);
    }
}
