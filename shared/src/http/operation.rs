//! Routes, each written once, at its handler (`#[operation]`): who may ask, what the handler takes of a request and what it answers.

use std::str::FromStr;

use lambda_http::Request;
use serde::Serialize;
use serde_json::json;

use super::{Access, Reply, deadline, id, openapi::Operation, page::page, route as segments};
use crate::{
    Deadline, Error, Result,
    described::{Described, Schemas, reference},
    models::{AgentId, KeyService, Member, OrganizationId, PhoneNumberId, Role, ToolId, UserId},
    store::{CreatedAt, Cursor, Page},
};

/// A route, as far as it is needed at run time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Route {
    pub method: &'static str,
    /// As in `infra/template.yaml`.
    pub path: &'static str,
    /// The least role that may ask.
    pub role: Role,
    /// The parameters that may stand in the query.
    pub query: &'static [&'static str],
}

impl Route {
    fn fits(&self, asked: &[&str]) -> bool {
        let Some((method, path)) = asked.split_first() else { return false };
        let pattern = self.path.split('/').skip(1);
        *method == self.method
            && pattern.clone().count() == path.len()
            && pattern.zip(path).all(|(segment, given)| segment.starts_with('{') || segment == *given)
    }
}

/// The query of the one part that has one.
pub const fn query_of_parts(parts: &[&'static [&'static str]]) -> &'static [&'static str] {
    match parts {
        [] => &[],
        [one, ..] if !one.is_empty() => one,
        [_, rest @ ..] => query_of_parts(rest),
    }
}

/// A request that was let in.
pub struct Asked<'a> {
    pub request: &'a Request,
    pub member: Member,
    pub deadline: Deadline,
    route: &'static Route,
    /// The values of the path's variables, after the slug.
    variables: Vec<&'a str>,
}

impl<'a> Asked<'a> {
    /// # Errors
    /// [`Error::NotFound`] for a route that is none of these, and as [`Access::member`].
    pub async fn of(access: &Access, routes: &'static [Route], request: &'a Request) -> Result<Self> {
        let asked = segments(request);
        let route = routes.iter().find(|route| route.fits(&asked)).ok_or(Error::NotFound("route"))?;
        let deadline = deadline(request);
        let member = access.member_for(request, route.role, route.query).await?;
        let pattern = route.path.split('/').skip(1).zip(asked.into_iter().skip(1));
        let variables = pattern.filter(|(segment, _)| segment.starts_with('{')).skip(1).map(|(_, given)| given);
        Ok(Self { request, member, deadline, route, variables: variables.collect() })
    }

    pub fn is(&self, route: &Route) -> bool {
        self.route == route
    }

    pub const fn organization(&self) -> OrganizationId {
        self.member.organization_id
    }
}

/// What a handler takes of a request.
pub trait Part: Sized {
    const QUERY: &'static [&'static str] = &[];

    /// # Errors
    /// [`Error::NotFound`], [`Error::Malformed`] or [`Error::Invalid`].
    fn of(asked: &Asked<'_>) -> Result<Self>;
    fn describe(operation: &mut Operation, schemas: &mut Schemas);
}

/// A noun whose id stands in paths.
pub trait Named: FromStr + Described {
    const NOUN: &'static str;
    const DOC: &'static str;
}

macro_rules! named {
    ($($type:ty: $noun:literal, $doc:literal;)+) => {$(
        impl Named for $type {
            const NOUN: &'static str = $noun;
            const DOC: &'static str = $doc;
        }
    )+};
}

named! {
    AgentId: "agent", "The agent's id.";
    KeyService: "service", "Where the account is.";
    PhoneNumberId: "phone number", "The phone number's id.";
    ToolId: "tool", "The tool's id.";
    UserId: "member", "The `sub` of the user's tokens, percent-encoded (`auth0%7C7`). One with `/`, `?` or `#` in it cannot be named in \
        an address: API Gateway decodes it before it chooses the route.";
}

/// The last variable of the path.
pub struct Id<T>(pub T);

impl<T: Named> Part for Id<T> {
    fn of(asked: &Asked<'_>) -> Result<Self> {
        id(asked.variables.last().copied().unwrap_or_default(), T::NOUN).map(Self)
    }

    fn describe(operation: &mut Operation, schemas: &mut Schemas) {
        operation.names(T::DOC, T::schema(schemas));
    }
}

/// `?limit=&cursor=`
pub struct Paged<P = CreatedAt> {
    pub limit: i32,
    pub cursor: Option<Cursor<P>>,
}

impl<P: FromStr> Part for Paged<P> {
    const QUERY: &'static [&'static str] = &["limit", "cursor"];

    fn of(asked: &Asked<'_>) -> Result<Self> {
        let (limit, cursor) = page(asked.request)?;
        Ok(Self { limit, cursor })
    }

    fn describe(operation: &mut Operation, _: &mut Schemas) {
        let limit = json!({"type": "integer", "minimum": 1, "maximum": 200, "default": 50});
        operation.may_ask("limit", "Items on a page.", limit);
        operation.may_ask("cursor", "The `next_cursor` of the page before.", json!({"type": "string"}));
    }
}

/// What a handler answers.
pub trait Answers {
    /// # Errors
    /// [`Error::Internal`] for a value that JSON cannot hold.
    fn reply(self) -> Result<Reply>;
    fn describe(operation: &mut Operation, schemas: &mut Schemas);
}

/// 200 with a value.
pub struct Shown<T>(pub T);
/// 201 with a value.
pub struct Created<T>(pub T);
/// 201 for a new value, 200 for one that was there already.
pub enum Made<T> {
    New(T),
    There(T),
}
/// 200: it is gone.
pub struct Deleted;

impl<T: Serialize + Described> Answers for Shown<T> {
    fn reply(self) -> Result<Reply> {
        Reply::ok(&self.0)
    }

    fn describe(operation: &mut Operation, schemas: &mut Schemas) {
        operation.answers(200, "As it is now.", T::schema(schemas));
    }
}

impl<T: Serialize + Described> Answers for Created<T> {
    fn reply(self) -> Result<Reply> {
        Reply::created(&self.0)
    }

    fn describe(operation: &mut Operation, schemas: &mut Schemas) {
        operation.answers(201, "It is made.", T::schema(schemas));
    }
}

impl<T: Serialize + Described> Answers for Made<T> {
    fn reply(self) -> Result<Reply> {
        match self {
            Self::New(row) => Reply::created(&row),
            Self::There(row) => Reply::ok(&row),
        }
    }

    fn describe(operation: &mut Operation, schemas: &mut Schemas) {
        operation.answers(201, "It is made.", T::schema(schemas));
        operation.answers(200, "It was there already, just so.", T::schema(schemas));
    }
}

impl<T: Serialize + Described> Answers for Page<T> {
    fn reply(self) -> Result<Reply> {
        Reply::ok(&self)
    }

    fn describe(operation: &mut Operation, schemas: &mut Schemas) {
        let items = json!({"type": "array", "maxItems": 200, "items": T::schema(schemas)});
        let schema = json!({"type": "object", "additionalProperties": false, "required": ["items", "next_cursor"],
            "properties": {"items": items, "next_cursor": reference("NextCursor")}});
        operation.answers(200, "A page.", schema);
    }
}

impl Answers for Deleted {
    fn reply(self) -> Result<Reply> {
        Reply::ok(&json!({"status": "deleted"}))
    }

    fn describe(operation: &mut Operation, _: &mut Schemas) {
        let schema = json!({"type": "object", "additionalProperties": false, "required": ["status"],
            "properties": {"status": {"const": "deleted"}}});
        operation.answers(200, "It is gone.", schema);
    }
}

/// What a function serves: `ROUTES`, `handle`, which answers all of them, and `describe`, which no program calls.
#[macro_export]
macro_rules! routes {
    ($deps:ty, $tag:literal: $($($of:ident)::+),+ $(,)?) => {
        pub const ROUTES: &[$crate::http::Route] = &[$($($of)::+::ROUTE),+];

        pub async fn handle(deps: &$deps, request: $crate::http::Request) -> $crate::Result<$crate::http::Reply> {
            let asked = $crate::http::Asked::of(&deps.access, ROUTES, &request).await?;
            $(if asked.is(&$($of)::+::ROUTE) {
                return Box::pin($($of)::+::answer(deps, &asked)).await;
            })+
            Err($crate::Error::NotFound("route"))
        }

        pub fn describe(document: &mut $crate::http::Document) {
            document.tag = $tag;
            $($($of)::+::describe(document);)+
        }
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_route_fits_its_method_and_path_only() {
        let route = Route { method: "GET", path: "/api/{slug}/tools/{id}", role: Role::Viewer, query: &[] };
        assert!(route.fits(&["GET", "api", "acme", "tools", "7"]));
        for other in [
            &[][..],
            &["GET"],
            &["GET", "api", "acme", "tools"],
            &["PUT", "api", "acme", "tools", "7"],
            &["GET", "api", "acme", "hooks", "7"],
            &["GET", "api", "acme", "tools", "7", "x"],
        ] {
            assert!(!route.fits(other), "{other:?}");
        }
        assert_eq!(query_of_parts(&[&[], &["limit"]]), ["limit"]);
    }
}
