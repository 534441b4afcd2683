//! POST /agent/chat, POST /copilotkit/action: a person asks, the planner answers.

shared::main!(shared::http::serve, chat::Deps::new, chat::handle);
