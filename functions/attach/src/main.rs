//! POST /api/{slug}/agents/{id}/tools/attach: gives a tool to an agent.

shared::main!(shared::http::serve, attach::Deps::new, attach::handle);
