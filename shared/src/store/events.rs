//! `events`. Key: id, made of the hook and the service's event id. Rows outlast any service's retries.
//!
//! Index `unmatched`: `unmatched_of` (the organization), `created_at`,
//! of events that started nothing.

use aws_sdk_dynamodb::types::AttributeValue;

use super::{
    CreatedFilter, Cursor, Page,
    cursor::Filters,
    database::{Database, Item, from_item, id, is_of, number, rows, text, to_attribute},
    table::Table,
    write::WriteResult,
};
use crate::{
    Error, Result,
    models::{
        AutomationId, E164, Event, EventId, EventStatus, MatchedRun, OrganizationId, ReplayFilter, ReplayPosition,
        Timestamp, Unmatched,
    },
    redaction,
};

const WHAT: &str = "event";
/// Of an organization, for samples of a service's.
const LOOKED_THROUGH: i32 = 200;
const MOST_SAMPLES: usize = 20;

#[derive(Debug, Clone, Default)]
pub struct EventFilter {
    /// Only events that started nothing.
    pub unmatched: bool,
    /// The folded service name.
    pub service: Option<String>,
    /// Started by the event, or listening to it. Rows of an older version are not found.
    pub automation: Option<AutomationId>,
}

/// The list that [`EventFilter::automation`] searches: DynamoDB cannot search within maps.
fn automations(matched: &[MatchedRun], unmatched: &[Unmatched], waiting: &[AutomationId]) -> Result<AttributeValue> {
    let matched = matched.iter().map(|matched| matched.automation_id);
    let ids = matched.chain(unmatched.iter().map(|unmatched| unmatched.automation_id)).chain(waiting.iter().copied());
    to_attribute(&ids.collect::<Vec<_>>())
}

#[derive(Clone)]
pub struct Events {
    table: Table,
}

impl Events {
    pub fn new(database: &Database) -> Self {
        Self { table: database.table("events") }
    }

    /// Inserts an event; returns the existing row if there is one.
    pub async fn receive(&self, event: &Event) -> Result<Option<Event>> {
        if self.table.put(event)?.when("attribute_not_exists(#id)").unless_refused().await? {
            return Ok(None);
        }
        self.table.owned(event.organization_id, id(event.id), WHAT).await.map(Some)
    }

    /// Records the outcome of an event after all its runs were started.
    pub async fn dispatched(&self, event: &Event, matched: &[MatchedRun], unmatched: &[Unmatched]) -> Result<()> {
        let mut change =
            "SET #status = :status, #matched = :matched, #unmatched = :unmatched, #woke = :woke, #automations = :automations, #updated_at = :now".to_owned();
        let mut values = vec![
            (":status", to_attribute(&EventStatus::Dispatched)?),
            (":matched", to_attribute(&matched)?),
            (":unmatched", to_attribute(&unmatched)?),
            (":woke", to_attribute(&event.woke)?),
            (":automations", automations(matched, unmatched, &[])?),
            (":now", text(Timestamp::now())),
        ];
        if matched.is_empty() && event.woke.is_empty() {
            change.push_str(", #unmatched_of = :none_of");
            values.push((":none_of", text(event.organization_id)));
        }
        change.push_str(" REMOVE #waiting, #has_waits");
        // The event may have been deleted; the first recorded outcome stays.
        let update = self.table.update(id(event.id), change).when("#status <> :status").of(event.organization_id);
        let update = values.into_iter().fold(update, |update, value| update.with([value]));
        match update.attempt().await? {
            WriteResult::Done(_) | WriteResult::Refused(_) => Ok(()),
        }
    }

    /// Records the outcome so far and the automations still waiting to be matched.
    pub async fn waits(&self, event: &Event) -> Result<()> {
        let change = "SET #matched = :matched, #unmatched = :unmatched, #waiting = :waiting, #woke = :woke, #has_waits = :has_waits, #automations = :automations, #updated_at = :now";
        let update = self.table.update(id(event.id), change).with([
            (":matched", to_attribute(&event.matched)?),
            (":unmatched", to_attribute(&event.unmatched)?),
            (":waiting", to_attribute(&event.waiting)?),
            (":woke", to_attribute(&event.woke)?),
            (":has_waits", AttributeValue::Bool(event.has_waits)),
            (":automations", automations(&event.matched, &event.unmatched, &event.waiting)?),
            (":now", text(Timestamp::now())),
            (":dispatched", to_attribute(&EventStatus::Dispatched)?),
        ]);
        match update.when("#status <> :dispatched").of(event.organization_id).attempt().await? {
            WriteResult::Done(_) | WriteResult::Refused(_) => Ok(()),
        }
    }

    pub async fn get(&self, organization: OrganizationId, event: EventId) -> Result<Event> {
        let event: Event = self.table.owned(organization, id(event), WHAT).await?;
        if event.expires_at > Timestamp::now().as_seconds() { Ok(event) } else { Err(Error::NotFound(WHAT)) }
    }

    pub async fn page(
        &self,
        organization: OrganizationId,
        created: &CreatedFilter,
        wanted: &EventFilter,
    ) -> Result<Page<Event>> {
        let mut filters = Filters::default().equal("service", wanted.service.as_ref().map(text));
        // The index `unmatched` does not hold the automations, and an index cannot be changed.
        let indexed = wanted.unmatched && wanted.automation.is_none();
        if let Some(automation) = wanted.automation {
            filters = filters.and("contains(#automations, :automation)", [(":automation", text(automation))]);
            if wanted.unmatched {
                filters = filters.and("attribute_exists(#unmatched_of)", []);
            }
        }
        if indexed {
            let query = self
                .table
                .query_index("unmatched", "#unmatched_of = :organization AND #created_at BETWEEN :since AND :until")
                .of(organization);
            Page::filtered(organization, query, created, filters, [("unmatched_of", text(organization))]).await
        } else {
            let query = self.table.query_index(
                "by_organization",
                "#organization_id = :organization AND #created_at BETWEEN :since AND :until",
            );
            Page::filtered(organization, query, created, filters, [("organization_id", text(organization))]).await
        }
    }

    /// The data of the newest events of a service, and of one type if one is named. Looks through the organization's newest
    /// events only; unreadable data is left out.
    pub async fn samples(
        &self,
        organization: OrganizationId,
        service: &str,
        event_type: Option<&str>,
    ) -> Result<Vec<serde_json::Value>> {
        let now = number(Timestamp::now().as_seconds());
        let newest = self.table.of_organization(organization).newest_first();
        let newest = newest.filter("#expires_at > :now AND #service = :service");
        let newest = newest.with([(":now", now), (":service", text(service))]);
        let newest = match event_type {
            None => newest,
            Some(name) => newest.filter("contains(#event_types, :type)").with([(":type", text(name))]),
        };
        let (items, _) = newest.attributes("#data").page(None, Some(LOOKED_THROUGH)).await?;
        let data = items.iter().take(MOST_SAMPLES).filter_map(|item| item.get("data")?.as_s().ok());
        Ok(data.filter_map(|data| serde_json::from_str(data).ok()).collect())
    }

    /// Events in the order of arrival, from the one after `after` on: of these times, and of the service if one is named. Also
    /// the position to continue after.
    pub async fn in_order(
        &self,
        organization: OrganizationId,
        of: &ReplayFilter,
        after: Option<ReplayPosition>,
        limit: Option<i32>,
    ) -> Result<(Vec<Event>, Option<ReplayPosition>)> {
        let table = &self.table;
        let range =
            table.query_index("by_organization", "#organization_id = :of AND #created_at BETWEEN :since AND :end");
        let range = range.filter("#expires_at > :now").with([
            (":of", text(organization)),
            // Before every time.
            (":since", of.since.map_or_else(|| text("0"), text)),
            // `until` is exclusive, and times have milliseconds.
            (":end", text(Timestamp::from_millis(of.until.as_millis() - 1))),
            (":now", number(Timestamp::now().as_seconds())),
        ]);
        let range = match &of.service {
            Some(service) => range.filter("#service = :service").with([(":service", text(service))]),
            None => range,
        };
        let start = after.map(|after| Cursor::at(after.created_at, &after.id).start_key(organization));
        let (items, next) = range.page(start, limit).await?;
        Ok((rows(items), next.map(from_item).transpose()?))
    }

    /// The keys of events on the next page that contain the number, and the cursor after it.
    pub(super) async fn keys_mentioning(
        &self,
        organization: OrganizationId,
        number: &E164,
        after: Option<&Cursor>,
        limit: i32,
    ) -> Result<(Vec<Item>, Option<Cursor>)> {
        let start = after.map(|cursor| cursor.start_key(organization));
        let (items, next) = self.table.of_organization(organization).newest_first().page(start, Some(limit)).await?;
        let text_of = |item: &Item, name: &str| item.get(name).and_then(|value| value.as_s().ok()).cloned();
        let names = |item: &Item| {
            // JSON escapes contain no digits; the reason for not matching may quote the number.
            let why = item.get("unmatched").map(|why| format!("{why:?}"));
            [text_of(item, "data"), why].into_iter().flatten().any(|text| redaction::mentions(&text, number))
        };
        let keys = items.iter().filter(|item| is_of(item, organization) && names(item));
        let keys = keys.filter_map(|item| text_of(item, "id")).map(id).collect();
        Ok((keys, next.as_ref().and_then(Cursor::after)))
    }

    /// False if the organization has no such event.
    pub(super) async fn delete(&self, organization: OrganizationId, event: EventId) -> Result<bool> {
        self.table.delete(id(event)).of(organization).unless_refused().await
    }

    pub(super) fn table(&self) -> &Table {
        &self.table
    }
}
