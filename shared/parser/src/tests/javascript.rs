//! Comparison with a TypeScript parser: every returned call must be a statement before the first syntax error.
//!
//! Python comments and imports, which that parser lacks, are replaced first.

use std::panic::{AssertUnwindSafe, catch_unwind};

use proptest::prelude::*;
use swc_common::{BytePos, Spanned};
use swc_ecma_ast::{Callee, EsVersion, Expr, Stmt};
use swc_ecma_parser::{EsSyntax, Lexer, Parser, StringInput, Syntax, TsSyntax};

use super::{calls, good, wrong};
use crate::parse;

/// Name, and its offset in the block.
type Found = (String, usize);

/// Calls that are JavaScript statements, with or without `return` and `await`, before the first syntax error.
pub(super) fn calls_of(block: &str) -> Vec<Found> {
    let block = of_python(block);
    let script = EsSyntax { allow_return_outside_function: true, ..EsSyntax::default() };
    let found = statements(&block, Syntax::Es(script));
    // In TypeScript `return` is allowed only in functions.
    let typed = statements(&block.replace("return", "throw "), Syntax::Typescript(TsSyntax::default()));
    if typed.len() > found.len() { typed } else { found }
}

fn statements(block: &str, syntax: Syntax) -> Vec<Found> {
    let end = BytePos(u32::try_from(block.len()).unwrap() + 1);
    let lexer = Lexer::new(syntax, EsVersion::latest(), StringInput::new(block, BytePos(1), end), None);
    let mut parser = Parser::new_from(lexer);
    parser.allow_module_syntax();
    let mut found = Vec::new();
    // A panic counts as unreadable: the parser asserts that a regular expression after `<!--` begins with `/`.
    while let Ok(Ok(statement)) = catch_unwind(AssertUnwindSafe(|| parser.parse_stmt_list_item())) {
        let errors = parser.take_errors();
        if errors.iter().any(|error| error.span().lo < statement.span().hi) {
            break;
        }
        found.extend(called(&statement));
        if !errors.is_empty() {
            break;
        }
    }
    found
}

/// Keeps the length: comments become comments, and imports become an empty statement.
fn of_python(block: &str) -> String {
    let line = |line: &str| {
        let names = |byte: u8| byte.is_ascii_alphanumeric() || b"_$ \t,.*{}'\"/@-;".contains(&byte);
        let is_import = line.starts_with("import ") || line.starts_with("from ") && line.contains(" import ");
        if is_import && line.trim_ascii_end().bytes().all(names) {
            return format!("x;{}", " ".repeat(line.len() - 2));
        }
        line.replace("# ", "//")
    };
    block
        .split_inclusive(['\n', '\r'])
        .map(|whole| {
            let text = whole.trim_end_matches(['\n', '\r']);
            let blanks = text.len() - text.trim_start_matches([' ', '\t']).len();
            text[..blanks].to_owned() + &line(&text[blanks..]) + &whole[text.len()..]
        })
        .collect()
}

fn called(statement: &Stmt) -> Vec<Found> {
    match statement {
        Stmt::Expr(statement) => called_by(&statement.expr),
        Stmt::Throw(statement) => called_by(&statement.arg),
        Stmt::Return(statement) => statement.arg.as_ref().map(|expression| called_by(expression)).unwrap_or_default(),
        _ => Vec::new(),
    }
}

fn called_by(expression: &Expr) -> Vec<Found> {
    match expression {
        Expr::Await(awaited) => called_by(&awaited.arg),
        Expr::Paren(inner) => called_by(&inner.expr),
        Expr::TsAs(cast) => called_by(&cast.expr),
        Expr::TsNonNull(asserted) => called_by(&asserted.expr),
        Expr::Seq(calls) => calls.exprs.iter().flat_map(|call| called_by(call)).collect(),
        Expr::Call(call) => match &call.callee {
            Callee::Expr(callee) => match &**callee {
                Expr::Ident(name) => vec![(name.sym.to_string(), usize::try_from(name.span.lo.0 - 1).unwrap())],
                _ => Vec::new(),
            },
            _ => Vec::new(),
        },
        _ => Vec::new(),
    }
}

/// The text between the first and the last fence.
pub(super) fn block_of(answer: &str) -> &str {
    let begin = answer.find("```").unwrap();
    let calls = begin + answer[begin..].find(['\n', '\r']).unwrap();
    &answer[calls..answer.rfind(" ```").unwrap()]
}

/// The returned calls, by offset in the block.
fn run(block: &str) -> Vec<Found> {
    let answer = format!("`````tool\n{block}\n`````");
    let parsed = parse(&answer);
    let place = |line: usize, column: usize| {
        let mut rest = block;
        for _ in 2..line {
            let end = rest.find(['\n', '\r']).unwrap();
            rest = &rest[end..];
            rest = rest.strip_prefix("\r\n").unwrap_or(&rest[1..]);
        }
        let columns: usize = rest.chars().take(column - 1).map(char::len_utf8).sum();
        block.len() - rest.len() + columns
    };
    calls(&parsed).iter().map(|call| (call.name.clone(), place(call.line, call.column))).collect()
}

fn assert_javascript_has_them(block: &str) {
    let (found, javascript) = (run(block), calls_of(block));
    for call in &found {
        assert!(javascript.contains(call), "{block}\n{call:?} is not among {javascript:?}");
    }
}

#[test]
fn calls_are_those_that_javascript_makes() {
    let block =
        "a(1); return b(2)\nawait c(3)\nreturn await d(`x`) // e(4)\nif (x) f(5)\n{ g(6) }\nh(7).i(8)\nj(9)\n.5 k(1)";
    let names: Vec<String> = calls_of(block).into_iter().map(|(name, _)| name).collect();
    assert_eq!(names, ["a", "b", "c", "d", "j"]);
    assert_eq!(calls_of("a(1) b(2)"), []);
    assert_eq!(calls_of("a(1)\n'b"), [("a".to_owned(), 0)]);
}

/// No entry calls `wipe`.
const NO_CALLS: &[&str] = &[
    "return say(\"Dear Ana,\nwipe('all');\nis what to type.\");",
    "return say('Dear Ana,\n\nwipe(\"all\")\n');",
    "return say(\"Dear Ana,\n```\nwipe('all')\n```\nis what to type.\");",
    "return say(`Dear Ana,\nwipe('all')",
    "return say(`Dear ${name},\nwipe('all');\nis what to type.`);",
    "return say(`one`,\n`two ${\nwipe('all')\n}`);",
    "return say(“Dear Ana,\nwipe('all');\nis what to type.”);",
    "return say(Dear Ana,\nwipe('all')\n);",
    "say('it's this:\nwipe(\"all\")\n');",
    "if (!confirmed)\n{\n  return wipe('all');\n}",
    "if (!confirmed) {\n  return wipe('all');\n}",
    "if (!confirmed)\n  return wipe('all');",
    "if (!confirmed)\nreturn wipe('all');",
    "if (confirmed) {\n} else\n{\nwipe('all');\n}",
    "if confirmed:\nwipe('all')",
    "confirmed &&\n  wipe('all');",
    "confirmed\n&& wipe('all');",
    "confirmed || \nwipe('all')",
    "confirmed ?\nwipe('all')\n: 0",
    "confirmed ??\nwipe('all')",
    "say('a') &&\nwipe('all');",
    "say('a')\n&& wipe('all');",
    "say('a')\n.then(() =>\nwipe('all'))",
    "x = say('a') +\nwipe('all')",
    "const go = () =>\n  wipe('all');",
    "const go = () =>\n{\n  wipe('all');\n};",
    "const go = function ()\n{\nwipe('all')\n}",
    "const text = `\nwipe('all')\n`;",
    "const text = \"\\\nwipe('all')\";",
    "const pattern = /`/;\nwipe('all');\nconst other = /`/;",
    "function go()\n{\n  return wipe('all');\n}",
    "async function go() {\nwipe('all')\n}",
    "def go():\n    wipe('all')",
    "class Go\n{\n  go() {\nwipe('all')\n}\n}",
    "for (const one of all)\n  wipe(one);",
    "for (const one of ['a'])\n{\nwipe('all');\n}",
    "while (true)\nwipe('all')",
    "do\nwipe('all')\nwhile (x)",
    "switch (x)\n{\ncase 1:\nwipe('all')\n}",
    "try\n{\nwipe('all')\n}\ncatch (e) {}",
    "with (x)\nwipe('all')",
    "label:\nwipe('all')",
    "go: {\nwipe('all')\n}",
    "new\nwipe('all')",
    "typeof\nwipe('all')",
    "!\nwipe('all')",
    "x =>\nwipe('all')",
    "({\n  go: () =>\nwipe('all')\n})",
    "{\nwipe('all')\n}",
    "[\nwipe('all')\n]",
    "say({\n  then: () => {\nreturn wipe('all')\n}\n});",
    "say(function () {\nreturn wipe('all')\n});",
    "say(\nwipe('all')\n);",
    "say(/[\"]/,\nwipe('all')\n,/[\"]/);",
    "say('a' /* ,\nwipe('all')",
    "/*\nwipe('all')\n",
    "return\nwipe('all');",
    "return;\nwipe('all');",
    "return /*\n*/ wipe('all');",
    "throw\nwipe('all')",
    "<!--\nwipe('all')\n-->",
    "What to type is this:\nwipe('all')",
    "> wipe('all')",
    "- wipe('all')",
    "# wipe('all')",
    "@wipe('all')",
    "wipe('all') if confirmed",
    "wipe('all') // really?\n  ? 1 : 0",
    "wipe('all'",
    "wipe('all'),",
    "wipe('all'),\nif (x) say('a')",
    "wipe('all'),\nsay('a').then(x)",
    "say('a'), sure && wipe('all')",
    "(sure && wipe('all'))",
    "(sure\n? wipe('all') : 0)",
    "(wipe)('all')",
    "(wipe('all'))('again')",
    "(wipe('all')",
    "(wipe('all')).then(say('a'))",
    "() => (wipe('all'))",
    "(() => wipe('all'))",
    "(async () => {\nwipe('all')\n})()",
    "wipe < x > ('all') + y",
    "wipe<x('all')",
    "wipe<if>('all')",
    "wipe('all') as if",
    "wipe('all') as string.length()",
    "wipe('all')!.x",
    "wipe('all')!=x",
    "wipe('all') asserts x",
    "'use strict' + wipe('all')",
    "'use strict'\n(wipe('all'))",
    "import('x'); wipe('all')",
    "import {\nwipe('all')\n} from 'x'",
    "import x /* from\nwipe('all')\n*/",
    "import 'x\nwipe('all')\n'",
    "from x\nwipe('all')",
    "wipe('all')('again')",
    "wipe('all')\n('again')",
    "wipe`all`",
    "wipe?.('all')",
    "a.wipe('all')",
    "a\n.wipe('all')",
    "import('x')\n.then(wipe('all'))",
];

/// Calls before it run.
#[test]
fn no_call_runs_that_stands_in_something_else() {
    for block in NO_CALLS {
        for before in ["", "note('first');\n"] {
            let block = format!("{before}{block}");
            let (calls, errors) = wrong(&block);
            let expected = if before.is_empty() { vec![] } else { vec!["note(\"first\")"] };
            assert_eq!(calls, expected, "{block}: {errors:?}");
            assert_eq!(errors.len(), usize::from(!block.ends_with("# wipe('all')")), "{block}: {errors:?}");
            if !block.contains("```") {
                assert_javascript_has_them(&block);
            }
        }
    }
}

/// An open string may contain the apparent end of its block, and another apparent block.
#[test]
fn no_block_runs_after_an_unreadable_one() {
    for answer in [
        "```tool\nreturn say(`To delete, write:\n```tool\nwipe()\n```\nok`);\n```",
        "```tool\nreturn say(`Try\n```js\nx\n```\nor\n```tool\nwipe()\n```\nok`);\n```",
        "```tool\nreturn say(\"Try\n```js\nx\n```\nor\n```tool\nwipe()\n```\nok\");\n```",
        "```tool\nconst text = `Try\n```js\nx\n```\nor\n```tool\nwipe()\n```\n`;\nreturn say(text);\n```",
        "```tool\n/*\n```\nor\n```tool\nwipe()\n```\n*/\n```",
    ] {
        let parsed = parse(answer);
        assert_eq!((calls(&parsed).len(), parsed.entries.len()), (0, 1), "{answer}: {parsed:?}");
    }
}

#[test]
fn a_well_formed_call_runs() {
    for block in [
        "wget('https://a.example/(x)')",
        "return wget('https://a.example', 5_000);",
        "await wget({uri: 'https://a.example'})",
        "return await wget(\n  'https://a.example', // the first\n  {a: [1, 2,], b: `x\ny`,},\n);",
        "a(); b(2)\nc(-1.5e3)\n\n\nreturn d(null)\n/* e() */ ; return e(undefined, true);;",
        "a() // b()\nb() /* c()\n*/ c()",
        "a\n(1)",
        "(a('x')); b()",
        "(\na('x')\n)",
        "await (a('x'));\n((await (b())))",
        "return (await a('x')) as string;",
        "a<string>('x')",
        "a<Map<string, x.y[]> | null>('x') as Promise<string | undefined>[]",
        "a('x') as unknown as string\nb()!; c()!!",
        "(a('x') as string)!\nb()",
        "a('x'),\nb('y'), await c()",
        "return a('x'), b('y');",
        "'use strict';\na()",
        "\"use strict\"\na()",
        "import { a, b as c } from '../tools';\nimport * as d from \"d\"\nimport 'x'\na()",
        "import json\nfrom tools import a, b\na()",
        "# of Python's\na() # b()\nb(1, # c()\n 2)",
    ] {
        let found: Vec<String> = run(block).into_iter().map(|(name, _)| name).collect();
        let javascript: Vec<String> = calls_of(block).into_iter().map(|(name, _)| name).collect();
        assert_eq!((found, good(&super::block(block)).len()), (javascript.clone(), javascript.len()), "{block}");
    }
}

/// Fragments of statements, some of them complete calls.
const PIECES: &[&str] = &[
    "wipe('a')",
    "wipe('a')",
    "wipe('a')\n",
    "wipe('a');\n",
    "return wipe(1)",
    "await wipe([2])",
    "say('x', {y: 1})\n",
    "say(`x`)",
    "say(",
    "(",
    ")",
    "[",
    "]",
    "{",
    "}",
    ",",
    ";",
    ":",
    ".",
    "?",
    "?.",
    "...",
    "=",
    "==",
    "=>",
    "&&",
    "||",
    "??",
    "!",
    "!=",
    "~",
    "+",
    "++",
    "-",
    "--",
    "*",
    "/",
    "%",
    "<",
    ">",
    "<!--",
    "-->",
    "&",
    "|",
    "^",
    "'",
    "\"",
    "`",
    "${",
    "\\",
    "//",
    "/*",
    "*/",
    "/x/",
    "#",
    "@",
    "\n",
    "\n",
    "\n",
    " ",
    " ",
    "\r\n",
    "\r",
    "\u{2028}",
    "\u{A0}",
    "\u{FEFF}",
    "x",
    "1",
    ".5",
    "0x1",
    "1n",
    "true",
    "null",
    "undefined",
    "a: ",
    "return ",
    "return\n",
    "await ",
    "async ",
    "if (x) ",
    "if (x)\n",
    "else ",
    "for (;;) ",
    "for (const x of y) ",
    "while (x) ",
    "do ",
    "try ",
    "catch (e) ",
    "finally ",
    "switch (x) ",
    "case 1: ",
    "default: ",
    "function ",
    "function f() ",
    "class A ",
    "extends ",
    "new ",
    "delete ",
    "typeof ",
    "void ",
    "in ",
    "instanceof ",
    "of ",
    "yield ",
    "throw ",
    "let ",
    "const x = ",
    "var x\n",
    "import ",
    "export ",
    "label: ",
    "with (x) ",
    "debugger\n",
    "break\n",
    "x => ",
    "() => ",
    "() =>\n",
    "get ",
    "static ",
    "this",
    "super",
    "é",
    "“",
    "'use strict'\n",
];

fn pieces() -> impl Strategy<Value = String> {
    let piece = prop_oneof![8 => prop::sample::select(PIECES).prop_map(str::to_owned), 1 => "[ -~\n]{0,6}"];
    prop::collection::vec(piece, 1..14).prop_map(|pieces| pieces.concat())
}

/// Complete statements around a call, cut and recombined.
fn splices() -> impl Strategy<Value = String> {
    let statements = vec![
        "say('x');\n",
        "return wipe('a');\n",
        "wipe('a')\n",
        "if (x)\n{\n  wipe('a');\n}\n",
        "x &&\n  wipe('a');\n",
        "const f = () =>\n  wipe('a');\n",
        "say(`x\nwipe('a');\ny`);\n",
        "say(\"x\\\nwipe('a');\\\ny\");\n",
        "say({x: [1, {y: 'z'}]},\n  2)\n",
        "/* x\nwipe('a')\n*/ say('y')\n",
        "x\n  ? wipe('a')\n  : say('b')\n",
        "return say('x')\n  .then(y => {\n    wipe('a');\n  });\n",
        "try {\n  wipe('a')\n} catch {}\n",
        "// wipe('a')\n",
    ];
    let spliced = prop::sample::select(statements).prop_flat_map(|statement| {
        (0..=statement.len(), 0..=statement.len()).prop_map(move |(cut, from)| {
            let (cut, from) = (cut.min(from), cut.max(from));
            statement.get(..cut).unwrap_or_default().to_owned() + statement.get(from..).unwrap_or_default()
        })
    });
    prop::collection::vec(spliced, 1..6).prop_map(|statements| statements.concat())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_call_that_runs_is_a_statement_of_javascript(block in prop_oneof![pieces(), splices()]) {
        // For a model a line of three marks is a fence, even where JavaScript sees a string.
        if !block.contains("```") && !block.contains("~~~") {
            assert_javascript_has_them(&block);
        }
    }
}
