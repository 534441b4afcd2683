//! `threads`. Key: id, part. TTL on `expires_at`.
//!
//! Index `by_owner`: owner (`<organization>#<user>`), `created_at`.
//!
//! A conversation is several items under one id, made of organization, user and the name given by the user's client, so a name
//! never leads to another user's thread.
//!
//! | part | content |
//! |---|---|
//! | `thread` | the row: counts, summary, pending consent, the unanswered turn (`running`), the lease of the turn in progress, `stop_token` if it was asked to end; the only part in the indexes |
//! | `m#000001` | the first message |
//! | `r#…` | the number of the message of the request with this name, to find it also when it is summarized |
//! | `name` | under an id of its own, for names that contain a UUID: their owner |
//!
//! A turn's progress is recorded in the row: the message before the model is asked, each acting call before and after, a
//! failure. At the end, one transaction writes message, answer and row. All writes require the lease: concurrent messages are
//! answered in sequence, and a former holder cannot write.

use std::time::Duration;

use aws_sdk_dynamodb::types::AttributeValue;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::{
    Cursor, Lease, Page,
    database::{Database, Item, is_of, key, number, rows, text, to_attribute, to_item},
    deletion::OutOfTime,
    erasure::mentions,
    table::{Query, Table},
    write::{Refused, Write, WriteResult, transact},
};
use crate::{
    Deadline, Error, Result,
    models::{E164, OrganizationId, RunningTurn, Thread, ThreadId, ThreadMessage, ThreadSummary, Timestamp, UserId},
};

const THREAD: &str = "thread";
const LOST: &str = "this thread was deleted, or another request is answering it";
const NAME: &str = "name";
/// Sorts after all messages.
const LAST: &str = "m#~";

#[derive(Clone)]
pub struct Threads {
    table: Table,
}

#[derive(Debug)]
pub struct SavedTurn<'a> {
    pub thread: &'a Thread,
    /// The user's message and its answer, or the one of them that is not yet written.
    pub messages: &'a [ThreadMessage],
}

/// The item of a request's name.
#[derive(Deserialize)]
struct NamedMessage {
    number: u32,
}

/// A thread without the parts that a newer version may have written.
#[derive(Deserialize)]
struct NamedThread {
    name: String,
}

#[derive(Debug)]
pub struct StopRequest {
    table: Table,
    key: Item,
    token: AttributeValue,
}

impl StopRequest {
    pub async fn is_there(&self) -> Result<bool> {
        let row = self.table.item(self.key.clone(), true).await?;
        Ok(row.is_some_and(|row| row.get("stop_token") == Some(&self.token)))
    }
}

impl Threads {
    pub fn new(database: &Database) -> Self {
        Self { table: database.table("threads") }
    }

    /// Acquires the lease on a thread for `length`, creating the thread as `new` if missing. Waits for a turn in progress until
    /// `wait`; deletes an expired thread until `deadline`.
    ///
    /// # Errors
    /// [`Error::Conflict`] if a turn is still in progress, [`Error::NotFound`] if the name belongs to another user's thread.
    pub async fn open(
        &self,
        new: &Thread,
        length: Duration,
        wait: Deadline,
        deadline: Deadline,
    ) -> Result<(Thread, Lease)> {
        match self.acquire(new, length, wait).await {
            Ok((thread, lease)) if thread.expires_at > Timestamp::now().as_seconds() => return Ok((thread, lease)),
            // Expired, but not yet dropped by DynamoDB.
            Ok((thread, lease)) => self.drop_leased(thread.id, None, lease, deadline).await?,
            Err(Error::NotFound(_)) => {}
            Err(error) => return Err(error),
        }
        self.create(new).await?;
        self.acquire(new, length, wait).await
    }

    async fn acquire(&self, thread: &Thread, length: Duration, deadline: Deadline) -> Result<(Thread, Lease)> {
        let (organization, key) = (thread.organization_id, row(thread.id));
        Lease::acquire(organization, &self.table, key, THREAD, length, deadline).await
    }

    /// Writes a new thread; one created concurrently stays.
    async fn create(&self, new: &Thread) -> Result<()> {
        let mut item = to_item(new)?;
        item.insert("part".into(), text(THREAD));
        item.insert("owner".into(), text(owner(new.organization_id, &new.user_id)));
        let mut writes = vec![self.table.put_item(item).when("attribute_not_exists(#id)")];
        if let Some(key) = name_key(&new.name) {
            let mut item = key;
            item.insert("thread_id".into(), text(new.id));
            item.insert("expires_at".into(), number(new.expires_at));
            let free = "attribute_not_exists(#id) OR #thread_id = :thread OR #expires_at < :now";
            let values = [(":thread", text(new.id)), (":now", number(Timestamp::now().as_seconds()))];
            writes.push(self.table.put_item(item).when(free).with(values));
        }
        match transact(writes).await {
            Ok(()) | Err(Refused::Condition(0)) => Ok(()),
            Err(Refused::Condition(_)) => Err(Error::NotFound(THREAD)),
            Err(Refused::Busy(error) | Refused::Other(error)) => Err(error),
        }
    }

    /// The messages after the summary, oldest first, which the model gets verbatim. One query.
    pub async fn unsummarized(&self, thread: &Thread) -> Result<Vec<ThreadMessage>> {
        self.between(thread, thread.first_unsummarized(), LAST).collect().await
    }

    /// The message of the request with this name, and the message after it. Empty without such a message.
    pub async fn of_request(&self, thread: &Thread, name: &str) -> Result<Vec<ThreadMessage>> {
        let named: Option<NamedMessage> = self.table.get_consistent(request_key(thread.id, name)).await?;
        let Some(NamedMessage { number }) = named else { return Ok(Vec::new()) };
        self.between(thread, number, part(number + 1)).collect().await
    }

    /// Expired messages of a thread that goes on are hidden.
    fn between(&self, thread: &Thread, first: u32, last: impl ToString) -> Query {
        let messages = self.table.query("#id = :id AND #part BETWEEN :first AND :last").now();
        messages.filter("#expires_at > :now").with([
            (":id", text(thread.id)),
            (":first", text(part(first))),
            (":last", text(last)),
            (":now", number(Timestamp::now().as_seconds())),
        ])
    }

    pub async fn summarize(&self, lease: &Lease, summary: &ThreadSummary) -> Result<bool> {
        let summarized = lease.update_in_transaction("SET #summary = :summary");
        summarized.with([(":summary", to_attribute(summary)?)]).unless_refused().await
    }

    /// Records that the model gave no usable summary up to this message.
    pub async fn put_summary_off(&self, lease: &Lease, message: u32) -> Result<bool> {
        let noted = lease.update_in_transaction("SET #unsummarized_at = :message");
        noted.with([(":message", number(message.into()))]).unless_refused().await
    }

    /// Records the turn's progress. One write.
    ///
    /// # Errors
    /// [`Error::Conflict`] if the lease is lost.
    pub async fn record(&self, lease: &Lease, running: &RunningTurn) -> Result<()> {
        self.set_running(lease, running, "").await
    }

    /// Records a failed turn with its progress, and releases the lease.
    pub async fn fail(&self, lease: &Lease, running: &RunningTurn) -> Result<()> {
        self.set_running(lease, running, " REMOVE #stop_token, #lease_token, #lease_until").await
    }

    async fn set_running(&self, lease: &Lease, running: &RunningTurn, and: &str) -> Result<()> {
        let written = lease.update_in_transaction(format!("SET #running = :running{and}"));
        let written = written.with([(":running", text(as_text(running)?))]);
        if written.unless_refused().await? { Ok(()) } else { Err(Error::Conflict(LOST.into())) }
    }

    /// Begins a turn after an unanswered one, which is closed with the messages in `over`. `thread` is the new row;
    /// `keeps_pending` if the turn is for its waiting call.
    ///
    /// # Errors
    /// As [`Threads::record`].
    pub async fn begin_after(
        &self,
        lease: &Lease,
        thread: &Thread,
        over: &[ThreadMessage],
        running: &RunningTurn,
        keeps_pending: bool,
    ) -> Result<()> {
        let mut row =
            lease.update_in_transaction("SET #turns = :turns, #messages = :messages, #running = :running").with([
                (":turns", number(thread.turns.into())),
                (":messages", number(thread.messages.into())),
                (":running", text(as_text(running)?)),
            ]);
        if !keeps_pending {
            row = row.and(" REMOVE #pending");
        }
        let mut writes = vec![row];
        for message in over {
            writes.extend(self.puts(thread, message)?);
        }
        transact(writes).await.map_err(|refused| refused.or(LOST))
    }

    /// Writes a turn and releases the lease.
    ///
    /// # Errors
    /// [`Error::Conflict`] if the lease is lost.
    pub async fn save(&self, lease: &Lease, turn: SavedTurn<'_>) -> Result<()> {
        let SavedTurn { thread, messages } = turn;
        let mut row = lease
            .update_in_transaction(
                "SET #title = :title, #turns = :turns, #messages = :messages, #spent = :spent, #updated_at = :now, \
                 #expires_at = :expires",
            )
            .with([
                (":title", text(&thread.title)),
                (":turns", number(thread.turns.into())),
                (":messages", number(thread.messages.into())),
                (":spent", to_attribute(&thread.spent)?),
                (":now", text(thread.updated_at)),
                (":expires", number(thread.expires_at)),
            ]);
        row = match &thread.pending {
            Some(pending) => row
                .and(", #pending = :pending REMOVE #running, #stop_token, #lease_token, #lease_until")
                .with([(":pending", text(as_text(pending)?))]),
            None => row.and(" REMOVE #pending, #running, #stop_token, #lease_token, #lease_until"),
        };
        let mut writes = vec![row];
        for message in messages {
            writes.extend(self.puts(thread, message)?);
        }
        if let Some(key) = name_key(&thread.name) {
            let kept = self.table.update(key, "SET #thread_id = :thread, #expires_at = :expires");
            writes.push(kept.with([(":thread", text(thread.id)), (":expires", number(thread.expires_at))]));
        }
        transact(writes).await.map_err(|refused| refused.or(LOST))
    }

    /// Asks the turn in progress to end. False if there is none.
    ///
    /// # Errors
    /// [`Error::NotFound`] if the organization has no such thread.
    pub async fn ask_to_stop(&self, organization: OrganizationId, id: ThreadId) -> Result<bool> {
        // Identifies the turn by its lease, so that the next turn is not affected.
        let asked = self
            .table
            .update(row(id), "SET #stop_token = #lease_token")
            .when("#lease_until > :now")
            .of(organization)
            .with([(":now", number(Timestamp::now().as_millis()))]);
        match asked.attempt().await? {
            WriteResult::Done(_) => Ok(true),
            WriteResult::Refused(held) if is_of(&held, organization) => Ok(false),
            WriteResult::Refused(_) => Err(Error::NotFound(THREAD)),
        }
    }

    pub fn stop_request(&self, lease: &Lease) -> StopRequest {
        StopRequest { table: self.table.clone(), key: lease.key(), token: lease.token() }
    }

    pub async fn release(&self, lease: Lease) -> Result<()> {
        lease.release().await
    }

    /// The writes of a message and of its request's name.
    fn puts(&self, thread: &Thread, message: &ThreadMessage) -> Result<Vec<Write>> {
        let expires_at = || ("expires_at".to_owned(), number(thread.expires_at));
        let mut item = to_item(message)?;
        item.extend(message_key(thread.id, message.number));
        item.extend([expires_at()]);
        let mut writes = vec![self.table.put_item(item)];
        if let Some(name) = &message.request {
            let mut item = request_key(thread.id, name);
            item.extend([("number".to_owned(), number(message.number.into())), expires_at()]);
            writes.push(self.table.put_item(item));
        }
        Ok(writes)
    }

    pub async fn get(&self, organization: OrganizationId, id: ThreadId) -> Result<Thread> {
        let thread: Thread = self.table.owned(organization, row(id), THREAD).await?;
        if thread.expires_at > Timestamp::now().as_seconds() { Ok(thread) } else { Err(Error::NotFound(THREAD)) }
    }

    pub async fn page(
        &self,
        organization: OrganizationId,
        user: &UserId,
        after: Option<&Cursor>,
        limit: i32,
    ) -> Result<Page<Thread>> {
        let owner = text(owner(organization, user));
        let start = after.map(|cursor| cursor.start_key_of([("part", text(THREAD)), ("owner", owner.clone())]));
        let of_user = self.table.query_index("by_owner", "#owner = :owner").newest_first().filter("#expires_at > :now");
        let of_user = of_user.with([(":owner", owner), (":now", number(Timestamp::now().as_seconds()))]);
        Ok(Page::created(of_user.page(start, Some(limit)).await?))
    }

    /// A page of a thread's messages below `before`, newest first, with the number to continue before.
    pub async fn messages(
        &self,
        thread: &Thread,
        before: Option<u32>,
        limit: i32,
    ) -> Result<(Vec<ThreadMessage>, Option<u32>)> {
        let newest = before.map_or(thread.messages, |before| before.saturating_sub(1));
        let messages = self.between(thread, 0, part(newest)).newest_first();
        let (items, next) = messages.page(None, Some(limit)).await?;
        let next = next.as_ref().and_then(number_of);
        Ok((rows(items), next.filter(|number| *number > 1)))
    }

    /// Deletes a thread and its messages, the row last.
    ///
    /// # Errors
    /// [`Error::NotFound`] if the organization has no such thread, [`Error::Conflict`] if a turn is in progress, or if out of
    /// time.
    pub async fn delete(&self, organization: OrganizationId, id: ThreadId, deadline: Deadline) -> Result<()> {
        let length = deadline.remaining();
        let at_once = Deadline::after(Duration::ZERO);
        let acquired = Lease::acquire::<NamedThread>(organization, &self.table, row(id), THREAD, length, at_once).await;
        let (thread, lease) = acquired.map_err(|error| match error {
            Error::Conflict(_) => Error::Conflict("the thread is just being answered; try again in a moment".into()),
            error => error,
        })?;
        self.drop_leased(id, name_key(&thread.name), lease, deadline).await
    }

    async fn drop_leased(&self, id: ThreadId, name: Option<Item>, lease: Lease, deadline: Deadline) -> Result<()> {
        match self.drop_items(id, name, &lease, deadline).await {
            Ok(()) => Ok(()),
            Err(error) => lease.release().await.and(Err(error)),
        }
    }

    /// The row goes last, with its lease.
    async fn drop_items(&self, id: ThreadId, name: Option<Item>, lease: &Lease, deadline: Deadline) -> Result<()> {
        if let Some(name) = name {
            let named = self.table.delete(name).when("#thread_id = :thread");
            named.with([(":thread", text(id))]).unless_refused().await?;
        }
        let parts = self.table.query("#id = :id").attributes("#id, #part").now();
        let mut keys = parts.with([(":id", text(id))]).items().await?;
        keys.retain(|key| key.get("part") != Some(&text(THREAD)));
        if let Err(OutOfTime) = self.table.delete_all(keys, deadline).await? {
            let sentence = "not everything could be deleted in the time there was; send the request again";
            return Err(Error::Conflict(sentence.into()));
        }
        let gone = self.table.delete(row(id)).when("attribute_not_exists(#id) OR #lease_token = :token");
        if gone.with([(":token", lease.token())]).unless_refused().await? {
            Ok(())
        } else {
            Err(Error::Conflict(LOST.into()))
        }
    }

    /// A page of the organization's threads, newest first, expired ones included.
    pub(super) async fn listed(
        &self,
        organization: OrganizationId,
        after: Option<&Cursor>,
        limit: i32,
    ) -> Result<(Vec<ThreadId>, Option<Cursor>)> {
        let threads = self.table.of_organization(organization).newest_first().attributes("#id");
        let whose = [("organization_id", text(organization)), ("part", text(THREAD))];
        let start = after.map(|after| after.start_key_of(whose));
        let (page, next) = threads.page(start, Some(limit)).await?;
        let ids = page.iter().filter_map(|item| item.get("id")?.as_s().ok()?.parse().ok());
        Ok((ids.collect(), next.as_ref().and_then(Cursor::after)))
    }

    pub(super) async fn mentions(&self, organization: OrganizationId, id: ThreadId, number: &E164) -> Result<bool> {
        mentions(&self.table, organization, id, number).await
    }
}

fn as_text(value: &impl Serialize) -> Result<String> {
    serde_json::to_string(value).map_err(Error::internal)
}

fn row(id: ThreadId) -> Item {
    key([("id", text(id)), ("part", text(THREAD))])
}

fn message_key(id: ThreadId, number: u32) -> Item {
    key([("id", text(id)), ("part", text(part(number)))])
}

fn request_key(id: ThreadId, name: &str) -> Item {
    let part = format!("r#{name}");
    key([("id", text(id)), ("part", text(part))])
}

/// Six digits: messages sort in numerical order.
fn part(number: u32) -> String {
    format!("m#{number:06}")
}

fn number_of(key: &Item) -> Option<u32> {
    key.get("part")?.as_s().ok()?.strip_prefix("m#")?.parse().ok()
}

fn owner(organization: OrganizationId, user: &UserId) -> String {
    format!("{organization}#{user}")
}

/// The key that reserves a name with a UUID for its user: nobody else chooses it by accident. Other names (`main`) may be used
/// by everybody.
fn name_key(name: &str) -> Option<Item> {
    let tail = name.len().checked_sub(36).and_then(|at| name.get(at..))?;
    Uuid::try_parse(tail).ok()?;
    let id = text(format!("name#{name}"));
    Some(key([("id", id), ("part", text(NAME))]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_sort_as_their_numbers_do() {
        let mut parts: Vec<String> = [1, 9, 10, 99, 100, 99_999].map(part).into();
        let sorted = parts.clone();
        parts.sort();
        assert_eq!(parts, sorted);
        assert!(part(999_999).as_str() < LAST && LAST < THREAD);
        assert_eq!(number_of(&Item::from([("part".to_owned(), text(part(42)))])), Some(42));
    }

    #[test]
    fn only_unguessable_names_identify_one_person() {
        for (name, one) in [
            ("0193aa11-4d5e-7f60-8a71-8294a1b2c3d4", true),
            ("ck-0193aa11-4d5e-7f60-8a71-8294a1b2c3d4", true),
            ("main", false),
            ("", false),
            ("ä0193aa11-4d5e-7f60-8a71-8294a1b2c3dä", false),
        ] {
            assert_eq!(name_key(name).is_some(), one, "{name}");
        }
    }
}
