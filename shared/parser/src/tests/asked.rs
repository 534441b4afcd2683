//! Quoted and unquoted blocks. `§` stands for a block that calls `f(1)`.

use super::{brief, good};
use crate::parse;

const BLOCK: &str = "```tool\nreturn f(1);\n```";

const QUOTED: &[&str] = &[
    // Elements of any name.
    "<details>\n§\n</details>",
    "<details open>\n<summary>How it would look</summary>\n\n§\n\n</details>",
    "<example>\n§\n</example>",
    "<example>Before:\n\n§\n\nafter</example>",
    "<code>\n§\n</code>",
    "Like so: <code>\n§\n</code>",
    "<scratchpad>\nI could do this:\n§\n</scratchpad>\nBut I will not.",
    "<plan>\n§\n</plan>",
    "<my-own.element_2 a=\"b\">\n§\n</my-own.element_2>",
    "<xs:note>\n§\n</xs:note>",
    "<DETAILS>\n§\n</details>",
    "<div><div></div>\n§\n</div>",
    "<div>\n<div>\n</div>\n§\n</div>",
    "<div\n  class=\"a\">\n§\n</div>",
    "<tr><td>\n§\n</td></tr>",
    "<q>\n§\n</q>",
    "<b>Never do this: <i>\n§\n</i></b>",
    "<details>\n```html\n</details>\n```\n§\n</details>",
    "<details>\nIt ends with `</details>`.\n§\n</details>",
    "<details>\n<!-- </details> -->\n§\n</details>",
    "<a><b>\n</a>\n§\n</b>",
    "<scratchpad>\n§\nand so on",
    "Hm.\n\n<analysis>\n\n§",
    "<example>\n```js\nf(1)\n```\n§\n</example>",
    "<quote>\n§\n§\n</quote>",
    "1. <details>\n\n   §\n\n   </details>",
    "<br><example>\n§\n</example>",
    "<template>\n§\n</template><template>\n</template>",
    // Sections without a name.
    "<![CDATA[\n§\n]]>",
    "It says <![CDATA[\n§\n]]> there",
    "<![CDATA[\n§\n",
    "<!--\n§\n-->",
    "<!-- a --><!-- b\n§\n-->",
    "<?php\n§\n?>",
    // Quotation marks.
    "\"§\"",
    "He wrote: \"§\"",
    "\"\n§\n\"",
    "The page says: \"To clean up, run\n§\nand wait.\"",
    "The page says: \"To clean up, run\n\n§\n\nand wait.\" I will not.",
    "\"\"\"\n§\n\"\"\"",
    "'§'",
    "“§”",
    "He wrote “run\n§\nnow”.",
    "„Bitte\n§\nausführen“, steht da.",
    "« Faites\n§\nmaintenant »",
    "»Tu\n§\ndas«",
    "‹\n§\n›",
    "「\n§\n」",
    "『\n§\n』",
    "He says “see «a» and\n§\nthen”.",
    // Struck out.
    "~~§~~",
    "~~\n§\n~~",
    "~~I wanted to run\n§\nbut no.~~",
    "~~ Old:\n\n§\n\n~~ New: nothing.",
    // Fences.
    "```\nFor example:\n§\n```",
    "```\n§\nis how it is written\n```",
    "```\n# how to\n\n§\n```\n",
    "```\n§\n§\nand so on\n```",
    "~~~\nFor example:\n§\n~~~",
    "````\nFor example:\n§\n````",
    "````markdown\n§\n````",
    "```markdown\n§",
    "```text\nFor example:\n§\n```",
    "~~~~ \n§\n~~~~",
    "`` § ``",
    "Write it as `` ```tool\nreturn f(1);\n``` ``.",
    // Marks of quotations in lists.
    "- > ```tool\n  > return f(1);\n  > ```",
    "- > ```tool\nreturn f(1);\n```",
    "1. > - ```tool\nreturn f(1);\n```",
    "> ```tool\n> return f(1);\n> ```",
    // Comments in the block, as a reader sees them.
    "```tool\n// never do this:\u{2028}return f(1);\n```",
    "```tool\n// never do this:\u{2029}return f(1);\n```",
    "```tool\n// never do this:\u{b}return f(1);\n```",
    "```tool\n// never do this:\u{c}return f(1);\n```",
    "```tool\n// never do this:\u{85}return f(1);\n```",
    "```tool\n# never do this:\u{2028}return f(1);\n```",
    "```tool\n/* never do this:\u{2028}return f(1);\n*/\n```",
    // Thoughts.
    "I could:\n§\nBut no.\n</think>",
    "§\n</think>\nNothing to do.",
    "§\nwrite `</think>`\n</think>",
    "<think>\n§\n</think>",
    "<thinking>\nA <b>bold\n§\n</thinking>",
    "```tool\nreturn f(1)\nso I say </think>\n```\n",
];

const ASKED: &[&str] = &[
    "§",
    "I fetch it.\n\n§",
    "§\n\nI wait for the result.",
    // Closed elements, or none.
    "<details>\n<summary>Why</summary>\nBecause.\n</details>\n\n§",
    "<p>I fetch it.</p>\n§",
    "<p>I fetch it.\n§",
    "One line<br>\nanother<br/>\n§",
    "<br>\n§",
    "<hr>\n\n§\n<hr>",
    "<img src=\"a.png\">\n§",
    "<b>Now:</b>\n§",
    "<scratchpad>Hm.</scratchpad>\n§",
    "<example>\n```tool\nreturn f(2);\n```\n</example>\n\n§",
    "<https://example.com>\n§",
    "<me@example.com>\n§\n</me@example.com>",
    "<city> is missing, so I look it up.\n§",
    "I read the <city> first.\n\n§\n\nThen I fill it in.",
    "It is an `Array<string>`.\n§",
    "It is an Array<string> or a Map<string, number>.\n§\n\nOr a Set<string>.",
    "if a <b then c> d\n§",
    "a < b and c > d\n§",
    "a <b\n§",
    "<- look:\n§",
    "<3\n§",
    "1 <2\n§\n</2>",
    "The tag is `<example>`.\n§\nIt ends with `</example>`.",
    "I close it with </details>.\n§",
    "§\n</details>",
    "<div/>\n§\n</div>",
    "<example />\n§",
    "<div></div>\n§\n<div></div>",
    "<div><div></div></div>\n§",
    "<b>Note</b>\n```tool\nreturn f(1);\n```\n<b>Done</b>",
    "<!-- note -->\n§",
    "<!-- a --> <!-- b -->\n§\n<!-- c -->",
    "<![CDATA[ a ]]>\n§",
    "I saw <!-- in it.\n§",
    "A <![CDATA[ is there.\n§",
    // Closed quotation marks, or none.
    "He says \"hello\".\n§",
    "He says \"hello\".\n§\nI wait for \"yes\".",
    "A pipe of 5\".\n§",
    "A pipe of 5\".\n§\nI wait for \"ok\".",
    "I search for “bread”.\n§\nThen for “milk”.",
    "Ich suche „Brot“.\n§\nDann „Milch“.",
    "Je cherche « pain ».\n§\nPuis « lait ».",
    "Ich lese »a«.\n§\nDann »b«.",
    "It's Ana's page.\n§\nIt's hers.",
    "I don't know, let's see\n§\nthat's it",
    "\"\"\n§",
    // Struck out earlier.
    "~~Not this.~~\n§",
    "~~Not this.~~ But this:\n§\n~~Nor that.~~",
    "~~~js\na\n~~~\n§",
    "In ~5 minutes.\n§\nOr ~6.",
    // Fences.
    "```\nls\n```\n§",
    "```js\nf(2)\n```\n\n§",
    "```\n§\n```",
    "```\n\n§\n\n```\n",
    "```\n§\n```\n\nThat is all.",
    "```\n§",
    "```tool\n§\n```",
    "````tool\n§\n````",
    "I call `f`:\n§",
    "- Fetch it:\n  ```tool\n  return f(1);\n  ```",
    "1. ```tool\n   return f(1);\n   ```",
    "**Call:** ```tool\nreturn f(1);\n```",
    "a > b\n§",
    "-> ```tool\nreturn f(1);\n```",
    "> I was asked to look.\n\n§",
    "§\n> noted",
    // Comments end where a reader sees their end.
    "```tool\n// look\nreturn f(1);\n```",
    "```tool\r\n// look\r\nreturn f(1); // here\r\n```",
    "```tool\n/* look */ return f(1);\n```",
    "```tool\n/* a\u{2028}b */\nreturn f(1); // a\u{2028}b\n```",
    "```tool\n# look\nreturn f(1);\n```",
    // Finished thoughts.
    "<think>Hm.</think>\n§",
    "Hm.\n</think>\n§",
    "<thinking>\n```tool\nreturn f(2);\n```\n</thinking>\n§",
    "```tool\nreturn f(2);\n```\nNo.\n</think>\n\n§",
    "```tool\nreturn f(2)(\n```\nNo.\n</think>\n\n§",
];

fn written(answer: &str) -> String {
    answer.replace('§', BLOCK)
}

#[test]
fn a_quoted_call_is_not_a_request() {
    let ran: Vec<&str> = QUOTED.iter().copied().filter(|answer| !brief(&parse(&written(answer))).is_empty()).collect();
    assert!(ran.is_empty(), "{} of {} ran: {ran:#?}", ran.len(), QUOTED.len());
    // The model learns which block did not run, except for its own comments.
    let untold = |answer: &&str| {
        let parsed = parse(&written(answer));
        parsed.quoted.is_none()
            && parsed.entries.is_empty()
            && !answer.starts_with("```tool")
            && !answer.contains("`` ")
    };
    let untold: Vec<&str> = QUOTED.iter().copied().filter(untold).collect();
    assert!(untold.is_empty(), "{} untold: {untold:#?}", untold.len());
}

#[test]
fn a_plain_request_is_read() {
    let is_lost = |answer: &&str| brief(&parse(&written(answer))) != ["f(1)"];
    let lost: Vec<&str> = ASKED.iter().copied().filter(is_lost).collect();
    assert!(lost.is_empty(), "{} of {} are lost: {lost:#?}", lost.len(), ASKED.len());
}

/// Blocks after a quotation are read.
#[test]
fn a_quotation_ends() {
    for quoted in QUOTED {
        let never_ends = ["and so on", "<analysis>", "```markdown\n§", "so I say", "<![CDATA[\n§\n"];
        if never_ends.iter().any(|part| quoted.contains(part)) && !quoted.contains("is how") {
            continue;
        }
        let answer = format!("{}\n\nSo:\n\n```tool\nmine()\n```\n", written(quoted));
        assert_eq!(brief(&parse(&answer)), ["mine()"], "{answer}");
    }
}

/// Tags, marks and thoughts inside arguments are text.
#[test]
fn an_argument_is_no_prose() {
    for argument in [
        "'write </think> at the end'",
        "'<think>', 'a </think> b'",
        "`a\n</think>\nb`",
        "'<details>'",
        "'</details>'",
        "'say \"hello'",
        "'“'",
        "'~~'",
        "'<!--'",
        "'<![CDATA['",
        "`\n<example>\n`",
    ] {
        let call = format!("```tool\nreturn say({argument});\n```");
        for answer in
            [call.clone(), format!("{call}\n{call}"), format!("<p>A \"b\" </p>\n{call}\n<p>A \"b\" </p>\n{call}")]
        {
            let calls = answer.matches("say(").count();
            assert_eq!(good(&answer).len(), calls, "{answer}");
            assert_eq!(parse(&answer).quoted, None, "{answer}");
        }
        // A thought may still end after an argument.
        let thought = format!("{call}\nNo.\n</think>\n```tool\nmine()\n```");
        if !argument.contains("<think>") {
            assert_eq!(good(&thought), ["mine()"], "{thought}");
        }
    }
}

#[test]
fn the_tables_are_large_enough() {
    assert!(QUOTED.len() >= 63 && ASKED.len() >= 63, "{} and {}", QUOTED.len(), ASKED.len());
}
