//! POST /api/phone-number/{id}/incoming: a call comes in.

shared::main!(shared::http::serve, call_start::Deps::new, call_start::handle);
