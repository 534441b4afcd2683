use proptest::prelude::*;

use super::*;

#[test]
fn a_phone_number_is_hidden_however_it_is_written() {
    for number in [
        "+14155550100",
        "+1 (415) 555-0100",
        "(415) 555-0100",
        "415.555.0100",
        "415/555/0100",
        "4155550100",
        "555-0100",
        "0049 30 123456",
        "030 / 12 34 56 7",
        "06 12 34 56 78",
        "+351\u{a0}912\u{2011}345\u{2011}678",
        "415\u{200b}555\u{200b}0100",
        "415%20555%200100",
        "%2B14155550100",
        "415+555+0100",
        "**415**-555-0100",
        "415\n555 0100",
        "415       555       0100",
        "＋１４１５５５５０１００",
        "٠٥٠١٢٣٤٥٦٧",
        "4111 1111 1111 1111",
    ] {
        for text in [
            number.to_owned(),
            format!("Call {number}, please."),
            format!("tel{number}x"),
            format!("https://wa.me/{number}?text=hi"),
            format!("{{\"phone\":\"{number}\",\"n\":1}}"),
            format!("<a href=\"tel:{number}\">us</a>"),
            format!("2026-03-01 {number}"),
        ] {
            let clean = clean(&text);
            let digits = clean.replace("2026-03-01", "").chars().filter(|c| is_digit(*c)).count();
            assert!(digits <= 3 && clean.contains(NUMBER), "{text}: {clean}");
        }
    }
    assert_eq!(clean("tel:555123 or TEL: 112"), "tel:[number] or TEL: [number]");
    assert_eq!(clean("Call +1 (415) 555-0100, please."), "Call [number], please.");
}

#[test]
fn digits_that_are_certainly_not_a_phone_number_stay() {
    for text in [
        "See you on 2026-03-01 at 15:00.",
        "2026-03-01T15:00:00.123Z",
        "from 2026-03-01T15:00:00+01:00 to 2026-03-02 16:30",
        "2026-03-01 15:00 4 guests",
        "0193aa11-2b3c-7d4e-8f50-617283940a1b",
        "https://x.example/calls/0193aa11-2b3c-7d4e-8f50-617283940a1b.",
        "SM0123456789abcdef0123456789abcdef",
        "each[739ce1234567e55e].page[0123456789abcdef].x failed",
        "each[739ce1234567e55e-2].page failed",
        "each[739ce1234567e55e-1234].page failed",
        "3 bedrooms, 450000, 120 m²",
        "HTTP 404",
        "room 12-34",
    ] {
        assert_eq!(clean(text), text);
    }
}

#[test]
fn a_phone_number_in_place_of_a_digest_is_hidden() {
    for (text, shown) in [
        ("each[4155550101].page", "each[[number]].page"),
        ("each[0014155550100123].page", "each[[number]].page"),
        ("each[14155550101a].page", "each[[number]a].page"),
        ("739ce1234567e55e", "739ce[number]e55e"),
    ] {
        assert_eq!(clean(text), shown);
    }
}

#[test]
fn a_phone_number_that_resembles_a_date_is_hidden() {
    for text in
        ["+2026-03-01", "2026-03-0155", "2026-03-01-555", "2026-03-01 0100", "2026-13-01", "1415-03-01", "2026 03 01"]
    {
        assert_eq!(clean(text), NUMBER, "{text}");
    }
}

#[test]
fn a_phone_number_beside_a_time_of_day_is_hidden() {
    for text in [
        "2026-03-01 41555-0100",
        "2026-03-01 15:00: 4155550100",
        "2026-03-01 15:00-41555-0100",
        "2026-03-01T15:00.4155550100",
        "2026-03-01 15:00:30-415-555-0100",
    ] {
        let clean = clean(text);
        let rest = ["2026-03-01", "15:00:30", "15:00"].into_iter().fold(clean.clone(), |rest, at| rest.replace(at, ""));
        assert!(!rest.contains(is_digit) && clean.contains(NUMBER), "{text}: {clean}");
    }
}

#[test]
fn credentials_are_hidden_by_their_look() {
    for (text, shown) in [
        ("eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJl", "[secret]"),
        ("with Bearer abc-def today", "with Bearer [secret] today"),
        ("Basic dXNlcjpwYXNz", "Basic [secret]"),
        ("Basic information", "Basic information"),
        ("the key sk-proj-abcdefghijkl", "the key [secret]"),
        ("AKIAIOSFODNN7EXAMPLE", "[secret]"),
        ("wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", "[secret]"),
        ("0123456789abcdef0123456789abcdef", "[secret]"),
        ("8c7dKq0F3vJ1s5yXbZ2mWnR9tPa4LhE6uGiOoUeQxYk=", "[secret]"),
        ("https://hooks.example.com/services/T01/B02/aBcDeFgHiJkLmNoPqRsT3", "https:[secret]"),
        ("password=hunter2&name=Ana", "password=[secret]&name=Ana"),
        ("https://x.example/?api_key=abc&q=1", "https://x.example/?api_key=[secret]&q=1"),
        (r#"{"client_secret": "two words", "n": 1}"#, r#"{"client_secret": "[secret]", "n": 1}"#),
        (r#"{\"token\":\"abc\",\"n\":1}"#, r#"{\"token\":\"[secret]",\"n\":1}"#),
        ("Authorization: Digest a=b, c=d\nHost: x", "Authorization: [secret]\nHost: x"),
        ("Cookie: a=b; c=d", "Cookie: [secret]"),
        (r#"{"token": null, "secret": true}"#, r#"{"token": null, "secret": true}"#),
        ("The secretary: Ana", "The secretary: Ana"),
        ("/v1/customers/search/by-name-and-town", "/v1/customers/search/by-name-and-town"),
    ] {
        assert_eq!(clean(text), shown);
    }
}

#[test]
fn an_email_address_is_hidden() {
    assert_eq!(clean("Write to <ana.ruiz+vip@example.co.uk>."), "Write to <[email]>.");
    assert_eq!(clean("mailto:ana@example.com?x=1"), "mailto:[email]?x=1");
    assert_eq!(clean("?to=ana%40example.com"), "?to=[email]");
    assert_eq!(clean("@harbour meet @ 5"), "@harbour meet @ 5");
}

/// Work is linear: on quadratic input this test would not end.
#[test]
fn no_input_makes_it_slow() {
    for piece in
        ["1", "1 ", "+", "(", "a@", "2026-03-01 ", "tel:", "token", "token:", "eyJ", "%40", "-", "\u{200b}", "'\""]
    {
        let text = piece.repeat(50_000);
        clean(&text);
    }
    clean(&format!("1{}a", " ".repeat(100_000)));
}

/// A number in E.164 or a national form, in any grouping.
fn number() -> impl Strategy<Value = (String, String)> {
    let separator = prop::sample::select(vec!["", " ", "-", ".", " - ", ") ", "/", "\u{a0}", "\u{2009}", "%20", "\n"]);
    let prefix = prop::sample::select(vec!["", "+", "00", "(", "tel:", "tel:+", "n°"]);
    (prefix, prop::collection::vec(("[0-9]{1,4}", separator), 7..11)).prop_map(|(prefix, groups)| {
        let written: String = groups.iter().flat_map(|(digits, separator)| [digits.as_str(), separator]).collect();
        let digits = groups.iter().map(|(digits, _)| digits.as_str()).collect();
        (format!("{prefix}{written}"), digits)
    })
}

proptest! {
    #[test]
    fn a_phone_number_never_survives((written, digits) in number(), before in "[ -~]{0,12}", after in "[ -~é]{0,12}") {
        // Dates stay, even if they happen to be phone numbers.
        prop_assume!(iso_date("", &written).is_none());
        let clean = clean(&format!("{before}{written}{after}"));
        let left: String = clean.chars().filter(char::is_ascii_digit).collect();
        prop_assert!(!left.contains(&digits), "{clean}");
    }

    #[test]
    fn no_run_of_digits_is_left_that_is_no_date(text in "[0-9 +()./a-z@=:\"-]{0,60}") {
        let clean = clean(&text);
        let mut rest = clean.as_str();
        while let Some(first) = rest.find(is_digit) {
            let (before, from) = rest.split_at(first);
            if let Some(date) = iso_date(before, from) {
                rest = &from[date..];
                continue;
            }
            let (digits, length) = run(from);
            prop_assert!(digits < FEWEST_DIGITS, "{text:?}: {clean:?}");
            rest = &from[length..];
        }
    }

    #[test]
    fn a_clean_text_stays_unchanged(text in "\\PC{0,60}") {
        let once = clean(&text);
        prop_assert_eq!(clean(&once), once);
    }
}
