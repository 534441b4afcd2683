//! A user's threads: listed, shown, deleted. Nobody sees another user's.

use percent_encoding::percent_decode_str;
use serde::Serialize;
use serde_json::Value;
use shared::{
    Error, Result,
    chat::{CalledTool, LONGEST_THREAD, PendingAction, RunningTurnView, running_view, unanswered},
    described::{Described, Schemas, json},
    error::found,
    http::{Answers, Asked, Found, Gone, Operation, Paged, Part, Reply, Shown, operation},
    models::{Member, PendingCall, Role, Slug, Thread, ThreadId, ThreadMessage, ThreadSummary, Timestamp},
    planner::Widget,
    store::{Cursor, Page},
};

use crate::Deps;

/// The client's name for the thread.
pub(crate) struct ThreadName {
    /// As the path has it.
    written: String,
    decoded: String,
}

impl Part for ThreadName {
    fn of(found: &Found<'_>) -> Result<Self> {
        let written = found.variable(0);
        let name = percent_decode_str(written).decode_utf8().map_err(|_no_text| Error::NotFound("thread"))?;
        if name.chars().count() > LONGEST_THREAD {
            return Err(Error::NotFound("thread"));
        }
        Ok(Self { decoded: name.into_owned(), written: written.to_owned() })
    }

    fn describe(operation: &mut Operation, _: &mut Schemas) {
        let schema = json!({"type": "string", "maxLength": LONGEST_THREAD});
        let text = "What the user's clients call the thread. A thread of an earlier version with `/`, `?` or `#` in its \
                    name cannot be named in an address: API Gateway decodes it before it chooses the route.";
        operation.names(text, schema);
    }
}

impl ThreadName {
    /// Somebody else's name leads to another id. API Gateway has decoded the path, so a `%` in it is part of the name of
    /// a thread of an earlier version.
    async fn id(&self, deps: &Deps, member: &Member) -> Result<ThreadId> {
        let id = |name: &str| ThreadId::of_name(member.organization_id, &member.user_id, name);
        let written = id(&self.written);
        if self.written != self.decoded
            && found(deps.turns.threads.get(member.organization_id, written).await)?.is_some()
        {
            return Ok(written);
        }
        Ok(id(&self.decoded))
    }
}

#[derive(Serialize, Described)]
pub(crate) struct ThreadView {
    thread_id: String,
    /// How its first message begins.
    title: String,
    turns: u32,
    messages: u32,
    pending_action: Option<PendingAction>,
    created_at: Timestamp,
    updated_at: Timestamp,
}

impl From<Thread> for ThreadView {
    fn from(thread: Thread) -> Self {
        let pending = thread.pending_call().filter(PendingCall::asks_person);
        Self {
            pending_action: pending.as_ref().map(PendingAction::from),
            thread_id: thread.name,
            title: thread.title,
            turns: thread.turns,
            messages: thread.messages,
            created_at: thread.created_at,
            updated_at: thread.updated_at,
        }
    }
}

#[derive(Serialize, Described)]
pub(crate) struct WholeThreadView {
    #[serde(flatten)]
    thread: ThreadView,
    /// The summary of the older messages, for the model. The messages stay until each expires.
    summary: Option<ThreadSummaryView>,
    running: Option<RunningTurnView>,
    #[schema(maxItems = 200)]
    items: Vec<ThreadMessageView>,
    next_cursor: Option<String>,
}

#[derive(Serialize, Described)]
struct ThreadSummaryView {
    text: String,
    /// The last message that it stands for.
    #[schema(minimum = 1)]
    until: u32,
    at: Timestamp,
}

impl From<ThreadSummary> for ThreadSummaryView {
    fn from(ThreadSummary { text, until, at }: ThreadSummary) -> Self {
        Self { text, until, at }
    }
}

#[derive(Serialize, Described)]
struct ThreadMessageView {
    #[schema(minimum = 1)]
    number: u32,
    #[schema(r#enum = ["user", "assistant", "unknown"])]
    role: &'static str,
    content: String,
    tools: Vec<CalledTool>,
    #[schema(of = "Option<Widget>")]
    widget: Option<Value>,
    /// As the answer had it, with its `receipt`. An unanswered message is followed by one with `failed: true`, the
    /// reason, the calls made, and the `message_id` for sending it again; a message whose turn acted and waits for the
    /// page, by one with `incomplete: true`.
    #[schema(of = "Option<serde_json::Map<String, Value>>")]
    metadata: Option<Value>,
    created_at: Timestamp,
}

impl From<&ThreadMessage> for ThreadMessageView {
    fn from(message: &ThreadMessage) -> Self {
        let parsed = |text: Option<&str>| -> Option<Value> { text.and_then(|text| serde_json::from_str(text).ok()) };
        Self {
            number: message.number,
            role: message.role.as_str(),
            content: message.content.clone(),
            tools: message.results().iter().map(CalledTool::from).collect(),
            widget: parsed(message.widget.as_deref()),
            metadata: parsed(message.metadata.as_deref()),
            created_at: message.created_at,
        }
    }
}

/// A page of threads, with the organization's slug and the user's role in headers.
pub(crate) struct ThreadPage {
    page: Page<ThreadView>,
    slug: Option<Slug>,
    role: Role,
}

impl Answers for ThreadPage {
    fn reply(self) -> Result<Reply> {
        let slug = self.slug.map(|slug| ("x-organization", slug.to_string()));
        let headers = slug.into_iter().chain([("x-role", self.role.as_str().to_owned())]);
        Ok(Reply::ok(&self.page)?.with_headers(headers))
    }

    fn describe(operation: &mut Operation, schemas: &mut Schemas) {
        Page::<ThreadView>::describe(operation, schemas);
        operation.tells(200, "X-Organization", "The organization's slug.");
        operation.tells(200, "X-Role", "The user's role in the organization.");
    }
}

/// List your threads
///
/// Newest first. Other users' threads are not listed.
///
/// - 200: A page of threads.
#[operation(GET "/agent/threads", Viewer)]
pub(crate) async fn list_threads(deps: &Deps, asked: &Asked<'_>, page: Paged) -> Result<ThreadPage> {
    let (member, after) = (&asked.member, page.cursor.as_ref());
    let page = deps.turns.threads.page(member.organization_id, &member.user_id, after, page.limit).await?;
    Ok(ThreadPage { page: page.map(ThreadView::from), slug: asked.slug.clone(), role: member.role })
}

/// A thread with its messages
///
/// - 200: The thread, and a page of its messages, newest first.
#[operation(GET "/agent/threads/{id}", Viewer)]
pub(crate) async fn get_thread(
    deps: &Deps,
    asked: &Asked<'_>,
    page: Paged<u32>,
    name: ThreadName,
) -> Result<Shown<WholeThreadView>> {
    let (limit, before) = (page.limit, page.cursor.map(|Cursor(number)| number));
    let thread = deps.turns.threads.get(asked.organization(), name.id(deps, &asked.member).await?).await?;
    // The row's unanswered messages are newer than the stored ones.
    let mut newest = unanswered(&thread);
    newest.retain(|message| before.is_none_or(|before| message.number < before));
    let newest = newest.split_off(newest.len().saturating_sub(usize::try_from(limit).unwrap_or_default()));
    let room = limit.saturating_sub(i32::try_from(newest.len()).unwrap_or_default());
    let (messages, next) = match newest.first() {
        Some(oldest) if room <= 0 => (Vec::new(), Some(oldest.number).filter(|number| *number > 1)),
        _ => deps.turns.threads.messages(&thread, before, room).await?,
    };
    Ok(Shown(WholeThreadView {
        summary: thread.summary.clone().map(ThreadSummaryView::from),
        running: running_view(&thread),
        items: newest.iter().rev().chain(&messages).map(ThreadMessageView::from).collect(),
        next_cursor: next.map(|number| Cursor(number).to_string()),
        thread: thread.into(),
    }))
}

/// Delete a thread
///
/// With everything that was said in it. A thread with a running turn is a conflict.
#[operation(DELETE "/agent/threads/{id}", Member, also(409))]
pub(crate) async fn delete_thread(deps: &Deps, asked: &Asked<'_>, name: ThreadName) -> Result<Gone> {
    deps.turns.threads.delete(asked.organization(), name.id(deps, &asked.member).await?, asked.deadline).await?;
    tracing::info!("a thread was deleted");
    Ok(Gone)
}
