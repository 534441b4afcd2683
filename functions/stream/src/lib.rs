//! Conversations, streamed.
