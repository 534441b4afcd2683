//! Functions to compare with, which this program itself becomes when it is started with their name: what is left of a
//! function's figure when theirs is taken off is its own.

use std::{future::Future, sync::Arc};

use futures_util::try_join;
use lambda_http::{Error, Request, Response};
use serde::{Deserialize, Serialize};
use shared::{
    Platform,
    models::{CallId, E164, OrganizationId, ToolId},
    store::{Calls, PhoneNumbers, Tools},
};

/// Repeats what it is sent: the runtime alone.
pub(crate) const ECHO: &str = "--echo";
/// Makes the calls of a run of `execute` and nothing else.
pub(crate) const CALLS: &str = "--calls";

/// What `execute` reads before it runs a tool, and the address that the tool calls.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Run {
    pub(crate) organization: OrganizationId,
    pub(crate) tool: ToolId,
    pub(crate) call: CallId,
    pub(crate) number: E164,
    pub(crate) url: String,
}

/// Serves as the function this program was started as; `None` if it was started as itself.
pub(crate) fn asked_for() -> Option<impl Future<Output = Result<(), Error>>> {
    let echo = std::env::args().any(|argument| argument == ECHO);
    let calls = std::env::args().any(|argument| argument == CALLS);
    (echo || calls).then_some(async move { if echo { serve_echo().await } else { serve_calls().await } })
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
