//! /api/{slug}/hooks and /api/{slug}/events: addresses for services' events, and the received events.

shared::main!(shared::http::serve, hooks::Deps::new, hooks::handle);
