//! The functions' declared routes, and the remaining route tables of `shared`.

use shared::{
    http::{Caller, Document, LEAST_ROLES, QUERIES, Route},
    models::Role,
};

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

pub const DECLARED: [Declared; 19] = declared! {
    "agents": agents,
    "attach": attach,
    "calls": calls,
    "create": create,
    "delete": delete,
    "deploy": deploy,
    "detach": detach,
    "discover": discover,
    "erasures": erasures,
    "hooks": hooks,
    "keys": keys,
    "knowledge": knowledge,
    "list": list,
    "members": members,
    "phone-numbers": phone_numbers,
    "runs": runs,
    "tools-test": tools_test,
    "update": update,
    "usage": usage,
};

fn routes() -> impl Iterator<Item = &'static Route> {
    DECLARED.iter().flat_map(|declared| declared.routes)
}

/// Method, path and caller of every route that asks for a role or declares itself.
pub fn callers() -> Vec<(&'static str, &'static str, Caller)> {
    let named = LEAST_ROLES.iter().map(|(method, path, role)| (*method, *path, Caller::Member(*role)));
    named.chain(routes().map(|route| (route.method, route.path, route.caller))).collect()
}

/// Method, path and least role of every route that asks for a role.
pub fn least_roles() -> Vec<(&'static str, &'static str, Role)> {
    let role = |caller| match caller {
        Caller::Member(role) => Some(role),
        Caller::Proof(_) => None,
    };
    callers().into_iter().filter_map(|(method, path, caller)| Some((method, path, role(caller)?))).collect()
}

/// The least role for a route; `None` if the route requires no role.
pub fn least_role(method: &str, path: &str) -> Option<Role> {
    least_roles().into_iter().find(|route| (route.0, route.1) == (method, path)).map(|route| route.2)
}

/// The parameters that may stand in the query of a route under `/api/{slug}` that does not read its query itself.
pub fn known_in_query(method: &str, path: &str) -> Vec<&'static str> {
    if let Some(route) = routes().find(|route| (route.method, route.path) == (method, path)) {
        return route.known_in_query();
    }
    let found = QUERIES.iter().find(|(of, _)| method == "GET" && *of == path);
    found.map(|(_, known)| known.to_vec()).unwrap_or_default()
}
