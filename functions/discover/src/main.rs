//! /api/{slug}/discover, /api/{slug}/services: tools and services, and the organization's connections.

shared::main!(shared::http::serve, discover::Deps::new, discover::handle);
