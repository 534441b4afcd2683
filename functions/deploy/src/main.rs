//! /api/{slug}/automations and below: validates, saves and activates automations.

shared::main!(shared::http::serve, deploy::Deps::new, deploy::handle);
