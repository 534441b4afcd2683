//! The DynamoDB tables.
//!
//! Each table has one file: keys and access patterns in the module doc, serde for the items, DynamoDB expressions for
//! the conditions. `table.rs` reads, `write.rs` writes, alone or in a transaction.
//!
//! The organization is the first argument of every read and write of a tenant; another tenant's row is "not found". A
//! read that must run before the organization is known returns an [`crate::models::Unowned`] row.

mod agent_tools;
mod agents;
mod approvals;
mod audit;
mod automation_memory;
mod automation_runs;
mod automations;
mod calls;
mod cursor;
mod database;
mod deletion;
mod deployed_triggers;
mod do_not_call;
mod erasure;
mod event_waits;
mod events;
mod executions;
mod hooks;
pub mod idempotency;
mod intents;
mod knowledge_bases;
mod knowledge_entries;
mod lease;
mod organization_members;
mod organizations;
mod phone_numbers;
mod quotas;
mod reissues;
mod replays;
mod schedules;
mod services;
mod table;
mod threads;
mod tools;
mod usage;
mod write;

pub use agent_tools::{REMOVED_AT_ONCE, ToolAttachments};
pub use agents::Agents;
pub use approvals::{Approvals, Decided, OpenApproval};
pub use audit::{AuditFilter, AuditLog};
pub use automation_memory::{AutomationMemory, MOST_KEYS, NewValue, Remembering};
pub use automation_runs::{AcquiredRun, AutomationRuns, RunEnd, RunFilter, Saved, SavedStep, Waits};
pub use automations::{Automations, ListedVersion, Listening, NamedAutomation, OVERTAKEN};
pub use calls::{Added, AddedEarly, AddedToCall, CallFilter, Calls, End, Interrupted, Telling, ToTell};
pub use cursor::{CreatedAt, CreatedFilter, Cursor, NotAPlace, Page};
pub use database::Database;
pub(crate) use database::unreadable;
pub use deployed_triggers::DeployedTriggers;
pub use do_not_call::DoNotCallList;
pub use erasure::{Erased, Erasure, ErasureCursor, NumberErased};
pub use event_waits::EventWaits;
pub use events::{EventFilter, Events};
pub use executions::{ExecutionFilter, Executions, OfOrganization};
pub use hooks::{HookChange, Hooks};
pub use intents::Intents;
pub use knowledge_bases::KnowledgeBases;
pub use knowledge_entries::{EntryPlace, KnowledgeEntries, LARGEST_LOAD};
pub use lease::Lease;
pub use organization_members::{OrganizationMembers, least_role_to_change};
pub use organizations::{CheckedWith, Organizations};
pub use phone_numbers::{NUMBER_IS_REGISTERED, PhoneNumbers};
pub use quotas::{Counted, Quotas, Room, Taken, Window};
pub use reissues::Reissues;
pub use replays::Replays;
pub use schedules::Schedules;
pub use services::Services;
pub use threads::{SavedTurn, StopRequest, Threads};
pub use tools::Tools;
pub use usage::{Budgets, DayUse, over};
