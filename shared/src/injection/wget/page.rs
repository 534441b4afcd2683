//! The readable text of an HTML page: title, headings, lists, tables and links.
//!
//! Pages are processed as a stream, and only the text is kept. Hostile pages cannot make a call costly: there is no tree, names
//! and addresses are cut, and each byte is read once (docs/adr/0011-text-of-pages.md).

mod input;
mod writer;

use std::cell::Cell;

use html5gum::Tokenizer;
use url::Url;

use self::{input::Input, writer::Writer};

/// The text of a page in pieces, and whether reading stopped at `limit` bytes of text. Links within the page's own site omit the
/// site if `known`: the model named that site itself.
pub(super) fn text(next: impl FnMut() -> Option<String>, page: &Url, known: bool, limit: usize) -> (String, bool) {
    let enough = Cell::new(false);
    let mut input = Input::new(next, &enough);
    let mut writer = Writer::new(page.clone(), known.then(|| page.origin()), limit, &enough);
    let Ok(()) = Tokenizer::new_with_emitter(&mut input, &mut writer).finish();
    (writer.finish(), enough.get())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{writer::LONGEST_ADDRESS, *};

    const LIMIT: usize = 4096;

    fn read(html: &str) -> String {
        read_in(html, html.len().max(1))
    }

    /// Read in pieces of at least `bytes` bytes.
    fn read_in(html: &str, bytes: usize) -> String {
        let mut rest = html;
        let next = || {
            let at = rest.ceil_char_boundary(bytes);
            let (piece, after) = rest.split_at(at);
            rest = after;
            (!piece.is_empty()).then(|| piece.to_owned())
        };
        text(next, &"https://shop.example/menu/today?x=1".parse().unwrap(), true, LIMIT).0
    }

    #[test]
    fn a_page_is_given_as_it_is_read() {
        let page = "<!DOCTYPE html><html><head><title>Menu &ndash; Caf\u{e9}\n &amp; Bar</title><style>p { color: red }</style>\
            <script>if (a < b) document.write('<p>no</p>')</script></head><body><!-- nobody --><nav><a href=/>Home</a> \
            <a href='prices?day=1&amp;x=2'>Our\n prices</a></nav><h1>Today</h1><p>Soup&nbsp;of\n  the <b>day</b>:   4&euro;.\
            <p>Second<br>line</p><ul><li>one</li><li>two <ul><li>deeper</ul></ul><pre>  a\n    b</pre>last</body></html>";
        let expected = "Title: Menu – Café & Bar\n\n[Home](/) [Our prices](/menu/prices?day=1&x=2)\n\n# Today\n\n\
            Soup of the day: 4€.\n\nSecond\nline\n\n- one\n- two\n\n- deeper\n\n  a\n    b\n\nlast";
        assert_eq!(read(page), expected);
        for bytes in 1..40 {
            assert_eq!(read_in(page, bytes), expected, "in pieces of {bytes}");
        }
    }

    #[test]
    fn a_table_keeps_its_cells_apart() {
        let page = "<table><tr><th>Day</th><th>Open</th></tr>\n<tr><td><p>Mo</p></td>\n<td>8&ndash;18</td></tr>\
            <tr><td></td><td></td><td>closed</td></table>";
        assert_eq!(read(page), "Day | Open\nMo | 8–18\n| | closed");
    }

    #[test]
    fn links_lead_somewhere_or_are_text() {
        for (html, expected) in [
            ("<a href=\"https://other.example/a b\">x</a>", "[x](https://other.example/a%20b)"),
            ("<a href=\"HTTPS://SHOP.example/a#b\"> x </a>y", "[x](/a#b) y"),
            ("<a href=tel:+1555>call</a>", "[call](tel:+1555)"),
            ("<a href=mailto:a@b.example>write</a>", "[write](mailto:a@b.example)"),
            ("<a href='#top'>up</a> <a href='javascript:x()'>js</a> <a href='data:text/html,x'>data</a>", "up js data"),
            ("<a name=x>anchor</a><a href=''>none</a>", "anchornone"),
            ("<a href=/x></a>.", "."),
            ("<a href=/x><img src=logo.png alt='The shop'></a>", "[The shop](/x)"),
            ("<a href=/1>one<a href=/2>two", "[one](/1)[two](/2)"),
            ("<a href=/1 href=/2>first</a>", "[first](/1)"),
            ("<base href=https://cdn.example/d/><a href=e>x</a>", "[x](https://cdn.example/d/e)"),
            ("<a href=\"http://[bad/\">x</a>", "x"),
        ] {
            assert_eq!(read(html), expected, "{html}");
        }
        assert_eq!(read(&format!("<a href=/{}>x</a>", "y".repeat(LONGEST_ADDRESS))), "x");
    }

    /// After a redirect to another site the model does not know the site of bare paths.
    #[test]
    fn links_of_a_site_that_is_not_known_are_whole() {
        let mut page = Some("<a href=b>x</a>".to_owned());
        let url = "https://new.example/a".parse().unwrap();
        assert_eq!(text(|| page.take(), &url, false, LIMIT).0, "[x](https://new.example/b)");
    }

    #[test]
    fn invisible_elements_are_left_out() {
        for html in [
            "<script>x</script>",
            "<style>x</style>",
            "<template>x<template>y</template>z</template>",
            "<svg><title>Icon</title><text>x</text></svg>",
            "<iframe>x</iframe>",
            "<!-- x -->",
            "<![CDATA[x]]>",
            "<?php x ?>",
            "<script><!-- <script> </script> x --></script>",
            "<svg/>",
            "<title>  </title>",
            "<img src=x>",
        ] {
            assert_eq!(read(&format!("a{html}b")), "ab", "{html}");
        }
        assert_eq!(read("a<noscript>scripts are needed</noscript>"), "ascripts are needed");
    }

    /// Broken markup is read as far as possible, and unfinished tags are not text.
    #[test]
    fn broken_pages_are_read() {
        for (html, expected) in [
            ("<p>a<b>b<i>c</p>d", "abc\n\nd"),
            ("a < b & c &amp d &#x41;&#66; &bogus; &#xFFFFFF;", "a < b & c & d AB &bogus; \u{fffd}"),
            ("x<a href=\"unclosed", "x"),
            ("x<!-- unclosed", "x"),
            ("x<script>unclosed", "x"),
            ("</p></div></td>x</svg>", "x"),
            ("<td>a<td>b", "a | b"),
            ("<é>x", "<é>x"),
            ("\u{0}x", "\u{0}x"),
            ("", ""),
        ] {
            assert_eq!(read(html), expected, "{html}");
        }
    }

    #[test]
    fn no_more_is_read_than_is_wanted() {
        let mut pieces = 0;
        let next = || {
            pieces += 1;
            Some("<p>word</p>".repeat(100))
        };
        let (text, enough) = text(next, &"https://shop.example/".parse().unwrap(), true, LIMIT);
        assert!(enough && text.len() > LIMIT && text.len() < LIMIT + 100, "{}", text.len());
        assert!(pieces < 10, "{pieces}");
    }

    /// Megabytes of hostile markup take a moment and little memory.
    #[test]
    fn hostile_pages_cost_no_more_than_their_length() {
        let size = 2_000_000;
        for (part, inside) in [
            ("<div>", ""),
            ("<a href=x>", ""),
            ("<svg>", ""),
            ("<td>", ""),
            ("<pre>", ""),
            ("&ra", ""),
            ("&#0", ""),
            ("<", ""),
            ("</", ""),
            (" a=b", "<a"),
            ("href=", "<a "),
            ("a", "<"),
            ("a", "</"),
            ("a", "<script></"),
            ("a", "<title></"),
            ("<!--", "<script>"),
            ("-", "<!--"),
            ("x", "<a href="),
            (" ", ""),
            ("]]>", "<![CDATA["),
        ] {
            let (mut sent, mut begin) = (0, Some(inside.to_owned()));
            let next = || {
                let piece = begin.take().unwrap_or_else(|| part.repeat(16_384 / part.len()));
                sent += piece.len().max(1);
                (sent < size).then_some(piece)
            };
            let enough = Cell::new(false);
            let mut input = Input::new(next, &enough);
            let mut writer = Writer::new("https://shop.example/".parse().unwrap(), None, LIMIT, &enough);
            let Ok(()) = Tokenizer::new_with_emitter(&mut input, &mut writer).finish();
            assert!(writer.kept() < LIMIT + 20_000, "{inside}{part}: {}", writer.kept());
            assert!(input.buffer.len() < 40_000, "{inside}{part}");
            assert!(enough.get() || sent >= size, "{inside}{part}");
        }
    }

    proptest! {
        #[test]
        fn any_page_is_read_and_its_pieces_do_not_matter(
            parts in proptest::collection::vec(
                prop_oneof![
                    Just("<a href='/x?a=1&amp;b'>"), Just("</a>"), Just("<p>"), Just("<td>"), Just("<tr>"), Just("<script>"),
                    Just("</script>"), Just("<title>"), Just("</title>"), Just("<svg>"), Just("</svg>"), Just("<pre>"),
                    Just("</pre>"), Just("<!--"), Just("-->"), Just("&nbsp;"), Just("&"), Just("<"), Just(">"), Just("\""),
                    Just("é\u{a0}€"), Just(" \n "), Just("word"), Just("<li>"), Just("<img alt=picture>"), Just("\r\n"),
                ],
                0..30,
            ),
            bytes in 1_usize..9,
        ) {
            let html = parts.concat();
            prop_assert_eq!(read_in(&html, bytes), read(&html));
        }
    }
}
