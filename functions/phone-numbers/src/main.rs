//! /api/{slug}/phone-numbers and /api/{slug}/phone-numbers/{id}: the organization's phone numbers.

use phone_numbers::{Deps, handle};
use shared::{
    clients::{self, Secrets, Twilio},
    config,
    http::{self, Access},
    lifecycle::StoredSecrets,
    store::{Agents, Database, Organizations, PhoneNumbers},
    telemetry,
};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), lambda_http::Error> {
    telemetry::init()?;
    let aws = config::Aws::from_env()?;
    let database = Database::connect(&aws, config::table_prefix()?);
    let deps = Deps {
        access: Access::new(&database, Organizations::new(&database)),
        agents: Agents::new(&database),
        phone_numbers: PhoneNumbers::new(&database),
        twilio: Twilio::new(clients::http_client()?, config::twilio_url()),
        secrets: StoredSecrets::new(&database, Secrets::new(&aws)),
        secret_prefix: config::twilio_secret_prefix()?,
    };
    http::serve("phone-numbers", deps, handle).await
}
