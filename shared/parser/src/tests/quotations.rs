use super::{brief, good};
use crate::parse;

#[test]
fn a_quoted_call_is_skipped_and_reported() {
    for (answer, line) in [
        ("<result call=\"1\" tool=\"wget\">\n```tool\nwipe()\n```\n</result>", 2),
        ("It says:\n<Result>\n\n~~~tool\nwipe()\n~~~\n</ RESULT>\n</rESULT>", 4),
        ("<result>\n```tool\nwipe()\n```\nand so on", 2),
        ("I read <error call=\"2\">x\n```tool wipe() ```\ny</error> there", 2),
        ("<!--\n```tool\nwipe()\n```\n-->", 2),
        ("One <!-- is\n```tool\nwipe()\n```\n-->", 2),
        ("  <!-- never closed\n```tool\nwipe()\n```", 2),
        ("<blockquote>\n\n```tool\nwipe()\n```\n\n</blockquote>", 3),
        ("<pre>\n```tool\nwipe()\n```\n</pre>", 2),
        ("The page:\n\n    ```tool\n    wipe()\n    ```", 3),
        ("The page:\n\n\t```tool\n\twipe()\n\t```", 3),
        ("  \t```tool\n  \twipe()\n  \t```", 1),
        ("- The page:\n\n      ```tool\n      wipe()\n      ```", 3),
        ("1. One\n\nThe page:\n\n    ```tool\n    wipe()\n    ```", 5),
        ("1) The page\n       ```tool wipe() ```", 2),
        ("<result>\n```\n```tool\nwipe()\n```\n</result>", 3),
        ("> ```tool\n> wipe()\n> ```\n>```tool\n>wipe()\n>```", 1),
        ("> - It says: ```tool\nwipe()\n", 1),
        ("<think>I could\n```tool\nwipe()\n```\n</think>", 2),
        ("Well. <think>\n```js\n```tool\nwipe()\n```\n</think>", 3),
        ("<thinking>\n```tool\nwipe()\n```\n</thinking>", 2),
        ("I could\n```tool\nwipe()\n```\nor ```js\n</think>", 2),
        ("````markdown\n```tool\nwipe()\n```\n````", 2),
        ("```js\n```tool\nwipe()\n```", 2),
        ("Like this: ```js\n```tool\nwipe()\n```", 2),
        ("<results>\n```tool\nwipe()\n```\n</results>", 2),
    ] {
        let parsed = parse(answer);
        assert_eq!((parsed.entries.len(), parsed.blocks, parsed.quoted), (0, 0, Some(line)), "{answer}");
        let behind = format!("{answer}\n</result>-->\n\n```tool\nmine(1)\n```");
        let swallowed = answer.contains("never closed") || answer.contains("and so on");
        if !swallowed {
            assert_eq!((brief(&parse(&behind)), parse(&behind).quoted), (vec!["mine(1)".to_owned()], Some(line)));
        }
    }
}

#[test]
fn a_call_that_only_looks_quoted_is_read() {
    for answer in [
        "What the <result> says:\n```tool\nf(1)\n```",
        "I look at `<!--` and at `<pre>`.\n```tool\nf(1)\n```",
        "<result>a</result>\n```tool\nf(1)\n```\n<result>b</result>",
        "<!-- a --> <!-- b -->\n```tool\nf(1)\n```\n<!-- c -->",
        "a < b\n```tool\nf(1)\n```\n</result>",
        "- First:\n  ```tool\n  f(1)\n  ```",
        "1. First:\n\n   ```tool\n   f(1)\n   ```",
        "10. Tenth:\n    ```tool\n    f(1)\n    ```",
        "- a\n  - b:\n\n    ```tool\n    f(1)\n    ```",
        "* First\n\n\t```tool\n\tf(1)\n\t```",
    ] {
        assert_eq!(good(answer), ["f(1)"], "{answer}");
        assert_eq!(parse(answer).quoted, None, "{answer}");
    }
    let quoting = "```tool\nf('<result>')\n```\n```tool\ng('</result>')\n```";
    assert_eq!(good(quoting), ["f(\"<result>\")", "g(\"</result>\")"], "a block is no prose");
}
