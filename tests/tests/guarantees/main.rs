//! What must hold whatever breaks and whoever asks: once, tenants apart, roles that fit, no waiting, nothing left behind.

mod access;
mod costs;
mod faults;
mod idempotency;
mod permissions;
mod recipients;
mod reissue;
mod round_trips;
mod settle;
mod settle_secrets;
mod store;
