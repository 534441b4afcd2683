//! The functions' declared routes.

use shared::{
    http::{Document, Route},
    models::Role,
};

/// The function behind a REST API of its own, which streams.
pub const STREAMED: &str = "stream";

pub struct Declared {
    pub function: &'static str,
    pub routes: &'static [Route],
    pub describe: fn(&mut Document),
}

macro_rules! declared {
    ($($name:literal: $of:ident),+ $(,)?) => {
        [$(Declared { function: $name, routes: $of::ROUTES, describe: $of::describe }),+]
    };
}

pub const DECLARED: [Declared; 27] = declared! {
    "agents": agents,
    "approvals": approvals,
    "attach": attach,
    "call-start": call_start,
    "calls": calls,
    "chat": chat,
    "console": console,
    "create-tool": create_tool,
    "delete": delete,
    "deploy": deploy,
    "detach": detach,
    "discover": discover,
    "erasures": erasures,
    "execute": execute,
    "hooks": hooks,
    "keys": keys,
    "knowledge": knowledge,
    "list-tools": list_tools,
    "mcp": mcp,
    "members": members,
    "phone-numbers": phone_numbers,
    "runs": runs,
    "stream": stream,
    "tools-test": tools_test,
    "trigger": trigger,
    "update-tool": update_tool,
    "usage": usage,
};

fn routes() -> impl Iterator<Item = &'static Route> {
    DECLARED.iter().flat_map(|declared| declared.routes)
}

/// Method, path and least role of every route that asks for a role.
pub fn least_roles() -> Vec<(&'static str, &'static str, Role)> {
    routes().filter_map(|route| Some((route.method, route.path, route.role()?))).collect()
}

/// The least role for a route; `None` if the route requires no role.
pub fn least_role(method: &str, path: &str) -> Option<Role> {
    least_roles().into_iter().find(|route| (route.0, route.1) == (method, path)).map(|route| route.2)
}

/// The declaration of a route.
pub fn route(method: &str, path: &str) -> Option<&'static Route> {
    routes().find(|route| (route.method, route.path) == (method, path))
}
