//! The do-not-call list: numbers that no tool calls.

use std::str::FromStr;

use serde::Serialize;
use shared::{
    Result,
    declared::Body,
    described::{Described, Json, Schemas},
    http::{Asked, Asks, Deleted, Id, Made, Number, Paged, Sent, Wanted, operation},
    models::{DoNotCall, DoNotCallId, DoNotCallSource, E164, NotE164, Timestamp},
    store::Page,
};

use crate::Deps;

/// An entry. The number itself is not stored.
#[derive(Serialize, Described)]
pub(crate) struct DoNotCallView {
    id: DoNotCallId,
    /// The number's last two digits.
    ending: String,
    source: DoNotCallSource,
    created_at: Timestamp,
}

impl From<DoNotCall> for DoNotCallView {
    fn from(DoNotCall { id, ending, source, created_at, .. }: DoNotCall) -> Self {
        Self { id, ending, source, created_at }
    }
}

#[derive(Body)]
pub(crate) struct NewDoNotCall {
    /// In E.164 form.
    phone_number: E164,
}

/// `?number=`
pub(crate) struct OfNumber(E164);

impl FromStr for OfNumber {
    type Err = NotE164;

    fn from_str(text: &str) -> Result<Self, NotE164> {
        text.parse().map(|Number(number)| Self(number))
    }
}

impl Described for OfNumber {
    fn schema(schemas: &mut Schemas) -> Json {
        E164::schema(schemas)
    }
}

impl Asks for OfNumber {
    const NAME: &'static str = "number";
    const DOC: &'static str = "Only the entry of this number.";
}

/// Put a number on the do-not-call list
///
/// No tool of the organization calls it any more, from its next call on. A digest is kept in place of the number, so the entry
/// outlives the erasure of the number. A number that is listed already is answered 200 with its entry.
///
/// - 201: The entry.
/// - 200: The entry of a number that was listed.
///
/// ```json,number
/// {"phone_number": "+14155550101"}
/// ```
#[operation(POST "/api/{slug}/do-not-call", Admin)]
pub(crate) async fn add_do_not_call(
    deps: &Deps,
    asked: &Asked<'_>,
    body: Sent<NewDoNotCall>,
) -> Result<Made<DoNotCallView>> {
    let NewDoNotCall { phone_number } = body.read()?;
    let entry = DoNotCall::new(asked.organization(), &phone_number, DoNotCallSource::Member);
    if deps.do_not_call.add(&entry).await? {
        return Ok(Made::New(entry.into()));
    }
    let listed = deps.do_not_call.of_number(asked.organization(), &phone_number).await?;
    Ok(Made::There(listed.unwrap_or(entry).into()))
}

/// List the do-not-call entries
///
/// In the order of their ids. With `number`, only that number's entry.
///
/// - 200: A page of entries.
#[operation(GET "/api/{slug}/do-not-call", Viewer)]
pub(crate) async fn list_do_not_call(
    deps: &Deps,
    asked: &Asked<'_>,
    page: Paged<String>,
    number: Wanted<OfNumber>,
) -> Result<Page<DoNotCallView>> {
    let page = match number.0 {
        Some(OfNumber(number)) => {
            let entry = deps.do_not_call.of_number(asked.organization(), &number).await?;
            Page { items: entry.into_iter().collect(), next_cursor: None }
        }
        None => deps.do_not_call.page(asked.organization(), page.cursor.as_ref(), page.limit).await?,
    };
    Ok(page.map(DoNotCallView::from))
}

/// Take a number off the do-not-call list
///
/// Tools may call it again.
///
/// - 200: It is gone.
#[operation(DELETE "/api/{slug}/do-not-call/{id}", Admin)]
pub(crate) async fn remove_do_not_call(deps: &Deps, asked: &Asked<'_>, id: Id<DoNotCallId>) -> Result<Deleted> {
    deps.do_not_call.remove(asked.organization(), id.0).await?;
    Ok(Deleted)
}
