//! Modules of JavaScript as one, which a browser asks for once. Each becomes a function that returns the module's exports; imports
//! become constants.
//!
//! This is no parser. It relies on the form that the page's modules have: each import is one line, `import {…} from './name.js';` or
//! `import * as name from './name.js';`, and exports are declared where they are exported. Tests hold the modules to it.

use std::fmt::Write;

/// The module `entry` and its imports, each before the modules that need it. A module that `module` does not know stays an import.
pub(crate) fn linked(entry: &str, module: &impl Fn(&str) -> Option<String>) -> String {
    let mut linked = Linked { module, known: Vec::new(), imports: String::new(), modules: String::new() };
    linked.add(entry);
    format!("{}{}", linked.imports, linked.modules)
}

struct Linked<'a, F> {
    module: &'a F,
    known: Vec<String>,
    imports: String,
    modules: String,
}

impl<F: Fn(&str) -> Option<String>> Linked<'_, F> {
    fn add(&mut self, name: &str) {
        if self.known.iter().any(|known| known == name) {
            return;
        }
        self.known.push(name.to_owned());
        let Some(text) = (self.module)(name) else {
            // Writing to a string cannot fail, here and below.
            let _ = writeln!(self.imports, "import * as {} from './{name}';", constant(name));
            return;
        };
        let (mut body, mut exported) = (String::new(), Vec::new());
        for line in text.lines() {
            if let Some((names, from)) = import(line) {
                self.add(from);
                let names = names.strip_prefix("* as ").unwrap_or(names).replace(" as ", ": ");
                let _ = writeln!(body, "const {names} = {};", constant(from));
            } else if let Some(declaration) = line.strip_prefix("export ") {
                exported.extend(declared(declaration));
                let _ = writeln!(body, "{declaration}");
            } else {
                let _ = writeln!(body, "{line}");
            }
        }
        let exported = exported.join(", ");
        let _ = write!(
            self.modules,
            "// {name}\nconst {} = (() => {{\n{body}return {{ {exported} }};\n}})();\n",
            constant(name)
        );
    }
}

/// The names that a line imports, and the file that it imports them from.
fn import(line: &str) -> Option<(&str, &str)> {
    let (names, from) = line.strip_prefix("import ")?.split_once(" from './")?;
    Some((names, from.strip_suffix("';")?))
}

/// The name that a declaration declares.
fn declared(declaration: &str) -> Option<String> {
    let rest = declaration.strip_prefix("async ").unwrap_or(declaration);
    let rest =
        ["function* ", "function ", "class ", "const ", "let "].iter().find_map(|kind| rest.strip_prefix(kind))?;
    let end = rest.find(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_' && letter != '$');
    rest.get(..end.unwrap_or(rest.len())).map(str::to_owned)
}

/// The constant that holds a module's exports.
fn constant(name: &str) -> String {
    format!("${}", name.trim_end_matches(".js").replace(['-', '.'], "_"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modules_become_functions_in_the_order_in_which_they_are_needed() {
        let module = |name: &str| {
            let text = match name {
                "app.js" => {
                    "import { two as both } from './two.js';\nimport * as one from './one.js';\nboth(one.ONE);\n"
                }
                "two.js" => {
                    "import { h } from './of-others.js';\nimport { ONE } from './one.js';\nexport async function* two(x) {}\n"
                }
                "one.js" => "export const ONE = 1;\nconst own = 2;\nexport class Three extends Error {}\n",
                _ => return None,
            };
            Some(text.to_owned())
        };
        let expected = "import * as $of_others from './of-others.js';\n\
            // one.js\nconst $one = (() => {\nconst ONE = 1;\nconst own = 2;\nclass Three extends Error {}\nreturn { ONE, Three };\n})();\n\
            // two.js\nconst $two = (() => {\nconst { h } = $of_others;\nconst { ONE } = $one;\nasync function* two(x) {}\nreturn { two };\n})();\n\
            // app.js\nconst $app = (() => {\nconst { two: both } = $two;\nconst one = $one;\nboth(one.ONE);\nreturn {  };\n})();\n";
        assert_eq!(linked("app.js", &module), expected);
    }
}
