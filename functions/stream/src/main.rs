//! POST /agent/stream and the routes below /copilotkit: the planner's turns as streams.

shared::main!(shared::http::serve_streaming, stream::Deps::new, stream::handle);
