//! The least role that each of the dashboard's routes needs that does not say it itself (`operation.rs`). `docs/openapi.yaml` says the
//! same, and a test walks both; all are in `docs/roles.md`.
//!
//! | role | may |
//! |---|---|
//! | `viewer` | read, and leave |
//! | `member` | also use what is there: try a tool, start and cancel runs |
//! | `admin`, `owner` | also make, change, attach and delete; only an `owner` makes, changes and removes owners |

use crate::models::Role::{self, Member, Viewer};

/// Method, path as in `infra/template.yaml`, role. A route that is not here is let in for nobody.
pub const LEAST_ROLES: &[(&str, &str, Role)] = &[
    ("POST", "/api/{slug}/mcp", Viewer),
    ("GET", "/api/{slug}/mcp", Viewer),
    ("DELETE", "/api/{slug}/mcp", Viewer),
    ("GET", "/api/{slug}/agent-tools", Viewer),
    ("POST", "/api/{slug}/agent-tools/{name}", Member),
    ("POST", "/agent/chat", Member),
    ("POST", "/copilotkit/action", Member),
    ("POST", "/agent/stream", Member),
    ("POST", "/copilotkit", Member),
    ("POST", "/copilotkit/stream", Member),
    ("GET", "/copilotkit/info", Member),
    ("POST", "/copilotkit/agent/{id}/run", Member),
    ("POST", "/copilotkit/agent/{id}/connect", Member),
    ("POST", "/copilotkit/agent/{id}/stop/{thread}", Member),
    ("GET", "/agent/threads", Viewer),
    ("GET", "/agent/threads/{id}", Viewer),
    ("DELETE", "/agent/threads/{id}", Member),
];

/// What may stand in the query of a GET; in that of another route under `/api/{slug}`, nothing. `docs/openapi.yaml` says the
/// same, and a test compares both.
pub const QUERIES: &[(&str, &[&str])] = &[];

/// These read their queries themselves, and refuse what they do not know.
pub const OWN_QUERIES: &[&str] = &["agent-tools", "mcp"];

/// The least role for a request, given as [`super::route()`] gives it.
pub(super) fn least_role(route: &[&str]) -> Option<Role> {
    let (method, path) = route.split_first()?;
    LEAST_ROLES.iter().find(|(of, pattern, _)| of == method && fits(pattern, path)).map(|(_, _, role)| *role)
}

/// What may stand in the query of a route under `/api/{slug}`; none where the function says so itself.
pub(super) fn known_in_query(route: &[&str]) -> Option<&'static [&'static str]> {
    let (method, path) = route.split_first()?;
    if path.get(2).is_some_and(|part| OWN_QUERIES.contains(part)) {
        return None;
    }
    let found = QUERIES.iter().find(|(pattern, _)| *method == "GET" && fits(pattern, path));
    Some(found.map(|(_, known)| *known).unwrap_or_default())
}

fn fits(pattern: &str, path: &[&str]) -> bool {
    let segments: Vec<&str> = pattern.split('/').filter(|segment| !segment.is_empty()).collect();
    segments.len() == path.len()
        && segments.iter().zip(path).all(|(segment, given)| segment.starts_with('{') || segment == given)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_route_is_found_as_itself() {
        for (method, pattern, role) in LEAST_ROLES {
            let path = pattern.replace("{slug}", "acme").replace("{id}", "7");
            let path = path
                .replace("{entry_id}", "e1")
                .replace("{thread}", "t1")
                .replace("{version}", "1")
                .replace("{name}", "slack");
            let route: Vec<&str> = [*method].into_iter().chain(path.split('/').skip(1)).collect();
            assert_eq!(least_role(&route), Some(*role), "{method} {pattern}");
            let known = LEAST_ROLES.iter().filter(|(of, other, _)| (of, other) == (method, pattern)).count();
            assert_eq!(known, 1, "{method} {pattern} stands here twice");
        }
    }

    #[test]
    fn what_is_not_in_the_table_is_for_nobody() {
        for route in [
            &["GET"][..],
            &["GET", "api", "acme"],
            &["PUT", "api", "acme", "tools"],
            &["GET", "api", "acme", "tools", "7", "x"],
        ] {
            assert_eq!(least_role(route), None, "{route:?}");
        }
    }
}
