use super::{brief, errors, good};
use crate::parse;

#[test]
fn a_tool_fence_in_every_form() {
    for answer in [
        "```tool\nreturn f(1);\n```",
        "```tool\r\nreturn f(1);\r\n```\r\n",
        "```tool\rreturn f(1);\r```\r",
        "````tool\nreturn f(1);\n````\nprose() (",
        "```tool\nreturn f(1);\n``````\nprose() (",
        "Prose first:\n   ``` Tool  \t\n   return f(1);\n   ```  \n more prose",
        "1. item\n\n\t```TOOL\n\treturn f(1);\n\t```",
        "```tool\nreturn f(1);",
        "~~~tool\nreturn f(1);\n~~~\nprose() (",
        "```tool return f(1);\n```\nprose() (",
        "```tool return f(1); ```\nprose() (",
        "```tool\nreturn f(1);```\nprose() (",
        "```tool\nreturn f(1) ```` prose() (",
        "```tool\nf(1) // `\n```",
        "```\nf(2)\n```\n```tool\nf(1)\n```\n```js\nf(3)\n```",
        "```js\nf(2)\n```tool\n```\n```tool\nf(1)\n```",
        "say ```code```\n```inline``` code\n```tool\nf(1)\n```",
        "say ```code``` and ```\r```tool\rf(1)\r```",
        "say ```\r\n\r\n```tool\r\nf(1)\r\n```",
        "``` ```\n```` ````\n```tool\nf(1)\n```",
        "~~~\n```tool\nf(2)\n```\n~~~\n```tool\nf(1)\n```",
        "```tools\nf(2)\n```\n```tool\nf(1)\n```",
        "\u{FEFF}\n```tool\n\u{A0}\u{3000}f(1)\u{2028}\n```",
    ] {
        assert_eq!(good(answer), ["f(1)"], "{answer:?}");
        assert_eq!(parse(answer).blocks, 1, "{answer:?}");
    }
}

#[test]
fn other_blocks_are_not_tool_blocks() {
    for answer in [
        "````markdown\n```tool\nf(1)\n```\n````",
        "````\n```tool\nf(1)\n```\n````",
        "~~~~ md\n~~~\n```tool\nf(1)\n```\n~~~~",
        "```js\n```tool\nf(1)\n```",
        "text ```tool f(1)\n",
        "`text ```tool\nf(1)\n",
        "\\```tool\nf(1)\n",
        "So: \\```tool\nf(1)\n",
        "text ```tool f\n",
        "text ``` ```tool\nf(1)\n",
        "``` ``` ```tool\nf(1)\n",
        "> ```tool\n> f(1)\n> ```",
        "``tool\nf(1)\n``",
        "```tool_code\nf(1)\n```",
        "```tool```\nf(1)",
        "```js tool\nf(1)\n```",
        "~~~\n```tool\nf(1)",
    ] {
        let parsed = parse(answer);
        assert_eq!((parsed.blocks, parsed.entries.len(), parsed.unclosed), (0, 0, None), "{answer:?}");
    }
}

#[test]
fn a_fence_as_models_write_it() {
    for answer in [
        "I fetch it: ```tool\nf(1)\n```",
        "I call `f`: ```tool\nf(1)\n```",
        "- ```tool\n  f(1)\n  ```",
        "1. First ```tool\n   f(1)\n   ```",
        "**```tool**\nf(1)\n```**\nand so on",
        "**Call:** ```tool\nf(1)\n```",
        "\u{FEFF}```tool\nf(1)\n```",
        "\u{200B}```\u{200B}tool\u{2060}\nf(1)\n\u{200D}```\u{A0}\nand so on",
        "</think>```tool\nf(1)\n```",
        "<think>Hm.</think>```tool\nf(1)\n```",
        "I think ```js\n</think>\n```tool\nf(1)\n```",
        // Closed with fewer marks.
        "````tool\nf(1)\n```\n\nI wait (for now).",
        // Doubled.
        "```\n```tool\nf(1)\n```\n```",
        "```tool\n```tool\nf(1)\n```\n```",
        "````tool\n\n```tool\nf(1)\n```\n````",
        // After the end of an unseen block, or without one.
        "As in ```a b\nf(2)\n```\n\n```tool\nf(1)\n```",
        "Done.\n```\n\n```tool\nf(1)\n```",
    ] {
        assert_eq!(good(answer), ["f(1)"], "{answer:?}");
        let another = format!("{answer}\n\nThen:\n\n```tool\ng()\n```\n");
        assert_eq!(good(&another), ["f(1)", "g()"], "{another:?}");
    }
    let short = "````tool\nf(1)\n```\n\n````tool\nf(2)\n```\nand\n````tool\nf(3)\n````";
    assert_eq!(good(short), ["f(1)", "f(2)", "f(3)"]);
}

/// The text after a fence that is too short may still be in its block.
#[test]
fn a_fence_that_is_too_short_closes_no_block_that_goes_on() {
    for answer in [
        "````tool\nf(1)\n```\nText.\n```tool\nwipe()\n```\n````",
        "````tool\nf(1)\n```\nwipe()\n````",
        "````tool\nf(1)\n```\nwipe()\n",
        "````tool\nf(1)\n```\nreturn wipe()\n",
        "````tool\nf(1)\n```js\nwipe()\n```\n",
        "````tool\nf(1)\n```tool\nwipe()\n```\n````",
    ] {
        let parsed = parse(answer);
        assert_eq!((brief(&parsed), errors(&parsed).len()), (vec!["f(1)".to_owned()], 1), "{answer:?}");
    }
}

#[test]
fn blocks_on_end() {
    let answer = "```tool\na()\n```\n```tool\nb()\n```\nand\n~~~ tool\nc()\n~~~\n```tool\nd()```\n```tool e()```";
    assert_eq!(good(answer), ["a()", "b()", "c()", "d()", "e()"]);
    assert_eq!(parse(answer).blocks, 5);
}

#[test]
fn a_block_that_was_not_closed_ends_with_the_answer() {
    let parsed = parse("one\n\n```tool\nreturn f(1);\nreturn g({a: [1, 'x");
    assert_eq!((brief(&parsed), errors(&parsed).len(), parsed.unclosed), (vec!["f(1)".to_owned()], 1, None));
    let parsed = parse("one\n\n```tool\nreturn f(1);\nreturn g([2])");
    assert_eq!((brief(&parsed), parsed.unclosed), (vec!["f(1)".to_owned(), "g([2])".to_owned()], Some(3)));
    assert_eq!(parse("```tool\nf(1)\n```").unclosed, None);
    assert_eq!(parse("```tool").unclosed, Some(1));
}

#[test]
fn a_block_that_was_not_closed_ends_where_the_next_begins() {
    assert_eq!(good("```tool\nf(1)\n```tool\ng(1)\n```"), ["f(1)", "g(1)"]);
}

#[test]
fn a_longer_fence_holds_shorter_ones() {
    let answer = "````tool\nreturn post('a', `Try this:\n```js\nlet a = 1;\n```\ndone`);\nreturn f(1)\n````";
    assert_eq!(good(answer), ["post(\"a\", \"Try this:\\n```js\\nlet a = 1;\\n```\\ndone\")", "f(1)"]);
    let answer = "````tool\nreturn post(`\n```tool\nf(1)\n```\n`)\n````\nprose(";
    assert_eq!(good(answer), ["post(\"\\n```tool\\nf(1)\\n```\\n\")"]);
    let answer = "````tool\nreturn post(`\\`\\`\\`js`, \"```\", '```js') /*\n```\n*/\n````";
    assert_eq!(good(answer), ["post(\"```js\", \"```\", \"```js\")"]);
}

#[test]
fn back_ticks_that_close_the_block_in_a_text_are_explained() {
    let parsed = parse("```tool\nreturn post(`Try:\n```js\nlet a = 1;\n```\ndone`)\n```");
    assert_eq!(brief(&parsed), Vec::<String>::new());
    assert_eq!(errors(&parsed).len(), 1);
    assert!(errors(&parsed)[0].contains("begin the block with more of them"), "{parsed:?}");
}

#[test]
fn an_empty_block_has_nothing_to_run_or_to_correct() {
    for answer in ["```tool\n```", "x\n```tool\n\n // nothing\n ```", "```tool ```", "```tool", "```tool\n;;"] {
        let parsed = parse(answer);
        assert_eq!((parsed.entries.len(), parsed.blocks), (0, 1), "{answer:?}");
    }
    assert_eq!(good("```tool\n// nothing\n```\n```tool\nf(1)\n```"), ["f(1)"]);
}

#[test]
fn a_shorter_fence_between_calls_is_told_of() {
    let parsed = parse("````tool\nf(1)\n```\ng(1)\n````");
    assert_eq!(brief(&parsed), ["f(1)"]);
    assert_eq!(
        errors(&parsed),
        ["line 3, column 1: expected a call, or as many marks as the block was opened with to close it, found `````"]
    );
}
