//! /api/{slug}/agents and /api/{slug}/agents/{id}: the organization's agents.

shared::main!(shared::http::serve, agents::Deps::new, agents::handle);
