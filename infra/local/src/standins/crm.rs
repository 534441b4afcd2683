//! Stand-in for a company's own CRM, which looks callers up by number.
//!
//! `GET /customers?phone=+1…` with `x-api-key`: 200 with the customer, 401 without the key, 404 for an unknown
//! number.

use std::{io, net::SocketAddr};

use serde_json::{Value, json};

use super::{
    Standin,
    exchange::{Answer, Request},
    server::{self, Service},
};

#[derive(Clone, Debug)]
pub struct Options {
    pub api_key: String,
    /// Customers; each has a `phone`.
    pub customers: Vec<Value>,
}

#[derive(Debug)]
pub struct Crm(Options);

/// Starts the stand-in; fails if the address is taken.
pub fn start(address: SocketAddr, options: Options) -> io::Result<Standin<Crm>> {
    server::serve(address, Crm(options))
}

impl Service for Crm {
    async fn answer(&self, request: &Request) -> Answer {
        if (request.method.as_str(), request.path.as_str()) != ("GET", "/customers") {
            return self.failure(404);
        }
        if request.header("x-api-key") != Some(self.0.api_key.as_str()) {
            return self.failure(401);
        }
        let phone = request.query.iter().find(|(name, _)| name == "phone").map(|(_, value)| value.as_str());
        let found = self.0.customers.iter().find(|customer| customer.get("phone").and_then(Value::as_str) == phone);
        found.map_or_else(|| self.failure(404), |customer| Answer::json(200, customer))
    }

    fn failure(&self, status: u16) -> Answer {
        let message = match status {
            401 => "a valid x-api-key is required",
            404 => "nobody is known by that",
            _ => "the CRM is not well",
        };
        Answer::json(status, &json!({ "message": message }))
    }

    async fn control(&self, _: &Request) -> Option<Answer> {
        None
    }
}
