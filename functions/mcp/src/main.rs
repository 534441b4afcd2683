//! POST /api/{slug}/mcp: finding tools and deploying automations, for clients of the Model Context Protocol.

shared::main!(shared::http::serve, mcp::Deps::new, mcp::handle);
