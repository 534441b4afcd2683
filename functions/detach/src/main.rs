//! POST /api/{slug}/agents/{id}/tools/detach: takes a tool from an agent.

shared::main!(shared::http::serve, detach::Deps::new, detach::handle);
