//! POST /api/{slug}/tools/test: tries a tool out.

shared::main!(shared::http::serve, tools_test::Deps::new, tools_test::handle);
