//! `POST /api/hooks/{service}` and `/api/hooks/{service}/{hook_id}`: events of services come in.

shared::main!(shared::http::serve, trigger::Deps::new, trigger::handle);
