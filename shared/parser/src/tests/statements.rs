use super::{block, brief, calls, good, wrong};
use crate::parse;

#[test]
fn a_parenthesis_in_an_argument() {
    let answer = block(r#"return wget("https://en.wikipedia.org/wiki/Rust_(programming_language)", 5000);"#);
    assert_eq!(good(&answer), [r#"wget("https://en.wikipedia.org/wiki/Rust_(programming_language)", 5000)"#]);
}

#[test]
fn two_calls_in_one_block() {
    let two = ["wget(\"https://a.example\")", "wget(\"https://b.example\")"];
    assert_eq!(good(&block("return wget('https://a.example');\nreturn wget('https://b.example');")), two);
    assert_eq!(good(&block("return wget('https://a.example'); return wget('https://b.example')")), two);
    assert_eq!(good(&block("wget('https://a.example')\n\n  wget('https://b.example')")), two);
}

#[test]
fn comments() {
    let answer = block(
        "// first the page (with \"quotes\" and `ticks`)\n/* and\n   nothing else */ return /* now */ wget( // here\n'a' /*, 'b' */ , /**/ 2\n) // done\n; // over",
    );
    assert_eq!(good(&answer), ["wget(\"a\", 2)"]);
}

#[test]
fn await_before_a_call() {
    for call in ["await f(1)", "return await f(1);", "return\tawait\nf (1)", "await\nf\n(1)", "await f(1);;"] {
        assert_eq!(good(&block(call)), ["f(1)"], "{call}");
    }
}

#[test]
fn objects_and_back_ticks() {
    assert_eq!(good(&block("f({'a':1})")), [r#"f({"a":1})"#]);
    assert_eq!(good(&block("f({key:'v'})")), [r#"f({"key":"v"})"#]);
    assert_eq!(good(&block("f(`a\n\"b\"`)")), [r#"f("a\n\"b\"")"#]);
}

#[test]
fn escapes() {
    assert_eq!(good(&block(r#"f("\n")"#)), [r#"f("\n")"#]);
    assert_eq!(good(&block(r#"f("a\\", 2)"#)), [r#"f("a\\", 2)"#]);
}

#[test]
fn numbers_and_trailing_commas() {
    assert_eq!(good(&block("f(1e3, .5, -1,)")), ["f(1000, 0.5, -1)"]);
    assert_eq!(good(&block("f([1, 2,], {a: 1,},)")), [r#"f([1,2], {"a":1})"#]);
}

#[test]
fn names_are_identifiers() {
    for name in ["wget", "_private", "$", "llm_classify", "größe", "délete", "名前", "interface", "a1"] {
        assert_eq!(good(&block(&format!("return {name}()"))), [format!("{name}()")], "{name}");
    }
}

#[test]
fn a_call_is_where_its_name_stands() {
    let parsed = parse("é\r\n\r```tool\r\n  return ä('é'); b(2)\n```\n~~~tool\nawait c()\n~~~");
    let places: Vec<_> = calls(&parsed).iter().map(|call| (call.name.clone(), call.line, call.column)).collect();
    assert_eq!(places, [("ä".into(), 4, 10), ("b".into(), 4, 18), ("c".into(), 7, 7)]);
    assert_eq!(parsed.blocks, 2);
}

#[test]
fn a_statement_that_is_not_a_call_ends_the_reading() {
    for (statement, expected) in [
        ("const x = await f(1);", "without a variable"),
        ("x = f(1)", "without a variable"),
        ("let {a, b} = f(1)", "without a variable"),
        ("[f(1), f(2)]", "not in a list"),
        ("return [\n  f(1),\n  f(2),\n];", "not in a list"),
        ("Promise.all([f(1), f(2)])", "run side by side"),
        ("await Promise.all([\n  f(1),\n  f(2)\n]);", "run side by side"),
        ("a.b(1)", "`a` has no members"),
        ("a?.b(1)", "`a` has no members"),
        ("tools['f'](1)", "`tools` has no members"),
        ("f(1).then(x => f(x))", "`;` or the end of the line"),
        ("f(1) + f(2)", "`;` or the end of the line"),
        ("if (x) f(1);", "no `if`"),
        ("if (x) {\n  return f(1);\n}", "no `if`"),
        ("if (x)\n  return f(1);", "no `if`"),
        ("if x:\n    f(1)\n    f(2)", "no `if`"),
        ("for (const a of [1, 2]) { f(a); f(2); }", "no `for`"),
        ("try {\n  return f(1);\n} catch (e) {\n  return f(2);\n}", "no `try`"),
        ("function go() {\n  return f(1);\n}", "no `function`"),
        ("async function go() {\n  return f(1);\n}", "no `async`"),
        ("const go = () => {\n  return f(1);\n};", "without a variable"),
        ("x => { return f(1) }", "functions are not executed"),
        ("() => f(1);", "functions are not executed"),
        ("{\"name\": \"f\", \"arguments\": {\"a\": 1}}", "not an object"),
        ("f", "`(` and arguments after `f`"),
        ("return;", "a call"),
        ("return\nf(1);", "a call on the line of its `return`"),
        ("return /*\n*/ f(1);", "a call on the line of its `return`"),
        ("delete('a')", "no `delete`"),
        ("this('a')", "no `this`"),
        ("import('a')", "no `import`"),
        ("await await f(1)", "no `await`"),
        ("return f(1) return f(2)", "`;` or the end of the line"),
        ("f(1)\n  .then(f(2))", "`;` or the end of the line"),
        ("f(1)\n(2)", "`;` or the end of the line"),
        ("f(1)\n[2]", "`;` or the end of the line"),
        ("f(1)\n`2`", "`;` or the end of the line"),
        ("f(1)\n/2/g", "`;` or the end of the line"),
        ("f(1)\n- 2", "`;` or the end of the line"),
        ("f(1)\n&& f(2)", "`;` or the end of the line"),
        ("f(1)\n, f(2) + 1", "`;` or the end of the line"),
        ("f(1),", "no `return`"),
        ("(f(1)", "`)` behind the call"),
        ("(f(1), f(2))", "`)` behind the call"),
        ("f(1) as 5", "the name of a type"),
        ("f<string, >('a')", "the name of a type"),
        ("f<string ('a')", "`>` behind the type"),
        ("import('a')", "no `import`"),
        ("import {", "no `import`"),
        ("'use strict' + f(1)", "`;` or the end of the line"),
        ("f(1)\nin f", "`;` or the end of the line"),
        ("f(1) /* not closed", "`*/` at the end of the comment"),
        ("I fetch the page, don't I?", "`(` and arguments after `I`"),
        ("'text'", "a call"),
        ("f(1))", "`;` or the end of the line"),
        ("f`x`", "`(` and arguments after `f`"),
        ("new f(1)", "no `new`"),
    ] {
        let (calls, errors) = wrong(&format!("good(1);\n{statement}\nreturn good(2);"));
        assert_eq!(calls, ["good(1)"], "{statement}: {errors:?}");
        assert_eq!(errors.len(), 1, "{statement}: {errors:?}");
        assert!(errors[0].contains(expected), "{statement}: {errors:?}");
    }
}

#[test]
fn one_statement_in_the_wrong_makes_one_error() {
    for (statement, column, expected) in [
        ("f('a' timeoutMs: 5)", 7, "in the call of f, expected `,` or `)` after an argument, found `timeoutMs: 5)`"),
        ("f('a'", 0, "`,` or `)` after an argument, found `return good(2);`"),
        ("f({a: 1", 0, "`,` or `}` after a member of an object, found `return good(2);`"),
        ("f([1, 2", 0, "`,` or `]` after an item of a list, found `return good(2);`"),
        ("f({a: [1, {b: 2}, c: 3]});", 19, "`c` is a name"),
        ("f(1)\n  .then((x) => {\n    return f(x);\n  });", 0, "`;` or the end of the line"),
        ("f('a, {b: [1);", 3, "`'` at the end of the text, before the end of the line"),
        ("f(\"it's\", 'it's')", 15, "`,` or `)` after an argument: within a text, `'` is written `\\'`, found `s')`"),
        ("f({\n  a: g(1),\n  b: 2,\n})", 0, "`g(…)` is a call"),
        ("f(\n  g(1),\n  h(2)\n)", 0, "`g(…)` is a call"),
        ("f(() => {\n  return g(1);\n});", 3, "functions and parentheses"),
        ("f({cb: x, then: () => { return g(1) }});", 8, "`x` is a name"),
        ("f({cb() { return g(1) }});", 6, "no methods"),
        ("f(function () { return g(1) })", 3, "functions are not executed"),
        ("f(\"x\" + y, {a: (1)})", 7, "nothing is computed"),
        ("f(`${x} ; ) return`, 1)", 4, "without `${…}`"),
    ] {
        let (calls, errors) = wrong(&format!("good(1);\n{statement}\nreturn good(2);"));
        assert_eq!(calls, ["good(1)"], "{statement}: {errors:?}");
        assert_eq!(errors.len(), 1, "{statement}: {errors:?}");
        assert!(errors[0].contains(expected), "{statement}: {errors:?}");
        if column > 0 {
            assert!(errors[0].starts_with(&format!("line 3, column {column}: ")), "{statement}: {errors:?}");
        }
    }
}

#[test]
fn a_line_that_cannot_carry_a_call_on_leaves_it_be() {
    for behind in ["++x", "--x", "!x", "~x", "@", "#", "\"x\"", "1", "{ x }", ")", "]", "}", ":", "index", "…", "#note"]
    {
        let (calls, errors) = wrong(&format!("f(1)\n{behind}"));
        assert_eq!((calls, errors.len()), (vec!["f(1)".to_owned()], 1), "{behind}");
    }
    assert_eq!(good(&block("f(1)\nindex(2)\ninstanceOf(3)")), ["f(1)", "index(2)", "instanceOf(3)"]);
}

#[test]
fn ends_of_lines_are_those_of_javascript() {
    assert_eq!(good(&block("f(1)\u{2028}g(2) /*\u{2029}*/ h(3) /*\n*/ i(4)")), ["f(1)", "g(2)", "h(3)", "i(4)"]);
    // Except in a comment, which ends where a reader sees its end.
    assert_eq!(good(&block("f(1) // one\u{2028}g(2)\nh(3)")), ["f(1)", "h(3)"]);
    assert_eq!(wrong("f(1)\u{85}g(2)").0, Vec::<String>::new());
}

#[test]
fn a_prose_answer_has_nothing() {
    let parsed = parse("I would call `wget(\"x\")`, as in\n\n    return wget(\"x\");\n\nor not. ``` tool ```");
    assert_eq!(parsed, crate::Parsed::default());
    assert_eq!(brief(&parse("")), Vec::<String>::new());
}
