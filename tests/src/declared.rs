//! The functions' declared routes, and the remaining route tables of `shared`.

use shared::{
    http::{Document, LEAST_ROLES, QUERIES, Route},
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

pub const DECLARED: [Declared; 8] = declared! {
    "agents": agents,
    "attach": attach,
    "detach": detach,
    "erasures": erasures,
    "keys": keys,
    "members": members,
    "phone-numbers": phone_numbers,
    "usage": usage,
};

fn routes() -> impl Iterator<Item = &'static Route> {
    DECLARED.iter().flat_map(|declared| declared.routes)
}

/// Method, path and least role of every route that requires a role.
pub fn least_roles() -> Vec<(&'static str, &'static str, Role)> {
    LEAST_ROLES.iter().copied().chain(routes().map(|route| (route.method, route.path, route.role))).collect()
}

/// The least role for a route; `None` if the route requires no role.
pub fn least_role(method: &str, path: &str) -> Option<Role> {
    least_roles().into_iter().find(|route| (route.0, route.1) == (method, path)).map(|route| route.2)
}

/// The allowed query parameters of a route under `/api/{slug}` that does not read its query itself.
pub fn known_in_query(method: &str, path: &str) -> &'static [&'static str] {
    if let Some(route) = routes().find(|route| (route.method, route.path) == (method, path)) {
        return route.query;
    }
    let found = QUERIES.iter().find(|(of, _)| method == "GET" && *of == path);
    found.map(|(_, known)| *known).unwrap_or_default()
}
