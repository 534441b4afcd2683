//! Routes, declared at their handlers with `#[operation]`: caller, parts of the request and answers.

use std::{fmt::Display, ops::Deref, str::FromStr};

use lambda_http::{Request, RequestExt};
use serde::Serialize;
use serde_json::json;

use super::{
    Access, Person, Reply, deadline, id, idempotency_key, openapi::Operation, paging::page, route as segments,
};
use crate::{
    Deadline, Error, Result,
    described::{Described, Json, Schemas, reference},
    models::{
        Actor, AgentId, ApprovalId, AutomationId, CallId, DoNotCallId, EntryId, EventId, HookId, KeyService,
        KnowledgeBaseId, Member, OrganizationId, PhoneNumberId, ReplayId, Role, RunId, Slug, ToolId, UserId, acting,
    },
    store::{CreatedAt, Cursor, Page},
};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Route {
    pub method: &'static str,
    /// As in `infra/template.yaml`.
    pub path: &'static str,
    pub caller: Caller,
    pub query: &'static [&'static [&'static str]],
    /// A part checks the query parameters itself.
    pub own_query: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Caller {
    /// A member with at least this role, verified by the JWT authorizer.
    Member(Role),
    /// A member with at least this role, whose token the handler verifies.
    Verified(Role),
    Anybody,
    /// The handler checks the proof; names a security scheme in `docs/openapi.yaml`.
    Proof(&'static str),
}

impl Route {
    pub const fn role(&self) -> Option<Role> {
        match self.caller {
            Caller::Member(role) | Caller::Verified(role) => Some(role),
            Caller::Proof(_) | Caller::Anybody => None,
        }
    }

    fn segments(&self) -> impl Iterator<Item = &'static str> + Clone + use<> {
        self.path.split('/').filter(|segment| !segment.is_empty())
    }

    pub fn known_in_query(&self) -> Vec<&'static str> {
        self.query.concat()
    }

    fn fits(&self, asked: &[&str]) -> bool {
        let Some((method, path)) = asked.split_first() else { return false };
        let pattern = self.segments();
        *method == self.method
            && pattern.clone().count() == path.len()
            && pattern.zip(path).all(|(segment, given)| segment.starts_with('{') || segment == *given)
    }
}

pub struct Found<'a> {
    pub request: &'a Request,
    pub deadline: Deadline,
    route: &'static Route,
    variables: Vec<&'a str>,
}

impl<'a> Found<'a> {
    /// # Errors
    /// [`Error::NotFound`] if no route matches.
    pub fn of(routes: &'static [Route], request: &'a Request) -> Result<Self> {
        let asked = segments(request);
        let route = routes.iter().find(|route| route.fits(&asked)).ok_or(Error::NotFound("route"))?;
        let pattern = route.segments().zip(asked.into_iter().skip(1));
        let variables = pattern.filter(|(segment, _)| segment.starts_with('{') && *segment != "{slug}");
        let variables = variables.map(|(_, given)| given).collect();
        Ok(Self { request, deadline: deadline(request), route, variables })
    }

    pub fn is(&self, route: &Route) -> bool {
        self.route == route
    }

    /// A variable of the path, undecoded, not counting the slug; empty if missing.
    pub fn variable(&self, at: usize) -> &'a str {
        self.variables.get(at).copied().unwrap_or_default()
    }

    fn slug(&self) -> Result<Slug> {
        let named = self.route.segments().zip(segments(self.request).into_iter().skip(1));
        let slug = named.into_iter().find(|(segment, _)| *segment == "{slug}");
        id(slug.map(|(_, given)| given).unwrap_or_default(), "organization")
    }

    pub(super) const fn role(&self) -> Option<Role> {
        self.route.role()
    }
}

pub struct Asked<'a> {
    pub member: Member,
    /// From the token, on routes without a slug.
    pub email: Option<String>,
    /// The organization's slug, on routes that do not have it in the path.
    pub slug: Option<Slug>,
    found: Found<'a>,
}

impl<'a> Deref for Asked<'a> {
    type Target = Found<'a>;

    fn deref(&self) -> &Found<'a> {
        &self.found
    }
}

impl<'a> Asked<'a> {
    pub async fn of(access: &Access, least: Role, found: Found<'a>) -> Result<Self> {
        let known = (!found.route.own_query).then(|| found.route.known_in_query());
        let member = access.member(found.request, least, known.as_deref()).await?;
        Ok(Self { member, email: None, slug: None, found })
    }

    /// For a path without a slug.
    pub async fn person(access: &Access, least: Role, found: Found<'a>) -> Result<Self> {
        let Person { member, slug, email } = access.person(found.request, least).await?;
        Ok(Self { member, email, slug: Some(slug), found })
    }

    /// Carries out `work` with the member as the actor of its audit entries.
    pub fn acting<F: Future>(&self, work: F) -> impl Future<Output = F::Output> + use<F> {
        // On the heap: the nested futures reach the compiler's limits.
        acting(Some(Actor::of(&self.member)), Box::pin(work))
    }

    pub const fn organization(&self) -> OrganizationId {
        self.member.organization_id
    }
}

pub trait Part: Sized {
    const QUERY: &'static [&'static str] = &[];
    /// The part rejects unknown query parameters itself.
    const OWN_QUERY: bool = false;

    fn of(found: &Found<'_>) -> Result<Self>;
    fn describe(operation: &mut Operation, schemas: &mut Schemas);
}

/// For handlers that authorize by themselves.
impl Part for Slug {
    fn of(found: &Found<'_>) -> Result<Self> {
        found.slug()
    }

    fn describe(_: &mut Operation, _: &mut Schemas) {}
}

/// A part whose error the handler raises later, after finding the resource in the path.
impl<T: Part> Part for Result<T> {
    const QUERY: &'static [&'static str] = T::QUERY;
    const OWN_QUERY: bool = T::OWN_QUERY;

    fn of(found: &Found<'_>) -> Result<Self> {
        Ok(T::of(found))
    }

    fn describe(operation: &mut Operation, schemas: &mut Schemas) {
        T::describe(operation, schemas);
    }
}

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
    ApprovalId: "approval", "The approval's id.";
    AutomationId: "automation", "The automation's id.";
    CallId: "call", "The call's id at VAPI.";
    DoNotCallId: "do-not-call entry", "The entry's id.";
    EntryId: "entry", "The entry's id within its knowledge base.";
    EventId: "event", "The event's id.";
    HookId: "hook", "The hook's id.";
    KnowledgeBaseId: "knowledge base", "The knowledge base's id.";
    ReplayId: "replay", "The replay's id.";
    RunId: "run", "The run's id.";
    KeyService: "service", "The service of the account.";
    PhoneNumberId: "phone number", "The phone number's id.";
    ToolId: "tool", "The tool's id.";
    UserId: "member", "The `sub` of the user's tokens, percent-encoded (`auth0%7C7`). One with `/`, `?` or `#` in it cannot be named in \
        an address: API Gateway decodes it before it chooses the route.";
}

/// The first variable of the path after the slug.
pub struct Id<T>(pub T);

impl<T: Named> Part for Id<T> {
    fn of(found: &Found<'_>) -> Result<Self> {
        variable(found, 0).map(Self)
    }

    fn describe(operation: &mut Operation, schemas: &mut Schemas) {
        operation.names(T::DOC, T::schema(schemas));
    }
}

fn variable<T: Named>(found: &Found<'_>, at: usize) -> Result<T> {
    id(found.variable(at), T::NOUN)
}

pub struct Ids<A, B>(pub A, pub B);

impl<A: Named, B: Named> Part for Ids<A, B> {
    fn of(found: &Found<'_>) -> Result<Self> {
        Ok(Self(variable(found, 0)?, variable(found, 1)?))
    }

    fn describe(operation: &mut Operation, schemas: &mut Schemas) {
        operation.names(A::DOC, A::schema(schemas));
        operation.names(B::DOC, B::schema(schemas));
    }
}

/// An optional query parameter `?name=value` whose type states the allowed values.
pub trait Asks: FromStr<Err: Display> + Described {
    const NAME: &'static str;
    const DOC: &'static str;

    /// The values that can be asked for.
    fn asked(schemas: &mut Schemas) -> Json {
        Self::schema(schemas)
    }
}

pub struct Wanted<T>(pub Option<T>);

impl<T: Asks> Part for Wanted<T> {
    const QUERY: &'static [&'static str] = &[T::NAME];

    fn of(found: &Found<'_>) -> Result<Self> {
        let query = found.request.query_string_parameters();
        let word = query.first(T::NAME).filter(|text| !text.is_empty()).map(str::parse::<T>).transpose();
        word.map(Self).map_err(|error| Error::invalid(T::NAME, error.to_string()))
    }

    fn describe(operation: &mut Operation, schemas: &mut Schemas) {
        operation.may_ask(T::NAME, T::DOC, T::asked(schemas));
    }
}

pub struct Repeated(pub Option<String>);

impl Part for Repeated {
    fn of(found: &Found<'_>) -> Result<Self> {
        idempotency_key(found.request).map(Self)
    }

    fn describe(operation: &mut Operation, _: &mut Schemas) {
        let schema = json!({"type": "string", "minLength": 1, "maxLength": 200});
        operation.request_header("Idempotency-Key", "A repeated key is the same request.", schema);
        operation.refuses(422);
    }
}

/// `?limit=&cursor=`
pub struct Paged<P = CreatedAt> {
    pub limit: i32,
    pub cursor: Option<Cursor<P>>,
}

impl<P: FromStr> Part for Paged<P> {
    const QUERY: &'static [&'static str] = &["limit", "cursor"];

    fn of(found: &Found<'_>) -> Result<Self> {
        let (limit, cursor) = page(found.request)?;
        Ok(Self { limit, cursor })
    }

    fn describe(operation: &mut Operation, _: &mut Schemas) {
        operation.is_paged();
    }
}

pub trait Answers {
    /// # Errors
    /// [`Error::Internal`] if the value cannot be serialized.
    fn reply(self) -> Result<Reply>;
    fn describe(operation: &mut Operation, schemas: &mut Schemas);
}

pub struct Shown<T>(pub T);
pub struct Created<T>(pub T);
/// 201 for a new value, 200 for an existing one.
pub enum Made<T> {
    New(T),
    There(T),
}
pub struct Accepted<T>(pub T);
/// 202 for a new value, 200 for an existing one.
pub enum Begun<T> {
    Now(T),
    Before(T),
}
pub struct Deleted;
pub struct Gone;

macro_rules! answers_with {
    ($($type:ident: $status:literal, $usual:literal;)+) => {$(
        impl<T: Serialize + Described> Answers for $type<T> {
            fn reply(self) -> Result<Reply> {
                Reply::json($status, &self.0)
            }

            fn describe(operation: &mut Operation, schemas: &mut Schemas) {
                operation.answers($status, $usual, T::schema(schemas));
            }
        }
    )+};
}

answers_with! {
    Shown: 200, "The present state.";
    Created: 201, "It is created.";
    Accepted: 202, "It is accepted.";
}

impl<T: Serialize + Described> Answers for Made<T> {
    fn reply(self) -> Result<Reply> {
        match self {
            Self::New(row) => Created(row).reply(),
            Self::There(row) => Shown(row).reply(),
        }
    }

    fn describe(operation: &mut Operation, schemas: &mut Schemas) {
        Created::<T>::describe(operation, schemas);
        operation.answers(200, "It exists already, unchanged.", T::schema(schemas));
    }
}

impl<T: Serialize + Described> Answers for Begun<T> {
    fn reply(self) -> Result<Reply> {
        match self {
            Self::Now(row) => Accepted(row).reply(),
            Self::Before(row) => Shown(row).reply(),
        }
    }

    fn describe(operation: &mut Operation, schemas: &mut Schemas) {
        Accepted::<T>::describe(operation, schemas);
        operation.answers(200, "It was accepted before.", T::schema(schemas));
    }
}

impl Answers for Gone {
    fn reply(self) -> Result<Reply> {
        Ok(Reply::no_content())
    }

    fn describe(operation: &mut Operation, _: &mut Schemas) {
        operation.answers_nothing(204, "It is deleted.");
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
        operation.answers(200, "It is deleted.", schema);
    }
}

/// Defines a function's `ROUTES`, its dispatcher `handle`, and `describe` for the generated document.
#[macro_export]
macro_rules! routes {
    // `&'static Deps` for answers that continue after the handler returns.
    ($(& $life:lifetime)? $deps:ident, $tag:literal: $($($of:ident)::+),+ $(,)?) => {
        pub const ROUTES: &[$crate::http::Route] = &[$($($of)::+::ROUTE),+];

        pub async fn handle(deps: &$($life)? $deps, request: $crate::http::Request) -> $crate::Result<$crate::http::Reply> {
            let found = $crate::http::Found::of(ROUTES, &request)?;
            $(if found.is(&$($of)::+::ROUTE) {
                let reply = Box::pin($($of)::+::answer(deps, found)).await?;
                return Ok(reply.unless_known(&$($of)::+::ROUTE, &request));
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
        let route = Route {
            method: "GET",
            path: "/api/{slug}/tools/{id}",
            caller: Caller::Member(Role::Viewer),
            query: &[],
            own_query: false,
        };
        assert!(route.fits(&["GET", "api", "acme", "tools", "7"]));
        assert!(Route { path: "/", ..route }.fits(&["GET"]));
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
    }
}
