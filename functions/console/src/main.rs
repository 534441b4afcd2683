//! GET / and GET /console/{file}: a page for people who run an organization's agents.

shared::main!(shared::http::serve, console::Deps::new, console::handle);
