//! Runs of automations over the API.

use serde_json::Value;

use super::{Tenant, World};
use crate::{Answer, Event};

impl World {
    /// `POST /api/{slug}/runs`.
    pub async fn start_run(&self, body: &Value) -> Answer {
        self.start_run_as(&self.home, body).await
    }

    pub async fn start_run_as(&self, tenant: &Tenant, body: &Value) -> Answer {
        let event = Event::post(&format!("/api/{}/runs", tenant.slug), body).user(&tenant.user_id);
        self.send("runs", &event).await
    }

    /// Like [`World::start_run`], with an `Idempotency-Key`.
    pub async fn start_run_once(&self, key: &str, body: &Value) -> Answer {
        let event = Event::post(&format!("/api/{}/runs", self.home.slug), body).user(&self.home.user_id);
        self.send("runs", &event.header("idempotency-key", key)).await
    }

    /// A run with its steps.
    pub async fn run(&self, id: &str) -> Answer {
        self.runs(&format!("/{id}")).await
    }

    /// Runs: `runs("?limit=5")`, `runs("/<id>")`.
    pub async fn runs(&self, path: &str) -> Answer {
        self.runs_as(&self.home, path).await
    }

    pub async fn runs_as(&self, tenant: &Tenant, path: &str) -> Answer {
        self.get_as("runs", tenant, &format!("/runs{path}")).await
    }

    /// `POST /api/{slug}/runs/{id}/cancel`.
    pub async fn cancel_run(&self, id: &str) -> Answer {
        self.cancel_run_as(&self.home, id).await
    }

    pub async fn cancel_run_as(&self, tenant: &Tenant, id: &str) -> Answer {
        let event = Event::new("POST", &format!("/api/{}/runs/{id}/cancel", tenant.slug)).user(&tenant.user_id);
        self.send("runs", &event).await
    }
}
