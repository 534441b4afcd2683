use super::*;

fn read(text: &str) -> Result<Value, String> {
    entries_of_feed(text.as_bytes(), &"https://blog.example/feeds/all.xml".parse().unwrap())
}

fn entries(text: &str) -> Vec<Value> {
    read(text).unwrap()["entries"].as_array().unwrap().clone()
}

fn rss(items: &str) -> String {
    format!("<?xml version=\"1.0\"?><rss version=\"2.0\"><channel><title>News</title>{items}</channel></rss>")
}

#[test]
fn rss_is_read() {
    let feed = r#"<?xml version="1.0" encoding="UTF-8"?>
        <rss version="2.0" xmlns:content="http://purl.org/rss/1.0/modules/content/" xmlns:dc="http://purl.org/dc/elements/1.1/"
             xmlns:media="http://search.yahoo.com/mrss/" xmlns:atom="http://www.w3.org/2005/Atom">
        <channel><title>Fish &amp; Chips</title><link>https://blog.example/</link>
        <atom:link href="https://blog.example/feeds/all.xml" rel="self"/>
        <image><title>Logo</title><link>https://cdn.example/</link></image>
        <item><title>Older</title><guid isPermaLink="false">a-1</guid><link>/posts/1</link>
          <pubDate>Tue, 03 Feb 2026 09:30:00 +0100</pubDate><description>Plain text</description></item>
        <item><title><![CDATA[The <b>new</b> one]]></title><media:title>Not this</media:title><guid>a-2</guid>
          <link>https://blog.example/posts/2</link><dc:creator>Ana</dc:creator><pubDate>Wed, 04 Feb 2026 08:00:00 GMT</pubDate>
          <category>food</category><category>Porto</category>
          <description>&lt;p&gt;Soup &amp;amp; bread&amp;nbsp;for &lt;a href="/x"&gt;all&lt;/a&gt;&lt;/p&gt;</description>
          <content:encoded><![CDATA[<p>Longer</p>]]></content:encoded></item>
        </channel></rss>"#;
    let told = read(feed).unwrap();
    assert_eq!((&told["title"], &told["link"]), (&json!("Fish & Chips"), &json!("https://blog.example/")));
    let second = json!({
        "id": "a-1", "title": "Older", "link": "https://blog.example/posts/1", "published": "2026-02-03T08:30:00Z",
        "updated": null, "author": null, "summary": "Plain text", "categories": [],
    });
    let first = &told["entries"][0];
    assert_eq!(
        (&first["id"], &first["title"], &first["author"]),
        (&json!("a-2"), &json!("The new one"), &json!("Ana"))
    );
    assert_eq!(
        (&first["published"], &first["categories"]),
        (&json!("2026-02-04T08:00:00Z"), &json!(["food", "Porto"]))
    );
    assert!(first["summary"].as_str().unwrap().starts_with("Soup & bread for"), "{first}");
    assert_eq!(told["entries"][1], second);
}

#[test]
fn atom_is_read() {
    let feed = r#"<feed xmlns="http://www.w3.org/2005/Atom"><title type="text">Log</title><link href="/" /><id>urn:feed</id>
        <author><name>Everybody</name></author>
        <entry><id>urn:1</id><title>One &#38; all</title><link rel="edit" href="/edit"/><link rel="alternate" href="1?a=1&amp;b=2"/>
          <published>2026-02-04T08:00:00+01:00</published><updated>2026-02-05T08:00:00Z</updated>
          <author><name>Ana</name><email>ana@example.com</email></author><category term="t" label="Tea"/>
          <content type="xhtml"><div xmlns="http://www.w3.org/1999/xhtml"><p>Good <b>day</b></p></div></content></entry></feed>"#;
    assert_eq!(
        entries(feed),
        [json!({
            "id": "urn:1", "title": "One & all", "link": "https://blog.example/feeds/1?a=1&b=2",
            "published": "2026-02-04T07:00:00Z", "updated": "2026-02-05T08:00:00Z", "author": "Ana", "summary": "Good day",
            "categories": ["Tea"],
        })]
    );
    assert_eq!(read(feed).unwrap()["link"], "https://blog.example/");
}

#[test]
fn rss_1_and_json_feed_are_read() {
    let rdf = r#"<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns="http://purl.org/rss/1.0/">
        <channel><title>Old</title></channel><item><title>One</title><link>https://a.example/1</link></item></rdf:RDF>"#;
    assert_eq!((&read(rdf).unwrap()["title"], &entries(rdf)[0]["id"]), (&json!("Old"), &json!("https://a.example/1")));
    let feed = json!({
        "version": "https://jsonfeed.org/version/1.1", "title": "J", "home_page_url": "https://j.example",
        "items": [
            {"id": 7, "url": "/7", "content_html": "<p>Hi</p>", "date_published": "2026-02-04T08:00:00Z", "extra": {"a": [1]}},
            {"id": "8", "title": "Eight", "authors": [{"name": "Ana"}], "tags": ["x"], "date_published": "2026-02-05T08:00:00Z"},
        ],
    });
    let told = entries(&feed.to_string());
    assert_eq!(
        (&told[0]["id"], &told[0]["author"], &told[0]["categories"]),
        (&json!("8"), &json!("Ana"), &json!(["x"]))
    );
    assert_eq!((&told[1]["id"], &told[1]["summary"]), (&json!("7"), &json!("Hi")));
    assert_eq!(told[1]["link"], "https://blog.example/7");
}

#[test]
fn an_entry_without_an_id_is_known_by_its_link_or_its_content() {
    let told = entries(&rss(
        "<item><link>https://a.example/1</link></item><item><title>A</title></item><item><title>B</title></item>",
    ));
    assert_eq!(told[0]["id"], "https://a.example/1");
    let [first, second] = [&told[1]["id"], &told[2]["id"]];
    assert!(first.as_str().unwrap().starts_with("sha256-") && first != second, "{told:?}");
    let again = entries(&rss("<item><title>B</title></item>"));
    assert_eq!(again[0]["id"], *second);
    let long =
        |last: &str| entries(&rss(&format!("<item><guid>{}{last}</guid></item>", "x".repeat(900))))[0]["id"].clone();
    assert_ne!(long("1"), long("2"));
}

#[test]
fn entities_of_a_document_are_not_expanded() {
    let bomb = r#"<?xml version="1.0"?><!DOCTYPE lolz [<!ENTITY lol "lol"><!ENTITY lol2 "&lol;&lol;&lol;"><!ENTITY x SYSTEM "file:///etc/passwd">]>
        <rss version="2.0"><channel><item><title>&lol2;&x;</title></item></channel></rss>"#;
    assert_eq!(entries(bomb)[0]["title"], "&lol2;&x;");
}

#[test]
fn what_is_no_whole_feed_is_refused() {
    let many = |count: usize| rss(&"<item/>".repeat(count));
    let objects =
        format!("{{\"version\":\"https://jsonfeed.org/version/1\",\"items\":[{}]}}", vec!["{}"; 60_000].join(","));
    let deep = rss(&format!("<item><description>{}", "<a>".repeat(100_000)));
    for (what, text, reason) in [
        ("nothing", String::new(), "neither XML nor JSON"),
        ("text", "Hello".to_owned(), "neither XML nor JSON"),
        ("a page", "<!DOCTYPE html><html><body><p>Hi</p></body></html>".to_owned(), "neither RSS nor Atom"),
        ("JSON", "{\"items\": []}".to_owned(), "no version of JSON Feed"),
        ("other JSON", "{\"a\": 1}".to_owned(), "no feed"),
        (
            "half of a JSON feed",
            "{\"version\":\"https://jsonfeed.org/version/1\",\"items\":[{\"id\":\"1\"}".to_owned(),
            "no feed",
        ),
        ("half of a feed", "<rss><channel><item><guid>1</guid></item><item>".to_owned(), "ends in the middle"),
        ("crossed tags", rss("<item></guid></item>"), "broken"),
        ("100,000 entries", many(100_000), "more than 5000 entries"),
        ("60,000 objects", objects, "more than 50000 objects"),
        ("deep elements", deep, "nested too deep"),
    ] {
        let refused = read(&text).unwrap_err();
        assert!(refused.contains(reason), "{what}: {refused}");
    }
    assert_eq!(entries(&many(5_000)).len(), MOST_ENTRIES);
}

#[test]
fn a_huge_field_is_cut_and_a_foreign_encoding_read() {
    let told = entries(&rss(&format!("<item><title>{}</title></item>", "word ".repeat(400_000))));
    assert!(told[0]["title"].as_str().unwrap().len() <= 500);
    let latin: Vec<u8> = [
        b"<?xml version='1.0' encoding='ISO-8859-1'?><rss><channel><item><title>Caf".as_slice(),
        &[0xe9],
        b"</title></item></channel></rss>",
    ]
    .concat();
    let told = entries_of_feed(&latin, &"https://a.example".parse().unwrap()).unwrap();
    assert_eq!(told["entries"][0]["title"], "Caf\u{e9}");
}
