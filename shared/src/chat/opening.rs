//! Opens a turn: acquires the thread, interprets the request, and records the turn's beginning. Every refusal happens
//! here.

use std::time::Duration;

use futures_util::try_join;

use super::{
    ChatInput, TurnAnswer, Turns,
    request::{awaited, earlier, stored_name},
    running::unanswered,
    turn::{Begun, Following, Held, NewTurn, OpenTurn, TURN_NEEDS},
};
use crate::{
    Deadline, Error, Result,
    error::found,
    fields::is_invisible,
    models::{
        Budget, BudgetUse, ChatRole, Member, OfferedTool, PendingCall, RunningTurn, Spent, Thread, ThreadId,
        ThreadMessage, Timestamp, WaitsFor,
    },
    planner::Offer,
    store::over,
    tool::Toolbox,
};

const WAITS_FOR_ANOTHER: Duration = Duration::from_secs(10);
/// The wait before the thread's current turn is compared with the request.
const LOOKS_FOR_SAME: Duration = Duration::from_millis(250);
/// A lease outlasts the invocation that holds it.
const LEASE_RESERVE: Duration = Duration::from_secs(5);
const LONGEST_TITLE: usize = 80;

enum Beginning {
    Earlier(TurnAnswer),
    New { running: RunningTurn, pending: Option<PendingCall>, toolbox: Toolbox },
}

enum Holder {
    Us(Box<Held>),
    Same(Box<Thread>, RunningTurn),
}

impl Turns {
    /// Opens a turn of a member's thread, creating the thread if necessary. Every refusal happens here.
    ///
    /// # Errors
    /// [`Error::OverBudget`]; [`Error::Invalid`] for a new thread's name; [`Error::NotFound`] for the name of another
    /// user's thread; [`Error::Conflict`] if another turn does not end in time, if nothing waits for this input, or if
    /// the request name was used for another message.
    pub async fn open(
        &self,
        member: &Member,
        email: Option<String>,
        asked: ChatInput,
        deadline: Deadline,
    ) -> Result<OpenTurn> {
        let organization = member.organization_id;
        let deadline = deadline.at_most(self.settings.turn_within);
        let (account, usage) = try_join!(self.accounts.llm(organization), self.budgets.usage(organization, deadline))?;
        let cost = Budget::of_cost(account.is_own());
        let used_up = usage.iter().find(|usage| usage.budget == cost && usage.is_used_up(Timestamp::now()));
        let refused = used_up.map(|used_up| Error::from(over(used_up))).or_else(|| asked.refused_thread());
        if let Some(refused) = refused
            && found(self.threads.get(organization, self.new_thread(member, &asked).id).await)?.is_none()
        {
            return Err(refused);
        }
        let name = asked.name.as_deref().map(stored_name);
        let mut held = match self.hold(member, &asked, name.as_deref(), used_up, deadline).await? {
            Holder::Us(held) => *held,
            Holder::Same(thread, running) => {
                let pending = thread.pending_call();
                let following = Following { member: member.clone(), email, thread: thread.id, running, pending };
                return Ok(OpenTurn { asked, deadline, begun: Begun::Running(Box::new(following)) });
            }
        };
        match Box::pin(self.begin(member, &mut held, &asked, name, used_up, deadline)).await {
            Ok(Beginning::New { running, pending, toolbox }) => {
                let new = NewTurn { member: member.clone(), email, account, held, running, pending, toolbox };
                Ok(OpenTurn { asked, deadline, begun: Begun::New(Box::new(new)) })
            }
            Ok(Beginning::Earlier(answer)) => {
                self.release(held.lease).await;
                Ok(OpenTurn { asked, deadline, begun: Begun::Earlier(Box::new(answer)) })
            }
            Err(error) => {
                self.release(held.lease).await;
                Err(error)
            }
        }
    }

    /// Acquires the thread. Waits for another turn, unless that answers the same request.
    async fn hold(
        &self,
        member: &Member,
        asked: &ChatInput,
        name: Option<&str>,
        used_up: Option<&BudgetUse>,
        deadline: Deadline,
    ) -> Result<Holder> {
        let new = self.new_thread(member, asked);
        let wait = deadline.reserving(TURN_NEEDS).at_most(WAITS_FOR_ANOTHER);
        loop {
            let length = deadline.remaining() + LEASE_RESERVE;
            let busy = match self.threads.open(&new, length, wait.at_most(LOOKS_FOR_SAME), wait).await {
                Ok((thread, lease)) => {
                    return Ok(Holder::Us(Box::new(Held { thread, lease, messages: Vec::new(), summarized: false })));
                }
                Err(busy @ Error::Conflict(_)) => busy,
                Err(error) => return Err(error),
            };
            // `None` if it was deleted or has expired: the next attempt creates it.
            let thread = found(self.threads.get(new.organization_id, new.id).await)?;
            if let Some(thread) = thread.filter(Thread::is_held)
                && let Some(running) = thread.running_turn().filter(|running| running.failed.is_none())
                && running.is_of(asked, name, true, self.settings.turn_within)?
            {
                return Ok(Holder::Same(Box::new(thread), running));
            }
            if let Some(used_up) = used_up {
                return Err(over(used_up).into());
            }
            if wait.remaining().is_zero() {
                return Err(busy);
            }
        }
    }

    async fn begin(
        &self,
        member: &Member,
        held: &mut Held,
        asked: &ChatInput,
        name: Option<String>,
        used_up: Option<&BudgetUse>,
        deadline: Deadline,
    ) -> Result<Beginning> {
        held.messages = self.threads.unsummarized(&held.thread).await?;
        let before = held.thread.running_turn();
        let same = match &before {
            Some(before) => before.is_of(asked, name.as_deref(), false, self.settings.turn_within)?,
            None => false,
        };
        if !same && let Some(earlier) = self.earlier(held, name.as_deref(), asked).await? {
            return Ok(Beginning::Earlier(earlier));
        }
        if let Some(used_up) = used_up {
            return Err(over(used_up).into());
        }
        let resumed = before.filter(|_| same);
        let pending = awaited(&held.thread, &held.messages, asked, resumed.as_ref())?;
        let toolbox = self.toolbox(member, held, asked, pending.as_ref(), resumed.as_ref(), deadline).await?;
        let now = Timestamp::now();
        // An expired lease is treated as a failed turn: the turn is resumed.
        let (running, over) = if let Some(before) = resumed {
            (RunningTurn { failed: None, at: now, ..before }, Vec::new())
        } else {
            let over = unanswered_before(&mut held.thread, pending.as_ref());
            held.messages.extend(over.iter().cloned());
            let running = RunningTurn {
                turn: held.thread.turns + 1,
                request: name,
                message_id: asked.message_id(),
                message: asked.message.clone(),
                since: now,
                at: now,
                calls: pending.as_ref().map(|pending| pending.tool_results.clone()).unwrap_or_default(),
                rest: Vec::new(),
                iteration: pending.as_ref().map_or(0, |pending| pending.iteration),
                failed: None,
            };
            (running, over)
        };
        if over.is_empty() {
            self.threads.record(&held.lease, &running).await?;
        } else {
            self.threads.begin_after(&held.lease, &held.thread, &over, &running, pending.is_some()).await?;
        }
        Ok(Beginning::New { running, pending, toolbox })
    }

    /// The earlier answer to the same request, also if its message is part of the summary.
    async fn earlier(&self, held: &Held, name: Option<&str>, asked: &ChatInput) -> Result<Option<TurnAnswer>> {
        let Held { thread, messages, .. } = held;
        let answer = earlier(thread, messages, name, asked)?;
        match name {
            Some(name) if answer.is_none() && thread.summary.is_some() => {
                earlier(thread, &self.threads.of_request(thread, name).await?, Some(name), asked)
            }
            _ => Ok(answer),
        }
    }

    /// A new thread. It has its title at once, because its first turn may fail.
    fn new_thread(&self, member: &Member, asked: &ChatInput) -> Thread {
        let (now, name) = (Timestamp::now(), asked.thread.as_str());
        Thread {
            id: ThreadId::of_name(member.organization_id, &member.user_id, name),
            organization_id: member.organization_id,
            user_id: member.user_id.clone(),
            name: name.to_owned(),
            title: title(&asked.message),
            turns: 0,
            messages: 0,
            summary: None,
            unsummarized_at: None,
            pending: None,
            running: None,
            lease_until: None,
            spent: Spent::default(),
            created_at: now,
            updated_at: now,
            expires_at: now.plus(self.settings.threads_kept).as_seconds(),
        }
    }

    async fn toolbox(
        &self,
        member: &Member,
        held: &Held,
        asked: &ChatInput,
        pending: Option<&PendingCall>,
        resumed: Option<&RunningTurn>,
        deadline: Deadline,
    ) -> Result<Toolbox> {
        let offer = Offer {
            catalogue: &self.catalogue,
            discovery: &self.discovery,
            executor: &self.executor,
            organization: member.organization_id,
            role: member.role,
            deadline,
        };
        // The new message, and earlier messages that it may refer to.
        let said = held.messages.iter().rev().filter(|message| message.role == ChatRole::User).take(2);
        let words: Vec<&str> =
            std::iter::once(asked.message.as_str()).chain(said.map(|message| message.content.as_str())).collect();
        let mut toolbox = Toolbox::default();
        for tool in &asked.tools {
            tool.offer(&mut toolbox);
        }
        offer.add_tools(&words.join(" "), &mut toolbox).await?;
        let gone_on = resumed.filter(|resumed| resumed.went_on(pending));
        let rest = gone_on.map(|resumed| &resumed.rest).or(pending.map(|pending| &pending.rest));
        let planned: Vec<&OfferedTool> =
            rest.into_iter().flatten().filter_map(|call| call.reference.as_ref()).collect();
        offer.add_planned(&planned, &mut toolbox).await?;
        // A call that was carried out is not made again, so its tool may have changed since.
        let asks = |pending: &&PendingCall| pending.waits_for == WaitsFor::Consent && gone_on.is_none();
        if let Some(pending) = pending.filter(asks) {
            offer.pinned(&pending.tool, &mut toolbox).await?;
        }
        Ok(toolbox)
    }
}

/// The messages of a turn that nobody answers any more. They become part of the thread, and the row counts them.
fn unanswered_before(thread: &mut Thread, awaited: Option<&PendingCall>) -> Vec<ThreadMessage> {
    // The page's result continues the turn that left a call to it.
    let pending = thread.pending.clone().filter(|_| awaited.is_none());
    let over = unanswered(&Thread { lease_until: None, pending, ..thread.clone() });
    thread.messages += u32::try_from(over.len()).unwrap_or(u32::MAX);
    // A turn that waits for the page was counted when it was saved.
    if thread.running_turn().is_some() {
        thread.turns += 1;
        thread.running = None;
        if awaited.is_none() {
            thread.pending = None;
        }
    }
    over
}

/// A thread's title: the beginning of its first message, without control and direction characters.
pub(super) fn title(message: &str) -> String {
    message.chars().map(|letter| if is_invisible(letter) { ' ' } else { letter }).take(LONGEST_TITLE).collect()
}
