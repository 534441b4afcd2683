//! VAPI's lists, page by page from the newest object. They have no cursor, only bounds of time.

use std::{collections::HashSet, time::Duration};

use reqwest::Method;
use serde_json::Value;

use super::{Account, Vapi, text_at};
use crate::{
    Deadline,
    clients::{
        Error, Failure, UpstreamService,
        http_client::{Retry, segment, send_json},
    },
    models::Timestamp,
};

/// Calls of a page. A call with its transcript may have more than 100 KB.
const CALLS: usize = 20;
/// How far VAPI's clock may differ from ours.
pub(super) const CLOCKS_DIFFER: Duration = Duration::from_mins(1);

#[derive(Debug, Clone, Copy)]
pub(super) struct List<'a> {
    /// With its filters: `/call?phoneNumberId=…`.
    pub path: &'a str,
    pub since: Option<Timestamp>,
    pub until: Option<Timestamp>,
    /// Objects of a page.
    pub page: usize,
    pub retry: Retry,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct NamedCall<'a> {
    pub phone_number_id: &'a str,
    pub name: &'a str,
    pub since: Timestamp,
    pub until: Option<Timestamp>,
}

impl Vapi {
    /// Shows each object of a list to `is_enough`, the newest first, until it returns true.
    pub(super) async fn each_newest(
        &self,
        account: &Account,
        list: List<'_>,
        deadline: Deadline,
        mut is_enough: impl FnMut(&Value) -> Result<bool, Error>,
    ) -> Result<(), Error> {
        let (mut size, mut before) = (list.page, list.until);
        let mut seen: HashSet<String> = HashSet::new();
        loop {
            let request = self.request(account, Method::GET, &page_of(list, before, size));
            let page: Vec<Value> = match send_json(UpstreamService::Vapi, request, list.retry, deadline).await {
                Ok(page) => page,
                Err(error) if matches!(error.failure, Failure::TooLarge(_)) && size > 1 => {
                    size /= 2;
                    continue;
                }
                Err(error) => return Err(error),
            };
            let (is_last, mut oldest, mut any_new) = (page.len() < size, None::<Timestamp>, false);
            for object in page {
                let at = object.get("createdAt").and_then(Value::as_str).and_then(|at| at.parse::<Timestamp>().ok());
                oldest = oldest.into_iter().chain(at).min();
                if seen.insert(text_at(&object, "id")?) {
                    any_new = true;
                    if is_enough(&object)? {
                        return Ok(());
                    }
                }
            }
            if is_last {
                return Ok(());
            }
            let oldest = oldest.filter(|oldest| before.is_none_or(|before| *oldest < before));
            let oldest = oldest.ok_or_else(|| endless(list))?;
            // The next page may begin with objects of the same millisecond.
            before = Some(if any_new { oldest.plus(Duration::from_millis(1)) } else { oldest });
        }
    }

    /// The newest call of a number with this name.
    pub(super) async fn call_named(
        &self,
        account: &Account,
        sought: NamedCall<'_>,
        deadline: Deadline,
    ) -> Result<Option<Value>, Error> {
        let path = format!("/call?phoneNumberId={}", segment(sought.phone_number_id));
        let (since, until) = (Some(sought.since), sought.until);
        let list = List { path: &path, since, until, page: CALLS, retry: Retry::NeverProcessed };
        let mut found = None;
        self.each_newest(account, list, deadline, |call| {
            let named = call.get("name").and_then(Value::as_str) == Some(sought.name);
            found = named.then(|| call.clone());
            Ok(named)
        })
        .await?;
        Ok(found)
    }
}

fn page_of(list: List<'_>, before: Option<Timestamp>, size: usize) -> String {
    let joined = if list.path.contains('?') { '&' } else { '?' };
    let bound = |name: &str, at: Option<Timestamp>| {
        at.map(|at| format!("&{name}={}", segment(&at.to_string()))).unwrap_or_default()
    };
    let (since, before) = (bound("createdAtGe", list.since), bound("createdAtLt", before));
    format!("{}{joined}limit={size}{since}{before}", list.path)
}

fn endless(list: List<'_>) -> Error {
    let name = list.path.split('?').next().unwrap_or_default();
    Error::new(UpstreamService::Vapi, Failure::Undecodable(format!("the pages of {name} do not end")))
}
