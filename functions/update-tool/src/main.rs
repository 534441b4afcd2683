//! PATCH /api/{slug}/tools/{id}: edits a tool.

shared::main!(shared::http::serve, update_tool::Deps::new, update_tool::handle);
