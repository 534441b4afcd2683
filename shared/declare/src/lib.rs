//! The macros with which a route, a body and an answer are each written once: `#[operation]`, `#[derive(Body)]` and
//! `#[derive(Described)]`. What they expand to stands in `shared/src/http/operation.rs`, `http/declared.rs` and `described.rs`.

mod operation;
mod structure;

use proc_macro::TokenStream;
use syn::{Attribute, DeriveInput, Error, Expr, ExprLit, ItemFn, Lit, Meta, parse_macro_input};

/// Declares the route of a handler: `#[operation(POST "/api/{slug}/members", Admin, also(409), resource(AddMember))]`.
///
/// The handler is `async fn(&Deps, &Asked<'_>, parts…) -> Result<Answer>`. Its name is the `operationId`, its doc comment the prose.
/// Where the path names no organization, it is the one that the header `X-Organization` names.
/// In the role's place `by(vapiBearer)` names the security scheme of a caller without a JWT, `verified(Member)` the role of one whose
/// token no authorizer has verified, and `open` is anybody; the handler gets a `&Found<'_>` then, and checks the proof or the token. `also` names errors that do not follow from its parts, `429 = OverBudget` a response of the document's in place of
/// the usual one; `resource` the template's logical id, where it is not the handler's name, and
/// `tag` the heading in the document, where it is not that of the function. `throttle` names the columns of the template's throttles for
/// a route of the REST API, `when` the template's condition for the route.
#[proc_macro_attribute]
pub fn operation(stated: TokenStream, handler: TokenStream) -> TokenStream {
    let stated = parse_macro_input!(stated as operation::Stated);
    let handler = parse_macro_input!(handler as ItemFn);
    operation::expand(&stated, &handler).unwrap_or_else(Error::into_compile_error).into()
}

/// The fields of a JSON object that a request sends: all are read before the first problem is answered.
#[proc_macro_derive(Body, attributes(schema))]
pub fn body(item: TokenStream) -> TokenStream {
    let item = parse_macro_input!(item as DeriveInput);
    structure::body(&item).unwrap_or_else(Error::into_compile_error).into()
}

/// The JSON Schema of a struct with named fields, or of an enum without data, as serde serializes it.
///
/// `#[schema(maxItems = 2)]` on a field adds to its schema.
#[proc_macro_derive(Described, attributes(schema))]
pub fn described(item: TokenStream) -> TokenStream {
    let item = parse_macro_input!(item as DeriveInput);
    structure::described(&item).unwrap_or_else(Error::into_compile_error).into()
}

/// The text of a doc comment, line by line.
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
