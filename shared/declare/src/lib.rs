//! Macros that declare routes, bodies, answers, names, rows and a function's parts: `#[operation]`, `#[derive(Body)]`,
//! `#[derive(Described)]`, `#[derive(Names)]`, `#[skip_serializing_none]` and `#[derive(Parts)]`.
//!
//! Their expansions use `shared/src/entry/http/operation.rs`, `shared/src/core/declared.rs`, `described.rs` and `names.rs`, and
//! `shared/src/platform/parts.rs`.

mod names;
mod operation;
mod parts;
mod structure;

use proc_macro::TokenStream;
use syn::{Attribute, DeriveInput, Error, Expr, ExprLit, ItemFn, ItemStruct, Lit, Meta, parse_macro_input};

/// Declares the route of a handler: `#[operation(POST "/api/{slug}/members", Admin, also(409), resource(AddMember))]`.
///
/// The handler is `async fn(&Deps, &Asked<'_>, parts…) -> Result<Answer>`. Its name is the `operationId`, its doc comment the
/// prose. On paths without a slug, the header `X-Organization` names the organization.
///
/// In place of the role: `by(vapiBearer)` names the security scheme of a caller without a JWT, `verified(Member)` is a role
/// whose token the function verifies, and `open` admits everybody. The handler then gets a `&Found<'_>` and checks the proof or
/// token itself.
///
/// - `also`: errors that do not follow from the parts; `429 = OverBudget` replaces the usual response.
/// - `resource`: the template's logical id, if not the handler's name.
/// - `tag`: the heading in the document, if not the function's.
/// - `throttle`: columns of the template's throttles, for the REST API.
/// - `when`: the template's condition for the route.
/// - `answers`: the function that describes the answer of a handler that returns a `Reply`.
#[proc_macro_attribute]
pub fn operation(stated: TokenStream, handler: TokenStream) -> TokenStream {
    let stated = parse_macro_input!(stated as operation::Stated);
    let handler = parse_macro_input!(handler as ItemFn);
    operation::expand(&stated, &handler).unwrap_or_else(Error::into_compile_error).into()
}

/// A JSON object in a request: all fields are read before problems are reported.
#[proc_macro_derive(Body, attributes(schema))]
pub fn body(item: TokenStream) -> TokenStream {
    let item = parse_macro_input!(item as DeriveInput);
    structure::body(&item).unwrap_or_else(Error::into_compile_error).into()
}

/// The JSON Schema of a struct with named fields, or of an enum without data, as serialized by serde.
///
/// `#[schema(maxItems = 2)]` on a field adds to its schema.
#[proc_macro_derive(Described, attributes(schema))]
pub fn described(item: TokenStream) -> TokenStream {
    let item = parse_macro_input!(item as DeriveInput);
    structure::described(&item).unwrap_or_else(Error::into_compile_error).into()
}

/// The names of an enum's variants, spelled as serde spells them: `ALL`, `NAMES`, `as_str`, `named`, `Display` and `FromStr`. For
/// variants with data only `as_str`.
///
/// - `#[serde(rename_all = "…", rename = "…", alias = "…")]` work without serde too.
/// - `#[names(never_given)]` on a variant: no text names it.
/// - `#[names(problem = "…")]`: shown for an unknown name, in place of `must be one of …`.
#[proc_macro_derive(Names, attributes(names, serde))]
pub fn names(item: TokenStream) -> TokenStream {
    let item = parse_macro_input!(item as DeriveInput);
    names::names(&item).unwrap_or_else(Error::into_compile_error).into()
}

/// Above `#[derive(Serialize)]`: leaves out each `None` of the struct, unless the field says otherwise, and reads an absent one as
/// `None`.
#[proc_macro_attribute]
pub fn skip_serializing_none(_: TokenStream, item: TokenStream) -> TokenStream {
    let item = parse_macro_input!(item as ItemStruct);
    structure::skip_serializing_none(item).unwrap_or_else(Error::into_compile_error).into()
}

/// `new(&Platform)` of a function's `Deps`, with each part by its type. `#[part(platform.deletion()?)]` makes a part otherwise.
#[proc_macro_derive(Parts, attributes(part))]
pub fn parts(item: TokenStream) -> TokenStream {
    let item = parse_macro_input!(item as DeriveInput);
    parts::expand(&item).unwrap_or_else(Error::into_compile_error).into()
}

fn doc(attributes: &[Attribute]) -> String {
    let line = |attribute: &Attribute| match &attribute.meta {
        Meta::NameValue(pair) if pair.path.is_ident("doc") => match &pair.value {
            Expr::Lit(ExprLit { lit: Lit::Str(text), .. }) => {
                let text = text.value();
                Some(text.strip_prefix(' ').unwrap_or(&text).to_owned())
            }
            _ => None,
        },
        _ => None,
    };
    attributes.iter().filter_map(line).collect::<Vec<_>>().join("\n")
}
