//! `allowed_hosts`: the hosts that a request may reach.
//!
//! ```json
//! ["api.example.com", "crm.example.com:8443"]
//! ```

use crate::{fields::Fields, models::AllowedHosts};

const FIELD: &str = "allowed_hosts";
const MOST: usize = 50;

impl AllowedHosts {
    /// Reads the field of a request's body, and reports its mistakes.
    pub fn read(fields: &mut Fields<'_>) -> Self {
        let mut allowed = Self::default();
        let Some(hosts) = fields.list(FIELD, "hosts") else { return allowed };
        if !(1..=MOST).contains(&hosts.len()) {
            fields.problem(FIELD, format!("must name 1 to {MOST} hosts, or be left out"));
            return allowed;
        }
        for (index, host) in hosts.iter().enumerate() {
            if let Err(problem) = allowed.add(host.as_str().unwrap_or_default()) {
                fields.problem(&format!("{FIELD}[{index}]"), problem.to_string());
            }
        }
        allowed
    }
}
