//! /api/{slug}/approvals: lists and decides approvals.

shared::main!(shared::http::serve, approvals::Deps::new, approvals::handle);
