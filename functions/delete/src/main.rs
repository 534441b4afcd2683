//! DELETE /api/{slug}/tools/{id}: deletes a tool everywhere.

shared::main!(shared::http::serve, delete::Deps::new, delete::handle);
