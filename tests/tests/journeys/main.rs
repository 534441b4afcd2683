//! The handlers over DynamoDB's semantics, with the tables of the template: what a user or an upstream notices.

mod agents;
mod api_request;
mod async_tools;
mod attach;
mod call_start;
mod calls;
mod create;
mod delete;
mod detach;
mod execute;
mod history;
mod keys;
mod knowledge;
mod knowledge_attach;
mod limits;
mod list;
mod newer_rows;
mod phone_numbers;
mod pipedream;
mod runs;
mod runs_api;
mod sync;
mod tool_secrets;
mod tools_test;
mod transfer;
mod update;
