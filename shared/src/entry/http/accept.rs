//! Negotiates the form of an answer by `Accept` (RFC 9110, section 12.5.1).

use lambda_http::Request;

const PLAIN: &str = "text/plain; charset=utf-8";
const MARKDOWN: &str = "text/markdown; charset=utf-8";

/// The content type of the requested text; `None` for JSON, the default.
pub fn accepted_text(request: &Request) -> Option<&'static str> {
    let headers = request.headers().get_all("accept").iter().filter_map(|value| value.to_str().ok());
    let mut ranges: Vec<(f32, &str)> = headers.flat_map(|value| value.split(',')).map(range).collect();
    // The sort is stable: of equal weights the first wins.
    ranges.sort_by(|(one, _), (other, _)| other.total_cmp(one));
    let mut wanted = ranges.into_iter().filter(|(weight, _)| *weight > 0.0);
    wanted.find_map(|(_, range)| match range.to_ascii_lowercase().as_str() {
        "text/plain" | "text/*" => Some(Some(PLAIN)),
        "text/markdown" => Some(Some(MARKDOWN)),
        "application/json" | "application/*" | "*/*" => Some(None),
        _ => None,
    })?
}

/// Splits `text/plain; q=0.5` into weight and media range.
fn range(text: &str) -> (f32, &str) {
    let mut parts = text.split(';').map(str::trim);
    let range = parts.next().unwrap_or_default();
    let weight = parts.find_map(|part| part.strip_prefix("q=").or_else(|| part.strip_prefix("Q=")));
    (weight.and_then(|weight| weight.parse().ok()).unwrap_or(1.0), range)
}

#[cfg(test)]
mod tests {
    use lambda_http::Body;

    use super::*;

    #[test]
    fn the_first_known_form_of_the_greatest_weight_is_answered() {
        for (accept, wanted) in [
            ("", None),
            ("application/json", None),
            ("*/*", None),
            ("text/plain", Some(PLAIN)),
            ("TEXT/Markdown", Some(MARKDOWN)),
            ("text/*", Some(PLAIN)),
            ("application/json, text/plain", None),
            ("text/plain, application/json", Some(PLAIN)),
            ("application/json;q=0.5, text/markdown", Some(MARKDOWN)),
            ("text/plain;q=0, */*;q=0.1", None),
            ("text/html, application/xhtml+xml, */*;q=0.8", None),
            ("image/png", None),
            (";;,,q=", None),
        ] {
            let mut request = Request::new(Body::Empty);
            if !accept.is_empty() {
                request.headers_mut().insert("accept", accept.parse().unwrap());
            }
            assert_eq!(accepted_text(&request), wanted, "{accept}");
        }
    }
}
