#![allow(missing_docs, dead_code, unused_variables, clippy::all, clippy::pedantic)]
use serde::Serialize; use serde_json::Value;
use crate::{Deadline, Result, models::Member};
#[derive(Clone)] pub struct Deployment;
#[derive(Debug, Clone, Serialize)] pub struct Deployed { pub result: String }
impl Deployed { pub fn to_text(&self) -> String { self.result.clone() } pub fn is_ok(&self) -> bool { self.result == "ok" } }
impl Deployment { pub async fn deploy(&self, author: &Member, body: &Value, d: Deadline) -> Result<Deployed> { Ok(Deployed { result: "ok".into() }) } }
