//! POST /api/{slug}/erasures: deletes all data about a phone number.

shared::main!(shared::http::serve, erasures::Deps::new, erasures::handle);
