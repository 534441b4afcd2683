//! /api/{slug}/phone-numbers and /api/{slug}/phone-numbers/{id}: the organization's phone numbers.

shared::main!(shared::http::serve, phone_numbers::Deps::new, phone_numbers::handle);
