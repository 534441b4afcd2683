//! GET /api/{slug}/calls and below: shows calls. POST /api/vapi/events: VAPI's reports on calls.

shared::main!(shared::http::serve, calls::Deps::new, calls::handle);
