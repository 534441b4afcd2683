//! /api/{slug}/knowledge-bases: knowledge bases and their entries.

shared::main!(shared::http::serve, knowledge::Deps::new, knowledge::handle);
