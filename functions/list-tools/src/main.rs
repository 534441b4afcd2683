//! GET /api/{slug}/tools, /api/{slug}/tools/{id}, /api/{slug}/tools/{id}/agents, /api/{slug}/tools/{id}/executions and
//! /api/{slug}/agents/{id}/tools: shows tools.

shared::main!(shared::http::serve, list_tools::Deps::new, list_tools::handle);
