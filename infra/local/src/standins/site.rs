//! Stand-in for a bicycle shop's web site, with menus, scripts, tables and a consent banner.
//!
//! | page | what is there |
//! |---|---|
//! | `/` | the start page, with links to the others |
//! | `/opening-hours` | a table of hours |
//! | `/prices` | prices of repairs and bicycles |
//! | `/order` | the order form, and the delivery prices |
//! | `/robots.txt` | plain text |
//! | `/api/stock.json` | the stock, as JSON |
//! | `/hours` | redirects to `/opening-hours` |
//! | `/slow` | like the start page, after 3 seconds |
//! | `/catalogue` | a page of 300 KB |
//! | `/logo.png` | a picture |
//!
//! Anything else is 404, as a page; anything but GET and HEAD is 405.

use std::{collections::BTreeMap, fmt::Write as _, io, net::SocketAddr, time::Duration};

use serde_json::json;

use super::{
    Standin,
    exchange::{Answer, Request},
    server::{self, Service},
};

/// Delay of the slow page.
const SLOW: Duration = Duration::from_secs(3);
const HTML: &str = "text/html; charset=utf-8";
/// Entries of the catalogue.
const CATALOGUE: usize = 1_500;
/// A picture of one transparent pixel.
const LOGO: &[u8] =
    b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x01\0\0\0\x01\x08\x06\0\0\0\x1f\x15\xc4\x89\0\0\0\rIDATx\x9cc\0\x01\0\0\
    \x05\0\x01\r\n-\xb4\0\0\0\0IEND\xaeB`\x82";

#[derive(Debug)]
pub struct Site(());

/// Starts the stand-in; fails if the address is taken.
pub fn start(address: SocketAddr) -> io::Result<Standin<Site>> {
    server::serve(address, Site(()))
}

impl Service for Site {
    async fn answer(&self, request: &Request) -> Answer {
        if !["GET", "HEAD"].contains(&request.method.as_str()) {
            return self.failure(405);
        }
        match request.path.as_str() {
            "/" | "/slow" => page("Bicycles and repairs in the old harbour", START),
            "/opening-hours" => page("Opening hours", HOURS),
            "/prices" => page("Prices &amp; repairs", PRICES),
            "/order" => page("Order", ORDER),
            "/catalogue" => page("Catalogue", &catalogue()),
            "/robots.txt" => Answer::text(200, "text/plain", "User-agent: *\nDisallow: /order\nCrawl-delay: 2\n"),
            "/api/stock.json" => Answer::json(
                200,
                &json!({
                    "updated_at": "2026-03-02T08:00:00Z",
                    "items": [
                        {"sku": "HC-200", "name": "City bicycle Harbour 200", "price": 749.0, "currency": "USD", "in_stock": 4},
                        {"sku": "HC-310", "name": "Cargo bicycle Crane 310", "price": 2390.0, "currency": "USD", "in_stock": 0},
                    ],
                }),
            ),
            "/logo.png" => Answer::text(200, "image/png", LOGO),
            "/hours" => {
                Answer::empty(301).with_headers(&BTreeMap::from([("location".to_owned(), "/opening-hours".to_owned())]))
            }
            _ => self.failure(404),
        }
    }

    fn failure(&self, status: u16) -> Answer {
        let (title, body) = match status {
            404 => (
                "Not found",
                "<h1>We could not find that page</h1><p>Start again <a href=\"/\">at the beginning</a>.</p>",
            ),
            405 => ("Not possible", "<h1>That cannot be done here</h1>"),
            _ => ("Out of order", "<h1>Something is wrong with our site</h1><p>Please call us.</p>"),
        };
        Answer { status, ..page(title, body) }
    }

    fn pause(&self, request: &Request) -> Duration {
        if request.path == "/slow" { SLOW } else { Duration::ZERO }
    }

    async fn control(&self, _: &Request) -> Option<Answer> {
        None
    }
}

/// A page of the site: `main` within header, menus and footer.
fn page(title: &str, main: &str) -> Answer {
    let page = format!(
        r##"<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title} &ndash; Harbour Cycles</title>
<link rel="stylesheet" href="/assets/site.css?v=41">
<style>
  :root {{ --ink: #123; }} body {{ font: 16px/1.5 sans-serif; color: var(--ink) }} .banner {{ position: fixed; bottom: 0 }}
  nav ul {{ display: flex; gap: 1rem; list-style: none }} table td {{ padding: .25rem 1rem }} .is-hidden {{ display: none }}
</style>
<script>window.dataLayer = window.dataLayer || []; function track(a) {{ dataLayer.push(a) }} if (1 < 2 && "</p>") track("view");</script>
<script type="application/ld+json">{{"@context": "https://schema.org", "@type": "BicycleStore", "name": "Harbour Cycles"}}</script>
</head>
<body class="page">
<!-- header: please keep in step with footer.html -->
<header>
  <a href="/"><img src="/logo.png" alt="Harbour Cycles" width="120" height="40"></a>
  <svg width="24" height="24" role="img"><title>Decorative waves</title><path d="M0 12c4 0 4-4 8-4s4 4 8 4 4-4 8-4"/></svg>
  <nav aria-label="Main"><ul>
    <li><a href="/opening-hours">Opening&nbsp;hours</a></li>
    <li><a href="/prices">Prices &amp; repairs</a></li>
    <li><a href="/order">Order</a></li>
    <li><a href="/catalogue">Catalogue</a></li>
  </ul></nav>
</header>
<main>
{main}
</main>
<footer>
  <p>Harbour Cycles, 12 Quay Street, Port Alder &middot; <a href="tel:+15550100199">+1 (555) 010-0199</a> &middot;
     <a href="mailto:hello@harbour-cycles.example">hello@harbour-cycles.example</a></p>
  <p><small>&copy; 2026 Harbour Cycles. <a href="#top">Back to top</a> <a href="https://maps.example/?q=Quay+Street+12">Map</a></small></p>
</footer>
<template id="row"><tr><td>day</td><td>hours</td></tr></template>
<div class="banner"><p>We use cookies. <button onclick="track('yes')">Fine</button></p></div>
<script async src="https://stats.example/collect.js"></script>
<noscript><img src="https://stats.example/pixel.gif" alt=""></noscript>
</body>
</html>
"##
    );
    Answer::text(200, HTML, page)
}

const START: &str = r#"<h1>Bicycles and repairs in the old harbour</h1>
<p>We have sold and mended bicycles since 1987. Come in, or <a href="order">order one</a>: we bring it to your door.</p>
<ul>
  <li>When are we there? See our <a href="/opening-hours">opening hours</a>.</li>
  <li>What does it cost? See our <a href="/prices">prices</a>.</li>
</ul>
<p>For programs: <a href="/api/stock.json">what is in stock</a>.</p>"#;

const HOURS: &str = r"<h1>Opening hours</h1>
<p>The workshop takes bicycles until <strong>half an hour</strong> before we close.</p>
<table>
  <thead><tr><th>Day</th><th>Shop</th><th>Workshop</th></tr></thead>
  <tbody>
    <tr><td>Monday</td><td>closed</td><td>closed</td></tr>
    <tr><td>Tuesday &ndash; Friday</td><td>09:00&ndash;18:30</td><td>09:00&ndash;18:00</td></tr>
    <tr><td>Saturday</td><td>10:00&ndash;16:00</td><td>by appointment</td></tr>
    <tr><td>Sunday</td><td>closed</td><td>closed</td></tr>
  </tbody>
</table>
<p>On public holidays we are closed.<br>Between the years: 27&nbsp;to 30&nbsp;December, 10:00&ndash;14:00.</p>";

const PRICES: &str = r"<h1>Prices &amp; repairs</h1>
<h2>Workshop</h2>
<table>
  <tr><th>Work</th><th>Price</th></tr>
  <tr><td>Puncture, with a new tube</td><td>$24</td></tr>
  <tr><td>Brakes adjusted, per wheel</td><td>$18</td></tr>
  <tr><td>Yearly service</td><td>$95 <s>$110</s></td></tr>
</table>
<h2>Bicycles</h2>
<dl>
  <dt>City bicycle Harbour 200</dt><dd>$749, in 4 sizes</dd>
  <dt>Cargo bicycle Crane 310</dt><dd>$2,390, six weeks&rsquo; wait</dd>
</dl>
<p>All prices include tax. A repair that takes less than five minutes is free.</p>";

const ORDER: &str = r#"<h1>Order</h1>
<form action="/order" method="post">
  <input type="hidden" name="csrf" value="5f1c0de">
  <fieldset><legend>What you would like</legend>
    <label>Bicycle <select name="sku"><option value="HC-200">Harbour 200</option><option value="HC-310">Crane 310</option></select></label>
    <label>Size <input name="size" value="M"></label>
  </fieldset>
  <label>Anything we should know? <textarea name="note">Please ring the bell</textarea></label>
  <button type="submit">Order with obligation to pay</button>
</form>
<h2>Delivery</h2>
<ol><li>Within Port Alder: free, the next working day.</li><li>Anywhere else: $45, in three to five working days.</li></ol>"#;

fn catalogue() -> String {
    let mut entries = String::from("<h1>Catalogue</h1>\n<ul>\n");
    for number in 1..=CATALOGUE {
        // Writing to a String cannot fail.
        let _ok = writeln!(
            entries,
            "<li class=\"entry entry--part\" data-sku=\"P-{number:04}\"><a href=\"/parts/{number:04}\"><span class=\"name\">Part {number:04}</span></a>: \
             fits the Harbour 200 &amp; the Crane 310, ${}.50, always in stock</li>",
            number % 90 + 5
        );
    }
    entries + "</ul>"
}
