//! /api/{slug}/members: the organization's members and their roles.

shared::main!(shared::http::serve, members::Deps::new, members::handle);
