//! A tool in a dry run: it shows the request that it would send.

use futures_util::future::FutureExt;
use serde_json::{Map, Value, json};

use super::{Body, CatalogueTool};
use crate::{
    Result,
    execution::Executor,
    tool::{CallContext, CallableTool, ToolFuture, ToolOutcome, ToolSpec, arguments::Checked},
};

pub(super) struct NotSent {
    pub(super) found: CatalogueTool,
    pub(super) executor: Executor,
}

impl CallableTool for NotSent {
    fn spec(&self) -> &ToolSpec {
        self.found.spec()
    }

    fn check(&self, arguments: &Map<String, Value>) -> Result<Checked, String> {
        match &self.found.body {
            Body::BuiltIn(tool) => tool.check(arguments),
            Body::Action(tool) => tool.check(arguments),
        }
    }

    /// `{"dry_run": "Nothing was sent.", "would_send": the request, secrets masked}`; the arguments for a built-in
    /// tool.
    fn call<'a>(&'a self, arguments: Map<String, Value>, context: &'a CallContext<'a>) -> ToolFuture<'a> {
        async move {
            let would_send = match &self.found.body {
                Body::BuiltIn(_) => Ok(json!({"arguments": arguments})),
                Body::Action(_) => self.found.preview(&self.executor, context, &arguments).await?,
            };
            let shown = would_send.map(|request| json!({"dry_run": "Nothing was sent.", "would_send": request}));
            Ok(ToolOutcome::of(shown))
        }
        .boxed()
    }
}
