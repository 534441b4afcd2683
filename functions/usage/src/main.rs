//! GET /api/{slug}/usage: the use of the organization's budgets.

shared::main!(shared::http::serve, usage::Deps::new, usage::handle);
