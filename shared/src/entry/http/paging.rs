//! Paging parameters: `?limit=&cursor=`.

use std::str::FromStr;

use lambda_http::{Request, RequestExt};

use crate::{Error, Result, store::Cursor};

const USUAL_PAGE: i32 = 50;
const LARGEST_PAGE: i32 = 200;

pub fn query(request: &Request) -> Vec<(String, String)> {
    url::form_urlencoded::parse(request.uri().query().unwrap_or_default().as_bytes()).into_owned().collect()
}

/// The limit (1 to 200, default 50) and the cursor, `None` for the first page.
///
/// # Errors
/// [`Error::Invalid`] for `limit` or `cursor`.
pub fn page<P: FromStr>(request: &Request) -> Result<(i32, Option<Cursor<P>>)> {
    let query = request.query_string_parameters();
    let limit = match query.first("limit") {
        None => USUAL_PAGE,
        Some(text) => text
            .parse()
            .ok()
            .filter(|limit| (1..=LARGEST_PAGE).contains(limit))
            .ok_or_else(|| Error::invalid("limit", format!("must be a number from 1 to {LARGEST_PAGE}")))?,
    };
    let cursor = query.first("cursor").filter(|text| !text.is_empty()).map(Cursor::parse).transpose()?;
    Ok((limit, cursor))
}
