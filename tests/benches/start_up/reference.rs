//! Two reference functions, built like ours and measured by `make bench` in the same run.
//!
//! A function's own cost is its figure minus theirs.
//!
//! - `--echo` repeats its input: the runtime alone.
//! - `--calls` only makes the calls of a run of `execute`.

use std::sync::Arc;

use futures_util::try_join;
use lambda_http::{Error, Request, Response};
use serde::Deserialize;
use shared::{
    Platform,
    models::{CallId, E164, OrganizationId, ToolId},
    store::{Calls, PhoneNumbers, Tools},
};

/// The reads of `execute` before it runs a tool, and the tool's address.
#[derive(Deserialize)]
struct Run {
    organization: OrganizationId,
    tool: ToolId,
    call: CallId,
    number: E164,
    url: String,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    match std::env::args().nth(1).as_deref() {
        Some("--echo") => serve_echo().await,
        Some("--calls") => serve_calls().await,
        // `cargo test` starts every benchmark; `start_up` then starts this one.
        None => Ok(()),
        _ => Err("it is started by `make bench`, with --echo or --calls".into()),
    }
}

async fn serve_echo() -> Result<(), Error> {
    let repeat = async |request: Request| Ok::<_, Error>(Response::new(request.into_body()));
    lambda_http::run(lambda_http::service_fn(repeat)).await
}

async fn serve_calls() -> Result<(), Error> {
    let platform = Platform::from_env().await?;
    let database = platform.database()?;
    let (tools, calls, numbers) = (Tools::new(database), Calls::new(database), PhoneNumbers::new(database));
    let stores = Arc::new((tools, calls, numbers));
    let http = platform.http().clone();
    lambda_http::run(lambda_http::service_fn(move |request: Request| {
        let (stores, http) = (stores.clone(), http.clone());
        async move {
            let run: Run = serde_json::from_slice(request.body().as_ref())?;
            let (tools, calls, numbers) = &*stores;
            try_join!(tools.get(run.organization, run.tool), calls.find(&run.call), numbers.by_number(&run.number),)?;
            Ok::<_, Error>(http.get(run.url).send().await?.text().await?)
        }
    }))
    .await
}
