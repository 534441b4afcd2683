//! POST and GET /api/{slug}/runs and below: starts runs of automations, shows them, cancels them.

shared::main!(shared::http::serve, runs::Deps::new, runs::handle);
