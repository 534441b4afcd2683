//! POST /api/{slug}/tools: makes a tool.

shared::main!(shared::http::serve, create_tool::Deps::new, create_tool::handle);
