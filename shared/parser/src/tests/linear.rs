//! Work is counted in bytes looked at, not in seconds: twice the input must not take more than twice the work.

use crate::{parse, work::looked_at};

/// Bytes looked at for each byte of the answer, at most.
const MOST: usize = 24;

fn work(answer: &str) -> usize {
    let before = looked_at();
    parse(answer);
    looked_at() - before
}

const UNITS: &[&str] = &[
    "`",
    "``",
    "``` ",
    "```\n",
    "```\r\n",
    "x ```\n",
    "x ``` ~~~\n",
    "~~~ ```",
    "````\n```\n",
    "`\n",
    " ```",
    "\n```tool",
    "```tool\n",
    "```tool f(",
    "```tool f()```\n",
    "```tool\nf()```\n",
    "```tool\nf(`\n",
    "```tool\nf(\"\n",
    "```tool\nf(/*\n",
    "~~~tool\nf(`\n",
    "~~~\n```\n",
    "~",
    "~~~ ",
    " ",
    "\n",
    "\r",
    "\r\n",
    "\t```x`",
    "(",
    "f(",
    "f(\n",
    "f({",
    "f({\n",
    "\"",
    "'",
    "\"'",
    "'\\'",
    "\\",
    "\\'",
    "\\`",
    "`\\",
    "[",
    "[\n",
    "{",
    "{a:",
    "f([",
    "f([\n",
    "/*",
    "/* ",
    "f(/*",
    "f(/*\n",
    "f() /*\n",
    "//",
    "/",
    "//\n",
    "return ",
    "return\n",
    "return return f(",
    "f(`",
    "f(`\n",
    "f(`\\`\n",
    "f(\n```x\n",
    "f(`\n```x\n",
    "f(`${",
    "f(`${\n",
    "f(`${`)",
    "f('\\u{0",
    "f('\\ud800\\ud800')\n",
    "f('\\1')\n",
    "f('\\",
    "f(1)",
    "f(1) ",
    "f(1)\n",
    "f(1);",
    "f(1)\n/**/",
    "f(x)\n",
    "f(x)",
    "a.b\n",
    "a.",
    "é",
    "é(é",
    "if (x) {\n",
    "if (x)\n  ",
    "x => {\n",
    "function\n",
    "1",
    "f(1_",
    "f(0x1",
    "f(0x1\n",
    "f(.1",
    "f(-",
    "f(-\n",
    "f(- ",
    "await ",
    "await\n",
    "f(await g(\n",
    ";",
    "=",
    "=>",
    "f(a=",
    "f(a\n",
    "f(a \n\n\n\n",
    "const ",
    "   f(\n",
    "f(   ",
    "f('a' ",
    "f('a',\n",
    "f({a:1,",
    "f({a:1,a:",
    "f(\u{a0}",
    "\u{2028}f(",
    "f(\\\n",
    "f('\\\n",
    "f('\\\r\n",
    "`\n\\\n",
    "f(\"x\\\"\n",
    "<",
    "</",
    "<!--",
    "<!-- -->\n```\n",
    "<result>\n",
    "<result></result>",
    "<result>\n```tool\n</result>\n",
    "x <pre>\n```tool\n",
    "    ```tool\n",
    "\t```\n",
    "- x\n    ```tool\n",
    "\n\n     \n    ```tool\n",
    "f(1)\nin",
    "f(1)\n```\n",
    "// \u{2028}",
    "/*\u{2028}*/",
    "x ```js\n",
    "x ```tool\n",
    "`x` ```tool\n",
    "> ```tool\n",
    "- ```tool\nf()\n```\n",
    "````tool\nf()\n```\n",
    "````tool\nf()\n```\n```\n",
    "````tool\n```tool\nf()\n```\n````\n",
    "```\n```tool\n",
    "\u{200B}",
    "\u{200B}```\n",
    " tool",
    "` tool",
    "`    tool",
    "TOOL ```\n",
    "<think>",
    "</think>",
    "</think>```\n",
    "<think>\n```tool\n</think>\n",
    "(f(",
    "(f())\n",
    "f(),",
    "f(),\n",
    "f<a",
    "f<a<",
    "f<a>(",
    "f() as a",
    "f() as a<\n",
    "f()!",
    "# ",
    "import ",
    "import x\n",
    "from x import y\n",
    "'use strict'\n",
    "'use strict'",
];

#[test]
fn work_is_linear_in_the_length() {
    for opening in
        ["", "```tool\n", "````tool\n", "```tool\nf(", "```tool\nf(`", "```js\n", "```tool\nf('", "```tool\nf({a: ["]
    {
        for unit in UNITS {
            let answer = |length: usize| opening.to_owned() + &unit.repeat(length / unit.len());
            let (short, long) = (work(&answer(8_000)), work(&answer(16_000)));
            assert!(long <= 2 * short + 1_000, "{opening:?} and {unit:?}: {short} then {long}");
            assert!(long <= MOST * 16_000, "{opening:?} and {unit:?}: {} for each byte", long / 16_000);
        }
    }
}

/// Fences that get shorter, and calls that end their block early: each block looks for an end of its own.
#[test]
fn work_is_linear_with_fences_of_every_length() {
    for (separator, closing) in [
        ("tool\n", ""),
        ("tool f()", ""),
        ("tool\nf(`\n", ""),
        ("tool f()", "same"),
        ("tool\nf(`", "same"),
        ("js\n", ""),
    ] {
        for rising in [true, false] {
            let answer = |count: usize| {
                let line = |length: usize| {
                    let marks = "`".repeat(length);
                    let end = if closing.is_empty() { "" } else { marks.as_str() };
                    format!("{marks}{separator}{end}\n")
                };
                let lengths = 3..count;
                if rising { lengths.map(line).collect::<String>() } else { lengths.rev().map(line).collect() }
            };
            let long = answer(500);
            assert!(work(&long) <= MOST * long.len(), "{separator:?}: {} for {}", work(&long), long.len());
        }
    }
}
