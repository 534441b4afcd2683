//! /api/{slug}/keys and /api/{slug}/keys/{service}: the organization's own accounts.

shared::main!(shared::http::serve, keys::Deps::new, keys::handle);
