//! Guarantees: once only, separate tenants, access by role, few round trips, complete settling.

mod access;
mod audit;
mod costs;
mod fault_walk;
mod faults;
mod idempotency;
mod permissions;
mod recipients;
mod reissue;
mod round_trips;
mod settle;
mod settle_secrets;
mod store;
